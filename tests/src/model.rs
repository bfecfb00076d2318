//! The model check of the claim protocol: every schedule of a small world, within stated bounds.
//!
//! The world is a store (the API server), hosts with a NIC, a journal and an agent, a controller that is up
//! to date (the lead), a second one whose caches are old and which may pause between any two writes (the
//! rival), agents that serve themselves, and faults. Agents, lead and rival run `policy::claim` itself; only
//! the store, the kernel and time are modelled here.
//!
//! Breadth first over all moves from the first state; each state is normalised (names, sequences and times
//! that nobody can tell apart are made equal) and visited once.
//!
//! What is checked:
//! - in every state: no address on two NICs, unless DESIGN 4 names the exception; an id has at most one
//!   Held entry;
//! - in every state, unless a fault has happened that takes entries or ids away (a Node, a pool, an enactment
//!   or a journal is gone, a reset, a restore): what is on a NIC is in the ledger, Held by that id;
//! - from every state in which the faults are over: a fair schedule ends, what is on a NIC is Held by that
//!   id and nothing else is in the ledger, whoever can be served is, and where all is gone the ledger is empty.

mod check;
mod fault;
mod moves;
mod normal;
mod settle;
mod store;
mod world;

pub use check::{Bounds, Report, Violation, check};
pub use fault::{Breach, Fault};
pub use world::Config;
