//! What must be so in the end, and what must be so always.

use std::collections::BTreeMap;

use crds::names::enactment_name;
use serde_json::{Value, json};

use super::World;

/// R22: at no look is one address on two hosts.
#[track_caller]
pub(crate) fn no_address_twice(world: &World) {
    let mut seen: BTreeMap<&String, &String> = BTreeMap::new();
    for (host, addresses) in &world.kernels {
        for ip in addresses {
            if let Some(other) = seen.insert(ip, host) {
                panic!("{ip} is on {other} and on {host}\n{world}");
            }
        }
    }
}

/// Where ledgers, enactments, journals and kernels don't say the same. Nothing: each address is held by one who knows it,
/// and none by nobody (R67).
pub(crate) fn disagreements(world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    for pool in world.pools.keys() {
        let entries = world.allocations(pool);
        for (ip, entry) in &entries {
            if let Some(why) = of_entry(world, pool, ip, entry) {
                wrong.push(format!("{pool}: {ip}: {why}: {entry}"));
            }
        }
        let status = &world.pools[pool]["status"];
        let offsets = status["allocated-offsets"].as_array().map_or(0, Vec::len);
        if status["allocated"].as_u64() != Some(entries.len() as u64) || offsets != entries.len() {
            wrong.push(format!("{pool}: its counts are not those of its entries"));
        }
    }
    for (name, own) in &world.enactments {
        let labels = &own["metadata"]["labels"];
        let policy = labels["nmstate.io/policy"].as_str().unwrap_or_default();
        let uid = &own["metadata"]["ownerReferences"][0]["uid"];
        let node = world.nodes.values().find(|node| node["metadata"]["uid"] == *uid);
        if node.is_none() || !world.policies.contains_key(policy) {
            wrong.push(format!("enactment {name} is of no Node, or of no policy"));
        }
        for (pool, claims) in own["status"]["ippool"].as_object().into_iter().flatten() {
            let requests = claims["requests"].as_object().into_iter().flatten();
            for (capture, request) in requests {
                let grant = &claims["grants"][capture];
                let refused = !claims["refused"][capture].is_null();
                let ip = grant["ip"].as_str().unwrap_or_default();
                let backed =
                    world.allocations(pool).get(ip).is_some_and(|entry| entry["request"] == request["id"]);
                if !refused && !backed {
                    wrong.push(format!("enactment {name}: {pool}: no entry is {ip}, {request}"));
                }
            }
            for (capture, grant) in claims["grants"].as_object().into_iter().flatten() {
                if grant["id"] != claims["requests"][capture]["id"] {
                    wrong.push(format!("enactment {name}: {pool}: nobody asked for {grant}"));
                }
            }
        }
    }
    for host in world.kernels.keys() {
        wrong.extend(of_host(world, host));
    }
    wrong
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
    if grant["ip"] != ip || grant["id"] != entry["request"] {
        return Some(format!("the grant is {grant}"));
    }
    if request["id"] != entry["request"] || request["want"] != true || request["holds"]["ip"] != ip {
        return Some(format!("the request is {request}"));
    }
    if claims["allocated"] != json!([ip]) {
        return Some(format!("allocated says {}", claims["allocated"]));
    }
    if !world.kernels.contains_key(node) {
        return Some("there is no such host".to_owned());
    }
    let held = world.claims(node).into_iter().any(|(key, record)| {
        key == json!({"policy": policy, "pool": pool, "capture": capture})
            && record["id"] == entry["request"]
            && record["node_uid"] == entry["nodeUID"]
            && record["phase"]["Holding"]["ips"] == json!([ip])
    });
    if !held {
        return Some("the journal doesn't have it".to_owned());
    }
    (!world.kernels[node].contains(ip)).then(|| "the kernel doesn't have it".to_owned())
}

/// What a host has, or thinks that it has, and the ledgers don't know.
fn of_host(world: &World, host: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let known: Vec<(String, Value)> = world.pools.keys().flat_map(|pool| world.allocations(pool)).collect();
    for (key, record) in world.claims(host) {
        let ip = record["phase"]["Holding"]["ips"][0].as_str().unwrap_or_default().to_owned();
        if !known.iter().any(|(at, entry)| *at == ip && entry["request"] == record["id"]) {
            // Who was refused goes on asking.
            let policy = key["policy"].as_str().unwrap_or_default();
            let (pool, capture) = (key["pool"].as_str().unwrap_or_default(), &key["capture"]);
            let claims = &world.enactment(host, policy)["status"]["ippool"][pool];
            let refused = &claims["refused"][capture.as_str().unwrap_or_default()];
            if refused["id"] != record["id"] {
                wrong.push(format!("{host}: journalled and in no ledger: {key} {record}"));
            }
        }
    }
    for ip in &world.kernels[host] {
        if !known.iter().any(|(at, entry)| at == ip && entry["node"] == host) {
            wrong.push(format!("{host}: {ip} is on a card and in no ledger"));
        }
    }
    let shows =
        world.states.get(host).map(|state| state["status"]["pooledAddresses"].clone()).unwrap_or_default();
    let shown: Vec<&str> =
        shows.as_array().into_iter().flatten().filter_map(|one| one["ip"].as_str()).collect();
    if !world.kernels[host].iter().all(|ip| shown.contains(&ip.as_str())) {
        wrong.push(format!("{host}: its NodeNetworkState shows {shows}"));
    }
    wrong
}
