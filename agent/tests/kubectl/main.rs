//! The real kubectl on `berth serve`, over TLS with certificates that `berth serve pki` made: it must look like kubectl on a
//! cluster. What is asserted is what a person sees.

mod agents;
#[path = "../common/folder.rs"]
mod folder;
mod hosts;
mod namespaces;
mod pools;
mod support;

use support::{Server, table, words};

const POOL: &str = "
apiVersion: nmstate.io/v1
kind: NodeIPPool
metadata: {name: traffic-1}
spec:
  range: {cidr: 10.10.10.0/24, start: 10.10.10.1, end: 10.10.10.10}
";

const POLICY: &str = "
apiVersion: nmstate.io/v1
kind: NodeNetworkConfigurationPolicy
metadata: {name: web}
spec:
  desiredState: {interfaces: [{name: eth1, type: ethernet, state: up}]}
";

const READY: &str = r#"{"status":{"capacity":10,"allocated":0,"available":10,"conditions":[{"type":"Available","status":"True","reason":"ReconciledPool"}]}}"#;

/// Lines as words.
fn lines(text: &[&str]) -> Vec<Vec<String>> {
    text.iter().map(|line| words(line)).collect()
}

fn with_pool() -> Server {
    let server = Server::start(&[]);
    let made = server.kubectl_with("create -f -", POOL).ok();
    assert_eq!(made, "nodeippool.nmstate.io/traffic-1 created\n");
    server
}

#[test]
fn get_shows_the_columns_of_a_cluster() {
    let server = with_pool();
    let patched = server.run(
        "kubeconfig",
        &["patch", "nip", "traffic-1", "--subresource=status", "--type=merge", "-p", READY],
        "",
    );
    assert_eq!(patched.ok(), "nodeippool.nmstate.io/traffic-1 patched\n");
    assert_eq!(
        table(&server.kubectl("get nip").ok()),
        lines(&[
            "NAME CIDR CAPACITY ALLOCATED AVAILABLE STATUS REASON AGE",
            "traffic-1 10.10.10.0/24 10 0 10 True ReconciledPool AGE",
        ])
    );
    let wide = table(&server.kubectl("get ippool traffic-1 -o wide").ok());
    let heads = "NAME CIDR CAPACITY ALLOCATED AVAILABLE STATUS REASON PERNODEHOSTBITS IPV4 IPV6 AGE";
    assert_eq!(wide[0], words(heads));
    // All kinds of a category, each with its columns.
    let all = table(&server.kubectl("get berth").ok());
    assert_eq!(all[1][0], "nodeippool.nmstate.io/traffic-1");
    assert_eq!(server.kubectl("get nip -o name").ok(), "nodeippool.nmstate.io/traffic-1\n");
    let yaml = server.kubectl("get nip traffic-1 -o yaml").ok();
    assert!(yaml.starts_with("apiVersion: nmstate.io/v1\nkind: NodeIPPool\n"), "{yaml}");
    let none = server.kubectl("get nncp");
    assert_eq!((none.code, none.stdout.as_str(), none.stderr.as_str()), (0, "", "No resources found\n"));
    let gone = server.kubectl("get nip nope").refused();
    assert_eq!(gone, "Error from server (NotFound): nodeippools.nmstate.io \"nope\" not found\n");
}

#[test]
fn a_watch_shows_what_happens() {
    let server = with_pool();
    let watch = server.follow("get nip -w");
    assert_eq!(watch.next()[0], "NAME");
    assert_eq!(watch.next()[0], "traffic-1");
    let patch = ["patch", "nip", "traffic-1", "--subresource=status", "--type=merge", "-p", READY];
    server.run("kubeconfig", &patch, "").ok();
    assert_eq!(watch.next()[..7], words("traffic-1 10.10.10.0/24 10 0 10 True ReconciledPool"));
    server
        .kubectl_with("create -f -", &POOL.replace("traffic-1", "traffic-2").replace("10.10.10", "10.10.11"))
        .ok();
    assert_eq!(watch.next()[..2], words("traffic-2 10.10.11.0/24"));
    server.kubectl("delete nip traffic-2").ok();
    assert_eq!(watch.next()[0], "traffic-2");
    // The server's end is the watch's.
    let (code, said) = server.stop();
    assert_eq!((code, said), (0, vec!["stopping".to_owned()]));
    assert_eq!(watch.end(), 0);
}

#[test]
fn describe_tells_all_and_its_events() {
    let server = with_pool();
    let uid = server.kubectl("get nip traffic-1 -o jsonpath={.metadata.uid}").ok();
    let event = format!(
        r#"{{"apiVersion":"v1","kind":"Event","metadata":{{"name":"traffic-1.1","namespace":"default"}},"type":"Normal",
        "reason":"Claimed","message":"node01 has 10.10.10.8","count":1,"firstTimestamp":"2026-01-01T00:00:00Z",
        "lastTimestamp":"2026-01-01T00:00:00Z","source":{{"component":"berth"}},
        "involvedObject":{{"apiVersion":"nmstate.io/v1","kind":"NodeIPPool","name":"traffic-1","uid":"{uid}"}}}}"#
    );
    server.kubectl_with("create -f -", &event).ok();
    let told = server.kubectl("describe nip traffic-1").ok();
    for line in
        ["Name:         traffic-1", "Kind:         NodeIPPool", "Spec:", "    Cidr:       10.10.10.0/24"]
    {
        assert!(told.lines().any(|found| found == line), "{line}\n{told}");
    }
    let last = words(told.lines().last().expect("events"));
    assert_eq!((last[0].as_str(), last[1].as_str()), ("Normal", "Claimed"), "{told}");
    assert!(told.ends_with("node01 has 10.10.10.8\n"), "{told}");
    let listed = table(&server.kubectl("get events").ok());
    assert_eq!(listed[0], words("LAST SEEN TYPE REASON OBJECT MESSAGE"));
    assert_eq!(listed[1][1..], words("Normal Claimed nodeippool/traffic-1 node01 has 10.10.10.8"));
}

#[test]
fn apply_remembers_what_was_applied() {
    let server = Server::start(&[]);
    let name = "nodenetworkconfigurationpolicy.nmstate.io/web";
    let apply = |text: &str| server.kubectl_with("apply -f -", text);
    assert_eq!(apply(POLICY).ok(), format!("{name} created\n"));
    assert_eq!(apply(POLICY).ok(), format!("{name} unchanged\n"));
    let more = POLICY.replace("spec:", "spec:\n  nodeSelector: {rack: a}");
    assert_eq!(apply(&more).ok(), format!("{name} configured\n"));
    assert_eq!(apply(POLICY).ok(), format!("{name} configured\n"));
    assert_eq!(
        server.kubectl("get nncp web -o jsonpath={.spec.nodeSelector}").ok(),
        "",
        "what was taken out is gone"
    );
    assert_eq!(
        server.kubectl_with("apply --dry-run=server -f -", &more).ok(),
        format!("{name} configured (server dry run)\n")
    );
    assert_eq!(server.kubectl("get nncp web -o jsonpath={.spec.nodeSelector}").ok(), "");
    // It can't be done here, and says so.
    let refused = server.kubectl_with("apply --server-side -f -", POLICY).refused();
    assert!(refused.starts_with("error: Server-side apply not available on the server"), "{refused}");
}

#[test]
fn what_is_wrong_is_told_by_field() {
    let server = Server::start(&[]);
    let apply = |text: &str| server.kubectl_with("apply -f -", text).refused();
    let said = apply(&POOL.replace("start: 10.10.10.1, end: 10.10.10.10", "start: 10.10.11.1"));
    let expected = "The NodeIPPool \"traffic-1\" is invalid: spec.range.start: Invalid value: start 10.10.11.1 is not in 10.10.10.0/24\n";
    assert_eq!(said, expected);
    let said = apply(&POOL.replace("range:", "ragne: 1\n  range:"));
    assert!(said.contains("strict decoding error: unknown field \"spec.ragne\""), "{said}");
    let twice = with_pool();
    let said = twice.kubectl_with("create -f -", POOL).refused();
    let expected = "Error from server (AlreadyExists): error when creating \"STDIN\": nodeippools.nmstate.io \"traffic-1\" already exists\n";
    assert_eq!(said, expected);
}

#[test]
fn edit_patch_label_and_annotate_change_what_is_meant() {
    let server = with_pool();
    let edited = server.edit("edit nip traffic-1", "s/5m/20m/");
    assert_eq!(
        (edited.code, edited.stdout.as_str()),
        (0, "nodeippool.nmstate.io/traffic-1 edited\n"),
        "{}",
        edited.stderr
    );
    let spec = |field: &str| server.kubectl(&format!("get nip traffic-1 -o jsonpath={{{field}}}")).ok();
    assert_eq!(spec(".spec.quarantine"), "20m");
    let patch = |kind: &str, text: &str| {
        server.run("kubeconfig", &["patch", "nip", "traffic-1", kind, "-p", text], "")
    };
    patch("--type=merge", r#"{"spec":{"quarantine":"10m"}}"#).ok();
    assert_eq!(spec(".spec.quarantine"), "10m");
    patch("--type=json", r#"[{"op":"replace","path":"/spec/quarantine","value":"1m"}]"#).ok();
    assert_eq!((spec(".spec.quarantine"), spec(".metadata.generation")), ("1m".to_owned(), "4".to_owned()));
    let said = patch("--type=strategic", "{}").refused();
    assert!(
        said.contains("application/strategic-merge-patch+json is not supported by nmstate.io/v1"),
        "{said}"
    );
    assert_eq!(
        server.kubectl("label nip traffic-1 rack=a").ok(),
        "nodeippool.nmstate.io/traffic-1 labeled\n"
    );
    assert_eq!(server.kubectl("get nip -l rack=a -o name").ok(), "nodeippool.nmstate.io/traffic-1\n");
    assert_eq!(
        server.kubectl("label nip traffic-1 rack-").ok(),
        "nodeippool.nmstate.io/traffic-1 unlabeled\n"
    );
    assert_eq!(
        server.kubectl("annotate nip traffic-1 why=so").ok(),
        "nodeippool.nmstate.io/traffic-1 annotated\n"
    );
    assert_eq!(spec(".metadata.annotations.why"), "so");
}

#[test]
fn wait_ends_when_it_holds() {
    let server = with_pool();
    let waiting = server.follow("wait --for=condition=Available nip/traffic-1 --timeout=100s");
    let patch = ["patch", "nip", "traffic-1", "--subresource=status", "--type=merge", "-p", READY];
    server.run("kubeconfig", &patch, "").ok();
    assert_eq!(waiting.next(), words("nodeippool.nmstate.io/traffic-1 condition met"));
    assert_eq!(waiting.end(), 0);
    let gone = server.follow("wait --for=delete nip/traffic-1 --timeout=100s");
    assert_eq!(server.kubectl("delete nip traffic-1").ok(), "nodeippool.nmstate.io \"traffic-1\" deleted\n");
    assert_eq!(gone.end(), 0);
}

#[test]
fn explain_and_api_resources_know_the_kinds() {
    let server = Server::start(&[]);
    let told = server.kubectl("explain nip.spec.range").ok();
    assert!(told.starts_with("GROUP:      nmstate.io\nKIND:       NodeIPPool\nVERSION:    v1\n"), "{told}");
    assert!(told.contains("  cidr\t<string>\n    The network."), "{told}");
    let told = server.kubectl("explain nncp --recursive --api-version=nmstate.io/v1beta1").ok();
    assert!(told.contains("VERSION:    v1beta1") && told.contains("  maxUnavailable\t<"), "{told}");
    // The older document, which comes in protobuf.
    let told = server.kubectl("explain nip.spec.range --output=plaintext-openapiv2").ok();
    assert!(told.contains("RESOURCE: range <Object>") && told.contains("   cidr\t<string>\n"), "{told}");
    assert!(server.kubectl("explain node.status.conditions").ok().contains("KIND:       Node\n"));
    let kinds = table(&server.kubectl("api-resources --api-group=nmstate.io").ok());
    assert_eq!(kinds[1], words("nodeippools nip,ippool nmstate.io/v1 false NodeIPPool"));
    assert_eq!(kinds.len(), 6);
    assert_eq!(
        server.kubectl("api-versions").ok(),
        "coordination.k8s.io/v1\nevents.k8s.io/v1\nnmstate.io/v1\nnmstate.io/v1beta1\nv1\n"
    );
}

#[test]
fn nodes_are_seen_labelled_and_deleted() {
    let server = Server::start(&[]);
    let node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"node01","labels":{"node-role.kubernetes.io/edge":""}}}"#;
    assert_eq!(server.kubectl_with("create -f -", node).ok(), "node/node01 created\n");
    assert_eq!(
        table(&server.kubectl("get nodes").ok()),
        lines(&["NAME STATUS ROLES AGE VERSION", "node01 Unknown edge AGE"])
    );
    assert_eq!(server.kubectl("label node node01 rack=a").ok(), "node/node01 labeled\n");
    assert_eq!(server.kubectl("get no -l rack=a -o name").ok(), "node/node01\n");
    assert!(server.kubectl("describe node node01").ok().starts_with("Name:               node01\n"));
    assert_eq!(server.kubectl("delete node node01").ok(), "node \"node01\" deleted\n");
    let namespaces = table(&server.kubectl("get ns").ok());
    assert_eq!(namespaces[1], words("default Active AGE"));
    // Which kubectl sends in protobuf.
    assert_eq!(server.kubectl("create namespace edge").ok(), "namespace/edge created\n");
    assert_eq!(table(&server.kubectl("get ns edge").ok())[1], words("edge Active AGE"));
    assert_eq!(server.kubectl("delete ns edge").ok(), "namespace \"edge\" deleted\n");
}
