//! `berth node rm`: retires a host that has no kubelet.
//!
//! Deletes its Node and nothing else: that is the word on which the controller quarantines and frees what the host had, and on
//! which its agent, if it runs, takes it off (docs/claims.md, rules 4 and 7).

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Preconditions};
use serde_json::{Value, json};

use super::{Has, holdings, key};
use crate::api::error::{Trouble, trouble};
use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, NoSuch, PoolsSeen, time, told};
use crate::cli::output::{self, Listing};
use crate::cli::terminal;
use crate::clock::now;
use crate::controller::known::NodeKnown;
use crate::node::is_own;

/// Retire a host that has no kubelet: delete its Node
///
/// What it holds of pools is quarantined, for as long as each pool says, and then free. Its agent, if it runs, hears of it and
/// takes the addresses off; started again it registers the host as a new one, so stop it. Deleting a Node is the word that the
/// host is off, or hears of it before the quarantine is over.
///
/// A Node that a kubelet keeps is refused: drain it, and remove it as the cluster's nodes are removed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The node
    #[arg(value_name = "NODE")]
    node: String,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
    /// Also a Node that a kubelet keeps
    #[arg(long)]
    force: bool,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Listing,
}

const EXAMPLES: &str = "\
Examples:
  berth node rm node01
  berth node rm node01 --yes -o json";

pub(super) fn run(args: &Args, reach: &Reach) -> anyhow::Result<String> {
    client::block_on(async {
        let cluster = Cluster::reach(reach).await?;
        let Some(node) = cluster.get::<Node>(&args.node).await? else {
            let known = cluster.list::<Node>().await?.iter().map(|node| key(node).0).collect();
            return Err(NoSuch { kind: "Node", name: args.node.clone(), known }.into());
        };
        if !is_own(&node) && !args.force {
            anyhow::bail!(
                "node {0} is kept by a kubelet, which would register it again: remove it as your cluster's nodes are removed \
                 ('kubectl drain {0}', then 'kubectl delete node {0}'); --force deletes its Node all the same",
                args.node
            );
        }
        let pools = cluster.pools().await?;
        let has = holdings(&pools).remove(&key(&node)).unwrap_or_default();
        output::note(&fate(args, &node, &has, &pools));
        terminal::confirm("Remove?", args.yes)?;
        let nodes: Api<Node> = Api::all(cluster.client.clone());
        // This very Node: one that was made meanwhile under its name is another.
        let only = DeleteParams {
            preconditions: Some(Preconditions { uid: node.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        let deleted = terminal::patiently("deleting the Node", nodes.delete(&args.node, &only)).await;
        match deleted {
            Ok(_) => answer(args, &has, &pools),
            Err(error) if trouble(&error) == Trouble::NotFound => answer(args, &has, &pools),
            Err(error) => Err(told(&format!("node {} can't be deleted", args.node), &error)),
        }
    })
}

/// When a pool gives it to somebody else, if it is quarantined now.
fn until(has: &Has<'_>, pools: &PoolsSeen) -> Option<String> {
    let quarantine = pools.get(has.pool).ok()?.pool.quarantine();
    time(now().saturating_add(quarantine)).map(|until| until.to_string())
}

fn fate(args: &Args, node: &Node, has: &[Has<'_>], pools: &PoolsSeen) -> String {
    let mut text = format!("node {} is removed", args.node);
    for one in has {
        let until = until(one, pools).unwrap_or_default();
        text += &format!("\n  {} of {}: quarantined until about {until}, then free", one.ip, one.pool);
    }
    if has.is_empty() {
        text += "; it has no address of any pool";
    }
    if NodeKnown::of(node).ready && is_own(node) {
        text += "\nwarning: its agent runs; it takes the addresses off, and registers the host anew when it is started again: \
                 stop it there";
    }
    text
}

fn answer(args: &Args, has: &[Has<'_>], pools: &PoolsSeen) -> anyhow::Result<String> {
    let Some(format) = args.output.format() else {
        return Ok(format!("node {}: removed\n", args.node));
    };
    let addresses: Vec<Value> = has
        .iter()
        .map(|one| json!({"ip": one.ip, "pool": one.pool, "quarantinedUntil": until(one, pools)}))
        .collect();
    output::document(&json!({"node": args.node, "removed": true, "addresses": addresses}), format)
}
