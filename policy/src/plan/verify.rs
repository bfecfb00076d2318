//! Whether a desired document holds: everything that is unmet, with what was wanted and what was found.
//!
//! Checks what was asked and nothing else; order of addresses, metrics and rules included.

mod links;
mod routes;

use super::resolve::resolve;
use crate::state::{Desired, Observed};
use serde::Serialize;
use std::fmt;

/// Something that was asked for and isn't so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// Where in the document, with the link's name for people: `interfaces[0].mtu`.
    pub path: String,
    pub wanted: String,
    pub found: String,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: wanted {}, found {}", self.path, self.wanted, self.found)
    }
}

/// All that is unmet; empty if the document holds.
pub fn verify(observed: &Observed, desired: &Desired) -> Vec<Unmet> {
    let mut problems = Vec::new();
    let desired = resolve(observed, desired, &mut problems);
    let mut check = Check { observed, unmet: Vec::new() };
    for problem in problems {
        check.unmet(problem.path, "one interface", problem.kind);
    }
    for link in &desired.links {
        check.link(link);
    }
    check.routes(&desired);
    check.rules(&desired);
    if let Some(dns) = &desired.dns {
        for (name, wanted, found) in [
            ("server", &dns.servers, &observed.dns.servers),
            ("search", &dns.search, &observed.dns.search),
            ("options", &dns.options, &observed.dns.options),
        ] {
            if let Some(wanted) = wanted.as_ref().filter(|w| *w != found) {
                check.unmet(format!("dns-resolver.config.{name}"), words(wanted), words(found));
            }
        }
    }
    if let Some(wanted) = &desired.hostname {
        let whole = observed.hostname.merged(wanted);
        for (name, wanted, found) in [
            ("running", &whole.running, &observed.hostname.running),
            ("config", &whole.config, &observed.hostname.config),
        ] {
            if let Some(wanted) = wanted.as_ref().filter(|_| wanted != found) {
                check.unmet(format!("hostname.{name}"), wanted, found.as_deref().unwrap_or("none"));
            }
        }
    }
    check.unmet
}

struct Check<'a> {
    observed: &'a Observed,
    unmet: Vec<Unmet>,
}

impl Check<'_> {
    #[expect(clippy::needless_pass_by_value, reason = "what is said is made text here and nowhere else")]
    fn unmet(&mut self, path: String, wanted: impl ToString, found: impl ToString) {
        self.unmet.push(Unmet { path, wanted: wanted.to_string(), found: found.to_string() });
    }

    /// One field: unmet if it was asked for and isn't equal.
    fn field<T: PartialEq + ToString>(&mut self, path: String, wanted: Option<T>, found: Option<T>) {
        if let Some(wanted) = wanted
            && found.as_ref() != Some(&wanted)
        {
            self.unmet(path, wanted, found.map_or("none".into(), |f| f.to_string()));
        }
    }
}

fn words(list: &[impl ToString]) -> String {
    let list: Vec<_> = list.iter().map(ToString::to_string).collect();
    if list.is_empty() { "none".into() } else { list.join(" ") }
}
