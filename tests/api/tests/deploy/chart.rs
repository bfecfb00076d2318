//! The chart gives what the base gives, and its values change what they say.

use serde_json::json;

use crate::rendered::{differences, helmed, kustomized, the};

#[test]
fn a_chart_without_values_is_the_base() {
    assert_eq!(differences(&kustomized("deploy/base"), &helmed(&[])), Vec::<String>::new());
}

/// But for the dashboard, which the chart has not.
#[test]
fn with_prometheus_it_is_the_component() {
    let mut monitored = kustomized("deploy/overlays/monitored");
    monitored.retain(|(kind, _, _), _| kind != "ConfigMap");
    let helmed = helmed(&["--set=prometheus.enabled=true"]);
    assert_eq!(differences(&monitored, &helmed), Vec::<String>::new());
}

#[test]
fn with_a_component_it_is_the_overlay_of_that_name() {
    for name in ["boot", "page"] {
        let helmed = helmed(&[&format!("--set={name}.enabled=true")]);
        let overlay = kustomized(&format!("deploy/overlays/{name}"));
        assert_eq!(differences(&overlay, &helmed), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn values_change_what_they_say() {
    let set = [
        "--set=image=registry.example/berth:1",
        "--set=logFormat=json",
        "--set=boot.enabled=true",
        "--set=agent.resources.limits.memory=1Gi",
        "--set=agent.tolerations[0].key=only",
        "--set=controller.replicas=3",
        "--set=controller.resources.requests.cpu=1",
    ];
    let (base, helmed) = (kustomized("deploy/base"), helmed(&set));
    let mut changed = differences(&base, &helmed);
    changed.sort();
    assert_eq!(
        changed,
        ["~ DaemonSet berth-system/berth-agent", "~ Deployment berth-system/berth-controller"]
    );
    let (agent, controller) =
        (the(&helmed, "DaemonSet", "berth-agent"), the(&helmed, "Deployment", "berth-controller"));
    assert_eq!(controller["spec"]["replicas"], 3);
    for (object, resources) in
        [(agent, json!({"limits": {"memory": "1Gi"}})), (controller, json!({"requests": {"cpu": 1}}))]
    {
        let container = &object["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], "registry.example/berth:1");
        assert_eq!(container["resources"], resources);
        let format = json!({"name": "BERTH_LOG_FORMAT", "value": "json"});
        assert!(container["env"].as_array().is_some_and(|all| all.contains(&format)), "{container}");
    }
    let pod = &agent["spec"]["template"]["spec"];
    assert_eq!(pod["tolerations"], json!([{"key": "only"}]));
    assert_eq!(pod["initContainers"][0]["image"], "registry.example/berth:1");
}
