//! The embedded API as `berth serve` has it for other hosts: on disk, over TLS on loopback, with client certificates.
//!
//! For measuring it beside a real kube-apiserver, like with like; what it answers is asked without TLS by the suite. Makes
//! its certificates itself, since those of `berth serve pki` are the program's own affair.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use agent::embedded::Api;
use agent::embedded::listen::{Address, Listener, Place};
use agent::embedded::tls::{Tls, TlsFiles};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use serde_json::json;

/// Serves an API until the process ends; the way to it, as its administrator. Certificates are left in `dir`.
pub async fn serve(api: Api, dir: &Path) -> Client {
    let files = certificates(dir).expect("certificates");
    let tls = Tls::load(&files).expect("TLS");
    let address: Address = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(&address, Some(&tls), false).await.expect("a listener");
    let Place::Tls(at) = listener.place() else { panic!("{}", listener.place()) };
    let (stop, stopped) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        let _stop = stop;
        listener.serve(api, stopped, Duration::ZERO).await;
    });
    client(at, dir).await
}

async fn client(at: SocketAddr, dir: &Path) -> Client {
    let path = |name: &str| dir.join(name);
    let config: Kubeconfig = serde_json::from_value(json!({
        "clusters": [{"name": "berth", "cluster": {
            "server": format!("https://{at}"), "certificate-authority": path("ca.crt")}}],
        "users": [{"name": "admin", "user": {
            "client-certificate": path("admin.crt"), "client-key": path("admin.key")}}],
        "contexts": [{"name": "berth", "context": {"cluster": "berth", "user": "admin"}}],
        "current-context": "berth",
    }))
    .expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a config");
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

/// A CA, the server's certificate, and an administrator's.
fn certificates(dir: &Path) -> Result<TlsFiles, Box<dyn std::error::Error>> {
    fs::create_dir_all(dir)?;
    let mut params = named("berth-ca", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    fs::write(dir.join("ca.crt"), authority.pem())?;
    let mut server = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut admin = named("admin", Some("system:masters"));
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    for (name, params) in [("server", server), ("admin", admin)] {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;
        fs::write(dir.join(format!("{name}.crt")), certificate.pem())?;
        fs::write(dir.join(format!("{name}.key")), key.serialize_pem())?;
    }
    let at = |name: &str| dir.join(name);
    Ok(TlsFiles {
        certificate: at("server.crt"),
        key: at("server.key"),
        client_authority: at("ca.crt"),
        revoked: at("revoked"),
    })
}

fn named(name: &str, organisation: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(organisation) = organisation {
        params.distinguished_name.push(DnType::OrganizationName, organisation);
    }
    params
}
