//! The list as a file, and what it refuses.

use std::fs;

use super::*;
use crate::embedded::pki::{Authority, Client, Keep, Term};
use crate::embedded::testing::Folder;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

const NOW: u64 = 1_800_000_000;
const NAME: &str = "system:node:node01";

#[test]
fn a_list_is_written_and_read_back_and_times_never_go_back() {
    let folder = Folder::new();
    let path = folder.path().join(FILE);
    assert_eq!(Revoked::read(&path).expect("there may be none"), None);
    Revoked::add(&path, NAME, NOW).expect("written");
    Revoked::add(&path, "berth:admin", NOW + 5).expect("written");
    let revoked = Revoked::add(&path, NAME, NOW - 5).expect("written");
    assert_eq!(Revoked::read(&path).expect("read").as_ref(), Some(&revoked));
    assert_eq!((revoked.len(), revoked.since(NAME)), (2, Some(1_800_000_000)));
    let text = fs::read_to_string(&path).expect("text");
    assert!(
        text.ends_with("2027-01-15T08:00:05Z berth:admin\n2027-01-15T08:00:00Z system:node:node01\n"),
        "{text}"
    );
}

#[test]
fn half_a_list_is_an_error_that_names_the_line() {
    let folder = Folder::new();
    let path = folder.path().join(FILE);
    for wrong in ["system:node:node01", "yesterday system:node:node01", "2027-01-15T08:00:00Z"] {
        fs::write(&path, format!("# why\n\n{wrong}\n")).expect("written");
        let said = Revoked::read(&path).expect_err(wrong).to_string();
        assert!(said.contains("line 3 is not a time and a name"), "{said}");
    }
}

#[test]
fn what_was_made_before_is_refused_and_what_is_made_after_is_not() {
    let folder = Folder::new();
    let dir = folder.path();
    let (authority, _) = Authority::open_or_make(dir, NOW).expect("a CA");
    let made = |name: &str, now: u64| {
        let client = Client::Host(name.to_owned());
        let term = Term { now, days: 1 };
        authority.client(&client, "https://10.0.0.1", term, Keep::Nothing).expect("made");
        CertificateDer::from_pem_file(dir.join(format!("hosts/{name}.crt"))).expect("a certificate")
    };
    let (first, second, other) = (made("node01", NOW), made("node01", NOW + 10), made("node02", NOW));
    let revoked = authority.revoke(NAME, NOW + 10).expect("revoked");
    // Also the one whose file was replaced.
    assert_eq!(revoked.denies(&first).as_deref(), Some(NAME));
    assert_eq!(revoked.denies(&second).as_deref(), Some(NAME));
    assert_eq!(revoked.denies(&other), None);
    // In the very same second.
    assert_eq!(revoked.denies(&made("node01", NOW + 10)), None);
}
