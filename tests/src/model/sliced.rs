//! The model check of sliced pools: a world of its own, since nothing in it is shared but the pool's near empty ledger.
//!
//! A store with a pool, slices, Nodes, enactments and reports; hosts that run `policy::claim`'s `Host` and `serve_slices`; a
//! controller that runs `rebuild`, `gather`, `tend` and `tend_slices`. An agent, and the controller, first thinks (reads all
//! it decides on) and then writes, one object per move: whatever happens in between, it writes by what it read, guarded as
//! the API guards. So old reads, late writes and crashes between any two writes are all schedules of this world.
//!
//! Breadth first over all moves; states are told apart by all they have. In every state: no address on two NICs, unless
//! docs/claims.md names the exception; an id has at most one Held entry. From every state in which no fault is left: a fair
//! schedule ends; whoever can be served is; what is on a NIC is Held by that id in a slice of its Node, or in the pool's
//! ledger while that slice is a former Node's; no slice is empty or nobody's, and nothing is in one that no NIC has (R41).
//!
//! Not modelled: IPv6, literals, reservations, several pools.

mod moves;
mod settle;
mod world;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::str::FromStr;

use super::print::{self, Print, Printed};
pub use moves::Move;
use settle::Settled;
use world::World;

/// What may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// An agent, and all that it remembers, is gone; it starts again.
    Crash,
    /// A Node is deleted. Its host runs on, and hears of it within a quarantine.
    NodeDeleted,
    /// … and is made anew under its name.
    NodeRecreated,
    /// The pool is deleted by force and made anew.
    PoolRecreated,
    /// A slice is deleted: its finalizer keeps it until its node has let go.
    SliceDeleted,
    /// A slice is deleted with its finalizer taken off by hand, which is allowed of an empty one.
    SliceForced,
    /// … of one in use, as the administrator confirmed.
    SliceConfirmed,
    /// The policy selects a host no more, and then again.
    Unselected,
    /// The store is put back to what it was at the beginning, or when this host got its slice, and the pool is on hold.
    StoreRestored,
    /// The pool's own ledger is to be put together anew.
    Reset,
    /// … what a host has in it.
    NodeReset,
    /// The first of two ranges, a block of its own, is to give nothing more.
    RangeDrained,
    /// A stranger takes what a host was given, for good: the host finds out before it is on its NIC, or when it is there.
    WireTaken,
}

impl Fault {
    pub const ALL: [Self; 13] = [
        Self::Crash,
        Self::NodeDeleted,
        Self::NodeRecreated,
        Self::PoolRecreated,
        Self::SliceDeleted,
        Self::SliceForced,
        Self::SliceConfirmed,
        Self::Unselected,
        Self::StoreRestored,
        Self::Reset,
        Self::NodeReset,
        Self::RangeDrained,
        Self::WireTaken,
    ];

    /// Every fault alone, then every pair, a fault twice included.
    pub fn sets() -> Vec<Vec<Self>> {
        let pairs = Self::ALL
            .iter()
            .enumerate()
            .flat_map(|(i, first)| Self::ALL[i..].iter().map(move |second| vec![*first, *second]));
        Self::ALL.iter().map(|fault| vec![*fault]).chain(pairs).collect()
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|fault| format!("{fault:?}") == name);
        named.ok_or_else(|| format!("{name}: no such fault of sliced pools; there are {:?}", Self::ALL))
    }
}

/// A rule that is broken on purpose: the check must find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// A slice that is there is simply taken over: the name is no lock.
    NoLock,
    /// What the pool's own ledger keeps is not looked at.
    PoolUnread,
    /// Slices are made of a pool that is not rebuilt.
    Unproven,
    /// A gone Node's slice is free at once.
    NoQuarantine,
    /// A grant is used unasked.
    Unconfirmed,
    /// A rebuild takes every slice for its holder's.
    AllCovered,
}

impl Breach {
    pub const ALL: [Self; 6] = [
        Self::NoLock,
        Self::PoolUnread,
        Self::Unproven,
        Self::NoQuarantine,
        Self::Unconfirmed,
        Self::AllCovered,
    ];
}

/// One world.
#[derive(Clone, Debug)]
pub struct Config {
    pub hosts: usize,
    /// Slices that the pool has, of two addresses each.
    pub blocks: u8,
    pub faults: Vec<Fault>,
    /// The first host holds an address of before the pool was sliced, which has just been made anew.
    pub unsliced_before: bool,
    pub breach: Option<Breach>,
    pub states: usize,
}

impl Config {
    pub fn new(hosts: usize, blocks: u8, faults: &[Fault]) -> Self {
        Self { hosts, blocks, faults: faults.to_vec(), unsliced_before: false, breach: None, states: 200_000 }
    }

    /// May all its faults come about? A range that drains is the first of two.
    pub fn may_happen(&self) -> bool {
        self.blocks == 2 || !self.faults.contains(&Fault::RangeDrained)
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hosts, blocks, faults, unsliced_before, breach, states: _ } = self;
        let faults: Vec<String> = faults.iter().map(|fault| format!("{fault:?}")).collect();
        write!(f, "[{}] {hosts} hosts, {blocks} slices", faults.join(" + "))?;
        if *unsliced_before {
            f.write_str(", unsliced before")?;
        }
        breach.map_or(Ok(()), |breach| write!(f, ", {breach:?}"))
    }
}

/// What came of a search.
#[derive(Debug)]
pub struct Report {
    pub states: usize,
    /// Every state was visited.
    pub whole: bool,
    /// What went wrong, and how it came to it.
    pub violation: Option<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reach = match (self.whole, &self.violation) {
            (true, _) => "all",
            (false, None) => "bounded",
            (false, Some(_)) => "violated",
        };
        write!(f, "{} states: {reach}", self.states)
    }
}

/// Searches a world.
pub fn check(config: &Config) -> Report {
    let first = World::new(config);
    let mut paths: Vec<(usize, Option<Move>)> = vec![(0, None)];
    let mut seen: HashSet<Print, Printed> = HashSet::from_iter([first.print()]);
    let mut settled = Settled::default();
    let mut queue: VecDeque<(usize, World)> = VecDeque::from([(0, first)]);
    let told = |paths: &[(usize, Option<Move>)], mut at: usize, what: String| {
        let mut story = Vec::new();
        while let (before, Some(step)) = &paths[at] {
            story.push(format!("{step:?}"));
            at = *before;
        }
        story.reverse();
        Some(format!("{what}\nafter {}", story.join(", ")))
    };
    while let Some((at, world)) = queue.pop_front() {
        if let Some(what) = world.wrong() {
            return Report { states: seen.len(), whole: false, violation: told(&paths, at, what) };
        }
        if let Err(what) = settled.check(&world, config) {
            return Report { states: seen.len(), whole: false, violation: told(&paths, at, what) };
        }
        for step in world.moves(config) {
            let mut next = world.clone();
            if !next.make(&step, config) || !seen.insert(next.print()) {
                continue;
            }
            if seen.len() >= config.states {
                return Report { states: seen.len(), whole: false, violation: None };
            }
            paths.push((at, Some(step)));
            queue.push_back((paths.len() - 1, next));
        }
    }
    Report { states: seen.len(), whole: true, violation: None }
}

impl World {
    fn print(&self) -> Print {
        print::print(self)
    }
}
