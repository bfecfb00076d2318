//! The bounds of a host (docs/security.md), one refusal per line of a table, each with what the host is told.

mod held;
mod host;
mod ledger;
mod slots;

use serde_json::{Value, json};

use super::*;
use crate::embedded::resource;

const UID: &str = "uid-1";
const HOST: &str = "node01";
const ENACTMENTS: &str = "nodenetworkconfigurationenactments";

fn find(plural: &str) -> &'static Resource {
    let found = resource::all()
        .iter()
        .find(|resource| resource.plural == plural && resource.group != "events.k8s.io");
    found.unwrap_or_else(|| panic!("{plural} is served"))
}

fn host() -> Caller {
    Caller::Host { name: HOST.to_owned(), elects: false }
}

/// `plural` or `plural/status`.
fn ask<'a>(caller: &'a Caller, verb: Verb, what: &'a str) -> Asked<'a> {
    let (plural, subresource) = what.split_once('/').unwrap_or((what, ""));
    Asked { caller, verb, resource: find(plural), namespace: "", name: "x", subresource }
}

fn write(
    caller: &Caller,
    verb: Verb,
    what: &str,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<(), String> {
    let asked = ask(caller, verb, what);
    let may = may_ask(&asked).and_then(|()| may_write(&asked, old, new, &World));
    may.map_err(|status| {
        assert_eq!((status.code.as_u16(), status.reason), (403, "Forbidden"));
        let (_, why) = status.message.split_once(" is forbidden: ").expect("Kubernetes' words");
        why.to_owned()
    })
}

/// One Node, and a pool of sixteen slices of sixteen addresses.
struct World;

impl Seen for World {
    fn node_uid(&self, name: &str) -> Option<String> {
        (name == HOST).then(|| UID.to_owned())
    }

    fn pool(&self, name: &str) -> Option<Value> {
        let range = json!({"cidr": "10.0.0.0/24", "perNodeHostBits": 4});
        let mut pool = json!({"metadata": {"name": name}, "spec": {"range": range}});
        match name {
            "traffic-1" => {}
            "restored" => pool["metadata"]["annotations"] = json!({"nmstate.io/hold": ""}),
            "held" => pool["status"] = json!({"hold": {"until": "2026-01-01T00:00:00Z"}}),
            "reset" => pool["metadata"]["annotations"] = json!({"nmstate.io/reset-ippool": ""}),
            "leaving" => pool["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into(),
            _ => return None,
        }
        Some(pool)
    }
}

/// Something that a host tries.
struct Attempt {
    verb: Verb,
    what: &'static str,
    old: Option<Value>,
    new: Option<Value>,
}

fn create(what: &'static str, new: Value) -> Attempt {
    Attempt { verb: Verb::Create, what, old: None, new: Some(new) }
}

fn update(what: &'static str, old: Value, new: Value) -> Attempt {
    Attempt { verb: Verb::Update, what, old: Some(old), new: Some(new) }
}

fn delete(what: &'static str, old: Value) -> Attempt {
    Attempt { verb: Verb::Delete, what, old: Some(old), new: None }
}

fn attempt(Attempt { verb, what, old, new }: &Attempt) -> Result<(), String> {
    write(&host(), *verb, what, old.as_ref(), new.as_ref())
}

fn node(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"rack": "1"}}})
}

fn enactment(name: &str, node: &str, policy: &str, owner: (&str, &str)) -> Value {
    json!({"metadata": {
        "name": name,
        "labels": {"nmstate.io/node": node, "nmstate.io/policy": policy},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": owner.0, "uid": owner.1}],
        "finalizers": ["nmstate.io/addresses"],
    }})
}

fn own() -> Value {
    enactment("node01.web", HOST, "web", (HOST, UID))
}

fn state(name: &str, uid: &str) -> Value {
    json!({"metadata": {"name": name,
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}]}})
}

fn slice(node: &str, uid: &str) -> Value {
    json!({"metadata": {"name": "traffic-1.10.0.0.0"}, "spec": {"pool": "traffic-1", "cidr": "10.0.0.0/28", "node": node, "nodeUID": uid}})
}

fn lease(namespace: &str, name: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name}})
}

fn with(mut object: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut object);
    object
}

/// Node `a` with policy `b.c` and node `a.b` with policy `c` have one name: the label and the owner tell them apart.
#[test]
fn a_name_alone_is_no_proof() {
    let theirs = enactment("node01.b.c", "node01.b", "c", ("node01.b", "uid-b"));
    let said = write(&host(), Verb::Update, ENACTMENTS, Some(&theirs), Some(&theirs));
    assert_eq!(said, Err("it is not host node01's: its label nmstate.io/node is node01.b".to_owned()));
    let ours = enactment("node01.b.c", HOST, "b.c", (HOST, UID));
    assert_eq!(write(&host(), Verb::Create, ENACTMENTS, None, Some(&ours)), Ok(()));
}

/// Rule 7: after a Node was re-created under its name, its host takes the finalizer off what the former one left.
#[test]
fn what_a_former_node_left_may_be_let_go_and_nothing_else() {
    let leaving = with(enactment("node01.web", HOST, "web", (HOST, "former")), |object| {
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        object["metadata"]["resourceVersion"] = "7".into();
        object["metadata"]["finalizers"] = json!(["nmstate.io/addresses", "other/one"]);
    });
    let let_go = with(leaving.clone(), |object| {
        object["metadata"]["finalizers"] = json!(["other/one"]);
        object["metadata"]["resourceVersion"] = "8".into();
    });
    let change = |old: &Value, new: &Value| write(&host(), Verb::Patch, ENACTMENTS, Some(old), Some(new));
    assert_eq!(change(&leaving, &let_go), Ok(()));
    let all = with(let_go.clone(), |object| object["metadata"]["finalizers"] = json!([]));
    let more = with(let_go.clone(), |object| object["metadata"]["labels"]["x"] = "y".into());
    let staying = with(leaving.clone(), |object| {
        object["metadata"].as_object_mut().expect("metadata").remove("deletionTimestamp");
    });
    let theirs =
        with(leaving.clone(), |object| object["metadata"]["ownerReferences"][0]["name"] = "node02".into());
    for (old, new) in [(&leaving, &all), (&leaving, &more), (&staying, &let_go), (&theirs, &let_go)] {
        let said = change(old, new).expect_err("refused");
        assert!(said.starts_with("it is owned by Node"), "{said}");
    }
}

/// A label's value has at most 63 characters: of a longer name the owner alone says whose an object is.
#[test]
fn a_long_name_has_no_label() {
    struct Long;
    impl Seen for Long {
        fn node_uid(&self, _: &str) -> Option<String> {
            Some(UID.to_owned())
        }
        fn pool(&self, _: &str) -> Option<Value> {
            None
        }
    }
    let name = format!("{}.{}", "a".repeat(40), "b".repeat(40));
    let caller = Caller::Host { name: name.clone(), elects: false };
    let asked = ask(&caller, Verb::Create, ENACTMENTS);
    let unlabelled = with(enactment(&format!("{name}.web"), "", "web", (&name, UID)), |object| {
        object["metadata"]["labels"] = json!({"nmstate.io/policy": "web"});
    });
    assert_eq!(may_write(&asked, None, Some(&unlabelled), &Long), Ok(()));
    let theirs = with(unlabelled, |object| object["metadata"]["ownerReferences"][0]["uid"] = "other".into());
    assert!(may_write(&asked, None, Some(&theirs), &Long).is_err());
}

#[test]
fn without_a_node_there_is_only_the_node_to_write() {
    let caller = Caller::Host { name: "node09".to_owned(), elects: false };
    assert_eq!(write(&caller, Verb::Create, "nodes", None, Some(&node("node09"))), Ok(()));
    let theirs = enactment("node09.web", "node09", "web", ("node09", "made-up"));
    let said = write(&caller, Verb::Create, ENACTMENTS, None, Some(&theirs));
    assert_eq!(said, Err("there is no Node node09 that it could belong to: register it first".to_owned()));
}

#[test]
fn a_controller_leaves_people_and_nodes_alone() {
    use Verb::{Create, Delete, DeleteCollection, Patch, Update};
    let pool = json!({"metadata": {"name": "p"}, "spec": {"range": {"cidr": "10.0.0.0/24"}}});
    let marked =
        with(pool.clone(), |pool| pool["metadata"]["finalizers"] = json!(["nmstate.io/range-in-use"]));
    let other = with(pool.clone(), |pool| pool["spec"]["range"]["cidr"] = "10.0.1.0/24".into());
    let caller = Caller::Controller;
    let listed = with(pool.clone(), |pool| {
        pool["metadata"]["labels"] = json!({"nmstate.io/from-configuration": "true"});
    });
    for (verb, what, old, new) in [
        (Patch, "nodeippools", Some(&pool), Some(&marked)),
        (Patch, "nodeippools/status", Some(&pool), Some(&pool)),
        (Update, "nodenetworkconfigurationpolicies/status", Some(&pool), Some(&pool)),
        (Delete, ENACTMENTS, Some(&pool), None),
        (Create, "nodeippools", None, Some(&listed)),
        (Create, "leases", None, Some(&pool)),
        (Create, "events", None, Some(&pool)),
    ] {
        assert_eq!(write(&caller, verb, what, old, new), Ok(()), "{verb:?} {what}");
    }
    for (verb, what, old, new, why) in [
        (
            Update,
            "nodeippools",
            Some(&pool),
            Some(&other),
            "a controller may not change the spec of nodeippools",
        ),
        (Create, "nodeippools", None, Some(&pool), "a controller may not create nodeippools"),
        (Delete, "nodes", Some(&pool), None, "a controller may not delete nodes"),
        (Create, "namespaces", None, Some(&pool), "a controller may not create namespaces"),
        (DeleteCollection, "leases", Some(&pool), None, "a controller may not delete many at once of leases"),
    ] {
        assert_eq!(write(&caller, verb, what, old, new), Err(why.to_owned()), "{verb:?} {what}");
    }
}

#[test]
fn agents_that_elect_have_both_rights_and_no_more() {
    let caller = Caller::Host { name: HOST.to_owned(), elects: true };
    let theirs = enactment("node02.web", "node02", "web", ("node02", "uid-2"));
    assert_eq!(write(&caller, Verb::Create, "nodes", None, Some(&node(HOST))), Ok(()));
    assert_eq!(write(&caller, Verb::Update, ENACTMENTS, Some(&theirs), Some(&theirs)), Ok(()));
    assert_eq!(write(&caller, Verb::Patch, "nodeippools/status", Some(&theirs), Some(&theirs)), Ok(()));
    let said = write(&caller, Verb::Create, "nodes", None, Some(&node("node02")));
    assert_eq!(said, Err("host node01 may not create Node node02, only its own".to_owned()));
    let said = write(&caller, Verb::Create, "nodeippools", None, Some(&node("x")));
    assert_eq!(said, Err("host node01 may not create nodeippools".to_owned()));
}
