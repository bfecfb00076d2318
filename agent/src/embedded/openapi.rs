//! OpenAPI documents: `/openapi/v2` and `/openapi/v3` and what is below.

use hyper::http::Response;

use super::Answer;

/// The document at a path, if it is one of these. `accept` is the request's header, or empty.
pub fn answer(_path: &str, _accept: &str) -> Option<Response<Answer>> {
    None
}
