//! All that is wrong is said at once, and nothing that is not.

use super::plan_document;
use crate::plan::ProblemKind;
use crate::plan::testing::scenario;
use crate::state::Observed;
use proptest::prelude::*;
use serde_json::{Value, json};

const HOST: &str = "
interfaces:
- {name: eth0, type: ethernet, state: up, mtu: 1500, min-mtu: 68, max-mtu: 9000,
   ipv4: {enabled: true, address: [{ip: 10.0.0.5, prefix-length: 24}]}}
- {name: eth1, type: ethernet, state: up}
";

fn wrong(document: &str) -> Vec<String> {
    let yaml = |text: &str| -> Value { serde_saphyr::from_str(text).expect("test YAML parses") };
    let host = Observed::from_value(&yaml(HOST)).expect("reads");
    let error = plan_document(&host, &yaml(document)).expect_err("is refused");
    error.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn what_is_not_taken_and_what_the_host_cannot_have_are_told_together() {
    let found = wrong(
        "
ovs-db: {}
routes:
  config:
  - {destination: 192.0.2.0/24, next-hop-interface: eth9}
interfaces:
- {name: eth0, mtu: 9500, lldp: {enabled: true}}
- {name: eth1, ipv4: {enabled: true, dhcp: true}}
- {name: br0, type: linux-bridge, bridge: {port: [{name: eth7}]}}
",
    );
    assert_eq!(
        found,
        [
            "interfaces[0].lldp: not supported",
            "interfaces[0].mtu: 9500 is outside of what eth0 takes (68 to 9000)",
            "interfaces[1].ipv4.dhcp: eth1 gets no addresses from DHCP now, and Berth doesn't start that; give it an \
             address",
            "interfaces[2].bridge.port[0]: Controller interface br0 is holding unknown port eth7",
            "routes.config[0].next-hop-interface: there is no interface eth9",
            "ovs-db: not supported",
        ]
    );
}

#[test]
fn what_follows_from_the_unreadable_is_not_told() {
    // The gateway would be in the subnet of the address that can't be read.
    let found = wrong(
        "
interfaces:
- {name: eth1, ipv4: {enabled: true, address: [{ip: 10.9.0.x, prefix-length: 24}]}}
- {name: br0, type: linux-brigde}
- {name: br0.5, type: vlan, vlan: {base-iface: br0, id: 5}}
routes:
  config:
  - {destination: 192.0.2.0/24, next-hop-interface: eth1, next-hop-address: 10.9.0.1}
  - {destination: 198.51.100.0/24, next-hop-interface: br0}
",
    );
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with("interfaces[0].ipv4.address[0].ip: "), "{found:#?}");
    assert!(found[1].starts_with("interfaces[1].type: "), "{found:#?}");
}

#[test]
fn not_a_document_at_all() {
    assert_eq!(wrong("[1]"), ["expected a mapping, found a list"]);
}

/// Makes the `at`th scalar of a document something that nothing can be read from.
fn spoil(value: &mut Value, at: &mut usize) -> bool {
    match value {
        Value::Object(map) => map.values_mut().any(|v| spoil(v, at)),
        Value::Array(list) => list.iter_mut().any(|v| spoil(v, at)),
        leaf => {
            let hit = *at == 0;
            if hit {
                *leaf = json!([{"spoilt": true}]);
            }
            *at = at.wrapping_sub(1);
            hit
        }
    }
}

proptest! {
    #[test]
    fn one_spoilt_value_in_a_good_document_gives_refusals_only(
        bytes in prop::collection::vec(any::<u8>(), 0..160),
        at in 0_usize..60,
    ) {
        let scenario = scenario(&bytes);
        let (mut document, mut at) = (scenario.document, at);
        if plan_document(&scenario.host, &document).is_ok() && spoil(&mut document, &mut at) {
            let Err(error) = plan_document(&scenario.host, &document) else {
                return Err(TestCaseError::fail(format!("taken: {document}")));
            };
            let invented = error.problems.iter().find(|p| !matches!(p.kind, ProblemKind::Refused(_)));
            prop_assert!(invented.is_none(), "{}\nin {document}\nof\n{error}", invented.expect("some"));
        }
    }
}
