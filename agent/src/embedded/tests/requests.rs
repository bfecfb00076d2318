use super::*;

#[tokio::test]
async fn an_object_lives_through_every_verb() {
    let api = Api::in_memory();
    let (code, made) = ask(&api, "POST", POOLS, Some(pool("p"))).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["spec"]["staticBand"], "Auto");
    assert_eq!(made["status"], json!({"sequence": 0, "allocations": {}}));
    let path = format!("{POOLS}/p");
    assert_eq!(ask(&api, "GET", &path, None).await, (200, made.clone()));

    let mut changed = made.clone();
    changed["spec"]["quarantine"] = json!("1m");
    changed["status"]["sequence"] = json!(9);
    let (code, updated) = ask(&api, "PUT", &path, Some(changed)).await;
    assert_eq!(
        (code, &updated["metadata"]["generation"], &updated["status"]["sequence"]),
        (200, &json!(2), &json!(0))
    );
    let (code, refused) = ask(&api, "PUT", &path, Some(made)).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")));

    let status = json!([{"op": "replace", "path": "/status/sequence", "value": 3},
                        {"op": "replace", "path": "/spec/quarantine", "value": "9m"}]);
    let (code, patched) = patch(&api, &format!("{path}/status"), "json-patch+json", status).await;
    assert_eq!(
        (code, &patched["status"]["sequence"], &patched["spec"]["quarantine"]),
        (200, &json!(3), &json!("1m"))
    );
    assert_eq!(patched["metadata"]["generation"], 2);

    let (code, gone) = ask(&api, "DELETE", &path, None).await;
    assert_eq!(
        (code, &gone["status"], &gone["details"]["name"]),
        (200, &json!("Success"), &json!("p")),
        "{gone}"
    );
    assert_eq!(ask(&api, "GET", &path, None).await.0, 404);
}

#[tokio::test]
async fn what_changes_nothing_writes_nothing() {
    let api = Api::in_memory();
    let (_, made) = ask(&api, "POST", POOLS, Some(pool("p"))).await;
    let path = format!("{POOLS}/p");
    let (code, same) = ask(&api, "PUT", &path, Some(made.clone())).await;
    assert_eq!((code, &same), (200, &made));
    let (_, same) = patch(&api, &path, "merge-patch+json", json!({"spec": {"quarantine": "5m"}})).await;
    assert_eq!(same["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
}

/// A few hundred bytes must not become gigabytes, nor an object that nobody can read.
#[tokio::test]
async fn patches_that_copy_themselves_are_refused_and_so_is_what_is_nested_too_deep() {
    let api = Api::in_memory();
    let policies = "/apis/nmstate.io/v1/nodenetworkconfigurationpolicies";
    let policy = |state: Value| {
        json!({"apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": "p"},
               "spec": {"desiredState": state}})
    };
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));
    let (code, said) = ask(&api, "POST", policies, Some(policy(nested(110)))).await;
    assert_eq!((code, &said["message"]), (400, &json!("the object is nested deeper than 100 levels")));
    assert_eq!(ask(&api, "POST", policies, Some(policy(nested(90)))).await.0, 201);
    let mut shallow = policy(json!({"a": {"a": {}}}));
    shallow["metadata"]["name"] = "q".into();
    assert_eq!(ask(&api, "POST", policies, Some(shallow)).await.0, 201);
    let before = api.store().read().revision;
    let copies = |to: &dyn Fn(usize) -> String, count: usize| -> Value {
        let copy = |index| json!({"op": "copy", "from": "/spec/desiredState", "path": to(index)});
        (0..count).map(copy).collect::<Vec<_>>().into()
    };
    let path = format!("{policies}/p");
    let doubled = copies(&|index| format!("/spec/desiredState/b{index}"), 40);
    let deeper = copies(&|_| "/spec/desiredState/a".to_owned(), 9000);
    let into = json!([{"op": "add", "path": "/spec/desiredState/a/a/a", "value": nested(98)}]);
    for (name, patched, why) in [
        ("q", doubled, "the patch copies more than 3145728 bytes"),
        ("p", deeper, "it is nested deeper than 100 levels"),
        ("q", into, "it is nested deeper than 100 levels"),
    ] {
        let (code, said) = patch(&api, &format!("{policies}/{name}"), "json-patch+json", patched).await;
        assert_eq!((code, &said["reason"]), (422, &json!("Invalid")), "{said}");
        let cause = said["details"]["causes"][0]["message"].as_str().unwrap();
        assert!(cause.ends_with(why), "{cause}");
    }
    let merged = policy(nested(120));
    assert_eq!(patch(&api, &path, "merge-patch+json", merged).await.0, 400);
    assert_eq!(api.store().read().revision, before);
    // What is as deep as may be is read back whole.
    assert_eq!(ask(&api, "GET", &path, None).await.1["spec"]["desiredState"], nested(90));
}

#[tokio::test]
async fn bad_requests_are_refused_and_change_nothing() {
    let api = Api::in_memory();
    ask(&api, "POST", POOLS, Some(pool("p"))).await;
    let before = api.store().read().revision;
    let with = |at: &str, value: Value| {
        let mut pool = pool("q");
        *pool.pointer_mut(at).unwrap() = value;
        pool.to_string()
    };
    let path = format!("{POOLS}/p");
    let json = "application/json";
    let table = [
        ("POST", POOLS, json, "{".to_owned(), 400),
        ("POST", POOLS, json, "[]".to_owned(), 400),
        ("POST", POOLS, json, String::new(), 400),
        ("POST", POOLS, json, with("/kind", json!("Node")), 422),
        ("POST", POOLS, json, with("/apiVersion", json!("v1")), 400),
        ("POST", POOLS, json, with("/metadata", json!({"name": 5})), 400),
        ("POST", POOLS, json, with("/metadata", json!({})), 422),
        ("POST", POOLS, json, with("/metadata", json!({"name": "No"})), 422),
        ("POST", POOLS, json, with("/metadata", json!({"name": "q", "labels": {"a b": "c"}})), 422),
        ("POST", POOLS, json, with("/spec", json!({"range": {"cidr": "nonsense"}})), 422),
        ("POST", POOLS, json, pool("p").to_string(), 409),
        ("POST", POOLS, "text/plain", pool("q").to_string(), 415),
        ("POST", &path, json, pool("p").to_string(), 409),
        ("PUT", &path, json, pool("p").to_string(), 422),
        ("PUT", &path, json, pool("q").to_string(), 400),
        ("PUT", &format!("{POOLS}/q"), json, pool("q").to_string(), 404),
        ("PUT", POOLS, json, pool("p").to_string(), 400),
        ("PUT", NODES, json, node("n").to_string(), 405),
        ("BREW", &path, json, String::new(), 405),
        ("PATCH", &path, "application/apply-patch+yaml", pool("p").to_string(), 415),
        ("PATCH", &path, "application/strategic-merge-patch+json", "{}".to_owned(), 415),
        ("PATCH", &path, "application/merge-patch+json", "[]".to_owned(), 400),
        ("PATCH", &path, "application/merge-patch+json", r#"{"spec": {"range": null}}"#.to_owned(), 422),
        ("PATCH", &path, "application/merge-patch+json", r#"{"metadata": {"name": "x"}}"#.to_owned(), 400),
        (
            "PATCH",
            &path,
            "application/merge-patch+json",
            r#"{"metadata": {"resourceVersion": "1"}}"#.to_owned(),
            409,
        ),
        (
            "PATCH",
            &path,
            "application/json-patch+json",
            r#"[{"op":"remove","path":"/spec/x"}]"#.to_owned(),
            422,
        ),
        ("DELETE", &path, json, r#"{"preconditions": {"uid": "x"}}"#.to_owned(), 409),
        ("DELETE", &path, json, r#"{"preconditions": {"resourceVersion": "1"}}"#.to_owned(), 409),
        ("DELETE", &path, json, r#"{"propagationPolicy": "Never"}"#.to_owned(), 422),
        ("DELETE", &path, json, "{".to_owned(), 400),
        ("DELETE", &format!("{POOLS}/q"), json, String::new(), 404),
        ("GET", &format!("{POOLS}?labelSelector=a%20b"), json, String::new(), 400),
        ("GET", &format!("{POOLS}?fieldSelector=spec.x%3D1"), json, String::new(), 400),
        ("GET", &format!("{POOLS}?continue=nonsense"), json, String::new(), 400),
        ("GET", &format!("{POOLS}?resourceVersion=999999"), json, String::new(), 504),
        ("GET", &format!("{POOLS}?resourceVersion=x"), json, String::new(), 400),
        ("GET", "/api/v1/nodes/../nodes", json, String::new(), 404),
        ("POST", "/api/v1/namespaces/none/events", json, r#"{"metadata": {"name": "e"}}"#.to_owned(), 404),
        ("DELETE", "/api/v1/namespaces/default", json, String::new(), 403),
    ];
    for (method, path, media_type, body, expected) in table {
        let (code, answer) = ask_as(&api, method, path, media_type, body.clone()).await;
        assert_eq!(code, expected, "{method} {path} {body}: {answer}");
        assert_eq!((&answer["kind"], &answer["code"]), (&json!("Status"), &json!(expected)), "{answer}");
    }
    assert_eq!(api.store().read().revision, before);
}

#[tokio::test]
async fn an_object_that_is_too_large_is_refused() {
    let api = Api::in_memory();
    let mut large = node("n");
    large["metadata"]["annotations"] = json!({"a": "x".repeat(300 << 10)});
    assert_eq!(ask(&api, "POST", NODES, Some(large)).await.0, 422);
    let mut large = node("n");
    large["status"] = json!({});
    large["spec"] = json!({"podCIDRs": ["x".repeat(2 << 20)]});
    let (code, answer) = ask(&api, "POST", NODES, Some(large)).await;
    assert_eq!((code, &answer["kind"]), (500, &json!("Status")));
    let mut larger = node("n");
    larger["spec"] = json!({"podCIDRs": ["x".repeat(4 << 20)]});
    assert_eq!(ask(&api, "POST", NODES, Some(larger)).await.0, 413);
    assert!(listed(&api, NODES).await.is_empty());
}

#[tokio::test]
async fn unknown_fields_are_refused_told_or_dropped() {
    let api = Api::in_memory();
    let mut odd = pool("p");
    odd["spec"]["colour"] = json!("red");
    odd["metadata"]["mood"] = json!("good");
    let (code, answer) =
        ask(&api, "POST", &format!("{POOLS}?fieldValidation=Strict"), Some(odd.clone())).await;
    let message = answer["message"].as_str().unwrap();
    assert_eq!(code, 400);
    assert!(
        message
            .contains(r#"strict decoding error: unknown field "metadata.mood", unknown field "spec.colour""#),
        "{message}"
    );
    let request = Request::post(POOLS).body(Full::new(Bytes::from(odd.to_string()))).unwrap();
    let response = api.clone().oneshot(request).await.unwrap();
    let told: Vec<_> =
        response.headers().get_all("warning").iter().map(|v| v.to_str().unwrap().to_owned()).collect();
    assert_eq!(
        told,
        [r#"299 - "unknown field \"metadata.mood\"""#, r#"299 - "unknown field \"spec.colour\"""#]
    );
    let (_, stored) = ask(&api, "GET", &format!("{POOLS}/p"), None).await;
    assert!(stored["spec"].get("colour").is_none() && stored["metadata"].get("mood").is_none());
    let mut odd = node("n");
    odd["spec"] = json!({"colour": 1});
    let (code, answer) = ask(&api, "POST", &format!("{NODES}?fieldValidation=Strict"), Some(odd)).await;
    assert_eq!(code, 400, "{answer}");
    let twice = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"spec":{},"spec":{}}"#;
    let (code, answer) =
        ask_as(&api, "POST", &format!("{NODES}?fieldValidation=Strict"), "application/json", twice).await;
    assert!(answer["message"].as_str().unwrap().contains(r#"duplicate field "spec""#), "{code} {answer}");
}

#[tokio::test]
async fn a_dry_run_answers_and_leaves_no_trace() {
    let api = Api::in_memory();
    ask(&api, "POST", POOLS, Some(pool("p"))).await;
    let before = api.store().read().revision;
    assert_eq!(ask(&api, "POST", &format!("{POOLS}?dryRun=All"), Some(pool("q"))).await.0, 201);
    let change = json!({"spec": {"quarantine": "1m"}});
    let (code, answer) = patch(&api, &format!("{POOLS}/p?dryRun=All"), "merge-patch+json", change).await;
    assert_eq!((code, &answer["spec"]["quarantine"]), (200, &json!("1m")));
    assert_eq!(ask(&api, "DELETE", &format!("{POOLS}/p?dryRun=All"), None).await.0, 200);
    assert_eq!(ask(&api, "DELETE", &format!("{POOLS}?dryRun=Some"), None).await.0, 422);
    assert_eq!(api.store().read().revision, before);
    assert_eq!(listed(&api, POOLS).await["p"]["spec"]["quarantine"], "5m");
}

#[tokio::test]
async fn versions_are_the_same_object() {
    let api = Api::in_memory();
    let state = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeNetworkState", "metadata": {"name": "n"}});
    let path = |version| format!("/apis/nmstate.io/{version}/nodenetworkstates");
    assert_eq!(ask(&api, "POST", &path("v1"), Some(state)).await.0, 201);
    for version in ["v1", "v1beta1"] {
        let (_, one) = ask(&api, "GET", &format!("{}/n", path(version)), None).await;
        assert_eq!(one["apiVersion"], format!("nmstate.io/{version}"));
        let (_, list) = ask(&api, "GET", &path(version), None).await;
        assert_eq!(list["items"][0]["apiVersion"], format!("nmstate.io/{version}"));
    }
}

#[tokio::test]
async fn events_of_both_groups_are_the_same_objects() {
    let api = Api::in_memory();
    let (core, new) =
        ("/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events");
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "regarding": {"kind": "Node", "name": "n"}, "note": "hello", "reason": "R", "action": "A", "type": "Normal",
        "eventTime": "2026-01-02T03:04:05.123456Z", "reportingController": "berth", "reportingInstance": "i",
    });
    let (code, made) = ask(&api, "POST", new, Some(event.clone())).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["note"], "hello");
    assert_eq!(made["eventTime"], event["eventTime"]);
    let (_, seen) = ask(&api, "GET", &format!("{core}/e"), None).await;
    assert_eq!((&seen["message"], &seen["involvedObject"]["name"]), (&json!("hello"), &json!("n")));
    assert_eq!((&seen["apiVersion"], &seen["reportingComponent"]), (&json!("v1"), &json!("berth")));
    let (_, list) = ask(&api, "GET", &format!("{new}?fieldSelector=regarding.name%3Dn"), None).await;
    assert_eq!(list["items"][0]["regarding"]["name"], "n");
    let mut odd = event;
    odd["message"] = json!("core's name");
    odd["metadata"]["name"] = json!("f");
    let (code, answer) = ask(&api, "POST", &format!("{new}?fieldValidation=Strict"), Some(odd)).await;
    assert!(
        code == 400 && answer["message"].as_str().unwrap().contains(r#"unknown field "message""#),
        "{answer}"
    );
}

#[tokio::test]
async fn a_list_in_pages_is_of_one_moment() {
    let api = Api::in_memory();
    for index in 0..10 {
        ask(&api, "POST", NODES, Some(node(&format!("n{index}")))).await;
    }
    let (_, first) = ask(&api, "GET", &format!("{NODES}?limit=4"), None).await;
    assert_eq!(first["metadata"]["remainingItemCount"], 6);
    for index in [1, 5, 9] {
        ask(&api, "DELETE", &format!("{NODES}/n{index}"), None).await;
    }
    ask(&api, "POST", NODES, Some(node("n55"))).await;
    patch(&api, &format!("{NODES}/n6"), "merge-patch+json", json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    let mut names: Vec<Value> = Vec::new();
    let mut page = first.clone();
    loop {
        names.extend(page["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()));
        assert!(
            page["items"].as_array().unwrap().iter().all(|item| item["metadata"].get("labels").is_none())
        );
        assert_eq!(page["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
        let Some(next) = page["metadata"]["continue"].as_str() else { break };
        page = ask(&api, "GET", &format!("{NODES}?limit=4&continue={next}"), None).await.1;
    }
    assert_eq!(names, (0..10).map(|index| json!(format!("n{index}"))).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_page_that_comes_too_late_is_expired() {
    let api = Api::in_memory_with(Limits { log_events: 4, ..Limits::default() });
    for index in 0..10 {
        ask(&api, "POST", NODES, Some(node(&format!("n{index}")))).await;
    }
    let (_, first) = ask(&api, "GET", &format!("{NODES}?limit=4"), None).await;
    for index in 0..5 {
        ask(&api, "DELETE", &format!("{NODES}/n{index}"), None).await;
    }
    let next = first["metadata"]["continue"].as_str().unwrap();
    let (code, answer) = ask(&api, "GET", &format!("{NODES}?limit=4&continue={next}"), None).await;
    assert_eq!((code, &answer["reason"]), (410, &json!("Expired")));
    let revision = first["metadata"]["resourceVersion"].as_str().unwrap();
    let exact = format!("{NODES}?resourceVersion={revision}&resourceVersionMatch=Exact");
    assert_eq!(ask(&api, "GET", &exact, None).await.0, 410);
}

#[tokio::test]
async fn answers_take_the_shape_that_is_asked_for() {
    let api = Api::in_memory();
    ask(&api, "POST", NODES, Some(node("n"))).await;
    let get = async |accept: &str| {
        let request = Request::get(format!("{NODES}/n")).header("accept", accept);
        let response = api.clone().oneshot(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(body.to_vec()).unwrap())
    };
    let (code, text) = get("application/vnd.kubernetes.protobuf, application/json").await;
    assert!(code == 200 && text.starts_with('{'), "{text}");
    let (code, text) = get("application/yaml").await;
    assert!(code == 200 && text.starts_with("apiVersion: v1\n"), "{text}");
    let (_, text) =
        get("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json").await;
    assert!(text.starts_with(r#"{"kind":"PartialObjectMetadata""#), "{text}");
    assert_eq!(get("text/html").await.0, 406);
    assert_eq!(get("*/*").await.0, 200);
}
