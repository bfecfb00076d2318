//! Which range speaks for an address that is held.

use super::ranks::selector;
use super::*;

/// The names of the ranges that speak for a claim of node `n1`, which is in rack r1.
fn speakers_of(pool: &Pool, want: Want, ips: &[&str]) -> Vec<String> {
    let (ips, labels): (Vec<IpAddr>, _) =
        (ips.iter().map(|text| ip(text)).collect(), labels(&[("rack", "r1")]));
    let speakers = pool.speakers(&NodeView { name: "n1", labels: &labels }, want, &ips);
    speakers.into_iter().map(|range| range.map(Range::name).unwrap_or_default().to_owned()).collect()
}

fn speaker(yaml: &str, text: &str) -> String {
    speakers_of(&pool(yaml), Want::Any, &[text]).concat()
}

fn racks(any: &str, rack: &str) -> String {
    format!(
        "ranges: [{{name: any, cidr: 10.0.0.0/16, gateway: 10.0.0.1{any}}},
          {{name: rack, cidr: 10.0.1.0/24, gateway: 10.0.1.1{rack}, {}}}]",
        selector(&[("rack", "r1")])
    )
}

/// R63, R85: of ranges that overlap, the one that is for the node, wherever it stands in the spec; who is in no rack has it of
/// the other.
#[test]
fn r63_r85_the_range_that_is_for_the_node() {
    let yaml = racks("", "");
    assert_eq!(speaker(&yaml, "10.0.1.9"), "rack");
    assert_eq!(speaker(&yaml, "10.0.2.9"), "any");
    let (pool, none) = (pool(&yaml), BTreeMap::new());
    let other = pool.speakers(&NodeView { name: "n2", labels: &none }, Want::Any, &[ip("10.0.1.9")]);
    assert_eq!(other[0].map(Range::name), Some("any"));
    assert_eq!(speakers_of(&pool, Want::Any, &["10.9.0.1"]), [""], "no range has it");
}

/// R64, R74: what gives speaks before what drains, and where both drain the one for the node.
#[test]
fn r64_r74_what_gives_before_what_drains() {
    let shrunk =
        "ranges: [{name: wide, cidr: 10.0.0.0/23, state: Draining}, {name: narrow, cidr: 10.0.0.0/24}]";
    assert_eq!(speaker(shrunk, "10.0.0.9"), "narrow");
    assert_eq!(speaker(shrunk, "10.0.1.9"), "wide");
    assert_eq!(speaker(&racks("", ", state: Draining"), "10.0.1.9"), "any");
    assert_eq!(speaker(&racks(", state: Draining", ", state: Draining"), "10.0.1.9"), "rack");
}

/// The broadcast address of a narrow range is no host's there; who has it has it of the wide one.
#[test]
fn who_cannot_have_given_it_does_not_speak() {
    let yaml = racks("", "");
    assert_eq!(speaker(&yaml, "10.0.1.255"), "any");
    let drained = racks(", state: Draining", "");
    assert_eq!(speaker(&drained, "10.0.1.255"), "any");
    assert_eq!(speaker(&drained, "10.0.1.9"), "rack");
}

/// R92: a claim of both families is of a range that has both, one of one family of a range that has one; a literal address is
/// one, whatever its range has (R51). Where the range that gave both is gone, each has its own.
#[test]
fn r92_as_many_families_as_the_claim_has() {
    let pool = pool(
        "ranges: [{name: dual, ipv4: {cidr: 10.0.0.0/25}, ipv6: {cidr: 'fd00::/64'}},
          {name: four, cidr: 10.0.0.0/24}, {name: six, cidr: 'fd01::/64'}]",
    );
    let of = |ips: &[&str]| speakers_of(&pool, Want::Any, ips);
    assert_eq!(of(&["10.0.0.9", "fd00::9"]), ["dual", "dual"]);
    assert_eq!(of(&["10.0.0.9"]), ["four"]);
    assert_eq!(speakers_of(&pool, Want::Exactly(ip("10.0.0.9")), &["10.0.0.9"]), ["dual"]);
    assert_eq!(of(&["10.0.0.200", "fd01::9"]), ["four", "six"]);
    assert_eq!(of(&["10.0.0.200", "fd02::9"]), ["four", ""]);
}

/// Of all that is given until nothing is left, the range that gave it speaks, in the same words.
#[test]
fn r87_r90_what_is_chosen_is_told_as_it_was_chosen() {
    let yaml = format!(
        "{{ranges: [{{name: any, cidr: 10.0.0.0/24, gateway: 10.0.0.1}},
          {{name: odd, cidr: 10.0.0.64/26, gateway: 10.0.0.66, {rack}}},
          {{name: near, cidr: 10.0.0.96/27, start: 10.0.0.98, {both}}},
          {{name: old, cidr: 10.0.0.0/23, state: Draining}},
          {{name: dual, ipv4: {{cidr: 10.0.0.64/28}}, ipv6: {{cidr: 'fd00::/124'}}, {rack}}}],
          reservations: [{{node: n1, ip: 10.0.0.99}}, {{node: n1, ip: 10.0.0.7}}]}}",
        rack = selector(&[("rack", "r1")]),
        both = selector(&[("rack", "r1"), ("kind", "k1")]),
    );
    let (pool, racked, close) =
        (pool(&yaml), labels(&[("rack", "r1")]), labels(&[("rack", "r1"), ("kind", "k1")]));
    let none = BTreeMap::new();
    let (mut taken, mut seen) = (Taken::new(&pool), BTreeSet::new());
    let literal = |number: usize| Want::Exactly(ip(&format!("10.0.0.{}", 60 + number % 60)));
    for number in 0..600 {
        let labels = [&racked, &close, &none][number % 3];
        let want = if number % 4 == 3 { literal(number) } else { Want::Any };
        let holder = Holder { node: "n1", capture: &number.to_string(), declined: &[], want };
        let node = NodeView { name: "n1", labels };
        let view = PoolView { pool: &pool, taken: &taken, barred: &Barred::default() };
        let Ok(choice) = choose(&view, &holder, &node) else { continue };
        let ips: Vec<IpAddr> = choice.given().map(|given| given.ip).collect();
        for (given, range) in choice.given().zip(pool.speakers(&node, want, &ips)) {
            let range = range.expect("a range");
            assert_eq!(range.name(), choice.range, "{ips:?} {labels:?} {want:?}");
            let part = range.part(Family::of(given.ip)).expect("its family");
            assert_eq!((part.prefix_length(), part.gateway()), (given.prefix_length, given.gateway));
        }
        taken.extend(ips);
        seen.insert(choice.range);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["any", "dual", "near", "odd"]);
}
