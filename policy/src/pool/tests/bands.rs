//! The static band: KEP-3070 in pool terms.

use super::*;

fn bands(yaml: &str) -> (Option<(String, String)>, (String, String)) {
    let pool = pool(yaml);
    let part = pool.ranges()[0].parts().next().unwrap().clone();
    let text = |(a, b): (IpAddr, IpAddr)| (a.to_string(), b.to_string());
    (part.static_band().map(text), part.dynamic_band().map(text).unwrap_or_default())
}

fn want(lower: Option<(&str, &str)>, upper: (&str, &str)) -> (Option<(String, String)>, (String, String)) {
    let own = |(a, b): (&str, &str)| (a.to_owned(), b.to_owned());
    (lower.map(own), own(upper))
}

/// R45: never below 16, never above 256; D10: none up to 16.
#[test]
fn r45_r49_the_formula() {
    let cases = [
        (1, 0),
        (15, 0),
        (16, 0),
        (17, 16),
        (64, 16),
        (256, 16),
        (257, 16),
        (272, 17),
        (1024, 64),
        (4096, 256),
        (65536, 256),
        (1 << 64, 256),
    ];
    for (size, band) in cases {
        assert_eq!(StaticBand::Auto.of(size), band, "size {size}");
    }
    assert_eq!(StaticBand::None.of(1024), 0);
    assert_eq!(StaticBand::Count(100).of(1024), 100);
    assert_eq!(StaticBand::Count(100).of(10), 10);
}

#[test]
fn r46_r47_r48_the_examples() {
    let large = want(Some(("192.168.0.1", "192.168.1.0")), ("192.168.1.1", "192.168.255.254"));
    assert_eq!(bands("range: {cidr: 192.168.0.0/16}"), large);
    let middle = want(Some(("192.168.0.1", "192.168.0.64")), ("192.168.0.65", "192.168.3.254"));
    assert_eq!(bands("range: {cidr: 192.168.0.0/22}"), middle);
    let small = want(Some(("192.168.0.1", "192.168.0.16")), ("192.168.0.17", "192.168.0.62"));
    assert_eq!(bands("range: {cidr: 192.168.0.0/26}"), small);
}

/// D11: with start or end, the size is end − start + 1. 15, 16 and 17 addresses (D10).
#[test]
fn r49_small_ranges_have_no_band() {
    let with = |end: &str| bands(&format!("range: {{cidr: 10.0.0.0/24, start: 10.0.0.1, end: {end}}}"));
    assert_eq!(with("10.0.0.15"), want(None, ("10.0.0.1", "10.0.0.15")));
    assert_eq!(with("10.0.0.16"), want(None, ("10.0.0.1", "10.0.0.16")));
    assert_eq!(with("10.0.0.17"), want(Some(("10.0.0.1", "10.0.0.16")), ("10.0.0.17", "10.0.0.17")));
    assert_eq!(bands("range: {cidr: 10.0.0.0/28}"), want(None, ("10.0.0.1", "10.0.0.14")));
}

/// R49: without a band every address is as likely as any other.
#[test]
fn r49_without_a_band_the_whole_range_is_used() {
    let pool = pool("range: {cidr: 10.0.0.0/28}");
    let taken = Taken::new(&pool);
    let firsts: BTreeSet<IpAddr> =
        (0..500).map(|i| address(&next(&pool, &taken, &format!("n{i}")).unwrap())).collect();
    assert_eq!(firsts.len(), 14);
}

/// R50: upper band, then lower, then nothing. The 10th address stays free while the upper has room.
#[test]
fn r50_dynamic_claims_fill_the_upper_band_first() {
    let pool = pool("range: {cidr: 192.168.0.0/26}");
    let mut taken = Taken::new(&pool);
    let given = drain(&pool, &mut taken);
    let (upper, lower) = given.split_at(46);
    assert!(upper.iter().all(|ip| matches!(pool.explain(*ip), Status::Dynamic { .. })));
    assert!(lower.iter().all(|ip| matches!(pool.explain(*ip), Status::StaticBand { .. })));
    assert_eq!(lower.len(), 16);
    assert!(!upper.contains(&ip("192.168.0.10")));
}

/// R51: a static request takes any free address of either band, and fails for any other.
#[test]
fn r51_static_requests_reach_both_bands() {
    let pool = pool("range: {cidr: 192.168.0.0/26}");
    let mut taken = Taken::new(&pool);
    let exactly =
        |taken: &Taken, text| next_of(&pool, taken, &Barred::default(), "n", Want::Exactly(ip(text)));
    for text in ["192.168.0.10", "192.168.0.40"] {
        let choice = exactly(&taken, text).unwrap();
        assert_eq!((choice.kind, address(&choice)), (Kind::Static, ip(text)));
        taken.insert(ip(text));
        let held = NoAddress::Held { ip: ip(text), pool: "traffic-1".into() };
        assert_eq!(exactly(&taken, text), Err(held));
    }
    let outside = exactly(&taken, "192.168.0.64").unwrap_err();
    assert_eq!(outside, NoAddress::NotInPool { ip: ip("192.168.0.64"), pool: "traffic-1".into() });
}

/// R52: no capacity is lost, whatever the order of static and dynamic claims.
#[test]
fn r52_every_usable_address_is_given() {
    for statics in [vec![], vec!["192.168.0.1", "192.168.0.16", "192.168.0.17", "192.168.0.62"]] {
        let pool = pool("range: {cidr: 192.168.0.0/26}");
        let mut taken = Taken::of(&pool, statics.iter().map(|text| ip(text)));
        assert_eq!(drain(&pool, &mut taken).len() + statics.len(), 62);
        assert_eq!(taken.len() as u128, pool.capacity());
    }
}

/// R53: from the hash forward, round, then the static band in the same way.
#[test]
fn r53_scan_forward_and_wrap() {
    let pool = pool("range: {cidr: 192.168.0.0/26}");
    let mut taken = Taken::new(&pool);
    let upper: Vec<u128> = (17..=62).collect();
    let start = hash::start("node01", "traffic-1", "address") % 46;
    for i in 0..46 {
        let want = upper[((start + i) % 46) as usize];
        let got = address(&next(&pool, &taken, "node01").unwrap());
        assert_eq!(got, ip(&format!("192.168.0.{want}")), "claim {i}");
        taken.insert(got);
    }
    let low = hash::start("node01", "traffic-1", "address") % 16 + 1;
    assert_eq!(address(&next(&pool, &taken, "node01").unwrap()), ip(&format!("192.168.0.{low}")));
}

/// A set made under one band serves under another (R54 as a whole is in `allocator`).
#[test]
fn bands_are_no_part_of_what_is_taken() {
    let on = pool("range: {cidr: 192.168.0.0/26}");
    let off = pool("{range: {cidr: 192.168.0.0/26}, staticBand: None}");
    let held: Vec<IpAddr> = ["192.168.0.3", "192.168.0.33"].map(ip).to_vec();
    let (a, b) = (Taken::of(&on, held.clone()), Taken::of(&off, held.clone()));
    assert_eq!(a, b);
    assert_eq!(a.iter().collect::<Vec<_>>(), held);
    // The very same set serves under either.
    assert!(next(&on, &b, "n1").is_ok() && next(&off, &a, "n1").is_ok());
    let low = (0..200).map(|i| address(&next(&off, &a, &format!("n{i}")).unwrap())).min().unwrap();
    assert!(low < ip("192.168.0.17"), "without a band the low addresses are used at once");
}

/// R80: the formula by range, each by its own size.
#[test]
fn r80_bands_are_per_range() {
    let pool = pool(
        "ranges: [{name: a, cidr: 10.0.0.0/22}, {name: b, cidr: 10.1.0.0/28}, {name: c, cidr: 'fd00::/64'}]",
    );
    let band = |i: usize| pool.ranges()[i].parts().next().unwrap().static_band();
    assert_eq!(band(0), Some((ip("10.0.0.1"), ip("10.0.0.64"))));
    assert_eq!(band(1), None);
    assert_eq!(band(2), Some((ip("fd00::1"), ip("fd00::100"))));
}
