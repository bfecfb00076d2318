//! Everything of a kind, page by page. Memory: what is kept of each object, and one page as the server sent it.

#[cfg(test)]
mod tests;

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
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
    all_as(api, select, |object| Some(without_managed_fields(object))).await
}

/// The same, of each object what `keep` makes of it, before the next page is asked for: for who has little room and needs little.
pub async fn all_as<K, T>(
    api: &Api<K>,
    select: &ListParams,
    mut keep: impl FnMut(K) -> Option<T>,
) -> Result<(Vec<T>, String), Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut select = select.clone().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = api.list(&select).await?;
        found.extend(page.items.into_iter().filter_map(&mut keep));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => select.continue_token = Some(token),
            None => return Ok((found, page.metadata.resource_version.unwrap_or_default())),
        }
    }
}

/// Who wrote which field is nothing that anybody here asks for, and of a Node or an enactment it is most of it.
pub fn without_managed_fields<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

/// One object, as it is now. By a list and not by a get: an API server answers a list from what it has in memory, once it
/// knows that that is current, where a get is read and decoded anew. Of a pool with a thousand addresses that is an
/// eighth of the work.
pub async fn one<K>(api: &Api<K>, name: &str) -> Result<Option<K>, Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let select = ListParams::default().fields(&format!("metadata.name={name}")).limit(1);
    Ok(api.list(&select).await?.items.pop())
}

/// The metadata of all that `select` selects.
pub async fn metadata<K>(api: &Api<K>, select: &ListParams) -> Result<Vec<ObjectMeta>, Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut select = select.clone().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = api.list_metadata(&select).await?;
        let bare = page.items.into_iter().map(|object| without_managed_fields(object).metadata);
        found.extend(bare);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => select.continue_token = Some(token),
            None => return Ok(found),
        }
    }
}
