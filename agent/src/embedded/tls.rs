//! TLS of the server: its own certificate, and client certificates that are always asked for.
//!
//! Owns rustls' configuration and the reading of PEM files; [`super::listen`] uses it, `berth serve` says at start when a
//! certificate ends soon. Must never fall back to a connection without a client certificate.
//!
//! Files that change are read again, before the next handshake ([`Tls::refresh`]); what can't be used doesn't replace what
//! is. Connections that are open are asked about again then, and every hour ([`Tls::outlived`]): a certificate that was
//! revoked, that ended, or whose CA went, has none.
//!
//! Sessions are not resumed: a resumed one would not look at the client's certificate again, which may have ended
//! since. Cost: a handshake (about a millisecond of CPU) and a look at four files per connection, and clients keep theirs.

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::revoked::{Revoked, RevokedError};

/// The files that a server with TLS needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub client_authority: PathBuf,
    /// Whose certificates are refused all the same; need not be there, but once it was it must stay.
    pub revoked: PathBuf,
}

/// Why there is no TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    #[error("{option} {path}: is not {wanted} in PEM")]
    Pem { option: &'static str, path: PathBuf, wanted: &'static str, source: pem::Error },
    #[error("{option} {path}: there is no certificate in it")]
    Empty { option: &'static str, path: PathBuf },
    #[error("{option} {path}: is not a certificate that can be used")]
    Certificate { option: &'static str, path: PathBuf, source: rustls::Error },
    #[error("--client-ca {path}: can't verify clients")]
    Verifier { path: PathBuf, source: VerifierBuilderError },
    #[error("--tls-key {key} is not the key of --tls-cert {certificate}, or of a kind that isn't known")]
    Pair { certificate: PathBuf, key: PathBuf, source: rustls::Error },
    #[error("no version of TLS can be used")]
    Versions(#[source] rustls::Error),
    #[error(transparent)]
    Revoked(#[from] RevokedError),
}

/// TLS as it is served. Clones are one: what one reads again, all have.
#[derive(Clone)]
pub struct Tls {
    inner: Arc<Inner>,
}

struct Inner {
    files: TlsFiles,
    /// What the files were when what is in force was read from them.
    read: Mutex<Vec<Stamp>>,
    loaded: watch::Sender<Arc<Loaded>>,
}

/// What tells a file from what it was: its place on disk, its length, when it was changed.
type Stamp = Option<(u64, u64, i64, i64)>;

/// What the files said.
pub struct Loaded {
    pub acceptor: TlsAcceptor,
    verifier: Arc<dyn ClientCertVerifier>,
    /// What the server's certificate and the CAs say of themselves.
    pub certificates: Vec<About>,
    pub revoked: Revoked,
    /// Whether there was a list of them: then there must be one from now on, for without it everybody is let in.
    listed: bool,
}

/// What a certificate says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub option: &'static str,
    pub path: PathBuf,
    /// The last second in which it is good, since 1970.
    pub ends: i64,
    /// The names that clients may call the server by, as they stand in a URL.
    pub names: Vec<String>,
}

const CERTIFICATE: &str = "--tls-cert";
const KEY: &str = "--tls-key";
const AUTHORITY: &str = "--client-ca";

/// How often a connection is asked about again: so much longer than its certificate it may last.
const AGAIN: Duration = Duration::from_secs(3600);

impl Tls {
    /// Reads the files and puts the configuration together.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = Mutex::new(files.stamps());
        let (loaded, _) = watch::channel(Arc::new(Loaded::read(files, false)?));
        Ok(Self { inner: Arc::new(Inner { files: files.clone(), read, loaded }) })
    }

    /// What is in force.
    pub fn loaded(&self) -> Arc<Loaded> {
        self.inner.loaded.borrow().clone()
    }

    /// Reads the files again if one of them is another than it was. What is in force stays so where they can't be used: a
    /// certificate may be there before its key is.
    pub fn refresh(&self) -> Result<(), TlsError> {
        let read = self.inner.read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if read == self.inner.files.stamps() { Ok(()) } else { self.reload() }
    }

    /// Reads the files again.
    pub fn reload(&self) -> Result<(), TlsError> {
        // First: what changes while it is read is read once more.
        let stamps = self.inner.files.stamps();
        let loaded = Loaded::read(&self.inner.files, self.loaded().listed)?;
        *self.inner.read.lock().unwrap_or_else(PoisonError::into_inner) = stamps;
        self.inner.loaded.send_replace(Arc::new(loaded));
        Ok(())
    }

    /// Waits until a client whose certificates these are would not be let in any more.
    pub async fn outlived(&self, chain: &[CertificateDer<'static>]) {
        let mut changed = self.inner.loaded.subscribe();
        while changed.borrow_and_update().accepts(chain) {
            tokio::select! {
                gone = changed.changed() => if gone.is_err() { return },
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }
}

impl TlsFiles {
    fn stamps(&self) -> Vec<Stamp> {
        let stamp = |path: &PathBuf| {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
        };
        [&self.certificate, &self.key, &self.client_authority, &self.revoked].map(stamp).to_vec()
    }
}

impl Loaded {
    /// Whether a client with these certificates is let in, as far as they say.
    fn accepts(&self, chain: &[CertificateDer<'static>]) -> bool {
        let Some((first, rest)) = chain.split_first() else { return false };
        self.revoked.denies(first).is_none()
            && self.verifier.verify_client_cert(first, rest, UnixTime::now()).is_ok()
    }

    /// What the files say. `listed`: whether there must be a list of revoked names.
    fn read(files: &TlsFiles, listed: bool) -> Result<Self, TlsError> {
        let TlsFiles { certificate, key, client_authority, revoked } = files;
        let list = Revoked::read(revoked)?;
        if listed && list.is_none() {
            return Err(RevokedError::Gone { path: revoked.clone() }.into());
        }
        let chain = certificates(CERTIFICATE, certificate)?;
        let authorities = certificates(AUTHORITY, client_authority)?;
        let mut about = vec![describe(CERTIFICATE, certificate, &chain[0])?];
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            about.push(describe(AUTHORITY, client_authority, &authority)?);
            roots.add(authority).map_err(|source| TlsError::Certificate {
                option: AUTHORITY,
                path: client_authority.clone(),
                source,
            })?;
        }
        let private = PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Pem {
            option: KEY,
            path: key.clone(),
            wanted: "a private key",
            source,
        })?;
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|source| TlsError::Verifier { path: client_authority.clone(), source })?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Versions)?
            .with_client_cert_verifier(verifier.clone())
            .with_single_cert(chain, private)
            .map_err(|source| TlsError::Pair {
                certificate: certificate.clone(),
                key: key.clone(),
                source,
            })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listed = list.is_some();
        Ok(Self { acceptor, verifier, certificates: about, revoked: list.unwrap_or_default(), listed })
    }
}

/// All certificates of a file, at least one.
fn certificates(option: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = |source| TlsError::Pem { option, path: path.to_owned(), wanted: "a certificate", source };
    let found: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(pem)?.collect::<Result<_, _>>().map_err(pem)?;
    match found.is_empty() {
        true => Err(TlsError::Empty { option, path: path.to_owned() }),
        false => Ok(found),
    }
}

fn describe(option: &'static str, path: &Path, der: &CertificateDer<'_>) -> Result<About, TlsError> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| TlsError::Certificate {
        option,
        path: path.to_owned(),
        source: rustls::Error::InvalidCertificate(rustls::CertificateError::BadEncoding),
    })?;
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.map(|names| names.value.general_names.iter().filter_map(in_url).collect());
    let ends = certificate.validity().not_after.timestamp();
    Ok(About { option, path: path.to_owned(), ends, names: names.unwrap_or_default() })
}

fn in_url(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match (<[u8; 4]>::try_from(*bytes), <[u8; 16]>::try_from(*bytes)) {
            (Ok(v4), _) => Some(IpAddr::from(v4).to_string()),
            (_, Ok(v6)) => Some(format!("[{}]", IpAddr::from(v6))),
            _ => None,
        },
        _ => None,
    }
}
