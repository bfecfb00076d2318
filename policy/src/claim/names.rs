//! The words that identify things in the claim protocol, each a type of its own so that a Node's UID
//! can't be taken for a pool's. Cheap to clone: batches and the model checker copy them by the million.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! word {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from).map(Self::new)
            }
        }
    };
}

word! {
    /// A Node's name: what people call the host. Never proof of identity, since names are used again.
    NodeName
}
word! {
    /// A Node's UID: who the host is to the API. A Node re-created under its name has another (R73).
    NodeUid
}
word! {
    /// A pool's UID: a pool re-created under its name has another, and its ledger starts unproven (rule 5).
    PoolUid
}
word! {
    /// A pool's name: one DNS label.
    PoolName
}
word! {
    /// An enactment's UID: a grant written for one enactment must not land in its successor (rule 2).
    EnactmentUid
}
word! {
    /// The holder's identity: random, made once per claim, journalled before it is sent (rule 1). Whoever reads one from outside says
    /// whose it is ([`RequestId::of`]): all can read all ids, so what a host says of another's is about an id of its own.
    RequestId
}

impl RequestId {
    /// What this node calls so.
    pub fn of(node: &NodeName, text: &str) -> Self {
        Self::new(format!("{node}{OF}{text}"))
    }

    /// What its node calls it, and all that is written down: whose it is, stands beside it.
    pub fn text(&self) -> &str {
        self.0.split_once(OF).map_or(&*self.0, |(_, text)| text)
    }
}

/// Between a node's name, which has none, and what the node calls something.
const OF: char = '/';

word! {
    /// A policy's name.
    PolicyName
}
word! {
    /// A capture's name.
    CaptureName
}
word! {
    /// Marks one writing of a NodeNetworkState by its agent. Only ever compared for equality, so no two
    /// clocks have to agree: another stamp means the agent has spoken since.
    Stamp
}
