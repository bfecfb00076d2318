//! docs/operations.md explains each metric, condition, Event and alert.

use std::collections::BTreeSet;
use std::fs;

use crds::names;

use crate::monitoring::{alerts, alerts_of, metrics};
use crate::rendered::{Objects, helmed, kustomized, root};

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

/// The kustomization that docs/install.md has for this, with the folder of `deploy` that it names.
fn kustomization_with(word: &str) -> Objects {
    let text = document("install.md");
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let block = blocks.map(|(block, _)| block).find(|block| block.contains(word)).expect("a block");
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("as-documented");
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
    for objects in [kustomization_with("runbook_url"), helmed] {
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

/// Reasons of Events, in the sources that say them.
fn events() -> BTreeSet<String> {
    let mut reasons =
        BTreeSet::from([names::policy::EVENT_FAILED.to_owned(), names::enactment::REFUSED.to_owned()]);
    for file in ["agent/src/node/telling.rs", "agent/src/controller/told.rs"] {
        let text = fs::read_to_string(root().join(file)).expect(file);
        let constants = text.lines().filter_map(|line| line.trim().split_once(": &str = \""));
        reasons
            .extend(constants.filter_map(|(_, rest)| rest.split_once('"')).map(|(word, _)| word.to_owned()));
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

/// Reasons of conditions: each constant of these modules that names one.
fn reasons() -> BTreeSet<String> {
    let listed = names::pool::BY_PRECEDENCE.into_iter().chain([
        names::enactment::PROGRESSING,
        names::enactment::CONFIGURED,
        names::enactment::FAILED,
        names::enactment::RETRYING,
        names::enactment::LIMIT_REACHED,
        names::enactment::ABORTED,
        names::enactment::WAITING,
        names::enactment::REFUSED,
        names::policy::NO_MATCHING_NODE,
        names::state::REPORT_SHORTENED,
        names::node::AGENT_RUNS,
        names::node::AGENT_SILENT,
    ]);
    listed.map(str::to_owned).collect()
}

#[test]
fn each_metric_condition_and_event_is_explained() {
    let text = operations();
    let conditions = rows(&text, "Conditions");
    let types = names::condition::OF_ENACTMENT.into_iter().chain(names::condition::OF_POLICY);
    let words = types.map(str::to_owned).chain(reasons());
    let events = events();
    assert!(events.contains("DriftRepaired") && events.contains("AddressFreed"), "{events:?}");
    // Condition and reason, then what it means and what to do; the reason, then on what, when and what to do.
    for (what, missing) in [
        ("a condition", unexplained(&conditions, 2, words)),
        ("an Event", unexplained(&rows(&text, "Events"), 1, events)),
        ("a metric", unexplained(&rows(&text, "Metrics"), 1, metrics())),
    ] {
        assert!(missing.is_empty(), "docs/operations.md has no row that explains, as {what}, {missing:?}");
    }
}
