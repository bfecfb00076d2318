//! The kernel's network over netlink: observe it, apply steps to it, hear when it changes.
//!
//! Owns the socket and the bytes; decides nothing. `wire` is netlink's framing, `decode` and `encode` are pure
//! functions between messages and the model, `kind` has a table per kind of link, `socket` sends and receives.
//! Plain blocking calls and no async runtime: the kernel answers within the call that asks.
//!
//! Why not the `rtnetlink` crates: they drop messages they can't read, ignore interrupted dumps, hide the kernel's own
//! words, and take a dump that ended early for a short one. What is left without them is this module.

mod apply;
mod decode;
mod encode;
mod kind;
pub mod monitor;
mod observe;
mod socket;
mod wire;

use kind::Names;
use socket::Socket;

pub use apply::{StepCause, StepFailed};
pub use encode::EncodeError;
pub use kind::OptionError;
pub use observe::{Observation, ObserveError, Placed};
pub use socket::{NetlinkError, Refused};
pub use wire::Malformed;

/// The network of the namespace it was opened in.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    names: Names,
}

impl Netlink {
    /// In the network namespace of the calling thread.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { socket: Socket::open()?, names: Names::default() })
    }

    /// Links, addresses, routes and rules; the resolver and the hostname are not the kernel's network.
    pub fn observe(&mut self) -> Result<Observation, ObserveError> {
        let (seen, names) = observe::observe(&mut self.socket)?;
        self.names = names;
        Ok(seen)
    }

    /// Which link has which index is asked again before the next step.
    pub fn forget_names(&mut self) {
        self.names = Names::default();
    }

    /// Requests sent so far, each dump one.
    pub fn sent(&self) -> u64 {
        self.socket.sent()
    }
}
