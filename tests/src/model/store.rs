//! The API server of the model: objects as far as claims are concerned, and what it does by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use policy::claim::{Enactment, HostState, Ledger, NodeName, NodeUid, PolicyName, Scope};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Store {
    pub(super) nodes: BTreeMap<NodeName, NodeUid>,
    /// Does the one policy, which selects every node, exist?
    pub(super) policy: bool,
    /// Was it edited to make more claims?
    pub(super) grown: bool,
    pub(super) pool: Option<Rc<PoolObject>>,
    /// By node; there is one policy, so a node has at most one enactment.
    pub(super) enactments: BTreeMap<NodeName, Rc<BTreeMap<PolicyName, Enactment>>>,
    pub(super) states: BTreeMap<NodeName, HostState>,
    /// Nodes whose agent was asked to report anew.
    pub(super) refresh: BTreeSet<NodeName>,
    /// The policy bears the annotation that resets the pool for it.
    pub(super) reset_policy: bool,
    /// Nodes whose enactment bears it.
    pub(super) reset_nodes: BTreeSet<NodeName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PoolObject {
    /// The resourceVersion; only ever compared for equality.
    pub(super) version: u32,
    pub(super) ledger: Ledger,
    pub(super) first: First,
}

/// What the pool's spec says of the first of its two ranges; of a pool that has one, it always gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Gives,
    Drains,
    Gone,
}

impl Store {
    pub(super) fn is_live(&self, node: &NodeName, uid: &NodeUid) -> bool {
        self.nodes.get(node) == Some(uid)
    }

    pub(super) fn ledger(&self) -> Option<&Ledger> {
        self.pool.as_ref().map(|pool| &pool.ledger)
    }

    pub(super) fn first(&self) -> First {
        self.pool.as_ref().map_or(First::Gives, |pool| pool.first)
    }

    pub(super) fn enactments(&self) -> impl Iterator<Item = &Enactment> {
        self.enactments.values().flat_map(|by_policy| by_policy.values())
    }

    pub(super) fn enactment(&self, node: &NodeName) -> Option<&Enactment> {
        self.enactments.get(node)?.values().next()
    }

    pub(super) fn enactment_mut(&mut self, node: &NodeName) -> Option<&mut Enactment> {
        Rc::make_mut(self.enactments.get_mut(node)?).values_mut().next()
    }

    /// Deletes the enactments of which this is true; were there any?
    pub(super) fn remove_enactments(&mut self, gone: impl Fn(&Enactment) -> bool) -> bool {
        let before = self.enactments.len();
        self.enactments.retain(|_, by_policy| !by_policy.values().any(&gone));
        let Self { enactments, reset_nodes, .. } = self;
        reset_nodes.retain(|node| enactments.contains_key(node));
        before != self.enactments.len()
    }

    /// What annotations ask to put together anew; one after the other.
    pub(super) fn resets(&self) -> impl Iterator<Item = Scope> {
        let policy = self.enactments().map(|own| own.policy.clone()).next();
        let policy = policy.filter(|_| self.reset_policy).map(Scope::Policy);
        let nodes = self.reset_nodes.iter().filter_map(|node| self.enactment(node));
        policy.into_iter().chain(nodes.map(|own| Scope::Node(own.node_uid.clone())))
    }
}
