//! What a real API server takes, and what is left when it is deleted.

use std::process::{Command, Output};

use api_tests::control_plane::ControlPlane;
use api_tests::{RUNTIME, wait};
use serde_json::json;

use crate::rendered::{kustomized, root};

pub(crate) fn kubectl(plane: &ControlPlane, arguments: &[&str]) -> Output {
    let mut command = Command::new(plane.kubectl());
    command.current_dir(root()).arg(format!("--kubeconfig={}", plane.kubeconfig().display())).args(arguments);
    command.output().expect("kubectl runs")
}

#[track_caller]
pub(crate) fn done(plane: &ControlPlane, arguments: &[&str]) -> String {
    let output = kubectl(plane, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether a token of this account may, by RBAC.
fn may(plane: &ControlPlane, account: &str, what: &[&str]) -> bool {
    let whom = format!("--as=system:serviceaccount:berth-system:{account}");
    let asked = [&["auth", "can-i", &whom][..], what].concat();
    String::from_utf8_lossy(&kubectl(plane, &asked).stdout).trim() == "yes"
}

/// Applied, changed to an overlay and back, deleted with what hosts hold left as it is, and then all of it gone.
#[test]
fn it_is_installed_changed_and_deleted() {
    let plane = ControlPlane::start().unwrap_or_else(|wrong| panic!("{wrong}"));
    done(&plane, &["apply", "-k", "deploy/base"]);
    for overlay in ["boot", "no-controller", "beside-kubernetes-nmstate", "page"] {
        let folder = format!("deploy/overlays/{overlay}");
        done(&plane, &["apply", "--dry-run=server", "-k", &folder]);
    }
    handlers_leave_berths_nodes(&plane);
    takes_the_monitored_overlay(&plane);
    it_has_a_share_of_its_own(&plane);
    assert!(!may(&plane, "berth-agent", &["patch", "nodeippools"]));
    done(&plane, &["apply", "-k", "deploy/overlays/no-controller"]);
    assert!(may(&plane, "berth-agent", &["patch", "nodeippools"]));
    assert!(may(&plane, "berth-agent", &["update", "leases/berth-controller", "-n", "berth-system"]));
    done(&plane, &["apply", "-k", "deploy/base"]);
    // Nothing of the overlay stays, as docs/install.md says.
    RUNTIME.block_on(wait::until("agents without a controller's rights", || async {
        let rights =
            [&["patch", "nodeippools"][..], &["update", "leases/berth-controller", "-n", "berth-system"]];
        match rights.iter().any(|right| may(&plane, "berth-agent", right)) {
            true => Err("agents may still lead".to_owned()),
            false => Ok(()),
        }
    }));
    deleting_leaves_what_hosts_hold(&plane);
}

/// The command of docs/install.md, on a DaemonSet of that name: the handlers that kubernetes-nmstate has stay off the nodes that are
/// Berth's, and off those that they were kept from before.
fn handlers_leave_berths_nodes(plane: &ControlPlane) {
    done(plane, &["create", "namespace", "nmstate"]);
    let labels = json!({"component": "kubernetes-nmstate-handler"});
    let pod = json!({"nodeSelector": {"kubernetes.io/os": "linux"}, "containers": [{"name": "nmstate-handler", "image": "none"}]});
    let handler = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "nmstate-handler", "namespace": "nmstate"},
        "spec": {
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    });
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("handler.json");
    std::fs::write(&file, handler.to_string()).expect("written");
    done(plane, &["create", "-f", &file.display().to_string()]);
    let install = include_str!("../../../../docs/install.md");
    let mut commands = install.lines().filter(|line| line.contains("handler-patch.yaml"));
    let command = commands.next().expect("the document has it");
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    done(plane, &words);
    let now = done(plane, &["-n", "nmstate", "get", "daemonset", "nmstate-handler", "-o", "json"]);
    let now: serde_json::Value = serde_json::from_str(&now).expect("JSON");
    let spec = &now["spec"]["template"]["spec"];
    let terms = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    let not_ours = json!({"key": "nmstate.io/agent", "operator": "NotIn", "values": ["berth"]});
    assert_eq!(*terms, json!([{"matchExpressions": [not_ours]}]));
    assert_eq!(spec["nodeSelector"], pod["nodeSelector"]);
    done(plane, &["delete", "namespace", "nmstate", "--wait=false"]);
}

/// The API server says of each answer which FlowSchema the request was counted under.
fn it_has_a_share_of_its_own(plane: &ControlPlane) {
    let lease = ["get", "lease/berth-controller", "--namespace=berth-system"];
    for (schema, account, asked) in [
        ("berth", "berth-agent", &["get", "nncp"][..]),
        ("berth", "berth-controller", &["get", "nncp"]),
        ("berth-lease", "berth-controller", &lease),
    ] {
        let uid = done(plane, &["get", "flowschema", schema, "-o=jsonpath={.metadata.uid}"]);
        let whom = format!("--as=system:serviceaccount:berth-system:{account}");
        let asked = [asked, &[&whom, "-v=8"]].concat();
        // It takes a moment from being written to being in force.
        RUNTIME.block_on(wait::until(schema, || async {
            let said = String::from_utf8_lossy(&kubectl(plane, &asked).stderr).to_lowercase();
            let counted = said.lines().filter(|line| line.contains("x-kubernetes-pf-flowschema-uid"));
            // One of them: of what isn't there, kubectl asks which kinds there are.
            match counted.clone().any(|line| line.contains(&uid)) {
                true => Ok(()),
                false => Err(format!("{asked:?}: {:?}, not {uid}", counted.collect::<Vec<_>>())),
            }
        }));
    }
}

/// All of it but for the kinds of the Prometheus operator, which is not here.
fn takes_the_monitored_overlay(plane: &ControlPlane) {
    let objects = kustomized("deploy/overlays/monitored");
    let known = objects.values().filter(|one| one["apiVersion"] != "monitoring.coreos.com/v1");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": known.collect::<Vec<_>>()});
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("monitored.json");
    std::fs::write(&file, list.to_string()).expect("written");
    done(plane, &["apply", "--dry-run=server", "-f", &file.display().to_string()]);
}

/// As docs/install.md has them, in one go.
const EXAMPLES: [&str; 6] = [
    "-f",
    "docs/examples/traffic-1.yaml",
    "-f",
    "docs/examples/traffic-2.yaml",
    "-f",
    "docs/examples/static-ip.yaml",
];

/// Five refusals, one for each CRD, and nothing else that is wrong.
#[track_caller]
fn are_kept(said: &str) {
    assert_eq!(said.lines().count(), 5, "{said}");
    for line in said.lines() {
        assert!(line.contains("'berth-definitions' denied request: kept: with it would go"), "{line}");
    }
}

/// A request about the collection names none of them. Another's CRD goes as it would without Berth.
fn collections_keep_ours_alone(plane: &ControlPlane) {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let other = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "others.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"kind": "Other", "plural": "others"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("other.json");
    std::fs::write(&file, other.to_string()).expect("written");
    done(plane, &["create", "-f", &file.display().to_string()]);
    let all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=metadata.name%3D";
    let refused = kubectl(plane, &["delete", "--raw", &format!("{all}nodeippools.nmstate.io")]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("'berth-definitions' denied request: kept: with it would go"), "{said}");
    done(plane, &["delete", "--raw", &format!("{all}others.example.com")]);
    done(plane, &["get", "crd", "nodeippools.nmstate.io"]);
}

/// What there is of Berth's own, besides the namespace, which takes a moment to go.
fn parts(plane: &ControlPlane) -> Vec<String> {
    let kinds = "clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding,\
                 flowschema,prioritylevelconfiguration,role,rolebinding,resourcequota,daemonset,deployment";
    let all = done(plane, &["get", kinds, "-A", "-o", "name"]);
    all.lines().filter(|line| line.contains("berth")).map(str::to_owned).collect()
}

fn makes_enactment(plane: &ControlPlane) {
    let enactment = json!({
        "apiVersion": "nmstate.io/v1beta1", "kind": "NodeNetworkConfigurationEnactment",
        "metadata": {"name": "node01.static-ip", "finalizers": ["nmstate.io/addresses"]},
    });
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("enactment.json");
    std::fs::write(&file, enactment.to_string()).expect("written");
    done(plane, &["apply", "-f", &file.display().to_string()]);
}

/// What becomes of who types what they typed to install it, with delete in place of apply: as docs/uninstall.md tells.
#[test]
fn deleting_the_base_keeps_the_crds_once_and_not_twice() {
    let plane = ControlPlane::start().unwrap_or_else(|wrong| panic!("{wrong}"));
    done(&plane, &["apply", "-k", "deploy/base"]);
    done(&plane, &[&["apply"], &EXAMPLES[..]].concat());
    // Of what a manifest says of its status nothing is taken.
    let held = done(&plane, &["get", "nip", "traffic-1", "-o=jsonpath={.status.allocations}"]);
    assert_eq!(held, "{}");
    makes_enactment(&plane);
    until_kept(&plane);
    let all = || done(&plane, &["get", "nip,nncp,nnce", "-o", "name"]).lines().count();

    let first = kubectl(&plane, &["delete", "-k", "deploy/base"]);
    assert_eq!(first.status.code(), Some(1));
    are_kept(&String::from_utf8_lossy(&first.stderr));
    assert_eq!((all(), parts(&plane)), (4, Vec::new()));
    // The way to finish: it waits for what is on its way out.
    done(&plane, &["delete", "-k", "deploy/remove", "--ignore-not-found"]);
    assert_eq!(done(&plane, &["get", "namespace", "-o", "name"]).matches("berth").count(), 0);
    assert_eq!(all(), 4);

    // The policy that kept them is gone: this time they go, but for what a finalizer holds. Without --wait=false that is waited for.
    let again = kubectl(&plane, &["delete", "-k", "deploy/base", "--wait=false"]);
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.lines().all(|line| line.contains("(NotFound)")), "{said}");
    until_crds(&plane, &["nodenetworkconfigurationenactments.nmstate.io"]);
    let free =
        ["patch", "nnce/node01.static-ip", "--type=merge", r#"--patch={"metadata":{"finalizers":null}}"#];
    done(&plane, &free);
    until_crds(&plane, &[]);
}

/// An API server has heard of a policy a moment after it was applied.
fn until_kept(plane: &ControlPlane) {
    RUNTIME.block_on(wait::until("CRDs to be kept", || async {
        let tried = kubectl(plane, &["delete", "crd", "nodeippools.nmstate.io", "--dry-run=server"]);
        if tried.status.success() { Err("it may be deleted".to_owned()) } else { Ok(()) }
    }));
}

/// Waits until these CRDs of ours are left, and no others.
fn until_crds(plane: &ControlPlane, wanted: &[&str]) {
    RUNTIME.block_on(wait::until("CRDs to be gone", || async {
        let all = done(plane, &["get", "crd", "-o", "name"]);
        let names = all.lines().filter_map(|line| line.split_once('/')).map(|(_, name)| name);
        let left: Vec<&str> = names.filter(|name| name.contains("nmstate.io")).collect();
        if left == wanted { Ok(()) } else { Err(format!("{left:?}, not {wanted:?}")) }
    }));
}

/// Of a host that holds an address in it.
fn a_slice_in_use(plane: &ControlPlane) -> String {
    let slice = json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeIPSlice",
        "metadata": {"name": "sliced.10.10.10.0", "finalizers": ["nmstate.io/addresses"]},
        "spec": {"pool": "sliced", "cidr": "10.10.10.0/28", "node": "node01", "nodeUID": "any"},
    });
    let entry = json!({"node": "node01", "nodeUID": "any", "policy": "web", "capture": "a", "request": "id",
        "sequence": 1, "since": "2026-01-01T00:00:00Z", "kind": "dynamic"});
    let status = json!({"status": {"sequence": 1, "allocations": {"10.10.10.8": entry}}});
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("slice.json");
    std::fs::write(&file, slice.to_string()).expect("written");
    done(plane, &["apply", "-f", &file.display().to_string()]);
    let name = "nodeipslice/sliced.10.10.10.0";
    done(plane, &["patch", name, "--subresource=status", "--type=merge", &format!("--patch={status}")]);
    name.to_owned()
}

fn deleting_leaves_what_hosts_hold(plane: &ControlPlane) {
    done(plane, &[&["apply"], &EXAMPLES[..]].concat());
    let output = kubectl(plane, &["delete", "-k", "crds/yaml"]);
    are_kept(&String::from_utf8_lossy(&output.stderr));
    collections_keep_ours_alone(plane);
    let slice = a_slice_in_use(plane);
    let free = ["patch", &slice, "--type=merge", r#"--patch={"metadata":{"finalizers":null}}"#];
    let said = kubectl(plane, &free);
    let said = String::from_utf8_lossy(&said.stderr);
    assert!(
        said.contains("'berth-slices' denied request: node node01 holds 10.10.10.8 in this slice."),
        "{said}"
    );
    // Once, and again, as people do who are not sure.
    for _ in 0..2 {
        done(plane, &["delete", "-k", "deploy/remove", "--ignore-not-found"]);
    }
    assert_eq!(done(plane, &["get", "nip,nncp", "-o", "name"]).lines().count(), 3);
    assert_eq!(parts(plane), Vec::<String>::new());
    // And now that Berth is gone, they go; finalizers too, once the API server has heard that the policy is gone.
    RUNTIME.block_on(wait::until("a slice without its finalizer", || async {
        let output = kubectl(plane, &free);
        output
            .status
            .success()
            .then_some(())
            .ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }));
    done(plane, &[&["delete"], &EXAMPLES[..]].concat());
    done(plane, &["delete", "-k", "crds/yaml"]);
    until_crds(plane, &[]);
}
