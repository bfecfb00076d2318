//! What the verbs that speak to the API share: how to reach it, how long to wait for it, and when to stop.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anyhow::Context;
use hyper::http::{Request, Response};
use kube::Client;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tower::{BoxError, Service};

use crate::api::rights::{Noting, Rights};

/// How long an answer may take to begin: what takes longer is as good as away, and every write is guarded, so asking again
/// does no harm. Watches begin as fast as everything else, and then last.
const ANSWER: Duration = Duration::from_secs(15);
/// How long threads that nobody waits for any more (a name that is being looked up) may keep the process.
const REST: Duration = Duration::from_secs(1);

/// Which API.
#[derive(Debug, clap::Args)]
pub(super) struct Connect {
    /// How to reach the API; default: $KUBECONFIG, ~/.kube/config, or the pod's service account
    #[arg(long, value_name = "FILE", env = "BERTH_KUBECONFIG")]
    pub(super) kubeconfig: Option<PathBuf>,
}

impl Connect {
    /// What it lacks is in `rights`.
    pub(super) async fn client(&self, rights: Arc<Rights>) -> anyhow::Result<Client> {
        let config = match &self.kubeconfig {
            None => kube::Config::infer().await.context("no API is configured; see --kubeconfig")?,
            Some(path) => {
                let read = Kubeconfig::read_from(path);
                let config = read.with_context(|| format!("--kubeconfig {}", path.display()))?;
                kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
                    .await
                    .with_context(|| format!("--kubeconfig {}", path.display()))?
            }
        };
        let builder = ClientBuilder::try_from(config).context("the API can't be reached as configured")?;
        let noting = tower::layer::layer_fn(move |inner| Noting::new(inner, rights.clone()));
        Ok(builder.with_layer(&tower::layer::layer_fn(Patient)).with_layer(&noting).build())
    }
}

/// A service whose answers must begin in time: one that takes a request and never answers is as good as away.
#[derive(Clone)]
struct Patient<S>(S);

impl<S, B> Service<Request<Body>> for Patient<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut std::task::Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move {
            let in_time = tokio::time::timeout(ANSWER, answer).await;
            in_time.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWER.as_secs()).into()))
        })
    }
}

pub(super) fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().context("can't start")
}

/// Works to its end, and then waits for nobody.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(REST);
    done
}

/// SIGTERM and Ctrl-C, heard from the moment this is made.
pub(super) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    pub(super) async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// This host's name, as a Node may have it.
pub(super) fn hostname() -> String {
    let name = crate::host::running_name().to_lowercase();
    if crds::text::is_dns_subdomain(&name) { name } else { "berth".to_owned() }
}
