use std::sync::{Arc, Mutex};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, Response};
use k8s_openapi::api::core::v1::Node;
use kube::{Client, ResourceExt};
use serde_json::json;

use super::*;

/// Or an agent would have everything at once that it is about to throw away.
#[tokio::test]
async fn of_a_page_is_kept_what_is_needed_before_the_next_is_asked_for() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let asked = told.clone();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let is_second = request.uri().query().is_some_and(|query| query.contains("continue=more"));
        asked.lock().unwrap().push(if is_second { "asked for more" } else { "asked" }.to_owned());
        let (name, token) = if is_second { ("b", "") } else { ("a", "more") };
        let page = json!({
            "apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "7", "continue": token},
            "items": [{"metadata": {"name": name}}, {"metadata": {"name": "dropped"}}],
        });
        async move { Ok::<_, tower::BoxError>(Response::new(Full::new(Bytes::from(page.to_string())))) }
    });
    let nodes: Api<Node> = Api::all(Client::new(service, "default"));
    let keep = |node: Node| {
        told.lock().unwrap().push(node.name_any());
        Some(node.name_any()).filter(|name| name != "dropped")
    };
    let (kept, version) = all_as(&nodes, &ListParams::default(), keep).await.unwrap();
    assert_eq!((kept, version), (vec!["a".to_owned(), "b".to_owned()], "7".to_owned()));
    assert_eq!(*told.lock().unwrap(), ["asked", "a", "dropped", "asked for more", "b", "dropped"]);
}
