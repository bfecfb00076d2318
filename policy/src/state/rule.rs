//! Routing rules: which table a packet is looked up in.

use super::{Family, IfName, Raw};
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
#[serde(rename_all = "kebab-case")]
pub struct Rule {
    pub family: Family,
    pub priority: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<IpNet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<IpNet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iif: Option<IfName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fwmark: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fwmask: Option<u32>,
    /// `None` with an action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<RuleAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppress_prefix_length: Option<u32>,
    #[serde(default, rename = "kernel-attributes", skip_serializing_if = "Raw::is_empty")]
    pub raw: Raw,
}

impl Rule {
    /// Whether it is this one, as the kernel has it: that a mark counts with all its bits need not be said.
    pub fn is(&self, found: &Rule) -> bool {
        let mask = |r: &Rule| r.fwmark.map(|_| r.fwmask.unwrap_or(u32::MAX));
        let place = |r: &Rule| (r.family, r.priority, mask(r));
        place(self) == place(found) && Rule { fwmask: self.fwmask, ..found.clone() } == *self
    }

    /// Whether the kernel, asked to delete this one, could take the other for it: what a request doesn't say, it
    /// doesn't compare.
    pub fn could_mean(&self, other: &Rule) -> bool {
        fn fits<T: PartialEq>(said: Option<&T>, found: Option<&T>) -> bool {
            said.is_none() || said == found
        }
        self.family == other.family
            && self.priority == other.priority
            && (self.table, self.action) == (other.table, other.action)
            && fits(self.from.as_ref(), other.from.as_ref())
            && fits(self.to.as_ref(), other.to.as_ref())
            && fits(self.iif.as_ref(), other.iif.as_ref())
            && fits(self.fwmark.as_ref(), other.fwmark.as_ref())
            && fits(self.fwmask.as_ref(), other.fwmask.as_ref())
            && fits(self.suppress_prefix_length.as_ref(), other.suppress_prefix_length.as_ref())
    }

    /// The three (two) rules that every host is born with are nobody's configuration.
    pub fn is_kernels(&self) -> bool {
        matches!((self.priority, self.table), (0, Some(255)) | (32766, Some(254)) | (32767, Some(253)))
            && self.from.is_none()
            && self.to.is_none()
            && self.iif.is_none()
            && self.fwmark.is_none()
            && self.suppress_prefix_length.is_none()
            && self.action.is_none()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.priority)?;
        match (self.from, self.to) {
            (None, None) => {
                write!(f, " from all{}", if self.family == Family::Ipv6 { " (ipv6)" } else { "" })?;
            }
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
