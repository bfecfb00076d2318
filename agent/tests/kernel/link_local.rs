//! Link-local addresses that somebody set, beside the one that the kernel makes: added, removed, lost and put back as any
//! other, while the kernel's own is left to the kernel.

use crate::ground::Ground;

/// Fails at its very end, where the resolver's file can't be written ([`Ground::break_resolver`]).
const FAILS: &str = "dns-resolver: {config: {server: [10.0.0.53]}}\n";

/// The link-local addresses of a link, those that the kernel made of its MAC apart.
#[track_caller]
fn locals(ground: &Ground, link: &str) -> (Vec<String>, Vec<String>) {
    let all = ground.json(&format!("-6 addr show dev {link} scope link"));
    let list = all[0]["addr_info"].as_array().cloned().unwrap_or_default();
    let of = |made: bool| {
        let these = list.iter().filter_map(|a| Some(format!("{}/{}", a["local"].as_str()?, a["prefixlen"])));
        these.filter(|address| address.contains("ff:fe") == made).collect()
    };
    (of(true), of(false))
}

/// One card whose kernel has made it an address, marked as such.
fn node() -> (Ground, Ground) {
    let (ground, far) = Ground::with_cards(1);
    assert_eq!(locals(&ground, "eth0").0.len(), 1);
    assert!(ground.show().to_string().contains("kernel_ll"), "this kernel marks what it makes");
    (ground, far)
}

#[test]
fn one_that_was_added_goes_when_a_change_is_undone() {
    let (ground, _far) = node();
    ground.break_resolver();
    let before = locals(&ground, "eth0");
    let document =
        "interfaces: [{name: eth0, ipv6: {enabled: true, address: [{ip: 'fe80::77', prefix-length: 64}]}}]\n";
    ground.apply(&format!("{document}{FAILS}")).fails_with("the host is as it was before");
    assert_eq!(locals(&ground, "eth0"), before);
}

#[test]
fn one_that_was_there_comes_back_when_a_change_is_undone() {
    let (ground, _far) = node();
    ground.ip("link add br0 type bridge");
    ground.ip("link set br0 up");
    for link in ["eth0", "br0"] {
        ground.ip(&format!("addr add fe80::1/64 dev {link} nodad"));
    }
    ground.break_resolver();
    for change in
        ["name: eth0, state: down", "name: eth0, ipv6: {enabled: false}", "name: br0, state: absent"]
    {
        ground
            .apply(&format!("interfaces: [{{{change}}}]\n{FAILS}"))
            .fails_with("the host is as it was before");
        for link in ["eth0", "br0"] {
            assert_eq!(locals(&ground, link).1, ["fe80::1/64"], "{link} after {change}");
        }
    }
    // The kernel's own is the kernel's to bring back.
    ground.wait_until("eth0 has its own again", || locals(&ground, "eth0").0.len() == 1);
}

/// Down, it is added again as any other; without IPv6 it can't be.
#[test]
fn one_that_goes_with_its_link_is_spoken_of() {
    let (ground, _far) = node();
    ground.ip("addr add fe80::1/64 dev eth0 nodad");
    let off = "interfaces: [{name: eth0, ipv6: {enabled: false}}]";
    let plan = ground.berth(&["plan", "-f", "-"], off).ok();
    assert!(plan.contains("also lost: address fe80::1/64 of eth0"), "{plan}");
    assert_eq!(plan.matches("fe80:").count(), 1, "{plan}");
    let down = "interfaces: [{name: eth0, state: down}]";
    let plan = ground.apply(down).ok();
    assert!(plan.contains("add address") && plan.contains("fe80::1/64"), "{plan}");
    assert_eq!(locals(&ground, "eth0").1, ["fe80::1/64"]);
    ground.is_settled(down);
}

#[test]
fn a_list_is_the_whole_list_of_them() {
    let (ground, _far) = node();
    let document =
        |list: &str| format!("interfaces: [{{name: eth0, ipv6: {{enabled: true, address: [{list}]}}}}]");
    let made = locals(&ground, "eth0").0;
    let one = document("{ip: 'fe80::77', prefix-length: 64}");
    ground.apply(&one).ok();
    assert_eq!(locals(&ground, "eth0"), (made.clone(), vec!["fe80::77/64".to_owned()]));
    ground.is_settled(&one);
    let another = document("{ip: 'fe80::78', prefix-length: 64}, {ip: 'fd00::1', prefix-length: 64}");
    ground.apply(&another).ok();
    assert_eq!(locals(&ground, "eth0"), (made.clone(), vec!["fe80::78/64".to_owned()]));
    ground.is_settled(&another);
    ground.apply(&document("")).ok();
    assert_eq!(locals(&ground, "eth0"), (made, Vec::new()));
}

/// Some managers of networks make it themselves: a list that speaks of others doesn't take the link's IPv6 away.
#[test]
fn where_the_kernel_makes_none_it_takes_a_list_that_names_one() {
    let (ground, _far) = node();
    ground.ip("link set eth0 down");
    ground.ip("link set eth0 addrgenmode none");
    ground.ip("link set eth0 up");
    ground.ip("addr add fe80::5/64 dev eth0 nodad");
    let document =
        |list: &str| format!("interfaces: [{{name: eth0, ipv6: {{enabled: true, address: [{list}]}}}}]");
    let global = document("{ip: 'fd00::1', prefix-length: 64}");
    ground.apply(&global).ok();
    assert_eq!(locals(&ground, "eth0").1, ["fe80::5/64"]);
    ground.is_settled(&global);
    let named = document("{ip: 'fd00::1', prefix-length: 64}, {ip: 'fe80::6', prefix-length: 64}");
    ground.apply(&named).ok();
    assert_eq!(locals(&ground, "eth0").1, ["fe80::6/64"]);
    ground.is_settled(&named);
}
