//! An API and a controller in this process, and hosts: namespaces with cards, each with an agent.

use std::fmt::Debug;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::api::lease::Election;
use agent::netlink::Netlink;
use agent::netns::Namespace;
use agent::node::{Agent, Registration, Settings};
use agent::probe::Probes;
use agent::{controller, embedded};
use crds::{NodeIPPool, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use hyper::http::Request;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use policy::state::{Address, AddressProtocol};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::ServiceExt;

/// How long anything that is waited for may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Field {
    api: embedded::Api,
    client: Client,
    controller: JoinHandle<()>,
}

impl Drop for Field {
    fn drop(&mut self) {
        self.controller.abort();
    }
}

/// A namespace with cards and an agent; all gone with it.
pub(crate) struct Host {
    pub(crate) name: String,
    netns: String,
    state_dir: PathBuf,
    agent: Option<Working>,
    /// Whether its agent registers its Node, as one without a kubelet does.
    pub(crate) registers: bool,
}

/// A namespace with a gateway; gone with it.
pub(crate) struct Gateway {
    netns: String,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.netns]).status();
    }
}

/// Hears of every IPv4 address that comes to a host or goes, into a file.
pub(crate) struct Listener {
    process: std::process::Child,
    heard: PathBuf,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How to end an agent, and when it has.
type Working = (Box<dyn Fn() + Send>, JoinHandle<()>);

impl Drop for Host {
    fn drop(&mut self) {
        if let Some((stop, task)) = self.agent.take() {
            stop();
            task.abort();
        }
        let _ = Command::new("ip").args(["netns", "del", &self.netns]).status();
        let _ = std::fs::remove_dir_all(&self.state_dir);
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

fn lead(client: &Client) -> JoinHandle<()> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let identity = format!("field-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let election = Election::new(client, "default", crds::names::lease::CONTROLLER, &identity);
    let client = client.clone();
    tokio::spawn(async move { election.lead(|| controller::lead(client.clone())).await })
}

impl Field {
    pub(crate) async fn new() -> Self {
        Self::on(embedded::Api::in_memory())
    }

    /// With a store of another kind.
    pub(crate) fn on(api: embedded::Api) -> Self {
        let client = api.client();
        let controller = lead(&client);
        Self { api, client, controller }
    }

    /// The controller is gone, without a word, and its Lease has run out. What it was about to do is left undone.
    pub(crate) async fn lose_controller(&mut self) {
        self.controller.abort();
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "default");
        let long_ago = json!({"spec": {"renewTime": "2020-01-01T00:00:00.000000Z", "holderIdentity": null}});
        let name = crds::names::lease::CONTROLLER;
        leases.patch(name, &PatchParams::default(), &Patch::Merge(long_ago)).await.expect("a Lease");
    }

    /// Somebody holds the controller's Lease, for ever, and does nothing.
    pub(crate) async fn lease_for_ever(&self) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "default");
        let always = json!({"spec": {"renewTime": "2999-01-01T00:00:00.000000Z", "holderIdentity": "idle"}});
        let name = crds::names::lease::CONTROLLER;
        leases.patch(name, &PatchParams::default(), &Patch::Merge(always)).await.expect("a Lease");
    }

    /// Another controller.
    pub(crate) fn find_controller(&mut self) {
        self.controller = lead(&self.client);
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The API, but for whatever has this word in its path: that is not to be had.
    pub(crate) fn client_without(&self, word: &'static str) -> Client {
        let api = self.api.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let api = api.clone();
            async move {
                let mut request = request;
                if request.uri().path().contains(word) {
                    // No such place: as an API server without that kind, or without the right to it, would say.
                    *request.uri_mut() = "/nowhere".parse().expect("a path");
                }
                api.oneshot(request).await
            }
        });
        Client::new(service, "default")
    }

    /// The API, but for this host's Node, which is not to be had while this card has this address.
    pub(crate) fn client_lost_with(&self, host: &Host, card: &str, ip: &str) -> Client {
        let (api, netns, node) = (self.api.clone(), host.netns.clone(), format!("/nodes/{}", host.name));
        let (card, ip) = (card.to_owned(), ip.to_owned());
        let service = tower::service_fn(move |mut request: Request<kube::client::Body>| {
            let api = api.clone();
            let shows = || run(Command::new("ip").args(["-n", &netns, "-4", "addr", "show", "dev", &card]));
            if request.uri().path().ends_with(&node) && shows().contains(&ip) {
                *request.uri_mut() = "/nowhere".parse().expect("a path");
            }
            api.oneshot(request)
        });
        Client::new(service, "default")
    }

    /// The API, and every write that is asked of it through this client: method and path.
    pub(crate) fn client_recorded(&self) -> (Client, Arc<Mutex<Vec<String>>>) {
        let (api, writes) = (self.api.clone(), Arc::new(Mutex::new(Vec::new())));
        let told = writes.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let api = api.clone();
            if request.method() != "GET" {
                let line = format!("{} {}", request.method(), request.uri().path());
                told.lock().expect("whole").push(line);
            }
            async move { api.oneshot(request).await }
        });
        (Client::new(service, "default"), writes)
    }

    pub(crate) async fn annotate_pool(&self, name: &str, key: &str, value: Value) {
        self.patch_pool(name, json!({"metadata": {"annotations": {key: value}}})).await;
    }

    pub(crate) async fn patch_pool(&self, name: &str, patch: Value) {
        let api = self.api::<NodeIPPool>();
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("it is taken");
    }

    /// By hand, past everybody who should.
    pub(crate) async fn patch_pool_status(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        let api = self.api::<NodeIPPool>();
        api.patch_status(name, &PatchParams::default(), &patch).await.expect("it is taken");
    }

    /// Its finalizer is taken off by hand (R110): it need not wait for its grace.
    pub(crate) async fn force_pool_away(&self, name: &str) {
        let api = self.api::<NodeIPPool>();
        api.delete(name, &DeleteParams::default()).await.expect("it goes");
        while api.get_opt(name).await.expect("an answer").is_some() {
            let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let _ = api.patch(name, &PatchParams::default(), &none).await;
        }
    }

    pub(crate) async fn try_edit_policy(&self, name: &str, spec: Value) -> Result<(), kube::Error> {
        let api = self.api::<NodeNetworkConfigurationPolicy>();
        api.patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.map(drop)
    }

    pub(crate) async fn set_ready(&self, name: &str, status: &str) {
        let ready = Patch::Merge(json!({"status": {"conditions": [{"type": "Ready", "status": status}]}}));
        self.api::<Node>().patch_status(name, &PatchParams::default(), &ready).await.expect("Ready");
    }

    /// The Node as a kubelet makes it.
    pub(crate) async fn make_node(&self, name: &str, ready: &str) {
        self.create::<Node>(json!({"metadata": {"name": name}})).await;
        self.set_ready(name, ready).await;
    }

    pub(crate) async fn label(&self, host: &Host, key: &str, value: &str) {
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
        self.api::<Node>().delete(&host.name, &DeleteParams::default()).await.expect("it goes");
    }

    pub(crate) async fn enactment(&self, host: &Host, policy: &str) -> Value {
        let name = crds::names::enactment_name(&host.name, policy);
        json!(self.api::<NodeNetworkConfigurationEnactment>().get(&name).await.expect("it is there"))
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::ClusterResourceScope>,
        K::DynamicType: Default,
    {
        Api::all(self.client.clone())
    }

    async fn create<K>(&self, object: Value)
    where
        K: kube::Resource<Scope = kube::core::ClusterResourceScope>
            + Clone
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Debug,
        K::DynamicType: Default,
    {
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
        let api = self.api::<NodeNetworkConfigurationPolicy>();
        api.delete(name, &DeleteParams::default()).await.expect("it goes");
    }

    /// A namespace with so many cards, a Node that is Ready, and an agent.
    pub(crate) async fn host(&self, name: &str, cards: usize) -> Host {
        let mut host = Self::machine(name, cards);
        self.make_node(name, "True").await;
        self.start(&mut host);
        host
    }

    /// The namespace alone.
    pub(crate) fn machine(name: &str, cards: usize) -> Host {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let netns = format!("berth-a{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        run(Command::new("ip").args(["netns", "add", &netns]));
        let state_dir = std::env::temp_dir().join(&netns);
        std::fs::create_dir_all(&state_dir).expect("a folder");
        let host = Host { name: name.to_owned(), netns, state_dir, agent: None, registers: false };
        host.ip("link set lo up");
        for card in 0..cards {
            host.ip(&format!("link add eth{card} type veth peer name far{card}"));
            host.ip(&format!("link set far{card} up"));
            host.ip(&format!("link set eth{card} up"));
        }
        host
    }

    pub(crate) fn start(&self, host: &mut Host) {
        self.start_with(host, self.client.clone());
    }

    /// An agent that speaks to this API.
    pub(crate) fn start_with(&self, host: &mut Host, client: Client) {
        let mut agent = Agent::open(client, host.settings()).expect("it opens");
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
        self.api::<Node>().delete(&host.name, &DeleteParams::default()).await.expect("it goes");
    }

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
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Some(object) = self.api::<K>().get_opt(name).await.expect("an answer") {
                    last = serde_json::to_value(object).expect("JSON");
                    if holds(&last) {
                        return;
                    }
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
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
        let api = self.api::<NodeNetworkConfigurationEnactment>();
        let waited = tokio::time::timeout(PATIENCE, async {
            while api.get_opt(&name).await.expect("an answer").is_some() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        if waited.await.is_err() {
            let own = api.get_opt(&name).await.expect("an answer");
            panic!("{name} never goes: {:#}", json!(own));
        }
    }
}

impl Host {
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            node: self.name.clone(),
            namespace: self.netns.parse().expect("a name"),
            state_dir: self.state_dir.clone(),
            checkpoint_dir: self.state_dir.clone(),
            register: self.registers.then(Registration::default),
            lease_namespace: "default".to_owned(),
            probes: Probes { patience: Duration::from_secs(3), ..Probes::default() },
        }
    }

    #[track_caller]
    pub(crate) fn ip(&self, line: &str) -> String {
        run(Command::new("ip").args(["-n", &self.netns]).args(line.split_whitespace()))
    }

    /// IPv4 addresses of a card, with their prefixes.
    pub(crate) fn addresses(&self, card: &str) -> Vec<String> {
        let text = self.ip(&format!("-j -4 addr show dev {card}"));
        let links: Value = serde_json::from_str(&text).unwrap_or_default();
        let addresses = links[0]["addr_info"].as_array().cloned().unwrap_or_default();
        let text =
            |one: &Value| format!("{}/{}", one["local"].as_str().unwrap_or_default(), one["prefixlen"]);
        addresses.iter().map(text).collect()
    }

    /// Addresses of a card that have Berth's mark. (iproute2 shows it since 6.2.)
    pub(crate) fn marked(&self, card: &str) -> Vec<IpAddr> {
        let namespace: Namespace = self.netns.parse().expect("a name");
        let seen = namespace.inside(|| Netlink::open().expect("netlink").observe().expect("a state"));
        let seen = seen.expect("inside");
        let link = seen.state.link(card).expect("a card");
        let marked = |address: &&Address| address.protocol == Some(AddressProtocol::BERTH);
        link.ipv4.addresses.iter().filter(marked).map(|address| address.ip).collect()
    }

    /// Somebody at the other end of a card, who has this address and answers.
    pub(crate) fn gateway(&self, card: &str, ip: &str) -> Gateway {
        let netns = format!("{}-gw", self.netns);
        run(Command::new("ip").args(["netns", "add", &netns]));
        let far = card.replace("eth", "far");
        self.ip(&format!("link set {far} netns {netns}"));
        let gateway = Gateway { netns };
        for line in [format!("addr add {ip}/24 dev {far}"), format!("link set {far} up")] {
            run(Command::new("ip").args(["-n", &gateway.netns]).args(line.split_whitespace()));
        }
        gateway
    }

    /// The disk is lost.
    pub(crate) fn lose_journal(&self) {
        std::fs::remove_dir_all(&self.state_dir).expect("a folder");
        std::fs::create_dir_all(&self.state_dir).expect("a folder");
    }

    /// Listens from now on.
    pub(crate) async fn listen(&self) -> Listener {
        let heard = self.state_dir.join("heard");
        let file = std::fs::File::create(&heard).expect("a file");
        let mut command = Command::new("ip");
        command.args(["-n", &self.netns, "-o", "-4", "monitor", "address"]).stdout(file);
        let listener = Listener { process: command.spawn().expect("ip monitor"), heard };
        self.mark(&listener, "192.0.2.1").await;
        listener
    }

    /// The addresses that a card has lost since.
    pub(crate) async fn lost(&self, listener: &Listener, card: &str) -> Vec<String> {
        self.mark(listener, "192.0.2.2").await;
        let heard = std::fs::read_to_string(&listener.heard).expect("a file");
        let lost = heard.lines().filter(|line| line.starts_with("Deleted") && line.contains(card));
        lost.map(str::to_owned).collect()
    }

    /// What was before this address came is heard by the time that it is heard.
    async fn mark(&self, listener: &Listener, ip: &str) {
        let heard = || std::fs::read_to_string(&listener.heard).unwrap_or_default().contains(ip);
        self.wait_until("heard", || {
            self.ip(&format!("addr replace {ip}/32 dev lo valid_lft 1000 preferred_lft 1000"));
            heard()
        })
        .await;
    }

    /// As with a new disk: nothing is remembered, nothing configured.
    pub(crate) fn wipe(&self) {
        std::fs::remove_dir_all(&self.state_dir).expect("it was there");
        self.ip("-4 addr flush dev eth0");
    }

    /// Ends the agent; the host stays.
    pub(crate) async fn stop(&mut self) {
        if let Some((stop, task)) = self.agent.take() {
            stop();
            let _ = task.await;
        }
    }

    pub(crate) async fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while !holds() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("{}: never {what}", self.name));
    }
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
