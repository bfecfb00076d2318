//! An installed kubernetes-nmstate, as `tests/api/kubernetes-nmstate` has it, and how its CRDs and ours replace each other.
//!
//! What is done to CRDs is done with kubectl, as an administrator or an operator does it.

use serde_json::Value;

use crate::control_plane::ControlPlane;
use crate::server::paths::{ENACTMENTS, POLICIES, STATES};
use crate::server::{Server, Which};
use crate::wait::until;

/// Its three CRDs.
pub const CRDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kubernetes-nmstate/crds");
/// What its operator has besides: the kind that it is told by, and a policy of admission.
pub const OPERATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kubernetes-nmstate/operator");
/// All of ours.
pub const OURS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/yaml");

/// What only our CRDs serve: enactments and states as v1.
const OUR_OWN: [&str; 2] =
    ["/apis/nmstate.io/v1/nodenetworkconfigurationenactments", "/apis/nmstate.io/v1/nodenetworkstates"];

/// Whose CRDs there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Theirs,
    Ours,
}

/// The objects of the fixtures, in the order in which they are made: policies, enactments, states.
pub fn objects() -> Vec<Value> {
    let texts = [
        include_str!("../kubernetes-nmstate/objects/policies.yaml"),
        include_str!("../kubernetes-nmstate/objects/enactments.yaml"),
        include_str!("../kubernetes-nmstate/objects/states.yaml"),
    ];
    texts.into_iter().flat_map(|text| serde_saphyr::from_multiple::<Value>(text).expect("objects")).collect()
}

/// What its operator is told.
pub fn nmstate() -> Value {
    serde_saphyr::from_str(include_str!("../kubernetes-nmstate/objects/nmstate.yaml")).expect("an object")
}

/// Runs kubectl with what comes before the folder of the CRDs, and waits until they are served.
pub async fn put(plane: &ControlPlane, whose: Whose, how: &[&str]) {
    let folder = match whose {
        Whose::Theirs => ["-f", CRDS],
        Whose::Ours => ["-k", OURS],
    };
    plane.run_kubectl(&[how, &folder].concat());
    let s = Server::new(Which::Real, plane.client());
    until(&format!("{whose:?} to be served"), || served(&s, whose)).await;
}

async fn served(s: &Server, whose: Whose) -> Result<(), String> {
    for path in OUR_OWN {
        let wanted = if whose == Whose::Ours { 200 } else { 404 };
        let found = s.get(path).await;
        if found.code != wanted {
            return Err(found.text);
        }
    }
    for path in [POLICIES, ENACTMENTS, STATES] {
        let found = s.get(path).await;
        if found.code != 200 {
            return Err(found.text);
        }
    }
    // A policy as our schema has it is never without a spec, theirs are as they are written.
    let probe = s.get(&format!("{POLICIES}/{WITHOUT_SPEC}")).await;
    let has_spec = probe.body.get("spec").is_some();
    if probe.code == 200 && has_spec != (whose == Whose::Ours) {
        return Err(probe.text);
    }
    Ok(())
}

/// The policy of the fixtures that has none.
pub const WITHOUT_SPEC: &str = "to-be-written";

/// Makes an object as its owner does: first itself, then its status. What the API server has then.
pub async fn make(s: &Server, object: &Value) -> Value {
    let collection = collection(object);
    let mut object = object.clone();
    for owner in object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
        let node = s.get(&format!("/api/v1/nodes/{}", owner["name"].as_str().expect("a name"))).await.ok();
        owner["uid"] = node["metadata"]["uid"].clone();
    }
    let mut made = s.post(&collection, &object).await.created();
    if let Some(status) = object.get("status") {
        made["status"] = status.clone();
        let name = object["metadata"]["name"].as_str().expect("a name");
        made = s.put(&format!("{collection}/{name}/status"), &made).await.ok();
    }
    made
}

/// Where objects like this are, in the version that it is written in.
pub fn collection(object: &Value) -> String {
    let kind = object["kind"].as_str().expect("a kind");
    let plural = match kind {
        "NodeNetworkConfigurationPolicy" => "nodenetworkconfigurationpolicies".to_owned(),
        other => format!("{}s", other.to_lowercase()),
    };
    format!("/apis/{}/{plural}", object["apiVersion"].as_str().expect("a version"))
}
