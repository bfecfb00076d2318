//! The model check, run by hand or by `make soak`: every set of faults within the bounds given. Exit 1 on a
//! violation, 3 where a run stopped at its bound.
//!
//! `model [--soak] [--faults N] [--only FAULT[,FAULT]] [--hosts N] [--addresses N] [--peeks N] [--self-service] [--states N]`

use std::process::ExitCode;
use std::time::Instant;

use berth_tests::model::{Bounds, Config, Fault, check};

struct Args {
    faults: Option<usize>,
    only: Option<Vec<String>>,
    hosts: usize,
    addresses: u8,
    peeks: u8,
    self_service: bool,
    states: usize,
    soak: bool,
}

impl Args {
    fn new(states: usize) -> Self {
        Self {
            faults: None,
            only: None,
            hosts: 2,
            addresses: 1,
            peeks: 1,
            self_service: false,
            states,
            soak: false,
        }
    }
}

fn main() -> ExitCode {
    let args = match parse() {
        Ok(args) => args,
        Err(what) => {
            eprintln!("error: {what}");
            return ExitCode::from(2);
        }
    };
    let unfinished = if args.soak { soak(args.states) } else { run(&args) };
    match unfinished {
        None => ExitCode::FAILURE,
        Some(0) => ExitCode::SUCCESS,
        Some(runs) => {
            println!("{runs} runs stopped at their bound: not every state was visited");
            ExitCode::from(3)
        }
    }
}

/// Everything: old caches in the pairs too, two addresses, self-service, three hosts.
fn soak(states: usize) -> Option<usize> {
    let all = [
        Args {
            faults: Some(1),
            addresses: 2,
            ..Args::new(states)
        },
        Args {
            faults: Some(1),
            self_service: true,
            ..Args::new(states)
        },
        Args {
            faults: Some(1),
            hosts: 3,
            peeks: 0,
            ..Args::new(states)
        },
        Args {
            faults: Some(2),
            peeks: 0,
            ..Args::new(states)
        },
        Args {
            faults: Some(2),
            ..Args::new(states)
        },
    ];
    all.iter()
        .try_fold(0, |unfinished, args| Some(unfinished + run(args)?))
}

/// Checks every set of faults; how many runs stopped at their bound, or `None` on a violation.
fn run(args: &Args) -> Option<usize> {
    println!(
        "{} hosts, {} addresses, {} old copies, self-service {}, at most {} states a run",
        args.hosts, args.addresses, args.peeks, args.self_service, args.states
    );
    let (mut runs, mut unfinished, mut states) = (0, 0, 0);
    for faults in Fault::sets().into_iter().filter(|faults| wanted(args, faults)) {
        let mut config = Config::new(args.hosts, args.addresses, &faults);
        config.peeks = args.peeks;
        config.self_service = args.self_service;
        let started = Instant::now();
        let report = check(&config, &Bounds { states: args.states });
        let names: Vec<String> = faults.iter().map(Fault::to_string).collect();
        println!(
            "{:<36} {:>9} states {:>10} moves  depth {:>3}  {:<8} {:>6.1} s",
            names.join(" + "),
            report.states,
            report.moves,
            report.depth,
            if report.complete { "all" } else { "bounded" },
            started.elapsed().as_secs_f64()
        );
        if let Some(violation) = report.violation {
            println!("{violation}");
            return None;
        }
        runs += 1;
        unfinished += usize::from(!report.complete);
        states += report.states;
    }
    println!("{runs} runs, {states} states, no violation");
    Some(unfinished)
}

fn wanted(args: &Args, faults: &[Fault]) -> bool {
    let number = args.faults.is_none_or(|number| faults.len() == number);
    let names: Vec<String> = faults.iter().map(Fault::to_string).collect();
    number
        && args
            .only
            .as_ref()
            .is_none_or(|only| only.iter().all(|name| names.contains(name)))
}

fn parse() -> Result<Args, String> {
    let mut args = Args::new(5_000_000);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| {
            text.parse::<usize>()
                .map_err(|_| format!("{text:?} is not a number"))
        };
        match word.as_str() {
            "--faults" => args.faults = Some(number(value()?)?),
            "--only" => args.only = Some(value()?.split(',').map(str::to_owned).collect()),
            "--hosts" => args.hosts = number(value()?)?.clamp(1, 3),
            "--addresses" => args.addresses = u8::try_from(number(value()?)?.clamp(1, 9)).unwrap_or(9),
            "--peeks" => args.peeks = u8::try_from(number(value()?)?.min(9)).unwrap_or(9),
            "--states" => args.states = number(value()?)?,
            "--self-service" => args.self_service = true,
            "--soak" => args.soak = true,
            other => return Err(format!("{other}: not an option")),
        }
    }
    Ok(args)
}
