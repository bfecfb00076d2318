//! Routes: what can stay stays, what moved with its addresses moves, absent is a filter, the rest is added or
//! replaced in place.
//!
//! Table, destination and metric make a route: entries of a document that share them are its next hops, and
//! together they are the whole of it. So changing a next hop needs no "absent" beside it.

mod add;
mod check;
mod filter;
mod kept;

use super::Merge;
use crate::plan::reach::{Direct, has_neighbour};
use crate::state::route::MAIN_TABLE;
use crate::state::{Desired, DesiredRoute, Family, IfName, Link, NextHop, Observed, Route, RouteKey};
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::net::IpAddr;

pub(in crate::plan) use filter::matches;

type Place = (u32, IpNet);

impl Merge<'_> {
    pub(super) fn routes(&mut self, desired: &Desired) {
        let named: BTreeSet<Place> = desired.routes.iter().filter_map(place).collect();
        self.keep_routes(&named);
        for filter in desired.routes.iter().filter(|r| r.absent) {
            filter::remove(&mut self.state.routes, filter);
        }
        self.add_routes(desired);
        self.keep_kept();
    }

    /// Routes that were there, without those that can't be any more.
    fn keep_routes(&mut self, named: &BTreeSet<Place>) {
        let mut kept: Vec<Route> = Vec::with_capacity(self.observed.routes.len());
        let mut keys: BTreeSet<RouteKey> = BTreeSet::new();
        for mut route in std::mem::take(&mut self.state.routes) {
            // A written route follows the address it needs to the controller, and back from one that goes, unless the
            // document has its own.
            let may_move = route.protocol.is_config() && !named.contains(&(route.table, route.destination));
            let mut moved = false;
            for hop in route.next_hops.iter_mut().filter(|_| may_move) {
                if let Some(heir) = self.moved.get(&hop.dev).or_else(|| self.heir(hop)) {
                    hop.dev = heir.clone();
                    moved = true;
                }
            }
            // A next hop object stays where it is; the route's way is then its own.
            if moved {
                route.object = None;
            }
            let family = route.family();
            let before = route.next_hops.len();
            route.next_hops.retain(|hop| self.usable(&hop.dev, family));
            let gone = before > 0 && route.next_hops.is_empty();
            let twice = moved && keys.contains(&route.key());
            if !gone && !twice {
                route.next_hops.sort();
                keys.insert(route.key());
                kept.push(route);
            }
        }
        self.leave_with_subnets(&mut kept);
        self.leave_with_sources(&mut kept);
        self.state.routes = kept;
    }

    /// Of a controller that goes, the port from which its gateway is reached then: the address came back to it.
    fn heir(&self, hop: &NextHop) -> Option<&IfName> {
        let via = hop.via.filter(|_| self.removed.contains(&hop.dev))?;
        let was_port = |name: &IfName| {
            self.observed.links.get(name).is_some_and(|l| l.controller.as_ref() == Some(&hop.dev))
        };
        let free = |link: &&Link| link.up && !link.ignored && link.controller.is_none();
        let mut ports = self.state.links.values().filter(|l| free(l) && was_port(&l.name));
        ports.find(|port| has_neighbour(port, via)).map(|port| &port.name)
    }

    fn usable(&self, dev: &IfName, family: Family) -> bool {
        let observed = self.observed.links.get(dev);
        let Some(link) = self.state.links.get(dev) else {
            return observed.is_none();
        };
        let went_down = !link.up && !link.ignored && observed.is_none_or(|o| o.up);
        let went_off =
            family == Family::Ipv6 && !link.ipv6.enabled && observed.is_none_or(|o| o.ipv6.enabled);
        // Where there was no address IPv4 was off already, and a route that is there may stay.
        let had = family == Family::Ipv4 && observed.is_none_or(|o| !o.ipv4.addresses.is_empty());
        let said = self.wanted(dev).and_then(|d| d.ip(family)).is_some_and(|ip| ip.enabled == Some(false));
        let said_off = said && had;
        !went_down && !went_off && !said_off
    }

    /// A gateway that could be reached and no longer can leaves with its subnet.
    fn leave_with_subnets(&self, kept: &mut Vec<Route>) {
        let before = Direct::of(self.observed.routes.iter().filter(|r| !r.has_gateway()));
        let direct: Vec<Route> = kept.iter().filter(|r| !r.has_gateway()).cloned().collect();
        let after = Direct::of(&direct);
        kept.retain_mut(|route| {
            let had = route.next_hops.len();
            route.next_hops.retain(|hop| {
                let moved = !self.observed.routes.is_empty() && self.moved.values().any(|c| *c == hop.dev);
                after.reaches(&self.state, hop) || !(moved || before.reaches(self.observed, hop))
            });
            had == 0 || !route.next_hops.is_empty()
        });
    }

    fn leave_with_sources(&self, kept: &mut Vec<Route>) {
        if kept.iter().all(|r| r.source.is_none()) {
            return;
        }
        let (before, after) = (locals(self.observed), locals(&self.state));
        kept.retain_mut(|route| match route.source {
            Some(ip) if before.contains(&ip) && !after.contains(&ip) => {
                route.source = None;
                ip.is_ipv6()
            }
            _ => true,
        });
    }
}

fn place(route: &DesiredRoute) -> Option<Place> {
    Some((route.table.unwrap_or(MAIN_TABLE), route.destination?))
}

fn locals(state: &Observed) -> BTreeSet<IpAddr> {
    let links = state.links.values();
    links.flat_map(|l| l.ipv4.addresses.iter().chain(&l.ipv6.addresses)).map(|a| a.ip).collect()
}
