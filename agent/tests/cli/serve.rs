//! `berth serve` as a process: what it refuses to start with, its sockets, its end, backups. What it answers is the
//! conformance suite's business, and how it looks in kubectl is `tests/kubectl`'s.

mod pki;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Ran, berth};

/// A folder of its own per test, gone with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("berth-cli-serve-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn run(folder: &Folder, line: &str) -> Ran {
    berth(&folder.0, &line.split_whitespace().collect::<Vec<_>>(), b"")
}

/// A server in a folder; `{}` in its arguments is the folder. Killed with the test.
struct Server {
    child: Child,
    /// What it said until it listened, a line each.
    said: Vec<String>,
    rest: BufReader<std::process::ChildStderr>,
}

impl Server {
    /// Waits until it has said this many lines.
    fn start(folder: &Folder, arguments: &str, lines: usize) -> Self {
        let arguments = arguments.replace("{}", &folder.0.display().to_string());
        let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
            .arg("serve")
            .args(arguments.split_whitespace())
            .current_dir(&folder.0)
            // The usual place of the page may be another's.
            .env("BERTH_PAGE_ADDRESS", "none")
            .stderr(Stdio::piped())
            .spawn()
            .expect("start berth serve");
        let mut rest = BufReader::new(child.stderr.take().expect("its stderr"));
        let mut said = Vec::new();
        while said.len() < lines {
            let mut line = String::new();
            let read = rest.read_line(&mut line).expect("text");
            assert!(read > 0, "it ended: {said:?}");
            said.push(line.trim_end().to_owned());
        }
        Self { child, said, rest }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"))
    }

    /// Its exit code, or `None` where a signal ended it, and what it said last.
    fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        kill(self.pid(), signal).expect("told");
        let mut said = String::new();
        self.rest.read_to_string(&mut said).expect("text");
        (self.child.wait().expect("its end").code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// One request over the socket; the whole answer.
fn ask(socket: &Path, method: &str, path: &str, body: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("connected");
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

const NODE: &str = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"node01"}}"#;
const POOLS: &str = "/apis/nmstate.io/v1/nodeippools";
const ON_SOCKET: &str = "--state-dir state --listen unix:{}/api.sock";

#[test]
fn every_part_has_help_with_examples() {
    let folder = Folder::new();
    for part in ["", "pki", "backup", "restore"] {
        let ran = run(&folder, &format!("serve {part} --help"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{part}");
        assert!(ran.stdout.contains("Examples:\n  berth serve "), "{part}: {}", ran.stdout);
    }
}

#[test]
fn wrong_usage_is_2() {
    let folder = Folder::new();
    for line in [
        "serve",
        "serve --state-dir a --in-memory",
        "serve --in-memory --listen nowhere",
        "serve --in-memory --listen unix:relative",
        "serve --in-memory --listen 127.0.0.1:65536",
        "serve --in-memory --listen 127.0.0.1:0 --tls-cert a",
        "serve --in-memory --listen 127.0.0.1:0 --tls-key a --client-ca b",
        "serve --in-memory --write-kubeconfig kubeconfig",
        "serve pki",
        "serve pki host",
        "serve pki init --days 0",
        "serve pki init --server-name https://a",
        "serve backup",
        "serve restore file",
    ] {
        let ran = run(&folder, line);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{line}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty(), "{line}");
    }
    assert_eq!(fs::read_dir(&folder.0).expect("the folder").count(), 0, "nothing was made");
}

#[test]
fn plain_tcp_beyond_loopback_is_refused() {
    let folder = Folder::new();
    let ran = run(&folder, "serve --in-memory --listen 0.0.0.0:0");
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.starts_with("error: --listen 0.0.0.0:0: plain TCP is for loopback only"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("--tls-cert, --tls-key and --client-ca"), "{}", ran.stderr);
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill_and_a_stop_is_clean() {
    let folder = Folder::new();
    let socket = folder.0.join("api.sock");
    let server = Server::start(&folder, ON_SOCKET, 1);
    assert_eq!(server.said, [format!("listening on unix:{}", socket.display())]);
    let made = ask(&socket, "POST", "/api/v1/nodes", NODE);
    assert!(made.starts_with("HTTP/1.0 201 Created"), "{made}");
    assert_eq!(server.end(Signal::SIGKILL), (None, String::new()));
    assert!(socket.exists(), "a killed server leaves its socket");
    let server = Server::start(&folder, ON_SOCKET, 1);
    let found = ask(&socket, "GET", "/api/v1/nodes/node01", "");
    assert!(found.starts_with("HTTP/1.0 200 OK"), "{found}");
    assert_eq!(server.end(Signal::SIGTERM), (Some(0), "stopping\n".to_owned()));
    assert!(!socket.exists());
    let server = Server::start(&folder, ON_SOCKET, 1);
    assert_eq!(server.end(Signal::SIGINT).0, Some(0));
}

#[test]
fn a_second_server_on_a_directory_or_a_socket_is_refused() {
    let folder = Folder::new();
    let server = Server::start(&folder, ON_SOCKET, 1);
    let second =
        run(&folder, &format!("serve --state-dir state --listen unix:{}/other.sock", folder.0.display()));
    assert_eq!((second.code, second.stdout.as_str()), (1, ""));
    assert!(second.stderr.starts_with("error: --state-dir state\n"), "{}", second.stderr);
    assert!(second.stderr.contains(&server.pid().to_string()), "{}", second.stderr);
    assert!(!folder.0.join("other.sock").exists());
    let second = run(&folder, &format!("serve --in-memory --listen unix:{}/api.sock", folder.0.display()));
    assert_eq!(second.code, 1);
    assert!(second.stderr.contains("another server listens there"), "{}", second.stderr);
    assert!(ask(&folder.0.join("api.sock"), "GET", "/version", "").contains("200 OK"));
}

#[test]
fn a_kubeconfig_is_there_when_the_server_answers() {
    let folder = Folder::new();
    let server =
        Server::start(&folder, "--in-memory --listen 127.0.0.1:0 --write-kubeconfig to/kubeconfig", 3);
    let url = server.said[0].strip_prefix("listening on ").expect("where").to_owned();
    assert!(server.said[1].contains("every user of this host may do everything there"), "{:?}", server.said);
    assert_eq!(server.said[2], "kubeconfig: to/kubeconfig");
    let path = folder.0.join("to/kubeconfig");
    assert_eq!(fs::metadata(&path).expect("written").permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&path).expect("text").contains(&format!("server: {url}\n")));
    let at = url.strip_prefix("http://").expect("plain HTTP");
    let mut stream = std::net::TcpStream::connect(at).expect("connected");
    stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    assert!(answer.ends_with("ok"), "{answer}");
}

#[test]
fn a_kubeconfig_of_other_clusters_is_not_replaced() {
    let folder = Folder::new();
    let path = folder.0.join("config");
    let line = "serve --in-memory --listen 127.0.0.1:0 --write-kubeconfig config";
    let two = "kind: Config\nclusters: [{name: berth, cluster: {}}, {name: prod, cluster: {}}]\n";
    for text in ["kind: Config\nclusters: [{name: prod, cluster: {}}]\n", two, "not: ours\n", "{", "text"] {
        fs::write(&path, text).expect("written");
        let ran = run(&folder, line);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{text}");
        let said = "--write-kubeconfig config: has more in it than the cluster 'berth', and would be replaced; name another \
                    file, and use it with KUBECONFIG\n";
        assert!(ran.stderr.ends_with(said) && !ran.stderr.contains("listening"), "{}", ran.stderr);
        assert_eq!(fs::read_to_string(&path).expect("text"), text);
    }
    // One of ours is, and so is one with nothing in it.
    fs::write(&path, "").expect("written");
    let arguments = "--in-memory --listen 127.0.0.1:0 --write-kubeconfig config";
    drop(Server::start(&folder, arguments, 3));
    let first = fs::read_to_string(&path).expect("text");
    let server = Server::start(&folder, arguments, 3);
    assert_eq!(server.said[2], "kubeconfig: config");
    assert!(first.contains("name: berth"), "{first}");
}

#[test]
fn a_backup_of_a_running_server_is_restored() {
    let folder = Folder::new();
    let socket = folder.0.join("api.sock");
    let server = Server::start(&folder, ON_SOCKET, 1);
    ask(&socket, "POST", "/api/v1/nodes", NODE);
    let pool = r#"{"apiVersion":"nmstate.io/v1","kind":"NodeIPPool","metadata":{"name":"p"},"spec":{"range":{"cidr":"10.0.0.0/24"}}}"#;
    ask(&socket, "POST", POOLS, pool);
    let backup = format!("serve backup copy --socket {}", socket.display());
    let made = run(&folder, &backup);
    // The Node, the pool, and the two namespaces that are always there.
    assert!(made.stdout.starts_with("copy: 4 objects, revision "), "{made:?}");
    assert_eq!(fs::metadata(folder.0.join("copy")).expect("written").permissions().mode() & 0o777, 0o600);
    let again = run(&folder, &backup);
    assert_eq!(again.code, 1);
    assert!(again.stderr.starts_with("error: copy: can't be written\n  File exists"), "{}", again.stderr);
    let left: Vec<_> =
        fs::read_dir(folder.0.join("state")).expect("the store").flatten().map(|e| e.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("backup")), "{left:?}");
    ask(&socket, "DELETE", "/api/v1/nodes/node01", "");
    let restore = "serve restore copy --state-dir state";
    let busy = run(&folder, restore);
    assert_eq!(busy.code, 1);
    assert!(busy.stderr.starts_with("error: nothing was restored\n"), "{}", busy.stderr);
    server.end(Signal::SIGTERM);
    let none = run(&folder, &backup.replace("copy", "other"));
    assert!(none.stderr.contains("no server answers"), "{}", none.stderr);
    let restored = run(&folder, restore);
    assert!(restored.stdout.starts_with("state: 4 objects, revision "), "{restored:?}");
    let (kept, held) =
        restored.stdout.split_once('\n').and_then(|(_, rest)| rest.split_once('\n')).expect("three lines");
    assert_eq!(kept, "state/store.redb.before-restore: what was there before");
    assert!(
        held.starts_with(
            "1 pool is on hold for one quarantine from a controller's first look, while hosts say again"
        ),
        "{held}"
    );
    let offline = run(&folder, "serve backup offline --state-dir state");
    assert!(offline.stdout.starts_with("offline: 4 objects, revision "), "{offline:?}");
    assert_eq!(fs::metadata(folder.0.join("offline")).expect("written").permissions().mode() & 0o777, 0o600);
    let _server = Server::start(&folder, ON_SOCKET, 1);
    assert!(ask(&socket, "GET", "/api/v1/nodes/node01", "").contains("200 OK"));
    // Rule 6: a store that went back in time gives nothing before hosts have spoken.
    let pool = ask(&socket, "GET", &format!("{POOLS}/p"), "");
    assert!(pool.contains(r#""nmstate.io/hold":"restored from a backup""#), "{pool}");
    let revision: u64 = held_revision(&pool);
    assert!(revision > 1_000_000, "{pool}");
}

/// `: > file; berth serve restore file` must not be the end of everything.
#[test]
fn what_is_no_backup_is_refused_in_words() {
    let folder = Folder::new();
    let socket = folder.0.join("api.sock");
    let server = Server::start(&folder, ON_SOCKET, 1);
    ask(&socket, "POST", "/api/v1/nodes", NODE);
    run(&folder, &format!("serve backup copy --socket {}", socket.display()));
    server.end(Signal::SIGTERM);
    let whole = fs::read(folder.0.join("copy")).expect("a backup");
    for (bytes, why) in [(0, "it is empty"), (8192, "it is cut off: 8192 bytes are left of ")] {
        fs::write(folder.0.join("file"), &whole[..bytes]).expect("written");
        let refused = run(&folder, "serve restore file --state-dir state");
        let said = format!("error: nothing was restored\n  file is not a store of berth's: {why}");
        assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
        assert!(refused.stderr.starts_with(&said), "{}", refused.stderr);
    }
    let mut left: Vec<_> =
        fs::read_dir(folder.0.join("state")).expect("the store").flatten().map(|e| e.file_name()).collect();
    left.sort();
    assert_eq!(left, ["lock", "reserve", "store.redb"]);
    let _server = Server::start(&folder, ON_SOCKET, 1);
    assert!(ask(&socket, "GET", "/api/v1/nodes/node01", "").contains("200 OK"));
}

fn held_revision(pool: &str) -> u64 {
    let (_, rest) = pool.split_once(r#""resourceVersion":""#).expect("a revision");
    rest.split('"').next().and_then(|number| number.parse().ok()).expect("a number")
}
