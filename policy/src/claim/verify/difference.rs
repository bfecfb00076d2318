//! One difference between two records of a pool, in words.

use std::fmt;
use std::net::IpAddr;

use crate::claim::ledger::Entry;
use crate::claim::names::{CaptureName, NodeName, PolicyName};

/// Who has an address, by somebody's word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claimant {
    pub node: NodeName,
    pub policy: PolicyName,
    pub capture: CaptureName,
}

impl Claimant {
    pub fn of(entry: &Entry) -> Self {
        let Entry { node, policy, capture, .. } = entry;
        Self { node: node.clone(), policy: policy.clone(), capture: capture.clone() }
    }
}

impl fmt::Display for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.node)?;
        if !self.policy.as_str().is_empty() {
            write!(f, " (policy {}, capture {})", self.policy, self.capture)?;
        }
        Ok(())
    }
}

/// An interface of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub node: NodeName,
    pub interface: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of node {}", self.interface, self.node)
    }
}

/// Two records that don't agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// The ledger was not proven complete for this pool (rule 5).
    Unproven,
    /// `allocated-offsets` and `allocations` disagree (D16).
    Offsets,
    OutOfRange {
        ip: IpAddr,
        holder: Claimant,
    },
    /// One holder has two addresses of a family (rule 1).
    Twice {
        ip: IpAddr,
        other: IpAddr,
        holder: Claimant,
    },
    NodeGone {
        ip: IpAddr,
        holder: Claimant,
    },
    /// The ledger has a holder, and no enactment lists it.
    Unlisted {
        ip: IpAddr,
        holder: Claimant,
    },
    /// An enactment lists it, and the ledger has another holder, or none.
    Unbacked {
        ip: IpAddr,
        holder: Claimant,
        ledger: Option<Claimant>,
    },
    /// On an interface, and not in the ledger.
    Unrecorded {
        ip: IpAddr,
        at: Place,
    },
    /// On an interface of another node than the ledger's.
    Elsewhere {
        ip: IpAddr,
        holder: Claimant,
        at: Place,
    },
    /// Quarantined, and on an interface of the node that had it.
    SetAside {
        ip: IpAddr,
        holder: Claimant,
        at: Place,
    },
    /// Held, by its agent's word too, and on none of its interfaces.
    NotThere {
        ip: IpAddr,
        holder: Claimant,
    },
}

impl Difference {
    /// The address it is about; none where it is about the ledger as a whole.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Unproven | Self::Offsets => None,
            Self::OutOfRange { ip, .. }
            | Self::Twice { ip, .. }
            | Self::NodeGone { ip, .. }
            | Self::Unlisted { ip, .. }
            | Self::Unbacked { ip, .. }
            | Self::Unrecorded { ip, .. }
            | Self::Elsewhere { ip, .. }
            | Self::SetAside { ip, .. }
            | Self::NotThere { ip, .. } => Some(*ip),
        }
    }

    /// One word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Unproven => "Unproven",
            Self::Offsets => "Offsets",
            Self::OutOfRange { .. } => "OutOfRange",
            Self::Twice { .. } => "Twice",
            Self::NodeGone { .. } => "NodeGone",
            Self::Unlisted { .. } => "Unlisted",
            Self::Unbacked { .. } => "Unbacked",
            Self::Unrecorded { .. } => "Unrecorded",
            Self::Elsewhere { .. } => "Elsewhere",
            Self::SetAside { .. } => "SetAside",
            Self::NotThere { .. } => "NotThere",
        }
    }

    /// Who has it: by the ledger, or by the enactment that the ledger knows nothing of.
    pub fn holder(&self) -> Option<&Claimant> {
        match self {
            Self::Unproven | Self::Offsets | Self::Unrecorded { .. } => None,
            Self::OutOfRange { holder, .. }
            | Self::Twice { holder, .. }
            | Self::NodeGone { holder, .. }
            | Self::Unlisted { holder, .. }
            | Self::Unbacked { holder, .. }
            | Self::Elsewhere { holder, .. }
            | Self::SetAside { holder, .. }
            | Self::NotThere { holder, .. } => Some(holder),
        }
    }

    /// Where it was seen.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Unrecorded { at, .. } | Self::Elsewhere { at, .. } | Self::SetAside { at, .. } => Some(at),
            _ => None,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unproven => f.write_str("the ledger is not rebuilt for this pool yet: nothing is given"),
            Self::Offsets => f.write_str("allocated-offsets and allocations disagree: the ledger is rebuilt"),
            Self::OutOfRange { holder, .. } => {
                write!(f, "the ledger has it for {holder}, and no range of the pool has it")
            }
            Self::Twice { other, holder, .. } => {
                write!(f, "the ledger has it for {holder}, which has {other} too")
            }
            Self::NodeGone { holder, .. } => {
                write!(f, "the ledger has it for {holder}, and there is no such Node")
            }
            Self::Unlisted { holder, .. } => {
                write!(f, "the ledger has it for {holder}, whose enactment doesn't list it")
            }
            Self::Unbacked { holder, ledger: None, .. } => {
                write!(f, "the enactment of {holder} lists it, and the ledger doesn't have it")
            }
            Self::Unbacked { holder, ledger: Some(other), .. } => {
                write!(f, "the enactment of {holder} lists it, and the ledger has it for {other}")
            }
            Self::Unrecorded { at, .. } => write!(f, "it is on {at}, and the ledger doesn't have it"),
            Self::Elsewhere { holder, at, .. } => {
                write!(f, "it is on {at}, and the ledger has it for {holder}")
            }
            Self::SetAside { holder, at, .. } => {
                write!(f, "it is on {at}, and quarantined for {holder}")
            }
            Self::NotThere { holder, .. } => {
                write!(f, "{holder} holds it, and it is on none of that host's interfaces")
            }
        }
    }
}
