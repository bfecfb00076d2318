//! What rules select and keep.

use serde_json::json;

use super::*;

#[test]
fn a_line_without_a_path_stores_the_full_state() {
    for line in ["", "   ", "\n", "interfaces", r#""""#, "42"] {
        assert_eq!(one(line), state(), "{line:?}");
    }
}

#[test]
fn a_bare_capture_is_a_copy() {
    for line in ["capture.a", "capture.a |", "capture.a | interfaces"] {
        let found = value(&[("a", "interfaces.name==eth1"), ("b", line)]);
        assert_eq!(names(&found), ["eth1"], "{line}");
    }
}

#[test]
fn a_path_keeps_its_branch_and_lists_whole() {
    assert_eq!(
        one("dns-resolver.running.server"),
        json!({"dns-resolver": {"running": {"server": ["8.8.8.8", "1.1.1.1"]}}})
    );
    let branch = json!({"routes": {"running": state()["routes"]["running"]}});
    assert_eq!(one("routes.running.0"), branch);
    assert_eq!(one("routes.running.metric"), branch, "one item has it");
    let piped = value(&[("a", "routes.running.next-hop-interface==eth2"), ("b", "capture.a.routes.running")]);
    assert_eq!(destinations(&piped), ["2.2.2.0/24"]);
}

#[test]
fn a_path_to_nothing_says_how_far_it_got() {
    let (column, found) = problem("dns-resolver.runing.server");
    assert_eq!(
        (column, found.to_string().as_str()),
        (14, "no 'runing' in dns-resolver; it has: running, config")
    );
    let (column, found) = problem("routes.running.7");
    assert_eq!(
        (column, found.to_string().as_str()),
        (16, "routes.running has only 3 items: no index 7 (the first is 0)")
    );
    let (column, found) = problem("routes.running.nope");
    assert_eq!(
        (column, found.to_string().as_str()),
        (16, "routes.running is a list: an index must follow, not 'nope'")
    );
    assert_eq!(
        problem("hostname.running").1.to_string(),
        "no 'hostname' in the current state; it has: dns-resolver, routes, route-rules, interfaces"
    );
}

#[test]
fn items_without_the_property_are_skipped_by_both() {
    // metric is on the first route only
    assert_eq!(destinations(&one("routes.running.metric==100")), ["0.0.0.0/0"]);
    assert_eq!(
        problem("routes.running.metric!=100").1.to_string(),
        "running route with 'metric!=100' not found"
    );
    assert_eq!(destinations(&one("routes.running.metric!=7")), ["0.0.0.0/0"]);
}

#[test]
fn mac_addresses_compare_without_case_names_with_it() {
    assert_eq!(names(&one(r#"interfaces.mac-address=="00:00:5e:00:00:01""#)), ["eth1"]);
    assert_eq!(names(&one("interfaces.mac-address==00:00:5e:00:00:01")), ["eth1"], "colons in a value");
    assert_eq!(names(&one(r#"interfaces.mac-address!="00:00:5e:00:00:01""#)), ["eth2"]);
    assert!(eval(&[("x", "interfaces.name==ETH1")]).is_err());
}

#[test]
fn all_sections() {
    assert_eq!(one("routes.config.table-id==254")["routes"]["config"], state()["routes"]["config"]);
    assert_eq!(one("route-rules.config.priority==1000"), json!({"route-rules": state()["route-rules"]}));
}

#[test]
fn lists_inside_items_need_an_index() {
    let wrong = eval(&[("x", r#"interfaces.ipv4.address.ip=="10.244.0.1""#)]).unwrap_err().to_string();
    assert!(wrong.contains("interface with 'ipv4.address.ip=10.244.0.1' not found"), "{wrong}");
    assert!(wrong.contains("hint: lists inside an item are not searched"), "{wrong}");
}

#[test]
fn a_rule_may_use_a_piped_and_a_value_capture() {
    let captures = [
        ("ethernets", "interfaces.type==ethernet"),
        ("gateway", r#"routes.running.destination=="0.0.0.0/0""#),
        (
            "a-both",
            "capture.ethernets | interfaces.name == capture.gateway.routes.running.0.next-hop-interface",
        ),
    ];
    let bindings = eval(&captures).unwrap();
    assert_eq!(names(bindings.get("a-both").unwrap()), ["eth1"]);
}

#[test]
fn pipes_through_pipes() {
    let found = value(&[
        ("a", "interfaces.type==ethernet"),
        ("b", "capture.a | interfaces.state==up"),
        ("c", "capture.b | interfaces.mtu := 1400"),
        ("d", "capture.c.interfaces.mtu == 1400"),
    ]);
    assert_eq!((names(&found), &found["interfaces"][0]["mtu"]), (vec!["eth1"], &json!(1400)));
}

#[test]
fn a_value_from_the_current_state_also_in_a_piped_rule() {
    let found = value(&[
        ("a", "interfaces.type==ethernet"),
        ("b", "capture.a | interfaces.name==routes.running.2.next-hop-interface"),
    ]);
    assert_eq!(names(&found), ["eth2"]);
}

#[test]
fn values_that_cannot_be_compared() {
    let (column, list) = problem("interfaces.name==routes.running");
    assert_eq!((column, list.to_string().as_str()), (18, "routes.running is a list, not a single value"));
    let (column, gone) = problem("interfaces.name==routes.running.9.metric");
    assert_eq!((column, matches!(gone, Problem::NoPath { .. })), (33, true));
    let wrong = eval(&[("x", "interfaces.ipv4.address.0.ip==10.244.0.1")]).unwrap_err().to_string();
    assert!(wrong.contains("'10.244.0.1' is no path: the current state has no '10'"), "{wrong}");
    assert!(
        wrong.ends_with("hint: a plain value that contains a dot needs quotes: \"10.244.0.1\""),
        "{wrong}"
    );
}

#[test]
fn null_compares_to_null_only() {
    let captures = Captures::parse(&lines(&[("x", "interfaces.description==null")])).unwrap();
    let current = json!({"interfaces": [{"name": "a", "description": null}, {"name": "b"}, {"name": "c", "description": "null"}]});
    let bindings = captures.eval(&current, &Cached::new(), &Grants::new()).unwrap();
    assert_eq!(names(bindings.get("x").unwrap()), ["a"]);
}

#[test]
fn a_section_that_is_no_list() {
    let captures = Captures::parse(&lines(&[("x", "interfaces.name==a")])).unwrap();
    let wrong = |current| captures.eval(&current, &Cached::new(), &Grants::new()).unwrap_err().to_string();
    assert!(wrong(json!({"interfaces": "eth1"})).contains("'interfaces' is 'eth1', not a list"));
    assert!(wrong(json!({})).contains("interface with 'name=a' not found"));
    assert!(wrong(json!(null)).contains("interface with 'name=a' not found"));
}

#[test]
fn lists_and_maps_are_neither_equal_nor_unequal() {
    let wrong = eval(&[("x", "interfaces.ipv4!=true")]).unwrap_err().to_string();
    assert!(wrong.contains("interface with 'ipv4!=true' not found"), "{wrong}");
}

#[test]
fn what_is_there_instead_is_told() {
    let hint = |line| problem(line).1.hint().unwrap();
    assert_eq!(hint("interfaces.name==eth9"), "'name' is there with: eth1, eth2");
    assert_eq!(hint("routes.running.table-id!=254"), "'table-id' is there with: 254");
    assert_eq!(hint("interfaces.nmae==eth1"), "no interface has 'nmae'");
}
