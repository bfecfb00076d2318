//! The page to look at, in a real browser: what it draws, that it follows, that a keyboard is enough.

mod browser;
mod tokens;

use std::path::Path;

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::support::{Berth, get, post, send};
use browser::{Browser, DOWN, ENTER, ESCAPE, RIGHT};

const POOLS: &str = "/apis/nmstate.io/v1/nodeippools";

struct Stage {
    _api: Berth,
    address: String,
    page: String,
    folder: Folder,
}

/// `berth serve` with the seeds' first pool and a large one.
fn stage() -> Stage {
    let folder = Folder::new();
    let listen = ["--listen", "127.0.0.1:0", "--page-address", "127.0.0.1:0"];
    let mut api = Berth::start(folder.path(), &[&["serve", "--in-memory"][..], &listen].concat());
    let after = |line: &str| line.rsplit('/').next().expect("an address").to_owned();
    let address = after(&api.until_says("listening on http://"));
    let page = after(&api.until_says("a page to look at on http://"));
    let stage = Stage { _api: api, address, page, folder };
    let range = json!({"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.10", "exclude": ["10.10.10.4", "10.10.10.7"], "gateway": "10.10.10.10"});
    stage.pool(
        "traffic-1",
        &json!({"range": range, "reservations": [{"node": "node09", "ip": "10.10.10.9"}]}),
    );
    stage.pool("wide", &json!({"range": {"cidr": "10.0.0.0/16"}}));
    stage.ledger("traffic-1", &json!({"10.10.10.1": held("node01"), "10.10.10.2": aside("node02")}));
    let many = (0..800).map(|n| (format!("10.0.{}.{}", 64 + n / 200, 20 + n % 200), held(&format!("n{n}"))));
    stage.ledger("wide", &Value::Object(many.collect()));
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "freed"}, "reason": "AddressFreed", "type": "Normal",
        "involvedObject": {"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "name": "traffic-1"}, "count": 1,
        "message": "10.10.10.3: freed, node07 had it", "lastTimestamp": "2026-01-01T00:00:00Z"});
    post(&stage.address, "/api/v1/namespaces/default/events", &event);
    let policy = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy",
        "metadata": {"name": "static-ip"}, "spec": {}});
    let policies = "/apis/nmstate.io/v1/nodenetworkconfigurationpolicies";
    post(&stage.address, policies, &policy);
    let stands = json!({"type": "Available", "status": "True", "reason": "SuccessfullyConfigured",
        "message": "3/3 nodes successfully configured"});
    let path = format!("{policies}/static-ip/status");
    let status = json!({"status": {"conditions": [stands]}});
    send(&stage.address, "PATCH", &path, "application/merge-patch+json", &status);
    stage
}

fn held(node: &str) -> Value {
    json!({"node": node, "nodeUID": node, "policy": "static-ip", "capture": "address", "request": node,
        "sequence": 1, "since": "2026-01-01T00:00:00Z"})
}

fn aside(node: &str) -> Value {
    json!({"node": node, "request": node, "state": "Quarantined", "until": "2026-01-01T00:00:00Z", "reason": "NodeGone"})
}

impl Stage {
    fn pool(&self, name: &str, spec: &Value) {
        let pool = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": name}, "spec": spec});
        post(&self.address, POOLS, &pool);
    }

    fn ledger(&self, name: &str, allocations: &Value) {
        let (capacity, held) = if name == "wide" { (65_534, 800) } else { (7, 2) };
        let condition = json!({"type": "Available", "status": "True", "reason": "ReconciledPool", "message": "The pool is up to date",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"status": {"sequence": 1, "allocations": allocations, "capacity": capacity, "allocated": held,
            "available": capacity - held, "conditions": [condition]}});
        let path = format!("{POOLS}/{name}/status");
        let answer = send(&self.address, "PATCH", &path, "application/merge-patch+json", &status);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn browser(&self) -> Browser {
        let browser = Browser::start(self.folder.path());
        browser.open(&format!("http://{}/", self.page));
        browser.until("document.querySelectorAll('#grid .cell').length", &json!(10));
        browser
    }
}

const STATES: &str =
    "[...document.querySelectorAll('#grid .cell')].map((cell) => cell.classList[1]).join(' ')";
const DETAIL: &str = "document.getElementById('detail').textContent.startsWith";

/// A picture for the documents, where one is asked for (`UPDATE_SCREENSHOTS=1`).
fn keep(browser: &Browser, name: &str) {
    use base64::Engine as _;
    if std::env::var_os("UPDATE_SCREENSHOTS").is_some() {
        let png = base64::engine::general_purpose::STANDARD.decode(browser.picture()).expect("base64");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
        std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join(name), png)).expect("kept");
    }
}

#[test]
fn a_pool_is_drawn_and_followed_as_it_changes() {
    let stage = stage();
    let browser = stage.browser();
    let drawn = "held quarantined free excluded free free excluded free reserved gateway";
    browser.until(STATES, &json!(drawn));
    // Nothing is loaded again: an address is given, and the page has heard of it.
    browser.eval("(() => { window.same = true; })()");
    stage.ledger("traffic-1", &json!({"10.10.10.3": held("node03")}));
    browser.until(STATES, &json!(drawn.replacen("free", "held", 1)));
    assert_eq!(browser.eval("window.same"), json!(true));
    // Pointing at it says whose it is, and since when somebody looks.
    browser.eval("document.querySelector('[data-ip=\"10.10.10.3\"]').dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))");
    browser.until(&format!("{DETAIL}('10.10.10.3  held')"), &json!(true));
    browser.until(
        "document.getElementById('detail').textContent.includes('held node03 (static-ip)')",
        &json!(true),
    );
    let row = "[...document.querySelectorAll('#policies td')].slice(0, 2).map((cell) => cell.textContent).join(' ')";
    browser.until(row, &json!("static-ip Available: 3/3 nodes successfully configured"));
    // And what Events tell of it, from before.
    browser.until(
        "document.getElementById('detail').textContent.includes('AddressFreed: 10.10.10.3: freed, node07 had it')",
        &json!(true),
    );
    // From nowhere but here.
    let elsewhere = "performance.getEntriesByType('resource').filter((one) => !one.name.startsWith(location.origin)).length";
    assert_eq!(browser.eval(elsewhere), json!(0));
    keep(&browser, "page-light.png");
    browser.prefer("dark");
    let back = "getComputedStyle(document.body).backgroundColor";
    browser.until(back, &json!("rgb(18, 21, 27)"));
    keep(&browser, "page-dark.png");
}

#[test]
fn a_keyboard_is_enough() {
    let stage = stage();
    let browser = stage.browser();
    // Over the grid by arrows.
    browser.eval("document.querySelector('#grid .cell').focus()");
    browser.until(&format!("{DETAIL}('10.10.10.1  held')"), &json!(true));
    browser.press(RIGHT);
    browser.until(&format!("{DETAIL}('10.10.10.2  quarantined')"), &json!(true));
    // Find a node, go to it.
    browser.press("/");
    browser.press(&format!("n777{ENTER}"));
    browser.until("document.querySelector('#finds h2')?.textContent", &json!("1 address"));
    browser.eval("document.querySelector('#finds button').focus()");
    browser.press(ENTER);
    browser.until("document.querySelector('.cell.found')?.dataset.ip", &json!("10.0.67.197"));
    // Out again, to the whole of it, and in by Enter.
    browser.eval("document.querySelector('.cell.found').focus()");
    browser.press(ESCAPE);
    browser.until("document.querySelectorAll('#grid .cell.stretch').length", &json!(1024));
    browser.until("document.querySelectorAll('#grid .cell .fill-held').length > 10", &json!(true));
    browser.eval("document.querySelector('#grid .cell').focus()");
    browser.eval("scrollTo(0, 0)");
    keep(&browser, "page-wide.png");
    browser.press(DOWN);
    browser.press(ENTER);
    browser.until("document.querySelectorAll('#grid .cell[data-ip]').length", &json!(1024));
    browser.until("document.querySelector('#grid .cell').dataset.ip", &json!("10.0.16.1"));
}

/// A sliced pool: blocks with their owners, in the grid and in a list, by which one goes to a block.
#[test]
fn slices_are_drawn_with_their_owners() {
    let stage = stage();
    let browser = stage.browser();
    browser.until("document.querySelectorAll('#sliced:not([hidden])').length", &json!(0));
    stage.pool("sliced", &json!({"range": {"cidr": "10.20.0.0/24", "perNodeHostBits": 4}}));
    let slices = "/apis/nmstate.io/v1/nodeipslices";
    for (first, node) in [("10.20.0.16", "node01"), ("10.20.0.64", "node02")] {
        let name = format!("sliced.{first}");
        let spec = json!({"pool": "sliced", "cidr": format!("{first}/28"), "node": node, "nodeUID": node});
        let slice = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPSlice", "metadata": {"name": name}, "spec": spec});
        post(&stage.address, slices, &slice);
        let status = json!({"status": {"sequence": 1, "allocations": {first: held(node)}}});
        let path = format!("{slices}/{name}/status");
        let answer = send(&stage.address, "PATCH", &path, "application/merge-patch+json", &status);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    browser.until("document.querySelectorAll('[data-pool=sliced]').length", &json!(1));
    browser.eval("document.querySelector('[data-pool=sliced]').click()");
    browser.until("document.querySelectorAll('#grid .cell.owned').length", &json!(32));
    assert_eq!(browser.eval("document.querySelectorAll('#grid .cell.begins').length"), json!(2));
    let rows =
        "[...document.querySelectorAll('#slices tr')].slice(1).map((row) => row.textContent).join('; ')";
    browser.until(rows, &json!("10.20.0.16/28node011 of 16; 10.20.0.64/28node021 of 16"));
    browser.eval("[...document.querySelectorAll('#slices button')].pop().click()");
    browser.until("document.querySelector('.cell.found')?.dataset.ip", &json!("10.20.0.64"));
    let says = "document.getElementById('detail').textContent.includes('10.20.0.64/28 of node02')";
    browser.until(says, &json!(true));
}

/// A pool grows as documents say, its one range becoming the first of two: nothing is clicked, and it is drawn again.
#[test]
fn a_range_that_gets_a_name_is_drawn_again() {
    let stage = stage();
    let browser = stage.browser();
    browser.eval("document.querySelector('#grid .cell').focus()");
    browser.until(&format!("{DETAIL}('10.10.10.1  held')"), &json!(true));
    let first = json!({"name": "first", "cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.10", "exclude": ["10.10.10.4", "10.10.10.7"], "gateway": "10.10.10.10"});
    let second = json!({"name": "second", "cidr": "10.10.11.0/28"});
    let grown = json!({"spec": {"range": null, "ranges": [first, second]}});
    let path = format!("{POOLS}/traffic-1");
    let answer = send(&stage.address, "PATCH", &path, "application/merge-patch+json", &grown);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    browser.until("document.querySelectorAll('#ranges button').length", &json!(2));
    let pressed = "document.querySelector('#ranges [aria-pressed=true]')?.textContent";
    browser.until(pressed, &json!("first 10.10.10.0/24"));
    let drawn = "held quarantined free excluded free free excluded free reserved gateway";
    browser.until(STATES, &json!(drawn));
    assert_eq!(browser.eval("document.getElementById('live').textContent"), json!("live"));
    // The other one, by its tab: which stays where one is.
    browser.eval("document.querySelectorAll('#ranges button')[1].click()");
    browser.until("document.querySelectorAll('#grid .cell').length", &json!(14));
    browser.until(pressed, &json!("second 10.10.11.0/28"));
}

/// The pool that is looked at is deleted. Where nobody chose it, the next is drawn; where somebody did, nothing of it is left but a word,
/// and it is drawn again when there is one of its name.
#[test]
fn a_pool_that_is_gone_is_said_to_be() {
    let stage = stage();
    let browser = stage.browser();
    let delete = |pool: &str| {
        let answer =
            send(&stage.address, "DELETE", &format!("{POOLS}/{pool}"), "application/json", &json!({}));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    let [title, says] = ["title", "says"].map(|id| format!("document.getElementById('{id}').textContent"));
    let tabs = "[...document.querySelectorAll('#ranges button')].map((tab) => tab.textContent).join(' ')";
    let cells = "document.querySelectorAll('#grid .cell').length";
    browser.until(tabs, &json!("10.10.10.0/24"));
    delete("traffic-1");
    browser.until(&title, &json!("wide"));
    browser.until(tabs, &json!("10.0.0.0/16"));
    browser.until(cells, &json!(1024));
    stage.pool("other", &json!({"range": {"cidr": "10.30.0.0/28"}}));
    browser.until("document.querySelectorAll('[data-pool=wide]').length", &json!(1));
    browser.eval("document.querySelector('[data-pool=wide]').click()");
    browser.until("location.hash.includes('pool=wide')", &json!(true));
    delete("wide");
    browser.until(&says, &json!("There is no pool of this name."));
    assert_eq!(browser.eval(&title), json!("wide"));
    assert_eq!(browser.eval(tabs), json!(""));
    browser.until(cells, &json!(0));
    stage.pool("wide", &json!({"range": {"cidr": "10.40.0.0/28"}}));
    browser.until(tabs, &json!("10.40.0.0/28"));
    browser.until(cells, &json!(14));
    assert!(browser.eval(&says).as_str().is_some_and(|says| says.starts_with("no condition yet")));
}

/// Without a browser: who may not look, and that a page is no way in for others.
#[test]
fn the_page_is_for_loopback() {
    let stage = stage();
    assert!(get(&stage.page, "/").starts_with("HTTP/1.1 200"));
    let folder = Folder::new();
    let mut elsewhere = Berth::start(
        folder.path(),
        &["serve", "--in-memory", "--listen", "127.0.0.1:0", "--page-address", "0.0.0.0:0"],
    );
    let (code, said) = elsewhere.end();
    assert_eq!(code, Some(1));
    assert!(said.iter().any(|line| line.contains("this API knows no tokens")), "{said:?}");
}
