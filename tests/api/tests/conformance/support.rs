//! What the suite's tests share.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use agent::embedded::listen::{Address, Listener, Place};
use agent::embedded::{Api, Limits};
use api_tests::RUNTIME;
use api_tests::server::paths::{STATES, state};
use api_tests::server::{Server, Which};
use kube::{Client, Config};
use serde_json::Value;

/// The embedded API that all tests share, in memory.
pub(crate) fn embedded() -> Server {
    static API: LazyLock<Api> = LazyLock::new(Api::in_memory);
    let _inside = RUNTIME.enter();
    Server::new(Which::Embedded, API.client())
}

/// The embedded API that all tests share, over plain HTTP on loopback, as `berth serve` has it, on a store on disk.
pub(crate) fn served() -> Server {
    static PLACE: LazyLock<(Api, Place)> = LazyLock::new(|| RUNTIME.block_on(serve()));
    let Place::Plain(address) = &PLACE.1 else { panic!("{}", PLACE.1) };
    let mut config = Config::new(format!("http://{address}").parse().expect("a URL"));
    config.default_retry = false;
    let _inside = RUNTIME.enter();
    Server::new(Which::Embedded, Client::try_from(config).expect("a client"))
}

async fn serve() -> (Api, Place) {
    let api = Api::open(&store()).expect("a store");
    let address: Address = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(&address, None, false).await.expect("a listener");
    let place = listener.place();
    // Nobody stops it: it ends with the process.
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let service = api.clone();
    tokio::spawn(async move {
        let _stop = stop;
        listener.serve(service, stopped, Duration::ZERO).await;
    });
    (api, place)
}

/// A folder for this process, and none of those that earlier ones left.
fn store() -> PathBuf {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    fs::create_dir_all(&all).expect("a folder");
    for old in fs::read_dir(&all).expect("a folder").flatten() {
        if !Path::new("/proc").join(old.file_name()).exists() {
            fs::remove_dir_all(old.path()).expect("remove what an earlier process left");
        }
    }
    all.join(std::process::id().to_string())
}

/// A server, and a version that it no longer knows anything of, with the second page of a list of that time.
///
/// A real one is asked for the time before it began, and with a token of its own sort: what it has once shown in pages it
/// keeps for long. An embedded one remembers all of a short life, so one with a short memory is made for it.
pub(crate) async fn with_a_forgotten_version(server: Server) -> (Server, String, String) {
    if server.which == Which::Real {
        // {"v":"meta.k8s.io/v1","rv":5,"start":"s1\u0000"}
        let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJzMVx1MDAwMCJ9";
        return (server, "1".to_owned(), token.to_owned());
    }
    let api = Api::in_memory_with(Limits { log_events: 8, ..Limits::default() });
    let server = Server::new(Which::Embedded, api.client());
    let mut first = String::new();
    let mut token = String::new();
    for number in 0..32 {
        let made = server.post(STATES, &state(&server.name("state"))).await.created();
        if number == 1 {
            first = version(&made).to_owned();
            let page = server.get(&format!("{STATES}?limit=1")).await.ok();
            token = page["metadata"]["continue"].as_str().expect("a token").to_owned();
        }
    }
    (server, first, token)
}

/// Of an object, as the server answered it.
pub(crate) fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_else(|| panic!("no version: {object}"))
}

pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_else(|| panic!("no uid: {object}"))
}

/// The names in a list, in its order.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("no list: {list}"));
    items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

/// The field and the reason of each cause of a refusal.
pub(crate) fn causes(status: &Value) -> Vec<(&str, &str)> {
    let causes = status["details"]["causes"].as_array().unwrap_or_else(|| panic!("no causes: {status}"));
    causes.iter().map(|cause| (text(cause, "field"), text(cause, "reason"))).collect()
}

fn text<'a>(cause: &'a Value, key: &str) -> &'a str {
    cause[key].as_str().unwrap_or_default()
}
