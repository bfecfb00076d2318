//! What can happen next in a world.

use std::rc::Rc;

use super::config::Config;
use super::fault::{Breach, Fault};
use super::store::First;
use super::world::{Agent, World};

mod agent;
mod controllers;
mod events;
mod excuses;

/// One move. Hosts and answers by index; orders of the hosts by theirs in [`Config`]. Small, since the search
/// keeps one for every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// The agent of a host does its next thing.
    Agent(u8),
    SelfServe(u8),
    Lead(u8),
    RivalPeeks,
    RivalServes(u8),
    RivalTends(u8),
    RivalOverwrites(u8),
    RivalAnswers(u8),
    Start(u8),
    Resume(u8),
    Heal(u8),
    /// What could not be put on the NIC can.
    Applies(u8),
    Boot(u8),
    CreateNode(u8),
    CreatePolicy,
    /// The policy is edited to make more claims.
    GrowPolicy,
    CreatePool,
    /// A range gives again, or is removed when nothing of it is held.
    Range(First),
    Backup,
    Tick,
    Fault(Fault, u8),
}

impl World {
    /// Every move that may lead to another state.
    pub(super) fn moves(&self, config: &Config) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::with_capacity(32);
        let hosts = count(self.hosts.len());
        for host in 0..hosts {
            moves.extend([Move::Agent(host), Move::Start(host), Move::Resume(host), Move::Heal(host)]);
            moves.extend([Move::Boot(host), Move::CreateNode(host), Move::Applies(host)]);
            if config.self_service {
                moves.push(Move::SelfServe(host));
            }
        }
        moves.extend([Move::RivalPeeks, Move::CreatePolicy, Move::CreatePool, Move::Backup, Move::Tick]);
        moves.extend([First::Gives, First::Gone].map(Move::Range));
        moves.extend(config.grows().then_some(Move::GrowPolicy));
        let orders = |seen| if self.order_matters(seen) { count(config.orders.len()) } else { 1 };
        moves.extend((0..orders(&self.store)).map(Move::Lead));
        if let Some(cache) = &self.rival.cache {
            let orders = orders(cache);
            moves.extend((0..orders).flat_map(|order| {
                [Move::RivalServes(order), Move::RivalTends(order), Move::RivalOverwrites(order)]
            }));
        }
        moves.extend((0..count(self.rival.pending.len())).map(Move::RivalAnswers));
        for (at, kind) in self.left.iter().enumerate() {
            if !self.left[..at].contains(kind) {
                let targets = if kind.has_target() { hosts } else { 1 };
                moves.extend((0..targets).map(|target| Move::Fault(*kind, target)));
            }
        }
        moves.retain(|step| self.may(*step));
        moves
    }

    /// The world after a move; `None` where it can't be made or changes nothing.
    pub(super) fn after(&self, step: Move, config: &Config) -> Option<World> {
        if !self.may(step) {
            return None;
        }
        let mut next = self.clone();
        let moved = match step {
            Move::Agent(host) => next.agent(host.into(), config),
            Move::SelfServe(host) => next.self_serve(host.into(), config),
            Move::Lead(order) => next.lead(order.into(), config),
            Move::RivalPeeks => next.rival_peeks(config),
            Move::RivalServes(order) => next.rival_serves(order.into(), config),
            Move::RivalTends(order) => next.rival_tends(order.into(), config),
            Move::RivalOverwrites(order) => next.rival_overwrites(order.into(), config),
            Move::RivalAnswers(index) => next.rival_answers(index.into(), config),
            Move::Start(host) | Move::Resume(host) => next.runs_again(host.into()),
            Move::Boot(host) => {
                if config.breach == Some(Breach::JournalFirst) {
                    next.host_mut(host.into()).apply_journal();
                }
                next.runs_again(host.into())
            }
            Move::Heal(host) => {
                next.host_mut(host.into()).reachable = true;
                next.looks_again(host.into())
            }
            Move::Applies(host) => {
                next.host_mut(host.into()).waits.clear();
                true
            }
            Move::CreateNode(host) => next.create_node(host.into(), config),
            Move::CreatePolicy => !std::mem::replace(&mut next.store_mut().policy, true),
            Move::GrowPolicy => !std::mem::replace(&mut next.store_mut().grown, true),
            Move::CreatePool => {
                next.create_pool(config);
                true
            }
            Move::Range(first) => next.edit_pool(first),
            Move::Backup => {
                next.backup = Some(Rc::clone(&next.store));
                true
            }
            Move::Tick => next.tick(config),
            Move::Fault(fault, target) => next.fault(fault, target.into(), config),
        };
        next.end_excuses();
        (moved && next != *self).then_some(next)
    }

    /// A quick look that spares a copy of the world for moves that can't be made.
    fn may(&self, step: Move) -> bool {
        let host = |host: u8| &self.hosts[usize::from(host)];
        match step {
            Move::Agent(at) | Move::SelfServe(at) => host(at).agent == Agent::Running,
            Move::Start(at) => host(at).agent == Agent::Down,
            Move::Resume(at) => host(at).agent == Agent::Paused,
            Move::Boot(at) => host(at).agent == Agent::Off,
            Move::Heal(at) => !host(at).reachable,
            Move::Applies(at) => !host(at).waits.is_empty(),
            Move::CreateNode(at) => !self.store.nodes.contains_key(&host(at).name),
            Move::CreatePolicy => !self.store.policy,
            Move::GrowPolicy => self.store.policy && !self.store.grown,
            Move::CreatePool => self.store.pool.is_none(),
            Move::Range(First::Gone) => self.is_drained(),
            Move::Range(first) => self.store.first() != first && first == First::Gives,
            Move::Backup => self.backup.is_none() && self.left.contains(&Fault::StoreRestored),
            Move::RivalPeeks => self.peeks > 0,
            Move::RivalServes(_) | Move::RivalTends(_) => self.rival.cache.is_some(),
            Move::RivalOverwrites(_) => self.rival.cache.is_some() && self.restored,
            Move::Lead(_) | Move::RivalAnswers(_) | Move::Tick | Move::Fault(..) => true,
        }
    }
}

/// As an index of a move; nothing in a world comes by the hundred.
pub(super) fn count(things: usize) -> u8 {
    u8::try_from(things).unwrap_or(u8::MAX)
}
