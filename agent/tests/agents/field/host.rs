//! A host: a namespace with cards, a folder, and an agent in this process.

use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::netlink::Netlink;
use agent::netns::Namespace;
use agent::node::{Registration, Settings};
use agent::probe::Probes;
use agent::wire::Timing;
use policy::state::{Address, AddressProtocol, Mac};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::PATIENCE;
use crate::listen::Listener;
use crate::pause::Pause;
use crate::world::{Place, Places};

/// A namespace with cards and an agent; all gone with it.
pub(crate) struct Host {
    pub(crate) name: String,
    pub(super) netns: String,
    state_dir: PathBuf,
    /// Those of the field; it is one of them as long as it is there.
    known: Known,
    lease_namespace: &'static str,
    /// Networks that it keeps free where it serves itself.
    pub(crate) exclude: Vec<ipnet::IpNet>,
    pub(super) agent: Option<Working>,
    /// Whether its agent registers its Node, as one without a kubelet does; with a kubelet that does.
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

impl Gateway {
    #[track_caller]
    pub(crate) fn ip(&self, line: &str) -> String {
        run(Command::new("ip").args(["-n", &self.netns]).args(line.split_whitespace()))
    }

    /// The hardware address of a card, as Berth writes them.
    pub(crate) fn mac(&self, card: &str) -> String {
        let links: Value = serde_json::from_str(&self.ip(&format!("-j link show dev {card}"))).expect("JSON");
        let mac: Mac = links[0]["address"].as_str().expect("an address").parse().expect("a MAC");
        mac.to_string()
    }
}

/// A name server; gone with it.
pub(crate) struct Names(Arc<AtomicBool>);

impl Drop for Names {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Gateway {
    /// It answers whoever asks for a name, by sending the question back as an answer.
    pub(crate) fn answers_names(&self) -> Names {
        let namespace: Namespace = self.netns.parse().expect("a name");
        let socket = namespace.inside(|| UdpSocket::bind("0.0.0.0:53")).expect("inside").expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
        let over = Arc::new(AtomicBool::new(false));
        let names = Names(over.clone());
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while !over.load(Ordering::SeqCst) {
                if let Ok((length, from)) = socket.recv_from(&mut question) {
                    question[2] |= 0x80;
                    socket.send_to(&question[..length], from).expect("sent");
                }
            }
        });
        names
    }
}

/// How to end an agent, and when it has.
pub(super) type Working = (Box<dyn Fn() + Send>, JoinHandle<()>);

impl Drop for Host {
    fn drop(&mut self) {
        if let Some((stop, task)) = self.agent.take() {
            stop();
            task.abort();
        }
        self.forget();
        let _ = Command::new("ip").args(["netns", "del", &self.netns]).status();
        let _ = std::fs::remove_dir_all(&self.state_dir);
        let _ = std::fs::remove_dir_all(self.files());
    }
}

/// The hosts of a field.
pub(super) type Known = Arc<Mutex<Places>>;

impl Host {
    /// The namespace alone.
    pub(super) fn new(name: &str, cards: usize, lease_namespace: &'static str, known: Known) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let netns = format!("berth-a{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        run(Command::new("ip").args(["netns", "add", &netns]));
        let state_dir = std::env::temp_dir().join(&netns);
        std::fs::create_dir_all(&state_dir).expect("a folder");
        let place = Place { netns: netns.clone(), state_dir: state_dir.clone() };
        known.lock().expect("whole").insert(name.to_owned(), place);
        let host = Self {
            name: name.to_owned(),
            netns,
            state_dir,
            known,
            lease_namespace,
            exclude: Vec::new(),
            agent: None,
            registers: false,
        };
        host.ip("link set lo up");
        for card in 0..cards {
            host.ip(&format!("link add eth{card} type veth peer name far{card}"));
            host.ip(&format!("link set far{card} up"));
            host.ip(&format!("link set eth{card} up"));
        }
        host
    }

    /// It is off for good: nobody looks at its cards and its disk any more.
    pub(super) fn forget(&self) {
        if let Ok(mut known) = self.known.lock() {
            known.retain(|_, place| place.netns != self.netns);
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            node: self.name.clone(),
            namespace: self.netns.parse().expect("a name"),
            state_dir: self.state_dir.clone(),
            checkpoint_dir: self.state_dir.clone(),
            host_root: "/".into(),
            register: self.registers.then(Registration::default),
            lease_namespace: self.lease_namespace.to_owned(),
            exclude: self.exclude.clone(),
            probes: Probes { patience: Duration::from_secs(3), ..Probes::default() },
            wire_probe: Timing::default(),
        }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.netns
    }

    #[track_caller]
    pub(crate) fn ip(&self, line: &str) -> String {
        run(Command::new("ip").args(["-n", &self.netns]).args(line.split_whitespace()))
    }

    pub(crate) fn sysctl(&self, setting: &str) {
        run(Command::new("ip").args(["netns", "exec", &self.netns, "sysctl", "-qw", setting]));
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
            gateway.ip(&line);
        }
        gateway
    }

    /// From now on it asks this server for names.
    pub(crate) fn resolves_by(&self, server: &str) {
        let files = self.files();
        std::fs::create_dir_all(&files).expect("a folder");
        std::fs::write(files.join("resolv.conf"), format!("nameserver {server}\n")).expect("a file");
    }

    /// What a namespace has of `/etc` for itself.
    fn files(&self) -> PathBuf {
        PathBuf::from("/etc/netns").join(&self.netns)
    }

    /// What is on its disk.
    pub(crate) fn journal(&self) -> String {
        std::fs::read_to_string(self.state_dir.join("journal.json")).unwrap_or_default()
    }

    /// The disk is lost.
    pub(crate) fn lose_journal(&self) {
        std::fs::remove_dir_all(&self.state_dir).expect("a folder");
        std::fs::create_dir_all(&self.state_dir).expect("a folder");
    }

    /// Listens from now on.
    pub(crate) async fn listen(&self) -> Listener {
        Listener::new(&self.netns, &self.state_dir.join("heard")).await
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
        let mut pause = Pause::new();
        let waited = tokio::time::timeout(PATIENCE, async {
            while !holds() {
                pause.pass().await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("{}: never {what}", self.name));
    }
}

#[track_caller]
pub(super) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
