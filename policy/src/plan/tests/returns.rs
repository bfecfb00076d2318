//! What has to come back, or stay: routes of a controller that goes, the letters of a file, MTUs of links that are not ours,
//! addresses in an order that the kernel has.

use super::{applied, desired, observed};
use crate::plan::{Plan, plan, verify};
use crate::state::{Dns, IfName, LinkKind, Observed, OptValue};

fn planned(host: &Observed, document: &str) -> Plan {
    plan(host, &desired(document)).unwrap_or_else(|e| panic!("{e}"))
}

fn steps(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(ToString::to_string).collect()
}

const BRIDGED: &str = "
interfaces:
- {name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth0}, {name: eth1}]},
   ipv4: {enabled: true, address: [{ip: 10.0.0.5, prefix-length: 24}]}}
- {name: eth0, type: ethernet, state: up, controller: br0}
- {name: eth1, type: ethernet, state: up, controller: br0}
routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: br0, next-hop-address: 10.0.0.1}]}
";

#[test]
fn the_way_out_goes_back_to_the_port_with_the_address() {
    let host = observed(BRIDGED);
    let back = "interfaces: [{name: br0, state: absent}, {name: eth1, type: ethernet, state: up,
        ipv4: {enabled: true, address: [{ip: 10.0.0.5, prefix-length: 24}]}}]";
    let plan = planned(&host, back);
    assert!(plan.losses.is_empty(), "{plan}");
    let after = applied(&host, &plan);
    let [route] = after.routes.as_slice() else { panic!("{plan}") };
    assert_eq!(route.next_hops[0].dev.as_str(), "eth1");
    assert!(plan.revert(&host).losses.is_empty());
    // From an address that doesn't reach the gateway it can't be.
    let elsewhere = back.replace("10.0.0.5", "10.9.0.5");
    assert!(planned(&host, &elsewhere).to_string().contains("no ipv4 default route is left"));
    // The document has its own word.
    let own = format!(
        "{back}\nroutes: {{config: [{{destination: 0.0.0.0/0, next-hop-interface: eth1, next-hop-address: 10.0.0.9}}]}}"
    );
    let after = applied(&host, &planned(&host, &own));
    let via: Vec<_> =
        after.routes.iter().map(|r| r.next_hops[0].via.expect("a gateway").to_string()).collect();
    assert_eq!(via, ["10.0.0.9"]);
}

#[test]
fn a_resolver_file_comes_back_to_the_letter() {
    let mut host = observed("dns-resolver: {config: {server: [192.0.2.1], search: [a.example]}}");
    let text = "nameserver 192.0.2.1\n# by hand\nsearch a.example";
    host.dns.text = Some(text.to_owned());
    // Asked for what holds: nothing of the file is anybody's business.
    let same = "dns-resolver: {config: {server: [192.0.2.1]}}";
    assert!(planned(&host, same).is_empty());
    let plan = planned(&host, "dns-resolver: {config: {server: [192.0.2.2]}}");
    let after = applied(&host, &plan);
    assert_eq!((after.dns.text.clone(), after.dns.servers.clone()), (None, vec!["192.0.2.2".to_owned()]));
    // Whatever the file looks like by then.
    let now = Observed { dns: Dns { text: Some("# ours".to_owned()), ..after.dns.clone() }, ..after };
    let back = plan.revert_from(&now, &host);
    assert_eq!(applied(&now, &back).dns, host.dns);
    assert!(plan.revert_from(&host, &host).is_empty());
}

#[test]
fn what_shrank_along_grows_again_whosever_it_is() {
    let name = |text: &str| IfName::new(text).expect("a name");
    let mut host = observed("interfaces: [{name: eth0, type: ethernet, state: up, mtu: 1500}]");
    for (link, base) in [("tap0", "eth0"), ("tap1", "tap0")] {
        let mut tap = crate::state::Link::new(name(link), LinkKind::Other("macvtap".into()));
        (tap.ignored, tap.mtu, tap.shrinks_with) = (true, Some(1500), Some(name(base)));
        host.insert(tap);
    }
    let plan = planned(&host, "interfaces: [{name: eth0, mtu: 1400}]");
    assert_eq!(plan.len(), 1, "{plan}");
    let mut after = applied(&host, &plan);
    assert_eq!(after.link("tap0").and_then(|l| l.mtu), Some(1400));
    after.links.get_mut("tap1").expect("it is there").mtu = Some(1400);
    let back = plan.revert_from(&after, &host);
    assert_eq!(applied(&after, &back).links, host.links, "{back}");
    let last: Vec<String> = steps(&back).split_off(1);
    assert!(last[0].contains("tap0") && last[1].contains("tap1"), "{last:?}");
    // One that somebody has made larger meanwhile is theirs.
    after.links.get_mut("tap0").expect("it is there").mtu = Some(1600);
    assert!(!steps(&plan.revert_from(&after, &host)).iter().any(|step| step.contains("tap0")));
}

/// A macvtap on a bridge goes with it, and nobody can make it again: only if the document says so of both.
#[test]
fn a_link_of_an_unknown_kind_is_not_taken_along_in_silence() {
    let name = |text: &str| IfName::new(text).expect("a name");
    let mut host = observed(
        "interfaces: [{name: br0, type: linux-bridge, state: up}, {name: eth0, type: ethernet, state: up},
        {name: vx0, type: vxlan, state: up, vxlan: {id: 5, base-iface: br0}}]",
    );
    for (link, base) in [("tap0", "br0"), ("tap1", "vx0"), ("tap2", "eth0")] {
        let mut tap = crate::state::Link::new(name(link), LinkKind::Other("macvtap".into()));
        (tap.ignored, tap.shrinks_with) = (true, Some(name(base)));
        host.insert(tap);
    }
    let refused = |document: &str| plan(&host, &desired(document)).expect_err("is refused").to_string();
    let said = refused("interfaces: [{name: br0, state: absent}]");
    assert!(said.contains("interfaces[0]: tap0 (macvtap) sits on br0 and goes with it"), "{said}");
    assert!(said.contains("interfaces: tap1 (macvtap) sits on vx0 and goes with it"), "{said}");
    // Made anew is no better.
    let said = refused("interfaces: [{name: vx0, type: vxlan, vxlan: {id: 6, base-iface: br0}}]");
    assert!(said.contains("tap1") && !said.contains("tap0"), "{said}");
    // On its own it is not Berth's to remove.
    let said = refused("interfaces: [{name: tap2, state: absent}]");
    assert!(said.contains("which Berth leaves alone"), "{said}");
    let all =
        "interfaces: [{name: br0, state: absent}, {name: tap0, state: absent}, {name: tap1, state: absent}]";
    let plan = planned(&host, all);
    let words = |plan: &Plan| plan.losses.iter().map(ToString::to_string).collect::<Vec<_>>();
    let lost = "tap1 is gone, and a link of type macvtap is not Berth's to make".to_owned();
    assert!(words(&plan).contains(&lost), "{plan}");
    let after = applied(&host, &plan);
    assert_eq!(after.links.keys().map(IfName::as_str).collect::<Vec<_>>(), ["eth0", "tap2"]);
    assert!(verify(&after, &desired(all)).is_empty());
    let back = plan.revert_from(&after, &host);
    assert!(words(&back).contains(&lost), "{back}");
    assert!(applied(&after, &back).link("vx0").is_some());
}

#[test]
fn addresses_of_a_narrow_scope_come_first_whatever_is_asked_for() {
    let host = observed("interfaces: [{name: eth0, type: ethernet, state: up}]");
    let document = "interfaces: [{name: eth0, ipv4: {enabled: true, address: [
        {ip: 10.0.0.1, prefix-length: 24}, {ip: 169.254.7.1, prefix-length: 16}, {ip: 10.1.0.1, prefix-length: 24}]}}]";
    let after = applied(&host, &planned(&host, document));
    let order: Vec<String> = after.links["eth0"].ipv4.addresses.iter().map(|a| a.ip.to_string()).collect();
    assert_eq!(order, ["169.254.7.1", "10.0.0.1", "10.1.0.1"]);
    assert!(verify(&after, &desired(document)).is_empty());
    assert!(planned(&after, document).is_empty());
    // One more of a scope leaves the others alone.
    let without = document.replace("{ip: 169.254.7.1, prefix-length: 16},", "");
    let bare = applied(&host, &planned(&host, &without));
    let plan = planned(&bare, document);
    assert_eq!(plan.len(), 1, "{plan}");
    assert_eq!(applied(&bare, &plan).links["eth0"].ipv4.addresses, after.links["eth0"].ipv4.addresses);
}

#[test]
fn what_the_kernel_does_not_say_is_neither_drift_nor_unmet() {
    let asked = "interfaces: [{name: br0, type: linux-bridge, bridge: {options: {mac-ageing-time: 300, stp: {enabled: true}}}}]";
    let mut host = applied(&Observed::default(), &planned(&Observed::default(), asked));
    let ageing =
        *host.links["br0"].options.keys().find(|o| o.as_str() == "options.mac-ageing-time").expect("set");
    assert_eq!(planned(&host, &asked.replace("300", "600")).len(), 1);
    host.links.get_mut("br0").expect("made").options.remove(&ageing);
    assert!(planned(&host, asked).is_empty());
    assert!(verify(&host, &desired(asked)).is_empty());
    // Others are said whenever they are there.
    let stp = *host.links["br0"].options.keys().find(|o| o.as_str() == "options.stp.enabled").expect("set");
    host.links.get_mut("br0").expect("made").options.insert(stp, OptValue::Bool(false));
    assert_eq!(planned(&host, asked).len(), 1);
}
