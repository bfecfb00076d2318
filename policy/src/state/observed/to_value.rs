//! Printing an observed state as nmstate's YAML: name, type and state first, then what a person looks for.

use super::super::kind::{KindSpec, PortStyle};
use super::super::{
    Address, AddressProtocol, Dns, Family, IfName, Ip, Link, LinkKind, Route, RouteType, Rule, option,
};
use super::Observed;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

impl Observed {
    /// nmstate's form. Piped back into a plan it asks for nothing.
    pub fn to_value(&self) -> Value {
        let mut ports: BTreeMap<&IfName, Vec<&Link>> = BTreeMap::new();
        for link in self.links.values() {
            if let Some(controller) = &link.controller {
                ports.entry(controller).or_default().push(link);
            }
        }
        let links = self.links.values().map(|link| {
            let ports = ports.get(&link.name).map_or(&[][..], Vec::as_slice);
            write_link(link, ports)
        });
        let mut out = Map::new();
        if !self.hostname.is_unknown() {
            out.insert("hostname".into(), json!(self.hostname));
        }
        out.insert(
            "dns-resolver".into(),
            json!({"running": write_dns(&self.running_dns), "config": write_dns(&self.dns)}),
        );
        out.insert(
            "route-rules".into(),
            json!({"config": self.rules.iter().map(write_rule).collect::<Vec<_>>()}),
        );
        let written = |config: bool| -> Vec<Value> {
            self.routes
                .iter()
                // Another type of service is another route, and a document that shows it would ask for one without.
                .filter(|r| r.tos == 0 && (!config || r.protocol.is_config()))
                .flat_map(write_route)
                .collect()
        };
        out.insert("routes".into(), json!({"running": written(false), "config": written(true)}));
        out.insert("interfaces".into(), links.collect());
        merge_missing(&mut out, &self.extra);
        Value::Object(out)
    }
}

fn write_link(link: &Link, ports: &[&Link]) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), json!(link.name.as_str()));
    out.insert("type".into(), json!(link.kind.as_str()));
    let state = match (link.ignored, link.up) {
        (true, _) => "ignore",
        (false, true) => "up",
        (false, false) => "down",
    };
    out.insert("state".into(), json!(state));
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(key.into(), value);
        }
    };
    if !link.ignored || link.extra.is_empty() {
        put("description", link.alias.as_ref().map(|a| json!(a)));
        put("mac-address", link.mac.map(|m| json!(m.to_string())));
        put("permanent-mac-address", link.permanent_mac.map(|m| json!(m.to_string())));
        put("mtu", link.mtu.map(|n| json!(n)));
        put("min-mtu", link.min_mtu.map(|n| json!(n)));
        put("max-mtu", link.max_mtu.map(|n| json!(n)));
    }
    put("controller", link.controller.as_ref().map(|c| json!(c.as_str())));
    if !link.ignored {
        let alt_names: Vec<_> = link.alt_names.iter().map(|n| json!({"name": n})).collect();
        put("alt-names", Some(alt_names).filter(|n| !n.is_empty()).map(Value::Array));
        put("accept-all-mac-addresses", Some(json!(link.promiscuous)));
        put("ipv4", Some(write_ip(&link.ipv4, Family::Ipv4)));
        put("ipv6", Some(write_ip(&link.ipv6, Family::Ipv6)));
        if let Some((name, section)) = write_section(link, ports) {
            put(name, Some(section));
        }
    }
    merge_missing(&mut out, &link.extra);
    Value::Object(out)
}

fn write_ip(ip: &Ip, family: Family) -> Value {
    let mut out = Map::new();
    let v6 = family == Family::Ipv6;
    let enabled = if v6 { ip.enabled } else { ip.enabled || !ip.addresses.is_empty() || ip.dhcp };
    out.insert("enabled".into(), json!(enabled));
    if !enabled {
        if let Some(forwarding) = ip.forwarding {
            out.insert("forwarding".into(), json!(forwarding));
        }
        return Value::Object(out);
    }
    let dynamic = ip.addresses.iter().any(Address::is_dynamic);
    out.insert("dhcp".into(), json!(ip.dhcp || (dynamic && !v6)));
    if v6 {
        out.insert("autoconf".into(), json!(ip.autoconf || (dynamic && !ip.dhcp)));
    }
    if let Some(forwarding) = ip.forwarding {
        out.insert("forwarding".into(), json!(forwarding));
    }
    out.insert("address".into(), ip.addresses.iter().map(write_address).collect());
    Value::Object(out)
}

fn write_address(address: &Address) -> Value {
    let mut out = Map::new();
    out.insert("ip".into(), json!(address.ip.to_string()));
    out.insert("prefix-length".into(), json!(address.prefix));
    if let Some(lifetime) = address.lifetime {
        out.insert("valid-life-time".into(), json!(format!("{}sec", lifetime.valid)));
        out.insert("preferred-life-time".into(), json!(format!("{}sec", lifetime.preferred)));
    }
    // Nobody's in particular is what an address is without a word.
    if let Some(protocol) = address.protocol.filter(|by| *by != AddressProtocol::UNSPEC) {
        out.insert("protocol".into(), json!(protocol.to_string()));
    }
    Value::Object(out)
}

fn write_section(link: &Link, ports: &[&Link]) -> Option<(&'static str, Value)> {
    let spec = link.kind.spec();
    let name = spec.sections.first()?;
    let mut out = Map::new();
    if let Some(base) = &link.base {
        out.insert("base-iface".into(), json!(base.as_str()));
    }
    if let (LinkKind::Veth, Some(peer)) = (&link.kind, &link.peer) {
        out.insert("peer".into(), json!(peer.as_str()));
    }
    option::write(&link.options, spec.options, &mut out);
    let names = || ports.iter().map(|p| json!(p.name.as_str())).collect::<Vec<_>>();
    match spec.ports {
        PortStyle::None => {}
        PortStyle::Vrf => {
            out.insert("port".into(), json!(names()));
        }
        PortStyle::Bond => {
            out.insert("port".into(), json!(names()));
            let set = ports.iter().filter(|p| !p.port.options.is_empty());
            let config: Vec<_> = set.map(|p| Value::Object(port_entry(p, spec))).collect();
            if !config.is_empty() {
                out.insert("ports-config".into(), Value::Array(config));
            }
        }
        PortStyle::Bridge => {
            let list = ports.iter().map(|p| {
                let mut entry = port_entry(p, spec);
                let shown = if link.filters_vlans() { p.port.vlan.to_value() } else { json!({}) };
                entry.insert("vlan".into(), shown);
                Value::Object(entry)
            });
            out.insert("port".into(), list.collect());
        }
    }
    if out.is_empty() { None } else { Some((name, Value::Object(out))) }
}

fn port_entry(port: &Link, controller: &KindSpec) -> Map<String, Value> {
    let mut entry = Map::from_iter([("name".to_owned(), json!(port.name.as_str()))]);
    option::write(&port.port.options, controller.port_options, &mut entry);
    entry
}

fn write_route(route: &Route) -> Vec<Value> {
    let mut base = Map::new();
    base.insert("destination".into(), json!(route.destination.to_string()));
    base.insert("metric".into(), json!(route.metric));
    base.insert("table-id".into(), json!(route.table));
    if route.kind != RouteType::Unicast {
        base.insert("route-type".into(), json!(route.kind.as_str()));
        return vec![Value::Object(base)];
    }
    if let Some(source) = route.source {
        base.insert("source".into(), json!(source.to_string()));
    }
    if let Some(mtu) = route.mtu {
        base.insert("mtu".into(), json!(mtu));
    }
    let several = route.next_hops.len() > 1;
    let entries = route.next_hops.iter().map(|hop| {
        let mut out = base.clone();
        out.insert("next-hop-interface".into(), json!(hop.dev.as_str()));
        if let Some(via) = hop.via {
            out.insert("next-hop-address".into(), json!(via.to_string()));
        }
        if several || hop.weight != 1 {
            out.insert("weight".into(), json!(hop.weight));
        }
        Value::Object(out)
    });
    entries.collect()
}

fn write_rule(rule: &Rule) -> Value {
    let mut out = Map::new();
    out.insert("family".into(), json!(rule.family.as_str()));
    out.insert("priority".into(), json!(rule.priority));
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(key.into(), value);
        }
    };
    put("ip-from", rule.from.map(|n| json!(n.to_string())));
    put("ip-to", rule.to.map(|n| json!(n.to_string())));
    put("iif", rule.iif.as_ref().map(|i| json!(i.as_str())));
    put("fwmark", rule.fwmark.map(|n| json!(n)));
    put("fwmask", rule.fwmask.map(|n| json!(n)));
    put("route-table", rule.table.filter(|_| rule.action.is_none()).map(|t| json!(t)));
    put("action", rule.action.map(|a| json!(a.as_str())));
    put("suppress-prefix-length", rule.suppress_prefix_length.map(|n| json!(n)));
    Value::Object(out)
}

fn write_dns(dns: &Dns) -> Value {
    let mut out = Map::new();
    for (key, list) in [("server", &dns.servers), ("search", &dns.search), ("options", &dns.options)] {
        if !list.is_empty() {
            out.insert(key.into(), json!(list));
        }
    }
    Value::Object(out)
}

/// Adds what was set aside, without covering what is known.
fn merge_missing(into: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        match (into.get_mut(key), value) {
            (None, _) => {
                into.insert(key.clone(), value.clone());
            }
            (Some(Value::Object(known)), Value::Object(more)) => merge_missing(known, more),
            _ => {}
        }
    }
}
