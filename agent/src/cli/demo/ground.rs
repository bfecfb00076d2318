//! The ground that the demo stands on: hosts as network namespaces, cables between them, processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kernel::{Kernel, Live};
use crate::netns::Namespace;

/// Inside a user namespace of its own: a place for named namespaces, and a loopback that is up.
pub(super) fn prepare_inside() -> anyhow::Result<()> {
    mount(Some("none"), "/run", Some("tmpfs"), MsFlags::empty(), None::<&str>)
        .context("can't mount on /run")?;
    ip(&["link", "set", "lo", "up"])
}

/// What the names of everything that a demo makes begin with: several may run.
pub(super) fn own_name() -> String {
    format!("berth-demo-{}", std::process::id())
}

/// A namespace by the name of `ip netns`; gone when dropped.
pub(super) struct Net {
    pub(super) name: String,
}

impl Net {
    pub(super) fn new(name: &str) -> anyhow::Result<Self> {
        let name = format!("{}-{name}", own_name());
        ip(&["netns", "add", &name])?;
        let net = Self { name };
        net.ip("link set lo up")?;
        Ok(net)
    }

    pub(super) fn ip(&self, line: &str) -> anyhow::Result<()> {
        let args: Vec<&str> = ["-n", &self.name].into_iter().chain(line.split_whitespace()).collect();
        ip(&args)
    }

    /// What the kernel has: addresses by card.
    pub(super) fn addresses(&self) -> anyhow::Result<Vec<(String, String)>> {
        let namespace: Namespace = self.name.parse()?;
        let seen = namespace.inside(|| Live::open(&Namespace::Own).and_then(|mut live| live.observe()))??;
        let links = seen.state.links.values().filter(|link| link.name.as_str() != "lo");
        Ok(links
            .flat_map(|link| {
                link.ipv4.addresses.iter().map(|address| (link.name.to_string(), address.ip.to_string()))
            })
            .collect())
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).stderr(Stdio::null()).status();
    }
}

/// Two switches, one per network.
pub(super) struct Switches(Net);

impl Switches {
    pub(super) fn new() -> anyhow::Result<Self> {
        let net = Net::new("switch")?;
        for network in ["one", "two"] {
            net.ip(&format!("link add {network} type bridge"))?;
            net.ip(&format!("link set {network} up"))?;
        }
        Ok(Self(net))
    }

    /// A host with a card on each: `eth1` and `eth2`.
    pub(super) fn host(&self, name: &str) -> anyhow::Result<Net> {
        let net = Net::new(name)?;
        for (card, network) in [("eth1", "one"), ("eth2", "two")] {
            let port = format!("{name}-{card}");
            net.ip(&format!("link add {card} type veth peer name {port} netns {}", self.0.name))?;
            self.0.ip(&format!("link set {port} master {network} up"))?;
            net.ip(&format!("link set {card} up"))?;
        }
        Ok(net)
    }
}

/// A process of this binary; ended when dropped.
pub(super) struct Process {
    child: Child,
}

impl Process {
    /// What it says goes to a file of its own.
    pub(super) fn start(folder: &Path, name: &str, args: &[&str]) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let file = std::fs::File::options().create(true).append(true).open(&log);
        let file = file.with_context(|| format!("can't write {}", log.display()))?;
        let child = Command::new(own()?)
            .args(args)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("can't start 'berth {}'", args.join(" ")))?;
        Ok(Self { child })
    }

    /// Kill -9.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        // It ends within moments; a demo doesn't wait for more.
        for _ in 0..100 {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(std::time::Duration::from_millis(10)),
                _ => return,
            }
        }
        self.kill();
    }
}

fn own() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("can't find this program")
}

fn ip(args: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("ip").args(args).output().context("there is no 'ip'; install iproute2")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("ip {}: {}", args.join(" "), said.trim());
    }
    Ok(())
}
