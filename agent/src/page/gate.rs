//! Who may look.
//!
//! On loopback everybody who can reach it: users of this host, and whoever `kubectl port-forward` lets in. Requests must name
//! loopback as their host, so that no page of another site can look through somebody's browser under a name of its own.
//! Elsewhere only those whose token the API server knows (TokenReview) and lets read pools (SubjectAccessReview): who may
//! `kubectl get nodeippools` may look, nobody else.
//!
//! Cost: nothing on loopback. Elsewhere two requests for a token, good for a minute; so many tokens are remembered
//! ([`REMEMBERED`]), by a hash.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::Request;
use hyper::header;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use thiserror::Error;

use crate::api::error::words;
use crate::http::is_local;

/// How long what the API server said of a token is good for.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// So many tokens; beyond, all are asked about anew.
const REMEMBERED: usize = 256;

#[derive(Debug, Error)]
pub(super) enum Refused {
    #[error("{host:?} is not a name of this host's loopback; ask for http://127.0.0.1, localhost or [::1]")]
    Host { host: String },
    #[error("a token of this cluster is needed: 'kubectl create token', in the header Authorization: Bearer")]
    Token,
    #[error("{user} may not read pools (get nodeippools.nmstate.io), so it may not look at them here")]
    Forbidden { user: String },
    #[error("the API server can't be asked whose token this is: {why}")]
    Away { why: String },
}

pub(super) struct Gate {
    client: Client,
    on_loopback: bool,
    /// By hash of the token: until when it may look.
    known: Mutex<BTreeMap<u64, Instant>>,
    /// Nobody outside can know what it makes of a token.
    hasher: RandomState,
}

impl Gate {
    pub(super) fn new(address: SocketAddr, client: Client) -> Self {
        let on_loopback = address.ip().is_loopback();
        Self { client, on_loopback, known: Mutex::default(), hasher: RandomState::new() }
    }

    /// May anything be asked under this name?
    pub(super) fn knock<B>(&self, request: &Request<B>) -> Result<(), Refused> {
        let host =
            request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        match !self.on_loopback || is_local(host) {
            true => Ok(()),
            false => Err(Refused::Host { host: host.to_owned() }),
        }
    }

    /// May this be answered?
    pub(super) async fn admit<B>(&self, request: &Request<B>) -> Result<(), Refused> {
        if self.on_loopback {
            return Ok(());
        }
        let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = given.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
        let token = token.filter(|token| !token.is_empty()).ok_or(Refused::Token)?;
        let hash = self.hasher.hash_one(token);
        if self.known().get(&hash).is_some_and(|until| Instant::now() < *until) {
            return Ok(());
        }
        let user = self.review(token).await?;
        self.ask(user).await?;
        let mut known = self.known();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(hash, Instant::now() + GOOD_FOR);
        Ok(())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Instant>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn review(&self, token: &str) -> Result<UserInfo, Refused> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let status = api.create(&PostParams::default(), &review).await.map_err(|error| away(&error))?.status;
        let status = status.filter(|status| status.authenticated == Some(true));
        status.and_then(|status| status.user).ok_or(Refused::Token)
    }

    async fn ask(&self, user: UserInfo) -> Result<(), Refused> {
        let attributes = ResourceAttributes {
            group: Some(crds::names::GROUP.to_owned()),
            resource: Some("nodeippools".to_owned()),
            verb: Some("get".to_owned()),
            ..ResourceAttributes::default()
        };
        let name = user.username.clone().unwrap_or_default();
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let status = api.create(&PostParams::default(), &review).await.map_err(|error| away(&error))?.status;
        match status.is_some_and(|status| status.allowed) {
            true => Ok(()),
            false => Err(Refused::Forbidden { user: name }),
        }
    }
}

fn away(error: &kube::Error) -> Refused {
    Refused::Away { why: words(error) }
}
