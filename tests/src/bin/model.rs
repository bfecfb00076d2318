//! The model check, run by hand or by `make soak`: every set of faults within the bounds given. Exit 1 on a
//! violation, 2 where there is nothing to check, 3 where a run stopped at its bound. docs/model-check.md says what has
//! been run so far.
//!
//! `model [--soak] [--faults N] [--only FAULT[,FAULT]] [--hosts N] [--addresses N] [--captures N] [--peeks N]
//! [--self-service] [--states N] [--threads N]`
//!
//! `model --sliced [--faults N] [--only FAULT[,FAULT]] [--hosts N] [--states N] [--threads N]`: the world of sliced pools.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use berth_tests::model::{Bounds, Config, Fault, NoSuchFault, check_all, side_by_side, sliced};

#[derive(Clone)]
struct Args {
    faults: Option<usize>,
    only: Vec<Fault>,
    sliced: bool,
    only_sliced: Vec<sliced::Fault>,
    hosts: usize,
    addresses: u8,
    captures: usize,
    peeks: u8,
    self_service: bool,
    states: usize,
    threads: usize,
    soak: bool,
}

impl Args {
    fn new() -> Self {
        Self {
            faults: None,
            only: Vec::new(),
            sliced: false,
            only_sliced: Vec::new(),
            hosts: 2,
            addresses: 1,
            captures: 1,
            peeks: 1,
            self_service: false,
            states: 20_000_000,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            soak: false,
        }
    }

    /// The worlds asked for.
    fn configs(&self) -> Vec<Config> {
        let sets = Fault::sets().into_iter().filter(|faults| self.wants(faults));
        let config = |faults: Vec<Fault>| {
            let config = Config::with_captures(self.captures, self.hosts, self.addresses, &faults);
            config.old_copies(self.peeks).self_service(self.self_service)
        };
        sets.map(config).collect()
    }

    /// The worlds of sliced pools that are asked for; without what an administrator confirms, which is known not to hold.
    fn sliced_configs(&self) -> Vec<sliced::Config> {
        let sets = sliced::Fault::sets().into_iter().filter(|faults| {
            let number = self.faults.is_none_or(|number| faults.len() == number);
            let is_known = faults.contains(&sliced::Fault::SliceConfirmed) && self.only_sliced.is_empty();
            number && !is_known && self.only_sliced.iter().all(|fault| faults.contains(fault))
        });
        let worlds = sets.flat_map(|faults| {
            [1, 2].map(|blocks| {
                let states = self.states.min(SLICED_STATES);
                sliced::Config { states, ..sliced::Config::new(self.hosts, blocks, &faults) }
            })
        });
        worlds
            .filter(sliced::Config::may_happen)
            .flat_map(|world| [world.clone(), sliced::Config { unsliced_before: true, ..world }])
            .collect()
    }

    fn wants(&self, faults: &[Fault]) -> bool {
        let number = self.faults.is_none_or(|number| faults.len() == number);
        number && self.only.iter().all(|fault| faults.contains(fault))
    }

    /// Everything that `make test` leaves out, the cheap first.
    fn soak(&self) -> Vec<Config> {
        let base = |faults| Self { faults: Some(faults), ..self.clone() };
        let all = [
            Self { peeks: 2, ..base(1) },
            Self { self_service: true, peeks: 0, ..base(2) },
            Self { addresses: 2, ..base(1) },
            Self { addresses: 2, captures: 2, ..base(1) },
            Self { hosts: 3, ..base(1) },
            Self { addresses: 2, peeks: 0, ..base(2) },
            Self { addresses: 2, captures: 2, peeks: 0, ..base(2) },
            Self { hosts: 3, peeks: 0, ..base(2) },
            Self { hosts: 3, addresses: 2, peeks: 0, ..base(1) },
            Self { self_service: true, ..base(2) },
            base(2),
        ];
        all.iter().flat_map(Self::configs).collect()
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
    let shared = match (args.soak, args.sliced) {
        (true, _) => args.soak(),
        (false, true) => Vec::new(),
        (false, false) => args.configs(),
    };
    let sliced = if args.soak || args.sliced { args.sliced_configs() } else { Vec::new() };
    if shared.is_empty() && sliced.is_empty() {
        eprintln!("error: no set of faults is as --faults and --only say: nothing to check");
        return ExitCode::from(2);
    }
    match run_sliced(&sliced, &args).and_then(|bounded| Some(bounded + run(shared, &args)?)) {
        None => ExitCode::FAILURE,
        Some(0) => ExitCode::SUCCESS,
        Some(runs) => {
            println!("{runs} runs stopped at their bound: not every state was visited");
            ExitCode::from(3)
        }
    }
}

/// Checks every world; how many runs stopped at their bound, or `None` on a violation.
fn run(configs: Vec<Config>, args: &Args) -> Option<usize> {
    let runs = configs.len();
    if runs == 0 {
        return Some(0);
    }
    println!("{runs} runs, at most {} states each, {} at a time", args.states, args.threads);
    let (states, unfinished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let violated = AtomicBool::new(false);
    let worlds: Vec<(Config, Bounds)> =
        configs.into_iter().map(|config| (config, Bounds { states: args.states })).collect();
    check_all(&worlds, args.threads, |config, report, took| {
        println!("{config}: {report}, {:.1} s", took.as_secs_f64());
        states.fetch_add(report.states, Ordering::Relaxed);
        unfinished.fetch_add(usize::from(!report.complete), Ordering::Relaxed);
        if let Some(violation) = &report.violation {
            println!("{violation}");
            violated.store(true, Ordering::Relaxed);
        }
        report.violation.is_none()
    });
    if violated.into_inner() {
        return None;
    }
    println!("{runs} runs, {} states, no violation", states.into_inner());
    Some(unfinished.into_inner())
}

/// The same of sliced pools.
fn run_sliced(worlds: &[sliced::Config], args: &Args) -> Option<usize> {
    if worlds.is_empty() {
        return Some(0);
    }
    let (states, unfinished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let violated = AtomicBool::new(false);
    side_by_side(worlds, args.threads, sliced::check, |config, report, took| {
        println!("slices {config}: {report}, {:.1} s", took.as_secs_f64());
        states.fetch_add(report.states, Ordering::Relaxed);
        unfinished.fetch_add(usize::from(!report.whole), Ordering::Relaxed);
        if let Some(violation) = &report.violation {
            println!("{violation}");
            violated.store(true, Ordering::Relaxed);
        }
        report.violation.is_none()
    });
    if violated.into_inner() {
        return None;
    }
    println!("{} runs of sliced pools, {} states, no violation", worlds.len(), states.into_inner());
    Some(unfinished.into_inner())
}

/// All that a search keeps in memory of these is whole worlds: a few kilobytes each.
const SLICED_STATES: usize = 1_000_000;

fn parse() -> Result<Args, String> {
    let mut args = Args::new();
    let mut only = String::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| text.parse::<usize>().map_err(|_| format!("{text:?} is not a number"));
        match word.as_str() {
            "--faults" => args.faults = Some(number(value()?)?),
            "--only" => only = value()?,
            "--sliced" => args.sliced = true,
            "--hosts" => args.hosts = number(value()?)?.clamp(1, 3),
            "--addresses" => args.addresses = u8::try_from(number(value()?)?.clamp(1, 9)).unwrap_or(9),
            "--captures" => args.captures = number(value()?)?.clamp(1, 2),
            "--peeks" => args.peeks = u8::try_from(number(value()?)?.min(9)).unwrap_or(9),
            "--states" => args.states = number(value()?)?,
            "--threads" => args.threads = number(value()?)?.max(1),
            "--self-service" => args.self_service = true,
            "--soak" => args.soak = true,
            other => return Err(format!("{other}: not an option")),
        }
    }
    let names = only.split(',').filter(|name| !name.is_empty());
    if args.sliced {
        args.only_sliced = names.map(str::parse).collect::<Result<_, _>>()?;
        return Ok(args);
    }
    let faults: Result<_, NoSuchFault> = names.map(str::parse).collect();
    args.only = faults.map_err(|error| error.to_string())?;
    Ok(args)
}
