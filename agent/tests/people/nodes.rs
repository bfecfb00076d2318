//! Nodes, with what they hold.

use hyper::http::Method;
use serde_json::json;

use crate::field::{Claim, Field, held, quarantined};

fn world(field: &Field) {
    let pool = field.pool("traffic-1", &json!({"cidr": "10.10.10.0/24"}));
    let own = field.node("own", false);
    field.node("kept", true);
    let entries = [
        (4, "10.10.10.5", held("own", &own, "static-ip")),
        (5, "10.10.10.6", quarantined("left", "2999-01-01T00:00:00Z")),
    ];
    field.ledger("traffic-1", &pool, &entries);
    let claim = Claim { policy: "static-ip", pool: "traffic-1", pool_uid: &pool, ip: "10.10.10.5" };
    field.enactment("own", &own, &claim);
    field.state("own", &own, "eth1", &["10.10.10.5"]);
}

pub(crate) fn r82_nodes_are_listed_with_their_addresses(field: &Field) {
    world(field);
    let listed = field.berth("node ls").ok();
    let words: Vec<String> =
        listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "NODE READY KEPT-BY ADDRESSES",
        "kept yes kubelet",
        "left gone - (10.10.10.6 of traffic-1)",
        "own yes agent 10.10.10.5 of traffic-1",
    ];
    assert_eq!(words, expected);
    assert!(field.berth("node ls -o wide").ok().contains("UID"));
    assert_eq!(field.berth("node ls -o json").json()[2]["addresses"][0]["ip"], "10.10.10.5");
    let shown = field.berth("node show own").ok();
    assert!(shown.starts_with("node own: Ready, kept by its agent\n"), "{shown}");
    let row: Vec<&str> = shown
        .lines()
        .find(|line| line.starts_with("10.10.10.5"))
        .expect("it is there")
        .split_whitespace()
        .collect();
    assert_eq!((row[1], row[2], row[5], row[6]), ("traffic-1", "static-ip", "yes", "held"), "{shown}");
    let gone = field.berth("node show left -o json").json();
    assert_eq!((&gone["gone"], &gone["addresses"][0]["ip"]), (&json!(true), &json!("10.10.10.6")));
}

/// One object that could be read by nobody would keep all others from being read.
pub(crate) fn what_is_nested_too_deeply_keeps_nobody_from_the_rest(field: &Field) {
    world(field);
    field.deepen("own.static-ip");
    let shown = field.berth("node show own").ok();
    assert!(shown.contains("\n10.10.10.5 "), "{shown}");
    assert_eq!(field.berth("pool verify --live").ok(), "1 pool: no difference\n");
}

pub(crate) fn a_host_without_a_kubelet_is_retired(field: &Field) {
    world(field);
    let said = field.berth("node rm kept --yes").failed(1);
    assert!(said.contains("node kept is kept by a kubelet") && said.contains("--force"), "{said}");
    let said = field.berth("node rm own").failed(2);
    assert!(said.contains("10.10.10.5 of traffic-1: quarantined until about"), "{said}");
    assert!(said.contains("say --yes if it is meant"), "{said}");
    let nodes = |field: &Field| {
        let list = field.ask(Method::GET, "/api/v1/nodes", &serde_json::Value::Null);
        let names = list["items"]
            .as_array()
            .expect("it is there")
            .iter()
            .map(|node| node["metadata"]["name"].as_str().expect("it is there").to_owned());
        names.collect::<Vec<String>>()
    };
    assert_eq!(nodes(field), ["kept", "own"], "nothing was done");
    let ran = field.berth("node rm own --yes");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "node own: removed\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: its agent runs"), "{}", ran.stderr);
    let ran = field.berth("node rm kept --yes --force -o json");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(nodes(field).is_empty());
    // What it held is its still: the controller is who takes it, by quarantine.
    let pool = field.get("nodeippools", "traffic-1");
    assert_eq!(pool["status"]["allocations"]["10.10.10.5"]["node"], "own");
    let said = field.berth("node rm own --yes").failed(1);
    assert!(said.contains("there is no Node \"own\""), "{said}");
}
