use proptest::prelude::*;
use serde_json::{Value, json};

use super::{json as quick, parse, parse_yaml, print};

fn one(text: &str) -> Value {
    let mut documents = parse(text).expect(text);
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0)
}

fn wrong(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

#[test]
fn several_documents_without_the_empty_ones() {
    assert_eq!(parse("---\na: 1\n---\n---\nb: 2\n").unwrap(), [json!({"a": 1}), json!({"b": 2})]);
    assert_eq!(parse("").unwrap(), Vec::<Value>::new());
    assert_eq!(parse("# a remark\n").unwrap(), Vec::<Value>::new());
}

#[test]
fn json_is_read_too() {
    let text = "{\n\t\"a\": [1, true, null, \"\\u00e9\\ud83d\\ude00\"],\n\t\"b\":{}\n}\n";
    assert_eq!(one(text), json!({"a": [1, true, null, "é😀"], "b": {}}));
}

#[test]
fn a_byte_order_mark_and_windows_line_ends() {
    assert_eq!(one("\u{feff}a: 1\r\nb: x\r\n"), json!({"a": 1, "b": "x"}));
}

#[test]
fn scalars_have_the_types_that_they_have_for_kubectl() {
    let read = one(
        "a: 1500\nb: \"1500\"\nc: 10.0.0.1\nd: 52:54:00:12:34:56\ne: 0x10\nf: ~\ng: eth0\nh: 1e3x\ni: -1\n",
    );
    let expected = json!({
        "a": 1500, "b": "1500", "c": "10.0.0.1", "d": "52:54:00:12:34:56", "e": 16, "f": null, "g": "eth0", "h": "1e3x", "i": -1
    });
    assert_eq!(read, expected);
}

#[test]
fn numbers_as_keys_become_text() {
    assert_eq!(one("1: a\ntrue: b\n"), json!({"1": "a", "true": "b"}));
}

#[test]
fn what_was_printed_reads_the_same() {
    let value = json!({
        "text that looks like something else": [
            "true", "yes", "on", "no", "null", "~", "1500", "1e3", "0x10", "0o7", "10.0.0.1", "1:30", "", " ", "- a", "# b",
            "a: b", "{{ capture.x }}", "*a", "&a", "!a", "é😀", "line\nbreak", "line\n", "\ttab", "'", "\"", "\u{7}", "2024-01-01",
            "fd00::1", "::", "=", "<<", "|", ">", "%", "@", "`", "a #b", ".inf", ".nan", "-", "--- a"
        ],
        "empty": [{}, [], null],
        "numbers": [0, -1, 18446744073709551615u64, 1.5],
        "nested": {"a": {"b": [[1, 2], {"c": [{"d": "e", "f": []}]}]}},
        "": 1, "true": 2, "5": 3, "a: b": 4,
    });
    assert_eq!(one(&print(&value).unwrap()), value);
}

#[test]
fn an_error_points_at_its_place() {
    let text = "interfaces:\n- name: eth1\n  type: [ethernet\n  state: up\n";
    let error = parse(text).unwrap_err();
    let place = error.place.clone().unwrap();
    assert_eq!((place.line, place.shown.text.as_str()), (4, "  state: up"), "{error}");
    let shown = error.to_string();
    assert!(shown.contains("\n|   state: up\n|"), "{shown}");
    assert!(shown.ends_with('^'), "{shown}");
}

#[test]
fn a_caret_counts_characters_not_bytes() {
    let error = parse("é: ü\né: 1\n").unwrap_err().to_string();
    assert_eq!(error, "2:1: \"é\" is given twice in one map\n| é: 1\n| ^");
}

#[test]
fn a_key_given_twice_is_named() {
    let text = "capture:\n  a: x\n  a: y\n";
    assert_eq!(wrong(text), "3:3: \"a\" is given twice in one map\n|   a: y\n|   ^");
}

#[test]
fn what_would_exhaust_the_machine_is_refused() {
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let alias = format!("*a{}", i - 1);
        laughs.push_str(&format!("a{i}: &a{i} [{}]\n", vec![alias; 9].join(", ")));
    }
    assert!(wrong(&laughs).contains("by its aliases"), "{}", wrong(&laughs));
    let flow = "[".repeat(100_000);
    assert!(wrong(&flow).contains("deeper than 64"), "{}", wrong(&flow));
    let block: String = (0..5_000).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    assert!(wrong(&block).contains("deeper than 64"), "{}", wrong(&block));
}

#[test]
fn an_alias_without_its_anchor_is_refused() {
    assert!(wrong("a: *b\n").contains("names no anchor"), "{}", wrong("a: *b\n"));
}

#[test]
fn nothing_of_a_broken_file_reaches_the_terminal_raw() {
    let shown = wrong("a: \"\u{1b}[31m\nb: [\n");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn of_a_long_line_what_stands_around_the_caret_is_shown() {
    let text = format!("a: [{}]]\n", "word, ".repeat(100));
    let error = parse(&text).unwrap_err();
    let place = error.place.clone().unwrap();
    assert_eq!((place.line, place.column), (1, 606), "{error}");
    let caret = error.to_string().lines().last().unwrap().to_owned();
    assert_eq!(caret.trim_start_matches(['|', ' ']), "^");
    assert!(caret.len() <= 100, "{error}");
    assert_eq!(place.shown.text.chars().nth(place.shown.column - 1), Some(']'), "{error}");
}

#[test]
fn the_quick_way_gives_way_where_the_other_has_more_to_say() {
    assert_eq!(quick::parse("{\"a\": [1, \"b\"]}\n"), Some(json!({"a": [1, "b"]})));
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    for text in [
        "{\"a\":1,\"a\":2}",
        "{\"a\":1.5}",
        "{\"<<\":{}}",
        "{a: 1}",
        "{} {}",
        "{\"a\":1}\n---\n",
        "a: 1",
        &deep,
    ] {
        assert_eq!(quick::parse(text), None, "{text}");
    }
    assert_eq!(
        wrong("{\"a\":1,\"a\":2}"),
        "1:8: \"a\" is given twice in one map\n| {\"a\":1,\"a\":2}\n|        ^"
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\"\\\\/\n\t:#{}\\[\\]<>&*!|%@`~ -]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("\\PC{0,8}", inner), 0..6)
                .prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

proptest! {
    /// Both readers, on what serde_json prints either way.
    #[test]
    fn json_reads_the_same_both_ways(value in any_value(), pretty: bool) {
        let value = json!({"document": value});
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        if let Some(read) = quick::parse(&text) {
            prop_assert_eq!(&read, &value);
        }
        prop_assert_eq!(parse_yaml(&text).unwrap(), [value]);
    }
}
