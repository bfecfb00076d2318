//! Certificates: one authority, and under it everybody who speaks to the API server or is spoken to by it.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use serde_json::json;

/// Where the API server is.
pub(crate) const SERVER: &str = "https://10.99.0.1:443";

/// The authority, and the folder with all it made.
pub(crate) struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one, with what a control plane needs: the API server's certificates, those of its components, the
    /// administrator's, and a key for the tokens of service accounts.
    pub(crate) fn make(folder: PathBuf) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name = subject("test-ca", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).expect("a certificate");
        write(&folder.join("ca.crt"), &certificate.pem());
        let authority = Authority { folder, issuer: Issuer::new(params, key) };
        let names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1", "10.99.0.1"];
        authority.server("apiserver", "kube-apiserver", &names);
        authority.client("apiserver-kubelet", "apiserver-kubelet-client", Some("system:masters"));
        authority.user("admin", "admin", Some("system:masters"));
        authority.user("controller-manager", "system:kube-controller-manager", None);
        authority.user("scheduler", "system:kube-scheduler", None);
        let accounts = KeyPair::generate().expect("a key");
        write(&authority.path("accounts.key"), &accounts.serialize_pem());
        write(&authority.path("accounts.pub"), &accounts.public_key_pem());
        authority
    }

    /// What a kubelet needs: to be let in as its node, and to be believed to be it.
    pub(crate) fn node(&self, name: &str, address: &str) {
        self.user(&format!("node-{name}"), &format!("system:node:{name}"), Some("system:nodes"));
        self.server(&format!("kubelet-{name}"), name, &[name, address]);
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    fn server(&self, file: &str, name: &str, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let params = CertificateParams::new(names).expect("names");
        self.issue(file, params, subject(name, None), ExtendedKeyUsagePurpose::ServerAuth);
    }

    fn client(&self, file: &str, name: &str, group: Option<&str>) {
        let usage = ExtendedKeyUsagePurpose::ClientAuth;
        self.issue(file, CertificateParams::default(), subject(name, group), usage);
    }

    /// A client with a kubeconfig.
    fn user(&self, file: &str, name: &str, group: Option<&str>) {
        self.client(file, name, group);
        let path = |ending: &str| self.path(&format!("{file}.{ending}"));
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": SERVER, "certificate-authority": self.path("ca.crt")}}],
            "users": [{"name": name, "user": {"client-certificate": path("crt"), "client-key": path("key")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
        });
        write(&path("kubeconfig"), &kubeconfig.to_string());
    }

    fn issue(
        &self,
        file: &str,
        mut params: CertificateParams,
        subject: DistinguishedName,
        usage: ExtendedKeyUsagePurpose,
    ) {
        params.distinguished_name = subject;
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        write(&self.path(&format!("{file}.crt")), &certificate.pem());
        write(&self.path(&format!("{file}.key")), &key.serialize_pem());
    }
}

fn subject(name: &str, group: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject.push(DnType::CommonName, name);
    subject
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
}
