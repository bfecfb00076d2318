//! Runs, lines, `Taken` and counts against plain models.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::pool::line::is_octet_end;
use crate::pool::runs::Runs;

fn numbers(runs: &Runs) -> BTreeSet<u128> {
    runs.iter().flat_map(|(a, b)| a..=b).collect()
}

proptest! {
    /// Inserting and removing intervals, against a set of numbers; runs never touch.
    #[test]
    fn runs_are_a_set(ops in prop::collection::vec((any::<bool>(), 0_u128..60, 0_u128..12), 0..60)) {
        let (mut runs, mut model) = (Runs::default(), BTreeSet::new());
        for (add, first, width) in ops {
            let last = first + width;
            if add { runs.insert(first, last); model.extend(first..=last); }
            else { runs.remove(first, last); model.retain(|n| !(first..=last).contains(n)); }
            prop_assert_eq!(&numbers(&runs), &model);
            let list: Vec<_> = runs.iter().collect();
            prop_assert!(list.windows(2).all(|w| w[0].1 + 1 < w[1].0), "touching: {:?}", list);
            prop_assert_eq!(runs.count(first, last), model.range(first..=last).count() as u128);
            prop_assert_eq!(runs.contains(first), model.contains(&first));
        }
    }

    #[test]
    fn runs_subtract_and_meet(
        a in prop::collection::vec((0_u128..80, 0_u128..9), 0..12), b in prop::collection::vec((0_u128..80, 0_u128..9), 0..12),
    ) {
        let set = |list: &[(u128, u128)]| Runs::of(list.iter().map(|(first, width)| (*first, first + width)));
        let (a, b) = (set(&a), set(&b));
        prop_assert_eq!(numbers(&a.minus(&b)), &numbers(&a) - &numbers(&b));
        prop_assert_eq!(numbers(&a.and(&b)), &numbers(&a) & &numbers(&b));
    }

    /// A line is the givable addresses in order, with and without octet ends.
    #[test]
    fn line_is_the_list_of_givable(
        windows in prop::collection::vec((0_u128..1500, 0_u128..600), 1..4),
        holes in prop::collection::vec((0_u128..2000, 0_u128..40), 0..8),
        skips in prop::collection::vec((0_u128..1500, 0_u128..900), 0..3),
    ) {
        let set = |list: &[(u128, u128)]| Runs::of(list.iter().map(|(first, width)| (*first, first + width)));
        let (windows, holes, skips) = (set(&windows), set(&holes), set(&skips));
        let line = Line::new(&windows, &holes, &skips);
        let givable: Vec<u128> = (0..2200)
            .filter(|n| windows.contains(*n) && !holes.contains(*n) && !(skips.contains(*n) && is_octet_end(*n)))
            .collect();
        for (place, number) in givable.iter().enumerate() {
            prop_assert_eq!(line.at(place as u128), Some(*number));
            prop_assert_eq!(line.place_of(*number), Some(place as u128));
        }
        prop_assert_eq!(line.at(givable.len() as u128), None);
        for n in 0..2200 {
            prop_assert_eq!(line.place(n), givable.partition_point(|g| *g < n) as u128);
            prop_assert_eq!(line.place_of(n).is_some(), givable.binary_search(&n).is_ok());
        }
    }

    /// `Taken` is a set of addresses, on the line or not, of either family, mapped or not.
    #[test]
    fn taken_is_a_set(ops in prop::collection::vec((any::<bool>(), 0_u8..40, 0_u8..3), 0..120)) {
        let pool = pool("{ranges: [{name: a, ipv4: {cidr: 10.0.0.0/27, exclude: [10.0.0.8/30], gateway: 10.0.0.1},
            ipv6: {cidr: 'fd00::/123'}}], reservations: [{node: vip, ip: 10.0.0.20}]}");
        let (mut taken, mut model) = (Taken::new(&pool), BTreeSet::new());
        for (add, n, form) in ops {
            let ip = ip(&match form { 0 => format!("10.0.0.{n}"), 1 => format!("::ffff:10.0.0.{n}"), _ => format!("fd00::{n:x}") });
            let changed = if add { taken.insert(ip) } else { taken.remove(ip) };
            prop_assert_eq!(changed, if add { model.insert(ip.to_canonical()) } else { model.remove(&ip.to_canonical()) });
            prop_assert_eq!(taken.len(), model.len());
            prop_assert_eq!(taken.contains(ip), add);
        }
        prop_assert_eq!(taken.iter().collect::<BTreeSet<_>>(), model.clone());
        prop_assert_eq!(Taken::of(&pool, model), taken);
    }
}

/// Held addresses with never-given ones between them are one run: no alternation makes a scan long.
#[test]
fn taken_merges_across_holes() {
    let pool = pool(
        "{range: {cidr: 10.0.0.0/16, skipOctetEnds: true, gateway: 10.0.1.7, exclude: [10.0.1.9, 10.0.1.64/26]},
          reservations: [{node: vip, ip: 10.0.1.11}]}",
    );
    let all: Vec<IpAddr> = (0..=0x2ff_u32).map(|n| IpAddr::from((0x0a00_0000 + n).to_be_bytes())).collect();
    let odd_first = all.iter().skip(1).step_by(2).chain(all.iter().step_by(2));
    let taken = Taken::of(&pool, odd_first.copied());
    assert_eq!(taken.runs(Family::V4).iter().count(), 1);
    assert_eq!(taken.len(), all.len());
}

/// A set made for an earlier spec of the pool is understood, never misread.
#[test]
fn taken_of_another_spec_is_refitted() {
    let before = pool("range: {cidr: 10.0.0.0/28}");
    let after = pool("range: {cidr: 10.0.0.0/28, exclude: [10.0.0.1, 10.0.0.2, 10.0.0.3]}");
    let held: Vec<IpAddr> = (1..=13).map(|n| ip(&format!("10.0.0.{n}"))).collect();
    let taken = Taken::of(&before, held);
    for i in 0..20 {
        assert_eq!(address(&next(&after, &taken, &format!("n{i}")).unwrap()), ip("10.0.0.14"));
    }
    let view = PoolView { pool: &after, taken: &taken, barred: &Barred::default() };
    assert_eq!(view.counts(), Counts { capacity: 11, available: 1 });
    assert_eq!(view.by_range(&[])[0].counts, view.counts());
}

#[test]
fn counts_are_in_claims() {
    let counts = |yaml: &str, held: &[&str], barred: &Barred| {
        let pool = pool(yaml);
        let taken = Taken::of(&pool, held.iter().map(|text| ip(text)));
        let counts = PoolView { pool: &pool, taken: &taken, barred }.counts();
        (counts.capacity, counts.available)
    };
    let free = Barred::default();
    let seed = "range: {cidr: 10.10.10.0/24, start: 10.10.10.1, end: 10.10.10.10, exclude: [10.10.10.4, 10.10.10.7]}";
    assert_eq!(counts(seed, &["10.10.10.8"], &free), (8, 7));
    // A held address that was excluded later takes nothing away.
    assert_eq!(counts(seed, &["10.10.10.4"], &free), (8, 8));
    let mut barred = Barred::default();
    barred.net("10.10.10.0/29".parse().unwrap(), "Service CIDR");
    assert_eq!(counts(seed, &["10.10.10.8", "10.10.10.3"], &barred), (8, 2));
    // Overlapping ranges count once; a draining one has nothing to give.
    assert_eq!(
        counts("ranges: [{name: a, cidr: 10.0.0.0/24}, {name: b, cidr: 10.0.0.0/23}]", &[], &free),
        (510, 510)
    );
    let draining = "ranges: [{name: a, cidr: 10.0.0.0/24, state: Draining}, {name: b, cidr: 10.0.1.0/24}]";
    assert_eq!(counts(draining, &["10.0.0.1"], &free), (508, 254));
    // Dual stack is worth the scarcer family; single-family ranges beside it add theirs.
    let dual = "ranges: [{name: a, ipv4: {cidr: 10.0.0.0/24}, ipv6: {cidr: 'fd00::/64'}}, {name: b, cidr: 'fd01::/120'}]";
    assert_eq!(counts(dual, &["10.0.0.1", "fd00::1"], &free), (254 + 255, 253 + 255));
}
