//! A kubeconfig: one server, one user, everything inside the one file, so that it can be carried to a host.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use thiserror::Error;

use crate::yaml::{self, ParseError, PrintError};

/// What is wrong with a kubeconfig.
#[derive(Debug, Error)]
pub(crate) enum KubeconfigError {
    #[error("is not YAML")]
    Parse(#[from] ParseError),
    #[error("can't be written")]
    Print(#[from] PrintError),
    #[error("{path}: is missing")]
    Missing { path: &'static str },
    #[error("{path}: is not PEM in base64")]
    Encoding { path: &'static str },
}

/// What a client needs to know; certificates and keys in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kubeconfig {
    pub(crate) server: String,
    pub(crate) user: String,
    /// Whom to trust as the server; without it only plain HTTP.
    pub(crate) authority: Option<String>,
    /// The client's certificate and key.
    pub(crate) client: Option<(String, String)>,
}

/// What our cluster and its context are called.
const NAME: &str = "berth";
const AUTHORITY: &str = "certificate-authority-data";
const CERTIFICATE: &str = "client-certificate-data";
const KEY: &str = "client-key-data";

impl Kubeconfig {
    pub(crate) fn text(&self) -> Result<String, KubeconfigError> {
        let mut cluster = json!({"server": self.server});
        if let Some(authority) = &self.authority {
            cluster[AUTHORITY] = STANDARD.encode(authority).into();
        }
        let mut user = json!({});
        if let Some((certificate, key)) = &self.client {
            user[CERTIFICATE] = STANDARD.encode(certificate).into();
            user[KEY] = STANDARD.encode(key).into();
        }
        Ok(yaml::print(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": cluster}],
            "users": [{"name": self.user, "user": user}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": self.user}}],
            "current-context": NAME,
        }))?)
    }
}

/// Reads one of ours: its only cluster and user.
pub(crate) fn read(text: &str) -> Result<Kubeconfig, KubeconfigError> {
    let value = yaml::parse(text)?.into_iter().next().unwrap_or_default();
    let cluster = &value["clusters"][0]["cluster"];
    let server = cluster["server"].as_str();
    let user = &value["users"][0];
    let name = user["name"].as_str();
    let certificate = pem(&user["user"], "users[0].user.client-certificate-data", CERTIFICATE)?;
    let key = pem(&user["user"], "users[0].user.client-key-data", KEY)?;
    Ok(Kubeconfig {
        server: server.ok_or(KubeconfigError::Missing { path: "clusters[0].cluster.server" })?.to_owned(),
        user: name.ok_or(KubeconfigError::Missing { path: "users[0].name" })?.to_owned(),
        authority: pem(cluster, "clusters[0].cluster.certificate-authority-data", AUTHORITY)?,
        client: certificate.zip(key),
    })
}

/// Whether a kubeconfig has nothing that [`Kubeconfig::text`] wouldn't write anew: at most our cluster, its context, its user.
pub(crate) fn is_ours(text: &str) -> Result<bool, KubeconfigError> {
    let value = yaml::parse(text)?.into_iter().next().unwrap_or_default();
    let only = |list: &str, name: Option<&str>| match value[list].as_array().map(Vec::as_slice) {
        None | Some([]) => true,
        Some([one]) => name.is_none_or(|name| one["name"] == name),
        Some(_) => false,
    };
    // Whatever else is a map is somebody's, and not one of ours.
    let known = value.is_null() || value["kind"] == "Config";
    Ok(known && only("clusters", Some(NAME)) && only("contexts", Some(NAME)) && only("users", None))
}

fn pem(of: &Value, path: &'static str, field: &str) -> Result<Option<String>, KubeconfigError> {
    let Some(text) = of[field].as_str() else { return Ok(None) };
    let bytes = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    bytes.map(Some).ok_or(KubeconfigError::Encoding { path })
}
