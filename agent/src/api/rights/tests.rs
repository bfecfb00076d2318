//! Of requests as the client makes them, and answers as an API server gives them.

use super::*;

fn right(method: &str, path: &str) -> String {
    let method = method.parse().unwrap();
    Right::of(&method, &path.parse().unwrap()).map_or_else(String::new, |right| right.to_string())
}

#[test]
fn a_request_takes_a_right() {
    for (method, path, expected) in [
        ("GET", "/api/v1/nodes?limit=500", "list nodes (apiGroup \"\")"),
        ("GET", "/api/v1/nodes?&watch=true&timeoutSeconds=290", "watch nodes (apiGroup \"\")"),
        ("GET", "/api/v1/namespaces/default", "get namespaces (apiGroup \"\")"),
        ("POST", "/api/v1/namespaces/default/events?", "create events (apiGroup \"\", namespace default)"),
        (
            "PATCH",
            "/apis/nmstate.io/v1/nodeippools/p/status",
            "patch nodeippools/status (apiGroup \"nmstate.io\")",
        ),
        (
            "PUT",
            "/apis/nmstate.io/v1/nodenetworkstates/n",
            "update nodenetworkstates (apiGroup \"nmstate.io\")",
        ),
        (
            "DELETE",
            "/apis/nmstate.io/v1/nodenetworkstates/n",
            "delete nodenetworkstates (apiGroup \"nmstate.io\")",
        ),
        ("DELETE", "/api/v1/nodes", "deletecollection nodes (apiGroup \"\")"),
        ("GET", "/readyz", ""),
        ("GET", "/apis", ""),
    ] {
        assert_eq!(right(method, path), expected, "{method} {path}");
    }
}

fn answering(
    code: u16,
    message: &'static str,
) -> impl Service<Request<Body>, Response = Response<Full<Bytes>>, Error = BoxError, Future: Send + 'static> {
    tower::service_fn(move |_: Request<Body>| async move {
        let body = format!("{{\"kind\":\"Status\",\"message\":{message:?}}}");
        Ok::<_, BoxError>(Response::builder().status(code).body(Full::new(Bytes::from(body)))?)
    })
}

async fn ask(rights: &Arc<Rights>, code: u16, message: &'static str) -> String {
    let mut service = Noting::new(answering(code, message), rights.clone());
    let request = Request::patch("/apis/nmstate.io/v1/nodeippools/p/status").body(Body::empty()).unwrap();
    let answer = service.call(request).await.unwrap();
    assert_eq!(answer.status(), code);
    let said = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(said.to_vec()).unwrap()
}

#[tokio::test]
async fn what_is_lacking_is_known_until_it_is_allowed() {
    let rights = Arc::new(Rights::default());
    let refusal =
        "nodeippools.nmstate.io \"p\" is forbidden: User \"u\" cannot patch resource \"nodeippools/status\"";
    // The answer is passed on as it was.
    assert!(ask(&rights, 403, refusal).await.contains("is forbidden"));
    let words = ["lacks the right to patch nodeippools/status (apiGroup \"nmstate.io\")"];
    assert_eq!(rights.lacking(), words);
    ask(&rights, 500, "away").await;
    assert_eq!(rights.lacking(), words);
    ask(&rights, 200, "").await;
    assert!(rights.lacking().is_empty());
}

#[tokio::test]
async fn what_an_admission_policy_refuses_is_no_right_that_lacks() {
    let rights = Arc::new(Rights::default());
    ask(&rights, 403, "host a may not change nodeippools").await;
    assert!(rights.lacking().is_empty());
}
