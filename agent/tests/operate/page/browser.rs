//! A real browser without a window, driven as people drive theirs: WebDriver, spoken over plain HTTP.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{get, send, until};

/// How keys are called that are no letters.
pub(super) const ENTER: &str = "\u{E007}";
pub(super) const ESCAPE: &str = "\u{E00C}";
pub(super) const RIGHT: &str = "\u{E014}";
pub(super) const DOWN: &str = "\u{E015}";

/// Ends with the test.
pub(super) struct Browser {
    driver: Child,
    address: String,
    session: String,
}

impl Browser {
    /// With a profile of its own in this folder.
    pub(super) fn start(folder: &Path) -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver: install chromium-driver, or run 'make setup-tests' as root");
        let mut lines =
            BufReader::new(driver.stdout.take().expect("its stdout")).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            line.split_once("started successfully on port ")
                .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect::<String>())
        });
        // It goes on speaking, and must not be kept waiting for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser =
            Self { driver, address: format!("127.0.0.1:{}", port.expect("a port")), session: String::new() };
        let profile = format!("--user-data-dir={}", folder.join("browser").display());
        // As root it can't make itself a sandbox; and it is to ask nobody but us.
        let quiet = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"];
        let alone = ["--disable-background-networking", "--disable-component-update", "--disable-sync"];
        let size = ["--window-size=1280,1100", "--disable-dev-shm-usage", profile.as_str()];
        let arguments = [&quiet[..], &alone, &size].concat();
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": {"args": arguments},
        }}});
        let made = browser.ask("POST", "/session", &wanted);
        browser.session = made["sessionId"].as_str().expect("a session").to_owned();
        browser
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = match method {
            "GET" => get(&self.address, path),
            _ => send(&self.address, method, path, "application/json", body),
        };
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200"), "{method} {path}: {head}\n{body}");
        let mut answer: Value = serde_json::from_str(body).expect("JSON");
        answer["value"].take()
    }

    #[track_caller]
    fn of_session(&self, method: &str, path: &str, body: &Value) -> Value {
        self.ask(method, &format!("/session/{}{path}", self.session), body)
    }

    #[track_caller]
    pub(super) fn open(&self, url: &str) {
        self.of_session("POST", "/url", &json!({"url": url}));
    }

    /// What a script returns.
    #[track_caller]
    pub(super) fn eval(&self, script: &str) -> Value {
        self.of_session("POST", "/execute/sync", &json!({"script": format!("return {script}"), "args": []}))
    }

    /// Waits until a script returns this.
    #[track_caller]
    pub(super) fn until(&self, script: &str, wanted: &Value) {
        let mut last = Value::Null;
        let what = format!("{script} is {wanted}");
        until(&what, || {
            last = self.eval(script);
            (last == *wanted).then_some(())
        });
    }

    /// Keys, one after the other, to whatever has the focus.
    #[track_caller]
    pub(super) fn press(&self, keys: &str) {
        let pressed = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|what| json!({"type": what, "value": key.to_string()})));
        let keys = json!({"type": "key", "id": "keys", "actions": pressed.collect::<Vec<_>>()});
        self.of_session("POST", "/actions", &json!({"actions": [keys]}));
    }

    /// As a person whose desktop is dark.
    #[track_caller]
    pub(super) fn prefer(&self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.of_session(
            "POST",
            "/goog/cdp/execute",
            &json!({"cmd": "Emulation.setEmulatedMedia", "params": features}),
        );
    }

    /// A picture, as PNG in base64.
    #[track_caller]
    pub(super) fn picture(&self) -> String {
        self.of_session("GET", "/screenshot", &Value::Null).as_str().expect("a picture").to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.of_session("DELETE", "", &json!({}));
        }
        self.driver.kill().ok();
        self.driver.wait().ok();
    }
}
