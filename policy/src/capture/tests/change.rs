//! `:=`

use serde_json::json;

use super::*;

#[test]
fn text_is_typed_afterwards() {
    let found = one(r#"interfaces.mtu := "1400""#);
    assert_eq!(found["interfaces"][0]["mtu"], json!(1400));
    assert_eq!(one("interfaces.ipv4.dhcp := true")["interfaces"][1]["ipv4"]["dhcp"], json!(true));
    assert_eq!(one("routes.running.metric:=150")["routes"]["running"][2]["metric"], json!(150));
    assert_eq!(
        one("interfaces.description:=150")["interfaces"][0]["description"],
        json!("150"),
        "text stays text"
    );
}

#[test]
fn missing_maps_are_made() {
    assert_eq!(one("interfaces.lldp.enabled:=true")["interfaces"][0]["lldp"], json!({"enabled": true}));
}

#[test]
fn null_takes_the_property_away() {
    let found = one("interfaces.mac-address:=null");
    assert!(found["interfaces"].as_array().unwrap().iter().all(|one| one.get("mac-address").is_none()));
    let found = one("interfaces.ethtool.feature.rx:=null");
    assert!(found["interfaces"][0].get("ethtool").is_none(), "nothing is made to take something out of it");
}

#[test]
fn values_come_from_captures_with_their_type() {
    let found = value(&[
        ("a", "interfaces.name==eth2"),
        ("b", "interfaces.name==eth1"),
        ("c", "capture.b | interfaces.mtu := capture.a.interfaces.0.mtu"),
    ]);
    assert_eq!((names(&found), &found["interfaces"][0]["mtu"]), (vec!["eth1"], &json!(9000)));
    let list = value(&[
        ("a", "interfaces.name==eth1"),
        ("b", "interfaces.ipv4.address := capture.a.interfaces.0.ipv4.address"),
    ]);
    assert_eq!(list["interfaces"][1]["ipv4"]["address"], state()["interfaces"][0]["ipv4"]["address"]);
}

#[test]
fn an_index_must_be_there() {
    let eth1 = ("a", "interfaces.name==eth1");
    let found = value(&[eth1, ("b", r#"capture.a | interfaces.ipv4.address.1.ip := "192.0.2.1""#)]);
    assert_eq!(found["interfaces"][0]["ipv4"]["address"][1], json!({"ip": "192.0.2.1", "prefix-length": 16}));
    let beyond = problem_of(&[eth1, ("b", "capture.a | interfaces.ipv4.address.2.ip := x")]);
    assert_eq!(beyond.to_string(), "interfaces.0.ipv4.address has only 2 items: no index 2 (the first is 0)");
    let none = problem("interfaces.bridge.port.0.name := x").1;
    assert_eq!(none.to_string(), "interfaces.0.bridge.port is empty: no '0' in it");
    let scalar = problem("interfaces.name.x := y").1;
    assert_eq!(scalar.to_string(), "interfaces.0.name is 'eth1': there is no 'x' below it");
}

#[test]
fn nothing_to_change_is_an_error() {
    let captures = Captures::parse(&lines(&[("x", "routes.running.metric:=1")])).unwrap();
    let wrong =
        captures.eval(&json!({"routes": {"running": []}}), &Cached::new(), &Grants::new()).unwrap_err();
    assert!(wrong.to_string().contains("no running route to change"));
}

#[test]
fn the_current_state_is_not_touched() {
    let bindings = eval(&[("a", "interfaces.mtu:=1"), ("b", "interfaces.mtu==1500")]).unwrap();
    assert_eq!(names(bindings.get("b").unwrap()), ["eth1"]);
}
