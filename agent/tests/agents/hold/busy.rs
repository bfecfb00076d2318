//! An API server that has little time for us: by its own priority and fairness, which sends away what is too much.

use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

use crate::cluster::{AGENT, CONTROLLER, Cluster, NAMESPACE};

/// What it is called, level and schema.
const NAME: &str = "berth-busy";

pub(crate) struct Busy {
    client: Client,
}

impl Busy {
    /// Agents and controller have a share of their own, of one request at a time.
    pub(crate) async fn begin(real: &Cluster) -> Self {
        let client = real.client();
        let limited = json!({
            "nominalConcurrencyShares": 1, "lendablePercent": 0, "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        });
        let level = json!({"metadata": {"name": NAME}, "spec": {"type": "Limited", "limited": limited}});
        let level: PriorityLevelConfiguration = serde_json::from_value(level).expect("a level");
        Api::all(client.clone()).create(&PostParams::default(), &level).await.expect("it is taken");
        let account = |name: &str| json!({"kind": "ServiceAccount", "serviceAccount": {"name": name, "namespace": NAMESPACE}});
        let rules = json!([{
            "subjects": [account(AGENT), account(CONTROLLER)],
            "resourceRules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "namespaces": ["*"], "clusterScope": true}],
        }]);
        let spec =
            json!({"matchingPrecedence": 2, "priorityLevelConfiguration": {"name": NAME}, "rules": rules});
        let schema: FlowSchema =
            serde_json::from_value(json!({"metadata": {"name": NAME}, "spec": spec})).expect("a schema");
        Api::all(client.clone()).create(&PostParams::default(), &schema).await.expect("it is taken");
        Self { client }
    }

    /// How many requests were sent away so far, by its own word.
    pub(crate) async fn sent_away(&self) -> usize {
        let asked = hyper::Request::get("/metrics").body(Vec::new()).expect("a request");
        let text = self.client.request_text(asked).await.expect("its metrics");
        let is_it = |line: &&str| {
            line.starts_with("apiserver_flowcontrol_rejected_requests_total{") && line.contains(NAME)
        };
        let counts =
            text.lines().filter(is_it).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        counts.sum::<f64>() as usize
    }

    pub(crate) async fn end(self) {
        over(&self.client).await;
    }
}

/// It has time again, if it had none.
pub(crate) async fn over(client: &Client) {
    let gone = |gone: Result<_, kube::Error>| match gone {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        gone => gone.expect("it goes"),
    };
    let params = DeleteParams::default();
    gone(Api::<FlowSchema>::all(client.clone()).delete(NAME, &params).await.map(drop));
    gone(Api::<PriorityLevelConfiguration>::all(client.clone()).delete(NAME, &params).await.map(drop));
}
