//! A route that changes is never away: not for a reader that looks all the time, and not in what the kernel tells.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use agent::netns::Namespace;
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::ground::Ground;

const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_APPEND: u16 = 0x800;
const RTA_DST: u16 = 1;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_MULTIPATH: u16 = 9;

/// A notification about a route to the destination that is looked at.
#[derive(Debug)]
struct Told {
    gone: bool,
    flags: u16,
    metric: u32,
    /// Gateway, or the ways, as they came.
    ways: Vec<Vec<u8>>,
}

fn number(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn attributes(mut bytes: &[u8]) -> BTreeMap<u16, &[u8]> {
    let mut all = BTreeMap::new();
    while bytes.len() >= 4 {
        let length = usize::from(number(bytes, 0));
        all.insert(number(bytes, 2) & 0x3fff, &bytes[4..length]);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    all
}

/// The gateways of `RTA_MULTIPATH`.
fn gateways(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while bytes.len() >= 8 {
        let length = usize::from(number(bytes, 0));
        all.extend(attributes(&bytes[8..length]).get(&RTA_GATEWAY).map(|gateway| gateway.to_vec()));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    all
}

/// A socket of the test's own, told of all routes.
struct Listener(netlink_sys::Socket);

impl Listener {
    fn new(ground: &Ground) -> Self {
        let open = || {
            let mut socket = netlink_sys::Socket::new(NETLINK_ROUTE).unwrap();
            socket.bind_auto().unwrap();
            socket.set_rx_buf_sz(4i32 << 20).unwrap();
            // Routes of IPv4 and of IPv6.
            socket.add_membership(7).unwrap();
            socket.add_membership(11).unwrap();
            socket.set_non_blocking(true).unwrap();
            Self(socket)
        };
        Namespace::Named(ground.name.clone()).inside(open).unwrap()
    }

    /// All that was told so far about routes to there. Nothing was lost: that would be an error here.
    fn take(&self, to: &[u8]) -> Vec<Told> {
        let mut told = Vec::new();
        loop {
            let datagram = match self.0.recv_from_full() {
                Ok((datagram, _)) => datagram,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return told,
                Err(error) => panic!("{error}"),
            };
            let mut rest = datagram.as_slice();
            while rest.len() >= 16 {
                let length = u32::from_ne_bytes(rest[..4].try_into().unwrap()) as usize;
                let (kind, flags) = (number(rest, 4), number(rest, 6));
                if [RTM_NEWROUTE, RTM_DELROUTE].contains(&kind) {
                    let found = attributes(&rest[16 + 12..length]);
                    let mut ways = found.get(&RTA_MULTIPATH).map_or(Vec::new(), |ways| gateways(ways));
                    ways.extend(found.get(&RTA_GATEWAY).map(|gateway| gateway.to_vec()));
                    let metric =
                        found.get(&RTA_PRIORITY).map_or(0, |m| u32::from_ne_bytes((*m).try_into().unwrap()));
                    if found.get(&RTA_DST).is_some_and(|dst| *dst == to) {
                        told.push(Told { gone: kind == RTM_DELROUTE, flags, metric, ways });
                    }
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// Plays what was told from nothing on; fails where nothing is left in between.
#[track_caller]
fn never_away(told: &[Told]) {
    let mut ways: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
    for (place, one) in told.iter().enumerate() {
        let there = ways.entry(one.metric).or_default();
        if one.gone {
            there.retain(|way| !one.ways.contains(way));
        } else {
            if one.flags & NLM_F_APPEND == 0 || one.flags & NLM_F_REPLACE != 0 {
                there.clear();
            }
            there.extend(one.ways.iter().cloned());
        }
        let left: usize = ways.values().map(Vec::len).sum();
        assert!(left > 0, "gone after {place} of {told:#?}");
    }
}

/// Applies one document after the other while somebody looks all the time.
fn change_in_place(ground: &Ground, probe: &str, to: &[u8], documents: &[String]) {
    let listener = Listener::new(ground);
    ground.apply(&documents[0]).ok();
    let (done, looks) = (AtomicBool::new(false), AtomicUsize::new(0));
    let missed = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut missed = 0;
            while !done.load(Ordering::Relaxed) {
                missed += usize::from(ground.try_ip(probe).code != 0);
                looks.fetch_add(1, Ordering::Relaxed);
            }
            missed
        });
        // However slow this machine is: until there was somebody who looked.
        while looks.load(Ordering::Relaxed) < 20 {
            documents.iter().for_each(|document| drop(ground.apply(document).ok()));
        }
        done.store(true, Ordering::Relaxed);
        watcher.join().unwrap()
    });
    assert_eq!(missed, 0, "missed in {looks:?} looks");
    let told = listener.take(to);
    assert!(told.len() >= documents.len(), "told only {told:#?}");
    never_away(&told);
}

/// One way each, by gateway and metric; the old is asked to go, as people write it.
fn one_way(to: &str, via: &str, metric: usize) -> String {
    format!(
        "routes: {{config: [{{destination: '{to}', state: absent}}, {{destination: '{to}', next-hop-address: \
         '{via}', next-hop-interface: eth0, metric: {metric}}}]}}"
    )
}

/// Several ways of one route.
fn ways(to: &str, hops: &[&str]) -> String {
    let hop = |via: &&str| {
        format!(
            "{{destination: '{to}', next-hop-address: '{via}', next-hop-interface: eth0, metric: 200, weight: 1}}"
        )
    };
    let list: Vec<String> = hops.iter().map(hop).collect();
    format!("routes: {{config: [{{destination: '{to}', state: absent}}, {}]}}", list.join(", "))
}

fn node() -> (Ground, Ground) {
    let (ground, far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    ground.ip("addr add fd00::1/64 dev eth0 nodad");
    (ground, far)
}

/// The test's own eyes: one that goes and comes again is told so.
#[test]
#[should_panic(expected = "gone after 1")]
fn a_gap_is_seen() {
    let (ground, _far) = node();
    let listener = Listener::new(&ground);
    ground.ip("route add 10.9.0.0/16 via 10.0.0.251");
    ground.ip("route del 10.9.0.0/16");
    ground.ip("route add 10.9.0.0/16 via 10.0.0.252");
    never_away(&listener.take(&[10, 9, 0, 0]));
}

/// 5: another next hop, and another metric.
#[test]
fn routes_of_ipv4() {
    let (ground, _far) = node();
    let via = |turn: usize| if turn.is_multiple_of(2) { "10.0.0.251" } else { "10.0.0.252" };
    let documents: Vec<String> =
        (0..9).map(|turn| one_way("10.9.0.0/16", via(turn), 100 + turn / 4)).collect();
    change_in_place(&ground, "route get 10.9.1.1", &[10, 9, 0, 0], &documents);
    assert_eq!(ground.routes("-4"), ["10.9.0.0/16 via 10.0.0.251 dev eth0 metric 102"]);
}

#[test]
fn routes_of_ipv6() {
    let (ground, _far) = node();
    let via = |turn: usize| if turn.is_multiple_of(2) { "fd00::fe" } else { "fd00::fd" };
    let documents: Vec<String> = (0..9).map(|turn| one_way("fd09::/32", via(turn), 100 + turn / 4)).collect();
    let mut to = [0; 16];
    to[..2].copy_from_slice(&[0xfd, 0x09]);
    change_in_place(&ground, "-6 route get fd09::1", &to, &documents);
    assert_eq!(ground.routes("-6"), ["fd09::/32 via fd00::fe dev eth0 metric 102 pref medium"]);
}

#[test]
fn routes_with_several_ways() {
    let (ground, _far) = node();
    let turns: [&[&str]; 5] = [&["1", "2"], &["2", "3"], &["4"], &["1", "2", "3"], &["3", "4"]];
    let documents = |net: &str, to: &str| -> Vec<String> {
        let hops = |turn: &&[&str]| turn.iter().map(|last| format!("{net}25{last}")).collect::<Vec<_>>();
        turns
            .iter()
            .map(|turn| ways(to, &hops(turn).iter().map(String::as_str).collect::<Vec<_>>()))
            .collect()
    };
    change_in_place(&ground, "route get 10.9.1.1", &[10, 9, 0, 0], &documents("10.0.0.", "10.9.0.0/16"));
    let mut to = [0; 16];
    to[..2].copy_from_slice(&[0xfd, 0x09]);
    change_in_place(&ground, "-6 route get fd09::1", &to, &documents("fd00::", "fd09::/32"));
}
