//! A way to the API server that can be shut: connections that there are break, and new ones get no further.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cluster::Way;

pub(crate) struct Gate {
    address: SocketAddr,
    open: Arc<watch::Sender<bool>>,
    task: JoinHandle<()>,
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Gate {
    /// Open, to what is behind this way.
    pub(crate) async fn new(to: &Way) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a port");
        let open = Arc::new(watch::Sender::new(true));
        let (to, seen) = (authority(to), open.clone());
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(pass(near, to.clone(), seen.subscribe()));
            }
        });
        Self { address, open, task }
    }

    /// The same server, by this gate.
    pub(crate) fn way(&self, to: &Way) -> Way {
        Way { server: format!("https://{}", self.address), ..to.clone() }
    }

    pub(crate) fn shut(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }
}

pub(super) fn authority(way: &Way) -> String {
    way.server.trim_start_matches("https://").trim_end_matches('/').to_owned()
}

/// Until either end ends it, or the gate is shut: dropped, both ends are closed.
async fn pass(mut near: TcpStream, to: String, mut open: watch::Receiver<bool>) {
    if !*open.borrow() {
        return;
    }
    let Ok(mut far) = TcpStream::connect(&to).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = open.wait_for(|open| !open) => {}
    }
}
