//! Everything that touches the world: API, kernel, disk, terminal. The one binary, `berth`.
//!
//! `main.rs` calls [`cli::run`]; the rest is found from there. What should be is decided in `policy`, what may be
//! written in `crds`; this crate converts between the two and does what they say.

pub mod cli;
mod ledger;
mod pools;
mod yaml;
