//! `berth agent`: work on this host until told to stop.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;

use super::client::{self, Connect};
use crate::api::lease::Election;
use crate::controller;
use crate::embedded::Api;
use crate::manifests::Manifests;
use crate::netns::Namespace;
use crate::node::{Agent, Registration, Settings};
use crate::probe::{Probes, Which};
use crate::telemetry::say;

/// Give this host its addresses, and keep its network as its policies say
///
/// Follows the policies that select this node: claims addresses, renders, applies, verifies, and says in the enactment how
/// it went. What something else changes is put back. What it holds is in a journal on disk before it is used, so a
/// restart, or a boot without the API, changes nothing. SIGTERM and Ctrl-C end it; a change under way is finished or undone.
///
/// Needs CAP_NET_ADMIN.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    connect: Connect,
    /// The name of this host's Node; with --standalone the hostname, if not given
    #[arg(long, value_name = "NAME", env = "NODE_NAME", required_unless_present = "standalone")]
    node: Option<String>,
    /// A host on its own: API and controller in this process, pools and policies from the manifests in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    standalone: Option<PathBuf>,
    /// Elect a controller among the agents that have this flag
    #[arg(long)]
    with_controller: bool,
    /// The namespace of the controller's Lease
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE", default_value = "default")]
    namespace: String,
    /// Work on this network namespace: a name of 'ip netns', or a path
    #[arg(long, value_name = "PATH|NAME")]
    netns: Option<Namespace>,
    /// Where the journal and checkpoints are kept
    #[arg(long, value_name = "DIR", default_value = "/var/lib/berth")]
    state_dir: PathBuf,
    /// Register this host's Node and keep it Ready: where there is no kubelet
    #[arg(long)]
    register_node: bool,
    /// What must go on working when this host is changed, if it did before: gateway, dns, api, node, or none; a policy's
    /// annotation nmstate.io/probes says otherwise for that policy
    #[arg(long, value_name = "LIST", default_value_t = Which(Probes::default().which))]
    probes: Which,
    /// How long what is silent after a change is waited for, before the change is undone
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    probe_timeout: u64,
    /// Labels of the Node that is registered
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = super::render::label)]
    node_labels: Vec<(String, String)>,
}

const EXAMPLES: &str = "\
Examples:
  berth agent --node node01 --kubeconfig /etc/berth/kubeconfig
  berth agent --standalone /etc/berth/manifests
  berth agent --node blue --netns blue --state-dir /var/lib/berth/blue --kubeconfig kubeconfig";

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    client::runtime()?.block_on(async {
        let mut asked = client::Stop::new()?;
        let place = || format!("--state-dir {}", args.state_dir.display());
        std::fs::create_dir_all(&args.state_dir).with_context(place)?;
        let node = args.node.clone().unwrap_or_else(client::hostname);
        let client = match &args.standalone {
            None => args.connect.client().await?,
            Some(_) => Api::open(&args.state_dir.join("api")).with_context(place)?.client(),
        };
        let mut agent = Agent::open(client.clone(), args.settings(&node))?;
        let stop = agent.stop();
        say(&format!("node {node}: at work"));
        client::ready();
        let mut work = std::pin::pin!(agent.run());
        let mut beside = std::pin::pin!(args.beside(&client, &node));
        tokio::select! {
            done = &mut work => return done.map(|()| String::new()).map_err(Into::into),
            () = &mut beside => {}
            () = asked.asked() => {}
        }
        say("stopping");
        stop();
        // The API may be in this very process: it goes on until the pass is over.
        tokio::select! {
            done = &mut work => done?,
            () = &mut beside => {}
        }
        Ok(String::new())
    })
}

impl Args {
    fn settings(&self, node: &str) -> Settings {
        let registers = self.register_node || self.standalone.is_some();
        Settings {
            node: node.to_owned(),
            namespace: self.netns.clone().unwrap_or_default(),
            state_dir: self.state_dir.clone(),
            lease_namespace: self.namespace.clone(),
            probes: Probes {
                which: self.probes.0.clone(),
                patience: Duration::from_secs(self.probe_timeout),
            },
            register: registers.then(|| Registration { labels: self.node_labels.iter().cloned().collect() }),
        }
    }

    /// What else this process does, for as long as it runs.
    async fn beside(&self, client: &kube::Client, node: &str) {
        let lead = async {
            if self.with_controller || self.standalone.is_some() {
                let name = crds::names::lease::CONTROLLER;
                let election = Election::new(client, &self.namespace, name, node);
                election.lead(|| controller::lead(client.clone())).await;
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
