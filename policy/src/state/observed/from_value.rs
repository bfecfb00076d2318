//! Reading an observed state from nmstate's YAML: lenient, because it may come from another tool.

use super::super::desired::{DesiredRoute, DesiredRule, link, resolver, route, rule};
use super::super::error::StateErrors;
use super::super::kind::{self, PortStyle};
use super::super::path::Path;
use super::super::route::MAIN_TABLE;
use super::super::scalar::Reader;
use super::super::{
    DesiredLink, Dns, Family, IfName, Ip, Link, LinkKind, LinkState, NextHop, OptValue, Options, PortVlan,
    Raw, Route, RouteProtocol, RouteType, Rule,
};
use super::Observed;
use serde_json::Value;
use std::collections::BTreeMap;

impl Observed {
    /// Reads a state. What the model doesn't know is kept aside and shown again; a link of an unknown kind is
    /// there, ignored. Wrong are only values that can't be what their field says.
    pub fn from_value(document: &Value) -> Result<Self, StateErrors> {
        let mut r = Reader::lenient();
        let observed = read(&mut r, document);
        if r.findings.is_empty() { Ok(observed) } else { Err(StateErrors(r.findings)) }
    }
}

fn read(r: &mut Reader, document: &Value) -> Observed {
    let root = Path::Root;
    let mut observed = Observed::default();
    for (key, value) in r.fields(&root, document) {
        let at = root.key(key);
        match key {
            "interfaces" => observed.links = read_links(r, &at, value),
            "routes" => observed.routes = read_routes(r, &at, value),
            "route-rules" => observed.rules = read_rules(r, &at, value),
            "dns-resolver" => (observed.dns, observed.running_dns) = read_dns(r, &at, value),
            "hostname" => observed.hostname = resolver::read_hostname(r, &at, value).unwrap_or_default(),
            _ => {
                observed.extra.insert(key.to_owned(), value.clone());
            }
        }
        // Sections keep nothing aside: what is unread there is not the host's state.
        r.extra.clear();
    }
    observed.tell_link_locals(|_| None);
    observed
}

fn read_links(r: &mut Reader, path: &Path<'_>, value: &Value) -> BTreeMap<IfName, Link> {
    let mut links = BTreeMap::new();
    let mut port_lists = Vec::new();
    for (i, item) in r.list(path, value).iter().enumerate() {
        let Some((doc, shown)) = link::read(r, &path.index(i), i, item) else {
            continue;
        };
        if doc.state == LinkState::Absent {
            continue;
        }
        let name = doc.name.clone();
        if let Some(ports) = &doc.ports {
            port_lists.push((name.clone(), ports.clone()));
        }
        links.insert(name, to_link(doc, shown));
    }
    for (controller, ports) in port_lists {
        attach(&mut links, &controller, ports);
    }
    links
}

fn to_link(doc: DesiredLink, shown: link::Shown) -> Link {
    let kind = doc.kind.unwrap_or_else(|| LinkKind::Other("unknown".into()));
    let mut link = Link::new(doc.name, kind);
    link.ignored = shown.ignored || matches!(link.kind, LinkKind::Other(_));
    link.extra = shown.extra;
    link.up = doc.state == LinkState::Up && !link.ignored;
    link.alias = doc.alias;
    link.mac = doc.mac;
    if let super::super::Identifier::Mac(mac) = doc.identifier {
        link.mac = Some(mac);
    }
    link.permanent_mac = shown.permanent_mac;
    (link.mtu, link.min_mtu, link.max_mtu) = (doc.mtu, shown.min_mtu, shown.max_mtu);
    link.controller = doc.controller.flatten();
    link.alt_names = doc.alt_names.into_iter().filter(|a| !a.absent).map(|a| a.name).collect();
    link.promiscuous = doc.promiscuous.unwrap_or(false);
    (link.base, link.peer, link.options) = (doc.base, doc.peer, doc.options);
    let [v4, v6] = shown.addresses;
    for (family, said, addresses) in [(Family::Ipv4, doc.ipv4, v4), (Family::Ipv6, doc.ipv6, v6)] {
        let said = said.unwrap_or_default();
        // IPv6 is on unless somebody said otherwise; IPv4 is on where it has something.
        let enabled = match family {
            Family::Ipv4 => said.enabled.unwrap_or(false) || !addresses.is_empty(),
            Family::Ipv6 => said.enabled.unwrap_or(true) || !addresses.is_empty(),
        };
        *link.ip_mut(family) = Ip {
            enabled,
            dhcp: said.dhcp.unwrap_or(false),
            autoconf: said.autoconf.unwrap_or(false),
            accept_ra: None,
            forwarding: said.forwarding,
            addresses,
        };
    }
    if link.kind.spec().ports == PortStyle::Bridge {
        link.options.insert(kind::VLAN_FILTERING.name(), OptValue::Bool(false));
    }
    link
}

/// Says at each port what its controller's list said.
fn attach(links: &mut BTreeMap<IfName, Link>, controller: &IfName, ports: super::super::Ports) {
    let mut filters = false;
    let config = ports.config;
    for entry in ports.list.unwrap_or_default() {
        // A port that was left out of the state still is one: it must not vanish.
        let port = links.entry(entry.name.clone()).or_insert_with(|| {
            let mut link = Link::new(entry.name.clone(), LinkKind::Other("unknown".into()));
            link.ignored = true;
            link
        });
        port.controller = Some(controller.clone());
        port.port.options = merged(entry.options, config.get(&entry.name).map(|config| &config.options));
        port.port.vlan = entry.vlan.unwrap_or_default();
        filters |= port.port.vlan != PortVlan::default();
    }
    if filters && let Some(bridge) = links.get_mut(controller) {
        bridge.options.insert(kind::VLAN_FILTERING.name(), OptValue::Bool(true));
    }
}

fn merged(mut options: Options, more: Option<&Options>) -> Options {
    if let Some(more) = more {
        options.extend(more.iter().map(|(k, v)| (*k, v.clone())));
    }
    options
}

fn read_routes(r: &mut Reader, path: &Path<'_>, value: &Value) -> Vec<Route> {
    let mut routes: BTreeMap<_, Route> = BTreeMap::new();
    let Some(map) = r.map(path, value) else {
        return Vec::new();
    };
    // `config` first: what stands in both was written by somebody.
    for (key, protocol) in [("config", RouteProtocol::STATIC), ("running", RouteProtocol::UNSPEC)] {
        let Some(value) = map.get(key).filter(|v| !v.is_null()) else {
            continue;
        };
        for doc in route::read_list(r, &path.key(key), value) {
            let Some(route) = to_route(doc, protocol) else {
                continue;
            };
            match routes.get_mut(&route.key()) {
                Some(known) => join_hops(known, route),
                None => {
                    routes.insert(route.key(), route);
                }
            }
        }
    }
    routes.into_values().collect()
}

fn join_hops(known: &mut Route, route: Route) {
    for hop in route.next_hops {
        let twin = known.next_hops.iter().any(|h| h.is_same_way(&hop));
        if !twin && known.kind == RouteType::Unicast {
            known.next_hops.push(hop);
        }
    }
    known.next_hops.sort();
}

fn to_route(doc: DesiredRoute, protocol: RouteProtocol) -> Option<Route> {
    let destination = doc.destination.filter(|_| !doc.absent)?;
    let kind = doc.kind.unwrap_or(RouteType::Unicast);
    let hop = doc.dev.map(|dev| NextHop {
        via: doc.via.flatten(),
        dev,
        weight: doc.weight.unwrap_or(1),
        onlink: false,
    });
    if kind == RouteType::Unicast && hop.is_none() {
        return None;
    }
    Some(Route {
        destination,
        table: doc.table.unwrap_or(MAIN_TABLE),
        metric: doc.metric.unwrap_or(Route::default_metric(Family::of_net(&destination))),
        tos: 0,
        kind,
        protocol,
        next_hops: hop.filter(|_| kind == RouteType::Unicast).into_iter().collect(),
        object: None,
        source: doc.source,
        mtu: doc.mtu,
        raw: Raw::default(),
    })
}

fn read_rules(r: &mut Reader, path: &Path<'_>, value: &Value) -> Vec<Rule> {
    let Some(map) = r.map(path, value) else {
        return Vec::new();
    };
    let Some(config) = map.get("config") else {
        return Vec::new();
    };
    rule::read_list(r, &path.key("config"), config).into_iter().filter(|d| !d.absent).map(to_rule).collect()
}

fn to_rule(doc: DesiredRule) -> Rule {
    Rule {
        family: doc.family.unwrap_or(Family::Ipv4),
        priority: doc.priority.unwrap_or(0),
        from: doc.from.filter(|n| n.prefix_len() > 0),
        to: doc.to.filter(|n| n.prefix_len() > 0),
        iif: doc.iif,
        fwmark: doc.fwmark,
        fwmask: doc.fwmask,
        table: doc.table.or(if doc.action.is_none() { Some(MAIN_TABLE) } else { None }),
        action: doc.action,
        suppress_prefix_length: doc.suppress_prefix_length,
        raw: Raw::default(),
    }
}

/// What is configured and what runs, each as it is said: that nothing is configured is an answer too, and a
/// resolver that merely runs (a lease) is not one that a document's empty `config` would purge.
fn read_dns(r: &mut Reader, path: &Path<'_>, value: &Value) -> (Dns, Dns) {
    let Some(map) = r.map(path, value) else {
        return Default::default();
    };
    let mut part = |key: &str| {
        let Some(value) = map.get(key).filter(|v| !v.is_null()) else {
            return Dns::default();
        };
        let doc = resolver::read(r, &path.key(key), value);
        Dns {
            servers: doc.servers.unwrap_or_default(),
            search: doc.search.unwrap_or_default(),
            options: doc.options.unwrap_or_default(),
            text: None,
        }
    };
    (part("config"), part("running"))
}
