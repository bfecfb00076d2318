//! Everything that touches the world: API, kernel, disk, terminal. The one binary, `berth`.
//!
//! `main.rs` calls [`cli::run`]; the rest is found from there. What should be is decided in `policy`, what may be
//! written in `crds`; this crate converts between the two and does what they say.

pub mod api;
pub mod checkpoint;
pub mod cli;
mod clock;
pub mod controller;
pub mod embedded;
mod events;
pub mod fault;
mod health;
pub mod host;
mod http;
pub mod kernel;
mod ledger;
pub mod manifests;
mod metrics;
pub mod netlink;
pub mod netns;
mod networks;
pub mod node;
mod notify;
mod page;
mod pools;
pub mod probe;
pub mod records;
mod rest;
pub mod telemetry;
pub mod transaction;
pub mod wire;
mod yaml;
