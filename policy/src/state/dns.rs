//! The resolver's configuration.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Servers (`address` or `address%link`), search domains and options, each in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl fmt::Display for Dns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (name, list) in [("servers", &self.servers), ("search", &self.search), ("options", &self.options)]
        {
            if !list.is_empty() {
                write!(f, "{}{name} {}", if first { "" } else { ", " }, list.join(" "))?;
                first = false;
            }
        }
        if first { f.write_str("nothing") } else { Ok(()) }
    }
}
