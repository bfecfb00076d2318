//! `helm install` on a real API server.

use std::process::Output;

use api_tests::control_plane::{ControlPlane, Kinds, Options};
use api_tests::kubernetes_nmstate::CRDS;

use crate::applied::{done, kubectl};
use crate::rendered::{helm, root};

fn install(plane: &ControlPlane) -> Output {
    let mut helm = helm();
    helm.current_dir(root()).arg(format!("--kubeconfig={}", plane.kubeconfig().display()));
    helm.args(["install", "berth", "deploy/chart"]).output().expect("helm runs")
}

/// What docs/install.md says to do first.
fn command() -> &'static str {
    let install = include_str!("../../../../docs/install.md");
    let mut lines = install.lines().filter(|line| line.starts_with("kubectl apply --server-side"));
    lines.next().expect("the document has it")
}

/// Helm puts no CRD over one that is there. Where kubernetes-nmstate's are, that is said and nothing is begun, and the command that is said
/// mends it.
#[test]
fn on_crds_of_kubernetes_nmstate_the_chart_is_refused() {
    let plane = ControlPlane::start_with(&Options { kinds: Kinds::None, ..Options::default() });
    let plane = plane.unwrap_or_else(|wrong| panic!("{wrong}"));
    done(&plane, &["create", "-f", CRDS]);
    let refused = install(&plane);
    let said = String::from_utf8_lossy(&refused.stderr);
    let sentence = "the CRD nodenetworkconfigurationenactments.nmstate.io is not Berth's (it has no ippool)";
    assert!(!refused.status.success() && said.contains(sentence) && said.contains(command()), "{said}");
    let namespace = kubectl(&plane, &["get", "namespace", "berth-system"]);
    assert!(!namespace.status.success(), "nothing is begun");

    let words: Vec<&str> = command().split_whitespace().skip(1).collect();
    done(&plane, &words);
    let installed = install(&plane);
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    done(&plane, &["-n", "berth-system", "get", "daemonset/berth-agent", "deployment/berth-controller"]);
}
