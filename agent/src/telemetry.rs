//! What is said of the work, beside any answer: a line at a time, to stderr, for people or for machines.
//!
//! The one place through which it all goes. How much, and in which form, is set once at the start ([`set`]); before that, and
//! for verbs that end, it is lines for people. Callers must never say anything secret, nor anything for a pass that finds
//! nothing to do. Cost: one write of one line.
//!
//! Without the `tracing` crates: there are no spans here and one sink, and a line costs no more than its text.

use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};

use clap::ValueEnum;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

#[cfg(test)]
mod tests;

/// How much matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// For whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Lines for people
    Human,
    /// A JSON object a line: time, level, message
    Json,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);
static JSON: AtomicU8 = AtomicU8::new(0);

/// From now on so much is said, in this form.
pub fn set(level: Level, form: Form) {
    LEVEL.store(level as u8, Ordering::Relaxed);
    JSON.store(u8::from(form == Form::Json), Ordering::Relaxed);
}

/// What everybody wants to know. A text that begins as a warning or an error is one.
pub(crate) fn say(text: &str) {
    let level = match text {
        _ if text.starts_with("error: ") => Level::Error,
        _ if text.starts_with("warning: ") => Level::Warn,
        _ => Level::Info,
    };
    tell(level, text);
}

/// What went wrong and is dealt with: tried again, or gone without.
pub(crate) fn warn(text: &str) {
    tell(Level::Warn, text);
}

/// What somebody who looks for a fault wants to know.
pub(crate) fn debug(text: &str) {
    tell(Level::Debug, text);
}

fn tell(level: Level, text: &str) {
    if level as u8 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let line = line(level, text, JSON.load(Ordering::Relaxed) != 0);
    // Nobody listening is no reason to stop, or to fail otherwise.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// One line, whatever the text has in it.
fn line(level: Level, text: &str, is_json: bool) -> String {
    if !is_json {
        return format!("{text}\n");
    }
    let name = match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
    };
    let text = text.strip_prefix("error: ").or_else(|| text.strip_prefix("warning: ")).unwrap_or(text);
    format!("{}\n", json!({"time": Timestamp::now().to_string(), "level": name, "message": text}))
}
