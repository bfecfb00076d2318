//! The state of the model: everything that can differ between two moments.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use policy::claim::{
    Answer, ClaimKey, Entry, EntryState, Hold, Host, Lease, Ledger, NodeName, NodeUid, Phase, PoolUid,
    RequestId, Stamp, Time,
};
use policy::pool::{Pool, PoolSpec};

use super::fault::{Breach, Fault};
use super::store::{PoolObject, Store};

/// The quarantine, and how far one tick of the clock goes: an agent that runs does all it has to do, and a
/// confirmation runs out, long before.
pub(super) const QUARANTINE: Time = 100;
/// The time at which every normalised state stands.
pub(super) const NOW: Time = 1_000;

/// What is the same in all states of a run.
pub struct Config {
    pub hosts: usize,
    pub addresses: u8,
    /// Agents may serve themselves at any time.
    pub self_service: bool,
    /// How often the second controller, the one with old caches, takes a copy of the store to act on later.
    pub peeks: u8,
    pub faults: Vec<Fault>,
    pub breach: Option<Breach>,
    pub(super) pool: Pool,
}

impl Config {
    pub fn new(hosts: usize, addresses: u8, faults: &[Fault]) -> Self {
        Self {
            hosts,
            addresses,
            self_service: false,
            peeks: 1,
            faults: faults.to_vec(),
            breach: None,
            pool: tiny_pool(addresses),
        }
    }

    pub(super) fn ips(&self) -> impl Iterator<Item = IpAddr> {
        (1..=self.addresses).map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)))
    }
}

/// 10.0.0.1 and up, one shared ledger.
fn tiny_pool(addresses: u8) -> Pool {
    let spec = serde_json::json!({
        "range": {"cidr": "10.0.0.0/24", "start": "10.0.0.1", "end": format!("10.0.0.{addresses}")},
        "staticBand": "None",
        "quarantine": format!("{QUARANTINE}s"),
    });
    let spec = PoolSpec::from_spec("pool", &spec).expect("the model's pool is well formed");
    Pool::new(&spec).expect("the model's pool is well formed")
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) store: Store,
    /// A backup, taken once if the store may be restored.
    pub(super) backup: Option<Box<Store>>,
    /// After a restore, resourceVersions may come to the same values again.
    pub(super) restored: bool,
    pub(super) hosts: Vec<HostWorld>,
    pub(super) rival: Rival,
    /// Addresses that a stranger uses on the wire.
    pub(super) wire: BTreeSet<IpAddr>,
    pub(super) now: Time,
    /// Faults still to come.
    pub(super) left: Vec<Fault>,
    /// How often the rival may still take a copy.
    pub(super) peeks: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HostWorld {
    pub(super) name: NodeName,
    pub(super) agent: Agent,
    pub(super) reachable: bool,
    pub(super) host: Host,
    pub(super) nic: BTreeSet<IpAddr>,
    /// An exception of DESIGN 4 holds for this host: it could not hear in time that its Node was deleted or
    /// that the store was restored.
    pub(super) excused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Agent {
    Running,
    Paused,
    Down,
    /// The machine is off.
    Off,
}

/// The controller with old caches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Rival {
    pub(super) cache: Option<Box<Store>>,
    /// Computed, not yet written: it paused after the ledger write.
    pub(super) pending: Vec<Answer>,
}

impl World {
    pub(super) fn first(config: &Config) -> Self {
        let names: Vec<NodeName> = ["a", "b", "c"]
            .into_iter()
            .take(config.hosts)
            .map(NodeName::from)
            .collect();
        let store = Store {
            nodes: names
                .iter()
                .enumerate()
                .map(|(i, name)| (name.clone(), node_uid(i)))
                .collect(),
            policy: true,
            pool: None,
            enactments: BTreeMap::new(),
            states: BTreeMap::new(),
            refresh: BTreeSet::new(),
        };
        let hosts = names
            .into_iter()
            .map(|name| HostWorld {
                name,
                agent: Agent::Running,
                reachable: true,
                host: Host::default(),
                nic: BTreeSet::new(),
                excused: false,
            })
            .collect();
        let mut world = Self {
            store,
            backup: None,
            restored: false,
            hosts,
            rival: Rival::default(),
            wire: BTreeSet::new(),
            now: NOW,
            left: config.faults.clone(),
            peeks: config.peeks,
        };
        // The first pool is old and proven; PoolDeleted brings new ones.
        world.create_pool(config);
        if let Some(pool) = &mut world.store.pool {
            pool.ledger.rebuilt_for = Some(pool.ledger.pool.clone());
        }
        world
    }

    pub(super) fn create_pool(&mut self, config: &Config) {
        let uid = self.unused("p", |stores| {
            let pools = stores.iter().filter_map(|store| store.pool.as_ref());
            let ledgers = pools.map(|pool| pool.ledger.pool.as_str().to_owned());
            let leases = self
                .leases()
                .into_iter()
                .map(|lease| lease.pool.as_str().to_owned());
            ledgers.chain(leases).collect()
        });
        let mut ledger = Ledger::new(PoolUid::new(uid));
        if config.breach == Some(Breach::GivesUnbuilt) {
            ledger.rebuilt_for = Some(ledger.pool.clone());
        }
        // The restore procedure covers pools made after it, too: what was held in the lost history is asserted
        // before anything is given (rule 6).
        if self.restored && config.breach != Some(Breach::NoHold) {
            ledger.hold = Some(Hold {
                until: self.now + QUARANTINE,
            });
        }
        let version = self.unused_version();
        self.store.pool = Some(PoolObject { version, ledger });
    }

    /// Writes a ledger; the caller has checked its guard.
    pub(super) fn write_ledger(&mut self, ledger: Ledger) {
        let version = self.unused_version();
        self.store.pool = Some(PoolObject { version, ledger });
    }

    /// A name that no request has borne; not even looked for where the journal has one already.
    pub(super) fn fresh_id(&self, host: usize, config: &Config) -> RequestId {
        if !self.hosts[host].host.journal.is_empty() {
            return RequestId::new("unneeded");
        }
        if config.breach == Some(Breach::IdsUsedAgain) {
            return RequestId::new(format!("same-{host}"));
        }
        RequestId::new(self.unused("r", |stores| {
            let mut used: Vec<String> = Vec::new();
            for store in stores {
                for slot in store
                    .enactments
                    .values()
                    .flat_map(|enactment| enactment.slots.values())
                {
                    used.extend(slot.request.iter().map(|request| request.id.as_str().to_owned()));
                    used.extend(slot.grant.iter().map(|grant| grant.id.as_str().to_owned()));
                    used.extend(slot.refused.iter().map(|refused| refused.id.as_str().to_owned()));
                }
                let entries = store
                    .ledger()
                    .into_iter()
                    .flat_map(|ledger| ledger.allocations.values());
                used.extend(
                    entries
                        .filter_map(|entry| entry.request.as_ref())
                        .map(|id| id.as_str().to_owned()),
                );
            }
            used.extend(
                self.rival
                    .pending
                    .iter()
                    .map(|answer| answer.id.as_str().to_owned()),
            );
            let records = self.hosts.iter().flat_map(|host| host.host.journal.values());
            used.extend(records.map(|record| record.id.as_str().to_owned()));
            used
        }))
    }

    pub(super) fn fresh_stamp(&self) -> Stamp {
        Stamp::new(self.unused("s", |stores| {
            let mut used: Vec<String> = Vec::new();
            for store in stores {
                used.extend(store.states.values().map(|state| state.stamp.as_str().to_owned()));
                let entries = store
                    .ledger()
                    .into_iter()
                    .flat_map(|ledger| ledger.allocations.values());
                used.extend(entries.filter_map(witness).map(|stamp| stamp.as_str().to_owned()));
            }
            used
        }))
    }

    pub(super) fn fresh_enactment(&self) -> String {
        self.unused("e", |stores| {
            let enactments = stores.iter().flat_map(|store| store.enactments.values());
            let used = enactments.map(|enactment| enactment.uid.as_str().to_owned());
            used.chain(
                self.rival
                    .pending
                    .iter()
                    .map(|answer| answer.enactment.as_str().to_owned()),
            )
            .collect()
        })
    }

    pub(super) fn fresh_node(&self) -> NodeUid {
        NodeUid::new(self.unused("u", |stores| {
            let mut used: Vec<String> = Vec::new();
            for store in stores {
                used.extend(store.nodes.values().map(|uid| uid.as_str().to_owned()));
                used.extend(
                    store
                        .enactments
                        .values()
                        .map(|enactment| enactment.node_uid.as_str().to_owned()),
                );
                used.extend(
                    store
                        .states
                        .values()
                        .map(|state| state.node_uid.as_str().to_owned()),
                );
                let entries = store
                    .ledger()
                    .into_iter()
                    .flat_map(|ledger| ledger.allocations.values());
                used.extend(entries.map(|entry| entry.node_uid.as_str().to_owned()));
            }
            let records = self.hosts.iter().flat_map(|host| host.host.journal.values());
            used.extend(records.map(|record| record.node_uid.as_str().to_owned()));
            used
        }))
    }

    fn unused_version(&self) -> u32 {
        let used: BTreeSet<u32> = self
            .stores()
            .iter()
            .filter_map(|store| store.pool.as_ref())
            .map(|pool| pool.version)
            .collect();
        (0..).find(|version| !used.contains(version)).unwrap_or(0)
    }

    /// The first name of this sort that nothing in the world bears: as good as a name never used.
    fn unused(&self, sort: &str, used: impl Fn(&[&Store]) -> Vec<String>) -> String {
        let used: BTreeSet<String> = used(&self.stores()).into_iter().collect();
        (0..)
            .map(|n| format!("{sort}{n}"))
            .find(|name| !used.contains(name))
            .unwrap_or_default()
    }

    fn stores(&self) -> Vec<&Store> {
        let others = [self.backup.as_deref(), self.rival.cache.as_deref()];
        std::iter::once(&self.store)
            .chain(others.into_iter().flatten())
            .collect()
    }

    fn leases(&self) -> Vec<&Lease> {
        let mut leases = Vec::new();
        for store in self.stores() {
            for slot in store
                .enactments
                .values()
                .flat_map(|enactment| enactment.slots.values())
            {
                leases.extend(slot.request.iter().filter_map(|request| request.holds.as_ref()));
                leases.extend(slot.grant.iter().map(|grant| &grant.lease));
            }
        }
        for host in &self.hosts {
            leases.extend(
                host.host
                    .journal
                    .values()
                    .filter_map(|record| match &record.phase {
                        Phase::Holding(lease) | Phase::Parked(lease) => Some(lease),
                        _ => None,
                    }),
            );
            leases.extend(host.host.memory.announced.values());
        }
        leases
    }
}

fn witness(entry: &Entry) -> Option<&Stamp> {
    match &entry.state {
        EntryState::Quarantined(quarantine) => quarantine.witness.as_ref(),
        EntryState::Held => None,
    }
}

fn node_uid(host: usize) -> NodeUid {
    NodeUid::new(format!("u{host}"))
}

/// The one claim that the policy makes on every node.
pub(super) fn claim_key() -> ClaimKey {
    ClaimKey {
        policy: "static-ip".into(),
        pool: "pool".into(),
        capture: "addr".into(),
    }
}
