//! `berth apply`: bring about a desired state on this host, or leave it as it was.
//!
//! Owns what is said on the way (`progress`) and who may stop it (`stop`); what is done is `transaction`'s.

mod progress;
mod stop;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use policy::plan::Plan;
use thiserror::Error;

use progress::{Progress, Recovered};
use stop::Stop;

use super::desired;
use super::live::{self, Standing, Where};
use super::output::{self, Shown};
use crate::checkpoint::Store;
use crate::kernel;
use crate::netns::Identity;
use crate::transaction::{self, ApplyError, Event, Manner, Reverted};

/// Bring about a desired state on this host, or leave it as it was
///
/// Looks at the host, plans, applies the plan step by step, looks again and compares. If a step fails or the result is
/// not what was asked for, everything is put back and the exit code is 1. What was there before is on disk before
/// the first change: if this is killed in the middle, the next 'berth apply' puts it back first. Ctrl-C does so right away;
/// before the first change it ends at once.
///
/// What the document doesn't name is not touched. Needs CAP_NET_ADMIN.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The desired state: a bare document, a NodeNetworkConfigurationPolicy without captures, or an enactment
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    desired: PathBuf,
    #[command(flatten)]
    place: Where,
    /// Print the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Don't look afterwards if the result is what was asked for
    #[arg(long)]
    no_verify: bool,
    /// How many seconds the result may take to show before everything is put back
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=86400))]
    timeout: u64,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Shown,
}

const EXAMPLES: &str = "\
Examples:
  berth apply -f desired.yaml
  berth apply -f desired.yaml --dry-run
  berth apply -f desired.yaml --netns blue --timeout 30
  berth render -f policy.yaml --current <(berth show) | berth apply -f -";

/// How it ended when it didn't succeed.
#[derive(Debug, Error)]
#[error("{}", aftermath(.reverted, .checkpoint))]
struct Aftermath {
    reverted: Box<Reverted>,
    checkpoint: PathBuf,
    #[source]
    cause: anyhow::Error,
}

pub(super) fn run(args: &Args) -> anyhow::Result<String> {
    let (name, wanted) = desired::read(&args.desired)?;
    if args.dry_run {
        let plan = args.place.look(|kernel| {
            let observed = live::observe(kernel)?.state;
            kernel::plan(kernel, &observed, &wanted).with_context(|| format!("{name}: can't be applied"))
        })?;
        return shown(&plan, None, args.output, "would be done; nothing was changed");
    }
    let standing = Standing::of_this_thread();
    standing.check_may_change_networks()?;
    let stop = Stop::listen(standing.ignored_signals())?;
    let manner = Manner { verify: !args.no_verify, patience: Duration::from_secs(args.timeout) };
    let (plan, recovered) = args.place.inside(|kernel| {
        let store = Store::lock(args.place.state_dir(), Identity::here()?)?;
        let mut progress = Progress::new();
        let mut hear = |event: Event<'_>| {
            match &event {
                Event::Recovering => stop.hold(),
                Event::Planned(plan) if !plan.is_empty() => stop.hold(),
                _ => {}
            }
            progress.hear(&event);
        };
        let applied = transaction::apply(kernel, &store, &wanted, manner, &mut hear, &|| stop.is_asked());
        progress.end();
        let plan = applied.map_err(|error| explain(error, &name, &store))?;
        Ok((plan, progress.recovered))
    })?;
    let done = if args.no_verify { "done, not verified" } else { "done and verified" };
    answer(&plan, recovered.as_ref(), args.output, done)?;
    Ok(String::new())
}

/// Whoever can't hear the answer has to know all the same that the host has changed.
fn answer(plan: &Plan, recovered: Option<&Recovered>, form: Shown, done: &str) -> anyhow::Result<()> {
    output::answer(&shown(plan, recovered, form, done)?).map_err(|error| {
        if plan.is_empty() {
            return error;
        }
        output::note(&format!("{plan}\n"));
        error.context(format!("the change is applied ({}), but that can't be said", count(plan, done)))
    })
}

fn shown(plan: &Plan, recovered: Option<&Recovered>, form: Shown, end: &str) -> anyhow::Result<String> {
    match form.format() {
        Some(format) => {
            let mut value = serde_json::to_value(plan)?;
            if let Some((recovered, object)) = recovered.zip(value.as_object_mut()) {
                object.insert("recovered".to_owned(), serde_json::to_value(recovered)?);
            }
            output::document(&value, format)
        }
        None if plan.is_empty() => Ok(format!("{plan}\n")),
        None => Ok(format!("{plan}\n\n{}\n", count(plan, end))),
    }
}

fn count(plan: &Plan, end: &str) -> String {
    format!("{} {} {end}", plan.len(), if plan.len() == 1 { "step" } else { "steps" })
}

/// What went wrong, and then how the host was left: the last thing a person reads is what matters most.
fn explain(error: ApplyError, file: &str, store: &Store) -> anyhow::Error {
    let checkpoint = store.path().to_owned();
    match error {
        ApplyError::Failed { fault, reverted } => {
            anyhow::Error::new(Aftermath { reverted, checkpoint, cause: anyhow::Error::new(*fault) })
        }
        ApplyError::Recover { reverted } => {
            let cause = anyhow::anyhow!("a change that was cut off earlier comes first");
            anyhow::Error::new(Aftermath { reverted, checkpoint, cause })
        }
        ApplyError::Unrecoverable { source } => {
            let at = checkpoint.display().to_string();
            anyhow::Error::new(ApplyError::Unrecoverable { source }).context(at)
        }
        ApplyError::Plan(error) => anyhow::Error::new(error).context(format!("{file}: can't be applied")),
        other => other.into(),
    }
}

fn aftermath(reverted: &Reverted, checkpoint: &std::path::Path) -> String {
    let whole = reverted.is_over() && reverted.lost.is_empty();
    let mut text = if whole { "not applied; " } else { "not applied, and " }.to_owned();
    text.push_str(&reverted.outcome().join("\n"));
    if !whole && reverted.aside.is_none() {
        let at = checkpoint.display();
        let _ = write!(text, "\nthe next 'berth apply' tries again; what was before is in {at}");
    }
    text
}
