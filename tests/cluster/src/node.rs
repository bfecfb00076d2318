//! A node: a machine in namespaces, with a disk that outlives it.

use std::fs;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use supervisor::write_command;

use crate::watch::Watch;
use crate::{Cluster, answer, run, wait};

/// The wires that each node has a card on, in the order of the cards.
const WIRES: [&str; 3] = ["br0", "traffic-1", "traffic-2"];

/// A machine of the cluster, by its number: 1 is `node01`. Whether it runs is the machine's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(pub u8);

impl Node {
    pub fn name(self) -> String {
        format!("node{:02}", self.0)
    }

    /// Its address on the management network.
    pub fn address(self) -> String {
        format!("10.99.0.{}", 10 + self.0)
    }

    fn pods(self) -> String {
        format!("10.200.{}.0/24", self.0)
    }
}

/// What is done when all nodes are gone: logs of pods stay with the others, and the control groups that they had go.
pub(crate) fn after(folder: &Path) -> String {
    format!(
        "for disk in disks/*; do\n\
         \x20   [ ! -e keep ] || cp -r \"$disk/var/log/pods\" \"pods-${{disk#disks/}}\"\n\
         done\n\
         for group in /sys/fs/cgroup/{{,*/}}{}-*; do\n\
         \x20   for ((tries = 0; tries < 100; tries++)); do\n\
         \x20       [ -d \"$group\" ] || break\n\
         \x20       find \"$group\" -depth -type d -exec rmdir {{}} + 2>/dev/null || sleep 0.05\n\
         \x20   done\n\
         done\n",
        group(folder)
    )
}

/// What names of control groups of this cluster begin with: two clusters on a machine must not meet.
fn group(folder: &Path) -> String {
    folder.file_name().expect("a folder with a name").to_string_lossy().into_owned()
}

impl Cluster {
    /// Switches a machine on, for the first time or with the disk that it had; its cards are in its hands when this returns,
    /// and its kubelet is about to start.
    pub fn boot(&self, node: Node) {
        let (name, folder) = (node.name(), self.folder.display().to_string());
        self.authority.node(&name, &node.address());
        let script = self.programs.scripts.join("node.sh").display().to_string();
        let set = |name: &str, path: &Path| format!("{name}={}", path.display());
        let mut command: Vec<String> =
            ["unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
                .map(str::to_owned)
                .to_vec();
        command.extend(["--mount-proc", "--propagation=private", "env"].map(str::to_owned));
        command.push(set("RUNTIME", &self.programs.runtime));
        command.push(set("PLUGINS", &self.programs.plugins));
        command.push(set("KUBELET", &self.programs.kubelet));
        let group = format!("{}-{name}", group(&self.folder));
        command.extend([script, folder, name.clone(), node.address(), node.pods(), group]);
        write_command(&self.folder, &name, &command).expect("a command");
        fs::write(self.folder.join(format!("{name}.off")), "").expect("a mark");
        // Of the boot before.
        let _ = fs::remove_file(self.noted(node));
        let outside = self.supervisor.start_program(&name).expect("a node");
        let inside = wait::until("the node's first process", || child(outside).ok_or_else(|| name.clone()));
        fs::write(self.pid_file(node), inside.to_string()).expect("its number");
        self.plug_in(node, inside);
    }

    /// Cards keep their hardware addresses over a boot, as real ones do.
    fn plug_in(&self, node: Node, inside: u32) {
        for (card, wire) in WIRES.iter().enumerate() {
            let port = format!("{}-{card}", node.name());
            let address = format!("02:00:00:00:{card:02x}:{:02x}", node.0);
            let peer =
                ["peer", "name", &format!("eth{card}"), "address", &address, "netns"].map(str::to_owned);
            let mut add = self.in_plane("ip");
            run(add.args(["link", "add", &port, "type", "veth"]).args(peer).arg(inside.to_string()));
            run(self.in_plane("ip").args(["link", "set", &port, "master", wire, "up"]));
        }
        run(self.in_plane("ip").args(["route", "replace", &node.pods(), "via", &node.address()]));
    }

    /// Cuts the power: every process of it is gone, and so are its cards, when this returns. The disk stays.
    pub fn power_cut(&self, node: Node) {
        self.supervisor.tell("kill", &node.name()).expect("it runs");
        let port = format!("{}-0", node.name());
        wait::until("the node's cards to be gone", || {
            match answer(self.in_plane("ip").args(["link", "show", &port])) {
                Ok(shown) => Err(shown),
                Err(_) => Ok(()),
            }
        });
    }

    /// A command on a node that runs, as its administrator at its console.
    pub fn on(&self, node: Node, program: &str) -> Command {
        let pid = fs::read_to_string(self.pid_file(node)).expect("a node that was booted");
        let mut command = Command::new("nsenter");
        command.args(["--target", &pid, "--mount", "--net", "--pid", "--uts", "--ipc", "--", program]);
        command
    }

    /// A command on a node's network alone: it needs none of the node's files, and ends with the signal that it is sent.
    fn on_network(&self, node: Node, program: &str) -> Command {
        let pid = fs::read_to_string(self.pid_file(node)).expect("a node that was booted");
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{pid}/ns/net")).args(["--", program]);
        command
    }

    /// What happens to a node's addresses from now on.
    pub fn watch_addresses(&self, node: Node) -> Watch {
        Watch::start(self.on_network(node, "setpriv"), &["ip", "-oneline", "monitor", "address"], "TERM")
    }

    /// Asks an address ten times a second, from this card, whether it is there.
    pub fn pinger(&self, node: Node, card: &str, address: &str) -> Watch {
        let line = ["busybox", "ping", "-i", "0.1", "-I", card, address];
        // It writes its sum when it is interrupted.
        Watch::start(self.on_network(node, "setpriv"), &line, "INT")
    }

    fn pid_file(&self, node: Node) -> PathBuf {
        self.folder.join(format!("{}.pid", node.name()))
    }

    /// The IPv4 addresses on a card, as the kernel has them.
    pub fn addresses(&self, node: Node, card: &str) -> Vec<String> {
        let shown = run(self.on_network(node, "ip").args(["-brief", "-4", "address", "show", "dev", card]));
        shown.split_whitespace().skip(2).map(str::to_owned).collect()
    }

    /// Can this node reach that address, from this card?
    pub fn ping(&self, node: Node, card: &str, address: &str) -> Result<(), String> {
        let mut ping = self.on_network(node, "busybox");
        answer(ping.args(["ping", "-c", "1", "-W", "2", "-I", card, address])).map(drop)
    }

    /// What is at this address, to whoever asks from this node's network.
    pub fn fetch(&self, node: Node, url: &str) -> Result<String, String> {
        answer(self.on_network(node, "curl").args([
            "--silent",
            "--show-error",
            "--fail",
            "--max-time",
            "5",
            url,
        ]))
    }

    /// Takes the image in this file into a node that runs.
    pub fn load(&self, node: Node, image: &Path) {
        let ctr = self.programs.runtime.join("ctr").display().to_string();
        let mut load = self.on(node, &ctr);
        load.args([
            "--address",
            "/run/containerd/containerd.sock",
            "--namespace",
            "k8s.io",
            "images",
            "import",
        ]);
        run(load.arg(image));
    }

    /// What the init container of `deploy/components/boot` does on every node, on this one: by hand, with the program out of the
    /// image that it has.
    pub fn install_boot_unit(&self, node: Node, image: &str) {
        let ctr = format!(
            "{} --address /run/containerd/containerd.sock --namespace k8s.io",
            self.programs.runtime.join("ctr").display()
        );
        let lines = format!(
            "set -e\n\
             mkdir -p /run/berth-image\n\
             {ctr} images mount {image} /run/berth-image\n\
             /run/berth-image/berth boot install\n\
             {ctr} images unmount --rm /run/berth-image\n"
        );
        run(self.on(node, "sh").args(["-c", &lines]));
    }

    /// What was so when the node's kubelet was about to start: addresses on its cards, and a line for each container.
    pub fn before_kubelet(&self, node: Node) -> String {
        wait::until("the node's kubelet to be about to start", || {
            fs::read_to_string(self.noted(node)).map_err(|wrong| wrong.to_string())
        })
    }

    fn noted(&self, node: Node) -> PathBuf {
        self.folder.join(format!("{}.before-kubelet", node.name()))
    }

    /// Sends the node's kubelet a signal: `STOP` freezes it, `CONT` lets it go on, `KILL` ends it. Its pods live on.
    pub fn signal_kubelet(&self, node: Node, signal: &str) {
        let pid = fs::read_to_string(self.pid_file(node)).expect("a node that was booted");
        let first: u32 = pid.parse().expect("a number");
        let kubelet = children(first).into_iter().find(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "kubelet")
        });
        let kubelet = kubelet.expect("a kubelet").to_string();
        run(Command::new("kill").args(["-s", signal, &kubelet]));
    }

    /// Starts a kubelet where there is none.
    pub fn start_kubelet(&self, node: Node) {
        let commands = self.folder.join("disks").join(node.name()).join("commands");
        let mut commands = OpenOptions::new().write(true).open(commands).expect("a node that runs");
        commands.write_all(b"kubelet\n").expect("it listens");
    }
}

fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn child(pid: u32) -> Option<u32> {
    children(pid).first().copied()
}
