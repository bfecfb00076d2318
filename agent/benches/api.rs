//! The embedded API, in process and without a network: `make bench BENCH=api`. Durable and in memory, each figure in a
//! process of its own, so that memory is that figure's alone.
//!
//! Writes are made by as many tasks as the row says; what is alone waits for its own sync, what comes together shares
//! one. A watcher's delay is from before the write is sent to its event being read.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use agent::embedded::{Answer, Api};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::http::Request;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::ServiceExt;

const ENACTMENTS: &str = "/apis/nmstate.io/v1beta1/nodenetworkconfigurationenactments";
/// As many as the largest cluster that Berth is made for has nodes.
const OBJECTS: usize = 5000;
const WATCHERS: usize = 100;
/// Says which figure this process is to take.
const CHILD: &str = "--figure";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, figure, dir] = args.as_slice()
        && flag == CHILD
    {
        return child(figure, dir);
    }
    // Cargo adds `--bench`; a name that isn't this table's is for another program.
    if args.iter().any(|arg| !arg.starts_with('-') && arg != "api") {
        return Ok(());
    }
    println!("{:44}  {:>24}  {:>24}", "api", "durable", "in memory");
    let figures = [
        "create-1",
        "create-64",
        "patch-1",
        "patch-64",
        "patch-one-64",
        "list",
        "page",
        "watch",
        "memory",
        "restart",
    ];
    for figure in figures {
        let folder = std::env::temp_dir().join(format!("berth-bench-api-{}", std::process::id()));
        let durable = figure_of(figure, folder.to_str().context("a path")?);
        std::fs::remove_dir_all(&folder).ok();
        let durable = durable?;
        let memory =
            if figure == "restart" { ["-".to_owned(), String::new()] } else { figure_of(figure, "")? };
        println!("{:44}  {:>24}  {:>24}", durable[1], durable[0], memory[0]);
    }
    Ok(())
}

/// A figure and what it is called, taken by a process of its own.
fn figure_of(figure: &str, dir: &str) -> Result<[String; 2]> {
    let output = Command::new(std::env::current_exe()?).args([CHILD, figure, dir]).output()?;
    ensure!(output.status.success(), "{figure}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let (figure, name) = text.trim().split_once('|').context("a figure and its name")?;
    Ok([figure.trim().to_owned(), name.trim().to_owned()])
}

fn child(figure: &str, dir: &str) -> Result<()> {
    let api = if dir.is_empty() { Api::in_memory() } else { Api::open(Path::new(dir))? };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (figure, name) = runtime.block_on(async {
        match figure {
            "create-1" => create(&api, 1, 500).await,
            "create-64" => create(&api, 64, OBJECTS).await,
            "patch-1" => patch(&api, 1, 500, false).await,
            "patch-64" => patch(&api, 64, OBJECTS, false).await,
            "patch-one-64" => patch(&api, 64, 2000, true).await,
            "list" => list(&api, "").await,
            "page" => list(&api, "?limit=500").await,
            "watch" => watch(&api).await,
            "memory" => memory(&api).await,
            "restart" => {
                fill(&api, OBJECTS).await?;
                drop(api);
                let begin = Instant::now();
                let api = Api::open(Path::new(dir))?;
                let took = begin.elapsed();
                drop(api);
                Ok((millis(took), format!("start on {OBJECTS} enactments")))
            }
            other => anyhow::bail!("no figure is called {other}"),
        }
    })?;
    println!("{figure} | {name}");
    Ok(())
}

/// An enactment as an agent makes it; its status follows, about 2 KB.
fn enactment(index: usize) -> Value {
    json!({
        "apiVersion": "nmstate.io/v1beta1", "kind": "NodeNetworkConfigurationEnactment",
        "metadata": {
            "name": format!("node-{index:05}.policy"),
            "labels": {"nmstate.io/node": format!("node-{index:05}"), "nmstate.io/policy": "policy"},
            "finalizers": ["nmstate.io/enactment"],
        },
    })
}

fn status(index: usize, round: usize) -> Value {
    let interface = |number: usize| {
        json!({"name": format!("eth{number}"), "type": "ethernet", "state": "up", "mtu": 9000, "ipv4": {"enabled": true,
               "address": [{"ip": format!("10.{number}.{}.{}", index / 250, index % 250), "prefix-length": 16}]}})
    };
    json!({
        "conditions": (0..5).map(|number| json!({
            "type": format!("Condition{number}"), "status": "True", "reason": "SuccessfullyConfigured",
            "message": "the desired state was applied", "lastTransitionTime": "2026-01-01T00:00:00Z",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        })).collect::<Vec<_>>(),
        "desiredState": {"interfaces": (0..4).map(interface).collect::<Vec<_>>()},
        "policyGeneration": round,
    })
}

async fn ask(api: &Api, method: &str, path: &str, media_type: &str, body: String) -> Result<Bytes> {
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    let response = api.clone().oneshot(request.body(Full::new(Bytes::from(body)))?).await?;
    let code = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(code.is_success(), "{method} {path}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}

async fn make(api: &Api, index: usize) -> Result<()> {
    ask(api, "POST", ENACTMENTS, "application/json", enactment(index).to_string()).await.map(drop)
}

/// A patch as a server of claims makes them: it tests what it saw, and fails if that is no longer so.
async fn change(api: &Api, index: usize, guarded: bool, round: usize) -> Result<()> {
    let path = format!("{ENACTMENTS}/node-{index:05}.policy");
    let mut patch = vec![json!({"op": "add", "path": "/status", "value": status(index, round)})];
    if guarded {
        patch.insert(
            0,
            json!({"op": "test", "path": "/metadata/name", "value": format!("node-{index:05}.policy")}),
        );
    }
    let patch = Value::Array(patch).to_string();
    ask(api, "PATCH", &format!("{path}/status"), "application/json-patch+json", patch).await.map(drop)
}

/// Does something for each of so many indices, by so many tasks; gives what each took.
async fn spread<F>(
    tasks: usize,
    number: usize,
    work: impl Fn(usize) -> F + Clone + Send + 'static,
) -> Result<Vec<Duration>>
where
    F: Future<Output = Result<()>> + Send,
{
    let mut set = JoinSet::new();
    for task in 0..tasks {
        let work = work.clone();
        set.spawn(async move {
            let mut took = Vec::new();
            for index in (task..number).step_by(tasks) {
                let begin = Instant::now();
                work(index).await?;
                took.push(begin.elapsed());
            }
            anyhow::Ok(took)
        });
    }
    let mut all = Vec::new();
    while let Some(took) = set.join_next().await {
        all.extend(took??);
    }
    Ok(all)
}

/// Enactments with the status that their agents wrote.
async fn fill(api: &Api, number: usize) -> Result<()> {
    let inside = api.clone();
    spread(256, number, move |index| {
        let api = inside.clone();
        async move {
            make(&api, index).await?;
            change(&api, index, false, 1).await
        }
    })
    .await?;
    Ok(())
}

type Figure = Result<(String, String)>;

async fn create(api: &Api, tasks: usize, number: usize) -> Figure {
    let inside = api.clone();
    let begin = Instant::now();
    let took = spread(tasks, number, move |index| {
        let api = inside.clone();
        async move { make(&api, index).await }
    })
    .await?;
    Ok((rate(number, begin.elapsed(), took), format!("creates, {tasks} at once")))
}

async fn patch(api: &Api, tasks: usize, number: usize, one: bool) -> Figure {
    fill(api, if one { 1 } else { number }).await?;
    let inside = api.clone();
    let begin = Instant::now();
    let took = spread(tasks, number, move |index| {
        let api = inside.clone();
        async move { change(&api, if one { 0 } else { index }, true, index + 2).await }
    })
    .await?;
    let what = if one { " on one object" } else { "" };
    Ok((rate(number, begin.elapsed(), took), format!("guarded patches{what}, {tasks} at once")))
}

async fn list(api: &Api, query: &str) -> Figure {
    fill(api, OBJECTS).await?;
    let mut took = Vec::new();
    let mut size = 0;
    for _ in 0..21 {
        let begin = Instant::now();
        size = ask(api, "GET", &format!("{ENACTMENTS}{query}"), "", String::new()).await?.len();
        took.push(begin.elapsed());
    }
    took.sort();
    let name = format!("list of {OBJECTS} enactments{query} ({:.1} MB)", size as f64 / 1e6);
    Ok((millis(took[took.len() / 2]), name))
}

async fn watch(api: &Api) -> Figure {
    const EVENTS: usize = 1000;
    fill(api, 1).await?;
    let revision = api.store().read().revision;
    let (begin, mut watchers) = (Instant::now(), JoinSet::new());
    let (sent, _) = tokio::sync::watch::channel(Vec::<Instant>::new());
    for _ in 0..WATCHERS {
        let path = format!("{ENACTMENTS}?watch=1&resourceVersion={revision}");
        let response = api.clone().oneshot(Request::get(path).body(Full::new(Bytes::new()))?).await?;
        watchers.spawn(follow(response.into_body(), EVENTS));
    }
    for round in 0..EVENTS {
        sent.send_modify(|sent| sent.push(Instant::now()));
        change(api, 0, false, round + 2).await?;
    }
    let sent = sent.borrow().clone();
    let mut delays = Vec::new();
    while let Some(seen) = watchers.join_next().await {
        delays.extend(seen??.iter().zip(&sent).map(|(seen, sent)| seen.duration_since(*sent)));
    }
    let all = begin.elapsed();
    delays.sort();
    let rate = (EVENTS * WATCHERS) as f64 / all.as_secs_f64();
    let figure = format!("{rate:.0}/s, p99 {}", millis(delays[delays.len() * 99 / 100]));
    Ok((figure, format!("events to {WATCHERS} watchers, a write at a time")))
}

/// When each event was read.
async fn follow(mut body: Answer, events: usize) -> Result<Vec<Instant>> {
    let mut seen = Vec::new();
    while seen.len() < events {
        let frame = body.frame().await.context("the watch ended")??;
        let lines = frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
        seen.extend(std::iter::repeat_n(Instant::now(), lines));
    }
    Ok(seen)
}

async fn memory(api: &Api) -> Figure {
    let before = resident()?;
    fill(api, OBJECTS).await?;
    let used = resident()? - before;
    let size = ask(api, "GET", ENACTMENTS, "", String::new()).await?.len();
    let name = format!("memory, {OBJECTS} enactments ({:.1} MB) and log", size as f64 / 1e6);
    Ok((format!("{:.1} MiB", used as f64 / 1024.0), name))
}

/// What this process has in memory, in KiB.
fn resident() -> Result<i64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn rate(number: usize, all: Duration, mut took: Vec<Duration>) -> String {
    took.sort();
    let p99 = millis(took[took.len() * 99 / 100]);
    format!("{:.0}/s, p99 {p99}", number as f64 / all.as_secs_f64())
}

fn millis(took: Duration) -> String {
    format!("{:.2} ms", took.as_secs_f64() * 1e3)
}
