//! Certificates that are not to be trusted any more, though their CA signed them: a list of names, each with a time. What
//! was made for that name before then is refused, whichever copy it is; what is made later is good.
//!
//! Owns the file: a line per name, `2026-11-16T15:00:00Z system:node:node01`, empty lines and those with `#` aside.
//! `berth serve pki revoke` writes it, [`super::tls`] reads it with the certificates. By name and not by number, since
//! nobody keeps the certificates that were made before the last one. Must never be laxer than what it says: a list that
//! can't be read whole is an error, and so is one that was there and isn't any more.
//!
//! Cost: one small file, read when it changes; one parse of a certificate per connection.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use k8s_openapi::jiff::Timestamp;
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::pki::replace;

/// Where the list is: beside the CA's certificate.
pub(crate) const FILE: &str = "revoked";

/// The list can't be used.
#[derive(Debug, Error)]
pub enum RevokedError {
    #[error("{path}: can't be {done}")]
    File { path: PathBuf, done: &'static str, source: io::Error },
    #[error("{path}: was there and isn't any more; put it back, or an empty one if nobody is to be refused")]
    Gone { path: PathBuf },
    #[error(
        "{path}: line {line} is not a time and a name, such as 2026-11-16T15:00:00Z system:node:node01; put it right, nobody is let in by half a list"
    )]
    Line { path: PathBuf, line: usize },
}

/// Names, and from when on their certificates are good again, in seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revoked(BTreeMap<String, i64>);

impl Revoked {
    /// Reads a list, if there is one.
    pub fn read(path: &Path) -> Result<Option<Self>, RevokedError> {
        match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(RevokedError::File { path: path.to_owned(), done: "read", source }),
            Ok(text) => Self::parse(path, &text).map(Some),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Self, RevokedError> {
        let mut names = BTreeMap::new();
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        for (line, text) in lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#')) {
            let entry = text.split_once(' ').and_then(|(time, name)| Some((time.parse().ok()?, name.trim())));
            let (time, name): (Timestamp, &str) =
                entry.ok_or_else(|| RevokedError::Line { path: path.to_owned(), line })?;
            let since = names.entry(name.to_owned()).or_insert(i64::MIN);
            *since = time.as_second().max(*since);
        }
        Ok(Self(names))
    }

    /// Adds a name, as of now, and writes the list. A time that is there already never goes back.
    pub(crate) fn add(path: &Path, name: &str, now: u64) -> Result<Self, RevokedError> {
        let mut revoked = Self::read(path)?.unwrap_or_default();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let since = revoked.0.entry(name.to_owned()).or_insert(now);
        *since = now.max(*since);
        let mut text = String::from("# Certificates of these names made before these times are refused.\n");
        for (name, since) in &revoked.0 {
            let time = Timestamp::from_second(*since).unwrap_or(Timestamp::MAX);
            let _ = writeln!(text, "{time} {name}");
        }
        replace(path, text.as_bytes(), 0o644).map_err(|source| RevokedError::File {
            path: path.to_owned(),
            done: "written",
            source,
        })?;
        Ok(revoked)
    }

    /// From when on certificates of this name are good.
    pub(crate) fn since(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// The name by which this certificate is refused. One that can't be read is refused elsewhere.
    pub fn denies(&self, der: &[u8]) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let begins = certificate.validity().not_before.timestamp();
        let names = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        let mut denied = names.filter(|name| self.since(name).is_some_and(|since| begins < since));
        denied.next().map(str::to_owned)
    }

    /// How many names it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
