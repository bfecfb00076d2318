//! A full disk: clear errors, reads and watches go on, deleting makes room, and nothing is lost. As root: the disk is a
//! small tmpfs in a mount namespace of the server's own.

use std::process::Command;
use std::time::Duration;

use futures_util::StreamExt;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

use crate::folder::Folder;
use crate::support::{BERTH, Server};

fn node(index: usize) -> Node {
    let text = "x".repeat(200_000);
    let node = json!({"metadata": {"name": format!("n{index:04}"), "annotations": {"text": text}}});
    serde_json::from_value(node).unwrap()
}

async fn text(server: &Server, path: &str) -> (u16, String) {
    let request = hyper::http::Request::get(path).body(kube::client::Body::empty()).unwrap();
    let response = server.client().send(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_until_something_is_deleted() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "this test mounts a tmpfs, in a namespace of its own: run it as root"
    );
    let folder = Folder::new();
    let script = r#"mount -t tmpfs -o size=40m berth-test "$1" && exec "$2" serve --listen 127.0.0.1:0 --state-dir "$1/state""#;
    let server = Server::run(
        Command::new("unshare").args(["-m", "sh", "-c", script, "sh"]).arg(folder.path()).arg(BERTH),
    );
    let nodes: Api<Node> = Api::all(server.client());
    let mut watcher = Box::pin(nodes.watch(&WatchParams::default(), "0").await.unwrap());

    // Until it is full.
    let mut made = 0;
    let refused = loop {
        assert!(made < 1000, "it never gets full");
        match nodes.create(&PostParams::default(), &node(made)).await {
            Ok(_) => made += 1,
            Err(kube::Error::Api(status)) => break status,
            Err(other) => panic!("{other:?}"),
        }
    };
    println!("full after {made} objects of 200 KB: {}", refused.message);
    assert_eq!((refused.code, refused.reason.as_str()), (500, "InternalError"));
    assert!(refused.message.contains("nothing was changed"), "{}", refused.message);
    assert!(refused.message.to_lowercase().contains("space"), "{}", refused.message);
    assert!(made > 20, "{made}");
    // It lives, and says to whoever asks that it is not ready, and why.
    assert_eq!(text(&server, "/healthz").await, (200, "ok".to_owned()));
    let (code, why) = text(&server, "/readyz").await;
    assert_eq!(code, 500, "{why}");
    assert!(why.starts_with("[-]store failed: No space"), "{why}");

    // Reads go on, and show only what was acknowledged; so do watches.
    let names =
        |list: kube::core::ObjectList<Node>| list.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
    let expected: Vec<String> = (0..made).map(|index| format!("n{index:04}")).collect();
    assert_eq!(names(nodes.list(&ListParams::default()).await.unwrap()), expected);
    for name in &expected {
        match tokio::time::timeout(Duration::from_secs(60), watcher.next()).await.unwrap() {
            Some(Ok(WatchEvent::Added(node))) => assert_eq!(node.name_any(), *name),
            other => panic!("{other:?}"),
        }
    }
    // And so do refusals.
    assert!(nodes.create(&PostParams::default(), &node(made)).await.is_err());

    // Deleting works at once, and soon there is room again.
    let mut deleted = 0;
    let again = loop {
        assert!(deleted < made, "everything is deleted, and there still is no room");
        nodes.delete(&expected[deleted], &DeleteParams::default()).await.unwrap();
        deleted += 1;
        if let Ok(node) = nodes.create(&PostParams::default(), &node(9999)).await {
            break node;
        }
    };
    println!("room again after {deleted} deletes");
    assert_eq!(text(&server, "/readyz").await, (200, "ok".to_owned()));
    let mut left: Vec<String> = expected[deleted..].to_vec();
    left.push(again.name_any());
    assert_eq!(names(nodes.list(&ListParams::default()).await.unwrap()), left);
    match tokio::time::timeout(Duration::from_secs(60), watcher.next()).await.unwrap() {
        Some(Ok(WatchEvent::Deleted(node))) => assert_eq!(node.name_any(), expected[0]),
        other => panic!("{other:?}"),
    }
}

/// A first start that the disk has no room for leaves nothing that keeps the next one from starting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_on_a_full_disk_is_made_good_when_there_is_room() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "this test mounts a tmpfs, in a namespace of its own: run it as root"
    );
    for room in ["0", "8k"] {
        let (folder, outside) = (Folder::new(), Folder::new());
        let said = outside.path().join("said");
        let script = r#"
            mount -t tmpfs -o size=32m berth-test "$1" || exit
            head -c "$4" /dev/zero > "$1/room"
            head -c 64m /dev/zero > "$1/filler" 2> "$3"
            rm "$1/room"
            "$2" serve --listen 127.0.0.1:0 --state-dir "$1/state" 2> "$3" && exit
            rm "$1/filler"
            exec "$2" serve --listen 127.0.0.1:0 --state-dir "$1/state""#;
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh"]).arg(folder.path()).arg(BERTH).arg(&said).arg(room);
        let server = Server::run(&mut command);
        let said = std::fs::read_to_string(&said).unwrap();
        assert!(said.contains("No space left on device") && !said.contains("panicked"), "{room}: {said}");
        let nodes: Api<Node> = Api::all(server.client());
        nodes.create(&PostParams::default(), &node(0)).await.unwrap();
    }
}
