//! What a certificate's subject says, and what it doesn't.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use super::*;

fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, name) in names {
        params.distinguished_name.push(kind.clone(), *name);
    }
    params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate").der().to_vec()
}

fn of(names: &[(DnType, &str)]) -> Result<Caller, String> {
    Caller::from_certificate(&certificate(names), false).map_err(|error| error.to_string())
}

#[test]
fn subjects_are_kubernetes_own() {
    use DnType::{CommonName as CN, OrganizationName as O};
    assert_eq!(of(&[(O, "system:masters"), (CN, "anybody")]), Ok(Caller::Everything));
    assert_eq!(of(&[(O, "berth:controllers")]), Ok(Caller::Controller));
    let host = Caller::Host { name: "node01.example.org".to_owned(), elects: false };
    assert_eq!(of(&[(O, "system:nodes"), (CN, "system:node:node01.example.org")]), Ok(host));
    let elects = certificate(&[(O, "system:nodes"), (CN, "system:node:a")]);
    let host = Caller::Host { name: "a".to_owned(), elects: true };
    assert_eq!(Caller::from_certificate(&elects, true), Ok(host));
}

#[test]
fn a_subject_that_is_nobodys_is_refused() {
    use DnType::{CommonName as CN, OrganizationName as O};
    let nobody: [&[(DnType, &str)]; 6] = [
        &[],
        &[(CN, "system:masters")],
        &[(O, "system:nodes")],
        &[(CN, "system:node:node01")],
        &[(O, "system:nodes"), (CN, "node01")],
        &[(O, "System:Masters"), (CN, "admin")],
    ];
    for names in nobody {
        let error = of(names).expect_err("nobody");
        assert!(error.contains("is nobody's here"), "{error}");
        assert!(error.ends_with("make one with 'berth serve pki host NAME'"), "{error}");
    }
    for name in ["", "Node01", "a/b", "a..b"] {
        let error = of(&[(O, "system:nodes"), (CN, &format!("system:node:{name}"))]).expect_err("no host");
        assert!(error.contains("can be no Node's name"), "{name:?}: {error}");
    }
    assert_eq!(Caller::from_certificate(b"not DER", false), Err(CallerError::Unreadable));
}
