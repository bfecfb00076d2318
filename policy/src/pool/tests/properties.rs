//! `choose` on random small pools, against a pool written out address by address.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::dice::thrown;

/// A random pool of one or two ranges inside 10.0.0.0/23, with everything that can be in the way.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) yaml: String,
    pub(super) held: BTreeSet<u8>,
    declined: Vec<u8>,
    barred: Option<(u8, u8)>,
}

impl Case {
    pub(super) fn barred(&self) -> Barred {
        let net = self.barred.map(|(n, len)| IpNet::new(low(n), len).expect("a network"));
        net.map(|net| (net, "test".to_owned())).into_iter().collect()
    }
}

fn range() -> impl Strategy<Value = String> {
    let bounds = (0_u8..120, 0_u8..60);
    let exclude = prop::collection::vec((0_u8..180, 28_u8..=32), 0..6);
    let rest = (any::<bool>(), prop::option::of(0_u8..180), any::<bool>());
    (bounds, exclude, rest).prop_map(|((start, width), exclude, (skip, gateway, wide))| {
        let exclude: Vec<String> = exclude.iter().map(|(n, len)| format!("10.0.0.{n}/{len}")).collect();
        let gateway = gateway.map(|n| format!(", gateway: 10.0.0.{n}")).unwrap_or_default();
        let cidr = if wide { "10.0.0.0/23" } else { "10.0.0.0/24" };
        let end = u32::from(start) + u32::from(width) + 1;
        format!("cidr: {cidr}, start: 10.0.0.{start}, end: 10.0.0.{end}, exclude: [{}], skipOctetEnds: {skip}{gateway}", exclude.join(", "))
    })
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    let band = prop::sample::select(vec!["Auto", "None", "1", "7", "500"]);
    let held = prop::collection::btree_set(0_u8..182, 0..182);
    let declined = prop::collection::vec(0_u8..182, 0..6);
    let barred = prop::option::of((0_u8..180, 26_u8..=32));
    (prop::collection::vec(range(), 1..3), band, held, declined, barred).prop_map(
        |(ranges, band, held, declined, barred)| {
            let ranges: Vec<String> =
                ranges.iter().enumerate().map(|(i, r)| format!("{{name: r{i}, {r}}}")).collect();
            Case {
                yaml: format!("{{ranges: [{}], staticBand: {band}}}", ranges.join(", ")),
                held,
                declined,
                barred,
            }
        },
    )
}

pub(super) fn low(n: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, n])
}

/// Every address of 10.0.0.0/24 that the spec lets somebody have, by `explain`, one by one.
fn givable(pool: &Pool) -> BTreeSet<IpAddr> {
    let has = |ip: &IpAddr| matches!(pool.explain(*ip), Status::Dynamic { .. } | Status::StaticBand { .. });
    (0..=255).map(low).filter(has).collect()
}

proptest! {
    #![proptest_config(thrown(400))]

    /// Given is only what is free, and something is given as long as anything is: the last free address is
    /// found, bands lose nothing (R52), counts agree with counting.
    #[test]
    fn choose_gives_all_that_is_free_and_nothing_else(case in case()) {
        let Ok(pool) = Pool::new(&spec(&case.yaml)) else { return Ok(()) };
        let mut taken = Taken::of(&pool, case.held.iter().map(|n| low(*n)));
        let declined: Vec<IpAddr> = case.declined.iter().map(|n| low(*n)).collect();
        let barred = case.barred();
        let all = givable(&pool);
        prop_assert_eq!(pool.capacity(), all.len() as u128);
        let free: BTreeSet<IpAddr> = all.iter().copied().filter(|ip| !taken.contains(*ip) && !barred.contains(*ip)).collect();
        let view = PoolView { pool: &pool, taken: &taken, barred: &barred };
        prop_assert_eq!(view.counts().available, free.len() as u128);

        let mut wanted: BTreeSet<IpAddr> = free.into_iter().filter(|ip| !declined.contains(ip)).collect();
        let none = BTreeMap::new();
        for i in 0.. {
            let node = format!("node{}", i % 3);
            let holder = Holder { node: &node, capture: "c", declined: &declined, want: Want::Any };
            let view = PoolView { pool: &pool, taken: &taken, barred: &barred };
            let node = NodeView { name: &node, labels: &none };
            let answer = choose(&view, &holder, &node);
            prop_assert_eq!(&answer, &choose(&view, &holder, &node));
            let Ok(choice) = answer else { break };
            prop_assert!(wanted.remove(&address(&choice)), "{} was not to be had", address(&choice));
            prop_assert!(pool.ranges().iter().any(|r| r.name() == choice.range && r.contains(address(&choice))));
            taken.insert(address(&choice));
        }
        prop_assert_eq!(wanted, BTreeSet::new());
    }

    /// A literal is had exactly if it is free.
    #[test]
    fn exactly_agrees_with_explain(case in case(), n in any::<u8>()) {
        let Ok(pool) = Pool::new(&spec(&case.yaml)) else { return Ok(()) };
        let taken = Taken::of(&pool, case.held.iter().map(|n| low(*n)));
        let got = next_of(&pool, &taken, &Barred::default(), "n", Want::Exactly(low(n)));
        prop_assert_eq!(got.is_ok(), givable(&pool).contains(&low(n)) && !taken.contains(low(n)));
    }

    /// Reservations: their node gets them, nobody else ever does.
    #[test]
    fn reserved_addresses_are_kept(reserved in prop::collection::btree_map(1_u8..62, 0_u8..4, 0..20)) {
        let list: Vec<String> = reserved.iter().map(|(n, node)| format!("{{node: r{node}, ip: 10.0.0.{n}}}")).collect();
        let pool = pool(&format!("{{range: {{cidr: 10.0.0.0/26}}, reservations: [{}]}}", list.join(", ")));
        let mut taken = Taken::new(&pool);
        for ip in drain(&pool, &mut taken) {
            prop_assert_eq!(pool.reserved_for(ip), None);
        }
        prop_assert_eq!(taken.len() + reserved.len(), 62);
        for (n, node) in &reserved {
            let node = format!("r{node}");
            let choice = next(&pool, &taken, &node).unwrap();
            prop_assert_eq!(choice.kind, Kind::Reserved);
            prop_assert_eq!(pool.reserved_for(address(&choice)), Some(node.as_str()), "{}", n);
            taken.insert(address(&choice));
        }
        prop_assert!(next(&pool, &taken, "r0").is_err());
    }

    /// No text makes a spec panic.
    #[test]
    fn any_spec_is_read_or_refused(text in "[0-9a-f:./ -]{0,24}", other in ".{0,12}", bits in any::<u32>()) {
        let block = BlockSpec { start: Some(other.clone()), exclude: vec![text.clone()], ..BlockSpec::new(text.clone()) };
        let range = RangeSpec { block: Some(block), per_node_host_bits: Some(bits), ..RangeSpec::default() };
        let one = PoolSpec { name: other, range: Some(range), quarantine: Some(text.clone()), ..PoolSpec::default() };
        prop_assert!(Pool::new(&one).is_err(), "a start, an exclusion and a quarantine that are no such thing");
        let lax = RangeSpec { block: Some(BlockSpec::new(text)), per_node_host_bits: Some(bits % 130), ..RangeSpec::default() };
        let two = PoolSpec { name: "p".into(), range: Some(lax), ..PoolSpec::default() };
        if let Ok(pool) = Pool::new(&two) {
            prop_assert!(pool.slice_count() > 0);
        }
    }
}
