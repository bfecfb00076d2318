//! `berth serve` as its unit runs it: without a privilege, told apart from one that is still starting, read again on reload,
//! stopped cleanly.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::folder::Folder;
use crate::service::{bounds, hear, listener};
use crate::support::{Berth, until};

const UNIT: &str = include_str!("../../../systemd/berth-serve.service");

/// The arguments that the unit gives, in a folder of the test's own, with the settings that are installed.
fn arguments(folder: &str) -> Vec<String> {
    let settings = include_str!("../../../systemd/serve.env");
    let set = |name: &str| {
        settings.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap_or("")
    };
    let line =
        UNIT.lines().find_map(|line| line.strip_prefix("ExecStart=@BINDIR@/berth ")).expect("in the unit");
    let line = line.replace("$BERTH_SERVE_LISTEN", set("BERTH_SERVE_LISTEN"));
    let line = line.replace("$BERTH_SERVE_OPTIONS", set("BERTH_SERVE_OPTIONS"));
    let line = line.replace("/run/berth", folder).replace("/var/lib/berth", folder);
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_api_is_ready_when_it_answers_and_stops_when_told() {
    let folder = Folder::new();
    let at = folder.path();
    assert!(UNIT.contains("\nCapabilityBoundingSet=\n"), "no privilege at all");
    let heard = listener(&at.join("notify"));
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--bounding-set={}", bounds(UNIT)))
        .args(["--no-new-privs", env!("CARGO_BIN_EXE_berth")])
        .env("NOTIFY_SOCKET", at.join("notify"));
    let arguments = arguments(&at.display().to_string());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut server = Berth::start_as(command, at, &arguments);
    assert_eq!(hear(&heard), "READY=1\nSTATUS=at work");
    let mut stream = UnixStream::connect(at.join("api.sock")).expect("it listens");
    stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    assert!(answer.starts_with("HTTP/1.0 200 OK") && answer.ends_with("ok"), "{answer}");
    // systemctl reload: nothing to read, and no reason to end.
    server.signal(Signal::SIGHUP);
    server.signal(Signal::SIGTERM);
    let (code, said) = server.end();
    assert_eq!(code, Some(0), "{said:#?}");
    until("its last word", || hear(&heard).starts_with("STOPPING=1").then_some(()));
}
