use super::*;

async fn uid(api: &Api, path: &str) -> String {
    ask(api, "GET", path, None).await.1["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn owned(name: &str, owners: &[(&str, &str)], blocks: bool) -> Value {
    let mut object = node(name);
    let owner = |(name, uid): &(&str, &str)| json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "blockOwnerDeletion": blocks});
    object["metadata"]["ownerReferences"] = owners.iter().map(owner).collect();
    object
}

async fn make(api: &Api, object: Value) -> String {
    let (code, made) = ask(api, "POST", NODES, Some(object)).await;
    assert_eq!(code, 201, "{made}");
    made["metadata"]["uid"].as_str().unwrap().to_owned()
}

async fn names(api: &Api) -> Vec<String> {
    listed(api, NODES).await.into_keys().collect()
}

#[tokio::test]
async fn an_object_waits_for_its_finalizers() {
    let api = Api::in_memory();
    let mut object = pool("p");
    object["metadata"]["finalizers"] = json!(["nmstate.io/a", "nmstate.io/b"]);
    ask(&api, "POST", POOLS, Some(object)).await;
    let path = format!("{POOLS}/p");
    let (code, waits) = ask(&api, "DELETE", &path, None).await;
    assert_eq!((code, &waits["kind"]), (200, &json!("NodeIPPool")));
    assert!(waits["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(waits["metadata"]["generation"], 2);
    assert_eq!(ask(&api, "DELETE", &path, None).await, (200, waits));
    let more = json!({"metadata": {"finalizers": ["nmstate.io/a", "nmstate.io/c"]}});
    assert_eq!(patch(&api, &path, "merge-patch+json", more).await.0, 422);
    let fewer = json!({"metadata": {"finalizers": ["nmstate.io/a"]}});
    assert_eq!(patch(&api, &path, "merge-patch+json", fewer).await.0, 200);
    assert_eq!(ask(&api, "GET", &path, None).await.0, 200);
    assert_eq!(
        patch(&api, &path, "merge-patch+json", json!({"metadata": {"finalizers": null}})).await.0,
        200
    );
    assert_eq!(ask(&api, "GET", &path, None).await.0, 404);
}

#[tokio::test]
async fn dependents_follow_their_last_owner() {
    let api = Api::in_memory();
    let (a, b) = (make(&api, node("a")).await, make(&api, node("b")).await);
    let child = make(&api, owned("child", &[("a", &a)], false)).await;
    make(&api, owned("grandchild", &[("child", &child)], false)).await;
    make(&api, owned("shared", &[("a", &a), ("b", &b)], false)).await;
    let mut other = owned("foreign", &[("a", &a)], false);
    other["metadata"]["ownerReferences"][0]["kind"] = json!("DaemonSet");
    make(&api, other).await;
    ask(&api, "DELETE", &format!("{NODES}/a"), None).await;
    assert_eq!(names(&api).await, ["b", "foreign", "shared"]);
    let (_, shared) = ask(&api, "GET", &format!("{NODES}/shared"), None).await;
    assert_eq!(shared["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    ask(&api, "DELETE", &format!("{NODES}/b"), None).await;
    assert_eq!(names(&api).await, ["foreign"]);
}

#[tokio::test]
async fn an_owner_can_go_last_or_leave_its_dependents() {
    let api = Api::in_memory();
    let a = make(&api, node("a")).await;
    let mut child = owned("child", &[("a", &a)], true);
    child["metadata"]["finalizers"] = json!(["nmstate.io/a"]);
    make(&api, child).await;
    let (code, waits) =
        ask(&api, "DELETE", &format!("{NODES}/a"), Some(json!({"propagationPolicy": "Foreground"}))).await;
    assert_eq!((code, &waits["metadata"]["finalizers"]), (200, &json!(["foregroundDeletion"])), "{waits}");
    assert_eq!(names(&api).await, ["a", "child"]);
    patch(&api, &format!("{NODES}/child"), "merge-patch+json", json!({"metadata": {"finalizers": null}}))
        .await;
    assert!(names(&api).await.is_empty());

    let a = make(&api, node("a")).await;
    make(&api, owned("child", &[("a", &a)], true)).await;
    ask(&api, "DELETE", &format!("{NODES}/a?propagationPolicy=Orphan"), None).await;
    assert_eq!(names(&api).await, ["child"]);
    let (_, child) = ask(&api, "GET", &format!("{NODES}/child"), None).await;
    assert!(child["metadata"].get("ownerReferences").is_none());
}

#[tokio::test]
async fn an_owner_that_goes_last_takes_nothing_of_anothers() {
    let api = Api::in_memory();
    let (a, b) = (make(&api, node("a")).await, make(&api, node("b")).await);
    make(&api, owned("shared", &[("a", &a), ("b", &b)], true)).await;
    make(&api, owned("child", &[("a", &a)], true)).await;
    let foreground = Some(json!({"propagationPolicy": "Foreground"}));
    ask(&api, "DELETE", &format!("{NODES}/a"), foreground.clone()).await;
    assert_eq!(names(&api).await, ["b", "shared"]);
    let (_, shared) = ask(&api, "GET", &format!("{NODES}/shared"), None).await;
    assert!(shared["metadata"].get("deletionTimestamp").is_none(), "{shared}");
    let owners = shared["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((owners.len(), &owners[0]["uid"]), (1, &json!(b)));
    ask(&api, "DELETE", &format!("{NODES}/b"), foreground).await;
    assert!(names(&api).await.is_empty());
}

#[tokio::test]
async fn what_comes_after_its_owner_went_goes_too() {
    let api = Api::in_memory();
    let a = make(&api, node("a")).await;
    ask(&api, "DELETE", &format!("{NODES}/a"), None).await;
    make(&api, node("a")).await;
    make(&api, owned("late", &[("a", &a)], false)).await;
    assert_eq!(names(&api).await, ["a"]);
    let fresh = uid(&api, &format!("{NODES}/a")).await;
    make(&api, owned("child", &[("a", &fresh)], false)).await;
    assert_eq!(names(&api).await, ["a", "child"]);
}

#[tokio::test]
async fn a_circle_of_owners_and_a_long_chain_end() {
    let api = Api::in_memory();
    let a = make(&api, node("a")).await;
    let b = make(&api, owned("b", &[("a", &a)], true)).await;
    let circle = json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "b", "uid": b,
                        "blockOwnerDeletion": true}]}});
    assert_eq!(patch(&api, &format!("{NODES}/a"), "merge-patch+json", circle).await.0, 200);
    ask(&api, "DELETE", &format!("{NODES}/a?propagationPolicy=Foreground"), None).await;
    assert!(names(&api).await.is_empty());
    let mut last = ("n0".to_owned(), make(&api, node("n0")).await);
    for index in 1..3000 {
        let name = format!("n{index}");
        let uid = make(&api, owned(&name, &[(&last.0, &last.1)], false)).await;
        last = (name, uid);
    }
    ask(&api, "DELETE", &format!("{NODES}/n0"), None).await;
    assert!(names(&api).await.is_empty());
}

#[tokio::test]
async fn a_namespace_goes_with_the_last_that_is_in_it() {
    let api = Api::in_memory();
    let namespaces = "/api/v1/namespaces";
    let leases = "/apis/coordination.k8s.io/v1/namespaces/x/leases";
    let named = |name: &str| json!({"metadata": {"name": name}});
    assert_eq!(ask(&api, "POST", namespaces, Some(named("x"))).await.0, 201);
    ask(&api, "POST", leases, Some(named("plain"))).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["nmstate.io/a"]}});
    ask(&api, "POST", leases, Some(held)).await;
    let (code, waits) = ask(&api, "DELETE", &format!("{namespaces}/x"), None).await;
    assert_eq!((code, &waits["status"]["phase"]), (200, &json!("Terminating")));
    assert_eq!(ask(&api, "POST", leases, Some(named("late"))).await.0, 403);
    assert_eq!(listed(&api, leases).await.len(), 1);
    patch(&api, &format!("{leases}/held"), "merge-patch+json", json!({"metadata": {"finalizers": null}}))
        .await;
    assert_eq!(ask(&api, "GET", &format!("{namespaces}/x"), None).await.0, 404);
}
