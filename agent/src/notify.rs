//! systemd's side: readiness and the watchdog, where it started this process and asked to be told (`Type=notify`).
//!
//! Where nobody asked, nothing is sent. What can't be sent is not said: systemd finds out by itself. Cost: a datagram per
//! half of the watchdog's time.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::health::Health;

/// How long to wait for who is too busy to hear that this is ready.
const AGAIN: Duration = Duration::from_millis(200);

/// Whom to tell, and how often.
pub(crate) struct Notify {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// As the environment says.
    pub(crate) fn new(
        socket: Option<OsString>,
        watchdog_usec: Option<OsString>,
        watchdog_pid: Option<OsString>,
    ) -> Self {
        let address = socket.and_then(|name| match name.as_bytes() {
            [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest).ok(),
            _ => SocketAddr::from_pathname(&name).ok(),
        });
        let number = |text: Option<OsString>| text?.to_str()?.parse::<u64>().ok();
        // The watchdog of another process is not ours to feed.
        let ours = watchdog_pid.is_none() || number(watchdog_pid) == Some(u64::from(std::process::id()));
        Self {
            socket: address.and_then(|address| {
                let socket = UnixDatagram::unbound().ok()?;
                // Who doesn't listen must not hold up the work.
                socket.set_nonblocking(true).ok()?;
                Some((socket, address))
            }),
            watchdog: number(watchdog_usec).filter(|usec| ours && *usec > 0).map(Duration::from_micros),
        }
    }

    pub(crate) fn from_env() -> Self {
        let get = |name: &str| std::env::var_os(name);
        Self::new(get("NOTIFY_SOCKET"), get("WATCHDOG_USEC"), get("WATCHDOG_PID"))
    }

    /// Whether there is no use in sending it again: it is sent, or there is nobody.
    fn send(&self, text: &str) -> bool {
        let sent = self.socket.as_ref().map(|(socket, to)| socket.send_to_addr(text.as_bytes(), to));
        !matches!(sent, Some(Err(error)) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Says that it is ready when the first pass is over; from then on, that the loop is alive for as long as it is. Never
    /// ends.
    pub(crate) async fn follow(&self, health: &Health) {
        health.first_pass().await;
        self.ready().await;
        let Some(watchdog) = self.watchdog.filter(|_| self.socket.is_some()) else {
            return std::future::pending().await;
        };
        loop {
            if health.is_alive() {
                self.send("WATCHDOG=1");
            }
            tokio::time::sleep(watchdog / 2).await;
        }
    }

    /// Says that it is ready.
    pub(crate) async fn ready(&self) {
        while !self.send("READY=1\nSTATUS=at work") {
            tokio::time::sleep(AGAIN).await;
        }
    }

    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=finishing what is under way");
    }
}

#[cfg(test)]
mod tests;
