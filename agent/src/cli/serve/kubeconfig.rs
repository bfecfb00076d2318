//! `--write-kubeconfig`: how to reach the server that was just started.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::{Serve, folder};
use crate::cli::UsageError;
use crate::embedded::listen::{Address, Place};
use crate::embedded::pki::kubeconfig::{self, Kubeconfig};
use crate::embedded::pki::{read, replace};
use crate::embedded::tls::Tls;
use crate::telemetry::say;

/// What will be written, as far as it can be known before the server listens: what is missing is said before it starts.
pub(super) struct Plan {
    path: PathBuf,
    /// Over TLS: the administrator's, from beside the server's certificate.
    administrator: Option<Kubeconfig>,
}

impl Plan {
    pub(super) fn new(path: &Path, args: &Serve) -> anyhow::Result<Self> {
        if !args.listen.iter().any(|address| matches!(address, Address::Tcp { .. })) {
            return Err(UsageError::KubeconfigOfSocket.into());
        }
        check_replaceable(path)?;
        let administrator = match &args.tls_cert {
            None => None,
            Some(certificate) => {
                let beside = folder(certificate).join("admin.kubeconfig");
                let text = read(&beside).context(
                    "--write-kubeconfig: a client needs a certificate, and there is none beside --tls-cert; 'berth serve pki init' makes one",
                )?;
                Some(kubeconfig::read(&text).with_context(|| beside.display().to_string())?)
            }
        };
        Ok(Self { path: path.to_owned(), administrator })
    }

    /// Of the first TCP address. In one step: whoever waits for the file finds it whole.
    pub(super) fn write(self, places: &[Place], tls: Option<&Tls>) -> anyhow::Result<()> {
        let Self { path, administrator } = self;
        let tcp = places.iter().find_map(|place| match place {
            Place::Unix(_) => None,
            Place::Plain(at) | Place::Tls(at) => Some(*at),
        });
        let at = tcp.ok_or(UsageError::KubeconfigOfSocket)?;
        let config = match administrator {
            Some(config) => Kubeconfig { server: format!("https://{}", reachable(at, tls)), ..config },
            None => Kubeconfig {
                server: format!("http://{at}"),
                user: "berth".to_owned(),
                authority: None,
                client: None,
            },
        };
        let text = config.text()?;
        replace(&path, text.as_bytes(), 0o600)
            .with_context(|| format!("--write-kubeconfig {}: can't be written", path.display()))?;
        say(&format!("kubeconfig: {}", path.display()));
        Ok(())
    }
}

/// A file that is there is replaced, so it must be one of ours: people keep the ways to all their clusters in one file.
fn check_replaceable(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        text => text.with_context(|| format!("--write-kubeconfig {shown}: is there and can't be read"))?,
    };
    if !kubeconfig::is_ours(&text).unwrap_or(false) {
        anyhow::bail!(
            "--write-kubeconfig {shown}: has more in it than the cluster 'berth', and would be replaced; name another file, and use it with KUBECONFIG"
        );
    }
    Ok(())
}

/// Host and port for a client: where the server listens everywhere, the first name that its certificate has.
fn reachable(at: SocketAddr, tls: Option<&Tls>) -> String {
    let name = tls.and_then(|tls| tls.loaded().certificates.first()?.names.first().cloned());
    match name {
        Some(name) if at.ip().is_unspecified() => format!("{name}:{}", at.port()),
        _ => at.to_string(),
    }
}
