//! The claim protocol (docs/claims.md) as values and functions, without I/O.
//!
//! One fact, "this holder has this address", is recorded four times, always in this order: **request** (in
//! the agent's own enactment) → **ledger** (the only truth) → **grant** (in the enactment) → **journal** (the
//! host's disk), and only then the NIC. Taking back runs the other way.
//!
//! Who calls what:
//! - a server of claims (the controller, or an agent on its own): [`serve()`], [`serve_without_pool`];
//! - the controller: [`tend()`], [`may_finish`], [`rebuild()`], [`reassert`], [`went_back`];
//! - the agent: [`Host`], [`inherit`], [`confirms`].
//!
//! The simulation and the model check in `tests/` drive this very code. Every write it asks for is guarded:
//! ledger writes by [`Guard`] and resourceVersion, answers by [`Answer::fits`], an agent's writes to its own
//! objects by resourceVersion.

mod host;
mod ledger;
mod names;
mod rebuild;
mod record;
mod serve;
mod tend;
#[cfg(test)]
mod tests;

pub use host::{
    Action, CONFIRMED_FOR, ClaimKey, Host, Memory, NodeSeen, Outcome, Phase, Record, Seen, confirms,
};
pub use ledger::{
    Entry, EntryKind, EntryState, Guard, Hold, Ledger, Quarantine, QuarantineReason, SEQUENCE_LEAP,
};
pub use names::{
    CaptureName, EnactmentUid, NodeName, NodeUid, PolicyName, PoolName, PoolUid, RequestId, Stamp,
};
pub use rebuild::{Inheritance, Rebuilt, inherit, reassert, rebuild, went_back};
pub use record::{Enactment, Grant, HostState, Lease, Refusal, RefusalReason, Request, Slot, SlotKey, Time};
pub use serve::{Answer, Asked, Reply, Served, serve, serve_without_pool};
pub use tend::{Brake, Facts, Tended, brake_limit, may_finish, tend};
