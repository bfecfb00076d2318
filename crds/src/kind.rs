//! The five kinds, so that a caller can choose one by its name and a `match` covers them all.

use std::sync::LazyLock;

use crate::definition::{self, Definition};

/// A kind of the group `nmstate.io` that this crate defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    NodeIPPool,
    NodeIPSlice,
    NodeNetworkConfigurationPolicy,
    NodeNetworkConfigurationEnactment,
    NodeNetworkState,
}

impl Kind {
    pub const ALL: [Self; 5] = [
        Self::NodeIPPool,
        Self::NodeIPSlice,
        Self::NodeNetworkConfigurationPolicy,
        Self::NodeNetworkConfigurationEnactment,
        Self::NodeNetworkState,
    ];

    /// The kind as manifests spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeIPPool => "NodeIPPool",
            Self::NodeIPSlice => "NodeIPSlice",
            Self::NodeNetworkConfigurationPolicy => "NodeNetworkConfigurationPolicy",
            Self::NodeNetworkConfigurationEnactment => "NodeNetworkConfigurationEnactment",
            Self::NodeNetworkState => "NodeNetworkState",
        }
    }

    /// The kind that a manifest's `kind` names, if it is one of ours.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its CRD, schema and rules: built once per process (some milliseconds), then shared.
    pub fn definition(self) -> &'static Definition {
        static POOL: LazyLock<Definition> = LazyLock::new(|| definition::build(Kind::NodeIPPool));
        static SLICE: LazyLock<Definition> = LazyLock::new(|| definition::build(Kind::NodeIPSlice));
        static POLICY: LazyLock<Definition> =
            LazyLock::new(|| definition::build(Kind::NodeNetworkConfigurationPolicy));
        static ENACTMENT: LazyLock<Definition> =
            LazyLock::new(|| definition::build(Kind::NodeNetworkConfigurationEnactment));
        static STATE: LazyLock<Definition> = LazyLock::new(|| definition::build(Kind::NodeNetworkState));
        match self {
            Self::NodeIPPool => &POOL,
            Self::NodeIPSlice => &SLICE,
            Self::NodeNetworkConfigurationPolicy => &POLICY,
            Self::NodeNetworkConfigurationEnactment => &ENACTMENT,
            Self::NodeNetworkState => &STATE,
        }
    }
}
