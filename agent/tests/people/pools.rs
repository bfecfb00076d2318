//! Pools: listed, drawn, explained; released, held; what happened to them.

use hyper::http::Method;
use serde_json::json;

use crate::between::{Between, Does};
use crate::field::{Claim, Field, PREFIX, held, quarantined};

/// Ten addresses, two of them excluded and one the gateway.
fn range() -> serde_json::Value {
    json!({"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.10", "exclude": ["10.10.10.4", "10.10.10.7"],
        "gateway": "10.10.10.10"})
}

/// node01 holds .8 and lives, node02 is gone and held .2, .3 is quarantined.
fn traffic(field: &Field) -> String {
    let (pool, node) = (field.pool("traffic-1", &range()), field.node("node01", false));
    field.ledger(
        "traffic-1",
        &pool,
        &[
            (7, "10.10.10.8", held("node01", &node, "static-ip")),
            (1, "10.10.10.2", held("node02", "gone", "static-ip")),
            (2, "10.10.10.3", quarantined("node03", "2999-01-01T00:00:00Z")),
        ],
    );
    let claim = Claim { policy: "static-ip", pool: "traffic-1", pool_uid: &pool, ip: "10.10.10.8" };
    field.enactment("node01", &node, &claim);
    pool
}

pub(crate) fn r42_r82_pools_are_listed_shown_and_explained(field: &Field) {
    traffic(field);
    field.pool("traffic-2", &json!({"cidr": "10.20.0.0/16"}));
    let listed = field.berth("pool ls").ok();
    let words: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0].join(" "), "NAME REASON CAPACITY ALLOCATED AVAILABLE QUARANTINED RANGES");
    assert_eq!(words[1].join(" "), "traffic-1 ReconciledPool 7 3 4 1 10.10.10.1-10.10.10.10");
    assert_eq!(words[2].join(" "), "traffic-2 ReconciledPool 65534 0 65534 0 10.20.0.1-10.20.255.254");
    let json = field.berth("pool ls traffic-1 -o json").json();
    assert_eq!((&json[0]["name"], &json[0]["quarantined"]), (&json!("traffic-1"), &json!(1)));
    assert!(field.berth("pool ls -o wide").ok().contains("SEQUENCE"));
    assert!(field.berth("pool ls -o yaml").ok().contains("- name: traffic-1\n"));

    let shown = field.berth("pool show traffic-1").ok();
    assert!(shown.contains("capacity 7, held 2, quarantined 1, available 4\n"), "{shown}");
    assert!(shown.contains("\n  10.10.10.1   .#qx..x#.G\n"), "{shown}");
    assert!(shown.contains("10.10.10.8  node01  static-ip"), "{shown}");
    assert!(shown.contains("10.10.10.3   node03  2999-01-01T00:00:00Z  NodeGone"), "{shown}");
    assert!(!shown.contains('\x1b'), "no colours where there is no terminal");
    // A /16 is zoomed out of, and fits.
    let large = field.berth("pool show traffic-2").ok();
    assert!(large.contains("each sign is 64 addresses\n"), "{large}");
    assert!(large.lines().count() < 30 && large.lines().all(|line| line.chars().count() <= 100), "{large}");
    let document = field.berth("pool show traffic-1 -o json").json();
    assert_eq!(document["allocations"][0]["ip"], "10.10.10.2");
    assert_eq!(document["allocations"][1]["state"], "Quarantined");

    // R42: offset to address, address to offset, and the holder.
    let at = |line: &str| field.berth(line).json()["rows"][0].clone();
    let row = at("pool explain traffic-1 --offset 7 -o json");
    assert_eq!((&row["address"], &row["node"]), (&json!("10.10.10.8"), &json!("node01")));
    let row = at("pool explain traffic-1 --ip 10.10.10.2 -o json");
    assert_eq!((&row["offset"], &row["node"]), (&json!(1), &json!("node02")));
    assert!(field.berth("pool explain traffic-1 -o wide").ok().contains("2026-11-17T10:00:00Z"));
    // Without a name, the one that has it.
    assert!(field.berth("pool explain --ip 10.20.0.9").ok().contains("traffic-2"));
}

pub(crate) fn r40_release_quarantines_what_is_gone_and_refuses_the_living(field: &Field) {
    traffic(field);
    let before = field.get("nodeippools", "traffic-1");
    // Nobody is there to be asked.
    let said = field.berth("pool release traffic-1 10.10.10.2").failed(2);
    assert!(said.contains("node node02, policy static-ip, capture addr"), "{said}");
    assert!(said.contains("say --yes if it is meant"), "{said}");
    let said = field.berth("pool release traffic-1 10.10.10.8 --yes").failed(1);
    assert!(said.contains("10.10.10.8 is in use: node node01 is there"), "{said}");
    let said = field.berth("pool release traffic-1 10.10.10.9 --yes").failed(1);
    assert!(said.contains("10.10.10.9 is held by nobody"), "{said}");
    let said = field.berth("pool release traffic-1 10.10.10.3 --yes").failed(1);
    assert!(said.contains("quarantined already, until 2999-01-01T00:00:00Z"), "{said}");
    let same = field.get("nodeippools", "traffic-1");
    assert_eq!(
        same["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
        "nothing is written"
    );

    let released = field.berth("pool release traffic-1 10.10.10.2 --yes");
    assert_eq!(released.code, 0, "{}", released.stderr);
    assert!(
        released.stdout.starts_with("10.10.10.2 of pool traffic-1: quarantined until "),
        "{}",
        released.stdout
    );
    let after = field.get("nodeippools", "traffic-1");
    let entry = &after["status"]["allocations"]["10.10.10.2"];
    assert_eq!((&entry["state"], &entry["reason"]), (&json!("Quarantined"), &json!("NodeGone")));
    assert_eq!(after["status"]["sequence"], 8, "one write");
    assert_eq!(after["status"]["allocated-offsets"], json!([1, 2, 7]), "not free: quarantined");
    assert_eq!(after["status"]["conditions"], before["status"]["conditions"]);
    let again = field.berth("pool release traffic-1 10.10.10.2 --yes").failed(1);
    assert!(again.contains("quarantined already"), "{again}");
}

pub(crate) fn rule6_hold_and_resume(field: &Field) {
    field.pool("traffic-1", &range());
    field.pool("traffic-2", &json!({"cidr": "10.20.0.0/24"}));
    let annotation = |pool: &str| {
        field.get("nodeippools", pool)["metadata"]["annotations"]["nmstate.io/hold"]
            .as_str()
            .map(str::to_owned)
    };
    // Nobody is asked, and nothing says otherwise.
    let help = field.berth("pool --help").ok();
    assert!(help.contains("release asks first; hold and resume don't"), "{help}");
    assert!(field.berth("pool hold").failed(2).contains("say which pool, or --all"));
    assert!(field.berth("pool hold traffic-1 --all").failed(2).contains("either pools or --all"));
    let said = field.berth("pool hold --all --reason restore").ok();
    assert!(said.contains("traffic-2: on hold; nothing new is given") && said.contains("300 s"), "{said}");
    assert_eq!(
        (annotation("traffic-1"), annotation("traffic-2")),
        (Some("restore".into()), Some("restore".into()))
    );
    assert!(field.berth("pool ls").ok().contains("ReconciledPool (on hold)"));
    // Nothing is taken from a pool on hold either.
    field.node("node01", false);
    assert!(field.berth("pool hold traffic-1").ok().contains("was on hold already"));
    // What a restore left ends by itself; from now on it doesn't.
    let restored = json!({"metadata": {"annotations": {"nmstate.io/hold": "restored from a backup"}}});
    field.ask(Method::PATCH, "/apis/nmstate.io/v1/nodeippools/traffic-1", &restored);
    let said = field.berth("pool hold traffic-1").ok();
    assert!(said.contains("Now it lasts until 'berth pool resume traffic-1'"), "{said}");
    assert_eq!(annotation("traffic-1"), Some("by hand".into()));
    let said = field.berth("pool resume traffic-1").ok();
    assert!(said.contains("traffic-1: resumed; no controller has seen the hold yet"), "{said}");
    assert_eq!(annotation("traffic-1"), None);
    // A controller has begun it: it says when it ends.
    let hold = json!({"status": {"hold": {"until": "2999-01-01T00:00:00Z"}}});
    field.ask(Method::PATCH, "/apis/nmstate.io/v1/nodeippools/traffic-2/status", &hold);
    let said = field.berth("pool resume --all").ok();
    assert!(said.contains("traffic-2: resumed; it gives again at 2999-01-01T00:00:00Z"), "{said}");
    assert!(said.contains("traffic-1: was not on hold"), "{said}");
    assert_eq!(annotation("traffic-2"), None);
}

/// A slice that its agent gives back and a pool that somebody deletes between the look and the write end nothing: all pools are
/// held before any slice is written.
pub(crate) fn what_is_gone_by_then_is_held_no_longer(field: &Field) {
    let node = field.node("node01", false);
    for (pool, range) in [("cut-1", "10.30.0.0/24"), ("cut-2", "10.31.0.0/24"), ("cut-3", "10.32.0.0/24")] {
        field.pool(pool, &json!({"cidr": range, "perNodeHostBits": 4}));
    }
    for first in ["10.30.0.64", "10.30.0.80", "10.32.0.16"] {
        let pool = if first.starts_with("10.30") { "cut-1" } else { "cut-3" };
        field.slice(pool, &format!("{first}/28"), "node01", &node, first);
    }
    let slice = format!("{PREFIX}/nodeipslices/cut-1.10.30.0.64");
    let pool = format!("{PREFIX}/nodeippools/cut-2");
    let (seen, first) = (std::sync::Arc::new(std::sync::Mutex::new(Vec::new())), slice.clone());
    let written = seen.clone();
    let way = Between::new(field, move |method, path| {
        if method == Method::PATCH {
            written.lock().expect("whole").push(path.rsplit('/').next().unwrap_or_default().to_owned());
        }
        // What is in a slice keeps it, but for the word that it need not.
        let confirmed = json!({"metadata": {"annotations": {"nmstate.io/confirm-release": "1"}}});
        match path {
            _ if method != Method::PATCH => Does::Nothing,
            _ if path == slice => Does::Asks(vec![
                (Method::PATCH, slice.clone(), confirmed),
                (Method::DELETE, slice.clone(), serde_json::Value::Null),
            ]),
            _ if path == pool => Does::Asks(vec![(Method::DELETE, pool.clone(), serde_json::Value::Null)]),
            _ => Does::Nothing,
        }
    });
    let ran = field.berth_by(&way, "pool hold --all");
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (1, "error: pool cut-2 was deleted meanwhile\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("cut-1: on hold") && ran.stdout.contains("cut-3: on hold"), "{}", ran.stdout);
    let order = ["cut-1", "cut-2", "cut-3", "cut-1.10.30.0.64", "cut-1.10.30.0.80", "cut-3.10.32.0.16"];
    assert_eq!(*seen.lock().expect("whole"), order);
    let slices = field.get("nodeipslices", "")["items"].clone();
    let slices = slices.as_array().expect("it is there");
    assert!(slices.iter().all(|one| one["metadata"]["name"] != first.rsplit('/').next().unwrap_or_default()));
    assert!(
        slices.iter().all(|one| one["metadata"]["annotations"]["nmstate.io/hold"] == "by hand"),
        "{slices:?}"
    );
    assert_eq!(slices.len(), 2);
    // A kind that is not there is another matter.
    let none = json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "details": {},
        "message": "the server could not find the requested resource"});
    let way = Between::new(field, move |_, _| Does::Answers(404, none.clone()));
    let said = field.berth_by(&way, "pool hold --all").failed(1);
    assert!(said.contains("the API has no such kind; install the definitions"), "{said}");
}

/// R102: the cluster's own networks are free nowhere, and it is said whose an address is. Where they may not be read there is a
/// warning.
pub(crate) fn r102_what_the_cluster_has_is_not_free(field: &Field) {
    field.pool("near", &json!({"cidr": "10.96.0.0/24", "start": "10.96.0.1", "end": "10.96.0.40"}));
    let services = json!({"kind": "ServiceCIDRList", "apiVersion": "networking.k8s.io/v1", "metadata": {"resourceVersion": "1"},
        "items": [{"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.32/27"]}}]});
    let is_services = |path: &str| path.ends_with("/servicecidrs");
    let way = Between::new(field, move |_, path| match is_services(path) {
        true => Does::Answers(200, services.clone()),
        false => Does::Nothing,
    });
    let shown = field.berth_by(&way, "pool show near").ok();
    assert!(shown.contains("capacity 40, held 0, quarantined 0, available 31\n"), "{shown}");
    assert!(shown.contains("! another's too"), "{shown}");
    assert_eq!(field.berth_by(&way, "pool ls -o json").json()[0]["available"], 31);
    let rows = field.berth_by(&way, "pool explain near -o json").json()["rows"].clone();
    let last = rows.as_array().and_then(|rows| rows.last()).expect("a row").clone();
    let stands = (&last["address"], &last["lastAddress"], &last["status"], &last["why"]);
    let why = "Service CIDR 10.96.0.32/27 has it too, so nobody gets it";
    assert_eq!(stands, (&json!("10.96.0.32"), &json!("10.96.0.40"), &json!("barred"), &json!(why)));
    let policy = "{apiVersion: nmstate.io/v1, kind: NodeNetworkConfigurationPolicy, metadata: {name: static-ip}, \
        spec: {capture: {addr: ippool.near.allocate}, desiredState: {interfaces: [{name: eth1, type: ethernet, state: up}]}}}";
    std::fs::write(field.folder.path().join("near.yaml"), policy).expect("written");
    let found = field.berth_by(&way, "policy preview -f near.yaml -o json").json();
    assert_eq!(found["pools"][0]["free"], "31");
    // What a release writes is counted so, too.
    let uid = field.get("nodeippools", "near")["metadata"]["uid"].as_str().expect("a UID").to_owned();
    field.ledger("near", &uid, &[(4, "10.96.0.5", held("left", "gone", "static-ip"))]);
    assert_eq!(field.berth_by(&way, "pool release near 10.96.0.5 --yes").code, 0);
    assert_eq!(field.get("nodeippools", "near")["status"]["available"], 30);

    let forbidden = json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "servicecidrs.networking.k8s.io is forbidden: User \"ann\" cannot list them"});
    let way = Between::new(field, move |_, path| match is_services(path) {
        true => Does::Answers(403, forbidden.clone()),
        false => Does::Nothing,
    });
    let ran = field.berth_by(&way, "pool show near");
    assert!(
        ran.code == 0 && ran.stdout.contains("quarantined 1, available 39\n"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let warned = "warning: ServiceCIDRs: can't be read, so what is theirs looks free: servicecidrs.networking.k8s.io is forbidden";
    assert!(ran.stderr.starts_with(warned), "{}", ran.stderr);
    // An API that has none says nothing; the cluster of this test has 10.0.0.0/24.
    field.pool("theirs", &json!({"cidr": "10.0.0.0/24"}));
    let left = if field.is_cluster() { 0 } else { 254 };
    assert_eq!(field.berth("pool show theirs -o json").json()["available"], left);
}

pub(crate) fn history_is_events_and_the_ledger(field: &Field) {
    let uid = traffic(field);
    for (name, message) in [("one", "10.10.10.2: free again"), ("two", "10.10.10.22, 10.10.10.8: set aside")]
    {
        let about =
            json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "name": "traffic-1", "uid": uid});
        let event = json!({
            "kind": "Event", "apiVersion": "v1", "metadata": {"name": format!("traffic-1.{name}-{uid}"), "namespace": "default"},
            "involvedObject": about, "reason": "AddressFreed", "message": message, "type": "Normal",
            "firstTimestamp": "2026-11-17T09:00:00Z", "lastTimestamp": "2026-11-17T09:00:00Z", "count": 1,
            "source": {"component": "berth-controller"},
        });
        field.ask(Method::POST, "/api/v1/namespaces/default/events", &event);
    }
    let all = field.berth("pool history traffic-1").ok();
    assert!(all.contains("2026-11-17T09:00:00Z  AddressFreed"), "{all}");
    assert!(all.contains("10.10.10.8: held by node node01, policy static-ip"), "{all}");
    assert!(all.contains("Events are kept for a while only"), "its limit is said: {all}");
    let one = field.berth("pool history traffic-1 10.10.10.2 -o json").json();
    let messages: Vec<&str> = one["history"]
        .as_array()
        .expect("it is there")
        .iter()
        .map(|line| line["message"].as_str().expect("it is there"))
        .collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0], "10.10.10.2: free again");
    assert!(messages[1].starts_with("10.10.10.2: held by node node02"), "{messages:?}");
    assert!(field.berth("pool history traffic-1 -o wide").ok().contains("SEQUENCE"));
}

pub(crate) fn a_slip_of_the_pen_is_answered(field: &Field) {
    field.pool("traffic-1", &range());
    for line in [
        "pool show trafic-1",
        "pool ls trafic-1",
        "pool verify trafic-1",
        "pool history trafic-1",
        "pool explain trafic-1",
        "pool hold trafic-1",
        "pool release trafic-1 10.10.10.1 --yes",
    ] {
        let said = field.berth(line).failed(1);
        assert_eq!(said, "error: there is no pool \"trafic-1\"; did you mean traffic-1?\n", "{line}");
    }
    let said = field.berth("node show nowhere").failed(1);
    assert_eq!(said, "error: there is no Node \"nowhere\"; there is none at all\n");
    assert!(field.berth("pool show").failed(2).contains("POOL"));
    assert!(field.berth("pool ls --colour").failed(2).contains("unexpected argument '--colour'"));
    let said = field.berth("pool ls --socket /nowhere.sock").failed(1);
    assert!(
        said.contains("can't be read: the API can't be reached") && said.contains("unix:/nowhere.sock"),
        "{said}"
    );
    let said = field.berth("pool ls --context nowhere").failed(1);
    assert!(said.starts_with("error: --context nowhere"), "{said}");
}

/// R119: who asks for the pool is told of what its slices hold, and whose they are.
pub(crate) fn r119_a_pool_of_slices_is_one_to_look_at(field: &Field) {
    field.pool("cut", &json!({"cidr": "10.30.0.0/24", "perNodeHostBits": 4}));
    let node = field.node("node01", false);
    let slice = field.slice("cut", "10.30.0.64/28", "node01", &node, "10.30.0.65");
    let claim = Claim { policy: "static-ip", pool: "cut", pool_uid: &slice, ip: "10.30.0.65" };
    field.enactment("node01", &node, &claim);
    field.state("node01", &node, "eth1", &["10.30.0.65"]);

    let listed = field.berth("pool ls -o json").json();
    let counted = (&listed[0]["slices"], &listed[0]["allocated"], &listed[0]["capacity"]);
    assert_eq!(counted, (&json!(1), &json!(1), &json!(254)), "{listed}");
    let shown = field.berth("pool show cut").ok();
    // As status.available: what no slice has.
    assert!(shown.contains("capacity 254, held 1, quarantined 0, available 238\n"), "{shown}");
    assert_eq!(listed[0]["available"], 238, "no controller has counted yet: {listed}");
    assert!(
        shown.contains("in a node's slice") && shown.contains("10.30.0.65  node01  static-ip"),
        "{shown}"
    );
    let row = field.berth("pool explain cut --ip 10.30.0.66 -o json").json()["rows"][0].clone();
    assert_eq!(row["slice"], json!({"cidr": "10.30.0.64/28", "node": "node01"}), "{row}");
    assert_eq!(field.berth("pool verify cut --live").ok(), "1 pool: no difference\n");

    let said = field.berth("pool release cut 10.30.0.65 --yes").failed(1);
    assert!(said.contains("10.30.0.65 is in slice") && said.contains("of node node01"), "{said}");
    let slices = || field.get("nodeipslices", "")["items"].clone();
    let hold = || slices()[0]["metadata"]["annotations"]["nmstate.io/hold"].clone();
    assert_eq!(field.berth("pool hold cut -o json").json()[0]["slices"], 1);
    assert_eq!(hold(), "by hand");
    field.berth("pool resume cut").ok();
    assert!(hold().is_null(), "{}", slices());

    // R40: its host is gone, and nobody lists the address.
    field.ask(Method::DELETE, "/api/v1/nodes/node01", &serde_json::Value::Null);
    let ran = field.berth("pool verify cut -o json");
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((ran.code, &found["differences"][0]["kind"]), (1, &json!("NodeGone")), "{found}");
    assert_eq!(found["differences"][0]["ip"], "10.30.0.65");
}

/// A slice goes as a whole, by the controller: that is what is said, and what it waits for where it stopped.
pub(crate) fn r119_slices_of_nodes_that_are_gone_are_the_controllers_to_free(field: &Field) {
    let uid = field.pool("cut", &json!({"cidr": "10.30.0.0/24", "perNodeHostBits": 4}));
    let node = |n: usize| (format!("10.30.0.{}", n * 16), format!("node{n:02}"));
    let (first, gone) = node(1);
    let slice = field.slice("cut", &format!("{first}/28"), &gone, "gone", &first);
    let release = || field.berth(&format!("pool release cut {first} --yes")).failed(1);
    let said = release();
    let by_itself = "is in slice cut.10.30.0.16 of node node01, which is gone: the controller sets it aside, and after a quarantine \
        of 300 s frees it, and the slice, by itself\n";
    assert_eq!(said, format!("error: {first} {by_itself}"));
    // A Node of that name is another one.
    field.node(&gone, false);
    assert_eq!(release(), format!("error: {first} {by_itself}"));
    // More than three at once.
    for (first, gone) in (2..=4).map(node) {
        field.slice("cut", &format!("{first}/28"), &gone, "gone", &first);
    }
    let said = release();
    assert!(said.contains("4 holders are gone, more than 3: where it didn't see them go it stops"), "{said}");
    let about = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "name": "cut", "uid": uid});
    let message = "4 holders vanished at once and unseen, more than 3: nothing of theirs is released before an administrator \
        confirms with the annotation nmstate.io/confirm-release: \"4\"";
    let event = json!({
        "kind": "Event", "apiVersion": "v1", "metadata": {"name": format!("cut.{uid}"), "namespace": "default"},
        "involvedObject": about, "reason": "ReleaseStopped", "message": message, "type": "Warning",
        "firstTimestamp": "2026-11-17T09:00:00Z", "lastTimestamp": "2026-11-17T09:00:00Z", "count": 1,
        "source": {"component": "berth-controller"},
    });
    field.ask(Method::POST, "/api/v1/namespaces/default/events", &event);
    let said = release();
    assert!(said.contains(&format!("it stopped: {message}")), "{said}");
    assert!(
        said.contains("kubectl annotate nodeippool cut nmstate.io/confirm-release=N --overwrite"),
        "{said}"
    );
    // The word is given.
    let confirmed = json!({"metadata": {"annotations": {"nmstate.io/confirm-release": "4"}}});
    field.ask(Method::PATCH, &format!("{PREFIX}/nodeippools/cut"), &confirmed);
    assert_eq!(release(), format!("error: {first} {by_itself}"));
    // It is under way.
    let aside = quarantined(&gone, "2999-01-01T00:00:00Z");
    let status = json!({"status": {"sequence": 2, "rebuiltFor": slice, "allocations": {&first: aside}}});
    field.ask(Method::PATCH, &format!("{PREFIX}/nodeipslices/cut.{first}/status"), &status);
    let said = release();
    assert!(
        said.contains("it is quarantined until 2999-01-01T00:00:00Z; then the controller frees it"),
        "{said}"
    );
}
