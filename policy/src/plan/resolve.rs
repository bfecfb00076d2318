//! Which links a document means: by name, by alternative name, by MAC address. After this only kernel names.

use super::error::{Problem, ProblemKind};
use crate::state::{Desired, DesiredLink, Identifier, IfName, LinkState, Mac, Observed};
use std::collections::BTreeMap;

/// The document with every reference made a kernel name; what can't be resolved stays as it is.
pub(super) fn resolve(observed: &Observed, desired: &Desired, problems: &mut Vec<Problem>) -> Desired {
    let mut desired = desired.clone();
    let mut names = Names {
        observed,
        by_alt: BTreeMap::new(),
        labels: BTreeMap::new(),
    };
    for link in observed.links.values() {
        for alt in &link.alt_names {
            names.by_alt.insert(alt, &link.name);
        }
    }
    by_mac(&mut desired, &mut names, problems);
    let mut taken: BTreeMap<IfName, usize> = BTreeMap::new();
    for link in &mut desired.links {
        // A link made here may bear the alternative name of another; the kernel wouldn't let it.
        if link.identifier == Identifier::Name {
            link.name = names.of(&link.name);
        }
        match taken.insert(link.name.clone(), link.index) {
            Some(first) => problems.push(Problem {
                path: format!("interfaces[{}].name", link.index),
                kind: ProblemKind::MeantTwice {
                    name: link.name.clone(),
                    other: format!("interfaces[{first}]"),
                },
            }),
            None => rename(link, &names),
        }
    }
    for route in &mut desired.routes {
        names.swap(&mut route.dev);
    }
    for rule in &mut desired.rules {
        names.swap(&mut rule.iif);
    }
    desired
}

struct Names<'a> {
    observed: &'a Observed,
    by_alt: BTreeMap<&'a str, &'a IfName>,
    /// What a document calls a link that it found by MAC address.
    labels: BTreeMap<String, IfName>,
}

impl Names<'_> {
    /// The kernel's name wins, then the document's own label, then an alternative name.
    fn of(&self, name: &IfName) -> IfName {
        if self.observed.links.contains_key(name) {
            return name.clone();
        }
        let other = self
            .labels
            .get(name.as_str())
            .or_else(|| self.by_alt.get(name.as_str()).copied());
        other.unwrap_or(name).clone()
    }

    fn swap(&self, name: &mut Option<IfName>) {
        if let Some(name) = name {
            *name = self.of(name);
        }
    }
}

fn rename(link: &mut DesiredLink, names: &Names<'_>) {
    names.swap(&mut link.base);
    names.swap(&mut link.peer);
    names.swap(&mut link.copy_mac_from);
    if let Some(controller) = &mut link.controller {
        names.swap(controller);
    }
    if let Some(ports) = &mut link.ports {
        for entry in ports.list.iter_mut().flatten() {
            entry.name = names.of(&entry.name);
        }
        ports.config = std::mem::take(&mut ports.config)
            .into_iter()
            .map(|(n, o)| (names.of(&n), o))
            .collect();
    }
}

/// Permanent MAC first, then the current one, among links of the type that was said.
fn by_mac(desired: &mut Desired, names: &mut Names<'_>, problems: &mut Vec<Problem>) {
    if desired.links.iter().all(|l| l.identifier == Identifier::Name) {
        return;
    }
    let mut permanent: BTreeMap<Mac, Vec<&IfName>> = BTreeMap::new();
    let mut current: BTreeMap<Mac, Vec<&IfName>> = BTreeMap::new();
    for link in names.observed.links.values().filter(|l| !l.ignored) {
        for (index, mac) in [(&mut permanent, link.permanent_mac), (&mut current, link.mac)] {
            if let Some(mac) = mac {
                index.entry(mac).or_default().push(&link.name);
            }
        }
    }
    let observed = names.observed;
    desired.links.retain_mut(|link| {
        let Identifier::Mac(mac) = link.identifier else {
            return true;
        };
        let fits = |name: &&&IfName| {
            let found = observed.links.get(**name).map(|l| &l.kind);
            match (&link.kind, found) {
                (Some(wanted), Some(found)) => wanted.agrees(found),
                // Without a type a vlan or a bridge that borrowed the NIC's address must not be mistaken for it.
                (None, Some(found)) => {
                    !found.spec().base && found.spec().ports == crate::state::kind::PortStyle::None
                }
                _ => false,
            }
        };
        let pick = |index: &BTreeMap<Mac, Vec<&IfName>>| -> Vec<IfName> {
            index
                .get(&mac)
                .into_iter()
                .flatten()
                .filter(fits)
                .map(|n| (*n).clone())
                .collect()
        };
        let mut found = pick(&permanent);
        if found.is_empty() {
            found = pick(&current);
        }
        let path = format!("interfaces[{}].mac-address", link.index);
        match found.as_slice() {
            [one] => {
                names.labels.insert(link.name.to_string(), one.clone());
                link.name = one.clone();
                true
            }
            // What isn't there is absent already.
            [] if link.state == LinkState::Absent => false,
            [] => {
                problems.push(Problem {
                    path,
                    kind: ProblemKind::NoSuchMac { mac },
                });
                false
            }
            several => {
                let names = several.iter().map(ToString::to_string).collect();
                problems.push(Problem {
                    path,
                    kind: ProblemKind::AmbiguousMac { mac, names },
                });
                false
            }
        }
    });
}
