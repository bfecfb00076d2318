//! Certificates that change while the server runs: renewed, revoked, their CA replaced, broken.

use super::secure::{answer, connect, listener_on, pki, term};
use super::*;
use crate::embedded::pki::{Authority, Client, Keep, ServerName};

fn host(name: &str) -> Client {
    Client::Host(name.to_owned())
}

/// A request that the server holds back, on a connection of its own; whether it was cut off without an answer.
async fn held(server: &Server, dir: &std::path::Path, client: &str) -> JoinHandle<String> {
    let stream = connect(server.at(), &dir.join("ca.crt"), Some(&dir.join(client)), b"http/1.1").await;
    let asked = tokio::spawn(ask(stream.expect("connected"), "/slow"));
    within(server.slow.notified()).await;
    asked
}

#[tokio::test]
async fn a_revoked_name_is_cut_off_and_hears_why_until_it_has_another_certificate() {
    let folder = Folder::new();
    let dir = folder.path();
    let files = pki(dir, &[host("node01"), host("node02")]);
    let tls = Tls::load(&files).expect("TLS");
    let server = Server::start(listener_on(&tls, false).await);
    let ca = dir.join("ca.crt");
    let stolen = held(&server, dir, "hosts/node01").await;
    let other = held(&server, dir, "hosts/node02").await;

    let authority = Authority::open(dir).expect("the CA");
    authority.revoke("system:node:node01", term().now).expect("revoked");
    // The next handshake, of whomever, finds the list; from then on its connections are gone, watches and all.
    let refused = answer(server.at(), &ca, Some(&dir.join("hosts/node01"))).await;
    assert!(refused.starts_with("HTTP/1.1 403 Forbidden"), "{refused}");
    assert!(
        refused.contains(r#"the certificates of \"system:node:node01\" made until now were revoked"#),
        "{refused}"
    );
    assert_eq!(within(stolen).await.expect("ended"), "", "cut off");

    authority.client(&host("node01"), "https://127.0.0.1", term(), Keep::Nothing).expect("made anew");
    let anew = answer(server.at(), &ca, Some(&dir.join("hosts/node01"))).await;
    assert!(anew.ends_with("Host { name: \"node01\", elects: false }"), "{anew}");
    // Nobody else noticed.
    server.go.notify_one();
    let answer = within(other).await.expect("ended");
    assert!(answer.ends_with("Host { name: \"node02\", elects: false }"), "{answer}");
    server.end().await;
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_at_the_next_handshake() {
    let folder = Folder::new();
    let dir = folder.path();
    let files = pki(dir, &[host("node01")]);
    let tls = Tls::load(&files).expect("TLS");
    let server = Server::start(listener_on(&tls, false).await);
    let shown = async || {
        let stream =
            connect(server.at(), &dir.join("ca.crt"), Some(&dir.join("hosts/node01")), b"http/1.1").await;
        let stream = stream.expect("connected");
        stream.get_ref().1.peer_certificates().expect("a certificate")[0].clone().into_owned()
    };
    let first = shown().await;
    assert_eq!(shown().await, first);
    let authority = Authority::open(dir).expect("the CA");
    let name = ServerName::parse("127.0.0.1").expect("a name");
    authority.server(&[name], term(), Keep::Nothing).expect("made anew");
    let second = shown().await;
    assert_ne!(second, first);

    // What can't be used replaces nothing: a key that is not the certificate's, a list that can't be read.
    fs::copy(dir.join("hosts/node01.key"), dir.join("server.key")).expect("copied");
    assert_eq!(shown().await, second);
    let said = tls.refresh().expect_err("told").to_string();
    assert!(said.contains("is not the key of --tls-cert"), "{said}");
    authority
        .server(&[ServerName::parse("127.0.0.1").expect("a name")], term(), Keep::Nothing)
        .expect("made");
    fs::write(dir.join("revoked"), "everybody\n").expect("written");
    assert_eq!(shown().await, second);
    let said = tls.refresh().expect_err("told").to_string();
    assert!(said.contains("line 1 is not a time and a name"), "{said}");
    fs::remove_file(dir.join("revoked")).expect("removed");
    assert_ne!(shown().await, second);
    server.end().await;
}

#[tokio::test]
async fn with_another_ca_the_clients_of_the_former_are_gone() {
    let (folder, other) = (Folder::new(), Folder::new());
    let dir = folder.path();
    let files = pki(dir, &[host("node01")]);
    pki(other.path(), &[host("node01")]);
    let tls = Tls::load(&files).expect("TLS");
    let server = Server::start(listener_on(&tls, false).await);
    let former = held(&server, dir, "hosts/node01").await;
    let (ca, own) = (dir.join("own.crt"), dir.join("ca.crt"));
    fs::copy(&own, &ca).expect("kept");
    fs::copy(other.path().join("ca.crt"), &own).expect("copied");
    tls.refresh().expect("read again");
    assert_eq!(within(former).await.expect("ended"), "", "cut off");
    assert!(!answer(server.at(), &ca, Some(&dir.join("hosts/node01"))).await.contains("HTTP/"));
    let theirs = answer(server.at(), &ca, Some(&other.path().join("hosts/node01"))).await;
    assert!(theirs.starts_with("HTTP/1.1 200 OK"), "{theirs}");
    server.end().await;
}
