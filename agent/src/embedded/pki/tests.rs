//! Certificates are made, read back by who trusts them, and never replaced by accident.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::embedded::caller::Caller;
use crate::embedded::testing::Folder;

const NOW: u64 = 1_800_000_000;
const TERM: Term = Term { now: NOW, days: DAYS };
const URL: &str = "https://10.0.0.1:6443";

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("its metadata").permissions().mode() & 0o777
}

fn caller(path: &Path) -> Caller {
    let der = CertificateDer::from_pem_file(path).expect("a certificate");
    Caller::from_certificate(&der, false).expect("somebody")
}

#[test]
fn each_certificate_is_whom_it_is_for() {
    let folder = Folder::new();
    let dir = folder.path().join("pki");
    let (authority, made) = Authority::open_or_make(&dir, NOW).expect("a CA");
    assert_eq!(made.expect("made").files, [dir.join("ca.key"), dir.join("ca.crt")]);
    for client in [Client::Administrator, Client::Controller, Client::Host("node01".to_owned())] {
        authority.client(&client, URL, TERM, Keep::What).expect("made");
    }
    assert_eq!(caller(&dir.join("admin.crt")), Caller::Everything);
    assert_eq!(caller(&dir.join("controller.crt")), Caller::Controller);
    let host = Caller::Host { name: "node01".to_owned(), elects: false };
    assert_eq!(caller(&dir.join("hosts/node01.crt")), host);
    for key in ["ca.key", "admin.key", "admin.kubeconfig", "hosts/node01.key", "hosts/node01.kubeconfig"] {
        assert_eq!(mode(&dir.join(key)), 0o600, "{key}");
    }
    assert_eq!(mode(&dir.join("hosts/node01.crt")), 0o644);
    assert_eq!(mode(&dir), 0o700);
}

#[test]
fn a_kubeconfig_has_all_that_a_host_needs() {
    let folder = Folder::new();
    let dir = folder.path();
    let (authority, _) = Authority::open_or_make(dir, NOW).expect("a CA");
    authority.client(&Client::Administrator, URL, TERM, Keep::What).expect("made");
    assert_eq!(authority.server_url().expect("a URL"), URL);
    authority.client(&Client::Host("node01".to_owned()), URL, TERM, Keep::What).expect("made");
    let config = kubeconfig::read(&read(&dir.join("hosts/node01.kubeconfig")).expect("text")).expect("read");
    let text = |name: &str| read(&dir.join(name)).expect(name);
    assert_eq!(config.server, URL);
    assert_eq!(config.user, "system:node:node01");
    assert_eq!(config.authority, Some(text("ca.crt")));
    assert_eq!(config.client, Some((text("hosts/node01.crt"), text("hosts/node01.key"))));
}

#[test]
fn nothing_is_replaced_unless_it_is_asked_for_and_the_ca_never() {
    let folder = Folder::new();
    let dir = folder.path();
    let (authority, _) = Authority::open_or_make(dir, NOW).expect("a CA");
    let host = Client::Host("node01".to_owned());
    authority.client(&host, URL, TERM, Keep::What).expect("made");
    let before = read(&dir.join("hosts/node01.key")).expect("a key");
    let refused = authority.client(&host, URL, TERM, Keep::What).map(|_| ()).expect_err("refused");
    assert!(
        refused.to_string().ends_with("hosts/node01.key: is there already; --force replaces it"),
        "{refused}"
    );
    assert_eq!(read(&dir.join("hosts/node01.key")).expect("a key"), before);
    authority.client(&host, URL, TERM, Keep::Nothing).expect("made anew");
    assert_ne!(read(&dir.join("hosts/node01.key")).expect("a key"), before);
    let ca = read(&dir.join("ca.crt")).expect("a CA");
    let (_, made) = Authority::open_or_make(dir, NOW).expect("the CA");
    assert_eq!((made, read(&dir.join("ca.crt")).expect("a CA")), (None, ca));
}

#[test]
fn without_a_ca_there_is_nothing_to_sign_with() {
    let folder = Folder::new();
    let refused = Authority::open(folder.path()).map(|_| ()).expect_err("refused");
    assert!(refused.to_string().ends_with("make one with 'berth serve pki init'"), "{refused}");
    // A CA's certificate without its key is a copy from elsewhere: it stays.
    fs::write(folder.path().join("ca.crt"), "theirs").expect("written");
    let refused = Authority::open_or_make(folder.path(), NOW).map(|_| ()).expect_err("refused");
    assert!(refused.to_string().contains("ca.crt: is there already"), "{refused}");
    assert!(!folder.path().join("ca.key").exists());
}

#[test]
fn a_name_that_no_node_can_have_gets_no_certificate() {
    let folder = Folder::new();
    let (authority, _) = Authority::open_or_make(folder.path(), NOW).expect("a CA");
    for name in ["", "Node01", "a/b", "../ca", "a..b", "-a", "nöde", &"a".repeat(254)] {
        let refused = authority.client(&Client::Host(name.to_owned()), URL, TERM, Keep::What);
        assert!(matches!(refused, Err(PkiError::HostName { .. })), "{name:?}");
    }
}

#[test]
fn certificates_are_good_from_an_hour_ago_until_their_end() {
    let folder = Folder::new();
    let dir = folder.path();
    let (authority, _) = Authority::open_or_make(dir, NOW).expect("a CA");
    let names = ["10.0.0.1", "API.example.org"].map(|name| ServerName::parse(name).expect("a name"));
    let made = authority.server(&names, TERM, Keep::What).expect("made");
    assert_eq!(made.ends, NOW + 365 * 24 * 3600);
    let der = CertificateDer::from_pem_file(dir.join("server.crt")).expect("a certificate");
    let (_, certificate) = X509Certificate::from_der(&der).expect("a certificate");
    let validity = certificate.validity();
    assert_eq!(validity.not_before.timestamp(), i64::try_from(NOW - 3600).expect("a time"));
    assert_eq!(validity.not_after.timestamp(), i64::try_from(made.ends).expect("a time"));
    let names = certificate.subject_alternative_name().expect("names").expect("names");
    assert_eq!(names.value.general_names.len(), 2);
}

#[test]
fn nothing_is_good_for_longer_than_the_ca() {
    let folder = Folder::new();
    let (authority, made) = Authority::open_or_make(folder.path(), NOW).expect("a CA");
    let end = made.expect("made").ends;
    let late = Term { now: end - 24 * 3600, days: DAYS };
    let host = Client::Host("node01".to_owned());
    assert_eq!(authority.client(&host, URL, late, Keep::What).expect("made").ends, end);
    // Also when the CA is read again.
    let authority = Authority::open(folder.path()).expect("the CA");
    assert_eq!(authority.client(&host, URL, late, Keep::Nothing).expect("made").ends, end);
}
