//! What can happen next in a world.

use std::collections::BTreeSet;

use super::fault::Fault;
use super::world::{Agent, Config, World};

mod agent;
mod controllers;
mod events;

/// One move; hosts by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Move {
    /// The agent of a host does its next thing.
    Agent(usize),
    SelfServe(usize),
    Lead,
    RivalPeeks,
    RivalServes,
    RivalTends,
    RivalAnswers(usize),
    Start(usize),
    Resume(usize),
    Heal(usize),
    Boot(usize),
    CreateNode(usize),
    CreatePolicy,
    CreatePool,
    Backup,
    Tick,
    Fault(Fault, usize),
}

impl World {
    /// Every move that leads to another state, with that state (not yet normalised).
    pub(super) fn moves(&self, config: &Config) -> Vec<(Move, World)> {
        let mut moves: Vec<Move> = Vec::new();
        for host in 0..self.hosts.len() {
            moves.extend([
                Move::Agent(host),
                Move::Start(host),
                Move::Resume(host),
                Move::Heal(host),
            ]);
            moves.extend([Move::Boot(host), Move::CreateNode(host)]);
            if config.self_service {
                moves.push(Move::SelfServe(host));
            }
        }
        moves.extend([
            Move::Lead,
            Move::CreatePolicy,
            Move::CreatePool,
            Move::Backup,
            Move::Tick,
        ]);
        moves.extend([Move::RivalPeeks, Move::RivalServes, Move::RivalTends]);
        moves.extend((0..self.rival.pending.len()).map(Move::RivalAnswers));
        let kinds: BTreeSet<Fault> = self.left.iter().copied().collect();
        for kind in kinds {
            moves.extend((0..self.targets(kind, config)).map(|target| Move::Fault(kind, target)));
        }
        moves
            .into_iter()
            .filter_map(|step| Some((step, self.after(step, config)?)))
            .collect()
    }

    /// Hosts are alike, so the first fault meets the first of them without loss.
    fn targets(&self, fault: Fault, config: &Config) -> usize {
        let first = self.left.len() == config.faults.len();
        match fault {
            Fault::PolicyDeleted
            | Fault::PoolDeleted
            | Fault::Reset
            | Fault::StoreRestored
            | Fault::WireTaken => 1,
            _ if first => 1,
            _ => self.hosts.len(),
        }
    }

    /// The world after a move; `None` where it can't be made or changes nothing.
    pub(super) fn after(&self, step: Move, config: &Config) -> Option<World> {
        if !self.may(step) {
            return None;
        }
        let mut next = self.clone();
        let moved = match step {
            Move::Agent(host) => next.agent(host, config),
            Move::SelfServe(host) => next.self_serve(host, config),
            Move::Lead => next.lead(config),
            Move::RivalPeeks => next.rival_peeks(config),
            Move::RivalServes => next.rival_serves(config),
            Move::RivalTends => next.rival_tends(config),
            Move::RivalAnswers(index) => next.rival_answers(index),
            Move::Start(host) | Move::Resume(host) | Move::Boot(host) => {
                next.hosts[host].agent = Agent::Running;
                true
            }
            Move::Heal(host) => !std::mem::replace(&mut next.hosts[host].reachable, true),
            Move::CreateNode(host) => next.create_node(host, config),
            Move::CreatePolicy => !std::mem::replace(&mut next.store.policy, true),
            Move::CreatePool => {
                next.create_pool(config);
                true
            }
            Move::Backup => {
                next.backup = Some(Box::new(next.store.clone()));
                true
            }
            Move::Tick => next.tick(config),
            Move::Fault(fault, target) => next.fault(fault, target, config),
        };
        (moved && next != *self).then_some(next)
    }

    /// A quick look that spares a copy of the world for moves that can't be made.
    fn may(&self, step: Move) -> bool {
        match step {
            Move::Agent(host) | Move::SelfServe(host) => self.hosts[host].agent == Agent::Running,
            Move::Start(host) => self.hosts[host].agent == Agent::Down,
            Move::Resume(host) => self.hosts[host].agent == Agent::Paused,
            Move::Boot(host) => self.hosts[host].agent == Agent::Off,
            Move::Heal(host) => !self.hosts[host].reachable,
            Move::CreateNode(host) => !self.store.nodes.contains_key(&self.hosts[host].name),
            Move::CreatePolicy => !self.store.policy,
            Move::CreatePool => self.store.pool.is_none(),
            Move::Backup => self.backup.is_none() && self.left.contains(&Fault::StoreRestored),
            Move::RivalPeeks => self.peeks > 0,
            Move::RivalServes | Move::RivalTends => self.rival.cache.is_some(),
            Move::Lead | Move::RivalAnswers(_) | Move::Tick | Move::Fault(..) => true,
        }
    }
}
