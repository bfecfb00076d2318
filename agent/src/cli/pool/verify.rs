//! `berth pool verify`: whether what is recorded of a pool agrees, and with what is on interfaces.
//!
//! What differs is decided by `policy::claim::verify`; here it is read and printed. Reads are not of one moment, so whatever
//! differs is looked at once more a moment later, and counts if it is still so.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use crds::NodeNetworkState;
use kube::ResourceExt;
use policy::claim::{Difference, NodeName, NodeUid, Sighting, Sightings};
use policy::table::Table;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, NoSuch};
use crate::cli::live::{self, Where};
use crate::cli::output::{self, Listing};
use crate::cli::terminal;
use crate::kernel::Live;
use crate::records::read_owner;

/// Compare a pool's ledger with the enactments, and with what is on interfaces
///
/// Prints every difference: the address, who has it by whose word, and where it was seen. What is under way is none, and what
/// differs must do so twice, two seconds apart. Nothing is changed: what can be repaired the controller repairs by itself.
///
/// Exit code 1 where there is a difference, 0 where there is none.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The pool; all of them, if none is named
    #[arg(value_name = "POOL")]
    pools: Vec<String>,
    /// Also compare with the interfaces that every host's NodeNetworkState shows
    #[arg(long)]
    live: bool,
    /// Also compare with the interfaces of this host, as its kernel has them
    #[arg(long)]
    host: bool,
    /// With --host: the name of this host's Node; default: its hostname
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    node: Option<String>,
    #[command(flatten)]
    place: Where,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Listing,
}

const EXAMPLES: &str = "\
Examples:
  berth pool verify
  berth pool verify traffic-1 --live
  berth pool verify --host --node node01
  berth pool verify -o json || mail -s 'pools differ' ops";

/// How long after a first look the second one is.
const AGAIN: Duration = Duration::from_secs(2);

/// The error that ends the process with 1.
#[derive(Debug, Error)]
#[error("{} in {pools}", Several(*.0, "difference"), pools = Several(*.1, "pool"))]
struct Differ(usize, usize);

struct Several(usize, &'static str);

impl std::fmt::Display for Several {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// Differences by pool.
type Found = BTreeMap<String, Vec<Difference>>;

pub(super) fn run(args: &Args, reach: &Reach) -> anyhow::Result<String> {
    let own = args.host.then(|| args.place.look(addresses)).transpose()?;
    let found = client::block_on(async {
        let cluster = Cluster::reach(reach).await?;
        let first = look(args, &cluster, own.as_deref()).await?;
        if first.values().all(Vec::is_empty) {
            return Ok(first);
        }
        terminal::patiently("looking again", tokio::time::sleep(AGAIN)).await;
        let mut second = look(args, &cluster, own.as_deref()).await?;
        for (pool, differences) in &mut second {
            differences.retain(|one| first.get(pool).is_some_and(|first| first.contains(one)));
        }
        Ok(second)
    })?;
    let text = match args.output.format() {
        Some(format) => output::document(&document(&found), format)?,
        None => table(&found, args.output.is_wide()),
    };
    let differ: Vec<usize> = found.values().map(Vec::len).filter(|count| *count > 0).collect();
    if differ.is_empty() {
        return Ok(text);
    }
    output::answer(&text)?;
    Err(Differ(differ.iter().sum(), differ.len()).into())
}

async fn look(args: &Args, cluster: &Cluster, own: Option<&[(String, IpAddr)]>) -> anyhow::Result<Found> {
    // Ledgers before what lists their entries: what was given meanwhile is then listed at most, never missing.
    let pools = cluster.pools().await?;
    let reading = cluster.facts().await?;
    reading.unreadable.iter().for_each(|one| output::warn("verify", &one.what));
    let mut sightings = match args.live {
        true => shown(&cluster.list::<NodeNetworkState>().await?),
        false => Sightings::default(),
    };
    if let Some(own) = own {
        let name = args.node.clone().unwrap_or_else(client::hostname);
        let Some(uid) = reading.uids.get(&NodeName::from(name.as_str())).cloned() else {
            let known = reading.uids.keys().map(ToString::to_string).collect();
            return Err(NoSuch { kind: "Node", name, known }.into());
        };
        // The kernel's own word, in place of what the host said.
        sightings.seen.retain(|seen| seen.node_uid != uid);
        let node = NodeName::new(name);
        sightings.seen.extend(own.iter().map(|(interface, ip)| sighting(&node, &uid, interface, *ip)));
        sightings.looked.insert(uid);
    }
    let facts = reading.facts(None);
    let mut found = Found::new();
    for (name, seen) in pools.chosen(&args.pools)? {
        let pool_name = name.as_str().into();
        let differences = policy::claim::verify(&pool_name, &seen.pool, &seen.ledger, &facts, &sightings);
        found.insert(name.clone(), differences);
    }
    Ok(found)
}

fn sighting(node: &NodeName, uid: &NodeUid, interface: &str, ip: IpAddr) -> Sighting {
    Sighting { ip, node: node.clone(), node_uid: uid.clone(), interface: interface.to_owned() }
}

/// What hosts show on their interfaces.
fn shown(states: &[NodeNetworkState]) -> Sightings {
    let mut sightings = Sightings::default();
    for state in states {
        let Ok((node, uid)) = read_owner(&state.metadata) else {
            output::warn(&format!("NodeNetworkState {}", state.name_any()), "no Node owns it; not looked at");
            continue;
        };
        let current = state.status.as_ref().and_then(|status| status.current_state.as_ref());
        let Some(current) = current else { continue };
        let on = interfaces(current);
        sightings.seen.extend(on.iter().map(|(interface, ip)| sighting(&node, &uid, interface, *ip)));
        // What a report leaves out for its length is not missing.
        let conditions = state.status.iter().flat_map(|status| &status.conditions);
        let shortened = conditions.into_iter().any(|one| one.reason == crds::names::state::REPORT_SHORTENED);
        if shortened {
            output::warn(
                &format!("NodeNetworkState {node}"),
                "too long to be whole: what it lacks is unknown",
            );
        } else {
            sightings.looked.insert(uid);
        }
    }
    sightings
}

/// Every address in a network state, with its interface.
fn interfaces(state: &impl serde::Serialize) -> Vec<(String, IpAddr)> {
    let state = serde_json::to_value(state).unwrap_or_default();
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let mut found = Vec::new();
    for interface in list(state.get("interfaces")) {
        let name = interface.get("name").and_then(Value::as_str).unwrap_or_default();
        for family in ["ipv4", "ipv6"] {
            let addresses = list(interface.get(family).and_then(|family| family.get("address")));
            let ips = addresses.iter().filter_map(|address| address.get("ip")?.as_str()?.parse().ok());
            found.extend(ips.map(|ip: IpAddr| (name.to_owned(), ip.to_canonical())));
        }
    }
    found
}

/// What this host has.
fn addresses(kernel: &mut Live) -> anyhow::Result<Vec<(String, IpAddr)>> {
    Ok(interfaces(&live::observe(kernel)?.state.to_value()))
}

fn table(found: &Found, wide: bool) -> String {
    let mut columns = vec!["POOL", "ADDRESS"];
    if wide {
        columns.extend(["KIND", "NODE", "INTERFACE"]);
    }
    columns.push("DIFFERENCE");
    let mut table = Table::new(columns).within(terminal::width());
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for (pool, one) in found.iter().flat_map(|(pool, all)| all.iter().map(move |one| (pool, one))) {
        let mut cells = vec![pool.clone(), dash(one.ip().map(|ip| ip.to_string()))];
        if wide {
            let node = one.holder().map(|holder| holder.node.to_string());
            let node = node.or_else(|| one.place().map(|place| place.node.to_string()));
            let interface = one.place().map(|place| place.interface.clone());
            cells.extend([one.word().to_owned(), dash(node), dash(interface)]);
        }
        cells.push(one.to_string());
        table.row(cells);
    }
    if !table.is_empty() {
        return table.to_string();
    }
    format!("{}: no difference\n", Several(found.len(), "pool"))
}

fn document(found: &Found) -> Value {
    let all = found.iter().flat_map(|(pool, all)| all.iter().map(move |one| (pool, one)));
    let of = |(pool, one): (&String, &Difference)| {
        let mut fields = Map::new();
        fields.insert("pool".into(), json!(pool));
        fields.insert("kind".into(), json!(one.word()));
        if let Some(ip) = one.ip() {
            fields.insert("ip".into(), json!(ip));
        }
        if let Some(holder) = one.holder() {
            let (node, policy, capture) =
                (holder.node.as_str(), holder.policy.as_str(), holder.capture.as_str());
            fields.insert("holder".into(), json!({"node": node, "policy": policy, "capture": capture}));
        }
        if let Some(place) = one.place() {
            let seen = json!({"node": place.node.as_str(), "interface": place.interface});
            fields.insert("seen".into(), seen);
        }
        fields.insert("message".into(), json!(one.to_string()));
        Value::Object(fields)
    };
    json!({"pools": found.keys().collect::<Vec<_>>(), "differences": all.map(of).collect::<Vec<_>>()})
}
