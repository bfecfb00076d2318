//! Who stops it, who listens to it, and who is there already: signals, full disks, two at once.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::dump::assert_same;
use crate::ground::{Ground, berth, run, unignored};

const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
/// Its probe takes long where `dad_transmits` says so: there is time.
const SLOW: &str =
    "interfaces: [{name: eth0, ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}]";

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// A namespace where [`SLOW`] takes twenty seconds.
fn slow() -> (Ground, Ground) {
    let (ground, far) = Ground::with_cards(1);
    ground.inside("echo 20 > /proc/sys/net/ipv6/conf/eth0/dad_transmits").ok();
    (ground, far)
}

/// Its address is there: the steps are done and their result is waited for.
fn wait_for_address(ground: &Ground, child: &mut Child) {
    while !ground.ip("-6 addr show dev eth0").contains("fd00::1") {
        assert!(child.try_wait().unwrap().is_none(), "ended by itself");
    }
}

/// While the result is waited for: put back at once.
#[test]
fn interrupted_it_puts_everything_back() {
    let (ground, _far) = slow();
    let before = ground.dump();
    for signal in SIGNALS {
        let mut child = ground.start_apply(SLOW, &["--timeout", "60"]);
        wait_for_address(&ground, &mut child);
        kill(pid(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("interrupted") && said.contains("the host is as it was before"), "{said}");
        assert_same(&before, &ground.dump(), signal.as_str());
        assert_eq!(ground.checkpoints(), 0);
    }
}

/// A resolver's file that nobody writes to: whoever observes waits for it.
fn pipe(ground: &Ground) {
    std::fs::create_dir_all(ground.resolv_conf().parent().unwrap()).unwrap();
    nix::unistd::mkfifo(&ground.resolv_conf(), nix::sys::stat::Mode::S_IRWXU).unwrap();
}

/// Whether it listens for signals by itself by now.
fn holds_back(child: &Child, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    u64::from_str_radix(blocked.trim(), 16).unwrap() & (1 << (signal as u32 - 1)) != 0
}

/// Before anything is changed there is nothing to wait for.
#[test]
fn interrupted_while_observing_it_ends_at_once() {
    let (ground, _far) = Ground::with_cards(1);
    let before = ground.dump();
    for signal in SIGNALS {
        pipe(&ground);
        let child = ground.start_apply("interfaces: [{name: eth0, mtu: 1400}]", &[]);
        ground.wait_until("it listens for signals", || holds_back(&child, signal));
        kill(pid(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(128 + signal as i32), "{said}");
        assert_eq!(said, format!("interrupted ({signal}); nothing was changed\n"));
        std::fs::remove_file(ground.resolv_conf()).unwrap();
        assert_same(&before, &ground.dump(), signal.as_str());
        assert_eq!(ground.checkpoints(), 0);
    }
    // Who only looks is ended as any other program is.
    pipe(&ground);
    let mut show = unignored(&berth());
    show.args(["show", "--netns", &ground.name]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = show.spawn().unwrap();
    kill(pid(&child), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
}

/// As under `nohup`.
#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let (ground, _far) = Ground::with_cards(1);
    pipe(&ground);
    let document = ground.state_dir.with_extension("yaml");
    std::fs::write(&document, "interfaces: [{name: eth0, mtu: 1400}]").unwrap();
    let line = format!(
        "trap '' HUP; exec {} apply -f {} --netns {} --state-dir {}",
        berth().display(),
        document.display(),
        ground.name,
        ground.state_dir.display()
    );
    let mut shell = unignored(Path::new("sh"));
    shell.args(["-c", &line]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = shell.spawn().unwrap();
    // All are, for the instant in which a thread is made.
    ground.wait_until("it listens for signals, but not for this one", || {
        holds_back(&child, Signal::SIGINT) && !holds_back(&child, Signal::SIGHUP)
    });
    kill(pid(&child), Signal::SIGHUP).unwrap();
    // Somebody at the other end, and from then on no such file: it goes on.
    let writer = File::options().write(true).open(ground.resolv_conf()).unwrap();
    std::fs::remove_file(ground.resolv_conf()).unwrap();
    drop(writer);
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(&document).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(ground.json("link show dev eth0")[0]["mtu"], 1400);
}

/// One clear message, and what was done is said all the same.
#[test]
fn an_answer_that_nobody_can_hear() {
    let (ground, _far) = Ground::with_cards(1);
    let full = |args: &[&str], document: &str| {
        let mut command = Command::new(berth());
        command.args(args).args(["--netns", &ground.name, "--state-dir"]).arg(&ground.state_dir);
        let file = ground.state_dir.with_extension("yaml");
        std::fs::write(&file, document).unwrap();
        let out = File::options().write(true).open("/dev/full").unwrap();
        let output = command.stdin(File::open(&file).unwrap()).stdout(out).output().unwrap();
        std::fs::remove_file(&file).unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = full(&["show"], "");
    assert_eq!(code, Some(1));
    assert!(said.starts_with("error: can't write the answer\n  "), "{said}");
    let document = "interfaces: [{name: eth0, mtu: 1400}]";
    let (code, said) = full(&["apply", "-f", "-"], document);
    assert_eq!(code, Some(1));
    assert!(said.contains("set mtu           eth0       1400"), "{said}");
    assert!(said.contains("error: the change is applied (1 step done and verified), but"), "{said}");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    assert_eq!(ground.json("link show dev eth0")[0]["mtu"], 1400);
    assert_eq!(ground.checkpoints(), 0);
    // Nothing done is nothing to report.
    let (code, said) = full(&["apply", "-f", "-"], document);
    assert_eq!(code, Some(1));
    assert!(said.starts_with("error: can't write the answer\n  "), "{said}");
}

/// Without room for the checkpoint nothing is begun.
#[test]
fn a_full_disk() {
    let (ground, _far) = Ground::with_cards(1);
    // A state that a page can't hold.
    (0..100).for_each(|n| drop(ground.ip(&format!("addr add 10.5.{n}.1/24 dev eth0"))));
    let before = ground.dump();
    std::fs::create_dir_all(&ground.state_dir).unwrap();
    let line = format!(
        "mount -t tmpfs -o size=4k tmpfs {dir} && exec {} apply -f - --netns {} --state-dir {dir}",
        berth().display(),
        ground.name,
        dir = ground.state_dir.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &line]);
    let said =
        run(&mut command, "interfaces: [{name: eth0, mtu: 1400}]").fails_with("can't write the checkpoint");
    assert!(said.contains("No space left on device"), "{said}");
    assert_same(&before, &ground.dump(), "without room for a checkpoint");
}

/// The second is told who is there, and doesn't touch anything.
#[test]
fn two_at_once() {
    let (ground, _far) = slow();
    let mut first = ground.start_apply(SLOW, &["--timeout", "60"]);
    wait_for_address(&ground, &mut first);
    let during = ground.dump();
    for args in [&["--no-verify"][..], &[]] {
        let second = ground.start_apply("interfaces: [{name: eth0, mtu: 1400}]", args);
        let output = second.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("another berth is changing this network namespace"), "{said}");
    }
    assert_same(&during, &ground.dump(), "beside another");
    kill(pid(&first), Signal::SIGINT).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(1));
    ground.apply("interfaces: [{name: eth0, mtu: 1400}]").ok();
}

/// Many at once: each does all of its own or nothing, and what is there in the end is one's, whole.
#[test]
fn many_at_once() {
    let (ground, _far) = Ground::with_cards(1);
    let document = |n: usize| {
        let list: String = (1..=50).map(|i| format!("{{ip: 10.{n}.{i}.1, prefix-length: 24}}, ")).collect();
        format!("interfaces: [{{name: eth0, mtu: {}, ipv4: {{enabled: true, address: [{list}]}}}}]", 1300 + n)
    };
    let children: Vec<Child> = (0..6).map(|n| ground.start_apply(&document(n), &[])).collect();
    let mut done = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => done += 1,
            code => {
                assert_eq!(code, Some(1), "{said}");
                assert!(said.contains("another berth is changing this network namespace"), "{said}");
            }
        }
    }
    assert!(done >= 1, "none came through");
    let mtu = ground.json("link show dev eth0")[0]["mtu"].as_u64().unwrap();
    let n = mtu - 1300;
    let wanted: Vec<String> = (1..=50).map(|i| format!("10.{n}.{i}.1/24")).collect();
    assert_eq!(ground.addresses("eth0", "inet"), wanted);
    assert_eq!(ground.checkpoints(), 0);
}

/// It is sent, and nobody looks what came of it: an address that somebody else has stays.
#[test]
fn unverified() {
    let (ground, far) = Ground::with_cards(1);
    far.ip("addr add fd00::1/64 dev far0 nodad");
    let said = ground.berth(&["apply", "-f", "-", "--no-verify"], SLOW).ok();
    assert!(said.contains("1 step done, not verified"), "{said}");
    ground.wait_until("the probe has failed", || ground.ip("-6 addr show dev eth0").contains("dadfailed"));
    assert_eq!(ground.checkpoints(), 0);
    // Asked for once more, with a look: there it is, and it is of no use.
    ground.apply(SLOW).fails_with("in use by another host");
    assert!(ground.ip("-6 addr show dev eth0").contains("fd00::1"));
}
