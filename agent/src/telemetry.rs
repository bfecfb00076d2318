//! What is said of the work, beside any answer: a line at a time, to stderr.

use std::io::Write;

/// Nobody listening is no reason to stop, or to fail otherwise.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
