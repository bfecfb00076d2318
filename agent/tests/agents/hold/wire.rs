//! A way to the API server over a wire that can lose everything, without a word to anybody.
//!
//! Two namespaces with a pair of veths: hosts' agents in the one, and in the other somebody who passes on what they say. Both
//! are made to send to a hardware address that nobody has: frames go out, nobody takes them, nobody answers. No link goes
//! down and nothing is refused, as where a switch or a firewall in the middle has died. What is passed on is forgotten then,
//! so that a connection of before is nobody's afterwards.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::netns::Namespace;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::gate::authority;
use crate::cluster::Way;

/// Of the agents' end, and of the other.
const NEAR: &str = "192.0.2.1";
const FAR: &str = "192.0.2.2";
const NOBODY: &str = "02:00:00:00:00:fe";

pub(crate) struct Wire {
    near: String,
    far: String,
    address: SocketAddr,
    whole: Arc<watch::Sender<bool>>,
    task: JoinHandle<()>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
        for netns in [&self.near, &self.far] {
            let _ = Command::new("ip").args(["netns", "del", netns]).status();
        }
    }
}

impl Wire {
    /// Whole, to what is behind this way.
    pub(crate) async fn new(to: &Way) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("berth-w{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let (near, far) = (format!("{name}-near"), format!("{name}-far"));
        for netns in [&near, &far] {
            ip(&format!("netns add {netns}"));
        }
        ip(&format!("-n {near} link add wire type veth peer name wire netns {far}"));
        for (netns, address) in [(&near, NEAR), (&far, FAR)] {
            ip(&format!("-n {netns} addr add {address}/24 dev wire"));
            ip(&format!("-n {netns} link set wire up"));
        }
        let namespace: Namespace = far.parse().expect("a name");
        // A socket is of the namespace that it was made in, whoever uses it.
        let listener = namespace.inside(|| std::net::TcpListener::bind((FAR, 0)).expect("a port"));
        let listener = listener.expect("inside");
        listener.set_nonblocking(true).expect("a socket");
        let listener = TcpListener::from_std(listener).expect("a socket");
        let address = listener.local_addr().expect("a port");
        let whole = Arc::new(watch::Sender::new(true));
        let (to, seen) = (authority(to), whole.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, to.clone(), seen.subscribe()));
            }
        });
        Self { near, far, address, whole, task }
    }

    /// The same server, over this wire.
    pub(crate) fn way(&self, to: &Way) -> Way {
        let name = authority(to).rsplit_once(':').map(|(host, _)| host.to_owned());
        Way { server: format!("https://{}", self.address), name, from: Some(self.near.clone()), ..to.clone() }
    }

    /// From now on everything is lost.
    pub(crate) fn lose(&self) {
        for (netns, other) in [(&self.near, FAR), (&self.far, NEAR)] {
            ip(&format!("-n {netns} neigh replace {other} lladdr {NOBODY} dev wire nud permanent"));
        }
        self.whole.send_replace(false);
    }

    /// And from now on no more.
    pub(crate) fn find(&self) {
        self.whole.send_replace(true);
        for (netns, other) in [(&self.near, FAR), (&self.far, NEAR)] {
            ip(&format!("-n {netns} neigh del {other} dev wire"));
        }
    }
}

/// Until either end ends it, or all is lost: then it is forgotten at once, and the word of that is lost, too.
async fn pass(mut near: TcpStream, to: String, mut whole: watch::Receiver<bool>) {
    let Ok(mut far) = TcpStream::connect(&to).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = whole.wait_for(|whole| !whole) => near.set_zero_linger().expect("a socket"),
    }
}

#[track_caller]
fn ip(line: &str) {
    let output = Command::new("ip").args(line.split_whitespace()).output().expect("ip");
    assert!(output.status.success(), "ip {line}: {}", String::from_utf8_lossy(&output.stderr));
}
