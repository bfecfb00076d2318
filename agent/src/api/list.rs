//! Everything of a kind, page by page.

use std::fmt::Debug;

use kube::api::{Api, ListParams};
use kube::{Error, Resource};
use serde::de::DeserializeOwned;

/// How many objects a page has.
const PAGE: u32 = 500;

/// What `select` selects, and the version that it is of.
pub async fn all<K>(api: &Api<K>, select: &ListParams) -> Result<(Vec<K>, String), Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut select = select.clone().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = api.list(&select).await?;
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => select.continue_token = Some(token),
            None => return Ok((found, page.metadata.resource_version.unwrap_or_default())),
        }
    }
}
