//! Links on links: orphans go with what they sit on, nothing sits on itself, MTUs fit.

use super::Merge;
use crate::plan::diff::is_another;
use crate::plan::error::{Problem, ProblemKind};
use crate::plan::memory::{fits_base, follows, least_of_ports};
use crate::plan::order::{Cycle, lowest_first};
use crate::state::kind::PortStyle;
use crate::state::option::OptValue;
use crate::state::{Desired, DesiredLink, IfName, Link, LinkKind, LinkState};
use std::collections::BTreeMap;

/// The smallest MTU that IPv6 works with.
const IPV6_LEAST: u32 = 1280;

impl Merge<'_> {
    pub(super) fn stack(&mut self) {
        self.taken_along();
        self.orphans();
        self.bases();
        self.mac_vlans();
        self.sits_well();
        match lowest_first(&self.state) {
            Ok(order) => self.follow_down(&order),
            Err(Cycle(names)) => {
                let doc = names.iter().find_map(|n| self.docs.get(n));
                let path = doc.map_or("interfaces".into(), |d| format!("interfaces[{}]", d.index));
                let names = names.iter().map(ToString::to_string).collect();
                self.problem(path, ProblemKind::Cycle { names });
            }
        }
    }

    /// Links that are not Berth's to make go with what they sit on, be that deleted or made anew. Only if the document
    /// says so of both: nobody brings them back.
    fn taken_along(&mut self) {
        let another = |name: &&IfName| {
            let pair = self.observed.links.get(*name).zip(self.state.links.get(*name));
            pair.is_some_and(|(now, wanted)| now.kind.is_virtual() && is_another(now, wanted))
        };
        let anew = self.observed.links.keys().filter(another);
        let going: Vec<&IfName> = self.removed.iter().chain(anew).collect();
        let along: BTreeMap<IfName, IfName> = self.above(going).into_iter().collect();
        for link in self.observed.links.values().filter(|link| link.ignored) {
            let says_absent = self.docs.get(&link.name).copied().filter(|doc| doc.state == LinkState::Absent);
            let (upper, kind) = (link.name.clone(), link.kind.to_string());
            match (along.get(&link.name).cloned(), says_absent) {
                (Some(_), Some(_)) => {
                    self.state.links.remove(&link.name);
                    self.removed.insert(upper);
                }
                (Some(base), None) => {
                    let doc = self.docs.get(&base);
                    let path = doc.map_or("interfaces".into(), |d| format!("interfaces[{}]", d.index));
                    self.problem(path, ProblemKind::TakenAlong { upper, kind, base });
                }
                (None, Some(doc)) if link.shrinks_with.is_some() => {
                    self.link_problem(doc, "state", ProblemKind::Ignored { name: upper, kind });
                }
                (None, _) => {}
            }
        }
    }

    /// What sits on a link that goes, goes too, unless the document wants it.
    fn orphans(&mut self) {
        for (name, base) in self.above_removed() {
            let Some(link) = self.state.links.get(&name) else {
                continue;
            };
            if let Some(doc) = self.wanted(&name).cloned() {
                let field = format!("{}.base-iface", section(link));
                self.link_problem(&doc, &field, ProblemKind::BaseAbsent { base });
                continue;
            }
            if let Some((doc, field)) = self.listing(&name) {
                self.link_problem(&doc, &field, ProblemKind::PortGoes { port: name, base });
                continue;
            }
            let has_ports = link.kind.spec().ports != PortStyle::None;
            self.state.links.remove(&name);
            let ports =
                self.state.links.values_mut().filter(|p| has_ports && p.controller.as_ref() == Some(&name));
            ports.for_each(|port| port.controller = None);
            self.removed.insert(name);
        }
    }

    /// All that sits on what is removed, however high, each with what it sits on; but for what is not Berth's.
    fn above_removed(&self) -> Vec<(IfName, IfName)> {
        let above = self.above(self.removed.iter().collect());
        let ours = |name: &IfName| self.state.links.get(name).is_some_and(|link| !link.ignored);
        above.into_iter().filter(|(upper, _)| ours(upper)).collect()
    }

    /// All that sits on these links, however high, each with what it sits on.
    fn above<'s>(&'s self, mut going: Vec<&'s IfName>) -> Vec<(IfName, IfName)> {
        let mut above: BTreeMap<&IfName, Vec<&IfName>> = BTreeMap::new();
        for link in self.state.links.values() {
            if let Some(base) = link.sits_on() {
                above.entry(base).or_default().push(&link.name);
            }
        }
        let mut found = Vec::new();
        while let Some(name) = going.pop() {
            for upper in above.get(name).into_iter().flatten() {
                found.push(((*upper).clone(), name.clone()));
                going.push(upper);
            }
        }
        found
    }

    /// A base has to be there; one that was unknown when it was observed (another namespace) is nobody's business.
    fn bases(&mut self) {
        let missing = |link: &&Link| {
            let Some(base) = &link.base else { return false };
            let was = self.observed.links.get(&link.name).and_then(|l| l.base.as_ref()) == Some(base);
            let unseen = was && !self.observed.links.contains_key(base);
            !self.state.links.contains_key(base) && !self.removed.contains(base) && !unseen
        };
        let missing: Vec<Link> = self.state.links.values().filter(missing).cloned().collect();
        for link in missing {
            let path = match self.docs.get(&link.name) {
                Some(doc) => format!("interfaces[{}].{}.base-iface", doc.index, section(&link)),
                None => format!("interfaces ({})", link.name),
            };
            self.problems
                .extend(link.base.map(|base| Problem { path, kind: ProblemKind::UnknownBase { base } }));
        }
    }

    /// What the kernel lets nobody make: anything on a loopback, and a second vlan of one id on one link.
    fn sits_well(&mut self) {
        let mut vlans: BTreeMap<_, Vec<&IfName>> = BTreeMap::new();
        for link in self.state.links.values().filter(|link| link.kind == LinkKind::Vlan) {
            vlans.entry((&link.base, tag(link))).or_default().push(&link.name);
        }
        let mut wrong = Vec::new();
        for doc in self.docs.values().copied() {
            let Some(link) = self.wanted(&doc.name).and_then(|doc| self.state.links.get(&doc.name)) else {
                continue;
            };
            let Some(base) = &link.base else { continue };
            if self.state.links.get(base).is_some_and(|base| base.kind == LinkKind::Loopback) {
                let field = format!("{}.base-iface", section(link));
                wrong.push((doc, field, ProblemKind::OnLoopback { base: base.clone() }));
            }
            let is_new = self.observed.links.get(&link.name).is_none_or(|was| is_another(was, link));
            let same = vlans.get(&(&link.base, tag(link))).filter(|_| is_new && link.kind == LinkKind::Vlan);
            if let Some(other) = same.into_iter().flatten().find(|other| **other != &link.name) {
                let kind = ProblemKind::VlanTaken { other: (*other).clone(), base: base.clone() };
                wrong.push((doc, "vlan.id".to_owned(), kind));
            }
        }
        for (doc, field, kind) in wrong {
            self.link_problem(doc, &field, kind);
        }
    }

    /// The kernel takes a mac-vlan for a base by what that one sits on, and the result is not what was asked for.
    fn mac_vlans(&mut self) {
        let asked = self.docs.values().filter(|doc| doc.base.is_some());
        let mut found = Vec::new();
        for doc in asked.copied() {
            let Some(link) = self.state.links.get(&doc.name).filter(|l| l.kind == LinkKind::MacVlan) else {
                continue;
            };
            let base = link.base.as_ref().and_then(|base| self.state.links.get(base));
            let Some(base) = base.filter(|base| base.kind == LinkKind::MacVlan) else { continue };
            if let Some(lower) = base.base.clone() {
                found.push((doc, ProblemKind::BaseMacVlan { base: base.name.clone(), lower }));
            }
        }
        for (doc, kind) in found {
            self.link_problem(doc, "mac-vlan.base-iface", kind);
        }
    }

    /// A vlan can't be up on a link that is down.
    fn follow_down(&mut self, order: &[IfName]) {
        for name in order {
            let Some(link) = self.state.links.get(name).filter(|l| l.up && follows(l)) else {
                continue;
            };
            let Some(base) = link.base.as_ref().and_then(|b| self.state.links.get(b)) else {
                continue;
            };
            if base.up || base.ignored {
                continue;
            }
            let base = base.name.clone();
            if let Some(doc) = self.wanted(name).cloned() {
                self.link_problem(&doc, "state", ProblemKind::BaseDown { base });
            } else if let Some(link) = self.state.links.get_mut(name) {
                link.up = false;
            }
        }
    }

    pub(super) fn mtus(&mut self, desired: &Desired) {
        for doc in &desired.links {
            self.ipv6_fits(doc);
            let (Some(mtu), Some(link)) = (doc.mtu, self.state.links.get(&doc.name)) else {
                continue;
            };
            let observed = self.observed.links.get(&doc.name);
            if self.wanted(&doc.name).is_none() || observed.and_then(|l| l.mtu) == Some(mtu) {
                continue;
            }
            // A maximum of 0 means that there is none.
            let (min, max) = (link.min_mtu.unwrap_or(0), link.max_mtu.filter(|m| *m > 0).unwrap_or(u32::MAX));
            let kind = if mtu < min || mtu > max {
                ProblemKind::MtuRange { name: doc.name.clone(), mtu, min, max }
            } else if mtu < IPV6_LEAST && link.ipv6.enabled {
                ProblemKind::MtuIpv6 { mtu }
            } else {
                continue;
            };
            self.link_problem(doc, "mtu", kind);
        }
        if let Ok(order) = lowest_first(&self.state) {
            self.mtus_above(&order);
        }
    }

    /// IPv6 can't be switched on where the MTU, which stays, is too small: the kernel has no switch for it there.
    fn ipv6_fits(&mut self, doc: &DesiredLink) {
        let (Some(link), Some(observed)) =
            (self.state.links.get(&doc.name), self.observed.links.get(&doc.name))
        else {
            return;
        };
        let stays = link.mtu == observed.mtu;
        let comes = link.ipv6.enabled && !observed.ipv6.enabled && self.wanted(&doc.name).is_some();
        if let Some(mtu) = link.mtu.filter(|mtu| *mtu < IPV6_LEAST && stays && comes) {
            let kind = ProblemKind::Ipv6Mtu { name: doc.name.clone(), mtu };
            self.link_problem(doc, "ipv6.enabled", kind);
        }
    }

    /// What a new bridge will have if nobody says.
    fn mtu_to_come(&self, link: &Link) -> Option<u32> {
        least_of_ports(&self.state, &link.name).filter(|_| link.kind == LinkKind::LinuxBridge)
    }

    /// A vlan or macvlan is never larger than what it sits on.
    fn mtus_above(&mut self, order: &[IfName]) {
        for name in order {
            let Some(link) = self.state.links.get(name).filter(|l| fits_base(l)) else {
                continue;
            };
            let Some(base) = link.base.as_ref().and_then(|b| self.state.links.get(b)) else {
                continue;
            };
            let (Some(mtu), Some(base_mtu)) = (link.mtu, base.mtu.or_else(|| self.mtu_to_come(base))) else {
                continue;
            };
            if mtu <= base_mtu {
                continue;
            }
            let base = base.name.clone();
            match self.docs.get(name).copied().filter(|d| d.mtu.is_some()) {
                Some(doc) => self.link_problem(doc, "mtu", ProblemKind::MtuBase { mtu, base, base_mtu }),
                // The kernel shrinks them along with what they sit on.
                None => {
                    if let Some(link) = self.state.links.get_mut(name) {
                        link.mtu = Some(base_mtu);
                    }
                }
            }
        }
    }
}

/// Of a vlan: its id, and the protocol if it is not the usual one.
fn tag(link: &Link) -> Vec<&OptValue> {
    let usual = |value: &OptValue| value.to_string() == "802.1q";
    let of =
        |name: &str| link.options.iter().find(|(option, _)| option.as_str() == name).map(|(_, value)| value);
    of("id").into_iter().chain(of("protocol").filter(|value| !usual(value))).collect()
}

fn section(link: &Link) -> &'static str {
    link.kind.spec().sections.first().copied().unwrap_or("link")
}
