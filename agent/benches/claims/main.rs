//! A crowd asks one pool at once, on a real API server: how long until the last has its address, and what it costs the server.
//! `make bench BENCH=claims`; as root. With a number (`claims 64`) one crowd of that size instead of the two, and with letters
//! besides (`claims 64 bf`) only these rows, with (e) and (a).
//!
//! The agents are the real ones, each in a network namespace without a card, with a token bound to its Node and the rights and
//! admission of `deploy`; all of them in this process. (a) A controller serves them; (b) there is none, so they serve themselves.
//! Beside that, in the same run and on the same server: (c) the naive way, where everybody reads the pool, takes the first
//! free address and writes it back until that is taken; (d) the same by one client, one claim after the other; (e) so many
//! small objects created at once, which is the least that an API server can be asked for, by an administrator, whom it never lets wait;
//! then by the agents, whom it lets wait (`deploy/base/flow.yaml`), and of a kind without any rule. (f) The pool is cut into slices, and every
//! host takes its own: a block of sixteen addresses, or an object per address. (g) The same as far as the ledger: each host has asked
//! and makes its slice, which holds the address from then on; what is left out is that its enactment comes to be and says so. Both (e)
//! and (g) are over in a moment, so each is done [`ROUNDS`] times, and the one in the middle is shown.
//!
//! `make bench BENCH=fleet`: five thousand such agents on the embedded API, in memory, which is for the bytes and not for the times: what
//! each host reads, writes and watches when it starts, when it claims, and at rest.
//!
//! Times are from the creation of the policy until a watch shows the address in the enactment; requests and the API server's
//! CPU are counted until every host is through. Nothing fails on a slow machine; an address that two have, a claim that is
//! refused, or a 504 does.

mod count;
mod crowd;
mod ground;
mod lone;
mod plain;

use std::time::{Duration, Instant};

use agent::embedded;
use agent::telemetry::{self, Form, Level};
use anyhow::{Context, Result, ensure};
use api_tests::cluster::Cluster;
use api_tests::control_plane::{Disk, Options};
use kube::Client;

use count::{Counted, Server, Spent};
use crowd::{Crowd, Grants, Pools};
use ground::Ground;
use plain::Small;

/// Few enough for the naive way, and as many as a large cluster has.
const CROWDS: [usize; 2] = [256, 1_000];
const MOST_NAIVE: usize = 256;
const POOLS: usize = 10;
const ROWS: &str = "abcdfg";
/// What is over in a moment is done so often: an odd number has a middle.
const ROUNDS: usize = 9;
/// Between two of them, so that none is about what the one before left to be done.
const BREATH: Duration = Duration::from_secs(1);
/// Bits of a slice of a /28.
const SLICE: u8 = 4;
/// Nodes of a fleet, and how long it is watched at rest.
const FLEET: usize = 5_000;
const FILES: u64 = 10;
const AT_REST: Duration = Duration::from_secs(60);
/// So many times as long as the controller took, the naive way is given.
const NAIVE: f64 = 30.0;

fn main() -> Result<()> {
    // Cargo adds `--bench`; a name that isn't this table's is for another program.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_asked = |table: &str| args.first().is_none_or(|arg| arg == table);
    if !is_asked("claims") && !is_asked("fleet") {
        return Ok(());
    }
    ensure!(nix::unistd::geteuid().is_root(), "the tables 'claims' and 'fleet' need root");
    telemetry::set(Level::Error, Form::Human);
    if is_asked("fleet") {
        let many = args.get(1).map(|number| number.parse()).transpose()?.unwrap_or(FLEET);
        let runtime = runtime()?;
        runtime.block_on(fleet(many))?;
        // Thousands of agents have nobody to say goodbye to.
        runtime.shutdown_background();
    }
    if !is_asked("claims") {
        return Ok(());
    }
    let crowds = match args.get(1) {
        Some(number) => vec![number.parse()?],
        None => CROWDS.to_vec(),
    };
    let cluster = Cluster::start(&Options { disk: Disk::Durable, ..Options::default() });
    let cluster: &'static Cluster = Box::leak(Box::new(cluster));
    let runtime = runtime()?;
    let rows = args.get(2).map_or(ROWS, String::as_str);
    let measured = runtime.block_on(measure(cluster, &crowds, rows));
    drop(runtime);
    cluster.plane.stop();
    measured
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// What each of so many hosts reads, writes and watches.
async fn fleet(many: usize) -> Result<()> {
    use nix::sys::resource::{Resource, setrlimit};
    // Each has its namespace, sockets and lock.
    let files = many as u64 * FILES + 1_000;
    setrlimit(Resource::RLIMIT_NOFILE, files, files)
        .with_context(|| format!("{files} open files; see ulimit -Hn"))?;
    let ground = Ground::Embedded(Box::leak(Box::new(embedded::Api::in_memory())));
    let counted = Counted::default();
    let mut crowd = Crowd::new(ground, counted.clone());
    crowd.grow(many).await?;
    println!("{many} hosts, each: when it starts: {}", counted.take().each(many));
    crowd.lead().await;
    for bits in [SLICE, 0] {
        let pools = Pools::sliced(1, bits);
        let grants = crowd.ask(pools).await?;
        let spent = counted.take();
        println!("  a slice /{} and an address: {}", 32 - bits, spent.each(grants.len()));
        println!("    {}", spent.kinds(grants.len()));
        tokio::time::sleep(AT_REST).await;
        println!("  at rest, {} s: {}", AT_REST.as_secs(), counted.take().each(many));
        crowd.let_go(pools).await?;
        println!("  let go: {}", counted.take().each(many));
    }
    Ok(())
}

async fn measure(cluster: &'static Cluster, crowds: &[usize], rows: &str) -> Result<()> {
    let counted = Counted::default();
    let ground = Ground::Real(cluster);
    let server = Server::of(ground);
    let mut crowd = Crowd::new(ground, counted.clone());
    plain::define(cluster).await?;
    println!("{}", head());
    for &many in crowds {
        let clients = plain::clients(cluster, &counted, many).await?;
        let limit = creates(&server, &counted, &clients, cluster, Small::Builtin).await?;
        limit.print(many, "e: so many objects, created", None);
        if rows.contains('d') {
            let alone =
                Measured::of(&server, &counted, || plain::one_by_one(cluster, &counted, many)).await?;
            alone.print(many, "d: one after the other", Some(&limit));
        }
        crowd.grow(many).await?;
        let custom = creates(&server, &counted, &crowd.clients(), cluster, Small::Custom).await?;
        custom.print(many, "e: by agents, of another kind", Some(&limit));
        crowd.lead().await;
        let one = Pools::shared(1);
        let served = Measured::of(&server, &counted, || crowd.ask(one)).await?;
        served.print(many, "a: by the controller", Some(&limit));
        crowd.let_go(one).await?;
        if rows.contains('a') && many <= MOST_NAIVE {
            let ten = Pools::shared(POOLS);
            let of_each = Measured::of(&server, &counted, || crowd.ask(ten)).await?;
            of_each.print(many, &format!("a: of {POOLS} pools each"), Some(&limit));
            crowd.let_go(ten).await?;
        }
        if rows.contains('f') {
            slices(&server, &counted, &crowd, many, &limit).await?;
        }
        if rows.contains('g') {
            for bits in [SLICE, 0] {
                let pools = Pools::sliced(1, bits);
                let lone =
                    Measured::in_the_middle(&server, &counted, || crowd.cut(pools), || crowd.uncut(pools))
                        .await?;
                lone.print(many, &format!("g: a slice /{} and no more", 32 - bits), Some(&limit));
                println!(
                    "       {:.1} times as long as the same agents take for objects of another kind",
                    lone.wall() / custom.wall()
                );
                crowd.end(pools).await?;
            }
        }
        crowd.unled(one).await?;
        if rows.contains('b') {
            let themselves = Measured::of(&server, &counted, || crowd.ask(one)).await?;
            themselves.print(many, "b: by themselves", Some(&limit));
            crowd.let_go(one).await?;
        }
        if rows.contains('c') && many <= MOST_NAIVE {
            let patience = Duration::from_secs_f64(served.wall() * NAIVE);
            let naive = || plain::naive(cluster, &counted, many, patience);
            let naive = Measured::of(&server, &counted, naive).await?;
            naive.print(many, "c: read, take, write", Some(&limit));
            match naive.grants.len() {
                all if all == many => {
                    println!("       (a) is {:.0} times as fast as (c)", naive.wall() / served.wall());
                }
                through => println!(
                    "       (c) was given {NAIVE} times as long as (a) took, {:.0} s: {through} of {many} were through",
                    patience.as_secs_f64()
                ),
            }
        }
    }
    Ok(())
}

async fn creates(
    server: &Server,
    counted: &Counted,
    clients: &[Client],
    cluster: &Cluster,
    small: Small,
) -> Result<Measured> {
    let create = || plain::creates(clients, small);
    Measured::in_the_middle(server, counted, create, || plain::tidy(cluster, small)).await
}

/// Of sliced pools every host serves itself, led or not: blocks of sixteen, an object per address, and many pools.
async fn slices(
    server: &Server,
    counted: &Counted,
    crowd: &Crowd,
    many: usize,
    limit: &Measured,
) -> Result<()> {
    let each = (many <= MOST_NAIVE).then_some((POOLS, SLICE));
    for (pools, bits) in [(1, SLICE), (1, 0)].into_iter().chain(each) {
        let asked = Pools::sliced(pools, bits);
        let cut = Measured::of(server, counted, || crowd.ask(asked)).await?;
        let of = if pools > 1 { format!(", of {pools} pools each") } else { String::new() };
        cut.print(many, &format!("f: slices /{}{of}", 32 - bits), Some(limit));
        crowd.let_go(asked).await?;
    }
    Ok(())
}

/// What a crowd's claims took.
struct Measured {
    grants: Grants,
    spent: Spent,
    /// Of the API server.
    cpu: Duration,
    /// Its 429s.
    sent_away: u64,
}

impl Measured {
    async fn of<F: Future<Output = Result<Grants>>>(
        server: &Server,
        counted: &Counted,
        ask: impl FnOnce() -> F,
    ) -> Result<Self> {
        counted.take();
        let before = server.used().await?;
        let mut grants = ask().await?;
        let after = server.used().await?;
        grants.sort();
        ensure!(!grants.is_empty(), "nobody was served");
        let spent = counted.take();
        let gave_up = after.gave_up - before.gave_up;
        ensure!(gave_up == 0, "the API server gave up {gave_up} times (504): {}", spent.troubles());
        let (cpu, sent_away) = (after.cpu.saturating_sub(before.cpu), after.sent_away - before.sent_away);
        Ok(Self { grants, spent, cpu, sent_away })
    }

    /// Of several, each tidied up after.
    async fn in_the_middle<F: Future<Output = Result<Grants>>, T: Future<Output = Result<()>>>(
        server: &Server,
        counted: &Counted,
        ask: impl Fn() -> F,
        tidy: impl Fn() -> T,
    ) -> Result<Self> {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push(Self::of(server, counted, &ask).await?);
            tidy().await?;
            tokio::time::sleep(BREATH).await;
        }
        rounds.sort_by(|one, other| one.wall().total_cmp(&other.wall()));
        Ok(rounds.swap_remove(ROUNDS / 2))
    }

    fn wall(&self) -> f64 {
        self.grants.last().map_or(0.0, Duration::as_secs_f64)
    }

    /// `limit`: what so many small objects take.
    fn print(&self, many: usize, what: &str, limit: Option<&Measured>) {
        let at = |percent: usize| self.grants[(self.grants.len() - 1) * percent / 100].as_secs_f64();
        let per = |number: u64| number as f64 / self.grants.len() as f64;
        let ratio = limit.map_or(1.0, |limit| self.wall() / limit.wall());
        println!(
            "{many:>5}  {what:28}  {:>7.2} s  {:>7.2} s  {:>7.2} s  {ratio:>7.1} x  {:>6.1}  {:>6.1}  {:>8.1}  {:>6.1} s  {}",
            self.wall(),
            at(50),
            at(99),
            per(self.spent.writes),
            per(self.spent.reads),
            per(self.spent.bytes) / 1024.0,
            self.cpu.as_secs_f64(),
            self.spent.troubles(),
        );
        let kib = |bytes: u64| per(bytes) / 1024.0;
        let (answered, watched) = (kib(self.spent.answered), kib(self.spent.watched));
        println!(
            "       each: {answered:.1} KiB answered, {watched:.1} KiB watched: {}; {} × 429, no 504",
            self.spent.kinds(self.grants.len()),
            self.sent_away,
        );
    }
}

fn head() -> String {
    format!(
        "{:>5}  {:28}  {:>9}  {:>9}  {:>9}  {:>9}  {:>6}  {:>6}  {:>8}  {:>8}  answers that were no",
        "hosts", "claims", "last", "p50", "p99", "of limit", "writes", "reads", "KiB", "CPU"
    )
}

/// What is under way, for whoever waits.
fn progress(begun: Instant, what: &str) {
    eprintln!("    {:>4} s  {what}", begun.elapsed().as_secs());
}
