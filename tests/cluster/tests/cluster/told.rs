//! What goes wrong, as somebody reads it who has kubectl and nothing else: columns, `describe`, Events and logs each name the
//! cause, and what to do about it.

use cluster_tests::{answer, wait};
use serde_json::{Value, json};

use crate::field::{Field, NODES, field};

/// Something that goes wrong, and where it is read.
struct Case {
    policy: &'static str,
    /// What `kubectl get nncp` shows.
    status: &'static str,
    /// What `kubectl get nnce` shows of the first node; nothing where it has no enactment.
    enactment: &'static str,
    /// The cause, on the one line of an Event that `kubectl get events` shows.
    cause: &'static str,
    /// What is said besides where there is room: in `describe`, and in the log.
    besides: &'static str,
}

const DEGRADED: &str = "Degraded FailedToConfigure";
const FAILING: &str = "Failing FailedToConfigure";

/// In the order of docs/operations.md, which tells what each means.
const CASES: [Case; 9] = [
    Case {
        policy: "exhausted",
        status: DEGRADED,
        enactment: "Failing NoAddress",
        cause: "pool tiny is exhausted: no address left for node",
        besides: "add a range, or free addresses",
    },
    Case {
        policy: "no-such-pool",
        status: DEGRADED,
        enactment: "Failing NoAddress",
        cause: "no pool named nowhere",
        besides: "make it, or correct the name",
    },
    Case {
        policy: "broken-template",
        status: DEGRADED,
        enactment: FAILING,
        cause: "interfaces[0].ipv4.address[0].ip: 1:16: no 'address' in capture.own",
        besides: "it has: ip, prefix-length, cidr, gateway, range, attributes",
    },
    Case {
        policy: "no-match",
        status: DEGRADED,
        enactment: FAILING,
        cause: "capture \"nic\": 1:12: interface with 'name=eth9' not found",
        besides: "hint: 'name' is there with: ",
    },
    Case {
        policy: "no-card",
        status: DEGRADED,
        enactment: FAILING,
        cause: "interfaces[0].name: there is no interface eth9",
        besides: "a link of type ethernet can't be made",
    },
    Case {
        policy: "misspelled",
        status: DEGRADED,
        enactment: FAILING,
        cause: "interfaces[0].ipv4.adress: unknown field",
        besides: "",
    },
    Case {
        policy: "unsupported",
        status: DEGRADED,
        enactment: FAILING,
        cause: "interfaces[0].type: ovs-bridge is not supported",
        besides: "",
    },
    // Both have been brought about, and are again and again: it is the Events that tell.
    Case {
        policy: "this",
        status: "Available SuccessfullyConfigured",
        enactment: "Available SuccessfullyConfigured",
        cause: "something keeps changing what this policy set",
        besides: "policy that is about br-told-2 too: let one of them say it",
    },
    Case {
        policy: "nobody",
        status: "Ignored NoMatchingNode",
        enactment: "",
        cause: "",
        besides: "Policy does not match any node",
    },
];

/// The node that is read. Policies are for it alone, but the one that needs more nodes than there are addresses.
const NODE: cluster_tests::Node = NODES[0];

/// The pools and who has the only address of one of them; and then what goes wrong.
fn objects() -> (Vec<Value>, Vec<Value>) {
    let pool = |name: &str, range: Value| json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": name}, "spec": {"range": range}});
    let policy = |name: &str, selector: Value, capture: Value, interface: Value| {
        json!({
            "apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": name},
            "spec": {
                "maxUnavailable": "100%", "nodeSelector": selector, "capture": capture,
                "desiredState": {"interfaces": [interface]},
            },
        })
    };
    let here = || json!({"kubernetes.io/hostname": NODE.name()});
    let addressed = |field: &str| {
        let address = json!({"ip": format!("{{{{ capture.own.{field} }}}}"), "prefix-length": 24});
        json!({
            "name": "br-told-1", "type": "linux-bridge", "state": "up",
            "ipv4": {"enabled": true, "dhcp": false, "address": [address]},
        })
    };
    let bridge = |mtu: u16| json!({"name": "br-told-2", "type": "linux-bridge", "state": "up", "mtu": mtu});
    let card = |fields: Value| {
        let mut card = json!({"name": "eth1", "type": "ethernet", "state": "up"});
        card.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
        card
    };
    let none = || json!({});
    let (tiny, ample) = (json!({"own": "ippool.tiny.allocate"}), json!({"own": "ippool.ample.allocate"}));
    let nowhere = json!({"own": "ippool.nowhere.allocate"});
    let unmatched = json!({"nic": "interfaces.name == \"eth9\""});
    let matched = card(json!({"name": "{{ capture.nic.interfaces.0.name }}"}));
    let another = json!({"kubernetes.io/hostname": NODES[1].name()});
    let first = vec![
        pool("tiny", json!({"cidr": "10.10.30.0/24", "start": "10.10.30.1", "end": "10.10.30.1"})),
        pool("ample", json!({"cidr": "10.10.31.0/24"})),
        policy("before", another, tiny.clone(), addressed("ip")),
    ];
    let then = vec![
        policy("exhausted", here(), tiny, addressed("ip")),
        policy("no-such-pool", here(), nowhere, addressed("ip")),
        policy("broken-template", here(), ample, addressed("address")),
        policy("no-match", here(), unmatched, matched),
        policy("no-card", here(), none(), card(json!({"name": "eth9"}))),
        policy("misspelled", here(), none(), card(json!({"ipv4": {"enabled": true, "adress": []}}))),
        policy("unsupported", here(), none(), card(json!({"type": "ovs-bridge"}))),
        policy("this", here(), none(), bridge(1400)),
        policy("that", here(), none(), bridge(1450)),
        policy("nobody", json!({"rack": "nine"}), none(), card(none())),
    ];
    (first, then)
}

fn apply(field: &Field, objects: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    field.cluster.kubectl_with(&["apply", "-f", "-"], &list.to_string());
}

/// Is there a line with all these words?
fn has_line(text: &str, words: &[&str]) -> bool {
    text.lines().any(|line| words.iter().all(|word| line.contains(word)))
}

/// Columns of a table, without what differs each time.
fn has_row(table: &str, name: &str, wanted: &str) -> bool {
    table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .any(|row| row.first() == Some(&name) && wanted.split(' ').all(|word| row.contains(&word)))
}

/// R18, R69, R101
#[test]
#[ignore = "a cluster: make test-cluster"]
fn what_goes_wrong_is_told_where_an_administrator_looks() {
    let field = field();
    let kubectl = |arguments: &[&str]| field.cluster.try_kubectl(arguments);
    let (first, then) = objects();
    apply(&field, &first);
    field.wait_enactment(NODES[1], "before", "Available");
    apply(&field, &then);

    let enactment = |case: &Case| format!("{}.{}", NODE.name(), case.policy);
    wait::until("columns that say what came of it", || {
        let (policies, enactments) = (kubectl(&["get", "nncp"])?, kubectl(&["get", "nnce"])?);
        let is_shown = |case: &Case| {
            has_row(&policies, case.policy, case.status)
                && (case.enactment.is_empty() || has_row(&enactments, &enactment(case), case.enactment))
        };
        match CASES.iter().find(|case| !is_shown(case)) {
            None => Ok(()),
            Some(case) => Err(format!("{}: {policies}{enactments}", case.policy)),
        }
    });
    wait::until("Events that name each cause on their first line", || {
        let events = kubectl(&["get", "events"])?;
        let is_told = |case: &&Case| has_line(&events, &[&format!("policy/{} ", case.policy), case.cause]);
        let silent = CASES.iter().filter(|case| !case.cause.is_empty()).find(|case| !is_told(case));
        silent.map_or(Ok(()), |case| Err(format!("{}: {events}", case.policy)))
    });
    let pool = field.cluster.kubectl(&["describe", "nip", "tiny"]);
    for words in ["ExhaustedIPPool", "has been depleted, manual intervention needed to modify NodeIPPool"] {
        assert!(pool.contains(words), "{pool}");
    }
    let pod = field.pods("agent", Some(NODE))[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    let log = field.cluster.kubectl(&["logs", "-n", "berth-system", &pod]);
    let enactments = field.cluster.kubectl(&["describe", "nnce"]);
    for case in CASES {
        let described = field.cluster.kubectl(&["describe", "nncp", case.policy]);
        for words in [case.cause, case.besides] {
            assert!(described.contains(words), "describe nncp: {words}: {described}");
            // Who has no enactment has none to be said of, and what is put back each time is well.
            if case.enactment.starts_with("Failing") {
                assert!(enactments.contains(words), "describe nnce: {words}: {enactments}");
            }
            assert!(case.enactment.is_empty() || log.contains(words), "logs: {words}: {log}");
        }
    }
    refused_at_once(&field);
    clear(&field, &first, &then);
}

/// What nobody could bring about is not even taken.
fn refused_at_once(field: &Field) {
    let folder = field.cluster.folder();
    for (name, spec, words) in [
        (
            "NodeIPPool",
            json!({"range": {"cidr": "10.10.30.0/24", "start": "10.10.40.1"}}),
            "spec.range.start: Invalid value: start 10.10.40.1 is not in 10.10.30.0/24",
        ),
        (
            "NodeNetworkConfigurationPolicy",
            json!({"nodeselector": {}, "desiredState": {}}),
            "strict decoding error: unknown field \"spec.nodeselector\"",
        ),
    ] {
        let object =
            json!({"apiVersion": "nmstate.io/v1", "kind": name, "metadata": {"name": "wrong"}, "spec": spec});
        let path = folder.join("wrong.json");
        std::fs::write(&path, object.to_string()).expect("a file");
        let said = field.cluster.try_kubectl(&["apply", "-f", &path.display().to_string()]);
        let said = said.expect_err("nobody takes that");
        assert!(said.contains(words), "{said}");
    }
}

/// As it was: what policies made stays when they go, so that is done by hand.
fn clear(field: &Field, first: &[Value], then: &[Value]) {
    let of = |objects: &[Value], kind: &str| -> Vec<String> {
        let names = objects.iter().filter(|object| object["kind"] == kind);
        names.filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned)).collect()
    };
    let policies = [first, then].map(|part| of(part, "NodeNetworkConfigurationPolicy")).concat();
    let pools = of(first, "NodeIPPool");
    for (kind, names) in [("nncp", policies), ("nip", pools)] {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        // One that was in use may be there for a moment more, so that whoever holds addresses of it can hear of it.
        field.cluster.kubectl(&[&["delete", kind, "--wait=false"], &names[..]].concat());
    }
    wait::until("their enactments to be gone", || {
        let left = field.cluster.try_kubectl(&["get", "nnce", "--no-headers"])?;
        if left.lines().count() == NODES.len() { Ok(()) } else { Err(left) }
    });
    for (node, bridge) in [(NODES[1], "br-told-1"), (NODE, "br-told-2")] {
        let _ = answer(field.cluster.on(node, "ip").args(["link", "delete", bridge]));
    }
    field.wait_configured(&NODES);
}
