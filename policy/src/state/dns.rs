//! The resolver's configuration. A document has lists; what was observed has the file besides, so that undoing a change
//! brings back every letter of it.

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
    /// The file that says so, as it is; nothing where there is none, or where somebody asks for something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Dns {
    /// Whether this is as good as `wanted`: to the letter, where that is known.
    pub fn is(&self, wanted: &Dns) -> bool {
        let lists = |dns: &Dns| [dns.servers.clone(), dns.search.clone(), dns.options.clone()];
        lists(self) == lists(wanted) && (wanted.text.is_none() || self.text == wanted.text)
    }
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
