//! `berth agent`: work on this host until told to stop.

use std::path::PathBuf;

use anyhow::Context;

use super::client::{self, Connect};
use crate::netns::Namespace;
use crate::node::{Agent, Registration, Settings};

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
    /// The name of this host's Node
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    node: String,
    /// Work on this network namespace: a name of 'ip netns', or a path
    #[arg(long, value_name = "PATH|NAME")]
    netns: Option<Namespace>,
    /// Where the journal and checkpoints are kept
    #[arg(long, value_name = "DIR", default_value = "/var/lib/berth")]
    state_dir: PathBuf,
    /// Register this host's Node and keep it Ready: where there is no kubelet
    #[arg(long)]
    register_node: bool,
    /// Labels of the Node that is registered
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', requires = "register_node", value_parser = super::render::label)]
    node_labels: Vec<(String, String)>,
}

const EXAMPLES: &str = "\
Examples:
  berth agent --node node01 --kubeconfig /etc/berth/kubeconfig
  berth agent --node blue --netns blue --state-dir /var/lib/berth/blue --kubeconfig kubeconfig";

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    client::runtime()?.block_on(async {
        let mut asked = client::Stop::new()?;
        let client = args.connect.client().await?;
        std::fs::create_dir_all(&args.state_dir)
            .with_context(|| format!("--state-dir {}", args.state_dir.display()))?;
        let settings = Settings {
            node: args.node.clone(),
            namespace: args.netns.clone().unwrap_or_default(),
            state_dir: args.state_dir.clone(),
            register: args
                .register_node
                .then(|| Registration { labels: args.node_labels.iter().cloned().collect() }),
        };
        let mut agent = Agent::open(client, settings)?;
        let stop = agent.stop();
        client::say(&format!("node {}: at work", args.node));
        let mut work = std::pin::pin!(agent.run());
        tokio::select! {
            done = &mut work => done?,
            () = asked.asked() => {
                client::say("stopping");
                stop();
                work.await?;
            }
        }
        Ok(String::new())
    })
}
