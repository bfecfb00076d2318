//! The network state of a host, as types. The YAML is nmstate's.
//!
//! Owns: [`Observed`] (what a host has), [`Desired`] (what a document asks for), and the words both are made
//! of. Documents arrive as [`serde_json::Value`]; text is parsed elsewhere. Called by the template (which ends
//! in a `Desired`), by [`crate::plan`], and by the agent, whose netlink module builds `Observed` directly.
//!
//! Must never drop anything in silence: what Berth doesn't apply is refused with its path, all of it at once
//! ([`Refusals`]); what an observed state holds beyond the model is kept (`extra`) and shown again.
//!
//! Cost: linear in the size of the document.

pub mod address;
mod default_vlans;
mod desired;
mod dns;
mod error;
mod features;
mod hostname;
mod kept;
pub mod kind;
mod link;
mod link_local;
mod names;
mod observed;
pub mod option;
mod path;
mod port;
mod raw;
pub mod route;
pub mod rule;
pub(crate) mod scalar;

pub use address::{AcceptRa, Address, AddressProtocol, Family, Ip, Lifetime};
pub use default_vlans::default_port_vlans;
pub use desired::{
    AltName, Desired, DesiredAddress, DesiredDns, DesiredIp, DesiredLink, DesiredRoute, DesiredRule,
    Identifier, LinkState, PortConfig, PortEntry, Ports,
};
pub use dns::Dns;
pub use error::{Reason, Refusal, Refusals, StateErrors};
pub use features::features;
pub use hostname::Hostname;
pub use kept::{Kept, KeptKind};
pub use kind::LinkKind;
pub use link::Link;
pub use link_local::LinkLocal;
pub use names::{IfName, Mac, NameError};
pub use observed::Observed;
pub use option::{OptName, OptValue, Options};
pub use port::{Port, PortVlan, VlanEntry, VlanRange};
pub use raw::{Attributes, Raw};
pub use route::{NextHop, Route, RouteKey, RouteProtocol, RouteType};
pub use rule::{Rule, RuleAction};

#[cfg(test)]
mod tests;
