//! A host's enactments, its state, Events, and what is never a host's.

use api_tests::server::paths::{
    ENACTMENTS, EVENTS, NODES, POLICIES, POOLS, STATES, event, node, policy, pool,
};
use serde_json::{Value, json};

use super::{FORMER, HOST, Uids, change, enactment, owner, passes, refused, state, with};
use crate::row::{Act, By, Change, Row};

pub(super) fn rows(uids: &Uids) -> Vec<Row> {
    let mut rows = own_enactments(uids);
    rows.extend(own_claims(uids));
    rows.extend(kept_by_others(uids));
    rows.extend(enactments_of_others(uids));
    rows.extend(left_by_a_former_node(uids));
    rows.extend(states(uids));
    rows.extend(owned_besides(uids));
    rows.extend(events());
    rows.extend(never());
    rows
}

fn own(uids: &Uids) -> Value {
    enactment("node01.web", HOST, "web", (HOST, &uids.node01))
}

fn progress() -> Change {
    change(|object| object["status"]["conditions"] = json!([{"type": "Available", "status": "True"}]))
}

fn unlabel() -> Change {
    change(|object| object["metadata"]["labels"] = json!({"nmstate.io/policy": "web"}))
}

fn relabel() -> Change {
    change(|object| object["metadata"]["labels"]["nmstate.io/node"] = HOST.into())
}

fn finalizers(left: &[&str]) -> Change {
    let left = json!(left);
    change(move |object| object["metadata"]["finalizers"] = left.clone())
}

/// As its agent makes it.
fn made(uids: &Uids) -> Value {
    with(own(uids), |object| finalizers(&["nmstate.io/addresses"])(object))
}

/// By one Node, in two ways: of what is the same in all the server itself leaves one.
fn owned_twice(object: Value) -> Value {
    with(object, |object| {
        let owners = object["metadata"]["ownerReferences"].as_array_mut().expect("owners");
        owners.push(with(owners[0].clone(), |owner| owner["controller"] = true.into()));
    })
}

fn own_enactments(uids: &Uids) -> Vec<Row> {
    let own = || own(uids);
    let dotted = with(made(uids), |object| {
        object["metadata"]["name"] = "node01.b.c".into();
        object["metadata"]["labels"]["nmstate.io/policy"] = "b.c".into();
    });
    let nobodys = format!("it must have Node {HOST} with UID {} as its only owner", uids.node01);
    let two = with(own(), |object| {
        let owners = object["metadata"]["ownerReferences"].as_array_mut();
        owners.expect("owners").push(owner("node02", &uids.node02));
    });
    let other = |name: &str, uid: &str| {
        format!("it is owned by Node {name} with UID {uid}, not by Node {HOST} with UID {}", uids.node01)
    };
    let name = "an enactment of host node01 is named node01.<policy>, with the policy in its label nmstate.io/policy";
    let missing = "it is not host node01's: its label nmstate.io/node is missing";
    let unlabelled = with(own(), |object| unlabel()(object));
    let rename = change(|object| object["metadata"]["labels"]["nmstate.io/policy"] = "db".into());
    let unname = || change(|object| object["metadata"]["labels"] = json!({"nmstate.io/node": HOST}));
    let twice = owned_twice(own());
    let long = with(own(), |object| {
        object["metadata"]["name"] = format!("{HOST}.{}", "w".repeat(64)).into();
        unname()(object);
    });
    let unowned = with(own(), |object| object["metadata"]["ownerReferences"] = json!([]));
    let given = owner("node02", &uids.node02);
    vec![
        passes("makes an enactment", ENACTMENTS, None, Act::Create(made(uids))),
        passes("makes one of a policy with a dot", ENACTMENTS, None, Act::Create(dotted)),
        passes("says how it goes", ENACTMENTS, Some(own()), Act::PatchStatus(progress())),
        passes("takes its finalizer off", ENACTMENTS, Some(own()), Act::Patch(finalizers(&[]))),
        passes("lets an enactment go", ENACTMENTS, Some(own()), Act::Delete),
        refused("unlabels its own", ENACTMENTS, Some(own()), Act::Patch(unlabel()), missing),
        refused("labels what has no label", ENACTMENTS, Some(unlabelled), Act::Patch(relabel()), missing),
        refused("makes one without an owner", ENACTMENTS, None, Act::Create(unowned), nobodys.as_str()),
        refused("makes one with its owner twice", ENACTMENTS, None, Act::Create(twice), nobodys),
        refused("makes one of a policy that no label names", ENACTMENTS, None, Act::Create(long), name),
        refused("names another policy", ENACTMENTS, Some(own()), Act::Patch(rename), name),
        refused("names no policy any more", ENACTMENTS, Some(own()), Act::Patch(unname()), name),
        refused(
            "makes one with two owners",
            ENACTMENTS,
            None,
            Act::Create(two),
            other("node02", &uids.node02),
        ),
        refused(
            "gives its own to another Node",
            ENACTMENTS,
            Some(own()),
            Act::Patch(change(move |object| object["metadata"]["ownerReferences"] = json!([given]))),
            other("node02", &uids.node02),
        ),
        refused(
            "makes one for a former Node",
            ENACTMENTS,
            None,
            Act::Create(enactment("node01.web", HOST, "web", (HOST, FORMER))),
            other(HOST, FORMER),
        ),
        refused(
            "takes the name of another's",
            ENACTMENTS,
            None,
            Act::Create(enactment("node02.web", HOST, "web", (HOST, &uids.node01))),
            name,
        ),
        refused(
            "takes the name of another policy's",
            ENACTMENTS,
            None,
            Act::Create(enactment("node01.web", HOST, "db", (HOST, &uids.node01))),
            name,
        ),
    ]
}

/// What it says of pools can be read: they wait for what can't.
fn own_claims(uids: &Uids) -> Vec<Row> {
    let own = || own(uids);
    let beats = |time: &'static str| {
        let condition = json!({"type": "Available", "status": "True", "lastHeartbeatTime": time});
        Act::PatchStatus(change(move |object| object["status"]["conditions"] = json!([condition])))
    };
    let told = "status.ippool.web can't be read: each address must be one, of two the first IPv4 and the second IPv6, and none declined twice";
    let says = |claims: Value| {
        Act::PatchStatus(change(move |object| object["status"]["ippool"]["web"] = claims.clone()))
    };
    let asks = |more: Value| {
        let mut request = json!({"id": "1", "want": true});
        request.as_object_mut().expect("a request").extend(more.as_object().cloned().unwrap_or_default());
        says(json!({"requests": {"a": request}}))
    };
    let granted = |more: Value| {
        let mut grant = json!({"id": "1", "ip": "10.0.0.1", "prefix-length": 24});
        grant.as_object_mut().expect("a grant").extend(more.as_object().cloned().unwrap_or_default());
        says(json!({"grants": {"a": grant}}))
    };
    let address = |ip: &str| json!({"ip": ip, "prefix-length": 64});
    let (v4, v6) = (address("10.0.0.1"), address("fd00::1"));
    let passes = |name, act| passes(name, ENACTMENTS, Some(own()), act);
    let refused = |name, act| refused(name, ENACTMENTS, Some(own()), act, told);
    let broken = with(own(), |object| {
        let request = json!({"id": "1", "want": true, "holds": {"ip": "x"}});
        object["status"] = json!({"ippool": {"broken": {"requests": {"a": request}}}});
    });
    vec![
        passes(
            "asks with all that there is",
            asks(json!({"holds": {"ip": "10.0.0.1", "ipv6": "fd00::1"}, "literal": "10.0.0.1",
                "declined": [{"ip": "10.0.0.2"}, {"ip": "fd00::2"}]})),
        ),
        // Whoever can't read one can't list any.
        super::refused(
            "says how it goes at a time that nobody can read",
            ENACTMENTS,
            Some(own()),
            beats("2026-01-01T00:00:00+99:99"),
            "status.conditions[0].lastHeartbeatTime",
        )
        .by(By::Schema),
        passes("says how it goes at a time", beats("2026-01-01T00:00:00Z")),
        passes("holds an IPv6 address", asks(json!({"holds": {"ip": "fd00::1"}}))),
        passes("answers itself", granted(json!({}))),
        passes("answers itself with two", granted(json!({"ipv4": v4, "ipv6": v6}))),
        // What somebody else broke is no reason to refuse what is about something else.
        super::passes("goes on beside what is broken", ENACTMENTS, Some(broken), asks(json!({}))),
        refused("holds what is no address", asks(json!({"holds": {"ip": "x"}}))),
        refused("holds an address in an address", asks(json!({"holds": {"ip": "::ffff:10.0.0.1"}}))),
        refused("holds no address besides", asks(json!({"holds": {"ip": "10.0.0.1", "ipv6": "x"}}))),
        refused("holds two of IPv4", asks(json!({"holds": {"ip": "10.0.0.1", "ipv6": "10.0.0.2"}}))),
        refused("holds IPv6 first", asks(json!({"holds": {"ip": "fd00::1", "ipv6": "fd00::2"}}))),
        refused("names what is no address", asks(json!({"literal": "x"}))),
        refused("declines what is no address", asks(json!({"declined": [{"ip": "x"}]}))),
        refused("declines twice", asks(json!({"declined": [{"ip": "10.0.0.2"}, {"ip": "10.0.0.2"}]}))),
        refused("declines in another spelling", asks(json!({"declined": [{"ip": "fd00:0::2"}]}))),
        refused("gives itself what is no address", granted(json!({"ip": "x"}))),
        refused("gives itself half of two", granted(json!({"ipv4": v4}))),
        refused("gives itself the other half of two", granted(json!({"ipv6": v6}))),
        refused("gives itself two others", granted(json!({"ip": "10.0.0.2", "ipv4": v4, "ipv6": v6}))),
        refused("gives itself two of IPv4", granted(json!({"ipv4": v4, "ipv6": v4}))),
        refused("gives itself IPv6 first", granted(json!({"ip": "fd00::1", "ipv4": v6, "ipv6": v6}))),
    ]
}

/// What keeps an object from going, and what stops a pool, isn't a host's to ask for. What others asked for stays.
fn kept_by_others(uids: &Uids) -> Vec<Row> {
    let own = || own(uids);
    let told = |name: &str| {
        format!("host node01 may not put the finalizer {name} on its enactment: only nmstate.io/addresses")
    };
    let asks = |pool: &'static str| {
        change(move |object| object["metadata"]["annotations"]["nmstate.io/reset-ippool"] = pool.into())
    };
    let asked = |pool: &'static str| with(own(), |object| asks(pool)(object));
    let free = with(own(), |object| finalizers(&["example.com/other"])(object));
    let three = finalizers(&["nmstate.io/addresses", "example.com/other", "example.com/mine"]);
    let foreground = finalizers(&["nmstate.io/addresses", "example.com/other", "foregroundDeletion"]);
    let reset = "host node01 may not ask for a reset, by nmstate.io/reset-ippool";
    let made_so = with(made(uids), |object| asks("web")(object));
    let takes_back = change(|object| object["metadata"]["annotations"] = json!({}));
    let both = || finalizers(&["nmstate.io/addresses", "example.com/other"]);
    let (other, mine) = (told("example.com/other"), told("example.com/mine"));
    let passes = |name, old, act| passes(name, ENACTMENTS, Some(old), act);
    let changes = |name, old, to, told: &str| refused(name, ENACTMENTS, Some(old), Act::Patch(to), told);
    vec![
        passes("keeps an enactment that another keeps", free, Act::Patch(both())),
        passes("goes on while a reset is asked for", asked("web"), Act::PatchStatus(progress())),
        passes("lets go while a reset is asked for", asked("web"), Act::Patch(finalizers(&[]))),
        passes("takes back that a reset is asked for", asked("web"), Act::Patch(takes_back)),
        refused("makes one that another keeps", ENACTMENTS, None, Act::Create(own()), other),
        changes("has another keep its enactment", own(), three, &mine),
        changes("has it go last", own(), foreground, &told("foregroundDeletion")),
        refused("makes one that asks for a reset", ENACTMENTS, None, Act::Create(made_so), reset),
        changes("asks for a reset", own(), asks("web"), reset),
        changes("asks for a reset of no pool", own(), asks(""), reset),
        changes("asks for a reset of another pool", asked("web"), asks("db"), reset),
    ]
}

fn enactments_of_others(uids: &Uids) -> Vec<Row> {
    let theirs = || super::theirs(ENACTMENTS, uids);
    // Node `a` with policy `b.c` and node `a.b` with policy `c` have one name.
    let namesake = enactment("node01.b.c", "node01.b", "c", ("node02", &uids.node02));
    let label = "it is not host node01's: its label nmstate.io/node is node02";
    let refused = |name, act| refused(name, ENACTMENTS, Some(theirs()), act, label);
    vec![
        super::refused("makes another's enactment", ENACTMENTS, None, Act::Create(theirs()), label),
        refused("says how it goes with another", Act::PatchStatus(progress())),
        refused("takes the finalizer off another's", Act::Patch(finalizers(&[]))),
        refused("calls another's its own", Act::Patch(relabel())),
        refused("deletes another's enactment", Act::Delete),
        super::refused(
            "deletes all enactments",
            ENACTMENTS,
            Some(theirs()),
            Act::DeleteAll,
            "host node01 may not delete many at once of nodenetworkconfigurationenactments",
        )
        .by(By::Rights),
        super::refused(
            "writes one that only has a name like its own",
            ENACTMENTS,
            Some(namesake),
            Act::PatchStatus(progress()),
            "it is not host node01's: its label nmstate.io/node is node01.b",
        ),
    ]
}

/// Rule 7 of the claim protocol: a Node re-created under its name lets go of what the former one left, and no more.
fn left_by_a_former_node(uids: &Uids) -> Vec<Row> {
    let leaving = || {
        with(enactment("node01.web", HOST, "web", (HOST, FORMER)), |object| {
            object["metadata"]["deletionTimestamp"] = "now".into();
        })
    };
    let told =
        format!("it is owned by Node {HOST} with UID {FORMER}, not by Node {HOST} with UID {}", uids.node01);
    let more = change(|object| {
        object["metadata"]["finalizers"] = json!(["example.com/other"]);
        object["metadata"]["labels"]["x"] = "y".into();
    });
    vec![
        passes(
            "lets go of what a former Node left",
            ENACTMENTS,
            Some(leaving()),
            Act::Patch(finalizers(&["example.com/other"])),
        ),
        refused(
            "takes another's finalizer too",
            ENACTMENTS,
            Some(leaving()),
            Act::Patch(finalizers(&[])),
            &told,
        ),
        refused("lets go and labels", ENACTMENTS, Some(leaving()), Act::Patch(more), &told),
        refused(
            "says how it goes with a former Node's",
            ENACTMENTS,
            Some(leaving()),
            Act::PatchStatus(progress()),
            &told,
        ),
    ]
}

/// What else owns an object would keep it when its Node is gone; what is to go before its Node, would keep that.
fn owned_besides(uids: &Uids) -> Vec<Row> {
    let owned = |object: Value, kind: &'static str| with(object, |object| owned_by(kind)(object));
    let waited = |object: Value| {
        with(object, |object| object["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = true.into())
    };
    let told = format!("it must have Node {HOST} with UID {} as its only owner", uids.node01);
    let makes = |name, kind, object| refused(name, kind, None, Act::Create(object), told.as_str());
    let own_state = || state(HOST, &uids.node01);
    let progress = Act::PatchStatus(progress());
    vec![
        makes("makes an enactment that a pool owns too", ENACTMENTS, owned(made(uids), "NodeIPPool")),
        makes("makes an enactment that its Node waits for", ENACTMENTS, waited(made(uids))),
        makes("makes a state that something unknown owns too", STATES, owned(own_state(), "Unknown")),
        makes("makes a state that its Node waits for", STATES, waited(own_state())),
        refused(
            "has a pool own its enactment too",
            ENACTMENTS,
            Some(own(uids)),
            Act::Patch(owned_by("NodeIPPool")),
            told.as_str(),
        ),
        passes(
            "says how it goes in an enactment that a pool owns too",
            ENACTMENTS,
            Some(owned(own(uids), "NodeIPPool")),
            progress,
        ),
    ]
}

/// Somebody else of this kind owns it, too.
pub(super) fn owned_by(kind: &'static str) -> Change {
    change(move |object| {
        let other = json!({"apiVersion": "nmstate.io/v1", "kind": kind, "name": "traffic-1", "uid": FORMER});
        let mut owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners.push(other);
        object["metadata"]["ownerReferences"] = owners.into();
    })
}

fn states(uids: &Uids) -> Vec<Row> {
    let own = || state(HOST, &uids.node01);
    let theirs = || super::theirs(STATES, uids);
    // Without a finalizer it would go with its Node.
    let former = with(state(HOST, FORMER), |object| {
        object["metadata"]["finalizers"] = json!(["example.com/other"]);
    });
    let report = || change(|object| object["status"]["currentState"] = json!({"interfaces": []}));
    let of_other = "host node01 may not write the state of node node02";
    let keep = finalizers(&["nmstate.io/addresses"]);
    let kept = || with(own(), |object| finalizers(&["nmstate.io/addresses"])(object));
    let told = "host node01 may not put the finalizer nmstate.io/addresses on its state";
    vec![
        passes("makes its state", STATES, None, Act::Create(own())),
        passes("reports", STATES, Some(own()), Act::PutStatus(report())),
        passes("deletes its state", STATES, Some(own()), Act::Delete),
        passes("deletes the state of a former Node", STATES, Some(former), Act::Delete),
        passes("reports in a state that another keeps", STATES, Some(kept()), Act::PutStatus(report())),
        refused("makes a state that another keeps", STATES, None, Act::Create(kept()), told),
        refused("has another keep its state", STATES, Some(own()), Act::Patch(keep), told)
            .by(By::RightsAndAdmission),
        refused("makes another's state", STATES, None, Act::Create(theirs()), of_other),
        refused("reports for another", STATES, Some(theirs()), Act::PutStatus(report()), of_other),
        refused("deletes another's state", STATES, Some(theirs()), Act::Delete, of_other),
        refused(
            "makes a state for a former Node",
            STATES,
            None,
            Act::Create(state(HOST, FORMER)),
            format!(
                "it is owned by Node {HOST} with UID {FORMER}, not by Node {HOST} with UID {}",
                uids.node01
            ),
        ),
        refused(
            "makes a state that belongs to nobody",
            STATES,
            None,
            Act::Create(with(own(), |object| object["metadata"]["ownerReferences"] = json!([]))),
            format!("it must have Node {HOST} with UID {} as its only owner", uids.node01),
        ),
        refused(
            "makes a state that belongs to its Node twice",
            STATES,
            None,
            Act::Create(owned_twice(own())),
            format!("it must have Node {HOST} with UID {} as its only owner", uids.node01),
        ),
        refused(
            "makes a state that is labelled as another's",
            STATES,
            None,
            Act::Create(with(own(), |object| {
                object["metadata"]["labels"] = json!({"nmstate.io/node": "node02"});
            })),
            "it is not host node01's: its label nmstate.io/node is node02",
        ),
    ]
}

fn events() -> Vec<Row> {
    let told_by = |teller: &str| {
        with(event("told", HOST), |event| {
            event["reportingInstance"] = teller.into();
            event["reportingComponent"] = "nmstate.io/berth-agent".into();
            event["source"] = json!({"host": teller, "component": format!("{teller}.nmstate-handler")});
        })
    };
    let without = |field: &str| {
        with(told_by(HOST), |event| drop(event.as_object_mut().expect("an Event").shift_remove(field)))
    };
    let nobody = with(without("source"), |event| event["reportingInstance"] = "".into());
    let put = |part: &'static str, field: &'static str, value: &'static str| {
        with(told_by(HOST), |event| match part {
            "" => event[field] = value.into(),
            part => event[part][field] = value.into(),
        })
    };
    let again = || change(|event| event["count"] = 2.into());
    let own = "only Events of its own: reportingInstance and source.host node01, reportingComponent nmstate.io/berth-agent, source.component node01.nmstate-handler";
    let (created, changed) =
        (format!("host node01 may create {own}"), format!("host node01 may change {own}"));
    let forges = |name, event| refused(name, EVENTS, None, Act::Create(event), created.as_str());
    let renames = change(|event| event["reportingInstance"] = "node02".into());
    vec![
        passes("tells something", EVENTS, None, Act::Create(told_by(HOST))),
        passes("tells by the old fields alone", EVENTS, None, Act::Create(without("reportingInstance"))),
        passes("tells by the new fields alone", EVENTS, None, Act::Create(without("source"))),
        forges("tells something in another's name", told_by("node02")),
        forges("tells something in nobody's name", nobody),
        forges("tells something as of another's host", put("source", "host", "node02")),
        forges("tells something as another instance", put("", "reportingInstance", "node02")),
        forges("tells something as another's handler", put("source", "component", "node02.nmstate-handler")),
        forges(
            "tells something as a controller",
            put("", "reportingComponent", "nmstate.io/berth-controller"),
        ),
        refused("calls what it told another's", EVENTS, Some(told_by(HOST)), Act::Patch(renames), &changed),
        passes("tells it again", EVENTS, Some(told_by(HOST)), Act::Patch(again())),
        refused(
            "tells again what another told",
            EVENTS,
            Some(told_by("node02")),
            Act::Patch(again()),
            &changed,
        ),
        refused(
            "takes back what it told",
            EVENTS,
            Some(told_by(HOST)),
            Act::Delete,
            "host node01 may not delete events",
        )
        .by(By::RightsAndAdmission),
    ]
}

/// What people and kubelets write.
fn never() -> Vec<Row> {
    let both = By::RightsAndAdmission;
    let touch = || change(|object| object["metadata"]["annotations"] = json!({"x": "y"}));
    let may_not = |what: &str| format!("host node01 may not {what}");
    vec![
        refused("makes a pool", POOLS, None, Act::Create(pool("own")), may_not("create nodeippools"))
            .by(both),
        refused(
            "changes a pool",
            POOLS,
            Some(pool("own")),
            Act::Patch(touch()),
            may_not("change nodeippools"),
        )
        .by(both),
        refused("deletes a pool", POOLS, Some(pool("own")), Act::Delete, may_not("delete nodeippools"))
            .by(both),
        refused(
            "makes a policy",
            POLICIES,
            None,
            Act::Create(policy("own")),
            may_not("create nodenetworkconfigurationpolicies"),
        )
        .by(both),
        refused(
            "changes a policy",
            POLICIES,
            Some(policy("own")),
            Act::Patch(touch()),
            may_not("change nodenetworkconfigurationpolicies"),
        )
        .by(both),
        refused(
            "deletes a policy",
            POLICIES,
            Some(policy("own")),
            Act::Delete,
            may_not("delete nodenetworkconfigurationpolicies"),
        )
        .by(both),
        refused(
            "makes another Node",
            NODES,
            None,
            Act::Create(node("node03")),
            "host node01 may not create Node node03, only its own",
        )
        .by(By::Rights),
    ]
}
