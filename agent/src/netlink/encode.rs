//! From a step to the kernel's messages: a pure function, a file per kind of object. What a step needs of the moment, the
//! indexes of links, is passed in.

mod address;
mod kept;
mod link;
mod route;
mod rule;

use policy::plan::Step;
use policy::state::{Family, IfName, LinkKind};

use super::decode::link::{IFF_PROMISC, IFF_UP, IFLA_ADDRESS, IFLA_IFALIAS, IFLA_MASTER, IFLA_MTU};
use super::decode::{AF_INET, AF_INET6};
use super::kind::{Names, OptionError};
use super::socket::{ACK, APPEND, CREATE, EXCLUSIVE, REPLACE, REQUEST};
use super::wire::Message;
use address::{RTM_DELADDR, RTM_NEWADDR};
use link::{RTM_DELLINK, RTM_DELLINKPROP, RTM_NEWLINKPROP};
use route::{RTM_DELROUTE, RTM_NEWROUTE};
use rule::{RTM_DELRULE, RTM_NEWRULE};

/// A change of no particular kind.
const SET: u16 = REQUEST | ACK;
const ADD: u16 = SET | CREATE | EXCLUSIVE;

/// Why a step can't be said to the kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("there is no link {link}")]
    NoLink { link: IfName },
    #[error("a {kind} is not made by the kernel on request")]
    NotVirtual { kind: LinkKind },
    #[error(transparent)]
    Option(#[from] OptionError),
}

/// The messages of a step, in order; none for a step that isn't netlink's.
pub(super) fn messages(step: &Step, names: &Names) -> Result<Vec<Message>, EncodeError> {
    let to = Encoder { names };
    let one = |message: Message| Ok(vec![message]);
    match step {
        Step::DeleteLink { link, .. } => one(to.link(RTM_DELLINK, SET, link)?),
        Step::CreateLink(new) => one(to.create(new)?),
        Step::Detach { link, .. } => one(to.set(link, |m| m.u32(IFLA_MASTER, 0))?),
        Step::Attach { link, controller } => {
            let index = to.index(controller)?;
            one(to.set(link, |m| m.u32(IFLA_MASTER, index))?)
        }
        Step::SetUp { link } => one(to.flags(link, IFF_UP, true)?),
        Step::SetDown { link } => one(to.flags(link, IFF_UP, false)?),
        Step::SetPromiscuous { link, on } => one(to.flags(link, IFF_PROMISC, *on)?),
        Step::SetMac { link, mac } => one(to.set(link, |m| m.attr(IFLA_ADDRESS, &mac.0))?),
        Step::SetMtu { link, mtu } => one(to.set(link, |m| m.u32(IFLA_MTU, *mtu))?),
        // Without the zero at its end: that would be a byte of it.
        Step::SetAlias { link, alias } => one(to.set(link, |m| m.attr(IFLA_IFALIAS, alias.as_bytes()))?),
        Step::AddAltName { link, name } => one(to.alt_name(RTM_NEWLINKPROP, ADD | APPEND, link, name)?),
        Step::DeleteAltName { link, name } => one(to.alt_name(RTM_DELLINKPROP, SET, link, name)?),
        Step::SetOptions { link, kind, options } => one(to.options(link, kind, options)?),
        Step::SetPortOptions { link, kind, options } => one(to.port_options(link, kind, options)?),
        Step::RestoreLink { link, kind, attributes, kind_attributes } => {
            one(to.attributes(link, kind, attributes, kind_attributes)?)
        }
        Step::RestorePort { link, kind, attributes } => one(to.port_attributes(link, kind, attributes)?),
        Step::SetPortVlans { link, remove, add, .. } => to.vlans(link, false, remove, add),
        Step::RestoreVlans { link, own, remove, add, .. } => to.vlans(link, *own, remove, add),
        Step::AddAddress { link, address } => one(to.address(RTM_NEWADDR, ADD, link, address)?),
        Step::ReplaceAddress { link, address } => {
            one(to.address(RTM_NEWADDR, SET | CREATE | REPLACE, link, address)?)
        }
        Step::DeleteAddress { link, address } => one(to.address(RTM_DELADDR, SET, link, address)?),
        Step::AddRoute { route } => one(to.route(RTM_NEWROUTE, ADD, route)?),
        Step::AppendRoute { route } => one(to.route(RTM_NEWROUTE, SET | CREATE | APPEND, route)?),
        Step::ReplaceRoute { route } => one(to.route(RTM_NEWROUTE, SET | CREATE | REPLACE, route)?),
        Step::DeleteRoute { route } => one(to.route(RTM_DELROUTE, SET, route)?),
        // Not exclusive: to the kernel a rule that says less "exists" where a narrower one of its priority does.
        Step::AddRule { rule } => one(rule::message(RTM_NEWRULE, SET | CREATE, rule)),
        Step::DeleteRule { rule } => one(rule::message(RTM_DELRULE, SET, rule)),
        Step::Restore { kept } => one(to.restore(kept)?),
        Step::Forget { kept } => one(kept::forget(kept)),
        Step::SetIpv6 { .. }
        | Step::SetAcceptRa { .. }
        | Step::SetForwarding { .. }
        | Step::SetDns { .. }
        | Step::SetHostname { .. } => Ok(Vec::new()),
    }
}

struct Encoder<'a> {
    names: &'a Names,
}

impl Encoder<'_> {
    fn index(&self, link: &IfName) -> Result<u32, EncodeError> {
        self.names.by_name.get(link).copied().ok_or_else(|| EncodeError::NoLink { link: link.clone() })
    }
}

fn family_number(family: Family) -> u8 {
    match family {
        Family::Ipv4 => AF_INET,
        Family::Ipv6 => AF_INET6,
    }
}
