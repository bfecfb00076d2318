//! What a golden can't show: pipes that close, help, versions, and answers as input.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Ran, berth, fixtures, line};

#[test]
fn crds_are_those_in_the_repository() {
    let ran = line(&fixtures(), "berth crds");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let folder = fixtures().join("../../../crds/yaml");
    let kinds =
        ["ippool", "ipslice", "networkconfigurationpolicy", "networkconfigurationenactment", "networkstate"];
    let files = kinds.map(|kind| fs::read_to_string(folder.join(format!("node{kind}.yaml"))).unwrap());
    assert_eq!(ran.stdout, files.join("---\n"));
}

#[test]
fn one_crd_by_name() {
    let ran = line(&fixtures(), "berth crds --name NodeIPPool");
    let file = fs::read_to_string(fixtures().join("../../../crds/yaml/nodeippool.yaml")).unwrap();
    assert_eq!((ran.code, ran.stdout), (0, file));
}

/// `berth crds | head -1`: who stops reading has what they wanted.
#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
        .arg("crds")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

/// A full disk is one.
#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_berth")).arg("crds").stdout(full).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("error: can't write the answer\n  "), "{stderr}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn every_verb_has_help_with_examples() {
    let of_pools = ["ls", "show", "explain", "verify", "release", "hold", "resume", "history"];
    let of_pools = of_pools.map(|verb| format!("pool {verb}"));
    let others = ["", "render", "plan", "crds", "policy preview", "node ls", "node show", "node rm"];
    for verb in others.into_iter().chain(of_pools.iter().map(String::as_str)) {
        let ran = line(&fixtures(), &format!("berth {verb} --help"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{verb}");
        assert!(ran.stdout.contains("Examples:\n  berth "), "{verb}: {}", ran.stdout);
        assert!(ran.stdout.contains(&format!("berth {verb}")), "{verb}: {}", ran.stdout);
    }
}

#[test]
fn the_version_is_the_packages() {
    let ran = line(&fixtures(), "berth --version");
    let expected = format!("berth {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((ran.code, ran.stdout), (0, expected));
}

#[test]
fn wrong_usage_is_2() {
    let wrong = [
        "berth",
        "berth paint",
        "berth render",
        "berth render -f a -o table",
        "berth render -f a --node-labels a=b",
        "berth plan -f a --current b --netns c",
        "berth plan",
        "berth apply",
        "berth show -o table",
        "berth pool",
        "berth pool explain",
        "berth pool explain -f a --offset -1",
        "berth pool show",
        "berth pool ls -o map",
        "berth pool release traffic-1",
        "berth pool release traffic-1 nowhere",
        "berth pool hold",
        "berth policy preview",
        "berth node rm",
        "berth completions",
    ];
    for text in wrong {
        let ran = line(&fixtures(), text);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{text}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty(), "{text}");
    }
}

/// Nobody is called so: an answer for such a node would be an answer for nobody.
#[test]
fn a_name_that_no_node_can_have_is_wrong_usage() {
    let long = "a".repeat(254);
    for name in ["", " ", "Node01", "node_1", "-a", "a-", "a..b", ".a", "nöde", "a/b", "a\n", long.as_str()]
    {
        let node = format!("--node={name}");
        let arguments = ["render", "-f", "more/one-pool.yaml", "--pool", "more/holders.yaml", &node];
        let ran = berth(&fixtures(), &arguments, b"");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{name:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("--node"), "{name:?}: {}", ran.stderr);
        // Nor an agent's: it would ask for ever for what nobody can have.
        let ran = berth(&fixtures(), &["agent", "--kubeconfig=nowhere", &node], b"");
        assert_eq!(ran.code, 2, "{name:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("--node"), "{name:?}: {}", ran.stderr);
    }
    for name in ["a", "node01.example.org", "10.0.0.1"] {
        let text = format!("berth render -f more/one-pool.yaml --pool more/holders.yaml --node {name}");
        assert_eq!(line(&fixtures(), &text).code, 0, "{name}");
    }
}

/// What is said against a bare document of these captures, without the line that names the file.
fn against(captures: &[(String, String)]) -> String {
    let capture: serde_json::Map<String, Value> =
        captures.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
    let document = json!({"capture": capture, "desiredState": {}}).to_string();
    let arguments = ["render", "-f", "-", "--current", "seeds/state.yaml"];
    let ran = berth(&fixtures(), &arguments, document.as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    let said = ran.stderr.split_once('\n').map(|(_, said)| said.to_owned());
    said.unwrap_or_default()
}

/// A capture may be one line of any length: the caret's surroundings are what helps.
#[test]
fn of_a_long_line_a_window_is_shown() {
    // `=` alone is no operator: the caret is under it.
    let shown = |before: usize, after: usize| {
        let line = format!("{}={}", "ä".repeat(before), "b".repeat(after));
        let said = against(&[("x".to_owned(), line)]);
        let lines: Vec<&str> = said.lines().map(|line| line.trim_start_matches("  ")).collect();
        let place = format!("capture \"x\": 1:{}: ", before + 1);
        assert!(lines[0].starts_with(&place), "the column is that of the whole line: {}", lines[0]);
        let caret = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().nth(caret), Some('='), "{said}");
        lines[1].to_owned()
    };
    let (a, b) = (|n| "ä".repeat(n), |n| "b".repeat(n));
    assert_eq!(shown(50, 49), format!("| {}={}", a(50), b(49)), "it fits");
    assert_eq!(shown(51, 49), format!("| …{}={}", a(50), b(49)));
    assert_eq!(shown(10, 100_000), format!("| {}={}…", a(10), b(89)));
    assert_eq!(shown(100_000, 10), format!("| …{}={}", a(89), b(10)));
    assert_eq!(shown(50_000, 50_000), format!("| …{}={}…", a(50), b(49)));
}

#[test]
fn a_long_ring_of_captures_is_shown_by_its_ends() {
    let ring = |size: usize| {
        let next = |i: usize| (format!("c{i:02}"), format!("capture.c{:02}", (i + 1) % size));
        against(&(0..size).map(next).collect::<Vec<_>>())
    };
    let text = ring(9);
    let expected = ": c00 -> c01 -> c02 -> c03 -> c04 -> c05 -> c06 -> c07 -> c08 -> c00\n";
    assert!(text.contains(expected), "{text}");
    let text = ring(50);
    let expected =
        ": c00 -> c01 -> c02 -> c03 -> c04 -> … -> c46 -> c47 -> c48 -> c49 -> c00 (50 captures)\n";
    assert!(text.contains(expected), "{text}");
}

/// JSON is YAML, so an answer in either form is good input, and says the same.
#[test]
fn answers_are_input_in_both_forms() {
    let render =
        "berth render -f seeds/ipam.yaml --pool seeds/traffic-1.yaml seeds/traffic-2.yaml --node node01";
    let plan = "berth plan -f - --current seeds/state.yaml -o json";
    let yaml = line(&fixtures(), &format!("{render} | {plan}"));
    let json = line(&fixtures(), &format!("{render} -o json | {plan}"));
    assert_eq!((yaml.code, yaml.stderr.as_str()), (0, ""));
    assert_eq!(yaml, json);
    let steps: Value = serde_json::from_str(&yaml.stdout).unwrap();
    assert_eq!(steps["steps"].as_array().map(Vec::len), Some(3));
}

/// R53: chosen by hash, not by chance.
#[test]
fn the_same_input_gives_the_same_answer() {
    let render = "berth render -f more/one-pool.yaml --pool more/holders.yaml --node node10";
    assert_eq!(line(&fixtures(), render), line(&fixtures(), render));
}

/// R24, D16: in a pool that lists only offsets nobody is known, so nobody's address is used again.
#[test]
fn what_is_held_by_nobody_known_is_not_given() {
    for node in ["node01", "node02", "node03", "node04"] {
        let ran = line(
            &fixtures(),
            &format!("berth render -f more/one-pool.yaml --pool seeds/traffic-1.yaml --node {node} -o json"),
        );
        let state: Value = serde_json::from_str(&ran.stdout).unwrap();
        let ip = state["interfaces"][0]["ipv4"]["address"][0]["ip"].as_str().unwrap().to_owned();
        assert!(["10.10.10.9", "10.10.10.10"].contains(&ip.as_str()), "{node}: {ip}");
    }
}

/// Renders for a node from `more/holders.yaml` as changed, by way of standard input.
fn render_from(node: &str, change: impl Fn(&mut Value)) -> Ran {
    let text = fs::read_to_string(fixtures().join("more/holders.yaml")).expect("read the pool");
    let mut pool: Value = serde_saphyr::from_str(&text).expect("a pool");
    change(&mut pool);
    let arguments = ["render", "-f", "more/one-pool.yaml", "--pool", "-", "--node", node];
    berth(&fixtures(), &arguments, pool.to_string().as_bytes())
}

/// Rules 5 and 6, D16: where a server must not give, files give nothing either, not even to who holds something.
#[test]
fn a_pool_that_gives_nothing_says_why() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 5] = [
        ("it is being deleted", |pool| {
            pool["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
        }),
        ("it is on hold, by its annotation nmstate.io/hold", |pool| {
            pool["metadata"]["annotations"] = json!({"nmstate.io/hold": ""});
        }),
        ("it is being rebuilt, by its annotation nmstate.io/reset-ippool", |pool| {
            pool["metadata"]["annotations"] = json!({"nmstate.io/reset-ippool": "true"});
        }),
        ("it is being rebuilt, for status.rebuiltFor is not its metadata.uid", |pool| {
            pool["status"]["rebuiltFor"] = "another".into();
        }),
        ("it is being rebuilt, for allocated-offsets and allocations disagree", |pool| {
            pool["status"]["allocated-offsets"] = json!([1]);
        }),
    ];
    for node in ["node01", "node10"] {
        let ran = render_from(node, |_| ());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{node}");
        for (why, change) in cases {
            let ran = render_from(node, change);
            assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{node}: {why}");
            let expected = format!("pool traffic-1 gives nothing now: {why}\n");
            assert!(ran.stderr.ends_with(&expected), "{node}: {}", ran.stderr);
        }
    }
}

/// A manifest as a person writes it has no UID, or no status that was proven: its ledger counts as complete.
#[test]
fn a_plain_manifest_counts_as_proven() {
    let as_kept = render_from("node10", |_| ());
    let without = |section: &'static str, field: &'static str| {
        render_from("node10", move |pool| {
            pool[section].as_object_mut().unwrap().remove(field);
        })
    };
    assert_eq!(as_kept.code, 0, "{}", as_kept.stderr);
    assert_eq!(without("metadata", "uid"), as_kept);
    assert_eq!(without("status", "rebuiltFor"), as_kept);
}

/// R24: an entry is given back to its node only, with or without a UID.
#[test]
fn nodes_without_a_uid_are_told_apart_by_name() {
    // node02's entry has no UID: it is its own, and nobody else's.
    assert!(render_from("node02", |_| ()).stdout.contains("10.10.10.2\""));
    assert!(!render_from("node04", |_| ()).stdout.contains("10.10.10.2\""));
}

/// Rows are found by their edges, and none is lost between them: together they are the range, once.
#[test]
fn rows_cover_a_range_without_a_row_per_address() {
    let ran = line(&fixtures(), "berth pool explain -f more/octets-16.yaml -o json");
    let explained: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = explained["rows"].as_array().unwrap();
    // 255 octets with something free, as many gaps between 256 octets, and the excluded one: with the ends before and
    // after it, it is three rows in place of two gaps.
    assert_eq!(rows.len(), 511);
    let mut next = 0;
    let mut free = 0;
    for row in rows {
        let first = row["offset"].as_u64().unwrap();
        let last = row.get("lastOffset").map_or(first, |last| last.as_u64().unwrap());
        assert_eq!(first, next, "{row}");
        next = last + 1;
        free += if row["status"] == "free" { last - first + 1 } else { 0 };
    }
    assert_eq!(next, (1 << 16) - 2);
    assert_eq!(explained["available"].as_u64(), Some(free));
}

#[test]
fn nothing_on_standard_input() {
    let ran = berth(&fixtures(), &["render", "-f", "-"], b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert_eq!(ran.stderr, "error: standard input: there is no document in it\n");
}
