//! `berth demo`: the whole story on this machine, without a cluster: hosts, an API, a controller, agents, real addresses. Or,
//! to stay, the same for others to play on.
//!
//! Hosts are network namespaces that it makes and takes away again, also on Ctrl-C; everything else is a process of this
//! very binary, as on real hosts. What it tells it has seen: in the API and in the kernel.

mod ground;
mod stage;
mod stay;
mod story;
mod view;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use super::client;

/// Show it all on this machine: three hosts, two pools, one policy, and what may happen to them
///
/// Makes hosts in network namespaces, starts an API, a controller and an agent for each, and tells what happens as it
/// happens: who claims which address and that the kernel has it; a host joins, one leaves, an agent is killed, a pool
/// runs out. Takes under a minute, changes nothing outside its own namespaces, and cleans up, also on Ctrl-C.
///
/// With --stay it tells no story: four hosts, the API and the controller stay up until Ctrl-C, and it prints how kubectl, the
/// tools of berth and a browser get there from another terminal. docs/pools.md has things to try.
///
/// Needs root, or unprivileged user namespaces; and 'ip' of iproute2.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Leave hosts, API and controller up to try things on, until Ctrl-C
    #[arg(long)]
    stay: bool,
}

const EXAMPLES: &str = "\
Examples:
  berth demo
  berth demo --stay                    # hosts to try things on, from another terminal, until Ctrl-C
  make demo                            # in the source: builds it first";

/// Set in the process that was started inside a user namespace.
const INSIDE: &str = "BERTH_DEMO_INSIDE";

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    if Command::new("ip").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        bail!("there is no 'ip' on this machine; install iproute2");
    }
    let inside = std::env::var_os(INSIDE).is_some();
    if !geteuid().is_root() && !inside {
        return client::runtime()?.block_on(in_user_namespace(args));
    }
    if inside {
        ground::prepare_inside()?;
    }
    client::runtime()?.block_on(async {
        let mut stop = client::Stop::new()?;
        let folder = std::env::temp_dir().join(ground::own_name());
        std::fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
        let play =
            async { if args.stay { stay::stay(&folder, inside).await } else { story::tell(&folder).await } };
        let played = tokio::select! {
            played = play => played,
            () = stop.asked() => match args.stay {
                true => Ok(()),
                false => Err(anyhow::anyhow!("interrupted; everything is taken away again")),
            },
        };
        let _ = std::fs::remove_dir_all(&folder);
        played.map(|()| String::new())
    })
}

/// The same once more, as root of a user namespace of its own. Whoever ends this process ends that one, which cleans up.
async fn in_user_namespace(args: &Args) -> anyhow::Result<String> {
    let mut stop = client::Stop::new()?;
    let own: PathBuf = std::env::current_exe().context("can't find this program")?;
    let child = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--mount"])
        .arg(own)
        .arg("demo")
        .args(args.stay.then_some("--stay"))
        .env(INSIDE, "1")
        .spawn();
    let Ok(mut child) = child else { bail!("the demo needs root, or 'unshare' of util-linux to do without") };
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    let mut end = tokio::task::spawn_blocking(move || child.wait());
    let (status, asked) = tokio::select! {
        status = &mut end => (status, false),
        () = stop.asked() => {
            // It may have heard of it already, as all that a terminal runs does.
            let _ = kill(pid, Signal::SIGTERM);
            (end.await, true)
        }
    };
    match status??.code() {
        Some(0) => Ok(String::new()),
        Some(1) if !asked => bail!(
            "see above; without root the demo needs unprivileged user namespaces (kernel.unprivileged_userns_clone, user.max_user_namespaces); or run it as root"
        ),
        _ => bail!("the demo was ended"),
    }
}
