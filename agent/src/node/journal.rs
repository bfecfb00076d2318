//! The journal: what this host holds, on disk before it is used; and the last good state of each policy, for a start
//! without the API.
//!
//! One file, replaced whole and synced. A journal that can't be read is kept aside and treated as lost: its addresses are
//! found again by the ledger's entries (rule 1). Cost: one write of a few hundred bytes per claim and policy.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use policy::claim::{ClaimKey, Phase, PolicyName, Record};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::host::file;

/// Grows when the form changes.
const FORM: u32 = 1;

/// What is in the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Journal {
    form: u32,
    /// Whose it is: another host's disk is no proof of anything.
    node: String,
    claims: Vec<(ClaimKey, Record)>,
    /// The last state that was applied, and verified, by policy.
    enacted: BTreeMap<PolicyName, Enacted>,
}

/// A state that was good.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Enacted {
    pub(super) state: Value,
    /// The pooled addresses in it: without these it must not be applied.
    pub(super) ips: BTreeSet<IpAddr>,
}

/// Why there is no journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("can't read the journal {}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("can't write the journal {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("the journal {} was written by a newer version of berth; install that, or move the journal away", .path.display())]
    Newer { path: PathBuf },
    #[error("the journal {} is of node {found}, not of {node}: give each node a state directory of its own", .path.display())]
    Another { path: PathBuf, found: String, node: String },
}

/// The file and what it says.
pub(super) struct Book {
    path: PathBuf,
    journal: Journal,
    /// Where a journal that could not be read was put.
    pub(super) damaged: Option<PathBuf>,
    /// How often it was written since the start.
    written: u64,
}

impl Book {
    pub(super) fn open(state_dir: &Path, node: &str) -> Result<Self, JournalError> {
        let path = state_dir.join("journal.json");
        let wrong = |source| JournalError::Read { path: path.clone(), source };
        let text = file::read(&path).map_err(wrong)?;
        let empty = Journal { form: FORM, node: node.to_owned(), ..Journal::default() };
        let fresh = |damaged| Self { path: path.clone(), journal: empty.clone(), damaged, written: 0 };
        if text.is_empty() {
            return Ok(fresh(None));
        }
        let form = serde_json::from_slice::<Value>(&text).ok().and_then(|value| value.get("form")?.as_u64());
        if form.is_some_and(|form| form > FORM.into()) {
            return Err(JournalError::Newer { path });
        }
        match serde_json::from_slice::<Journal>(&text) {
            Ok(journal) if journal.node != node => {
                Err(JournalError::Another { path, found: journal.node, node: node.to_owned() })
            }
            Ok(journal) => Ok(Self { path, journal, damaged: None, written: 0 }),
            Err(_) => {
                let aside = path.with_extension(format!("damaged-{}", std::process::id()));
                std::fs::rename(&path, &aside).map_err(wrong)?;
                Ok(fresh(Some(aside)))
            }
        }
    }

    /// Grows with every change.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn claims(&self) -> BTreeMap<ClaimKey, Record> {
        self.journal.claims.iter().cloned().collect()
    }

    /// What may be applied without the API: states whose every pooled address is held.
    pub(super) fn good(&self) -> Vec<(PolicyName, Value)> {
        let held: BTreeSet<(&PolicyName, IpAddr)> = self
            .journal
            .claims
            .iter()
            .filter_map(|(key, record)| match &record.phase {
                Phase::Holding(lease) => Some(lease.ips.iter().map(|ip| (&key.policy, *ip))),
                Phase::Asking { .. } | Phase::Parked(_) | Phase::Releasing => None,
            })
            .flatten()
            .collect();
        let all = self.journal.enacted.iter();
        all.filter(|(policy, enacted)| enacted.ips.iter().all(|ip| held.contains(&(*policy, *ip))))
            .map(|(policy, enacted)| (policy.clone(), enacted.state.clone()))
            .collect()
    }

    pub(super) fn enacted(&self) -> impl Iterator<Item = &PolicyName> {
        self.journal.enacted.keys()
    }

    /// On disk when this returns.
    pub(super) fn write_claim(
        &mut self,
        key: &ClaimKey,
        record: Option<&Record>,
    ) -> Result<(), JournalError> {
        let mut next = self.journal.clone();
        // With a claim that is no longer held goes the state that used it.
        if !record.is_some_and(|record| matches!(record.phase, Phase::Holding(_))) {
            next.enacted.remove(&key.policy);
        }
        next.claims.retain(|(known, _)| known != key);
        next.claims.extend(record.map(|record| (key.clone(), record.clone())));
        self.write(next)
    }

    pub(super) fn write_enacted(
        &mut self,
        policy: &PolicyName,
        state: Option<&Enacted>,
    ) -> Result<(), JournalError> {
        if self.journal.enacted.get(policy) == state {
            return Ok(());
        }
        let mut next = self.journal.clone();
        match state {
            Some(state) => next.enacted.insert(policy.clone(), state.clone()),
            None => next.enacted.remove(policy),
        };
        self.write(next)
    }

    fn write(&mut self, next: Journal) -> Result<(), JournalError> {
        let wrong = |source| JournalError::Write { path: self.path.clone(), source };
        let text = serde_json::to_string(&next).map_err(|error| wrong(error.into()))?;
        file::replace_with_mode(&self.path, &text, 0o600).map_err(wrong)?;
        self.journal = next;
        self.written += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::claim::Lease;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("berth-journal-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn claim() -> (ClaimKey, Record) {
        let key = ClaimKey { policy: "p".into(), pool: "pool".into(), capture: "c".into() };
        let lease = Lease { ips: vec!["10.0.0.1".parse().unwrap()], sequence: 3, pool: "uid".into() };
        (key, Record { id: "id".into(), node_uid: "u".into(), phase: Phase::Holding(lease) })
    }

    #[test]
    fn what_is_written_is_there_at_the_next_start() {
        let folder = folder("kept");
        let (key, record) = claim();
        let ips = BTreeSet::from(["10.0.0.1".parse().unwrap()]);
        let state = Enacted { state: serde_json::json!({"interfaces": []}), ips };
        let mut book = Book::open(&folder, "node").unwrap();
        book.write_claim(&key, Some(&record)).unwrap();
        book.write_enacted(&"p".into(), Some(&state)).unwrap();
        let again = Book::open(&folder, "node").unwrap();
        assert_eq!(again.claims(), [(key.clone(), record)].into());
        assert_eq!(again.good(), [("p".into(), state.state)]);
        // Let go: what used it is not put back, whatever happens next.
        let (_, mut record) = claim();
        record.phase = Phase::Releasing;
        book.write_claim(&key, Some(&record)).unwrap();
        let after = Book::open(&folder, "node").unwrap();
        assert!(after.good().is_empty() && after.enacted().next().is_none());
        book.write_claim(&key, None).unwrap();
        assert!(Book::open(&folder, "node").unwrap().claims().is_empty());
        assert!(matches!(Book::open(&folder, "other"), Err(JournalError::Another { .. })));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_damaged_one_is_kept_aside_and_a_newer_one_is_refused() {
        let folder = folder("damaged");
        std::fs::write(folder.join("journal.json"), "{\"form\": 1, \"no").unwrap();
        let book = Book::open(&folder, "node").unwrap();
        assert!(book.claims().is_empty());
        assert_eq!(std::fs::read_to_string(book.damaged.unwrap()).unwrap(), "{\"form\": 1, \"no");
        std::fs::write(folder.join("journal.json"), "{\"form\": 2, \"more\": true}").unwrap();
        assert!(matches!(Book::open(&folder, "node"), Err(JournalError::Newer { .. })));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
