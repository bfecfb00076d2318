use serde_json::json;

use super::*;
use crate::embedded::resource;

fn node() -> &'static Resource {
    resource::find("", "v1", "nodes").unwrap()
}

fn pool() -> &'static Resource {
    resource::find("nmstate.io", "v1", "nodeippools").unwrap()
}

fn patched(media_type: &str, patch: &Value, object: &Value) -> Result<Value, Status> {
    let patch = Patch::parse(node(), media_type, patch.to_string().as_bytes())?;
    let mut object = object.clone();
    patch.apply(&mut object).map(|()| object)
}

const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

#[test]
fn a_json_patch_is_applied_step_by_step() {
    let object = json!({"a": {"b": [1, 2]}, "c": 1});
    let patch = json!([
        {"op": "test", "path": "/c", "value": 1},
        {"op": "test", "path": "/z", "value": null},
        {"op": "add", "path": "/a/b/-", "value": 3},
        {"op": "replace", "path": "/c", "value": 2},
        {"op": "move", "from": "/c", "path": "/d"},
    ]);
    assert_eq!(patched(JSON, &patch, &object).unwrap(), json!({"a": {"b": [1, 2, 3]}, "d": 2}));
}

#[test]
fn a_step_that_does_not_fit_is_refused_as_invalid() {
    let object = json!({"a": 1});
    for step in [
        json!({"op": "test", "path": "/a", "value": 2}),
        json!({"op": "test", "path": "/b", "value": 2}),
        json!({"op": "remove", "path": "/b"}),
        json!({"op": "replace", "path": "/b/c", "value": 1}),
        json!({"op": "jump", "path": "/a"}),
        json!({"op": "add", "path": "/b/c", "value": 1}),
    ] {
        let status = patched(JSON, &json!([step]), &object).unwrap_err();
        assert_eq!((status.code.as_u16(), status.reason), (422, "Invalid"), "{step}");
    }
    for text in ["{}", "7", "["] {
        assert_eq!(Patch::parse(pool(), JSON, text.as_bytes()).unwrap_err().code, 400, "{text}");
    }
}

#[test]
fn media_types_that_a_kind_does_not_take() {
    for (resource, media_type) in [
        (pool(), STRATEGIC),
        (pool(), "application/apply-patch+yaml"),
        (node(), "application/apply-patch+yaml"),
        (pool(), "application/json"),
    ] {
        assert_eq!(Patch::parse(resource, media_type, b"{}").unwrap_err().code, 415, "{media_type}");
    }
}

#[test]
fn strategic_merge_goes_by_the_keys_of_lists() {
    let object = json!({
        "metadata": {"finalizers": ["a/b"], "labels": {"x": "1", "y": "2"}},
        "spec": {"taints": [{"key": "old"}]},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "r"}, {"type": "Disk"}]},
    });
    let patch = json!({
        "metadata": {"finalizers": ["c/d"], "labels": {"x": null}},
        "spec": {"taints": [{"key": "new"}]},
        "status": {
            "$setElementOrder/conditions": [{"type": "Ready"}],
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Disk", "$patch": "delete"}, {"type": "New"}],
        },
    });
    let expected = json!({
        "metadata": {"finalizers": ["c/d", "a/b"], "labels": {"y": "2"}},
        "spec": {"taints": [{"key": "new"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "r"}, {"type": "New"}]},
    });
    assert_eq!(patched(STRATEGIC, &patch, &object).unwrap(), expected);
    let removed = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}});
    assert_eq!(patched(STRATEGIC, &removed, &object).unwrap()["metadata"]["finalizers"], json!([]));
    let keyless = json!({"status": {"conditions": [{"status": "True"}]}});
    assert_eq!(patched(STRATEGIC, &keyless, &object).unwrap_err().code, 400);
}

/// Each operation goes through the whole object: with as many as a patch may have it is minutes of work.
#[test]
fn a_patch_that_is_more_work_than_its_size_says_is_refused() {
    let items: Vec<usize> = (0..20_000).collect();
    let object = json!({"spec": {"a": {"items": items}}});
    let turned = |index: usize| {
        let names = ["/spec/a", "/spec/b"];
        json!({"op": "move", "from": names[index % 2], "path": names[(index + 1) % 2]})
    };
    let patches: [Vec<Value>; 3] = [
        (0..2000).map(turned).collect(),
        (0..2000).map(|_| json!({"op": "remove", "path": "/spec/a/items/0"})).collect(),
        (0..2000).map(|_| json!({"op": "add", "path": "/spec/a/items/0", "value": 1})).collect(),
    ];
    for patch in patches {
        let refused = patched(JSON, &patch.into(), &object).unwrap_err();
        assert_eq!(refused.code, 422);
        assert!(
            refused.details.causes[0].message.ends_with("the patch moves more than is allowed"),
            "{refused:?}"
        );
    }
    // A ledger's worth of entries is nothing.
    let patch: Vec<Value> = (0..5000)
        .map(|index| json!({"op": "add", "path": format!("/spec/a/e{index}"), "value": {}}))
        .collect();
    assert!(patched(JSON, &patch.into(), &object).is_ok());
}

#[test]
fn lists_that_are_too_long_to_be_merged_are_refused() {
    let conditions = |begin: &str, count: usize| -> Value {
        (0..count).map(|index| json!({"type": format!("{begin}{index}")})).collect::<Vec<_>>().into()
    };
    let texts = |count: usize| -> Value { (0..count).map(|index| format!("a/{index}")).collect() };
    let object =
        json!({"metadata": {"finalizers": texts(3000)}, "status": {"conditions": conditions("a", 3000)}});
    for patch in [
        json!({"status": {"conditions": conditions("b", 3000)}}),
        json!({"status": {"$setElementOrder/conditions": conditions("b", 3000)}}),
        json!({"metadata": {"finalizers": texts(3000)}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": texts(3000)}}),
    ] {
        assert_eq!(patched(STRATEGIC, &patch, &object).unwrap_err().code, 400);
    }
    assert!(patched(STRATEGIC, &json!({"status": {"conditions": conditions("b", 100)}}), &object).is_ok());
}
