//! One at a time, by a Lease: whoever holds it leads, and stops when it can't renew it.
//!
//! Whether another's Lease has run out is told by the own clock since its last change was seen, never by comparing clocks.
//! Being two at once must be safe all the same: a Lease is for peace, guards are for truth. Cost: one write every
//! [`RENEW`] of whoever leads; of whoever waits one read twice as often.

use std::future::Future;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};

use super::error::{Trouble, optional, trouble, words};
use super::troubles::Troubles;

/// How long a Lease lasts, how often it is renewed, and after how long without success its holder stops.
pub const LASTS: Duration = Duration::from_secs(15);
pub const RENEW: Duration = Duration::from_secs(5);
const GIVE_UP: Duration = Duration::from_secs(10);
/// What failed once is tried again this soon: an API server that starts anew is no reason to begin anew.
const AGAIN: Duration = Duration::from_secs(1);
/// So often in a row somebody may be quicker.
const QUICKER: usize = 3;

/// A Lease to be held by one of several.
pub struct Election {
    api: Api<Lease>,
    name: String,
    /// Who asks: no two alike.
    identity: String,
    /// The Lease as it last changed, and when that was seen.
    seen: Option<(Option<String>, Instant)>,
    troubles: Troubles,
    /// What the Lease goes with, if anything.
    owner: Option<OwnerReference>,
}

impl Election {
    pub fn new(client: &Client, namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            api: Api::namespaced(client.clone(), namespace),
            name: name.to_owned(),
            identity: identity.to_owned(),
            seen: None,
            troubles: Troubles::default(),
            owner: None,
        }
    }

    /// Says why there is no Lease, once for each reason.
    fn complain(&mut self, error: &kube::Error) {
        self.troubles.say(&format!("Lease {}: {}; trying again", self.name, words(error)));
    }

    /// Waits for the Lease, works while it is held, and waits again. Never ends; dropped, it leaves the Lease to run out.
    pub async fn lead<W: Future<Output = ()>>(mut self, work: impl Fn() -> W) {
        loop {
            match self.take().await {
                Ok(true) => {
                    tokio::select! {
                        () = work() => {}
                        () = self.keep() => {}
                    }
                }
                // Somebody else has it, or nobody answers.
                Ok(false) => tokio::time::sleep(RENEW / 2).await,
                Err(error) => {
                    self.complain(&error);
                    tokio::time::sleep(RENEW / 2).await;
                }
            }
        }
    }

    /// Takes or renews a Lease that should be nobody else's; else who has it. One that has run out by both clocks is free at
    /// once: whoever had it is more likely off than back.
    pub async fn claim(&mut self) -> Result<Result<(), String>, kube::Error> {
        let free = |own: &mut Self, lease: &Lease| !is_fresh(lease) || own.has_run_out(lease);
        // Who was quicker is seen by looking again.
        for _ in 0..QUICKER {
            match self.take_if_free(free).await? {
                Ok(()) => return Ok(Ok(())),
                Err(Some(holder)) => return Ok(Err(holder)),
                Err(None) => {}
            }
        }
        Ok(Err("somebody who is always quicker".to_owned()))
    }

    /// From now on the Lease goes with this owner.
    pub fn owned_by(&mut self, owner: OwnerReference) {
        self.owner = Some(owner);
    }

    /// Lets go, so that the next need not wait.
    pub async fn release(client: &Client, namespace: &str, name: &str, identity: &str) {
        let election = Self::new(client, namespace, name, identity);
        if let Ok(Some(lease)) = optional(election.api.get(name).await)
            && holder(&lease) == Some(identity)
        {
            let spec = LeaseSpec { holder_identity: None, ..lease.spec.clone().unwrap_or_default() };
            let freed = Lease { spec: Some(spec), ..lease };
            let _ = election.api.replace(name, &PostParams::default(), &freed).await;
        }
    }

    /// Renews until that fails for too long.
    async fn keep(&mut self) {
        let mut renewed = Instant::now();
        let mut pause = RENEW;
        while renewed.elapsed() < GIVE_UP {
            tokio::time::sleep(pause).await;
            // Whoever isn't answered in time doesn't lead, however long the answer takes.
            let left = GIVE_UP.saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.take()).await {
                Ok(Ok(true)) => (renewed, pause) = (Instant::now(), RENEW),
                Ok(Ok(false)) => return,
                Ok(Err(_)) | Err(_) => pause = AGAIN,
            }
        }
    }

    /// Takes the Lease, or renews it, if nobody else has it.
    async fn take(&mut self) -> Result<bool, kube::Error> {
        Ok(self.take_if_free(Self::has_run_out).await?.is_ok())
    }

    /// The same; if not, who has it, unless somebody was quicker just now. `free`: whether one that is another's counts no more.
    async fn take_if_free(
        &mut self,
        free: impl Fn(&mut Self, &Lease) -> bool,
    ) -> Result<Result<(), Option<String>>, kube::Error> {
        let now = MicroTime(Timestamp::now());
        let written = match optional(self.api.get(&self.name).await)? {
            None => {
                let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
                let spec = Some(self.spec(&LeaseSpec::default(), now));
                let made = self.owned(Lease { metadata, spec });
                self.api.create(&PostParams::default(), &made).await
            }
            Some(lease) => {
                if let Some(other) = holder(&lease).filter(|holder| *holder != self.identity)
                    && !free(self, &lease)
                {
                    return Ok(Err(Some(other.to_owned())));
                }
                let spec = Some(self.spec(&lease.spec.clone().unwrap_or_default(), now));
                let renewed = self.owned(Lease { spec, ..lease });
                self.api.replace(&self.name, &PostParams::default(), &renewed).await
            }
        };
        taken(written)
    }

    fn owned(&self, mut lease: Lease) -> Lease {
        if let Some(owner) = &self.owner {
            lease.metadata.owner_references = Some(vec![owner.clone()]);
        }
        lease
    }

    fn has_run_out(&mut self, lease: &Lease) -> bool {
        let version = lease.resource_version();
        let lasts = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        let lasts = lasts.map_or(LASTS, |seconds| Duration::from_secs(seconds.unsigned_abs().into()));
        match &self.seen {
            Some((seen, since)) if *seen == version => since.elapsed() >= lasts,
            _ => {
                self.seen = Some((version, Instant::now()));
                false
            }
        }
    }

    fn spec(&self, before: &LeaseSpec, now: MicroTime) -> LeaseSpec {
        let again = before.holder_identity.as_deref() == Some(self.identity.as_str());
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(LASTS.as_secs()).ok(),
            acquire_time: before.acquire_time.clone().filter(|_| again).or_else(|| Some(now.clone())),
            lease_transitions: Some(before.lease_transitions.unwrap_or_default() + i32::from(!again)),
            renew_time: Some(now),
            ..before.clone()
        }
    }
}

/// Does somebody lead, by the clocks of both? Asked by who could do without.
pub fn is_fresh(lease: &Lease) -> bool {
    let Some(spec) = &lease.spec else { return false };
    let (Some(_), Some(renewed)) = (holder(lease), &spec.renew_time) else { return false };
    let lasts = i64::from(spec.lease_duration_seconds.unwrap_or_default());
    Timestamp::now().as_second() <= renewed.0.as_second().saturating_add(lasts)
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

fn taken(written: Result<Lease, kube::Error>) -> Result<Result<(), Option<String>>, kube::Error> {
    match written {
        Ok(_) => Ok(Ok(())),
        Err(error) => match trouble(&error) {
            Trouble::Conflict | Trouble::Exists | Trouble::NotFound => Ok(Err(None)),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::embedded;

    fn election(client: &Client, identity: &str) -> Election {
        Election::new(client, "default", "berth-controller", identity)
    }

    #[tokio::test]
    async fn one_has_it_until_it_is_let_go() {
        let server = embedded::Api::in_memory();
        let client = server.client();
        let (mut one, mut other) = (election(&client, "one"), election(&client, "other"));
        assert!(one.take().await.unwrap());
        assert!(!other.take().await.unwrap());
        // Renewed: not a transition.
        assert!(one.take().await.unwrap());
        let lease = one.api.get("berth-controller").await.unwrap();
        assert!(is_fresh(&lease));
        assert_eq!(lease.spec.as_ref().unwrap().lease_transitions, Some(1));
        Election::release(&client, "default", "berth-controller", "one").await;
        assert!(!is_fresh(&one.api.get("berth-controller").await.unwrap()));
        assert!(other.take().await.unwrap());
        assert!(!one.take().await.unwrap());
    }

    /// One renewal that fails is no reason to stop: it is tried again before the Lease is given up.
    #[tokio::test]
    async fn a_renewal_that_fails_once_ends_nothing() {
        let server = embedded::Api::in_memory();
        let (inner, puts) = (server.client(), Arc::new(AtomicUsize::new(0)));
        let counted = puts.clone();
        let service = tower::service_fn(move |request: hyper::Request<kube::client::Body>| {
            let inner = inner.clone();
            let fails = request.method() == hyper::Method::PUT && counted.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if fails {
                    return Err(kube::Error::Service("the connection is reset".into()));
                }
                inner.send(request).await
            }
        });
        let mut one = election(&Client::new(service, "default"), "one");
        assert!(one.take().await.unwrap());
        tokio::select! {
            () = one.keep() => panic!("it has let go"),
            () = async { while puts.load(Ordering::SeqCst) < 2 { tokio::time::sleep(AGAIN / 10).await } } => {}
        }
        let lease = election(&server.client(), "other").api.get("berth-controller").await.unwrap();
        assert_eq!(holder(&lease), Some("one"));
        assert_eq!(lease.spec.unwrap().lease_transitions, Some(1));
    }

    /// Of what should be nobody else's, whoever has it is named; what has run out is free at once.
    #[tokio::test]
    async fn who_has_what_should_be_ours_is_named() {
        let server = embedded::Api::in_memory();
        let client = server.client();
        let (mut one, mut other) = (election(&client, "one"), election(&client, "other"));
        assert_eq!(one.claim().await.unwrap(), Ok(()));
        assert_eq!(other.claim().await.unwrap(), Err("one".to_owned()));
        assert_eq!(one.claim().await.unwrap(), Ok(()));
        let mut lease = one.api.get("berth-controller").await.unwrap();
        lease.spec.as_mut().unwrap().renew_time = Some(MicroTime(Timestamp::from_second(0).unwrap()));
        one.api.replace("berth-controller", &PostParams::default(), &lease).await.unwrap();
        assert_eq!(other.claim().await.unwrap(), Ok(()));
        assert_eq!(one.claim().await.unwrap(), Err("other".to_owned()));
    }

    #[tokio::test]
    async fn of_many_at_once_one_leads() {
        let server = embedded::Api::in_memory();
        let leading = Arc::new(AtomicUsize::new(0));
        let mut tasks = tokio::task::JoinSet::new();
        for i in 0..10 {
            let (client, leading) = (server.client(), leading.clone());
            tasks.spawn(async move {
                if election(&client, &format!("c{i}")).take().await.unwrap() {
                    leading.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        while tasks.join_next().await.is_some() {}
        assert_eq!(leading.load(Ordering::SeqCst), 1);
    }
}
