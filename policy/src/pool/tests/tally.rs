//! Counting a stretch, against asking of each of its addresses.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::properties::{Case, case, low};
use super::*;
use crate::dice::thrown;

fn whole(pool: &Pool, held: &[(&str, bool)]) -> Tally {
    let part = pool.ranges()[0].parts().next().expect("a family");
    let held = held.iter().map(|(text, quarantined)| (ip(text), *quarantined));
    pool.tally(part, (0, part.last_offset()), &Barred::default(), held)
}

/// The seeds' first pool: ten addresses, two of them excluded.
#[test]
fn the_seeds_pool() {
    let seeds = "{range: {cidr: 10.10.10.0/24, start: 10.10.10.1, end: 10.10.10.10, exclude: [10.10.10.4, 10.10.10.7]}, \
                 reservations: [{node: node01, ip: 10.10.10.3}]}";
    let tally = whole(&pool(seeds), &[("10.10.10.1", false), ("10.10.10.2", true), ("10.10.10.200", false)]);
    let said = Tally { held: 1, quarantined: 1, reserved: 1, band: 0, free: 5, never: 2 };
    assert_eq!(tally, said);
}

/// R46, R77: bands of a /16, and all of an IPv6 /64, whose addresses nobody can count one by one.
#[test]
fn large_ranges() {
    let sixteen = whole(&pool("range: {cidr: 192.168.0.0/16}"), &[("192.168.0.9", false)]);
    assert_eq!((sixteen.held, sixteen.band, sixteen.free), (1, 255, 65534 - 256));
    let v6 = whole(&pool("range: {cidr: 'fd00::/64'}"), &[("fd00::1:2", false)]);
    assert_eq!(v6.held + v6.band + v6.free + v6.never, (1 << 64) - 1);
}

/// What is held though nobody may have it (excluded later) is held, and outside of the stretch nothing counts.
#[test]
fn held_and_excluded() {
    let pool = pool("range: {cidr: 10.0.0.0/28, exclude: [10.0.0.5]}");
    let part = pool.ranges()[0].parts().next().expect("a family");
    let held = [(ip("10.0.0.5"), false), (ip("10.0.0.9"), false)];
    let tally = pool.tally(part, (0, 7), &Barred::default(), held);
    assert_eq!(tally, Tally { held: 1, free: 7, ..Tally::default() });
    assert_eq!(pool.tally(part, (20, 30), &Barred::default(), held), Tally::default());
}

/// One address at a time, by `explain`.
fn counted(pool: &Pool, part: &Part, case: &Case, barred: &Barred) -> Tally {
    let mut tally = Tally::default();
    for offset in 0..=part.last_offset() {
        let at = part.address_at(offset).expect("inside");
        let is_held = case.held.iter().any(|n| low(*n) == at);
        let place = match pool.explain(at) {
            _ if is_held => &mut tally.held,
            Status::Reserved { .. } => &mut tally.reserved,
            Status::Dynamic { .. } | Status::StaticBand { .. } if !barred.contains(at) => &mut tally.free,
            _ => &mut tally.never,
        };
        *place += 1;
    }
    tally
}

proptest! {
    #![proptest_config(thrown(200))]

    #[test]
    fn as_if_each_were_asked(case in case()) {
        let Ok(pool) = Pool::new(&spec(&case.yaml)) else { return Ok(()) };
        let barred = case.barred();
        for part in pool.ranges().iter().flat_map(Range::parts) {
            let held: BTreeMap<IpAddr, bool> = case.held.iter().map(|n| (low(*n), false)).collect();
            let mut all = pool.tally(part, (0, part.last_offset()), &barred, held.clone());
            let halves = [(0, 9), (10, part.last_offset())].map(|run| pool.tally(part, run, &barred, held.clone()));
            prop_assert_eq!(all.free + all.band, halves.iter().map(|half| half.free + half.band).sum::<u128>());
            prop_assert_eq!(all.never, halves.iter().map(|half| half.never).sum::<u128>());
            all.free += std::mem::take(&mut all.band);
            prop_assert_eq!(all, counted(&pool, part, &case, &barred));
        }
    }
}
