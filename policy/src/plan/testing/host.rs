//! A host: bare cards, then steps as they fall; what the kernel would refuse doesn't happen.

use super::{CARDS, Dice};
use crate::plan::{NewLink, Step, memory};
use crate::state::option::{OptValue, Options};
use crate::state::route::MAIN_TABLE;
use crate::state::{
    Address, Dns, Family, Hostname, IfName, Lifetime, Link, LinkKind, Mac, NextHop, Observed, Raw, Route,
    RouteProtocol, RouteType, Rule,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) fn host(dice: &mut Dice<'_>) -> Observed {
    let mut host = Observed {
        hostname: Hostname { running: Some("host".into()), config: Some("host".into()) },
        // As from a lease: it runs, and nobody configured it.
        running_dns: Dns { servers: vec!["192.0.2.1".into()], ..Dns::default() },
        ..Observed::default()
    };
    let mut lo = Link::new(name("lo"), LinkKind::Loopback);
    (lo.up, lo.mtu) = (true, Some(65536));
    lo.ipv4.addresses.push(Address::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8));
    lo.ipv6.addresses.push(Address::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 128));
    host.insert(lo);
    for (i, card) in CARDS.iter().enumerate() {
        let mut link = Link::new(name(card), LinkKind::Ethernet);
        let last = u8::try_from(i + 1).unwrap_or(1);
        let mac = Mac([2, 0, 0, 0, 0, last]);
        (link.mac, link.permanent_mac) = (Some(mac), Some(mac));
        (link.mtu, link.min_mtu, link.max_mtu) = (Some(1500), Some(68), Some(9216));
        link.up = !dice.once_in(5);
        link.ipv6
            .addresses
            .push(Address::new(IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last.into())), 64));
        host.insert(link);
    }
    for _ in 0..dice.roll(24) {
        let step = step(dice, &host);
        // What the kernel refuses has not happened.
        let _ = memory::apply(&mut host, &step);
        // A kernel says the MTU of every link; memory doesn't know what it would give one that sits on nothing.
        host.links.values_mut().for_each(|link| link.mtu = link.mtu.or(Some(1500)));
    }
    if dice.once_in(3) {
        host.dns.servers = vec!["192.0.2.2".into()];
        host.running_dns = host.dns.clone();
    }
    host
}

#[expect(clippy::expect_used, reason = "the names in this module are literals")]
fn name(text: &str) -> IfName {
    IfName::new(text).expect("a literal of the right length")
}

/// A link that is there, any of them but the loopback.
fn some_link(dice: &mut Dice<'_>, host: &Observed) -> IfName {
    let names: Vec<_> = host.links.keys().filter(|n| n.as_str() != "lo").collect();
    (*dice.pick(&names)).clone()
}

pub(super) fn address(dice: &mut Dice<'_>, family: Family) -> Address {
    let net = u8::try_from(dice.roll(4)).unwrap_or(0);
    let host = u8::try_from(dice.roll(5) + 1).unwrap_or(1);
    match family {
        Family::Ipv4 => {
            let prefix = *dice.pick(&[24, 24, 24, 16]);
            Address::new(IpAddr::V4(Ipv4Addr::new(10, net, 0, host)), prefix)
        }
        Family::Ipv6 => {
            let ip = Ipv6Addr::new(0x2001, 0xdb8, net.into(), 0, 0, 0, 0, host.into());
            Address::new(IpAddr::V6(ip), 64)
        }
    }
}

fn step(dice: &mut Dice<'_>, host: &Observed) -> Step {
    match dice.roll(10) {
        0..=3 => {
            let family = *dice.pick(&Family::BOTH);
            let mut address = address(dice, family);
            if dice.once_in(6) {
                address.lifetime = Some(Lifetime { valid: 3600, preferred: 1800 });
            }
            Step::AddAddress { link: some_link(dice, host), address }
        }
        4 | 5 => create(dice, host),
        6 => {
            let controllers: Vec<_> = ["br0", "br1", "bond0", "vrf0"].iter().map(|n| name(n)).collect();
            Step::Attach { link: some_link(dice, host), controller: dice.pick(&controllers).clone() }
        }
        7 | 8 => Step::AddRoute { route: route(dice, host) },
        _ => match dice.roll(3) {
            0 => Step::SetUp { link: some_link(dice, host) },
            1 => Step::SetMtu { link: some_link(dice, host), mtu: *dice.pick(&[1500, 1400, 9000]) },
            _ => Step::AddRule { rule: rule(dice) },
        },
    }
}

fn create(dice: &mut Dice<'_>, host: &Observed) -> Step {
    let (link, kind) = *dice.pick(&super::MADE);
    let kind = LinkKind::from_name(kind);
    let mut options = Options::new();
    let mut set = |path: &str, value: OptValue| {
        if let Some(spec) = kind.spec().option(path) {
            options.insert(spec.name(), value);
        }
    };
    match kind {
        LinkKind::Vlan => set("id", OptValue::Int(if link == "vlan10" { 10 } else { 20 })),
        LinkKind::Bond => set("mode", OptValue::Text("active-backup".into())),
        LinkKind::MacVlan => set("mode", OptValue::Text("bridge".into())),
        LinkKind::Vrf => set("route-table-id", OptValue::Int(1000)),
        LinkKind::LinuxBridge => set("vlan-filtering", OptValue::Bool(false)),
        _ => {}
    }
    let base = kind.spec().base.then(|| some_link(dice, host));
    let peer = (kind == LinkKind::Veth).then(|| name("vb0"));
    let (attributes, kind_attributes, peer_attributes) = Default::default();
    let name = name(link);
    let new =
        NewLink { name, kind, base, peer, mac: None, options, attributes, kind_attributes, peer_attributes };
    Step::CreateLink(new)
}

fn route(dice: &mut Dice<'_>, host: &Observed) -> Route {
    let family = *dice.pick(&Family::BOTH);
    let destination = destination(dice, family);
    let mut next_hops: Vec<NextHop> = Vec::new();
    let hops = if dice.once_in(5) { 2 } else { 1 };
    for _ in 0..hops {
        let dev = some_link(dice, host);
        let subnet = host.links.get(&dev).and_then(|l| l.ip(family).addresses.first()).map(Address::subnet);
        let via = subnet.filter(|_| !dice.once_in(4)).and_then(|net| net.hosts().nth(200));
        let weight = if hops > 1 && dice.once_in(2) { 3 } else { 1 };
        if next_hops.iter().all(|h| h.dev != dev) {
            next_hops.push(NextHop { via, dev, weight, onlink: false });
        }
    }
    let blackhole = dice.once_in(8);
    if blackhole {
        next_hops.clear();
    }
    let mut route = Route {
        destination,
        table: *dice.pick(&[MAIN_TABLE, MAIN_TABLE, 1000]),
        metric: *dice.pick(&[100, 200, Route::default_metric(family)]),
        tos: 0,
        kind: if blackhole { RouteType::Blackhole } else { RouteType::Unicast },
        protocol: *dice.pick(&[RouteProtocol::STATIC, RouteProtocol::STATIC, RouteProtocol::UNSPEC]),
        next_hops,
        object: None,
        source: None,
        mtu: None,
        raw: Raw::default(),
    };
    route.settle_hops();
    route
}

pub(super) fn destination(dice: &mut Dice<'_>, family: Family) -> ipnet::IpNet {
    let choices = match family {
        Family::Ipv4 => ["0.0.0.0/0", "192.0.2.0/24", "198.51.100.0/24"],
        Family::Ipv6 => ["::/0", "2001:db8:100::/48", "2001:db8:200::/48"],
    };
    dice.pick(&choices).parse().unwrap_or(family.any())
}

fn rule(dice: &mut Dice<'_>) -> Rule {
    Rule {
        family: Family::Ipv4,
        priority: *dice.pick(&[1000, 1001, 30000]),
        from: Some(destination(dice, Family::Ipv4)).filter(|n| n.prefix_len() > 0),
        to: None,
        iif: None,
        fwmark: None,
        fwmask: None,
        table: Some(*dice.pick(&[254, 1000])),
        action: None,
        suppress_prefix_length: None,
        raw: Raw::default(),
    }
}
