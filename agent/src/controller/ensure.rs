//! Pools that the controller's configuration lists (R81, R103): each is there, or made.
//!
//! Created when there is none of its name, at the start and whenever it is gone; never changed, shrunk or deleted. Where
//! one of its name says something else that is told once, with what to do: a spec is people's to change, and the ranges
//! that they append are theirs. Cost: nothing while the pools are there.

use std::collections::BTreeMap;

use crds::NodeIPPool;
use crds::names::label::FROM_CONFIGURATION;
use kube::api::{Api, PostParams};
use kube::{Resource, ResourceExt};
use policy::claim::PoolName;
use serde_json::Value;

use super::{Lead, told};
use crate::api::error::{Trouble, trouble, words};
use crate::telemetry::{say, warn};

impl Lead {
    /// A pool that is not there and should be: made. Whether it was.
    pub(super) async fn ensure(&self, name: &PoolName) -> Result<bool, kube::Error> {
        let Some(wanted) = self.settings.ensure.get(name.as_str()) else { return Ok(false) };
        let mut object = wanted.clone();
        object.status = None;
        let labels = object.metadata.labels.get_or_insert_default();
        labels.insert(FROM_CONFIGURATION.to_owned(), "true".to_owned());
        let api: Api<NodeIPPool> = Api::all(self.client.clone());
        match api.create(&PostParams::default(), &object).await {
            Ok(made) => {
                say(&format!("pool {name}: made, as the configuration has it"));
                self.known.fresh_pool(made);
                Ok(true)
            }
            Err(error) => match trouble(&error) {
                // The watch tells.
                Trouble::Exists => Ok(true),
                // As it is it will not be taken: said, and not tried for ever.
                Trouble::Refused | Trouble::Forbidden => {
                    warn(&format!("pool {name} of the configuration can't be made: {}", words(&error)));
                    Ok(false)
                }
                _ => Err(error),
            },
        }
    }

    /// Does a pool have what the configuration gives it? Told where it doesn't, once for each version of its spec.
    pub(super) fn compare_with_configuration(&self, pool: &NodeIPPool) {
        let Some(wanted) = self.settings.ensure.get(&pool.name_any()) else { return };
        let lacks = lacking(wanted, pool);
        let version = pool.metadata.generation.unwrap_or_default();
        let mut told = self.ensured.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = told.insert(pool.name_any(), version);
        if !lacks.is_empty() && before != Some(version) {
            warn(&format!("pool {}: {} differ from the configuration", pool.name_any(), lacks.join(", ")));
            told::differs(&self.events, pool.object_ref(&()), &lacks);
        }
    }
}

/// What of the wanted spec a pool lacks: fields, or ranges by name. What it has besides is somebody's wish.
fn lacking(wanted: &NodeIPPool, pool: &NodeIPPool) -> Vec<String> {
    let spec = |pool: &NodeIPPool| serde_json::to_value(&pool.spec).unwrap_or_default();
    let (wanted, is) = (spec(wanted), spec(pool));
    let ranges = by_name(&is["ranges"]);
    let mut lacks = Vec::new();
    for (field, value) in wanted.as_object().into_iter().flatten() {
        match field.as_str() {
            // `range: X` may have become `ranges: [X, …]`.
            "range" if is["range"].is_null() => {}
            "ranges" => {
                let named = by_name(value);
                let lacking =
                    named.iter().filter(|(name, range)| !ranges.get(*name).is_some_and(|is| has(is, range)));
                lacks.extend(lacking.map(|(name, _)| format!("range {name}")));
            }
            _ if !has(&is[field], value) => lacks.push(field.clone()),
            _ => {}
        }
    }
    lacks.sort();
    lacks
}

/// Has it all of this? What a server added by itself, or a person later, is no difference.
fn has(is: &Value, wanted: &Value) -> bool {
    match (is, wanted) {
        (Value::Object(is), Value::Object(wanted)) => {
            wanted.iter().all(|(field, value)| is.get(field).is_some_and(|is| has(is, value)))
        }
        (Value::Array(is), Value::Array(wanted)) => wanted.iter().all(|one| is.contains(one)),
        _ => is == wanted,
    }
}

fn by_name(ranges: &Value) -> BTreeMap<&str, &Value> {
    let named = ranges.as_array().into_iter().flatten();
    named.filter_map(|range| Some((range["name"].as_str()?, range))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool(spec: &Value) -> NodeIPPool {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a pool")
    }

    #[test]
    fn r81_r103_what_people_added_is_no_difference() {
        let one = json!({"name": "a", "cidr": "10.0.0.0/24"});
        let more = json!({"name": "b", "cidr": "10.0.1.0/24"});
        let wanted = pool(&json!({"ranges": [one], "quarantine": "5m"}));
        let grown = pool(&json!({"ranges": [one, more], "quarantine": "5m", "staticBand": "None"}));
        assert!(lacking(&wanted, &grown).is_empty());
        assert_eq!(lacking(&grown, &wanted), ["range b", "staticBand"]);
        let other = pool(&json!({"ranges": [{"name": "a", "cidr": "10.9.0.0/24"}], "quarantine": "1m"}));
        assert_eq!(lacking(&wanted, &other), ["quarantine", "range a"]);
        let marked = pool(&json!({"ranges": [{"name": "a", "cidr": "10.0.0.0/24", "state": "Draining",
            "exclude": ["10.0.0.9"]}], "quarantine": "5m"}));
        assert!(lacking(&wanted, &marked).is_empty(), "it drains, and keeps more free");
        let single = pool(&json!({"range": {"cidr": "10.0.0.0/24"}}));
        assert!(lacking(&single, &grown).is_empty(), "range may have become ranges");
        assert_eq!(lacking(&single, &pool(&json!({"range": {"cidr": "10.0.0.0/23"}}))), ["range"]);
    }
}
