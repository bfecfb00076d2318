//! What Events tell of pools: what happened before somebody looked, for as long as the API keeps Events.
//!
//! Read when somebody points at an address, not watched: a list of one pool's Events, at most every [`GOOD_FOR`] for each pool,
//! however many look. Who may not list Events (a controller with no more rights than `deploy/base` gives) shows none, and asks
//! again a minute later.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams};

use crate::api::list;
use crate::events::Heard;

/// Somebody who moves over a grid asks ten times in a second.
const GOOD_FOR: Duration = Duration::from_secs(5);
const REFUSED: Duration = Duration::from_secs(60);
/// Events about what has no namespace are in this one.
const NAMESPACE: &str = "default";

type Kept = BTreeMap<String, (Instant, Arc<Vec<Heard>>)>;

pub(super) struct Told {
    api: Api<Event>,
    /// By pool, until when it is good. As many as there are pools.
    kept: Mutex<Kept>,
}

impl Told {
    pub(super) fn new(client: &Client) -> Self {
        Self { api: Api::namespaced(client.clone(), NAMESPACE), kept: Mutex::default() }
    }

    /// The latest first.
    pub(super) async fn of(&self, pool: &str) -> Arc<Vec<Heard>> {
        let now = Instant::now();
        if let Some((_, heard)) = self.kept().get(pool).filter(|(until, _)| now < *until) {
            return heard.clone();
        }
        let about = format!("involvedObject.kind=NodeIPPool,involvedObject.name={pool}");
        let read = list::all(&self.api, &ListParams::default().fields(&about)).await;
        let good_for = if read.is_ok() { GOOD_FOR } else { REFUSED };
        let mut heard: Vec<Heard> =
            read.map(|(all, _)| all.iter().map(Heard::of).collect()).unwrap_or_default();
        heard.sort_by_key(|one| Reverse(one.at));
        let heard = Arc::new(heard);
        self.kept().insert(pool.to_owned(), (now + good_for, heard.clone()));
        heard
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
