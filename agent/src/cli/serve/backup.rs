//! `berth serve backup` and `restore`: a copy of everything while the server runs, and the way back.
//!
//! A running server has its directory locked, so it is asked for the copy, over its unix socket (`/berth/backup`; an
//! administrator can also have it with `kubectl get --raw`). Nobody else may: a copy is everything.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};
use hyper::http::{HeaderValue, Method, Response, StatusCode};
use hyper::{Request, body::Incoming};
use serde_json::Value;

use crate::api::random;
use crate::embedded::store::{self, Copied, Restored};
use crate::embedded::{Answer, Api, Caller, Status, answer};

/// Where a server answers with a copy.
const PATH: &str = "/berth/backup";
const OBJECTS: &str = "x-berth-objects";
const REVISION: &str = "x-berth-revision";

/// Copy everything to a file, while the server runs
///
/// The copy is of one moment. With --state-dir it is made of a store whose server doesn't run.
#[derive(Debug, clap::Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub(super) struct BackupArgs {
    /// Where to; must not be there yet
    file: PathBuf,
    /// The running server's unix socket
    #[arg(long, value_name = "PATH", default_value = "/run/berth/api.sock")]
    socket: PathBuf,
    /// Copy this store instead, whose server doesn't run
    #[arg(long, value_name = "DIR", conflicts_with = "socket")]
    state_dir: Option<PathBuf>,
}

const BACKUP_EXAMPLES: &str = "\
Examples:
  berth serve backup /var/backups/berth-$(date +%F)
  berth serve backup copy --state-dir /var/lib/berth/api";

/// Replace a store by a backup, while its server doesn't run
///
/// What was written since the backup is lost, and hosts may hold addresses that the backup knows nothing of. So every pool
/// and every slice is put on hold: it gives nothing new for one quarantine from when a controller first sees it, while hosts say
/// again what they hold. Where hosts are off for longer, 'berth pool hold --all' keeps it so until 'berth pool resume --all'.
/// What is replaced is kept beside the store, as store.redb.before-restore.
#[derive(Debug, clap::Args)]
#[command(after_help = RESTORE_EXAMPLES)]
pub(super) struct RestoreArgs {
    /// The backup
    file: PathBuf,
    /// The store to replace
    #[arg(long, value_name = "DIR")]
    state_dir: PathBuf,
    /// Replace also a store that can't be read
    #[arg(long)]
    force: bool,
}

const RESTORE_EXAMPLES: &str = "\
Examples:
  berth serve restore /var/backups/berth-2026-11-16 --state-dir /var/lib/berth/api";

pub(super) fn backup(args: &BackupArgs) -> anyhow::Result<String> {
    let file = &args.file;
    let (objects, revision) = match &args.state_dir {
        Some(dir) => {
            let copied = store::backup(dir, file).context("nothing was copied")?;
            (copied.objects, copied.revision)
        }
        None => ask(&args.socket, file)?,
    };
    Ok(format!("{}: {}\n", file.display(), told(objects, revision)))
}

pub(super) fn restore(args: &RestoreArgs) -> anyhow::Result<String> {
    let Restored { copied: Copied { objects, revision, held }, kept } =
        store::restore(&args.file, &args.state_dir, args.force).context("nothing was restored")?;
    let count = |number: u64, one: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        number => Some(format!("{number} {one}s")),
    };
    let ledgers = [count(held.pools, "pool"), count(held.slices, "slice")];
    let ledgers: Vec<String> = ledgers.into_iter().flatten().collect();
    let is = if held.pools + held.slices == 1 { "is" } else { "are" };
    let held =
        if ledgers.is_empty() { String::new() } else { format!("{} {is} {HELD}", ledgers.join(" and ")) };
    let kept = kept.map(|kept| format!("{}: what was there before\n", kept.display())).unwrap_or_default();
    Ok(format!("{}: {}\n{kept}{held}", args.state_dir.display(), told(objects, revision)))
}

/// What a hold means, after "1 pool is" or "3 pools and 2 slices are".
const HELD: &str = "on hold for one quarantine from a controller's first look, while hosts say again what they hold; where some are off \
     for longer: 'berth pool hold --all'\n";

fn told(objects: u64, revision: u64) -> String {
    format!("{objects} {}, revision {revision}", if objects == 1 { "object" } else { "objects" })
}

/// Gets the copy from the server and keeps it; how many objects, and the revision.
fn ask(socket: &Path, file: &Path) -> anyhow::Result<(u64, u64)> {
    let at = || format!("unix:{}", socket.display());
    let mut stream = UnixStream::connect(socket).with_context(|| {
        format!(
            "{}: no server answers; is another --socket meant, or --state-dir of one that doesn't run?",
            at()
        )
    })?;
    // HTTP/1.0: the answer is one piece, and the connection ends with it.
    stream.write_all(format!("GET {PATH} HTTP/1.0\r\n\r\n").as_bytes()).with_context(at)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).with_context(at)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = end
        .map(|end| (&answer[..end], &answer[end + 4..]))
        .with_context(|| format!("{}: no answer", at()))?;
    let head = String::from_utf8_lossy(head);
    let header = |name: &str| -> Option<u64> {
        let found = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let mut found = found.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next()?.1.trim().parse().ok()
    };
    if !head.lines().next().is_some_and(|line| line.contains(" 200 ")) {
        let status: Value = serde_json::from_slice(body).unwrap_or_default();
        bail!("{}: {}", at(), status["message"].as_str().unwrap_or("it answers something else"));
    }
    let whole = header("content-length") == u64::try_from(body.len()).ok();
    let (Some(objects), Some(revision), true) = (header(OBJECTS), header(REVISION), whole) else {
        bail!("{}: the answer was cut off; nothing was kept", at());
    };
    keep(file, body).with_context(|| format!("{}: can't be written", file.display()))?;
    Ok((objects, revision))
}

/// For its owner only, whole or not at all, and never in place of another.
fn keep(file: &Path, body: &[u8]) -> std::io::Result<()> {
    let mut kept = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    let written = kept.write_all(body).and_then(|()| kept.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(file);
    }
    written
}

/// The server's side: a copy, if that is what is asked for.
pub(super) async fn answer(api: &Api, request: &Request<Incoming>) -> Option<Response<Answer>> {
    if request.uri().path() != PATH {
        return None;
    }
    let refused = match (Caller::of(request.extensions()), request.method()) {
        (Caller::Everything, &Method::GET) => None,
        (Caller::Everything, _) => Some(Status::method_not_allowed()),
        _ => Some(Status::new(
            StatusCode::FORBIDDEN,
            "Forbidden",
            "only an administrator may have a copy of everything",
        )),
    };
    if let Some(status) = refused {
        return Some(answer::refusal(&status));
    }
    let api = api.clone();
    let copied = tokio::task::spawn_blocking(move || copy(&api)).await;
    Some(match copied.map_err(anyhow::Error::from).and_then(|copied| copied) {
        Ok((copied, bytes)) => {
            let mut response = answer::typed(StatusCode::OK, "application/octet-stream", bytes);
            response.headers_mut().insert(OBJECTS, HeaderValue::from(copied.objects));
            response.headers_mut().insert(REVISION, HeaderValue::from(copied.revision));
            response
        }
        Err(error) => answer::refusal(&Status::internal(format!("{error:#}"))),
    })
}

/// Through a file beside the store, which has room for a second one if any place has. What is in memory only goes through a
/// folder that nobody else can look into, or guess.
fn copy(api: &Api) -> anyhow::Result<(Copied, Vec<u8>)> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = store::copy_name(COUNT.fetch_add(1, Ordering::Relaxed));
    let folder =
        api.store().dir().is_none().then(|| std::env::temp_dir().join(format!("berth-{}", random::id())));
    if let Some(folder) = &folder {
        fs::DirBuilder::new().mode(0o700).create(folder)?;
    }
    let path = folder.as_deref().or(api.store().dir()).unwrap_or(Path::new(".")).join(name);
    let copied = api.backup(&path).map_err(anyhow::Error::from);
    let copied = copied.and_then(|copied| Ok((copied, fs::read(&path)?)));
    let _ = fs::remove_file(&path);
    if let Some(folder) = &folder {
        let _ = fs::remove_dir(folder);
    }
    copied
}
