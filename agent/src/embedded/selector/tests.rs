use std::collections::BTreeMap;

use super::*;
use crate::embedded::resource;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

#[test]
fn every_operator_of_a_label_selector() {
    let labels = labels(&[("a", "b"), ("n", "5"), ("example.com/x", "")]);
    let table = [
        ("", true),
        ("a", true),
        ("!a", false),
        ("z", false),
        ("!z", true),
        ("a=b", true),
        ("a==b", true),
        ("a = c", false),
        ("a!=b", false),
        ("z!=b", true),
        ("a in (b, c)", true),
        ("a in (c)", false),
        ("a notin (c)", true),
        ("z notin (c)", true),
        ("a notin (b)", false),
        ("n>4", true),
        ("n > 5", false),
        ("n<6", true),
        ("a>1", false),
        ("example.com/x=", true),
        ("example.com/x", true),
        ("a=b,n in (5),!z", true),
        ("a=b,z", false),
        ("in in (in)", false),
    ];
    for (text, expected) in table {
        let selector = Labels::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(selector.match_all(&labels), expected, "{text}");
    }
}

#[test]
fn what_is_no_label_selector_is_refused() {
    for text in ["a=b,", ",a", "a in", "a in (b", "a in b", "a b", "=b", "a=b c", "a>x", "-a=b", "a=-b", "!"]
    {
        assert!(Labels::parse(text).is_err(), "{text}");
    }
}

#[test]
fn fields_are_compared_by_name() {
    let nodes = resource::find("", "v1", "nodes").unwrap();
    let key = Key::new(nodes.table, "", "a");
    let facts = Facts { fields: labels(&[("spec.unschedulable", "false")]), ..Facts::default() };
    let holds = |text: &str| Selector::parse(nodes, "", text).map(|selector| selector.matches(&key, &facts));
    assert_eq!(holds("metadata.name=a"), Ok(true));
    assert_eq!(holds("metadata.name!=a"), Ok(false));
    assert_eq!(holds("metadata.name==a,spec.unschedulable=false"), Ok(true));
    assert_eq!(holds("spec.unschedulable=true"), Ok(false));
    assert_eq!(holds(r"metadata.name=a\,b"), Ok(false));
    for text in ["spec.podCIDR=a", "metadata.name", r"metadata.name=a\b"] {
        assert_eq!(holds(text).unwrap_err().code, 400, "{text}");
    }
}

#[test]
fn events_of_both_groups_are_selected_by_the_same_facts() {
    let core = resource::find("", "v1", "events").unwrap();
    let new = resource::find("events.k8s.io", "v1", "events").unwrap();
    let key = Key::new(core.table, "default", "e");
    let facts = Facts {
        fields: labels(&[("involvedObject.name", "n"), ("reportingComponent", "c")]),
        ..Facts::default()
    };
    let holds = |resource, text| Selector::parse(resource, "", text).unwrap().matches(&key, &facts);
    assert!(holds(core, "involvedObject.name=n,reportingComponent=c"));
    assert!(holds(new, "regarding.name=n,reportingController=c"));
    assert!(Selector::parse(new, "", "involvedObject.name=n").is_err());
}
