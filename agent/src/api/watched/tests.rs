//! On the embedded API, in this process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::{By, Change, FEW, Watched};
use crate::embedded;

fn node(name: &str, group: &str) -> Node {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"group": group}}})).unwrap()
}

type Told = Arc<Mutex<Vec<String>>>;

/// Until it holds; what is waited for comes in milliseconds.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(10), async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{what}: never"));
}

fn told(to: &Told) -> impl Fn(Change<Node>) + Send + Sync + 'static {
    let to = to.clone();
    move |change| {
        let word = match change {
            Change::Put(_) => "put",
            Change::Gone(_) => "gone",
            Change::Missing(_) => "missing",
        };
        to.lock().unwrap().push(format!("{word} {}", change.object().name_any()));
    }
}

#[tokio::test]
async fn a_list_then_each_change_of_what_is_selected() {
    let server = embedded::Api::in_memory();
    let nodes: Api<Node> = Api::all(server.client());
    nodes.create(&PostParams::default(), &node("a", "x")).await.unwrap();
    nodes.create(&PostParams::default(), &node("other", "y")).await.unwrap();
    let heard = Told::default();
    let seen = Watched::start(nodes.clone(), ListParams::default().labels("group=x"), told(&heard));
    seen.started().await;
    assert_eq!(seen.all().len(), 1);
    nodes.create(&PostParams::default(), &node("b", "x")).await.unwrap();
    let label = json!({"metadata": {"labels": {"more": "1"}}});
    nodes.patch("a", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    nodes.delete("b", &DeleteParams::default()).await.unwrap();
    let expected = ["put a", "put b", "put a", "gone b"];
    until("four changes", || heard.lock().unwrap().len() == 4).await;
    assert_eq!(*heard.lock().unwrap(), expected);
    assert!(seen.get("b").is_none() && seen.get("other").is_none());
    assert_eq!(seen.get("a").unwrap().labels()["more"], "1");
}

/// The log is so short that the past is forgotten before the first watch gets through: what was missed is found by a list, and of what
/// is gone it is known that nobody saw it go.
#[tokio::test]
async fn what_was_missed_is_told_after_a_gap() {
    use hyper::http::Request;
    use tower::ServiceExt;

    let limits = embedded::Limits { log_events: 2, ..embedded::Limits::default() };
    let server = embedded::Api::in_memory_with(limits);
    let nodes: Api<Node> = Api::all(server.client());
    nodes.create(&PostParams::default(), &node("a", "x")).await.unwrap();
    let late = Arc::new(tokio::sync::Semaphore::new(0));
    let (api, until_then) = (server.clone(), late.clone());
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (api, until_then) = (api.clone(), until_then.clone());
        async move {
            if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                let _ = until_then.acquire().await;
            }
            api.oneshot(request).await
        }
    });
    let heard = Told::default();
    let watched: Api<Node> = Api::all(kube::Client::new(service, "default"));
    let seen = Watched::start(watched, ListParams::default(), told(&heard));
    seen.started().await;
    nodes.delete("a", &DeleteParams::default()).await.unwrap();
    for i in 0..40 {
        nodes.create(&PostParams::default(), &node(&format!("n{i:02}"), "x")).await.unwrap();
    }
    late.close();
    until("all of them", || seen.all().len() == 40).await;
    until("told of all", || heard.lock().unwrap().iter().filter(|line| *line == "put n39").count() == 1)
        .await;
    until("told of what is gone", || heard.lock().unwrap().contains(&"missing a".to_owned())).await;
}

/// A connection that is dead and doesn't know it: the watch is taken up again in its time, and nothing is missed for good.
#[tokio::test]
async fn a_watch_that_is_dead_is_taken_up_again() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::StreamBody;
    use hyper::http::{Request, Response};
    use tower::ServiceExt;

    type Frames =
        futures_util::stream::BoxStream<'static, Result<hyper::body::Frame<bytes::Bytes>, tower::BoxError>>;

    let server = embedded::Api::in_memory();
    let asked = Arc::new(AtomicUsize::new(0));
    let (api, count) = (server.clone(), asked.clone());
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let is_dead = is_watch && count.fetch_add(1, Ordering::SeqCst) == 0;
        let api = api.clone();
        async move {
            if is_dead {
                let silence: Frames = Box::pin(futures_util::stream::pending());
                return Ok::<_, tower::BoxError>(Response::new(StreamBody::new(silence)));
            }
            use futures_util::{StreamExt, TryStreamExt};
            let answer = api.oneshot(request).await.map_err(tower::BoxError::from)?;
            Ok(answer.map(|body| {
                let frames = http_body_util::BodyStream::new(body).map_err(tower::BoxError::from);
                StreamBody::new(frames.boxed() as Frames)
            }))
        }
    });
    let watched: Api<Node> = Api::all(kube::Client::new(service, "default"));
    let lasts = Duration::from_secs(1);
    let seen = Watched::lasting(lasts, By::Selection, watched, ListParams::default(), |_| {});
    seen.started().await;
    until("a watch", || asked.load(Ordering::SeqCst) == 1).await;
    let nodes: Api<Node> = Api::all(server.client());
    nodes.create(&PostParams::default(), &node("a", "x")).await.unwrap();
    until("heard of", || seen.get("a").is_some()).await;
}

/// A server whose watches are counted, by what they select.
fn counted(server: &embedded::Api) -> (kube::Client, Told) {
    use tower::ServiceExt;

    let (api, asked) = (server.clone(), Told::default());
    let heard = asked.clone();
    let service = tower::service_fn(move |request: hyper::http::Request<kube::client::Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        if query.contains("watch=true") {
            let by_name = if query.contains("fieldSelector") { "name" } else { "label" };
            heard.lock().unwrap().push(by_name.to_owned());
        }
        api.clone().oneshot(request)
    });
    (kube::Client::new(service, "default"), asked)
}

#[tokio::test]
async fn a_few_are_watched_one_by_one_and_many_together() {
    let server = embedded::Api::in_memory();
    let nodes: Api<Node> = Api::all(server.client());
    nodes.create(&PostParams::default(), &node("a", "x")).await.unwrap();
    let (client, asked) = counted(&server);
    let heard = Told::default();
    let seen = Watched::few(Api::all(client), ListParams::default().labels("group=x"), told(&heard));
    seen.started().await;
    until("watched", || !asked.lock().unwrap().is_empty()).await;
    // One that is made and noted is watched from then on.
    seen.note(nodes.create(&PostParams::default(), &node("b", "x")).await.unwrap());
    until("both", || asked.lock().unwrap().len() == 2).await;
    for name in ["a", "b"] {
        let label = json!({"metadata": {"labels": {"more": "1"}}});
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    }
    until("told", || ["put a", "put b"].iter().all(|one| heard.lock().unwrap().contains(&(*one).to_owned())))
        .await;
    nodes.delete("a", &DeleteParams::default()).await.unwrap();
    until("gone", || seen.get("a").is_none() && heard.lock().unwrap().contains(&"gone a".to_owned())).await;
    assert_eq!(*asked.lock().unwrap(), ["name", "name"]);
    // Many are watched together, also those that nobody noted.
    for i in 0..FEW {
        seen.note(nodes.create(&PostParams::default(), &node(&format!("n{i}"), "x")).await.unwrap());
    }
    until("together", || asked.lock().unwrap().last().is_some_and(|last| last == "label")).await;
    nodes.create(&PostParams::default(), &node("unnoted", "x")).await.unwrap();
    until("found", || seen.get("unnoted").is_some()).await;
}

/// What nobody noted is found when the watches end.
#[tokio::test]
async fn one_of_a_few_that_somebody_else_made_is_found() {
    let server = embedded::Api::in_memory();
    let nodes: Api<Node> = Api::all(server.client());
    let select = ListParams::default().labels("group=x");
    let lasts = Duration::from_millis(500);
    let seen = Watched::lasting(lasts, By::Name, nodes.clone(), select, |_| {});
    seen.started().await;
    nodes.create(&PostParams::default(), &node("a", "x")).await.unwrap();
    until("found", || seen.get("a").is_some()).await;
}
