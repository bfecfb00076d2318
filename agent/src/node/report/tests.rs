use super::*;

fn interface(name: &str, address: Option<&str>) -> Value {
    let addresses: Vec<Value> =
        address.into_iter().map(|ip| json!({"ip": ip, "prefix-length": 24})).collect();
    json!({"name": name, "type": "ethernet", "state": "up", "mtu": 1500,
        "ipv4": {"enabled": true, "address": addresses}})
}

fn host() -> Value {
    let interfaces = vec![interface("eth0", Some("10.0.0.1")), interface("eth1", None)];
    let route = json!({"destination": "0.0.0.0/0", "next-hop-interface": "eth0"});
    let routes = json!({"running": [route.clone(), route], "config": []});
    json!({"interfaces": interfaces, "routes": routes, "dns-resolver": {}})
}

#[test]
fn a_report_that_is_short_enough_is_whole() {
    let report = filtered(&host(), &BTreeSet::new());
    assert_eq!(report.left_out, "");
    assert_eq!(report.state, host());
    assert_eq!(complete("", &[]), []);
}

/// Routes go first, then interfaces without addresses, then what else there is of the others; addresses never.
#[test]
fn what_is_left_out_is_said_and_is_never_an_address() {
    let whole = host().to_string().len();
    let without_routes = shortened(host(), whole - 1);
    assert_eq!(without_routes.left_out, "2 routes");
    assert_eq!(without_routes.state["interfaces"], host()["interfaces"]);
    let fewer = shortened(host(), without_routes.state.to_string().len() - 1);
    assert_eq!(fewer.left_out, "2 routes, 1 interface without addresses");
    assert_eq!(fewer.state["interfaces"], json!([interface("eth0", Some("10.0.0.1"))]));
    let bare = shortened(host(), 1);
    assert_eq!(bare.state["interfaces"][0]["ipv4"]["address"][0]["ip"], "10.0.0.1");
    assert_eq!(bare.state["interfaces"][0]["mtu"], Value::Null);
    let said = complete(&bare.left_out, &[]);
    assert_eq!((said[0].type_.as_str(), said[0].status.as_str()), ("Available", "True"));
    assert!(said[0].message.contains("1024 KiB: 2 routes, 1 interface"), "{}", said[0].message);
}

#[test]
fn what_changes_by_itself_is_no_news() {
    let mut state = host();
    state["interfaces"][0]["ipv4"]["address"][0]["valid-life-time"] = json!("17sec");
    state["interfaces"][1] = json!({"name": "br0", "type": "linux-bridge", "state": "up",
        "bridge": {"options": {"gc-timer": 12, "hello-timer": 3, "mac-ageing-time": 300}}});
    let report = filtered(&state, &BTreeSet::new()).state;
    assert_eq!(report["interfaces"][0], host()["interfaces"][0]);
    assert_eq!(report["interfaces"][1]["bridge"]["options"], json!({"mac-ageing-time": 300}));
}

/// docs/compatibility.md, item 28: what comes and goes with pods is no news, unless a policy is about it.
#[test]
fn containers_ends_are_left_out() {
    let mut state = host();
    let end = |name: &str, ip: &str| json!({"name": name, "type": "veth", "state": "up", "ipv6": {"address": [{"ip": ip, "prefix-length": 64}]}});
    let mut pair = end("pair", "fe80::1");
    pair["veth"] = json!({"peer": "other"});
    let ends = [end("cali1", "fe80::1"), end("ours", "fe80::1"), end("routed", "fd00::1"), pair];
    state["interfaces"].as_array_mut().unwrap().extend(ends);
    let report = filtered(&state, &BTreeSet::from(["ours".to_owned()])).state;
    let names: Vec<&str> =
        report["interfaces"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["eth0", "eth1", "ours", "routed", "pair"]);
}
