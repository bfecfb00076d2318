//! What the crowd is compared to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use api_tests::cluster::{Cluster, NAMESPACE};
use crds::NodeIPPool;
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::count::Counted;
use crate::crowd::{Grants, make_pool, until};
use crate::progress;

/// A small object of a kind of Kubernetes' own, and one of a kind of somebody else's, which has no rules.
#[derive(Clone, Copy)]
pub(crate) enum Small {
    Builtin,
    Custom,
}

impl Small {
    fn of(self) -> ApiResource {
        match self {
            Self::Builtin => ApiResource::erase::<ConfigMap>(&()),
            Self::Custom => ApiResource::from_gvk(&GroupVersionKind::gvk("bench.nmstate.io", "v1", "Small")),
        }
    }

    fn api(self, client: &Client) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), "default", &self.of())
    }

    fn object(self, number: usize) -> DynamicObject {
        let mut object = DynamicObject::new(&format!("small-{number}"), &self.of());
        object.labels_mut().insert("bench".into(), "claims".into());
        object.data = match self {
            Self::Builtin => json!({"data": {"node": format!("n{number:04}")}}),
            Self::Custom => json!({"spec": {"node": format!("n{number:04}")}}),
        };
        object
    }
}

/// The kind of somebody else's, of which agents may make some.
pub(crate) async fn define(cluster: &Cluster) -> Result<()> {
    let spec = json!({"type": "object", "properties": {"node": {"type": "string"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": schema}]);
    let names = json!({"plural": "smalls", "kind": "Small"});
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "smalls.bench.nmstate.io"},
        "spec": {"group": "bench.nmstate.io", "scope": "Namespaced", "names": names, "versions": versions},
    }))?;
    Api::all(cluster.client()).create(&PostParams::default(), &definition).await?;
    let name = json!({"name": "bench-smalls"});
    let rules = json!([{"apiGroups": ["bench.nmstate.io"], "resources": ["smalls"], "verbs": ["create"]}]);
    let role: ClusterRole = serde_json::from_value(json!({"metadata": name, "rules": rules}))?;
    Api::all(cluster.client()).create(&PostParams::default(), &role).await?;
    let of = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bench-smalls"});
    let agents = json!([{"kind": "ServiceAccount", "name": "berth-agent", "namespace": NAMESPACE}]);
    let binding = json!({"metadata": name, "roleRef": of, "subjects": agents});
    let binding: ClusterRoleBinding = serde_json::from_value(binding)?;
    Api::all(cluster.client()).create(&PostParams::default(), &binding).await?;
    let smalls = Small::Custom.api(&cluster.client());
    until("served", || async { Ok(smalls.list_metadata(&ListParams::default()).await.is_ok()) }).await
}

/// So many clients, each with a connection.
pub(crate) async fn clients(cluster: &Cluster, counted: &Counted, many: usize) -> Result<Vec<Client>> {
    let clients: Vec<Client> = (0..many).map(|_| counted.client(cluster.client())).collect();
    try_join_all(clients.iter().map(|client| connect(Small::Builtin.api(client)))).await?;
    Ok(clients)
}

/// A small object by each of these clients at once.
pub(crate) async fn creates(clients: &[Client], small: Small) -> Result<Grants> {
    let start = Arc::new(Barrier::new(clients.len()));
    let one = |(number, client): (usize, &Client)| {
        let (api, start) = (small.api(client), start.clone());
        async move {
            let object = small.object(number);
            start.wait().await;
            let begun = Instant::now();
            api.create(&PostParams::default(), &object).await?;
            anyhow::Ok(begun.elapsed())
        }
    };
    let tasks = try_join_all(clients.iter().enumerate().map(|of| tokio::spawn(one(of)))).await?;
    tasks.into_iter().collect()
}

/// What [`creates`] made is there no more.
pub(crate) async fn tidy(cluster: &Cluster, small: Small) -> Result<()> {
    let api = small.api(&cluster.client());
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("bench=claims")).await?;
    Ok(())
}

/// A connection is there before the clock runs.
pub(crate) async fn connect<K>(api: Api<K>) -> Result<()>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    api.list_metadata(&ListParams::default().limit(1)).await?;
    Ok(())
}

/// One claim after the other.
pub(crate) async fn one_by_one(cluster: &Cluster, counted: &Counted, many: usize) -> Result<Grants> {
    let api = fresh_pool(cluster, counted).await?;
    let begun = Instant::now();
    let mut all = Grants::new();
    for number in 0..many {
        ensure!(take(&api, number).await?, "nobody else writes");
        all.push(begun.elapsed());
        if number % 250 == 249 {
            progress(begun, &format!("{} of {many}, one after the other", number + 1));
        }
    }
    gone(&api).await?;
    Ok(all)
}

/// Everybody at once, again and again until it is written; for so long. Those that are through by then.
pub(crate) async fn naive(
    cluster: &Cluster,
    counted: &Counted,
    many: usize,
    patience: Duration,
) -> Result<Grants> {
    let first = fresh_pool(cluster, counted).await?;
    let start = Arc::new(Barrier::new(many));
    let begun = Instant::now();
    let one = |number: usize| {
        let (client, start) = (counted.client(cluster.client()), start.clone());
        async move {
            let api: Api<NodeIPPool> = Api::all(client);
            connect(api.clone()).await?;
            start.wait().await;
            let begun = Instant::now();
            while !take(&api, number).await? {
                if begun.elapsed() > patience {
                    return Ok(None);
                }
            }
            anyhow::Ok(Some(begun.elapsed()))
        }
    };
    let mut tasks: FuturesUnordered<_> = (0..many).map(|number| tokio::spawn(one(number))).collect();
    let mut all = Grants::new();
    while let Some(task) = tasks.next().await {
        all.extend(task??);
        if all.len().is_multiple_of(16) {
            progress(begun, &format!("{} of {many}, the naive way", all.len()));
        }
    }
    gone(&first).await?;
    Ok(all)
}

const NAME: &str = "plain";

async fn fresh_pool(cluster: &Cluster, counted: &Counted) -> Result<Api<NodeIPPool>> {
    let api: Api<NodeIPPool> = Api::all(counted.client(cluster.client()));
    make_pool(&api, NAME, "10.99.0.0/16", None).await?;
    Ok(api)
}

async fn gone(api: &Api<NodeIPPool>) -> Result<()> {
    crate::crowd::force_away(api, NAME).await
}

/// Reads, takes the first free address, writes. Whether nobody else wrote between.
async fn take(api: &Api<NodeIPPool>, number: usize) -> Result<bool> {
    let mut pool = api.get(NAME).await?;
    let mut status: Value = json!(pool.status.clone().unwrap_or_default());
    let ip = (1..u16::MAX)
        .map(|offset| format!("10.99.{}.{}", offset >> 8, offset & 255))
        .find(|ip| status["allocations"].get(ip).is_none())
        .context("no address")?;
    status["allocations"][ip] = json!({"node": format!("n{number}"), "request": format!("r{number}")});
    status["sequence"] = json!(status["sequence"].as_i64().unwrap_or_default() + 1);
    pool.status = Some(serde_json::from_value(status)?);
    match api.replace_status(&pool.name_any(), &PostParams::default(), &pool).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => bail!(error),
    }
}
