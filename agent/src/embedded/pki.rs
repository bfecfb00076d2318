//! Certificates for people who have none: a CA, the server's, an administrator's, a controller's, and one per host.
//!
//! Owns the files of one directory and what stands in the certificates' subjects, which [`super::caller`] reads back.
//! Called by `berth serve pki`; the server itself only reads certificates and never sees the CA's key.
//!
//! Keys are written with mode 0600 and never printed. No file is replaced unless the caller says so, and the CA never
//! is: every host trusts it. A name's certificates can be revoked ([`super::revoked`]); those made afterwards are good.
//!
//! Cost: a few small files per certificate; nothing grows.

mod files;
pub(crate) mod kubeconfig;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use thiserror::Error;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::caller::{ADMINISTRATORS, CONTROLLERS, HOST_PREFIX, HOSTS};
use super::revoked::{self, Revoked, RevokedError};
pub(crate) use files::{Keep, read, replace};
use files::{PRIVATE, PUBLIC};
use kubeconfig::{Kubeconfig, KubeconfigError};

/// The CA outlives what it signs by far: replacing it means a visit to every host.
pub(crate) const CA_DAYS: u64 = 3650;

/// A year, as kubeadm's: nothing renews these by itself, so shorter ones would stop hosts nobody looks after; longer ones
/// would let a key work for longer whose theft nobody noticed. `berth serve` warns before the end.
pub(crate) const DAYS: u64 = 365;

/// Clocks of hosts that boot differ: a certificate is good from an hour (in seconds) before it was made.
const SKEW: u64 = 3600;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Why there is no certificate.
#[derive(Debug, Error)]
pub(crate) enum PkiError {
    #[error("{path}: is there already; --force replaces it")]
    Exists { path: PathBuf },
    #[error("{path}: there is no CA here; make one with 'berth serve pki init'")]
    NoAuthority { path: PathBuf },
    #[error("{path}: can't be {done}")]
    File { path: PathBuf, done: &'static str, source: std::io::Error },
    #[error("{path}: is not the CA's {what} in PEM")]
    Authority { path: PathBuf, what: &'static str, source: rcgen::Error },
    #[error("the certificate can't be made")]
    Make(#[from] rcgen::Error),
    #[error(
        "{name:?} can be no host's name: it must be a DNS name in lower case, such as node01 or node01.example.org"
    )]
    HostName { name: String },
    #[error("{path}")]
    Kubeconfig { path: PathBuf, source: KubeconfigError },
    #[error(transparent)]
    Revoked(#[from] RevokedError),
}

/// Who a client certificate is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Client {
    Administrator,
    Controller,
    Host(String),
}

impl Client {
    /// Common name and organisation, as Kubernetes has them for the same roles.
    pub(crate) fn subject(&self) -> (String, &'static str) {
        match self {
            Self::Administrator => ("berth:admin".to_owned(), ADMINISTRATORS),
            Self::Controller => ("berth:controller".to_owned(), CONTROLLERS),
            Self::Host(name) => (format!("{HOST_PREFIX}{name}"), HOSTS),
        }
    }

    /// Its files without their endings. Hosts have a folder: one of them may be called `server`.
    fn stem(&self) -> String {
        match self {
            Self::Administrator => "admin".to_owned(),
            Self::Controller => "controller".to_owned(),
            Self::Host(name) => format!("hosts/{name}"),
        }
    }
}

/// A certificate and its key, in PEM.
struct Issued {
    certificate: String,
    key: String,
}

/// What was made, for people to read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) files: Vec<PathBuf>,
    /// The last second in which the certificate is good, since 1970.
    pub(crate) ends: u64,
}

/// When certificates are made, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    /// Now, in seconds since 1970.
    pub(crate) now: u64,
    pub(crate) days: u64,
}

impl Term {
    fn begins(self) -> u64 {
        self.now.saturating_sub(SKEW)
    }

    fn ends(self) -> u64 {
        self.now + self.days * DAY.as_secs()
    }
}

/// A directory with a CA in it.
pub(crate) struct Authority {
    dir: PathBuf,
    certificate: String,
    /// The last second in which it is good: nothing that it signs is good after it.
    ends: u64,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) const CERTIFICATE: &str = "ca.crt";
    const KEY: &str = "ca.key";

    /// The CA of this directory.
    pub(crate) fn open(dir: &Path) -> Result<Self, PkiError> {
        let (at, key_at) = (dir.join(Self::CERTIFICATE), dir.join(Self::KEY));
        if !key_at.exists() {
            return Err(PkiError::NoAuthority { path: dir.to_owned() });
        }
        let certificate = read(&at)?;
        let key = KeyPair::from_pem(&read(&key_at)?).map_err(|source| PkiError::Authority {
            path: key_at,
            what: "key",
            source,
        })?;
        let refused = |source| PkiError::Authority { path: at.clone(), what: "certificate", source };
        let issuer = Issuer::from_ca_cert_pem(&certificate, key).map_err(refused)?;
        let ends = end_of(&certificate).ok_or_else(|| refused(rcgen::Error::CouldNotParseCertificate))?;
        Ok(Self { dir: dir.to_owned(), certificate, ends, issuer })
    }

    /// The CA of this directory, made if there is none.
    pub(crate) fn open_or_make(dir: &Path, now: u64) -> Result<(Self, Option<Made>), PkiError> {
        match Self::open(dir) {
            Err(PkiError::NoAuthority { .. }) => {}
            found => return Ok((found?, None)),
        }
        let term = Term { now, days: CA_DAYS };
        let mut params = params("berth CA", None, term.begins(), term.ends());
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        let wanted = [
            (dir.join(Self::KEY), key.serialize_pem(), PRIVATE),
            (dir.join(Self::CERTIFICATE), certificate.clone(), PUBLIC),
        ];
        // The certificate alone may be a copy from another host: not ours to replace.
        let files = files::write(&wanted, Keep::What)?;
        let issuer = Issuer::new(params, key);
        let ends = term.ends();
        Ok((Self { dir: dir.to_owned(), certificate, ends, issuer }, Some(Made { files, ends })))
    }

    /// The server's certificate, `server.crt` and `server.key`, for these names and addresses.
    pub(crate) fn server(&self, names: &[ServerName], term: Term, keep: Keep) -> Result<Made, PkiError> {
        let ends = self.ends.min(term.ends());
        let mut params = params("berth serve", None, term.begins(), ends);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for name in names {
            params.subject_alt_names.push(match name {
                ServerName::Ip(ip) => SanType::IpAddress(*ip),
                ServerName::Dns(name) => SanType::DnsName(name.as_str().try_into()?),
            });
        }
        let Issued { certificate, key } = self.sign(params)?;
        let at = |name: &str| self.dir.join(name);
        let wanted = [(at("server.key"), key, PRIVATE), (at("server.crt"), certificate, PUBLIC)];
        Ok(Made { files: files::write(&wanted, keep)?, ends })
    }

    /// A client's certificate, key, and a kubeconfig with both in it: the one file to carry to a host.
    pub(crate) fn client(
        &self,
        client: &Client,
        server: &str,
        term: Term,
        keep: Keep,
    ) -> Result<Made, PkiError> {
        if let Client::Host(name) = client
            && !is_node_name(name)
        {
            return Err(PkiError::HostName { name: name.clone() });
        }
        let (name, organisation) = client.subject();
        let ends = self.ends.min(term.ends());
        // What begins before the name was revoked is refused: clocks are allowed for only back to then.
        let since = Revoked::read(&self.revoked())?.and_then(|revoked| revoked.since(&name));
        let since = since.and_then(|since| u64::try_from(since).ok());
        let begins = term.begins().max(since.unwrap_or_default());
        let mut params = params(&name, Some(organisation), begins, ends);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let Issued { certificate, key } = self.sign(params)?;
        let at = |ending: &str| self.dir.join(format!("{}.{ending}", client.stem()));
        let config = Kubeconfig {
            server: server.to_owned(),
            user: name,
            authority: Some(self.certificate.clone()),
            client: Some((certificate.clone(), key.clone())),
        };
        let path = at("kubeconfig");
        let text = config.text().map_err(|source| PkiError::Kubeconfig { path: path.clone(), source })?;
        let wanted = [(at("key"), key, PRIVATE), (at("crt"), certificate, PUBLIC), (path, text, PRIVATE)];
        Ok(Made { files: files::write(&wanted, keep)?, ends })
    }

    /// Where clients find the server: as the administrator's kubeconfig has it.
    pub(crate) fn server_url(&self) -> Result<String, PkiError> {
        let path = self.dir.join("admin.kubeconfig");
        let read = kubeconfig::read(&read(&path)?);
        Ok(read.map_err(|source| PkiError::Kubeconfig { path, source })?.server)
    }

    /// Where the list of revoked names is.
    pub(crate) fn revoked(&self) -> PathBuf {
        self.dir.join(revoked::FILE)
    }

    /// Refuses whatever was made for this common name until now.
    pub(crate) fn revoke(&self, name: &str, now: u64) -> Result<Revoked, PkiError> {
        Ok(Revoked::add(&self.revoked(), name, now)?)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Issued, rcgen::Error> {
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// A name that clients may call the server by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerName {
    Ip(IpAddr),
    Dns(String),
}

impl ServerName {
    /// An address, or a DNS name.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(ip) = text.parse() {
            return Ok(Self::Ip(ip));
        }
        let name = text.to_ascii_lowercase();
        match is_node_name(&name) {
            true => Ok(Self::Dns(name)),
            false => Err("must be an IP address or a DNS name, without a port".to_owned()),
        }
    }

    /// As it stands in a URL.
    pub(crate) fn in_url(&self) -> String {
        match self {
            Self::Ip(IpAddr::V6(ip)) => format!("[{ip}]"),
            Self::Ip(ip) => ip.to_string(),
            Self::Dns(name) => name.clone(),
        }
    }
}

fn params(common_name: &str, organisation: Option<&str>, begins: u64, ends: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if let Some(organisation) = organisation {
        params.distinguished_name.push(DnType::OrganizationName, organisation);
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(begins);
    params.not_after = epoch + Duration::from_secs(ends);
    params
}

/// The last second in which a certificate is good.
fn end_of(pem: &str) -> Option<u64> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
    let (_, certificate) = X509Certificate::from_der(&der).ok()?;
    u64::try_from(certificate.validity().not_after.timestamp()).ok()
}

/// Whether a Node can be called so: a DNS name in lower case, as the API server asks.
pub(crate) fn is_node_name(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label = |label: &str| {
        label.starts_with(edge) && label.ends_with(edge) && label.chars().all(|c| edge(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(label)
}
