//! The real binary, on files: what it prints, where, and its exit codes.

#[macro_use]
#[path = "../../../tests/shared/goldens.rs"]
mod shared;

mod agree;
mod behaviour;
mod docs;
mod goldens;
mod literals;
mod refused;
mod serve;
mod support;
