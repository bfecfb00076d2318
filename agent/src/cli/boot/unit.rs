//! `berth boot install` and `berth boot remove`: berth-boot.service and its program, put on a host and taken off it.
//!
//! An init container of the agent's calls it (`deploy/components/boot`), so that nobody needs a shell on a node: with the folders
//! that the agent has of its host anyway. Files are all it works on; systemd, which may not be there to be asked, reads them at
//! the next boot. Must never leave a unit without its whole program: hosts boot at any moment. What is as it should be is not
//! written again.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Context;
use nix::sys::statvfs::{FsFlags, statvfs};
use thiserror::Error;

use crate::host::file;

/// With `@BINDIR@` where the program's folder is to be.
const UNIT: &str = include_str!("../../../../systemd/berth-boot.service");
const NAME: &str = "berth-boot.service";

/// Where the unit looks for the journal, and so what the DaemonSet mounts of a host. The program is beside the journal: no other
/// folder of the host need be mounted for it.
const STATE: &str = "/var/lib/berth";

/// Have this host run 'berth boot' at every boot, before its kubelet starts
///
/// Puts this program beside the journal (/var/lib/berth/bin/berth), and enables the unit berth-boot.service that runs it. Nothing is
/// started, and what is there already is left as it is. As root.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  berth boot install
  berth boot install --host-root /host")]
pub(super) struct InstallArgs {
    #[command(flatten)]
    host: Host,
}

/// Take off this host what 'berth boot install' put there
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  berth boot remove
  berth boot remove --host-root /host")]
pub(super) struct RemoveArgs {
    #[command(flatten)]
    host: Host,
}

#[derive(Debug, clap::Args)]
struct Host {
    /// In a container: where the host's /etc is mounted, as DIR/etc
    #[arg(long, value_name = "DIR", env = "BERTH_HOST_ROOT", default_value = "/")]
    host_root: PathBuf,
    /// In a container: where the host's /var/lib/berth is mounted
    #[arg(long, value_name = "DIR", env = "BERTH_STATE_DIR", default_value = STATE)]
    state_dir: PathBuf,
}

/// Why a host can't have it.
#[derive(Debug, Error)]
enum Refused {
    #[error("there is no {}: this host has no systemd, which would run {}", .0.display(), NAME)]
    NoSystemd(PathBuf),
    #[error("{} is on a file system that is mounted noexec: {} could not run its program from there", .0.display(), NAME)]
    NoExec(PathBuf),
}

impl Host {
    fn systemd(&self) -> PathBuf {
        self.host_root.join("etc/systemd")
    }

    fn unit(&self) -> PathBuf {
        self.systemd().join("system").join(NAME)
    }

    /// What `systemctl enable` makes.
    fn link(&self) -> PathBuf {
        self.systemd().join("system/multi-user.target.wants").join(NAME)
    }

    fn program(&self) -> PathBuf {
        self.state_dir.join("bin/berth")
    }

    fn check(&self) -> anyhow::Result<()> {
        if !self.systemd().is_dir() {
            return Err(Refused::NoSystemd(self.systemd()).into());
        }
        let state = &self.state_dir;
        let found = statvfs(state).with_context(|| format!("can't look at {}", state.display()))?;
        match found.flags().contains(FsFlags::ST_NOEXEC) {
            true => Err(Refused::NoExec(state.clone()).into()),
            false => Ok(()),
        }
    }
}

pub(super) fn install(InstallArgs { host }: &InstallArgs) -> anyhow::Result<String> {
    host.check()?;
    let (program, unit, link) = (host.program(), host.unit(), host.link());
    // Somebody's own word, a mask most likely.
    if let Ok(to) = fs::read_link(&unit) {
        return Ok(format!("left alone: {} leads to {}\n", unit.display(), to.display()));
    }
    let failed = |path: &Path| format!("can't write {}", path.display());
    let mut is_changed = false;
    // In this order: a host that boots half-way has no unit yet, or all of it.
    if !is_this_program(&program).with_context(|| format!("can't read {}", program.display()))? {
        this_program().and_then(|this| file::put(&program, this, 0o755)).with_context(|| failed(&program))?;
        is_changed = true;
    }
    let text = UNIT.replace("@BINDIR@", &format!("{STATE}/bin"));
    if fs::read(&unit).ok().as_deref() != Some(text.as_bytes()) {
        file::put(&unit, text.as_bytes(), 0o644).with_context(|| failed(&unit))?;
        is_changed = true;
    }
    if link.symlink_metadata().is_err() {
        file::make_folders(link.parent().unwrap_or(Path::new("/")))
            .and_then(|()| symlink(Path::new("..").join(NAME), &link))
            .with_context(|| failed(&link))?;
        is_changed = true;
    }
    let done = if is_changed { "installed" } else { "is installed" };
    Ok(format!("{NAME} {done}: at the next boot it runs {STATE}/bin/berth\n"))
}

pub(super) fn remove(RemoveArgs { host }: &RemoveArgs) -> anyhow::Result<String> {
    // The other way round.
    for path in [host.link(), host.unit(), host.program()] {
        file::remove(&path).with_context(|| format!("can't remove {}", path.display()))?;
    }
    Ok(format!("{NAME} and its program are gone\n"))
}

fn this_program() -> io::Result<File> {
    File::open("/proc/self/exe")
}

/// Piece by piece: an agent's container may have less memory than both take.
fn is_this_program(path: &Path) -> io::Result<bool> {
    let mut there = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => BufReader::new(other?),
    };
    let mut this = BufReader::new(this_program()?);
    loop {
        let (one, other) = (there.fill_buf()?, this.fill_buf()?);
        let common = one.len().min(other.len());
        if common == 0 || one[..common] != other[..common] {
            return Ok(one.is_empty() && other.is_empty());
        }
        there.consume(common);
        this.consume(common);
    }
}
