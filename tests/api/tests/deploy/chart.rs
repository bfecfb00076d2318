//! The chart gives what the base gives, and its values change what they say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::rendered::{differences, helmed, helmed_from, kustomized, root, text_of, the};

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
        "--set=imagePullSecrets[0].name=registry",
        "--set=logFormat=json",
        "--set=boot.enabled=true",
        "--set=agent.resources.limits.memory=1Gi",
        "--set=agent.tolerations[0].key=only",
        "--set=agent.nodeSelector.rack=one",
        "--set=agent.env[0].name=BERTH_SAID,agent.env[0].value=agent",
        "--set=controller.replicas=3",
        "--set=controller.resources.requests.cpu=1",
        "--set=controller.env[0].name=BERTH_SAID,controller.env[0].value=controller",
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
    for (object, before, said, resources) in [
        (agent, the(&base, "DaemonSet", "berth-agent"), "agent", json!({"limits": {"memory": "1Gi"}})),
        (
            controller,
            the(&base, "Deployment", "berth-controller"),
            "controller",
            json!({"requests": {"cpu": 1}}),
        ),
    ] {
        let [pod, before] = [object, before].map(|one| &one["spec"]["template"]["spec"]);
        assert_eq!(pod["imagePullSecrets"], json!([{"name": "registry"}]));
        let container = &pod["containers"][0];
        let env = |of: &Value| of["env"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<Value> =
            env(&before["containers"][0]).into_iter().map(|one| one["name"].clone()).collect();
        if said == "controller" {
            // Which nodes the other one is on.
            names.push("BERTH_AGENT_NODES".into());
        }
        names.push("BERTH_SAID".into());
        // Appended, and nothing that was there is gone.
        assert_eq!(env(container).iter().map(|one| one["name"].clone()).collect::<Vec<_>>(), names);
        assert_eq!(env(container).last(), Some(&json!({"name": "BERTH_SAID", "value": said})));
        assert_eq!(container["image"], "registry.example/berth:1");
        assert_eq!(container["resources"], resources);
        let format = json!({"name": "BERTH_LOG_FORMAT", "value": "json"});
        assert!(container["env"].as_array().is_some_and(|all| all.contains(&format)), "{container}");
    }
    let pod = &agent["spec"]["template"]["spec"];
    assert_eq!(pod["tolerations"], json!([{"key": "only"}]));
    assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/os": "linux", "rack": "one"}));
    assert_eq!(pod["initContainers"][0]["image"], "registry.example/berth:1");
}

/// Agents that tolerations keep from nodes are told of by hand; that counts, and is said once.
#[test]
fn which_nodes_are_to_have_an_agent_is_said_once() {
    let helmed = helmed(&[
        "--set=agent.nodeSelector.rack=one",
        "--set=controller.env[0].name=BERTH_AGENT_NODES,controller.env[0].value=rack=one\\,pool=storage",
    ]);
    let controller = the(&helmed, "Deployment", "berth-controller");
    let env = controller["spec"]["template"]["spec"]["containers"][0]["env"].as_array().cloned();
    let said: Vec<Value> =
        env.unwrap_or_default().into_iter().filter(|one| one["name"] == "BERTH_AGENT_NODES").collect();
    assert_eq!(said, [json!({"name": "BERTH_AGENT_NODES", "value": "rack=one,pool=storage"})]);
}

#[test]
fn none_is_a_number_of_controllers() {
    let helmed = helmed(&["--set=controller.replicas=0"]);
    assert_eq!(the(&helmed, "Deployment", "berth-controller")["spec"]["replicas"], 0);
}

fn links(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| match path {
            path if path.is_symlink() => vec![path],
            path if path.is_dir() => links(&path),
            _ => Vec::new(),
        })
        .collect()
}

/// For who drops links (Flux), or never has the files that they lead to.
#[test]
fn the_packaged_chart_has_no_links_and_gives_the_same() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packaged");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    let mut make = Command::new("make");
    make.args(["-s", "chart"]).arg(format!("CHARTS={}", folder.display())).current_dir(root());
    // What the tests were started with is not for this one.
    text_of(make.env_remove("MAKEFLAGS"));
    let archive = folder.join(concat!("berth-", env!("CARGO_PKG_VERSION"), ".tgz"));
    text_of(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&folder));
    let chart = folder.join("berth");
    assert_eq!(links(&chart), Vec::<PathBuf>::new());
    assert!(!links(&root().join("deploy/chart")).is_empty(), "the folder has some");
    let all = ["--set=boot.enabled=true,page.enabled=true,prometheus.enabled=true"];
    for set in [&[][..], &all] {
        assert_eq!(differences(&helmed(set), &helmed_from(&chart, set)), Vec::<String>::new(), "{set:?}");
    }
}
