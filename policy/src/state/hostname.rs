//! The two names of a host: the one it runs under, and the one it is given at boot.

use serde::{Deserialize, Serialize};
use std::fmt;

/// They may differ: a lease or an image may have named the running host. Nothing where it isn't known, or there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hostname {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// The static one, in the host's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}

impl Hostname {
    /// This one, with what a document says of either. Only the static one said means both: nobody wants a name that
    /// comes with the next boot.
    pub(crate) fn merged(&self, wanted: &Self) -> Self {
        let running = wanted.running.as_ref().or(wanted.config.as_ref()).or(self.running.as_ref());
        Self { running: running.cloned(), config: wanted.config.as_ref().or(self.config.as_ref()).cloned() }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Hostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".into());
        match self.running == self.config {
            true => f.write_str(&or_none(&self.running)),
            false => write!(f, "{} (at boot: {})", or_none(&self.running), or_none(&self.config)),
        }
    }
}
