//! Real API servers that tests of this binary share.
//!
//! A test has one to itself, since names are the same in all, and from nothing ([`clean`]); the next one has it after it. One
//! that wants another kind of server starts its own ([`Own`]).

mod clean;

use std::sync::{Condvar, Mutex, PoisonError};

pub(crate) use api_tests::cluster::{AGENT, CONTROLLER, Cluster, NAMESPACE, Way};
use api_tests::control_plane::Options;

use crate::rights;

/// As many tests as run at once (tests/run.sh); each takes 400 MiB.
const SIDE_BY_SIDE: usize = 4;

/// A cluster for one test, from nothing; then it is another's, unless it can't be mended.
pub(crate) struct Turn {
    pub(crate) cluster: &'static Cluster,
    /// How much its API server had written down when the turn began.
    since: usize,
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
        let lacking = rights::lacking(self.cluster, self.since);
        CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner).free.push(self.cluster);
        FREED.notify_one();
        if !std::thread::panicking() {
            assert!(lacking.is_empty(), "deploy/rbac doesn't give what is asked for: {lacking:?}");
        }
    }
}

impl Turn {
    /// Waits for a cluster; the first that want one start it. Not from inside a runtime: it blocks.
    pub(crate) fn wait() -> Self {
        loop {
            let cluster = Self::next();
            if cluster.plane.heal().is_ok() {
                api_tests::RUNTIME.block_on(clean::all(&cluster.plane.client()));
                return Self { cluster, since: rights::written(cluster) };
            }
            // Nobody is to have it any more.
            cluster.plane.stop();
            CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner).started -= 1;
        }
    }

    fn next() -> &'static Cluster {
        let mut clusters = CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(cluster) = clusters.free.pop() {
                return cluster;
            }
            if clusters.started < SIDE_BY_SIDE {
                // While others wait: they would want the same two cores.
                let audit = Some(rights::audited(&[AGENT, CONTROLLER]));
                let cluster = Cluster::start(&Options { audit, ..Options::default() });
                clusters.started += 1;
                return Box::leak(Box::new(cluster));
            }
            clusters = FREED.wait(clusters).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
