use clap::{CommandFactory, FromArgMatches};

use super::{Args, with_entries};
use crate::cli::Verb;
use crate::yaml;

/// An agent's arguments, as file and flags say; or what is wrong with the file.
fn agent(file: &str, flags: &[&str]) -> Result<String, String> {
    let entries = yaml::entries(file).map_err(|error| error.to_string())?;
    let command = with_entries(&Args::command(), "agent", entries).map_err(|error| error.to_string())?;
    let line = ["berth", "agent"].iter().chain(flags);
    let matches = command.try_get_matches_from(line).map_err(|error| error.to_string())?;
    let Verb::Agent(args) = Args::from_arg_matches(&matches).map_err(|error| error.to_string())?.verb else {
        panic!("not an agent")
    };
    Ok(format!("{args:?}"))
}

#[test]
fn a_file_sets_what_flags_set() {
    let file = "\
# everything, in all forms
node: node01
state-dir: /srv/berth
with-controller: true
node-labels: {rack: rack1, zone: a}
health-address: none
log-level: debug
";
    let args = agent(file, &[]).unwrap();
    for part in [
        "node: Some(\"node01\")",
        "state_dir: \"/srv/berth\"",
        "with_controller: true",
        "register_node: false",
        "node_labels: [(\"rack\", \"rack1\"), (\"zone\", \"a\")]",
        "health_address: Some(Nowhere)",
        "log_level: Debug",
    ] {
        assert!(args.contains(part), "{part}\n{args}");
    }
    assert_eq!(agent("", &[]).unwrap(), agent("# nothing\n", &[]).unwrap());
    let listed = agent("node-labels: [rack=rack1, zone=a]", &[]).unwrap();
    assert!(listed.contains("[(\"rack\", \"rack1\"), (\"zone\", \"a\")]"), "{listed}");
}

#[test]
fn flags_count_before_the_file() {
    let file = "node: by-file\nwith-controller: true\nnode-labels: {rack: by-file}\n";
    let args =
        agent(file, &["--node", "by-flag", "--with-controller=false", "--node-labels", "rack=by-flag"])
            .unwrap();
    assert!(args.contains("by-flag") && !args.contains("by-file"), "{args}");
    assert!(args.contains("with_controller: false"), "{args}");
    assert!(agent("", &["--with-controller"]).unwrap().contains("with_controller: true"));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let unknown = agent("node: node01\n\nnodes: x\n", &[]).unwrap_err();
    let begin = "3: there is no setting \"nodes\"; there is: kubeconfig, node, standalone, with-controller, ";
    assert!(unknown.starts_with(begin), "{unknown}");
    assert!(!unknown.contains(", config"), "--config is not for files: {unknown}");
    assert_eq!(agent("node: [a, b]\n", &[]).unwrap_err(), "1: node: one value is wanted, here is a list");
    assert_eq!(
        agent("node: a\nnode-labels:\n  rack: {a: b}\n", &[]).unwrap_err(),
        "2: node-labels: a value, a list or a map of values is wanted, here is a map"
    );
    assert_eq!(
        agent("log-level: loud\n", &[]).unwrap_err(),
        "1: log-level: invalid value 'loud' for '--log-level <LEVEL>' [possible values: error, warn, info, debug]"
    );
    let boolean = agent("node: a\nwith-controller: perhaps\n", &[]).unwrap_err();
    assert!(boolean.starts_with("2: with-controller: invalid value 'perhaps'"), "{boolean}");
    let twice = agent("node: a\nnode: b\n", &[]).unwrap_err();
    assert!(twice.starts_with("2:1: ") && twice.contains("twice"), "{twice}");
    let list = agent("- node\n", &[]).unwrap_err();
    assert!(list.starts_with("1:"), "{list}");
}
