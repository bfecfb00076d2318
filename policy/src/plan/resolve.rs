//! Which links a document means: by name, by alternative name, by MAC address. After this only kernel names.

use super::error::{Problem, ProblemKind};
use crate::state::kind::PortStyle;
use crate::state::{AltName, Desired, DesiredLink, Identifier, IfName, LinkKind, LinkState, Mac, Observed};
use std::collections::BTreeMap;

/// The document with every reference made a kernel name; what can't be resolved stays as it is.
pub(super) fn resolve(observed: &Observed, desired: &Desired, problems: &mut Vec<Problem>) -> Desired {
    let mut desired = desired.clone();
    let mut names = Names { observed, by_alt: BTreeMap::new(), labels: BTreeMap::new() };
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
            let known = names.of(&link.name);
            let said = std::mem::replace(&mut link.name, known);
            // Without it nobody could tell afterwards which link was meant.
            let own = |alt: &AltName| alt.absent && alt.name == said.as_str();
            if said != link.name && link.alt_names.iter().any(own) {
                let path = format!("interfaces[{}].alt-names", link.index);
                let kind = ProblemKind::OwnName { alt: said.to_string(), name: link.name.clone() };
                problems.push(Problem { path, kind });
            }
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
        let other = self.labels.get(name.as_str()).or_else(|| self.by_alt.get(name.as_str()).copied());
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
        ports.config =
            std::mem::take(&mut ports.config).into_iter().map(|(n, o)| (names.of(&n), o)).collect();
    }
}

/// Links by MAC address.
struct Macs<'a> {
    observed: &'a Observed,
    permanent: BTreeMap<Mac, Vec<&'a IfName>>,
    current: BTreeMap<Mac, Vec<&'a IfName>>,
}

impl<'a> Macs<'a> {
    fn of(observed: &'a Observed) -> Self {
        let mut macs = Self { observed, permanent: BTreeMap::new(), current: BTreeMap::new() };
        for link in observed.links.values().filter(|l| !l.ignored) {
            for (index, mac) in [(&mut macs.permanent, link.permanent_mac), (&mut macs.current, link.mac)] {
                if let Some(mac) = mac {
                    index.entry(mac).or_default().push(&link.name);
                }
            }
        }
        macs
    }

    /// Permanent MAC first, then the current one, among links of the kind that was said.
    fn find(&self, mac: Mac, kind: Option<&LinkKind>) -> Vec<&'a IfName> {
        let pick = |index: &BTreeMap<Mac, Vec<&'a IfName>>| -> Vec<&'a IfName> {
            let all = index.get(&mac).into_iter().flatten().copied();
            all.filter(|name| self.fits(name, kind)).collect()
        };
        let permanent = pick(&self.permanent);
        if permanent.is_empty() { pick(&self.current) } else { permanent }
    }

    fn fits(&self, name: &IfName, kind: Option<&LinkKind>) -> bool {
        let Some(found) = self.observed.links.get(name).map(|l| &l.kind) else {
            return false;
        };
        match kind {
            Some(wanted) => wanted.agrees(found),
            // Without a kind a vlan or a bridge that borrowed the NIC's address must not be mistaken for it.
            None => !found.spec().base && found.spec().ports == PortStyle::None,
        }
    }
}

/// Gives entries that name a MAC address the name of the link that has it; drops those that mean none.
fn by_mac(desired: &mut Desired, names: &mut Names<'_>, problems: &mut Vec<Problem>) {
    if desired.links.iter().all(|l| l.identifier == Identifier::Name) {
        return;
    }
    let macs = Macs::of(names.observed);
    desired.links.retain_mut(|link| {
        let Identifier::Mac(mac) = link.identifier else {
            return true;
        };
        let kind = match macs.find(mac, link.kind.as_ref()).as_slice() {
            [one] => {
                names.labels.insert(link.name.to_string(), (*one).clone());
                link.name = (*one).clone();
                return true;
            }
            // What isn't there is absent already.
            [] if link.state == LinkState::Absent => return false,
            [] => ProblemKind::NoSuchMac { mac },
            several => {
                let names = several.iter().map(ToString::to_string).collect();
                ProblemKind::AmbiguousMac { mac, names }
            }
        };
        problems.push(Problem { path: format!("interfaces[{}].mac-address", link.index), kind });
        false
    });
}
