use serde_json::json;

use super::*;
use crate::embedded::resource;

#[test]
fn refusals_read_as_kube_apiserver_words_them() {
    let pools = resource::find("nmstate.io", "v1", "nodeippools").unwrap();
    let nodes = resource::find("", "v1", "nodes").unwrap();
    assert_eq!(Status::not_found(nodes, "x").message, r#"nodes "x" not found"#);
    assert_eq!(Status::not_found(pools, "x").message, r#"nodeippools.nmstate.io "x" not found"#);
    let cause = Cause::invalid("spec.range.cidr", &json!("a"), "no network");
    assert_eq!(
        Status::invalid(pools, "x", vec![cause.clone()]).message,
        r#"NodeIPPool.nmstate.io "x" is invalid: spec.range.cidr: Invalid value: "a": no network"#
    );
    let two = Status::invalid(pools, "x", vec![cause.clone(), cause]).message;
    assert!(two.contains("is invalid: [spec.range.cidr: "), "{two}");
}

#[test]
fn what_is_empty_is_left_out() {
    let value = Status::no_such_path().to_value();
    assert_eq!(
        value,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
               "message": "the server could not find the requested resource", "reason": "NotFound", "code": 404})
    );
}
