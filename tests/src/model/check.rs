//! The search: breadth first, every state once.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::net::IpAddr;

use policy::claim::RequestId;

use super::config::Config;
use super::fault::Fault;
use super::moves::Move;
use super::print::{Print, Printed};
use super::world::World;

/// Where a search stops.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub states: usize,
}

/// What a search found.
pub struct Report {
    pub states: usize,
    pub moves: usize,
    pub depth: usize,
    /// Every state within the model was visited.
    pub complete: bool,
    pub violation: Option<Violation>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reach = match (self.complete, &self.violation) {
            (true, _) => "all",
            (false, None) => "bounded",
            (false, Some(_)) => "violated",
        };
        write!(f, "{} states, {} moves, depth {}: {reach}", self.states, self.moves, self.depth)
    }
}

/// A schedule that ends where it must not.
pub struct Violation {
    pub what: String,
    pub schedule: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        self.schedule.iter().enumerate().try_for_each(|(n, step)| writeln!(f, "{:>4}  {step}", n + 1))
    }
}

/// Visits every state of a run.
pub fn check(config: &Config, bounds: &Bounds) -> Report {
    Search::new(config).run(bounds)
}

struct Search<'a> {
    config: &'a Config,
    visited: HashSet<Print, Printed>,
    /// How each state was first reached: from which one, by what.
    came: Vec<(u32, Move)>,
    settled: HashSet<Print, Printed>,
    queue: VecDeque<Found>,
    moves: usize,
    depth: usize,
}

/// A state that waits for its moves to be made.
struct Found {
    world: World,
    print: Print,
    /// Its place in `came`.
    index: u32,
    depth: usize,
}

impl<'a> Search<'a> {
    fn new(config: &'a Config) -> Self {
        Self {
            config,
            visited: HashSet::default(),
            came: Vec::new(),
            settled: HashSet::default(),
            queue: VecDeque::new(),
            moves: 0,
            depth: 0,
        }
    }

    fn run(mut self, bounds: &Bounds) -> Report {
        self.found(World::first(self.config), 0, Move::Tick, 0);
        while let Some(found) = self.queue.pop_front() {
            self.depth = found.depth;
            if let Some(what) = self.wrong(&found.world, found.print) {
                let violation = self.violation(what, &found);
                return self.report(false, Some(violation));
            }
            if self.came.len() > bounds.states {
                return self.report(false, None);
            }
            for step in found.world.moves(self.config) {
                if let Some(next) = found.world.after(step, self.config) {
                    self.moves += 1;
                    self.found(next, found.index, step, found.depth + 1);
                }
            }
        }
        self.report(true, None)
    }

    fn found(&mut self, world: World, from: u32, step: Move, depth: usize) {
        let print = world.print(self.config);
        if self.visited.insert(print) {
            let index = u32::try_from(self.came.len()).expect("memory ends before four billion states");
            self.came.push((from, step));
            self.queue.push_back(Found { world, print, index, depth });
        }
    }

    fn wrong(&mut self, world: &World, print: Print) -> Option<String> {
        wrong_now(world, self.config)
            .or_else(|| if world.left.is_empty() { self.unsettled(world, print) } else { None })
    }

    /// Follows the fair schedule until it ends or meets one that was found good.
    fn unsettled(&mut self, world: &World, print: Print) -> Option<String> {
        let mut path: Vec<Print> = Vec::new();
        let mut now = world.calm();
        let mut here = if world.is_calm() { print } else { now.print(self.config) };
        loop {
            if self.settled.contains(&here) {
                break;
            }
            if path.contains(&here) {
                match self.round(now, here) {
                    Some(what) => return Some(format!("never settles: {what}")),
                    None => break,
                }
            }
            path.push(here);
            match now.settle_step(here, self.config) {
                Some(next) => (now, here) = next,
                None => match now.unsettled(self.config) {
                    Some(what) => return Some(format!("after the faults: {what}")),
                    None => break,
                },
            }
            if let Some(what) = twice(&now) {
                return Some(format!("after the faults: {what}"));
            }
        }
        self.settled.extend(path);
        None
    }

    /// A stranger on the wire is asked about again and again: what it has is tried anew after each quarantine, and on the way
    /// there something is in the ledger and on no NIC. That circle is good if there is a state on it to which nothing would
    /// have to be added if it were the last.
    fn round(&self, from: World, start: Print) -> Option<String> {
        let (mut now, mut here) = (from, start);
        let mut wrong = now.unsettled(self.config)?;
        loop {
            let Some(next) = now.settle_step(here, self.config) else { return Some(wrong) };
            (now, here) = next;
            if here == start {
                return Some(wrong);
            }
            wrong = now.unsettled(self.config)?;
        }
    }

    fn violation(&self, what: String, found: &Found) -> Violation {
        let mut steps = Vec::new();
        let mut at = found.index;
        while at != 0 {
            let (from, step) = self.came[at as usize];
            steps.push(step);
            at = from;
        }
        let mut schedule = Vec::new();
        let mut now = World::first(self.config);
        for step in steps.into_iter().rev() {
            schedule.push(describe(&now, step, self.config));
            now = now.after(step, self.config).unwrap_or(now);
        }
        schedule.push(format!("{now:#?}"));
        Violation { what, schedule }
    }

    fn report(self, complete: bool, violation: Option<Violation>) -> Report {
        Report { states: self.came.len(), moves: self.moves, depth: self.depth, complete, violation }
    }
}

fn describe(world: &World, step: Move, config: &Config) -> String {
    match step {
        Move::Agent(host) => {
            let host = usize::from(host);
            format!("agent {}: {:?}", config.names[host], world.agent_action(host, config))
        }
        other => format!("{other:?}"),
    }
}

/// What is wrong with a state as it is, whatever may follow.
pub(super) fn wrong_now(world: &World, config: &Config) -> Option<String> {
    let on_nics =
        || world.hosts.iter().enumerate().flat_map(|(at, host)| host.nic.iter().map(move |ip| (at, *ip)));
    twice(world).or_else(|| two_held(world)).or_else(|| {
        let safe = nothing_taken(world, config);
        on_nics().filter(|_| safe).find_map(|(at, ip)| world.unbacked(at, ip))
    })
}

/// Has nothing happened yet that takes an entry from its holder, or the holder's id from its disk? As long
/// as hosts and agents merely stop, start and change their minds, what is on a NIC is Held by that id.
pub(super) fn nothing_taken(world: &World, config: &Config) -> bool {
    const HARMLESS: [Fault; 9] = [
        Fault::AgentCrash,
        Fault::AgentPause,
        Fault::Partition,
        Fault::HostOff,
        Fault::PolicyDeleted,
        Fault::WireTaken,
        Fault::FoundTaken,
        Fault::RangeDrained,
        Fault::ApplyFails,
    ];
    let count = |faults: &[Fault], fault| faults.iter().filter(|other| **other == fault).count();
    let happened = |fault: &Fault| count(&config.faults, *fault) > count(&world.left, *fault);
    config.faults.iter().filter(|fault| happened(fault)).all(|fault| HARMLESS.contains(fault))
}

/// Is one address on two NICs, and no exception excuses it?
fn twice(world: &World) -> Option<String> {
    for (i, one) in world.hosts.iter().enumerate() {
        for other in &world.hosts[i + 1..] {
            let excused = |ip: &&IpAddr| one.excused.contains(*ip) || other.excused.contains(*ip);
            if let Some(ip) = one.nic.intersection(&other.nic).find(|ip| !excused(ip)) {
                return Some(format!("{ip} is on the NICs of {} and {}", one.name, other.name));
            }
        }
    }
    None
}

/// Does an id hold two addresses of one family (rule 1)?
fn two_held(world: &World) -> Option<String> {
    let ledger = world.store.ledger()?;
    let held = || ledger.allocations.iter().filter(|(_, entry)| entry.is_held());
    let another = |ip: &IpAddr, id: &Option<RequestId>| {
        held().any(|(other, entry)| other < ip && entry.request == *id && other.is_ipv4() == ip.is_ipv4())
    };
    let (ip, entry) = held().find(|(ip, entry)| entry.request.is_some() && another(ip, &entry.request))?;
    Some(format!("{:?} holds two addresses, {ip} is one of them", entry.request))
}
