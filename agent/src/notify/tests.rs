use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use super::Notify;
use crate::health::Health;

fn hear(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 256];
    let length = socket.recv(&mut buffer).unwrap();
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

/// READY=1 comes once the first pass is over, and the watchdog is fed only after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ready_is_said_after_the_first_pass() {
    let name = format!("berth-notify-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let notify = Notify::new(Some(format!("@{name}").into()), Some("2000".into()), None);
    let health = Health::default();
    let heard = async {
        // It is polled, and says nothing.
        tokio::task::yield_now().await;
        socket.set_nonblocking(true).unwrap();
        assert!(socket.recv(&mut [0; 8]).is_err(), "too soon");
        socket.set_nonblocking(false).unwrap();
        health.passed(false);
        tokio::task::spawn_blocking(move || [hear(&socket), hear(&socket), hear(&socket)]).await.unwrap()
    };
    let heard = tokio::select! {
        () = notify.follow(&health) => unreachable!("it never ends"),
        heard = heard => heard,
    };
    assert_eq!(heard, ["READY=1\nSTATUS=at work", "WATCHDOG=1", "WATCHDOG=1"]);
}

#[test]
fn the_watchdog_of_another_process_is_left_alone() {
    let of = |pid: u32| Notify::new(None, Some("1000000".into()), Some(pid.to_string().into())).watchdog;
    assert_eq!(of(std::process::id()), Some(Duration::from_secs(1)));
    assert_eq!(of(std::process::id() + 1), None);
}
