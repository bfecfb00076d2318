//! `--listen`: where to listen, as a person writes it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// A place to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    /// Port 0: any free one.
    Tcp {
        host: String,
        port: u16,
    },
}

/// What is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AddressError {
    #[error("is no place to listen: give unix:PATH, 127.0.0.1:PORT or HOST:PORT")]
    Shape,
    #[error("the path of a unix socket must be absolute, such as unix:/run/berth/api.sock")]
    Relative,
    #[error("the path of a unix socket must be shorter than 108 bytes")]
    Long,
    #[error("{0:?} is no port: give a number up to 65535; 0 takes any free one")]
    Port(String),
    #[error("an IPv6 address stands in brackets: [{0}]:PORT")]
    Brackets(String),
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            return match (path.is_absolute(), path.as_os_str().len() < 108) {
                (false, _) => Err(AddressError::Relative),
                (_, false) => Err(AddressError::Long),
                _ => Ok(Self::Unix(path)),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or(AddressError::Shape)?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(host) => host,
            None if host.contains("//") => return Err(AddressError::Shape),
            None if host.contains(':') => return Err(AddressError::Brackets(host.to_owned())),
            None => host,
        };
        if host.is_empty() || host.contains('/') {
            return Err(AddressError::Shape);
        }
        let port = port.parse().map_err(|_| AddressError::Port(port.to_owned()))?;
        Ok(Self::Tcp { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}
