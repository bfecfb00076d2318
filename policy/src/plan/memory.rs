//! The kernel, in memory: what a step does to a state, side effects included.
//!
//! The planner plays every step here before it trusts it; dry runs and property tests do too. It knows what
//! the kernel does unasked where that matters to configuration: a link that goes takes along what sits on it
//! and every route through it; one that goes down loses its routes and IPv6 addresses; the last IPv4 address
//! takes the routes of its link, a primary one its secondaries (`promote_secondaries` is off unless somebody
//! set it); a bond takes only ports that are down and leaves them down.
//!
//! It doesn't know: link-local addresses that the kernel makes (those there are stay), MAC addresses that a
//! controller shares with its ports, carrier, timers, and what resolver runs once another is configured. Connected routes are not part of
//! a state at all.

mod address;
mod field;
mod kept;
mod link;
mod route;
mod rule;

use super::step::Step;
use crate::state::{Address, IfName, Kept, Link, LinkKind, Observed, Route, Rule};

pub(super) use address::{is_secondary, place, secondaries};
pub(super) use kept::put;
pub(super) use link::{can_be_port, fits_base, follows, least_of_ports};

/// Why the kernel would refuse a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    #[error("there is no link {link}")]
    NoLink { link: IfName },
    #[error("{link} exists already")]
    LinkExists { link: IfName },
    #[error("{link} can't be removed")]
    NotVirtual { link: IfName },
    #[error("{link} is a port of {controller}")]
    IsPort { link: IfName, controller: IfName },
    #[error("{link} is not a port of {controller}")]
    NotPort { link: IfName, controller: IfName },
    #[error("{link} can't be a port of {controller}")]
    Loop { link: IfName, controller: IfName },
    #[error("{link} is up; a bond takes only ports that are down")]
    PortUp { link: IfName },
    #[error("{link} is down")]
    LinkDown { link: IfName },
    #[error("{link} must be down for that")]
    LinkUp { link: IfName },
    #[error("MTU {mtu} of {link} is out of range")]
    Mtu { link: IfName, mtu: u32 },
    #[error("{link} has {address} already")]
    AddressExists { link: IfName, address: Address },
    #[error("{link} has no {address}")]
    NoAddress { link: IfName, address: Address },
    #[error("IPv6 is off on {link}")]
    Ipv6Off { link: IfName },
    #[error("route {route} exists already")]
    RouteExists { route: Box<Route> },
    #[error("there is no route {route}")]
    NoRoute { route: Box<Route> },
    #[error("the gateway of {route} can't be reached directly")]
    Gateway { route: Box<Route> },
    #[error("the next hop object of {route} is not there")]
    NoObject { route: Box<Route> },
    #[error("{route} has several next hops, and one without a gateway")]
    HopWithoutGateway { route: Box<Route> },
    #[error("the source of {route} is no address of this host")]
    Source { route: Box<Route> },
    #[error("rule {rule} exists already")]
    RuleExists { rule: Box<Rule> },
    #[error("there is no rule {rule}")]
    NoRule { rule: Box<Rule> },
    #[error("{kept} can't be as things are")]
    Kept { kept: Box<Kept> },
}

/// Does what the kernel would do. After an error nothing has changed.
pub fn apply(state: &mut Observed, step: &Step) -> Result<(), MemoryError> {
    match step {
        Step::DeleteLink { link, .. } => link::delete(state, link),
        Step::CreateLink(new) => link::create(state, new.link(), &new.peer_attributes),
        Step::Attach { link, controller } => link::attach(state, link, controller),
        Step::Detach { link, controller } => link::detach(state, link, controller),
        Step::SetUp { link } => link::set_up(state, link),
        Step::SetDown { link } => link::set_down(state, link),
        Step::SetMtu { link, mtu } => link::set_mtu(state, link, *mtu),
        Step::SetMac { link, mac } => link::set_mac(state, link, *mac),
        Step::SetOptions { link, options, .. } => link::set_options(state, link, options),
        Step::SetAlias { link, alias } => field::alias(get(state, link)?, alias),
        Step::SetPromiscuous { link, on } => field::promiscuous(get(state, link)?, *on),
        Step::AddAltName { link, name } => field::alt_name(get(state, link)?, name, true),
        Step::DeleteAltName { link, name } => field::alt_name(get(state, link)?, name, false),
        Step::SetPortOptions { link, options, .. } => field::port_options(get(state, link)?, options),
        Step::RestoreLink { link, attributes, kind_attributes, .. } => {
            field::attributes(get(state, link)?, attributes, kind_attributes)
        }
        Step::RestorePort { link, attributes, .. } => field::port_attributes(get(state, link)?, attributes),
        Step::SetPortVlans { link, vlan, .. } => field::port_vlans(get(state, link)?, vlan, None),
        Step::RestoreVlans { link, vlan, all, .. } => field::port_vlans(get(state, link)?, vlan, Some(all)),
        Step::SetAcceptRa { link, accept } => field::accept_ra(get(state, link)?, *accept),
        Step::SetForwarding { link, family, on } => field::forwarding(get(state, link)?, *family, *on),
        Step::SetIpv6 { link, on } => address::set_ipv6(state, link, *on),
        Step::AddAddress { link, address } => address::add(state, link, address),
        Step::ReplaceAddress { link, address } => address::replace(state, link, address),
        Step::DeleteAddress { link, address } => address::delete(state, link, address),
        Step::AddRoute { route } => route::add(state, route, false),
        Step::AppendRoute { route } => route::add(state, route, true),
        Step::ReplaceRoute { route } => route::replace(state, route),
        Step::DeleteRoute { route } => route::delete(state, route),
        Step::AddRule { rule } => rule::add(state, rule),
        Step::DeleteRule { rule } => rule::delete(state, rule),
        Step::Restore { kept } => kept::restore(state, kept),
        Step::Forget { kept } => kept::forget(state, kept),
        Step::SetDns { dns } => {
            state.dns = dns.clone();
            Ok(())
        }
        Step::SetHostname { hostname } => {
            state.hostname = hostname.clone();
            Ok(())
        }
    }
}

/// The addresses that a loopback is born with stay whatever a list says, as in nmstate.
pub(super) fn is_fixed(kind: &LinkKind, address: &Address) -> bool {
    *kind == LinkKind::Loopback && address.ip.is_loopback()
}

fn get<'a>(state: &'a mut Observed, name: &IfName) -> Result<&'a mut Link, MemoryError> {
    state.links.get_mut(name).ok_or_else(|| MemoryError::NoLink { link: name.clone() })
}
