//! What happens to hosts: the API goes away, agents are ended in the middle, policies change under way.

use std::time::Instant;

use crds::NodeNetworkConfigurationPolicy;
use serde_json::{Value, json};

use crate::field::{address_on, one_address};
use crate::fleet::{Fleet, PATIENCE, World};
use crate::on::On;

fn pool() -> Value {
    json!({"range": {"cidr": "10.10.10.0/24"}, "quarantine": "2s"})
}

/// R27, R111: hosts keep what they have, put it back, and start from their journals; who has nothing gets nothing. Then all
/// catch up by themselves.
pub(crate) async fn r27_r111_the_api_is_away_for_a_while(on: On) {
    let mut fleet = Fleet::new(on).await;
    fleet.controller("controller", None).await;
    for host in ["a", "b"] {
        fleet.host(host, 2).await;
    }
    fleet.pool("pool", pool()).await;
    fleet.policy("one", one_address("pool")).await;
    fleet.until_standing(&["a", "b"], "one", "Available").await;
    let before = fleet.agree().await;
    let had = |host: &str| before.held("pool", host).expect("an address");
    fleet.machine("c", 2);
    fleet.enlist("c").await;
    fleet.kill_api();
    // Drift.
    fleet.machines["a"].power_cut();
    fleet.until_on("a", "eth0", "put back", |on| on == [had("a")]).await;
    // A boot.
    fleet.kill_agent("b");
    fleet.machines["b"].power_cut();
    fleet.agent("b", None).await;
    fleet.until_on("b", "eth0", "as it was", |on| on == [had("b")]).await;
    // Somebody new, who must wait.
    fleet.agent("c", None).await;
    let said = |fleet: &Fleet| fleet.log("c").contains("trying again");
    let begun = Instant::now();
    while !said(&fleet) {
        assert!(begun.elapsed() < PATIENCE, "c never says that the API is away");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(fleet.machines["c"].all_addresses().is_empty());
    fleet.start_api().await;
    fleet.until_standing(&["a", "b", "c"], "one", "Available").await;
    let mut second = address_on("pool", "eth1");
    second["maxUnavailable"] = json!("100%");
    fleet.policy("two", second).await;
    fleet.until_standing(&["a", "b", "c"], "two", "Available").await;
    let after = fleet.agree().await;
    for host in ["a", "b"] {
        assert!(after.kernels[host].contains(&had(host)), "{host}");
    }
}

/// One host has one agent.
pub(crate) async fn a_second_agent_for_one_host_ends_at_once(on: On) {
    let mut fleet = Fleet::new(on).await;
    fleet.controller("controller", None).await;
    fleet.host("a", 1).await;
    fleet.pool("pool", pool()).await;
    fleet.policy("one", one_address("pool")).await;
    fleet.until_standing(&["a"], "one", "Available").await;
    let mut second = fleet.agent_process("a", "second", None).await;
    let ended = second.wait();
    assert!(!ended.success() && ended.code().is_some(), "{ended}");
    assert!(fleet.log("second").contains("one host has one"), "{}", fleet.log("second"));
    // The first goes on.
    fleet.machines["a"].power_cut();
    let before = fleet.agree().await;
    assert_eq!(before.kernels["a"].len(), 1);
}

/// R22: a machine that was given another's name: it is told so, has nothing, and leaves the other in peace. When that one is
/// off for good, the name is its own. Of hosts that register their Nodes, which tell each other by a Lease, and so of the
/// embedded API: on a cluster kubelets register Nodes, agents have no right to, and a pod runs on the node that its token
/// is of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r22_a_second_machine_of_one_name_does_nothing() {
    let mut fleet = Fleet::new(On::Embedded).await;
    fleet.controller("controller", None).await;
    fleet.host("a", 1).await;
    fleet.pool("pool", pool()).await;
    fleet.policy("one", one_address("pool")).await;
    fleet.until_standing(&["a"], "one", "Available").await;
    let before = fleet.agree().await;
    let version = |world: &World| world.enactment("a", "one")["metadata"]["resourceVersion"].clone();
    fleet.machine("twin", 1);
    let _second = fleet.agent_on("a", "twin", "second", None);
    let begun = Instant::now();
    while !fleet.log("second").contains("node a is another host's") {
        assert!(begun.elapsed() < PATIENCE, "it never says so: {}", fleet.log("second"));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    fleet.machines["a"].power_cut();
    let had = before.held("pool", "a").expect("an address");
    fleet.until_on("a", "eth0", "put back", |on| on == [had.clone()]).await;
    assert!(fleet.machines["twin"].all_addresses().is_empty());
    let after = fleet.until("seen", |_| true).await;
    assert_eq!(version(&after), version(&before), "nobody writes");
    // The first is gone, with its card.
    fleet.kill_agent("a");
    fleet.machines["a"].power_cut();
    fleet.until_on("twin", "eth0", "the new one's", |on| on == [had.clone()]).await;
    fleet.machines.remove("a");
    fleet.renamed.insert("twin".to_owned(), "a".to_owned());
    fleet.agree().await;
}

/// An address that the kernel looks for on the wire before it is used: that takes a second or two.
fn slow(ip: &str, most: &Value) -> Value {
    json!({"maxUnavailable": most, "desiredState": {"interfaces": [{"name": "eth0", "type": "veth", "state": "up",
        "ipv6": {"enabled": true, "dhcp": false, "autoconf": false, "address": [{"ip": ip, "prefix-length": 64}]}}]}})
}

fn has(fleet: &Fleet, host: &str, ip: &str) -> bool {
    fleet.machines[host].ip("-6 addr show dev eth0").contains(&format!("{ip}/"))
}

/// A policy is changed while one host applies it and two wait for their turn. Editing is refused then, as
/// kubernetes-nmstate does; deleting and creating is not, and all end with what it says now.
pub(crate) async fn a_policy_is_changed_under_way(on: On) {
    let hosts = ["a", "b", "c"];
    let mut fleet = three(on, &hosts).await;
    // Long enough that it is seen on a busy machine, and not as long as an agent has patience.
    fleet.machines.values().for_each(|machine| machine.sysctl("net.ipv6.conf.eth0.dad_transmits=6"));
    fleet.policy("slow", slow("fd00::1", &json!(1))).await;
    let count = |world: &World, condition: &str| {
        hosts.iter().filter(|host| world.stands(host, "slow", condition)).count()
    };
    let told = "Policy is progressing 0/3 nodes finished, 2 pending";
    let world = fleet
        .until("under way, and says so", |world| {
            let says = |one: &Value| {
                one["type"] == "Progressing"
                    && one["reason"] == "ConfigurationProgressing"
                    && one["message"] == told
            };
            let conditions = world.policies.get("slow").map(|policy| &policy["status"]["conditions"]);
            count(world, "Progressing") == 1
                && count(world, "Pending") == 2
                && conditions.and_then(Value::as_array).is_some_and(|all| all.iter().any(says))
        })
        .await;
    let waits = |host: &&&str| world.stands(host, "slow", "Pending");
    for host in hosts.iter().filter(waits) {
        let conditions = &world.enactment(host, "slow")["status"]["conditions"];
        let pending = conditions.as_array().into_iter().flatten().find(|one| one["type"] == "Pending");
        let pending = pending.expect("a condition");
        assert_eq!(pending["reason"], "MaxUnavailableLimitReached", "{pending}");
        assert_eq!(pending["message"], "Waiting for progressing nodes to finish", "{pending}");
    }
    let refused = fleet.try_edit_policy("slow", slow("fd00::2", &json!(1))).await.expect_err("under way");
    assert!(refused.to_string().contains("policy slow is still in progress"), "{refused}");
    fleet.machines.values().for_each(|machine| machine.sysctl("net.ipv6.conf.eth0.dad_transmits=1"));
    fleet.delete_policy("slow").await;
    fleet.policy("slow", slow("fd00::3", &json!(1))).await;
    ends_with(&mut fleet, &hosts, "fd00::3").await;
    // Over: now it may be.
    fleet.try_edit_policy("slow", slow("fd00::4", &json!(1))).await.expect("it is over");
    ends_with(&mut fleet, &hosts, "fd00::4").await;
    fleet.agree().await;
}

/// A policy is edited before anybody leads: whoever waits for a slot applies what it says then.
pub(crate) async fn a_policy_is_edited_while_hosts_wait_for_a_slot(on: On) {
    let hosts = ["a", "b", "c"];
    let mut fleet = three(on, &hosts).await;
    fleet.stop_controller("controller");
    fleet.policy("slow", slow("fd00::1", &json!(1))).await;
    fleet.until("known", |world| world.enactments.len() == 3).await;
    let begun = Instant::now();
    while let Err(error) = fleet.try_edit_policy("slow", slow("fd00::2", &json!(1))).await {
        assert!(begun.elapsed() < PATIENCE, "{error}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    fleet.controller("controller", None).await;
    ends_with(&mut fleet, &hosts, "fd00::2").await;
    fleet.agree().await;
}

async fn three(on: On, hosts: &[&str]) -> Fleet {
    let mut fleet = Fleet::new(on).await;
    fleet.controller("controller", None).await;
    for host in hosts {
        fleet.host(host, 1).await;
    }
    fleet.until("registered", |world| world.states.len() == hosts.len()).await;
    fleet
}

/// All have this address and none of before; the policy says so, and no slot is left.
async fn ends_with(fleet: &mut Fleet, hosts: &[&str], ip: &str) {
    fleet.until_standing(hosts, "slow", "Available").await;
    let done = |world: &World| world.policies["slow"]["status"]["conditions"][0].clone();
    let said = |world: &World| {
        let observed = world.policies["slow"]["metadata"]["generation"].as_i64();
        hosts
            .iter()
            .all(|host| world.enactment(host, "slow")["status"]["policyGeneration"].as_i64() == observed)
            && done(world)["message"] == "3/3 nodes successfully configured"
            && world.policies["slow"]["status"]["unavailableNodes"].is_null()
    };
    fleet.until("available", said).await;
    for host in hosts {
        let on = fleet.machines[*host].ip("-6 addr show dev eth0");
        let global = on.lines().filter(|line| line.contains("scope global")).count();
        assert!(global == 1 && has(fleet, host, ip), "{host}: {on}");
    }
}

/// SIGTERM while a policy is being applied: undone or done, said so by the exit code, and done at the next start.
pub(crate) async fn an_agent_is_told_to_stop_under_way(on: On) {
    let mut fleet = Fleet::new(on).await;
    fleet.controller("controller", None).await;
    fleet.host("a", 1).await;
    fleet.until("registered", |world| world.states.len() == 1).await;
    // Long enough that it is not over before it is seen.
    fleet.machines["a"].sysctl("net.ipv6.conf.eth0.dad_transmits=5");
    fleet.policy("slow", slow("fd00::1", &json!("100%"))).await;
    // On the card and not yet usable: in the middle.
    let begun = Instant::now();
    while !fleet.machines["a"].ip("-6 addr show dev eth0").contains("fd00::1/64 scope global tentative") {
        assert!(begun.elapsed() < PATIENCE, "it is never applied");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    fleet.stop_agent("a");
    assert!(!has(&fleet, "a", "fd00::1"), "it was undone");
    let world = fleet.until("seen", |_| true).await;
    assert!(!world.stands("a", "slow", "Failing"), "that it was told to stop is no failure");
    fleet.agent("a", None).await;
    fleet.until_standing(&["a"], "slow", "Available").await;
    assert!(has(&fleet, "a", "fd00::1"));
    fleet.agree().await;
}

/// One may be changed at a time; it dies in the middle, slot and all, and its Node goes: the others are changed.
pub(crate) async fn a_host_that_dies_at_work_keeps_nobody_from_it(on: On) {
    let mut fleet = Fleet::new(on).await;
    fleet.controller("controller", None).await;
    let hosts = ["a", "b", "c"];
    for host in hosts {
        fleet.machine(host, 1);
        // Whoever comes first dies as soon as it has said that it begins.
        fleet.agent(host, Some("progressing-said")).await;
    }
    fleet.pool("pool", pool()).await;
    let mut policy = one_address("pool");
    policy["maxUnavailable"] = json!(1);
    fleet.policy("one", policy).await;
    let dead = fleet.first_to_die().await;
    let slots = fleet.api::<NodeNetworkConfigurationPolicy>().get("one").await.expect("the policy").status;
    let slots: Vec<String> = slots.unwrap_or_default().unavailable_nodes.into_keys().collect();
    assert_eq!(slots, std::slice::from_ref(&dead), "it has the slot");
    let others: Vec<&str> = hosts.into_iter().filter(|host| *host != dead).collect();
    for host in &others {
        fleet.kill_agent(host);
        fleet.agent(host, None).await;
    }
    fleet.kill_agent(&dead);
    fleet.machines.remove(&dead);
    fleet.delete_node(&dead).await;
    fleet.until_standing(&others, "one", "Available").await;
    fleet.agree().await;
}
