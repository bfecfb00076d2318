//! What would once have been dropped without a word, or have filled the memory.

use std::fs::File;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Ran, berth, fixtures, line};

#[test]
fn input_without_end_is_refused() {
    let ran = line(&fixtures(), "berth plan -f /dev/zero --current seeds/state.yaml");
    let said = "error: /dev/zero: larger than 64 MiB, which no document here needs\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (1, said));
    let endless = File::open("/dev/zero").expect("open /dev/zero");
    let berth = Command::new(env!("CARGO_BIN_EXE_berth")).args(["render", "-f", "-"]).stdin(endless).output();
    let stderr = String::from_utf8(berth.expect("run berth").stderr).expect("text");
    assert_eq!(stderr, "error: standard input: larger than 64 MiB, which no document here needs\n");
}

#[test]
fn two_names_for_the_desired_state_are_refused_by_every_verb() {
    let both = json!({"desiredState": {"interfaces": []}, "desired": {"interfaces": []}}).to_string();
    for arguments in [&["render", "-f", "-"][..], &["plan", "-f", "-", "--current", "seeds/state.yaml"]] {
        let ran = berth(&fixtures(), arguments, both.as_bytes());
        let said =
            "error: standard input: desiredState and desired are two names for the same: give one of them\n";
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (1, "", said), "{arguments:?}");
    }
}

#[test]
fn a_label_given_twice_is_wrong_usage() {
    let render = "berth render -f more/one-pool.yaml --pool more/holders.yaml --node node01";
    for labels in ["--node-labels a=b,a=c", "--node-labels a=b --node-labels a=b"] {
        let ran = line(&fixtures(), &format!("{render} {labels}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{labels}");
        assert!(ran.stderr.starts_with("error: --node-labels: a is given twice\n"), "{}", ran.stderr);
    }
}

/// Renders with captured states alone, which prove no claim.
fn with_captured_states(more: &[&str]) -> Ran {
    let states = json!({"address-from-traffic-1": {"ip": "foo", "prefix-length": 24}}).to_string();
    let mut arguments =
        vec!["render", "-f", "more/one-pool.yaml", "--captured", "-", "--pool", "more/holders.yaml"];
    arguments.extend(more);
    berth(&fixtures(), &arguments, states.as_bytes())
}

/// A pool capture is taken from the grant only, never from captured states; but not in silence.
#[test]
fn captured_states_of_a_pool_are_not_used_and_say_so() {
    let why = "what a pool gave counts only where an enactment's status.ippool lists it: give the whole enactment\n";
    let ran = with_captured_states(&["--node", "node01"]);
    let warning = format!("warning: standard input: capture \"address-from-traffic-1\" is asked anew: {why}");
    assert_eq!((ran.code, ran.stderr), (0, warning));
    assert!(ran.stdout.contains("10.10.10.8"), "{}", ran.stdout);
    let ran = with_captured_states(&[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains(&format!("standard input has a state for it, but {why}")), "{}", ran.stderr);
}

#[test]
fn an_offset_that_no_number_holds_says_what_is_the_largest() {
    let digits = "9".repeat(42);
    let ran = line(&fixtures(), &format!("berth pool explain -f more/holders.yaml --offset {digits}"));
    let said =
        "no range has such an offset: the largest there can be is 1329227995784915872903807060280344575";
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn a_node_that_yaml_takes_for_a_boolean_gets_a_hint() {
    let manifest = |reserved: &str, held: &str| {
        format!(
            "{{kind: NodeIPPool, metadata: {{name: p}}, spec: {{range: {{cidr: 10.0.0.0/29}}, reservations: [{{node: {reserved}, \
             ip: 10.0.0.3}}]}}, status: {{allocations: {{10.0.0.2: {{node: {held}}}}}}}}}"
        )
    };
    let explain = |text: &str| berth(&fixtures(), &["pool", "explain", "-f", "-"], text.as_bytes());
    for (reserved, held) in [("y", "n1"), ("n1", "on")] {
        let ran = explain(&manifest(reserved, held));
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
        assert!(ran.stderr.contains("a node of that name needs quotes"), "{}", ran.stderr);
    }
    assert_eq!(explain(&manifest("\"y\"", "\"on\"")).code, 0);
}

/// In a pool without a slice of anybody's, too: the borders are the spec's.
#[test]
fn slices_are_shown_before_anybody_owns_one() {
    let pool = json!({
        "kind": "NodeIPPool", "metadata": {"name": "p"},
        "spec": {"range": {"cidr": "10.7.0.0/24", "perNodeHostBits": 4}},
    });
    let explain = |more: &[&str]| -> Value {
        let arguments = [&["pool", "explain", "-f", "-", "-o", "json"], more].concat();
        let ran = berth(&fixtures(), &arguments, pool.to_string().as_bytes());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        serde_json::from_str(&ran.stdout).expect("a document")
    };
    let rows = explain(&[])["rows"].clone();
    let shown: Vec<(&Value, &Value, bool)> = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (&row["address"], &row["slices"], row["chosenLast"] == true))
        .collect();
    let (first, last) = (json!("10.7.0.1"), json!("10.7.0.32"));
    let low = json!({"first": "10.7.0.0/28", "last": "10.7.0.16/28"});
    let rest = json!({"first": "10.7.0.32/28", "last": "10.7.0.240/28"});
    assert_eq!(shown, [(&first, &low, true), (&last, &rest, false)]);
    assert_eq!(rows[0]["band"], Value::Null, "inside a slice there are no bands");
    let one = &explain(&["--ip", "10.7.0.99"])["rows"][0];
    assert_eq!(one["slice"], json!({"cidr": "10.7.0.96/28"}));
}
