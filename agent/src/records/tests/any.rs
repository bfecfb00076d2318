//! Any value of the protocol. Every struct is spelt out, so that a new field doesn't compile until it is made up too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use policy::claim::*;
use proptest::collection::{btree_map, btree_set};
use proptest::option;
use proptest::prelude::*;

use crate::records::LAST;

fn word<T: for<'a> From<&'a str> + std::fmt::Debug>(pattern: &'static str) -> impl Strategy<Value = T> {
    pattern.prop_map(|text: String| T::from(&text))
}

/// May be empty, as the policy of an address that is merely shown is.
const NAME: &str = "[a-z0-9-]{0,12}";
/// Never empty.
const ID: &str = "[a-z0-9-]{1,12}";

fn text(pattern: &'static str) -> impl Strategy<Value = String> {
    pattern.prop_map(String::from)
}

fn stranger() -> impl Strategy<Value = Stranger> {
    let parts = (text("([0-9a-f]{2}:){0,6}"), text("[a-z0-9.]{0,15}"));
    parts.prop_map(|(mac, interface)| Stranger { mac, interface })
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![Just(0), Just(LAST), 0..=LAST]
}

fn sequence() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(i64::MAX as u64), 0..=i64::MAX as u64]
}

/// Half of them in the ranges of the pools in [`super::round_trip`].
fn v4() -> impl Strategy<Value = IpAddr> {
    prop_oneof![inner_v4(), any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from(bits)))]
}

fn v6() -> impl Strategy<Value = IpAddr> {
    let anywhere = any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from(bits)));
    prop_oneof![inner_v6(), anywhere.prop_filter("IPv4 in IPv6", |ip| ip.to_canonical().is_ipv6())]
}

fn inner_v4() -> impl Strategy<Value = IpAddr> {
    (1..=254_u8).prop_map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)))
}

fn inner_v6() -> impl Strategy<Value = IpAddr> {
    (1..=0xffff_u16).prop_map(|last| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last)))
}

fn ip() -> impl Strategy<Value = IpAddr> {
    prop_oneof![v4(), v6()]
}

fn kind() -> impl Strategy<Value = EntryKind> {
    prop_oneof![Just(EntryKind::Dynamic), Just(EntryKind::Static), Just(EntryKind::Reserved)]
}

fn reason() -> impl Strategy<Value = QuarantineReason> {
    prop_oneof![
        Just(QuarantineReason::NodeGone),
        Just(QuarantineReason::Orphan),
        Just(QuarantineReason::Observed),
        stranger().prop_map(|by| QuarantineReason::Collision { by }),
    ]
}

fn state() -> impl Strategy<Value = EntryState> {
    let quarantine = (time(), reason(), option::of(word(NAME)));
    prop_oneof![
        Just(EntryState::Held),
        quarantine.prop_map(|(until, reason, witness)| {
            EntryState::Quarantined(Quarantine { until, reason, witness })
        }),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    let names = (word(NAME), word(NAME), word(NAME), word(NAME), option::of(word(ID)));
    (names, sequence(), time(), kind(), state()).prop_map(
        |((node, node_uid, policy, capture, request), sequence, since, kind, state)| Entry {
            request: request.map(|id: RequestId| RequestId::of(&node, id.as_str())),
            node,
            node_uid,
            policy,
            capture,
            sequence,
            since,
            kind,
            state,
        },
    )
}

pub(super) fn ledger() -> impl Strategy<Value = Ledger> {
    let hold = option::of(time().prop_map(|until| Hold { until }));
    let proven = option::of(word(NAME));
    let asked = (any::<bool>(), any::<bool>(), any::<bool>());
    (word(ID), sequence(), proven, hold, asked, btree_map(ip(), entry(), 0..8)).prop_map(
        |(pool, sequence, rebuilt_for, hold, (reset, deleting, offsets_agree), allocations)| Ledger {
            pool,
            sequence,
            rebuilt_for,
            hold,
            reset,
            deleting,
            offsets_agree,
            allocations,
        },
    )
}

fn lease(v4: BoxedStrategy<IpAddr>, v6: BoxedStrategy<IpAddr>) -> impl Strategy<Value = Lease> {
    let ips = prop_oneof![
        v4.clone().prop_map(|ip| vec![ip]),
        v6.clone().prop_map(|ip| vec![ip]),
        (v4, v6).prop_map(|(v4, v6)| vec![v4, v6]),
    ];
    (ips, sequence(), word(NAME)).prop_map(|(ips, sequence, pool)| Lease { ips, sequence, pool })
}

fn request() -> impl Strategy<Value = Request> {
    let holds = option::of(lease(v4().boxed(), v6().boxed()));
    let declined = btree_map(ip(), stranger(), 0..3);
    (word(ID), any::<bool>(), holds, declined, option::of(ip()))
        .prop_map(|(id, want, holds, declined, literal)| Request { id, want, holds, declined, literal })
}

/// Only what a pool has can be granted.
fn grant() -> impl Strategy<Value = Grant> {
    (word(ID), lease(inner_v4().boxed(), inner_v6().boxed())).prop_map(|(id, lease)| Grant { id, lease })
}

fn refusal() -> impl Strategy<Value = Refusal> {
    let reason = prop_oneof![
        Just(RefusalReason::Released),
        Just(RefusalReason::HeldByAnother),
        Just(RefusalReason::NoAddress),
        Just(RefusalReason::NoSuchPool),
    ];
    (word(ID), reason, text("\\PC{0,20}")).prop_map(|(id, reason, message)| Refusal { id, reason, message })
}

fn slot() -> impl Strategy<Value = Slot> {
    let slot = (option::of(request()), option::of(grant()), option::of(refusal()))
        .prop_map(|(request, grant, refused)| Slot { request, grant, refused });
    slot.prop_filter("says nothing", |slot| slot != &Slot::default())
}

/// Ids are of the node whose enactment they are in.
fn of(node: &NodeName, mut slot: Slot) -> Slot {
    let Slot { request, grant, refused } = &mut slot;
    let ids = [
        request.as_mut().map(|request| &mut request.id),
        grant.as_mut().map(|grant| &mut grant.id),
        refused.as_mut().map(|refused| &mut refused.id),
    ];
    for id in ids.into_iter().flatten() {
        *id = RequestId::of(node, id.as_str());
    }
    slot
}

/// Names that a Node may have, also one that no label can hold.
fn node() -> impl Strategy<Value = NodeName> {
    prop_oneof![word(ID_ENDS_PLAIN), Just(NodeName::new("n".repeat(100)))]
}

const ID_ENDS_PLAIN: &str = "[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?";

pub(super) fn enactment() -> impl Strategy<Value = Enactment> {
    let key = (word(ID_ENDS_PLAIN), word(ID)).prop_map(|(pool, capture)| SlotKey { pool, capture });
    let names = (word(ID), node(), word(ID), word(ID_ENDS_PLAIN));
    (names, option::of(time()), btree_map(key, slot(), 0..5)).prop_map(
        |((uid, node, node_uid, policy), deleting, slots)| Enactment {
            uid,
            slots: slots.into_iter().map(|(key, slot)| (key, of(&node, slot))).collect(),
            node,
            node_uid,
            policy,
            deleting,
        },
    )
}

pub(super) fn host_state() -> impl Strategy<Value = HostState> {
    (node(), word(ID), word(NAME), btree_set(ip(), 0..6))
        .prop_map(|(node, node_uid, stamp, shows)| HostState { node, node_uid, stamp, shows })
}

/// A host that knows of some of what it shows: a third is journalled, a third announced.
pub(super) fn host(shows: &BTreeSet<IpAddr>) -> Host {
    let mut host = Host { journal: BTreeMap::new(), memory: Memory::default() };
    for (i, ip) in shows.iter().enumerate() {
        let capture = CaptureName::new(format!("c{i}"));
        let key = ClaimKey { policy: "p".into(), pool: "t".into(), capture };
        let lease = Lease { ips: vec![*ip], sequence: 1, pool: "u".into() };
        let phase = match i % 3 {
            0 => Phase::Holding(lease),
            1 => {
                host.memory.announced.insert(key.clone(), lease);
                Phase::Asking { declined: BTreeMap::new() }
            }
            _ => continue,
        };
        let id = RequestId::new(format!("r{i}"));
        host.journal.insert(key, Record { id, node_uid: "n".into(), phase });
    }
    host
}
