//! Owner references: dependents go with their owner, or not, as the deletion says.

use api_tests::server::Server;
use api_tests::server::paths::{ENACTMENTS, NODES, STATES, at, enactment, node, owned, state};
use api_tests::wait::until;
use serde_json::{Value, json};

async fn made_node(s: &Server) -> (String, Value) {
    let name = s.name("owner");
    (at(NODES, &name), s.post(NODES, &node(&name)).await.created())
}

/// A dependent of these owners; its path.
async fn dependent(s: &Server, owners: &[&Value], blocks: bool, finalizers: &[&str]) -> String {
    let name = s.name("dependent");
    let mut object = enactment(&name);
    let mut references = Vec::new();
    for owner in owners {
        object = owned(object, owner, blocks);
        references.push(object["metadata"]["ownerReferences"][0].clone());
    }
    object["metadata"]["ownerReferences"] = json!(references);
    object["metadata"]["finalizers"] = json!(finalizers);
    s.post(ENACTMENTS, &object).await.created();
    at(ENACTMENTS, &name)
}

async fn gone(s: &Server, path: &str) {
    until(&format!("{path} gone"), || async {
        let answer = s.get(path).await;
        if answer.code == 404 { Ok(()) } else { Err(answer.text) }
    })
    .await;
}

pub(crate) async fn dependents_go_with_their_owner(s: Server) {
    // Background, as it is asked for and as it is when nothing is said.
    for options in [json!({}), json!({"propagationPolicy": "Background"})] {
        let (path, owner) = made_node(&s).await;
        let first = dependent(&s, &[&owner], false, &[]).await;
        let second = dependent(&s, &[&owner], true, &[]).await;
        let held = dependent(&s, &[&owner], false, &["nmstate.io/hold"]).await;
        s.delete_with(&path, &options).await.ok();
        s.get(&path).await.refused(404, "NotFound");
        gone(&s, &first).await;
        gone(&s, &second).await;
        // One that is held goes as any other does: when it is let go.
        until("the one that is held to be going", || async {
            let object = s.get(&held).await.ok();
            object["metadata"]["deletionTimestamp"].is_string().then_some(()).ok_or(object.to_string())
        })
        .await;
        s.merge(&held, &json!({"metadata": {"finalizers": null}})).await.ok();
        gone(&s, &held).await;
    }
}

pub(crate) async fn foreground_waits_for_them(s: Server) {
    let (path, owner) = made_node(&s).await;
    let held = dependent(&s, &[&owner], true, &["nmstate.io/hold"]).await;
    let free = dependent(&s, &[&owner], true, &[]).await;
    let going = s.delete_with(&path, &json!({"propagationPolicy": "Foreground"})).await.ok();
    assert_eq!(going["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    gone(&s, &free).await;
    until("the one that is held to be going", || async {
        let object = s.get(&held).await.ok();
        object["metadata"]["deletionTimestamp"].is_string().then_some(()).ok_or(object.to_string())
    })
    .await;
    assert_eq!(s.get(&path).await.ok()["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    s.merge(&held, &json!({"metadata": {"finalizers": null}})).await.ok();
    gone(&s, &held).await;
    gone(&s, &path).await;
}

pub(crate) async fn orphans_stay(s: Server) {
    let (path, owner) = made_node(&s).await;
    let orphan = dependent(&s, &[&owner], true, &[]).await;
    s.delete_with(&path, &json!({"propagationPolicy": "Orphan"})).await.ok();
    gone(&s, &path).await;
    let after = s.get(&orphan).await.ok();
    assert_eq!(after["metadata"]["ownerReferences"], json!(null));
    assert_eq!(after["metadata"]["deletionTimestamp"], json!(null));
}

pub(crate) async fn one_of_two_owners_is_not_enough(s: Server) {
    for policy in ["Background", "Foreground"] {
        for blocks in [false, true] {
            let options = json!({"propagationPolicy": policy});
            let (first_path, first) = made_node(&s).await;
            let (second_path, second) = made_node(&s).await;
            let shared = dependent(&s, &[&first, &second], blocks, &[]).await;
            let alone = dependent(&s, &[&first], blocks, &[]).await;
            s.delete_with(&first_path, &options).await.ok();
            gone(&s, &alone).await;
            gone(&s, &first_path).await;
            // The reference to the one that is gone may be taken out; the object stays while the other is there.
            let left = s.get(&shared).await.ok();
            assert_eq!(left["metadata"]["deletionTimestamp"], json!(null), "{policy}");
            let references = left["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            assert!(references.iter().any(|owner| owner["uid"] == second["metadata"]["uid"]), "{left}");
            s.delete_with(&second_path, &options).await.ok();
            gone(&s, &shared).await;
            gone(&s, &second_path).await;
        }
    }
}

pub(crate) async fn an_owner_that_never_was(s: Server) {
    let name = s.name("dependent");
    let nobody = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": s.name("nobody"), "uid": "00000000-0000-0000-0000-000000000001"},
    });
    s.post(STATES, &owned(state(&name), &nobody, false)).await.created();
    gone(&s, &at(STATES, &name)).await;
}

/// A Node that was made again under its name is another one.
pub(crate) async fn a_namesake_is_no_owner(s: Server) {
    let (path, owner) = made_node(&s).await;
    let name = owner["metadata"]["name"].as_str().expect("a name");
    let old = dependent(&s, &[&owner], false, &["nmstate.io/hold"]).await;
    s.delete(&path).await.ok();
    let namesake = s.post(NODES, &node(name)).await.created();
    let new = dependent(&s, &[&namesake], false, &[]).await;
    until("the old one's dependent to be going", || async {
        let object = s.get(&old).await.ok();
        object["metadata"]["deletionTimestamp"].is_string().then_some(()).ok_or(object.to_string())
    })
    .await;
    assert_eq!(s.get(&new).await.ok()["metadata"]["deletionTimestamp"], json!(null));
    s.merge(&old, &json!({"metadata": {"finalizers": null}})).await.ok();
    gone(&s, &old).await;
    assert_eq!(s.get(&path).await.ok()["metadata"]["uid"], namesake["metadata"]["uid"]);
}
