//! Hosts, a controller and an API as processes of their own, killed and started again at will.
//!
//! Everything is in a folder of its own: the API's store, each host's state directory and kubeconfig, and what each process
//! said, which is printed when a test fails. The hosts are network namespaces with veths. The API is `berth serve`, or a real
//! API server (`reach`).

mod ground;
mod heard;
mod reach;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use crds::names::enactment_name;
use crds::{NodeIPPool, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::check::{self, Settled};
use crate::cluster::Way;
use crate::folder::Folder;
use crate::listen::Listener;
use crate::on::On;
pub(crate) use crate::world::World;
use crate::world::{Object, Place, Places};
pub(crate) use ground::{Machine, Process};

/// Longer than anything takes on a busy machine: a test that waits for it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(20);

/// Agents go before the API, all of them before their folder.
pub(crate) struct Fleet {
    agents: BTreeMap<String, Process>,
    controllers: BTreeMap<String, Process>,
    /// `berth serve`.
    api: Option<Process>,
    listeners: BTreeMap<String, Listener>,
    pub(crate) machines: BTreeMap<String, Machine>,
    client: Client,
    pub(crate) on: On,
    /// Where the API listens, or whatever is in front of it for those who start from now on.
    pub(crate) way: Way,
    /// The service account of agents that start from now on.
    pub(crate) account: &'static str,
    /// How long their tokens last, if not as long as usual.
    pub(crate) lasts: Option<Duration>,
    /// Whether agents that start from now on answer for themselves, wherever a port is free.
    pub(crate) health: bool,
    /// Whether it was killed.
    is_away: bool,
    /// Fault points at which a process was seen to die.
    pub(crate) died: BTreeSet<String>,
    /// Machines that are hosts by another name than their own.
    pub(crate) renamed: BTreeMap<String, String>,
    settled: Settled,
    folder: Folder,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if std::thread::panicking() {
            ground::print_logs(self.folder.path());
        }
    }
}

impl Fleet {
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::ClusterResourceScope>,
        K::DynamicType: Default,
    {
        Api::all(self.client.clone())
    }

    pub(crate) async fn controller(&mut self, name: &str, fault: Option<&str>) {
        let mut args = self.connect_controller(name).await;
        args.insert(0, "controller".to_owned());
        self.settled.stir();
        let process = Process::start(self.folder.path(), name, &args, fault);
        self.controllers.insert(name.to_owned(), process);
    }

    pub(crate) fn kill_controller(&mut self, name: &str) {
        self.controllers.remove(name).expect("it runs").kill();
    }

    /// Ends one that can say so: the Lease is free for the next.
    pub(crate) fn stop_controller(&mut self, name: &str) {
        self.controllers.remove(name).expect("it runs").stop();
    }

    /// A namespace with so many cards. No agent yet.
    pub(crate) fn machine(&mut self, name: &str, cards: usize) {
        self.machines.insert(name.to_owned(), Machine::new(name, cards));
    }

    pub(crate) async fn host(&mut self, name: &str, cards: usize) {
        self.machine(name, cards);
        self.agent(name, None).await;
    }

    pub(crate) async fn agent(&mut self, name: &str, fault: Option<&str>) {
        let process = self.agent_process(name, name, fault).await;
        self.agents.insert(name.to_owned(), process);
    }

    /// An agent of this host, to be looked after by whoever asks.
    pub(crate) async fn agent_process(&self, host: &str, log: &str, fault: Option<&str>) -> Process {
        // While the API is away a host has what it had.
        if !self.is_away {
            self.enlist(host).await;
        }
        self.agent_on(host, host, log, fault)
    }

    /// The same for a node of this name on another machine.
    pub(crate) fn agent_on(&self, host: &str, machine: &str, log: &str, fault: Option<&str>) -> Process {
        self.settled.stir();
        let netns = &self.machines.get(machine).expect("the machine").netns;
        let state = self.path(&format!("state-{machine}"));
        let args = ["agent", "--node", host, "--netns", netns, "--state-dir", &state];
        let mut args: Vec<String> = args.map(str::to_owned).to_vec();
        args.extend(self.connect_agent(host));
        if self.health {
            args.push("--health-address=127.0.0.1:0".to_owned());
        }
        Process::start_from(self.way.from.as_deref(), self.folder.path(), log, &args, fault)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    /// Kill -9; its fault point, if it has one and didn't get there, stays armed for [`Self::agent_again`].
    pub(crate) fn kill_agent(&mut self, name: &str) -> Option<String> {
        let mut process = self.agents.remove(name).expect("it runs");
        process.kill();
        process.fault.take().filter(|fault| !self.note(&process, fault))
    }

    /// SIGTERM, and its end.
    pub(crate) fn stop_agent(&mut self, name: &str) {
        self.agents.remove(name).expect("it runs").stop();
    }

    /// All agents and controllers are ended.
    pub(crate) fn stop_all(&mut self) {
        self.agents.clear();
        self.controllers.clear();
    }

    /// Where an agent says that it answers.
    pub(crate) fn health_address(&self, name: &str) -> String {
        let log = self.log(name);
        let said = log.lines().find_map(|line| line.split_once("health and metrics on http://"));
        said.expect("it says where").1.to_owned()
    }

    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{name}.log"))).unwrap_or_default()
    }

    /// Did it die there by itself?
    fn note(&mut self, process: &Process, fault: &str) -> bool {
        let log = self.log(&process.name);
        let said = log.get(process.said..).unwrap_or_default();
        let there = said.contains(&format!("fault point {}", ground::point_of(fault)));
        if there {
            self.died.insert(fault.to_owned());
        }
        there
    }

    /// Whoever died at its fault point is started again, without one. Anybody else who died is a defect.
    pub(crate) async fn revive(&mut self) {
        let dead = |all: &mut BTreeMap<String, Process>| -> Vec<(String, Process)> {
            let names: Vec<String> =
                all.iter_mut().filter_map(|(name, one)| one.ended().map(|_| name.clone())).collect();
            names.into_iter().filter_map(|name| all.remove_entry(&name)).collect()
        };
        let (agents, controllers) = (dead(&mut self.agents), dead(&mut self.controllers));
        for (is_agent, (name, mut process)) in
            agents.into_iter().map(|one| (true, one)).chain(controllers.into_iter().map(|one| (false, one)))
        {
            let ended = process.ended().expect("it ended");
            let fault = process.fault.take().unwrap_or_else(|| panic!("{name} ended: {ended}"));
            assert_eq!(ended.signal(), Some(9), "{name} ended: {ended}");
            assert!(self.note(&process, &fault), "{name} was killed, but not at {fault}");
            match is_agent {
                true => self.agent(&name, None).await,
                false => {
                    self.free_lease().await;
                    self.controller(&name, None).await;
                }
            }
        }
    }

    /// The agent that is the first to die at its fault point. It is not started again.
    pub(crate) async fn first_to_die(&mut self) -> String {
        let begun = Instant::now();
        loop {
            let dead = self.agents.iter_mut().find_map(|(name, one)| one.ended().map(|_| name.clone()));
            if let Some(dead) = dead {
                return dead;
            }
            assert!(begun.elapsed() < PATIENCE, "nobody dies");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Which of these controllers has the Lease.
    pub(crate) async fn leader<'a>(&self, of: &[&'a str]) -> &'a str {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), self.on.namespace());
        let begun = Instant::now();
        loop {
            let lease = leases.get_opt(crds::names::lease::CONTROLLER).await.expect("an answer");
            let holder = lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default();
            let says_so = |name: &&&str| self.log(name).contains(&format!("{holder}: leads"));
            if let Some(name) = of.iter().find(says_so).filter(|_| !holder.is_empty()) {
                return name;
            }
            assert!(begun.elapsed() < PATIENCE, "nobody of {of:?} leads");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// As one that stops does: else the next waits until it has run out.
    pub(crate) async fn free_lease(&self) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), self.on.namespace());
        let free = Patch::Merge(json!({"spec": {"holderIdentity": null}}));
        let _ = leases.patch(crds::names::lease::CONTROLLER, &PatchParams::default(), &free).await;
    }

    /// Looks at everything until it is so, reviving who died; no address is on two hosts at any look.
    pub(crate) async fn until(&mut self, what: &str, holds: impl Fn(&World) -> bool) -> World {
        self.until_none(what, |world| if holds(world) { vec![] } else { vec!["it isn't".to_owned()] }).await
    }

    /// … until there is nothing to complain of.
    pub(crate) async fn until_none(
        &mut self,
        what: &str,
        complaints: impl Fn(&World) -> Vec<String>,
    ) -> World {
        let begun = Instant::now();
        loop {
            self.revive().await;
            let look = Instant::now();
            let world = World::see(&self.client, &self.places()).await;
            let wrong = match &world {
                Ok(world) => {
                    check::no_address_twice(world);
                    complaints(world)
                }
                Err(error) => vec![error.to_string()],
            };
            match world {
                Ok(world) if wrong.is_empty() => return world,
                Ok(world) if begun.elapsed() > PATIENCE => panic!("never {what}: {wrong:#?}\n{world}"),
                Err(_) if begun.elapsed() > PATIENCE => panic!("never {what}: {wrong:#?}"),
                // Whoever looks at many must leave them the time to do something.
                _ => tokio::time::sleep(LOOK.max(look.elapsed() * 5)).await,
            }
        }
    }

    /// Of the host alone, whether there is an API or not.
    pub(crate) async fn until_on(
        &self,
        host: &str,
        card: &str,
        what: &str,
        holds: impl Fn(&[String]) -> bool,
    ) {
        let begun = Instant::now();
        loop {
            let addresses = self.machines[host].addresses(card);
            if holds(&addresses) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{host}: {card} is never {what}: {addresses:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Every one of these hosts stands so with the policy.
    pub(crate) async fn until_standing(&mut self, hosts: &[&str], policy: &str, condition: &str) -> World {
        let what = format!("{policy} {condition}");
        self.until_none(&what, |world| {
            let stands = |host: &&&str| !world.stands(host, policy, condition);
            hosts.iter().filter(stands).map(|host| format!("{host} is not")).collect()
        })
        .await
    }

    /// The shared end of every test: ledger, enactments, journals and kernels agree, and nothing is held by nobody.
    pub(crate) async fn agree(&mut self) -> World {
        let world = self.until_none("in agreement", |world| check::disagreements_but(world, &[])).await;
        self.settled.settle();
        world
    }

    /// Where each host's cards and disk are.
    fn places(&self) -> Places {
        let place = |(name, machine): (&String, &Machine)| {
            let state_dir = self.folder.path().join(format!("state-{name}"));
            let place = Place { netns: machine.netns.clone(), state_dir };
            (self.renamed.get(name).unwrap_or(name).clone(), place)
        };
        self.machines.iter().map(place).collect()
    }

    pub(crate) async fn create<K: Object>(&self, name: &str, spec: Value) {
        let object = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}));
        let object: K = object.expect("a manifest");
        self.settled.stir();
        self.api().create(&PostParams::default(), &object).await.expect("it is taken");
    }

    pub(crate) async fn pool(&self, name: &str, spec: Value) {
        self.create::<NodeIPPool>(name, spec).await;
    }

    pub(crate) async fn policy(&self, name: &str, spec: Value) {
        self.create::<NodeNetworkConfigurationPolicy>(name, spec).await;
    }

    pub(crate) async fn try_edit_policy(&self, name: &str, spec: Value) -> Result<(), kube::Error> {
        self.settled.stir();
        let patch = Patch::Merge(json!({"spec": spec}));
        let api = self.api::<NodeNetworkConfigurationPolicy>();
        api.patch(name, &PatchParams::default(), &patch).await.map(drop)
    }

    /// As soon as it may be: not while it is in progress.
    pub(crate) async fn edit_policy(&mut self, name: &str, spec: Value) {
        let begun = Instant::now();
        while let Err(error) = self.try_edit_policy(name, spec.clone()).await {
            assert!(begun.elapsed() < PATIENCE, "{error}");
            self.revive().await;
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(crate) async fn delete<K: Object>(&self, name: &str) {
        self.settled.stir();
        self.api::<K>().delete(name, &DeleteParams::default()).await.expect("it goes");
    }

    pub(crate) async fn delete_policy(&self, name: &str) {
        self.delete::<NodeNetworkConfigurationPolicy>(name).await;
    }

    pub(crate) async fn label_node(&self, name: &str, key: &str, value: &str) {
        self.settled.stir();
        let label = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
        self.api::<Node>().patch(name, &PatchParams::default(), &label).await.expect("a label");
    }

    pub(crate) async fn delete_node(&self, name: &str) {
        self.delete::<Node>(name).await;
    }

    /// Finalizers off by hand, as an administrator in a hurry does (R110).
    async fn delete_by_force<K: Object>(&self, name: &str) {
        let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        self.delete::<K>(name).await;
        let begun = Instant::now();
        while self.api::<K>().get_opt(name).await.expect("an answer").is_some() {
            let _ = self.api::<K>().patch(name, &PatchParams::default(), &none).await;
            assert!(begun.elapsed() < PATIENCE, "{name} never goes");
        }
    }

    pub(crate) async fn force_pool_away(&self, name: &str) {
        self.delete_by_force::<NodeIPPool>(name).await;
    }

    pub(crate) async fn force_enactment_away(&self, host: &str, policy: &str) {
        self.delete_by_force::<NodeNetworkConfigurationEnactment>(&enactment_name(host, policy)).await;
    }
}
