//! Events: what `kubectl describe` shows of policies and pools.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::json;

use crate::field::{self, Field};
use crate::on::On;
use crate::pause::Pause;

/// Waits for an Event like this; what it is is said if it never comes.
async fn until(field: &Field, what: &str, like: impl Fn(&Event) -> bool) -> Event {
    let events: Api<Event> = Api::namespaced(field.client(), "default");
    let mut pause = Pause::new();
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let all = events.list(&ListParams::default()).await.expect("an answer").items;
            if let Some(event) = all.into_iter().find(&like) {
                return event;
            }
            pause.pass().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never told: {what}"))
}

fn is_about(event: &Event, kind: &str, reason: &str) -> bool {
    event.involved_object.kind.as_deref() == Some(kind) && event.reason.as_deref() == Some(reason)
}

/// Waits for an Event of this reason about an object of this kind.
pub(crate) async fn told(field: &Field, kind: &str, reason: &str) -> Event {
    until(field, reason, |event| is_about(event, kind, reason)).await
}

/// The same, told more than once.
pub(crate) async fn told_again(field: &Field, kind: &str, reason: &str) {
    let like = |event: &Event| is_about(event, kind, reason) && event.count > Some(1);
    until(field, &format!("{reason}, again"), like).await;
}

/// The same, with these words in it.
pub(crate) async fn told_that(field: &Field, kind: &str, reason: &str, words: &str) -> Event {
    let says = |event: &Event| event.message.as_deref().is_some_and(|message| message.contains(words));
    until(field, words, |event| is_about(event, kind, reason) && says(event)).await
}

pub(crate) const POLICY: &str = "NodeNetworkConfigurationPolicy";
pub(crate) const POOL: &str = "NodeIPPool";

/// Drift, R101: no address, and what becomes of the pool.
pub(crate) async fn drift_and_pools_that_run_out_are_told(on: On) {
    let field = Field::new(on).await;
    let range = json!({"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.1"});
    field.pool("traffic-1", json!({"range": range, "quarantine": "1s"})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", field::one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let exhausted = told(&field, POOL, "ExhaustedIPPool").await;
    assert_eq!(exhausted.type_.as_deref(), Some("Warning"));
    assert_eq!(exhausted.involved_object.name.as_deref(), Some("traffic-1"));
    assert_eq!(exhausted.reporting_component.as_deref(), Some("nmstate.io/berth-controller"));

    let before = host.addresses("eth0");
    host.ip(&format!("addr del {} dev eth0", before[0]));
    let repaired = told(&field, POLICY, "DriftRepaired").await;
    assert_eq!(repaired.type_.as_deref(), Some("Normal"));
    assert_eq!(repaired.involved_object.name.as_deref(), Some("one"));
    let source = repaired.source.expect("who");
    assert_eq!(source.component.as_deref(), Some("node01.nmstate-handler"));

    let late = field.host("node02", 1).await;
    let refused = told(&field, POLICY, "NoAddress").await;
    assert!(refused.message.is_some_and(|message| message.starts_with("node02.one: ")));
    // A host goes for good: its address is set aside, then free, then the next one's.
    field.remove_host(&host).await;
    let aside = told(&field, POOL, "AddressQuarantined").await;
    assert!(aside.message.is_some_and(|message| message.starts_with("10.10.10.1 (node01): ")));
    told(&field, POOL, "AddressFreed").await;
    field.until_standing(&late, "one", "Available").await;
    field.agree().await;
}

/// A policy that fails is told on the policy, as kubernetes-nmstate does.
pub(crate) async fn a_policy_that_fails_is_told(on: On) {
    let field = Field::new(on).await;
    let host = field.host("node01", 1).await;
    field
        .policy(
            "broken",
            json!({"capture": {"none": "interfaces.name == \"nope\""}, "desiredState": {"interfaces": []}}),
        )
        .await;
    field.until_standing(&host, "broken", "Failing").await;
    let failed = told(&field, POLICY, "ReconcileFailed").await;
    assert_eq!(failed.type_.as_deref(), Some("Warning"));
    let message = failed.message.unwrap_or_default();
    assert!(message.starts_with("node01.broken: failure generating desiredState"), "{message}");
    field.agree().await;
}

/// Somebody else takes it off again and again: it is put back, ever more slowly, and that is told.
pub(crate) async fn who_fights_is_told_and_given_time(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": "10.10.10.0/24"}})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", field::one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let address = host.addresses("eth0")[0].clone();
    let fights = async {
        loop {
            host.wait_until("put back", || host.addresses("eth0").contains(&address)).await;
            host.ip(&format!("addr del {address} dev eth0"));
        }
    };
    let fought = tokio::select! {
        fought = told(&field, POLICY, "DriftFought") => fought,
        () = fights => unreachable!("nobody gives in"),
    };
    assert_eq!(fought.type_.as_deref(), Some("Warning"));
    let message = fought.message.unwrap_or_default();
    assert!(message.starts_with("node node01: something keeps changing what this policy set"), "{message}");
    host.wait_until("put back in the end", || host.addresses("eth0").contains(&address)).await;
    field.agree().await;
}
