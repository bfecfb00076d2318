//! What is refused before any state is looked at, each with its column.

use super::*;

/// The column and the message of a line that can't be parsed.
fn refused(line: &str) -> (usize, String) {
    let wrong = Captures::parse(&lines(&[("x", line)])).expect_err(line);
    let one = wrong.iter().next().unwrap();
    (one.spot.as_ref().unwrap().column, one.problem.to_string())
}

#[test]
fn operators() {
    assert_eq!(refused("interfaces.name=eth1"), (16, "'=' alone is no operator: expected '=='".into()));
    assert_eq!(refused("interfaces.name!eth1"), (16, "'!' alone is no operator: expected '!='".into()));
    assert_eq!(refused("interfaces.name:eth1"), (16, "':' alone is no operator: expected ':='".into()));
    assert_eq!(refused("interfaces.name= =eth1").0, 16);
    assert_eq!(
        refused("interfaces.name==eth1==eth2"),
        (22, "unexpected '==': expected the end: a rule has one operator and one value".into())
    );
    assert_eq!(refused("interfaces.name=="), (18, "unexpected end: expected a value".into()));
    assert_eq!(refused("interfaces.name== := 1"), (19, "unexpected ':=': expected a value".into()));
    assert_eq!(refused("==eth1"), (1, "unexpected '==': expected a path before it".into()));
    assert_eq!(refused(":="), (1, "unexpected ':=': expected a path before it".into()));
    assert_eq!(
        refused("interfaces.name eth1"),
        (17, "unexpected 'eth1': expected '==', '!=', ':=' or the end".into())
    );
    assert_eq!(
        refused(r#""a"=="b""#),
        (1, "unexpected \"a\": expected the path of the property to compare".into())
    );
}

#[test]
fn names_that_nothing_can_refer_to() {
    for name in ["a.b", "", "a b", "a|b", "a:b", "a=b", "a\"b", "!"] {
        let wrong = Captures::parse(&lines(&[(name, "interfaces.name==eth1")])).expect_err(name);
        let problems: Vec<&Problem> = wrong.iter().map(|one| &one.problem).collect();
        assert_eq!(problems, [&Problem::CaptureName], "{name:?}");
        assert!(wrong.to_string().starts_with(&format!("capture {name:?}: nothing can refer")), "{wrong}");
    }
    for name in ["a-b", "A_1", "0", "capture", "ä"] {
        let needs = format!("capture.{name} | interfaces.name==eth1");
        Captures::parse(&lines(&[(name, ""), ("other", &needs)])).expect(name);
    }
}

#[test]
fn captures_for_capture_gets_a_hint() {
    let wrong = Captures::parse(&lines(&[("x", "captures.nic | interfaces.name==eth1")])).unwrap_err();
    assert!(wrong.to_string().ends_with("hint: did you mean 'capture.nic'?"), "{wrong}");
}

#[test]
fn quotes() {
    assert_eq!(refused(r#"interfaces.name=="eth1"#), (18, "this quote is never closed".into()));
    assert_eq!(refused("interfaces.name=='eth1\""), (18, "this quote is never closed".into()));
    assert_eq!(names(&one(r#"interfaces.name == "eth1"  "#)), ["eth1"]);
    let inner = problem_of(&[("x", r#"interfaces.name == "it's""#)]);
    assert_eq!(inner.to_string(), "interface with 'name=it's' not found");
    let bare = problem_of(&[("x", "interfaces.name == it's")]);
    assert_eq!(bare.to_string(), "interface with 'name=it's' not found");
}

#[test]
fn paths() {
    assert_eq!(
        refused("interfaces..name==a"),
        (12, "a name is missing: a path is words with one dot between them".into())
    );
    assert_eq!(refused("interfaces.name.==a").0, 17);
    assert_eq!(refused(".name").0, 1);
    assert_eq!(refused("interfaces.name==eth1.").0, 23);
    let deep = vec!["a"; 40].join(".");
    assert_eq!(refused(&deep), (1, "a path of 40 words: at most 32".into()));
}

#[test]
fn roots() {
    assert_eq!(
        refused("dns-resolver.running.server==8"),
        (1, "Unsupported capture keyword 'dns-resolver'".into())
    );
    assert_eq!(refused("hostname==a"), (1, "Unsupported capture keyword 'hostname'".into()));
    assert_eq!(
        refused("routes.current.metric:=1"),
        (1, "Unsupported capture keyword 'routes.current'".into())
    );
    assert_eq!(refused("interfaces==a"), (1, "a property must follow 'interfaces'".into()));
    assert_eq!(refused("routes.running==a"), (1, "a property must follow 'routes.running'".into()));
    assert_eq!(
        refused("routes.running.0.metric==1"),
        (16, "exactly one property must follow 'routes.running', not '0.metric'".into())
    );
    assert_eq!(refused("route-rules.config.a.b:=1").0, 20);
}

#[test]
fn pipes() {
    let source = "only 'capture.<name>' may stand before '|'";
    for (line, column) in [
        ("interfaces.name==a | routes.running", 1),
        ("capture.a.interfaces | routes.running", 1),
        ("capture | routes.running", 1),
        ("capture. | routes.running", 1),
        ("'capture.a' | routes.running", 1),
        ("  | routes.running", 3),
    ] {
        assert_eq!(refused(line), (column, source.into()), "{line}");
    }
    let two = "a rule takes its input from one capture only";
    assert_eq!(refused("capture.a | interfaces.name==b | routes.running"), (32, two.into()));
    assert_eq!(refused("capture.a | capture.b.interfaces.name==c"), (13, two.into()));
}

#[test]
fn references() {
    assert_eq!(refused("capture"), (1, "'capture' must be followed by a name".into()));
    assert_eq!(refused("interfaces.name==capture.a"), (18, "a path must follow 'capture.a'".into()));
    assert_eq!(refused("capture.a==b"), (1, "a path must follow 'capture.a'".into()));
}

#[test]
fn every_bad_line_is_reported() {
    let wrong = Captures::parse(&lines(&[("a", "="), ("b", "interfaces.name==x"), ("c", "!")])).unwrap_err();
    assert_eq!(wrong.iter().count(), 2);
}

#[test]
fn white_space_of_any_kind() {
    assert_eq!(names(&one("\n  interfaces.name\t==\u{a0}eth1\r\n")), ["eth1"]);
}
