//! Links, their ports and their addresses.

use super::{Check, words};
use crate::plan::memory::is_fixed;
use crate::plan::target::ip::{arrange, stays};
use crate::state::kind::PortStyle;
use crate::state::{
    AcceptRa, Address, DesiredAddress, DesiredIp, DesiredLink, Family, Link, LinkKind, LinkState, Options,
    PortConfig,
};

impl Check<'_> {
    pub(super) fn link(&mut self, doc: &DesiredLink) {
        let at = |field: &str| format!("interfaces[{}].{field}", doc.index);
        let found = self.observed.links.get(&doc.name);
        match (doc.state, found) {
            (LinkState::Ignore, _) | (LinkState::Absent, None) => {}
            (LinkState::Absent, Some(link)) => self.absent(doc, link),
            (_, None) => self.unmet(at("name"), &doc.name, "no such interface"),
            (state, Some(link)) => {
                let up = |up: bool| if up { "up" } else { "down" };
                self.field(at("state"), Some(up(state == LinkState::Up)), Some(up(link.up)));
                self.fields(doc, link);
            }
        }
    }

    /// A card can't go: it has to be down and bare.
    fn absent(&mut self, doc: &DesiredLink, link: &Link) {
        let bare = !link.up && link.controller.is_none() && link.ipv4.addresses.is_empty();
        if link.kind.is_virtual() || !bare {
            let found = if link.up { "up" } else { "still there" };
            self.unmet(format!("interfaces[{}].state", doc.index), "absent", found);
        }
    }

    fn fields(&mut self, doc: &DesiredLink, link: &Link) {
        let at = |field: &str| format!("interfaces[{}].{field}", doc.index);
        if let Some(kind) = doc.kind.as_ref().filter(|k| !k.agrees(&link.kind)) {
            self.unmet(at("type"), kind, &link.kind);
            return;
        }
        self.field(at("mtu"), doc.mtu, link.mtu);
        self.field(at("mac-address"), doc.mac, link.mac);
        let alias = doc.alias.clone();
        self.field(at("description"), alias, Some(link.alias.clone().unwrap_or_default()));
        self.field(at("accept-all-mac-addresses"), doc.promiscuous, Some(link.promiscuous));
        self.alt_names(doc, link);
        self.copied_mac(doc, link);
        let section = link.kind.spec().sections.first().copied().unwrap_or_default();
        self.field(at(&format!("{section}.base-iface")), doc.base.clone(), link.base.clone());
        if link.peer.is_some() {
            self.field(at(&format!("{section}.peer")), doc.peer.clone(), link.peer.clone());
        }
        self.options(&at(section), &doc.options, &link.options, |path| link.kind.spec().option(path));
        if let Some(controller) = &doc.controller {
            let name =
                |c: &Option<crate::state::IfName>| c.as_ref().map_or(String::new(), ToString::to_string);
            self.field(at("controller"), Some(name(controller)), Some(name(&link.controller)));
        }
        self.ports(doc, link);
        for family in Family::BOTH {
            if let Some(ip) = doc.ip(family) {
                self.ip(&at(family.as_str()), ip, link, family);
            }
        }
    }

    fn alt_names(&mut self, doc: &DesiredLink, link: &Link) {
        for alt in &doc.alt_names {
            if alt.absent == link.alt_names.contains(&alt.name) {
                let wanted = if alt.absent { format!("no {}", alt.name) } else { alt.name.clone() };
                let found = words(&link.alt_names.iter().collect::<Vec<_>>());
                self.unmet(format!("interfaces[{}].alt-names", doc.index), wanted, found);
            }
        }
    }

    fn copied_mac(&mut self, doc: &DesiredLink, link: &Link) {
        let Some(from) = &doc.copy_mac_from else { return };
        let has = |s: &Link| link.mac.is_some() && (link.mac == s.permanent_mac || link.mac == s.mac);
        if !self.observed.links.get(from).is_some_and(has) {
            let found = link.mac.map_or("none".into(), |m| m.to_string());
            let path = format!("interfaces[{}].copy-mac-from", doc.index);
            self.unmet(path, format!("the MAC address of {from}"), found);
        }
    }

    fn options(
        &mut self,
        path: &str,
        wanted: &Options,
        found: &Options,
        spec: impl Fn(&str) -> Option<&'static crate::state::option::OptSpec>,
    ) {
        for (name, wanted) in wanted {
            let there = found.get(name);
            if !spec(name.as_str()).is_some_and(|spec| spec.holds(wanted, there)) {
                let found = there.map_or("none".into(), ToString::to_string);
                self.unmet(format!("{path}.{}", name.as_str()), wanted, found);
            }
        }
    }

    fn ports(&mut self, doc: &DesiredLink, link: &Link) {
        let Some(ports) = &doc.ports else { return };
        let spec = link.kind.spec();
        let section = spec.sections.first().copied().unwrap_or_default();
        let path = format!("interfaces[{}].{section}", doc.index);
        let Some(list) = &ports.list else { return };
        let wanted: std::collections::BTreeSet<_> = list.iter().map(|e| &e.name).collect();
        let found: std::collections::BTreeSet<_> = self
            .observed
            .links
            .values()
            .filter(|l| l.controller.as_ref() == Some(&doc.name))
            .map(|l| &l.name)
            .collect();
        let fits = if ports.allow_extra { wanted.is_subset(&found) } else { wanted == found };
        if !fits {
            let (wanted, found): (Vec<_>, Vec<_>) =
                (wanted.into_iter().collect(), found.into_iter().collect());
            self.unmet(format!("{path}.port"), words(&wanted), words(&found));
        }
        for (i, entry) in list.iter().enumerate() {
            let Some(port) = self.observed.links.get(&entry.name) else {
                continue;
            };
            let at = format!("{path}.port[{i}]");
            self.options(&at, &entry.options, &port.port.options, |p| spec.port_option(p));
            if let Some(vlan) =
                entry.vlan.as_ref().filter(|v| spec.ports == PortStyle::Bridge && **v != port.port.vlan)
            {
                self.unmet(format!("{at}.vlan"), vlan, &port.port.vlan);
            }
        }
        for (name, PortConfig { index, options }) in &ports.config {
            let there = self.observed.links.get(name).map(|l| l.port.options.clone()).unwrap_or_default();
            self.options(&format!("{path}.ports-config[{index}]"), options, &there, |p| spec.port_option(p));
        }
    }

    fn ip(&mut self, path: &str, wanted: &DesiredIp, link: &Link, family: Family) {
        let found = link.ip(family);
        let forwarding = wanted.forwarding.map(|w| (w, found.forwarding));
        if let Some((wanted, found)) = forwarding.filter(|(w, f)| Some(*w) != *f) {
            self.unmet(
                format!("{path}.forwarding"),
                wanted,
                found.map_or("unknown".into(), |f| f.to_string()),
            );
        }
        if wanted.enabled == Some(false) {
            let left: Vec<_> = found.addresses.iter().filter(|a| !is_fixed(&link.kind, a)).collect();
            let on = family == Family::Ipv6 && found.enabled;
            if on || !left.is_empty() {
                self.unmet(format!("{path}.enabled"), false, format!("true ({})", words(&left)));
            }
            return;
        }
        if family == Family::Ipv6 && wanted.enabled == Some(true) && !found.enabled {
            self.unmet(format!("{path}.enabled"), true, false);
        }
        for (field, said) in [("dhcp", wanted.dhcp), ("autoconf", wanted.autoconf)] {
            let listens = field == "autoconf" && found.accept_ra.is_some_and(|ra| ra != AcceptRa::Off);
            if said == Some(true) && !found.is_auto() && !listens {
                self.unmet(format!("{path}.{field}"), true, false);
            }
        }
        if family == Family::Ipv4 && wanted.dhcp == Some(false) && found.is_auto() {
            self.unmet(format!("{path}.dhcp"), false, true);
        }
        if let Some(list) = &wanted.addresses {
            self.addresses(path, list, found.addresses.as_slice(), &link.kind);
        }
    }

    /// The static addresses, in the order the kernel keeps such a list in.
    fn addresses(&mut self, path: &str, wanted: &[DesiredAddress], found: &[Address], kind: &LinkKind) {
        let asked = |a: &Address| wanted.iter().any(|w| w.ip == a.ip && w.prefix == a.prefix);
        let all = found;
        let theirs = |a: &Address| stays(a, all, wanted, kind);
        let order = match found.first().map(Address::family).or(wanted.first().map(|w| Family::of(&w.ip))) {
            Some(family) => arrange(found, wanted, kind, family),
            None => return,
        };
        let order: Vec<Address> = order.into_iter().filter(|a| asked(a)).collect();
        let found: Vec<Address> = found.iter().filter(|a| asked(a) || !theirs(a)).cloned().collect();
        // Order counts among those that Berth may move.
        let movable = |list: &[Address]| -> Vec<String> {
            let pinned = |a: &Address| found.iter().any(|f| f.same(a) && theirs(f));
            list.iter().filter(|a| !pinned(a)).map(ToString::to_string).collect()
        };
        let missing = order.iter().any(|a| !found.iter().any(|f| f.same(a)));
        if missing || movable(&order) != movable(&found) {
            self.unmet(format!("{path}.address"), words(&order), words(&found));
        }
    }
}
