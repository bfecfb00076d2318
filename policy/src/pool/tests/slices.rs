//! Slices: blocks of a range owned by one node.

use std::collections::BTreeSet;

use ipnet::IpNet;

use super::*;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn next_slice(pool: &Pool, taken: &TakenSlices, node: &str, want: Want) -> Result<SliceChoice, NoAddress> {
    let none = BTreeMap::new();
    let holder = Holder { node, capture: "address", declined: &[], want };
    let view = SliceView { pool, taken, barred: &Barred::default() };
    choose_slice(&view, &holder, &NodeView { name: node, labels: &none })
}

fn cidrs(choice: &SliceChoice) -> Vec<IpNet> {
    choice.v4.iter().chain(&choice.v6).map(|slice| slice.cidr).collect()
}

/// Slices for node after node until there are no more.
fn drain_slices(pool: &Pool) -> Vec<SliceChoice> {
    let (mut taken, mut all) = (TakenSlices::new(pool), Vec::new());
    for i in 0.. {
        let Ok(choice) = next_slice(pool, &taken, &format!("node{i}"), Want::Any) else {
            break;
        };
        for cidr in cidrs(&choice) {
            assert!(taken.insert(cidr), "{cidr} twice");
        }
        all.push(choice);
    }
    all
}

/// R112: without `perNodeHostBits` there are no slices and nothing changes.
#[test]
fn r112_slices_are_opt_in() {
    let pool = pool("range: {cidr: 10.0.0.0/24}");
    assert!(!pool.is_sliced());
    assert_eq!(pool.slice_count(), 0);
    let error = next_slice(&pool, &TakenSlices::new(&pool), "n", Want::Any).unwrap_err();
    assert_eq!(
        error.to_string(),
        "pool traffic-1 is not cut into slices: its ranges have no perNodeHostBits"
    );
}

/// R118: /8 by /22 is 16384; all of them are given, then it is exhausted.
#[test]
fn r118_counts_and_exhaustion() {
    assert_eq!(pool("range: {cidr: 10.0.0.0/8, perNodeHostBits: 10}").slice_count(), 16384);
    assert_eq!(pool("range: {cidr: 'fd00::/64', perNodeHostBits: 4}").slice_count(), 1 << 60);
    let small = pool("range: {cidr: 10.0.0.0/22, perNodeHostBits: 4}");
    let all: BTreeSet<IpNet> = drain_slices(&small).iter().flat_map(cidrs).collect();
    assert_eq!((all.len(), small.slice_count()), (64, 64));
    let taken = TakenSlices::of(&small, all);
    let error = next_slice(&small, &taken, "n", Want::Any).unwrap_err();
    assert!(matches!(error, NoAddress::Exhausted { .. }), "{error}");
    assert_eq!(
        errors("range: {cidr: 10.0.0.0/24, perNodeHostBits: 9}"),
        ["spec.range.perNodeHostBits: 9 host bits are more than 10.0.0.0/24 has; at most 8"]
    );
}

/// What is available is what no slice has, held in it or not; what is held without a slice takes the block around it.
#[test]
fn r118_what_no_slice_has_is_available() {
    let sliced = pool("range: {cidr: 10.0.0.0/24, perNodeHostBits: 4}");
    let counts = |held: &[&str], slices: &[&str]| {
        let (held, slices) = (held.iter().map(|text| ip(text)), slices.iter().map(|text| net(text)));
        sliced.counts(held, slices, &Barred::default())
    };
    assert_eq!(counts(&[], &[]), Counts { capacity: 254, available: 254 });
    assert_eq!(counts(&["10.0.0.65"], &["10.0.0.64/28"]), Counts { capacity: 254, available: 238 });
    assert_eq!(counts(&["10.0.0.65", "10.0.0.81"], &["10.0.0.64/28"]).available, 222);
    let whole = pool("range: {cidr: 10.0.0.0/24}");
    assert_eq!(whole.counts([ip("10.0.0.65")], [], &Barred::default()).available, 253);
}

/// R102, R118: what is barred and in a slice is lost once, of a reservation too.
#[test]
fn r102_r118_what_is_barred_and_cut_is_lost_once() {
    let sliced =
        pool("{range: {cidr: 10.96.0.0/24, perNodeHostBits: 4}, reservations: [{node: a, ip: 10.96.0.5}]}");
    let mut barred = Barred::default();
    barred.net(net("10.96.0.0/25"), "Service CIDR 10.96.0.0/25");
    let lower = (0..8).map(|block| net(&format!("10.96.0.{}/28", block * 16)));
    assert_eq!(sliced.counts([], lower.clone(), &Barred::default()).available, 127);
    assert_eq!(sliced.counts([], lower.clone(), &barred).available, 127);
    assert_eq!(sliced.counts([], [], &barred).available, 127);
    let more = lower.chain([net("10.96.0.240/28")]);
    assert_eq!(sliced.counts([], more.clone(), &barred).available, 112);
    let taken = TakenSlices::of(&sliced, more);
    let by_range = SliceView { pool: &sliced, taken: &taken, barred: &barred }.by_range(&[]);
    assert_eq!(by_range[0].counts, Counts { capacity: 254, available: 112 });
    // What is held without a slice takes the whole block, with what is reserved in it.
    assert_eq!(sliced.counts([ip("10.96.0.6")], [], &Barred::default()).available, 239);
}

/// R93, D14: the mask is 32 − bits and 128 − bits.
#[test]
fn r93_masks() {
    let lengths = |choice| cidrs(choice).iter().map(IpNet::prefix_len).collect::<Vec<u8>>();
    let single = pool("range: {perNodeHostBits: 6, cidr: 192.168.0.0/16}");
    let n1 = next_slice(&single, &TakenSlices::new(&single), "n1", Want::Any).unwrap();
    assert_eq!(lengths(&n1), [26]);
    let first = Want::Exactly(ip("192.168.0.1"));
    let n1 = next_slice(&single, &TakenSlices::new(&single), "n1", first).unwrap();
    assert_eq!(cidrs(&n1)[0].to_string(), "192.168.0.0/26");
    let dual =
        pool("range: {perNodeHostBits: 6, ipv4: {cidr: 5.2.0.0/16}, ipv6: {cidr: 'fd12:3456:789a:1::/64'}}");
    let n3 = next_slice(&dual, &TakenSlices::new(&dual), "n3", Want::Any).unwrap();
    assert_eq!(lengths(&n3), [26, 122]);
}

/// R92: bits 10, /20 and /64: exactly four nodes; the fifth gets neither family, and takes none.
#[test]
fn r92_both_slices_or_none() {
    let dual = pool(
        "range: {perNodeHostBits: 10, ipv4: {cidr: 10.0.0.0/20}, ipv6: {cidr: 'fd12:3456:789a:1::/64'}}",
    );
    let all = drain_slices(&dual);
    assert_eq!((all.len(), dual.slice_count()), (4, 4));
    assert!(all.iter().all(|choice| choice.v4.is_some() && choice.v6.is_some()));
    let taken = TakenSlices::of(&dual, all.iter().flat_map(cidrs));
    let fifth = next_slice(&dual, &taken, "fifth", Want::Any).unwrap_err();
    assert!(fifth.to_string().contains("range default (IPv4)"), "{fifth}");
    assert_eq!(taken.len(), 8);
}

/// R105: 16 nodes of a /24 each in a /20; with a second range 32.
#[test]
fn r105_two_ranges_add_up() {
    let pool = pool(
        "ranges: [{name: a, cidr: 10.1.0.0/20, perNodeHostBits: 8}, {name: b, cidr: 10.2.0.0/20, perNodeHostBits: 8}]",
    );
    assert_eq!(drain_slices(&pool).len(), 32);
}

/// R115, R116: the name is the lock: a function of pool and first address, and a DNS name.
#[test]
fn r116_names() {
    let name = |yaml: &str, text: &str| {
        let pool = pool(yaml);
        let choice = next_slice(&pool, &TakenSlices::new(&pool), "n", Want::Exactly(ip(text))).unwrap();
        choice.v4.or(choice.v6).unwrap().name
    };
    assert_eq!(name("range: {cidr: 10.1.0.0/20, perNodeHostBits: 4}", "10.1.2.55"), "traffic-1.10.1.2.48");
    assert_eq!(
        name("range: {cidr: 'fd00::/64', perNodeHostBits: 8}", "fd00::abcd:12"),
        "traffic-1.fd00--abcd-0"
    );
    assert_eq!(name("range: {cidr: 'fd00::/64', perNodeHostBits: 16}", "fd00::9"), "traffic-1.fd00--0");
    assert_eq!(name("range: {cidr: 'fd00::/64', perNodeHostBits: 0}", "fd00::9"), "traffic-1.fd00--9");
}

/// D15: only whole aligned blocks; what is cut off is said. A start at the first usable loses nothing.
#[test]
fn d15_only_whole_blocks() {
    let pool1 = pool("range: {cidr: 10.0.0.0/24, start: 10.0.0.10, end: 10.0.0.100, perNodeHostBits: 4}");
    let all: BTreeSet<IpNet> = drain_slices(&pool1).iter().flat_map(cidrs).collect();
    let want = ["10.0.0.16/28", "10.0.0.32/28", "10.0.0.48/28", "10.0.0.64/28", "10.0.0.80/28"].map(net);
    assert_eq!(all, want.into_iter().collect());
    assert_eq!(pool1.capacity(), 80);
    assert_eq!(
        pool1.warnings()[0].to_string(),
        "spec.range.perNodeHostBits: 11 addresses at the edges are in no whole block of 16 and will not be given"
    );
    let written = pool("range: {cidr: 10.0.0.0/24, start: 10.0.0.1, end: 10.0.0.254, perNodeHostBits: 4}");
    assert_eq!((written.slice_count(), written.warnings().len(), written.capacity()), (16, 0, 254));
    // The API takes bounds around no whole block: so does the core, and gives nothing.
    let none = pool(
        "{range: {cidr: 10.0.0.0/24, start: 10.0.0.10, end: 10.0.0.30, perNodeHostBits: 4}, staticBand: 9}",
    );
    assert_eq!(
        none.warnings()[0].to_string(),
        "spec.range.perNodeHostBits: no whole block of 2^4 addresses lies between 10.0.0.10 and 10.0.0.30: nothing will \
         be given"
    );
    assert_eq!((drain_slices(&none).len(), none.slice_count(), none.capacity()), (0, 0, 0));
}

#[test]
fn all_ranges_are_sliced_or_none_and_disjoint() {
    assert_eq!(
        errors(
            "ranges: [{name: a, cidr: 10.0.0.0/24, perNodeHostBits: 4}, {name: b, cidr: 10.1.0.0/24}, {name: c, cidr: 10.0.0.0/23, start: 10.0.1.0, perNodeHostBits: 4}]"
        ),
        [
            "spec.ranges[1].perNodeHostBits: all ranges of a pool are sliced or none: set perNodeHostBits here too, or nowhere",
            "spec.ranges[2]: overlaps range a: ranges of a sliced pool must not overlap",
        ]
    );
}

/// A slice without an address to give is never chosen: one object per address skips exclusions.
#[test]
fn barren_slices_are_never_chosen() {
    let pool = pool(
        "{range: {cidr: 10.0.0.0/24, perNodeHostBits: 0, gateway: 10.0.0.254, exclude: [10.0.0.64/26], skipOctetEnds: true},
          reservations: [{node: vip, ip: 10.0.0.9}]}",
    );
    let all = drain_slices(&pool);
    assert_eq!(all.len() as u128, 254 - 1 - 64 - 1);
    assert_eq!(pool.capacity(), 254 - 1 - 64);
    let mine = next_slice(&pool, &TakenSlices::new(&pool), "vip", Want::Any).unwrap();
    assert_eq!((cidrs(&mine), mine.kind), (vec![net("10.0.0.9/32")], Kind::Reserved));
    let large =
        super::pool("range: {cidr: 10.0.0.0/24, perNodeHostBits: 4, exclude: [10.0.0.0/25, 10.0.0.129]}");
    assert_eq!(drain_slices(&large).len(), 8);
}

/// A block in which an address is reserved is for its node alone, also when nothing else is left, and is there when that asks. Of
/// two nodes with a reservation in one block the first has it; who names an address takes its block.
#[test]
fn a_block_with_a_reservation_is_kept_for_its_node() {
    let pool = pool(
        "{range: {cidr: 10.0.0.0/27, perNodeHostBits: 2}, staticBand: None,
          reservations: [{node: a, ip: 10.0.0.9}, {node: b, ip: 10.0.0.10}, {node: vip, ip: 10.0.0.21}]}",
    );
    let all: BTreeSet<IpNet> = drain_slices(&pool).iter().flat_map(cidrs).collect();
    assert_eq!(all.len(), 6);
    let [both, vips] = ["10.0.0.8/30", "10.0.0.20/30"].map(net);
    assert!(!all.contains(&both) && !all.contains(&vips), "{all:?}");
    let mut taken = TakenSlices::of(&pool, all);
    let mut next = |node: &str, want| {
        let choice = next_slice(&pool, &taken, node, want).ok()?;
        cidrs(&choice).into_iter().for_each(|cidr| assert!(taken.insert(cidr)));
        Some((cidrs(&choice), choice.kind))
    };
    assert_eq!(next("other", Want::Any), None);
    assert_eq!(next("b", Want::Any), Some((vec![both], Kind::Reserved)));
    assert_eq!(next("a", Want::Any), None);
    assert_eq!(next("other", Want::Exactly(ip("10.0.0.22"))), Some((vec![vips], Kind::Static)));
    assert_eq!(next("vip", Want::Any), None);
}

/// R92: of both families: a reservation in one keeps that family's block.
#[test]
fn r92_a_reservation_keeps_a_block_of_its_family() {
    let pool = pool(
        "{range: {ipv4: {cidr: 10.0.0.0/28}, ipv6: {cidr: 'fd00::/124'}, perNodeHostBits: 2}, staticBand: None,
          reservations: [{node: vip, ip: 'fd00::5'}]}",
    );
    let all = drain_slices(&pool);
    assert_eq!(all.len(), 3);
    let taken = TakenSlices::of(&pool, all.iter().flat_map(cidrs));
    let mine = next_slice(&pool, &taken, "vip", Want::Any).unwrap();
    assert!(mine.v4.is_some());
    assert_eq!(mine.v6.unwrap().cidr, net("fd00::4/126"));
}

/// Slices that touch the static band go last; none is lost (R52).
#[test]
fn slices_of_the_static_band_go_last() {
    let pool = pool("range: {cidr: 10.0.0.0/22, perNodeHostBits: 4}");
    // The band is .0.1 to .0.64: five slices touch it.
    let all = drain_slices(&pool);
    let last: BTreeSet<IpNet> = all.iter().skip(59).flat_map(cidrs).collect();
    let want = ["10.0.0.0/28", "10.0.0.16/28", "10.0.0.32/28", "10.0.0.48/28", "10.0.0.64/28"].map(net);
    assert_eq!(last, want.into_iter().collect());
}

#[test]
fn literals_claim_the_slice_around_them() {
    let pool = pool(
        "{range: {cidr: 10.0.0.0/24, perNodeHostBits: 4, exclude: [10.0.0.99]}, reservations: [{node: a, ip: 10.0.0.50}]}",
    );
    let taken = TakenSlices::of(&pool, [net("10.0.0.16/28")]);
    let exactly = |text| next_slice(&pool, &taken, "b", Want::Exactly(ip(text)));
    assert_eq!(cidrs(&exactly("10.0.0.200").unwrap()), [net("10.0.0.192/28")]);
    assert_eq!(
        exactly("10.0.0.20").unwrap_err().to_string(),
        "slice 10.0.0.16/28 of pool traffic-1, where 10.0.0.20 lies, belongs to another node"
    );
    assert!(matches!(exactly("10.0.0.99"), Err(NoAddress::Excluded { .. })));
    assert!(matches!(exactly("10.0.0.50"), Err(NoAddress::Reserved { .. })));
    assert!(matches!(exactly("10.0.1.1"), Err(NoAddress::NotInPool { .. })));
}

/// R114: inside its slices a node chooses as always; the prefix length stays the range's.
#[test]
fn r114_choosing_inside_a_slice() {
    let pool =
        pool("range: {cidr: 10.0.0.0/20, perNodeHostBits: 4, gateway: 10.0.0.20, exclude: [10.0.0.21]}");
    let mine = pool.within(&[net("10.0.0.16/28"), net("10.0.2.32/28")]).unwrap();
    let mut taken = Taken::new(&mine);
    let first = next(&mine, &taken, "n").unwrap();
    let given = first.v4.unwrap();
    assert_eq!((given.prefix_length, given.gateway), (20, Some(ip("10.0.0.20"))));
    let all = drain(&mine, &mut taken);
    assert_eq!(all.len(), 30);
    assert!(all.iter().all(|ip| net("10.0.0.16/28").contains(ip) || net("10.0.2.32/28").contains(ip)));
    // The first slice of a range has no network address to give.
    assert_eq!(pool.within(&[net("10.0.0.0/28")]).unwrap().capacity(), 15);
}

/// Of a dual-stack pool every pair of a node's slices serves; a lone one serves nobody.
#[test]
fn r114_dual_stack_pairs() {
    let pool = pool("range: {perNodeHostBits: 2, ipv4: {cidr: 10.0.0.0/20}, ipv6: {cidr: 'fd00::/64'}}");
    let slices = ["10.0.1.0/30", "fd00::10/126", "10.0.1.8/30", "fd00::20/126"].map(net);
    let mine = pool.within(&slices).unwrap();
    assert_eq!(drain(&mine, &mut Taken::new(&mine)).len(), 16);
    let half = pool.within(&slices[..1]).unwrap();
    assert!(next(&half, &Taken::new(&half), "n").is_err());
}

#[test]
fn what_is_not_a_slice_is_refused() {
    let pool = pool("range: {cidr: 10.0.0.0/24, perNodeHostBits: 0}");
    let refused = |text: &str| pool.within(&[net(text)]).unwrap_err().to_string();
    assert_eq!(
        refused("10.0.0.0/28"),
        "10.0.0.0/28 is not a slice of pool traffic-1: none of its ranges is cut that way"
    );
    assert_eq!(
        refused("10.0.1.0/32"),
        "10.0.1.0/32 is not a slice of pool traffic-1: none of its ranges is cut that way"
    );
    let barren = super::pool("range: {cidr: 10.0.0.0/24, perNodeHostBits: 4, start: 10.0.0.16}");
    assert!(barren.within(&[net("10.0.0.0/28")]).is_err());
}

/// Slices left from another cut take every slice they touch, until the last of them is gone.
#[test]
fn leftovers_of_another_cut_block_what_they_touch() {
    let pool = pool("{range: {cidr: 10.0.0.0/26, perNodeHostBits: 4}, staticBand: None}");
    let count = |taken: &TakenSlices| {
        let (mut taken, mut n) = (taken.clone(), 0);
        while let Ok(choice) = next_slice(&pool, &taken, "n", Want::Any) {
            cidrs(&choice).into_iter().for_each(|cidr| assert!(taken.insert(cidr)));
            n += 1;
        }
        n
    };
    let mut taken = TakenSlices::of(&pool, [net("10.0.0.18/32"), net("10.0.0.20/32"), net("10.0.0.0/27")]);
    assert_eq!((taken.len(), count(&taken)), (3, 2));
    assert!(taken.remove(net("10.0.0.0/27")) && !taken.remove(net("10.0.0.0/27")));
    assert_eq!(count(&taken), 3);
    assert!(taken.remove(net("10.0.0.18/32")));
    assert_eq!(count(&taken), 3);
    assert!(taken.remove(net("10.0.0.20/32")) && taken.is_empty());
    assert_eq!(count(&taken), 4);
}

/// Where each address lies, and that what touches the static band comes last: the choice agrees.
#[test]
fn the_slice_around_an_address() {
    let pool = pool("range: {cidr: 10.0.0.0/24, perNodeHostBits: 4}");
    let range = &pool.ranges()[0];
    assert_eq!(range.slice_around(ip("10.0.0.5")), Some((net("10.0.0.0/28"), true)));
    assert_eq!(
        range.slice_around(ip("10.0.0.31")),
        Some((net("10.0.0.16/28"), true)),
        "the band ends at .16"
    );
    assert_eq!(range.slice_around(ip("10.0.0.32")), Some((net("10.0.0.32/28"), false)));
    assert_eq!(range.slice_around(ip("10.0.1.1")), None);
    assert_eq!(super::pool("range: {cidr: 10.0.0.0/24}").ranges()[0].slice_around(ip("10.0.0.5")), None);
    let order: Vec<bool> = drain_slices(&pool)
        .iter()
        .filter_map(|choice| range.slice_around(choice.v4.as_ref()?.cidr.hosts().next()?))
        .map(|(_, last)| last)
        .collect();
    assert_eq!(order, [[false; 14].as_slice(), &[true; 2]].concat());
}
