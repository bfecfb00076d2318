//! The token of a file, as it stands there at each request.
//!
//! A kubelet writes a pod's token anew before it runs out, and an administrator one that was taken back: the next request has it.
//! `kube` looks once a minute, and whoever came back with a good token would be refused for most of that.
//!
//! Cost: some kilobytes read for each request, of a pod from memory.

use std::future::{Ready, ready};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::Either;
use hyper::http::Request;
use hyper::http::header::{AUTHORIZATION, HeaderValue};
use kube::client::Body;
use kube::config::AuthInfo;
use tower::{BoxError, Service};

/// The file of the token, where that is how the requests are authorized.
pub(super) fn file_of(auth: &AuthInfo) -> Option<PathBuf> {
    // As in kube: each of these is taken before a file.
    let is_otherwise = auth.auth_provider.is_some() || auth.username.is_some() || auth.token.is_some();
    auth.token_file.as_ref().filter(|_| !is_otherwise).map(PathBuf::from)
}

#[derive(Clone)]
pub(super) struct Bearer<S> {
    service: S,
    file: Arc<Path>,
}

impl<S> Bearer<S> {
    pub(super) fn new(service: S, file: &Path) -> Self {
        Self { service, file: file.into() }
    }

    fn header(&self) -> Result<HeaderValue, BoxError> {
        let file = self.file.display();
        let token = std::fs::read_to_string(&self.file).map_err(|error| format!("token {file}: {error}"))?;
        let header = HeaderValue::try_from(format!("Bearer {}", token.trim_end()));
        let mut header = header.map_err(|_| format!("token {file}: it is not a line of text"))?;
        header.set_sensitive(true);
        Ok(header)
    }
}

impl<S> Service<Request<Body>> for Bearer<S>
where
    S: Service<Request<Body>, Error = BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Either<S::Future, Ready<Result<S::Response, BoxError>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        match self.header() {
            Ok(header) => {
                request.headers_mut().insert(AUTHORIZATION, header);
                Either::Left(self.service.call(request))
            }
            Err(error) => Either::Right(ready(Err(error))),
        }
    }
}
