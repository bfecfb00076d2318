//! Links: what goes, what comes, who is whose port, and what each is set to.

use super::Walk;
use super::options;
use crate::plan::order::lowest_first;
use crate::plan::step::{NewLink, Step};
use crate::state::kind::PortStyle;
use crate::state::{Attributes, Family, IfName, Link, LinkKind, Observed};
use std::collections::BTreeSet;

impl Walk<'_> {
    pub(super) fn links(&mut self, to: &Observed) {
        if self.from.links == to.links {
            return;
        }
        let order = order(to);
        self.deletions(to);
        self.creations(to, &order);
        self.detachments(to);
        let changed: Vec<&Link> = order.iter().filter_map(|name| to.links.get(name)).collect();
        // Lowest first: a vlan can't be larger than, nor up before, what it sits on.
        for wanted in &changed {
            self.attributes(wanted);
        }
        for wanted in &changed {
            self.attach(wanted, to);
        }
        for wanted in &changed {
            self.after_ports(wanted, to);
        }
        for wanted in &changed {
            self.up(wanted);
        }
        // What came up with its base and shall be down; highest first.
        for wanted in changed.iter().rev() {
            self.down(wanted);
        }
    }

    /// Highest first, so that nothing goes unnamed along with what it sits on.
    fn deletions(&mut self, to: &Observed) {
        let doomed: BTreeSet<IfName> = self
            .from
            .links
            .values()
            .filter(|l| l.kind.is_virtual() && !l.ignored)
            .filter(|l| to.links.get(&l.name).is_none_or(|wanted| is_another(l, wanted)))
            .map(|l| l.name.clone())
            .collect();
        if doomed.is_empty() {
            return;
        }
        // What sits on something that is made anew has to be made anew as well.
        let order = order(self.from);
        let mut all = doomed;
        for name in &order {
            let base = self.from.links.get(name).and_then(|l| l.base.as_ref());
            if base.is_some_and(|b| all.contains(b)) {
                all.insert(name.clone());
            }
        }
        for name in order.iter().rev().filter(|n| all.contains(*n)) {
            // The other end of a veth has gone with the first, or will with the one that was named.
            if let Some(link) = self.work.links.get(name).filter(|l| !self.goes_with_peer(l, &all)) {
                let kind = link.kind.clone();
                self.step(Step::DeleteLink { link: name.clone(), kind });
            }
        }
    }

    fn goes_with_peer(&self, link: &Link, doomed: &BTreeSet<IfName>) -> bool {
        let named_peer = |peer: &&IfName| self.asked.absent.contains(*peer) && doomed.contains(*peer);
        let Some(peer) = link.peer.as_ref().filter(named_peer) else {
            return false;
        };
        let mutual = self.work.links.get(peer).and_then(|p| p.peer.as_ref()) == Some(&link.name);
        link.kind == LinkKind::Veth && mutual && !self.asked.absent.contains(&link.name)
    }

    fn creations(&mut self, to: &Observed, order: &[IfName]) {
        for name in order {
            let Some(wanted) = to.links.get(name).filter(|_| !self.work.links.contains_key(name)) else {
                continue;
            };
            if wanted.ignored || !wanted.kind.is_virtual() {
                continue;
            }
            let peer = wanted.peer.as_ref().and_then(|peer| to.links.get(peer));
            self.made.insert(name.clone());
            self.made.extend(wanted.peer.clone());
            self.step(Step::CreateLink(NewLink {
                name: name.clone(),
                kind: wanted.kind.clone(),
                base: wanted.base.clone(),
                peer: wanted.peer.clone(),
                mac: wanted.mac,
                options: options::at_creation(wanted),
                attributes: wanted.attributes.clone(),
                kind_attributes: wanted.kind_attributes.clone(),
                peer_attributes: peer.map(|link| link.attributes.clone()).unwrap_or_default(),
            }));
        }
    }

    fn detachments(&mut self, to: &Observed) {
        let leaving: Vec<_> = self
            .work
            .links
            .values()
            .filter_map(|l| Some((l.name.clone(), l.controller.clone()?)))
            .filter(|(name, old)| to.links.get(name).is_some_and(|w| w.controller.as_ref() != Some(old)))
            .collect();
        for (link, controller) in leaving {
            if self.work.links.contains_key(&controller) {
                self.step(Step::Detach { link, controller });
            }
        }
    }

    /// The link as it is now, if it is to be touched at all.
    fn now(&self, wanted: &Link) -> Option<&Link> {
        self.work.links.get(&wanted.name).filter(|now| !now.ignored && *now != wanted)
    }

    fn attributes(&mut self, wanted: &Link) {
        let link = &wanted.name;
        let Some(now) = self.now(wanted).cloned() else {
            return;
        };
        if let Some(mac) = wanted.mac.filter(|m| now.mac != Some(*m)) {
            // A card may refuse another address while it runs.
            if now.up && now.kind == LinkKind::Ethernet {
                self.step(Step::SetDown { link: link.clone() });
            }
            self.step(Step::SetMac { link: link.clone(), mac });
        }
        // Below 1280 the kernel takes IPv6 off the link by itself, and its switch with it.
        if now.ipv6.enabled && !wanted.ipv6.enabled {
            self.step(Step::SetIpv6 { link: link.clone(), on: false });
        }
        if let Some(mtu) = wanted.mtu.filter(|m| now.mtu != Some(*m)) {
            self.step(Step::SetMtu { link: link.clone(), mtu });
        }
        if wanted.alias != now.alias {
            let alias = wanted.alias.clone().unwrap_or_default();
            self.step(Step::SetAlias { link: link.clone(), alias });
        }
        if wanted.promiscuous != now.promiscuous {
            self.step(Step::SetPromiscuous { link: link.clone(), on: wanted.promiscuous });
        }
        for name in now.alt_names.difference(&wanted.alt_names) {
            self.step(Step::DeleteAltName { link: link.clone(), name: name.clone() });
        }
        for name in wanted.alt_names.difference(&now.alt_names) {
            self.step(Step::AddAltName { link: link.clone(), name: name.clone() });
        }
        self.link_options(wanted, &now);
        // A link that was made without: the kernel wouldn't have them at that moment.
        let (own, of_kind) = (&wanted.attributes, &wanted.kind_attributes);
        let differ = |wanted: &Attributes, now: &Attributes| wanted.iter().any(|kept| !now.contains(kept));
        if differ(own, &now.attributes) || differ(of_kind, &now.kind_attributes) {
            let (attributes, kind_attributes) = (own.clone(), of_kind.clone());
            let (link, kind) = (link.clone(), wanted.kind.clone());
            self.step(Step::RestoreLink { link, kind, attributes, kind_attributes });
        }
        self.families(wanted, &now);
    }

    fn families(&mut self, wanted: &Link, now: &Link) {
        let link = &wanted.name;
        if wanted.ipv6.enabled && !now.ipv6.enabled {
            self.step(Step::SetIpv6 { link: link.clone(), on: true });
        }
        if let Some(accept) = wanted.ipv6.accept_ra.filter(|accept| now.ipv6.accept_ra != Some(*accept)) {
            self.step(Step::SetAcceptRa { link: link.clone(), accept });
        }
        for family in Family::BOTH {
            if let Some(on) = wanted.ip(family).forwarding.filter(|on| now.ip(family).forwarding != Some(*on))
            {
                self.step(Step::SetForwarding { link: link.clone(), family, on });
            }
        }
    }

    fn attach(&mut self, wanted: &Link, to: &Observed) {
        let link = &wanted.name;
        let Some(now) = self.work.links.get(link) else {
            return;
        };
        let Some(controller) = wanted.controller.clone().filter(|c| now.controller.as_ref() != Some(c))
        else {
            return;
        };
        // A controller that isn't there (another namespace) was never ours to change.
        let Some(kind) = to.links.get(&controller).map(|l| l.kind.clone()) else {
            return;
        };
        if kind.spec().ports == PortStyle::Bond {
            // In this order: a vlan comes up with what it sits on.
            self.bases_up(wanted, to);
            if self.work.links.get(link).is_some_and(|now| now.up) {
                self.step(Step::SetDown { link: link.clone() });
            }
            // The bond itself brings its ports up.
            self.made.remove(link);
        }
        self.step(Step::Attach { link: link.clone(), controller });
    }

    /// A bond opens its ports as it takes them, so what they sit on has to be up by then.
    fn bases_up(&mut self, wanted: &Link, to: &Observed) {
        let mut bases = Vec::new();
        let mut next = wanted.base.as_ref();
        while let Some(base) = next.and_then(|b| to.links.get(b)).filter(|_| bases.len() < to.links.len()) {
            bases.push(base);
            next = base.base.as_ref();
        }
        for base in bases.into_iter().rev() {
            self.up(base);
        }
    }

    /// A new link is brought up by name even where it would come up with what it sits on.
    fn up(&mut self, wanted: &Link) {
        let down = self.now(wanted).is_some_and(|now| !now.up);
        if wanted.up && (down || self.made.remove(&wanted.name)) {
            self.step(Step::SetUp { link: wanted.name.clone() });
        }
    }

    fn down(&mut self, wanted: &Link) {
        let up = self.now(wanted).is_some_and(|now| now.up);
        if !wanted.up && up {
            self.step(Step::SetDown { link: wanted.name.clone() });
        }
    }
}

/// Lowest first; a circle was refused earlier, or is the kernel's own doing: then by name.
fn order(state: &Observed) -> Vec<IfName> {
    lowest_first(state).unwrap_or_else(|_| state.links.keys().cloned().collect())
}

/// Whether only a new link can be what is wanted.
pub(in crate::plan) fn is_another(now: &Link, wanted: &Link) -> bool {
    let sits = wanted.base.is_some() && wanted.base != now.base;
    let faces = wanted.kind == LinkKind::Veth
        && wanted.peer.is_some()
        && now.peer.is_some()
        && wanted.peer != now.peer;
    !now.kind.agrees(&wanted.kind) || sits || faces || options::need_another(now, wanted)
}
