//! Both forms of discovery tell of the same resources, and of what is served.

use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::*;

const KUBECTL: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

async fn document(path: &str, accept: &str) -> (String, Value) {
    let response = answer(path, accept).unwrap_or_else(|| panic!("{path} is discovery's"));
    let content_type = response.headers()["content-type"].to_str().expect("text").to_owned();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (content_type, serde_json::from_slice(&body).expect("JSON"))
}

#[tokio::test]
async fn the_aggregated_form_has_all_in_two_documents() {
    let (content_type, core) = document("/api", KUBECTL).await;
    assert_eq!(content_type, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    assert_eq!(core["items"][0]["metadata"], json!({}));
    let (_, groups) = document("/apis", KUBECTL).await;
    let ours =
        &groups["items"].as_array().expect("groups").iter().find(|g| g["metadata"]["name"] == "nmstate.io");
    let ours = ours.expect("our group");
    let versions: Vec<&str> =
        ours["versions"].as_array().expect("versions").iter().filter_map(|v| v["version"].as_str()).collect();
    assert_eq!(versions, ["v1", "v1beta1"]);
    let pool = &ours["versions"][0]["resources"][0];
    assert_eq!(
        *pool,
        json!({
            "resource": "nodeippools",
            "responseKind": {"group": "nmstate.io", "version": "v1", "kind": "NodeIPPool"},
            "scope": "Cluster",
            "singularResource": "nodeippool",
            "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            "shortNames": ["nip", "ippool"],
            "categories": ["berth"],
            "subresources": [{"subresource": "status", "verbs": ["get", "patch", "update"],
                "responseKind": {"group": "nmstate.io", "version": "v1", "kind": "NodeIPPool"}}],
        })
    );
}

#[tokio::test]
async fn the_plain_form_names_every_resource_once() {
    let (_, groups) = document("/apis", "application/json").await;
    assert_eq!(groups["kind"], "APIGroupList");
    let names: Vec<&str> =
        groups["groups"].as_array().expect("groups").iter().filter_map(|g| g["name"].as_str()).collect();
    assert_eq!(names, ["coordination.k8s.io", "events.k8s.io", "nmstate.io"]);
    let (_, group) = document("/apis/nmstate.io", "").await;
    assert_eq!(
        (&group["kind"], &group["preferredVersion"]["groupVersion"]),
        (&json!("APIGroup"), &json!("nmstate.io/v1"))
    );
    let (_, list) = document("/apis/nmstate.io/v1beta1", "").await;
    assert_eq!(list["groupVersion"], "nmstate.io/v1beta1");
    let names: Vec<&str> =
        list["resources"].as_array().expect("resources").iter().filter_map(|r| r["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "nodenetworkconfigurationenactments",
            "nodenetworkconfigurationenactments/status",
            "nodenetworkconfigurationpolicies",
            "nodenetworkconfigurationpolicies/status",
            "nodenetworkstates",
            "nodenetworkstates/status",
        ]
    );
    let (_, core) = document("/api/v1", "*/*").await;
    assert_eq!(core["groupVersion"], "v1");
    assert_eq!(document("/api", "").await.1["versions"], json!(["v1"]));
}

#[test]
fn other_paths_are_not_discoverys() {
    for path in ["/", "/api/v2", "/apis/apps", "/apis/nmstate.io/v9", "/api/v1/nodes", "/apis//v1", "/apix"] {
        assert!(answer(path, KUBECTL).is_none(), "{path}");
    }
}
