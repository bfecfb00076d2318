//! As systemd runs it: with the unit's capabilities and no others, told when it is ready, fed its watchdog, asked how it
//! is.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::folder::Folder;
use crate::support::{Berth, DEADLINE, Host, MANIFESTS, get, until};

const UNIT: &str = include_str!("../../../systemd/berth.service");

/// The capabilities that a unit leaves, as setpriv spells them.
pub(crate) fn bounds(unit: &str) -> String {
    let line =
        unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).expect("in the unit");
    let names = line.split_whitespace().map(|name| name.trim_start_matches("CAP_").to_lowercase());
    names.fold("-all".to_owned(), |all, name| format!("{all},+{name}"))
}

/// The service, as the unit has it, on a host's network.
fn service(folder: &Path, host: &Host, notify: &Path) -> Berth {
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--bounding-set={}", bounds(UNIT)))
        .args(["--no-new-privs", env!("CARGO_BIN_EXE_berth")])
        .env("NOTIFY_SOCKET", notify)
        .env("WATCHDOG_USEC", "20000");
    let arguments = [
        "agent",
        "--standalone=manifests",
        "--state-dir=state",
        "--node=node01",
        "--log-format=json",
        "--health-address=127.0.0.1:0",
        &format!("--netns={}", host.netns),
    ];
    Berth::start_as(command, folder, &arguments)
}

/// What systemd is told, as it comes: whoever is slow to listen would miss some.
pub(crate) fn listener(path: &Path) -> Receiver<String> {
    let socket = UnixDatagram::bind(path).expect("a socket");
    let (send, heard) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 256];
        while let Ok(length) = socket.recv(&mut buffer) {
            if send.send(String::from_utf8_lossy(&buffer[..length]).into_owned()).is_err() {
                return;
            }
        }
    });
    heard
}

pub(crate) fn hear(heard: &Receiver<String>) -> String {
    heard.recv_timeout(DEADLINE).expect("systemd is told")
}

fn value(page: &str, metric: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {metric}\n{page}")).parse().expect("a number")
}

/// R27: what the journal holds is on the card before anybody is told that the service is ready, with nothing but the
/// unit's capabilities; the watchdog is fed; the page of metrics tells what was done; logs are JSON.
#[test]
fn ready_is_said_when_the_first_pass_is_over() {
    let (folder, host) = (Folder::new(), Host::new());
    let at = folder.path();
    fs::create_dir(at.join("manifests")).expect("a folder");
    fs::write(at.join("manifests/all.yaml"), MANIFESTS).expect("written");
    let heard = listener(&at.join("notify"));

    let mut first = service(at, &host, &at.join("notify"));
    assert_eq!(hear(&heard), "READY=1\nSTATUS=at work");
    assert_eq!(hear(&heard), "WATCHDOG=1");
    let given = until("an address", || host.addresses().first().cloned());
    let line = first.until_says("health and metrics on http://");
    let said: Value = serde_json::from_str(&line).expect("JSON");
    let address = said["message"].as_str().expect("text").rsplit('/').next().expect("an address").to_owned();
    until("ready", || get(&address, "/readyz").starts_with("HTTP/1.1 200 ").then_some(()));
    assert!(get(&address, "/healthz").ends_with("\r\n\r\nok\n"));
    // The address is on the card before all of it is counted.
    let page = until("counted", || {
        let page = get(&address, "/metrics");
        page.contains("berth_pool_allocated{pool=\"traffic-1\"} 1\n").then_some(page)
    });
    assert!(
        value(
            &page,
            "berth_claims_total{pool=\"traffic-1\",range=\"default\",kind=\"dynamic\",result=\"granted\"}"
        ) >= 1.0
    );
    assert_eq!(value(&page, "berth_claim_seconds_count"), 1.0);
    assert!(value(&page, "berth_apply_seconds_count{step=\"apply\"}") >= 1.0);
    // From the start, or Prometheus would not see the first as one more.
    assert_eq!(value(&page, "berth_apply_seconds_count{step=\"revert\"}"), 0.0);
    assert_eq!(value(&page, "berth_pool_capacity{pool=\"traffic-1\"}"), 254.0);
    assert!(page.contains("kubernetes_nmstate_network_interfaces{type=\"veth\",node=\"node01\"}"), "{page}");
    // Something else takes it away, and it comes back.
    host.ip(&format!("addr del {given} dev eth0"));
    until("put back", || (host.addresses() == [given.clone()]).then_some(()));
    until("a repair", || {
        (value(&get(&address, "/metrics"), "berth_drift_repairs_total") >= 1.0).then_some(())
    });

    first.signal(Signal::SIGTERM);
    let (code, lines) = first.end();
    assert_eq!(code, Some(0), "{lines:#?}");
    for line in &lines {
        let said: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        assert!(
            said["time"].is_string() && said["level"].is_string() && said["message"].is_string(),
            "{line}"
        );
    }
    let passes = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
    assert!(passes("a pass begins") > 0, "{lines:#?}");
    assert_eq!(passes("a pass begins"), passes("the pass is over"), "{lines:#?}");
    // What it said to systemd until its end.
    until("its last word", || hear(&heard).starts_with("STOPPING=1").then_some(()));

    host.ip(&format!("addr del {given} dev eth0"));
    let heard = listener(&at.join("notify-again"));
    let mut second = service(at, &host, &at.join("notify-again"));
    assert_eq!(hear(&heard), "READY=1\nSTATUS=at work");
    assert_eq!(host.addresses(), [given], "ready before the journal was applied");
    second.signal(Signal::SIGTERM);
    assert_eq!(second.end().0, Some(0));
}

#[test]
fn a_port_that_is_taken_is_an_error_where_it_was_asked_for() {
    let (folder, host) = (Folder::new(), Host::new());
    fs::create_dir(folder.path().join("manifests")).expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address");
    let arguments = [
        "agent",
        "--standalone=manifests",
        "--state-dir=state",
        &format!("--netns={}", host.netns),
        &format!("--health-address={address}"),
    ];
    let (code, said) = Berth::start(folder.path(), &arguments).end();
    let wanted = format!(
        "error: can't listen on {address} for /healthz, /readyz and /metrics; give another --health-address, or 'none'"
    );
    assert_eq!(code, Some(1), "{said:#?}");
    assert!(said.contains(&wanted), "{said:#?}");
}

/// The usual address is a convenience: whoever comes second says so and goes on.
#[test]
fn the_usual_port_may_be_anothers() {
    let (folder, host) = (Folder::new(), Host::new());
    let config = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: c}}], \
        users: [{name: c, user: {}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}";
    fs::write(folder.path().join("kubeconfig"), config).expect("written");
    // In a network of its own: ports of this machine are others'.
    let controller = || {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &host.netns, env!("CARGO_BIN_EXE_berth")]);
        Berth::start_as(command, folder.path(), &["controller", "--kubeconfig=kubeconfig"])
    };
    let mut first = controller();
    first.until_says("health and metrics on http://127.0.0.1:9466");
    let mut second = controller();
    let said =
        second.until_says("warning: can't listen on 127.0.0.1:9466 for /healthz, /readyz and /metrics");
    assert!(said.ends_with("; going on without"), "{said}");
    second.until_says("waiting for Lease default/berth-controller");
    for controller in [&mut first, &mut second] {
        controller.signal(Signal::SIGTERM);
        assert_eq!(controller.end().0, Some(0));
    }
}

/// A host on its own has nobody to ask but its log: what fails is said there, with the reason, once; and what works.
#[test]
fn what_becomes_of_a_policy_is_in_the_log() {
    let (folder, host) = (Folder::new(), Host::new());
    let at = folder.path();
    fs::create_dir(at.join("manifests")).expect("a folder");
    let policy = |name: &str, spec: &str| {
        format!(
            "---\napiVersion: nmstate.io/v1\nkind: NodeNetworkConfigurationPolicy\nmetadata: {{name: {name}}}\nspec: {spec}\n"
        )
    };
    let all = [
        policy(
            "a-unmatched",
            "{capture: {nic: 'interfaces.name == \"eth9\"'}, desiredState: {interfaces: []}}",
        ),
        policy("b-unknown", "{capture: {a: ippool.nowhere.allocate}, desiredState: {interfaces: []}}"),
        policy("c-good", "{desiredState: {interfaces: [{name: eth0, type: veth, state: up}]}}"),
    ];
    fs::write(at.join("manifests/all.yaml"), all.concat()).expect("written");
    let arguments = ["agent", "--standalone=manifests", "--state-dir=state", "--node=node01"];
    let netns = format!("--netns={}", host.netns);
    let mut berth = Berth::start(at, &[&arguments[..], &[&netns]].concat());
    let words = [
        ("policy a-unmatched: ", "eth9"),
        ("policy b-unknown: ", "no pool named nowhere"),
        ("policy c-good: ", "successfully reconciled"),
    ];
    // In whatever order.
    while !words
        .iter()
        .all(|(policy, why)| berth.said.iter().any(|line| line.contains(policy) && line.contains(why)))
    {
        berth.until_says("policy ");
    }
    berth.signal(Signal::SIGTERM);
    let (code, lines) = berth.end();
    assert_eq!(code, Some(0), "{lines:#?}");
    for (policy, _) in words {
        assert_eq!(lines.iter().filter(|line| line.contains(policy)).count(), 1, "{policy}: {lines:#?}");
    }
}

/// Who can't change a network is told so at once, not by every policy.
#[test]
fn without_the_right_to_change_networks_it_does_not_start() {
    let folder = Folder::new();
    for verb in ["agent", "boot"] {
        let state = folder.path().join("state");
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-net_admin", "--inh-caps=-all", env!("CARGO_BIN_EXE_berth"), verb]);
        command.arg("--state-dir").arg(&state);
        if verb == "agent" {
            command.args(["--node=node01", "--standalone"]).arg(folder.path());
        }
        let output = command.output().expect("setpriv");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{verb}: {said}");
        assert!(said.contains("needs CAP_NET_ADMIN") && said.contains("root"), "{verb}: {said}");
        assert!(!state.exists(), "{verb}: nothing was begun");
    }
}

/// Rule 11, R57: what a policy names itself is counted as static.
#[test]
fn r57_rule11_an_address_that_a_policy_names_is_counted_as_static() {
    let (folder, host) = (Folder::new(), Host::new());
    let at = folder.path();
    fs::create_dir(at.join("manifests")).expect("a folder");
    let named = MANIFESTS
        .replace("  capture: {address: ippool.traffic-1.allocate}\n", "")
        .replace("'{{ capture.address.ip }}'", "10.10.10.5")
        .replace("'{{ capture.address.prefix-length }}'", "24");
    assert!(!named.contains("capture"), "{named}");
    fs::write(at.join("manifests/all.yaml"), named).expect("written");
    let mut agent = service(at, &host, &at.join("notify"));
    let line = agent.until_says("health and metrics on http://");
    let said: Value = serde_json::from_str(&line).expect("JSON");
    let address = said["message"].as_str().expect("text").rsplit('/').next().expect("an address").to_owned();
    until("the address", || (host.addresses() == ["10.10.10.5/24"]).then_some(()));
    let page = until("counted", || {
        let page = get(&address, "/metrics");
        page.contains("berth_pool_allocated{pool=\"traffic-1\"} 1\n").then_some(page)
    });
    let granted =
        "berth_claims_total{pool=\"traffic-1\",range=\"default\",kind=\"static\",result=\"granted\"}";
    assert!(value(&page, granted) >= 1.0);
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.end().0, Some(0));
}
