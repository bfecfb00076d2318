//! `berth node …`: tools about nodes, and the addresses that they have.

mod ls;
mod rm;
mod show;

use std::collections::BTreeMap;
use std::net::IpAddr;

use clap::Subcommand;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use policy::claim::Entry;

use super::client::Reach;
use super::cluster::PoolsSeen;

/// Tools about nodes
///
/// Against a cluster or a 'berth serve'.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Args {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    #[command(alias = "list")]
    Ls(ls::Args),
    Show(show::Args),
    #[command(alias = "remove")]
    Rm(rm::Args),
}

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    let reach = &args.reach;
    match &args.verb {
        Verb::Ls(args) => ls::run(args, reach),
        Verb::Show(args) => show::run(args, reach),
        Verb::Rm(args) => rm::run(args, reach),
    }
}

/// An address, and where it is recorded.
struct Has<'a> {
    pool: &'a str,
    ip: IpAddr,
    entry: &'a Entry,
}

/// What each node has, by name and Node UID: names are used again.
type Holdings<'a> = BTreeMap<(String, String), Vec<Has<'a>>>;

fn holdings(pools: &PoolsSeen) -> Holdings<'_> {
    let mut all = Holdings::new();
    for (pool, seen) in pools.iter() {
        for (ip, entry) in &seen.ledger.allocations {
            let key = (entry.node.to_string(), entry.node_uid.to_string());
            all.entry(key).or_default().push(Has { pool, ip: *ip, entry });
        }
    }
    all
}

fn key(node: &Node) -> (String, String) {
    (node.name_any(), node.uid().unwrap_or_default())
}

/// Who keeps its Node: a kubelet, or its own agent.
fn keeper(node: &Node) -> &'static str {
    if crate::node::is_own(node) { "agent" } else { "kubelet" }
}
