//! A fair schedule, from a state on: everybody does what there is to do, and time passes. It must end, and end well.

use std::collections::{BTreeSet, HashSet};

use super::Config;
use super::moves::Move;
use super::world::{Machine, World, is_first, words};
use crate::model::print::{Print, Printed};

/// More rounds than any world needs: each ends with a tick.
const ROUNDS: usize = 30;
const STEPS: usize = 400;

/// States from which a fair schedule was found to end well.
#[derive(Default)]
pub(super) struct Settled(HashSet<Print, Printed>);

impl Settled {
    pub(super) fn check(&mut self, world: &World, config: &Config) -> Result<(), String> {
        // What faults are still to do is searched; whether it settles is asked when they are over, and of a world of which
        // no rule is broken.
        if !world.left.is_empty() || config.breach.is_some() {
            return Ok(());
        }
        let mut world = world.clone();
        let mut quiet = 0;
        let mut met = Vec::new();
        for round in 1.. {
            let Some(worked) = self.round(&mut world, config, &mut met)? else { break };
            quiet = if worked { 0 } else { quiet + 1 };
            if quiet > 3 {
                ended(&world, config)?;
                break;
            }
            if round == ROUNDS {
                return Err("it never settles".to_owned());
            }
            world.ticks = 1;
            if !world.tick() {
                return Err("time can't pass".to_owned());
            }
        }
        self.0.extend(met);
        Ok(())
    }

    /// Everybody does what there is to do, until nobody finds anything. Whether anything was done; nothing, if a state was met from
    /// which it is known to end well: how it goes on depends on the state alone.
    fn round(
        &self,
        world: &mut World,
        config: &Config,
        met: &mut Vec<Print>,
    ) -> Result<Option<bool>, String> {
        for steps in 0..STEPS {
            let print = world.print();
            if self.0.contains(&print) {
                return Ok(None);
            }
            met.push(print);
            let mut busy = false;
            for step in world.moves(config) {
                busy |= !matches!(step, Move::Tick | Move::Fault(..)) && world.make(&step, config);
                if let Some(what) = world.wrong() {
                    return Err(what);
                }
            }
            if !busy {
                return Ok(Some(steps > 0));
            }
        }
        Err(format!("it never rests: {:?}", world.moves(config)))
    }
}

fn ended(world: &World, config: &Config) -> Result<(), String> {
    let live: Vec<_> = world.hosts.iter().filter(|host| world.store.nodes.contains_key(&host.name)).collect();
    for host in &world.hosts {
        let uid = world.store.nodes.get(&host.name);
        for ip in &host.nic {
            let around = world.store.slices.values().find(|stored| stored.slice.cidr.contains(ip));
            let entry = around
                .filter(|stored| uid.is_some_and(|uid| stored.slice.is_of(&host.name, uid)))
                .and_then(|stored| stored.slice.ledger.allocations.get(ip))
                .or_else(|| world.store.pool.allocations.get(ip));
            let id = host.host.journal.values().next().map(|record| &record.id);
            if !entry.is_some_and(|entry| id.is_some_and(|id| entry.is_held_by(id))) {
                return Err(format!("{} has {ip} on its NIC, and it is {:?}", host.name, entry.map(words)));
            }
        }
        if !host.selected && !host.nic.is_empty() {
            return Err(format!("{} is not selected and has {:?}", host.name, host.nic));
        }
    }
    for stored in world.store.slices.values() {
        let slice = &stored.slice;
        if world.store.nodes.get(&slice.node) != Some(&slice.node_uid) {
            return Err(format!("slice {} is of a Node that is gone", slice.name));
        }
        if slice.ledger.allocations.is_empty() {
            return Err(format!("slice {} is empty", slice.name));
        }
    }
    // Who waits may have an entry still that it would be served by.
    let leaked = |host: &Machine, ip| !host.nic.is_empty() && !host.nic.contains(ip);
    let slices = world.store.slices.values().map(|stored| &stored.slice.ledger);
    for (ip, entry) in [&world.store.pool].into_iter().chain(slices).flat_map(|ledger| &ledger.allocations) {
        let is_leaked = world.hosts.iter().any(|host| host.name == entry.node && leaked(host, ip));
        if is_leaked || !entry.is_recoverable() {
            return Err(format!("{ip} is in a ledger, {}, and on no NIC: leaked", words(entry)));
        }
    }
    let wanting: BTreeSet<_> = live.iter().filter(|host| host.selected).map(|host| &host.name).collect();
    let served = live.iter().filter(|host| host.selected && !host.nic.is_empty()).count();
    // Who holds an address of before may hold on to one of a block that another has.
    let has_first = world.hosts.iter().any(|host| host.nic.iter().any(|ip| is_first(*ip)));
    let drained = usize::from(world.store.drains && !has_first);
    let room = wanting.len().min(usize::from(config.blocks) - drained);
    if served < room {
        return Err(format!(
            "{served} of {} are served, and there are {} slices: {:#?}",
            wanting.len(),
            config.blocks,
            world.store
        ));
    }
    Ok(())
}
