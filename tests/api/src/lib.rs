//! What tests of the API share: a real control plane and a cluster on it, a server to ask, and its answers.
//!
//! Only tests use it. The machine's own network and clusters are never touched: everything listens on loopback.

pub mod cases;
pub mod cluster;
pub mod control_plane;
pub mod kubernetes_nmstate;
pub mod secure;
pub mod server;
pub mod wait;

use std::sync::LazyLock;

use tokio::runtime::Runtime;

/// One runtime for all tests of a binary: what a shared server or client spawns must not end with the test that asked first.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a tokio runtime"));
