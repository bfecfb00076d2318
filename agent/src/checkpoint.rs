//! What was before a change, on disk before its first write, so that whoever comes next can put it back.
//!
//! One per network namespace, under the state directory in a folder named by the namespace's number. Tied to the boot
//! and the namespace it is about: of another one it says nothing, and is discarded. A folder is locked while somebody
//! works on it, and the namespace itself by a name in it: so two never change one namespace at once, whichever state
//! directories they have.
//!
//! Cost: one write with two syncs per change, none where there is nothing to do. One file is left behind per change that
//! couldn't be undone whole, under a name of its own; folders of namespaces in which nothing is under way go when the next
//! one is locked (`sweep`).

mod peek;
mod sweep;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use policy::state::Observed;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::host::file;
use crate::netns::Identity;
use crate::netns::name::{self, Holder, Name};

pub use peek::{Peek, peek};

/// What whoever changes a network namespace is called in it.
const CHANGING: &str = "nmstate.io/berth-change";

/// Who only looks ([`peek()`]) holds the lock for an instant; whoever changes something holds it for longer than this.
const LOCK_TRIES: usize = 20;
const LOCK_STEP: Duration = Duration::from_millis(10);

/// Grows when the form changes; one of another form can't be read back.
const FORM: u32 = 1;
const NAME: &str = "checkpoint.json";
const LOCK: &str = "lock";

/// Why a checkpoint can't be kept.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("can't use the state directory {}", .path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("another berth is changing this network namespace (it has locked {})", .path.display())]
    Busy { path: PathBuf },
    #[error("another berth is changing this network namespace ({holder}), with another state directory")]
    Elsewhere { holder: String },
    #[error("can't tell whether another berth is changing this network namespace")]
    Name { source: io::Error },
    #[error("can't write the checkpoint {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("can't read the checkpoint {}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the checkpoint {} was written by another version of berth: undo that change with it, or remove it", .path.display())]
    OtherForm { path: PathBuf },
    #[error("the checkpoint {} is damaged, so what it was to bring back is unknown; look at the host and remove it", .path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
}

/// What a change needs to be undone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    form: u32,
    identity: Identity,
    /// How long this boot had lasted by then, in seconds.
    #[serde(default)]
    uptime: Option<u64>,
    /// All that was there.
    pub before: Observed,
    /// What was asked for: with `before` it gives the plan, and so all that may have been touched.
    pub desired: Value,
}

impl Checkpoint {
    /// How long ago it was taken, as far as is known.
    pub fn age(&self) -> Duration {
        let seconds = uptime().zip(self.uptime).map(|(now, then)| now.saturating_sub(then));
        Duration::from_secs(seconds.unwrap_or_default())
    }
}

/// Seconds since this boot, also those asleep: no clock that somebody sets.
fn uptime() -> Option<u64> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    text.split('.').next()?.parse().ok()
}

/// The file to lock, made if need be.
fn open(folder: &Path, path: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    // For its owner alone: whoever can open it can lock everybody out.
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Whether this is what making and using a folder comes to while somebody else removes it.
fn is_swept(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists)
}

/// The namespace's name for whoever changes it. A program that is just being started by who had it has it until it runs, so one
/// look is not enough.
fn named() -> Result<Option<Name>, CheckpointError> {
    for tried in 1.. {
        match name::take(CHANGING).map_err(|source| CheckpointError::Name { source })? {
            Ok(name) => return Ok(Some(name)),
            Err(Holder::Process(_)) if tried < LOCK_TRIES => std::thread::sleep(LOCK_STEP),
            Err(Holder::Process(holder)) => return Err(CheckpointError::Elsewhere { holder }),
            Err(Holder::Stranger { .. }) => break,
        }
    }
    Ok(None)
}

/// Why one says nothing about this namespace, if so.
fn foreign(identity: &Identity, here: &Identity) -> Option<Found> {
    if identity.boot != here.boot {
        return Some(Found::Foreign { why: "it is from before the last boot" });
    }
    (identity != here).then_some(Found::Foreign { why: "it is of another network namespace" })
}

fn folder(state_dir: &Path, identity: &Identity) -> PathBuf {
    state_dir.join(format!("netns-{}", identity.namespace))
}

/// What was found on disk.
#[derive(Debug, PartialEq)]
pub enum Found {
    Nothing,
    /// A change of this namespace that never ended.
    Open(Box<Checkpoint>),
    /// One of another boot or namespace.
    Foreign {
        why: &'static str,
    },
}

/// The place of a namespace's checkpoint, locked.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    identity: Identity,
    _lock: Flock<File>,
    /// Nothing, where a stranger has it: who has no rights over the network must not keep anybody out.
    _name: Option<Name>,
}

impl Store {
    /// Locks the namespace that the calling thread is in, and its folder.
    pub fn lock(state_dir: &Path, identity: Identity) -> Result<Self, CheckpointError> {
        let folder = Self::lock_folder(state_dir, identity)?;
        Ok(Self { _name: named()?, ..folder })
    }

    /// The folder alone.
    fn lock_folder(state_dir: &Path, identity: Identity) -> Result<Self, CheckpointError> {
        let folder = folder(state_dir, &identity);
        let wrong = |source: io::Error| CheckpointError::Folder { path: folder.clone(), source };
        let path = folder.join(LOCK);
        let mut file = None;
        for tried in 1..=LOCK_TRIES {
            let opened = match file.take() {
                Some(file) => file,
                None => match open(&folder, &path) {
                    // A folder that was there, or was made, and has been swept away since.
                    Err(error) if tried < LOCK_TRIES && is_swept(&error) => continue,
                    opened => opened.map_err(wrong)?,
                },
            };
            match Flock::lock(opened, FlockArg::LockExclusiveNonblock) {
                Ok(lock) if sweep::is_at(&lock, &path) => {
                    sweep::sweep(state_dir, &folder);
                    return Ok(Self { path: folder.join(NAME), identity, _lock: lock, _name: None });
                }
                // What is locked is nobody's lock any more.
                Ok(_) => continue,
                Err((opened, Errno::EWOULDBLOCK)) => file = Some(opened),
                Err((_, other)) => return Err(wrong(other.into())),
            }
            std::thread::sleep(LOCK_STEP);
        }
        Err(CheckpointError::Busy { path })
    }

    /// Puts a checkpoint that there is nothing more to do about out of the way, under a name with the time; says where.
    /// They stay until somebody removes them, or the next boot where the state directory is under `/run`.
    pub fn set_aside(&self) -> Result<PathBuf, CheckpointError> {
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut aside = self.path.with_file_name(format!("checkpoint-{time}.json"));
        // Two in a second.
        for number in 2.. {
            if !aside.exists() {
                break;
            }
            aside = self.path.with_file_name(format!("checkpoint-{time}-{number}.json"));
        }
        match fs::rename(&self.path, &aside) {
            Ok(()) => Ok(aside),
            Err(source) => Err(CheckpointError::Write { path: aside, source }),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn find(&self) -> Result<Found, CheckpointError> {
        let path = || self.path.clone();
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            read => read.map_err(|source| CheckpointError::Read { path: path(), source })?,
        };
        let damaged = |source: serde_json::Error| CheckpointError::Damaged { path: path(), source };
        let value: Value = serde_json::from_str(&text).map_err(damaged)?;
        // Whose it is comes first: what another boot left is no matter, whatever its form.
        let whose = serde_json::from_value::<Identity>(value["identity"].clone());
        if let Some(foreign) = whose.ok().and_then(|whose| foreign(&whose, &self.identity)) {
            return Ok(foreign);
        }
        if value.get("form") != Some(&FORM.into()) {
            return Err(CheckpointError::OtherForm { path: path() });
        }
        let checkpoint: Checkpoint = serde_json::from_value(value).map_err(damaged)?;
        Ok(Found::Open(Box::new(checkpoint)))
    }

    /// On disk when this returns.
    pub fn write(&self, before: &Observed, desired: &Value) -> Result<(), CheckpointError> {
        let checkpoint = Checkpoint {
            form: FORM,
            identity: self.identity.clone(),
            uptime: uptime(),
            before: before.clone(),
            desired: desired.clone(),
        };
        let text = serde_json::to_string(&checkpoint).map_err(io::Error::other);
        text.and_then(|text| file::replace_with_mode(&self.path, &text, 0o600))
            .map_err(|source| CheckpointError::Write { path: self.path.clone(), source })
    }

    pub fn remove(&self) -> Result<(), CheckpointError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(CheckpointError::Write { path: self.path.clone(), source: error })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
