//! Bodies as Go clients wrote them, and broken ones.

use serde_json::json;

use super::*;

/// What `kubectl create namespace x` sends.
const NAMESPACE: &[u8] = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x19\x0a\x11\x0a\x01x\x12\0\x1a\0\"\0*\x002\08\0B\0\x12\0\x1a\x02\x0a\0\x1a\0\"\0";

/// A message's field with its length first.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

fn body(kind: &str, version: &str, object: &[u8]) -> Vec<u8> {
    let about = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC, &field(1, &about), &field(2, object)].concat()
}

#[test]
fn what_kubectl_sends_is_a_namespace() {
    let found = object(Form::Namespace, NAMESPACE).unwrap().unwrap();
    let expected =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}, "spec": {}, "status": {}});
    assert_eq!(found, expected);
}

#[test]
fn a_lease_has_its_times_and_zeros() {
    let meta =
        [field(1, b"n"), field(11, &[field(1, b"a"), field(2, b"b")].concat()), field(14, b"x/y")].concat();
    // 2026-01-01T00:00:00.000123Z, fifteen seconds, no transition yet, and a field of another time.
    let time = b"\x08\x80\xf2\xd6\xca\x06\x10\xf8\xc0\x07";
    let spec =
        [&field(1, b"me")[..], b"\x10\x0f", &field(3, time), &field(4, b""), b"\x28\0", b"\x59ABCDEFGH"]
            .concat();
    let lease = [field(1, &meta), field(2, &spec)].concat();
    let found = object(Form::Lease, &body("Lease", "coordination.k8s.io/v1", &lease)).unwrap().unwrap();
    assert_eq!(
        found,
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
               "metadata": {"name": "n", "labels": {"a": "b"}, "finalizers": ["x/y"]},
               "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2026-01-01T00:00:00.000123Z",
                        "leaseTransitions": 0}})
    );
}

#[test]
fn options_of_a_delete_are_read() {
    let options =
        [&field(2, &field(1, b"u"))[..], b"\x18\0", &field(4, b"Background"), &field(5, b"All")].concat();
    let found = delete_options(&body("DeleteOptions", "v1", &options)).unwrap();
    assert_eq!(found["preconditions"], json!({"uid": "u"}));
    assert_eq!((&found["orphanDependents"], &found["dryRun"]), (&json!(false), &json!(["All"])));
}

#[test]
fn kinds_without_a_table_are_not_read() {
    assert!(object(Form::Node, NAMESPACE).is_none());
    assert!(object(Form::Ours(crds::Kind::NodeIPPool), NAMESPACE).is_none());
}

/// Whatever is cut off, or changed in one place, gets an answer, and never more than it has.
#[test]
fn broken_bodies_are_refused_or_read() {
    assert!(object(Form::Namespace, b"{}").unwrap().is_err());
    for end in 0..NAMESPACE.len() {
        let _ = object(Form::Namespace, &NAMESPACE[..end]).unwrap();
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = NAMESPACE.to_vec();
            changed[end] = byte;
            let _ = object(Form::Namespace, &changed).unwrap();
        }
    }
    let endless = [MAGIC, &[0x12], &[0xff; 12]].concat();
    assert_eq!(object(Form::Lease, &endless).unwrap().unwrap_err(), "it has a number that is too long");
    let text = body("Lease", "v1", &field(1, &field(1, b"\xff")));
    assert_eq!(object(Form::Lease, &text).unwrap().unwrap_err(), "metadata: name: it is not valid UTF-8");
    let number = body("Lease", "v1", b"\x08\x01");
    assert!(
        object(Form::Lease, &number)
            .unwrap()
            .unwrap_err()
            .starts_with("metadata: it is written in another form")
    );
}
