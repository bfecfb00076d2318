//! A link to be made, with all that the kernel has to be told at that moment.

use crate::state::{Attributes, IfName, Link, LinkKind, Mac, Options};
use serde::Serialize;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewLink {
    #[serde(rename = "link")]
    pub name: IfName,
    pub kind: LinkKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<IfName>,
    /// A veth's other end, which is made with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<IfName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    #[serde(skip_serializing_if = "Options::is_empty")]
    pub options: Options,
    /// What there is no word for, where there was such a link before: of itself, of its kind, of its other end.
    #[serde(skip)]
    pub attributes: Attributes,
    #[serde(skip)]
    pub kind_attributes: Attributes,
    #[serde(skip)]
    pub peer_attributes: Attributes,
}

impl NewLink {
    /// The link as it is right after: down and without addresses.
    pub(in crate::plan) fn link(&self) -> Link {
        let mut link = Link::new(self.name.clone(), self.kind.clone());
        (link.base, link.peer, link.mac) = (self.base.clone(), self.peer.clone(), self.mac);
        link.options = self.options.clone();
        link.attributes.clone_from(&self.attributes);
        link.kind_attributes.clone_from(&self.kind_attributes);
        link
    }
}

/// What it is; its name stands beside.
impl fmt::Display for NewLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(base) = &self.base {
            write!(f, " on {base}")?;
        }
        if let Some(peer) = &self.peer {
            write!(f, " with peer {peer}")?;
        }
        if let Some(mac) = self.mac {
            write!(f, " mac {mac}")?;
        }
        if self.options.is_empty() { Ok(()) } else { write!(f, " {}", super::list(&self.options)) }
    }
}
