//! The model check of the claim protocol: every schedule of a small world, within stated bounds.
//!
//! The world is a store (the API server), hosts with a NIC, a journal and an agent, a controller that is up
//! to date (the lead), a second one whose caches are old and which may pause between any two writes (the
//! rival), agents that serve themselves, and faults. Agents, lead and rival run `policy::claim` itself; only
//! the store, the kernel and time are modelled here.
//!
//! Breadth first over all moves from the first state; states that nobody inside can tell apart are visited
//! once (`normal` says which, and why that is sound; `alike` checks it).
//!
//! What happens in one move, and what may come between: an agent does one thing, and only what nobody but a
//! crash could see follows at once (journal, announcement); the lead reads, writes the ledger and answers at
//! once; the rival may stop between reading, writing the ledger and each answer. A tick of the clock is a
//! quarantine long; agents that run and reach the API do what they must within it (docs/claims.md).
//!
//! What is checked:
//! - in every state: no address on two NICs, unless docs/claims.md names the exception; an id has at most one
//!   Held entry;
//! - in every state, unless a fault has happened that takes entries or ids away (a Node, a pool, an enactment
//!   or a journal is gone, a reset, a restore): what is on a NIC is in the ledger, Held by that id;
//! - from every state in which the faults are over: a fair schedule ends, what is on a NIC is Held by that
//!   id and nothing else is in the ledger, a host has all addresses that its policy asks for or none, whoever
//!   can be served is, and where all is gone the ledger is empty.
//!
//! Not modelled: several pools, IPv6, literal addresses beside captures, reservations. Sliced pools have a world of their own: [`sliced`].

mod alike;
mod check;
mod config;
mod fault;
mod many;
mod moves;
mod normal;
mod print;
mod settle;
pub mod sliced;
mod store;
mod world;

pub use alike::{Likeness, likeness};
pub use check::{Bounds, Report, Violation, check};
pub use config::Config;
pub use fault::{Breach, Fault, NoSuchFault};
pub use many::{check_all, side_by_side};
