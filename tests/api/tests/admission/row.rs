//! One attempt of the table: what is there, what is tried, what is told; and how it is tried on a server.

use std::collections::BTreeSet;

use api_tests::server::paths::at;
use api_tests::server::{Answer, JSON_PATCH, Server};
use crds::names::annotation;
use hyper::Method;
use serde_json::{Value, json};

use super::ground::{Asker, Ground};

/// Stands in a row for the UID of the object that the row is about, which its server gives it.
pub(crate) const ITS_UID: &str = "$UID";

pub(crate) type Change = Box<dyn Fn(&mut Value) + Send + Sync>;

/// What is tried.
pub(crate) enum Act {
    Create(Value),
    /// The object, changed: by a patch, which is what agents and controllers send.
    Patch(Change),
    /// Its status.
    PatchStatus(Change),
    /// Its status, replaced: what an agent does to its report.
    PutStatus(Change),
    Delete,
    /// All objects of the kind.
    DeleteAll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Agent,
    Controller,
    /// Who may do everything.
    Person,
}

/// Who decides on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The right is there: the policies decide.
    Admission,
    /// No right is given; were it, the policies would decide the same.
    RightsAndAdmission,
    /// No right is given, and no policy asks.
    Rights,
    /// The object is against the CRD, whoever writes it.
    Schema,
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) who: Who,
    /// The path of its kind.
    pub(crate) kind: &'static str,
    /// What is there before, made by an administrator: with a deletionTimestamp it is one that waits for its finalizers.
    pub(crate) old: Option<Value>,
    pub(crate) act: Act,
    /// What it is refused for; nothing: it is not.
    pub(crate) told: Option<String>,
    pub(crate) by: By,
}

/// A run of the table on one server.
pub(crate) struct Run<'a> {
    ground: &'a Ground,
    pub(crate) wrong: Vec<String>,
    /// The policies that refused something.
    pub(crate) refused_by: BTreeSet<String>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(ground: &'a Ground) -> Run<'a> {
        Run { ground, wrong: Vec::new(), refused_by: BTreeSet::new() }
    }

    /// Tries one row. Leaves nothing behind.
    pub(crate) async fn row(&mut self, row: &Row) {
        let who = match row.who {
            Who::Agent => &self.ground.agent,
            Who::Controller => &self.ground.controller,
            Who::Person => &self.ground.person,
        };
        let Some((agent, controller)) = &self.ground.unbridled else {
            let answer = self.attempt(row, who).await;
            return self.compare(row, &answer);
        };
        match row.by {
            By::Admission | By::Schema => {
                let answer = self.attempt(row, who).await;
                self.compare(row, &answer);
            }
            By::Rights => {
                let answer = self.attempt(row, who).await;
                self.lacks_right(row, &answer);
            }
            By::RightsAndAdmission => {
                let answer = self.attempt(row, who).await;
                self.lacks_right(row, &answer);
                let free = if row.who == Who::Agent { agent } else { controller };
                let answer = self.attempt(row, free).await;
                self.compare(row, &answer);
            }
        }
    }

    async fn attempt(&self, row: &Row, who: &Asker) -> Answer {
        let admin = &self.ground.admin;
        let old = match &row.old {
            Some(old) => Some(set_up(admin, row.kind, old).await),
            None => None,
        };
        let made = match (&old, &row.act) {
            (Some(old), _) => name(old),
            (None, Act::Create(new)) => name(new),
            (None, _) => "",
        };
        let answer = act(who, row, old.as_ref()).await;
        tidy(admin, &at(row.kind, made)).await;
        answer
    }

    fn compare(&mut self, row: &Row, answer: &Answer) {
        let (code, message) = said(answer);
        let (policy, words) = match message.split_once(" denied request: ") {
            Some((by, words)) => (by.split('\'').nth(1), words),
            None => (None, message.split_once(" is forbidden: ").map_or(message, |(_, words)| words)),
        };
        self.refused_by.extend(policy.map(str::to_owned));
        let right = match (&row.told, row.by) {
            (None, _) => code < 300,
            (Some(told), By::Schema) => code == 422 && message.contains(told.as_str()),
            (Some(told), _) => code == 403 && words == told,
        };
        if !right {
            let expected = row.told.as_deref().unwrap_or("nothing");
            self.wrong.push(format!("{}: expected {expected:?}\n    got {code} {message}", row.name));
        }
    }

    /// RBAC's words, which name the account.
    fn lacks_right(&mut self, row: &Row, answer: &Answer) {
        let (code, message) = said(answer);
        if code != 403 || !message.contains("User \"system:serviceaccount:berth-system:berth-") {
            self.wrong.push(format!("{}: expected RBAC to refuse it\n    got {code} {message}", row.name));
        }
    }
}

fn said(answer: &Answer) -> (u16, &str) {
    (answer.code, answer.body["message"].as_str().unwrap_or_default())
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

/// Makes what is there before; as the server has it then.
pub(crate) async fn set_up(admin: &Server, kind: &str, old: &Value) -> Value {
    let mut object = old.clone();
    let leaves = object["metadata"].as_object_mut().and_then(|meta| meta.shift_remove("deletionTimestamp"));
    let status = object.as_object_mut().and_then(|object| object.shift_remove("status"));
    let mut now = admin.post(kind, &object).await.created();
    let path = at(kind, name(old));
    if let Some(status) = status {
        let uid = now["metadata"]["uid"].as_str().expect("a UID").to_owned();
        let text = status.to_string().replace(ITS_UID, &uid);
        // Read anew: what has no living owner is being deleted by now, where that is done in the same write.
        now = admin.get(&path).await.ok();
        now["status"] = serde_json::from_str(&text).expect("a status");
        now = admin.put(&format!("{path}/status"), &now).await.ok();
    }
    if leaves.is_some() {
        admin.delete(&path).await.ok();
    }
    match leaves {
        Some(_) => admin.get(&path).await.ok(),
        None => now,
    }
}

async fn act(who: &Asker, row: &Row, old: Option<&Value>) -> Answer {
    let old = |_: ()| old.unwrap_or_else(|| panic!("{}: nothing is there to be changed", row.name));
    let path = |suffix: &str| format!("{}{suffix}", at(row.kind, name(old(()))));
    match &row.act {
        Act::Create(new) => who.ask(Method::POST, row.kind, "application/json", new).await,
        Act::Patch(change) => {
            who.ask(Method::PATCH, &path(""), JSON_PATCH, &difference(old(()), change)).await
        }
        Act::PatchStatus(change) => {
            who.ask(Method::PATCH, &path("/status"), JSON_PATCH, &difference(old(()), change)).await
        }
        Act::PutStatus(change) => {
            let mut new = old(()).clone();
            change(&mut new);
            who.ask(Method::PUT, &path("/status"), "application/json", &new).await
        }
        Act::Delete => who.ask(Method::DELETE, &path(""), "application/json", &Value::Null).await,
        Act::DeleteAll => who.ask(Method::DELETE, row.kind, "application/json", &Value::Null).await,
    }
}

/// A JSON patch that makes the changed object of the old one.
fn difference(old: &Value, change: &Change) -> Value {
    let mut new = old.clone();
    change(&mut new);
    let fields = new.as_object().into_iter().flatten();
    let differing = fields.filter(|(field, value)| old.get(field.as_str()) != Some(value));
    differing
        .map(|(field, value)| json!({"op": "add", "path": format!("/{field}"), "value": value}))
        .collect()
}

/// Takes away what a row has made, if it is still there.
pub(crate) async fn tidy(admin: &Server, path: &str) {
    let there = admin.get(path).await;
    if there.code == 200 && there.body["metadata"]["name"].is_string() {
        // That a slice goes with what is held in it is meant.
        let slice: Option<crds::NodeIPSlice> = serde_json::from_value(there.body.clone()).ok();
        let held = slice.map_or(0, |slice| slice.ledger().allocations.len());
        let meant = json!({annotation::CONFIRM_RELEASE: held.to_string()});
        if held > 0 || there.body["metadata"]["finalizers"].is_array() {
            admin.merge(path, &json!({"metadata": {"finalizers": null, "annotations": meant}})).await;
        }
        admin.delete(path).await;
    }
}
