//! The control plane that tests run against: it keeps what it has when its API server restarts, and nothing of it is left
//! behind, whoever ends and how.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use api_tests::control_plane::ControlPlane;
use api_tests::server::paths::{STATES, at, state};
use api_tests::server::{Server, Which};
use api_tests::wait::until;
use api_tests::{RUNTIME, server};
use serde_json::json;

/// The processes whose command line names this folder.
fn processes(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let line = |path: PathBuf| fs::read(path.join("cmdline")).ok();
    all.filter_map(|entry| line(entry.path()))
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&folder))
        .collect()
}

/// What the kernel says that this program of the folder does: `S` for sleeping, `T` for stopped.
fn state_of(folder: &Path, program: &str) -> String {
    let folder = folder.display().to_string();
    let mut all = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains(&folder) && line.split('\0').next().is_some_and(|first| first.ends_with(program))
    };
    let found = all.find(is_it).expect(program);
    let status = fs::read_to_string(found.join("status")).expect("a status");
    let state = status.lines().find_map(|line| line.strip_prefix("State:\t")).expect("a state");
    state[..1].to_owned()
}

async fn nothing_left(folder: &Path) {
    until("nothing to be left", || async {
        match (processes(folder), folder.exists()) {
            (processes, false) if processes.is_empty() => Ok(()),
            left => Err(format!("{left:?}")),
        }
    })
    .await;
}

fn folder(plane: &ControlPlane) -> PathBuf {
    plane.kubeconfig().parent().expect("a folder").to_owned()
}

#[test]
fn a_restart_of_the_api_server_loses_nothing() {
    let plane = ControlPlane::start().expect("a control plane");
    let folder = folder(&plane);
    assert_eq!(processes(&folder).len(), 4, "the supervisor and its three: {:?}", processes(&folder));
    let s = Server::new(Which::Real, plane.client());
    let (made, changed) = RUNTIME.block_on(async {
        let made = s.post(STATES, &state("one")).await.created();
        let changed = s.merge(&at(STATES, "one"), &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
        (made, changed)
    });
    plane.pause_etcd().expect("a pause");
    // It stops at its next moment, not at ours.
    RUNTIME.block_on(until("etcd to be stopped", || async {
        match state_of(&folder, "etcd") {
            state if state == "T" => Ok(()),
            other => Err(other),
        }
    }));
    plane.resume_etcd().expect("an end of it");
    RUNTIME.block_on(async { s.post(STATES, &state("two")).await.created() });
    plane.restart_api_server().expect("a restart");
    server::run(Server::new(Which::Real, plane.client()), async |s| {
        assert_eq!(s.get(&at(STATES, "one")).await.ok(), changed);
        // A watch goes on from before the restart.
        let version = made["metadata"]["resourceVersion"].as_str().expect("a version");
        let mut watch = s.watch(&format!("{STATES}?resourceVersion={version}")).await;
        let event = watch.next().await;
        // Or it is told that this is too long ago, and never passes over something in silence.
        assert!(event.kind == "MODIFIED" || event.object["code"] == 410, "{event:?}");
    });
    drop(plane);
    assert_eq!((processes(&folder), folder.exists()), (vec![], false), "gone when it was dropped");
}

#[test]
fn it_ends_with_its_process() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_control-plane"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process with a control plane");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let kubeconfig = PathBuf::from(line.trim().strip_prefix("export KUBECONFIG=").expect("a kubeconfig"));
    let folder = kubeconfig.parent().expect("a folder");
    assert_eq!(processes(folder).len(), 4, "{:?}", processes(folder));
    // SIGKILL: it has no time to say goodbye.
    child.kill().expect("a kill");
    child.wait().expect("its end");
    RUNTIME.block_on(nothing_left(folder));
}
