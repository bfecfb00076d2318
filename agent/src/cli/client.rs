//! What the verbs that speak to the API share: how to reach it, and when to stop.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::api::connection;
use crate::api::rights::Rights;

/// How long threads that nobody waits for any more (a name that is being looked up) may keep the process.
const REST: Duration = Duration::from_secs(1);

/// Which API.
#[derive(Debug, clap::Args)]
pub(super) struct Connect {
    /// How to reach the API; default: $KUBECONFIG, ~/.kube/config, or the pod's service account
    #[arg(long, value_name = "FILE", env = "BERTH_KUBECONFIG")]
    pub(super) kubeconfig: Option<PathBuf>,
}

impl Connect {
    /// What it lacks is in `rights`.
    pub(super) async fn client(&self, rights: Arc<Rights>) -> anyhow::Result<Client> {
        let config = match &self.kubeconfig {
            None => kube::Config::infer().await.context("no API is configured; see --kubeconfig")?,
            Some(path) => {
                let read = Kubeconfig::read_from(path);
                let config = read.with_context(|| format!("--kubeconfig {}", path.display()))?;
                kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
                    .await
                    .with_context(|| format!("--kubeconfig {}", path.display()))?
            }
        };
        connection::client(config, rights).context("the API can't be reached as configured")
    }
}

/// Where 'berth serve' listens, if not told otherwise.
const SOCKET: &str = "/run/berth/api.sock";

/// Which API, for the tools that people type: a cluster's, or that of a 'berth serve' on this host.
#[derive(Debug, clap::Args)]
pub(super) struct Reach {
    /// How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod's service account, or the socket of a 'berth serve'
    #[arg(long, value_name = "FILE", env = "BERTH_KUBECONFIG", global = true, help_heading = "API")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use, in place of its current one
    #[arg(long, value_name = "NAME", global = true, help_heading = "API")]
    context: Option<String>,
    /// The unix socket of a 'berth serve' on this host, in place of a kubeconfig
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "context", help_heading = "API")]
    socket: Option<PathBuf>,
}

impl Reach {
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        if let Some(socket) = &self.socket {
            return Ok(connection::over_socket(socket.clone()));
        }
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match (&self.kubeconfig, &self.context) {
            (None, None) => match kube::Config::infer().await {
                Ok(config) => config,
                Err(_) if Path::new(SOCKET).exists() => return Ok(connection::over_socket(SOCKET.into())),
                Err(error) => {
                    return Err(error).context(format!(
                        "no API is configured: give --kubeconfig FILE, set KUBECONFIG, or run 'berth serve' here (--socket \
                         PATH, if it isn't {SOCKET})"
                    ));
                }
            },
            (Some(path), _) => {
                let place = || format!("--kubeconfig {}", path.display());
                let config = Kubeconfig::read_from(path).with_context(place)?;
                kube::Config::from_custom_kubeconfig(config, &options).await.with_context(place)?
            }
            (None, Some(context)) => {
                let place = || format!("--context {context}");
                kube::Config::from_kubeconfig(&options).await.with_context(place)?
            }
        };
        // What it lacks is said by what was asked for.
        let rights = Arc::new(Rights::default());
        connection::client(config, rights).context("the API can't be reached as configured")
    }
}

pub(super) fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().context("can't start")
}

/// Works to its end, and then waits for nobody.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(REST);
    done
}

/// SIGTERM, Ctrl-C and the end of a terminal, heard from the moment this is made.
pub(super) struct Stop {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Stop {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    pub(super) async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// This host's name, as a Node may have it.
pub(super) fn hostname() -> String {
    let name = crate::host::running_name().to_lowercase();
    if crds::text::is_dns_subdomain(&name) { name } else { "berth".to_owned() }
}
