//! Tests of the model: what is read, what is refused, what is kept.

mod documents;
mod link_locals;
mod shown;
mod words;

use super::{Desired, Observed};
use serde_json::Value;

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("test YAML parses")
}

fn desired(text: &str) -> Desired {
    Desired::from_value(&yaml(text)).unwrap_or_else(|e| panic!("{e}"))
}

fn refusals(text: &str) -> String {
    Desired::from_value(&yaml(text)).expect_err("is refused").to_string()
}

fn observed(text: &str) -> Observed {
    Observed::from_value(&yaml(text)).unwrap_or_else(|e| panic!("{e}"))
}
