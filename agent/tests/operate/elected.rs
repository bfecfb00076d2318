//! `--with-controller`: agents elect a controller among themselves, and another when that one goes.

use std::path::Path;

use crds::names::lease::CONTROLLER;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::folder::Folder;
use crate::support::{Berth, Host, get, post, until};

fn agent(folder: &Path, name: &str, host: &Host) -> Berth {
    let (node, netns) = (format!("--node={name}"), format!("--netns={}", host.netns));
    let state = format!("--state-dir=state-{name}");
    let more = ["--kubeconfig=kubeconfig", "--register-node", "--with-controller"];
    Berth::start(folder, &[&["agent", node.as_str(), &netns, &state][..], &more].concat())
}

fn policy(name: &str, card: &str) -> Value {
    let address = json!({"ip": "{{ capture.a.ip }}", "prefix-length": "{{ capture.a.prefix-length }}"});
    let card = json!({"name": card, "type": "veth", "state": "up",
        "ipv4": {"enabled": true, "dhcp": false, "address": [address]}});
    json!({"apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": name},
        "spec": {"capture": {"a": "ippool.pool.allocate"}, "maxUnavailable": "100%", "desiredState": {"interfaces": [card]}}})
}

fn has_address(host: &Host, card: &str) -> Option<String> {
    let shown = host.ip(&format!("-o -4 addr show dev {card}"));
    shown.lines().find_map(|line| line.split_whitespace().nth(3).map(str::to_owned))
}

#[test]
fn agents_elect_a_controller_among_themselves() {
    let folder = Folder::new();
    let at = folder.path();
    let arguments = ["serve", "--in-memory", "--listen", "127.0.0.1:0", "--write-kubeconfig", "kubeconfig"];
    let mut api = Berth::start(at, &arguments);
    let line = api.until_says("listening on http://");
    let address = line.rsplit('/').next().expect("an address").to_owned();
    api.until_says("kubeconfig");
    let hosts = [Host::new(), Host::new()];
    for host in &hosts {
        host.ip("link add eth1 type veth peer name far1");
        host.ip("link set far1 up");
    }
    let mut agents = [agent(at, "a", &hosts[0]), agent(at, "b", &hosts[1])];
    let pool = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": "pool"},
        "spec": {"range": {"cidr": "10.10.10.0/24"}}});
    post(&address, "/apis/nmstate.io/v1/nodeippools", &pool);
    let policies = "/apis/nmstate.io/v1/nodenetworkconfigurationpolicies";
    post(&address, policies, &policy("one", "eth0"));
    let got = hosts.each_ref().map(|host| until("an address", || has_address(host, "eth0")));
    assert_ne!(got[0], got[1]);
    let leader = || {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/default/leases/{CONTROLLER}");
        let answer = get(&address, &path);
        let lease: Value =
            answer.split("\r\n\r\n").nth(1).and_then(|body| serde_json::from_str(body).ok())?;
        lease["spec"]["holderIdentity"].as_str().map(str::to_owned)
    };
    let first = until("a leader", leader);
    let (gone, left) = if first == "a" { (0, 1) } else { (1, 0) };
    agents[gone].signal(Signal::SIGTERM);
    assert_eq!(agents[gone].end().0, Some(0));
    // It let go: nobody waits for its Lease to run out.
    let freed = leader();
    assert!(freed.is_none() || freed.as_deref() != Some(first.as_str()), "{freed:?}");
    until("another leader", || leader().filter(|now| *now != first));
    post(&address, policies, &policy("two", "eth1"));
    until("an address by the other", || has_address(&hosts[left], "eth1"));
}
