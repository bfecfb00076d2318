//! Offsets and addresses: the seed's tables as decided (D1, D2), and the bijection.

use proptest::prelude::*;

use super::*;

fn table(pool: &Pool, rows: &[(u128, &str, bool)]) {
    for (offset, address, excluded) in rows {
        assert_eq!(pool.address_at(*offset), Some(ip(address)), "offset {offset}");
        assert_eq!(pool.offset_of(ip(address)), Some(*offset), "{address}");
        let status = pool.explain(ip(address));
        assert_eq!(matches!(status, Status::Excluded(_)), *excluded, "{address}: {status}");
    }
}

#[test]
fn r4_r5_offset_zero_is_start_and_excluded_keep_theirs() {
    let pool = pool(
        "range: {cidr: 10.10.10.0/24, start: 10.10.10.1, end: 10.10.10.10, exclude: [10.10.10.4, 10.10.10.7]}",
    );
    let held = [0, 1, 2, 4, 5, 7].map(|offset| pool.address_at(offset).unwrap());
    assert_eq!(held, [1, 2, 3, 5, 6, 8].map(|n| ip(&format!("10.10.10.{n}"))));
    table(&pool, &[(3, "10.10.10.4", true), (6, "10.10.10.7", true)]);
    assert!(pool.lists_offsets());
}

#[test]
fn r6_the_24_table() {
    let pool = pool(
        "range: {cidr: 10.10.11.0/24, start: 10.10.11.4, end: 10.10.11.10, exclude: [10.10.11.5, 10.10.11.7]}",
    );
    table(
        &pool,
        &[
            (0, "10.10.11.4", false),
            (1, "10.10.11.5", true),
            (2, "10.10.11.6", false),
            (3, "10.10.11.7", true),
            (4, "10.10.11.8", false),
            (5, "10.10.11.9", false),
            (6, "10.10.11.10", false),
        ],
    );
    assert_eq!(pool.address_at(7), None);
    assert_eq!(pool.offset_of(ip("10.10.11.11")), None);
    assert_eq!(pool.offset_of(ip("10.10.11.3")), None);
}

/// The /16 table, also D1 (linear across .255 and .0) and D4 (host bits in the CIDR).
#[test]
fn r7_the_16_table() {
    let pool = pool(
        "range: {cidr: 10.10.11.0/16, start: 10.10.11.4, end: 10.10.12.10, exclude: [10.10.11.5, 10.10.12.7]}",
    );
    table(
        &pool,
        &[
            (0, "10.10.11.4", false),
            (1, "10.10.11.5", true),
            (250, "10.10.11.254", false),
            (251, "10.10.11.255", false),
            (252, "10.10.12.0", false),
            (253, "10.10.12.1", false),
            (259, "10.10.12.7", true),
            (262, "10.10.12.10", false),
        ],
    );
    assert_eq!(pool.address_at(263), None);
    let warnings: Vec<String> = pool.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["spec.range.cidr: 10.10.11.0/16 has host bits set; read as 10.10.0.0/16"]);
}

/// D1: octet ends are excluded on request, and keep their offsets.
#[test]
fn skipped_octet_ends_keep_their_offsets() {
    let pool = pool("range: {cidr: 10.10.0.0/16, start: 10.10.11.4, end: 10.10.12.10, skipOctetEnds: true}");
    table(
        &pool,
        &[
            (250, "10.10.11.254", false),
            (251, "10.10.11.255", true),
            (252, "10.10.12.0", true),
            (253, "10.10.12.1", false),
        ],
    );
    assert_eq!(pool.capacity(), 263 - 2);
    assert_eq!(drain(&pool, &mut Taken::new(&pool)).len(), 261);
}

/// The IPv6 table; D2.
#[test]
fn r8_the_ipv6_table() {
    let pool = pool(
        "range: {cidr: '2001:4860:4860::/116', start: '2001:4860:4860::000F', end: '2001:4860:4860::00FF',
                 exclude: ['2001:4860:4860::0010', '2001:4860:4860::001F']}",
    );
    table(
        &pool,
        &[
            (0, "2001:4860:4860::f", false),
            (1, "2001:4860:4860::10", true),
            (16, "2001:4860:4860::1f", true),
            (17, "2001:4860:4860::20", false),
            (240, "2001:4860:4860::ff", false),
        ],
    );
    assert_eq!(pool.address_at(241), None);
}

/// R1: pools side by side count on their own.
#[test]
fn r1_two_pools_have_independent_offsets() {
    let one = pool("range: {cidr: 10.10.10.0/24}");
    let two = pool("range: {cidr: 10.10.11.0/24}");
    assert_eq!((one.address_at(0), two.address_at(0)), (Some(ip("10.10.10.1")), Some(ip("10.10.11.1"))));
    assert_eq!(one.overlaps(&two), None);
}

#[test]
fn defaults_are_first_and_last_usable() {
    let ends = |yaml: &str| {
        let pool = pool(yaml);
        let part = pool.ranges()[0].parts().next().unwrap().clone();
        (part.start().to_string(), part.end().to_string(), pool.capacity())
    };
    let want = |a: &str, b: &str, n| (a.to_owned(), b.to_owned(), n);
    assert_eq!(ends("range: {cidr: 10.0.0.0/24}"), want("10.0.0.1", "10.0.0.254", 254));
    assert_eq!(ends("range: {cidr: 10.0.0.0/30}"), want("10.0.0.1", "10.0.0.2", 2));
    assert_eq!(ends("range: {cidr: 10.0.0.0/31}"), want("10.0.0.0", "10.0.0.1", 2));
    assert_eq!(ends("range: {cidr: 10.0.0.7/32}"), want("10.0.0.7", "10.0.0.7", 1));
    assert_eq!(
        ends("range: {cidr: 'fd00::/64'}"),
        want("fd00::1", "fd00::ffff:ffff:ffff:ffff", (1 << 64) - 1)
    );
    assert_eq!(ends("range: {cidr: 'fd00::/127'}"), want("fd00::", "fd00::1", 2));
}

/// Named by start or end, network and broadcast keep their offsets and are still nobody's.
#[test]
fn network_and_broadcast_are_never_given() {
    let pool = pool("range: {cidr: 10.0.0.0/29, start: 10.0.0.0, end: 10.0.0.7}");
    table(&pool, &[(0, "10.0.0.0", true), (1, "10.0.0.1", false), (7, "10.0.0.7", true)]);
    assert_eq!(pool.capacity(), 6);
    assert_eq!(drain(&pool, &mut Taken::new(&pool)).len(), 6);
}

/// Offsets beyond what a JSON number holds exactly are not listed; short lists are.
#[test]
fn lists_offsets_only_where_they_fit() {
    assert!(!pool("range: {cidr: 'fd00::/64'}").lists_offsets());
    assert!(pool("range: {cidr: 'fd00::/64', end: 'fd00::ffff:ffff'}").lists_offsets());
    assert!(!pool("ranges: [{name: a, cidr: 10.0.0.0/24}]").lists_offsets());
    assert!(!pool("range: {ipv4: {cidr: 10.0.0.0/24}, ipv6: {cidr: 'fd00::/64'}}").lists_offsets());
}

proptest! {
    /// R9: a bijection on start..=end, nothing outside; starts near octet and 64-bit edges included.
    #[test]
    fn r9_offset_and_address_are_a_bijection(
        edge in prop::sample::select(vec![
            "10.1.255.250", "10.0.255.255", "10.128.0.0", "2001:db8:0:1:ffff:ffff:ffff:fff0", "2001:db8:0:1::", "2001:db8::fffe",
        ]),
        back in 0_u128..300, width in 1_u128..100_000, probe in 0_u128..100_000,
    ) {
        let (family, number) = split(ip(edge));
        let (start, end) = (number - back, number - back + width);
        let cidr = if family == Family::V4 { "10.0.0.0/8" } else { "2001:db8::/32" };
        let yaml = format!("range: {{cidr: '{cidr}', start: '{}', end: '{}'}}", family.address(start), family.address(end));
        let pool = pool(&yaml);
        let offset = probe % (width + 1);
        let address = pool.address_at(offset).unwrap();
        prop_assert_eq!(split(address).1, start + offset);
        prop_assert_eq!(pool.offset_of(address), Some(offset));
        prop_assert_eq!(pool.address_at(width + 1), None);
        prop_assert_eq!(pool.offset_of(family.address(end + 1)), None);
        prop_assert_eq!(pool.offset_of(family.address(start - 1)), None);
    }
}
