//! Why a document can't be brought about on this host: every problem with its path.

use super::memory::MemoryError;
use crate::state::option::Pointless;
use crate::state::{Family, IfName, Mac, Reason};
use std::fmt;

/// All problems of a document with this host. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    pub problems: Vec<Problem>,
}

impl PlanError {
    /// In the order of the document; nothing twice.
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|p| place(&p.path));
        problems.dedup();
        Self { problems }
    }
}

/// Section and number of a path, to sort by.
fn place(path: &str) -> (usize, usize) {
    const SECTIONS: [&str; 3] = ["interfaces", "routes", "route-rules"];
    let section = SECTIONS.iter().position(|s| path.split(['.', '[']).next() == Some(s));
    let number = path.split(['[', ']']).nth(1).and_then(|n| n.parse().ok());
    (section.unwrap_or(SECTIONS.len()), number.unwrap_or(0))
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PlanError {}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{kind}", if path.is_empty() { "" } else { ": " })]
pub struct Problem {
    /// Where in the document; empty for the document itself.
    pub path: String,
    pub kind: ProblemKind,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemKind {
    #[error("there is no interface {name}, and without a type none can be made")]
    NoSuchLink { name: IfName },
    #[error("there is no interface {name}; a link of type {kind} can't be made")]
    CantMake { name: IfName, kind: String },
    #[error("no interface has the MAC address {mac}")]
    NoSuchMac { mac: Mac },
    #[error("several interfaces have the MAC address {mac}: {}", names.join(", "))]
    AmbiguousMac { mac: Mac, names: Vec<String> },
    #[error("{name} is also meant by {other}")]
    MeantTwice { name: IfName, other: String },
    #[error("{name} is of type {found}, not {wanted}; remove it first (state: absent) to replace it")]
    OtherKind { name: IfName, wanted: String, found: String },
    #[error("{name} is of type {kind}, which Berth leaves alone; use state: ignore")]
    Ignored { name: IfName, kind: String },
    #[error("{name} can't be removed")]
    CantRemove { name: IfName },
    #[error("is missing; a new {kind} needs it")]
    Missing { kind: String },
    #[error(transparent)]
    Pointless(Pointless),
    #[error("{name} is longer than an interface's name may be (15 bytes)")]
    NameTooLong { name: IfName },
    #[error("Controller interface {controller} is holding unknown port {port}")]
    UnknownPort { controller: IfName, port: IfName },
    #[error("port {port} is overbooked: {first} lists it too")]
    Overbooked { port: IfName, first: IfName },
    #[error("{controller} doesn't list {port} as its port")]
    NotListed { controller: IfName, port: IfName },
    #[error("{controller} lists it as its port ({path})")]
    Listed { controller: IfName, path: String },
    #[error("there is no controller {name}")]
    UnknownController { name: IfName },
    #[error("{name} is of type {kind}, which has no ports")]
    NotAController { name: IfName, kind: String },
    #[error("{port} is not a port of it")]
    NotAPort { port: IfName },
    #[error("{port} is a port of {controller} ({kind}): addresses belong on {controller}")]
    IpOnPort { port: IfName, controller: IfName, kind: &'static str },
    #[error(
        "{port} has addresses that something renews (DHCP); as a port of {controller} it would lose them: stop \
         that, or say ipv4.enabled: false for {port}"
    )]
    DynamicOnPort { port: IfName, controller: IfName },
    #[error("there is no interface {base} to sit on")]
    UnknownBase { base: IfName },
    #[error("{base}, which it sits on, is to be absent")]
    BaseAbsent { base: IfName },
    #[error(
        "{port} can't be a port of {controller}: no loopback can, no bridge of a bridge, nothing of itself"
    )]
    CantBePort { controller: IfName, port: IfName },
    #[error("nothing can sit on {base}, a loopback")]
    OnLoopback { base: IfName },
    #[error("{other} has this id on {base} already")]
    VlanTaken { other: IfName, base: IfName },
    #[error("{port} goes with {base}, which it sits on and which is to be absent")]
    PortGoes { port: IfName, base: IfName },
    #[error(
        "{upper} ({kind}) sits on {base} and goes with it, and Berth can't make it again: say state: absent for \
         {upper} too if it may go"
    )]
    TakenAlong { upper: IfName, kind: String, base: IfName },
    #[error("{base}, which it sits on, is down")]
    BaseDown { base: IfName },
    #[error("interfaces depend on each other in a circle: {}", names.join(" -> "))]
    Cycle { names: Vec<String> },
    #[error("{peer} exists and is not the other end of {name}")]
    OtherPeer { name: IfName, peer: IfName },
    #[error("only a bond or a linux-bridge can copy a MAC address")]
    CantCopyMac,
    #[error("{from} has no known MAC address to copy")]
    NoMacToCopy { from: IfName },
    #[error("{mtu} is outside of what {name} takes ({min} to {max})")]
    MtuRange { name: IfName, mtu: u32, min: u32, max: u32 },
    #[error("{mtu} is too small for IPv6, which needs 1280; say ipv6.enabled: false to do without")]
    MtuIpv6 { mtu: u32 },
    #[error("{name} has an MTU of {mtu}, too small for IPv6, which needs 1280; give it a larger one")]
    Ipv6Mtu { name: IfName, mtu: u32 },
    #[error("{alt} is how this entry names {name}: call it {name} to take that name away")]
    OwnName { alt: String, name: IfName },
    #[error("{base} is a mac-vlan itself, and the kernel would put this one beside it; say {lower}")]
    BaseMacVlan { base: IfName, lower: IfName },
    #[error("{mtu} is more than the {base_mtu} of {base}, which it sits on")]
    MtuBase { mtu: u32, base: IfName, base_mtu: u32 },
    #[error("{name} gets no addresses from {who} now, and Berth doesn't start that; give it an address")]
    NotAutomatic { name: IfName, who: &'static str },
    #[error("a loopback interface takes addresses only")]
    LoopbackOnlyAddresses,
    #[error("there is no interface {name}")]
    RouteLinkMissing { name: IfName },
    #[error("{name} is ignored: no route can lead through it")]
    RouteLinkIgnored { name: IfName },
    #[error("{name} is down: no route can lead through it")]
    RouteLinkDown { name: IfName },
    #[error("{family} is off on {name}: no route can lead through it")]
    RouteFamilyOff { name: IfName, family: Family },
    #[error("{via} can't be reached directly through {name}: it is in none of its subnets")]
    Gateway { via: std::net::IpAddr, name: IfName },
    #[error("{via} is this host's own address, on {name}: a gateway is another host")]
    OwnGateway { via: std::net::IpAddr, name: IfName },
    #[error("is missing; an IPv6 route with several next hops needs a gateway in each")]
    HopWithoutGateway,
    #[error("{source_ip} is no address of this host")]
    Source { source_ip: std::net::IpAddr },
    #[error("differs from {first}, which is another next hop of the same route")]
    RouteConflict { first: String },
    /// What the place that is worked on hasn't got; said by whoever knows the place.
    #[error("{why}")]
    NotHere { why: &'static str },
    /// Not a matter of this host: Berth doesn't take it.
    #[error("{0}")]
    Refused(Reason),
    #[error("would fail: {0}")]
    Step(#[from] MemoryError),
}
