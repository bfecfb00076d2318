//! What a host's certificate may do, and what it may not, as its administrator sees it.

use crds::NodeIPPool;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::POOL;
use crate::support::{Server, berth};

const NODE: &str = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"NAME"}}"#;

/// An enactment of a host, as its agent writes it.
fn enactment(host: &str, uid: &str) -> String {
    format!(
        r#"{{"apiVersion":"nmstate.io/v1beta1","kind":"NodeNetworkConfigurationEnactment","metadata":{{"name":"{host}.web",
        "labels":{{"nmstate.io/node":"{host}","nmstate.io/policy":"web"}},
        "ownerReferences":[{{"apiVersion":"v1","kind":"Node","name":"{host}","uid":"{uid}"}}]}}}}"#
    )
}

#[test]
fn a_host_writes_its_own_and_reads_all() {
    let server = Server::start(&["node01", "node02"]);
    server.kubectl_with("create -f -", POOL).ok();
    let mut uids = Vec::new();
    for host in ["node01", "node02"] {
        let made = server.host(host, "create -f -", &NODE.replace("NAME", host)).ok();
        assert_eq!(made, format!("node/{host} created\n"));
        let uid = server.host(host, &format!("get node {host} -o jsonpath={{.metadata.uid}}"), "").ok();
        server.host(host, "create -f -", &enactment(host, &uid)).ok();
        uids.push(uid);
    }
    let seen = server.host("node01", "get nnce,nip,nodes -o name", "").ok();
    assert_eq!(seen.lines().count(), 5, "{seen}");
    let label = server.host("node01", "label node node01 rack=a", "").ok();
    assert_eq!(label, "node/node01 labeled\n");

    let refused = |line: &str, stdin: &str| server.host("node01", line, stdin).refused();
    assert_eq!(
        refused("label node node02 rack=a", ""),
        "Error from server (Forbidden): nodes \"node02\" is forbidden: host node01 may not change Node node02, only its own\n"
    );
    assert_eq!(
        refused("delete nnce node02.web", ""),
        "Error from server (Forbidden): nodenetworkconfigurationenactments.nmstate.io \"node02.web\" is forbidden: it is not host node01's: its label nmstate.io/node is node02\n"
    );
    assert_eq!(
        refused("delete nip traffic-1", ""),
        "Error from server (Forbidden): nodeippools.nmstate.io \"traffic-1\" is forbidden: host node01 may not delete nodeippools\n"
    );
    // Under its own name, but as if it were the other's Node.
    let forged =
        enactment("node01", &uids[1]).replace("node01.web", "node01.db").replace("\"web\"", "\"db\"");
    let said = refused("create -f -", &forged);
    assert!(said.contains(&format!("it is owned by Node node01 with UID {}", uids[1])), "{said}");
    // Nothing of it happened.
    assert_eq!(server.kubectl("get nnce -o name").ok().lines().count(), 2);
    assert_eq!(server.kubectl("get nip -o name").ok(), "nodeippool.nmstate.io/traffic-1\n");
    assert_eq!(server.kubectl("get no -l rack=a -o name").ok(), "node/node01\n");
    let copy = refused("get --raw /berth/backup", "");
    assert!(copy.contains("only an administrator may have a copy of everything"), "{copy}");
}

/// The agent's own client comes in with the same file.
#[tokio::test]
async fn a_kubeconfig_of_ours_is_one_for_kube() {
    let server = Server::start(&["node01"]);
    server.kubectl_with("create -f -", POOL).ok();
    let file =
        Kubeconfig::read_from(server.path().join("pki/hosts/node01.kubeconfig")).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let client = kube::Client::try_from(config.expect("a config")).expect("a client");
    let pools = Api::<NodeIPPool>::all(client.clone()).list(&ListParams::default()).await.expect("listed");
    assert_eq!(pools.items.len(), 1);
    let nodes = Api::<Node>::all(client);
    let mut node = Node::default();
    node.metadata.name = Some("node01".to_owned());
    nodes.create(&PostParams::default(), &node).await.expect("made");
    node.metadata.name = Some("node02".to_owned());
    let refused = nodes.create(&PostParams::default(), &node).await.expect_err("refused");
    let kube::Error::Api(status) = refused else { panic!("a Status: {refused}") };
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
}

/// The optimistic retry of the claim protocol, by hand: a host writes its own entry into the ledger, and no other's.
#[test]
fn a_host_claims_in_the_ledger_for_itself_only() {
    let server = Server::start(&["node01", "node02"]);
    server.kubectl_with("create -f -", POOL).ok();
    let get = |what: &str| server.kubectl(&format!("get {what} -o jsonpath={{.metadata.uid}}")).ok();
    let patch = |as_: &str, status: &str| {
        let whole = format!(r#"{{"status":{status}}}"#);
        server.run(
            as_,
            &["patch", "nip", "traffic-1", "--subresource=status", "--type=merge", "-p", &whole],
            "",
        )
    };
    let pool = get("nip traffic-1");
    let rebuilt = r#""sequence":1,"allocated-offsets":[],"capacity":10,"available":10"#;
    patch("kubeconfig", &format!(r#"{{{rebuilt},"rebuiltFor":"{pool}"}}"#)).ok();
    let hosts = ["node01", "node02"].map(|host| {
        server.host(host, "create -f -", &NODE.replace("NAME", host)).ok();
        (format!("pki/hosts/{host}.kubeconfig"), get(&format!("node {host}")))
    });
    let claim = |host: usize, sequence: u32, ip: &str, offsets: &str, allocated: u32| {
        let (name, uid) = (["node01", "node02"][host], &hosts[host].1);
        format!(
            r#"{{"sequence":{sequence},"allocated":{allocated},"available":8,"allocated-offsets":{offsets},
            "allocations":{{"{ip}":{{"node":"{name}","nodeUID":"{uid}","request":"id-{name}","sequence":{sequence},
            "kind":"dynamic"}}}}}}"#
        )
    };
    patch(&hosts[0].0, &claim(0, 2, "10.10.10.5", "[4]", 1)).ok();
    patch(&hosts[1].0, &claim(1, 3, "10.10.10.6", "[4,5]", 2)).ok();
    let prefix = "Error from server (Forbidden): nodeippools.nmstate.io \"traffic-1\" is forbidden: ";
    for (status, why) in [
        (claim(1, 4, "10.10.10.5", "[4,5]", 2), "host node02 may not change 10.10.10.5 of node node01"),
        (claim(1, 5, "10.10.10.7", "[4,5,6]", 3), "status.sequence must be 4, one more than it was"),
        (
            r#"{"rebuiltFor":null}"#.to_owned(),
            "host node02 may not change status.rebuiltFor: only a controller does",
        ),
        (
            r#"{"sequence":4,"allocations":{"10.10.10.5":null},"allocated-offsets":[5],"allocated":1}"#
                .to_owned(),
            "host node02 may not release 10.10.10.5 of node node01",
        ),
    ] {
        assert_eq!(patch(&hosts[1].0, &status).refused(), format!("{prefix}{why}\n"));
    }
    let release = r#"{"sequence":4,"allocations":{"10.10.10.6":null},"allocated-offsets":[4],"allocated":1}"#;
    patch(&hosts[1].0, release).ok();
    let left = server.kubectl("get nip traffic-1 -o jsonpath={.status.allocations.*.node}").ok();
    assert_eq!(left, "node01");
}

#[test]
fn a_revoked_host_is_refused_until_it_has_another_certificate() {
    let mut server = Server::start(&["node01", "node02"]);
    server.host("node01", "create -f -", &NODE.replace("NAME", "node01")).ok();
    let revoke = berth(server.path(), &["serve", "pki", "revoke", "node01", "--dir", "pki"]).ok();
    assert_eq!(revoke, "pki/revoked: certificates of system:node:node01 made until now are refused\n");
    let said = server.host("node01", "get nodes", "").refused();
    assert!(
        said.contains(r#"(Forbidden): the certificates of "system:node:node01" made until now were revoked"#),
        "{said}"
    );
    server.host("node02", "get nodes -o name", "").ok();
    let url = server.kubectl("config view -o jsonpath={.clusters[0].cluster.server}").ok();
    let host = ["serve", "pki", "host", "node01", "--dir", "pki", "--force", "--server", &url];
    berth(server.path(), &host).ok();
    assert_eq!(server.host("node01", "get nodes -o name", "").ok(), "node/node01\n");

    // A name that nobody has is most likely a slip.
    let slip = berth(server.path(), &["serve", "pki", "revoke", "nod01", "--dir", "pki"]).ok();
    assert!(slip.ends_with("warning: none was made here for host nod01: is the name right?\n"), "{slip}");
    // Asked, the server says what is in force; it may have said the first of them already.
    let mut heard = server.hang_up();
    while heard != "certificates were read again; 2 names are revoked" {
        assert_eq!(heard, "certificates were read again; 1 name is revoked");
        heard = server.hang_up();
    }
    let admin = ["serve", "pki", "revoke", "--common-name", "berth:admin", "--dir", "pki"];
    berth(server.path(), &admin).ok();
    assert!(server.kubectl("get nodes").refused().contains("were revoked"));
}
