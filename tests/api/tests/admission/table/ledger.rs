//! A host's entries in a pool's ledger, and what follows from them.

use api_tests::server::paths::POOLS;
use serde_json::{Value, json};

use super::{FORMER, HOST, Uids, change, passes, refused, with};
use crate::row::{Act, By, Change, ITS_UID, Row};

fn entry(node: &str, uid: &str, sequence: u64) -> Value {
    json!({"node": node, "nodeUID": uid, "policy": "web", "capture": "a", "request": format!("id-{node}"),
        "sequence": sequence, "since": "2026-01-01T00:00:00Z", "kind": "dynamic"})
}

/// Ten addresses from 10.0.0.1, of which node02 holds 10.0.0.2 (offset 1) and node01 10.0.0.3 (offset 2).
fn pool(uids: &Uids) -> Value {
    json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": "traffic-1"},
        "spec": {"range": {"cidr": "10.0.0.0/24", "start": "10.0.0.1", "end": "10.0.0.10"}, "staticBand": "None",
            "reservations": [{"node": "node02", "ip": "10.0.0.9"}, {"node": HOST, "ip": "10.0.0.8"}]},
        "status": {
            "sequence": 7, "rebuiltFor": ITS_UID,
            "allocations": {"10.0.0.2": entry("node02", &uids.node02, 6), "10.0.0.3": entry(HOST, &uids.node01, 7)},
            "allocated-offsets": [1, 2], "capacity": 10, "allocated": 2, "available": 8,
            "conditions": [{"type": "Available", "status": "True"}],
        },
    })
}

/// What the host does to claim an address, all that follows included; and then something more.
fn claim(
    uids: &Uids,
    ip: &'static str,
    offset: u64,
    more: impl Fn(&mut Value) + Send + Sync + 'static,
) -> Change {
    let entry = entry(HOST, &uids.node01, 8);
    change(move |pool| {
        let status = &mut pool["status"];
        status["sequence"] = 8.into();
        status["allocations"][ip] = entry.clone();
        status["allocated-offsets"] = json!([1, 2, offset]);
        status["allocated"] = 3.into();
        status["available"] = 7.into();
        more(status);
    })
}

pub(super) fn rows(uids: &Uids) -> Vec<Row> {
    let mut rows = own(uids);
    rows.extend(entries_of_others(uids));
    rows.extend(what_does_not_follow(uids));
    rows.extend(a_controllers(uids));
    rows.extend(stopped(uids));
    rows.extend(ranges(uids));
    rows.extend(what_nobody_gets(uids));
    rows.extend(cut_into_slices(uids));
    rows
}

/// What is free by the ledger of a sliced pool may be held in another's slice.
fn cut_into_slices(uids: &Uids) -> Vec<Row> {
    let single = with(pool(uids), |pool| {
        pool["spec"]["range"] = json!({"cidr": "10.0.0.0/24", "perNodeHostBits": 4});
        pool["status"].as_object_mut().expect("a status").shift_remove("allocated-offsets");
    });
    let several = with(single.clone(), |pool| {
        let range = with(pool["spec"]["range"].clone(), |range| range["name"] = "rack-1".into());
        pool["spec"] = json!({"ranges": [range]});
    });
    let entry = entry(HOST, &uids.node01, 8);
    let claim = || {
        let entry = entry.clone();
        Act::PatchStatus(change(move |pool| {
            let status = &mut pool["status"];
            status["sequence"] = 8.into();
            status["allocations"]["10.0.0.5"] = entry.clone();
            status["allocated"] = 3.into();
        }))
    };
    let let_go = Act::PatchStatus(change(|pool| {
        let status = &mut pool["status"];
        status["sequence"] = 8.into();
        status["allocations"].as_object_mut().expect("entries").shift_remove("10.0.0.3");
        status["allocated"] = 1.into();
    }));
    let told =
        "host node01 may not claim 10.0.0.5 here: the pool is cut into slices, and hosts claim in their own";
    vec![
        refused("claims beside the slices", POOLS, Some(single.clone()), claim(), told),
        refused("claims beside the slices of a range", POOLS, Some(several), claim(), told),
        passes("lets go of what it has beside the slices", POOLS, Some(single), let_go),
    ]
}

/// In a range, and given to nobody.
fn what_nobody_gets(uids: &Uids) -> Vec<Row> {
    let row = |name, field: &'static str, value: Value, told: &str| {
        let old = with(pool(uids), |pool| pool["spec"]["range"][field] = value);
        let act = Act::PatchStatus(claim(uids, "10.0.0.5", 4, |_| {}));
        refused(name, POOLS, Some(old), act, format!("10.0.0.5 {told}"))
    };
    let excludes = "is given to nobody: range default excludes it";
    let ends = with(pool(uids), |pool| {
        pool["spec"]["range"] = json!({"cidr": "10.0.0.0/23", "skipOctetEnds": true});
        pool["status"]["capacity"] = 508.into();
    });
    let end = Act::PatchStatus(claim(uids, "10.0.0.255", 254, |_| {}));
    let told = "10.0.0.255 is given to nobody: range default skips octet ends";
    let dual = with(pool(uids), |pool| {
        pool["spec"] = json!({"ranges": [{"name": "both", "ipv4": {"cidr": "10.0.0.0/24"},
            "ipv6": {"cidr": "fd00::/120", "gateway": "FD00::7"}}]});
        pool["status"].as_object_mut().expect("a status").shift_remove("allocated-offsets");
    });
    let six = entry(HOST, &uids.node01, 8);
    let gateway = Act::PatchStatus(change(move |pool| {
        pool["status"]["sequence"] = 8.into();
        pool["status"]["allocations"]["fd00::7"] = six.clone();
    }));
    vec![
        row("claims the gateway", "gateway", json!("10.0.0.5"), "is the gateway of range default"),
        row("claims what is excluded", "exclude", json!(["10.0.0.5"]), excludes),
        row("claims of a network that is excluded", "exclude", json!(["10.0.0.4/30"]), excludes),
        refused("claims the end of an octet", POOLS, Some(ends), end, told),
        refused("claims an IPv6 gateway", POOLS, Some(dual), gateway, "fd00::7 is the gateway of range both"),
    ]
}

fn own(uids: &Uids) -> Vec<Row> {
    let old = || Some(pool(uids));
    let former =
        with(pool(uids), |pool| pool["status"]["allocations"]["10.0.0.3"]["nodeUID"] = FORMER.into());
    let mine = entry(HOST, &uids.node01, 7);
    // As a person may have left it.
    let unsaid = with(pool(uids), |pool| {
        for ip in ["10.0.0.2", "10.0.0.3"] {
            unkind(&mut pool["status"]["allocations"][ip]);
        }
    });
    let beside = Act::PatchStatus(claim(uids, "10.0.0.5", 4, |_| {}));
    vec![
        passes("claims beside entries without a kind", POOLS, Some(unsaid), beside),
        passes("claims", POOLS, old(), Act::PatchStatus(claim(uids, "10.0.0.5", 4, |_| {}))),
        passes(
            "claims what is reserved for it",
            POOLS,
            old(),
            Act::PatchStatus(claim(uids, "10.0.0.8", 7, |_| {})),
        ),
        passes("writes a ledger as it is", POOLS, old(), Act::PatchStatus(change(|_| {}))),
        passes(
            "releases",
            POOLS,
            old(),
            Act::PatchStatus(change(|pool| {
                let status = &mut pool["status"];
                status["sequence"] = 8.into();
                remove(status, "10.0.0.3");
                status["allocated-offsets"] = json!([1]);
                status["allocated"] = 1.into();
                status["available"] = 9.into();
            })),
        ),
        // Rule 10: taken on the wire; quarantined and another chosen, in one write.
        passes(
            "declines",
            POOLS,
            old(),
            Act::PatchStatus(claim(uids, "10.0.0.5", 4, |status| {
                let entry = &mut status["allocations"]["10.0.0.3"];
                entry["state"] = "Quarantined".into();
                entry["until"] = "2026-01-01T00:05:00Z".into();
                entry["reason"] = "IPCollision".into();
                entry["mac"] = "52:54:00:00:00:01".into();
                entry["interface"] = "eth1".into();
            })),
        ),
        // Rule 7.
        passes(
            "inherits what a former Node held",
            POOLS,
            Some(former),
            Act::PatchStatus(change(move |pool| {
                pool["status"]["sequence"] = 8.into();
                pool["status"]["allocations"]["10.0.0.3"] = mine.clone();
            })),
        ),
    ]
}

fn unkind(entry: &mut Value) {
    entry.as_object_mut().expect("an entry").shift_remove("kind");
}

fn remove(status: &mut Value, ip: &str) {
    status["allocations"].as_object_mut().expect("entries").shift_remove(ip);
}

/// A claim with something more that is not right.
fn claims(
    uids: &Uids,
    name: &'static str,
    more: impl Fn(&mut Value) + Send + Sync + 'static,
    told: impl Into<String>,
) -> Row {
    refused(name, POOLS, Some(pool(uids)), Act::PatchStatus(claim(uids, "10.0.0.5", 4, more)), told)
}

fn entries_of_others(uids: &Uids) -> Vec<Row> {
    let (mine, theirs) = (entry(HOST, &uids.node01, 8), entry("node02", &uids.node02, 8));
    let former = entry(HOST, FORMER, 8);
    let only =
        format!("host {HOST} may claim 10.0.0.5 only for itself, nodeUID {}, not for node ", uids.node01);
    let change = "host node01 may not change 10.0.0.2 of node node02";
    vec![
        claims(
            uids,
            "changes another's entry",
            |status| status["allocations"]["10.0.0.2"]["capture"] = "b".into(),
            change,
        ),
        claims(
            uids,
            "overwrites another's entry",
            move |status| status["allocations"]["10.0.0.2"] = mine.clone(),
            change,
        ),
        claims(
            uids,
            "deletes another's entry",
            |status| remove(status, "10.0.0.2"),
            "host node01 may not release 10.0.0.2 of node node02",
        ),
        claims(
            uids,
            "claims for another",
            move |status| status["allocations"]["10.0.0.5"] = theirs.clone(),
            format!("{only}node02, nodeUID {}", uids.node02),
        ),
        claims(
            uids,
            "claims for a former Node",
            move |status| status["allocations"]["10.0.0.5"] = former.clone(),
            format!("{only}node01, nodeUID {FORMER}"),
        ),
    ]
}

fn what_does_not_follow(uids: &Uids) -> Vec<Row> {
    let put = |ip: &'static str| {
        let entry = entry(HOST, &uids.node01, 8);
        move |status: &mut Value| status["allocations"][ip] = entry.clone()
    };
    let sequence = "status.sequence must be 8, one more than it was";
    let offsets = "status.allocated-offsets must be the offsets of status.allocations";
    vec![
        claims(
            uids,
            "claims ahead of its time",
            |status| status["allocations"]["10.0.0.5"]["sequence"] = 9.into(),
            "status.allocations.10.0.0.5.sequence must not be above status.sequence 8",
        ),
        claims(
            uids,
            "claims without a kind",
            |status| unkind(&mut status["allocations"]["10.0.0.5"]),
            "status.allocations.10.0.0.5.kind is missing",
        ),
        claims(
            uids,
            "takes the kind of its entry away",
            |status| unkind(&mut status["allocations"]["10.0.0.3"]),
            "status.allocations.10.0.0.3.kind is missing",
        ),
        claims(
            uids,
            "claims since a fraction of a second",
            |status| status["allocations"]["10.0.0.5"]["since"] = "2026-01-01T00:00:00.5Z".into(),
            "status.allocations.10.0.0.5.since",
        )
        .by(By::Schema),
        claims(
            uids,
            "claims since before time began",
            |status| status["allocations"]["10.0.0.5"]["since"] = "1969-12-31T23:59:59Z".into(),
            "status.allocations.10.0.0.5.since",
        )
        .by(By::Schema),
        claims(
            uids,
            "claims by a key that is not canonical",
            put("010.0.0.6"),
            "allocations must be keyed by addresses in canonical form",
        )
        .by(By::Schema),
        claims(uids, "claims what is in no range", put("10.0.1.1"), "10.0.1.1 is in no range of the pool"),
        claims(
            uids,
            "claims what is reserved for another",
            put("10.0.0.9"),
            "10.0.0.9 is reserved for node node02",
        ),
        claims(uids, "counts no write", |status| status["sequence"] = 7.into(), sequence),
        claims(uids, "counts two writes", |status| status["sequence"] = 9.into(), sequence),
        claims(uids, "leaves an offset out", |status| status["allocated-offsets"] = json!([1, 2]), offsets),
        claims(
            uids,
            "writes another offset",
            |status| status["allocated-offsets"] = json!([1, 2, 5]),
            offsets,
        ),
        claims(
            uids,
            "writes an offset twice",
            |status| status["allocated-offsets"] = json!([1, 4, 4]),
            offsets,
        ),
        claims(
            uids,
            "counts claims wrongly",
            |status| status["allocated"] = 2.into(),
            "status.allocated must be 3, the number of claims in status.allocations",
        ),
        claims(
            uids,
            "has more left than there is",
            |status| status["available"] = 11.into(),
            "status.available must be between 0 and status.capacity",
        ),
    ]
}

/// What only a controller says.
fn a_controllers(uids: &Uids) -> Vec<Row> {
    let told = |field: &str| format!("host node01 may not change status.{field}: only a controller does");
    let hold = json!({"until": "2026-01-01T00:00:00Z"});
    vec![
        claims(
            uids,
            "calls a ledger complete",
            |status| status["rebuiltFor"] = "other".into(),
            told("rebuiltFor"),
        ),
        claims(uids, "holds a pool back", move |status| status["hold"] = hold.clone(), told("hold")),
        claims(uids, "says that a pool is larger", |status| status["capacity"] = 11.into(), told("capacity")),
        claims(uids, "says that a pool is smaller", |status| status["capacity"] = 9.into(), told("capacity")),
        claims(
            uids,
            "says no more how large a pool is",
            |status| {
                for field in ["capacity", "available"] {
                    status.as_object_mut().expect("a status").shift_remove(field);
                }
            },
            told("capacity"),
        ),
        claims(uids, "takes conditions away", |status| status["conditions"] = json!([]), told("conditions")),
        claims(
            uids,
            "says that a pool is exhausted",
            |status| status["conditions"][0]["status"] = "False".into(),
            told("conditions"),
        ),
    ]
}

/// A pool that gives nothing gives a host nothing either.
fn stopped(uids: &Uids) -> Vec<Row> {
    let mark =
        |annotation: &str| with(pool(uids), |pool| pool["metadata"]["annotations"] = json!({annotation: ""}));
    let leaving = with(pool(uids), |pool| {
        pool["metadata"]["finalizers"] = json!(["nmstate.io/range-in-use"]);
        pool["metadata"]["deletionTimestamp"] = "now".into();
    });
    let another = with(pool(uids), |pool| pool["status"]["rebuiltFor"] = "another".into());
    let fresh = with(pool(uids), |pool| {
        pool["status"].as_object_mut().expect("a status").shift_remove("rebuiltFor");
    });
    let held = with(pool(uids), |pool| pool["status"]["hold"] = json!({"until": "2026-01-01T00:00:00Z"}));
    let row = |name, old, why: &str| {
        let act = Act::PatchStatus(claim(uids, "10.0.0.5", 4, |_| {}));
        refused(name, POOLS, Some(old), act, format!("the pool gives nothing: {why}"))
    };
    vec![
        row("claims of a pool that is to be held", mark("nmstate.io/hold"), "it is on hold"),
        row("claims of a pool on hold", held, "it is on hold"),
        row(
            "claims of a pool that is to be rebuilt",
            mark("nmstate.io/reset-ippool"),
            "its ledger is to be rebuilt",
        ),
        row("claims of a ledger that is another pool's", another, "its ledger is not rebuilt"),
        row("claims of a ledger that nobody has looked at", fresh, "its ledger is not rebuilt"),
        row("claims of a pool that goes", leaving, "it is being deleted"),
    ]
}

/// What a range has: from start to end, and by default what hosts may have of its network.
fn ranges(uids: &Uids) -> Vec<Row> {
    let whole = json!({"range": {"cidr": "10.0.0.77/24"}});
    let tiny = json!({"range": {"cidr": "10.0.0.2/31"}});
    let six = json!({"range": {"cidr": "2001:db8::/64"}});
    let part = json!({"range": {"cidr": "2001:db8::/64", "start": "2001:DB8::10", "end": "2001:db8::ffff"}});
    let several = json!({"ranges": [
        {"name": "a", "ipv4": {"cidr": "10.1.0.0/24"}, "ipv6": {"cidr": "fd00::/120"}},
        {"name": "b", "cidr": "10.2.0.0/16", "end": "10.2.0.99"},
    ]});
    let row = |name, spec: &Value, ips: &[&str], offsets: Value, is_in: bool| {
        let old = with(pool(uids), |pool| {
            pool["spec"] = spec.clone();
            pool["status"] = json!({"sequence": 7, "rebuiltFor": ITS_UID, "allocations": {}, "capacity": 9,
                "allocated": 0, "available": 9});
            if !offsets.is_null() {
                pool["status"]["allocated-offsets"] = json!([]);
            }
        });
        let entries: serde_json::Map<String, Value> =
            ips.iter().map(|ip| ((*ip).to_owned(), entry(HOST, &uids.node01, 8))).collect();
        let act = Act::PatchStatus(change(move |pool| {
            let status = &mut pool["status"];
            status["sequence"] = 8.into();
            status["allocations"] = entries.clone().into();
            status["allocated"] = 1.into();
            if !offsets.is_null() {
                status["allocated-offsets"] = offsets.clone();
            }
        }));
        match is_in {
            true => passes(name, POOLS, Some(old), act),
            false => refused(name, POOLS, Some(old), act, format!("{} is in no range of the pool", ips[0])),
        }
    };
    vec![
        row("claims the first of a network", &whole, &["10.0.0.1"], json!([0]), true),
        row("claims the last of a network", &whole, &["10.0.0.254"], json!([253]), true),
        row("claims a network's own address", &whole, &["10.0.0.0"], json!([]), false),
        row("claims a broadcast address", &whole, &["10.0.0.255"], json!([]), false),
        row("claims one of two", &tiny, &["10.0.0.2"], json!([0]), true),
        row("claims the other of two", &tiny, &["10.0.0.3"], json!([1]), true),
        row("claims an IPv6 address", &six, &["2001:db8::1"], Value::Null, true),
        row("claims the last IPv6 address", &six, &["2001:db8::ffff:ffff:ffff:ffff"], Value::Null, true),
        row("claims the anycast address", &six, &["2001:db8::"], Value::Null, false),
        row("claims of the next IPv6 network", &six, &["2001:db8:0:1::1"], Value::Null, false),
        row("claims an IPv6 start", &part, &["2001:db8::10"], json!([0]), true),
        row("claims an IPv6 end", &part, &["2001:db8::ffff"], json!([65519]), true),
        row("claims below an IPv6 start", &part, &["2001:db8::f"], json!([]), false),
        row("claims above an IPv6 end", &part, &["2001:db8::1:0"], json!([]), false),
        row("claims one of each family", &several, &["10.1.0.7", "fd00::7"], Value::Null, true),
        row("claims in a second range", &several, &["10.2.0.99"], Value::Null, true),
        row("claims behind a second range", &several, &["10.2.0.100"], Value::Null, false),
    ]
}
