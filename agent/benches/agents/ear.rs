//! Hears addresses come and go in a namespace, and when.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use agent::netns::Namespace;
use anyhow::{Context, Result, anyhow};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// `RTNLGRP_IPV4_IFADDR`, and the two messages of it.
const GROUP: u32 = 5;
const NEW: u16 = 20;
const DELETED: u16 = 21;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Added,
    Removed,
}

pub(crate) struct Ear {
    heard: Receiver<(Instant, Heard)>,
}

impl Ear {
    pub(crate) fn in_namespace(name: &str) -> Result<Self> {
        let namespace: Namespace = name.parse()?;
        let (tell, heard) = channel();
        let (opened, ready) = channel();
        std::thread::spawn(move || {
            let _ = namespace.inside(move || match open() {
                Ok(socket) => {
                    let _ = opened.send(Ok(()));
                    listen(&socket, &tell);
                }
                Err(error) => drop(opened.send(Err(error))),
            });
        });
        ready.recv().context("the namespace can't be entered")??;
        Ok(Self { heard })
    }

    /// When this was next heard; anything else on the way is passed over.
    pub(crate) fn next(&mut self, what: Heard) -> Result<Instant> {
        loop {
            let next = self.heard.recv_timeout(Duration::from_secs(60));
            let (at, heard) = next.map_err(|_| anyhow!("never {what:?}"))?;
            if heard == what {
                return Ok(at);
            }
        }
    }
}

fn open() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind(&SocketAddr::new(0, 0))?;
    socket.add_membership(GROUP)?;
    Ok(socket)
}

fn listen(socket: &Socket, tell: &Sender<(Instant, Heard)>) {
    let mut buffer = vec![0u8; 16 * 1024];
    loop {
        let mut into = &mut buffer[..];
        let Ok(length) = socket.recv(&mut into, 0) else { return };
        let at = Instant::now();
        let mut rest = &buffer[..length];
        while let [a, b, c, d, e, f, ..] = *rest {
            let size = usize::try_from(u32::from_ne_bytes([a, b, c, d])).unwrap_or(0);
            let heard = match u16::from_ne_bytes([e, f]) {
                NEW => Some(Heard::Added),
                DELETED => Some(Heard::Removed),
                _ => None,
            };
            if heard.is_some_and(|heard| tell.send((at, heard)).is_err()) {
                return;
            }
            rest = rest.get(size.next_multiple_of(4).max(16)..).unwrap_or_default();
        }
    }
}
