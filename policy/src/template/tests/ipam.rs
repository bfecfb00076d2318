//! The `ipam` shorthand (R44).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::capture::{Cached, Granted, GrantedAddress, Grants, Problem};
use crate::template::{PolicyDoc, fill, ipam_pools, render};

fn interface(name: &str, ipv4: &[&str], ipv6: &[&str]) -> Value {
    let addresses =
        |pools: &[&str]| pools.iter().map(|pool| json!({"ipam": {"pool": pool}})).collect::<Vec<_>>();
    json!({"name": name, "ipv4": {"address": addresses(ipv4)}, "ipv6": {"address": addresses(ipv6)}})
}

fn pools(interfaces: &[Value]) -> BTreeMap<String, String> {
    ipam_pools(&json!({"interfaces": interfaces})).unwrap()
}

fn names(interfaces: &[Value]) -> Vec<String> {
    pools(interfaces).into_keys().collect()
}

#[test]
fn r44_each_use_is_an_anonymous_capture() {
    let found = pools(&[interface("eth1", &["traffic-1"], &[]), interface("eth2", &["traffic-2"], &[])]);
    let expected = [("ipam_eth1_traffic-1", "traffic-1"), ("ipam_eth2_traffic-2", "traffic-2")];
    assert_eq!(found, expected.map(|(name, pool)| (name.to_owned(), pool.to_owned())).into());
}

#[test]
fn r44_names_do_not_depend_on_the_rest_of_the_document() {
    let (eth1, eth2) = (interface("eth1", &["a"], &[]), interface("eth2", &["a", "b"], &[]));
    let alone = names(std::slice::from_ref(&eth2));
    let both = names(&[eth1.clone(), eth2.clone()]);
    assert!(alone.iter().all(|name| both.contains(name)));
    assert_eq!(both, names(&[eth2, eth1]));
}

#[test]
fn r44_repeats_are_counted_and_cannot_collide() {
    assert_eq!(
        names(&[interface("eth1", &["a", "a", "a"], &[])]),
        ["ipam_eth1_a", "ipam_eth1_a_2", "ipam_eth1_a_3"]
    );
    assert_eq!(names(&[interface("eth1", &["a", "a", "a-2"], &[])]).len(), 3);
}

#[test]
fn r44_names_that_had_to_be_changed_stay_apart() {
    // A name in use must never change with a release: it is what a claim is known by.
    let template = "{{ capture.nic.interfaces.0.name }}.100";
    assert_eq!(
        names(&[interface(template, &["a"], &[])]),
        ["ipam_capture-nic-interfaces-0-name-100-3e426baf_a"]
    );
    assert_eq!(names(&[interface("eth1.2", &["a"], &[])]), ["ipam_eth1-2-88c296cb_a"]);
    let alike = ["eth1.2", "eth1-2", "eth1_2"].map(|name| interface(name, &["a"], &[]));
    let reversed: Vec<Value> = alike.iter().rev().cloned().collect();
    assert_eq!(names(&alike).len(), 3);
    assert_eq!(names(&alike), names(&reversed), "whatever the order");
    let split = [interface("eth1.2", &["a"], &[]), interface("eth1-2", &[], &["a"])];
    assert_eq!(names(&split).len(), 2, "one claim is never on two interfaces");
}

#[test]
fn r44_one_claim_serves_both_families() {
    assert_eq!(names(&[interface("eth1", &["dual"], &["dual"])]), ["ipam_eth1_dual"]);
    assert_eq!(
        names(&[interface("eth1", &["dual"], &["dual", "dual"])]),
        ["ipam_eth1_dual", "ipam_eth1_dual_2"]
    );
}

fn granted(first: &str, second: Option<&str>) -> Granted {
    let address = |text: &str| GrantedAddress { address: text.parse().unwrap(), gateway: None };
    Granted { second: second.map(address), ..Granted::single(first.parse().unwrap()) }
}

fn rendered(interfaces: &[Value], grants: &[(&str, Granted)]) -> Result<Value, Vec<Problem>> {
    let policy = PolicyDoc { desired_state: json!({"interfaces": interfaces}), ..PolicyDoc::default() };
    let grants: Grants = grants.iter().map(|(name, grant)| ((*name).to_owned(), grant.clone())).collect();
    match render(&policy, &json!({}), &Cached::new(), &grants) {
        Ok(rendered) => Ok(rendered.desired["interfaces"].clone()),
        Err(wrong) => Err(wrong.into_iter().map(|one| one.problem).collect()),
    }
}

#[test]
fn r44_a_dual_stack_grant_fills_each_list_with_its_part() {
    let dual = granted("10.0.0.9/24", Some("2001:db8::9/64"));
    let filled = rendered(&[interface("eth1", &["dual"], &["dual"])], &[("ipam_eth1_dual", dual)]).unwrap();
    assert_eq!(filled[0]["ipv4"]["address"], json!([{"ip": "10.0.0.9", "prefix-length": 24}]));
    assert_eq!(filled[0]["ipv6"]["address"], json!([{"ip": "2001:db8::9", "prefix-length": 64}]));
}

#[test]
fn r44_a_single_stack_grant_in_the_other_family_is_an_error() {
    let v4 = granted("10.0.0.9/24", None);
    let wrong = rendered(&[interface("eth1", &[], &["four"])], &[("ipam_eth1_four", v4)]).unwrap_err();
    assert_eq!(wrong, [Problem::IpamFamily { pool: "four".into(), family: "IPv6" }]);
    assert_eq!(wrong[0].to_string(), "pool \"four\" gave no IPv6 address");
}

#[test]
fn r44_without_a_grant_it_waits() {
    let wrong =
        rendered(&[interface("eth1", &["a", "b"], &[])], &[("ipam_eth1_a", granted("10.0.0.9/24", None))]);
    assert_eq!(wrong.unwrap_err(), [Problem::NoGrant { capture: "ipam_eth1_b".into(), pool: "b".into() }]);
}

#[test]
fn literal_addresses_stay_beside_it() {
    let mut eth1 = interface("eth1", &["a"], &[]);
    eth1["ipv4"]["address"].as_array_mut().unwrap().push(json!({"ip": "192.0.2.1", "prefix-length": "31"}));
    let filled = rendered(&[eth1], &[("ipam_eth1_a", granted("10.0.0.9/24", None))]).unwrap();
    let expected = json!([{"ip": "10.0.0.9", "prefix-length": 24}, {"ip": "192.0.2.1", "prefix-length": 31}]);
    assert_eq!(filled[0]["ipv4"]["address"], expected);
}

#[test]
fn r44_shapes_that_are_refused() {
    let wrong = |entry: Value| {
        let document = json!({"interfaces": [{"name": "eth1", "ipv6": {"address": [entry]}}]});
        let asked = ipam_pools(&document).unwrap_err().to_string();
        assert_eq!(asked, fill(&document, &Default::default()).unwrap_err().to_string(), "both say the same");
        asked
    };
    let place = "interfaces[0].ipv6.address[0].ipam: ";
    for entry in
        [json!({"ipam": null}), json!({"ipam": "a"}), json!({"ipam": {}}), json!({"ipam": {"pool": 1}})]
    {
        assert_eq!(
            wrong(entry),
            format!("{place}ipam must be {{pool: <name>}}, and nothing else may stand beside it")
        );
    }
    for entry in [json!({"ipam": {"pool": "a"}, "ip": "::1"}), json!({"ipam": {"pool": "a", "ip": "::1"}})] {
        assert!(wrong(entry).ends_with("(found 'ip')"));
    }
    for name in ["A", "{{ capture.x.y }}", "a.b", ""] {
        assert!(
            wrong(json!({"ipam": {"pool": name}})).starts_with(&format!("{place}\"{name}\" is no pool name"))
        );
    }
}

#[test]
fn elsewhere_ipam_is_just_a_word() {
    let document = json!({"interfaces": [{"name": "a", "type": "dummy", "state": "up", "ipam": {"pool": "a"}}], "ipam": 1, "routes": {"config": [{"ipam": 2}]}});
    assert_eq!(ipam_pools(&document).unwrap().len(), 0);
    assert_eq!(fill(&document, &Default::default()).unwrap(), document);
}
