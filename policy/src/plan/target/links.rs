//! One entry of `interfaces`: the link itself. Ports, stacking and addresses come after all links are known.

use super::Merge;
use crate::plan::error::ProblemKind;
use crate::state::kind::BOND_MODE;
use crate::state::option::Pointless;
use crate::state::{DesiredLink, IfName, Link, LinkKind, LinkState, OptName, Options};

impl Merge<'_> {
    pub(super) fn link(&mut self, doc: &DesiredLink) {
        match doc.state {
            LinkState::Ignore => {}
            LinkState::Absent => self.absent(doc),
            LinkState::Up | LinkState::Down => {
                if self.find_or_make(doc) {
                    self.attributes(doc);
                }
            }
        }
    }

    fn absent(&mut self, doc: &DesiredLink) {
        let name = &doc.name;
        let Some(link) = self.state.links.get_mut(name) else {
            return;
        };
        let kind = link.kind.to_string();
        match &link.kind {
            // It goes with what it sits on, if that does: `stack` looks.
            LinkKind::Other(_) if link.shrinks_with.is_some() => {}
            LinkKind::Other(_) => {
                self.link_problem(doc, "state", ProblemKind::Ignored { name: name.clone(), kind });
            }
            LinkKind::Loopback => {
                self.link_problem(doc, "state", ProblemKind::CantRemove { name: name.clone() });
            }
            LinkKind::Ethernet => {
                // A card can't be removed: it is left without configuration.
                link.up = false;
                link.controller = None;
                link.ipv4.addresses.clear();
                link.ipv6.addresses.retain(|a| a.is_kernel_link_local());
            }
            found => {
                if let Some(wanted) = doc.kind.clone().filter(|k| !k.agrees(found)) {
                    let kind = other_kind(name, &wanted, found);
                    self.link_problem(doc, "type", kind);
                    return;
                }
                let peer = link.peer.clone().filter(|_| *found == LinkKind::Veth);
                for name in std::iter::once(name.clone()).chain(peer) {
                    self.state.links.remove(&name);
                    self.removed.insert(name);
                }
            }
        }
    }

    /// False: there is none and none can be made.
    fn find_or_make(&mut self, doc: &DesiredLink) -> bool {
        let name = &doc.name;
        if let Some(found) = self.state.links.get(name) {
            let (kind, ignored) = (found.kind.clone(), found.ignored);
            if ignored {
                let kind = ProblemKind::Ignored { name: name.clone(), kind: kind.to_string() };
                self.link_problem(doc, "", kind);
                return false;
            }
            if let Some(wanted) = doc.kind.clone().filter(|k| !k.agrees(&kind)) {
                self.link_problem(doc, "type", other_kind(name, &wanted, &kind));
                return false;
            }
            // An end of a pair made for the other entry has its peer by now.
            return self.peer_agrees(doc);
        }
        let Some(kind) = doc.kind.clone() else {
            self.link_problem(doc, "name", ProblemKind::NoSuchLink { name: name.clone() });
            return false;
        };
        if !kind.is_virtual() {
            let kind = kind.to_string();
            self.link_problem(doc, "name", ProblemKind::CantMake { name: name.clone(), kind });
            return false;
        }
        self.make(doc, kind)
    }

    fn make(&mut self, doc: &DesiredLink, kind: LinkKind) -> bool {
        let spec = kind.spec();
        let before = self.problems.len();
        if !doc.name.is_kernel_name() {
            self.link_problem(doc, "name", ProblemKind::NameTooLong { name: doc.name.clone() });
        }
        let section = spec.sections.first().copied().unwrap_or_default();
        let missing = || ProblemKind::Missing { kind: kind.to_string() };
        for path in spec.required {
            if !doc.options.keys().any(|o| o.as_str() == *path) {
                self.link_problem(doc, &format!("{section}.{path}"), missing());
            }
        }
        if matches!(kind, LinkKind::Vlan | LinkKind::MacVlan) && doc.base.is_none() {
            self.link_problem(doc, &format!("{section}.base-iface"), missing());
        }
        if kind == LinkKind::Veth {
            match &doc.peer {
                None => self.link_problem(doc, "veth.peer", missing()),
                Some(peer) => self.make_peer(doc, peer),
            }
        }
        if self.problems.len() > before {
            return false;
        }
        let mut link = Link::new(doc.name.clone(), kind);
        (link.base, link.peer) = (doc.base.clone(), doc.peer.clone());
        link.ipv6.enabled = !self.observed.new_links_lack_ipv6;
        self.state.insert(link);
        true
    }

    /// The other end comes into being with this one, up, as nobody can use one end alone.
    fn make_peer(&mut self, doc: &DesiredLink, peer: &IfName) {
        let ours = self.state.links.get(peer).map(|l| l.peer.as_ref() == Some(&doc.name));
        match ours {
            Some(true) => {}
            _ if *peer == doc.name => self.other_peer(doc, peer),
            Some(false) => self.other_peer(doc, peer),
            None if !peer.is_kernel_name() => {
                self.link_problem(doc, "veth.peer", ProblemKind::NameTooLong { name: peer.clone() });
            }
            None => {
                let mut other = Link::new(peer.clone(), LinkKind::Veth);
                other.peer = Some(doc.name.clone());
                other.up = true;
                other.ipv6.enabled = !self.observed.new_links_lack_ipv6;
                self.state.insert(other);
            }
        }
    }

    fn other_peer(&mut self, doc: &DesiredLink, peer: &IfName) {
        let kind = ProblemKind::OtherPeer { name: doc.name.clone(), peer: peer.clone() };
        self.link_problem(doc, "veth.peer", kind);
    }

    fn peer_agrees(&mut self, doc: &DesiredLink) -> bool {
        let Some(wanted) = &doc.peer else { return true };
        let found = self.state.links.get(&doc.name).and_then(|l| l.peer.clone());
        // A peer in another namespace has no name here; there is nothing to compare.
        let agrees = found.is_none() || found.as_ref() == Some(wanted);
        if !agrees {
            self.other_peer(doc, wanted);
        }
        agrees
    }

    fn attributes(&mut self, doc: &DesiredLink) {
        let loopback = doc.kind == Some(LinkKind::Loopback);
        let beyond =
            doc.mac.is_some() || doc.mtu.is_some() || doc.controller.as_ref().is_some_and(Option::is_some);
        if loopback && beyond && !self.loopback_holds(doc) {
            self.link_problem(doc, "", ProblemKind::LoopbackOnlyAddresses);
            return;
        }
        let copied = self.copied_mac(doc);
        let Some(link) = self.state.links.get_mut(&doc.name) else {
            return;
        };
        link.up = doc.state == LinkState::Up;
        if let Some(alias) = &doc.alias {
            link.alias = Some(alias.clone()).filter(|a| !a.is_empty());
        }
        if let Some(mac) = doc.mac.or(copied) {
            link.mac = Some(mac);
        }
        if let Some(mtu) = doc.mtu {
            link.mtu = Some(mtu);
        }
        if let Some(promiscuous) = doc.promiscuous {
            link.promiscuous = promiscuous;
        }
        for alt in &doc.alt_names {
            if alt.absent {
                link.alt_names.remove(&alt.name);
            } else {
                link.alt_names.insert(alt.name.clone());
            }
        }
        if doc.base.is_some() {
            link.base.clone_from(&doc.base);
        }
        merge_options(link, doc);
        self.drop_pointless(doc);
    }

    /// Options that mean nothing with the others, such as those of another mode: what the document asks for is
    /// refused, what was only there is let go.
    fn drop_pointless(&mut self, doc: &DesiredLink) {
        let Some(link) = self.state.links.get_mut(&doc.name) else { return };
        let spec = link.kind.spec();
        let section = spec.sections.first().copied().unwrap_or_default();
        let why = |options: &Options, name: OptName| spec.option(name.as_str())?.pointless(options);
        let found: Vec<(OptName, Pointless)> =
            link.options.keys().filter_map(|name| Some((*name, why(&link.options, *name)?))).collect();
        for (name, why) in found {
            let Some(link) = self.state.links.get_mut(&doc.name) else { return };
            let dropped = link.options.remove(&name);
            let shown = self.observed.links.get(&doc.name).and_then(|link| link.options.get(&name));
            if doc.options.contains_key(&name) && shown != dropped.as_ref() {
                self.link_problem(doc, &format!("{section}.{}", name.as_str()), ProblemKind::Pointless(why));
            }
        }
    }

    /// What a loopback is shown with may be said again.
    fn loopback_holds(&self, doc: &DesiredLink) -> bool {
        self.observed.links.get(&doc.name).is_some_and(|l| {
            let same_mac = doc.mac.is_none_or(|m| l.mac == Some(m));
            let same_mtu = doc.mtu.is_none_or(|m| l.mtu == Some(m));
            same_mac && same_mtu && doc.controller.clone().flatten().is_none()
        })
    }

    fn copied_mac(&mut self, doc: &DesiredLink) -> Option<crate::state::Mac> {
        let from = doc.copy_mac_from.as_ref()?;
        let kind = self.state.links.get(&doc.name).map(|l| l.kind.clone())?;
        if !matches!(kind, LinkKind::Bond | LinkKind::LinuxBridge) {
            self.link_problem(doc, "copy-mac-from", ProblemKind::CantCopyMac);
            return None;
        }
        let source = self.observed.links.get(from);
        // The permanent one: a card under a bond may bear another card's.
        let mac = source.and_then(|l| l.permanent_mac.or(l.mac));
        if mac.is_none() {
            self.link_problem(doc, "copy-mac-from", ProblemKind::NoMacToCopy { from: from.clone() });
        }
        mac
    }
}

fn other_kind(name: &IfName, wanted: &LinkKind, found: &LinkKind) -> ProblemKind {
    ProblemKind::OtherKind { name: name.clone(), wanted: wanted.to_string(), found: found.to_string() }
}

fn merge_options(link: &mut Link, doc: &DesiredLink) {
    let spec = link.kind.spec();
    let mode = BOND_MODE.name();
    if let (LinkKind::Bond, Some(wanted)) = (&link.kind, doc.options.get(&mode))
        && link.options.get(&mode).is_some_and(|found| found != wanted)
    {
        // Another mode is another bond: its options are not those of the old one.
        link.options.clear();
    }
    for (name, wanted) in &doc.options {
        let close =
            link.options.get(name).zip(spec.option(name.as_str())).is_some_and(|(f, s)| s.same(wanted, f));
        if !close {
            link.options.insert(*name, wanted.clone());
        }
    }
}
