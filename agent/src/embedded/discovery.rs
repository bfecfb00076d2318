//! Discovery: `/api`, `/apis`, and below them the lists of groups, versions and resources.

use hyper::http::Response;

use super::Answer;

/// The document at a path, if it is one of discovery's. `accept` is the request's header, or empty.
pub fn answer(_path: &str, _accept: &str) -> Option<Response<Answer>> {
    None
}
