//! Who answers for an address on the wire (rule 10): real packets between namespaces.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use agent::netlink::Placed;
use agent::netns::Namespace;
use agent::wire::{self, Answers, Taken, Timing, Unasked};
use policy::state::{IfName, Mac};

use crate::ground::Ground;

fn at(link: &str, ip: &str) -> Placed {
    Placed { link: IfName::new(link).unwrap(), ip: ip.parse::<IpAddr>().unwrap() }
}

fn inside<T: Send>(ground: &Ground, work: impl FnOnce() -> T + Send) -> T {
    ground.name.parse::<Namespace>().unwrap().inside(work).unwrap()
}

fn ask(ground: &Ground, places: &[Placed], timing: &str) -> Answers {
    let timing: Timing = timing.parse().unwrap();
    inside(ground, || wire::ask(places, timing, &|_| false, &|| false))
}

fn mac(ground: &Ground, link: &str) -> Mac {
    ground.json(&format!("link show dev {link}"))[0]["address"].as_str().unwrap().parse().unwrap()
}

#[test]
fn rule10_who_has_an_address_is_heard_and_what_nobody_has_is_free() {
    let (near, far) = Ground::with_cards(1);
    far.ip("addr add 10.10.10.5/24 dev far0");
    let answers = ask(&near, &[at("eth0", "10.10.10.5"), at("eth0", "10.10.10.6")], "2s");
    let taken = Taken { at: at("eth0", "10.10.10.5"), mac: Some(mac(&far, "far0")) };
    assert_eq!(answers, Answers { taken: vec![taken], unasked: Vec::new() });
}

/// On a VLAN's device, on a bridge and on its port: where the address is to be is where it is asked for.
#[test]
fn rule10_behind_a_bridge_and_on_it() {
    let (near, far) = Ground::with_cards(2);
    near.ip("link add br0 type bridge");
    near.ip("link set br0 up");
    for card in ["eth0", "eth1"] {
        near.ip(&format!("link set {card} master br0"));
    }
    near.wait_until("it forwards", || near.json("link show dev br0")[0]["operstate"] == "UP");
    far.ip("addr add 10.10.10.5/24 dev far1");
    let answers = ask(&near, &[at("br0", "10.10.10.5"), at("br0", "10.10.10.6")], "2s");
    // Both ends of the far host are on this wire, and Linux answers for its addresses on any of them.
    let macs = [mac(&far, "far0"), mac(&far, "far1")];
    assert_eq!(answers.taken.len(), 1, "{answers:?}");
    assert_eq!(answers.taken[0].at, at("br0", "10.10.10.5"));
    assert!(macs.contains(&answers.taken[0].mac.unwrap()), "{answers:?}");
    assert!(answers.unasked.is_empty());
}

/// Another card of this very host answers: that is no other side.
#[test]
fn rule10_what_this_host_has_itself_is_not_anothers() {
    let ground = Ground::new();
    ground.ip("link add eth0 type veth peer name eth1");
    ground.ip("link set eth0 up");
    ground.ip("link set eth1 up");
    ground.ip("addr add 10.10.10.5/24 dev eth1");
    ground.wait_until("a carrier", || ground.json("link show dev eth0")[0]["operstate"] == "UP");
    let answers = ask(&ground, &[at("eth0", "10.10.10.5")], "300ms");
    assert_eq!(answers, Answers::default());
}

/// RFC 5227, 2.1.1: of two who are about to use an address at the same time, one hears the other and leaves it, or both do.
#[test]
fn rule10_of_two_that_probe_at_the_same_time_not_both_have_it() {
    let (near, far) = Ground::with_cards(1);
    let (ours, theirs) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| ask(&far, &[at("far0", "10.10.10.5")], "4s"));
        let ours = ask(&near, &[at("eth0", "10.10.10.5")], "4s");
        (ours, theirs.join().unwrap())
    });
    let taken = |link: &str, mac| vec![Taken { at: at(link, "10.10.10.5"), mac: Some(mac) }];
    // Who hears the other asks no more, so that one may hear nothing.
    assert!(!(ours.taken.is_empty() && theirs.taken.is_empty()));
    assert!(ours.taken.is_empty() || ours.taken == taken("eth0", mac(&far, "far0")), "{ours:?}");
    assert!(theirs.taken.is_empty() || theirs.taken == taken("far0", mac(&near, "eth0")), "{theirs:?}");
}

/// No carrier, no ARP, no such link, no wish: said, and not waited for.
#[test]
fn rule10_where_nobody_can_be_asked_that_is_said_at_once() {
    let (near, far) = Ground::with_cards(3);
    far.ip("link set far0 down");
    near.ip("link set eth1 arp off");
    near.wait_until("no carrier", || near.json("link show dev eth0")[0]["operstate"] != "UP");
    let places = [
        at("eth0", "10.10.10.5"),
        at("eth1", "10.10.10.6"),
        at("eth9", "10.10.10.7"),
        at("lo", "10.10.10.8"),
    ];
    let begin = Instant::now();
    let answers = ask(&near, &places, "10s");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let whys: Vec<String> = answers.unasked.iter().map(|(at, why)| format!("{}: {why}", at.ip)).collect();
    assert_eq!(
        whys,
        [
            "10.10.10.5: eth0 has no carrier",
            "10.10.10.6: there is no ARP on eth1",
            "10.10.10.7: eth9: there is no such link",
            "10.10.10.8: there is no ARP on lo",
        ]
    );
    assert!(matches!(answers.unasked[0].1, Unasked::NoCarrier(_)));
    assert!(answers.taken.is_empty());
    far.ip("addr add 10.10.10.9/24 dev far2");
    assert_eq!(ask(&near, &[at("eth2", "10.10.10.9")], "off"), Answers::default());
}

/// A link that was set up a moment ago is waited for.
#[test]
fn rule10_a_fresh_link_is_asked_once_it_has_a_carrier() {
    let (near, far) = Ground::with_cards(1);
    far.ip("addr add 10.10.10.5/24 dev far0");
    far.ip("link set far0 down");
    near.wait_until("no carrier", || near.json("link show dev eth0")[0]["operstate"] != "UP");
    let answers = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let timing: Timing = "2s".parse().unwrap();
            inside(&near, || wire::ask(&[at("eth0", "10.10.10.5")], timing, &|_| true, &|| false))
        });
        far.ip("link set far0 up");
        asking.join().unwrap()
    });
    assert_eq!(answers.taken.len(), 1, "{answers:?}");
}

/// However many addresses on however many links: the time of one.
#[test]
fn rule10_many_are_asked_for_in_the_time_of_one() {
    let (near, far) = Ground::with_cards(4);
    far.ip("addr add 10.10.3.20/24 dev far3");
    let many = (0..4)
        .flat_map(|card| (1..=20).map(move |ip| at(&format!("eth{card}"), &format!("10.10.{card}.{ip}"))));
    let places: Vec<Placed> = many.collect();
    let begin = Instant::now();
    let answers = ask(&near, &places, "1s");
    let took = begin.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(20), "{took:?}");
    let taken: Vec<IpAddr> = answers.taken.iter().map(|taken| taken.at.ip).collect();
    assert_eq!(taken, ["10.10.3.20".parse::<IpAddr>().unwrap()]);
}

/// Whoever remembers somebody else for an address learns who has it now.
#[test]
fn rule10_an_announcement_changes_what_others_remember() {
    let (near, far) = Ground::with_cards(1);
    far.ip("addr add 10.10.10.1/24 dev far0");
    far.ip("neigh replace 10.10.10.5 lladdr 02:00:00:00:00:01 nud stale dev far0");
    near.ip("addr add 10.10.10.5/24 dev eth0");
    assert!(inside(&near, || wire::announce(&[at("eth0", "10.10.10.5")])).is_empty());
    let now = mac(&near, "eth0").to_string().to_lowercase();
    far.wait_until("it is known", || far.ip("neigh show 10.10.10.5 dev far0").contains(&now));
}

/// The kernel says that an IPv6 address is another's, and not whose.
#[test]
fn rule10_the_owner_of_an_ipv6_address_is_found() {
    let (near, far) = Ground::with_cards(1);
    far.ip("addr add fd00::5/64 dev far0 nodad");
    let found = inside(&near, || wire::neighbour(&at("eth0", "fd00::5")));
    assert_eq!(found, Some(mac(&far, "far0")));
    assert_eq!(inside(&near, || wire::neighbour(&at("eth0", "fd00::6"))), None);
}
