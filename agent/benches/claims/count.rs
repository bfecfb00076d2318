//! What is asked of the API server, and what that costs it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame};
use hyper::http::{Method, Request};
use kube::Client;
use kube::client::Body;

use crate::ground::Ground;

/// Requests so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Bytes of all writes.
    pub(crate) bytes: u64,
    /// Bytes of all answers but those of watches, and of these.
    pub(crate) answered: u64,
    pub(crate) watched: u64,
    /// Answers other than that it is done, by their code.
    refused: BTreeMap<u16, u64>,
    /// Requests by what they were.
    by_kind: BTreeMap<String, u64>,
}

impl Spent {
    /// What was asked, for each of so many claims.
    pub(crate) fn kinds(&self, claims: usize) -> String {
        let per = |count: u64| count as f64 / claims as f64;
        let each = self.by_kind.iter().filter(|(_, count)| per(**count) >= 0.05);
        each.map(|(kind, count)| format!("{kind} {:.1}", per(*count))).collect::<Vec<_>>().join(", ")
    }

    /// What went to and fro, for each of so many hosts.
    pub(crate) fn each(&self, hosts: usize) -> String {
        let per = |number: u64| number as f64 / hosts as f64;
        let kib = |bytes: u64| per(bytes) / 1024.0;
        format!(
            "{:.1} writes of {:.1} KiB, {:.1} reads answered with {:.1} KiB, {:.1} KiB watched",
            per(self.writes),
            kib(self.bytes),
            per(self.reads),
            kib(self.answered),
            kib(self.watched),
        )
    }

    pub(crate) fn troubles(&self) -> String {
        let each: Vec<String> =
            self.refused.iter().map(|(code, count)| format!("{count} × {code}")).collect();
        each.join(", ")
    }
}

/// Counts what goes through its clients.
#[derive(Clone, Default)]
pub(crate) struct Counted(Arc<Mutex<Spent>>);

impl Counted {
    fn add(&self, count: impl FnOnce(&mut Spent)) {
        count(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Since this was last asked.
    pub(crate) fn take(&self) -> Spent {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn client(&self, client: Client) -> Client {
        let counted = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, counted) = (client.clone(), counted.clone());
            let bytes = request.body().size_hint().exact().unwrap_or_default();
            let is_read = request.method() == Method::GET;
            let kind = kind(&request);
            let is_watch = kind.starts_with("watch");
            counted.add(|spent| {
                *spent.by_kind.entry(kind).or_default() += 1;
                match is_read {
                    true => spent.reads += 1,
                    false => (spent.writes, spent.bytes) = (spent.writes + 1, spent.bytes + bytes),
                }
            });
            async move {
                let answer = client.send(request).await?;
                let code = answer.status().as_u16();
                if code >= 400 {
                    counted.add(|spent| *spent.refused.entry(code).or_default() += 1);
                }
                let come = move |frame: Frame<Bytes>| {
                    let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                    counted.add(|spent| match is_watch {
                        true => spent.watched += bytes,
                        false => spent.answered += bytes,
                    });
                    frame
                };
                Ok::<_, kube::Error>(answer.map(|body| body.map_frame(come)))
            }
        });
        Client::new(service, "default")
    }
}

/// The verb, the kind, and whether it is a list, a watch or of the status.
fn kind(request: &Request<Body>) -> String {
    let parts: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    let of = parts.iter().position(|part| part.starts_with("node") || matches!(*part, "leases" | "events"));
    let kind = of.and_then(|at| parts.get(at)).unwrap_or(&"?");
    let verb = match request.method().as_str() {
        "GET" if request.uri().query().is_some_and(|query| query.contains("watch=")) => "watch",
        "GET" if of == Some(parts.len() - 1) => "list",
        other => other,
    };
    let status = if parts.last() == Some(&"status") { "/status" } else { "" };
    format!(
        "{verb} {}{status}",
        kind.trim_start_matches("nodenetworkconfiguration").trim_start_matches("nodenetwork")
    )
}

/// The API server's process; none, where it is this one.
pub(crate) struct Server(Option<Client>);

impl Server {
    pub(crate) fn of(ground: Ground) -> Self {
        match ground {
            Ground::Real(cluster) => Self(Some(cluster.client())),
            Ground::Embedded(_) => Self(None),
        }
    }

    /// By its own word: a client that is sent away tries again, and tells nobody.
    pub(crate) async fn used(&self) -> Result<Used> {
        let Some(client) = &self.0 else { return Ok(Used::default()) };
        let request = Request::get("/metrics").body(Vec::new())?;
        let text = client.request_text(request).await?;
        let seconds = text.lines().find_map(|line| line.strip_prefix("process_cpu_seconds_total "));
        let cpu = Duration::from_secs_f64(seconds.context("no such metric")?.parse()?);
        let answers = |code: &str| {
            let label = format!("code=\"{code}\"");
            let counts = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
            let counts =
                counts.filter(|line| line.contains(&label)).filter_map(|line| line.rsplit(' ').next());
            counts.filter_map(|count| count.parse::<f64>().ok()).sum::<f64>() as u64
        };
        Ok(Used { cpu, sent_away: answers("429"), gave_up: answers("504") })
    }
}

/// What the API server has used so far, and how often it could not answer.
#[derive(Default)]
pub(crate) struct Used {
    pub(crate) cpu: Duration,
    /// 429s.
    pub(crate) sent_away: u64,
    /// 504s.
    pub(crate) gave_up: u64,
}
