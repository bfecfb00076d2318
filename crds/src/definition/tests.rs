use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

fn version_names(kind: Kind) -> Vec<(String, bool, bool)> {
    let versions = &kind.definition().crd.spec.versions;
    versions.iter().map(|v| (v.name.clone(), v.storage, v.deprecated.unwrap_or_default())).collect()
}

fn named(name: &str, storage: bool, deprecated: bool) -> (String, bool, bool) {
    (name.to_owned(), storage, deprecated)
}

#[test]
fn versions_are_stored_as_kubernetes_nmstate_stores_them() {
    assert_eq!(version_names(Kind::NodeIPPool), [named("v1", true, false)]);
    assert_eq!(version_names(Kind::NodeIPSlice), [named("v1", true, false)]);
    let policy = version_names(Kind::NodeNetworkConfigurationPolicy);
    assert_eq!(policy, [named("v1", true, false), named("v1beta1", false, true)]);
    for kind in [Kind::NodeNetworkConfigurationEnactment, Kind::NodeNetworkState] {
        assert_eq!(version_names(kind), [named("v1beta1", true, false), named("v1", false, false)]);
    }
}

#[test]
fn all_versions_have_one_schema_and_a_status_subresource() {
    for kind in Kind::ALL {
        let versions = &kind.definition().crd.spec.versions;
        for version in versions {
            assert_eq!(version.schema, versions[0].schema, "{kind:?}");
            assert!(version.served, "{kind:?}");
            assert!(version.subresources.as_ref().is_some_and(|s| s.status.is_some()), "{kind:?}");
        }
    }
}

#[test]
fn kinds_are_cluster_scoped_and_short_names_are_kept() {
    // R1
    let mut taken = BTreeSet::new();
    for kind in Kind::ALL {
        let crd = &kind.definition().crd;
        assert_eq!((crd.spec.scope.as_str(), crd.spec.names.kind.as_str()), ("Cluster", kind.name()));
        for short in crd.spec.names.short_names.iter().flatten() {
            assert!(taken.insert(short.as_str()), "{short} twice");
        }
    }
    assert_eq!(taken, BTreeSet::from(["nip", "ippool", "nips", "ipslice", "nncp", "nnce", "nns"]));
}

fn columns(kind: Kind, priority: i32) -> Vec<&'static str> {
    let columns = kind.definition().crd.spec.versions[0].additional_printer_columns.iter().flatten();
    columns.filter(|c| c.priority.unwrap_or(0) <= priority).map(|c| c.name.as_str()).collect()
}

/// R107, and what users of kubernetes-nmstate see.
#[test]
fn columns_are_kept() {
    assert_eq!(columns(Kind::NodeNetworkConfigurationPolicy, 0), ["Status", "Reason"]);
    assert_eq!(columns(Kind::NodeNetworkConfigurationEnactment, 0), ["Status", "Status Age", "Reason"]);
    assert!(columns(Kind::NodeNetworkState, 0).is_empty());
    let wide = columns(Kind::NodeIPPool, 1);
    for name in ["PerNodeHostBits", "IPv4", "IPv6", "Age"] {
        assert!(wide.contains(&name), "R107: {name}");
    }
    assert_eq!(columns(Kind::NodeIPSlice, 0), ["Pool", "CIDR", "Node", "Age"]);
}

#[test]
fn every_rule_and_default_has_its_place() {
    for kind in Kind::ALL {
        let definition = kind.definition();
        for placed in &definition.rules {
            let node = place::schema_at(&definition.schema, placed.place).expect(placed.place);
            let blamed = format!("{}{}", placed.place, placed.rule.field);
            assert!(
                place::schema_at(&definition.schema, blamed.trim_start_matches('.')).is_some(),
                "{blamed}"
            );
            let attached = node["x-kubernetes-validations"].as_array().expect(placed.place);
            assert!(
                attached.iter().any(|rule| rule["rule"] == placed.rule.cel.as_str()),
                "{}",
                placed.rule.text
            );
        }
        for (at, default) in defaults(kind) {
            assert_eq!(place::schema_at(&definition.schema, at).expect(at)["default"], default, "{at}");
        }
    }
}

#[test]
fn a_status_that_is_not_there_can_be_patched() {
    let mut pool = json!({"spec": {"range": {"cidr": "10.0.0.0/24"}}});
    schema::apply_defaults(&Kind::NodeIPPool.definition().schema, &mut pool);
    assert_eq!(pool["status"], json!({"sequence": 0, "allocations": {}}));
    assert_eq!(pool["spec"]["staticBand"], "Auto");
    assert_eq!(pool["spec"]["quarantine"], "5m");
}

#[test]
fn hyphens_stay_and_free_form_fields_are_kept() {
    // R4, R19
    let at = |kind: Kind, at| place::schema_at(&kind.definition().schema, at).cloned().unwrap_or_default();
    assert_eq!(at(Kind::NodeIPPool, "status.allocated-offsets[]")["type"], "integer");
    assert_eq!(at(Kind::NodeIPPool, "status.allocations")["x-kubernetes-map-type"], "atomic");
    let enactment = Kind::NodeNetworkConfigurationEnactment;
    assert_eq!(at(enactment, "status.ippool{}.grants{}.prefix-length")["type"], "integer");
    let open = [
        (enactment, ""),
        (enactment, "status.desiredState"),
        (enactment, "status.capturedStates{}"),
        (Kind::NodeNetworkConfigurationPolicy, "spec.desiredState"),
        (Kind::NodeNetworkState, "status.currentState"),
    ];
    for (kind, place) in open {
        assert_eq!(at(kind, place)["x-kubernetes-preserve-unknown-fields"], Value::Bool(true), "{place}");
    }
}
