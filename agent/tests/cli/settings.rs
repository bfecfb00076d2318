//! Settings of `berth agent` by flag, environment and file, and which of them counts.

use std::path::Path;
use std::process::Command;

use crate::folder::Folder;
use crate::support::Ran;

/// An agent that can't start: what it says names the state directory it was given, and so who gave it.
fn agent(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BERTH_") || name == "NODE_NAME") {
        command.env_remove(name);
    }
    let output = command
        .args(["agent", "--standalone", "manifests", "--node-lock", "none"])
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(folder)
        .output()
        .expect("start berth");
    Ran {
        code: output.status.code().expect("an exit code, not a signal"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

fn folder(settings: &str) -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path().join("agent.yaml"), settings).expect("written");
    // Below a file there is no directory.
    std::fs::write(folder.path().join("file"), "").expect("written");
    folder
}

const BY_FILE: &str = "state-dir: file/by-file\n";
const ENVIRONMENT: (&str, &str) = ("BERTH_STATE_DIR", "file/by-environment");

fn names(ran: &Ran) -> &str {
    assert_eq!(ran.code, 1, "{ran:?}");
    let line = ran.stderr.lines().next().unwrap_or_default();
    line.strip_prefix("error: --state-dir file/").unwrap_or_else(|| panic!("{ran:?}"))
}

#[test]
fn a_setting_comes_by_flag_by_environment_and_by_file() {
    let folder = folder(BY_FILE);
    let at = folder.path();
    assert_eq!(names(&agent(at, &["--state-dir", "file/by-flag"], &[])), "by-flag");
    assert_eq!(names(&agent(at, &[], &[ENVIRONMENT])), "by-environment");
    assert_eq!(names(&agent(at, &["--config", "agent.yaml"], &[])), "by-file");
    assert_eq!(names(&agent(at, &[], &[("BERTH_CONFIG", "agent.yaml")])), "by-file");
}

#[test]
fn a_flag_counts_before_the_environment_and_that_before_the_file() {
    let folder = folder(BY_FILE);
    let (at, file) = (folder.path(), ["--config", "agent.yaml"]);
    assert_eq!(names(&agent(at, &file, &[ENVIRONMENT])), "by-environment");
    let all = [file[0], file[1], "--state-dir", "file/by-flag"];
    assert_eq!(names(&agent(at, &all, &[ENVIRONMENT])), "by-flag");
}

#[test]
fn what_is_wrong_in_a_file_is_said_with_its_line() {
    let folder = folder("# who\nnode: node01\nstate-directory: /srv\n");
    let ran = agent(folder.path(), &["--config", "agent.yaml"], &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let begin = "error: --config agent.yaml\n  3: there is no setting \"state-directory\"; there is: kubeconfig, node, ";
    assert!(ran.stderr.starts_with(begin), "{}", ran.stderr);
    let missing = agent(folder.path(), &["--config", "nowhere.yaml"], &[]);
    let said = "error: --config nowhere.yaml\n  No such file or directory";
    assert!(missing.code == 1 && missing.stderr.starts_with(said), "{missing:?}");
}

#[test]
fn every_setting_is_in_the_help_with_its_variable() {
    for (verb, names) in [
        (
            "agent",
            &[
                "BERTH_KUBECONFIG",
                "NODE_NAME",
                "BERTH_STANDALONE",
                "BERTH_WITH_CONTROLLER",
                "POD_NAMESPACE",
                "BERTH_NETNS",
                "BERTH_STATE_DIR",
                "BERTH_REGISTER_NODE",
                "BERTH_NODE_LABELS",
                "BERTH_PROBES",
                "BERTH_PROBE_TIMEOUT",
                "BERTH_WIRE_PROBE",
                "NMSTATE_INSTANCE_NODE_LOCK_FILE",
                "BERTH_CONFIG",
                "BERTH_HEALTH_ADDRESS",
                "BERTH_LOG_LEVEL",
                "BERTH_LOG_FORMAT",
            ][..],
        ),
        (
            "controller",
            &["BERTH_KUBECONFIG", "POD_NAMESPACE", "BERTH_CONFIG", "BERTH_HEALTH_ADDRESS", "BERTH_LOG_LEVEL"],
        ),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_berth")).args([verb, "--help"]).output().expect("start berth");
        let help = String::from_utf8(output.stdout).expect("text");
        for name in names {
            assert!(help.contains(&format!("[env: {name}=")), "{verb}: {name}\n{help}");
        }
        // No flag without a way to set it otherwise.
        let flags = help.lines().filter(|line| line.trim_start().starts_with("--")).count();
        assert_eq!(flags, help.matches("[env: ").count(), "{help}");
    }
}

#[test]
fn an_agent_without_a_name_is_used_wrongly() {
    let output = Command::new(env!("CARGO_BIN_EXE_berth"))
        .arg("agent")
        .env_remove("NODE_NAME")
        .output()
        .expect("start");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: say which Node this host is, with --node NAME, "), "{said}");
}
