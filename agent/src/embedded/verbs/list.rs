//! `list`, whole or in pages.
//!
//! Pages of one list are of one revision: what has changed since is undone by the log ([`State::range_at`]), so nothing is
//! kept between them. A page that comes later than the log reaches is refused as Expired.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::http::Response;
use serde::{Deserialize, Serialize};

use super::Call;
use crate::embedded::answer::Answer;
use crate::embedded::query::{Match, list_options};
use crate::embedded::selector::Selector;
use crate::embedded::shape::ListMeta;
use crate::embedded::status::{Cause, Status};
use crate::embedded::store::{Forgotten, Key, Object, State};

/// Where the next page begins.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Next {
    v: String,
    rv: u64,
    namespace: String,
    name: String,
}

impl Call {
    pub(in crate::embedded) fn list(&self) -> Result<Response<Answer>, Status> {
        let target = &self.target;
        let selector = self.selector()?;
        let limit = self.query.number("limit")?.filter(|limit| *limit > 0);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let next = self.query.get("continue").map(Next::parse).transpose()?;
        let revision = self.query.revision()?;
        let how = self.query.revision_match()?;
        check(revision, how, next.is_some())?;
        self.query.number("timeoutSeconds")?;
        if self.query.maybe_flag("sendInitialEvents")?.is_some() {
            let message = "Forbidden: sendInitialEvents is forbidden for list";
            return Err(list_options(Cause::new("FieldValueForbidden", message, "sendInitialEvents")));
        }

        let (objects, meta) = {
            let state = self.inner.store.read();
            if let Some(asked) = revision.filter(|asked| *asked > state.revision) {
                return Err(Status::too_new(asked, state.revision));
            }
            let at = match (&next, how) {
                (Some(next), _) => next.rv,
                (None, Match::Exact) => revision.unwrap_or(state.revision),
                (None, _) => state.revision,
            };
            if at > state.revision {
                return Err(Status::too_new(at, state.revision));
            }
            let after =
                next.as_ref().map(|next| Key::new(target.resource.table, &next.namespace, &next.name));
            self.page(&state, &selector, at, after.as_ref(), limit)
                .map_err(|Forgotten| expired(next.is_some()))?
        };
        Ok(self.shape.list(target.resource, target.version, objects, &meta))
    }

    /// The selector of the query, and of a path that names one object.
    pub(super) fn selector(&self) -> Result<Selector, Status> {
        let labels = self.query.get("labelSelector").unwrap_or_default();
        let fields = self.query.get("fieldSelector").unwrap_or_default();
        let selector = Selector::parse(self.target.resource, labels, fields)?;
        Ok(match &self.target.name {
            Some(name) => selector.named(name),
            None => selector,
        })
    }

    fn page(
        &self,
        state: &State,
        selector: &Selector,
        at: u64,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<(Vec<Arc<Object>>, ListMeta), Forgotten> {
        let table = self.target.resource.table;
        let mut all = state.range_at(table, self.target.namespace.as_deref(), after, at)?;
        let mut chosen = all.by_ref().filter(|object| selector.matches(&object.key, &object.facts));
        let objects: Vec<Arc<Object>> = chosen.by_ref().take(limit).collect();
        let mut meta = ListMeta { revision: at, ..ListMeta::default() };
        let more = if objects.len() == limit { chosen.next().is_some() } else { false };
        if let Some(last) = objects.last().filter(|_| more) {
            meta.next = Some(Next::after(at, &last.key).token());
            // How many match can't be told without reading all of them.
            meta.remaining = selector.is_empty().then(|| 1 + all.count());
        }
        Ok((objects, meta))
    }
}

impl Next {
    fn after(revision: u64, key: &Key) -> Self {
        Self {
            v: "meta.k8s.io/v1".to_owned(),
            rv: revision,
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
        }
    }

    fn token(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn parse(token: &str) -> Result<Self, Status> {
        let wrong = || {
            Status::bad_request(
                "invalid continue token: continue key is not valid: it is not one that this server gave",
            )
        };
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| wrong())?;
        let next: Self = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
        if next.v == "meta.k8s.io/v1" { Ok(next) } else { Err(wrong()) }
    }
}

/// Which parameters go together.
fn check(revision: Option<u64>, how: Match, continued: bool) -> Result<(), Status> {
    let forbidden = |why: &str| {
        let message = format!("Forbidden: {why}");
        Err(list_options(Cause::new("FieldValueForbidden", message, "resourceVersionMatch")))
    };
    match (revision, how) {
        (_, Match::NotOlderThan | Match::Exact) if continued => {
            forbidden("resourceVersionMatch is forbidden when continue is provided")
        }
        (Some(revision), Match::Unset) if continued && revision != 0 => {
            Err(Status::bad_request("specifying resource version is not allowed when using continue"))
        }
        (None, Match::NotOlderThan | Match::Exact) => {
            forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided")
        }
        (Some(0), Match::Exact) => {
            forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
        }
        _ => Ok(()),
    }
}

fn expired(continued: bool) -> Status {
    if continued {
        return Status::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter.",
        );
    }
    Status::expired("The resourceVersion for the provided list is too old.")
}
