//! A claim of a slice and nothing else: what `policy::claim` says is to be made, made. Who asks has its request written already, and
//! the grant is not waited for: the slice is the ledger, so from its creation on the address is held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agent::records;
use anyhow::{Context, Result, bail, ensure};
use crds::names::annotation::CONFIRM_RELEASE;
use crds::{NodeIPPool, NodeIPSlice};
use futures_util::future::try_join_all;
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use policy::claim::{
    Asked, Enactment, NodeName, NodeUid, PoolName, Request, SlicedView, Slot, SlotKey, serve_slices,
};
use policy::pool::Barred;
use serde_json::json;
use tokio::sync::Barrier;

use crate::count::Counted;
use crate::crowd::Grants;
use crate::plain::connect;

/// As many as `hosts`, each by its own agent's token, take a slice of the pool at once.
pub(crate) async fn slices(
    admin: &Client,
    pool: &str,
    counted: &Counted,
    hosts: impl Iterator<Item = (String, Client)>,
) -> Result<Grants> {
    let pools: Api<NodeIPPool> = Api::all(admin.clone());
    let pool = Arc::new(pools.get(pool).await?);
    let nodes: Api<Node> = Api::all(admin.clone());
    let mut uids = BTreeMap::new();
    for node in nodes.list(&Default::default()).await? {
        uids.insert(node.name_any(), node.uid().unwrap_or_default());
    }
    let hosts: Vec<(String, Client)> = hosts.collect();
    // Connections are there before anything is counted.
    try_join_all(hosts.iter().map(|(_, client)| connect(Api::<NodeIPSlice>::all(client.clone())))).await?;
    counted.take();
    let start = Arc::new(Barrier::new(hosts.len()));
    let tasks = hosts.into_iter().map(|(node, client)| {
        let uid = uids.get(&node).cloned().unwrap_or_default();
        tokio::spawn(one(client, pool.clone(), node, uid, start.clone()))
    });
    let mut took = Grants::new();
    for claimed in try_join_all(tasks).await? {
        took.push(claimed?);
    }
    Ok(took)
}

async fn one(
    client: Client,
    object: Arc<NodeIPPool>,
    node: String,
    uid: String,
    start: Arc<Barrier>,
) -> Result<Duration> {
    let slices: Api<NodeIPSlice> = Api::all(client);
    let name = PoolName::new(object.name_any());
    let pool = records::pool::meaning(&object)?;
    let ledger = records::pool::read(&object, &pool)?;
    let key = SlotKey { pool: name.clone(), capture: "address".into() };
    let request = Request::new(node.as_str().into());
    let known = BTreeSet::from([request.id.clone()]);
    let enactment = Enactment {
        uid: node.as_str().into(),
        node: NodeName::new(node.as_str()),
        node_uid: NodeUid::new(uid.as_str()),
        policy: "lone".into(),
        deleting: None,
        slots: BTreeMap::from([(key.clone(), Slot { request: Some(request), ..Slot::default() })]),
    };
    let (barred, shown, labels) = (Barred::default(), BTreeSet::new(), BTreeMap::new());
    let mut others: BTreeMap<IpNet, Option<NodeName>> = BTreeMap::new();
    start.wait().await;
    let begun = Instant::now();
    loop {
        let ask =
            Asked { enactment: &enactment, key: &key, labels: &labels, live: true, ready: true, fresh: true };
        let served = serve_slices(&SlicedView {
            pool: &pool,
            ledger: &ledger,
            barred: &barred,
            own: &[],
            others: &others,
            asked: &[ask],
            known: &known,
            shown: &shown,
            now: SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
        });
        let [new] = &served.create[..] else { bail!("{node} would make {:?}", served.create) };
        ensure!(new.first.is_some(), "{} is made empty", new.name);
        let slice = records::slice::new(&name, new, &enactment.node, &enactment.node_uid);
        match slices.create(&PostParams::default(), &slice).await {
            Ok(_) => return Ok(begun.elapsed()),
            Err(kube::Error::Api(status)) if status.code == 409 => drop(others.insert(new.cidr, None)),
            Err(error) => return Err(error).context(new.name.clone()),
        }
    }
}

/// What [`slices`] made is there no more.
pub(crate) async fn tidy(admin: &Client, pool: &str) -> Result<()> {
    let slices: Api<NodeIPSlice> = Api::all(admin.clone());
    let of_pool = ListParams::default().labels(&records::slice::of_pool(&PoolName::new(pool)));
    let none = Patch::Merge(json!({"metadata": {"finalizers": null, "annotations": {CONFIRM_RELEASE: "1"}}}));
    for slice in slices.list_metadata(&of_pool).await? {
        slices.patch(&slice.name_any(), &PatchParams::default(), &none).await?;
    }
    slices.delete_collection(&DeleteParams::default(), &of_pool).await?;
    Ok(())
}
