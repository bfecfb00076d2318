//! Any order, unknown names, rings.

use super::*;

fn refused(captures: &[(&str, &str)]) -> String {
    Captures::parse(&lines(captures)).expect_err("expected an error").to_string()
}

#[test]
fn names_do_not_decide_the_order() {
    // Every capture needs one that comes later in the alphabet.
    let found = eval(&[
        ("a", "capture.b | interfaces.state==up"),
        ("b", "capture.c | interfaces.type==ethernet"),
        ("c", "interfaces.name==capture.d.routes.running.0.next-hop-interface"),
        ("d", "routes.running.metric==100"),
    ])
    .unwrap();
    assert_eq!(names(found.get("a").unwrap()), ["eth1"]);
}

#[test]
fn a_ring_names_all_its_members() {
    let text = refused(&[
        ("b", "capture.a.interfaces.name==x"),
        ("a", "interfaces.name==capture.b.interfaces.0.name"),
    ]);
    assert_eq!(
        text,
        "capture \"a\": 1:18: captures need each other: a -> b -> a\n\
         | interfaces.name==capture.b.interfaces.0.name\n\
         |                  ^\n\
         hint: one of them must not use the others"
    );
    let text = refused(&[("z", "capture.m"), ("m", "capture.c"), ("c", "capture.z"), ("on-it", "capture.z")]);
    assert!(text.contains("c -> z -> m -> c"), "{text}");
    assert_eq!(text.matches("need each other").count(), 1, "{text}");
    assert!(refused(&[("self", "capture.self | interfaces.name==a")]).contains("self -> self"));
}

#[test]
fn two_rings_are_two_errors() {
    let text = refused(&[("a", "capture.b"), ("b", "capture.a"), ("c", "capture.d"), ("d", "capture.c")]);
    assert!(text.contains("a -> b -> a") && text.contains("c -> d -> c"), "{text}");
}

#[test]
fn a_ring_through_a_value() {
    let text = refused(&[
        ("a", "capture.ok | interfaces.name==capture.b.interfaces.0.name"),
        ("b", "capture.a | interfaces.mtu==1"),
        ("ok", "interfaces.type==ethernet"),
    ]);
    assert!(text.starts_with("capture \"a\": 1:31: captures need each other: a -> b -> a"), "{text}");
}

#[test]
fn unknown_names_list_the_known() {
    let text = refused(&[
        ("base-iface", "interfaces.name==capture.zzz.interfaces.0.name"),
        ("a", "interfaces.name==eth1"),
        ("b", "capture.yyy | interfaces.name==capture.xxx.interfaces.0.name"),
    ]);
    assert!(
        text.contains(
            "capture \"base-iface\": 1:18: unknown capture \"zzz\"; known: a, b\n\
             | interfaces.name==capture.zzz.interfaces.0.name\n\
             |                  ^"
        ),
        "{text}"
    );
    assert_eq!(text.matches("unknown capture").count(), 3, "all of them: {text}");
}

#[test]
fn an_unknown_name_hides_no_ring() {
    let text = refused(&[
        ("a", "capture.b | interfaces.name==capture.nope.interfaces.0.name"),
        ("b", "capture.a"),
        ("c", "capture.gone"),
    ]);
    assert!(text.contains("a -> b -> a"), "{text}");
    assert_eq!(text.matches("unknown capture").count(), 2, "{text}");
}

#[test]
fn a_long_chain_is_fine() {
    let chain: BTreeMap<String, String> = (0..20_000)
        .map(|at| {
            (format!("c{at}"), if at == 0 { "routes.config".into() } else { format!("capture.c{}", at - 1) })
        })
        .collect();
    let captures = Captures::parse(&chain).unwrap();
    let bindings = captures.eval(&state(), &Cached::new(), &Grants::new()).unwrap();
    assert_eq!(bindings.get("c19999"), bindings.get("c0"));
}

#[test]
fn what_needs_a_failed_capture_is_not_reported_again() {
    assert!(matches!(
        problem_of(&[("a", "interfaces.name==nope"), ("b", "capture.a | interfaces.mtu==1")]),
        Problem::NotFound { .. }
    ));
}
