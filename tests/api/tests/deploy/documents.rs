//! docs/operations.md explains each metric, condition, Event and alert.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crds::names::pool;

use crate::monitoring::{alerts, alerts_of, metrics};
use crate::rendered::{Objects, differences, helmed, kustomized, root, the};

fn document(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap_or_else(|wrong| panic!("docs/{name}: {wrong}"))
}

fn operations() -> String {
    document("operations.md")
}

/// Headings as links spell them.
fn anchors() -> BTreeSet<String> {
    let text = operations();
    let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
    let spelled = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"));
    spelled.collect()
}

#[test]
fn each_alert_has_a_heading_and_each_heading_an_alert() {
    let anchors = anchors();
    let (mut wrong, mut named) = (Vec::new(), BTreeSet::new());
    for alert in alerts() {
        let name = alert["alert"].as_str().expect("a name").to_owned();
        let link = alert["annotations"]["runbook_url"].as_str().unwrap_or_default();
        let anchor = link.strip_prefix("docs/operations.md#").unwrap_or_default();
        if anchor != name.to_lowercase() || !anchors.contains(anchor) {
            wrong.push(format!("{name}: {link}"));
        }
        named.insert(anchor.to_owned());
        for word in ["summary", "description"] {
            assert!(alert["annotations"][word].is_string(), "{name} has no {word}");
        }
        assert!(alert["labels"]["severity"].is_string(), "{name} has no severity");
    }
    assert!(wrong.is_empty(), "these lead nowhere: {wrong:?}");
    let others: Vec<&String> =
        anchors.iter().filter(|anchor| anchor.starts_with("berth") && !named.contains(*anchor)).collect();
    assert!(others.is_empty(), "there is no alert for {others:?}");
}

/// The first block of YAML in this document that has the word.
fn block(name: &str, word: &str) -> String {
    let text = document(name);
    let mut blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let block = blocks.find(|(block, _)| block.contains(word));
    block.unwrap_or_else(|| panic!("docs/{name} has no block with {word}")).0.to_owned()
}

/// The kustomization that this document has for it, with the folder of `deploy` that it names.
fn kustomization_with(name: &str, word: &str) -> Objects {
    let block = block(name, word);
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("documented-{}", word.replace(": ", "-")));
    fs::create_dir_all(&folder).expect("a folder");
    // kustomize takes a folder from elsewhere by the way there, not by its whole path.
    let ups = "../".repeat(folder.canonicalize().expect("a folder").components().count() - 1);
    let deploy = format!("- {ups}{}/deploy/", root().display().to_string().trim_start_matches('/'));
    fs::write(folder.join("kustomization.yaml"), block.replace("- deploy/", &deploy)).expect("written");
    kustomized(&folder.display().to_string())
}

/// As docs/install.md tells, by kustomize and by Helm: whoever serves the documents says where.
#[test]
fn links_of_alerts_lead_to_where_the_administrator_says() {
    let address = "https://docs.example/berth/operations.md";
    let set = format!("--set=prometheus.runbooks={address}");
    let helmed = helmed(&["--set=prometheus.enabled=true", &set]);
    for objects in [kustomization_with("install.md", "runbook_url"), helmed] {
        let wanted = |name: &str| format!("{address}#{}", name.to_lowercase());
        let found: Vec<(String, String)> = alerts_of(&objects)
            .iter()
            .map(|alert| (&alert["alert"], &alert["annotations"]["runbook_url"]))
            .map(|(name, link)| (wanted(name.as_str().unwrap_or_default()), link))
            .map(|(wanted, link)| (wanted, link.as_str().unwrap_or_default().to_owned()))
            .collect();
        assert_eq!(found.len(), alerts().len());
        found.iter().for_each(|(wanted, link)| assert_eq!(wanted, link));
    }
}

/// Monitors and rules have the label that a Prometheus looks for, by both ways of docs/install.md, and nothing else is another.
#[test]
fn monitors_have_the_label_that_the_administrator_says() {
    let helmed = helmed(&["--set=prometheus.enabled=true", "--set=prometheus.labels.release=monitoring"]);
    for objects in [kustomization_with("install.md", "release: monitoring"), helmed] {
        for (kind, name) in [
            ("ServiceMonitor", "berth-controller"),
            ("PodMonitor", "berth-agent"),
            ("PrometheusRule", "berth"),
        ] {
            let labels = &the(&objects, kind, name)["metadata"]["labels"];
            assert_eq!(
                (&labels["release"], &labels["prometheus.nmstate.io"]),
                (&"monitoring".into(), &"true".into())
            );
        }
        let agent = &the(&objects, "DaemonSet", "berth-agent")["spec"];
        assert_eq!(*agent, the(&kustomized("deploy/overlays/monitored"), "DaemonSet", "berth-agent")["spec"]);
    }
}

/// What both workloads of the base are told, by both ways of the documents: a setting, and how to get the image.
#[test]
fn settings_and_pull_secrets_come_to_both_workloads() {
    let values = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documented-values.yaml");
    fs::write(&values, block("operations.md", "# values.yaml")).expect("written");
    let values = format!("--values={}", values.display());
    let settings = kustomization_with("operations.md", "BERTH_EXCLUDE_CIDRS");
    let secrets = kustomization_with("install.md", "imagePullSecrets");
    let base = kustomized("deploy/base");
    for (kustomized, set) in
        [(&settings, values.as_str()), (&secrets, "--set=imagePullSecrets[0].name=registry")]
    {
        assert_eq!(differences(kustomized, &helmed(&[set])), Vec::<String>::new());
        let mut changed = differences(&base, kustomized);
        changed.sort();
        assert_eq!(
            changed,
            ["~ DaemonSet berth-system/berth-agent", "~ Deployment berth-system/berth-controller"]
        );
    }
    for (kind, name) in [("DaemonSet", "berth-agent"), ("Deployment", "berth-controller")] {
        let env = &the(&settings, kind, name)["spec"]["template"]["spec"]["containers"][0]["env"];
        let last = env.as_array().and_then(|all| all.last()).expect("env");
        assert_eq!(last["name"], "BERTH_EXCLUDE_CIDRS", "{kind}");
    }
}

/// Agents on some nodes only, by both ways of the document: the controller is told which.
#[test]
fn the_controller_is_told_which_nodes_have_an_agent() {
    let told = kustomization_with("operations.md", "BERTH_AGENT_NODES");
    assert_eq!(differences(&told, &helmed(&["--set=agent.nodeSelector.rack=one"])), Vec::<String>::new());
    let (base, two) = (kustomized("deploy/base"), "--set=agent.nodeSelector.rack=one,agent.nodeSelector.a=b");
    assert_eq!(differences(&base, &told).len(), 2);
    let helmed = helmed(&[two]);
    let env =
        &the(&helmed, "Deployment", "berth-controller")["spec"]["template"]["spec"]["containers"][0]["env"];
    let last = env.as_array().and_then(|all| all.last()).expect("env");
    assert_eq!((&last["name"], &last["value"]), (&"BERTH_AGENT_NODES".into(), &"a=b,rack=one".into()));
}

/// The sources below a folder, without their tests.
fn sources(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .filter(|path| path.file_stem().is_none_or(|name| name != "tests"))
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![fs::read_to_string(&path).expect("a source")],
        })
        .collect()
}

/// The constants of a source that are one word, as reasons and types of conditions are: name and word.
fn words(source: &str) -> impl Iterator<Item = (&str, &str)> {
    let constants = source.lines().filter_map(|line| line.trim().split_once(": &str = \""));
    let named =
        constants.filter_map(|(before, rest)| Some((before.rsplit(' ').next()?, rest.split_once('"')?.0)));
    named.filter(|(_, word)| {
        word.starts_with(|c: char| c.is_ascii_uppercase()) && word.chars().all(|c| c.is_ascii_alphabetic())
    })
}

/// Where every word is that is part of the API.
fn api() -> String {
    fs::read_to_string(root().join("crds/src/names.rs")).expect("a source")
}

/// The second of a call's arguments.
fn second(call: &str) -> &str {
    let mut depth = 0;
    let mut parts = call.split(|c: char| {
        depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        c == ',' && depth == 0
    });
    parts.nth(1).unwrap_or_default().trim()
}

/// Reasons of Events: what is named wherever one is told. A name that is nowhere a constant is a hole in this test.
fn events() -> BTreeSet<String> {
    let (api, mut reasons) = (api(), BTreeSet::new());
    for source in sources(&root().join("agent/src")) {
        let calls = [".normal(", ".warning("].into_iter().flat_map(|call| source.split(call).skip(1));
        for reason in calls.map(second) {
            let name = reason.rsplit("::").next().unwrap_or_default();
            let known = words(&source).chain(words(&api)).filter(|(known, _)| *known == name);
            let mut found: Vec<&str> = known.map(|(_, word)| word).collect();
            if name == "reason" {
                // A pool's condition, said in its own words when it gets better or worse.
                found.extend(pool::BY_PRECEDENCE.into_iter().filter(|word| *word != pool::RECONCILING));
            }
            assert!(!found.is_empty(), "an Event is told by {reason:?}, and no constant is called so");
            reasons.extend(found.into_iter().map(str::to_owned));
        }
    }
    reasons
}

/// The rows of the tables under a heading: their cells.
fn rows(text: &str, heading: &str) -> Vec<Vec<String>> {
    let section = text.split(&format!("\n## {heading}\n")).nth(1).expect("the heading");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// Which of these words begin no row that says what it is: `name` says in which cells a name stands, all others must say something.
/// As words of their own: one may begin as another does.
fn unexplained(
    rows: &[Vec<String>],
    names: usize,
    words: impl IntoIterator<Item = String>,
) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let explains = |row: &&Vec<String>| row.len() > names && row[names..].iter().all(|cell| !cell.is_empty());
    let said: BTreeSet<&str> = rows
        .iter()
        .filter(explains)
        .flat_map(|row| &row[..names])
        .flat_map(|cell| cell.split(|c: char| !is_word(c)))
        .collect();
    words.into_iter().filter(|word| !said.contains(word.as_str())).collect()
}

#[test]
fn each_metric_condition_and_event_is_explained() {
    let text = operations();
    let conditions = rows(&text, "Conditions");
    let api = api();
    // Types, statuses and reasons; not those of Events alone.
    let words = words(&api).filter(|(name, _)| !name.starts_with("EVENT_")).map(|(_, word)| word.to_owned());
    let words: BTreeSet<String> = words.collect();
    assert!(words.contains("NoMatchingNode") && words.contains("AgentSilent"), "{words:?}");
    let events = events();
    for known in ["DriftRepaired", "AddressFreed", "IPCollision", "ExhaustedIPPool", "NoAddress"] {
        assert!(events.contains(known), "{known}: {events:?}");
    }
    // Condition and reason, then what it means and what to do; the reason, then on what, when and what to do.
    for (what, missing) in [
        ("a condition", unexplained(&conditions, 2, words)),
        ("an Event", unexplained(&rows(&text, "Events"), 1, events)),
        ("a metric", unexplained(&rows(&text, "Metrics"), 1, metrics())),
    ] {
        assert!(missing.is_empty(), "docs/operations.md has no row that explains, as {what}, {missing:?}");
    }
}
