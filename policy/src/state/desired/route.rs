//! Reading `routes.config`. Several entries with one destination, table and metric are the next hops of one
//! route; `weight` gives their shares.

use super::super::error::Reason;
use super::super::path::Path;
use super::super::route::IPV6_METRIC;
use super::super::scalar::{Reader, shown};
use super::super::{Family, RouteType};
use super::DesiredRoute;
use ipnet::IpNet;
use serde_json::{Map, Value};

const UNSUPPORTED: &[&str] = &["cwnd", "initcwnd", "initrwnd", "quickack", "advmss", "vrf-name"];

pub(in crate::state) fn read_list(r: &mut Reader, path: &Path<'_>, value: &Value) -> Vec<DesiredRoute> {
    let list = r.list(path, value).iter().enumerate();
    list.filter_map(|(i, item)| read(r, &path.index(i), i, item)).collect()
}

fn read(r: &mut Reader, path: &Path<'_>, index: usize, value: &Value) -> Option<DesiredRoute> {
    let map = r.map(path, value)?;
    let mut route = DesiredRoute { index, ..DesiredRoute::default() };
    for (key, value) in r.fields(path, value) {
        let at = path.key(key);
        match key {
            "state" => {
                route.absent = r.word(&at, value, &[("absent", true), ("present", false)]).unwrap_or(false);
            }
            "destination" => route.destination = read_net(r, &at, value),
            "next-hop-interface" => {
                if value.as_str() != Some("") {
                    route.dev = r.reference(&at, value);
                }
            }
            "next-hop-address" => {
                // nmstate writes the unspecified address where there is no gateway.
                route.via = match value.as_str() {
                    Some("" | "0.0.0.0" | "::") => Some(None),
                    _ => r.ip(&at, value).map(Some),
                };
            }
            "metric" if is_unset(value) => {}
            "metric" => route.metric = r.u32(&at, value),
            "table-id" => route.table = r.u32(&at, value).filter(|t| *t != 0),
            "weight" => route.weight = r.u16(&at, value, 1, 256),
            "route-type" => route.kind = r.word(&at, value, &RouteType::WORDS),
            "source" => route.source = r.ip(&at, value),
            "mtu" => {
                route.mtu = r.int(&at, value, 1, u32::MAX.into()).and_then(|n| u32::try_from(n).ok());
            }
            _ => r.unread(&at, UNSUPPORTED.contains(&key), value),
        }
    }
    // The kernel takes 0 for "none said" there.
    if route.destination.is_some_and(|net| Family::of_net(&net) == Family::Ipv6) {
        route.metric = route.metric.map(|metric| if metric == 0 { IPV6_METRIC } else { metric });
    }
    if !route.absent {
        check(r, path, &route, map);
    }
    Some(route)
}

/// Whether the parts of a route that shall exist fit together.
fn check(r: &mut Reader, path: &Path<'_>, route: &DesiredRoute, map: &Map<String, Value>) {
    let unicast = route.kind.unwrap_or(RouteType::Unicast) == RouteType::Unicast;
    if unicast && !map.contains_key("next-hop-interface") && !r.lenient {
        r.find(&path.key("next-hop-interface"), Reason::Missing);
    }
    if !unicast && route.via.flatten().is_some() {
        r.find(&path.key("next-hop-address"), Reason::Conflict { other: "route-type" });
    }
    let Some(destination) = route.destination else {
        if !map.contains_key("destination") {
            r.find(&path.key("destination"), Reason::Missing);
        }
        return;
    };
    let family = Family::of_net(&destination);
    let wanted = match family {
        Family::Ipv4 => "an IPv4 address, as the destination is",
        Family::Ipv6 => "an IPv6 address, as the destination is",
    };
    // IPv4 may lead over an IPv6 neighbour; the other way round nothing does.
    let across = |ip: &std::net::IpAddr| family == Family::Ipv4 && ip.is_ipv6();
    for (key, ip) in
        [("next-hop-address", route.via.flatten().filter(|ip| !across(ip))), ("source", route.source)]
    {
        if let Some(ip) = ip.filter(|ip| Family::of(ip) != family) {
            r.find(&path.key(key), Reason::Expected { wanted, found: ip.to_string() });
        }
    }
}

/// -1 means "the default".
pub(super) fn is_unset(value: &Value) -> bool {
    value.as_i64() == Some(-1) || value.as_str() == Some("-1")
}

/// A network; host bits are cleared, a bare address is a network of one.
pub(super) fn read_net(r: &mut Reader, path: &Path<'_>, value: &Value) -> Option<IpNet> {
    let text = r.text(path, value)?.trim();
    let net = match text.parse::<IpNet>() {
        Ok(net) => Some(net),
        Err(_) => text.parse().ok().map(|ip: std::net::IpAddr| IpNet::from(ip)),
    };
    if net.is_none() {
        r.find(path, Reason::Expected { wanted: "a network like 10.0.0.0/24", found: shown(value) });
    }
    net.map(|net| net.trunc())
}
