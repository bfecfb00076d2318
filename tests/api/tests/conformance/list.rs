//! List: selectors, pages, versions.

use api_tests::server::Server;
use api_tests::server::paths::{POOLS, SLICES, STATES, at, state};
use hyper::Request;
use kube::client::Body;
use serde_json::{Value, json};

use crate::differences::{begins, goes_on, plain};
use crate::support::{causes, names, version, with_a_forgotten_version};

/// States of a group of their own, one per entry, with these labels; the selector of the group, and their names.
async fn group(s: &Server, labels: &[Value]) -> (String, Vec<String>) {
    let group = s.name("group");
    let mut made = Vec::new();
    for (number, labels) in labels.iter().enumerate() {
        let name = format!("{group}-{number:03}");
        let mut object = state(&name);
        object["metadata"]["labels"] = labels.clone();
        object["metadata"]["labels"]["group"] = json!(group);
        s.post(STATES, &object).await.created();
        made.push(name);
    }
    (format!("labelSelector=group%3D{group}"), made)
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

pub(crate) async fn a_list_has_a_version_and_is_in_order(s: Server) {
    let (selector, made) = group(&s, &[json!({}), json!({}), json!({})]).await;
    let list = s.get(&format!("{STATES}?{selector}")).await.ok();
    assert_eq!(list["kind"], "NodeNetworkStateList");
    assert_eq!(list["apiVersion"], "nmstate.io/v1beta1");
    assert_eq!(names(&list), made);
    let last = s.get(&at(STATES, &made[2])).await.ok();
    let number = |object: &Value| version(object).parse::<u64>().expect("a number");
    assert!(number(&list) >= number(&last));
    assert_eq!(plain(list["items"][2].clone()), plain(last));
    // Nothing is a list too.
    let none = s.get(&format!("{STATES}?labelSelector=group%3Dnothing")).await.ok();
    assert_eq!(none["items"], json!([]));
    assert!(number(&none) >= number(&list));
}

/// What `kubectl get -o wide` shows of an object: its columns, each with the cell.
async fn columns(s: &Server, path: &str) -> Vec<(String, Value)> {
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let request = Request::get(path).header("accept", table).body(Body::empty()).expect("a request");
    let shown = s.send(request).await.ok();
    let names = shown["columnDefinitions"].as_array().cloned().unwrap_or_default().into_iter();
    let cells = shown["rows"][0]["cells"].as_array().cloned().unwrap_or_default();
    names.map(|column| column["name"].as_str().unwrap_or_default().to_owned()).zip(cells).collect()
}

/// R107: of a pool its blocks per node and its network of each family; of a slice whose it is.
pub(crate) async fn r107_columns_of_pools_and_slices(s: Server) {
    let name = s.name("both");
    let range =
        json!({"ipv4": {"cidr": "10.64.0.0/20"}, "ipv6": {"cidr": "fd00:64::/64"}, "perNodeHostBits": 10});
    let kind = |kind: &str| json!({"apiVersion": "nmstate.io/v1", "kind": kind, "metadata": {"name": name}});
    let mut pool = kind("NodeIPPool");
    pool["spec"] = json!({"range": range});
    s.post(POOLS, &pool).await.created();
    let shown = columns(&s, &at(POOLS, &name)).await;
    let cell = |wanted: &str| shown.iter().find(|(name, _)| name == wanted).map(|(_, cell)| cell.clone());
    assert_eq!(cell("Name"), Some(json!(name)));
    assert_eq!(cell("PerNodeHostBits"), Some(json!(10)));
    assert_eq!(cell("IPv4"), Some(json!("10.64.0.0/20")));
    assert_eq!(cell("IPv6"), Some(json!("fd00:64::/64")));
    assert!(cell("Age").is_some(), "{shown:?}");
    let mut slice = kind("NodeIPSlice");
    slice["metadata"]["name"] = json!(format!("{name}.10.64.4.0"));
    slice["spec"] = json!({"pool": name, "cidr": "10.64.4.0/22", "node": "node01", "nodeUID": "u"});
    s.post(SLICES, &slice).await.created();
    let shown = columns(&s, &at(SLICES, &format!("{name}.10.64.4.0"))).await;
    let shown: Vec<(&str, &Value)> = shown.iter().map(|(name, cell)| (name.as_str(), cell)).collect();
    for wanted in [("Pool", &json!(name)), ("CIDR", &json!("10.64.4.0/22")), ("Node", &json!("node01"))] {
        assert!(shown.contains(&wanted), "{wanted:?} of {shown:?}");
    }
}

pub(crate) async fn label_selectors(s: Server) {
    let labels =
        [json!({"n": "1", "a": "x"}), json!({"n": "2", "a": "y"}), json!({"n": "3"}), json!({"e": ""})];
    let (selector, made) = group(&s, &labels).await;
    let cases: [(&str, &[usize]); 16] = [
        ("n=1", &[0]),
        ("n==1", &[0]),
        ("n!=1", &[1, 2, 3]),
        ("n in (1,2)", &[0, 1]),
        ("n in (1, 2),a=x", &[0]),
        ("n notin (1,2)", &[2, 3]),
        ("n", &[0, 1, 2]),
        ("!n", &[3]),
        ("n>1", &[1, 2]),
        ("n<3", &[0, 1]),
        ("a,n!=1", &[1]),
        ("e=", &[3]),
        ("e", &[3]),
        ("a in (x,y),n in (2)", &[1]),
        ("n in ()", &[]),
        ("nmstate.io/x!=y", &[0, 1, 2, 3]),
    ];
    for (text, wanted) in cases {
        let list = s.get(&format!("{STATES}?{selector}%2C{}", encoded(text))).await.ok();
        let wanted: Vec<&String> = wanted.iter().map(|index| &made[*index]).collect();
        assert_eq!(names(&list), wanted, "{text}");
    }
}

pub(crate) async fn selectors_that_can_not_be_read(s: Server) {
    let bad = ["n===", "n in", "n in (", "a b", "=x", "n=a b", "n in (1", "n>x", "-a=b", "n=!!"];
    for text in bad {
        s.get(&format!("{STATES}?labelSelector={}", encoded(text))).await.refused(400, "BadRequest");
    }
    let words = "unable to parse requirement: found '=', expected: identifier";
    s.get(&format!("{STATES}?labelSelector={}", encoded("n==="))).await.says(400, "BadRequest", words);
    let unknown = s.get(&format!("{STATES}?fieldSelector={}", encoded("spec.x=1"))).await;
    unknown.says(400, "BadRequest", "field label not supported: spec.x");
    let unread = s.get(&format!("{STATES}?fieldSelector=x")).await;
    unread.says(400, "BadRequest", "invalid selector: 'x'; can't understand 'x'");
}

pub(crate) async fn field_selectors(s: Server) {
    let (selector, made) = group(&s, &[json!({}), json!({}), json!({})]).await;
    let cases = [
        (format!("metadata.name={}", made[1]), vec![&made[1]]),
        (format!("metadata.name=={}", made[1]), vec![&made[1]]),
        (format!("metadata.name!={}", made[1]), vec![&made[0], &made[2]]),
        (format!("metadata.name!={},metadata.name!={}", made[1], made[0]), vec![&made[2]]),
        ("metadata.name=nobody".to_owned(), vec![]),
        ("".to_owned(), made.iter().collect()),
    ];
    for (text, wanted) in cases {
        let list = s.get(&format!("{STATES}?{selector}&fieldSelector={}", encoded(&text))).await.ok();
        assert_eq!(names(&list), wanted, "{text}");
    }
}

pub(crate) async fn pages_are_one_snapshot(s: Server) {
    let many: Vec<Value> = (0..7).map(|_| json!({})).collect();
    let (_, made) = group(&s, &many).await;
    // Without a selector other tests' objects are in it too.
    let first = s.get(&format!("{STATES}?limit=1")).await.ok();
    assert_eq!(names(&first).len(), 1);
    let (at_version, mut token) = (version(&first).to_owned(), first["metadata"]["continue"].clone());
    assert!(first["metadata"]["remainingItemCount"].as_i64().is_some_and(|left| left >= 6), "{first}");
    // What comes and goes now is not in the pages that follow.
    let late = s.name("aaa-late");
    s.post(STATES, &state(&late)).await.created();
    s.delete(&at(STATES, &made[3])).await.ok();
    s.merge(&at(STATES, &made[4]), &json!({"metadata": {"labels": {"late": "yes"}}})).await.ok();
    let mut seen: Vec<Value> = first["items"].as_array().cloned().unwrap_or_default();
    while let Some(text) = token.as_str().filter(|token| !token.is_empty()) {
        let page = s.get(&format!("{STATES}?limit=2&continue={}", encoded(text))).await.ok();
        assert_eq!(version(&page), at_version);
        let items = page["items"].as_array().cloned().unwrap_or_default();
        assert!(items.len() <= 2);
        seen.extend(items);
        token = page["metadata"]["continue"].clone();
    }
    let list = json!({"items": seen});
    let found = names(&list);
    assert!(made.iter().all(|name| found.contains(&name.as_str())), "{found:?}");
    assert!(!found.contains(&late.as_str()));
    assert!(found.is_sorted());
    let changed = seen.iter().find(|item| item["metadata"]["name"] == made[4]).expect("the changed one");
    assert_eq!(changed["metadata"]["labels"]["late"], json!(null));
}

pub(crate) async fn pages_with_a_selector(s: Server) {
    let many: Vec<Value> = (0..5).map(|number| json!({"odd": (number % 2).to_string()})).collect();
    let (selector, made) = group(&s, &many).await;
    let first = s.get(&format!("{STATES}?{selector}%2Codd%3D0&limit=2")).await.ok();
    assert_eq!(names(&first), [&made[0], &made[2]]);
    // How many are left is not known where a selector must be asked.
    assert_eq!(first["metadata"]["remainingItemCount"], json!(null));
    let token = encoded(first["metadata"]["continue"].as_str().expect("a token"));
    let rest = s.get(&format!("{STATES}?{selector}%2Codd%3D0&limit=2&continue={token}")).await.ok();
    assert_eq!(names(&rest), [&made[4]]);
    assert_eq!(rest["metadata"]["continue"].as_str().unwrap_or_default(), "");
    let all = s.get(&format!("{STATES}?{selector}&limit=-1")).await.ok();
    assert_eq!(names(&all), made);
}

pub(crate) async fn tokens_that_can_not_be_read(s: Server) {
    for token in ["garbage", "x", "e30"] {
        let answer = s.get(&format!("{STATES}?continue={token}")).await;
        begins(answer, 400, "BadRequest", "invalid continue token: continue key is not valid: ");
    }
    s.get(&format!("{STATES}?limit=x")).await.refused(400, "BadRequest");
}

pub(crate) async fn the_past_is_gone_for_lists_too(s: Server) {
    let (s, forgotten, token) = with_a_forgotten_version(s).await;
    let status = s.get(&format!("{STATES}?limit=2&continue={token}")).await.refused(410, "Expired");
    let message = status["message"].as_str().expect("a message");
    let words = "The provided continue parameter is too old to display a consistent list result. You can start a new list \
                 without the continue parameter";
    assert!(message.starts_with(words), "{message}");
    goes_on(&s, &status, STATES).await;
    let exact = format!("{STATES}?resourceVersion={forgotten}&resourceVersionMatch=Exact");
    let words = "The resourceVersion for the provided list is too old.";
    s.get(&exact).await.says(410, "Expired", words);
    s.get(STATES).await.ok();
}

pub(crate) async fn not_older_than(s: Server) {
    let (selector, made) = group(&s, &[json!({}), json!({})]).await;
    let at_least = s.get(&at(STATES, &made[1])).await.ok();
    let at_least = version(&at_least);
    for query in [
        format!("resourceVersion={at_least}"),
        format!("resourceVersion={at_least}&resourceVersionMatch=NotOlderThan"),
        "resourceVersion=".to_owned(),
    ] {
        let list = s.get(&format!("{STATES}?{selector}&{query}")).await.ok();
        assert_eq!(names(&list), made, "{query}");
        let found: u64 = version(&list).parse().expect("a number");
        assert!(found >= at_least.parse().expect("a number"), "{query}");
    }
    // Any version will do, also an old one; a list it is.
    let any = s.get(&format!("{STATES}?{selector}&resourceVersion=0")).await.ok();
    assert_eq!(any["kind"], "NodeNetworkStateList");
    // Exactly that one, and none later.
    let exact = format!("{STATES}?{selector}&resourceVersion={at_least}&resourceVersionMatch=Exact");
    s.delete(&at(STATES, &made[0])).await.ok();
    let list = s.get(&exact).await.ok();
    assert_eq!((names(&list), version(&list)), (made.iter().map(String::as_str).collect(), at_least));
}

pub(crate) async fn a_version_that_is_yet_to_come(s: Server) {
    let name = s.name("state");
    s.post(STATES, &state(&name)).await.created();
    for path in [
        format!("{STATES}?resourceVersion=99999999999"),
        format!("{STATES}/{name}?resourceVersion=99999999999"),
    ] {
        let answer = s.get(&path).await;
        assert_eq!(answer.headers.get("retry-after").and_then(|value| value.to_str().ok()), Some("1"));
        let status = answer.refused(504, "Timeout");
        let message = status["message"].as_str().expect("a message");
        let words = "Timeout: Too large resource version: 99999999999, current: ";
        assert!(message.starts_with(words), "{message}");
        assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
        assert_eq!(status["details"]["retryAfterSeconds"], 1);
    }
}

pub(crate) async fn options_that_do_not_go_together(s: Server) {
    let about = "ListOptions.meta.k8s.io \"\" is invalid: ";
    let cases = [
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            "resourceVersion=1&resourceVersionMatch=Bogus",
            "resourceVersionMatch: Unsupported value: \"Bogus\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
        ),
        ("sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
    ];
    for (query, words) in cases {
        let status =
            s.get(&format!("{STATES}?{query}")).await.says(422, "Invalid", &format!("{about}{words}"));
        assert_eq!(causes(&status).len(), 1);
        assert_eq!(
            (&status["details"]["group"], &status["details"]["kind"]),
            (&json!("meta.k8s.io"), &json!("ListOptions"))
        );
    }
    let unread = s.get(&format!("{STATES}?resourceVersion=abc")).await;
    begins(unread, 400, "BadRequest", "invalid resource version: ");
}

pub(crate) async fn one_object_by_version(s: Server) {
    let name = s.name("state");
    let made = s.post(STATES, &state(&name)).await.created();
    let found = s.get(&format!("{STATES}/{name}?resourceVersion={}", version(&made))).await.ok();
    assert_eq!(found, made);
    s.get(&format!("{STATES}/{name}?resourceVersion=0")).await.ok();
}
