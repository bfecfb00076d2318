//! The store's file: objects, the log and two counters, in redb.
//!
//! The writer is the only one to call it. Must never leave a commit half done: one transaction per batch, synced before
//! it returns. After an I/O error redb wants to be opened anew: [`Disk::commit`] does that before it tries again.
//!
//! Cost: per changed object its text twice (object and log), and what redb copies on the way to the root.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};

use super::file;
use super::object::{Facts, Key, Object, What};
use super::state::{Before, Event, State};
use super::transaction::Batch;
use crate::embedded::guard;

/// What this program writes, and the newest that it can read.
pub(super) const FORMAT: u64 = 1;
/// The store's file in its directory.
pub(super) const FILE: &str = "store.redb";
/// Everything is in memory already: redb needs room for the pages of one batch, not its default of 1 GiB.
const CACHE: usize = 16 << 20;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");

/// What can go wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("open the store {}", .path.display())]
    Open { path: PathBuf, source: Box<redb::Error> },
    #[error("{} is not a store of berth's: {why}", .path.display())]
    Foreign { path: PathBuf, why: String },
    #[error("make the store {}", .path.display())]
    Make { path: PathBuf, source: Box<redb::Error> },
    #[error("{} was made by a newer berth: format {found}, this one knows {FORMAT}; use the newer berth, or restore a backup of before", .path.display())]
    Newer { path: PathBuf, found: u64 },
    #[error("read the store {}", .path.display())]
    Read { path: PathBuf, source: Box<redb::Error> },
    #[error("write the store {}", .path.display())]
    Write { path: PathBuf, source: Box<redb::Error> },
}

impl DiskError {
    /// What the disk said, in a few words and without paths.
    pub(super) fn said(&self) -> String {
        match self {
            Self::Open { source, .. }
            | Self::Make { source, .. }
            | Self::Read { source, .. }
            | Self::Write { source, .. } => match &**source {
                redb::Error::Io(error) => error.to_string(),
                other => other.to_string(),
            },
            Self::Foreign { why, .. } => why.clone(),
            Self::Newer { found, .. } => format!("format {found}"),
        }
    }
}

/// The file. Nothing while it could not be opened anew.
pub(super) struct Disk {
    path: PathBuf,
    database: Option<Database>,
}

impl Disk {
    /// Opens the store in a directory, or makes one.
    pub(super) fn open(dir: &Path) -> Result<Self, DiskError> {
        let path = dir.join(FILE);
        let failed = |error: std::io::Error| DiskError::Open {
            path: dir.to_owned(),
            source: Box::new(redb::Error::Io(error)),
        };
        if !path.try_exists().map_err(failed)? {
            file::make(&path, &[], 0)?;
        }
        let disk = Self::open_file(&path)?;
        // The directory's own name too.
        file::sync_folder(dir).map_err(failed)?;
        Ok(disk)
    }

    /// Opens a file that is there.
    pub(super) fn open_file(path: &Path) -> Result<Self, DiskError> {
        file::check_length(path)?;
        reading(path, || {
            let mut disk = Self { path: path.to_owned(), database: None };
            disk.check_format()?;
            Ok(disk)
        })
    }

    /// Makes a store of a new and empty file.
    pub(super) fn create(path: &Path, file: File) -> Result<Self, DiskError> {
        let created = builder().create_file(file);
        let created = created.map_err(|error| open_error(path, error))?;
        Ok(Self { path: path.to_owned(), database: Some(created) })
    }

    /// The open database: opened first where it isn't. Never made: a file that vanished is an error, not a new beginning.
    fn database(&mut self) -> Result<&Database, DiskError> {
        if self.database.is_none() {
            let opened = builder().open(&self.path);
            let opened = opened.map_err(|error| open_error(&self.path, error))?;
            self.database = Some(opened);
        }
        self.database
            .as_ref()
            .ok_or_else(|| DiskError::Foreign { path: self.path.clone(), why: "it is closed".to_owned() })
    }

    /// Holds every page of the file against its checksum.
    pub(super) fn check(&mut self) -> Result<(), DiskError> {
        let path = self.path.clone();
        self.database()?;
        let Some(database) = &mut self.database else { return Ok(()) };
        reading(&path, || match database.check_integrity() {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(DiskError::Foreign { path: path.clone(), why: "its checksums are wrong".to_owned() })
            }
            Err(error) => Err(open_error(&path, error)),
        })
    }

    fn unreadable(&self, source: redb::Error) -> DiskError {
        DiskError::Read { path: self.path.clone(), source: Box::new(source) }
    }

    fn check_format(&mut self) -> Result<(), DiskError> {
        let found = self.counter("format").map_err(|error| match error {
            DiskError::Read { path, source } if matches!(*source, redb::Error::TableDoesNotExist(_)) => {
                DiskError::Foreign { path, why: "it has no table of that name".to_owned() }
            }
            other => other,
        })?;
        match found {
            None | Some(0) => {
                Err(DiskError::Foreign { path: self.path.clone(), why: "it has no format number".to_owned() })
            }
            Some(found) if found > FORMAT => Err(DiskError::Newer { path: self.path.clone(), found }),
            Some(_) => Ok(()),
        }
    }

    fn counter(&mut self, name: &str) -> Result<Option<u64>, DiskError> {
        let database = self.database()?;
        let read = || -> Result<Option<u64>, redb::Error> {
            let read = database.begin_read()?;
            let table = read.open_table(META)?;
            Ok(table.get(name)?.map(|value| value.value()))
        };
        let result = read();
        result.map_err(|source| self.unreadable(source))
    }

    /// The revision of the last change.
    pub(super) fn revision(&mut self) -> Result<u64, DiskError> {
        Ok(self.counter("revision")?.unwrap_or_default())
    }

    fn write(
        &mut self,
        change: impl Fn(&redb::WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), DiskError> {
        let path = self.path.clone();
        let database = self.database()?;
        let attempt = || -> Result<(), redb::Error> {
            let mut write = database.begin_write()?;
            write.set_durability(Durability::Immediate)?;
            change(&write)?;
            Ok(write.commit()?)
        };
        let result = attempt();
        if result.is_err() {
            // redb refuses all work after an I/O error until it is opened anew.
            self.database = None;
        }
        result.map_err(|source| DiskError::Write { path, source: Box::new(source) })
    }

    /// Commits a batch: synced when this returns.
    pub(super) fn commit(&mut self, batch: &Batch, forgotten: u64) -> Result<(), DiskError> {
        self.write(|write| {
            let mut objects = write.open_table(OBJECTS)?;
            for (key, object) in batch.objects() {
                match object {
                    Some(object) => objects.insert(key.path().as_str(), &*object.text())?,
                    None => objects.remove(key.path().as_str())?,
                };
            }
            let mut log = write.open_table(LOG)?;
            for event in batch.events.iter().filter(|event| event.object.revision > forgotten) {
                log.insert(event.object.revision, entry(event).as_slice())?;
            }
            log.retain_in(..=forgotten, |_, _| false)?;
            let mut meta = write.open_table(META)?;
            meta.insert("revision", batch.revision)?;
            meta.insert("forgotten", forgotten)?;
            Ok(())
        })
    }

    /// Gives room that was freed inside the file back to the disk. Takes as long as reading and writing the file.
    pub(super) fn compact(&mut self) -> Result<(), DiskError> {
        self.database()?;
        let Some(database) = &mut self.database else { return Ok(()) };
        let result = database.compact().map_err(|error| match error {
            redb::CompactionError::Storage(error) => redb::Error::from(error),
            other => redb::Error::Corrupted(other.to_string()),
        });
        if result.is_err() {
            self.database = None;
        }
        result
            .map(|_| ())
            .map_err(|source| DiskError::Write { path: self.path.clone(), source: Box::new(source) })
    }

    /// After a commit that failed: makes sure that the file says what memory says, also where the disk took the
    /// commit and only its answer was lost.
    pub(super) fn undo(&mut self, failed: &Batch, state: &State) -> Result<(), DiskError> {
        if self.revision()? <= state.revision {
            return Ok(());
        }
        let keys: Vec<Key> = failed.objects().map(|(key, _)| key.clone()).collect();
        self.write(|write| {
            let mut objects = write.open_table(OBJECTS)?;
            for key in &keys {
                match state.get(key) {
                    Some(object) => objects.insert(key.path().as_str(), &*object.text())?,
                    None => objects.remove(key.path().as_str())?,
                };
            }
            write.open_table(LOG)?.retain_in(state.revision + 1.., |_, _| false)?;
            // The numbers stay used: what was committed may have been seen by nobody, but that can't be known here.
            write.open_table(META)?.insert("revision", failed.revision)?;
            Ok(())
        })
    }

    /// Everything, into memory.
    pub(super) fn load(&mut self) -> Result<State, DiskError> {
        let mut state = State::default();
        state.revision = self.revision()?;
        state.forgotten = self.counter("forgotten")?.unwrap_or_default();
        let path = self.path.clone();
        let foreign = |why: String| DiskError::Foreign { path: path.clone(), why };
        let database = self.database()?;
        let read_all = |state: &mut State| -> Result<Option<String>, redb::Error> {
            let read = database.begin_read()?;
            let mut latest: HashMap<u64, Arc<Object>> = HashMap::new();
            for row in read.open_table(OBJECTS)?.iter()? {
                let (key, text) = row?;
                let object =
                    Key::parse(key.value()).and_then(|key| Object::read(key, What::Added, text.value()));
                let Some(object) = object else { return Ok(Some(format!("object {:?}", key.value()))) };
                let object = Arc::new(object);
                latest.insert(object.revision, object.clone());
                state.insert(object);
            }
            let mut versions = HashMap::new();
            for row in read.open_table(LOG)?.iter()? {
                let (revision, entry) = row?;
                let known = latest.get(&revision.value());
                let Some(event) = event(entry.value(), known, &mut versions) else {
                    return Ok(Some(format!("log entry {}", revision.value())));
                };
                state.remember(event);
            }
            Ok(None)
        };
        let unread = reading(&path, || {
            let read = read_all(&mut state);
            read.map_err(|source| DiskError::Read { path: path.clone(), source: Box::new(source) })
        })?;
        match unread {
            Some(what) => Err(foreign(format!("it can't read {what}"))),
            None => Ok(state),
        }
    }

    /// Makes this file, which is new, a store of these objects and no log, at a revision.
    pub(super) fn fill(&mut self, objects: &[Arc<Object>], revision: u64) -> Result<(), DiskError> {
        self.write(|write| {
            let mut table = write.open_table(OBJECTS)?;
            for object in objects {
                table.insert(object.key.path().as_str(), &*object.text())?;
            }
            write.open_table(LOG)?;
            let mut meta = write.open_table(META)?;
            meta.insert("format", FORMAT)?;
            meta.insert("revision", revision)?;
            meta.insert("forgotten", revision)?;
            Ok(())
        })
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    builder
}

/// Reads a file that may be damaged: redb panics where it finds what it never wrote.
fn reading<T>(path: &Path, read: impl FnOnce() -> Result<T, DiskError>) -> Result<T, DiskError> {
    let damaged =
        |why: String| DiskError::Foreign { path: path.to_owned(), why: format!("it is damaged: {why}") };
    guard::reading(read).unwrap_or_else(|why| Err(damaged(why)))
}

fn open_error(path: &Path, error: redb::DatabaseError) -> DiskError {
    match error {
        redb::DatabaseError::Storage(redb::StorageError::Io(error))
            if error.kind() == std::io::ErrorKind::InvalidData =>
        {
            DiskError::Foreign { path: path.to_owned(), why: error.to_string() }
        }
        redb::DatabaseError::Storage(redb::StorageError::Corrupted(why)) => {
            DiskError::Foreign { path: path.to_owned(), why }
        }
        other => DiskError::Open { path: path.to_owned(), source: Box::new(other.into()) },
    }
}

/// What stands before the object's text in a log entry, on a line of its own.
#[derive(Serialize, Deserialize)]
struct Header {
    what: What,
    key: String,
    /// What selectors saw before, where that was something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    was: Option<Facts>,
}

fn entry(event: &Event) -> Vec<u8> {
    let was = event.before.facts().filter(|was| !was.select_alike(&event.object.facts)).cloned();
    let header = Header { what: event.what, key: event.object.key.path(), was };
    let mut entry = serde_json::to_vec(&header).unwrap_or_default();
    entry.push(b'\n');
    entry.extend_from_slice(&event.object.text());
    entry
}

/// Reads an entry. What is in memory already, the object of that revision, is shared and not read again; what an object was
/// before is known if the log has it.
fn event(
    entry: &[u8],
    known: Option<&Arc<Object>>,
    versions: &mut HashMap<Key, Arc<Object>>,
) -> Option<Event> {
    let end = entry.iter().position(|byte| *byte == b'\n')?;
    let header: Header = serde_json::from_slice(&entry[..end]).ok()?;
    let key = Key::parse(&header.key)?;
    let object = match known.filter(|known| known.key == key && header.what != What::Deleted) {
        Some(known) => known.clone(),
        None => Arc::new(Object::read(key.clone(), header.what, &entry[end + 1..])?),
    };
    let before = match (header.what, versions.remove(&key)) {
        (What::Added, _) => Before::Nothing,
        (_, Some(object)) => Before::Object(object),
        (_, None) => Before::Facts(Box::new(header.was.unwrap_or_else(|| object.facts.clone()))),
    };
    if header.what != What::Deleted {
        versions.insert(key, object.clone());
    }
    Some(Event { what: header.what, object, before })
}
