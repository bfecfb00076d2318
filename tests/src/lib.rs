//! Shared by the integration tests and the benchmarks.

pub mod bench;
