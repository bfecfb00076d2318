//! References in strings.

use serde_json::json;

use super::*;

/// One string, filled.
fn text(template: &str) -> Result<Value, String> {
    fill(&json!({"x": template})).map(|filled| filled["x"].clone())
}

#[test]
fn alone_a_reference_keeps_its_type() {
    assert_eq!(text("{{ capture.nic.interfaces.0.mtu }}"), Ok(json!(1500)));
    assert_eq!(text("{{capture.nic.interfaces.0.ipv4.enabled}}"), Ok(json!(true)));
    assert_eq!(text("{{ capture.nic.interfaces.0.name }}"), Ok(json!("eth1")));
    let state = crate::capture::tests::state();
    assert_eq!(text("{{ capture.all.routes.running }}"), Ok(state["routes"]["running"].clone()), "a list");
    assert_eq!(
        text("{{ capture.nic.interfaces.0.ipv4 }}"),
        Ok(state["interfaces"][0]["ipv4"].clone()),
        "a map"
    );
    assert_eq!(text("{{ capture.all }}"), Ok(state), "everything");
    assert_eq!(text(" {{ capture.nic.interfaces.0.mtu }}\n"), Ok(json!(1500)), "blanks around don't count");
}

#[test]
fn text_around_and_several_references() {
    assert_eq!(text("{{ capture.nic.interfaces.0.name }}.100"), Ok(json!("eth1.100")));
    assert_eq!(text("br-{{ capture.nic.interfaces.0.name }}"), Ok(json!("br-eth1")));
    assert_eq!(
        text(
            "{{ capture.nic.interfaces.0.ipv4.address.0.ip }}/{{ capture.nic.interfaces.0.ipv4.address.0.prefix-length }}"
        ),
        Ok(json!("10.244.0.1/24"))
    );
    assert_eq!(text("up: {{ capture.nic.interfaces.0.ipv4.enabled }}!"), Ok(json!("up: true!")));
    assert_eq!(
        text("{{ capture.nic.interfaces.0.mtu }} {{ capture.nic.interfaces.0.mtu }}"),
        Ok(json!("1500 1500")),
        "two references are text, whatever lies between them"
    );
}

#[test]
fn lone_braces_are_text() {
    for plain in ["{", "}", "a{b}c", "}}", "{ {", "{}", "} {"] {
        assert_eq!(text(plain), Ok(json!(plain)));
    }
    assert_eq!(text("{{{ capture.nic.interfaces.0.name }}}"), Ok(json!("{eth1}")));
}

#[test]
fn only_values_are_templates() {
    let document = json!({"{{ capture.nic.interfaces.0.name }}": 1, "nested": {"{{": [null, true, 1.5]}});
    assert_eq!(fill(&document), Ok(document.clone()));
}

#[test]
fn what_a_capture_holds_is_not_a_template() {
    let captures = crate::capture::Captures::parse(&[("a".to_owned(), String::new())].into()).unwrap();
    let current = json!({"note": "{{ capture.a.note }}"});
    let bindings = captures.eval(&current, &Default::default(), &Default::default()).unwrap();
    let filled = crate::template::fill(&json!({"x": "{{ capture.a.note }}"}), &bindings).unwrap();
    assert_eq!(filled, json!({"x": "{{ capture.a.note }}"}));
}

#[test]
fn errors_name_the_field_and_point() {
    let document = json!({"interfaces": [{}, {"ipv4": {"address": [{"ip": "x {{ capture.zzz.ip }}"}]}}]});
    assert_eq!(
        fill(&document).unwrap_err(),
        "interfaces[1].ipv4.address[0].ip: 1:6: unknown capture \"zzz\"; known: all, nic\n\
         | x {{ capture.zzz.ip }}\n\
         |      ^"
    );
}

#[test]
fn all_errors_at_once() {
    let document =
        json!({"a": "{{ capture.zzz.x }}", "b": ["{{", "fine"], "c": {"d": "{{ capture.nic.routes }}"}});
    let wrong = fill(&document).unwrap_err();
    for field in ["a: 1:4:", "b[0]: 1:1: this '{{' is never closed", "c.d: 1:16: no 'routes' in capture.nic"]
    {
        assert!(wrong.contains(field), "{field}: {wrong}");
    }
}

#[test]
fn paths_say_how_far_they_got() {
    let wrong = |template| text(template).unwrap_err();
    assert_eq!(
        wrong("{{ capture.nic.interfaces.1.name }}"),
        "x: 1:27: capture.nic.interfaces has only 1 item: no index 1 (the first is 0)\n\
         | {{ capture.nic.interfaces.1.name }}\n\
         |                           ^"
    );
    assert!(
        wrong("{{ capture.nic.interfaces.name }}")
            .contains("capture.nic.interfaces is a list: an index must follow")
    );
    assert!(
        wrong("{{ capture.nic.interfaces.0.nmae }}")
            .contains("no 'nmae' in capture.nic.interfaces.0; it has: name, type")
    );
    assert!(wrong("{{ capture.nic.interfaces.0.name.x }}").contains("is 'eth1': there is no 'x' below it"));
    assert!(wrong("ä{{ capture.nic.nope }}").starts_with("x: 1:17: "));
    assert!(wrong("line one\n {{ capture.nic.nope }}").starts_with("x: 2:17: "));
}

#[test]
fn what_stands_between_the_braces() {
    for (template, column) in [
        ("{{ }}", 3),
        ("{{ nic.interfaces }}", 4),
        ("{{ capture.nic | x.y }}", 4),
        ("{{ 'capture.nic' }}", 4),
        ("{{ {{ capture.nic.x }} }}", 4),
    ] {
        let wrong = text(template).unwrap_err();
        assert!(wrong.contains("is no reference: expected 'capture.<name>.<path>'"), "{template}: {wrong}");
        assert!(template == "{{ }}" || wrong.starts_with(&format!("x: 1:{column}:")), "{template}: {wrong}");
    }
    assert!(text("{{ capture }}").unwrap_err().contains("'capture' must be followed by a name"));
    assert!(text("{{ capture.nic. }}").unwrap_err().starts_with("x: 1:16: a name is missing"));
    assert!(text("a {{ capture.nic.x }").unwrap_err().starts_with("x: 1:3: this '{{' is never closed"));
}

#[test]
fn only_single_values_are_embedded() {
    let wrong = text("a {{ capture.nic.interfaces }}").unwrap_err();
    assert!(wrong.starts_with("x: 1:6: capture.nic.interfaces is a list: with text around it"), "{wrong}");
    assert!(text("{{ capture.nic }}.1").unwrap_err().contains("capture.nic is a map"));
}

#[test]
fn captures_for_capture_gets_a_hint() {
    let wrong = fill(&json!({"a": "{{ captures.nic.interfaces.0.name }}"})).unwrap_err();
    assert!(wrong.ends_with("hint: did you mean 'capture.nic.interfaces.0.name'?"), "{wrong}");
}
