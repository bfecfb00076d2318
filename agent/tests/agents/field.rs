//! A controller in this process, and hosts: namespaces with cards, each with an agent in this process too.

mod agree;
pub(crate) mod doubles;
mod host;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent::api::lease::Election;
use agent::node::{Agent, NodeError, Settings};
use agent::{controller, embedded};
use crds::names::annotation::CONFIRM_RELEASE;
use crds::{
    NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy,
    NodeNetworkState,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::check::Settled;
use crate::cluster::{AGENT, Cluster};
use crate::on::On;
use crate::pause::Pause;
use crate::world::Object;
use host::Known;
pub(crate) use host::{Gateway, Host};

/// How long anything that is waited for may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Field {
    pub(crate) on: On,
    /// The administrator's.
    client: Client,
    /// The controller's.
    leading: Client,
    /// What the controller is told.
    settings: controller::Settings,
    controller: JoinHandle<()>,
    /// The hosts that there are.
    known: Known,
    settled: Settled,
}

impl Drop for Field {
    fn drop(&mut self) {
        self.controller.abort();
    }
}

/// The seeds' policy: one address of each of two pools.
pub(crate) fn static_ip() -> Value {
    json!({
        "capture": {"first": "ippool.traffic-1.allocate", "second": "ippool.traffic-2.allocate"},
        "maxUnavailable": "100%",
        "desiredState": {"interfaces": [interface("eth0", "first"), interface("eth1", "second")]},
    })
}

pub(crate) fn one_address(pool: &str) -> Value {
    address_on(pool, "eth0")
}

pub(crate) fn address_on(pool: &str, card: &str) -> Value {
    json!({
        "capture": {"address": format!("ippool.{pool}.allocate")},
        "desiredState": {"interfaces": [interface(card, "address")]},
    })
}

fn interface(name: &str, capture: &str) -> Value {
    json!({"name": name, "type": "veth", "state": "up", "ipv4": {"enabled": true, "dhcp": false, "address": [
        {"ip": format!("{{{{ capture.{capture}.ip }}}}"), "prefix-length": format!("{{{{ capture.{capture}.prefix-length }}}}")},
    ]}})
}

fn lead(client: &Client, namespace: &str, settings: &controller::Settings) -> JoinHandle<()> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let identity = format!("field-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let election = Election::new(client, namespace, crds::names::lease::CONTROLLER, &identity);
    let (client, settings) = (client.clone(), settings.clone());
    tokio::spawn(async move { election.lead(|| controller::lead(client.clone(), settings.clone())).await })
}

impl Field {
    pub(crate) async fn new(on: On) -> Self {
        Self::told(on, controller::Settings::default()).await
    }

    /// With a controller that is told something besides.
    pub(crate) async fn told(on: On, settings: controller::Settings) -> Self {
        match on {
            On::Embedded => {
                let api = embedded::Api::in_memory();
                Self::with(on, api.client(), api.client(), settings)
            }
            On::Real(real) => {
                let leading = real.client_of(&real.controller_token().await);
                Self::with(on, real.client(), leading, settings)
            }
        }
    }

    /// On the embedded API, with a store of another kind.
    pub(crate) fn in_store(api: &embedded::Api) -> Self {
        Self::with(On::Embedded, api.client(), api.client(), controller::Settings::default())
    }

    /// On a real API server, whose controller has this client.
    pub(crate) fn led_by(real: &'static Cluster, leading: Client, settings: controller::Settings) -> Self {
        Self::with(On::Real(real), real.client(), leading, settings)
    }

    fn with(on: On, client: Client, leading: Client, settings: controller::Settings) -> Self {
        let controller = lead(&leading, on.namespace(), &settings);
        let (known, settled) = Default::default();
        Self { on, client, leading, settings, controller, known, settled }
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), self.on.namespace())
    }

    /// The controller is gone, without a word, and its Lease has run out. What it was about to do is left undone.
    pub(crate) async fn lose_controller(&mut self) {
        self.settled.stir();
        self.controller.abort();
        let long_ago = json!({"spec": {"renewTime": "2020-01-01T00:00:00.000000Z", "holderIdentity": null}});
        let name = crds::names::lease::CONTROLLER;
        self.leases().patch(name, &PatchParams::default(), &Patch::Merge(long_ago)).await.expect("a Lease");
    }

    /// Somebody holds the controller's Lease, for ever, and does nothing.
    pub(crate) async fn lease_for_ever(&self) {
        let always = json!({"spec": {"renewTime": "2999-01-01T00:00:00.000000Z", "holderIdentity": "idle"}});
        let name = crds::names::lease::CONTROLLER;
        self.leases().patch(name, &PatchParams::default(), &Patch::Merge(always)).await.expect("a Lease");
    }

    /// What the next controller is told.
    pub(crate) fn tell(&mut self, settings: controller::Settings) {
        self.settings = settings;
    }

    pub(crate) async fn delete<K: Object>(&self, name: &str) {
        self.settled.stir();
        self.api::<K>().delete(name, &DeleteParams::default()).await.expect("it goes");
    }

    /// Another controller.
    pub(crate) fn find_controller(&mut self) {
        self.settled.stir();
        self.controller = lead(&self.leading, self.on.namespace(), &self.settings);
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) async fn annotate_pool(&self, name: &str, key: &str, value: Value) {
        self.patch_pool(name, json!({"metadata": {"annotations": {key: value}}})).await;
    }

    pub(crate) async fn annotate_policy(&self, name: &str, key: &str, value: Value) {
        self.settled.stir();
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        let api = self.api::<NodeNetworkConfigurationPolicy>();
        api.patch(name, &PatchParams::default(), &patch).await.expect("it is taken");
    }

    pub(crate) async fn annotate_enactment(&self, host: &Host, policy: &str, key: &str, value: Value) {
        self.settled.stir();
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        let name = crds::names::enactment_name(&host.name, policy);
        let api = self.api::<NodeNetworkConfigurationEnactment>();
        api.patch(&name, &PatchParams::default(), &patch).await.expect("it is taken");
    }

    pub(crate) async fn relabel_enactment(&self, node: &str, policy: &str, labels: Value) {
        self.settled.stir();
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let name = crds::names::enactment_name(node, policy);
        let api = self.api::<NodeNetworkConfigurationEnactment>();
        api.patch(&name, &PatchParams::default(), &patch).await.expect("it is taken");
    }

    pub(crate) async fn try_patch_pool(&self, name: &str, patch: Value) -> Result<(), kube::Error> {
        self.settled.stir();
        let api = self.api::<NodeIPPool>();
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }

    pub(crate) async fn patch_pool(&self, name: &str, patch: Value) {
        self.settled.stir();
        let api = self.api::<NodeIPPool>();
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("it is taken");
    }

    /// By hand, past everybody who should.
    pub(crate) async fn patch_pool_status(&self, name: &str, status: Value) {
        self.settled.stir();
        let patch = Patch::Merge(json!({"status": status}));
        let api = self.api::<NodeIPPool>();
        api.patch_status(name, &PatchParams::default(), &patch).await.expect("it is taken");
    }

    /// It need not wait for its grace.
    pub(crate) async fn force_pool_away(&self, name: &str) {
        self.force_away::<NodeIPPool>(name).await;
    }

    /// With its finalizer off, which is refused while addresses are held in it, until it is said that this is meant. What
    /// the refusal says.
    pub(crate) async fn force_slice_away(&self, name: &str) -> String {
        let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let slices = self.api::<NodeIPSlice>();
        let refused = slices.patch(name, &PatchParams::default(), &none).await.expect_err("it is in use");
        let slice = slices.get(name).await.expect("it is there still");
        let held = slice.ledger().allocations.len();
        let meant = json!({"metadata": {"annotations": {CONFIRM_RELEASE: held.to_string()}}});
        slices.patch(name, &PatchParams::default(), &Patch::Merge(meant)).await.expect("an annotation");
        self.force_away::<NodeIPSlice>(name).await;
        refused.to_string()
    }

    pub(crate) async fn force_enactment_away(&self, host: &Host, policy: &str) {
        let name = crds::names::enactment_name(&host.name, policy);
        self.force_away::<NodeNetworkConfigurationEnactment>(&name).await;
    }

    /// Its finalizer is taken off by hand (R110).
    async fn force_away<K: Object>(&self, name: &str) {
        self.settled.stir();
        let api = self.api::<K>();
        api.delete(name, &DeleteParams::default()).await.expect("it goes");
        while api.get_opt(name).await.expect("an answer").is_some() {
            let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let _ = api.patch(name, &PatchParams::default(), &none).await;
        }
    }

    pub(crate) async fn try_edit_policy(&self, name: &str, spec: Value) -> Result<(), kube::Error> {
        self.settled.stir();
        let api = self.api::<NodeNetworkConfigurationPolicy>();
        api.patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.map(drop)
    }

    pub(crate) async fn set_ready(&self, name: &str, status: &str) {
        self.settled.stir();
        let ready = Patch::Merge(json!({"status": {"conditions": [{"type": "Ready", "status": status}]}}));
        self.api::<Node>().patch_status(name, &PatchParams::default(), &ready).await.expect("Ready");
    }

    /// The Node as a kubelet makes it.
    pub(crate) async fn make_node(&self, name: &str, ready: &str) {
        self.create::<Node>(json!({"metadata": {"name": name}})).await;
        self.set_ready(name, ready).await;
    }

    pub(crate) async fn label(&self, host: &Host, key: &str, value: &str) {
        self.settled.stir();
        let label = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
        self.api::<Node>().patch(&host.name, &PatchParams::default(), &label).await.expect("a label");
    }

    /// The Node's UID, once there is one that is not this.
    pub(crate) async fn until_node_is_another(&self, host: &Host, uid: &str) -> String {
        let another = |node: &Value| node["metadata"]["uid"] != uid;
        let node = self.until::<Node>(&host.name, "another", another).await;
        node["metadata"]["uid"].as_str().expect("a UID").to_owned()
    }

    /// The Node is deleted; its host and its agent go on.
    pub(crate) async fn delete_node(&self, host: &Host) {
        self.settled.stir();
        self.api::<Node>().delete(&host.name, &DeleteParams::default()).await.expect("it goes");
    }

    pub(crate) async fn enactment(&self, host: &Host, policy: &str) -> Value {
        let name = crds::names::enactment_name(&host.name, policy);
        json!(self.api::<NodeNetworkConfigurationEnactment>().get(&name).await.expect("it is there"))
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::ClusterResourceScope>,
        K::DynamicType: Default,
    {
        Api::all(self.client.clone())
    }

    pub(crate) async fn create<K: Object>(&self, object: Value) {
        self.settled.stir();
        let object: K = serde_json::from_value(object).expect("a manifest");
        self.api().create(&PostParams::default(), &object).await.expect("it is taken");
    }

    pub(crate) async fn pool(&self, name: &str, spec: Value) {
        self.create::<NodeIPPool>(json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    pub(crate) async fn policy(&self, name: &str, spec: Value) {
        self.create::<NodeNetworkConfigurationPolicy>(json!({"metadata": {"name": name}, "spec": spec}))
            .await;
    }

    pub(crate) async fn policy_with(&self, name: &str, annotations: Value, spec: Value) {
        let metadata = json!({"name": name, "annotations": annotations});
        self.create::<NodeNetworkConfigurationPolicy>(json!({"metadata": metadata, "spec": spec})).await;
    }

    pub(crate) async fn delete_policy(&self, name: &str) {
        self.settled.stir();
        let api = self.api::<NodeNetworkConfigurationPolicy>();
        api.delete(name, &DeleteParams::default()).await.expect("it goes");
    }

    /// An enactment that somebody wrote by hand, with these claims.
    pub(crate) async fn copy_enactment(&self, node: &str, policy: &str, claims: Value) {
        let uid = self.api::<Node>().get(node).await.expect("a Node").metadata.uid.expect("a UID");
        let metadata =
            agent::records::enactment::metadata(&node.into(), &uid.as_str().into(), &policy.into());
        let metadata = metadata.expect("a name");
        self.create::<NodeNetworkConfigurationEnactment>(json!({"metadata": metadata})).await;
        let patch = Patch::Merge(json!({"status": {"ippool": claims}}));
        let name = crds::names::enactment_name(node, policy);
        let api = self.api::<NodeNetworkConfigurationEnactment>();
        api.patch_status(&name, &PatchParams::default(), &patch).await.expect("it is taken");
    }

    /// Nobody owns it any more.
    pub(crate) async fn disown<K: Object>(&self, name: &str) {
        let none = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
        self.api::<K>().patch(name, &PatchParams::default(), &none).await.expect("it is taken");
    }

    /// A namespace with so many cards, a Node that is Ready, and an agent.
    pub(crate) async fn host(&self, name: &str, cards: usize) -> Host {
        let mut host = self.machine(name, cards);
        self.make_node(name, "True").await;
        self.start(&mut host).await;
        host
    }

    /// The namespace alone.
    pub(crate) fn machine(&self, name: &str, cards: usize) -> Host {
        Host::new(name, cards, self.on.namespace(), self.known.clone())
    }

    pub(crate) async fn start(&self, host: &mut Host) {
        let client = self.client_for(host).await;
        self.start_with(host, &client);
    }

    /// The API as this host's agent has it. Where there is a kubelet, that has registered the Node by now.
    pub(crate) async fn client_for(&self, host: &Host) -> Client {
        match self.on {
            On::Embedded => self.client.clone(),
            On::Real(real) => real.client_of(&real.agent_token(AGENT, &host.name).await),
        }
    }

    /// An agent that speaks to this API.
    pub(crate) fn start_with(&self, host: &mut Host, client: &Client) {
        self.settled.stir();
        let mut settings = host.settings();
        if matches!(self.on, On::Real(_)) {
            settings.register = None;
        }
        let mut agent = open(client, &settings);
        let stop = agent.stop();
        let task = tokio::spawn(async move { agent.run().await.expect("it works") });
        host.agent = Some((Box::new(stop), task));
    }

    /// The host is switched off for good, and its Node deleted.
    pub(crate) async fn remove_host(&self, host: &Host) {
        if let Some((stop, task)) = &host.agent {
            stop();
            task.abort();
        }
        host.forget();
        self.settled.stir();
        self.api::<Node>().delete(&host.name, &DeleteParams::default()).await.expect("it goes");
    }

    pub(crate) async fn until<K: Object>(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let (mut last, mut pause) = (Value::Null, Pause::new());
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Some(object) = self.api::<K>().get_opt(name).await.expect("an answer") {
                    last = serde_json::to_value(object).expect("JSON");
                    if holds(&last) {
                        return;
                    }
                }
                pause.pass().await;
            }
        });
        if waited.await.is_err() {
            panic!("{name} is never {what}: {last:#}");
        }
        last
    }

    pub(crate) async fn until_pool(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.until::<NodeIPPool>(name, what, holds).await
    }

    pub(crate) async fn until_policy(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.until::<NodeNetworkConfigurationPolicy>(name, what, holds).await
    }

    pub(crate) async fn until_state(&self, host: &Host, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.until::<NodeNetworkState>(&host.name, what, holds).await
    }

    /// Somebody wants a host's report anew.
    pub(crate) async fn ask_for_report(&self, host: &Host) {
        let label = json!({"metadata": {"labels": {crds::names::label::FORCE_STATE_REFRESH: "1"}}});
        let api = self.api::<NodeNetworkState>();
        api.patch(&host.name, &PatchParams::default(), &Patch::Merge(label)).await.expect("a label");
    }

    pub(crate) async fn until_standing(&self, host: &Host, policy: &str, condition: &str) -> Value {
        let name = crds::names::enactment_name(&host.name, policy);
        let holds = |own: &Value| {
            let conditions = own["status"]["conditions"].as_array();
            conditions
                .is_some_and(|all| all.iter().any(|one| one["type"] == condition && one["status"] == "True"))
        };
        self.until::<NodeNetworkConfigurationEnactment>(&name, condition, holds).await
    }

    pub(crate) async fn until_enactment(
        &self,
        host: &Host,
        policy: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let name = crds::names::enactment_name(&host.name, policy);
        self.until::<NodeNetworkConfigurationEnactment>(&name, what, holds).await
    }

    pub(crate) async fn until_no_enactment(&self, host: &Host, policy: &str) {
        let name = crds::names::enactment_name(&host.name, policy);
        self.until_gone::<NodeNetworkConfigurationEnactment>(&name).await;
    }

    pub(crate) async fn until_gone<K: Object>(&self, name: &str) {
        let (api, mut pause) = (self.api::<K>(), Pause::new());
        let waited = tokio::time::timeout(PATIENCE, async {
            while api.get_opt(name).await.expect("an answer").is_some() {
                pause.pass().await;
            }
        });
        if waited.await.is_err() {
            let own = api.get_opt(name).await.expect("an answer");
            panic!("{name} never goes: {:#}", json!(own));
        }
    }
}

/// The agent of a host. The locks of the one before may be a moment in going: whoever starts a process at that time (another
/// test) has them too, until it is another program.
fn open(client: &Client, settings: &Settings) -> Agent {
    let begun = std::time::Instant::now();
    loop {
        match Agent::open(client.clone(), settings.clone()) {
            Err(NodeError::Busy(_)) if begun.elapsed() < Duration::from_secs(5) => std::thread::yield_now(),
            opened => return opened.expect("it opens"),
        }
    }
}
