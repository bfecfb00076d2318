//! Which pools overlap with one belongs to what was looked at: a pool that goes, or is made anew, gave addresses that the other has.

use std::time::Duration;

use kube::ResourceExt;
use policy::claim::PoolName;
use serde_json::{Value, json};

use super::stage::Stage;
use crate::controller::Lead;

/// Until the watches have told it.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never {what}"));
}

async fn look(lead: &Lead, pool: &PoolName) {
    lead.pool(pool, None).await.unwrap();
}

/// The UID of a pool, as far as the leader knows.
fn uid(lead: &Lead, pool: &PoolName) -> Option<String> {
    lead.known.index().pools.get(pool).and_then(|known| known.object.uid())
}

fn is_noticed(lead: &Lead, pool: &PoolName) -> bool {
    lead.is_noticed(&lead.look(pool, None).unwrap())
}

/// Rule 5: two pools have the same addresses, one gives, and goes. What hosts have of it is set aside in the other's ledger before
/// that gives anything, also where another pool of the name is there at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule5_what_an_overlapping_pool_gave_is_noticed_when_it_goes() {
    for is_made_anew in [false, true] {
        let stage = Stage::unled();
        let range = json!({"range": {"cidr": "10.0.0.0/24"}});
        let (pool, other) = (PoolName::from("pool"), PoolName::from("other"));
        stage.pool("pool", range.clone()).await;
        stage.pool("other", range.clone()).await;
        stage.host("node").await;
        let lead = stage.lead().await;
        look(&lead, &pool).await;
        look(&lead, &other).await;
        stage.shows("node", "10.0.0.5").await;
        let shows =
            || lead.known.index().states.get(&"node".into()).is_some_and(|state| !state.shows.is_empty());
        until("shown", shows).await;
        look(&lead, &pool).await;
        assert!(is_noticed(&lead, &pool), "nothing changed but what a host shows");
        let has = |pool: &Value| pool["status"]["allocations"]["10.0.0.5"]["state"] == "Quarantined";
        assert!(!has(&stage.until_pool("pool", "there", |_| true).await));

        let before = uid(&lead, &other);
        stage.delete_pool("other").await;
        let deleted = || lead.look(&other, None).is_some_and(|look| look.ledger.deleting);
        until("deleted", deleted).await;
        look(&lead, &other).await;
        if is_made_anew {
            stage.pool("other", range).await;
        }
        let is_news = || uid(&lead, &other) != before && uid(&lead, &other).is_some() == is_made_anew;
        until("known to be gone", is_news).await;
        assert!(!is_noticed(&lead, &pool), "made anew: {is_made_anew}");
        look(&lead, &pool).await;
        assert!(is_noticed(&lead, &pool));
        assert!(has(&stage.until_pool("pool", "there", |_| true).await), "made anew: {is_made_anew}");
    }
}
