//! What an earlier rendering left: captured states, and the addresses that an enactment holds.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use anyhow::Context;
use crds::Kind;
use ipnet::IpNet;
use policy::capture::{Cached, Granted, GrantedAddress, read_cached};
use serde_json::{Map, Value};

use crate::cli::input::{self, Document};

const EXPECTED: &str = "--captured takes a NodeNetworkConfigurationEnactment, or its capturedStates (capture: {state, metaInfo})";

#[derive(Default)]
pub(super) struct Captured {
    file: String,
    pub(super) states: Cached,
    /// What the enactment holds: pool → capture → address. Only an enactment can say so: a captured state that is all
    /// there is proves no claim.
    held: BTreeMap<String, BTreeMap<String, Granted>>,
}

impl Captured {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let (name, document) = input::read(path)?.only()?;
        let (states, ippool) = match &document {
            Document::Manifest(Kind::NodeNetworkConfigurationEnactment, manifest) => {
                (manifest.pointer("/status/capturedStates"), manifest.pointer("/status/ippool"))
            }
            Document::Bare(value) => (Some(value.get("capturedStates").unwrap_or(value)), None),
            other => return Err(other.unexpected(&name, EXPECTED).into()),
        };
        let states = states.unwrap_or(&Value::Null);
        let cached = read_cached(states).with_context(|| format!("{name}: {EXPECTED}"))?;
        let held = ippool.map(|ippool| held(ippool, states)).unwrap_or_default();
        Ok(Self { file: name, states: cached, held })
    }

    /// The file, if it has a state for this capture that doesn't count: nothing in it proves that the pool gave that.
    pub(super) fn unproven(&self, pool: &str, capture: &str) -> Option<&str> {
        let unproven = self.states.contains_key(capture) && self.held(pool, capture).is_none();
        unproven.then_some(self.file.as_str())
    }

    /// What the enactment holds of this pool under this capture.
    pub(super) fn held(&self, pool: &str, capture: &str) -> Option<&Granted> {
        self.held.get(pool)?.get(capture)
    }
}

/// Addresses by grant; where there are none, as in an enactment that lists addresses only, those of the captured states
/// that are listed.
fn held(ippool: &Value, states: &Value) -> BTreeMap<String, BTreeMap<String, Granted>> {
    let map = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut held = BTreeMap::new();
    for (pool, claims) in map(Some(ippool)) {
        let allocated = claims.get("allocated").and_then(Value::as_array);
        let listed = |state: &Value| {
            let ip = state.get("ip");
            ip.is_some() && allocated.is_some_and(|all| all.iter().any(|one| Some(one) == ip))
        };
        let mut found: BTreeMap<String, Granted> = BTreeMap::new();
        let known: Map<String, Value> = map(Some(states));
        let noted = known.into_iter().filter(|(_, state)| listed(state));
        for (capture, fields) in noted.chain(map(claims.get("grants"))) {
            found.extend(granted(&fields).map(|granted| (capture, granted)));
        }
        held.insert(pool, found);
    }
    held
}

/// A grant, or the captured state made from one: they have the same fields.
fn granted(fields: &Value) -> Option<Granted> {
    let second = fields.get("ipv6").filter(|_| fields.get("ipv4").is_some());
    let attributes = fields.get("attributes").and_then(Value::as_object);
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    Some(Granted {
        address: address(fields.get("ipv4").unwrap_or(fields))?,
        second: second.and_then(address),
        range: fields.get("range").and_then(Value::as_str).unwrap_or_default().to_owned(),
        attributes: attributes.into_iter().flatten().filter_map(text).collect(),
    })
}

fn address(fields: &Value) -> Option<GrantedAddress> {
    let ip = |key| fields.get(key)?.as_str()?.parse::<IpAddr>().ok();
    let prefix = u8::try_from(fields.get("prefix-length")?.as_u64()?).ok()?;
    Some(GrantedAddress { address: IpNet::new(ip("ip")?, prefix).ok()?, gateway: ip("gateway") })
}
