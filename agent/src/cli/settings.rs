//! Settings of the verbs that run on: by flag, by environment, by a YAML file; the first that says something counts.
//!
//! The file has the flags' names as keys. It is read before the arguments are: what it says becomes the flags' defaults,
//! so precedence, types and what is allowed are clap's for all three. Must never take a key that is no flag: a slip in a
//! file would otherwise be a setting that silently does nothing. Cost: a file read at the start, and never again.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use serde_json::Value;
use thiserror::Error;

use super::Args;
use crate::yaml::{self, Entry};

/// The flag that names the file; not to be found in it.
const CONFIG: &str = "config";

/// What a file may not say.
#[derive(Debug, Error, PartialEq, Eq)]
enum FileError {
    #[error("{line}: there is no setting {key:?}; there is: {}", .known.join(", "))]
    Unknown { line: usize, key: String, known: Vec<String> },
    #[error("{line}: {key}: {wanted} is wanted, here is {found}")]
    Shape { line: usize, key: String, wanted: &'static str, found: &'static str },
    #[error("{line}: {key}: {why}")]
    Value { line: usize, key: String, why: String },
}

/// Arguments, environment and file of this process. Ends it where arguments are wrong, or help is asked for, as clap does.
pub(super) fn parse() -> anyhow::Result<Args> {
    let given = called().get_matches();
    let Some((verb, path)) = named(&given) else {
        return Ok(Args::from_arg_matches(&given).unwrap_or_else(|error| error.exit()));
    };
    let command = with_file(&called(), &verb, &path)?;
    let matches = command.get_matches();
    Ok(Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
}

/// The command line under the name that it was called by: as kubectl's plugin it is `kubectl berth`.
fn called() -> Command {
    let name = std::env::args_os().next().map(PathBuf::from);
    let is_plugin = name.is_some_and(|name| name.file_name().is_some_and(|name| name == "kubectl-berth"));
    let command = Args::command();
    if is_plugin { command.bin_name("kubectl berth") } else { command }
}

/// The verb and its file, where one is named.
fn named(given: &ArgMatches) -> Option<(String, PathBuf)> {
    let (verb, of) = given.subcommand()?;
    let path = of.try_get_one::<PathBuf>(CONFIG).ok()??;
    Some((verb.to_owned(), path.clone()))
}

/// The command line, with a file's settings as defaults of a verb.
fn with_file(command: &Command, verb: &str, path: &Path) -> anyhow::Result<Command> {
    let place = || format!("--config {}", path.display());
    let text = std::fs::read_to_string(path).with_context(place)?;
    let entries = yaml::entries(&text).with_context(place)?;
    with_entries(command, verb, entries).with_context(place)
}

fn with_entries(command: &Command, verb: &str, entries: Vec<Entry>) -> Result<Command, FileError> {
    let mut command = command.clone();
    let known: Vec<Arg> = settable(&command, verb);
    for Entry { key, line, value } in entries {
        let Some(flag) = known.iter().find(|flag| flag.get_long() == Some(&key)) else {
            let known = known.iter().filter_map(|flag| flag.get_long().map(str::to_owned)).collect();
            return Err(FileError::Unknown { line, key, known });
        };
        let values = values(flag, &key, line, &value)?;
        allowed(&command, verb, &key, line, &values)?;
        let id = flag.get_id().clone();
        // Defaults live as long as the program: so do these, of a file that is read once.
        let values: Vec<&'static str> = values.into_iter().map(|value| &*value.leak()).collect();
        command = command.mut_subcommand(verb, |of| of.mut_arg(id, |flag| flag.default_values(values)));
    }
    Ok(command)
}

/// The flags of a verb that a file may set.
fn settable(command: &Command, verb: &str) -> Vec<Arg> {
    let flags = command.find_subcommand(verb).into_iter().flat_map(Command::get_arguments);
    let is_setting = |flag: &&Arg| {
        let is_tool = matches!(flag.get_long(), None | Some(CONFIG | "help" | "version"));
        !is_tool && matches!(flag.get_action(), ArgAction::Set | ArgAction::Append)
    };
    flags.filter(is_setting).cloned().collect()
}

/// A value of the file as a flag would be given it.
fn values(flag: &Arg, key: &str, line: usize, value: &Value) -> Result<Vec<String>, FileError> {
    let is_list = matches!(flag.get_action(), ArgAction::Append);
    let wanted = if is_list { "a value, a list or a map of values" } else { "one value" };
    let wrong = |value: &Value| {
        let found = match value {
            Value::Null => "nothing",
            Value::Array(_) => "a list",
            Value::Object(_) => "a map",
            Value::Bool(_) | Value::Number(_) | Value::String(_) => "a value",
        };
        FileError::Shape { line, key: key.to_owned(), wanted, found }
    };
    let scalar = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        other => Err(wrong(other)),
    };
    match value {
        Value::Array(items) if is_list => items.iter().map(scalar).collect(),
        Value::Object(entries) if is_list => {
            entries.iter().map(|(name, value)| Ok(format!("{name}={}", scalar(value)?))).collect()
        }
        other => Ok(vec![scalar(other)?]),
    }
}

/// Asks clap what it thinks of a value, so that the file's line can be named.
fn allowed(
    command: &Command,
    verb: &str,
    key: &str,
    line: usize,
    values: &[String],
) -> Result<(), FileError> {
    for value in values {
        let line_of = ["berth".to_owned(), verb.to_owned(), format!("--{key}={value}")];
        if let Err(error) = command.clone().try_get_matches_from(line_of) {
            let text = error.to_string();
            // What it says besides is about command lines.
            let why: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
            let why = why.join(" ").trim_start_matches("error: ").to_owned();
            return Err(FileError::Value { line, key: key.to_owned(), why });
        }
    }
    Ok(())
}
