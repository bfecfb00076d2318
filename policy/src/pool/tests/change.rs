//! What may change in a spec (R11, R61, R62, R94, D9).

use super::*;

fn refused(old: &str, new: &str, held: &[&str]) -> Vec<String> {
    let held: Vec<IpAddr> = held.iter().map(|text| ip(text)).collect();
    match change(&spec(old), &spec(new), &held) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

const IMMUTABLE: &str = "can't change: a range is immutable; add another to ranges and drain this one";

#[test]
fn r11_a_range_is_immutable() {
    let old = "range: {cidr: 10.0.0.0/24, start: 10.0.0.5, end: 10.0.0.9, gateway: 10.0.0.1, attributes: {vlan: '1'}}";
    let cases = [
        ("10.0.0.0/24", "10.0.0.0/23", "cidr"),
        ("10.0.0.5", "10.0.0.4", "start"),
        ("10.0.0.9", "10.0.0.10", "end"),
        ("gateway: 10.0.0.1", "gateway: 10.0.0.2", "gateway"),
        (", gateway: 10.0.0.1", "", "gateway"),
        ("vlan: '1'", "vlan: '2'", "attributes"),
        ("gateway: 10.0.0.1", "gateway: 10.0.0.1, skipOctetEnds: true", "skipOctetEnds"),
        ("gateway: 10.0.0.1", "gateway: 10.0.0.1, perNodeHostBits: 0", "perNodeHostBits"),
    ];
    for (from, to, field) in cases {
        let found = refused(old, &old.replace(from, to), &[]);
        assert_eq!(found, [format!("spec.range.{field}: {IMMUTABLE}")], "{from} → {to}");
    }
    assert_eq!(refused(old, old, &[]), [""; 0]);
}

/// R94: selectors, host bits and families too.
#[test]
fn r94_selectors_and_families_are_immutable() {
    let old = "ranges: [{name: a, ipv4: {cidr: 10.0.0.0/24}, ipv6: {cidr: 'fd00::/64'}}]";
    let selector = "ranges: [{name: a, ipv4: {cidr: 10.0.0.0/24}, ipv6: {cidr: 'fd00::/64'}, nodeSelector: {nodeSelectorTerms: []}}]";
    assert_eq!(refused(old, selector, &[]), [format!("spec.ranges[0].nodeSelector: {IMMUTABLE}")]);
    let four = "ranges: [{name: a, cidr: 10.0.0.0/24}]";
    assert_eq!(refused(old, four, &[]), [format!("spec.ranges[0].ipv6: {IMMUTABLE}")]);
    let moved = "ranges: [{name: a, ipv4: {cidr: 10.0.0.0/24}, ipv6: {cidr: 'fd01::/64'}}]";
    assert_eq!(refused(old, moved, &[]), [format!("spec.ranges[0].ipv6.cidr: {IMMUTABLE}")]);
}

/// D11: the same addresses with the default written out would have another band.
#[test]
fn a_default_written_out_is_a_change() {
    let found = refused(
        "range: {cidr: 10.0.0.0/22}",
        "range: {cidr: 10.0.0.0/22, start: 10.0.0.1, end: 10.0.3.254}",
        &[],
    );
    assert_eq!(found, [format!("spec.range.start: {IMMUTABLE}")]);
}

#[test]
fn what_may_change() {
    let old = "{range: {cidr: 10.0.0.0/24, exclude: [10.0.0.4, 10.0.0.5]}}";
    let more = "{range: {cidr: 10.0.0.0/24, exclude: [10.0.0.4/30], state: Draining}, staticBand: None, quarantine: 1h,
                 reservations: [{node: a, ip: 10.0.0.9}]}";
    assert_eq!(refused(old, more, &["10.0.0.6"]), [""; 0]);
    let less = "range: {cidr: 10.0.0.0/24, exclude: [10.0.0.5]}";
    assert_eq!(refused(old, less, &[]), ["spec.range.exclude: can't lose 10.0.0.4: exclude may only grow"]);
}

/// R60, R62, R74, R75: grow by adding, shrink by draining what others cover.
#[test]
fn r62_ranges_come_and_go() {
    let old = "ranges: [{name: a, cidr: 10.0.0.0/24}]";
    let both = "ranges: [{name: a, cidr: 10.0.0.0/24, state: Draining}, {name: b, cidr: 10.0.0.0/23}]";
    let new = "ranges: [{name: b, cidr: 10.0.0.0/23}]";
    assert_eq!(refused(old, both, &["10.0.0.9"]), [""; 0]);
    assert_eq!(refused(both, new, &["10.0.0.9"]), [""; 0]);
    assert_eq!(
        refused(old, new, &[]),
        ["spec.ranges: range a is gone: set its state to Draining before removing it"]
    );
    let elsewhere = "ranges: [{name: b, cidr: 10.0.1.0/24}]";
    let draining = "ranges: [{name: a, cidr: 10.0.0.0/24, state: Draining}, {name: b, cidr: 10.0.1.0/24}]";
    assert_eq!(refused(draining, elsewhere, &["10.0.1.9"]), [""; 0]);
    assert_eq!(
        refused(draining, elsewhere, &["10.0.1.9", "10.0.0.9"]),
        [
            "spec.ranges: range a is gone while 10.0.0.9 is held in it and no other range covers it; release it first"
        ]
    );
}

/// R62, R64, R74, R75: idle is what drains and has nothing of its own.
#[test]
fn r62_r64_r74_r75_ranges_that_could_go() {
    let of = |text: &str, held: &[&str]| -> Vec<String> {
        let held: Vec<IpAddr> = held.iter().map(|text| ip(text)).collect();
        pool(text).idle(held.into_iter(), std::iter::empty()).into_iter().map(str::to_owned).collect()
    };
    let apart = "ranges: [{name: a, cidr: 10.0.0.0/24, state: Draining}, {name: b, cidr: 10.0.1.0/24}]";
    assert_eq!(of(apart, &["10.0.1.9"]), ["a"]);
    assert_eq!(of(apart, &["10.0.1.9", "10.0.0.9"]), [""; 0]);
    let grown = "ranges: [{name: a, cidr: 10.0.0.0/24, state: Draining}, {name: b, cidr: 10.0.0.0/23}]";
    assert_eq!(of(grown, &["10.0.0.9"]), ["a"], "another has it");
    let shrunk = "ranges: [{name: a, cidr: 10.0.0.0/23, state: Draining}, {name: b, cidr: 10.0.0.0/24}]";
    assert_eq!(of(shrunk, &["10.0.0.9"]), ["a"]);
    assert_eq!(of(shrunk, &["10.0.0.9", "10.0.1.9"]), [""; 0], "a straggler");
    // Two that drain don't cover for each other: both could go at once.
    let third = "ranges: [{name: a, cidr: 10.0.0.0/24, state: Draining}, {name: b, cidr: 10.0.0.0/23, state: Draining},
        {name: c, cidr: 10.0.0.0/24, start: 10.0.0.100}]";
    assert_eq!(of(third, &["10.0.0.9"]), [""; 0]);
    assert_eq!(of(third, &["10.0.0.100"]), ["a", "b"]);
    assert_eq!(of(third, &["10.0.0.100", "10.0.1.9"]), ["a"]);
    let active = "ranges: [{name: a, cidr: 10.0.0.0/24}, {name: b, cidr: 10.0.1.0/24}]";
    assert_eq!(of(active, &[]), [""; 0]);
    assert!(pool(apart).is_draining("a") && !pool(apart).is_draining("b") && !pool(apart).is_draining("c"));
}

/// R62, R64: in a sliced pool a range is idle when no slice is cut of it, whether or not anything in one is held; also the slice
/// around the network's own address and its broadcast address, which are no host's.
#[test]
fn r62_r64_a_sliced_range_could_go_when_its_slices_are_gone() {
    let of = |text: &str, slices: &[&str]| -> Vec<String> {
        let slices: Vec<IpNet> = slices.iter().map(|text| text.parse().unwrap()).collect();
        pool(text).idle(std::iter::empty(), slices.into_iter()).into_iter().map(str::to_owned).collect()
    };
    let two = "ranges: [{name: a, cidr: 10.0.0.0/24, perNodeHostBits: 4, state: Draining}, {name: b, cidr: 10.0.1.0/24, perNodeHostBits: 4}]";
    assert_eq!(of(two, &["10.0.1.0/28"]), ["a"]);
    for slice in ["10.0.0.0/28", "10.0.0.16/28", "10.0.0.240/28"] {
        assert_eq!(of(two, &[slice]), [""; 0], "{slice}");
    }
    let whole = "ranges: [{name: a, cidr: 10.0.0.0/28, perNodeHostBits: 4, state: Draining}, {name: b, cidr: 'fd00::/64', perNodeHostBits: 4}]";
    assert_eq!(of(whole, &["10.0.0.0/28"]), [""; 0], "it is all of the range");
    assert_eq!(of(whole, &["fd00::/124"]), ["a"], "of the other family");
}

#[test]
fn a_single_range_may_become_several() {
    let old = "range: {cidr: 10.0.0.0/24, exclude: [10.0.0.4]}";
    let kept = "ranges: [{name: first, cidr: 10.0.0.0/24, exclude: [10.0.0.4, 10.0.0.5]}, {name: more, cidr: 10.0.1.0/24}]";
    assert_eq!(refused(old, kept, &[]), [""; 0]);
    let lost = "ranges: [{name: first, cidr: 10.0.0.0/23, exclude: [10.0.0.4]}]";
    let second =
        "ranges: [{name: more, cidr: 10.0.1.0/24}, {name: first, cidr: 10.0.0.0/24, exclude: [10.0.0.4]}]";
    for new in [lost, second] {
        assert_eq!(
            refused(old, new, &[]),
            ["spec.ranges: the first of ranges must be what range was, unchanged"]
        );
    }
    assert_eq!(refused(kept, old, &[]), ["spec.range: ranges can't become a single range again"]);
}

/// A new spec must be valid by itself; an old one that never was may be replaced.
#[test]
fn invalid_specs() {
    let bad = PoolSpec {
        range: Some(RangeSpec { block: Some(BlockSpec::new("nonsense")), ..RangeSpec::default() }),
        ..spec("range: {cidr: 10.0.0.0/24}")
    };
    let good = spec("range: {cidr: 10.0.0.0/24}");
    assert!(change(&good, &bad, &[]).unwrap_err()[0].to_string().starts_with("spec.range.cidr:"));
    assert_eq!(change(&bad, &good, &[]), Ok(()));
}
