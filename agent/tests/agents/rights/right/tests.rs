//! Each way in which rights can be wrong is found, and named.

use super::*;

fn right(verb: &str, resource: &str) -> Right {
    Right { verb: verb.to_owned(), resource: resource.to_owned(), ..Right::default() }
}

fn in_default(right: Right) -> Right {
    Right { namespace: Some("default".to_owned()), ..right }
}

fn named(right: Right, name: &str) -> Right {
    Right { name: Some(name.to_owned()), ..right }
}

fn wrong_with(given: &[Right], used: &[Right], refused: &[Right]) -> Vec<String> {
    let all = |rights: &[Right]| rights.iter().cloned().collect::<BTreeSet<Right>>();
    wrong("somebody", &all(given), &Asked { used: all(used), refused: all(refused) })
}

#[test]
fn what_is_given_and_used_is_right() {
    let given = [right("get", "nodes"), in_default(named(right("get", "leases"), "mine"))];
    let used = [
        named(right("get", "nodes"), "a"),
        named(right("get", "nodes"), "b"),
        in_default(named(right("get", "leases"), "mine")),
    ];
    assert_eq!(wrong_with(&given, &used, &[]), Vec::<String>::new());
}

#[test]
fn what_is_never_used_is_found() {
    let given = [right("get", "nodes"), right("delete", "nodes")];
    assert_eq!(
        wrong_with(&given, &[named(right("get", "nodes"), "a")], &[]),
        ["somebody is given and never uses: delete nodes (apiGroup \"\")"]
    );
    // To ask in vain is no use.
    assert_eq!(wrong_with(&given[..1], &[], &given[..1]).len(), 1);
}

#[test]
fn what_is_missing_is_found() {
    let given = [right("get", "nodes")];
    let used = [right("get", "nodes")];
    assert_eq!(
        wrong_with(&given, &used, &[named(right("get", "nodes/status"), "a")]),
        ["somebody asks for and is not given: get nodes/status (apiGroup \"\", name a)"]
    );
    // By a role of somebody else's.
    assert_eq!(
        wrong_with(&given, &[used[0].clone(), in_default(right("list", "pods"))], &[]),
        ["somebody asks for and is not given: list pods (apiGroup \"\", namespace default)"]
    );
    let leases = ["mine", "other"].map(|name| in_default(named(right("get", "leases"), name)));
    assert_eq!(wrong_with(&leases[..1], &leases, &[]).len(), 1);
}

#[test]
fn what_is_wider_than_its_use_is_found() {
    assert_eq!(
        wrong_with(&[right("create", "events")], &[in_default(right("create", "events"))], &[]),
        ["somebody is given and never uses: create events (apiGroup \"\")"]
    );
}
