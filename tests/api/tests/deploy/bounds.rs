//! What the pods may do, and what the overlays change.

use serde_json::{Value, json};

use crate::rendered::{Objects, differences, kustomized, the};

fn pod<'a>(objects: &'a Objects, kind: &str, name: &str) -> &'a Value {
    &the(objects, kind, name)["spec"]["template"]["spec"]
}

fn env<'a>(container: &'a Value, name: &str) -> &'a Value {
    let all = container["env"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|one| one["name"] == name).unwrap_or(&Value::Null)
}

/// Two capabilities and no more, on the host's network, first of all and everywhere.
#[test]
fn the_agent_has_what_it_needs_and_no_more() {
    let base = kustomized("deploy/base");
    let set = &the(&base, "DaemonSet", "berth-agent")["spec"];
    assert_eq!(
        set["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}})
    );
    assert_eq!(set["minReadySeconds"], 5);
    let pod = pod(&base, "DaemonSet", "berth-agent");
    assert_eq!(pod["hostNetwork"], true);
    assert_eq!((&pod["hostPID"], &pod["hostIPC"]), (&Value::Null, &Value::Null));
    assert_eq!(pod["priorityClassName"], "system-node-critical");
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(pod["securityContext"], json!({"seccompProfile": {"type": "RuntimeDefault"}}));
    assert_eq!(pod["containers"].as_array().map(Vec::len), Some(1));
    let agent = &pod["containers"][0];
    let allowed = &agent["securityContext"];
    assert_eq!(allowed["capabilities"], json!({"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]}));
    assert_eq!(
        (&allowed["privileged"], &allowed["allowPrivilegeEscalation"]),
        (&json!(false), &json!(false))
    );
    // Another user has no capability in effect.
    assert_eq!((&allowed["readOnlyRootFilesystem"], &allowed["runAsUser"]), (&json!(true), &json!(0)));
    // The host's resolver: a cluster's is reached by what agents configure.
    assert_eq!(pod["dnsPolicy"], "Default");
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        let asked = &agent[probe]["httpGet"];
        assert_eq!((&asked["host"], &asked["path"]), (&json!("127.0.0.1"), &json!(path)), "{probe}");
    }
    assert_eq!(env(agent, "BERTH_HEALTH_ADDRESS")["value"], "127.0.0.1:9465");
    assert_eq!(env(agent, "NODE_NAME")["valueFrom"]["fieldRef"]["fieldPath"], "spec.nodeName");
    // As measured (docs/performance.md); no limit of CPU, which would make an agent late when it matters.
    let requests = json!({"cpu": "10m", "memory": "32Mi"});
    assert_eq!(agent["resources"], json!({"requests": requests, "limits": {"memory": "128Mi"}}));
}

/// The host's directories that are mounted, and where.
#[test]
fn the_agent_has_these_directories_of_its_host() {
    let base = kustomized("deploy/base");
    let pod = pod(&base, "DaemonSet", "berth-agent");
    let volumes = pod["volumes"].as_array().expect("volumes");
    let place = |name: &Value| {
        volumes.iter().find(|volume| volume["name"] == *name).expect("a volume")["hostPath"]["path"].clone()
    };
    let mounts = pod["containers"][0]["volumeMounts"].as_array().expect("mounts");
    let mounted: Vec<(Value, Value)> =
        mounts.iter().map(|mount| (place(&mount["name"]), mount["mountPath"].clone())).collect();
    let wanted = [
        ("/var/lib/berth", "/var/lib/berth"),
        ("/run/berth", "/run/berth"),
        ("/etc", "/host/etc"),
        ("/proc/sys/net", "/host/proc/sys/net"),
        ("/var/k8s_nmstate", "/var/k8s_nmstate"),
    ];
    assert_eq!(mounted, wanted.map(|(host, here)| (json!(host), json!(here))));
    assert_eq!(volumes.len(), wanted.len());
    assert_eq!(env(&pod["containers"][0], "BERTH_HOST_ROOT")["value"], "/host");
}

/// What tools find a node's agent by.
#[test]
fn agents_have_the_label_of_kubernetes_nmstates_handlers() {
    let base = kustomized("deploy/base");
    let labels = &the(&base, "DaemonSet", "berth-agent")["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["component"], "kubernetes-nmstate-handler");
}

#[test]
fn the_controller_has_no_right_on_its_host() {
    let base = kustomized("deploy/base");
    let deployment = &the(&base, "Deployment", "berth-controller")["spec"];
    assert_eq!(deployment["replicas"], 2);
    let pod = pod(&base, "Deployment", "berth-controller");
    assert_eq!(pod["hostNetwork"], Value::Null);
    let pools = json!([{"name": "pools", "configMap": {"name": "berth-pools", "optional": true}}]);
    assert_eq!(pod["volumes"], pools);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let allowed = &pod["containers"][0]["securityContext"];
    assert_eq!(allowed["capabilities"], json!({"drop": ["ALL"]}));
    assert_eq!(allowed["readOnlyRootFilesystem"], true);
}

/// Nothing in common that would have to be changed in two places: both run what `images:` of kustomize replaces.
#[test]
fn all_run_one_image() {
    let base = kustomized("deploy/base");
    for (kind, name) in [("DaemonSet", "berth-agent"), ("Deployment", "berth-controller")] {
        let container = &pod(&base, kind, name)["containers"][0];
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(container["image"], format!("localhost/berth:{version}"), "{kind}");
        assert_eq!(container["imagePullPolicy"], "IfNotPresent", "{kind}");
    }
}

/// A cluster that limits critical pods has them where a quota speaks of their class: it must speak of every class that is used.
#[test]
fn critical_pods_have_a_quota_that_speaks_of_them() {
    let base = kustomized("deploy/base");
    let quota = the(&base, "ResourceQuota", "berth-critical");
    assert_eq!(quota["metadata"]["namespace"], "berth-system");
    let used = [("DaemonSet", "berth-agent"), ("Deployment", "berth-controller")]
        .map(|(kind, name)| &pod(&base, kind, name)["priorityClassName"]);
    let of = json!([{"scopeName": "PriorityClass", "operator": "In", "values": used}]);
    assert_eq!(quota["spec"], json!({"hard": {"pods": "1G"}, "scopeSelector": {"matchExpressions": of}}));
}

/// The init container is of the agent's image, in two of its directories, with none of its capabilities.
#[test]
fn the_boot_unit_is_installed_with_no_right_that_the_agent_has_not() {
    let (base, overlay) = (kustomized("deploy/base"), kustomized("deploy/overlays/boot"));
    assert_eq!(differences(&base, &overlay), ["~ DaemonSet berth-system/berth-agent"]);
    let mut pod_with = pod(&overlay, "DaemonSet", "berth-agent").clone();
    let added = pod_with["initContainers"].take();
    pod_with.as_object_mut().expect("a pod").remove("initContainers");
    assert_eq!(&pod_with, pod(&base, "DaemonSet", "berth-agent"));
    let (boot, agent) = (&added[0], &pod_with["containers"][0]);
    assert_eq!(added.as_array().map(Vec::len), Some(1));
    for same in ["image", "imagePullPolicy", "resources"] {
        assert_eq!(boot[same], agent[same], "{same}");
    }
    let mut allowed = agent["securityContext"].clone();
    allowed["capabilities"] = json!({"drop": ["ALL"]});
    assert_eq!(boot["securityContext"], allowed);
    let of_agent = agent["volumeMounts"].as_array().expect("mounts");
    let mounts = boot["volumeMounts"].as_array().expect("mounts");
    assert_eq!(mounts.iter().map(|mount| &mount["name"]).collect::<Vec<_>>(), ["state", "etc"]);
    assert!(mounts.iter().all(|mount| of_agent.contains(mount)), "{mounts:?}");
}

/// Agents elect one of themselves: they have a controller's rights and bounds, and not those of an agent.
#[test]
fn without_a_controller_agents_are_one() {
    let (base, overlay) = (kustomized("deploy/base"), kustomized("deploy/overlays/no-controller"));
    let left: Vec<String> = differences(&base, &overlay);
    let of = |sign: &str, kind: &str| -> Vec<&str> {
        let start = format!("{sign} {kind} ");
        left.iter().filter_map(|line| line.strip_prefix(&start)).collect()
    };
    assert!(!left.iter().any(|line| line.starts_with('+')), "{left:?}");
    let policies: Vec<&String> = base
        .keys()
        .filter_map(|(kind, _, name)| {
            (kind == "ValidatingAdmissionPolicy" && name.starts_with("berth-agent")).then_some(name)
        })
        .collect();
    let removed: Vec<String> = policies.iter().map(|name| format!("/{name}")).collect();
    assert_eq!(of("-", "ValidatingAdmissionPolicy"), removed);
    assert_eq!(of("-", "ValidatingAdmissionPolicyBinding"), removed);
    for kind in ["Deployment", "PodDisruptionBudget", "NetworkPolicy", "ServiceAccount"] {
        assert_eq!(of("-", kind), ["berth-system/berth-controller"], "{kind}");
    }
    let agent = &pod(&overlay, "DaemonSet", "berth-agent")["containers"][0];
    assert_eq!(env(agent, "BERTH_WITH_CONTROLLER")["value"], "true");
    for ((kind, namespace, name), object) in &overlay {
        if kind.ends_with("RoleBinding") && name == "berth-controller" {
            let account =
                json!([{"kind": "ServiceAccount", "name": "berth-agent", "namespace": "berth-system"}]);
            assert_eq!(object["subjects"], account, "{kind} {namespace}");
        }
    }
    let bounds = &the(&overlay, "ValidatingAdmissionPolicy", "berth-controller")["spec"]["matchConditions"];
    let whom = "request.userInfo.username == 'system:serviceaccount:berth-system:berth-agent'";
    assert_eq!(*bounds, json!([{"name": "controller", "expression": whom}]));
    let text = serde_json::to_string(&overlay.values().collect::<Vec<_>>()).expect("JSON");
    let account = "system:serviceaccount:berth-system:berth-controller";
    assert!(!text.contains(account), "nobody is {account}");
}

#[test]
fn beside_kubernetes_nmstate_only_what_would_be_twice_is_left_out() {
    let base = kustomized("deploy/base");
    let overlay = kustomized("deploy/overlays/beside-kubernetes-nmstate");
    let mut wanted = vec!["~ DaemonSet berth-system/berth-agent".to_owned()];
    wanted.push("~ Deployment berth-system/berth-controller".to_owned());
    for kind in ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"] {
        wanted.extend(["create", "update"].map(|when| format!("- {kind} /berth-policies-{when}")));
    }
    let mut found = differences(&base, &overlay);
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
    let set = the(&overlay, "DaemonSet", "berth-agent");
    assert_eq!(set["spec"]["template"]["spec"]["nodeSelector"]["nmstate.io/agent"], "berth");
    assert_eq!(set["spec"]["template"]["metadata"]["labels"]["component"], Value::Null);
    let controller = the(&overlay, "Deployment", "berth-controller");
    let told = json!({"name": "BERTH_AGENT_NODES", "value": "nmstate.io/agent=berth"});
    let env = controller["spec"]["template"]["spec"]["containers"][0]["env"].as_array();
    assert_eq!(env.and_then(|all| all.last()), Some(&told));
}

/// The page beyond loopback: the right to ask who is looking, to read Events, and nothing that writes.
#[test]
fn the_page_may_ask_who_is_looking_and_no_more() {
    let (base, overlay) = (kustomized("deploy/base"), kustomized("deploy/overlays/page"));
    let mut found = differences(&base, &overlay);
    found.sort();
    let wanted = [
        "+ ClusterRole /berth-page",
        "+ ClusterRole /berth-page-viewer",
        "+ ClusterRoleBinding /berth-page",
        "+ Role default/berth-page",
        "+ RoleBinding default/berth-page",
        "+ Service berth-system/berth-page",
        "~ Deployment berth-system/berth-controller",
        "~ NetworkPolicy berth-system/berth-controller",
    ];
    assert_eq!(found, wanted);
    let rule = |group: &str, resource: &str, verb: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
    let asks = json!([
        rule("authentication.k8s.io", "tokenreviews", "create"),
        rule("authorization.k8s.io", "subjectaccessreviews", "create"),
    ]);
    assert_eq!(the(&overlay, "ClusterRole", "berth-page")["rules"], asks);
    assert_eq!(the(&overlay, "Role", "berth-page")["rules"], json!([rule("", "events", "list")]));
    assert_eq!(
        the(&overlay, "ClusterRole", "berth-page-viewer")["rules"],
        json!([rule("nmstate.io", "nodeippools", "get")])
    );
    let controller = &pod(&overlay, "Deployment", "berth-controller")["containers"][0];
    assert_eq!(env(controller, "BERTH_PAGE_ADDRESS")["value"], "[$(POD_IP)]:9467");
    let names = controller["env"].as_array().expect("env").iter().map(|one| &one["name"]);
    let names: Vec<&Value> =
        names.filter(|name| ["POD_IP", "BERTH_PAGE_ADDRESS"].iter().any(|of| *name == of)).collect();
    assert_eq!(names, ["POD_IP", "BERTH_PAGE_ADDRESS"], "what names another comes after it");
}

/// OpenShift's word for what the agent asks for, and no more than that.
#[test]
fn on_openshift_agents_are_allowed_what_they_ask_for() {
    let (base, overlay) = (kustomized("deploy/base"), kustomized("deploy/overlays/openshift"));
    let found = differences(&base, &overlay);
    let changed = [
        "+ RoleBinding berth-system/berth-controller-scc",
        "+ SecurityContextConstraints /berth-agent",
        "~ Namespace /berth-system",
    ];
    assert_eq!(found, changed);
    // Or a cluster's usual selector would keep agents from its other nodes.
    let annotations = &the(&overlay, "Namespace", "berth-system")["metadata"]["annotations"];
    assert_eq!(*annotations, json!({"openshift.io/node-selector": ""}));
    let allowed = the(&overlay, "SecurityContextConstraints", "berth-agent");
    assert_eq!(allowed["users"], json!(["system:serviceaccount:berth-system:berth-agent"]));
    let pod = pod(&base, "DaemonSet", "berth-agent");
    let asked = &pod["containers"][0]["securityContext"];
    assert_eq!(allowed["allowedCapabilities"], asked["capabilities"]["add"]);
    assert_eq!(allowed["requiredDropCapabilities"], asked["capabilities"]["drop"]);
    for (may, asks) in [
        ("allowHostNetwork", &pod["hostNetwork"]),
        ("allowHostPID", &pod["hostPID"]),
        ("allowHostIPC", &pod["hostIPC"]),
        ("allowPrivilegedContainer", &asked["privileged"]),
        ("allowPrivilegeEscalation", &asked["allowPrivilegeEscalation"]),
        ("readOnlyRootFilesystem", &asked["readOnlyRootFilesystem"]),
    ] {
        assert_eq!(allowed[may], asks.as_bool().unwrap_or_default(), "{may}");
    }
    let volumes = pod["volumes"].as_array().expect("volumes");
    assert!(volumes.iter().all(|volume| volume["hostPath"].is_object()), "{volumes:?}");
    assert_eq!(allowed["volumes"], json!(["hostPath", "projected"]));
}
