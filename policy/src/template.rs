//! Templates: a policy's desired state with the values of its captures filled in.
//!
//! Owns `{{ capture.… }}` references, the `ipam: {pool}` shorthand, which literal addresses are a pool's
//! ([`literals()`]), and the types of what comes out. The agent and the command line call [`render()`], or [`fill()`]
//! with bindings of their own; the agent [`check()`] before it asks for addresses. It must never refuse a kind or a
//! field for being unknown: rendering answers what the language gives, refusing is the plan's business.
//!
//! Cost: one copy of the desired state and one pass over it.

mod check;
mod field;
mod fill;
mod ipam;
mod literals;
mod reference;
mod render;
pub(crate) mod retype;
#[cfg(test)]
mod tests;

pub use check::check;
pub use fill::fill;
pub use ipam::ipam_pools;
pub use literals::{Literal, address_of, literal_addresses, literal_capture, literal_of, literals};
pub use render::{PolicyDoc, Rendered, render};
