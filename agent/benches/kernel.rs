//! The kernel's side, as a person runs it: `berth show` and `berth apply` on 1, 64 and 500 veths with an IPv4 and an IPv6
//! address each, in a network namespace of its own. `make bench BENCH=kernel`; as root.
//!
//! `nmstatectl` (kernel-only, `-k`) is the baseline of the same run where it is on PATH; where it isn't, that is said.
//! Each figure is the median of a few runs, each in a process of its own. Duplicate address detection is off: the peer
//! doesn't wait for it, and waiting is not work.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agent::checkpoint::Store;
use agent::kernel::Live;
use agent::netns::{Identity, Namespace};
use agent::transaction::{Manner, apply};
use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};

const BERTH: &str = env!("CARGO_BIN_EXE_berth");
const NUMBERS: [usize; 3] = [1, 64, 500];
const RUNS: usize = 5;
/// Says to run the rest of the arguments and print what they took.
const CHILD: &str = "--measure";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == CHILD) {
        return child(&args[1..]);
    }
    // Cargo adds `--bench`; a name that isn't this table's is for another program.
    if args.iter().any(|arg| !arg.starts_with('-') && arg != "kernel") {
        return Ok(());
    }
    ensure!(nix::unistd::geteuid().is_root(), "the table 'kernel' needs root");
    let peer = Command::new("nmstatectl").arg("version").stdout(Stdio::null()).status().is_ok();
    if !peer {
        println!("kernel: nmstatectl is not on PATH: NO BASELINE, the columns beside it stay empty");
    }
    println!(
        "{:32}  {:>9}  {:>9}  {:>9}  {:>8}  {:>8}  {:>9}",
        "kernel", "wall", "cpu", "peak RSS", "requests", "wall x", "goal"
    );
    for number in NUMBERS {
        table(number, peer)?;
    }
    Ok(())
}

/// What a run took.
#[derive(Clone, Copy, Debug)]
struct Took {
    wall: Duration,
    cpu: Duration,
    /// In KiB.
    peak: i64,
}

/// Runs a command and prints what it took, as the only child of this process.
fn child(args: &[String]) -> Result<()> {
    let (program, args) = args.split_first().context("what to measure")?;
    let begin = Instant::now();
    let output = Command::new(program).args(args).output()?;
    let wall = begin.elapsed();
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    let used = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = |t: nix::sys::time::TimeVal| t.tv_sec() * 1_000_000 + t.tv_usec();
    println!("{} {} {}", wall.as_micros(), time(used.user_time()) + time(used.system_time()), used.max_rss());
    Ok(())
}

fn measured(line: &[&str]) -> Result<Took> {
    let output = Command::new(std::env::current_exe()?).arg(CHILD).args(line).output()?;
    ensure!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [wall, cpu, peak] = numbers.as_slice() else { anyhow::bail!("{text:?}") };
    Ok(Took {
        wall: Duration::from_micros(*wall),
        cpu: Duration::from_micros(*cpu),
        peak: i64::try_from(*peak)?,
    })
}

fn median(mut runs: Vec<Took>) -> Took {
    runs.sort_by_key(|took| took.wall);
    runs[runs.len() / 2]
}

/// A namespace with that many veths, gone when dropped.
struct Ground {
    name: String,
    folder: std::path::PathBuf,
}

impl Ground {
    fn new(number: usize) -> Result<Self> {
        let name = format!("berth-bench-{}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder)?;
        run("ip", &["netns", "add", &name])?;
        let ground = Self { name, folder };
        let switches = "for f in default all; do echo 0 > /proc/sys/net/ipv6/conf/$f/accept_dad; done";
        run("ip", &["netns", "exec", &ground.name, "sh", "-c", switches])?;
        for pair in 0..number.div_ceil(2) {
            let line = format!("link add v{} type veth peer name v{}", 2 * pair, 2 * pair + 1);
            run("ip", &[&["-n", &ground.name], line.split(' ').collect::<Vec<_>>().as_slice()].concat())?;
        }
        // The other end of an odd one is in no document; while it is down, nmstatectl doesn't take this end for up.
        if number % 2 == 1 {
            run("ip", &["-n", &ground.name, "link", "set", &format!("v{number}"), "up"])?;
        }
        Ok(ground)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = run("ip", &["netns", "del", &self.name]);
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

fn run(program: &str, args: &[&str]) -> Result<()> {
    let output = Command::new(program).args(args).output()?;
    ensure!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn document(number: usize) -> Value {
    let link = |n: usize| {
        let (high, low) = (n / 250, n % 250);
        json!({
            "name": format!("v{n}"), "type": "veth", "state": "up",
            "ipv4": {"enabled": true, "address": [{"ip": format!("10.{high}.{low}.1"), "prefix-length": 24}]},
            "ipv6": {"enabled": true, "address": [{"ip": format!("fd00:{n:x}::1"), "prefix-length": 64}]},
        })
    };
    json!({"interfaces": (0..number).map(link).collect::<Vec<_>>()})
}

/// How a program is asked for each of the three.
fn lines<'a>(ground: &'a Ground, file: &'a str, folder: &'a str, peer: bool) -> [Vec<&'a str>; 2] {
    match peer {
        false => [
            vec![BERTH, "apply", "-f", file, "--netns", &ground.name, "--state-dir", folder],
            vec![BERTH, "show", "--netns", &ground.name],
        ],
        true => [
            vec!["ip", "netns", "exec", &ground.name, "nmstatectl", "apply", "-k", file],
            vec!["ip", "netns", "exec", &ground.name, "nmstatectl", "show", "-k"],
        ],
    }
}

/// First apply, an apply with nothing to do, a show: each `RUNS` times, each time on a fresh namespace.
fn figures(number: usize, peer: bool) -> Result<[Took; 3]> {
    let mut took = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        let ground = Ground::new(number)?;
        let file = ground.folder.join("desired.json");
        std::fs::write(&file, document(number).to_string())?;
        let (file, folder) = (file.to_str().context("path")?, ground.folder.to_str().context("path")?);
        let [apply, show] = lines(&ground, file, folder, peer);
        took[0].push(measured(&apply)?);
        took[1].push(measured(&apply)?);
        took[2].push(measured(&show)?);
    }
    Ok(took.map(median))
}

/// Netlink requests of the first apply, of one with nothing to do, and of a look.
fn requests(number: usize) -> Result<[u64; 3]> {
    let ground = Ground::new(number)?;
    let namespace = Namespace::Named(ground.name.clone());
    let one = |folder: &Path| -> Result<u64> {
        let mut live = Live::open(&namespace)?;
        let store = Store::lock(folder, Identity::here()?)?;
        let manner = Manner { verify: true, patience: Duration::from_secs(10) };
        apply(&mut live, &store, &document(number), manner, &mut |_| {}, &|| false)?;
        Ok(live.sent())
    };
    let look = || -> Result<u64> {
        let mut live = Live::open(&namespace)?;
        agent::kernel::Kernel::observe(&mut live)?;
        Ok(live.sent())
    };
    let folder = ground.folder.as_path();
    Ok([namespace.inside(|| one(folder))??, namespace.inside(|| one(folder))??, namespace.inside(look)??])
}

fn table(number: usize, peer: bool) -> Result<()> {
    let ours = figures(number, false)?;
    let theirs = if peer { Some(figures(number, true)?) } else { None };
    let requests = requests(number)?;
    for (at, what) in ["first apply", "apply, nothing to do", "show"].into_iter().enumerate() {
        let least = [10.0, 30.0, 0.0][at];
        let ratio = theirs.map(|theirs| theirs[at].wall.as_secs_f64() / ours[at].wall.as_secs_f64());
        let goal = match ratio {
            Some(ratio) if least > 0.0 && number > 1 => {
                format!("{least:.0} x {}", if ratio >= least { "met" } else { "MISSED" })
            }
            _ => String::new(),
        };
        print(&format!("{number:>3} veths, {what}"), ours[at], Some(requests[at]), ratio, &goal);
        if let Some(theirs) = theirs {
            print("           nmstatectl", theirs[at], None, None, "");
        }
    }
    Ok(())
}

fn print(what: &str, took: Took, requests: Option<u64>, ratio: Option<f64>, goal: &str) {
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let peak = format!("{:.1} MiB", took.peak as f64 / 1024.0);
    let requests = requests.map(|n| n.to_string()).unwrap_or_default();
    let ratio = ratio.map(|ratio| format!("{ratio:.1}")).unwrap_or_default();
    println!(
        "{what:32}  {:>9}  {:>9}  {peak:>9}  {requests:>8}  {ratio:>8}  {goal:>9}",
        ms(took.wall),
        ms(took.cpu)
    );
}
