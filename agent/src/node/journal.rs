//! The journal: what this host holds, on disk before it is used; and the last good state of each policy, for a start
//! without the API.
//!
//! One file, replaced whole and synced. A journal that can't be read is kept aside and treated as lost: its addresses are
//! found again by the ledger's entries (rule 1). Cost: one write of a few hundred bytes per claim and policy.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use policy::claim::{ClaimKey, NodeName, Phase, PolicyName, Record, RequestId};
use policy::enact::named;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::host::file;
use crate::wire::Timing;

/// What it is called, in the state directory.
const FILE: &str = "journal.json";

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
    /// For how long its policy has the wire asked, where it says so: at a boot without the API nobody else does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) wire_probe: Option<String>,
}

impl Enacted {
    fn uses(&self, ip: IpAddr) -> bool {
        self.ips.contains(&ip) || named(&self.state).any(|(other, _)| other == ip)
    }
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
    #[error("the journal {} can't be read; the agent keeps it aside when it starts, and asks for the same addresses again", .path.display())]
    Damaged { path: PathBuf },
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
        let path = state_dir.join(FILE);
        let empty = Journal { form: FORM, node: node.to_owned(), ..Journal::default() };
        let fresh = |damaged| Self { path: path.clone(), journal: empty.clone(), damaged, written: 0 };
        match read(&path) {
            Ok(None) => Ok(fresh(None)),
            Ok(Some(journal)) if journal.node != node => {
                Err(JournalError::Another { path, found: journal.node, node: node.to_owned() })
            }
            Ok(Some(journal)) => Ok(Self { path, journal, damaged: None, written: 0 }),
            Err(JournalError::Damaged { path }) => {
                let aside = path.with_extension(format!("damaged-{}", std::process::id()));
                std::fs::rename(&path, &aside)
                    .map_err(|source| JournalError::Read { path: path.clone(), source })?;
                Ok(fresh(Some(aside)))
            }
            Err(error) => Err(error),
        }
    }

    /// Whosever it is, to be read alone; nothing, where there is none.
    pub(super) fn find(state_dir: &Path) -> Result<Option<Self>, JournalError> {
        let path = state_dir.join(FILE);
        let found = read(&path)?;
        Ok(found.map(|journal| Self { path, journal, damaged: None, written: 0 }))
    }

    /// Whose it is.
    pub(super) fn node(&self) -> &str {
        &self.journal.node
    }

    /// Grows with every change.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn claims(&self) -> BTreeMap<ClaimKey, Record> {
        let node = NodeName::new(self.journal.node.as_str());
        let own = |record: &Record| Record { id: RequestId::of(&node, record.id.as_str()), ..record.clone() };
        self.journal.claims.iter().map(|(key, record)| (key.clone(), own(record))).collect()
    }

    /// What may be applied without the API: states whose every pooled address is held.
    pub(super) fn good(&self) -> Vec<(PolicyName, Value)> {
        self.whole().map(|(policy, enacted, _)| (policy.clone(), enacted.state.clone())).collect()
    }

    /// The same of one policy.
    pub(super) fn good_of(&self, policy: &PolicyName) -> Option<&Value> {
        self.whole().find(|(one, ..)| *one == policy).map(|(_, enacted, _)| &enacted.state)
    }

    /// The held addresses in these states, by policy.
    pub(super) fn in_good(&self) -> BTreeMap<PolicyName, BTreeSet<IpAddr>> {
        let used = |(policy, enacted, held): (&PolicyName, &Enacted, BTreeSet<IpAddr>)| {
            (policy.clone(), held.into_iter().filter(|ip| enacted.uses(*ip)).collect())
        };
        self.whole().map(used).collect()
    }

    /// States whose every pooled address is held, with all that is held for their policies.
    fn whole(&self) -> impl Iterator<Item = (&PolicyName, &Enacted, BTreeSet<IpAddr>)> {
        let mut held: BTreeMap<&PolicyName, BTreeSet<IpAddr>> = BTreeMap::new();
        for (key, record) in &self.journal.claims {
            if let Phase::Holding(lease) = &record.phase {
                held.entry(&key.policy).or_default().extend(&lease.ips);
            }
        }
        let all = self.journal.enacted.iter();
        let with_held =
            all.map(move |(policy, enacted)| (policy, enacted, held.remove(policy).unwrap_or_default()));
        with_held.filter(|(_, enacted, held)| enacted.ips.is_subset(held))
    }

    /// For how long the wire is asked for a policy's addresses, where it said so.
    pub(super) fn timing(&self, policy: &PolicyName) -> Option<Timing> {
        self.journal.enacted.get(policy)?.wire_probe.as_ref()?.parse().ok()
    }

    /// The last good state of a policy, whatever of it is held.
    pub(super) fn state(&self, policy: &PolicyName) -> Option<&Value> {
        self.journal.enacted.get(policy).map(|enacted| &enacted.state)
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
        // A state that used what is no longer held is not good any more; one from before there was such a claim still is. It stays
        // known: it says what its policy brought about.
        let held = |record: &Record| match &record.phase {
            Phase::Holding(lease) => lease.ips.clone(),
            Phase::Asking { .. } | Phase::Parked(_) | Phase::Releasing => Vec::new(),
        };
        let before = next.claims.iter().find(|(known, _)| known == key).map(|(_, record)| held(record));
        let still = record.map(held).unwrap_or_default();
        let lost: Vec<IpAddr> = before.into_iter().flatten().filter(|ip| !still.contains(ip)).collect();
        if let Some(enacted) = next.enacted.get_mut(&key.policy) {
            let used: Vec<IpAddr> = lost.into_iter().filter(|ip| enacted.uses(*ip)).collect();
            enacted.ips.extend(used);
        }
        next.claims.retain(|(known, _)| known != key);
        // The whole file is of one node: its ids are written as it calls them.
        let plain = |record: &Record| Record { id: RequestId::new(record.id.text()), ..record.clone() };
        next.claims.extend(record.map(|record| (key.clone(), plain(record))));
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

/// What a file says; nothing, where there is none.
fn read(path: &Path) -> Result<Option<Journal>, JournalError> {
    let text = file::read(path).map_err(|source| JournalError::Read { path: path.to_owned(), source })?;
    if text.is_empty() {
        return Ok(None);
    }
    let form = serde_json::from_slice::<Value>(&text).ok().and_then(|value| value.get("form")?.as_u64());
    if form.is_some_and(|form| form > FORM.into()) {
        return Err(JournalError::Newer { path: path.to_owned() });
    }
    serde_json::from_slice(&text).map(Some).map_err(|_| JournalError::Damaged { path: path.to_owned() })
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
        (
            key,
            Record {
                id: RequestId::of(&"node".into(), "id"),
                node_uid: "u".into(),
                phase: Phase::Holding(lease),
            },
        )
    }

    #[test]
    fn it_is_found_without_knowing_whose_it_is() {
        let folder = folder("found");
        assert!(Book::find(&folder).unwrap().is_none());
        let (key, record) = claim();
        Book::open(&folder, "node").unwrap().write_claim(&key, Some(&record)).unwrap();
        let found = Book::find(&folder).unwrap().unwrap();
        assert_eq!((found.node(), found.claims()), ("node", [(key, record)].into()));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_written_is_there_at_the_next_start() {
        let folder = folder("kept");
        let (key, record) = claim();
        let ips = BTreeSet::from(["10.0.0.1".parse().unwrap()]);
        let state =
            Enacted { state: serde_json::json!({"interfaces": []}), ips, wire_probe: Some("2s".to_owned()) };
        let mut book = Book::open(&folder, "node").unwrap();
        book.write_claim(&key, Some(&record)).unwrap();
        book.write_enacted(&"p".into(), Some(&state)).unwrap();
        let again = Book::open(&folder, "node").unwrap();
        assert_eq!(again.claims(), [(key.clone(), record)].into());
        assert_eq!(again.timing(&"p".into()), "2s".parse().ok());
        assert_eq!(again.good(), [("p".into(), state.state)]);
        // Let go: what used it is not put back, whatever happens next.
        let (_, mut record) = claim();
        record.phase = Phase::Releasing;
        book.write_claim(&key, Some(&record)).unwrap();
        let after = Book::open(&folder, "node").unwrap();
        assert!(after.good().is_empty() && after.enacted().count() == 1);
        book.write_claim(&key, None).unwrap();
        assert!(Book::open(&folder, "node").unwrap().claims().is_empty());
        assert!(matches!(Book::open(&folder, "other"), Err(JournalError::Another { .. })));
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// A host that had an address before it was claimed has it at a boot too, whatever becomes of the claim; from when it is held
    /// on, its state is good only with it.
    #[test]
    fn a_state_from_before_a_claim_stays_while_that_is_asked_for() {
        let folder = folder("before");
        let (key, holding) = claim();
        let address = serde_json::json!({"ip": "10.0.0.1", "prefix-length": 24});
        let state = serde_json::json!({"interfaces": [{"name": "eth0", "ipv4": {"address": [address]}}]});
        let mut book = Book::open(&folder, "node").unwrap();
        book.write_enacted(&"p".into(), Some(&Enacted { state: state.clone(), ..Enacted::default() }))
            .unwrap();
        for phase in [Phase::Asking { declined: BTreeMap::new() }, holding.phase.clone()] {
            book.write_claim(&key, Some(&Record { phase, ..holding.clone() })).unwrap();
            assert_eq!(book.good(), [("p".into(), state.clone())]);
        }
        book.write_claim(&key, Some(&Record { phase: Phase::Releasing, ..holding })).unwrap();
        assert_eq!((book.good(), book.state(&"p".into())), (Vec::new(), Some(&state)));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_damaged_one_is_kept_aside_and_a_newer_one_is_refused() {
        let folder = folder("damaged");
        std::fs::write(folder.join("journal.json"), "{\"form\": 1, \"no").unwrap();
        // Who only reads leaves it where it is.
        assert!(matches!(Book::find(&folder), Err(JournalError::Damaged { .. })));
        let book = Book::open(&folder, "node").unwrap();
        assert!(book.claims().is_empty());
        assert_eq!(std::fs::read_to_string(book.damaged.unwrap()).unwrap(), "{\"form\": 1, \"no");
        std::fs::write(folder.join("journal.json"), "{\"form\": 2, \"more\": true}").unwrap();
        assert!(matches!(Book::open(&folder, "node"), Err(JournalError::Newer { .. })));
        assert!(matches!(Book::find(&folder), Err(JournalError::Newer { .. })));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
