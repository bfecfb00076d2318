//! Objects of the kernel that documents have no words for, kept so that they can be given back.
//!
//! A route by source or of type throw, a rule by user, a next hop object, a permanent neighbour, a static entry of a bridge:
//! no document shows or asks for them, but a link that goes or goes down takes them along. So an observation holds them as they came, with what has to be known to tell when they
//! go (links, source, next hop object) and what they are in words. Made by the agent's netlink module; [`crate::plan`]
//! says when one is lost, and puts it back. Nothing here looks into the payload.

use super::{Family, IfName, NextHop, Raw, Rule};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// What it is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptKind {
    /// First: routes lead through it.
    NextHop,
    Route,
    Rule,
    /// Which hardware address an IP address has, where somebody said so for good. It goes with its link's being up, with the
    /// last address of its family there, and with the link's own hardware address.
    Neighbour,
    /// Where a bridge or a tunnel sends frames to, where somebody said so for good. Its ways are its link and, for an
    /// entry of a bridge, that bridge.
    Forwarding,
    /// Who gets the frames of a multicast group, where somebody said so for good: a port, and its bridge.
    Group,
}

impl KeptKind {
    pub fn as_str(self) -> &'static str {
        match self {
            KeptKind::NextHop => "next hop",
            KeptKind::Route => "route",
            KeptKind::Rule => "rule",
            KeptKind::Neighbour => "neighbour",
            KeptKind::Forwarding => "forwarding entry",
            KeptKind::Group => "multicast group",
        }
    }
}

/// One of them. Two are the same if all of it is, but for what passes by itself (`passing`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Kept {
    pub kind: KeptKind,
    /// For people.
    pub words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// Where it leads, in the order of its payload, which has no link in it: their numbers change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<NextHop>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// The number of a next hop object: this one, or the one that a route leads through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<u32>,
    /// IPv4 keeps routes to the host itself when their link goes down.
    #[serde(default)]
    pub outlasts_down: bool,
    /// What of a rule is the model's: a request to delete that might hit this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Box<Rule>>,
    /// The kernel's message, without what the kernel owns.
    pub payload: Vec<u8>,
    /// How long it still lives.
    #[serde(default, skip_serializing_if = "Raw::is_empty")]
    pub passing: Raw,
}

impl Kept {
    pub fn uses(&self, link: &IfName) -> bool {
        self.hops.iter().any(|hop| hop.dev == *link)
    }

    /// An entry of a bridge about one of its ports: the two.
    pub fn port(&self) -> Option<(&IfName, &IfName)> {
        match (self.kind, self.hops.as_slice()) {
            (KeptKind::Forwarding | KeptKind::Group, [port, bridge]) => Some((&port.dev, &bridge.dev)),
            _ => None,
        }
    }

    /// The same object, perhaps changed.
    pub fn is_same(&self, other: &Kept) -> bool {
        match (self.kind, other.kind) {
            (KeptKind::NextHop, KeptKind::NextHop) => self.object == other.object,
            _ => self == other,
        }
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.words)
    }
}
