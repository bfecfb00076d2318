//! A host's report: `policy::claim::HostState` ↔ a `NodeNetworkState`.
//!
//! Two readers, for two questions. The agent compares what it said ([`said`]) with what it has to say. Whoever gives or
//! frees addresses must see whatever is on a NIC, pooled or not ([`shown`]): what is visibly in use is never given. What stands
//! there for an address and is none is in no range, so it is in nobody's way: `currentState` has no schema, and one host's
//! report must not stop all pools.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crds::state::{PooledAddress, PooledAddressState};
use crds::{NodeNetworkState, NodeNetworkStateStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use policy::claim::{ClaimKey, Host, HostState, Lease, NodeName, NodeUid, Phase, Stamp};
use serde_json::Value;

use super::{RecordError, RecordErrors, Wrong, read_ip, read_owner, write_ip, write_owner};

/// What the agent said: pooled addresses on NICs, journalled or announced.
pub fn said(object: &NodeNetworkState) -> Result<HostState, RecordErrors> {
    let mut wrong = Wrong::default();
    let owner = wrong.note(read_owner(&object.metadata));
    let (node, node_uid) = owner.unwrap_or_else(|| ("".into(), "".into()));
    let name = object.metadata.name.as_deref().unwrap_or_default();
    if name != node.as_str() && !node.as_str().is_empty() {
        wrong.0.push(RecordError::Disagree {
            path: "metadata.name".to_owned(),
            found: name.to_owned(),
            other: "the Node that owns it",
            wanted: node.to_string(),
        });
    }
    let none = NodeNetworkStateStatus::default();
    let status = object.status.as_ref().unwrap_or(&none);
    let mut shows = BTreeSet::new();
    for (i, pooled) in status.pooled_addresses.iter().enumerate() {
        // Whose it is and how far it has come is for people.
        let PooledAddress { ip, pool: _, id: _, state: _ } = pooled;
        let path = format!("status.pooledAddresses[{i}].ip");
        if let Some(ip) = wrong.note(read_ip(&path, ip))
            && !shows.insert(ip)
        {
            wrong.0.push(RecordError::Twice { path, ip });
        }
    }
    // A report without a stamp, another agent's say, bears the empty one: it is never news.
    wrong.or(HostState { node, node_uid, stamp: Stamp::new(status.stamp.as_str()), shows })
}

/// What the host shows: what its agent said, and every address in `status.currentState`.
pub fn shown(object: &NodeNetworkState) -> Result<HostState, RecordErrors> {
    let mut state = said(object)?;
    let current = object.status.as_ref().and_then(|status| status.current_state.as_ref());
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    for interface in list(current.and_then(|current| current.get("interfaces"))) {
        for family in ["ipv4", "ipv6"] {
            let addresses = list(interface.get(family).and_then(|family| family.get("address")));
            let texts = addresses.iter().filter_map(|address| address.get("ip")?.as_str());
            state.shows.extend(texts.filter_map(|text| Some(text.parse::<IpAddr>().ok()?.to_canonical())));
        }
    }
    Ok(state)
}

/// The metadata to create a report with.
pub fn metadata(node: &NodeName, node_uid: &NodeUid) -> ObjectMeta {
    ObjectMeta {
        name: Some(node.to_string()),
        owner_references: Some(vec![write_owner(node, node_uid)]),
        ..ObjectMeta::default()
    }
}

/// The status to write for a report, in place of the one before; what else it has is left as it is. The host's journal
/// and memory say whose the addresses are.
pub fn status(
    state: &HostState,
    host: &Host,
    before: &NodeNetworkStateStatus,
) -> Result<NodeNetworkStateStatus, RecordErrors> {
    // The metadata's.
    let HostState { node: _, node_uid: _, stamp, shows } = state;
    let mut wrong = Wrong::default();
    let pooled: Vec<PooledAddress> =
        shows.iter().enumerate().filter_map(|(i, ip)| wrong.note(pooled(i, *ip, host))).collect();
    let stamp = stamp.to_string();
    wrong.or(NodeNetworkStateStatus { stamp, pooled_addresses: pooled, ..before.clone() })
}

fn pooled(i: usize, ip: IpAddr, host: &Host) -> Result<PooledAddress, RecordError> {
    let has = |lease: &Lease| lease.ips.contains(&ip);
    let journalled = host.journal.iter().find(|(_, record)| match &record.phase {
        Phase::Holding(lease) => has(lease),
        Phase::Asking { .. } | Phase::Parked(_) | Phase::Releasing => false,
    });
    let announced = || host.memory.announced.iter().find(|(_, lease)| has(lease));
    let (key, state): (Option<&ClaimKey>, _) = match journalled {
        Some((key, _)) => (Some(key), Some(PooledAddressState::Journalled)),
        None => announced().map(|(key, _)| (key, PooledAddressState::Announced)).unzip(),
    };
    Ok(PooledAddress {
        ip: write_ip(&format!("status.pooledAddresses[{i}].ip"), ip)?,
        pool: key.map(|key| key.pool.to_string()),
        id: key.and_then(|key| host.journal.get(key)).map(|record| record.id.text().to_owned()),
        state,
    })
}
