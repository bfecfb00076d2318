//! What is the same in all states of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use policy::claim::{ClaimKey, NodeName, PolicyName, RequestId, Time};
use policy::pool::{Barred, Holder, NodeView, Pool, PoolSpec, PoolView, Taken, Want, choose};
use serde_json::{Value, json};

use super::fault::{Breach, Fault};
use super::store::First;

/// The quarantine, and how far one tick of the clock goes: an agent that runs does all it has to do, and a
/// confirmation runs out, long before. Odd, so that whoever takes turns by the clock has another turn next.
pub(super) const QUARANTINE: Time = 101;

/// The one address of the first range, where there are two.
const FIRST: &str = "10.0.0.1";

/// A world to be searched: how many of what, and what may go wrong in it.
pub struct Config {
    pub(super) self_service: bool,
    pub(super) peeks: u8,
    pub(super) faults: Vec<Fault>,
    pub(super) breach: Option<Breach>,
    pub(super) addresses: u8,
    /// By what the spec says of the first range.
    pools: [Pool; 3],
    /// The hosts' names.
    pub(super) names: Vec<NodeName>,
    /// For [`Breach::IdsUsedAgain`]: the one id of each host.
    pub(super) same_ids: Vec<RequestId>,
    /// Every order of the hosts, the plain one first.
    pub(super) orders: Vec<Vec<usize>>,
    /// The claims that the one policy makes on every node.
    pub(super) wants: BTreeMap<ClaimKey, Option<IpAddr>>,
    /// So many hosts, the first ones, have a policy that names its address (rule 11): the first of the pool.
    pub(super) naming: usize,
    /// What is claimed on these.
    named: BTreeMap<ClaimKey, Option<IpAddr>>,
    /// What the policy claims before it is edited, where it is.
    before: Option<BTreeMap<ClaimKey, Option<IpAddr>>>,
    /// That policy.
    pub(super) policies: BTreeSet<PolicyName>,
}

impl Config {
    /// A policy with one capture.
    pub fn new(hosts: usize, addresses: u8, faults: &[Fault]) -> Self {
        Self::with_captures(1, hosts, addresses, faults)
    }

    /// A policy with several captures of one pool, which are had together or not at all (rule 1).
    pub fn with_captures(captures: usize, hosts: usize, addresses: u8, faults: &[Fault]) -> Self {
        let two = faults.contains(&Fault::RangeDrained);
        let addresses = if two { addresses.max(2) } else { addresses };
        let pools = [First::Gives, First::Drains, First::Gone]
            .map(|first| if two { two_ranges(addresses, first) } else { tiny_pool(addresses) });
        let wants: BTreeMap<ClaimKey, Option<IpAddr>> = ["addr", "more"]
            .into_iter()
            .take(captures)
            .map(|capture| ClaimKey {
                policy: "static-ip".into(),
                pool: "pool".into(),
                capture: capture.into(),
            })
            .map(|key| (key, None))
            .collect();
        Self {
            self_service: false,
            peeks: 1,
            faults: faults.to_vec(),
            breach: None,
            addresses,
            names: names(hosts, &pools[0], &wants),
            same_ids: (0..hosts).map(|host| RequestId::new(format!("same-{host}"))).collect(),
            orders: orders(hosts),
            pools,
            policies: wants.keys().map(|key| key.policy.clone()).collect(),
            naming: 0,
            named: BTreeMap::new(),
            before: None,
            wants,
        }
    }

    /// On so many hosts the policy names the pool's first address instead of asking for any; where that is not all of them,
    /// hosts are not alike.
    pub fn naming(mut self, hosts: usize) -> Self {
        let first = self.ips().next();
        self.named = self.wants.keys().map(|key| (key.clone(), first)).collect();
        self.naming = hosts;
        if hosts < self.hosts() {
            self.orders.truncate(1);
        }
        self
    }

    /// The policy has its first capture alone, until somebody edits it.
    pub fn growing(mut self) -> Self {
        self.before = Some(self.wants.iter().take(1).map(|(key, literal)| (key.clone(), *literal)).collect());
        self
    }

    pub(super) fn grows(&self) -> bool {
        self.before.is_some()
    }

    /// What the policy, edited or not, claims on a host.
    pub(super) fn wants_of(&self, host: usize, grown: bool) -> &BTreeMap<ClaimKey, Option<IpAddr>> {
        match &self.before {
            Some(before) if !grown => before,
            _ if host < self.naming => &self.named,
            _ => &self.wants,
        }
    }

    /// The addresses that would do for a host.
    pub(super) fn would_do(&self, host: usize) -> impl Iterator<Item = IpAddr> {
        self.ips().take(if host < self.naming { 1 } else { usize::MAX })
    }

    /// How often the second controller, the one with old caches, takes a copy of the store to act on later;
    /// once, unless said otherwise.
    pub fn old_copies(self, peeks: u8) -> Self {
        Self { peeks, ..self }
    }

    /// May agents serve themselves at any time?
    pub fn self_service(self, self_service: bool) -> Self {
        Self { self_service, ..self }
    }

    /// With a rule broken.
    pub fn broken(self, breach: Breach) -> Self {
        Self { breach: Some(breach), ..self }
    }

    /// The pool as its spec has it.
    pub(super) fn pool(&self, first: First) -> &Pool {
        &self.pools[first as usize]
    }

    pub(super) fn hosts(&self) -> usize {
        self.names.len()
    }

    pub(super) fn captures(&self) -> usize {
        self.wants.len()
    }

    /// What the pool may give: a range that drains, or is gone, gives nothing.
    pub(super) fn gives(&self, ip: IpAddr, first: First) -> bool {
        first == First::Gives || ip.to_string() != FIRST
    }

    pub(super) fn ips(&self) -> impl Iterator<Item = IpAddr> {
        (1..=self.addresses).map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)))
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self.faults.iter().map(Fault::to_string).collect();
        let (hosts, addresses, captures) = (self.hosts(), self.addresses, self.captures());
        write!(f, "[{}] {hosts} hosts, {addresses} addresses, ", faults.join(" + "))?;
        write!(f, "{captures} captures, {} old copies", self.peeks)?;
        if self.naming > 0 {
            write!(f, ", named on {}", self.naming)?;
        }
        if self.grows() {
            f.write_str(", the second by an edit")?;
        }
        if self.self_service { f.write_str(", self-service") } else { Ok(()) }
    }
}

/// 10.0.0.1 and up, one shared ledger.
fn tiny_pool(addresses: u8) -> Pool {
    let range = json!({"cidr": "10.0.0.0/24", "start": "10.0.0.1", "end": format!("10.0.0.{addresses}")});
    pool(json!({"range": range}))
}

/// The same addresses: the first of them is a range of its own.
fn two_ranges(addresses: u8, first: First) -> Pool {
    let state = if first == First::Drains { "Draining" } else { "Active" };
    let one = json!({"name": "one", "cidr": "10.0.0.0/24", "start": FIRST, "end": FIRST, "state": state});
    let end = format!("10.0.0.{addresses}");
    let two = json!({"name": "two", "cidr": "10.0.0.0/24", "start": "10.0.0.2", "end": end});
    pool(json!({"ranges": if first == First::Gone { vec![two] } else { vec![one, two] }}))
}

fn pool(mut spec: Value) -> Pool {
    spec["staticBand"] = "None".into();
    spec["quarantine"] = format!("{QUARANTINE}s").into();
    let spec = PoolSpec::from_spec("pool", &spec).expect("the model's pool is well formed");
    Pool::new(&spec).expect("the model's pool is well formed")
}

/// Names that `choose` starts at the same address for, so that hosts differ in nothing but their names; they
/// are also the ones that compete the most.
fn names(hosts: usize, pool: &Pool, wants: &BTreeMap<ClaimKey, Option<IpAddr>>) -> Vec<NodeName> {
    let starts = |name: &str| -> Vec<Option<IpAddr>> {
        let first = |key: &ClaimKey| first_choice(pool, name, key.capture.as_str());
        wants.keys().map(first).collect()
    };
    let alike = |name: &String| starts(name) == starts("a");
    let names: Vec<NodeName> =
        ('a'..='z').map(String::from).filter(alike).take(hosts).map(NodeName::new).collect();
    assert_eq!(names.len(), hosts, "among 26 names there are enough alike");
    names
}

fn first_choice(pool: &Pool, node: &str, capture: &str) -> Option<IpAddr> {
    let view = PoolView { pool, taken: &Taken::of(pool, []), barred: &Barred::default() };
    let holder = Holder { node, capture, declined: &[], want: Want::Any };
    let labels = BTreeMap::new();
    let choice = choose(&view, &holder, &NodeView { name: node, labels: &labels });
    choice.ok()?.given().next().map(|given| given.ip)
}

fn orders(hosts: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![vec![]];
    for host in 0..hosts {
        let longer = |order: &Vec<usize>| -> Vec<Vec<usize>> {
            let places = (0..=order.len()).rev();
            places.map(|at| [&order[..at], &[host], &order[at..]].concat()).collect()
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    orders
}
