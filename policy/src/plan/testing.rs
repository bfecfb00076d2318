//! Hosts and documents out of bytes, for tests: one generator drives the pure plan, a network namespace and a
//! guest kernel.
//!
//! No randomness of its own: whoever calls it brings the bytes (a property test, a fuzzer, a seed), and the same
//! bytes give the same scenario. States are made by applying steps to bare hardware in memory, so they are
//! such as a kernel could have. Built only with the feature `testing`, and in this crate's own tests.

mod document;
mod host;

use crate::state::Observed;
use serde_json::Value;

/// A host and a document to apply to it. The document may ask for what can't be; most don't.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub host: Observed,
    pub document: Value,
}

/// The scenario that these bytes stand for.
pub fn scenario(bytes: &[u8]) -> Scenario {
    let mut dice = Dice { bytes, at: 0 };
    let host = host::host(&mut dice);
    let document = document::document(&mut dice, &host);
    Scenario { host, document }
}

/// The cards every such host has; a test that drives a kernel provides links of these names.
pub const CARDS: [&str; 4] = ["eth0", "eth1", "eth2", "eth3"];

/// What can be made, by name: each name always stands for the same kind.
pub(crate) const MADE: [(&str, &str); 9] = [
    ("br0", "linux-bridge"),
    ("br1", "linux-bridge"),
    ("bond0", "bond"),
    ("vlan10", "vlan"),
    ("vlan20", "vlan"),
    ("mv0", "mac-vlan"),
    ("vrf0", "vrf"),
    ("dummy0", "dummy"),
    ("va0", "veth"),
];

/// Reads choices off the bytes; when they run out every choice is the first.
pub(crate) struct Dice<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Dice<'_> {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % sides.max(1)
    }

    /// True once in `n`.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.roll(n) == n - 1
    }

    pub(crate) fn pick<'t, T>(&mut self, list: &'t [T]) -> &'t T {
        &list[self.roll(list.len())]
    }
}
