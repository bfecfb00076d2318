//! The embedded API where it needs processes, a full disk, many watchers or many random writes. What a client sees of
//! one request is in the unit tests and in the conformance suite.
// A test stops at what it can't have.
#![allow(clippy::unwrap_used)]

#[path = "../common/folder.rs"]
mod folder;
mod full;
mod kill;
mod model;
mod support;
mod watchers;
