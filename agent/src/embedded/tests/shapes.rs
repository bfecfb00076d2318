//! Long lists, which go out in pieces, say in every shape what short ones do.

use hyper::http::header::{ACCEPT, CONTENT_TYPE};

use super::*;

const STATES: &str = "/apis/nmstate.io/v1beta1/nodenetworkstates";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const YAML: &str = "application/yaml";

/// As many as make several pieces, each as long as a host's state is.
const LONG: usize = 64;

async fn filled(count: usize) -> Api {
    let api = Api::in_memory();
    for number in 0..count {
        let state = json!({"apiVersion": "nmstate.io/v1beta1", "kind": "NodeNetworkState",
            "metadata": {"name": format!("node{number:02}"), "annotations": {"text": "äx: y\n".repeat(2000)}}});
        assert_eq!(ask(&api, "POST", STATES, Some(state)).await.0, 201);
    }
    api
}

/// A list: whether it comes in pieces, its type, its text.
async fn list(api: &Api, accept: &str) -> (bool, String, String) {
    let request = Request::builder().uri(STATES).header(ACCEPT, accept).body(Full::new(Bytes::new()));
    let response = api.clone().oneshot(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    let whole = response.body().size_hint().exact().is_some();
    let kind = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (!whole, kind, String::from_utf8(text.to_vec()).unwrap())
}

#[tokio::test]
async fn every_shape_has_every_item() {
    for (count, long) in [(LONG, true), (3, false), (0, false)] {
        let api = filled(count).await;
        let (_, whole) = ask(&api, "GET", STATES, None).await;
        let items = whole["items"].as_array().unwrap();
        assert_eq!(items.len(), count);

        let (pieces, kind, text) = list(&api, TABLE).await;
        let table: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((pieces, kind.as_str(), &table["kind"]), (long, "application/json", &json!("Table")));
        assert_eq!(table["metadata"], whole["metadata"]);
        assert_eq!(table["columnDefinitions"][0]["name"], "Name");
        let rows = table["rows"].as_array().unwrap();
        let metadata: Vec<&Value> = rows.iter().map(|row| &row["object"]["metadata"]).collect();
        assert_eq!(metadata, items.iter().map(|item| &item["metadata"]).collect::<Vec<_>>());
        let names: Vec<&Value> = rows.iter().map(|row| &row["cells"][0]).collect();
        assert_eq!(names, items.iter().map(|item| &item["metadata"]["name"]).collect::<Vec<_>>());

        let (pieces, kind, text) = list(&api, METADATA).await;
        let partial: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((pieces, kind.as_str()), (long, "application/json"));
        assert_eq!(partial["kind"], "PartialObjectMetadataList");
        let found = partial["items"].as_array().unwrap().iter().map(|item| &item["metadata"]);
        assert_eq!(found.collect::<Vec<_>>(), metadata);

        let (pieces, kind, text) = list(&api, YAML).await;
        assert_eq!((pieces, kind.as_str()), (long, YAML));
        assert_eq!(crate::yaml::parse(&text).unwrap(), std::slice::from_ref(&whole));
        assert_eq!(text, crate::yaml::print(&whole).unwrap());
    }
}
