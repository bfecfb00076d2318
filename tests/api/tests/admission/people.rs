//! What nobody may write into a policy: the cases of `crds/cases` that only an admission policy refuses, on those of `deploy/`.

use api_tests::RUNTIME;
use api_tests::cases::expected;
use api_tests::server::paths::{POLICIES, at, status};
use api_tests::server::{Answer, Server};
use crds::rules::Operation;
use crds::testing::{Case, cases};
use crds::{Kind, Reason};
use serde_json::Value;

use super::ground::Ground;

const KIND: Kind = Kind::NodeNetworkConfigurationPolicy;
const VAPS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

async fn ask(admin: &Server, case: &Case) -> Answer {
    let Some(old) = &case.old else {
        return admin.post(&format!("{POLICIES}?dryRun=All"), &case.new).await;
    };
    let name = case.new["metadata"]["name"].as_str().expect("a name");
    let mut now = admin.post(POLICIES, old).await.created();
    if let Some(written) = old.get("status") {
        now["status"] = written.clone();
        now = admin.put(&status(POLICIES, name), &now).await.ok();
    }
    let mut new = case.new.clone();
    new["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    let answer = admin.put(&format!("{}?dryRun=All", at(POLICIES, name)), &new).await;
    admin.delete(&at(POLICIES, name)).await.ok();
    answer
}

/// Also that what Rust lets pass does pass: a longer name that is there already stays writable.
#[test]
fn what_people_may_not_write_is_refused_in_known_words() {
    let ground = Ground::real();
    RUNTIME.block_on(async {
        let mut refused = 0;
        for case in cases(KIND) {
            let words = expected(KIND, &case).pop().and_then(|cause| cause.words);
            match (case.is_admission, words) {
                (true, Some(words)) => {
                    let answer = ask(&ground.admin, &case).await;
                    assert!(matches!(answer.code, 403 | 422), "{}: {}", case.name, answer.text);
                    let message = answer.body["message"].as_str().unwrap_or_default();
                    assert!(message.ends_with(&words), "{}: {message}", case.name);
                    refused += 1;
                }
                // A policy that is there already can be there only if it was made before this rule.
                (false, None) if is_short(&case) => {
                    let answer = ask(&ground.admin, &case).await;
                    assert!(matches!(answer.code, 200 | 201), "{}: {}", case.name, answer.text);
                }
                _ => {}
            }
        }
        assert!(refused >= 3, "{refused}");
    });
}

fn is_short(case: &Case) -> bool {
    let name = case.new["metadata"]["name"].as_str().unwrap_or_default();
    case.refused.is_empty() && name.len() <= 63
}

/// The policies of `deploy/admission` say what the rules in Rust say beside their CEL.
#[test]
fn the_policies_are_those_of_the_rules() {
    let ground = Ground::real();
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    RUNTIME.block_on(async {
        for rule in &KIND.definition().admission {
            let name = match rule.operation {
                Operation::Create => "berth-policies-create",
                Operation::Update => "berth-policies-update",
            };
            let policy = ground.admin.get(&format!("{VAPS}/{name}")).await.ok();
            let found = policy["spec"]["validations"][0].clone();
            let text = |field: &str| plain(found[field].as_str().unwrap_or_default());
            assert_eq!(text("expression"), plain(rule.cel), "{name}");
            assert_eq!(text("messageExpression"), plain(rule.say), "{name}");
            let reason = if rule.reason == Reason::Forbidden { "Forbidden" } else { "Invalid" };
            assert_eq!(found["reason"], Value::from(reason), "{name}");
        }
    });
}
