//! CRDs as YAML, ready for `kubectl apply`: no status, no nulls, the same bytes every time.

use serde_json::Value;
use thiserror::Error;

use crate::{Kind, schema};

/// The YAML could not be written.
#[derive(Debug, Error)]
#[error("write the CRD of {kind} as YAML")]
pub struct YamlError {
    pub kind: &'static str,
    #[source]
    pub source: serde_saphyr::ser_error::Error,
}

/// The CRD of one kind as YAML, as it stands in `crds/yaml`.
pub fn yaml(kind: Kind) -> Result<String, YamlError> {
    let mut value = serde_json::to_value(&kind.definition().crd).unwrap_or_default();
    plain(&mut value);
    serde_saphyr::to_string(&value).map_err(|source| YamlError { kind: kind.name(), source })
}

/// Removes nulls, and writes whole numbers as such.
fn plain(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, child| !child.is_null());
            map.values_mut().for_each(plain);
        }
        Value::Array(list) => list.iter_mut().for_each(plain),
        Value::Number(_) => *value = schema::whole(value),
        _ => {}
    }
}
