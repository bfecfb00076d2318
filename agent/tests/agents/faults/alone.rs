//! A host on its own: API, controller and agent die as one, and the store on disk is all that is left besides the journal.

use std::time::Instant;

use serde_json::Value;

use super::{one_address, pool};
use crate::fleet::{Machine, PATIENCE, Process};
use crate::folder::Folder;

pub(super) const POINTS: [&str; 10] = [
    "manifest-put",
    "manifest-dropped",
    "ledger-written",
    "answered",
    "journal-holding",
    "applied",
    "state-journalled",
    "let-go",
    "journal-gone",
    "finalizer-off",
];

/// R27, R30, R58, R70: a host that is killed anywhere has its address once it runs again, the same one, and lets go of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r27_r30_r58_a_host_on_its_own_is_killed_anywhere() {
    for point in POINTS {
        Alone::new().story(point);
    }
}

struct Alone {
    process: Option<Process>,
    machine: Machine,
    folder: Folder,
    revived: bool,
}

impl Alone {
    fn new() -> Self {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("manifests")).expect("a folder");
        Self { process: None, machine: Machine::new("alone", 1), folder, revived: false }
    }

    fn story(mut self, point: &str) {
        self.write(
            "one",
            &serde_json::json!({"apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy",
            "metadata": {"name": "one"}, "spec": one_address("pool")}),
        );
        self.write(
            "pool",
            &serde_json::json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool",
            "metadata": {"name": "pool"}, "spec": pool(1, 9)}),
        );
        self.start(Some(point));
        self.until("has an address", |on, _| on.len() == 1);
        let before = self.machine.addresses("eth0");
        // Killed for good measure, and as after a boot.
        if self.revived {
            self.process.as_mut().expect("it runs").kill();
            self.machine.power_cut();
            self.start(None);
            self.until("has it again", |on, _| on == before);
        }
        std::fs::remove_file(self.folder.path().join("manifests/one.json")).expect("it was there");
        self.until_all(&format!("let go, and dead at {point} on the way"), |on, claims, died| {
            on.is_empty() && claims == 0 && died
        });
        self.write(
            "again",
            &serde_json::json!({"apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy",
            "metadata": {"name": "one"}, "spec": one_address("pool")}),
        );
        // By hash (rule 8), and since nobody else is there (R31).
        self.until("has the same", |on, _| on == before);
    }

    fn write(&self, name: &str, object: &Value) {
        let path = self.folder.path().join(format!("manifests/{name}.json"));
        std::fs::write(path, object.to_string()).expect("a manifest");
    }

    fn start(&mut self, fault: Option<&str>) {
        let path = |name: &str| self.folder.path().join(name).to_string_lossy().into_owned();
        let (manifests, state) = (path("manifests"), path("state"));
        let netns = &self.machine.netns;
        let args =
            ["agent", "--node", "alone", "--standalone", &manifests, "--state-dir", &state, "--netns", netns];
        let args: Vec<String> = args.map(str::to_owned).to_vec();
        self.process = Some(Process::start(self.folder.path(), "alone", &args, fault));
    }

    /// Waits for addresses of the card and a number of claims in the journal; started again when it dies.
    fn until(&mut self, what: &str, holds: impl Fn(&[String], usize) -> bool) {
        self.until_all(what, |on, claims, _| holds(on, claims));
    }

    fn until_all(&mut self, what: &str, holds: impl Fn(&[String], usize, bool) -> bool) {
        let begun = Instant::now();
        loop {
            let process = self.process.as_mut().expect("it runs");
            let log = || std::fs::read_to_string(self.folder.path().join("alone.log")).unwrap_or_default();
            if let Some(ended) = process.ended() {
                assert!(process.fault.is_some() && log().contains("fault point"), "{ended}: {}", log());
                self.revived = true;
                self.start(None);
            }
            let journal = std::fs::read_to_string(self.folder.path().join("state/journal.json"));
            let journal: Value = serde_json::from_str(&journal.unwrap_or_default()).unwrap_or_default();
            let on = self.machine.addresses("eth0");
            if holds(&on, journal["claims"].as_array().map_or(0, Vec::len), self.revived) {
                return;
            }
            let log = std::fs::read_to_string(self.folder.path().join("alone.log")).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "never {what}: {on:?} {journal:#}\n{log}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
