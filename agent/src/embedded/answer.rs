//! What goes back to a client: bodies, and the few ways to make one.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use super::status::Status;

/// The body of every answer.
pub type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// A JSON document that is already text.
pub fn json_bytes(code: StatusCode, text: impl Into<Bytes>) -> Response<Answer> {
    typed(code, "application/json", text)
}

/// A JSON document.
pub fn json(code: StatusCode, value: &Value) -> Response<Answer> {
    json_bytes(code, value.to_string())
}

/// Plain text, as `/healthz` answers.
pub fn text(code: StatusCode, text: impl Into<Bytes>) -> Response<Answer> {
    typed(code, "text/plain; charset=utf-8", text)
}

/// A refusal.
pub fn refusal(status: &Status) -> Response<Answer> {
    let mut response = json(status.code, &status.to_value());
    if status.details.retry_after_seconds > 0 {
        let seconds = HeaderValue::from(status.details.retry_after_seconds);
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

/// Any document of one piece.
pub fn typed(code: StatusCode, content_type: &'static str, text: impl Into<Bytes>) -> Response<Answer> {
    let mut response = Response::new(Full::new(text.into()).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
