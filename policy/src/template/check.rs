//! What is wrong with a policy whatever addresses its pools will give: looked at before any is asked for, so that nothing is
//! claimed for what can never be rendered. The agent calls it.
//!
//! The template is filled with addresses that stand for any (of documentation, RFC 5737 and RFC 3849). What then depends on
//! what is granted counts for nothing: attributes of a range, and all of captures that look at a grant. Cost: a rendering.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{PolicyDoc, render};
use crate::capture::{Cached, Diagnostic, Diagnostics, Granted, GrantedAddress, Grants, Problem};

/// What is wrong with a policy before it has any address, besides that it has none.
pub fn check(policy: &PolicyDoc, current: &Value, cached: &Cached) -> Result<(), Diagnostics> {
    match render(policy, current, cached, &Grants::new()) {
        Ok(_) => return Ok(()),
        Err(wrong) if !wrong.only_missing_grants() => return Err(wrong),
        Err(_) => {}
    }
    let pools = policy.pools()?;
    let Some(any) = any() else { return Ok(()) };
    let grants: Grants = pools.keys().map(|capture| (capture.clone(), any.clone())).collect();
    let Err(wrong) = render(policy, current, cached, &grants) else { return Ok(()) };
    let derived = derived(policy, pools.keys().map(String::as_str).collect());
    let sure = wrong.into_iter().filter(|one| !depends(one, &pools, &derived)).collect();
    Diagnostics::none_or(sure, ())
}

/// A grant with all that one may have.
fn any() -> Option<Granted> {
    let one = |address: &str, gateway: &str| {
        Some(GrantedAddress { address: address.parse().ok()?, gateway: gateway.parse().ok() })
    };
    let address = one("192.0.2.1/24", "192.0.2.254")?;
    let second = one("2001:db8::1/64", "2001:db8::fe")?;
    Some(Granted { address, second: Some(second), range: "any".to_owned(), attributes: Default::default() })
}

/// Captures that look at one of these, or at one that does.
fn derived<'a>(policy: &'a PolicyDoc, mut of: BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let granted = of.clone();
    loop {
        let looks = |line: &str| of.iter().any(|name| line.contains(&format!("capture.{name}")));
        let more = policy.capture.iter().filter(|(_, line)| looks(line)).map(|(name, _)| name.as_str());
        let all: BTreeSet<&str> = of.iter().copied().chain(more).collect();
        if all == of {
            return of.difference(&granted).copied().collect();
        }
        of = all;
    }
}

/// Might another grant make it right?
fn depends(
    wrong: &Diagnostic,
    pools: &std::collections::BTreeMap<String, String>,
    derived: &BTreeSet<&str>,
) -> bool {
    let path = match &wrong.problem {
        // A word that no grant has, right after the capture's name.
        Problem::NoPath { reached, .. } if pools.keys().any(|name| *reached == format!("capture.{name}")) => {
            return false;
        }
        Problem::NoPath { reached: path, .. }
        | Problem::NotScalar { path, .. }
        | Problem::NotEmbeddable { path, .. } => path,
        // What captures find may be another thing with another address.
        Problem::NotFound { .. } | Problem::NothingToChange { .. } | Problem::NoValue { .. } => {
            return !derived.is_empty();
        }
        _ => return false,
    };
    let of = |name: &str| path == &format!("capture.{name}") || path.starts_with(&format!("capture.{name}."));
    pools.keys().any(|name| of(name)) || derived.iter().any(|name| of(name))
}
