//! Tests of templates; whole policies are goldens (`goldens/render`).

mod check;
mod fill;
mod ipam;
mod literals;
mod render;
mod retype;

use serde_json::Value;

use crate::capture::Bindings;
use crate::capture::tests::eval;

/// `nic`: eth1 of the capture tests' state; `all`: the whole state.
fn bindings() -> Bindings {
    eval(&[("nic", "interfaces.name==eth1"), ("all", "")]).unwrap()
}

fn fill(document: &Value) -> Result<Value, String> {
    super::fill(document, &bindings()).map_err(|wrong| wrong.to_string())
}
