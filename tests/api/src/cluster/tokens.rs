//! Tokens as pods have them: bound to a Pod, and by it to a Node.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{Api, PostParams};
use rcgen::{KeyPair, SigningKey};
use serde_json::{Value, json};

use super::{CONTROLLER, Cluster, NAMESPACE};

/// A pod of this service account, on this Node or on none that matters.
struct Place {
    account: String,
    pod: Value,
    node: Option<Value>,
}

impl Cluster {
    /// As a kubelet puts it into a new pod of the DaemonSet. The Node is there.
    pub async fn agent_token(&self, account: &str, node: &str) -> String {
        let place = self.place(account, Some(node)).await;
        self.ask_token(&place).await
    }

    pub async fn controller_token(&self) -> String {
        let place = self.place(CONTROLLER, None).await;
        self.ask_token(&place).await
    }

    /// The same, of an agent or the controller, but for when it ends: no API server gives one for less than ten minutes.
    pub async fn short_token(&self, account: &str, node: Option<&str>, lasts: Duration) -> String {
        let place = self.place(account, node).await;
        let api: Api<ServiceAccount> = Api::namespaced(self.client(), NAMESPACE);
        let uid = api.get(&place.account).await.expect("the account").metadata.uid;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let (from, to) = (now - 2 * LEEWAY, now + lasts - LEEWAY);
        let claims = json!({
            "iss": ISSUER, "aud": [ISSUER], "sub": format!("system:serviceaccount:{NAMESPACE}:{account}"),
            "iat": from.as_secs(), "nbf": from.as_secs(), "exp": to.as_secs(),
            "kubernetes.io": {"namespace": NAMESPACE, "pod": place.pod, "node": place.node,
                "serviceaccount": {"name": account, "uid": uid}},
        });
        let key = std::fs::read_to_string(self.plane.signing_key()).expect("a key");
        signed(&KeyPair::from_pem(&key).expect("a key"), &claims)
    }

    async fn place(&self, account: &str, node: Option<&str>) -> Place {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{account}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let node = match node {
            None => None,
            Some(node) => Some(json!({"name": node, "uid": self.node(node).await})),
        };
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": name}, "spec": {
            "serviceAccountName": account, "nodeName": node.as_ref().map(|node| &node["name"]),
            "containers": [{"name": "berth", "image": "berth"}],
        }}))
        .expect("a pod");
        let pods: Api<Pod> = Api::namespaced(self.client(), NAMESPACE);
        let made = pods.create(&PostParams::default(), &pod).await.expect("it is taken");
        Place { account: account.to_owned(), pod: json!({"name": name, "uid": made.metadata.uid}), node }
    }

    async fn ask_token(&self, place: &Place) -> String {
        let api: Api<ServiceAccount> = Api::namespaced(self.client(), NAMESPACE);
        let bound =
            json!({"apiVersion": "v1", "kind": "Pod", "name": place.pod["name"], "uid": place.pod["uid"]});
        let request: TokenRequest =
            serde_json::from_value(json!({"spec": {"audiences": [], "boundObjectRef": bound}}))
                .expect("a request");
        let answer = api.create_token_request(&place.account, &PostParams::default(), &request).await;
        answer.expect("an answer").status.and_then(|status| status.token).expect("a token")
    }
}

/// For so long after its end an API server still takes a token, since clocks differ.
const LEEWAY: Duration = Duration::from_secs(60);

/// As the control plane's API server has it.
const ISSUER: &str = "https://kubernetes.default.svc";

/// A token (RFC 7519), signed with ES256.
fn signed(key: &KeyPair, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&json!({"alg": "ES256", "typ": "JWT"})), part(claims));
    let signature = key.sign(text.as_bytes()).expect("a signature");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(plain(&signature)))
}

/// Two numbers of 32 bytes each, of the DER that they come in: `30 len 02 len r… 02 len s…`.
fn plain(der: &[u8]) -> Vec<u8> {
    let mut numbers = Vec::new();
    let mut rest = &der[2..];
    while let [2, length, after @ ..] = rest {
        let (number, next) = after.split_at(usize::from(*length));
        // A leading zero says that it is not negative; short ones have lost theirs.
        let number = &number[number.len().saturating_sub(32)..];
        numbers.extend(std::iter::repeat_n(0, 32 - number.len()));
        numbers.extend(number);
        rest = next;
    }
    numbers
}
