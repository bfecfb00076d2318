//! Which API a test is on, and how it is run there.

use std::future::Future;

use api_tests::control_plane::Options;
use tokio::runtime::{Builder, Runtime};

use crate::cluster::{Cluster, Own, Turn};

#[derive(Clone, Copy)]
pub(crate) enum On {
    /// Ours: in this process, or as `berth serve`. Agents register their Nodes.
    Embedded,
    /// A real API server. Nodes are a kubelet's, agents and controller have no more rights than they are given.
    Real(&'static Cluster),
}

impl On {
    /// Where the controller's Lease is.
    pub(crate) fn namespace(self) -> &'static str {
        match self {
            Self::Embedded => "default",
            Self::Real(_) => crate::cluster::NAMESPACE,
        }
    }

    /// The real API server, of tests that are about it.
    pub(crate) fn real(self) -> &'static Cluster {
        match self {
            Self::Real(real) => real,
            Self::Embedded => panic!("this test is of a real API server"),
        }
    }
}

pub(crate) fn embedded<F: Future<Output = ()>>(test: impl FnOnce(On) -> F) {
    runtime().block_on(test(On::Embedded));
}

pub(crate) fn real<F: Future<Output = ()>>(test: impl FnOnce(On) -> F) {
    let turn = Turn::wait();
    runtime().block_on(test(On::Real(turn.cluster)));
}

/// On a real API server of its own, of this kind.
pub(crate) fn own<F: Future<Output = ()>>(options: &Options, test: impl FnOnce(&'static Cluster) -> F) {
    let own = Own::start(options);
    runtime().block_on(test(own.cluster));
}

/// Of its own for each test: whatever it began ends with it.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}
