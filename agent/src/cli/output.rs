//! What reaches the terminal: answers on stdout, warnings and errors on stderr.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use clap::ValueEnum;
use serde_json::Value;

use crate::telemetry::say;
use crate::yaml;

/// The form of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Yaml,
    Json,
}

/// The form of something that people read as a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Shown {
    Table,
    Yaml,
    Json,
}

impl Shown {
    /// Nothing for a table.
    pub(super) fn format(self) -> Option<Format> {
        match self {
            Self::Table => None,
            Self::Yaml => Some(Format::Yaml),
            Self::Json => Some(Format::Json),
        }
    }
}

/// The form of what people look at: a table as wide as the terminal, one with more columns, or a document for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Listing {
    Table,
    /// A table with more columns
    Wide,
    Yaml,
    Json,
}

impl Listing {
    /// Nothing for a table.
    pub(super) fn format(self) -> Option<Format> {
        match self {
            Self::Table | Self::Wide => None,
            Self::Yaml => Some(Format::Yaml),
            Self::Json => Some(Format::Json),
        }
    }

    pub(super) fn is_wide(self) -> bool {
        self == Self::Wide
    }
}

/// A value as text, ending in a line break.
pub(super) fn document(value: &Value, format: Format) -> anyhow::Result<String> {
    match format {
        Format::Yaml => Ok(yaml::print(value)?),
        Format::Json => Ok(serde_json::to_string_pretty(value)? + "\n"),
    }
}

/// Prints the answer. Whoever stops reading (`berth crds | head`) has what they wanted: that is no failure.
pub(super) fn answer(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("can't write the answer"),
    }
}

/// Something to hear of that stops nothing.
pub(super) fn warn(file: &str, what: impl Display) {
    say(&format!("warning: {file}: {what}"));
}

/// Something to read beside the answer.
pub(super) fn note(text: &str) {
    say(text);
}

/// The error and its causes, each once: the first line says what, the indented ones where and why.
pub(super) fn error(error: &anyhow::Error) {
    let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
    say(&format!("error: {}", chain.join("\n").replace('\n', "\n  ")));
}

/// A last word after an error, as clap has it.
pub(super) fn hint(text: &str) {
    say(&format!("\n{text}"));
}
