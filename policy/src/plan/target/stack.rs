//! Links on links: orphans go with what they sit on, nothing sits on itself, MTUs fit.

use super::Merge;
use crate::plan::error::ProblemKind;
use crate::plan::memory::follows;
use crate::plan::order::{Cycle, lowest_first};
use crate::state::{Desired, IfName, LinkKind};

impl Merge<'_> {
    pub(super) fn stack(&mut self) {
        self.orphans();
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

    /// What sits on a link that goes, goes too, unless the document wants it.
    fn orphans(&mut self) {
        let mut missing: Vec<(IfName, IfName)> = Vec::new();
        let mut above: std::collections::BTreeMap<&IfName, Vec<&IfName>> = Default::default();
        for link in self.state.links.values() {
            if let Some(base) = &link.base {
                above.entry(base).or_default().push(&link.name);
                let observed =
                    self.observed.links.get(&link.name).and_then(|l| l.base.as_ref()) == Some(base);
                // A base that was unknown when it was observed (another namespace) is nobody's business.
                let unseen = observed && !self.observed.links.contains_key(base);
                if !self.state.links.contains_key(base) && !self.removed.contains(base) && !unseen {
                    missing.push((link.name.clone(), base.clone()));
                }
            }
        }
        let mut going: Vec<IfName> = self.removed.iter().cloned().collect();
        let mut orphans = Vec::new();
        while let Some(name) = going.pop() {
            for upper in above.get(&name).into_iter().flatten() {
                orphans.push(((*upper).clone(), name.clone()));
                going.push((*upper).clone());
            }
        }
        for (name, base) in orphans {
            if let Some(doc) = self.wanted(&name).cloned() {
                let section = doc_section(&self.state.links.get(&name).map(|l| l.kind.clone()));
                self.link_problem(
                    &doc,
                    &format!("{section}.base-iface"),
                    ProblemKind::BaseAbsent { base },
                );
            } else {
                let port_of: Vec<_> = self.state.links.remove(&name).into_iter().collect();
                for link in port_of
                    .iter()
                    .filter(|l| l.kind.spec().ports != crate::state::kind::PortStyle::None)
                {
                    for port in self
                        .state
                        .links
                        .values_mut()
                        .filter(|p| p.controller.as_ref() == Some(&link.name))
                    {
                        port.controller = None;
                    }
                }
                self.removed.insert(name);
            }
        }
        for (name, base) in missing {
            let path = match self.docs.get(&name) {
                Some(doc) => {
                    let section = doc_section(&self.state.links.get(&name).map(|l| l.kind.clone()));
                    format!("interfaces[{}].{section}.base-iface", doc.index)
                }
                None => format!("interfaces ({name})"),
            };
            self.problem(path, ProblemKind::UnknownBase { base });
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
            let (Some(mtu), Some(link)) = (doc.mtu, self.state.links.get(&doc.name)) else {
                continue;
            };
            let observed = self.observed.links.get(&doc.name);
            if self.wanted(&doc.name).is_none() || observed.and_then(|l| l.mtu) == Some(mtu) {
                continue;
            }
            // A maximum of 0 means that there is none.
            let (min, max) = (
                link.min_mtu.unwrap_or(0),
                link.max_mtu.filter(|m| *m > 0).unwrap_or(u32::MAX),
            );
            let kind = if mtu < min || mtu > max {
                ProblemKind::MtuRange {
                    name: doc.name.clone(),
                    mtu,
                    min,
                    max,
                }
            } else if mtu < 1280 && link.ipv6.enabled {
                ProblemKind::MtuIpv6 { mtu }
            } else {
                continue;
            };
            self.link_problem(doc, "mtu", kind);
        }
        let Ok(order) = lowest_first(&self.state) else {
            return;
        };
        for name in order {
            let Some(link) = self.state.links.get(&name).filter(|l| l.kind == LinkKind::Vlan) else {
                continue;
            };
            let Some(base) = link.base.as_ref().and_then(|b| self.state.links.get(b)) else {
                continue;
            };
            let (Some(mtu), Some(base_mtu)) = (link.mtu, base.mtu) else {
                continue;
            };
            if mtu <= base_mtu {
                continue;
            }
            let base = base.name.clone();
            match self.docs.get(&name).copied().filter(|d| d.mtu.is_some()) {
                Some(doc) => self.link_problem(doc, "mtu", ProblemKind::MtuBase { mtu, base, base_mtu }),
                // The kernel shrinks vlans along with what they sit on.
                None => {
                    if let Some(link) = self.state.links.get_mut(&name) {
                        link.mtu = Some(base_mtu);
                    }
                }
            }
        }
    }
}

fn doc_section(kind: &Option<LinkKind>) -> &'static str {
    kind.as_ref()
        .and_then(|k| k.spec().sections.first().copied())
        .unwrap_or("link")
}
