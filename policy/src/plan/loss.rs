//! What a plan takes away without a step that says so: the kernel's doing, and not put back.
//!
//! A link that goes or goes down, a family that is switched off, a last address: each takes routes along, some take
//! addresses. Who reads a plan sees the step and not that. So the state before is compared with the state after all
//! steps, which the walk has in memory anyway; whatever is missing and is named by no step is a loss. Rules are not
//! among them: the kernel keeps a rule when the link it names goes. Nor are link-local addresses that the kernel makes
//! by itself.
//!
//! One thing is said whoever does it, a step or the kernel: that a host which had a default route is left without.
//!
//! Cost: one comparison per link; n log n in routes, and only if routes changed. Nothing where there are no steps.

use super::step::Step;
use crate::state::route::MAIN_TABLE;
use crate::state::{
    Address, Family, IfName, Kept, KeptKind, Link, LinkKind, Observed, Route, RouteKey, RouteType,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

/// Something that is gone after a plan though none of its steps names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "loss", rename_all = "kebab-case")]
pub enum Loss {
    Address {
        link: IfName,
        address: Address,
    },
    /// With the next hops that are gone, where others of it stay.
    Route {
        route: Route,
    },
    /// A link that nobody can make again: no revert brings it back.
    Link {
        link: IfName,
        kind: LinkKind,
    },
    /// A link that is deleted and made again, with all but this.
    Without {
        link: IfName,
        what: String,
    },
    /// What no document has words for.
    Kept {
        kind: KeptKind,
        words: String,
    },
    /// The main table had a default route and then has none: whatever is not next door can't be reached.
    LastDefaultRoute {
        family: Family,
    },
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Address { link, address } => write!(f, "address {address} of {link}"),
            Loss::Route { route } => write!(f, "route {route}"),
            Loss::Link { link, kind: LinkKind::Veth } => {
                write!(f, "{link} can't be made again: its other end is in another network namespace")
            }
            Loss::Link { link, kind } if kind.is_virtual() => {
                write!(f, "{link} can't be made again: what it sits on is gone")
            }
            Loss::Link { link, kind } => {
                write!(f, "{link} is gone, and a link of type {kind} is not Berth's to make")
            }
            Loss::Without { link, what } => write!(f, "{link} is made again, without its {what}"),
            Loss::Kept { kind, words } => write!(f, "{} {words}", kind.as_str()),
            Loss::LastDefaultRoute { family } => write!(f, "no {family} default route is left"),
        }
    }
}

pub(super) fn losses(before: &Observed, after: &Observed, steps: &[Step]) -> Vec<Loss> {
    let mut losses = for_good(steps, before, after);
    losses.extend(deleted(steps).filter_map(|name| before.links.get(name)).flat_map(|link| {
        after.links.get(&link.name).map(|again| without(link, Some(again))).unwrap_or_default()
    }));
    losses.extend(addresses(before, after));
    let routes_changed = before.routes != after.routes;
    if routes_changed {
        losses.extend(routes(&before.routes, &after.routes));
    }
    losses.extend(kept(&before.kept, &after.kept));
    if !losses.is_empty() {
        let said = Said::by(steps);
        losses.retain(|loss| !said.names(loss));
    }
    if routes_changed {
        let left = |family: &Family| has_default(before, *family) && !has_default(after, *family);
        let bare = Family::BOTH.into_iter().filter(left);
        losses.extend(bare.map(|family| Loss::LastDefaultRoute { family }));
    }
    losses
}

/// Whether a link that is gone could be made: not a card, nor one end of a pair whose other end is elsewhere.
pub(super) fn can_be_made(link: &Link) -> bool {
    link.kind.is_virtual() && (link.kind != LinkKind::Veth || link.peer.is_some())
}

/// Said although a step names them: who deletes one should know that there is no way back. And links that are not Berth's
/// to delete, and go with what they sit on.
fn for_good(steps: &[Step], before: &Observed, after: &Observed) -> Vec<Loss> {
    let deleted = deleted(steps).filter_map(|name| before.links.get(name));
    let along = before.links.values().filter(|link| !after.links.contains_key(&link.name) && link.ignored);
    let gone = deleted.chain(along).filter(|link| !can_be_made(link));
    gone.map(|link| Loss::Link { link: link.name.clone(), kind: link.kind.clone() }).collect()
}

fn deleted(steps: &[Step]) -> impl Iterator<Item = &IfName> {
    steps.iter().filter_map(|step| match step {
        Step::DeleteLink { link, .. } => Some(link),
        _ => None,
    })
}

/// What a link had and, made again, hasn't.
pub(super) fn without(before: &Link, now: Option<&Link>) -> Vec<Loss> {
    let has = |what: &&String| now.is_some_and(|now| now.unkept.contains(what));
    let gone = before.unkept.iter().filter(|what| !has(what)).cloned();
    gone.map(|what| Loss::Without { link: before.name.clone(), what }).collect()
}

fn addresses(before: &Observed, after: &Observed) -> Vec<Loss> {
    let mut out = Vec::new();
    for link in before.links.values() {
        for family in Family::BOTH {
            let had = &link.ip(family).addresses;
            let has = after.links.get(&link.name).map_or(&[][..], |l| l.ip(family).addresses.as_slice());
            if had == has {
                continue;
            }
            let gone = |a: &&Address| !a.is_kernel_link_local() && !has.iter().any(|b| b.same(a));
            out.extend(
                had.iter()
                    .filter(gone)
                    .map(|a| Loss::Address { link: link.name.clone(), address: a.clone() }),
            );
        }
    }
    out
}

fn routes(before: &[Route], after: &[Route]) -> Vec<Loss> {
    let mut left: BTreeMap<RouteKey, Vec<&Route>> = BTreeMap::new();
    for route in after {
        left.entry(route.key()).or_default().push(route);
    }
    let mut out = Vec::new();
    for route in before {
        let Some(same) = left.get(&route.key()) else {
            out.push(Loss::Route { route: route.clone() });
            continue;
        };
        let mut gone = route.clone();
        gone.next_hops.retain(|hop| !same.iter().flat_map(|r| &r.next_hops).any(|h| h.is_same_way(hop)));
        if !gone.next_hops.is_empty() {
            out.push(Loss::Route { route: gone });
        }
    }
    out
}

fn kept(before: &[Kept], after: &[Kept]) -> Vec<Loss> {
    if before == after {
        return Vec::new();
    }
    let left: BTreeSet<&Kept> = after.iter().collect();
    let gone = before.iter().filter(|kept| !left.contains(kept));
    gone.map(|kept| Loss::Kept { kind: kept.kind, words: kept.words.clone() }).collect()
}

fn has_default(state: &Observed, family: Family) -> bool {
    let is_default =
        |r: &Route| r.destination.prefix_len() == 0 && r.table == MAIN_TABLE && r.kind == RouteType::Unicast;
    state.routes.iter().any(|r| r.family() == family && is_default(r))
}

/// What steps speak of.
#[derive(Default)]
struct Said<'a> {
    deleted: BTreeSet<(&'a IfName, IpAddr, u8)>,
    /// On whatever link: an address that moves is not lost.
    added: BTreeSet<IpAddr>,
    routes: BTreeSet<RouteKey>,
}

impl<'a> Said<'a> {
    fn by(steps: &'a [Step]) -> Self {
        let mut said = Self::default();
        for step in steps {
            match step {
                Step::DeleteAddress { link, address } => {
                    said.deleted.insert((link, address.ip, address.prefix));
                }
                Step::AddAddress { address, .. } => {
                    said.added.insert(address.ip);
                }
                Step::AddRoute { route }
                | Step::AppendRoute { route }
                | Step::ReplaceRoute { route }
                | Step::DeleteRoute { route } => {
                    said.routes.insert(route.key());
                }
                _ => {}
            }
        }
        said
    }

    fn names(&self, loss: &Loss) -> bool {
        match loss {
            Loss::Address { link, address } => {
                self.deleted.contains(&(link, address.ip, address.prefix)) || self.added.contains(&address.ip)
            }
            Loss::Route { route } => self.routes.contains(&route.key()),
            Loss::Link { .. } | Loss::Without { .. } | Loss::Kept { .. } | Loss::LastDefaultRoute { .. } => {
                false
            }
        }
    }
}
