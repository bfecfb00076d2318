//! The one check at the end of every test: ledgers, enactments, journals and kernels agree. And what must be so always.
//!
//! `Field` and `Fleet` both ask it, by `agree`; a test that doesn't fails ([`Settled`]). Where the end of a story is that
//! something differs, the test names what (`agree_but`): each complaint begins with what it is about, and a difference that is
//! named and not there is a complaint, too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use crds::names::enactment_name;
use policy::pool::{Pool, PoolSpec};
use serde_json::{Value, json};

use crate::world::World;

/// Whether everything was seen to agree since somebody last did something. Dropped before that is so, the test fails.
#[derive(Default)]
pub(crate) struct Settled(AtomicBool);

impl Settled {
    /// Somebody does something: pools, policies, Nodes, hosts, agents.
    pub(crate) fn stir(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    pub(crate) fn settle(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Drop for Settled {
    fn drop(&mut self) {
        let asked = self.0.load(Ordering::SeqCst) || std::thread::panicking();
        assert!(asked, "this test ends without having asked whether all agree: agree(), or agree_but(…)");
    }
}

/// R22: at no look is one address on two hosts that has to do with a pool.
#[track_caller]
pub(crate) fn no_address_twice(world: &World) {
    let pools = pools(world);
    let mut seen: BTreeMap<&String, &String> = BTreeMap::new();
    for (host, addresses) in &world.kernels {
        for ip in addresses.iter().filter(|ip| is_pooled(world, &pools, host, ip)) {
            if let Some(other) = seen.insert(ip, host) {
                panic!("{ip} is on {other} and on {host}\n{world}");
            }
        }
    }
}

/// Where it is not as it should be in the end, but for what is named, by how complaints begin; and what is named and not so.
pub(crate) fn disagreements_but(world: &World, but: &[&str]) -> Vec<String> {
    let all = disagreements(world);
    let missing = but.iter().filter(|name| !all.iter().any(|wrong| wrong.starts_with(**name)));
    let missing: Vec<String> = missing.map(|name| format!("{name}: nothing differs there")).collect();
    let unnamed = all.into_iter().filter(|wrong| !but.iter().any(|name| wrong.starts_with(name)));
    unnamed.chain(missing).collect()
}

/// Where ledgers, enactments, journals and kernels don't say the same. Nothing: each address is held by one who knows it,
/// and none by nobody (R67).
fn disagreements(world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    for pool in world.pools.keys() {
        wrong.extend(of_pool(world, pool));
    }
    for (name, own) in &world.enactments {
        wrong.extend(of_enactment(world, name, own));
    }
    for (name, slice) in &world.slices {
        let node = world.nodes.get(slice["spec"]["node"].as_str().unwrap_or_default());
        if node.is_none_or(|node| node["metadata"]["uid"] != slice["spec"]["nodeUID"]) {
            wrong.push(format!("slice {name} is of no Node"));
        }
        if slice["status"]["allocations"].as_object().is_none_or(serde_json::Map::is_empty) {
            wrong.push(format!("slice {name} is empty"));
        }
    }
    for (name, policy) in &world.policies {
        for node in
            policy["status"]["unavailableNodes"].as_object().into_iter().flat_map(serde_json::Map::keys)
        {
            if !world.nodes.contains_key(node) {
                wrong.push(format!("policy {name}: a slot of {node}, which is gone"));
            } else if world.stands(node, name, "Available") {
                wrong.push(format!("policy {name}: a slot of {node}, which is through"));
            }
        }
    }
    let pools = pools(world);
    for host in world.kernels.keys() {
        wrong.extend(of_host(world, &pools, host));
    }
    wrong
}

/// What the pools' specs mean.
fn pools(world: &World) -> Vec<Pool> {
    let meaning = |object: &Value| Pool::new(&PoolSpec::from_manifest(object).ok()?).ok();
    world.pools.values().filter_map(meaning).collect()
}

/// Is an address of a card one of a pool's, or one that Berth put there from a pool that is no more?
fn is_pooled(world: &World, pools: &[Pool], host: &str, ip: &str) -> bool {
    let address: IpAddr = ip.parse().expect("an address");
    world.marked[host].contains(ip) || pools.iter().any(|pool| pool.range_of(address).is_some())
}

/// The addresses of a grant, or those that a request says it holds: of one family, or one of each.
fn addresses(of: &Value) -> Vec<&str> {
    let second = &of["ipv6"];
    let second = second.as_str().or_else(|| second["ip"].as_str());
    of["ip"].as_str().into_iter().chain(second).collect()
}

fn of_pool(world: &World, pool: &str) -> Vec<String> {
    let entries = world.allocations(pool);
    let wrong = |(ip, entry): (&String, &Value)| {
        let why = of_entry(world, pool, ip, entry)?;
        Some(format!("{pool}: {ip}: {why}: {entry}"))
    };
    let mut all: Vec<String> = entries.iter().filter_map(wrong).collect();
    let object = &world.pools[pool];
    let status = &object["status"];
    // In a range of both families a claim has an address of each.
    let claims: BTreeSet<&str> = entries.values().filter_map(|entry| entry["request"].as_str()).collect();
    if status["allocated"].as_u64() != Some(claims.len() as u64) {
        all.push(format!("{pool}: allocated is not the number of its claims: {}", status["allocated"]));
    }
    // Nothing is given of a ledger that isn't proven to be this pool's (rule 5).
    if !entries.is_empty() && status["rebuiltFor"] != object["metadata"]["uid"] {
        all.push(format!("{pool}: it gave something as {}, which it isn't", status["rebuiltFor"]));
    }
    let meaning = PoolSpec::from_manifest(object).ok().and_then(|spec| Pool::new(&spec).ok());
    all.extend(
        meaning
            .and_then(|meaning| of_offsets(status, &meaning, &entries))
            .map(|why| format!("{pool}: {why}")),
    );
    all
}

/// R9, R10: what a pool of one range says twice, it says the same. Slices have no offsets, nor have pools of several ranges.
fn of_offsets(status: &Value, pool: &Pool, entries: &BTreeMap<String, Value>) -> Option<String> {
    let (listed, count) = (&status["allocated-offsets"], |field: &str| status[field].as_u64());
    if !pool.lists_offsets() {
        return (!listed.is_null()).then(|| format!("it has no offsets to list: {listed}"));
    }
    let offset = |ip: &String| pool.offset_of(ip.parse().expect("an address"));
    let held: BTreeSet<u128> = entries.keys().filter_map(offset).collect();
    if *listed != json!(held) {
        return Some(format!("its offsets are not those of its entries, {held:?}: {listed}"));
    }
    // Not always all that is neither held nor left: Services' networks are never given, and excluded addresses may be held.
    let (all, left) = (count("capacity")?, count("available")?);
    (left > all).then(|| format!("of {all} addresses {left} are left"))
}

fn of_entry(world: &World, pool: &str, ip: &str, entry: &Value) -> Option<String> {
    if !entry["state"].is_null() {
        return Some("it is not held".to_owned());
    }
    let text = |field: &str| entry[field].as_str().unwrap_or_default();
    let (node, policy, capture) = (text("node"), text("policy"), text("capture"));
    if world.nodes.get(node).is_none_or(|known| known["metadata"]["uid"] != entry["nodeUID"]) {
        return Some("its Node is gone".to_owned());
    }
    let own = world.enactments.get(&enactment_name(node, policy)).unwrap_or(&Value::Null);
    let claims = &own["status"]["ippool"][pool];
    let (request, grant) = (&claims["requests"][capture], &claims["grants"][capture]);
    let given = addresses(grant);
    if !given.contains(&ip) || grant["id"] != entry["request"] {
        return Some(format!("the grant is {grant}"));
    }
    if request["id"] != entry["request"] || request["want"] != true || addresses(&request["holds"]) != given {
        return Some(format!("the request is {request}"));
    }
    let listed = claims["allocated"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let granted = claims["grants"].as_object().into_iter().flatten().flat_map(|(_, one)| addresses(one));
    if listed.collect::<BTreeSet<_>>() != granted.collect::<BTreeSet<_>>() {
        return Some(format!("allocated says {}", claims["allocated"]));
    }
    if !world.kernels.contains_key(node) {
        return Some("there is no such host".to_owned());
    }
    let held = world.claims(node).into_iter().any(|(key, record)| {
        key == json!({"policy": policy, "pool": pool, "capture": capture})
            && record["id"] == entry["request"]
            && record["node_uid"] == entry["nodeUID"]
            && record["phase"]["Holding"]["ips"] == json!(given)
    });
    if !held {
        return Some("the journal doesn't have it".to_owned());
    }
    (!world.kernels[node].contains(ip)).then(|| "the kernel doesn't have it".to_owned())
}

fn of_enactment(world: &World, name: &str, own: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let policy = own["metadata"]["labels"]["nmstate.io/policy"].as_str().unwrap_or_default();
    let uid = &own["metadata"]["ownerReferences"][0]["uid"];
    let node = world.nodes.values().find(|node| node["metadata"]["uid"] == *uid);
    if node.is_none() || !world.policies.contains_key(policy) {
        wrong.push(format!("enactment {name} is of no Node, or of no policy"));
    }
    for (pool, claims) in own["status"]["ippool"].as_object().into_iter().flatten() {
        let entries = world.allocations(pool);
        for (capture, request) in claims["requests"].as_object().into_iter().flatten() {
            let given = addresses(&claims["grants"][capture]);
            let refused = !claims["refused"][capture].is_null();
            let is_backed =
                |ip: &&str| entries.get(*ip).is_some_and(|entry| entry["request"] == request["id"]);
            if !refused && (given.is_empty() || !given.iter().all(is_backed)) {
                wrong.push(format!("enactment {name}: {pool}: no entry is {given:?}, {request}"));
            }
        }
        for (capture, grant) in claims["grants"].as_object().into_iter().flatten() {
            if grant["id"] != claims["requests"][capture]["id"] {
                wrong.push(format!("enactment {name}: {pool}: nobody asked for {grant}"));
            }
        }
    }
    wrong
}

/// What a host has, or thinks that it has, and the ledgers don't know; and what it says of that.
fn of_host(world: &World, pools: &[Pool], host: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let known: Vec<(String, Value)> = world.pools.keys().flat_map(|pool| world.allocations(pool)).collect();
    let mut journalled = BTreeSet::new();
    for (key, record) in world.claims(host) {
        let ips = record["phase"]["Holding"]["ips"].as_array().cloned().unwrap_or_default();
        let is_known =
            |ip: &Value| known.iter().any(|(at, entry)| ip == at && entry["request"] == record["id"]);
        if ips.is_empty() || !ips.iter().all(is_known) {
            // Who was refused goes on asking.
            let policy = key["policy"].as_str().unwrap_or_default();
            let (pool, capture) = (key["pool"].as_str().unwrap_or_default(), &key["capture"]);
            let claims = &world.enactment(host, policy)["status"]["ippool"][pool];
            let refused = &claims["refused"][capture.as_str().unwrap_or_default()];
            if refused["id"] != record["id"] {
                wrong.push(format!("{host}: journalled and in no ledger: {key} {record}"));
            }
        }
        journalled.extend(ips.iter().filter_map(|ip| ip.as_str().map(str::to_owned)));
    }
    let on_cards = world.kernels[host].iter().filter(|ip| is_pooled(world, pools, host, ip));
    let (ours, strange): (Vec<&String>, Vec<&String>) =
        on_cards.partition(|ip| known.iter().any(|(at, entry)| at == *ip && entry["node"] == host));
    wrong.extend(strange.iter().map(|ip| format!("{host}: {ip} is on a card and in no ledger")));
    let shows = world.states.get(host).map_or(&Value::Null, |state| &state["status"]["pooledAddresses"]);
    let shown: Vec<&str> =
        shows.as_array().into_iter().flatten().filter_map(|one| one["ip"].as_str()).collect();
    if !ours.iter().all(|ip| shown.contains(&ip.as_str())) {
        wrong.push(format!("{host}: its NodeNetworkState shows {shows}, not all that is on its cards"));
    }
    let has = |ip: &&str| world.kernels[host].contains(*ip) || journalled.contains(*ip);
    if !shown.iter().all(has) {
        wrong.push(format!("{host}: its NodeNetworkState shows {shows}, more than it has"));
    }
    wrong
}
