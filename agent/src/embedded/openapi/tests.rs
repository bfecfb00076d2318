//! What kubectl looks for in the documents is there, and every reference leads somewhere.

use http_body_util::BodyExt;

use super::*;

async fn document(path: &str, accept: &str) -> Value {
    let response = answer(path, accept).unwrap_or_else(|| panic!("{path} is served"));
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    serde_json::from_slice(&body).expect("JSON")
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn each_group_and_version_has_a_document_that_refers_to_nothing_else() {
    let index = document("/openapi/v3", "application/json").await;
    let paths = index["paths"].as_object().expect("paths");
    let keys: Vec<&str> = paths.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "api/v1",
            "apis/coordination.k8s.io/v1",
            "apis/events.k8s.io/v1",
            "apis/nmstate.io/v1",
            "apis/nmstate.io/v1beta1"
        ]
    );
    for (key, entry) in paths {
        let url = entry["serverRelativeURL"].as_str().expect("a URL");
        let (path, _hash) = url.split_once("?hash=").expect("a hash");
        assert_eq!(path, format!("/openapi/v3/{key}"));
        let document = document(path, "application/json").await;
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for name in found {
            let name = name.strip_prefix("#/components/schemas/").expect("a schema");
            assert!(document["components"]["schemas"].get(name).is_some(), "{key}: {name}");
        }
    }
}

/// kubectl leaves the checking of fields to a server whose PATCH knows `fieldValidation`, and works out strategic merge
/// patches itself where none is offered.
#[tokio::test]
async fn writes_know_what_kubectl_asks_for() {
    let document = document("/openapi/v3/apis/nmstate.io/v1", "application/json").await;
    let pool = &document["paths"]["/apis/nmstate.io/v1/nodeippools/{name}"];
    let patch = &pool["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "nmstate.io", "version": "v1", "kind": "NodeIPPool"})
    );
    let names: Vec<&str> = patch["parameters"]
        .as_array()
        .expect("parameters")
        .iter()
        .filter_map(|p| p["name"].as_str())
        .collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation"]);
    let content = patch["requestBody"]["content"].as_object().expect("content");
    assert!(!content.contains_key("application/strategic-merge-patch+json"));
    let schema = &document["components"]["schemas"]["io.nmstate.v1.NodeIPPool"];
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "NodeIPPool");
    let cidr = &schema["properties"]["spec"]["properties"]["range"]["properties"]["cidr"];
    assert!(cidr["description"].as_str().is_some_and(|text| text.starts_with("The network.")), "{cidr}");
}

#[tokio::test]
async fn namespaced_kinds_are_where_they_are() {
    let document = document("/openapi/v3/apis/coordination.k8s.io/v1", "").await;
    let paths: Vec<&String> = document["paths"].as_object().expect("paths").keys().collect();
    let root = "/apis/coordination.k8s.io/v1";
    let expected = ["leases", "namespaces/{namespace}/leases", "namespaces/{namespace}/leases/{name}"];
    assert_eq!(paths, expected.map(|path| format!("{root}/{path}")).iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn version_2_comes_as_it_is_asked_for() {
    let document = document("/openapi/v2", "application/json, */*").await;
    assert_eq!(document["swagger"], "2.0");
    let mut found = Vec::new();
    references(&document, &mut found);
    for name in found {
        let name = name.strip_prefix("#/definitions/").expect("a definition");
        assert!(document["definitions"].get(name).is_some(), "{name}");
    }
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let response = answer("/openapi/v2", protobuf).expect("an answer");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], protobuf.replace('@', "."));
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    // `swagger: "2.0"`; that kubectl reads the rest is shown with kubectl.
    assert!(body.starts_with(b"\x0a\x032.0"), "{:?}", &body[..8]);
    let refused = answer("/openapi/v2", "text/html").expect("an answer");
    assert_eq!(refused.status(), StatusCode::NOT_ACCEPTABLE);
}

#[test]
fn other_paths_are_not_ours() {
    for path in ["/openapi", "/openapi/v3/apis/apps/v1", "/openapi/v3/", "/openapi/v4"] {
        let known = path.trim_end_matches('/') == "/openapi/v3";
        assert_eq!(answer(path, "").is_some(), known, "{path}");
    }
}
