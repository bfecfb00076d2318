//! `berth agent`: work on this host until told to stop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::ArgAction;
use ipnet::IpNet;

use super::client::{self, Connect};
use super::run::{Running, boolean, network};
use super::{UsageError, live, render};
use crate::api::lease::Election;
use crate::api::rights::Rights;
use crate::controller;
use crate::embedded::Api;
use crate::embedded::selector::Labels;
use crate::manifests::Manifests;
use crate::netns::Namespace;
use crate::node::lock::{NmstateLock, is_hosts_network};
use crate::node::{Agent, Registration, Settings};
use crate::notify::Notify;
use crate::probe::{Probes, Which};
use crate::telemetry::say;
use crate::wire::Timing;

/// Give this host its addresses, and keep its network as its policies say
///
/// Follows the policies that select this node: claims addresses, renders, applies, verifies, and says in the enactment how
/// it went. What something else changes is put back. What it holds is in a journal on disk before it is used, so a
/// restart, or a boot without the API, changes nothing. SIGTERM and Ctrl-C end it; a change under way is finished or undone.
///
/// Needs CAP_NET_ADMIN, and CAP_NET_RAW to ask the wire and the gateway. Each flag can also be given by the environment, or in the file of --config.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    connect: Connect,
    /// The name of this host's Node; with --standalone the hostname, if not given
    #[arg(long, value_name = "NAME", env = "NODE_NAME", value_parser = render::node_name)]
    node: Option<String>,
    /// A host on its own: API and controller in this process, pools and policies from the manifests in this directory
    #[arg(long, value_name = "DIR", env = "BERTH_STANDALONE")]
    standalone: Option<PathBuf>,
    /// Elect a controller among the agents that have this flag
    #[arg(long, value_name = "BOOL", env = "BERTH_WITH_CONTROLLER", action = ArgAction::Set, num_args = 0..=1)]
    #[arg(require_equals = true, default_value = "false", default_missing_value = "true", value_parser = boolean())]
    with_controller: bool,
    /// The namespace of the controller's Lease
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE", default_value = "default")]
    namespace: String,
    /// Work on this network namespace: a name of 'ip netns', or a path
    #[arg(long, value_name = "PATH|NAME", env = "BERTH_NETNS")]
    netns: Option<Namespace>,
    /// Where the journal is kept, and with --standalone the API's store
    #[arg(long, value_name = "DIR", env = "BERTH_STATE_DIR", default_value = "/var/lib/berth")]
    state_dir: PathBuf,
    /// Where the checkpoint is kept while a change is under way: where 'berth apply' keeps its own, so that each undoes what
    /// the other left
    #[arg(long, value_name = "DIR", env = "BERTH_CHECKPOINT_DIR", default_value = live::CHECKPOINTS)]
    checkpoint_dir: PathBuf,
    /// In a container: where the host's /etc and /proc/sys/net are mounted, as DIR/etc and DIR/proc/sys/net
    #[arg(long, value_name = "DIR", env = "BERTH_HOST_ROOT", default_value = "/")]
    host_root: PathBuf,
    /// Register this host's Node and keep it Ready: where there is no kubelet
    #[arg(long, value_name = "BOOL", env = "BERTH_REGISTER_NODE", action = ArgAction::Set, num_args = 0..=1)]
    #[arg(require_equals = true, default_value = "false", default_missing_value = "true", value_parser = boolean())]
    register_node: bool,
    /// What must go on working when this host is changed, if it did before: gateway, dns, api, node, or none; a policy's
    /// annotation nmstate.io/probes says otherwise for that policy
    #[arg(long, value_name = "LIST", env = "BERTH_PROBES", default_value_t = Which(Probes::default().which))]
    probes: Which,
    /// How long what is silent after a change is waited for, before the change is undone
    #[arg(long, value_name = "SECONDS", env = "BERTH_PROBE_TIMEOUT", default_value_t = 60)]
    probe_timeout: u64,
    /// How long the wire is asked whether somebody else has a pooled IPv4 address before it is used: 100ms, say, 2s, or off; a
    /// policy's annotation nmstate.io/wire-probe says otherwise for that policy
    #[arg(long, value_name = "TIME", env = "BERTH_WIRE_PROBE", default_value_t = Timing::default())]
    wire_probe: Timing,
    /// Labels of the Node that is registered
    #[arg(long, value_name = "KEY=VALUE", env = "BERTH_NODE_LABELS", value_delimiter = ',', value_parser = render::label)]
    node_labels: Vec<(String, String)>,
    /// kubernetes-nmstate's lock, held so that its handler and this agent never both work on this host; 'none' for no lock
    #[arg(long, value_name = "FILE", env = "NMSTATE_INSTANCE_NODE_LOCK_FILE", default_value = NMSTATE_LOCK)]
    node_lock: PathBuf,
    /// Networks that no pool gives of, such as those of pods; Service CIDRs that the API has are kept free by themselves
    #[arg(long, value_name = "CIDR", env = "BERTH_EXCLUDE_CIDRS", value_delimiter = ',', value_parser = network)]
    exclude_cidrs: Vec<IpNet>,
    /// Labels of the nodes that are to have an agent, as 'kubectl get -l' takes them; default: all that run Linux. Whether each has one
    /// is told by the metric berth_node_ready of the one that leads
    #[arg(
        long,
        value_name = "SELECTOR",
        env = "BERTH_AGENT_NODES",
        default_value = "",
        hide_default_value = true
    )]
    agent_nodes: Labels,
    #[command(flatten)]
    running: Running,
}

/// How long letting go of the controller's Lease may take.
const LET_GO: Duration = Duration::from_secs(2);

/// Where kubernetes-nmstate has it.
pub(super) const NMSTATE_LOCK: &str = "/var/k8s_nmstate/handler_lock";

/// Where an agent answers, if not told otherwise; with --netns nowhere, since there may be many.
const HEALTH: &str = "127.0.0.1:9465";

const EXAMPLES: &str = "\
Default of --health-address: 127.0.0.1:9465, and none with --netns.

Examples:
  berth agent --node node01 --kubeconfig /etc/berth/kubeconfig
  berth agent --standalone /etc/berth/manifests
  berth agent --config /etc/berth/agent.yaml
  berth agent --node blue --netns blue --state-dir /var/lib/berth/blue --kubeconfig kubeconfig";

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    args.running.speak();
    args.check()?;
    live::Standing::of_this_thread().check_may_change_networks()?;
    client::block_on(work(args)).map(|()| String::new())
}

async fn work(args: &Args) -> anyhow::Result<()> {
    let mut asked = client::Stop::new()?;
    let place = || format!("--state-dir {}", args.state_dir.display());
    std::fs::create_dir_all(&args.state_dir).with_context(place)?;
    let node = args.node.clone().unwrap_or_else(client::hostname);
    let _lock = nmstate_lock(&args.node_lock, &args.netns.clone().unwrap_or_default())?;
    let rights = Arc::new(Rights::default());
    let client = match &args.standalone {
        None => args.connect.client(rights.clone()).await?,
        Some(_) => Api::open(&args.state_dir.join("api")).with_context(place)?.client(),
    };
    let mut agent = Agent::open(client.clone(), args.settings(&node))?;
    let (stop, health) = (agent.stop(), agent.health());
    health.shows(rights);
    let _server = args.running.answer(args.netns.is_none().then_some(HEALTH), &health).await?;
    say(&format!("node {node}: at work"));
    let notify = Notify::from_env();
    let mut work = std::pin::pin!(agent.run());
    let mut beside = std::pin::pin!(async {
        tokio::join!(args.beside(&client, &node), notify.follow(&health));
    });
    tokio::select! {
        done = &mut work => return done.map_err(Into::into),
        () = &mut beside => {}
        () = asked.asked() => {}
    }
    say("stopping");
    notify.stopping();
    stop();
    // The API may be in this very process: it goes on until the pass is over.
    tokio::select! {
        done = &mut work => done?,
        () = &mut beside => {}
    }
    args.let_go(&client, &node).await;
    Ok(())
}

/// On another network than the host's there is no kubernetes-nmstate.
pub(super) fn nmstate_lock(path: &Path, namespace: &Namespace) -> anyhow::Result<Option<NmstateLock>> {
    match path.as_os_str() != "none" && is_hosts_network(namespace) {
        true => Ok(NmstateLock::take(path)?),
        false => Ok(None),
    }
}

impl Args {
    /// By hand, since a setting of a file is no argument to clap.
    fn check(&self) -> Result<(), UsageError> {
        match (&self.standalone, &self.node, &self.connect.kubeconfig) {
            (None, None, _) => Err(UsageError::NodeUnnamed),
            (Some(_), _, Some(_)) => Err(UsageError::StandaloneElsewhere),
            _ => Ok(()),
        }
    }

    fn settings(&self, node: &str) -> Settings {
        let registers = self.register_node || self.standalone.is_some();
        Settings {
            node: node.to_owned(),
            namespace: self.netns.clone().unwrap_or_default(),
            state_dir: self.state_dir.clone(),
            checkpoint_dir: self.checkpoint_dir.clone(),
            host_root: self.host_root.clone(),
            lease_namespace: self.namespace.clone(),
            probes: Probes {
                which: self.probes.0.clone(),
                patience: Duration::from_secs(self.probe_timeout),
                insist: true,
            },
            wire_probe: self.wire_probe,
            exclude: self.exclude_cidrs.clone(),
            register: registers.then(|| Registration { labels: self.node_labels.iter().cloned().collect() }),
        }
    }

    /// Whoever led lets go, so that the next need not wait; an API that doesn't answer is not waited for.
    async fn let_go(&self, client: &kube::Client, node: &str) {
        if self.with_controller {
            let name = crds::names::lease::CONTROLLER;
            let freed = Election::release(client, &self.namespace, name, node);
            drop(tokio::time::timeout(LET_GO, freed).await);
        }
    }

    /// What else this process does, for as long as it runs.
    async fn beside(&self, client: &kube::Client, node: &str) {
        let lead = async {
            if self.with_controller || self.standalone.is_some() {
                let name = crds::names::lease::CONTROLLER;
                let election = Election::new(client, &self.namespace, name, node);
                let exclude = self.exclude_cidrs.clone();
                let agent_nodes = self.agent_nodes.clone();
                let settings =
                    controller::Settings { exclude, agent_nodes, ..controller::Settings::default() };
                election.lead(|| controller::lead(client.clone(), settings.clone())).await;
            }
        };
        let follow = async {
            if let Some(folder) = &self.standalone {
                Manifests::new(folder, client.clone()).follow(say).await;
            }
        };
        tokio::join!(lead, follow);
        std::future::pending::<()>().await;
    }
}
