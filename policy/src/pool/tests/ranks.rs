//! Which range serves a node: KEP-2593's order.

use super::*;

/// `{key: value, …}` as one term.
pub(super) fn selector(pairs: &[(&str, &str)]) -> String {
    let all: Vec<String> =
        pairs.iter().map(|(k, v)| format!("{{key: {k}, operator: In, values: [{v}]}}")).collect();
    format!("nodeSelector: {{nodeSelectorTerms: [{{matchExpressions: [{}]}}]}}", all.join(", "))
}

fn order(yaml: &str, node: &[(&str, &str)]) -> Vec<String> {
    let (pool, labels) = (pool(yaml), labels(node));
    let ranked = rank(&pool, &NodeView { name: "n1", labels: &labels });
    ranked.iter().map(|range| range.name().to_owned()).collect()
}

/// R85: without a selector for everybody, but after all that match.
#[test]
fn r85_no_selector_is_the_fallback() {
    let yaml = format!(
        "ranges: [{{name: any, cidr: 10.0.0.0/30}}, {{name: rack, cidr: 10.1.0.0/16, {}}}]",
        selector(&[("rack", "r1")])
    );
    assert_eq!(order(&yaml, &[("rack", "r1")]), ["rack", "any"]);
    assert_eq!(order(&yaml, &[("rack", "r2")]), ["any"]);
}

/// R86: terms are ORed, expressions ANDed, an empty term matches nothing.
#[test]
fn r86_selectors_by_operator() {
    let matched = |terms: &str| {
        !order(
            &format!(
                "ranges: [{{name: a, cidr: 10.0.0.0/24, nodeSelector: {{nodeSelectorTerms: [{terms}]}}}}]"
            ),
            &[("rack", "r1"), ("cores", "16")],
        )
        .is_empty()
    };
    let one = |key: &str, operator: &str, values: &str| {
        matched(&format!("{{matchExpressions: [{{key: {key}, operator: {operator}, values: [{values}]}}]}}"))
    };
    assert!(one("rack", "In", "r0, r1") && !one("rack", "In", "r2") && !one("zone", "In", "r1"));
    assert!(one("rack", "NotIn", "r2") && !one("rack", "NotIn", "r1") && one("zone", "NotIn", "r1"));
    assert!(one("rack", "Exists", "") && !one("zone", "Exists", ""));
    assert!(one("zone", "DoesNotExist", "") && !one("rack", "DoesNotExist", ""));
    assert!(one("cores", "Gt", "'15'") && !one("cores", "Gt", "'16'") && !one("rack", "Gt", "'0'"));
    assert!(one("cores", "Lt", "'17'") && !one("cores", "Lt", "'16'") && !one("zone", "Lt", "'9'"));
    assert!(matched("{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}"));
    assert!(!matched("{matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]}"));
    let no = "{matchExpressions: [{key: rack, operator: In, values: [r1]}, {key: zone, operator: Exists}]}";
    assert!(!matched(no));
    assert!(matched(&format!("{no}, {{matchExpressions: [{{key: rack, operator: Exists}}]}}")));
    assert!(!matched("{}") && !matched(""));
    assert!(!matched(
        "{matchExpressions: [{key: rack, operator: Exists}], matchFields: [{key: metadata.name, operator: In, values: [n2]}]}"
    ));
}

/// R86: no range for the node is said as such, and is not exhaustion.
#[test]
fn r86_no_range_for_a_node() {
    let pool = pool(&format!("ranges: [{{name: a, cidr: 10.0.0.0/24, {}}}]", selector(&[("rack", "r1")])));
    assert_eq!(
        next(&pool, &Taken::new(&pool), "n9").unwrap_err().to_string(),
        "no range of pool traffic-1 is for node n9: add one whose nodeSelector matches it, or one without"
    );
}

/// R87: most labels and fields matched; several matching terms count by the one that says most.
#[test]
fn r87_tie_1_most_labels() {
    let node = [("type", "medium"), ("rack", "rack1")];
    let yaml = format!(
        "ranges: [{{name: less, cidr: 10.0.0.0/30, {}}}, {{name: more, cidr: 10.1.0.0/16, {}}}]",
        selector(&[("type", "medium")]),
        selector(&[("type", "medium"), ("rack", "rack1")])
    );
    assert_eq!(order(&yaml, &node), ["more", "less"]);
    let terms = "ranges: [{name: one, cidr: 10.0.0.0/30, nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: type, operator: Exists}]}]}},
        {name: absent, cidr: 10.2.0.0/30, nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: gone, operator: DoesNotExist}]}]}},
        {name: two, cidr: 10.1.0.0/16, nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: type, operator: Exists}]},
          {matchExpressions: [{key: type, operator: Exists}], matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}]";
    assert_eq!(order(terms, &node), ["two", "one", "absent"]);
}

/// R88: fewest in all; R89: smaller blocks, then selector text, then CIDR.
#[test]
fn r88_r89_ties_2_to_4() {
    let pair = |a: &str, b: &str| {
        order(
            &format!("ranges: [{{name: first, {a}}}, {{name: second, {b}}}]"),
            &[("a", "one"), ("b", "one")],
        )
    };
    let size = pair("cidr: 192.168.0.0/20, perNodeHostBits: 10", "cidr: 10.0.0.0/16, perNodeHostBits: 16");
    assert_eq!(size, ["second", "first"]);
    // Four slices each: 32 addresses before 128.
    assert_eq!(
        pair("cidr: 10.0.0.0/23, perNodeHostBits: 7", "cidr: 10.1.0.0/25, perNodeHostBits: 5"),
        ["second", "first"]
    );
    let (a, b) = (selector(&[("a", "one")]), selector(&[("b", "one")]));
    assert_eq!(
        pair(&format!("cidr: 10.0.0.0/24, {b}"), &format!("cidr: 10.0.1.0/24, {a}")),
        ["second", "first"]
    );
    assert_eq!(pair("cidr: 10.0.1.0/24", "cidr: 10.0.0.0/24"), ["second", "first"]);
}

/// R88: the total, not what remains: neither exclusions nor holders change the order.
#[test]
fn r88_is_the_total() {
    let yaml = "ranges: [{name: first, cidr: 10.0.0.0/24, exclude: [10.0.0.0/25]}, {name: second, cidr: 10.0.1.0/25}]";
    assert_eq!(order(yaml, &[]), ["second", "first"]);
}

/// R90: KEP-2593's example, and the next range when the best is full.
#[test]
fn r90_the_order_of_the_example() {
    let yaml = format!(
        "ranges: [{{name: default, perNodeHostBits: 6, cidr: 10.0.0.0/8}},
          {{name: wide, perNodeHostBits: 4, cidr: 192.168.128.0/17, {n1}}},
          {{name: near, perNodeHostBits: 4, cidr: 192.168.64.0/20, {n1}}},
          {{name: best, perNodeHostBits: 6, cidr: 10.5.0.0/16, {both}}}]",
        n1 = selector(&[("node", "n1")]),
        both = selector(&[("node", "n1"), ("rack", "rack1")]),
    );
    // 10.5.0.0/16 lies in 10.0.0.0/8, and sliced ranges must not overlap: the same order, moved aside.
    let yaml = yaml.replace("10.5.0.0/16", "11.5.0.0/16");
    let node = [("node", "n1"), ("rack", "rack1")];
    assert_eq!(order(&yaml, &node), ["best", "near", "wide", "default"]);
    let shared =
        yaml.replace("perNodeHostBits: 6, ", "").replace("perNodeHostBits: 4, ", "").replace("11.5", "10.5");
    assert_eq!(order(&shared, &node), ["best", "near", "wide", "default"]);
}

#[test]
fn r90_full_means_the_next_one() {
    let yaml = format!(
        "ranges: [{{name: any, cidr: 10.0.0.0/24}}, {{name: rack, cidr: 10.1.0.0/30, {}}}]",
        selector(&[("rack", "r1")])
    );
    let (pool, labels) = (pool(&yaml), labels(&[("rack", "r1")]));
    let mut taken = Taken::new(&pool);
    let mut ranges = Vec::new();
    for node in ["a", "b", "c"] {
        let holder = Holder { node, capture: "c", declined: &[], want: Want::Any };
        let view = PoolView { pool: &pool, taken: &taken, barred: &Barred::default() };
        let choice = choose(&view, &holder, &NodeView { name: node, labels: &labels }).unwrap();
        taken.insert(address(&choice));
        ranges.push(choice.range);
    }
    assert_eq!(ranges, ["rack", "rack", "any"]);
}

/// R91: several fallbacks by the same rules: 172.16.0.0/14 before 10.0.0.0/8.
#[test]
fn r91_fallbacks_are_ranked_too() {
    let yaml = format!(
        "ranges: [{{name: ten, cidr: 10.0.0.0/8, perNodeHostBits: 8}}, {{name: private, cidr: 172.16.0.0/14, perNodeHostBits: 8}},
          {{name: other, cidr: 192.168.0.0/16, perNodeHostBits: 6, {}}}]",
        selector(&[("node", "n2")])
    );
    assert_eq!(order(&yaml, &[("node", "n4")]), ["private", "ten"]);
    assert_eq!(order(&yaml, &[("node", "n2")]), ["other", "private", "ten"]);
}
