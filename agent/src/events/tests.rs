use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, ObjectReference};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::{BURST, Events, Source};
use crate::embedded;

fn source() -> Source {
    Source {
        component: "node01.nmstate-handler".to_owned(),
        controller: "nmstate.io/berth-agent",
        instance: "node01".to_owned(),
    }
}

fn about(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("nmstate.io/v1".to_owned()),
        kind: Some("NodeNetworkConfigurationPolicy".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(format!("uid-of-{name}")),
        ..ObjectReference::default()
    }
}

/// Events as they are once this holds of them.
async fn until(client: &Client, holds: impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let api: Api<Event> = Api::namespaced(client.clone(), "default");
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let events = api.list(&ListParams::default()).await.unwrap().items;
            if holds(&events) {
                return events;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.expect("never so")
}

#[tokio::test]
async fn an_event_says_what_and_who() {
    let server = embedded::Api::in_memory();
    let events = Events::start(server.client(), source());
    events.warning(about("web"), "ReconcileFailed", "it failed".to_owned());
    let told = until(&server.client(), |events| !events.is_empty()).await;
    let event = &told[0];
    assert!(event.name_any().starts_with("web."), "{}", event.name_any());
    assert_eq!(event.namespace().as_deref(), Some("default"));
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(
        (event.reason.as_deref(), event.message.as_deref()),
        (Some("ReconcileFailed"), Some("it failed"))
    );
    assert_eq!((event.count, event.involved_object.name.as_deref()), (Some(1), Some("web")));
    let source = event.source.as_ref().unwrap();
    assert_eq!(source.component.as_deref(), Some("node01.nmstate-handler"));
    assert_eq!(event.reporting_instance.as_deref(), Some("node01"));
}

/// What is said again is counted; what is said in a storm is written slowly, and nobody is held up.
#[tokio::test]
async fn a_storm_is_counted_not_written() {
    let server = embedded::Api::in_memory();
    let events = Events::start(server.client(), source());
    for _ in 0..100 {
        events.normal(about("web"), "DriftRepaired", "put back".to_owned());
    }
    let told = until(&server.client(), |events| events.iter().any(|event| event.count == Some(100))).await;
    assert_eq!(told.len(), 1, "{told:?}");
    // All different: as many as may come at once.
    for number in 0..100 {
        events.normal(about(&format!("policy{number}")), "DriftRepaired", "put back".to_owned());
    }
    let most = usize::try_from(BURST).unwrap();
    let told = until(&server.client(), |events| events.len() >= most).await;
    assert!(told.len() < 60, "{}", told.len());
}

/// A server that refuses Events is no reason to do anything else than go on.
#[tokio::test]
async fn who_is_refused_goes_on() {
    let refusing = tower::service_fn(|_: hyper::Request<kube::client::Body>| async {
        let status =
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden"}"#;
        let mut answer = hyper::Response::new(http_body_util::Full::new(bytes::Bytes::from(status)));
        *answer.status_mut() = hyper::StatusCode::FORBIDDEN;
        Ok::<_, std::convert::Infallible>(answer)
    });
    let events = Events::start(Client::new(refusing, "default"), source());
    let dropped = || {
        let page = crate::metrics::page();
        let line = page.lines().find_map(|line| line.strip_prefix("berth_events_dropped_total "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let before = dropped();
    events.normal(about("web"), "DriftRepaired", "put back".to_owned());
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        while dropped() == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.expect("counted");
    events.normal(about("web"), "DriftRepaired", "again".to_owned());
}

/// What nobody answers to is tried again, under the same name: it may have been written.
#[tokio::test]
async fn who_is_not_answered_tries_again() {
    let names = Arc::new(Mutex::new(Vec::new()));
    let heard = names.clone();
    let away_at_first = tower::service_fn(move |request: hyper::Request<kube::client::Body>| {
        let names = heard.clone();
        async move {
            let body = request.into_body().collect_bytes().await?;
            let event: serde_json::Value = serde_json::from_slice(&body)?;
            let mut names = names.lock().unwrap();
            names.push(event["metadata"]["name"].clone());
            match names.len() {
                1 => Err::<_, tower::BoxError>("the connection is dead".into()),
                _ => Ok(hyper::Response::new(http_body_util::Full::new(body))),
            }
        }
    });
    let events = Events::start(Client::new(away_at_first, "default"), source());
    events.warning(about("web"), "ReconcileFailed", "cut off".to_owned());
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        while names.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.expect("tried again");
    let names = names.lock().unwrap();
    assert_eq!(names[0], names[1]);
}
