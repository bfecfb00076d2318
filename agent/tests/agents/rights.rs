//! Least rights: what `deploy/rbac` gives agents and the controller is what they use, no more and no less.
//!
//! A story that comes to whatever they ask of an API server, on one that keeps an audit log; whoever writes is overtaken once
//! by somebody else, since some things are asked only then. A right that no story could come to is none to give.

mod asked;
mod given;
mod right;

use agent::controller::Settings;
use api_tests::control_plane::{Kinds, Options};
use api_tests::wait;
use crds::names::annotation::RESET_POOL;
use crds::names::label::FORCE_STATE_REFRESH;
use crds::{NodeNetworkConfigurationEnactment, NodeNetworkState};
use serde_json::{Value, json};

use crate::cluster::{AGENT, CONTROLLER, Cluster};
use crate::field::{Field, Host, address_on, doubles, one_address};
use crate::on;
use crate::told::{POLICY, POOL, told, told_again};

/// For an API server that writes down what these accounts ask for.
pub(crate) fn audited(accounts: &[&str]) -> Value {
    asked::policy(accounts)
}

/// How much it has written down by now.
pub(crate) fn written(real: &Cluster) -> usize {
    asked::written(real)
}

/// What agents and controller asked for since then and are not given, in whatever test. An API server that starts knows no roles
/// for a moment, and refuses what they give: that is not meant. Blocks.
pub(crate) fn lacking(real: &Cluster, since: usize) -> Vec<String> {
    let lacking = |account| {
        let asked = asked::by_since(real, account, since);
        let given = api_tests::RUNTIME.block_on(given::to(&real.plane.client(), account));
        right::missing(account, &given, &asked)
    };
    [AGENT, CONTROLLER].into_iter().flat_map(lacking).collect()
}

#[test]
fn what_is_given_is_what_is_used() {
    let accounts = &[AGENT, CONTROLLER];
    let options = Options { audit: Some(asked::policy(accounts)), ..Options::default() };
    on::own(&options, |real| async move {
        let leads = real.controller_token().await;
        given_is_used(real, accounts, &leads).await;
    });
}

/// Of `deploy/overlays/no-controller`: an agent leads, with the account that all agents have.
#[test]
fn what_agents_are_given_that_lead_is_what_they_use() {
    let accounts = &[AGENT];
    let options = Options { audit: Some(asked::policy(accounts)), kinds: Kinds::None, ..Options::default() };
    on::own(&options, |real| async move {
        let overlay = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/overlays/no-controller");
        real.plane.run_kubectl(&["apply", "--kustomize", overlay]);
        real.plane.run_kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
        let leads = real.agent_token(AGENT, "node01").await;
        given_is_used(real, accounts, &leads).await;
    });
}

/// The whole story, led by who has this token; then these accounts are looked at.
async fn given_is_used(real: &'static Cluster, accounts: &'static [&'static str], leads: &str) {
    let _refusals = Refusals { real, accounts };
    let leading = real.client_of(leads);
    let ensured = json!({"metadata": {"name": "ensured"}, "spec": {"range": {"cidr": "10.10.60.0/24"}}});
    let ensured = serde_json::from_value(ensured).expect("a pool");
    let settings = Settings { ensure: [("ensured".to_owned(), ensured)].into(), ..Settings::default() };
    let mut field = Field::led_by(real, doubles::overtaken(leading, real.client()), settings);
    field.until_pool("ensured", "made", |_| true).await;
    let tiny = json!({"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.1"});
    field.pool("tiny", json!({"range": tiny})).await;
    field.pool("wide", json!({"range": {"cidr": "10.10.20.0/24"}, "quarantine": "1s"})).await;
    let cut = json!({"cidr": "10.10.30.0/24", "perNodeHostBits": 4});
    field.pool("cut", json!({"range": cut, "quarantine": "1s"})).await;
    let mut host = field.machine("node01", 2);
    real.node("node01").await;
    start(&field, &mut host).await;
    field.policy("one", one_address("tiny")).await;
    field.until_standing(&host, "one", "Available").await;

    twice_told(&field, &host).await;
    a_namesake_comes_and_goes(&field).await;
    told_again(&field, POLICY, "DriftRepaired").await;
    told_again(&field, POOL, "ExhaustedIPPool").await;
    comes_back(&field, &mut host).await;
    field.annotate_pool("wide", RESET_POOL, json!("wide")).await;
    let is_reset = |pool: &Value| pool["metadata"]["annotations"][RESET_POOL].is_null();
    field.until_pool("wide", "reset", is_reset).await;
    field.annotate_policy("one", RESET_POOL, json!("tiny")).await;
    let is_reset = |policy: &Value| policy["metadata"]["annotations"][RESET_POOL].is_null();
    field.until_policy("one", "reset", is_reset).await;
    field.lose_controller().await;
    serves_itself(&field, &host).await;
    field.find_controller();

    // What was asked last stands there a moment later.
    wait::until("deploy/rbac gives what is used", || async {
        let mut wrong = Vec::new();
        for account in accounts {
            let given = given::to(&field.client(), account).await;
            wrong.extend(right::wrong(account, &given, &asked::by(real, account)));
        }
        if wrong.is_empty() { Ok(()) } else { Err(format!("\n  {}", wrong.join("\n  "))) }
    })
    .await;
    field.agree().await;
}

/// Its agent is overtaken, too.
async fn start(field: &Field, host: &mut Host) {
    let client = doubles::overtaken(field.client_for(host).await, field.client());
    field.start_with(host, &client);
}

/// The agent puts back what is changed, twice, and the pool runs out, twice: an Event each, and the same again.
async fn twice_told(field: &Field, host: &Host) {
    told(field, POOL, "ExhaustedIPPool").await;
    let had = host.addresses("eth0");
    for _ in 0..2 {
        host.ip(&format!("addr del {} dev eth0", had[0]));
        host.wait_until("put back", || host.addresses("eth0") == had).await;
        told(field, POLICY, "DriftRepaired").await;
    }
    field.delete_policy("one").await;
    field.until_no_enactment(host, "one").await;
    let has_room = |pool: &Value| pool["status"]["conditions"][0]["status"] == "True";
    field.until_pool("tiny", "with room", has_room).await;
    field.policy("one", one_address("tiny")).await;
    field.until_standing(host, "one", "Available").await;
}

/// A host whose name somebody else reported under takes that report away; and when its Node is gone for good, so is what it
/// held.
async fn a_namesake_comes_and_goes(field: &Field) {
    field.create::<NodeNetworkState>(json!({"metadata": {"name": "node02"}})).await;
    let mut host = field.machine("node02", 2);
    field.make_node("node02", "True").await;
    start(field, &mut host).await;
    field.label(&host, "only", "node02").await;
    let mut policy = one_address("wide");
    policy["nodeSelector"] = json!({"only": "node02"});
    field.policy("two", policy).await;
    field.until_standing(&host, "two", "Available").await;
    // A slice of its own goes the same way.
    let mut policy = address_on("cut", "eth1");
    policy["nodeSelector"] = json!({"only": "node02"});
    field.policy("cut", policy).await;
    field.until_standing(&host, "cut", "Available").await;
    field.remove_host(&host).await;
    field.until_no_enactment(&host, "two").await;
    field.until_no_enactment(&host, "cut").await;
    told(field, POOL, "SliceFreed").await;
}

/// A host that was off finds its enactment gone, and then its Node made anew: by its journal it has its address again.
async fn comes_back(field: &Field, host: &mut Host) {
    host.stop().await;
    field.force_enactment_away(host, "one").await;
    let is_asked = |state: &Value| !state["metadata"]["labels"][FORCE_STATE_REFRESH].is_null();
    field.until::<NodeNetworkState>(&host.name, "asked for its word", is_asked).await;
    start(field, host).await;
    let own = field.until_standing(host, "one", "Available").await;

    host.stop().await;
    field.delete_node(host).await;
    field.make_node(&host.name, "True").await;
    start(field, host).await;
    let owner = |own: &Value| own["metadata"]["ownerReferences"][0]["uid"].clone();
    let is_anew =
        |now: &Value| owner(now) != owner(&own) && now["status"]["conditions"][0]["status"] == "True";
    let name = crds::names::enactment_name(&host.name, "one");
    field.until::<NodeNetworkConfigurationEnactment>(&name, "of the new Node", is_anew).await;
}

/// Nobody leads.
async fn serves_itself(field: &Field, host: &Host) {
    for pool in ["wide", "cut"] {
        field.policy("three", address_on(pool, "eth1")).await;
        field.until_standing(host, "three", "Available").await;
        field.delete_policy("three").await;
        field.until_no_enactment(host, "three").await;
    }
}

/// Whoever lacks a right may never come to the end of the story: what was refused is said then, too.
struct Refusals {
    real: &'static Cluster,
    accounts: &'static [&'static str],
}

impl Drop for Refusals {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for account in self.accounts {
                for right in asked::by(self.real, account).refused {
                    eprintln!("{account} was refused the right to {right}");
                }
            }
        }
    }
}
