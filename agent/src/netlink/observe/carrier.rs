//! Whether a link without a carrier may get one by itself: addresses are probed only then, and are waited for only there.

use std::collections::BTreeMap;

use policy::state::kind::PortStyle;
use policy::state::{IfName, Link};

/// Links on links that are looked at; the kernel itself nests them no deeper.
const DEPTH: usize = 8;

pub(super) struct Carriers<'a> {
    pub(super) links: &'a BTreeMap<u32, Link>,
    /// Up and with a carrier.
    pub(super) running: &'a BTreeMap<u32, bool>,
}

impl Carriers<'_> {
    pub(super) fn may_come(&self, index: u32) -> bool {
        self.links.get(&index).is_some_and(|link| self.comes(link, DEPTH))
    }

    /// A card waits for its cable, one end of a pair for the other, whatever sits on others for one of those, and a bridge
    /// also for its spanning tree.
    fn comes(&self, link: &Link, depth: usize) -> bool {
        if !link.up || depth == 0 {
            return false;
        }
        if let Some(peer) = &link.peer {
            return self.named(peer).is_some_and(|(_, peer)| peer.up);
        }
        if let Some(base) = link.sits_on() {
            return self
                .named(base)
                .is_some_and(|(index, base)| self.runs(index) || self.comes(base, depth - 1));
        }
        if matches!(link.kind.spec().ports, PortStyle::None) {
            return true;
        }
        let mut ports = self.links.iter().filter(|(_, port)| port.controller.as_ref() == Some(&link.name));
        ports.any(|(index, port)| self.runs(*index) || self.comes(port, depth - 1))
    }

    fn runs(&self, index: u32) -> bool {
        self.running.get(&index) == Some(&true)
    }

    fn named(&self, name: &IfName) -> Option<(u32, &Link)> {
        self.links.iter().find(|(_, link)| link.name == *name).map(|(index, link)| (*index, link))
    }
}
