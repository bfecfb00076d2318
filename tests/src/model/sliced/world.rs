//! The world: a store, hosts, time; and what must never be.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::OnceLock;

use policy::claim::{
    Answer, ClaimKey, Enactment, Entry, EntryKind, EntryState, Grant, Host, HostState, Lease, Ledger,
    NewSlice, NodeName, NodeSlice, NodeUid, Phase, PolicyName, PoolName, Record, Request, Slot, SlotKey,
    Time,
};
use policy::pool::{Pool, PoolSpec};
use serde_json::json;

use super::{Config, Fault};

pub(super) const QUARANTINE: Time = 100;

/// An object with its version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stored {
    pub(super) slice: NodeSlice,
    pub(super) version: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Store {
    pub(super) pool: Ledger,
    pub(super) pool_version: u32,
    pub(super) slices: BTreeMap<String, Stored>,
    pub(super) nodes: BTreeMap<NodeName, NodeUid>,
    pub(super) enactments: BTreeMap<NodeName, Enactment>,
    pub(super) states: BTreeMap<NodeName, HostState>,
    pub(super) asked: BTreeSet<NodeName>,
    /// Nodes whose enactment bears the annotation that resets their part.
    pub(super) resets: BTreeSet<NodeName>,
    /// The first range gives nothing more.
    pub(super) drains: bool,
}

/// A write that was decided on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Write {
    Create(NewSlice, NodeUid),
    Slice { name: String, version: u32, ledger: Ledger },
    Delete { name: String, version: u32 },
    Answer(Answer),
    Pool { version: u32, ledger: Ledger },
    Finish(NodeName),
    Ask(NodeName),
    ResetDone(NodeName),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Machine {
    pub(super) name: NodeName,
    pub(super) host: Host,
    pub(super) nic: BTreeSet<IpAddr>,
    pub(super) selected: bool,
    pub(super) pending: Vec<Write>,
    pub(super) ids: u32,
    pub(super) stamps: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) store: Store,
    pub(super) backup: Option<Box<Store>>,
    pub(super) hosts: Vec<Machine>,
    pub(super) lead: Vec<Write>,
    /// What strangers have.
    pub(super) wire: BTreeSet<IpAddr>,
    pub(super) now: Time,
    /// How often each thing was made: names of one don't depend on when another was.
    pub(super) made: BTreeMap<String, u32>,
    pub(super) left: Vec<Fault>,
    pub(super) ticks: u8,
    /// Hosts whose Node was deleted, and who have yet to hear: what they do meanwhile is the administrator's word.
    pub(super) restored: bool,
}

pub(super) fn key() -> ClaimKey {
    ClaimKey { policy: policy(), pool: name(), capture: "a".into() }
}

pub(super) fn slot() -> SlotKey {
    key().slot()
}

pub(super) fn policy() -> PolicyName {
    "one".into()
}

pub(super) fn name() -> PoolName {
    "pool".into()
}

/// So many slices of two addresses: of one range, or the first of a range of its own, which may drain.
pub(super) fn pool(config: &Config, drains: bool) -> &'static Pool {
    static POOLS: [[OnceLock<Pool>; 3]; 3] = [const { [const { OnceLock::new() }; 3] }; 3];
    let blocks = usize::from(config.blocks.clamp(1, 3));
    let two = blocks == 2 && config.faults.contains(&Fault::RangeDrained);
    let which = usize::from(two) + usize::from(two && drains);
    POOLS[blocks - 1][which].get_or_init(|| {
        let range = |name: &str, cidr: &str, state: &str| json!({"name": name, "cidr": cidr, "state": state, "perNodeHostBits": 1});
        let end = format!("10.0.0.{}", 1 + 2 * blocks);
        let all = json!({"name": "all", "cidr": "10.0.0.0/28", "start": "10.0.0.2", "end": end, "perNodeHostBits": 1});
        let first = range("one", "10.0.0.2/31", if drains { "Draining" } else { "Active" });
        let ranges = if two { vec![first, range("two", "10.0.0.4/31", "Active")] } else { vec![all] };
        let spec = json!({"ranges": ranges, "staticBand": "None", "quarantine": format!("{QUARANTINE}s")});
        let spec = PoolSpec::from_spec("pool", &spec).expect("a spec");
        Pool::new(&spec).expect("a pool")
    })
}

/// The addresses of a block.
pub(super) fn block(at: u8) -> [IpAddr; 2] {
    [2, 3].map(|last| IpAddr::from([10, 0, 0, last + 2 * at]))
}

/// The block of the first range.
pub(super) fn is_first(ip: IpAddr) -> bool {
    block(0).contains(&ip)
}

impl World {
    pub(super) fn new(config: &Config) -> Self {
        let mut ledger = Ledger::new("p0".into());
        ledger.rebuilt_for = Some("p0".into());
        let names = (0..config.hosts).map(|host| NodeName::new(format!("h{host}")));
        let hosts: Vec<Machine> = names
            .map(|name| Machine {
                name,
                host: Host::default(),
                nic: BTreeSet::new(),
                selected: true,
                pending: Vec::new(),
                ids: 0,
                stamps: 0,
            })
            .collect();
        let nodes = hosts.iter().map(|host| (host.name.clone(), NodeUid::new(format!("{}-0", host.name))));
        let store = Store {
            pool: ledger,
            pool_version: 0,
            slices: BTreeMap::new(),
            nodes: nodes.collect(),
            enactments: BTreeMap::new(),
            states: BTreeMap::new(),
            asked: BTreeSet::new(),
            resets: BTreeSet::new(),
            drains: false,
        };
        let mut world = Self {
            store,
            backup: None,
            hosts,
            lead: Vec::new(),
            wire: BTreeSet::new(),
            now: 1_000,
            made: BTreeMap::new(),
            left: config.faults.clone(),
            ticks: 4,
            restored: false,
        };
        if config.unsliced_before {
            world.first_holds();
        }
        world.backup = Some(Box::new(world.store.clone()));
        world
    }

    /// The first host has an address of the pool of before; the one of now is new.
    fn first_holds(&mut self) {
        let ip: IpAddr = "10.0.0.2".parse().expect("an address");
        let (node, uid) = (self.hosts[0].name.clone(), NodeUid::new("h0-0"));
        let lease = Lease { ips: vec![ip], sequence: 7, pool: "before".into() };
        let id = "h0-before".into();
        let request = Request { holds: Some(lease.clone()), ..Request::new(id) };
        let grant = Grant { id: request.id.clone(), lease: lease.clone() };
        let slots = BTreeMap::from([(
            slot(),
            Slot { request: Some(request.clone()), grant: Some(grant), refused: None },
        )]);
        self.store.enactments.insert(
            node.clone(),
            Enactment {
                uid: "e-before".into(),
                node: node.clone(),
                node_uid: uid.clone(),
                policy: policy(),
                deleting: None,
                slots,
            },
        );
        let stamp = "before".into();
        self.store
            .states
            .insert(node.clone(), HostState { node, node_uid: uid.clone(), stamp, shows: [ip].into() });
        let record = Record { id: request.id, node_uid: uid, phase: Phase::Holding(lease) };
        self.hosts[0].host.journal.insert(key(), record);
        self.hosts[0].nic.insert(ip);
        self.store.pool = Ledger::new("p1".into());
    }

    pub(super) fn fresh(&mut self, what: &str) -> String {
        format!("{what}-{}", self.count(what))
    }

    pub(super) fn count(&mut self, what: &str) -> u32 {
        let made = self.made.entry(what.to_owned()).or_insert(1);
        *made += 1;
        *made
    }

    pub(super) fn slices(&self) -> Vec<NodeSlice> {
        self.store.slices.values().map(|stored| stored.slice.clone()).collect()
    }

    /// What is wrong, in this very state.
    pub(super) fn wrong(&self) -> Option<String> {
        let mut on: BTreeMap<IpAddr, &NodeName> = BTreeMap::new();
        for host in &self.hosts {
            for ip in &host.nic {
                if let Some(other) = on.insert(*ip, &host.name) {
                    return Some(format!("{ip} is on the NICs of {other} and {}", host.name));
                }
            }
        }
        // What stands in a slice that goes and is not in use is given up: its node's next write of that slice takes it out.
        let stays = self.store.slices.values().filter(|stored| !stored.slice.ledger.deleting);
        let entries = stays.flat_map(|stored| &stored.slice.ledger.allocations);
        let mut held: BTreeMap<_, IpAddr> = BTreeMap::new();
        for (ip, entry) in entries.filter(|(_, entry)| entry.is_held()) {
            if let Some(other) = held.insert((&entry.node_uid, &entry.request), *ip) {
                return Some(format!("{:?} holds both {other} and {ip}", entry.request));
            }
        }
        None
    }
}

/// An entry, as short as can be: for messages.
pub(super) fn words(entry: &Entry) -> String {
    let state = if entry.state == EntryState::Held { "held" } else { "aside" };
    let kind = if entry.kind == EntryKind::Static { " static" } else { "" };
    format!("{state}{kind} by {:?} of {}", entry.request, entry.node_uid)
}
