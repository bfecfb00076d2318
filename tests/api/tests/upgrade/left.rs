//! What the operator of kubernetes-nmstate has besides: the resource that it is told by, and a policy of admission that stays
//! when it goes (docs/install.md#from-kubernetes-nmstate).

use api_tests::control_plane::ControlPlane;
use api_tests::kubernetes_nmstate::{OPERATOR, make, nmstate};
use api_tests::server::Server;
use api_tests::server::paths::{POLICIES, at};
use api_tests::wait::until;
use serde_json::{Value, json};

const IN_PROGRESS: &str = "left-in-progress";

/// Installs both, and one policy that nobody has carried out. The resource, as the API server has it.
pub(super) async fn install(plane: &ControlPlane, s: &Server) -> Value {
    plane.run_kubectl(&["create", "-f", OPERATOR]);
    until("its resource to be served", || async {
        let found = s.get("/apis/nmstate.io/v1/nmstates").await;
        if found.code == 200 { Ok(()) } else { Err(found.text) }
    })
    .await;
    make(s, &nmstate()).await
}

/// The resource is what it was, in both its versions, with the columns that people know.
pub(super) async fn resource_is(plane: &ControlPlane, s: &Server, before: &Value) {
    for version in ["v1", "v1beta1"] {
        let mut wanted = before.clone();
        wanted["apiVersion"] = json!(format!("nmstate.io/{version}"));
        assert_eq!(s.get(&format!("/apis/nmstate.io/{version}/nmstates/nmstate")).await.ok(), wanted);
    }
    let shown = plane.run_kubectl(&["get", "nmstates.v1.nmstate.io"]);
    let words: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words, [["NAME", "STATUS", "REASON"], ["nmstate", "Available", "SuccessfullyDeployed"]]);
}

/// Until it is taken away, its policy of admission refuses what nobody has carried out to be edited; then ours has the word, as
/// far as it is installed, which here it is not.
pub(super) async fn its_admission_goes(plane: &ControlPlane, s: &Server) {
    let policy = json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": IN_PROGRESS},
        "spec": {"maxUnavailable": 3},
    });
    s.post(POLICIES, &policy).await.created();
    let path = at(POLICIES, IN_PROGRESS);
    let four = json!({"spec": {"maxUnavailable": 4}});
    let edit = || s.merge(&path, &four);
    let told = format!("policy {IN_PROGRESS} is still in progress");
    let refused = until("it to be refused", || async {
        let found = edit().await;
        if found.code == 200 { Err(found.text) } else { Ok(found) }
    })
    .await
    .refused(403, "Forbidden");
    assert!(refused["message"].as_str().is_some_and(|text| text.ends_with(&told)), "{refused}");

    for command in commands() {
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        plane.run_kubectl(&words);
    }
    until("it to be allowed", || async {
        let found = edit().await;
        if found.code == 200 { Ok(()) } else { Err(found.text) }
    })
    .await;
    let left = plane.run_kubectl(&[
        "get",
        "validatingadmissionpolicies,validatingadmissionpolicybindings",
        "-o",
        "name",
    ]);
    assert!(!left.contains("nncp-validation"), "{left}");
    s.delete(&path).await.ok();
}

/// Those of the document that are about admission.
fn commands() -> Vec<&'static str> {
    let text = include_str!("../../../../docs/install.md");
    let all: Vec<&str> =
        text.lines().filter(|line| line.starts_with("kubectl delete validatingadmission")).collect();
    assert_eq!(all.len(), 2, "{all:?}");
    all
}

/// Last, as the document has it: the kind that nobody reads any more.
pub(super) async fn its_resource_goes(plane: &ControlPlane, s: &Server) {
    plane.run_kubectl(&["delete", "crd", "nmstates.nmstate.io", "--ignore-not-found"]);
    until("it to be gone", || async {
        let found = s.get("/apis/nmstate.io/v1/nmstates/nmstate").await;
        if found.code == 404 { Ok(()) } else { Err(found.text) }
    })
    .await;
}
