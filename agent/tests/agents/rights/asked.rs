//! What an account asked for, by the audit log of the API server.

use serde::Deserialize;
use serde_json::{Value, json};

use super::right::{Asked, Right};
use crate::cluster::{Cluster, NAMESPACE};

/// What of it is looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    user: User,
    /// None of what is no resource, such as `/version`.
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    #[serde(default)]
    annotations: Value,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    subresource: Option<String>,
    api_group: String,
    namespace: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
}

fn user(account: &str) -> String {
    format!("system:serviceaccount:{NAMESPACE}:{account}")
}

/// Whatever these service accounts ask, once it is answered.
pub(super) fn policy(accounts: &[&str]) -> Value {
    let users: Vec<String> = accounts.iter().map(|account| user(account)).collect();
    json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": users}, {"level": "None"}],
    })
}

/// How long the log is by now.
pub(super) fn written(real: &Cluster) -> usize {
    std::fs::metadata(real.plane.audit_log()).map_or(0, |about| usize::try_from(about.len()).unwrap_or(0))
}

/// Since it was so long.
pub(super) fn by_since(real: &Cluster, account: &str, written: usize) -> Asked {
    let log = std::fs::read(real.plane.audit_log()).unwrap_or_default();
    let since = log.get(written..).expect("the log is never begun anew");
    read(&String::from_utf8_lossy(since), account)
}

pub(super) fn by(real: &Cluster, account: &str) -> Asked {
    by_since(real, account, 0)
}

fn read(log: &str, account: &str) -> Asked {
    let mut asked = Asked::default();
    // The last line may be being written.
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for line in whole.lines() {
        let event: Event = serde_json::from_str(line).unwrap_or_else(|wrong| panic!("{wrong}: {line}"));
        if event.user.username == user(account) {
            event.add_to(&mut asked);
        }
    }
    asked
}

impl Event {
    fn add_to(self, asked: &mut Asked) {
        let Some(object) = self.object_ref else { return };
        let resource = match object.subresource {
            Some(subresource) => format!("{}/{subresource}", object.resource),
            None => object.resource,
        };
        let (group, verb) = (object.api_group, self.verb);
        let right = Right { resource, group, verb, namespace: object.namespace, name: object.name };
        let code = self.response_status.and_then(|status| status.code);
        match self.annotations["authorization.k8s.io/decision"].as_str() {
            Some("forbid") => drop(asked.refused.insert(right)),
            // Whoever is refused by admission every time has no use of it; what isn't there was asked for all the same.
            Some("allow") if code.is_some_and(|code| code != 403) => drop(asked.used.insert(right)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(user: &str, decision: &str, code: u16) -> String {
        let event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "stage": "ResponseComplete",
            "requestURI": "/apis/nmstate.io/v1/nodeippools/one/status", "verb": "patch",
            "user": {"username": user, "groups": ["system:authenticated"]},
            "objectRef": {"resource": "nodeippools", "name": "one", "apiGroup": "nmstate.io", "apiVersion": "v1", "subresource": "status"},
            "responseStatus": {"metadata": {}, "code": code},
            "annotations": {"authorization.k8s.io/decision": decision},
        });
        format!("{event}\n")
    }

    #[test]
    fn used_is_what_was_allowed_and_not_refused_by_admission() {
        let user = user("mine");
        let asked = |decision, code| {
            let asked = read(&line(&user, decision, code), "mine");
            (asked.used.len(), asked.refused.len())
        };
        assert_eq!(asked("allow", 200), (1, 0));
        assert_eq!(asked("allow", 409), (1, 0));
        assert_eq!(asked("allow", 403), (0, 0));
        assert_eq!(asked("forbid", 403), (0, 1));
    }

    #[test]
    fn others_and_half_a_line_are_left_out() {
        let (mine, others) = (line(&user("mine"), "allow", 200), line(&user("other"), "allow", 200));
        let asked = read(&format!("{others}{mine}{}", &mine[..40]), "mine");
        let right: Vec<String> = asked.used.iter().map(ToString::to_string).collect();
        assert_eq!(right, ["patch nodeippools/status (apiGroup \"nmstate.io\", name one)"]);
    }
}
