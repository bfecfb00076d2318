//! `berth pool verify`: whether what is recorded of a pool agrees, and with what is on interfaces.
//!
//! What differs is decided by `policy::claim::verify`; here it is read and printed. Reads are not of one moment, so whatever
//! differs is looked at once more a moment later, and counts if it is still so. What can't be read counts, too: that all
//! agrees is said of what was read.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use crds::NodeNetworkState;
use kube::ResourceExt;
use policy::claim::{Difference, NodeName, NodeUid, PoolName, Sighting, Sightings};
use policy::table::Table;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, NoSuch, Unreadable};
use crate::cli::live::{self, Where};
use crate::cli::output::{self, Listing};
use crate::cli::terminal;
use crate::controller::reading::Reading;
use crate::kernel::Live;
use crate::records::read_owner;

/// Compare a pool's ledger with the enactments, and with what is on interfaces
///
/// Prints every difference: the address, who has it by whose word, and where it was seen. What is under way is none, and what
/// differs must do so twice, two seconds apart. Nothing is changed: what can be repaired the controller repairs by itself.
///
/// A pool, a slice, an enactment or a NodeNetworkState that can't be read is told with the differences, as Unreadable: what it
/// holds nobody knows.
///
/// Exit code 1 where there is a difference or something can't be read, 0 where all agrees.
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

/// The kind of what can't be read.
const UNREADABLE: &str = "Unreadable";

/// How long after a first look the second one is.
const AGAIN: Duration = Duration::from_secs(2);

/// The error that ends the process with 1.
#[derive(Debug, Error)]
#[error("{}", [self.differ(), self.unread()].into_iter().flatten().collect::<Vec<_>>().join("; "))]
struct Differ {
    differences: usize,
    pools: usize,
    unreadable: usize,
}

impl Differ {
    fn differ(&self) -> Option<String> {
        let (count, pools) = (Several(self.differences, "difference"), Several(self.pools, "pool"));
        (self.differences > 0).then(|| format!("{count} in {pools}"))
    }

    fn unread(&self) -> Option<String> {
        (self.unreadable > 0).then(|| format!("{} can't be read", Several(self.unreadable, "object")))
    }
}

struct Several(usize, &'static str);

impl std::fmt::Display for Several {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// What one look, or two, came to.
#[derive(Default)]
struct Found {
    /// Differences by pool.
    pools: BTreeMap<String, Vec<Difference>>,
    unreadable: BTreeSet<Unreadable>,
}

impl Found {
    fn is_empty(&self) -> bool {
        self.unreadable.is_empty() && self.pools.values().all(Vec::is_empty)
    }

    /// Without what an earlier look did not find.
    fn still(mut self, earlier: &Self) -> Self {
        for (pool, differences) in &mut self.pools {
            let before = earlier.pools.get(pool);
            differences.retain(|one| before.is_some_and(|before| before.contains(one)));
        }
        self.unreadable.retain(|one| earlier.unreadable.contains(one));
        self
    }

    /// Nothing where all agrees.
    fn error(&self) -> Option<Differ> {
        let differ = || self.pools.values().map(Vec::len).filter(|count| *count > 0);
        // One that may be about several pools is one object.
        let objects: BTreeSet<&str> = self.unreadable.iter().map(|one| one.what.as_str()).collect();
        let (differences, pools) = (differ().sum(), differ().count());
        (!self.is_empty()).then_some(Differ { differences, pools, unreadable: objects.len() })
    }
}

pub(super) fn run(args: &Args, reach: &Reach) -> anyhow::Result<String> {
    let own = args.host.then(|| args.place.look(addresses)).transpose()?;
    let found = client::block_on(async {
        let cluster = Cluster::reach(reach).await?;
        let first = look(args, &cluster, own.as_deref()).await?;
        if first.is_empty() {
            return Ok(first);
        }
        terminal::patiently("looking again", tokio::time::sleep(AGAIN)).await;
        Ok(look(args, &cluster, own.as_deref()).await?.still(&first))
    })?;
    let text = match args.output.format() {
        Some(format) => output::document(&document(&found), format)?,
        None => table(&found, args.output.is_wide()),
    };
    let Some(differ) = found.error() else { return Ok(text) };
    output::answer(&text)?;
    Err(differ.into())
}

async fn look(args: &Args, cluster: &Cluster, own: Option<&[(String, IpAddr)]>) -> anyhow::Result<Found> {
    // Ledgers before what lists their entries: what was given meanwhile is then listed at most, never missing.
    let pools = cluster.pools_unsaid().await?;
    let reading = cluster.facts().await?;
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
    let mut found = Found::default();
    for (name, seen) in pools.readable(&args.pools)? {
        let pool_name = name.as_str().into();
        let differences = policy::claim::verify(&pool_name, &seen.pool, &seen.ledger, &facts, &sightings);
        found.pools.insert(name.clone(), differences);
    }
    found.unreadable.extend(pools.unreadable(&args.pools));
    let asked = if args.pools.is_empty() { pools.names() } else { args.pools.clone() };
    found.unreadable.extend(hidden(&reading, &asked, args.pools.is_empty()));
    Ok(found)
}

/// Enactments and states that can't be read, of these pools; with `all`, also those that name pools that are not there.
fn hidden(reading: &Reading, asked: &[String], all: bool) -> Vec<Unreadable> {
    // What may be about any pool is about one without a name, too.
    let of_any = reading.hidden(&PoolName::new(""));
    let by_pool: Vec<(&String, Vec<String>)> =
        asked.iter().map(|name| (name, reading.hidden(&PoolName::new(name.as_str())))).collect();
    let mut found = Vec::new();
    for what in reading.unreadable.iter().map(|one| &one.what) {
        let named = by_pool.iter().filter(|(_, hidden)| hidden.contains(what) && !of_any.contains(what));
        let named: Vec<Unreadable> =
            named.map(|(pool, _)| Unreadable { pool: Some((*pool).clone()), what: what.clone() }).collect();
        if named.is_empty() && (all || of_any.contains(what)) {
            found.push(Unreadable { pool: None, what: what.clone() });
        }
        found.extend(named);
    }
    found
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
    for (pool, one) in found.pools.iter().flat_map(|(pool, all)| all.iter().map(move |one| (pool, one))) {
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
    for Unreadable { pool, what } in &found.unreadable {
        let mut cells = vec![dash(pool.clone()), dash(None)];
        if wide {
            cells.extend([UNREADABLE.to_owned(), dash(None), dash(None)]);
        }
        cells.push(format!("can't be read: {what}"));
        table.row(cells);
    }
    if !table.is_empty() {
        return table.to_string();
    }
    format!("{}: no difference\n", Several(found.pools.len(), "pool"))
}

fn document(found: &Found) -> Value {
    let differences =
        found.pools.iter().flat_map(|(pool, all)| all.iter().map(move |one| differs(pool, one)));
    let all: Vec<Value> = differences.chain(found.unreadable.iter().map(unread)).collect();
    json!({"pools": found.pools.keys().collect::<Vec<_>>(), "differences": all})
}

fn differs(pool: &str, one: &Difference) -> Value {
    let mut fields = Map::new();
    fields.insert("pool".into(), json!(pool));
    fields.insert("kind".into(), json!(one.word()));
    if let Some(ip) = one.ip() {
        fields.insert("ip".into(), json!(ip));
    }
    if let Some(holder) = one.holder() {
        let (node, policy, capture) = (holder.node.as_str(), holder.policy.as_str(), holder.capture.as_str());
        fields.insert("holder".into(), json!({"node": node, "policy": policy, "capture": capture}));
    }
    if let Some(place) = one.place() {
        let seen = json!({"node": place.node.as_str(), "interface": place.interface});
        fields.insert("seen".into(), seen);
    }
    fields.insert("message".into(), json!(one.to_string()));
    Value::Object(fields)
}

fn unread(one: &Unreadable) -> Value {
    let mut fields = Map::new();
    fields.extend(one.pool.as_ref().map(|pool| ("pool".to_owned(), json!(pool))));
    fields.insert("kind".into(), json!(UNREADABLE));
    fields.insert("message".into(), json!(one.what));
    Value::Object(fields)
}
