//! SIGTERM ends what runs, also where the API takes requests and never answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;

use crate::folder::Folder;
use crate::support::{Berth, Host, run, until};

/// Between a client and the API: passes everything on, until it is told to swallow what clients send.
struct Proxy {
    address: SocketAddr,
    swallows: Arc<AtomicBool>,
    swallowed: Arc<Mutex<Vec<u8>>>,
}

impl Proxy {
    fn start(api: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let proxy = Self {
            address: listener.local_addr().expect("its address"),
            swallows: Arc::new(AtomicBool::new(api.is_none())),
            swallowed: Arc::default(),
        };
        let (swallows, swallowed) = (proxy.swallows.clone(), proxy.swallowed.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = api.as_ref().map(|api| TcpStream::connect(api).expect("the API"));
                if let Some(mut from) = server.as_ref().map(|server| server.try_clone().expect("a stream")) {
                    let mut to = client.try_clone().expect("a stream");
                    std::thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
                }
                let (swallows, swallowed) = (swallows.clone(), swallowed.clone());
                std::thread::spawn(move || pump(client, server, &swallows, &swallowed));
            }
        });
        proxy
    }

    fn kubeconfig(&self, path: &Path) {
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: c}}}}], \
            users: [{{name: c, user: {{}}}}], clusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]}}",
            self.address
        );
        std::fs::write(path, text).expect("written");
    }
}

fn pump(mut from: TcpStream, mut to: Option<TcpStream>, swallows: &AtomicBool, swallowed: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if swallows.load(Ordering::SeqCst) {
            swallowed.lock().expect("nobody panics").extend_from_slice(&buffer[..length]);
        } else if to.as_mut().is_none_or(|to| to.write_all(&buffer[..length]).is_err()) {
            return;
        }
    }
    // Nobody sends any more: the other side hears of it.
    if let Some(to) = to {
        to.shutdown(std::net::Shutdown::Write).ok();
    }
}

/// An API of its own, and a proxy before it.
fn api(folder: &Path) -> (Berth, Proxy) {
    let mut api = Berth::start(folder, &["serve", "--in-memory", "--listen", "127.0.0.1:0"]);
    let line = api.until_says("listening on http://");
    let address = line.rsplit('/').next().expect("an address").to_owned();
    let proxy = Proxy::start(Some(address));
    proxy.kubeconfig(&folder.join("kubeconfig"));
    (api, proxy)
}

fn agent(folder: &Path, host: &Host) -> Berth {
    let netns = format!("--netns={}", host.netns);
    let arguments =
        ["agent", "--node=node01", "--kubeconfig=kubeconfig", "--state-dir=state", "--register-node", &netns];
    Berth::start(folder, &arguments)
}

/// A policy of a host on its own, without a pool.
const POLICY: &str = "
apiVersion: nmstate.io/v1
kind: NodeNetworkConfigurationPolicy
metadata: {name: web}
spec:
  desiredState:
    interfaces:
    - {name: eth0, type: veth, state: up, ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}
";

/// Waits for a request that has these words and is never answered.
fn until_swallowed(proxy: &Proxy, words: &str) {
    until(words, || {
        let swallowed = proxy.swallowed.lock().expect("nobody panics");
        String::from_utf8_lossy(&swallowed).contains(words).then_some(())
    });
}

/// In the middle of a change: it is undone before the agent leaves, and the next finds nothing to recover.
#[test]
fn a_change_under_way_is_undone() {
    let (folder, host) = (Folder::new(), Host::new());
    let at = folder.path();
    std::fs::create_dir(at.join("manifests")).expect("a folder");
    std::fs::write(at.join("manifests/web.yaml"), POLICY).expect("written");
    // The kernel looks for others with that address for so long that the change is not over before we say so.
    let slow = ["netns", "exec", &host.netns, "sysctl", "-qw", "net.ipv6.conf.eth0.dad_transmits=30"];
    run(Command::new("ip").args(slow));
    let netns = format!("--netns={}", host.netns);
    let arguments = ["agent", "--standalone=manifests", "--state-dir=state", "--node=node01", &netns];
    let mut agent = Berth::start(at, &arguments);
    let shown = || host.ip("-6 addr show dev eth0");
    until("a change that waits for the kernel", || {
        shown().contains("fd00::1/64 scope global tentative").then_some(())
    });
    agent.signal(Signal::SIGTERM);
    let (code, said) = agent.end();
    assert_eq!(code, Some(0), "{said:#?}");
    assert!(!shown().contains("fd00::1"), "{}", shown());
    // Its folder is there, and nothing in it but the lock.
    let inside = |folder: &Path| std::fs::read_dir(folder).expect("a folder").flatten().map(|one| one.path());
    let names = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let own =
        inside(&at.join("checkpoints")).find(|path| names(path).starts_with("netns-")).expect("checkpoints");
    let left: Vec<String> = inside(&own).map(|path| names(&path)).collect();
    assert_eq!(left, ["lock"]);
}

#[test]
fn an_agent_ends_where_the_api_never_answered() {
    let (folder, host) = (Folder::new(), Host::new());
    let proxy = Proxy::start(None);
    proxy.kubeconfig(&folder.path().join("kubeconfig"));
    let mut agent = agent(folder.path(), &host);
    until_swallowed(&proxy, "GET /");
    agent.signal(Signal::SIGTERM);
    let (code, said) = agent.end();
    assert_eq!((code, said.last().map(String::as_str)), (Some(0), Some("stopping")), "{said:#?}");
}

/// In the middle of a write that is never answered.
#[test]
fn an_agent_ends_while_a_write_hangs() {
    let (folder, host) = (Folder::new(), Host::new());
    let (_api, proxy) = api(folder.path());
    let mut agent = agent(folder.path(), &host);
    agent.until_says("the pass is over");
    proxy.swallows.store(true, Ordering::SeqCst);
    // News that it has to report.
    host.ip("link add news type veth peer name more");
    until_swallowed(&proxy, "/nodenetworkstates/node01/status");
    agent.signal(Signal::SIGTERM);
    let (code, said) = agent.end();
    assert_eq!(code, Some(0), "{said:#?}");
    assert!(said.iter().any(|line| line == "stopping"), "{said:#?}");
}

/// It lets go of its Lease as it ends; an API that doesn't hear of it is no reason to stay.
#[test]
fn a_controller_ends_whether_or_not_the_api_answers() {
    let folder = Folder::new();
    let (_api, proxy) = api(folder.path());
    let arguments = ["controller", "--kubeconfig=kubeconfig", "--health-address=none"];
    let mut first = Berth::start(folder.path(), &arguments);
    first.until_says(": leads");
    first.signal(Signal::SIGTERM);
    assert_eq!(first.end().0, Some(0));
    // The Lease is free: the next need not wait for it to run out.
    let mut second = Berth::start(folder.path(), &arguments);
    second.until_says(": leads");
    proxy.swallows.store(true, Ordering::SeqCst);
    second.signal(Signal::SIGTERM);
    let (code, said) = second.end();
    assert_eq!(code, Some(0), "{said:#?}");
}
