//! `berth demo`: the whole story on this machine, without a cluster: hosts, an API, a controller, agents, real addresses.
//!
//! Hosts are network namespaces that it makes and takes away again, also on Ctrl-C; everything else is a process of this
//! very binary, as on real hosts. What it tells it has seen: in the API and in the kernel.

mod ground;
mod story;
mod view;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use nix::unistd::geteuid;

use super::client;

/// Show it all on this machine: three hosts, two pools, one policy, and what may happen to them
///
/// Makes hosts in network namespaces, starts an API, a controller and an agent for each, and tells what happens as it
/// happens: who claims which address and that the kernel has it; a host joins, one leaves, an agent is killed, a pool
/// runs out. Takes under a minute, changes nothing outside its own namespaces, and cleans up, also on Ctrl-C.
///
/// Needs root, or unprivileged user namespaces; and 'ip' of iproute2.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {}

const EXAMPLES: &str = "\
Examples:
  berth demo
  make demo                            # in the source: builds it first";

/// Set in the process that was started inside a user namespace.
const INSIDE: &str = "BERTH_DEMO_INSIDE";

pub(super) fn run(_: &Args) -> anyhow::Result<String> {
    if Command::new("ip").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        bail!("there is no 'ip' on this machine; install iproute2");
    }
    let inside = std::env::var_os(INSIDE).is_some();
    if !geteuid().is_root() && !inside {
        return in_user_namespace();
    }
    if inside {
        ground::prepare_inside()?;
    }
    client::runtime()?.block_on(async {
        let mut stop = client::Stop::new()?;
        let folder = std::env::temp_dir().join(format!("berth-demo-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
        let told = tokio::select! {
            told = story::tell(&folder) => told,
            () = stop.asked() => Err(anyhow::anyhow!("interrupted; everything is taken away again")),
        };
        let _ = std::fs::remove_dir_all(&folder);
        told.map(|()| String::new())
    })
}

/// The same once more, as root of a user namespace of its own.
fn in_user_namespace() -> anyhow::Result<String> {
    let own: PathBuf = std::env::current_exe().context("can't find this program")?;
    let status = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--mount", "--fork", "--kill-child"])
        .arg(own)
        .arg("demo")
        .env(INSIDE, "1")
        .status();
    match status {
        Ok(status) if status.success() => Ok(String::new()),
        Ok(status) if status.code().is_some_and(|code| code == 1) => {
            bail!(
                "see above; without root the demo needs unprivileged user namespaces (kernel.unprivileged_userns_clone, user.max_user_namespaces); or run it as root"
            )
        }
        Ok(_) => bail!("the demo was ended"),
        Err(_) => bail!("the demo needs root, or 'unshare' of util-linux to do without"),
    }
}
