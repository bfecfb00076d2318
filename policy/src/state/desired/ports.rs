//! Reading port lists: a bridge's with options and VLANs, a bond's and a vrf's as names.

use super::super::error::Reason;
use super::super::kind::{KindSpec, PortStyle};
use super::super::path::Path;
use super::super::scalar::Reader;
use super::super::{Options, PortVlan};
use super::link::read_port_options;
use super::{PortConfig, PortEntry, Ports};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn read(
    r: &mut Reader,
    path: &Path<'_>,
    value: &Value,
    spec: &'static KindSpec,
    ports: &mut Ports,
) {
    let mut list: Vec<PortEntry> = Vec::new();
    let mut names = BTreeSet::new();
    for (i, item) in r.list(path, value).iter().enumerate() {
        let at = path.index(i);
        let entry = match item {
            Value::Object(_) if spec.ports == PortStyle::Bridge => read_bridge_port(r, &at, item, spec),
            _ => r.reference(&at, item).map(|name| PortEntry { name, options: Options::new(), vlan: None }),
        };
        let Some(entry) = entry else { continue };
        if names.insert(entry.name.clone()) {
            list.push(entry);
        } else {
            r.find(&at, Reason::Duplicate { name: entry.name.to_string(), first: path.to_string() });
        }
    }
    ports.list = Some(list);
}

fn read_bridge_port(
    r: &mut Reader,
    path: &Path<'_>,
    value: &Value,
    spec: &'static KindSpec,
) -> Option<PortEntry> {
    let mut vlan = None;
    let (name, options) = read_port_options(r, path, value, spec, |r, at, key, value| {
        if key == "vlan" {
            vlan = Some(PortVlan::read(r, at, value));
        }
        key == "vlan"
    });
    Some(PortEntry { name: name?, options, vlan })
}

pub(super) fn read_config(
    r: &mut Reader,
    path: &Path<'_>,
    value: &Value,
    spec: &'static KindSpec,
    ports: &mut Ports,
) {
    for (index, item) in r.list(path, value).iter().enumerate() {
        let (name, options) = read_port_options(r, &path.index(index), item, spec, |_, _, _, _| false);
        if let Some(name) = name {
            let config = ports.config.entry(name).or_insert(PortConfig { index, options: Options::new() });
            config.options.extend(options);
        }
    }
}
