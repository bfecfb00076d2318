//! From a policy to its desired state in one call: what the agent and `berth render` share.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{fill, ipam, ipam_pools};
use crate::capture::{Bindings, Cached, Captures, Diagnostic, Diagnostics, Grants, Problem, shape};

/// The two parts of a policy that are rendered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyDoc {
    pub capture: BTreeMap<String, String>,
    pub desired_state: Value,
}

/// A policy, rendered.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    pub desired: Value,
    /// The captures' values, the anonymous ones of `ipam` among them: [`Bindings::captured_states`] is what to store.
    pub bindings: Bindings,
}

impl PolicyDoc {
    /// Reads a manifest (`spec.capture`, `spec.desiredState`) or a bare document of these two. `desired` is the
    /// word that nmstate's own policy files use for the latter.
    pub fn from_value(document: &Value) -> Result<Self, Diagnostics> {
        let (prefix, body) = match document.get("spec") {
            Some(spec) => ("spec.", spec),
            None => ("", document),
        };
        let Value::Object(fields) = body else {
            let path = if prefix.is_empty() { "policy" } else { "spec" };
            return Err(shape(path, "a map with capture and desiredState", body).into());
        };
        let desired_state =
            fields.get("desiredState").or_else(|| fields.get("desired")).cloned().unwrap_or_default();
        let mut capture = BTreeMap::new();
        let mut wrong = Vec::new();
        match fields.get("capture") {
            None | Some(Value::Null) => {}
            Some(Value::Object(lines)) => {
                for (name, line) in lines {
                    match line {
                        Value::String(line) => drop(capture.insert(name.clone(), line.clone())),
                        other => wrong.push(shape(&format!("{prefix}capture.{name}"), "text", other)),
                    }
                }
            }
            Some(other) => wrong.push(shape(&format!("{prefix}capture"), "a map of text", other)),
        }
        if fields.contains_key("desiredState") && fields.contains_key("desired") {
            let (one, other) = ("desiredState", "desired");
            wrong.push(Diagnostic::field(format!("{prefix}{other}"), Problem::SameTwice { one, other }));
        }
        if !matches!(desired_state, Value::Object(_) | Value::Null) {
            wrong.push(shape(&format!("{prefix}desiredState"), "a map", &desired_state));
        }
        Diagnostics::none_or(wrong, Self { capture, desired_state })
    }

    /// The addresses to ask for before rendering: capture → pool, anonymous captures of `ipam` included.
    pub fn pools(&self) -> Result<BTreeMap<String, String>, Diagnostics> {
        let (captures, anonymous) = self.parse()?;
        let named = captures.pools().into_iter().map(|(name, pool)| (name.to_owned(), pool.to_owned()));
        Ok(named.chain(anonymous).collect())
    }

    fn parse(&self) -> Result<(Captures, BTreeMap<String, String>), Diagnostics> {
        match (Captures::parse(&self.capture), ipam_pools(&self.desired_state)) {
            (Ok(captures), Ok(anonymous)) => {
                let wrong = ipam::collisions(&anonymous, &captures);
                Diagnostics::none_or(wrong, (captures, anonymous))
            }
            (Err(mut wrong), Err(more)) => {
                wrong.extend(more);
                Err(wrong)
            }
            (Err(wrong), Ok(_)) | (Ok(_), Err(wrong)) => Err(wrong),
        }
    }
}

/// Evaluates a policy's captures and fills its desired state. `current` is nmstate's document as observed, `cached`
/// what earlier renderings captured, `grants` what the pools gave, by capture.
pub fn render(
    policy: &PolicyDoc,
    current: &Value,
    cached: &Cached,
    grants: &Grants,
) -> Result<Rendered, Diagnostics> {
    let (captures, anonymous) = policy.parse()?;
    let mut bindings = match captures.eval(current, cached, grants) {
        Ok(bindings) => bindings,
        Err(mut wrong) => {
            // Whoever waits for addresses wants to hear of all that are missing.
            wrong.extend(ungranted(&anonymous, grants));
            return Err(wrong);
        }
    };
    for name in anonymous.keys() {
        if let Some(granted) = grants.get(name) {
            bindings.grant(name, granted, cached.get(name));
        }
    }
    let desired = fill(&policy.desired_state, &bindings)?;
    Ok(Rendered { desired, bindings })
}

fn ungranted(anonymous: &BTreeMap<String, String>, grants: &Grants) -> Vec<Diagnostic> {
    anonymous
        .iter()
        .filter(|(capture, _)| !grants.contains_key(*capture))
        .map(|(capture, pool)| {
            let problem = Problem::NoGrant { capture: capture.clone(), pool: pool.clone() };
            Diagnostic { place: crate::capture::Place::Capture(capture.clone()), spot: None, problem }
        })
        .collect()
}
