//! What is wrong with a file is said with the option that named it. What a client meets is tested in `listen`.

use std::fs;

use super::*;
use crate::embedded::pki::{Authority, Keep, ServerName, Term};
use crate::embedded::testing::Folder;

fn files(folder: &Folder) -> TlsFiles {
    let (authority, _) = Authority::open_or_make(folder.path(), 1_800_000_000).expect("a CA");
    let names = ["10.0.0.1", "::1", "api.example.org"].map(|name| ServerName::parse(name).expect("a name"));
    let term = Term { now: 1_800_000_000, days: 365 };
    authority.server(&names, term, Keep::What).expect("a certificate");
    let at = |name: &str| folder.path().join(name);
    TlsFiles {
        certificate: at("server.crt"),
        key: at("server.key"),
        client_authority: at("ca.crt"),
        revoked: at("revoked"),
    }
}

fn refused(files: &TlsFiles) -> String {
    Tls::load(files).map(|_| ()).expect_err("refused").to_string()
}

#[test]
fn a_certificate_says_its_end_and_its_names() {
    let folder = Folder::new();
    let tls = Tls::load(&files(&folder)).expect("TLS");
    let tls = tls.loaded();
    let about = &tls.certificates[0];
    assert_eq!((about.option, about.ends), ("--tls-cert", 1_800_000_000 + 365 * 24 * 3600));
    assert_eq!(about.names, ["10.0.0.1", "[::1]", "api.example.org"]);
    assert_eq!(tls.certificates[1].option, "--client-ca");
}

#[test]
fn errors_name_the_option_and_the_file() {
    let folder = Folder::new();
    let good = files(&folder);
    let junk = folder.path().join("junk");
    fs::write(&junk, "not PEM").expect("written");
    let missing = folder.path().join("missing");
    let of = |change: &dyn Fn(&mut TlsFiles)| {
        let mut files = good.clone();
        change(&mut files);
        refused(&files)
    };
    let said = of(&|files| files.certificate = junk.clone());
    assert_eq!(said, format!("--tls-cert {}: there is no certificate in it", junk.display()));
    let said = of(&|files| files.client_authority = missing.clone());
    assert_eq!(said, format!("--client-ca {}: is not a certificate in PEM", missing.display()));
    let said = of(&|files| files.key = junk.clone());
    assert_eq!(said, format!("--tls-key {}: is not a private key in PEM", junk.display()));
    let said = of(&|files| files.key = folder.path().join("ca.key"));
    assert!(said.starts_with("--tls-key ") && said.contains("is not the key of --tls-cert"), "{said}");
}

#[test]
fn a_list_that_vanishes_stays_in_force() {
    let folder = Folder::new();
    let files = files(&folder);
    let tls = Tls::load(&files).expect("TLS");
    // None is none, until there was one.
    tls.reload().expect("read again");
    Revoked::add(&files.revoked, "system:node:node01", 1_800_000_000).expect("written");
    tls.refresh().expect("read again");
    fs::remove_file(&files.revoked).expect("removed");
    for read in [tls.refresh(), tls.reload()] {
        let said = read.expect_err("told").to_string();
        assert!(said.contains("was there and isn't any more"), "{said}");
        assert_eq!(tls.loaded().revoked.since("system:node:node01"), Some(1_800_000_000));
    }
    fs::write(&files.revoked, "").expect("written");
    tls.refresh().expect("read again");
    assert!(tls.loaded().revoked.is_empty());
}
