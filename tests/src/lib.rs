//! What the integration tests, the model check and the benchmarks share.

pub mod model;
