//! An API, a controller, and the writes that hosts would make.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use crds::{NodeIPPool, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState};
use futures_util::{Stream, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::http::{Request, Response};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use policy::rollout::Standing;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::controller::{Lead, Settings};
use crate::{embedded, records};

pub(super) struct Stage {
    client: Client,
    controller: Option<JoinHandle<()>>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.controller.iter().for_each(JoinHandle::abort);
    }
}

impl Stage {
    pub(super) async fn new() -> Self {
        let client = embedded::Api::in_memory().client();
        let controller = tokio::spawn(crate::controller::lead(client.clone(), Default::default()));
        Self { client, controller: Some(controller) }
    }

    /// Nobody leads but whom the test has look ([`Stage::lead`]).
    pub(super) fn unled() -> Self {
        Self { client: embedded::Api::in_memory().client(), controller: None }
    }

    /// A leader that knows all, and does nothing by itself.
    pub(super) async fn lead(&self) -> Lead {
        Lead::start(self.client.clone(), Settings::default()).await
    }

    /// An API server whose rules refuse whatever of the controller's writes to pools has this word, as an admission
    /// policy may.
    pub(super) async fn refusing(word: &'static str) -> Self {
        let api = embedded::Api::in_memory();
        let client = api.client();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let api = api.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.expect("a body").to_bytes();
                let pools = parts.uri.path().contains("nodeippools");
                if pools && String::from_utf8_lossy(&body).contains(word) {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422,
                        "reason": "Invalid", "message": format!("no {word} here")});
                    let refused = Response::builder().status(422).header("content-type", "application/json");
                    let body = Full::new(Bytes::from(status.to_string())).map_err(tower::BoxError::from);
                    return Ok(refused.body(body.boxed_unsync()).expect("an answer"));
                }
                let answer = api.oneshot(Request::from_parts(parts, kube::client::Body::from(body))).await?;
                Ok::<_, tower::BoxError>(
                    answer.map(|body| body.map_err(tower::BoxError::from).boxed_unsync()),
                )
            }
        });
        let strict = Client::new(service, "default");
        let controller = tokio::spawn(crate::controller::lead(strict, Default::default()));
        Self { client, controller: Some(controller) }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::ClusterResourceScope>,
        K::DynamicType: Default,
    {
        Api::all(self.client.clone())
    }

    async fn create<K>(&self, object: Value) -> K
    where
        K: kube::Resource<Scope = kube::core::ClusterResourceScope>
            + Clone
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Debug,
        K::DynamicType: Default,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    pub(super) async fn pool(&self, name: &str, spec: Value) {
        self.create::<NodeIPPool>(json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    pub(super) async fn delete_pool(&self, name: &str) {
        self.api::<NodeIPPool>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(super) async fn policy(&self, name: &str, spec: Value) {
        self.create::<NodeNetworkConfigurationPolicy>(json!({"metadata": {"name": name}, "spec": spec}))
            .await;
    }

    /// A policy's status, as somebody else writes it.
    pub(super) async fn says(&self, policy: &str, status: &Value) {
        let patch = Patch::Merge(json!({"status": status}));
        let api = self.api::<NodeNetworkConfigurationPolicy>();
        api.patch_status(policy, &PatchParams::default(), &patch).await.unwrap();
    }

    /// A Node that is Ready, with an agent that reports.
    pub(super) async fn host(&self, name: &str) {
        self.handled(name).await;
        self.reports(name).await;
    }

    /// A Node that is Ready, with a report that no agent of ours wrote.
    pub(super) async fn handled(&self, name: &str) {
        let node: Node = self.create(json!({"metadata": {"name": name}})).await;
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        self.api::<Node>().patch_status(name, &PatchParams::default(), &Patch::Merge(ready)).await.unwrap();
        let uid = node.uid().unwrap();
        let metadata = records::state::metadata(&name.into(), &uid.as_str().into());
        self.create::<NodeNetworkState>(json!({"metadata": metadata})).await;
    }

    async fn reports(&self, name: &str) {
        let stamp = json!({"status": {"stamp": crate::api::random::id()}});
        self.api::<NodeNetworkState>()
            .patch_status(name, &PatchParams::default(), &Patch::Merge(stamp))
            .await
            .unwrap();
    }

    /// A report with this address in it.
    pub(super) async fn shows(&self, name: &str, ip: &str) {
        let status = json!({"status": {"stamp": crate::api::random::id(), "pooledAddresses": [{"ip": ip}]}});
        let api = self.api::<NodeNetworkState>();
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    pub(super) async fn delete_node(&self, name: &str) {
        self.api::<Node>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    async fn enactment(&self, node: &str, policy: &str) -> String {
        let name = crds::names::enactment_name(node, policy);
        if self.api::<NodeNetworkConfigurationEnactment>().get_opt(&name).await.unwrap().is_none() {
            let uid = self.api::<Node>().get(node).await.unwrap().uid().unwrap();
            let metadata =
                records::enactment::metadata(&node.into(), &uid.as_str().into(), &policy.into()).unwrap();
            self.create::<NodeNetworkConfigurationEnactment>(json!({"metadata": metadata})).await;
        }
        name
    }

    async fn patch_enactment(&self, node: &str, policy: &str, status: Value) {
        let name = self.enactment(node, policy).await;
        let patch = Patch::Merge(json!({"status": status}));
        let api = self.api::<NodeNetworkConfigurationEnactment>();
        api.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(super) async fn asks(&self, node: &str, policy: &str, pool: &str, capture: &str, id: &str) {
        let request = json!({"ippool": {pool: {"requests": {capture: {"id": id, "want": true}}}}});
        self.patch_enactment(node, policy, request).await;
    }

    /// One write that asks several pools.
    pub(super) async fn asks_all(&self, node: &str, policy: &str, pools: &[&str]) {
        let of = |pool: &&str| {
            (pool.to_string(), json!({"requests": {"addr": {"id": format!("id-{pool}"), "want": true}}}))
        };
        let requests: serde_json::Map<String, Value> = pools.iter().map(of).collect();
        self.patch_enactment(node, policy, json!({"ippool": requests})).await;
    }

    /// Every version of every enactment, from now on.
    pub(super) async fn watch_enactments(&self) -> impl Stream<Item = Value> + use<> {
        let api = self.api::<NodeNetworkConfigurationEnactment>();
        let events = api.watch(&WatchParams::default(), "0").await.unwrap();
        events.map(|event| match event.unwrap() {
            WatchEvent::Added(own) | WatchEvent::Modified(own) => json!(own),
            other => panic!("{other:?}"),
        })
    }

    pub(super) async fn lets_go(&self, node: &str, policy: &str, pool: &str, capture: &str) {
        let request = json!({"ippool": {pool: {"requests": {capture: {"want": false}}}}});
        self.patch_enactment(node, policy, request).await;
    }

    pub(super) async fn stands(&self, node: &str, policy: &str, standing: Standing) {
        let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(k8s_openapi::jiff::Timestamp::now());
        let conditions = records::standing::write(standing, "", &[], &now);
        self.patch_enactment(node, policy, json!({"policyGeneration": 1, "conditions": conditions})).await;
    }

    /// Until the object is there and as waited for; what is waited for takes milliseconds, quarantines seconds.
    async fn until<K>(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value
    where
        K: kube::Resource<Scope = kube::core::ClusterResourceScope>
            + Clone
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Debug,
        K::DynamicType: Default,
    {
        let mut last = Value::Null;
        let waited = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                if let Some(object) = self.api::<K>().get_opt(name).await.unwrap() {
                    last = serde_json::to_value(object).unwrap();
                    if holds(&last) {
                        return;
                    }
                }
                tokio::task::yield_now().await;
            }
        });
        if waited.await.is_err() {
            panic!("{name} is never {what}: {last:#}");
        }
        last
    }

    pub(super) async fn until_pool(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.until::<NodeIPPool>(name, what, holds).await
    }

    pub(super) async fn until_policy(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.until::<NodeNetworkConfigurationPolicy>(name, what, holds).await
    }

    pub(super) async fn until_enactment(
        &self,
        node: &str,
        policy: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let name = crds::names::enactment_name(node, policy);
        self.until::<NodeNetworkConfigurationEnactment>(&name, what, holds).await
    }

    pub(super) async fn until_granted(&self, node: &str, policy: &str, pool: &str, capture: &str) -> Value {
        let grant = |own: &Value| own["status"]["ippool"][pool]["grants"][capture].clone();
        grant(&self.until_enactment(node, policy, "granted", |own| !grant(own).is_null()).await)
    }

    pub(super) async fn until_no_enactment(&self, node: &str, policy: &str) {
        let name = crds::names::enactment_name(node, policy);
        let api = self.api::<NodeNetworkConfigurationEnactment>();
        let waited = tokio::time::timeout(Duration::from_secs(60), async {
            while api.get_opt(&name).await.unwrap().is_some() {
                tokio::task::yield_now().await;
            }
        });
        waited.await.expect("it goes");
    }
}
