//! The state of the model: everything that can differ between two moments.
//!
//! Parts are shared between a state and the next and copied when written to: most moves touch one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use policy::claim::{
    Answer, ClaimKey, Hold, Host, Ledger, NodeName, NodeUid, Phase, PolicyName, PoolUid, RequestId, Stamp,
    Time,
};

use super::config::{Config, QUARANTINE};
use super::fault::{Breach, Fault};
use super::store::{First, PoolObject, Store};

/// When a run begins.
const START: Time = 1_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct World {
    pub(super) store: Rc<Store>,
    /// A backup, taken once if the store may be restored.
    pub(super) backup: Option<Rc<Store>>,
    /// After a restore, resourceVersions may come to the same values again.
    pub(super) restored: bool,
    /// Has a leader met the hold that is on, so that its time counts?
    pub(super) met: bool,
    pub(super) hosts: Vec<Rc<HostWorld>>,
    pub(super) rival: Rival,
    /// Addresses that a stranger uses on the wire.
    pub(super) wire: BTreeSet<IpAddr>,
    pub(super) now: Time,
    /// Faults still to come.
    pub(super) left: Vec<Fault>,
    /// How often the rival may still take a copy.
    pub(super) peeks: u8,
    /// How many names were made: UIDs, ids, stamps and versions, no two alike.
    made: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostWorld {
    pub(super) name: NodeName,
    pub(super) agent: Agent,
    pub(super) reachable: bool,
    pub(super) host: Host,
    pub(super) nic: BTreeSet<IpAddr>,
    /// What the policy was last brought about with, on disk. Left out where a policy makes one claim: nothing depends on it then.
    pub(super) good: BTreeSet<IpAddr>,
    /// Policies that can't be put on the NIC now.
    pub(super) waits: BTreeSet<PolicyName>,
    /// Nobody inside sees this: the Node UID under which each address on the NIC was last journalled. It outlives the
    /// journal.
    pub(super) under: BTreeMap<IpAddr, NodeUid>,
    /// Nor this: the addresses for which an exception of docs/claims.md holds.
    pub(super) excused: BTreeSet<IpAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agent {
    Running,
    Paused,
    Down,
    /// The machine is off.
    Off,
}

/// The controller with old caches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rival {
    pub(super) cache: Option<Rc<Store>>,
    /// Computed, not yet written: it paused after the ledger write.
    pub(super) pending: Vec<Answer>,
}

impl World {
    pub(super) fn first(config: &Config) -> Self {
        let nodes = config.names.iter().enumerate();
        let store = Store {
            nodes: nodes.map(|(i, name)| (name.clone(), NodeUid::new(format!("first-{i}")))).collect(),
            policy: true,
            grown: false,
            pool: None,
            enactments: BTreeMap::new(),
            states: BTreeMap::new(),
            refresh: BTreeSet::new(),
            reset_policy: false,
            reset_nodes: BTreeSet::new(),
        };
        let host = |name: &NodeName| HostWorld {
            name: name.clone(),
            agent: Agent::Running,
            reachable: true,
            host: Host::default(),
            nic: BTreeSet::new(),
            good: BTreeSet::new(),
            waits: BTreeSet::new(),
            under: BTreeMap::new(),
            excused: BTreeSet::new(),
        };
        let mut world = Self {
            store: Rc::new(store),
            backup: None,
            restored: false,
            met: true,
            hosts: config.names.iter().map(|name| Rc::new(host(name))).collect(),
            rival: Rival::default(),
            wire: BTreeSet::new(),
            now: START,
            left: config.faults.clone(),
            peeks: config.peeks,
            made: 0,
        };
        // The first pool is old and proven; PoolDeleted brings new ones.
        world.create_pool(config);
        if let Some(ledger) = world.ledger_mut() {
            ledger.rebuilt_for = Some(ledger.pool.clone());
        }
        world
    }

    pub(super) fn create_pool(&mut self, config: &Config) {
        let mut ledger = Ledger::new(PoolUid::new(self.fresh("p")));
        if config.breach == Some(Breach::GivesUnbuilt) {
            ledger.rebuilt_for = Some(ledger.pool.clone());
        }
        // The restore procedure covers pools made after it, too: what was held in the lost history is asserted
        // before anything is given (rule 6).
        if self.restored && config.breach != Some(Breach::NoHold) {
            ledger.hold = Some(Hold { until: self.now + QUARANTINE });
            self.met = true;
        }
        self.write_ledger(ledger);
    }

    /// Writes a ledger; the caller has checked its guard.
    pub(super) fn write_ledger(&mut self, ledger: Ledger) {
        self.made += 1;
        let (version, first) = (self.made, self.store.first());
        self.store_mut().pool = Some(Rc::new(PoolObject { version, ledger, first }));
    }

    /// Somebody edits the pool's spec.
    pub(super) fn edit_pool(&mut self, first: First) -> bool {
        self.made += 1;
        let version = self.made;
        let Some(pool) = &mut self.store_mut().pool else { return false };
        let pool = Rc::make_mut(pool);
        (pool.version, pool.first) = (version, first);
        true
    }

    pub(super) fn store_mut(&mut self) -> &mut Store {
        Rc::make_mut(&mut self.store)
    }

    pub(super) fn ledger_mut(&mut self) -> Option<&mut Ledger> {
        self.store_mut().pool.as_mut().map(|pool| &mut Rc::make_mut(pool).ledger)
    }

    pub(super) fn host_mut(&mut self, host: usize) -> &mut HostWorld {
        Rc::make_mut(&mut self.hosts[host])
    }

    /// The id that a request made now would bear; used up by [`Self::used_id`].
    pub(super) fn next_id(&self, host: usize, config: &Config) -> RequestId {
        if config.breach == Some(Breach::IdsUsedAgain) {
            return config.same_ids[host].clone();
        }
        RequestId::new(format!("r{}", self.made))
    }

    pub(super) fn used_id(&mut self) {
        self.made += 1;
    }

    pub(super) fn fresh_stamp(&mut self) -> Stamp {
        Stamp::new(self.fresh("s"))
    }

    pub(super) fn fresh_node(&mut self) -> NodeUid {
        NodeUid::new(self.fresh("u"))
    }

    /// A name of this sort that nothing bears.
    pub(super) fn fresh(&mut self, sort: &str) -> String {
        self.made += 1;
        format!("{sort}{}", self.made)
    }
}

impl HostWorld {
    /// What is journalled goes on the NIC, whatever the API says of it.
    pub(super) fn apply_journal(&mut self) {
        self.nic.extend(self.host.held());
    }

    /// What was good and can be had again, since all of it is still held.
    pub(super) fn good(&self) -> &BTreeSet<IpAddr> {
        static NOTHING: BTreeSet<IpAddr> = BTreeSet::new();
        let is_held = |ip: &IpAddr| self.host.held().any(|held| held == *ip);
        if self.good.iter().all(is_held) { &self.good } else { &NOTHING }
    }

    /// Keeps [`Self::good`] true, of a policy that makes these claims.
    pub(super) fn note_good(&mut self, wants: &BTreeMap<ClaimKey, Option<IpAddr>>) {
        let lease = |key: &ClaimKey| match &self.host.journal.get(key)?.phase {
            Phase::Holding(lease) => Some(lease.ips.clone()),
            Phase::Asking { .. } | Phase::Parked(_) | Phase::Releasing => None,
        };
        let leases: Option<Vec<Vec<IpAddr>>> = wants.keys().map(lease).collect();
        let Some(ips) = leases.map(|leases| leases.into_iter().flatten().collect::<BTreeSet<IpAddr>>())
        else {
            return;
        };
        if ips.is_subset(&self.nic) {
            self.good = ips;
        }
    }

    pub(super) fn clear_nic(&mut self) {
        self.nic.clear();
        self.under.clear();
    }
}
