//! The table of manifests, asked of a real API server: its CEL and our Rust agree, and say the same words.

use std::net::{Ipv4Addr, Ipv6Addr};

use api_tests::cases::{Cause, collection, expected};
use api_tests::server;
use api_tests::server::{Answer, Server};
use api_tests::wait::until;
use crds::Kind;
use crds::rules::Operation;
use crds::testing::{Case, cases};
use serde_json::{Value, json};

/// What a server refused an object for. Where it could not ask its rules, it says so in a cause without a field.
fn causes(answer: &Answer) -> Vec<Cause> {
    if matches!(answer.code, 200 | 201) {
        return Vec::new();
    }
    assert_eq!(answer.code, 422, "{}: {}", answer.asked, answer.text);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let causes = answer.body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let mut found: Vec<Cause> = causes
        .iter()
        .filter(|cause| !text(&cause["message"]).contains("some validation rules were not checked"))
        .map(|cause| Cause {
            field: text(&cause["field"]).replace("<nil>", ""),
            reason: text(&cause["reason"]),
            words: Some(text(&cause["message"])),
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Whether the server said what Rust says: field and reason, and the words of a rule after those of the reason. Of a
/// rule about a single text or number the server also shows that.
fn agrees(rust: &Cause, server: &Cause) -> bool {
    let said = server.words.as_deref().unwrap_or_default();
    let has_words = rust.words.as_deref().is_none_or(|words| match rust.reason.as_str() {
        "FieldValueForbidden" => said == format!("Forbidden: {words}"),
        _ => said
            .strip_prefix("Invalid value: ")
            .and_then(|rest| rest.strip_suffix(words))
            .is_some_and(is_value),
    });
    rust.field == server.field && rust.reason == server.reason && has_words
}

/// Nothing, or a text or number in JSON with a colon after it.
fn is_value(shown: &str) -> bool {
    let value = |shown: &str| serde_json::from_str::<Value>(shown).is_ok_and(|value| !value.is_object());
    shown.is_empty() || shown.strip_suffix(": ").is_some_and(value)
}

/// Asks the server for one case, by the door that what is new comes through. Leaves nothing behind.
async fn ask(s: &Server, kind: Kind, case: &Case) -> Vec<Cause> {
    let all = collection(kind);
    let name = case.new["metadata"]["name"].as_str().unwrap_or_default();
    let Some(old) = &case.old else {
        return causes(&s.post(&format!("{all}?dryRun=All"), &case.new).await);
    };
    let path = format!("{all}/{name}");
    let mut now = s.post(&all, old).await.created();
    if old.get("status").is_some() {
        now["status"] = old["status"].clone();
        now = s.put(&format!("{path}/status"), &now).await.ok();
    }
    let mut new = case.new.clone();
    new["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    let differs = |field: &str| old.get(field) != case.new.get(field);
    let mut found = Vec::new();
    if differs("spec") || differs("metadata") || !differs("status") {
        found.extend(causes(&s.put(&format!("{path}?dryRun=All"), &new).await));
    }
    if differs("status") {
        found.extend(causes(&s.put(&format!("{path}/status?dryRun=All"), &new).await));
    }
    s.delete(&path).await.ok();
    found
}

fn check(kind: Kind) {
    server::run(Server::real(), async |s| compare(&s, kind, &cases(kind)).await);
}

async fn compare(s: &Server, kind: Kind, all: &[Case]) {
    let mut wrong = Vec::new();
    for case in all {
        // What only an admission policy refuses, a CRD must accept: else it would be a rule.
        let rust = if case.is_admission { Vec::new() } else { expected(kind, case) };
        let server = ask(s, kind, case).await;
        let same =
            rust.len() == server.len() && rust.iter().zip(&server).all(|(rust, server)| agrees(rust, server));
        if !same {
            wrong.push(format!("{}:\n  Rust   {rust:?}\n  server {server:?}", case.name));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases of {}:\n{}",
        wrong.len(),
        all.len(),
        kind.name(),
        wrong.join("\n")
    );
}

/// R11, R61, R84, R94: what may be written and changed, field by field and both ways.
#[test]
fn node_ip_pool() {
    check(Kind::NodeIPPool);
}

/// R2: CEL has no order of addresses, so the rule finds it bit by bit. Every bit must count.
#[test]
fn r2_start_and_end_are_ordered_by_every_bit() {
    // Below the bit that decides, the lower address is all ones and the higher all zeros.
    let v4 = (0..32).map(|bit| {
        let high = 0xA5A5_A5A5_u32 >> (31 - bit) << (31 - bit) | 1 << (31 - bit);
        ("0.0.0.0/0", Ipv4Addr::from(high - 1).to_string(), Ipv4Addr::from(high).to_string())
    });
    let v6 = (0..128).map(|bit| {
        let high = (u128::MAX / 3) >> (127 - bit) << (127 - bit) | 1 << (127 - bit);
        ("::/0", Ipv6Addr::from(high - 1).to_string(), Ipv6Addr::from(high).to_string())
    });
    let kind = Kind::NodeIPPool;
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for (cidr, low, high) in v4.chain(v6) {
        for (start, end, ordered) in [(&low, &high, true), (&high, &low, false)] {
            let case = pool(cidr, start, end);
            // Only in networks that are refused for their size can the highest bits differ.
            let is_ordered = expected(kind, &case).iter().all(|cause| cause.field != "spec.range.start");
            wrong.extend((is_ordered != ordered).then(|| case.name.clone()));
            all.push(case);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    server::run(Server::real(), async |s| compare(&s, kind, &all).await);
}

fn pool(cidr: &str, start: &str, end: &str) -> Case {
    let new = json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": "bits"},
        "spec": {"range": {"cidr": cidr, "start": start, "end": end}},
    });
    Case { name: format!("{start} to {end}"), old: None, new, refused: Vec::new(), is_admission: false }
}

#[test]
fn node_ip_slice() {
    check(Kind::NodeIPSlice);
}

/// And then what CRDs can't refuse, by policies made of the same rules.
#[test]
fn node_network_configuration_policy() {
    let kind = Kind::NodeNetworkConfigurationPolicy;
    check(kind);
    server::run(Server::real(), |s| async move {
        let flagged: Vec<Case> = cases(kind).into_iter().filter(|case| case.is_admission).collect();
        assert!(!flagged.is_empty());
        install_policies(&s, kind).await;
        let mut wrong = Vec::new();
        for case in &flagged {
            let words = expected(kind, case).pop().and_then(|cause| cause.words).expect("words");
            // A policy takes a moment to be in force.
            until(&format!("{}: refused", case.name), || async {
                let refused = ask_policy(&s, kind, case).await;
                if refused.code == 422 { Ok(refused) } else { Err(refused.text) }
            })
            .await;
            let refused = ask_policy(&s, kind, case).await;
            let message = refused.body["message"].as_str().unwrap_or_default();
            if !message.ends_with(&words) || refused.body["reason"] != "Invalid" {
                wrong.push(format!("{}:\n  Rust   {words}\n  server {}", case.name, refused.text));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

async fn ask_policy(s: &Server, kind: Kind, case: &Case) -> Answer {
    let all = collection(kind);
    let Some(old) = &case.old else {
        return s.post(&format!("{all}?dryRun=All"), &case.new).await;
    };
    let path = format!("{all}/{}", case.new["metadata"]["name"].as_str().unwrap_or_default());
    let mut now = s.post(&all, old).await.created();
    now["status"] = old["status"].clone();
    now = s.put(&format!("{path}/status"), &now).await.ok();
    let mut new = case.new.clone();
    new["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    let answer = s.put(&format!("{path}?dryRun=All"), &new).await;
    s.delete(&path).await.ok();
    answer
}

/// A policy and its binding for each rule that a CRD can't hold.
async fn install_policies(s: &Server, kind: Kind) {
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let spec = &kind.definition().crd.spec;
    for (number, rule) in kind.definition().admission.iter().enumerate() {
        let name = format!("case-{number}.nmstate.io");
        let operation = match rule.operation {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
        };
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [spec.group], "apiVersions": ["*"], "operations": [operation],
                    "resources": [spec.names.plural],
                }]},
                "validations": [{"expression": rule.cel, "messageExpression": rule.say, "reason": "Invalid"}],
            },
        });
        s.post(&format!("{admission}/validatingadmissionpolicies"), &policy).await.created();
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]},
        });
        s.post(&format!("{admission}/validatingadmissionpolicybindings"), &binding).await.created();
    }
}

#[test]
fn node_network_configuration_enactment() {
    check(Kind::NodeNetworkConfigurationEnactment);
}

#[test]
fn node_network_state() {
    check(Kind::NodeNetworkState);
}

/// An instrument that agrees with everything would prove nothing.
#[test]
fn a_difference_would_be_seen() {
    let rust =
        Cause { field: "spec.x".into(), reason: "FieldValueInvalid".into(), words: Some("x is odd".into()) };
    let server = Cause { words: Some("Invalid value: x is odd".into()), ..rust.clone() };
    assert!(agrees(&rust, &server));
    assert!(agrees(&rust, &Cause { words: Some("Invalid value: \"7\": x is odd".into()), ..server.clone() }));
    assert!(!agrees(&rust, &Cause { words: Some("Invalid value: x is even".into()), ..server.clone() }));
    assert!(!agrees(&rust, &Cause { words: Some("Invalid value: not x is odd".into()), ..server.clone() }));
    assert!(!agrees(&rust, &Cause { field: "spec.y".into(), ..server.clone() }));
    assert!(!agrees(&rust, &Cause { reason: "FieldValueForbidden".into(), ..server }));
}
