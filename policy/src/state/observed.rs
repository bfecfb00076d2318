//! What a host has: the network state as it was observed.
//!
//! The agent's netlink module fills it from the kernel; [`Observed::from_value`] reads it from nmstate's YAML
//! (`--current state.yaml`); [`Observed::to_value`] prints it as such. Its own serde form keeps everything,
//! also what nmstate's YAML has no word for (who made a route, on-link next hops), and is what a checkpoint
//! on disk holds; its keys are in kebab-case, as nmstate's are.

mod from_value;
mod to_value;

use super::{Dns, Hostname, IfName, Kept, Link, Route, Rule};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The network state of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Observed {
    pub links: BTreeMap<IfName, Link>,
    /// Every route but those the kernel makes itself from addresses (protocol kernel, table local), and those in `kept`.
    pub routes: Vec<Route>,
    /// Every rule but those a host is born with, and those in `kept`.
    pub rules: Vec<Rule>,
    /// What of both, and of next hop objects, no document has words for; in no document, but given back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// Whether a new link starts with IPv6 off (`net.ipv6.conf.default.disable_ipv6`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_links_lack_ipv6: bool,
    /// What somebody configured, Berth or an admin; what a document asks for is compared with this.
    pub dns: Dns,
    /// What is in effect, wherever it came from (a lease, an image); only ever shown.
    pub running_dns: Dns,
    pub hostname: Hostname,
    /// What a document said beyond the model; shown again as it came.
    pub extra: Map<String, Value>,
}

impl Observed {
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links.get(name)
    }

    pub fn insert(&mut self, link: Link) {
        self.links.insert(link.name.clone(), link);
    }
}
