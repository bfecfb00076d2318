//! `berth serve pki` as a person uses it.

use std::fs;

use super::{Folder, Server, run};

/// What is printed, days as `DAY`.
fn made(text: &str) -> Vec<String> {
    let line = |line: &str| match line.split_once("  good until ") {
        None => line.to_owned(),
        Some((path, day)) => {
            assert_eq!(day.split('-').map(str::len).collect::<Vec<_>>(), [4, 2, 2], "{day}");
            format!("{path} DAY")
        }
    };
    text.lines().map(line).collect()
}

#[test]
fn certificates_are_made_once() {
    let folder = Folder::new();
    let early = run(&folder, "serve pki host node01 --dir pki");
    assert_eq!(early.code, 1);
    assert_eq!(early.stderr, "error: pki: there is no CA here; make one with 'berth serve pki init'\n");
    let init = "serve pki init --dir pki --server-name api.example.org 10.0.0.1 --port 7443";
    let first = run(&folder, init);
    assert_eq!((first.code, first.stderr.as_str()), (0, ""));
    assert_eq!(
        made(&first.stdout),
        [
            "pki/ca.key",
            "pki/ca.crt DAY",
            "pki/server.key",
            "pki/server.crt DAY",
            "pki/admin.key",
            "pki/admin.crt DAY",
            "pki/admin.kubeconfig",
        ]
    );
    assert!(!first.stdout.contains("PRIVATE"));
    let host = run(&folder, "serve pki host node01 --dir pki");
    assert_eq!(
        made(&host.stdout),
        ["pki/hosts/node01.key", "pki/hosts/node01.crt DAY", "pki/hosts/node01.kubeconfig"]
    );
    let config = fs::read_to_string(folder.0.join("pki/hosts/node01.kubeconfig")).expect("written");
    assert!(config.contains("server: https://api.example.org:7443\n"), "{config}");
    for again in [init, "serve pki host node01 --dir pki"] {
        let ran = run(&folder, again);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{again}");
        assert!(ran.stderr.ends_with("is there already; --force replaces it\n"), "{}", ran.stderr);
    }
    let ca = fs::read(folder.0.join("pki/ca.crt")).expect("a CA");
    assert_eq!(run(&folder, &format!("{init} --force")).code, 0);
    assert_eq!(fs::read(folder.0.join("pki/ca.crt")).expect("a CA"), ca, "the CA is kept");
    let wrong = run(&folder, "serve pki host Node01 --dir pki");
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("\"Node01\" can be no host's name"), "{}", wrong.stderr);
}

#[test]
fn a_certificate_that_ends_soon_is_spoken_of() {
    let folder = Folder::new();
    run(&folder, "serve pki init --dir pki --server-name 127.0.0.1 --days 20");
    let tls = "--tls-cert pki/server.crt --tls-key pki/server.key --client-ca pki/ca.crt";
    let server = Server::start(&folder, &format!("--in-memory --listen 127.0.0.1:0 {tls}"), 2);
    let warned = &server.said[0];
    assert!(warned.starts_with("warning: --tls-cert pki/server.crt: ends on 20"), "{warned}");
    assert!(server.said[1].starts_with("listening on https://127.0.0.1:"), "{:?}", server.said);
    let missing =
        run(&folder, &format!("serve --in-memory --listen 127.0.0.1:0 {}", tls.replace("ca.crt", "none")));
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.starts_with("error: --client-ca pki/none: is not a certificate in PEM"),
        "{}",
        missing.stderr
    );
}

/// Without an administrator's certificate beside the server's there is nobody to write a kubeconfig for.
#[test]
fn a_kubeconfig_over_tls_needs_a_certificate() {
    let folder = Folder::new();
    run(&folder, "serve pki init --dir pki --server-name 127.0.0.1");
    let tls = "--tls-cert pki/server.crt --tls-key pki/server.key --client-ca pki/ca.crt";
    let line = format!("serve --in-memory --listen 127.0.0.1:0 {tls} --write-kubeconfig kubeconfig");
    fs::remove_file(folder.0.join("pki/admin.kubeconfig")).expect("removed");
    let ran = run(&folder, &line);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("'berth serve pki init' makes one"), "{}", ran.stderr);
    assert!(!folder.0.join("kubeconfig").exists());
}
