//! The page beyond loopback, as a controller offers it in a cluster: a real API server says whose token it is and what they may.

use std::io::{Read, Write};
use std::net::TcpStream;

use api_tests::RUNTIME;
use api_tests::cluster::{Cluster, NAMESPACE};
use api_tests::control_plane::Options;

use crate::folder::Folder;
use crate::support::{Berth, get, until};

/// What is answered to whoever has this token: the code, and all of it.
fn ask(page: &str, path: &str, token: Option<&str>) -> (u16, String) {
    let mut stream = TcpStream::connect(page).expect("it listens");
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: berth.example\r\n{token}Connection: close\r\n\r\n")
        .expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text");
    let code = text.split_whitespace().nth(1).and_then(|code| code.parse().ok());
    (code.unwrap_or_else(|| panic!("no answer: {text}")), text)
}

#[test]
fn a_token_of_the_cluster_says_who_may_look() {
    let cluster = Cluster::start(&Options::default());
    let kubectl = |arguments: &[&str]| cluster.plane.run_kubectl(arguments);
    let deploy = |file: &str| format!("{}/../deploy/{file}", env!("CARGO_MANIFEST_DIR"));
    let folder = Folder::new();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, RUNTIME.block_on(cluster.controller_token())).expect("written");
    let kubeconfig = cluster.way().kubeconfig(&token_file).to_string();
    std::fs::write(folder.path().join("kubeconfig"), kubeconfig).expect("written");
    kubectl(&[
        "apply",
        "--filename",
        &format!("{}/../docs/examples/traffic-1.yaml", env!("CARGO_MANIFEST_DIR")),
    ]);

    let way = ["controller", "--kubeconfig", "kubeconfig", "--namespace", NAMESPACE];
    let at = ["--page-address", "0.0.0.0:0", "--health-address", "127.0.0.1:0"];
    let mut controller = Berth::start(folder.path(), &[&way[..], &at].concat());
    let health = controller
        .until_says("health and metrics on http://")
        .rsplit('/')
        .next()
        .expect("an address")
        .to_owned();
    let said = controller.until_says("a page to look at on http://");
    let page = format!("127.0.0.1:{}", said.rsplit(':').next().expect("a port"));

    // Everybody may have the document, and nobody without a token anything that it asks for.
    assert_eq!(ask(&page, "/", None).0, 200);
    let (code, text) = ask(&page, "/pools", None);
    assert_eq!(code, 401, "{text}");
    assert!(text.to_lowercase().contains("www-authenticate: bearer"), "{text}");
    // A controller with the base's rights may not ask whose token it is: nobody is let in, and that is said.
    let (code, text) = ask(&page, "/pools", Some("nonsense"));
    assert_eq!(code, 503, "{text}");
    assert!(text.contains("tokenreviews"), "{text}");
    // Which is no matter of the controller's own work.
    controller.until_says("lacks the right to create tokenreviews");
    until("it leads", || get(&health, "/readyz").starts_with("HTTP/1.1 200").then_some(()));

    kubectl(&["apply", "--filename", &deploy("components/page/rights.yaml")]);
    // It takes a moment from being written to being in force.
    until("the controller may ask", || (ask(&page, "/pools", Some("nonsense")).0 == 401).then_some(()));
    kubectl(&["create", "serviceaccount", "looker", "--namespace", NAMESPACE]);
    let token = kubectl(&["create", "token", "looker", "--namespace", NAMESPACE]);
    let (code, text) = ask(&page, "/pools", Some(token.trim()));
    assert_eq!(code, 403, "{text}");
    assert!(text.contains("system:serviceaccount:berth-system:looker may not read pools"), "{text}");
    assert_eq!(ask(&page, "/stream", Some(token.trim())).0, 403, "nor hear that something changes");

    let who = format!("--serviceaccount={NAMESPACE}:looker");
    kubectl(&["create", "clusterrolebinding", "looker", "--clusterrole=berth-page-viewer", &who]);
    until("they may look", || (ask(&page, "/pools", Some(token.trim())).0 == 200).then_some(()));
    let (_, text) = ask(&page, "/pools", Some(token.trim()));
    assert!(text.contains("traffic-1"), "{text}");
    assert_eq!(ask(&page, "/pools", None).0, 401, "another is not let in by that");
}
