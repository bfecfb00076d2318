//! What is given, what never is, and what a refusal says.

use std::collections::BTreeSet;

use super::*;

/// R3: .1 to .10 without .4 and .7 is eight addresses, then exhaustion.
#[test]
fn r3_eight_and_no_more() {
    let pool = pool(
        "range: {cidr: 10.10.10.0/24, start: 10.10.10.1, end: 10.10.10.10, exclude: [10.10.10.4, 10.10.10.7]}",
    );
    let mut taken = Taken::new(&pool);
    let mut given = drain(&pool, &mut taken);
    given.sort();
    assert_eq!(given, [1, 2, 3, 5, 6, 8, 9, 10].map(|n| ip(&format!("10.10.10.{n}"))));
    assert_eq!(
        next(&pool, &taken, "node99").unwrap_err().to_string(),
        "pool traffic-1 is exhausted: no address left for node node99 in range default (IPv4); add a range, or free addresses"
    );
}

#[test]
fn r3_exclusions_may_be_networks() {
    let pool = pool("range: {cidr: 10.0.0.0/28, exclude: [10.0.0.8/29, 10.0.0.1]}");
    assert_eq!(drain(&pool, &mut Taken::new(&pool)).len(), 6);
    assert_eq!(pool.capacity(), 6);
}

/// R19: the prefix length is the CIDR's; gateway and attributes come along.
#[test]
fn r19_prefix_length_gateway_and_attributes() {
    let pool = pool(
        "ranges: [{name: rack-1, cidr: 10.10.10.0/24, start: 10.10.10.1, end: 10.10.10.10, gateway: 10.10.10.254, attributes: {vlan: '120'}}]",
    );
    let choice = next(&pool, &Taken::new(&pool), "node01").unwrap();
    let given = choice.v4.clone().unwrap();
    assert_eq!((given.prefix_length, given.gateway), (24, Some(ip("10.10.10.254"))));
    assert_eq!((choice.range.as_str(), choice.kind, choice.v6), ("rack-1", Kind::Dynamic, None));
    assert_eq!(choice.attributes, labels(&[("vlan", "120")]));
    assert_eq!(pool.explain(ip("10.10.10.254")), Status::Gateway { range: "rack-1".into() });
}

/// R53: the same node finds the same address after a total loss of state; others' exclusions don't move it.
#[test]
fn r53_the_choice_is_stable() {
    let small = pool("range: {cidr: 10.0.0.0/16}");
    let more = pool(
        "{range: {cidr: 10.0.0.0/16, exclude: [10.0.0.0/24]}, reservations: [{node: other, ip: 10.0.200.7}]}",
    );
    let (a, b) = (Taken::new(&small), Taken::new(&more));
    let (mut same, mut distinct) = (0, BTreeSet::new());
    for i in 0..100 {
        let node = format!("node{i}");
        let first = next(&small, &a, &node).unwrap();
        assert_eq!(next(&small, &a, &node).unwrap(), first);
        same += u32::from(next(&more, &b, &node).unwrap() == first);
        distinct.insert(address(&first));
    }
    assert!(same >= 99, "{same} of 100 kept their address");
    assert!(distinct.len() >= 98, "{} distinct of 100", distinct.len());
}

#[test]
fn a_reservation_comes_first_and_is_nobody_elses() {
    let pool = pool(
        "{range: {cidr: 10.0.0.0/29}, reservations: [{node: node01, ip: 10.0.0.3}, {node: node01, ip: 10.0.0.5}]}",
    );
    let mut taken = Taken::new(&pool);
    let mut mine = || {
        let choice = next(&pool, &taken, "node01").unwrap();
        taken.insert(address(&choice));
        (choice.kind, address(&choice))
    };
    assert_eq!(mine(), (Kind::Reserved, ip("10.0.0.3")));
    assert_eq!(mine(), (Kind::Reserved, ip("10.0.0.5")));
    assert_eq!(mine().0, Kind::Dynamic);
    let mut others = Taken::new(&pool);
    let given = drain(&pool, &mut others);
    assert_eq!(given.len(), 4);
    assert!(!given.contains(&ip("10.0.0.3")) && !given.contains(&ip("10.0.0.5")));
    assert_eq!(pool.capacity(), 6);
    assert_eq!(pool.explain(ip("10.0.0.3")), Status::Reserved { node: "node01".into() });
    let exactly =
        |node| next_of(&pool, &Taken::new(&pool), &Barred::default(), node, Want::Exactly(ip("10.0.0.3")));
    assert_eq!(exactly("node01").unwrap().kind, Kind::Reserved);
    assert_eq!(
        exactly("node02").unwrap_err().to_string(),
        "10.0.0.3 of pool traffic-1 is reserved for node node01"
    );
}

/// A reservation beats selector and rank, not a drain.
#[test]
fn a_reservation_names_its_range() {
    let yaml = |state: &str| {
        format!(
            "{{ranges: [{{name: all, cidr: 10.0.0.0/28}}, {{name: vip, cidr: 10.0.1.0/24, state: {state},
              nodeSelector: {{nodeSelectorTerms: [{{matchExpressions: [{{key: vip, operator: Exists}}]}}]}}}}],
              reservations: [{{node: node01, ip: 10.0.1.9}}]}}"
        )
    };
    let active = pool(&yaml("Active"));
    let choice = next(&active, &Taken::new(&active), "node01").unwrap();
    assert_eq!((choice.range.as_str(), address(&choice)), ("vip", ip("10.0.1.9")));
    let draining = pool(&yaml("Draining"));
    assert_eq!(next(&draining, &Taken::new(&draining), "node01").unwrap().range, "all");
}

#[test]
fn declined_and_barred_are_passed_over() {
    let pool = pool("range: {cidr: 10.0.0.0/29}");
    let other = super::pool("range: {cidr: 10.0.0.0/30}");
    let (taken, none) = (Taken::of(&pool, [ip("10.0.0.6")]), BTreeMap::new());
    let mut barred = Barred::default();
    barred.pool(&other);
    let mut declined = Vec::new();
    let refused = (0..8).find_map(|_| {
        let holder = Holder { node: "n", capture: "c", declined: &declined, want: Want::Any };
        let view = PoolView { pool: &pool, taken: &taken, barred: &barred };
        let answer = choose(&view, &holder, &NodeView { name: "n", labels: &none });
        answer.map(|choice| declined.push(address(&choice))).err()
    });
    assert!(matches!(refused, Some(NoAddress::Exhausted { .. })), "{refused:?}");
    let mut got = declined;
    got.sort();
    // .1 and .2 are the other pool's, .6 is held.
    assert_eq!(got, ["10.0.0.3", "10.0.0.4", "10.0.0.5"].map(ip));
    let literal = next_of(&pool, &taken, &barred, "n", Want::Exactly(ip("10.0.0.1"))).unwrap_err();
    assert_eq!(
        literal.to_string(),
        "10.0.0.1 of pool traffic-1 belongs to pool traffic-1 too, so nobody gets it; make the two disjoint"
    );
}

/// A barred network that reaches the end of all addresses, and one around the whole pool.
#[test]
fn barred_networks_may_be_any_size() {
    let pool = pool("range: {cidr: 'fd00::/64'}");
    let barred: Barred = [("::/0".parse().unwrap(), "everything".to_owned())].into_iter().collect();
    let error = next_of(&pool, &Taken::new(&pool), &barred, "n", Want::Any).unwrap_err();
    assert_eq!(
        error.to_string(),
        "pool traffic-1 is exhausted: no address left for node n in range default (IPv6); addresses there belong to \
         everything too, so nobody gets them: make them disjoint, add a range, or free addresses"
    );
    let view = PoolView { pool: &pool, taken: &Taken::new(&pool), barred: &barred };
    assert_eq!(view.counts().available, 0);
}

/// R102: a refusal names those who own what could be given otherwise, and only those.
#[test]
fn a_refusal_says_who_else_owns_the_addresses() {
    let pool = pool("ranges: [{name: a, cidr: 10.0.0.0/29}, {name: b, cidr: 10.0.1.0/29, state: Draining}]");
    let full = Taken::of(&pool, (1..7).map(|n| ip(&format!("10.0.0.{n}"))));
    let refusal = |nets: &[&str]| {
        let owned = nets.iter().map(|net| (net.parse().unwrap(), format!("network {net}")));
        let barred: Barred = owned.collect();
        next_of(&pool, &full, &barred, "n", Want::Any).unwrap_err().to_string()
    };
    let (before, after) = (
        "pool traffic-1 is exhausted: no address left for node n in range a (IPv4); ",
        "add a range, or free addresses",
    );
    // Neither the network address, nor a range that drains, nor the other family counts.
    assert_eq!(refusal(&["10.0.0.0/32", "10.0.1.0/24", "::/0"]), format!("{before}{after}"));
    let five = ["10.0.0.6/32", "10.0.0.2/32", "10.0.0.2/32", "10.0.0.1/32", "10.0.0.3/32"];
    assert_eq!(
        refusal(&five),
        format!(
            "{before}addresses there belong to network 10.0.0.1/32, network 10.0.0.2/32, network 10.0.0.3/32 and 1 more \
             too, so nobody gets them: make them disjoint, {after}"
        )
    );
}

/// R63: overlapping ranges never give one address twice; an exclusion of one holds for all.
#[test]
fn r63_overlapping_ranges_share_their_addresses() {
    let pool = pool(
        "ranges: [{name: a, cidr: 10.0.0.0/28, exclude: [10.0.0.5]}, {name: b, cidr: 10.0.0.0/27, gateway: 10.0.0.1},
                  {name: c, cidr: 10.0.0.8/29}]",
    );
    let given = drain(&pool, &mut Taken::new(&pool));
    let distinct: BTreeSet<_> = given.iter().collect();
    // .1 to .30 without gateway and exclusion.
    assert_eq!((given.len(), distinct.len()), (28, 28));
    assert_eq!(pool.capacity(), 28);
}

#[test]
fn r64_draining_ranges_give_nothing_new() {
    let pool = pool("ranges: [{name: a, cidr: 10.0.0.0/28, state: Draining}, {name: b, cidr: 10.0.1.0/28}]");
    let mut taken = Taken::new(&pool);
    assert!(drain(&pool, &mut taken).iter().all(|ip| pool.range_of(*ip).unwrap().name() == "b"));
    let literal = next_of(&pool, &Taken::new(&pool), &Barred::default(), "n", Want::Exactly(ip("10.0.0.3")))
        .unwrap_err();
    assert_eq!(
        literal.to_string(),
        "10.0.0.3 of pool traffic-1 is in range a, which drains and gives nothing new"
    );
    let all = super::pool("range: {cidr: 10.0.0.0/28, state: Draining}");
    assert_eq!(
        next(&all, &Taken::new(&all), "n").unwrap_err().to_string(),
        "pool traffic-1 gives nothing to node n: default drains; add a range"
    );
}

#[test]
fn literals_that_can_never_be_had() {
    let pool = pool(
        "range: {cidr: 10.0.0.0/23, gateway: 10.0.0.1, exclude: [10.0.0.7], skipOctetEnds: true, start: 10.0.0.0}",
    );
    let why =
        |text| match next_of(&pool, &Taken::new(&pool), &Barred::default(), "n", Want::Exactly(ip(text))) {
            Err(error) => error.to_string(),
            Ok(choice) => panic!("{choice:?}"),
        };
    let refused = "can't be had from pool traffic-1:";
    assert_eq!(why("10.0.0.1"), format!("10.0.0.1 {refused} it is the gateway of range default"));
    assert_eq!(why("10.0.0.7"), format!("10.0.0.7 {refused} range default excludes it"));
    assert_eq!(why("10.0.0.255"), format!("10.0.0.255 {refused} range default skips octet ends"));
    assert_eq!(
        why("10.0.0.0"),
        format!("10.0.0.0 {refused} it is the network or broadcast address of range default")
    );
}

/// R77: an IPv6 /64, filled far beyond its static band.
#[test]
fn r77_ipv6_64() {
    let pool = pool("range: {cidr: 'fd12:3456:789a:1::/64'}");
    let mut taken = Taken::new(&pool);
    for i in 0..2000 {
        let choice = next(&pool, &taken, &format!("node{i}")).unwrap();
        let given = choice.v6.unwrap();
        assert_eq!(given.prefix_length, 64);
        assert!(matches!(pool.explain(given.ip), Status::Dynamic { .. }));
        assert!(taken.insert(given.ip));
    }
    assert_eq!(pool.capacity(), (1 << 64) - 1);
    let view = PoolView { pool: &pool, taken: &taken, barred: &Barred::default() };
    assert_eq!(view.counts().available, (1 << 64) - 2001);
}

/// R77: the last free address of a window in a /64, at offsets that old limits (a /112) didn't reach.
#[test]
fn r77_the_last_free_address_of_a_window() {
    let pool = pool(
        "{range: {cidr: 'fd00::/64', start: 'fd00::ffff:ffff:ffff:f000', end: 'fd00::ffff:ffff:ffff:ffff'}, staticBand: None}",
    );
    let part = pool.ranges()[0].parts().next().unwrap();
    for offset in [0, 1, 1234, 4095] {
        let last = part.address_at(offset).unwrap();
        let others = (0..=part.last_offset()).filter_map(|other| part.address_at(other));
        let mut taken = Taken::of(&pool, others.filter(|other| *other != last));
        assert_eq!(taken.len(), 4095);
        assert_eq!(address(&next(&pool, &taken, "n").unwrap()), last);
        taken.insert(last);
        assert!(matches!(next(&pool, &taken, "n"), Err(NoAddress::Exhausted { .. })));
    }
}

/// R92: both families or none: a full second family gives back the first.
#[test]
fn r92_both_families_or_the_next_range() {
    let pool = pool(
        "ranges: [{name: dual, ipv4: {cidr: 10.0.0.0/29}, ipv6: {cidr: 'fd00::/126'}}, {name: six, cidr: 'fd00::/64', start: 'fd00::1:0'}]",
    );
    // Three IPv6 addresses, six IPv4: three claims, though IPv4 has room.
    let mut taken = Taken::new(&pool);
    let mut ranges = Vec::new();
    for i in 0..6 {
        let choice = next(&pool, &taken, &format!("node{i}")).unwrap();
        assert_eq!(choice.v4.is_some(), choice.range == "dual");
        assert!(choice.v6.is_some());
        taken.extend(choice.given().map(|given| given.ip));
        ranges.push(choice.range);
    }
    assert_eq!(ranges, ["dual", "dual", "dual", "six", "six", "six"]);
    let full = super::pool("range: {ipv4: {cidr: 10.0.0.0/29}, ipv6: {cidr: 'fd00::/126'}}");
    let mut taken = Taken::new(&full);
    assert_eq!(drain(&full, &mut taken).len(), 6);
    let error = next(&full, &taken, "n").unwrap_err();
    assert!(error.to_string().contains("range default (IPv6)"), "{error}");
}

/// R92: what is left of a dual-stack range's IPv6 side, once its IPv4 is used up, another range gives.
#[test]
fn r92_the_left_over_family_is_another_ranges_to_give() {
    let pool = pool(
        "ranges: [{name: dual, ipv4: {cidr: 10.0.0.0/29}, ipv6: {cidr: 'fd00::/124'}}, {name: six, cidr: 'fd00::/124'}]",
    );
    let mut taken = Taken::new(&pool);
    let given = drain(&pool, &mut taken);
    // Six pairs, and the nine IPv6 addresses that there was no IPv4 for: each of the fifteen once.
    assert_eq!(given.iter().filter(|ip| ip.is_ipv4()).count(), 6);
    let six: BTreeSet<IpAddr> = given.iter().filter(|ip| ip.is_ipv6()).copied().collect();
    assert_eq!((six.len(), given.len()), (15, 21));
}
