//! Real API servers that tests of this binary share.
//!
//! A test has one to itself, since names are the same in all, and from nothing ([`clean`]); the next one has it after it. One
//! that wants another kind of server starts its own ([`Own`]).

mod clean;

use std::sync::{Condvar, Mutex, PoisonError};

pub(crate) use api_tests::cluster::{AGENT, CONTROLLER, Cluster, NAMESPACE, Way};
use api_tests::control_plane::Options;

/// As many tests as run at once (tests/run.sh); each takes 400 MiB.
const SIDE_BY_SIDE: usize = 4;

/// A cluster for one test, from nothing; then it is another's.
pub(crate) struct Turn {
    pub(crate) cluster: &'static Cluster,
}

/// A cluster that no other test has; it ends with this.
pub(crate) struct Own {
    pub(crate) cluster: &'static Cluster,
}

impl Own {
    /// Not from inside a runtime: it blocks.
    pub(crate) fn start(options: &Options) -> Self {
        Self { cluster: Box::leak(Box::new(Cluster::start(options))) }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.cluster.plane.stop();
    }
}

struct Clusters {
    free: Vec<&'static Cluster>,
    started: usize,
}

static CLUSTERS: Mutex<Clusters> = Mutex::new(Clusters { free: Vec::new(), started: 0 });
static FREED: Condvar = Condvar::new();

impl Drop for Turn {
    fn drop(&mut self) {
        CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner).free.push(self.cluster);
        FREED.notify_one();
    }
}

impl Turn {
    /// Waits for a cluster; the first that want one start it. Not from inside a runtime: it blocks.
    pub(crate) fn wait() -> Self {
        let mut clusters = CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = loop {
            if let Some(cluster) = clusters.free.pop() {
                break Self { cluster };
            }
            if clusters.started < SIDE_BY_SIDE {
                // While others wait: they would want the same two cores.
                let cluster = Box::leak(Box::new(Cluster::start(&Options::default())));
                clusters.started += 1;
                break Self { cluster };
            }
            clusters = FREED.wait(clusters).unwrap_or_else(PoisonError::into_inner);
        };
        drop(clusters);
        turn.cluster.plane.heal().expect("a control plane that works");
        api_tests::RUNTIME.block_on(clean::all(&turn.cluster.plane.client()));
        turn
    }
}
