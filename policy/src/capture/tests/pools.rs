//! `ippool.<name>.allocate` (R18, R19)

use serde_json::json;

use super::*;
use crate::capture::{Captured, Granted, GrantedAddress, MetaInfo, Source};

fn granted(address: &str, gateway: Option<&str>) -> GrantedAddress {
    GrantedAddress { address: address.parse().unwrap(), gateway: gateway.map(|one| one.parse().unwrap()) }
}

fn grants(name: &str, granted: Granted) -> Grants {
    Grants::from([(name.to_owned(), granted)])
}

#[test]
fn r18_pools_are_listed_without_evaluating() {
    let captures = Captures::parse(&lines(&[
        ("one", " ippool.traffic-1.allocate\n"),
        ("two", "ippool.traffic-2.allocate"),
        ("nic", "interfaces.name==nope"),
    ]))
    .unwrap();
    assert_eq!(captures.pools(), BTreeMap::from([("one", "traffic-1"), ("two", "traffic-2")]));
}

#[test]
fn r18_what_else_may_not_follow_ippool() {
    for line in [
        "ippool",
        "ippool.traffic-1",
        "ippool.traffic-1.release",
        "ippool.traffic-1.allocate.ip",
        "ippool.a.b.allocate",
        "capture.a | ippool.traffic-1.allocate",
        "interfaces.name==ippool.traffic-1.allocate",
        "ippool.traffic-1.allocate == 1",
    ] {
        let wrong = Captures::parse(&lines(&[("x", line)])).expect_err(line);
        assert_eq!(wrong.iter().next().unwrap().problem, Problem::PoolSyntax, "{line}");
    }
    for name in ["Traffic", "-a", "a-", "a_b", "ä", &"a".repeat(64)] {
        let (column, problem) = problem(&format!("ippool.{name}.allocate"));
        assert_eq!((column, problem), (8, Problem::PoolName { name: name.to_owned() }));
    }
    assert_eq!(problem("ippool..allocate").1, Problem::EmptySegment);
}

#[test]
fn r19_a_grant_yields_ip_and_prefix_length() {
    let captures = Captures::parse(&lines(&[("addr", "ippool.traffic-1.allocate")])).unwrap();
    let mut grant = Granted::single("10.10.10.8/24".parse().unwrap());
    let bindings = captures.eval(&state(), &Cached::new(), &grants("addr", grant.clone())).unwrap();
    assert_eq!(
        bindings.get("addr").unwrap(),
        &json!({"ip": "10.10.10.8", "prefix-length": 24, "cidr": "10.10.10.0/24", "range": "", "attributes": {}})
    );
    grant.address.gateway = Some("10.10.10.254".parse().unwrap());
    grant.range = "rack-1".into();
    grant.attributes = BTreeMap::from([("vlan".into(), "120".into())]);
    let value = grant.to_value();
    assert_eq!((&value["gateway"], &value["range"]), (&json!("10.10.10.254"), &json!("rack-1")));
    assert_eq!(value["attributes"], json!({"vlan": "120"}));
}

#[test]
fn a_dual_stack_grant_yields_both_families() {
    let both = |address, second| Granted {
        address,
        second: Some(second),
        range: String::new(),
        attributes: BTreeMap::new(),
    };
    let (v4, v6) = (granted("192.0.2.3/26", Some("192.0.2.1")), granted("2001:db8::3/64", None));
    let value = both(v4.clone(), v6.clone()).to_value();
    assert_eq!(value["ip"], "192.0.2.3");
    assert_eq!(
        value["ipv4"],
        json!({"ip": "192.0.2.3", "prefix-length": 26, "cidr": "192.0.2.0/26", "gateway": "192.0.2.1"})
    );
    assert_eq!(value["ipv6"], json!({"ip": "2001:db8::3", "prefix-length": 64, "cidr": "2001:db8::/64"}));
    assert_eq!(both(v6, v4).to_value()["ipv6"], value["ipv6"]);
}

#[test]
fn a_missing_grant_can_be_matched_on() {
    let captures =
        Captures::parse(&lines(&[("a", "ippool.p1.allocate"), ("b", "ippool.p2.allocate")])).unwrap();
    let wrong = captures.eval(&state(), &Cached::new(), &Grants::new()).unwrap_err();
    assert!(wrong.only_missing_grants());
    assert_eq!(wrong.missing_grants().collect::<Vec<_>>(), [("a", "p1"), ("b", "p2")]);
    let mixed = eval(&[("a", "ippool.p1.allocate"), ("b", "interfaces.name==nope")]).unwrap_err();
    assert!(!mixed.only_missing_grants());
}

#[test]
fn pools_never_come_from_memory() {
    let captures = Captures::parse(&lines(&[("addr", "ippool.p.allocate")])).unwrap();
    let meta = MetaInfo { version: "0".into(), time: "then".into() };
    let old = Granted::single("10.0.0.1/24".parse().unwrap());
    let cached = Cached::from([("addr".to_owned(), Captured { state: old.to_value(), meta: meta.clone() })]);
    assert!(captures.eval(&state(), &cached, &Grants::new()).unwrap_err().only_missing_grants());

    let new = Granted::single("10.0.0.2/24".parse().unwrap());
    let bindings = captures.eval(&state(), &cached, &grants("addr", new)).unwrap();
    assert_eq!(bindings.get("addr").unwrap()["ip"], "10.0.0.2");
    assert_eq!(bindings.captured_states("now")["addr"]["metaInfo"]["time"], "now");

    // The same address again: nothing to write.
    let bindings = captures.eval(&state(), &cached, &grants("addr", old)).unwrap();
    assert_eq!(bindings.iter().next().unwrap().1.source, Source::Granted(Some(meta)));
    assert_eq!(bindings.captured_states("now")["addr"]["metaInfo"]["time"], "then");
}

#[test]
fn a_grant_is_a_value_like_any_other() {
    let captures = Captures::parse(&lines(&[
        ("addr", "ippool.p.allocate"),
        ("nic", "interfaces.name==capture.addr.attributes.nic"),
    ]))
    .unwrap();
    let mut grant = Granted::single("10.0.0.2/24".parse().unwrap());
    grant.attributes = BTreeMap::from([("nic".into(), "eth2".into())]);
    let bindings = captures.eval(&state(), &Cached::new(), &grants("addr", grant)).unwrap();
    assert_eq!(names(bindings.get("nic").unwrap()), ["eth2"]);
}
