//! `berth serve`: the API where there is no cluster, until it is told to stop.

mod backup;
mod kubeconfig;
mod pki;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Subcommand;
use hyper::body::Incoming;
use hyper::{Request, Response};
use k8s_openapi::jiff::Timestamp;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::{Service, ServiceExt as _};

use super::look::Look;
use crate::clock::now;
use crate::embedded::listen::{Address, Listener, Place};
use crate::embedded::revoked::FILE as REVOKED;
use crate::embedded::tls::{Tls, TlsFiles};
use crate::embedded::{Answer, Api};
use crate::notify::Notify;
use crate::telemetry::say;

/// Serve the Kubernetes API where there is no cluster
///
/// Answers for pools, policies, enactments, states, slices, and for Nodes, Leases, Events and Namespaces, from a store in a
/// directory. Nothing is acknowledged before it is on disk. kubectl works on it.
///
/// Over the unix socket (its owner only) and plain TCP on loopback (every user of this host) callers may do everything.
/// With --tls-cert, --tls-key and --client-ca every TCP address speaks TLS and asks for a client certificate, whose
/// subject says who it is: O=system:masters an administrator, O=berth:controllers a controller, CN=system:node:NAME with
/// O=system:nodes host NAME, which may write only what is its own.
///
/// Certificates, keys and the list of revoked names are read again when they change, and on SIGHUP.
///
/// SIGTERM and Ctrl-C end it: watches are closed, requests under way are finished.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Args {
    #[command(subcommand)]
    tool: Option<Tool>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Debug, Subcommand)]
enum Tool {
    Pki(pki::Args),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
}

#[derive(Debug, clap::Args)]
struct Serve {
    /// Where everything is kept; made if it isn't there
    #[arg(long, value_name = "DIR", required_unless_present = "in_memory")]
    state_dir: Option<PathBuf>,
    /// Keep everything in memory: it is gone when the server stops
    #[arg(long, conflicts_with = "state_dir")]
    in_memory: bool,
    /// Where to listen: unix:PATH, 127.0.0.1:PORT, or HOST:PORT with TLS; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "unix:/run/berth/api.sock", num_args = 1..)]
    listen: Vec<Address>,
    /// The server's certificate, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "client_ca"])]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Whose signature client certificates must have, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    client_ca: Option<PathBuf>,
    /// Names whose certificates are refused though the CA signed them [default: `revoked` beside --client-ca, if it is there]
    #[arg(long, value_name = "FILE", requires = "client_ca")]
    revoked: Option<PathBuf>,
    /// Agents elect a controller among themselves ('berth agent --with-controller'): every host may do what a controller may
    #[arg(long)]
    agents_elect: bool,
    /// Write a kubeconfig of the first TCP address, once it listens
    #[arg(long, value_name = "FILE")]
    write_kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    look: Look,
}

const EXAMPLES: &str = "\
Examples:
  berth serve --state-dir /var/lib/berth/api
  berth serve --in-memory --listen 127.0.0.1:0 --write-kubeconfig kubeconfig
  berth serve pki init --server-name 10.0.0.1
  berth serve --state-dir /var/lib/berth/api --listen 10.0.0.1:6443 \\
    --tls-cert /etc/berth/pki/server.crt --tls-key /etc/berth/pki/server.key \\
    --client-ca /etc/berth/pki/ca.crt
  berth serve pki host node01
  berth serve backup /var/backups/berth";

/// How long requests under way may take once the server is told to stop: the longest is a write that waits for the disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// A certificate that ends within this time is spoken of at every start: time to make another before anything stops.
const SOON: i64 = 30 * 24 * 3600;

/// How often files are looked at, besides before each handshake: whoever is revoked is cut off within this time.
const LOOK: Duration = Duration::from_secs(5);

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    match &args.tool {
        Some(Tool::Pki(args)) => pki::run(args),
        Some(Tool::Backup(args)) => backup::backup(args),
        Some(Tool::Restore(args)) => backup::restore(args),
        None => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            runtime.context("can't start")?.block_on(serve(&args.serve))?;
            Ok(String::new())
        }
    }
}

async fn serve(args: &Serve) -> anyhow::Result<()> {
    args.look.on_loopback_only()?;
    let tls = args.tls()?;
    args.warn(tls.as_ref());
    // Before anything is opened: whoever asks to stop while we start is heard.
    let mut asked = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    let hangup = signal(SignalKind::hangup())?;
    let config =
        args.write_kubeconfig.as_deref().map(|path| kubeconfig::Plan::new(path, args)).transpose()?;
    let api = match &args.state_dir {
        Some(dir) => Api::open(dir).with_context(|| format!("--state-dir {}", dir.display()))?,
        None => Api::in_memory(),
    };
    more_files();
    let mut listeners = Vec::new();
    for address in &args.listen {
        listeners.push(Listener::bind(address, tls.as_ref(), args.agents_elect).await?);
    }
    let places: Vec<Place> = listeners.iter().map(Listener::place).collect();
    places.iter().for_each(told);
    if let Some(config) = config {
        config.write(&places, tls.as_ref())?;
    }
    let (stop, stopping) = watch::channel(false);
    let mut serving = JoinSet::new();
    for listener in listeners {
        serving.spawn(listener.serve(service(api.clone()), stopping.clone(), PATIENCE));
    }
    let page = args.look.offer(api.client(), &[]).await?;
    let notify = Notify::from_env();
    notify.ready().await;
    let [terminate, interrupt] = &mut asked;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = look_after(args, tls.as_ref(), hangup) => {}
    }
    say("stopping");
    notify.stopping();
    drop(page);
    stop.send_replace(true);
    api.stop();
    while serving.join_next().await.is_some() {}
    Ok(())
}

/// Reads certificates again when they change or somebody asks, for ever, and says what came of it. A file that can't be used
/// is spoken of once; what was in force stays so.
async fn look_after(args: &Serve, tls: Option<&Tls>, mut hangup: Signal) {
    let mut known = tls.map(Tls::loaded);
    let mut wrong = None;
    loop {
        let asked = tokio::select! {
            _ = hangup.recv() => true,
            () = tokio::time::sleep(LOOK), if tls.is_some() => false,
        };
        let Some(tls) = tls else { continue };
        let read = if asked { tls.reload() } else { tls.refresh() };
        let now = tls.loaded();
        if !known.as_ref().is_some_and(|known| Arc::ptr_eq(known, &now)) {
            say(&format!("certificates were read again; {}", revoked(tls)));
            args.warn(Some(tls));
            known = Some(now);
        }
        let error = read.err().map(|error| format!("{:#}", anyhow::Error::from(error)));
        if let Some(error) = error.as_ref().filter(|error| asked || wrong.as_ref() != Some(*error)) {
            say(&format!("warning: what was read before stays in force: {error}"));
        }
        wrong = error;
    }
}

/// How many names are refused.
fn revoked(tls: &Tls) -> String {
    match tls.loaded().revoked.len() {
        0 => "no name is revoked".to_owned(),
        1 => "1 name is revoked".to_owned(),
        names => format!("{names} names are revoked"),
    }
}

/// The API, and beside it the copy for backups.
fn service(
    api: Api,
) -> impl Service<
    Request<Incoming>,
    Response = Response<Answer>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<Answer>, Infallible>> + Send,
> + Clone
+ Send
+ 'static {
    tower::service_fn(move |request: Request<Incoming>| {
        let api = api.clone();
        async move {
            match backup::answer(&api, &request).await {
                Some(copy) => Ok(copy),
                None => api.oneshot(request).await,
            }
        }
    })
}

impl Serve {
    fn tls_files(&self) -> Option<TlsFiles> {
        let (certificate, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        let client_authority = self.client_ca.clone()?;
        let beside = || folder(&client_authority).join(REVOKED);
        let revoked = self.revoked.clone().unwrap_or_else(beside);
        Some(TlsFiles { certificate, key, client_authority, revoked })
    }

    fn tls(&self) -> anyhow::Result<Option<Tls>> {
        // A list that is asked for and isn't there would let in whom it is to keep out.
        if let Some(list) = self.revoked.as_ref().filter(|list| !list.exists()) {
            anyhow::bail!("--revoked {}: there is no such file, so nobody would be refused", list.display());
        }
        let tls = self.tls_files().as_ref().map(Tls::load).transpose()?;
        if let Some(tls) = tls.as_ref().filter(|tls| !tls.loaded().revoked.is_empty()) {
            say(&revoked(tls));
        }
        Ok(tls)
    }

    fn warn(&self, tls: Option<&Tls>) {
        let now = now();
        let loaded = tls.map(Tls::loaded);
        for about in loaded.iter().flat_map(|loaded| &loaded.certificates) {
            let (option, path, date) = (about.option, about.path.display(), date(about.ends));
            match about.ends - i64::try_from(now).unwrap_or(i64::MAX) {
                ..0 => say(&format!("warning: {option} {path}: ended on {date}; nobody will trust it")),
                0..SOON => say(&format!("warning: {option} {path}: ends on {date}; make another in time")),
                _ => {}
            }
        }
        if self.agents_elect {
            say("warning: --agents-elect: every host may write every pool, enactment and lease");
        }
    }
}

fn told(place: &Place) {
    say(&format!("listening on {place}"));
    if let Place::Plain(_) = place {
        say(&format!(
            "warning: {place}: every user of this host may do everything there; where that is too much, use unix:PATH or TLS"
        ));
    }
}

/// A connection is a file: as many as the administrator allows, not as many as a shell starts with.
fn more_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Fewer connections then; each listener says what it can't take.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// `2027-11-16`.
fn date(seconds: i64) -> String {
    match Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%Y-%m-%d").to_string(),
        Err(_) => "a day beyond all calendars".to_owned(),
    }
}

/// The folder that a file is in.
fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}
