//! The claim protocol (docs/claims.md) as values and functions, without I/O.
//!
//! One fact, "this holder has this address", is recorded four times, always in this order: **request** (in
//! the agent's own enactment) → **ledger** (the only truth) → **grant** (in the enactment) → **journal** (the
//! host's disk), and only then the NIC. Taking back runs the other way.
//!
//! Who calls what:
//! - a server of claims (the controller, or an agent on its own): [`serve()`], [`serve_without_pool`];
//! - the controller: [`tend()`], [`may_finish`], [`rebuild()`], [`reset`], [`meet`], [`reassert`], [`went_back`]; of slices
//!   [`tend_slices`], [`vanished_slices`], [`gather`];
//! - the agent: [`Host`], [`inherit`], [`confirms`]; of its slices [`serve_slices`], [`slices_confirm`];
//! - the tools that people type: [`verify()`], [`release`], [`preview()`].
//!
//! The simulation and the model check in `tests/` drive this very code. Every write it asks for is guarded:
//! ledger writes by [`Guard`] and resourceVersion, answers by [`Answer::fits`], an agent's writes to its own
//! objects by resourceVersion.

mod host;
mod ledger;
mod names;
mod preview;
mod rebuild;
mod record;
mod serve;
mod slices;
mod tend;
#[cfg(test)]
mod tests;
mod verify;

pub use host::{
    Action, CONFIRMED_FOR, ClaimKey, Host, Memory, NodeSeen, Outcome, Phase, Record, Seen, confirms,
};
pub use ledger::{
    Entry, EntryKind, EntryState, Guard, Hold, Ledger, Quarantine, QuarantineReason, SEQUENCE_LEAP,
    is_believable,
};
pub use names::{
    CaptureName, EnactmentUid, NodeName, NodeUid, PolicyName, PoolName, PoolUid, RequestId, Stamp,
};
pub use preview::{Ask, Foreseen, Gets, Lacks, Reason, Stage, Wish, preview};
pub use rebuild::{
    Inheritance, Rebuilt, Scope, inherit, meet, notice, outside, reassert, rebuild, reset, went_back,
};
pub use record::{
    Enactment, Grant, HostState, Lease, Refusal, RefusalReason, Request, Slot, SlotKey, Stranger, Time,
};
pub use serve::{Answer, Asked, Reply, Served, serve, serve_without_pool};
pub use slices::{
    NewSlice, NodeSlice, SlicedView, SlicesServed, SlicesTended, Uncovered, gather, serve_slices,
    serve_slices_without_pool, slices_confirm, tend_slices, vanished_slices,
};
pub use tend::{Brake, Facts, Fate, NotReleased, Released, Tended, brake_limit, may_finish, release, tend};
pub use verify::{Claimant, Difference, Place, Sighting, Sightings, verify};
