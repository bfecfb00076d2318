//! TLS: who comes in, as whom, and who doesn't.

use std::path::Path;

use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::*;
use crate::embedded::pki::{Authority, Client, Keep, ServerName, Term};
use crate::embedded::tls::TlsFiles;

pub(super) fn term() -> Term {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    Term { now: now.as_secs(), days: 1 }
}

/// A CA with a server's certificate, and one per client.
pub(super) fn pki(dir: &Path, clients: &[Client]) -> TlsFiles {
    let (authority, _) = Authority::open_or_make(dir, term().now).expect("a CA");
    let name = ServerName::parse("127.0.0.1").expect("a name");
    authority.server(&[name], term(), Keep::What).expect("made");
    for client in clients {
        authority.client(client, "https://127.0.0.1", term(), Keep::What).expect("made");
    }
    TlsFiles {
        certificate: dir.join("server.crt"),
        key: dir.join("server.key"),
        client_authority: dir.join("ca.crt"),
        revoked: dir.join("revoked"),
    }
}

async fn listener(files: &TlsFiles, elects: bool) -> Listener {
    listener_on(&Tls::load(files).expect("TLS"), elects).await
}

pub(super) async fn listener_on(tls: &Tls, elects: bool) -> Listener {
    let address = "127.0.0.1:0".parse().expect("an address");
    Listener::bind(&address, Some(tls), elects).await.expect("bound")
}

/// Connects with a certificate, or without one.
pub(super) async fn connect(
    at: SocketAddr,
    authority: &Path,
    client: Option<&Path>,
    protocol: &[u8],
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).expect("a CA")).expect("a CA");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let mut config = match client {
        None => builder.with_no_client_auth(),
        Some(stem) => {
            let certificate =
                CertificateDer::from_pem_file(stem.with_extension("crt")).expect("a certificate");
            let key = PrivateKeyDer::from_pem_file(stem.with_extension("key")).expect("a key");
            builder.with_client_auth_cert(vec![certificate], key).expect("a pair")
        }
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(at).await?;
    let name = at.ip().into();
    within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await
}

pub(super) async fn answer(at: SocketAddr, authority: &Path, client: Option<&Path>) -> String {
    match connect(at, authority, client, b"http/1.1").await {
        Ok(stream) => ask(stream, "/").await,
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_certificate_says_who_asks() {
    let folder = Folder::new();
    let dir = folder.path();
    let clients = [Client::Administrator, Client::Controller, Client::Host("node01".to_owned())];
    let files = pki(dir, &clients);
    let ca = dir.join("ca.crt");
    let server = Server::start(listener(&files, false).await);
    let at = server.at();
    assert_eq!(server.place, Place::Tls(at));
    for (client, who) in [
        ("admin", "Everything"),
        ("controller", "Controller"),
        ("hosts/node01", "Host { name: \"node01\", elects: false }"),
    ] {
        let answer = answer(at, &ca, Some(&dir.join(client))).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with(who), "{client}: {answer}");
    }
    server.end().await;
    let server = Server::start(listener(&files, true).await);
    let answer = answer(server.at(), &ca, Some(&dir.join("hosts/node01"))).await;
    assert!(answer.ends_with("elects: true }"), "{answer}");
    server.end().await;
}

#[tokio::test]
async fn without_a_certificate_of_ours_nobody_gets_an_answer() {
    let (folder, other) = (Folder::new(), Folder::new());
    let files = pki(folder.path(), &[]);
    pki(other.path(), &[Client::Administrator]);
    let server = Server::start(listener(&files, false).await);
    let ca = folder.path().join("ca.crt");
    for client in [None, Some(other.path().join("admin"))] {
        let answer = answer(server.at(), &ca, client.as_deref()).await;
        assert!(!answer.contains("HTTP/"), "{answer}");
    }
    // The server's own certificate is signed by the same CA, but is no client's.
    let answer = answer(server.at(), &ca, Some(&folder.path().join("server"))).await;
    assert!(!answer.contains("HTTP/"), "{answer}");
    // Plain HTTP on the TLS port.
    let answer = ask(TcpStream::connect(server.at()).await.expect("connected"), "/").await;
    assert!(!answer.contains("HTTP/"), "{answer}");
    server.end().await;
}

#[tokio::test]
async fn a_certificate_that_is_nobodys_hears_why() {
    let folder = Folder::new();
    let dir = folder.path();
    let files = pki(dir, &[]);
    let authority = Authority::open(dir).expect("the CA");
    authority.nobody(&dir.join("nobody"), term()).expect("made");
    let server = Server::start(listener(&files, false).await);
    let answer = answer(server.at(), &dir.join("ca.crt"), Some(&dir.join("nobody"))).await;
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden"), "{answer}");
    assert!(answer.contains(r#""reason":"Forbidden""#) && answer.contains("is nobody's here"), "{answer}");
    server.end().await;
}

#[tokio::test]
async fn an_ended_certificate_is_nobodys() {
    let folder = Folder::new();
    let dir = folder.path();
    let files = pki(dir, &[]);
    let authority = Authority::open(dir).expect("the CA");
    let ended = Term { now: term().now - 10 * 24 * 3600, days: 1 };
    authority.client(&Client::Administrator, "https://127.0.0.1", ended, Keep::What).expect("made");
    let server = Server::start(listener(&files, false).await);
    let answer = answer(server.at(), &dir.join("ca.crt"), Some(&dir.join("admin"))).await;
    assert!(!answer.contains("HTTP/"), "{answer}");
    server.end().await;
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_ended() {
    let folder = Folder::new();
    let files = pki(folder.path(), &[]);
    let mut listener = listener(&files, false).await;
    listener.limits.handshake = Duration::from_millis(20);
    let server = Server::start(listener);
    // Nothing, and the beginning of a record that never comes.
    for said in [&b""[..], b"\x16\x03\x01\x02\x00"] {
        let mut stream = TcpStream::connect(server.at()).await.expect("connected");
        stream.write_all(said).await.expect("sent");
        let mut rest = Vec::new();
        let _ = within(stream.read_to_end(&mut rest)).await;
        assert!(rest.is_empty(), "{rest:?}");
    }
    server.end().await;
}

#[tokio::test]
async fn http_2_is_spoken_where_the_client_does() {
    let folder = Folder::new();
    let dir = folder.path();
    let files = pki(dir, &[Client::Administrator]);
    let server = Server::start(listener(&files, false).await);
    let stream = connect(server.at(), &dir.join("ca.crt"), Some(&dir.join("admin")), b"h2").await;
    let mut stream = stream.expect("connected");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    // The preface and empty settings; the answer's first frame is the server's settings.
    within(stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")).await.expect("sent");
    let mut head = [0; 9];
    within(stream.read_exact(&mut head)).await.expect("a frame");
    assert_eq!(head[3], 4, "{head:?}");
    drop(stream);
    server.end().await;
}
