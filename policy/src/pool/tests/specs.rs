//! What a spec may say, and how a wrong one is refused: every error, with its path.

use super::*;

/// R2, D3: all errors at once, each with path and reason.
#[test]
fn r2_bounds_are_checked() {
    assert_eq!(
        errors("range: {cidr: 10.10.11.0/24, start: 10.10.11.4, end: 10.10.10.11.10}"),
        [r#"spec.range.end: "10.10.10.11.10" is not an IP address"#]
    );
    assert_eq!(
        errors(
            "ranges: [{name: a, cidr: 10.0.0.0/24}, {name: b, cidr: 10.0.0.0/24, start: 10.0.1.1, end: fd00::1}]"
        ),
        [
            "spec.ranges[1].start: 10.0.1.1 is not in 10.0.0.0/24",
            "spec.ranges[1].end: fd00::1 is not in 10.0.0.0/24"
        ]
    );
    assert_eq!(
        errors("range: {cidr: 10.0.0.0/24, start: 10.0.0.9, end: 10.0.0.8}"),
        ["spec.range.start: 10.0.0.9 is above end 10.0.0.8"]
    );
}

/// The API takes bounds between which there is nothing to give: so does the core, and gives nothing.
#[test]
fn bounds_around_nothing_give_nothing() {
    for (cidr, bounds, only) in [
        ("10.0.0.0/24", "start: 10.0.0.255", "10.0.0.255"),
        ("10.0.0.0/24", "end: 10.0.0.0", "10.0.0.0"),
        ("10.0.0.0/24", "start: 10.0.0.0, end: 10.0.0.0", "10.0.0.0"),
        ("fd00::/64", "end: 'fd00::'", "fd00::"),
    ] {
        let pool = pool(&format!("{{range: {{cidr: '{cidr}', {bounds}}}, staticBand: 9}}"));
        assert_eq!(
            warnings(&pool),
            [format!(
                "spec.range: no usable address in {only} to {only}: network and broadcast addresses are never given"
            )]
        );
        assert_eq!((pool.capacity(), pool.contains(ip(only))), (0, true), "{bounds}");
        let refused = next(&pool, &Taken::new(&pool), "n");
        assert!(matches!(refused, Err(NoAddress::Exhausted { .. })), "{refused:?}");
    }
}

fn warnings(pool: &Pool) -> Vec<String> {
    pool.warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn r2_both_bounds_are_inclusive() {
    let pool = pool("range: {cidr: 10.10.10.0/24, start: 10.10.10.1, end: 10.10.10.10}");
    for (text, inside) in
        [("10.10.10.0", false), ("10.10.10.1", true), ("10.10.10.10", true), ("10.10.10.11", false)]
    {
        assert_eq!(pool.contains(ip(text)), inside, "{text}");
    }
}

#[test]
fn networks_that_are_no_pool() {
    let of = |cidr: &str| errors(&format!("range: {{cidr: '{cidr}'}}"));
    assert_eq!(
        of("10.0.0.0"),
        [r#"spec.range.cidr: "10.0.0.0" is not a CIDR such as 10.0.0.0/24 or fd00::/64"#]
    );
    assert_eq!(
        of("10.0.0.0/33"),
        [r#"spec.range.cidr: "10.0.0.0/33" is not a CIDR such as 10.0.0.0/24 or fd00::/64"#]
    );
    assert_eq!(
        of("0.0.0.0/0"),
        ["spec.range.cidr: 0.0.0.0/0 is larger than a /8; split it into the parts that are yours"]
    );
    assert_eq!(
        of("239.0.0.0/8"),
        ["spec.range.cidr: 239.0.0.0/8 holds multicast addresses, which no host can have"]
    );
    assert_eq!(
        of("ff02::/16"),
        ["spec.range.cidr: ff02::/16 holds multicast addresses, which no host can have"]
    );
    assert_eq!(
        of("127.0.0.0/24"),
        ["spec.range.cidr: 127.0.0.0/24 holds loopback addresses, which no host can have"]
    );
    assert_eq!(
        of("::ffff:10.0.0.0/120"),
        ["spec.range.cidr: ::ffff:10.0.0.0/120 is IPv4 written as IPv6; write it as IPv4"]
    );
}

#[test]
fn exclusions_and_gateway_are_checked() {
    assert_eq!(
        errors(
            "range: {cidr: 10.0.0.0/24, exclude: [10.0.0.4, ten, 10.0.1.4, 10.0.0.0/16], gateway: 10.0.1.1}"
        ),
        [
            "spec.range.gateway: 10.0.1.1 is not in 10.0.0.0/24",
            r#"spec.range.exclude[1]: "ten" is neither an IP address nor a CIDR"#,
            "spec.range.exclude[2]: 10.0.1.4 is not in 10.0.0.0/24",
            "spec.range.exclude[3]: 10.0.0.0/16 is not inside 10.0.0.0/24",
        ]
    );
}

#[test]
fn the_form_is_checked() {
    assert_eq!(errors("{}"), ["spec: exactly one of range and ranges must be set"]);
    assert_eq!(errors("ranges: []"), ["spec.ranges: must list at least one range"]);
    assert_eq!(
        errors("{range: {cidr: 10.0.0.0/24}, ranges: [{name: a, cidr: 10.0.1.0/24}]}"),
        ["spec: exactly one of range and ranges must be set"]
    );
    assert_eq!(
        errors("{range: {cidr: 7, strat: x, skipOctetEnds: 1}, staticBand: some, quarantine: 5}"),
        [
            "spec.range.strat: unknown field; known here: name, cidr, start, end, exclude, gateway, ipv4, ipv6, \
             skipOctetEnds, perNodeHostBits, nodeSelector, attributes, state",
            "spec.range.cidr: must be a string, not 7",
            "spec.range.skipOctetEnds: must be true or false, not 1",
            "spec.quarantine: must be a string, not 5",
            r#"spec.staticBand: "some" must be Auto, None or a number"#,
        ]
    );
    assert_eq!(
        errors(
            "ranges: [{cidr: 10.0.0.0/24}, {name: A, cidr: 10.0.1.0/24}, {name: b, cidr: 10.0.2.0/24}, {name: b, cidr: 10.0.3.0/24}]"
        ),
        [
            "spec.ranges[0].name: is required",
            r#"spec.ranges[1].name: "A" must be one DNS label: a-z, 0-9 and '-', at most 63, no dot, no '-' at either end"#,
            "spec.ranges[3].name: b is the name of another range too",
        ]
    );
    assert_eq!(
        errors("range: {state: Gone, cidr: 10.0.0.0/24}"),
        [r#"spec.range.state: "Gone" must be Active or Draining"#]
    );
    assert_eq!(
        errors("{range: {cidr: 10.0.0.0/24}, quarantine: 5 min}"),
        [r#"spec.quarantine: "5 min" is not a duration such as 90s, 5m or 1h30m"#]
    );
    assert_eq!(
        errors("{range: {cidr: 10.0.0.0/24}, quarantine: 0s}"),
        ["spec.quarantine: 0s is too short: must be at least 1s"]
    );
}

/// R78: a range has IPv4, IPv6 or both.
#[test]
fn r78_families() {
    assert_eq!(errors("range: {skipOctetEnds: true}"), ["spec.range: set cidr, or ipv4 and/or ipv6"]);
    assert_eq!(
        errors("range: {cidr: 10.0.0.0/24, ipv6: {cidr: 'fd00::/64'}}"),
        ["spec.range: set cidr, or ipv4 and/or ipv6, not both"]
    );
    assert_eq!(
        errors("range: {ipv4: {cidr: 'fd00::/64'}, ipv6: {cidr: 'fd00::/64', start: 'fd01::1'}}"),
        [
            "spec.range.ipv4.cidr: fd00::/64 is IPv6; here belongs IPv4",
            "spec.range.ipv6.start: fd01::1 is not in fd00::/64",
        ]
    );
    let pool = pool("range: {ipv6: {cidr: 'fd00::/64'}, skipOctetEnds: true}");
    assert_eq!(
        pool.warnings()[0].to_string(),
        "spec.range.skipOctetEnds: concerns IPv4 only and this range has none"
    );
}

#[test]
fn reservations_are_checked() {
    let yaml =
        "{range: {cidr: 10.0.0.0/24, end: 10.0.0.20, gateway: 10.0.0.1, exclude: [10.0.0.9]}, reservations: [
        {node: a, ip: 10.0.0.2}, {node: b, ip: 10.0.0.2}, {node: c, ip: 10.0.1.1}, {node: '', ip: x}]}";
    assert_eq!(
        errors(yaml),
        [
            "spec.reservations[1].ip: 10.0.0.2 is already reserved, for node a",
            "spec.reservations[2].ip: 10.0.1.1 is in no range of this pool",
            "spec.reservations[3].node: is required",
            r#"spec.reservations[3].ip: "x" is not an IP address"#,
        ]
    );
    let pool = pool(
        "{range: {cidr: 10.0.0.0/24, end: 10.0.0.20, gateway: 10.0.0.1, exclude: [10.0.0.9]}, reservations: [
            {node: a, ip: 10.0.0.9}, {node: b, ip: 10.0.0.1}, {node: c, ip: 10.0.0.21}]}",
    );
    assert_eq!(
        warnings(&pool),
        [
            "spec.reservations[0].ip: 10.0.0.9 is excluded: it will never be given, to a neither",
            "spec.reservations[1].ip: 10.0.0.1 is the gateway of a range: it will never be given, to b neither",
            "spec.reservations[2].ip: 10.0.0.21 is in the network of a range, but not from its start to its end: c won't get it",
        ]
    );
    assert!(["a", "b", "c"].iter().all(|node| pool.reservations_for(node).is_empty()));
}

#[test]
fn selectors_are_checked() {
    let yaml = "ranges: [{name: a, cidr: 10.0.0.0/24, nodeSelector: {nodeSelectorTerms: [
        {matchExpressions: [{key: rack, operator: Is, values: [r1]}, {key: rack, operator: In}, {key: rack, operator: Exists, values: [x]},
                            {key: size, operator: Gt, values: [big]}],
         matchFields: [{key: metadata.uid, operator: In, values: [x]}, {key: metadata.name, operator: Exists}]}]}},
        {name: b, cidr: 10.0.1.0/24, nodeSelector: {}}]";
    assert_eq!(errors(yaml), ["spec.ranges[1].nodeSelector.nodeSelectorTerms: is required"]);
    assert_eq!(
        errors(&yaml.replace(", nodeSelector: {}", "")),
        [
            r#"spec.ranges[0].nodeSelector.nodeSelectorTerms[0].matchExpressions[0].operator: "Is" must be In, NotIn, Exists, DoesNotExist, Gt or Lt"#,
            "spec.ranges[0].nodeSelector.nodeSelectorTerms[0].matchExpressions[1].values: In must list at least one value",
            "spec.ranges[0].nodeSelector.nodeSelectorTerms[0].matchExpressions[2].values: Exists takes no values",
            "spec.ranges[0].nodeSelector.nodeSelectorTerms[0].matchExpressions[3].values: Gt takes exactly one value, an integer",
            r#"spec.ranges[0].nodeSelector.nodeSelectorTerms[0].matchFields[0].key: "metadata.uid" is not a field to select by; only metadata.name is"#,
            "spec.ranges[0].nodeSelector.nodeSelectorTerms[0].matchFields[1].operator: Exists can't be used with a field; only In and NotIn can",
        ]
    );
}

#[test]
fn a_manifest_is_read_whole() {
    let yaml = "{apiVersion: nmstate.io/v1, kind: NodeIPPool, metadata: {name: traffic-1},
        spec: {range: {cidr: 10.0.0.0/24, attributes: {vlan: '120'}}, staticBand: 5, quarantine: 1h30m}}";
    let spec: PoolSpec = serde_saphyr::from_str(yaml).unwrap();
    assert_eq!((spec.name.as_str(), spec.static_band), ("traffic-1", StaticBand::Count(5)));
    let pool = Pool::new(&spec).unwrap();
    assert_eq!((pool.name(), pool.quarantine()), ("traffic-1", 5400));
    assert_eq!(pool.ranges()[0].name(), SINGLE);
    let refused = |yaml: &str| serde_saphyr::from_str::<PoolSpec>(yaml).unwrap_err().to_string();
    assert!(
        refused("{kind: Pod, metadata: {name: a}, spec: {range: {cidr: x}}}")
            .contains("kind: is Pod, not NodeIPPool")
    );
    assert!(refused("{metadata: {}, spec: {}}").contains("metadata.name: is required"));
    let dotted = PoolSpec { name: "a.b".into(), ..spec };
    assert!(
        Pool::new(&dotted)
            .unwrap_err()
            .to_string()
            .starts_with(r#"metadata.name: "a.b" must be one DNS label"#)
    );
}

#[test]
fn durations() {
    let of = |text: &str| {
        Pool::new(&PoolSpec { quarantine: Some(text.into()), ..spec("range: {cidr: 10.0.0.0/24}") })
            .map(|p| p.quarantine())
            .ok()
    };
    let good = [
        ("1s", 1),
        ("1000ms", 1),
        ("1001ms", 2),
        ("0.99999s0.00001s", 1),
        ("1.00001s", 2),
        ("0.00028h", 2),
        ("1.5h", 5400),
        ("5m1h", 3900),
        ("30s30s", 60),
        ("0h1s0ms", 1),
        ("99999h99999h99999h99999h99999h", 1_799_982_000),
        ("90s", 90),
        ("5m", 300),
        ("5m0s", 300),
        ("1h", 3600),
        ("1h0m5s", 3605),
    ];
    for (text, seconds) in good {
        assert_eq!(of(text), Some(seconds), "{text}");
    }
    for text in [
        "",
        "5",
        "m",
        "-5m",
        "+5m",
        "0s",
        "5ms",
        "0.99999s",
        ".5h",
        "1.h",
        "1.000001s",
        "100000s",
        "5us",
        "1m s",
        "99999999999999999999s",
        "é",
    ] {
        assert_eq!(of(text), None, "{text}");
    }
    assert_eq!(pool("range: {cidr: 10.0.0.0/24}").quarantine(), 300);
}

/// R16: where two pools meet.
#[test]
fn overlapping_pools_are_seen() {
    let a = pool("range: {cidr: 10.0.0.0/24, end: 10.0.0.99}");
    let b = pool(
        "ranges: [{name: first, cidr: 'fd00::/64'}, {name: second, cidr: 10.0.0.0/23, start: 10.0.0.99}]",
    );
    let c = pool("range: {cidr: 10.0.0.0/24, start: 10.0.0.100}");
    assert_eq!((a.overlaps(&b), b.overlaps(&a)), (Some(ip("10.0.0.99")), Some(ip("10.0.0.99"))));
    assert_eq!(a.overlaps(&c), None);
}
