//! The terminal, if there is one: how wide it is, whether it has colours, and whether somebody is there to be asked.
//!
//! Asked by the verbs that people type. Where the answer goes to a file or a pipe there are no colours, no progress, and
//! nobody is asked anything.

use std::future::Future;
use std::io::{self, BufRead, IsTerminal, Write};
use std::time::{Duration, Instant};

use terminal_size::{Width, terminal_size_of};

use super::UsageError;

/// What a terminal has at least, these days; what is piped is as wide.
const WIDTH: usize = 100;
/// Narrower than this no table is readable; wider than that no line is.
const BOUNDS: (usize, usize) = (40, 240);
/// What takes longer than this says how long it has taken.
const SECOND: Duration = Duration::from_secs(1);
/// Back to the line's start, and all of it cleared.
const CLEAR: &str = "\r\x1b[K";

/// How wide an answer may be.
pub(super) fn width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let seen = || terminal_size_of(io::stdout()).map(|(Width(width), _)| usize::from(width));
    told.or_else(seen).unwrap_or(WIDTH).clamp(BOUNDS.0, BOUNDS.1)
}

/// Whether an answer may have colours: on a terminal that knows some, unless nobody wants any.
pub(super) fn colours() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    io::stdout().is_terminal() && !unwanted && !dumb
}

/// Goes on only if somebody says yes: on the command line, or now.
pub(super) fn confirm(question: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(UsageError::Unconfirmed.into());
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => anyhow::bail!("nothing was done"),
    }
}

/// Does the work; while it takes longer than a second, a terminal is told what is waited for.
pub(super) async fn patiently<T>(what: &str, work: impl Future<Output = T>) -> T {
    if !io::stderr().is_terminal() {
        return work.await;
    }
    let mut work = std::pin::pin!(work);
    let begun = Instant::now();
    let mut shown = "";
    loop {
        match tokio::time::timeout(SECOND, work.as_mut()).await {
            Ok(done) => {
                let _ = io::stderr().lock().write_all(shown.as_bytes());
                return done;
            }
            Err(_) => {
                shown = CLEAR;
                let _ = write!(io::stderr().lock(), "{CLEAR}{what}: {} s", begun.elapsed().as_secs());
            }
        }
    }
}
