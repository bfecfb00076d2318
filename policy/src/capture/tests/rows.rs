//! Row by row, what nmstate's own engine answers, and where Berth is more forgiving.

use serde_json::json;

use super::*;
use crate::template::fill;

#[test]
fn row_1_route_by_destination() {
    let found = one(r#"routes.running.destination=="0.0.0.0/0""#);
    assert_eq!(destinations(&found), ["0.0.0.0/0"]);
    assert_eq!(found["routes"]["running"][0], state()["routes"]["running"][0], "whole items");
    assert_eq!(
        (keys(&found), keys(&found["routes"])),
        (vec!["routes"], vec!["running"]),
        "only that section"
    );
}

#[test]
fn row_2_no_match_is_an_error() {
    let (_, problem) = problem(r#"interfaces.name=="eth9""#);
    assert_eq!(problem.to_string(), "interface with 'name=eth9' not found");
}

#[test]
fn row_4_boolean_as_a_bare_word() {
    assert_eq!(names(&one("interfaces.ipv4.enabled==true")), ["eth1"]);
    assert_eq!(names(&one(r#"interfaces.ipv4.enabled=="true""#)), ["eth1"]);
}

#[test]
fn row_6_number() {
    assert_eq!(names(&one("interfaces.mtu==9000")), ["eth2"]);
    assert_eq!(names(&one(r#"interfaces.mtu=="9000""#)), ["eth2"]);
}

#[test]
fn row_7_bare_word() {
    assert_eq!(names(&one("interfaces.name==eth1")), ["eth1"]);
}

#[test]
fn row_9_single_quotes_quote() {
    assert_eq!(names(&one("interfaces.name=='eth1'")), ["eth1"]);
}

#[test]
fn row_10_not_equal() {
    assert_eq!(names(&one(r#"interfaces.name!="eth1""#)), ["eth2"]);
}

#[test]
fn row_12_index() {
    assert_eq!(names(&one(r#"interfaces.ipv4.address.0.ip=="10.244.0.1""#)), ["eth1"]);
    assert_eq!(names(&one(r#"interfaces.ipv4.address.1.prefix-length==16"#)), ["eth1"]);
}

#[test]
fn row_13_path_alone() {
    assert_eq!(one("routes.running"), json!({"routes": {"running": state()["routes"]["running"]}}));
}

#[test]
fn row_17_assign() {
    let found = one(r#"routes.running.next-hop-interface:="br1""#);
    let hops: Vec<_> =
        found["routes"]["running"].as_array().unwrap().iter().map(|r| &r["next-hop-interface"]).collect();
    assert_eq!(hops, ["br1", "br1", "br1"]);
    assert_eq!(
        (keys(&found), keys(&found["routes"])),
        (vec!["routes"], vec!["running"]),
        "only that section"
    );
}

#[test]
fn row_18_piped_assign() {
    let found = value(&[
        ("a", r#"routes.running.next-hop-interface=="eth1""#),
        ("b", r#"capture.a | routes.running.next-hop-interface:="br1""#),
    ]);
    assert_eq!(destinations(&found), ["0.0.0.0/0", "1.1.1.0/24"]);
    assert!(
        found["routes"]["running"]
            .as_array()
            .unwrap()
            .iter()
            .all(|route| route["next-hop-interface"] == "br1")
    );
}

#[test]
fn row_20_two_ways_to_pipe() {
    for line in [r#"capture.a | interfaces.state=="up""#, r#"capture.a.interfaces.state=="up""#] {
        let found = value(&[("a", r#"interfaces.type=="ethernet""#), ("b", line)]);
        assert_eq!(names(&found), ["eth1"], "{line}");
    }
}

#[test]
fn row_22_unknown_capture_is_named() {
    let (column, problem) = problem("interfaces.name==capture.zzz.interfaces.0.name");
    assert_eq!(column, 18);
    assert_eq!(problem, Problem::UnknownCapture { name: "zzz".into(), known: Default::default() });
}

#[test]
fn row_24_value_from_the_current_state() {
    assert_eq!(names(&one("interfaces.name==routes.running.0.next-hop-interface")), ["eth1"]);
}

#[test]
fn row_26_pool_lines_are_never_a_branch() {
    assert_eq!(
        problem("ippool.traffic-1.allocate").1,
        Problem::NoGrant { capture: "x".into(), pool: "traffic-1".into() }
    );
}

#[test]
fn rows_27_and_28_templates() {
    let bindings = eval(&[("c", "interfaces.name==eth1")]).unwrap();
    for (template, filled) in
        [("{{capture.c.interfaces.0.name}}", "eth1"), ("{{ capture.c.interfaces.0.name }}.100", "eth1.100")]
    {
        assert_eq!(fill(&json!({"x": template}), &bindings).unwrap(), json!({"x": filled}));
    }
}
