//! What the verbs that speak to the API share: how to reach it, and when to stop.

use std::path::PathBuf;

use anyhow::Context;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Which API.
#[derive(Debug, clap::Args)]
pub(super) struct Connect {
    /// How to reach the API; default: $KUBECONFIG, ~/.kube/config, or the pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

impl Connect {
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
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
        Client::try_from(config).context("the API can't be reached as configured")
    }
}

pub(super) fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().context("can't start")
}

/// SIGTERM and Ctrl-C, heard from the moment this is made.
pub(super) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    pub(super) async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// This host's name, as a Node may have it.
pub(super) fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_lowercase();
    if crds::text::is_dns_subdomain(&name) { name } else { "berth".to_owned() }
}

/// Tells systemd, where it started this and asked to be told (`Type=notify`). Where it can't be told, it finds out.
pub(super) fn ready() {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET")
        && let Ok(sender) = std::os::unix::net::UnixDatagram::unbound()
    {
        let _ = sender.send_to(b"READY=1", socket);
    }
}
