//! Our CRDs over those of an installed kubernetes-nmstate, and back, on a real API server: every object stays as it is.
//!
//! One control plane, one set of objects, and all ways in which CRDs are put over others, one after the other.

mod left;
mod writes;

use std::collections::BTreeMap;

use api_tests::control_plane::{ControlPlane, Kinds, Options};
use api_tests::kubernetes_nmstate::Whose::{self, Ours, Theirs};
use api_tests::kubernetes_nmstate::{WITHOUT_SPEC, collection, make, objects, put};
use api_tests::server;
use api_tests::server::paths::{NODES, node};
use api_tests::server::{Server, Which};
use crds::Kind;
use serde_json::{Value, json};

const KINDS: [Kind; 3] =
    [Kind::NodeNetworkConfigurationPolicy, Kind::NodeNetworkConfigurationEnactment, Kind::NodeNetworkState];

/// Everything that there is, by its path, as it was last written.
type Known = BTreeMap<String, Value>;

#[test]
fn objects_of_kubernetes_nmstate_are_kept() {
    let options = Options { kinds: Kinds::None, ..Options::default() };
    let plane = ControlPlane::start_with(&options).expect("a control plane");
    server::run(Server::new(Which::Real, plane.client()), async |s| story(&plane, &s).await);
}

async fn story(plane: &ControlPlane, s: &Server) {
    put(plane, Theirs, &["create"]).await;
    let mut known = install(s).await;
    let nmstate = left::install(plane, s).await;
    kept(s, Theirs, &known).await;

    // As docs/compatibility.md has it; what an operator made has no annotation of kubectl's.
    put(plane, Ours, &["apply", "--server-side", "--force-conflicts"]).await;
    kept(s, Ours, &known).await;
    left::resource_is(plane, s, &nmstate).await;
    left::its_admission_goes(plane, s).await;
    // An operator that still runs puts its own back.
    put(plane, Theirs, &["replace"]).await;
    kept(s, Theirs, &known).await;
    put(plane, Ours, &["apply"]).await;
    kept(s, Ours, &known).await;
    columns(plane);

    // What Berth has written is not lost either, whichever way it goes on.
    writes::of_berth(s, &mut known).await;
    kept(s, Ours, &known).await;
    put(plane, Theirs, &["apply"]).await;
    kept(s, Theirs, &known).await;
    put(plane, Ours, &["apply"]).await;
    kept(s, Ours, &known).await;

    writes::anything_can_be_written_again(s, &known).await;
    writes::what_ours_would_refuse_stays_usable(s).await;
    left::resource_is(plane, s, &nmstate).await;
    left::its_resource_goes(plane, s).await;
    writes::everything_goes(s, &known).await;
}

async fn kept(s: &Server, whose: Whose, known: &Known) {
    crds_stand(s, whose).await;
    objects_are(s, whose, known).await;
}

/// The objects of the fixtures, on a cluster that has been through a change of the stored version.
async fn install(s: &Server) -> Known {
    for name in ["node01", "node02"] {
        s.post(NODES, &node(name)).await.created();
    }
    store_policies_as(s, "v1beta1").await;
    let (old, new): (Vec<Value>, Vec<Value>) =
        objects().into_iter().partition(|object| object["apiVersion"] == "nmstate.io/v1beta1");
    let mut known = Known::new();
    for object in old {
        known.insert(path(&object), make(s, &object).await);
    }
    store_policies_as(s, "v1").await;
    for object in new.iter().chain(&writes::refused_by_ours()) {
        known.insert(path(object), make(s, object).await);
    }
    assert!(known.len() >= 10, "{known:?}");
    known
}

fn path(object: &Value) -> String {
    format!("{}/{}", collection(object), object["metadata"]["name"].as_str().expect("a name"))
}

async fn store_policies_as(s: &Server, version: &str) {
    let path = crd(Kind::NodeNetworkConfigurationPolicy);
    let mut crd = s.get(&path).await.ok();
    for one in crd["spec"]["versions"].as_array_mut().expect("versions") {
        one["storage"] = json!(one["name"] == version);
    }
    s.put(&path, &crd).await.ok();
}

fn crd(kind: Kind) -> String {
    let name = kind.definition().crd.metadata.name.as_ref().expect("a name");
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
}

/// Established, under names that nobody else has; and what was ever stored is still served.
async fn crds_stand(s: &Server, whose: Whose) {
    for kind in KINDS {
        let found = s.get(&crd(kind)).await.ok();
        for condition in found["status"]["conditions"].as_array().expect("conditions") {
            let good = matches!(condition["type"].as_str(), Some("Established" | "NamesAccepted"));
            assert!(!good || condition["status"] == "True", "{whose:?} {}: {condition}", kind.name());
        }
        let mut stored: Vec<&str> = found["status"]["storedVersions"]
            .as_array()
            .expect("stored versions")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        stored.sort_unstable();
        let policies = kind == Kind::NodeNetworkConfigurationPolicy;
        let wanted: &[&str] = if policies { &["v1", "v1beta1"] } else { &["v1beta1"] };
        assert_eq!(stored, wanted, "{whose:?} {}", kind.name());
    }
}

/// Each object is what it was, UID, version, times and all, in every version that is served.
async fn objects_are(s: &Server, whose: Whose, known: &Known) {
    for (path, before) in known {
        let wanted = seen_by(whose, before);
        assert_eq!(s.get(path).await.ok(), wanted, "{whose:?} {path}");
        let is_policy = before["kind"] == Kind::NodeNetworkConfigurationPolicy.name();
        for version in
            ["v1", "v1beta1"].into_iter().filter(|one| is_policy || whose == Ours || *one == "v1beta1")
        {
            let mut wanted = wanted.clone();
            wanted["apiVersion"] = json!(format!("nmstate.io/{version}"));
            let written = before["apiVersion"].as_str().expect("a version");
            let path = path.replacen(written, &format!("nmstate.io/{version}"), 1);
            assert_eq!(s.get(&path).await.ok(), wanted, "{whose:?} {path}");
        }
    }
}

/// What a schema does to an object that is read, all of it. Ours fills a policy's spec and the maps of its status in where
/// they are missing, with nothing, so that a patch of one entry finds its place. Theirs doesn't show what only Berth has.
fn seen_by(whose: Whose, written: &Value) -> Value {
    let mut seen = written.clone();
    let is_policy = written["kind"] == Kind::NodeNetworkConfigurationPolicy.name();
    match whose {
        Ours if is_policy => {
            for path in
                [&["spec"][..], &["status", "unavailableNodeCountMap"], &["status", "unavailableNodes"]]
            {
                let place = path.iter().fold(&mut seen, |value, field| &mut value[*field]);
                if place.is_null() {
                    *place = json!({});
                }
            }
        }
        Ours => {}
        Theirs => {
            if let Some(status) = seen.get_mut("status").and_then(Value::as_object_mut) {
                status.retain(|field, _| !writes::BERTHS.contains(&field.as_str()));
            }
        }
    }
    seen
}

/// What people see.
fn columns(plane: &ControlPlane) {
    let shown = |what: &str| -> Vec<Vec<String>> {
        let text = plane.run_kubectl(&["get", what]);
        let words = |line: &str| {
            line.split("   ").map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        text.lines().map(words).collect()
    };
    let policies = shown("nncp");
    assert_eq!(policies[0], ["NAME", "STATUS", "REASON"]);
    assert!(
        policies.contains(
            &["br1-over-default-nic", "Available", "SuccessfullyConfigured"].map(str::to_owned).to_vec()
        ),
        "{policies:?}"
    );
    assert!(
        policies.contains(&["bond0-storage", "Degraded", "FailedToConfigure"].map(str::to_owned).to_vec()),
        "{policies:?}"
    );
    assert!(policies.contains(&vec![WITHOUT_SPEC.to_owned()]), "{policies:?}");
    let enactments = shown("nnce");
    assert_eq!(enactments[0], ["NAME", "STATUS", "STATUS AGE", "REASON"]);
    let failed = enactments.iter().find(|line| line[0] == "node02.bond0-storage").expect("its line");
    assert_eq!((failed[1].as_str(), failed[3].as_str()), ("Failing", "FailedToConfigure"));
    assert_eq!(shown("nns")[0], ["NAME", "AGE"]);
    let all = plane.run_kubectl(&["get", "nncp,nnce,nns,nip", "-o", "name"]);
    assert_eq!(all.lines().count(), 13, "{all}");
}
