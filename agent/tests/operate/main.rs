//! The agent as a service: real processes in network namespaces that the tests make, as systemd, a monitoring system and
//! a second agent would meet them. Needs root.

mod api;
mod boot;
mod demo;
mod elected;
#[path = "../common/folder.rs"]
mod folder;
mod locks;
mod page;
mod service;
mod stop;
mod support;
mod undone;
mod unit;
