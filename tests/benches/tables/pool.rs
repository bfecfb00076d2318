//! How long a choice takes, in large pools with a million addresses held.
//!
//! Goal: 2 µs each, whatever the shape of what is held. On allocations: `choose` allocates what it
//! returns (the range's name, its attributes) and nothing else in a pool of one range; with several, also
//! their ranking, a list of at most as many references. Counting them here would take an allocator of
//! our own, which needs `unsafe`, which is forbidden; that time stays flat from an empty pool to a million
//! holders is the next best evidence.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::net::IpAddr;

use berth_tests::bench::{Row, measure, print};
use policy::pool::{
    Barred, BlockSpec, Choice, Holder, NodeView, Pool, PoolSpec, PoolView, RangeSpec, Reservation, SliceView,
    Taken, TakenSlices, Want, choose, choose_slice,
};

const HELD: usize = 1_000_000;
const GOAL: f64 = 2_000.0;

pub(crate) fn run() {
    let nodes: Vec<String> = (0..4096).map(|i| format!("worker-{i}.example.org")).collect();
    let eight = pool(RangeSpec { block: Some(BlockSpec::new("10.0.0.0/8")), ..RangeSpec::default() });
    let sixty_four = pool(RangeSpec { block: Some(BlockSpec::new("fd00::/64")), ..RangeSpec::default() });

    let base = choosing("choose, /8, nothing held", &eight, &Taken::new(&eight), &nodes);
    let mut rows = vec![base.clone()];
    rows.push(linear().against(&base));
    for (name, pool) in [("/8", &eight), ("/64", &sixty_four)] {
        let random = random(pool);
        rows.push(
            choosing(&format!("choose, {name}, 10⁶ held at random"), pool, &random, &nodes)
                .goal(GOAL)
                .against(&base),
        );
        let run = run_from(pool, &nodes[0]);
        let row =
            choosing(&format!("choose, {name}, 10⁶ in one run from the hash on"), pool, &run, &nodes[..1]);
        rows.push(row.goal(GOAL).against(&base));
    }
    let holes = holes();
    let run = run_from(&holes, &nodes[0]);
    let name = "choose, /8, the run with octet ends, 256 exclusions, 1,024 reservations in it";
    rows.push(choosing(name, &holes, &run, &nodes[..1]).goal(GOAL).against(&base));
    rows.push(churn(&eight, &random(&eight)).against(&base));
    rows.push(slices(&nodes).against(&base));
    print("pool", &rows);
}

fn pool(range: RangeSpec) -> Pool {
    let spec = PoolSpec { name: "traffic-1".into(), range: Some(range), ..PoolSpec::default() };
    Pool::new(&spec).expect("a valid pool")
}

/// A /8 with as many holes as the API allows, where the run will be.
fn holes() -> Pool {
    let plain = pool(RangeSpec { block: Some(BlockSpec::new("10.0.0.0/8")), ..RangeSpec::default() });
    let first = first_for(&plain, &Taken::new(&plain), "worker-0.example.org");
    let after = |n: u128| {
        plain.offset_of(first).and_then(|at| plain.address_at(at + n)).expect("inside the /8").to_string()
    };
    let exclude = (0..256).map(|i| after(2 * i + 1)).collect();
    let block = BlockSpec { exclude, ..BlockSpec::new("10.0.0.0/8") };
    let range = RangeSpec { block: Some(block), skip_octet_ends: true, ..RangeSpec::default() };
    let reservations =
        (0..1024).map(|i| Reservation { node: format!("reserved-{i}"), ip: after(1000 + 2 * i) }).collect();
    let spec = PoolSpec { name: "traffic-1".into(), range: Some(range), reservations, ..PoolSpec::default() };
    Pool::new(&spec).expect("a valid pool")
}

fn ask(pool: &Pool, taken: &Taken, node: &str) -> Choice {
    let (labels, barred) = (BTreeMap::new(), Barred::default());
    let holder = Holder { node, capture: "address-from-traffic-1", declined: &[], want: Want::Any };
    choose(&PoolView { pool, taken, barred: &barred }, &holder, &NodeView { name: node, labels: &labels })
        .expect("room in the pool")
}

fn first_for(pool: &Pool, taken: &Taken, node: &str) -> IpAddr {
    ask(pool, taken, node).given().next().expect("an address").ip
}

fn choosing(name: &str, pool: &Pool, taken: &Taken, nodes: &[String]) -> Row {
    measure(name, |i| {
        black_box(ask(pool, taken, &nodes[i % nodes.len()]));
    })
}

/// A million addresses anywhere in the pool; the same ones every time.
fn random(pool: &Pool) -> Taken {
    let size = pool.capacity();
    let (mut taken, mut seed) = (Taken::new(pool), 0x9e37_79b9_7f4a_7c15_u64);
    while taken.len() < HELD {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        taken.extend(pool.address_at(u128::from(seed) % size));
    }
    taken
}

/// A million addresses in a row (but for holes), from the one that this node would get first.
fn run_from(pool: &Pool, node: &str) -> Taken {
    let mut taken = Taken::new(pool);
    while taken.len() < HELD {
        // The next free one forward is always right behind the run.
        taken.insert(first_for(pool, &taken, node));
    }
    taken
}

/// What a plain set with a linear scan takes for a run of 10,000, a hundredth of the above.
fn linear() -> Row {
    let held: BTreeSet<u32> = (1000..11_000).collect();
    measure("a set and a linear scan, 10⁴ in one run", |_| {
        black_box((1000_u32..).find(|n| !held.contains(black_box(n))));
    })
}

/// Taking and giving back, as a ledger does.
fn churn(pool: &Pool, taken: &Taken) -> Row {
    let mut taken = taken.clone();
    let size = pool.capacity();
    measure("insert and remove, /8, 10⁶ held at random", |i| {
        let ip = pool.address_at(i as u128 * 7919 % size).expect("inside the pool");
        if taken.insert(ip) {
            taken.remove(ip);
        }
    })
}

/// A slice of sixteen in a /8, half of them gone.
fn slices(nodes: &[String]) -> Row {
    let block = Some(BlockSpec::new("10.0.0.0/8"));
    let pool = pool(RangeSpec { block, per_node_host_bits: Some(4), ..RangeSpec::default() });
    let cidrs = (0..1_u32 << 20)
        .step_by(2)
        .map(|i| format!("{}/28", IpAddr::from((0x0a00_0000 | i << 4).to_be_bytes())));
    let taken = TakenSlices::of(&pool, cidrs.filter_map(|text| text.parse().ok()));
    let (labels, barred) = (BTreeMap::new(), Barred::default());
    measure("choose_slice, /8 in slices of 16, every second one taken", |i| {
        let node = nodes[i % nodes.len()].as_str();
        let holder = Holder { node, capture: "", declined: &[], want: Want::Any };
        let view = SliceView { pool: &pool, taken: &taken, barred: &barred };
        black_box(choose_slice(&view, &holder, &NodeView { name: node, labels: &labels }).is_ok());
    })
}
