//! What the API leaves out of what is written to an enactment: its schema is not Berth's.
//!
//! An API server drops fields that a CRD doesn't have, and says so in a header alone. Where the CRDs are kubernetes-nmstate's nothing that
//! is written would ever be there: it would be written again and again, and no policy applied.

use crds::NodeNetworkConfigurationEnactment;
use serde_json::Value;

/// What the answer to a write of a status lacks, of the two fields that nobody's schema has but Berth's.
pub(super) fn left_out(sent: &Value, now: &NodeNetworkConfigurationEnactment) -> Option<&'static str> {
    let status = now.status.as_ref();
    let asks =
        |claims: &Value| claims["requests"].as_object().is_some_and(|all| all.values().any(Value::is_object));
    let is_asked = sent["ippool"].as_object().is_some_and(|pools| pools.values().any(asks));
    if sent["policyUID"].is_string() && status.is_none_or(|status| status.policy_uid.is_none()) {
        return Some("status.policyUID");
    }
    (is_asked && status.is_none_or(|status| status.ippool.is_empty())).then_some("status.ippool")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_another_schema_leaves_out_is_found() {
        let own = |status: &Value| -> NodeNetworkConfigurationEnactment {
            serde_json::from_value(json!({"metadata": {"name": "a.b"}, "status": status})).unwrap()
        };
        let asked = json!({"pool": {"requests": {"capture": {"id": "1", "want": true}}}});
        let gone = json!({"pool": {"requests": {"capture": null}}});
        let theirs = own(&json!({"policyGeneration": 1}));
        let ours = own(&json!({"policyUID": "u", "ippool": asked}));
        for (sent, theirs_lacks) in [
            (json!({"policyUID": "u", "ippool": {}}), Some("status.policyUID")),
            (json!({"ippool": asked}), Some("status.ippool")),
            (json!({"ippool": gone}), None),
            (json!({"ippool": {"pool": null}}), None),
            (json!({"conditions": []}), None),
        ] {
            assert_eq!((left_out(&sent, &theirs), left_out(&sent, &ours)), (theirs_lacks, None), "{sent}");
        }
    }
}
