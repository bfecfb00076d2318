//! A cluster on one machine: a control plane and real kubelets with containerd, each in namespaces of its own.
//!
//! ```text
//!   etcd, API server, controllers, scheduler        node01: containerd, kubelet, pods
//!   10.99.0.1 ── br0 ───────────────────────────────── eth0 10.99.0.11
//!                traffic-1 ─────────────────────────── eth1
//!                traffic-2 ─────────────────────────── eth2
//! ```
//!
//! Only tests use it, as root. Nothing of it is on the machine's own network: whoever asks the API enters the namespace
//! first. It ends with the process, however that ends (`tests/supervisor/supervise.sh`); when a test panics the logs stay.
//!
//! Cost: 15 s until three nodes are Ready, 1.1 GiB. What it is made of is found, fetched or built by `build.sh` beside this.

mod commands;
mod kubectl;
mod node;
mod pki;
mod programs;
pub mod wait;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use node::Node;
use pki::Authority;
use programs::Programs;
use supervisor::{Supervisor, folder, write_command};
pub use watch::Watch;

/// The holder of the control plane's network.
const PLANE: &str = "plane";

/// A cluster that runs.
pub struct Cluster {
    folder: PathBuf,
    programs: Programs,
    authority: Authority,
    supervisor: Supervisor,
    /// A process in the control plane's network.
    plane: u32,
}

impl Cluster {
    /// A control plane that is ready, and no node.
    pub fn start() -> Cluster {
        let programs = Programs::find();
        let folder = folder::new("cluster").expect("a folder");
        for part in ["pki", "disks", "images"] {
            fs::create_dir(folder.join(part)).expect("a folder");
        }
        let authority = Authority::make(folder.join("pki"));
        fs::write(folder.join("after"), node::after(&folder)).expect("what is done at the end");
        let supervisor = Supervisor::start(&folder).expect("a supervisor");
        folder::keep_on_panic(&folder);
        let script = programs.scripts.join("plane.sh").display().to_string();
        let command = ["unshare".to_owned(), "--net".to_owned(), script];
        fs::write(folder.join(format!("{PLANE}.off")), "").expect("a mark");
        write_command(&folder, PLANE, &command).expect("a command");
        let plane = supervisor.start_program(PLANE).expect("the plane");
        let cluster = Cluster { folder, programs, authority, supervisor, plane };
        cluster.image(&cluster.programs.pause, "localhost/pause:1");
        cluster.start_plane();
        cluster
    }

    fn start_plane(&self) {
        wait::until("the control plane's network", || {
            let shown = self.in_plane("ip").args(["-brief", "address", "show", "dev", "br0"]).output();
            let shown = String::from_utf8_lossy(&shown.expect("ip can be run").stdout).into_owned();
            if shown.contains("10.99.0.1") { Ok(()) } else { Err(shown) }
        });
        for (name, command) in commands::all(&self.folder, &self.programs, &self.authority) {
            let enter = format!("--net=/proc/{}/ns/net", self.plane);
            let mut all = vec!["nsenter".to_owned(), enter, "--".to_owned()];
            all.extend(command);
            write_command(&self.folder, name, &all).expect("a command");
        }
        for name in [commands::ETCD, commands::API_SERVER] {
            self.supervisor.start_program(name).expect(name);
        }
        wait::until("the API server to be ready", || {
            for name in [commands::ETCD, commands::API_SERVER] {
                self.supervisor.check(name).unwrap_or_else(|wrong| panic!("{wrong}"));
            }
            self.try_kubectl(&["get", "--raw", "/readyz"])
        });
        for name in [commands::CONTROLLER_MANAGER, commands::SCHEDULER] {
            self.supervisor.start_program(name).expect(name);
        }
    }

    /// A command on the control plane's network.
    fn in_plane(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.plane)).arg("--").arg(program);
        command
    }

    /// Makes an image of one static program, for nodes that boot from now on.
    pub fn image(&self, program: &Path, image: &str) -> PathBuf {
        let name: String = image.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
        let out = self.folder.join("images").join(format!("{name}.tar"));
        let script = self.programs.scripts.join("../../deploy/image.sh");
        // A development build is large, and goes nowhere: ten seconds saved.
        run(Command::new(script).env("COMPRESSION", "1").arg(program).arg(image).arg(&out));
        out
    }

    /// The folder with logs, disks and keys.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// What a command printed that has to go well.
pub fn run(command: &mut Command) -> String {
    answer(command).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// What a command printed; or that it failed, and what it said.
pub fn answer(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(std::process::Stdio::null()).output();
    let output = output.map_err(|wrong| format!("{command:?}: {wrong}"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match output.status.success() {
        true => Ok(out.into_owned()),
        false => Err(format!("{command:?}: {}\n{out}{err}", output.status)),
    }
}
