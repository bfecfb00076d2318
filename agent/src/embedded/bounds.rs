//! What a caller may do. Asked before every answer, and again for the old and the new object inside each write.
//!
//! Pure functions of what is asked, the old object, the new one, and what else there is ([`Seen`]). A host is bound to
//! what is its own (`host`, `claims`, `ledger`, `slots`), a controller to what a controller does (`controller`), and nobody takes a slice
//! away from who holds addresses in it (`held`). The API's other rules (schemas, conflicts) are not repeated here. A cluster says the same with `deploy/rbac` and `deploy/admission`; one table of
//! attempts in `tests/api` is asked of both.
//!
//! Reading is open to every caller: nothing here is secret, and a host that serves its own claims reads pools, others'
//! enactments and leases.
//!
//! Cost: next to nothing for callers that may do everything; otherwise linear in the object.

mod claims;
mod controller;
mod held;
mod host;
mod ledger;
mod slots;
#[cfg(test)]
mod tests;

use crds::names::GROUP;
use serde_json::Value;

use super::resource::{Form, Table};
use super::store::{Key, Transaction};
use super::{Caller, Resource, Status};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// As a person says it: "may not … this".
    fn word(self) -> &'static str {
        match self {
            Self::Get | Self::List | Self::Watch => "read",
            Self::Create => "create",
            Self::Update | Self::Patch => "change",
            Self::Delete => "delete",
            Self::DeleteCollection => "delete many at once of",
        }
    }

    fn reads(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// A request about one resource, before any object was looked at.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub caller: &'a Caller,
    pub verb: Verb,
    pub resource: &'static Resource,
    pub namespace: &'a str,
    /// Empty for a list, a watch, and a create (whose object has it).
    pub name: &'a str,
    /// `status`, or nothing.
    pub subresource: &'a str,
}

impl Asked<'_> {
    fn form(&self) -> Form {
        self.resource.form
    }

    /// `nodeippools/status`.
    fn what(&self) -> String {
        match self.subresource {
            "" => self.resource.plural.clone(),
            sub => format!("{}/{sub}", self.resource.plural),
        }
    }
}

/// An object that is written: absent before it is created, and after it is gone.
#[derive(Clone, Copy)]
struct Write<'a> {
    old: Option<&'a Value>,
    new: Option<&'a Value>,
}

impl<'a> Write<'a> {
    /// What it was and what it is to be: the rule must hold for both, or a caller could take what isn't its own, or give
    /// what is away.
    fn images(self) -> impl Iterator<Item = &'a Value> {
        self.old.into_iter().chain(self.new)
    }
}

/// Whether the caller may ask this at all.
pub fn may_ask(asked: &Asked<'_>) -> Result<(), Status> {
    let may = match asked.caller {
        _ if asked.verb.reads() => Ok(()),
        Caller::Everything => Ok(()),
        Caller::Controller => controller::may_ask(asked),
        Caller::Host { name, elects } => match host::may_ask(name, asked) {
            Err(_) if *elects && controller::may_ask(asked).is_ok() => Ok(()),
            may => may,
        },
    };
    may.map_err(|why| Status::forbidden(asked.resource, asked.name, &why))
}

/// Whether the caller may make this of that: `old` is absent where an object is created, `new` where one goes.
/// Both are in the stored version. Called inside the writer, so what it sees is what is changed.
pub fn may_write(
    asked: &Asked<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    seen: &dyn Seen,
) -> Result<(), Status> {
    let write = Write { old, new };
    let may = match asked.caller {
        Caller::Everything => held::may_let_go(asked, write),
        Caller::Controller => controller::may_write(asked, write),
        Caller::Host { name, elects } => {
            let uid = seen.node_uid(name);
            let host = host::Host { name, uid: uid.as_deref() };
            match host.may_write(asked, write, seen) {
                Err(_) if *elects && controller::may_write(asked, write).is_ok() => Ok(()),
                may => may,
            }
        }
    };
    let named = write.images().next().and_then(|object| object["metadata"]["name"].as_str());
    may.map_err(|why| Status::forbidden(asked.resource, named.unwrap_or(asked.name), &why))
}

/// What else there is, as this very write sees it.
pub trait Seen {
    /// The UID of the Node of a name; asked for the caller's own only.
    fn node_uid(&self, name: &str) -> Option<String>;
    /// The pool of a name.
    fn pool(&self, name: &str) -> Option<Value>;
}

impl Seen for Transaction<'_> {
    fn node_uid(&self, name: &str) -> Option<String> {
        let node = self.get(&Key::new(Table::of("", "nodes")?, "", name))?;
        Some(node.facts.uid.clone())
    }

    fn pool(&self, name: &str) -> Option<Value> {
        let pool = self.get(&Key::new(Table::of(GROUP, "nodeippools")?, "", name))?;
        Some(pool.value())
    }
}
