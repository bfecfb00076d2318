//! `berth controller`: serve claims and lead rollouts, one at a time among those that run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ipnet::IpNet;

use super::client::{self, Connect};
use super::look::Look;
use super::run::{Running, network};
use crate::api::lease::Election;
use crate::api::rights::Rights;
use crate::controller::Settings;
use crate::embedded::selector::Labels;
use crate::health::Health;
use crate::notify::Notify;
use crate::telemetry::say;
use crate::{api, controller, manifests};

/// Serve claims, take back what nobody holds, lead rollouts
///
/// Any number may run; one leads, by a Lease, and another takes over when it is gone. Everything it knows it reads from
/// the API: it keeps nothing on disk and never touches a host. SIGTERM and Ctrl-C end it, and leave the Lease to the next.
///
/// Each flag can also be given by the environment, or in the file of --config.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    connect: Connect,
    /// The namespace of the Lease
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE", default_value = "default")]
    namespace: String,
    /// Networks that no pool gives of, such as those of pods; Service CIDRs that the API has are kept free by themselves
    #[arg(long, value_name = "CIDR", env = "BERTH_EXCLUDE_CIDRS", value_delimiter = ',', value_parser = network)]
    exclude_cidrs: Vec<IpNet>,
    /// Labels of the nodes that are to have an agent, as 'kubectl get -l' takes them; default: all that run Linux. Whether each has one
    /// is told by the metric berth_node_ready
    #[arg(
        long,
        value_name = "SELECTOR",
        env = "BERTH_AGENT_NODES",
        default_value = "",
        hide_default_value = true
    )]
    agent_nodes: Labels,
    /// Pools that are to be there: a file of NodeIPPools, or a directory of such files. One that is not there is made; one
    /// that says otherwise is told of and left as it is
    #[arg(long, value_name = "FILE|DIR", env = "BERTH_ENSURE_POOLS")]
    ensure_pools: Option<PathBuf>,
    #[command(flatten)]
    look: Look,
    #[command(flatten)]
    running: Running,
}

/// Where a controller answers, if not told otherwise.
const HEALTH: &str = "127.0.0.1:9466";

/// How long to try to let go of the Lease; without it, it runs out by itself.
const LET_GO: Duration = Duration::from_secs(3);

const EXAMPLES: &str = "\
Default of --health-address: 127.0.0.1:9466.

Examples:
  berth controller --kubeconfig /etc/berth/kubeconfig
  berth controller                     # in a pod: by its service account
  berth controller --ensure-pools /etc/berth/pools --exclude-cidrs 10.244.0.0/16";

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    args.running.speak();
    let settings = args.settings()?;
    client::block_on(work(args, &settings)).map(|()| String::new())
}

impl Args {
    fn settings(&self) -> anyhow::Result<Settings> {
        let ensure = match &self.ensure_pools {
            None => BTreeMap::new(),
            Some(path) => {
                manifests::pools(path).with_context(|| format!("--ensure-pools {}", path.display()))?
            }
        };
        let (exclude, agent_nodes) = (self.exclude_cidrs.clone(), self.agent_nodes.clone());
        Ok(Settings { exclude, ensure, agent_nodes, ..Settings::default() })
    }
}

async fn work(args: &Args, settings: &Settings) -> anyhow::Result<()> {
    let mut asked = client::Stop::new()?;
    let rights = Arc::new(Rights::default());
    let client = args.connect.client(rights.clone()).await?;
    let health = Arc::new(Health::default());
    health.shows(rights);
    let _server = args.running.answer(Some(HEALTH), &health).await?;
    // With a way of its own: a right that only the page lacks is said, and makes no controller unready.
    let looking = args.connect.client(Arc::new(Rights::default())).await?;
    let _page = args.look.offer(looking, &args.exclude_cidrs).await?;
    let identity = format!("{}-{}", client::hostname(), &api::random::id()[..8]);
    let (name, namespace) = (crds::names::lease::CONTROLLER, args.namespace.as_str());
    let election = Election::new(&client, namespace, name, &identity);
    say(&format!("{identity}: waiting for Lease {namespace}/{name}"));
    // Whoever waits for its turn is ready for it.
    health.passed(true);
    let lead = || {
        say(&format!("{identity}: leads"));
        controller::lead_seen(client.clone(), settings.clone(), &health)
    };
    let notify = Notify::from_env();
    tokio::select! {
        () = election.lead(lead) => {}
        () = notify.follow(&health) => {}
        () = asked.asked() => {}
    }
    say("stopping");
    notify.stopping();
    // An API that doesn't answer must not keep us.
    let released = Election::release(&client, namespace, name, &identity);
    let _ = tokio::time::timeout(LET_GO, released).await;
    Ok(())
}
