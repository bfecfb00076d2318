//! The real binary, on files: what it prints, where, and its exit codes.

#[macro_use]
#[path = "../../../tests/shared/goldens.rs"]
mod shared;

mod agree;
mod behaviour;
mod commands;
mod docs;
#[path = "../common/folder.rs"]
mod folder;
mod goldens;
mod install;
mod literals;
mod refused;
mod serve;
mod settings;
mod support;
