//! `berth node show`: one node, what it has, what it shows, and how its policies stand.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crds::{NodeNetworkConfigurationEnactment, NodeNetworkState};
use k8s_openapi::api::core::v1::Node;
use policy::claim::{EntryState, Quarantine};
use policy::table::Table;
use serde_json::{Value, json};

use super::{Has, holdings, keeper, key};
use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, NoSuch, age, time};
use crate::cli::output::{self, Listing};
use crate::cli::terminal;
use crate::clock::now;
use crate::controller::known::NodeKnown;
use crate::records;
use crate::records::pool::reason_word;

/// Print one node: the addresses that it has of pools, what its host shows, and how its policies stand
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The node
    #[arg(value_name = "NODE")]
    node: String,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Listing,
}

const EXAMPLES: &str = "\
Examples:
  berth node show node01
  berth node show node01 -o yaml";

/// A policy on this node.
struct Enacted {
    policy: String,
    standing: String,
    message: String,
}

pub(super) fn run(args: &Args, reach: &Reach) -> anyhow::Result<String> {
    let (pools, nodes, enactments, state) = client::block_on(async {
        let cluster = Cluster::reach(reach).await?;
        let pools = cluster.pools().await?;
        let nodes = cluster.list::<Node>().await?;
        let enactments = cluster.list::<NodeNetworkConfigurationEnactment>().await?;
        Ok((pools, nodes, enactments, cluster.get::<NodeNetworkState>(&args.node).await?))
    })?;
    pools.warn();
    let mut held = holdings(&pools);
    let node = nodes.iter().find(|node| key(node).0 == args.node);
    // A gone one may still be spoken of by a ledger.
    let of_name: Vec<(String, String)> =
        held.keys().filter(|(name, _)| *name == args.node).cloned().collect();
    if node.is_none() && of_name.is_empty() {
        let known = nodes.iter().map(|node| key(node).0).collect();
        return Err(NoSuch { kind: "Node", name: args.node.clone(), known }.into());
    }
    let has: Vec<Has<'_>> = of_name.iter().filter_map(|key| held.remove(key)).flatten().collect();
    let shows = state.as_ref().and_then(|state| records::state::shown(state).ok());
    let shows: Option<BTreeSet<IpAddr>> = shows.map(|state| state.shows);
    let enacted: Vec<Enacted> = enactments.iter().filter_map(|own| enacted(own, &args.node)).collect();
    match args.output.format() {
        Some(format) => output::document(&document(args, node, &has, shows.as_ref(), &enacted), format),
        None => Ok(text(args, node, &has, shows.as_ref(), &enacted)),
    }
}

fn enacted(own: &NodeNetworkConfigurationEnactment, node: &str) -> Option<Enacted> {
    let claims = records::enactment::read(own).ok().filter(|claims| claims.node.as_str() == node)?;
    let conditions = own.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    Some(Enacted {
        policy: claims.policy.to_string(),
        standing: format!("{:?}", records::standing::read(conditions)),
        message: records::standing::message(conditions).to_owned(),
    })
}

fn is_shown(shows: Option<&BTreeSet<IpAddr>>, ip: IpAddr) -> &'static str {
    match shows {
        None => "unknown",
        Some(shows) if shows.contains(&ip) => "yes",
        Some(_) => "no",
    }
}

fn text(
    args: &Args,
    node: Option<&Node>,
    has: &[Has<'_>],
    shows: Option<&BTreeSet<IpAddr>>,
    enacted: &[Enacted],
) -> String {
    let wide = args.output.is_wide();
    let mut text = match node {
        None => format!("node {}: gone\n", args.node),
        Some(node) => {
            let ready = if NodeKnown::of(node).ready { "Ready" } else { "not Ready" };
            format!("node {}: {ready}, kept by its {}\n", args.node, keeper(node))
        }
    };
    if shows.is_none() {
        text += "no agent reports from there: it has no NodeNetworkState\n";
    }
    if has.is_empty() {
        text += "\nno address of any pool\n";
    } else {
        let mut columns = vec!["ADDRESS", "POOL", "POLICY", "CAPTURE", "SINCE", "SHOWN"];
        if wide {
            columns.extend(["SEQUENCE", "NODE-UID"]);
        }
        columns.push("STATE");
        let mut table = Table::new(columns).within(terminal::width());
        for Has { pool, ip, entry } in has {
            let since = match wide {
                true => time(entry.since).map(|time| time.to_string()).unwrap_or_default(),
                false => age(entry.since, now()),
            };
            let mut cells = vec![
                ip.to_string(),
                (*pool).to_owned(),
                entry.policy.to_string(),
                entry.capture.to_string(),
                since,
                is_shown(shows, *ip).to_owned(),
            ];
            if wide {
                cells.extend([entry.sequence.to_string(), entry.node_uid.to_string()]);
            }
            cells.push(state(&entry.state));
            table.row(cells);
        }
        text += &format!("\n{table}");
    }
    if !enacted.is_empty() {
        let mut table = Table::new(["POLICY", "STANDING", "MESSAGE"]).within(terminal::width());
        for Enacted { policy, standing, message } in enacted {
            table.row(vec![policy.clone(), standing.clone(), message.clone()]);
        }
        text += &format!("\n{table}");
    }
    text
}

fn state(state: &EntryState) -> String {
    match state {
        EntryState::Held => "held".to_owned(),
        EntryState::Quarantined(Quarantine { until, reason, .. }) => {
            let until = time(*until).map(|until| until.to_string()).unwrap_or_default();
            format!("quarantined until {until}: {}", reason_word(reason))
        }
    }
}

fn document(
    args: &Args,
    node: Option<&Node>,
    has: &[Has<'_>],
    shows: Option<&BTreeSet<IpAddr>>,
    enacted: &[Enacted],
) -> Value {
    let addresses = has.iter().map(|has| {
        json!({"ip": has.ip, "pool": has.pool, "policy": has.entry.policy.as_str(), "capture": has.entry.capture.as_str(),
            "since": time(has.entry.since).map(|time| time.to_string()), "sequence": has.entry.sequence,
            "shown": is_shown(shows, has.ip), "state": state(&has.entry.state)})
    });
    let policies = enacted.iter().map(|Enacted { policy, standing, message }| {
        json!({"policy": policy, "standing": standing, "message": message})
    });
    json!({
        "name": args.node, "uid": node.map(|node| key(node).1), "gone": node.is_none(),
        "ready": node.map(|node| NodeKnown::of(node).ready), "keptBy": node.map(keeper),
        "addresses": addresses.collect::<Vec<_>>(), "policies": policies.collect::<Vec<_>>(),
    })
}
