//! Berth on a cluster with real kubelets, installed and driven by kubectl alone. Needs root; `make test-cluster` runs it.
//!
//! All tests share one cluster, one after the other: [`field::field`] hands it out as an administrator has it who has just
//! installed Berth, made two pools and one policy, and sees three nodes with their addresses.

mod cut_off;
mod field;
mod files;
mod install;
mod kubelet;
mod no_controller;
mod nodes;
mod tokens;
mod told;
mod uninstall;
mod updates;
