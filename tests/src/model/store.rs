//! The API server of the model: objects as far as claims are concerned, and what it does by itself.

use std::collections::{BTreeMap, BTreeSet};

use policy::claim::{Enactment, HostState, Ledger, NodeName, NodeUid};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Store {
    pub(super) nodes: BTreeMap<NodeName, NodeUid>,
    /// Does the one policy, which selects every node, exist?
    pub(super) policy: bool,
    pub(super) pool: Option<PoolObject>,
    /// By node: there is one policy, so a node has at most one enactment.
    pub(super) enactments: BTreeMap<NodeName, Enactment>,
    pub(super) states: BTreeMap<NodeName, HostState>,
    /// Nodes whose agent was asked to report anew.
    pub(super) refresh: BTreeSet<NodeName>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PoolObject {
    /// The resourceVersion; only ever compared for equality.
    pub(super) version: u32,
    pub(super) ledger: Ledger,
}

impl Store {
    pub(super) fn is_live(&self, node: &NodeName, uid: &NodeUid) -> bool {
        self.nodes.get(node) == Some(uid)
    }

    pub(super) fn ledger(&self) -> Option<&Ledger> {
        self.pool.as_ref().map(|pool| &pool.ledger)
    }
}
