use super::*;
use crate::embedded::resource;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn policies() -> &'static Resource {
    resource::find("nmstate.io", "v1", "nodenetworkconfigurationpolicies").unwrap()
}

fn made() -> Value {
    let new =
        json!({"metadata": {"name": "p", "uid": "mine", "generation": 7}, "spec": {"desiredState": {}}});
    let mut made = create(policies(), new, now()).unwrap();
    made["metadata"]["resourceVersion"] = json!("1");
    made
}

#[test]
fn what_is_the_servers_can_not_be_given() {
    let made = made();
    assert_ne!(made["metadata"]["uid"], "mine");
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["metadata"]["creationTimestamp"], "2027-01-15T08:00:00Z");
    let mut new = made.clone();
    new["metadata"] = json!({"name": "p", "uid": "other", "generation": 9});
    assert_eq!(update(policies(), &made, new.clone(), false).unwrap()["metadata"], made["metadata"]);
    // Only a delete says that it goes.
    new["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
    assert_eq!(update(policies(), &made, new.clone(), false).unwrap_err().code, 422);
    assert_eq!(update(policies(), &made, new, true).unwrap()["metadata"], made["metadata"]);
}

#[test]
fn generations_count_what_is_asked_for() {
    let made = made();
    let generation = |change: &dyn Fn(&mut Value), status| {
        let mut new = made.clone();
        change(&mut new);
        update(policies(), &made, new, status).unwrap()["metadata"]["generation"].clone()
    };
    assert_eq!(generation(&|new| new["spec"]["desiredState"] = json!({"a": 1}), false), 2);
    assert_eq!(generation(&|new| new["metadata"]["labels"] = json!({"a": "b"}), false), 1);
    assert_eq!(generation(&|new| new["status"]["unavailableNodes"] = json!({"n": 1}), false), 1);
    assert_eq!(generation(&|new| new["status"]["unavailableNodes"] = json!({"n": 1}), true), 1);
    assert_eq!(generation(&|new| new["spec"]["desiredState"] = json!({"a": 1}), true), 1);
}

#[test]
fn uids_and_names_are_made_as_kubernetes_makes_them() {
    let (one, other) = (meta::uid(), meta::uid());
    assert_ne!(one, other);
    let shape: String = one.chars().map(|c| if c.is_ascii_hexdigit() { 'x' } else { c }).collect();
    assert_eq!(shape, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
    assert_eq!(one.as_bytes()[14], b'4');
    let name = meta::generated("node-");
    assert!(name.starts_with("node-") && name.len() == 10, "{name}");
    let long = meta::generated(&"é".repeat(200));
    assert!(long.len() <= 253, "{}", long.len());
}

#[test]
fn a_nodes_fields_are_those_of_its_type() {
    let nodes = resource::find("", "v1", "nodes").unwrap();
    let node =
        json!({"metadata": {"name": "n", "x": 1}, "spec": {"unschedulable": true, "y": {}}, "z": null});
    let decoded = decode(nodes, 0, node.clone(), &[], FieldValidation::Warn, None).unwrap();
    assert_eq!(decoded.warnings, [r#"unknown field "metadata.x""#, r#"unknown field "spec.y""#]);
    assert_eq!(decoded.value["spec"], json!({"unschedulable": true}));
    assert!(decode(nodes, 0, node.clone(), &[], FieldValidation::Ignore, None).unwrap().warnings.is_empty());
    assert_eq!(decode(nodes, 0, node, &[], FieldValidation::Strict, None).unwrap_err().code, 400);
    let wrong = json!({"metadata": {"name": "n"}, "spec": {"unschedulable": "yes"}});
    assert_eq!(decode(nodes, 0, wrong, &[], FieldValidation::Warn, None).unwrap_err().code, 400);
}
