//! Routing rules: which table a packet is looked up in.

use super::{Family, IfName};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a rule does instead of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleAction {
    Blackhole,
    Unreachable,
    Prohibit,
}

impl RuleAction {
    pub(crate) const WORDS: [(&'static str, RuleAction); 3] = [
        ("blackhole", RuleAction::Blackhole),
        ("unreachable", RuleAction::Unreachable),
        ("prohibit", RuleAction::Prohibit),
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            RuleAction::Blackhole => "blackhole",
            RuleAction::Unreachable => "unreachable",
            RuleAction::Prohibit => "prohibit",
        }
    }
}

/// A rule. All of it is its identity: the kernel keeps two that differ in anything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rule {
    pub family: Family,
    pub priority: u32,
    pub from: Option<IpNet>,
    pub to: Option<IpNet>,
    pub iif: Option<IfName>,
    pub fwmark: Option<u32>,
    pub fwmask: Option<u32>,
    /// `None` with an action.
    pub table: Option<u32>,
    pub action: Option<RuleAction>,
    pub suppress_prefix_length: Option<u32>,
}

impl Rule {
    /// The three (two) rules that every host is born with are nobody's configuration.
    pub fn is_kernels(&self) -> bool {
        matches!(
            (self.priority, self.table),
            (0, Some(255)) | (32766, Some(254)) | (32767, Some(253))
        ) && self.from.is_none()
            && self.to.is_none()
            && self.iif.is_none()
            && self.fwmark.is_none()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.priority)?;
        match (self.from, self.to) {
            (None, None) => write!(
                f,
                " from all{}",
                if self.family == Family::Ipv6 {
                    " (ipv6)"
                } else {
                    ""
                }
            )?,
            (from, to) => {
                if let Some(from) = from {
                    write!(f, " from {from}")?;
                }
                if let Some(to) = to {
                    write!(f, " to {to}")?;
                }
            }
        }
        if let Some(iif) = &self.iif {
            write!(f, " iif {iif}")?;
        }
        if let Some(mark) = self.fwmark {
            write!(f, " fwmark {mark:#x}")?;
            if let Some(mask) = self.fwmask {
                write!(f, "/{mask:#x}")?;
            }
        }
        if let Some(table) = self.table {
            write!(f, " lookup {table}")?;
        }
        if let Some(action) = self.action {
            write!(f, " {}", action.as_str())?;
        }
        match self.suppress_prefix_length {
            Some(length) => write!(f, " suppress-prefix-length {length}"),
            None => Ok(()),
        }
    }
}
