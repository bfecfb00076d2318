//! The real binary, on files: what it prints, where, and its exit codes.

mod agree;
mod behaviour;
mod docs;
mod goldens;
mod support;
