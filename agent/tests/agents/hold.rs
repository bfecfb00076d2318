//! What a cluster's API may do in the middle of thirty-two claims: in the end all have their addresses, and
//! at no time had two hosts the same. On a real API server, with hosts as processes.

pub(crate) mod busy;
mod front;
mod gate;
mod rights;
mod wire;

use std::time::{Duration, Instant};

use crds::{NodeIPPool, NodeNetworkConfigurationEnactment};
use kube::api::ListParams;

use crate::cluster::Way;
use crate::crowd::{HOSTS, available, gather, policy, served};
use crate::fleet::{Fleet, PATIENCE};
use crate::on::On;
use busy::Busy;
use front::Front;
use gate::Gate;
use wire::Wire;

pub(crate) use rights::{a_right_that_is_lacking_is_named, readiness, until};

/// So long after it is over all are served, where hosts start at once; a machine on which they take their time has that much longer.
const MINUTE: Duration = Duration::from_secs(60);

/// A controller that reaches the API server directly.
async fn led(on: On) -> Fleet {
    let mut fleet = Fleet::new(on).await;
    fleet.controller("controller", None).await;
    fleet
}

/// The hosts ask; goes on as soon as some have been given an address and not all are through.
async fn under_way(fleet: &Fleet) {
    fleet.policy("one", policy()).await;
    let begun = Instant::now();
    loop {
        let pool = fleet.api::<NodeIPPool>().get("pool").await.expect("the pool");
        if pool.status.is_some_and(|status| !status.allocations.is_empty()) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "nobody is given anything");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    not_all_are_through(fleet).await;
}

async fn not_all_are_through(fleet: &Fleet) {
    let all = fleet.api::<NodeNetworkConfigurationEnactment>().list(&ListParams::default()).await;
    let is_through = |own: &NodeNetworkConfigurationEnactment| {
        let conditions = own.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|one| one.type_ == "Available" && one.status == "True")
    };
    let through = all.expect("enactments").items.iter().filter(|own| is_through(own)).count();
    assert!(through < HOSTS, "it was over too soon");
}

/// While it lasts: it came in the middle, whatever became of those that had all they needed. Kernels are asked, since the API may
/// be away.
fn some_are_without(fleet: &Fleet) {
    let without = fleet.machines.values().filter(|machine| machine.all_addresses().is_empty()).count();
    assert!(without > 0, "all had their addresses when it came");
}

/// It is over: all have an address of their own, nobody ever had another's, and everything agrees.
async fn recovers(fleet: &mut Fleet, started: Duration) {
    let begun = Instant::now();
    fleet.until("served", |world| available(world) == HOSTS).await;
    let took = begun.elapsed();
    println!("all served {took:?} after it was over; the hosts had started in {started:?}");
    assert!(took < MINUTE + started, "{took:?} after it was over; the hosts had started in {started:?}");
    served(fleet).await;
}

/// R22, R67: the API server is killed, and starts again.
pub(crate) async fn the_api_server_is_restarted(on: On) {
    let mut fleet = led(on).await;
    let way = fleet.way.clone();
    let started = gather(&mut fleet, &[way]).await;
    under_way(&fleet).await;
    fleet.kill_api();
    some_are_without(&fleet);
    fleet.start_api().await;
    recovers(&mut fleet, started).await;
}

/// R22, R67: the API server is there, and can neither read nor write.
pub(crate) async fn etcd_is_paused(on: On) {
    let mut fleet = led(on).await;
    let way = fleet.way.clone();
    let started = gather(&mut fleet, &[way]).await;
    under_way(&fleet).await;
    fleet.on.real().plane.pause_etcd().expect("paused");
    tokio::time::sleep(Duration::from_secs(20)).await;
    some_are_without(&fleet);
    fleet.on.real().plane.resume_etcd().expect("resumed");
    recovers(&mut fleet, started).await;
}

/// R22, R67, R111: no host reaches the API server for a minute; the controller does, and goes on. Half of them are told so, by
/// connections that end. To the others nobody says anything: what they send is lost, and when they are heard again nobody knows
/// their connections any more. Each of these finds out by itself that its watches are deaf, before it is over.
pub(crate) async fn hosts_are_cut_off(on: On) {
    let mut fleet = led(on).await;
    let gate = Gate::new(&fleet.way).await;
    let wire = Wire::new(&fleet.way).await;
    let ways = [gate.way(&fleet.way), wire.way(&fleet.way)];
    let started = gather(&mut fleet, &ways).await;
    let silenced: Vec<String> = fleet.machines.keys().skip(1).step_by(2).cloned().collect();
    under_way(&fleet).await;
    gate.shut();
    wire.lose();
    let said: Vec<usize> = silenced.iter().map(|host| fleet.log(host).len()).collect();
    tokio::time::sleep(MINUTE).await;
    let is_deaf = |(host, said): &(&String, &usize)| !fleet.log(host)[**said..].contains("watch of");
    let deaf: Vec<&String> = silenced.iter().zip(&said).filter(is_deaf).map(|(host, _)| host).collect();
    assert!(deaf.is_empty(), "after a minute of silence still listen: {deaf:?}");
    some_are_without(&fleet);
    gate.open();
    wire.find();
    recovers(&mut fleet, started).await;
}

/// R22, R67: watches end again and again, and nobody remembers what happened since: of everybody, and of what goes away as well as
/// of what comes.
pub(crate) async fn watches_miss_events(on: On) {
    let mut fleet = Fleet::new(on).await;
    let front = Front::new(fleet.on.real()).await;
    fleet.way = front.way();
    fleet.controller("controller", None).await;
    let started = gather(&mut fleet, &[front.way()]).await;
    front.forgive();
    under_way(&fleet).await;
    recovers(&mut fleet, started).await;
    assert_eq!(front.spoilt_for(), HOSTS + 1, "each host and the controller missed something");
    fleet.delete_policy("one").await;
    fleet.until("let go", |world| world.enactments.is_empty() && world.allocations("pool").is_empty()).await;
    assert_eq!(front.spoilt_for(), HOSTS + 1);
    fleet.agree().await;
}

/// R22, R67: the API server has more to do than it can, and says so: of agents and controller it takes one request at a time, and
/// sends the others away (429).
pub(crate) async fn the_api_server_is_busy(on: On) {
    let mut fleet = led(on).await;
    let way = fleet.way.clone();
    let started = gather(&mut fleet, &[way]).await;
    let busy = Busy::begin(fleet.on.real()).await;
    under_way(&fleet).await;
    let begun = Instant::now();
    while busy.sent_away().await < 5 * HOSTS {
        assert!(begun.elapsed() < PATIENCE, "{} requests were sent away", busy.sent_away().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    not_all_are_through(&fleet).await;
    busy.end().await;
    recovers(&mut fleet, started).await;
}

/// How long tokens last that run out: the hosts have started by then, and some have been given an address.
const SHORT: Duration = Duration::from_secs(40);
/// For so long an API server takes a token that it knows, whatever has become of it.
const REMEMBERED: Duration = Duration::from_secs(10);

/// R22, R67: the tokens of all run out, the controller's too, and new ones come late. Meanwhile nothing can be written, so that
/// nobody is through before. Kubelets write them into the same file.
pub(crate) async fn tokens_expire(on: On) {
    let mut fleet = Fleet::new(on).await;
    fleet.lasts = Some(SHORT);
    fleet.controller("controller", None).await;
    let way = fleet.way.clone();
    let started = gather(&mut fleet, &[way]).await;
    let last_given = Instant::now();
    let hosts: Vec<String> = fleet.machines.keys().cloned().collect();
    under_way(&fleet).await;
    fleet.on.real().plane.pause_etcd().expect("paused");
    tokio::time::sleep((SHORT + REMEMBERED).saturating_sub(last_given.elapsed())).await;
    some_are_without(&fleet);
    fleet.on.real().plane.resume_etcd().expect("resumed");
    let begun = Instant::now();
    let let_in = |fleet: &Fleet| {
        let mut all = hosts.iter().map(String::as_str).chain(["controller"]);
        all.find(|name| !fleet.log(name).contains("Unauthorized")).map(str::to_owned)
    };
    while let Some(name) = let_in(&fleet) {
        assert!(begun.elapsed() < PATIENCE, "{name} is still let in");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    fleet.lasts = None;
    for host in &hosts {
        fleet.enlist(host).await;
    }
    let token = fleet.on.real().controller_token().await;
    fleet.give_token("controller", &token);
    recovers(&mut fleet, started).await;
}

/// R22, R23: each host serves itself, half of them by one API server and half by another, on one etcd.
pub(crate) async fn r23_there_are_two_api_servers(on: On) {
    let mut fleet = led(on).await;
    let first = fleet.way.clone();
    let (config, certificate) = fleet.on.real().plane.second_api_server().await.expect("a second");
    let second = Way {
        server: config.cluster_url.to_string(),
        certificate: Some(certificate.into()),
        ..Way::default()
    };
    let started = gather(&mut fleet, &[first, second]).await;
    fleet.stop_controller("controller");
    fleet.policy("one", policy()).await;
    recovers(&mut fleet, started).await;
    // While the hosts still run: their ends are not this test's subject.
    fleet.stop_all();
    fleet.on.real().plane.stop_second_api_server().expect("stopped");
}
