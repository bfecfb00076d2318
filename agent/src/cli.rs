//! The command line: a file per verb.
//!
//! Owns arguments, what is printed and exit codes: 0 done, 1 refused or failed, 2 used wrongly. Answers go to stdout,
//! warnings and errors to stderr, an error's whole chain once. `show` looks at this host, `apply`
//! and `boot` change it, `serve`, `controller` and `agent` run until they are stopped, `demo` shows it all; `pool`, `policy` and `node` ask
//! an API; the rest works on files: no cluster, no root, nothing is changed.
//!
//! Under the name `kubectl-berth` it is kubectl's plugin, `kubectl berth …`, and says so in its help.

mod agent;
mod apply;
mod boot;
mod client;
mod cluster;
mod completions;
mod controller;
mod crds;
mod demo;
mod desired;
mod input;
mod live;
mod look;
mod manifest;
mod node;
mod output;
mod plan;
mod policy;
mod pool;
mod render;
mod run;
mod serve;
mod settings;
mod show;
mod terminal;

use std::fmt;
use std::net::IpAddr;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use thiserror::Error;

/// Berth gives every host its own static address from a shared pool.
#[derive(Debug, Parser)]
#[command(name = "berth", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  berth show
  berth apply -f desired.yaml
  berth render -f policy.yaml --current state.yaml --pool pool.yaml --node node01
  berth plan -f desired.yaml --current state.yaml
  berth pool ls
  berth pool show traffic-1
  berth policy preview -f policy.yaml
  berth node ls
  berth crds | kubectl apply -f -
  berth serve --state-dir /var/lib/berth/api
  berth agent --node node01
  berth demo

A file argument of '-' is standard input.
Exit codes: 0 done, 1 refused or failed, 2 used wrongly.";

#[derive(Debug, Subcommand)]
enum Verb {
    Show(show::Args),
    Apply(apply::Args),
    Plan(plan::Args),
    Render(render::Args),
    Pool(pool::Args),
    Policy(policy::Args),
    Node(node::Args),
    Crds(crds::Args),
    Serve(serve::Args),
    Controller(controller::Args),
    Agent(agent::Args),
    Boot(boot::Args),
    Demo(demo::Args),
    Completions(completions::Args),
}

/// What was asked for can't be: the arguments, not the files, are wrong.
#[derive(Debug, Error)]
enum UsageError {
    #[error("'-' is standard input, and can be given only once")]
    StdinTwice,
    #[error("capture {capture:?} asks pool {pool} for an address: say for which node with --node NAME{}", Unproven(.unproven))]
    NodeMissing { capture: String, pool: String, unproven: Option<String> },
    #[error("--node-labels: {key} is given twice")]
    LabelTwice { key: String },
    #[error("{path}: {ip} is pool {pool}'s: say for which node with --node NAME")]
    NodeOfLiteral { path: String, ip: IpAddr, pool: String },
    #[error("capture {capture:?} looks at the host's network: give its state with --current FILE")]
    CurrentMissing { capture: String },
    #[error("pool {pool} has several ranges, each with offsets of its own: say which with --range ({})", .ranges.join(", "))]
    RangeMissing { pool: String, ranges: Vec<String> },
    #[error("no range is called {range}; there is: {}", .known.join(", "))]
    NoSuchRange { range: String, known: Vec<String> },
    #[error(
        "--write-kubeconfig: kubectl can't speak to a unix socket; add --listen 127.0.0.1:0, or use curl --unix-socket PATH"
    )]
    KubeconfigOfSocket,
    #[error("say which Node this host is, with --node NAME, NODE_NAME or 'node' in --config")]
    NodeUnnamed,
    #[error("--standalone has an API of its own: it takes no --kubeconfig")]
    StandaloneElsewhere,
    #[error("nobody is there to be asked (standard input is no terminal): say --yes if it is meant")]
    Unconfirmed,
    #[error("say which pool, or --all")]
    PoolMissing,
    #[error("either pools or --all, not both")]
    PoolAndAll,
    #[error("no kind is called {name}; there is: {}", .known.join(", "))]
    NoSuchKind { name: String, known: Vec<&'static str> },
}

/// Why a file of captured states doesn't say which address a capture has.
struct Unproven<'a>(&'a Option<String>);

impl fmt::Display for Unproven<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(file) => write!(f, "\n{file} has a state for it, but {}", render::UNPROVEN),
        }
    }
}

/// The whole command line, for whoever writes man pages and completions of it.
pub fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

/// Runs the program with the arguments of the process.
pub fn run() -> ExitCode {
    let done = settings::parse().and_then(|args| match args.verb {
        Verb::Show(args) => show::run(&args),
        Verb::Apply(args) => apply::run(&args),
        Verb::Render(args) => render::run(&args),
        Verb::Plan(args) => plan::run(&args),
        Verb::Pool(args) => pool::run(&args),
        Verb::Policy(args) => policy::run(&args),
        Verb::Node(args) => node::run(&args),
        Verb::Crds(args) => crds::run(&args),
        Verb::Serve(args) => serve::run(&args),
        Verb::Controller(args) => controller::run(&args),
        Verb::Agent(args) => agent::run(&args),
        Verb::Boot(args) => boot::run(&args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Completions(args) => Ok(completions::run(&args)),
    });
    match done.and_then(|text| output::answer(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            if error.is::<UsageError>() {
                output::hint("For more information, try '--help'.");
                return ExitCode::from(2);
            }
            ExitCode::FAILURE
        }
    }
}
