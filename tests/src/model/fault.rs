//! What may go wrong, and which rules can be broken on purpose to test the checker.

use std::fmt;
use std::str::FromStr;

/// A fault that a schedule may contain once; what recovers from it (a restart, a re-creation) is an ordinary
/// move that may or may not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    AgentCrash,
    AgentPause,
    /// An agent cut off from the API server, at boot too.
    Partition,
    HostOff,
    NodeDeleted,
    JournalLost,
    PolicyDeleted,
    PoolDeleted,
    Reset,
    /// The pool is reset for the one policy (R36).
    PolicyReset,
    /// The pool is reset for one node (R37).
    NodeReset,
    EnactmentDeleted,
    StoreRestored,
    WireTaken,
    /// A host finds out that an address on its NIC is a stranger's, too.
    FoundTaken,
    /// The first of two ranges is to give nothing more; when nothing of it is held, it may be removed, and added again.
    RangeDrained,
    /// A host's policy can't be put on its NIC for a while: no slot, or the kernel refuses.
    ApplyFails,
    /// Node and disk go together: what boots is a new holder under the old name.
    HostReinstalled,
}

impl Fault {
    pub const ALL: [Fault; 18] = [
        Fault::AgentCrash,
        Fault::AgentPause,
        Fault::Partition,
        Fault::HostOff,
        Fault::NodeDeleted,
        Fault::JournalLost,
        Fault::PolicyDeleted,
        Fault::PoolDeleted,
        Fault::Reset,
        Fault::PolicyReset,
        Fault::NodeReset,
        Fault::EnactmentDeleted,
        Fault::StoreRestored,
        Fault::WireTaken,
        Fault::FoundTaken,
        Fault::RangeDrained,
        Fault::ApplyFails,
        Fault::HostReinstalled,
    ];

    /// Does it happen to one host, rather than to what all share?
    pub(super) fn has_target(self) -> bool {
        match self {
            Self::PolicyDeleted | Self::PoolDeleted | Self::Reset | Self::PolicyReset => false,
            Self::StoreRestored | Self::WireTaken | Self::RangeDrained => false,
            Self::AgentCrash | Self::AgentPause | Self::Partition | Self::HostOff => true,
            Self::NodeDeleted | Self::JournalLost | Self::EnactmentDeleted | Self::ApplyFails => true,
            Self::HostReinstalled | Self::NodeReset | Self::FoundTaken => true,
        }
    }

    /// Every fault alone, then every pair, a fault twice included.
    pub fn sets() -> Vec<Vec<Fault>> {
        let mut sets: Vec<Vec<Fault>> = vec![vec![]];
        sets.extend(Self::ALL.map(|fault| vec![fault]));
        for (i, first) in Self::ALL.iter().enumerate() {
            sets.extend(Self::ALL[i..].iter().map(|second| vec![*first, *second]));
        }
        sets
    }
}

/// No fault has this name.
#[derive(Debug, thiserror::Error)]
#[error("{name}: no such fault; there are {}", Fault::ALL.map(|fault| fault.to_string()).join(", "))]
pub struct NoSuchFault {
    name: String,
}

impl FromStr for Fault {
    type Err = NoSuchFault;

    fn from_str(name: &str) -> Result<Self, NoSuchFault> {
        let named = Self::ALL.into_iter().find(|fault| fault.to_string() == name);
        named.ok_or_else(|| NoSuchFault { name: name.to_owned() })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A rule broken on purpose. The protocol's code is left as it is: the world around it lies, so that what
/// the rule promises no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Breach {
    /// Rule 1: ids are not made once; a host uses the same one again.
    IdsUsedAgain,
    /// Rule 1: an entry changes its id by what an old copy says.
    RekeyedFromCache,
    /// Rule 2: the grant is used without asking the pool.
    Unconfirmed,
    /// Rule 2: an answer lands whatever grant it replaces.
    AnswersUnguarded,
    /// Rule 3: the address stays on the NIC until the release is over.
    ReleasedBeforeOff,
    /// Rule 4: freed without the agent's word.
    FreedWithoutWord,
    /// Rule 4: the quarantine has no length.
    NoQuarantine,
    /// Rule 5: a new pool gives before it is rebuilt.
    GivesUnbuilt,
    /// Rule 6: a restored store is not put on hold.
    NoHold,
    /// Rule 6: a hold out of the backup counts as one that has lasted.
    HoldOfBackup,
    /// Rule 6: a ledger write tests no sequence.
    SequenceUntested,
    /// Rule 7: a Node re-created under its name inherits without proof.
    InheritsByName,
    /// Rule 7: at boot the journal is applied before the Node is read.
    JournalFirst,
}
