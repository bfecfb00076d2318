//! What a policy would get of its pools, before anybody asks: which node which address, and why.
//!
//! Called by `berth policy preview` with copies of the ledgers; nothing that comes of it is written. It decides by
//! [`choose`](crate::pool::choose), as serving does, and keeps to its order: reuse before a reservation, that before the hash, all captures of a
//! policy on a node or none. Nodes are asked one after the other. In a cluster they ask when they please: where two hash to
//! the same place, the one that comes first has it, so a preview may have the two swapped.
//!
//! Cost: O(log n) per node and capture, as choosing, and once the ledgers.

mod stage;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use thiserror::Error;

pub use stage::Stage;

use super::names::{NodeUid, PoolName};
use crate::pool::{NoAddress, NodeView, NotASlice, Want};

/// A node that the policy selects.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub node: NodeView<'a>,
    pub uid: &'a NodeUid,
    /// Only a Ready node gets a new address (R26).
    pub ready: bool,
    pub policy: &'a str,
}

/// What the policy wants on every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    pub pool: PoolName,
    /// Empty for a literal.
    pub capture: String,
    pub want: Want,
}

/// What one wish on one node comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreseen {
    pub node: String,
    pub wish: Wish,
    pub outcome: Result<Gets, Lacks>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gets {
    pub ips: Vec<IpAddr>,
    /// Empty where no range has what is held.
    pub range: String,
    pub reason: Reason,
}

/// Why this address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    #[error("holds it already")]
    Holds,
    #[error("held it, and gets it back from quarantine")]
    Returns,
    #[error("reserved for it")]
    Reserved,
    #[error("the policy names it")]
    Named,
    #[error("{}{}", Selected(.range), Hashed(*.own))]
    Chosen {
        /// The range, where its selector picks the node.
        range: Option<String>,
        /// The place that the node's name hashes to, not a later one.
        own: bool,
    },
    #[error("{}slice {cidr}", if *.new { "takes " } else { "its " })]
    Slice { cidr: IpNet, new: bool },
}

struct Selected<'a>(&'a Option<String>);

impl std::fmt::Display for Selected<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |range| write!(f, "range {range} selects it; "))
    }
}

struct Hashed(bool);

impl std::fmt::Display for Hashed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0 { "its hash" } else { "the next free one from its hash on" })
    }
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Lacks {
    #[error("there is no pool {pool}")]
    NoPool { pool: PoolName },
    #[error("pool {pool} gives nothing now: it is being deleted, is on hold, or is rebuilt first")]
    NotGiving { pool: PoolName },
    #[error("the node is not Ready: it gets one when it is")]
    NotReady,
    #[error("all captures of a policy or none, and another gets none")]
    Others,
    #[error(transparent)]
    NoAddress(#[from] NoAddress),
    #[error(transparent)]
    NotASlice(#[from] NotASlice),
}

impl Lacks {
    /// The pool ran out, for this node.
    pub fn is_exhausted(&self) -> bool {
        matches!(self, Self::NoAddress(NoAddress::Exhausted { .. }))
    }
}

/// What every wish on every node comes to, nodes in the given order. Same input, same answer.
pub fn preview(
    stages: &mut BTreeMap<PoolName, Stage<'_>>,
    asks: &[Ask<'_>],
    wishes: &[Wish],
) -> Vec<Foreseen> {
    let mut foreseen = Vec::new();
    for ask in asks {
        let mut outcomes: Vec<Result<Gets, Lacks>> = Vec::new();
        for wish in wishes {
            let stage = stages.get_mut(&wish.pool);
            outcomes.push(match stage {
                None => Err(Lacks::NoPool { pool: wish.pool.clone() }),
                Some(stage) => stage.ask(ask, wish),
            });
        }
        if outcomes.iter().any(Result::is_err) {
            for (wish, outcome) in wishes.iter().zip(&mut outcomes) {
                give_back(stages.get_mut(&wish.pool), outcome);
            }
        }
        let of = |(wish, outcome): (&Wish, _)| Foreseen {
            node: ask.node.name.to_owned(),
            wish: wish.clone(),
            outcome,
        };
        foreseen.extend(wishes.iter().zip(outcomes).map(of));
    }
    foreseen
}

/// All or none: what was new to the node is free again; what it holds it keeps.
fn give_back(stage: Option<&mut Stage<'_>>, outcome: &mut Result<Gets, Lacks>) {
    let (Some(stage), Ok(given)) = (stage, &*outcome) else { return };
    if !matches!(given.reason, Reason::Holds | Reason::Returns) {
        stage.give_back(&given.ips);
        *outcome = Err(Lacks::Others);
    }
}
