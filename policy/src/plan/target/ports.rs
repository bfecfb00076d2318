//! Controllers and ports: lists are exact, ports are pulled in, addresses move up.

use super::Merge;
use crate::plan::error::ProblemKind;
use crate::plan::memory::can_be_port;
use crate::state::kind::{PortStyle, VLAN_FILTERING};
use crate::state::{
    Desired, DesiredAddress, DesiredIp, DesiredLink, Family, IfName, Link, LinkKind, LinkState, OptName,
    OptValue, Port, PortConfig, PortEntry, Ports,
};
use std::collections::{BTreeMap, BTreeSet};

type Claims<'a> = BTreeMap<&'a IfName, (&'a IfName, String)>;

impl Merge<'_> {
    pub(super) fn ports(&mut self, desired: &Desired) {
        let gone: Vec<_> = self.removed.iter().cloned().collect();
        let mut holds = self.holds();
        for controller in &gone {
            self.release(holds.remove(controller).unwrap_or_default(), controller);
        }
        let mut claims = Claims::new();
        let present = |d: &&DesiredLink| matches!(d.state, LinkState::Up | LinkState::Down);
        for doc in desired.links.iter().filter(present) {
            if let Some(ports) = doc.ports.as_ref().filter(|_| self.state.links.contains_key(&doc.name)) {
                self.port_list(doc, ports, holds.get(&doc.name), &mut claims);
            }
        }
        for doc in desired.links.iter().filter(present) {
            self.own_controller(doc, &claims);
        }
        for doc in &desired.links {
            if let Some(ports) = &doc.ports {
                self.port_config(doc, ports);
            }
        }
        self.filtering(desired);
    }

    /// All that a port carries is known only as long as it stays where it is and nobody asks for something else.
    pub(super) fn void_vlans(&mut self) {
        for link in self.state.links.values_mut().filter(|link| link.vlans.is_some()) {
            let was = self.observed.links.get(&link.name);
            let same = |was: &Link| was.controller == link.controller && was.port.vlan == link.port.vlan;
            if link.kind != LinkKind::LinuxBridge && !was.is_some_and(same) {
                link.vlans = None;
            }
        }
    }

    /// The ports that each controller has, as observed.
    fn holds(&self) -> BTreeMap<IfName, Vec<IfName>> {
        let mut holds: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for link in self.observed.links.values() {
            if let Some(controller) = &link.controller {
                holds.entry(controller.clone()).or_default().push(link.name.clone());
            }
        }
        holds
    }

    fn release(&mut self, ports: Vec<IfName>, controller: &IfName) {
        for port in ports {
            if let Some(link) =
                self.state.links.get_mut(&port).filter(|l| l.controller.as_ref() == Some(controller))
            {
                link.controller = None;
                link.port = Port::default();
            }
        }
    }

    fn port_list<'d>(
        &mut self,
        doc: &'d DesiredLink,
        ports: &'d Ports,
        held: Option<&Vec<IfName>>,
        claims: &mut Claims<'d>,
    ) {
        let Some(list) = &ports.list else { return };
        let listed: BTreeSet<_> = list.iter().map(|e| &e.name).collect();
        if !ports.allow_extra {
            let extra = held.into_iter().flatten().filter(|p| !listed.contains(p)).cloned().collect();
            self.release(extra, &doc.name);
        }
        for (i, entry) in list.iter().enumerate() {
            let field = format!("{}.port[{i}]", section(doc, self));
            if let Some((first, _)) = claims.get(&entry.name) {
                let kind = ProblemKind::Overbooked { port: entry.name.clone(), first: (*first).clone() };
                self.link_problem(doc, &field, kind);
                continue;
            }
            claims.insert(&entry.name, (&doc.name, format!("interfaces[{}].{field}", doc.index)));
            // A card that is to be absent stays on the host, but not for use.
            let absent = self.docs.get(&entry.name).is_some_and(|d| d.state == LinkState::Absent);
            if absent || !self.state.links.contains_key(&entry.name) {
                let (controller, port) = (doc.name.clone(), entry.name.clone());
                self.link_problem(doc, &field, ProblemKind::UnknownPort { controller, port });
                continue;
            }
            if !self.can_be_port(&doc.name, &entry.name) {
                let (controller, port) = (doc.name.clone(), entry.name.clone());
                self.link_problem(doc, &field, ProblemKind::CantBePort { controller, port });
                continue;
            }
            self.attach(&doc.name, entry);
        }
    }

    /// Nothing can be its own port; the rest is as the kernel has it.
    fn can_be_port(&self, controller: &IfName, port: &IfName) -> bool {
        let kind = |name| self.state.links.get(name).map(|link: &Link| &link.kind);
        let fits = |(of, port): (&LinkKind, &LinkKind)| can_be_port(of.spec().ports, port);
        controller != port && kind(controller).zip(kind(port)).is_none_or(fits)
    }

    /// The entry whose list of ports has this one, and where.
    pub(super) fn listing(&self, port: &IfName) -> Option<(DesiredLink, String)> {
        self.docs.values().find_map(|doc| {
            let list = self.wanted(&doc.name)?.ports.as_ref()?.list.as_ref()?;
            let at = list.iter().position(|entry| entry.name == *port)?;
            Some(((*doc).clone(), format!("{}.port[{at}]", section(doc, self))))
        })
    }

    fn attach(&mut self, controller: &IfName, entry: &PortEntry) {
        // Ports come up with their controller unless their own entry says otherwise.
        let down = self.docs.get(&entry.name).is_some_and(|d| d.state == LinkState::Down);
        let Some(link) = self.state.links.get_mut(&entry.name) else {
            return;
        };
        if link.controller.as_ref() != Some(controller) {
            link.controller = Some(controller.clone());
            link.port = Port::default();
        }
        link.up |= !down && !link.ignored;
        link.port.options.extend(entry.options.iter().map(|(k, v)| (*k, v.clone())));
        if let Some(vlan) = &entry.vlan {
            link.port.vlan = vlan.clone();
        }
    }

    /// A port's own word on its controller; lists have been heard.
    fn own_controller(&mut self, doc: &DesiredLink, claims: &Claims<'_>) {
        let Some(wanted) = &doc.controller else { return };
        let listed = claims.get(&doc.name);
        match (wanted, listed) {
            (Some(wanted), Some((by, _))) if wanted == *by => {}
            (_, Some((by, path))) => {
                let kind = ProblemKind::Listed { controller: (*by).clone(), path: path.clone() };
                self.link_problem(doc, "controller", kind);
            }
            (None, None) => {
                if let Some(link) = self.state.links.get_mut(&doc.name) {
                    link.controller = None;
                    link.port = Port::default();
                }
            }
            (Some(wanted), None) => self.join(doc, wanted),
        }
    }

    fn join(&mut self, doc: &DesiredLink, wanted: &IfName) {
        let Some(controller) = self.state.links.get(wanted) else {
            self.link_problem(doc, "controller", ProblemKind::UnknownController { name: wanted.clone() });
            return;
        };
        let kind = controller.kind.clone();
        let ignored = controller.ignored;
        let already = self.state.links.get(&doc.name).is_some_and(|l| l.controller.as_ref() == Some(wanted));
        let exact = self
            .docs
            .get(wanted)
            .and_then(|d| d.ports.as_ref())
            .filter(|p| p.list.is_some() && !p.allow_extra);
        if already && (ignored || exact.is_none()) {
            return;
        }
        if ignored || kind.spec().ports == PortStyle::None {
            let kind = ProblemKind::NotAController { name: wanted.clone(), kind: kind.to_string() };
            self.link_problem(doc, "controller", kind);
        } else if exact.is_some() {
            let (controller, port) = (wanted.clone(), doc.name.clone());
            self.link_problem(doc, "controller", ProblemKind::NotListed { controller, port });
        } else {
            let entry = PortEntry { name: doc.name.clone(), options: Default::default(), vlan: None };
            self.attach(wanted, &entry);
        }
    }

    fn port_config(&mut self, doc: &DesiredLink, ports: &Ports) {
        for (name, PortConfig { index, options }) in &ports.config {
            let port = self.state.links.get_mut(name).filter(|l| l.controller.as_ref() == Some(&doc.name));
            match port {
                Some(port) => port.port.options.extend(options.iter().map(|(k, v)| (*k, v.clone()))),
                None => {
                    let field = format!("{}.ports-config[{index}]", section(doc, self));
                    self.link_problem(doc, &field, ProblemKind::NotAPort { port: name.clone() });
                }
            }
        }
        self.drop_pointless_of_ports(doc, ports);
    }

    /// As for links: options of ports that mean nothing under this controller.
    fn drop_pointless_of_ports(&mut self, doc: &DesiredLink, ports: &Ports) {
        let Some(controller) = self.state.links.get(&doc.name) else { return };
        let (spec, options) = (controller.kind.spec(), controller.options.clone());
        let why = |name: &OptName| spec.port_option(name.as_str())?.pointless(&options);
        let mut refused = Vec::new();
        for port in self.state.links.values_mut().filter(|l| l.controller.as_ref() == Some(&doc.name)) {
            let asked = ports.config.get(&port.name);
            port.port.options.retain(|name, _| match why(name) {
                Some(why) => {
                    let asked = asked.filter(|asked| asked.options.contains_key(name));
                    refused.extend(asked.map(|asked| (asked.index, *name, why)));
                    false
                }
                None => true,
            });
        }
        let section = section(doc, self);
        for (index, name, why) in refused {
            let field = format!("{section}.ports-config[{index}].{}", name.as_str());
            self.link_problem(doc, &field, ProblemKind::Pointless(why));
        }
    }

    /// A bridge looks at VLAN tags if and only if a port has VLANs; decided anew where the document speaks of
    /// VLANs.
    fn filtering(&mut self, desired: &Desired) {
        let speaks = |doc: &&DesiredLink| {
            let list = doc.ports.as_ref().and_then(|p| p.list.as_ref());
            list.is_some_and(|l| l.iter().any(|e| e.vlan.is_some()))
        };
        let bridges: BTreeSet<_> = desired.links.iter().filter(speaks).map(|d| d.name.clone()).collect();
        if bridges.is_empty() {
            return;
        }
        let with_vlans: BTreeSet<_> = self
            .state
            .links
            .values()
            .filter(|l| !l.port.vlan.is_default())
            .filter_map(|l| l.controller.clone())
            .collect();
        for name in bridges {
            let on = with_vlans.contains(&name);
            if let Some(bridge) = self.state.links.get_mut(&name)
                && bridge.filters_vlans() != on
            {
                bridge.options.insert(VLAN_FILTERING.name(), OptValue::Bool(on));
            }
        }
    }

    /// A port of a bridge or bond holds no addresses: what it held when it became one goes, and the document
    /// can't ask for any. Runs after addresses were merged.
    pub(super) fn ports_without_ip(&mut self, desired: &Desired) {
        for doc in &desired.links {
            // The kernel's own address is there already, asked for or not.
            let found = self.observed.links.get(&doc.name).map_or(&[][..], |l| &l.ipv6.addresses);
            let own = |a: &DesiredAddress| found.iter().any(|f| f.is_kernel_link_local() && f.ip == a.ip);
            let asks = |ip: &DesiredIp| {
                let addresses = ip.addresses.as_ref().is_some_and(|list| !list.iter().all(own));
                addresses || ip.dhcp == Some(true) || ip.autoconf == Some(true)
            };
            let Some((controller, kind)) = self.addressless(&doc.name) else {
                continue;
            };
            let held =
                self.observed.links.get(&doc.name).and_then(|l| l.controller.as_ref()) == Some(&controller);
            for family in Family::BOTH {
                // Said of a port that has them already, it is what was shown.
                let same = held && self.same_addresses(&doc.name, family);
                if doc.ip(family).is_some_and(asks) && !same {
                    let (port, controller) = (doc.name.clone(), controller.clone());
                    self.link_problem(doc, family.as_str(), ProblemKind::IpOnPort { port, controller, kind });
                }
            }
        }
        let fresh: Vec<_> = self
            .state
            .links
            .values()
            .filter(|l| l.controller.is_some() && !l.ignored)
            .filter(|l| self.observed.links.get(&l.name).is_some_and(|o| o.controller != l.controller))
            .map(|l| l.name.clone())
            .collect();
        for port in fresh {
            self.strip(&port);
        }
    }

    fn same_addresses(&self, name: &IfName, family: Family) -> bool {
        let of =
            |state: &crate::state::Observed| state.links.get(name).map(|l| l.ip(family).addresses.clone());
        of(self.observed) == of(&self.state)
    }

    /// The controller of a port that may hold no addresses.
    fn addressless(&self, port: &IfName) -> Option<(IfName, &'static str)> {
        let controller = self.state.links.get(port)?.controller.as_ref()?;
        let kind = &self.state.links.get(controller)?.kind;
        if kind.ports_have_ip() { None } else { Some((controller.clone(), kind.spec_name())) }
    }

    fn strip(&mut self, port: &IfName) {
        let Some((controller, _)) = self.addressless(port) else {
            return;
        };
        let said_off = self.docs.get(port).and_then(|d| d.ipv4.as_ref());
        let off = said_off.is_some_and(|ip| ip.enabled == Some(false) || ip.dhcp == Some(false));
        let Some(link) = self.state.links.get_mut(port) else {
            return;
        };
        let renewed = link.ipv4.addresses.iter().any(|a| a.is_dynamic());
        link.ipv4.addresses.clear();
        link.ipv4.dhcp = false;
        link.ipv6.addresses.retain(|a| a.is_foreign());
        if renewed && !off {
            let path =
                self.docs.get(&controller).map_or(String::new(), |d| format!("interfaces[{}]", d.index));
            let path = self.docs.get(port).map_or(path, |d| format!("interfaces[{}]", d.index));
            self.problem(
                path,
                ProblemKind::DynamicOnPort { port: port.clone(), controller: controller.clone() },
            );
        }
        self.moved.insert(port.clone(), controller);
    }
}

fn section(doc: &DesiredLink, merge: &Merge<'_>) -> &'static str {
    let kind = merge.state.links.get(&doc.name).map(|l| l.kind.clone()).or(doc.kind.clone());
    kind.and_then(|k| k.spec().sections.first().copied()).unwrap_or("ports")
}
