//! What the integration tests, the model check and the benchmarks share.

pub mod bench;
pub mod model;
