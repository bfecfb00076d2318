//! What the suite's tests share.

use std::sync::LazyLock;

use agent::embedded::{Api, Limits};
use api_tests::RUNTIME;
use api_tests::server::paths::{STATES, state};
use api_tests::server::{Server, Which};
use serde_json::Value;

/// The embedded API that all tests share, in memory.
pub(crate) fn embedded() -> Server {
    static API: LazyLock<Api> = LazyLock::new(Api::in_memory);
    let _inside = RUNTIME.enter();
    Server::new(Which::Embedded, API.client())
}

/// A server, and a version that it no longer knows anything of.
///
/// A real one is asked for the time before it began. An embedded one remembers all of a short life, so one with a short
/// memory is made for it.
pub(crate) async fn with_a_forgotten_version(server: Server) -> (Server, String) {
    if server.which == Which::Real {
        return (server, "1".to_owned());
    }
    let api = Api::in_memory_with(Limits { log_events: 8, ..Limits::default() });
    let server = Server::new(Which::Embedded, api.client());
    let mut first = None;
    for _ in 0..32 {
        let made = server.post(STATES, &state(&server.name("state"))).await.created();
        first.get_or_insert(version(&made).to_owned());
    }
    (server, first.unwrap_or_default())
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
