//! The embedded API where it needs processes, a full disk, many watchers or many random writes. What a client sees of
//! one request is in the unit tests and in the conformance suite.

mod full;
mod kill;
mod model;
mod support;
mod watchers;
