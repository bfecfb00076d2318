//! Everything of a test's is gone, finalizers or not.

use std::fmt::Debug;

use api_tests::wait::until;
use crds::names::annotation::CONFIRM_RELEASE;
use crds::{
    NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy,
    NodeNetworkState,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::NAMESPACE;
use crate::hold::busy;

pub(super) async fn all(admin: &Client) {
    let client = || admin.clone();
    tokio::join!(
        clear::<NodeNetworkConfigurationPolicy>(Api::all(client())),
        clear::<NodeIPPool>(Api::all(client())),
        clear::<NodeIPSlice>(Api::all(client())),
        clear::<NodeNetworkConfigurationEnactment>(Api::all(client())),
        clear::<NodeNetworkState>(Api::all(client())),
        clear::<Node>(Api::all(client())),
        clear::<Pod>(Api::namespaced(client(), NAMESPACE)),
        clear::<Lease>(Api::namespaced(client(), NAMESPACE)),
        clear::<Event>(Api::namespaced(client(), "default")),
        busy::over(admin),
    );
}

async fn clear<K>(api: Api<K>)
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    until(std::any::type_name::<K>(), || gone(&api)).await;
}

/// Asks that all be deleted, at once; what is left, if anything.
async fn gone<K>(api: &Api<K>) -> Result<(), String>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    let words = |wrong: kube::Error| wrong.to_string();
    let left = api.list(&ListParams::default()).await.map_err(words)?.items;
    if left.is_empty() {
        return Ok(());
    }
    let at_once = DeleteParams::default().grace_period(0);
    api.delete_collection(&at_once, &ListParams::default()).await.map_err(words)?;
    for kept in left.iter().filter(|one| !one.finalizers().is_empty()) {
        // A slice goes with what is held in it only where that is said to be meant.
        let slice: Option<NodeIPSlice> = serde_json::from_value(json!(kept)).ok();
        let held = slice.map_or(0, |slice| slice.ledger().allocations.len());
        let meant = json!({CONFIRM_RELEASE: held.to_string()});
        let none = Patch::Merge(json!({"metadata": {"finalizers": null, "annotations": meant}}));
        // It may be gone by now.
        let _ = api.patch(&kept.name_any(), &PatchParams::default(), &none).await;
    }
    Err(format!("{} are left", left.len()))
}
