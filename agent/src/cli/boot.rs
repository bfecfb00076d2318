//! `berth boot`: put back what this host's journal says, once, and end.

mod unit;

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use thiserror::Error;

use super::{agent, client, live};
use crate::netns::Namespace;
use crate::node::boot::{Became, Report, Settings, boot};
use crate::telemetry::{say, warn};
use crate::wire::Timing;

/// Put back what this host's journal says it holds, once, without the API, and end
///
/// For the boot of a node whose agent is a pod: berth-boot.service runs this before the kubelet, so that addresses are on
/// their cards before any pod starts. It applies the states that the agent last found good, as far as the journal says that
/// their addresses are held, or leaves the host as it was; what became of them meanwhile is the agent's to ask. Where an agent
/// works already it refuses. With nothing to do it says so and ends well.
///
/// Needs CAP_NET_ADMIN, and CAP_NET_RAW for probes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    tool: Option<Tool>,
    #[command(flatten)]
    boot: Boot,
}

#[derive(Debug, Subcommand)]
enum Tool {
    Install(unit::InstallArgs),
    Remove(unit::RemoveArgs),
}

#[derive(Debug, clap::Args)]
struct Boot {
    /// Where the agent keeps its journal
    #[arg(long, value_name = "DIR", env = "BERTH_STATE_DIR", default_value = "/var/lib/berth")]
    state_dir: PathBuf,
    /// Where the checkpoint is kept while a change is under way
    #[arg(long, value_name = "DIR", env = "BERTH_CHECKPOINT_DIR", default_value = live::CHECKPOINTS)]
    checkpoint_dir: PathBuf,
    /// Work on this network namespace: a name of 'ip netns', or a path
    #[arg(long, value_name = "PATH|NAME", env = "BERTH_NETNS")]
    netns: Option<Namespace>,
    /// How many seconds cards that are not there yet are waited for
    #[arg(long, value_name = "SECONDS", env = "BERTH_BOOT_WAIT", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=86400))]
    wait: u64,
    /// How long the wire is asked whether somebody else has an address, before it is used: 100ms, say, at most 10s; or off
    #[arg(long, value_name = "TIME", env = "BERTH_WIRE_PROBE", default_value_t = Timing::default())]
    wire_probe: Timing,
    /// kubernetes-nmstate's lock, held meanwhile; 'none' for no lock
    #[arg(long, value_name = "FILE", env = "NMSTATE_INSTANCE_NODE_LOCK_FILE", default_value = agent::NMSTATE_LOCK)]
    node_lock: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  berth boot
  berth boot --state-dir /var/lib/berth/blue --netns blue
  berth boot install";

/// Something of the journal is not on the host; what, was said.
#[derive(Debug, Error)]
#[error(
    "node {node}: {failed} of {all} policies could not be put back; the agent tries again when it starts"
)]
struct Incomplete {
    node: String,
    failed: usize,
    all: usize,
}

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    match &args.tool {
        Some(Tool::Install(args)) => unit::install(args),
        Some(Tool::Remove(args)) => unit::remove(args),
        None => {
            live::Standing::of_this_thread().check_may_change_networks()?;
            client::block_on(work(&args.boot)).map(|()| String::new())
        }
    }
}

async fn work(args: &Boot) -> anyhow::Result<()> {
    let mut asked = client::Stop::new()?;
    let namespace = args.netns.clone().unwrap_or_default();
    let settings = Settings {
        namespace: namespace.clone(),
        state_dir: args.state_dir.clone(),
        checkpoint_dir: args.checkpoint_dir.clone(),
        patience: Duration::from_secs(args.wait),
        wire_probe: args.wire_probe,
    };
    let _lock = agent::nmstate_lock(&args.node_lock, &namespace)?;
    let report = boot(&settings, async move { asked.asked().await }).await?;
    match report {
        None => say(&format!("nothing to do: there is no journal in {}", args.state_dir.display())),
        Some(report) => tell(&report)?,
    }
    Ok(())
}

fn tell(report: &Report) -> Result<(), Incomplete> {
    let Report { node, lines } = report;
    if lines.is_empty() {
        say(&format!("node {node}: nothing to do: the journal has no state to put back"));
    }
    let mut failed = 0;
    for line in lines {
        let text = format!("node {node}: {line}");
        match line.became {
            Became::Unchanged | Became::Brought(_) | Became::Left => say(&text),
            Became::Failed(_) => {
                failed += 1;
                warn(&text);
            }
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(Incomplete { node: node.clone(), failed, all: lines.len() }),
    }
}
