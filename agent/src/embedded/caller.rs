//! Who asks. In process and over the unix socket: everything. Over TLS: what the client certificate's subject says, in
//! the words that Kubernetes has for the same roles.
//!
//! Owns the reading of subjects; [`super::listen`] puts the caller into each request's extensions, [`super::bounds`]
//! says what it may write. Must never guess: a subject that is nobody's is refused, whoever signed it. Must never be read
//! from anything that a client can write, such as a header.
//!
//! Cost: one parse of a certificate per connection.

#[cfg(test)]
mod tests;

use hyper::http::Extensions;
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::pki::is_node_name;

/// Organisation of administrators.
pub(crate) const ADMINISTRATORS: &str = "system:masters";
/// Organisation of controllers.
pub(crate) const CONTROLLERS: &str = "berth:controllers";
/// Organisation of hosts.
pub(crate) const HOSTS: &str = "system:nodes";
/// What stands before a host's name in its common name.
pub(crate) const HOST_PREFIX: &str = "system:node:";

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Caller {
    /// In process, the unix socket, plain TCP on loopback, an administrator.
    #[default]
    Everything,
    /// A controller: others' objects of our kinds, leases and events.
    Controller,
    /// A host: what is its own.
    Host {
        /// Its Node's name.
        name: String,
        /// Agents elect a controller among themselves: each has a controller's rights too.
        elects: bool,
    },
}

/// A certificate that is nobody's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallerError {
    #[error("the client certificate can't be read: make one with 'berth serve pki host NAME'")]
    Unreadable,
    #[error(
        "client certificate {subject:?} is nobody's here: an administrator has O={ADMINISTRATORS}, a controller O={CONTROLLERS}, host NAME has CN={HOST_PREFIX}NAME and O={HOSTS}; make one with 'berth serve pki host NAME'"
    )]
    Nobody { subject: String },
    #[error(
        "the certificates of {name:?} made until now were revoked: make another with 'berth serve pki host NAME --force'"
    )]
    Revoked { name: String },
    #[error("client certificate {subject:?} names no host: {name:?} can be no Node's name")]
    HostName { subject: String, name: String },
}

impl Caller {
    /// Who made a request; one without a caller comes from this process.
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Whose this certificate is. That it was signed by somebody we trust was settled in the handshake.
    pub fn from_certificate(der: &[u8], elects: bool) -> Result<Self, CallerError> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|_| CallerError::Unreadable)?;
        let subject = certificate.subject();
        let organisations: Vec<&str> =
            subject.iter_organization().filter_map(|name| name.as_str().ok()).collect();
        let names: Vec<&str> = subject.iter_common_name().filter_map(|name| name.as_str().ok()).collect();
        let nobody = || CallerError::Nobody { subject: subject.to_string() };
        if organisations.contains(&ADMINISTRATORS) {
            return Ok(Self::Everything);
        }
        if organisations.contains(&CONTROLLERS) {
            return Ok(Self::Controller);
        }
        // Two common names would be two hosts.
        let [name] = names.as_slice() else { return Err(nobody()) };
        let Some(name) = name.strip_prefix(HOST_PREFIX).filter(|_| organisations.contains(&HOSTS)) else {
            return Err(nobody());
        };
        match is_node_name(name) {
            true => Ok(Self::Host { name: name.to_owned(), elects }),
            false => Err(CallerError::HostName { subject: subject.to_string(), name: name.to_owned() }),
        }
    }
}
