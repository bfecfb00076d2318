//! The operations of KEP-1880's allocator as functions of `pool` and `claim` (R79): no trait is wanted. `Destroy` is
//! dropping a value, `EnableMetrics` the caller's business, and what is a value needs no lock.

use super::*;
use crate::claim::{
    Asked, Enactment, Ledger, PoolUid, Reply, Request, RequestId, Served, Slot, SlotKey, serve,
};

/// What a node writes into its enactment.
fn enactment(node: &str, literal: Option<IpAddr>, want: bool) -> (Enactment, SlotKey) {
    let key = SlotKey { pool: "traffic-1".into(), capture: "address".into() };
    let request = Request { literal, want, ..Request::new(RequestId::new(format!("id-{node}"))) };
    let slot = Slot { request: Some(request), ..Slot::default() };
    let enactment = Enactment {
        uid: node.into(),
        node: node.into(),
        node_uid: node.into(),
        policy: "policy".into(),
        deleting: None,
        slots: BTreeMap::from([(key.clone(), slot)]),
    };
    (enactment, key)
}

/// Asks for one node; `literal` is an address by name.
fn ask(ledger: &Ledger, pool: &Pool, node: &str, literal: Option<IpAddr>, want: bool) -> Served {
    let (enactment, key) = enactment(node, literal, want);
    let labels = BTreeMap::new();
    let asked =
        Asked { enactment: &enactment, key: &key, labels: &labels, live: true, ready: true, fresh: true };
    serve(ledger, pool, &Barred::default(), &[asked], 0)
}

/// What a node is granted; the ledger as it is written.
fn granted(ledger: &mut Ledger, pool: &Pool, node: &str, literal: Option<IpAddr>) -> Option<IpAddr> {
    let served = ask(ledger, pool, node, literal, true);
    if let Some(after) = served.ledger {
        *ledger = after;
    }
    match &served.answers.first()?.reply {
        Reply::Grant(grant) => grant.lease.ips.first().copied(),
        Reply::Refuse(_) => None,
    }
}

fn proven() -> Ledger {
    let uid = PoolUid::from("uid");
    Ledger { rebuilt_for: Some(uid.clone()), ..Ledger::new(uid) }
}

/// Who holds what.
fn holders(ledger: &Ledger) -> BTreeMap<IpAddr, String> {
    ledger.allocations.iter().map(|(ip, entry)| (*ip, entry.node.to_string())).collect()
}

/// R79: Allocate, AllocateNext, Has, ForEach, Release, each on a ledger and on the set it is served from.
#[test]
fn r79_allocate_has_for_each_release() {
    let pool = pool("range: {cidr: 10.0.0.0/29}");
    let mut ledger = proven();
    let named = ip("10.0.0.5");
    assert_eq!(granted(&mut ledger, &pool, "a", Some(named)), Some(named), "Allocate");
    assert_eq!(granted(&mut ledger, &pool, "b", Some(named)), None, "it is taken");
    let next = granted(&mut ledger, &pool, "b", None).expect("AllocateNext");
    let taken = Taken::of(&pool, ledger.allocations.keys().copied());
    assert!(taken.contains(named) && taken.contains(next), "Has");
    assert!(
        (1..=6).map(|last| ip(&format!("10.0.0.{last}"))).filter(|ip| taken.contains(*ip)).eq(taken.iter())
    );
    assert_eq!(
        taken.iter().collect::<Vec<_>>(),
        ledger.allocations.keys().copied().collect::<Vec<_>>(),
        "ForEach"
    );
    let mut released = ask(&ledger, &pool, "a", Some(named), false).ledger.expect("Release");
    assert_eq!(holders(&released), BTreeMap::from([(next, "b".to_owned())]));
    assert_eq!(
        ask(&released, &pool, "a", Some(named), false).ledger,
        None,
        "released twice is released once"
    );
    assert_eq!(granted(&mut released, &pool, "c", Some(named)), Some(named), "it is free again");
}

/// R79: CIDR and IPFamily, of each part of a range.
#[test]
fn r79_cidr_and_family() {
    let pool = pool("range: {ipv4: {cidr: 10.0.0.0/24, start: 10.0.0.9}, ipv6: {cidr: 'fd00::/64'}}");
    let parts: Vec<(String, Family)> =
        pool.ranges()[0].parts().map(|part| (part.cidr().to_string(), part.family())).collect();
    assert_eq!(parts, [("10.0.0.0/24".to_owned(), Family::V4), ("fd00::/64".to_owned(), Family::V6)]);
}

/// R79, R55: DryRun: what would be given, with nothing kept; the real one then gives just that.
#[test]
fn r55_r79_a_dry_run_persists_nothing() {
    let pool = pool("range: {cidr: 10.0.0.0/24}");
    let mut ledger = proven();
    let before = ledger.clone();
    let taken = Taken::new(&pool);
    let tried = address(&next(&pool, &taken, "a").unwrap());
    assert!(ask(&ledger, &pool, "a", None, true).ledger.is_some());
    assert_eq!((&ledger, taken.len()), (&before, 0));
    assert_eq!(granted(&mut ledger, &pool, "a", None), Some(tried));
}

/// R54, R84: bands on, off and on again: the same addresses with the same holders; only what is new is chosen otherwise.
#[test]
fn r54_on_off_and_on_again_leaves_holders_untouched() {
    let on = pool("range: {cidr: 192.168.0.0/26}");
    let off = pool("{range: {cidr: 192.168.0.0/26}, staticBand: None}");
    let mut ledger = proven();
    granted(&mut ledger, &on, "by-name", Some(ip("192.168.0.3"))).expect("a static one");
    let nodes: Vec<String> = (0..30).map(|i| format!("node{i}")).collect();
    for node in &nodes {
        granted(&mut ledger, &on, node, None).expect(node);
    }
    let held = holders(&ledger);
    let bitmap = |pool: &Pool, ledger: &Ledger| Taken::of(pool, ledger.allocations.keys().copied());
    let band_end = ip("192.168.0.16");
    let low = |ledger: &Ledger, pool: &Pool| {
        let new = |i: u32| granted(&mut ledger.clone(), pool, &format!("new{i}"), None).expect("room");
        (0..200).map(new).filter(|ip| *ip <= band_end).count()
    };
    let mut lows = Vec::new();
    for pool in [&on, &off, &on] {
        for node in &nodes {
            let answer = ask(&ledger, pool, node, None, true);
            assert_eq!(answer.ledger, None, "{node}: nothing is written");
            let Reply::Grant(grant) = &answer.answers[0].reply else { panic!("{node} lost its address") };
            assert_eq!(held.get(&grant.lease.ips[0]), Some(node));
        }
        assert_eq!(bitmap(pool, &ledger), bitmap(&on, &ledger), "the same bits");
        lows.push(low(&ledger, pool));
    }
    assert_eq!(holders(&ledger), held);
    assert!(lows[1] > 0, "without a band its addresses are used at once");
    assert_eq!((lows[0], lows[2]), (0, 0), "with one they are not");
}
