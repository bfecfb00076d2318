//! A slice: `policy::claim::NodeSlice` ↔ a `NodeIPSlice`.
//!
//! Whose it is, is said by its spec, which can't be changed; labels are for finding it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crds::names::{annotation, finalizer, label};
use crds::slice::FirstAllocation;
use crds::{NodeIPSlice, NodeIPSliceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use policy::claim::{Entry, NewSlice, NodeName, NodeSlice, NodeUid, PoolName};
use policy::pool::{MADE_WITH, SINGLE};

use super::{RecordError, RecordErrors, pool, write_ip, write_number, write_time};

pub fn read(object: &NodeIPSlice) -> Result<NodeSlice, RecordErrors> {
    // What it was made with is its ledger's.
    let NodeIPSliceSpec { pool: _, range: _, cidr, node, node_uid, first: _ } = &object.spec;
    let network = crds::address::cidr(cidr)
        .ok_or_else(|| RecordError::Shape { path: "spec.cidr".to_owned(), wanted: "a network" })?;
    Ok(NodeSlice {
        name: object.metadata.name.clone().unwrap_or_default(),
        cidr: network,
        node: node.as_str().into(),
        node_uid: node_uid.as_str().into(),
        ledger: pool::read_slice(object)?,
    })
}

/// The object that claims a slice, with the finalizer that keeps it while an address of it may be in use.
pub fn new(pool: &PoolName, new: &NewSlice, node: &NodeName, uid: &NodeUid) -> NodeIPSlice {
    let labels = [(label::NODE, node.as_str()), (label::POOL, pool.as_str())];
    // A node's name may be too long for a label; whose it is, is said elsewhere.
    let fitting = labels.into_iter().filter(|(_, value)| crds::text::is_label_value(value));
    let labels: BTreeMap<String, String> =
        fitting.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let first = new.first.as_ref().and_then(|(ip, entry)| first(*ip, entry));
    let encoding = first.is_some().then(|| (annotation::LEDGER_ENCODING.to_owned(), MADE_WITH.to_owned()));
    NodeIPSlice {
        metadata: ObjectMeta {
            name: Some(new.name.clone()),
            labels: Some(labels),
            annotations: encoding.map(|encoding| BTreeMap::from([encoding])),
            finalizers: Some(vec![finalizer::ADDRESSES.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: NodeIPSliceSpec {
            pool: pool.to_string(),
            range: (new.range != SINGLE).then(|| new.range.clone()),
            cidr: new.cidr.to_string(),
            node: node.to_string(),
            node_uid: uid.to_string(),
            first,
        },
        status: None,
    }
}

/// What a slice is made with. Nothing where that can't be written: then it is the ledger's to say why.
fn first(ip: IpAddr, entry: &Entry) -> Option<FirstAllocation> {
    Some(FirstAllocation {
        ip: write_ip("spec.first.ip", ip).ok()?,
        policy: entry.policy.to_string(),
        capture: entry.capture.to_string(),
        request: entry.request.as_ref()?.text().to_owned(),
        sequence: write_number("spec.first.sequence", entry.sequence).ok()?,
        since: write_time("spec.first.since", entry.since).ok()?,
    })
}

/// How to find the slices of a pool.
pub fn of_pool(pool: &PoolName) -> String {
    format!("{}={pool}", label::POOL)
}

/// How to find those of a node, of every pool; nothing, where its name is no label's value and all must be looked at.
pub fn of_node(node: &NodeName) -> Option<String> {
    crds::text::is_label_value(node.as_str()).then(|| format!("{}={node}", label::NODE))
}
