//! The pure core of Berth: what should be.
//!
//! Everything here is a function from values to values. No clock, no randomness, no files, no
//! sockets, no async and no Kubernetes types: time, ids and observations are passed in. That is
//! what lets the agent, the controller, the simulation and the model checker run the very same code.

pub mod capture;
pub mod claim;
#[cfg(test)]
mod dice;
pub mod enact;
pub mod plan;
pub mod pool;
pub mod rollout;
pub mod state;
pub mod table;
pub mod template;
