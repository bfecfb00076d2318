//! kubectl, as scripts have it: `wait`, begun before a policy is through, ends when it is, for good and for bad; `apply` takes
//! manifests of both versions, once and again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::field::Field;
use crate::on::On;
use crate::rollout::{REFUSED, card};

/// kubectl, which waits for this condition of a policy and already follows it.
struct Waiting {
    kubectl: Child,
    said: std::thread::JoinHandle<()>,
}

impl Waiting {
    async fn begin(field: &Field, policy: &str, condition: &str) -> Self {
        let plane = &field.on.real().plane;
        let mut kubectl = Command::new(plane.kubectl());
        kubectl.arg(format!("--kubeconfig={}", plane.kubeconfig().display()));
        kubectl.args(["wait", &format!("nncp/{policy}"), &format!("--for=condition={condition}")]);
        // It says which answers it had.
        kubectl.args(["--timeout=120s", "-v=6"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut kubectl = kubectl.spawn().expect("kubectl");
        let mut lines = BufReader::new(kubectl.stderr.take().expect("its words")).lines();
        let begun = tokio::task::spawn_blocking(move || {
            let follows = lines.by_ref().map_while(Result::ok).any(|line| line.contains("watch=true"));
            (follows, lines)
        });
        let (follows, lines) = begun.await.expect("read");
        assert!(follows, "kubectl wait {policy} ended before it began to follow");
        assert!(
            kubectl.try_wait().expect("a child").is_none(),
            "{policy} was {condition} from the beginning"
        );
        Self { kubectl, said: std::thread::spawn(move || lines.for_each(drop)) }
    }

    async fn end(self) -> String {
        let Self { kubectl, said } = self;
        let output = tokio::task::spawn_blocking(move || kubectl.wait_with_output()).await.expect("read");
        let output = output.expect("a child");
        said.join().expect("read");
        assert!(output.status.success(), "kubectl wait: {}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// A policy for nodes that aren't among them yet.
fn later(fields: &Value) -> Value {
    let mut policy = card("eth0", fields);
    policy["nodeSelector"] = json!({"in": "yes"});
    policy
}

pub(crate) async fn kubectl_waits_for_how_it_ends(on: On) {
    let field = Field::new(on).await;
    let host = field.host("node01", 1).await;
    field.policy("good", later(&json!({"mtu": 1400}))).await;
    field.policy("never", later(&json!({"mac-address": REFUSED}))).await;
    let good = Waiting::begin(&field, "good", "Available").await;
    let never = Waiting::begin(&field, "never", "Degraded").await;
    field.label(&host, "in", "yes").await;
    let met = |policy: &str| format!("nodenetworkconfigurationpolicy.nmstate.io/{policy} condition met\n");
    assert_eq!(good.end().await, met("good"));
    assert_eq!(never.end().await, met("never"));
    field.agree().await;
}

/// Of both versions, as they are written for kubernetes-nmstate: selected nodes, half of them at a time, a bridge, and on the card
/// that a capture finds an address and a route. (No port of the bridge: its default VLANs need a kernel that has them.) Applied, carried out, and applied once more.
pub(crate) async fn kubectl_applies_both_versions(on: On) {
    let field = Field::new(on).await;
    let host = field.host("node01", 2).await;
    field.label(&host, "worker", "yes").await;
    let plane = &on.real().plane;
    for (version, number) in [("v1", 0), ("v1beta1", 1)] {
        let (policy, card) = (format!("br{number}-and-a-card"), format!("eth{number}"));
        let file = std::env::temp_dir().join(format!("berth-{}-{policy}.yaml", std::process::id()));
        std::fs::write(&file, manifest(version, &policy, number)).expect("a file");
        let apply = ["apply", "--filename", file.to_str().expect("a path")];
        let object = format!("nodenetworkconfigurationpolicy.nmstate.io/{policy}");
        assert_eq!(plane.run_kubectl(&apply), format!("{object} created\n"));
        let wait = ["wait", &object, "--for=condition=Available", "--timeout=60s"];
        assert_eq!(plane.run_kubectl(&wait), format!("{object} condition met\n"));
        assert!(host.ip(&format!("-d link show dev br{number}")).contains("stp_state 0"));
        assert!(host.ip(&format!("link show dev {card}")).contains("mtu 1400 "));
        let addresses = host.ip(&format!("addr show dev {card}"));
        assert!(addresses.contains(&format!("inet 192.0.{number}.10/24")), "{addresses}");
        let routes = host.ip("route show");
        let route = format!("198.51.{number}.0/24 via 192.0.{number}.1 dev {card}");
        assert!(routes.contains(&route), "{routes}");
        assert_eq!(plane.run_kubectl(&apply), format!("{object} unchanged\n"));
        std::fs::remove_file(&file).expect("removed");
    }
    field.agree().await;
}

fn manifest(version: &str, policy: &str, number: u8) -> String {
    format!(
        r#"apiVersion: nmstate.io/{version}
kind: NodeNetworkConfigurationPolicy
metadata:
  name: {policy}
spec:
  nodeSelector:
    worker: "yes"
  maxUnavailable: 50%
  capture:
    card: interfaces.name == "eth{number}"
  desiredState:
    interfaces:
    - name: br{number}
      description: Linux bridge without a port
      type: linux-bridge
      state: up
      bridge:
        options:
          stp:
            enabled: false
        port: []
    - name: "{{{{ capture.card.interfaces.0.name }}}}"
      type: veth
      state: up
      mtu: 1400
      ipv4:
        enabled: true
        dhcp: false
        address:
        - ip: 192.0.{number}.10
          prefix-length: 24
    routes:
      config:
      - destination: 198.51.{number}.0/24
        next-hop-address: 192.0.{number}.1
        next-hop-interface: "{{{{ capture.card.interfaces.0.name }}}}"
"#
    )
}
