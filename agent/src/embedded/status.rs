//! `Status`: how the API says that something was refused, in the words and with the codes of kube-apiserver.
//!
//! Every module of the embedded API makes them; clients decide by `reason` and `code`, people read `message`. Must never
//! name a path of this machine or what another caller wrote.

use hyper::StatusCode;
use serde_json::{Value, json};

use super::resource::Resource;

#[cfg(test)]
mod tests;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    pub code: StatusCode,
    /// What programs look at: `NotFound`, `Conflict`, ….
    pub reason: &'static str,
    pub message: String,
    /// Boxed: a refusal is returned by every function here, and is rare.
    pub details: Box<Details>,
}

/// What a refusal is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// The resource's plural, or the kind where an object is invalid: so kube-apiserver has it.
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: u32,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

impl Status {
    /// A refusal that is about no object.
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Box::default() }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details.name = name.to_owned();
        self.details.group = resource.group.to_owned();
        self.details.kind = resource.plural.clone();
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// A path that names nothing that is served.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(resource, name)
    }

    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(resource, name)
    }

    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(resource, name)
    }

    /// A conflict with somebody else's write.
    pub fn stale(resource: &Resource, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// An object that must not be written as it is. Each cause's message is told after its field.
    pub fn invalid(resource: &Resource, name: &str, causes: Vec<Cause>) -> Self {
        let told = |cause: &Cause| match cause.field.as_str() {
            "" => cause.message.clone(),
            field => format!("{field}: {}", cause.message),
        };
        let told: Vec<String> = causes.iter().map(told).collect();
        let told = if told.len() == 1 { told.concat() } else { format!("[{}]", told.join(", ")) };
        let message = format!("{} {name:?} is invalid: {told}", resource.qualified_kind());
        let mut status =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(resource, name);
        status.details.kind = resource.kind.clone();
        status.details.causes = causes;
        status
    }

    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", resource.qualified());
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(resource, name)
    }

    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    pub fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// A resourceVersion, or a page of a list, that is older than what is remembered.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// A resourceVersion that nobody can have seen yet.
    pub fn too_new(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut status = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        status.details.causes.push(Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        });
        status.details.retry_after_seconds = 1;
        status
    }

    /// A client, or something that an answer depends on, took too long.
    pub fn timeout(message: &str) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", format!("Timeout: {message}"))
    }

    pub fn too_many_requests(message: impl Into<String>) -> Self {
        let mut status = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        status.details.retry_after_seconds = 1;
        status
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    pub fn internal(what: impl std::fmt::Display) -> Self {
        let message = format!("Internal error occurred: {what}");
        let mut status = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
        let cause = Cause { reason: String::new(), message: what.to_string(), field: String::new() };
        status.details.causes.push(cause);
        status
    }

    /// The object that goes over the wire.
    pub fn to_value(&self) -> Value {
        let mut value = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason,
        });
        let details = self.details.to_value();
        if details.as_object().is_some_and(|details| !details.is_empty()) {
            value["details"] = details;
        }
        value["code"] = self.code.as_u16().into();
        value
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut value = json!({});
        for (key, text) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !text.is_empty() {
                value[key] = text.as_str().into();
            }
        }
        if !self.causes.is_empty() {
            value["causes"] = self.causes.iter().map(Cause::to_value).collect();
        }
        if self.retry_after_seconds > 0 {
            value["retryAfterSeconds"] = self.retry_after_seconds.into();
        }
        value
    }
}

impl Cause {
    pub fn new(reason: &str, message: impl Into<String>, field: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into(), field: field.into() }
    }

    /// `Invalid value: "x": why`.
    pub fn invalid(field: &str, value: &Value, why: &str) -> Self {
        Self::new("FieldValueInvalid", format!("Invalid value: {value}: {why}"), field)
    }

    /// `Required value: why`.
    pub fn required(field: &str, why: &str) -> Self {
        Self::new("FieldValueRequired", format!("Required value: {why}"), field)
    }

    fn to_value(&self) -> Value {
        let mut value = json!({});
        for (key, text) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !text.is_empty() {
                value[key] = text.as_str().into();
            }
        }
        value
    }
}
