//! What happened to addresses since somebody looks: told by comparing each ledger with the one before.
//!
//! Bounded: the last [`KEPT`] changes of all pools, the oldest go first.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use policy::claim::{Entry, EntryState, Time};

/// A change is some hundred bytes.
const KEPT: usize = 10_000;

/// One change of one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) pool: String,
    pub(super) ip: IpAddr,
    pub(super) at: Time,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Held { node: String, policy: String },
    Quarantined { node: String, reason: &'static str },
    Freed { node: String },
}

#[derive(Default)]
pub(super) struct History {
    changes: VecDeque<Change>,
}

type Entries = BTreeMap<IpAddr, Entry>;

impl History {
    /// A pool's ledger is now another.
    pub(super) fn note(&mut self, pool: &str, was: &Entries, is: &Entries, now: Time) {
        let gone = was.iter().filter(|(ip, _)| !is.contains_key(ip));
        let gone = gone.map(|(ip, entry)| (*ip, What::Freed { node: entry.node.to_string() }));
        let new = is.iter().filter(|(ip, entry)| was.get(ip) != Some(entry));
        let new = new.filter_map(|(ip, entry)| Some((*ip, what(was.get(ip), entry)?)));
        for (ip, what) in gone.chain(new) {
            if self.changes.len() == KEPT {
                self.changes.pop_front();
            }
            self.changes.push_back(Change { pool: pool.to_owned(), ip, at: now, what });
        }
    }

    /// The latest first.
    pub(super) fn of<'a>(&'a self, pool: &'a str, ip: IpAddr) -> impl Iterator<Item = &'a Change> {
        self.changes.iter().rev().filter(move |change| change.pool == pool && change.ip == ip)
    }
}

/// Nothing, where holder and state are as before.
fn what(was: Option<&Entry>, is: &Entry) -> Option<What> {
    let same = |was: &Entry| was.node_uid == is.node_uid && was.state == is.state && was.policy == is.policy;
    if was.is_some_and(same) {
        return None;
    }
    let node = is.node.to_string();
    Some(match &is.state {
        EntryState::Held => What::Held { node, policy: is.policy.to_string() },
        EntryState::Quarantined(quarantine) => {
            What::Quarantined { node, reason: crate::records::pool::reason_word(&quarantine.reason) }
        }
    })
}
