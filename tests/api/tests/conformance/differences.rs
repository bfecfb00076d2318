//! Where the embedded API may differ from a real one. Nothing else may, and no test asks which server it has but here.

use api_tests::server::{Answer, Server, Which};
use serde_json::Value;

/// What may differ, and why that is all right.
pub(crate) enum Difference {
    /// The embedded API keeps no `metadata.managedFields`. They serve server-side apply, which it doesn't do; they would
    /// double what it stores.
    ManagedFields,
    /// Server-side apply answers 415 there: no client of Berth uses it, and merging by owner is a machine of its own.
    ServerSideApply,
    /// For a path that it knows nothing of, a real one answers with a line of plain text, the embedded one with a Status.
    UnknownPath,
    /// What a real one's storage says of an object that is too large names etcd or gRPC. The code is the same.
    TooLarge,
    /// A real one shows the JSON or Go that it choked on in the words of Go's libraries. Code and reason are the same,
    /// and the embedded one says in its own words what is wrong.
    WordsOfGo,
    /// A resourceVersion that is no number is an internal error (500) in some of a real one's verbs. It is the client's
    /// mistake, and the embedded one says so with a code of a client's mistake.
    UnreadableVersion,
    /// A real one doesn't say which operation of a JSON patch failed. The embedded one may, in `details.causes`.
    WhichOperation,
    /// What the schema refuses, not a rule, both refuse for the same field and reason, each in its own words. The words of
    /// rules are the same: they are the CRD's.
    WordsOfTheSchema,
    /// With a page that is too old a real one offers a token for going on inconsistently. Clients that know Expired list
    /// anew instead, and so must those of the embedded one.
    InconsistentPages,
    /// A real one fills in empty structs of a Node (`nodeInfo`, `daemonEndpoints`), marks new Nodes with a taint, and
    /// writes null for times that are not set. Nobody reads those.
    EmptyFields,
}

/// An object without what only a real server keeps.
pub(crate) fn plain(mut object: Value) -> Value {
    let _why = Difference::ManagedFields;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.shift_remove("managedFields");
    }
    object
}

/// Whether this server does server-side apply.
pub(crate) fn applies(server: &Server) -> bool {
    let _why = Difference::ServerSideApply;
    server.which == Which::Real
}

/// A path that leads nowhere: 404, as a Status where one is promised.
#[track_caller]
pub(crate) fn leads_nowhere(server: &Server, answer: Answer) {
    let _why = Difference::UnknownPath;
    assert_eq!(answer.code, 404, "{}: {}", answer.asked, answer.text);
    if server.which == Which::Embedded {
        answer.refused(404, "NotFound");
    }
}

/// Too large to be stored, though not to be read.
#[track_caller]
pub(crate) fn too_large_to_store(answer: &Answer) {
    let _why = Difference::TooLarge;
    assert_eq!(answer.code, 500, "{}: {}", answer.asked, answer.text);
    let message = answer.body["message"].as_str().unwrap_or_default();
    assert!(message.contains("too large") || message.contains("larger than max"), "{}", answer.text);
}

/// The message begins with these words; what follows is Go's, or the embedded API's own.
#[track_caller]
pub(crate) fn begins(answer: Answer, code: u16, reason: &str, words: &str) {
    let _why = Difference::WordsOfGo;
    let status = answer.refused(code, reason);
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.starts_with(words) && message.len() > words.len(), "{message}");
}

/// A Node's conditions, without the times that are null.
pub(crate) fn conditions(node: &Value) -> Vec<(String, String)> {
    let _why = Difference::EmptyFields;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().map(|condition| (text(&condition["type"]), text(&condition["status"]))).collect()
}

/// A version that is no number is refused, as a Status.
#[track_caller]
pub(crate) fn unreadable(server: &Server, answer: &Answer) {
    let _why = Difference::UnreadableVersion;
    let codes = if server.which == Which::Real { 400..=500 } else { 400..=499 };
    assert!(codes.contains(&answer.code), "{}: {}", answer.asked, answer.text);
    assert_eq!(
        (&answer.body["kind"], &answer.body["code"]),
        (&"Status".into(), &answer.code.into()),
        "{}",
        answer.text
    );
}

/// A JSON patch that can't be applied: 422, and these words.
#[track_caller]
pub(crate) fn patch_rejected(server: &Server, answer: Answer) {
    let _why = Difference::WhichOperation;
    let words = "the server rejected our request due to an error in our request";
    let status = answer.says(422, "Invalid", words);
    if server.which == Which::Real {
        assert_eq!(status["details"], serde_json::json!({}));
    }
}

/// What the schema refuses: these fields for these reasons and no others, whatever the words.
#[track_caller]
pub(crate) fn refused_by_schema(answer: Answer, fields: &[(&str, &str)]) {
    let _why = Difference::WordsOfTheSchema;
    let status = answer.refused(422, "Invalid");
    let (mut found, mut expected) = (crate::support::causes(&status), fields.to_vec());
    found.retain(|cause| *cause != RULES_NOT_ASKED);
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{status}");
    for field in fields {
        assert!(status["message"].as_str().is_some_and(|message| message.contains(field.0)), "{status}");
    }
}

/// How a real one says that it didn't ask the rules of an object whose types are wrong.
const RULES_NOT_ASKED: (&str, &str) = ("<nil>", "FieldValueInvalid");

/// After a page that is too old: a token, where there is one, leads on.
pub(crate) async fn goes_on(server: &Server, expired: &Value, collection: &str) {
    let _why = Difference::InconsistentPages;
    match expired["metadata"]["continue"].as_str() {
        Some(token) => drop(server.get(&format!("{collection}?limit=2&continue={token}")).await.ok()),
        None => assert_eq!(server.which, Which::Embedded, "{expired}"),
    }
}
