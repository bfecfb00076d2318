//! The search: breadth first, every state once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use super::fault::Fault;
use super::moves::Move;
use super::world::{Config, World};

/// Where a search stops.
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

/// A schedule that ends where it must not.
pub struct Violation {
    pub what: String,
    pub schedule: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        self.schedule
            .iter()
            .enumerate()
            .try_for_each(|(n, step)| writeln!(f, "{:>4}  {step}", n + 1))
    }
}

type Print = u64;

fn print(world: &World) -> Print {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Visits every state of a run.
pub fn check(config: &Config, bounds: &Bounds) -> Report {
    Search::new(config).run(bounds)
}

struct Search<'a> {
    config: &'a Config,
    came: HashMap<Print, (Print, Move)>,
    settled: HashSet<Print>,
    queue: VecDeque<(World, usize)>,
    moves: usize,
    depth: usize,
}

impl<'a> Search<'a> {
    fn new(config: &'a Config) -> Self {
        Self {
            config,
            came: HashMap::new(),
            settled: HashSet::new(),
            queue: VecDeque::new(),
            moves: 0,
            depth: 0,
        }
    }

    fn run(mut self, bounds: &Bounds) -> Report {
        let mut first = World::first(self.config);
        first.normalise();
        self.came.insert(print(&first), (0, Move::Tick));
        self.queue.push_back((first, 0));
        while let Some((world, depth)) = self.queue.pop_front() {
            self.depth = depth;
            if let Some(what) = self.wrong(&world) {
                let violation = self.violation(what, &world);
                return self.report(false, Some(violation));
            }
            if self.came.len() > bounds.states {
                return self.report(false, None);
            }
            self.expand(&world, depth);
        }
        self.report(true, None)
    }

    fn expand(&mut self, world: &World, depth: usize) {
        let from = print(world);
        for (step, mut next) in world.moves(self.config) {
            self.moves += 1;
            next.normalise();
            let to = print(&next);
            if let std::collections::hash_map::Entry::Vacant(place) = self.came.entry(to) {
                place.insert((from, step));
                self.queue.push_back((next, depth + 1));
            }
        }
    }

    fn wrong(&mut self, world: &World) -> Option<String> {
        if let Some(what) = twice(world).or_else(|| two_held(world)) {
            return Some(what);
        }
        if self.nothing_taken(world) {
            let on_nics = world
                .hosts
                .iter()
                .enumerate()
                .flat_map(|(at, host)| host.nic.iter().map(move |ip| (at, *ip)));
            if let Some(what) = on_nics.into_iter().find_map(|(at, ip)| world.unbacked(at, ip)) {
                return Some(what);
            }
        }
        if world.left.is_empty() {
            self.unsettled(world)
        } else {
            None
        }
    }

    /// Has nothing happened yet that takes an entry from its holder, or the holder's id from its disk? As long
    /// as hosts and agents merely stop, start and change their minds, what is on a NIC is Held by that id.
    fn nothing_taken(&self, world: &World) -> bool {
        const HARMLESS: [Fault; 6] = [
            Fault::AgentCrash,
            Fault::AgentPause,
            Fault::Partition,
            Fault::HostOff,
            Fault::PolicyDeleted,
            Fault::WireTaken,
        ];
        let count = |faults: &[Fault], fault| faults.iter().filter(|other| **other == fault).count();
        let happened = |fault: &Fault| count(&self.config.faults, *fault) > count(&world.left, *fault);
        self.config
            .faults
            .iter()
            .filter(|fault| happened(fault))
            .all(|fault| HARMLESS.contains(fault))
    }

    /// Follows the fair schedule until it ends or meets one that was found good.
    fn unsettled(&mut self, world: &World) -> Option<String> {
        let mut path: Vec<Print> = Vec::new();
        let mut now = world.calm();
        loop {
            let here = print(&now);
            if self.settled.contains(&here) {
                break;
            }
            if path.contains(&here) {
                // A stranger on the wire is asked about again and again: a circle, but a good one.
                if let Some(what) = now.unsettled(self.config) {
                    return Some(format!("never settles: {what}"));
                }
                break;
            }
            path.push(here);
            match now.settle_step(self.config) {
                Some(next) => now = next,
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

    fn violation(&self, what: String, world: &World) -> Violation {
        let mut steps = Vec::new();
        let mut at = print(world);
        while let Some((from, step)) = self.came.get(&at) {
            if *from == 0 {
                break;
            }
            steps.push(*step);
            at = *from;
        }
        steps.reverse();
        let mut schedule = Vec::new();
        let mut now = World::first(self.config);
        now.normalise();
        for step in steps {
            schedule.push(describe(&now, step, self.config));
            if let Some(mut next) = now.after(step, self.config) {
                next.normalise();
                now = next;
            }
        }
        schedule.push(format!("{world:#?}"));
        Violation { what, schedule }
    }

    fn report(self, complete: bool, violation: Option<Violation>) -> Report {
        Report {
            states: self.came.len(),
            moves: self.moves,
            depth: self.depth,
            complete,
            violation,
        }
    }
}

fn describe(world: &World, step: Move, config: &Config) -> String {
    match step {
        Move::Agent(host) => {
            format!(
                "agent {}: {:?}",
                world.hosts[host].name,
                world.agent_action(host, config)
            )
        }
        other => format!("{other:?}"),
    }
}

/// Is one address on two NICs, and no exception excuses it?
fn twice(world: &World) -> Option<String> {
    for (i, one) in world.hosts.iter().enumerate() {
        for other in &world.hosts[i + 1..] {
            let shared: Option<&IpAddr> = one.nic.intersection(&other.nic).next();
            if let Some(ip) = shared.filter(|_| !one.excused && !other.excused) {
                return Some(format!("{ip} is on the NICs of {} and {}", one.name, other.name));
            }
        }
    }
    None
}

/// Does an id hold two addresses of one family (rule 1)?
fn two_held(world: &World) -> Option<String> {
    let ledger = world.store.ledger()?;
    let mut seen = HashSet::new();
    for (ip, entry) in ledger.allocations.iter().filter(|(_, entry)| entry.is_held()) {
        let Some(id) = &entry.request else { continue };
        if !seen.insert((id, ip.is_ipv4())) {
            return Some(format!("{id} holds two addresses, {ip} is one of them"));
        }
    }
    None
}
