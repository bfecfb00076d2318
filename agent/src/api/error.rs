//! What an answer of the API means to who asked.

use kube::Error;

/// What is known of a write that was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// What it was guarded by is no longer so: read again, decide again.
    Conflict,
    /// The object is not there.
    NotFound,
    /// It is there already.
    Exists,
    /// Whoever asks has no right to; asking again won't help until an administrator acts.
    Forbidden,
    /// The object is refused as it is.
    Refused,
    /// Nobody answered, or not in time, or with more than they can do now: it may or may not have happened.
    Away,
}

/// Sorts an error. A JSON patch whose `test` fails is [`Trouble::Refused`], as an object against the rules is: look
/// again to tell which.
pub fn trouble(error: &Error) -> Trouble {
    let Error::Api(status) = error else {
        return Trouble::Away;
    };
    match status.code {
        404 => Trouble::NotFound,
        409 if status.reason == "AlreadyExists" => Trouble::Exists,
        409 => Trouble::Conflict,
        401 | 403 => Trouble::Forbidden,
        // In etcd's own words, which the API server passes on as its own failure: it won't fit the next time either.
        500 if status.message.contains("request is too large") => Trouble::Refused,
        429 | 500.. => Trouble::Away,
        _ => Trouble::Refused,
    }
}

/// An error for people: what the server said, or what stood in the way of asking it.
pub fn words(error: &Error) -> String {
    match error {
        Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        Error::Api(status) => format!("{} {}", status.code, status.reason),
        error => whole(error),
    }
}

/// An error with all that led to it, each cause once.
pub fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text.push_str(&format!(": {words}"));
        }
        source = cause.source();
    }
    text
}

/// Nothing, where there is no such object.
pub fn optional<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(object) => Ok(Some(object)),
        Err(error) if trouble(&error) == Trouble::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_for_etcd_is_refused_and_not_tried_again() {
        let says = |message: &str| {
            let status = kube::core::Status::failure(message, "InternalError").with_code(500);
            trouble(&Error::Api(Box::new(status)))
        };
        assert_eq!(says("etcdserver: request is too large"), Trouble::Refused);
        assert_eq!(says("etcdserver: leader changed"), Trouble::Away);
    }

    #[test]
    fn people_are_told_what_the_server_said() {
        let status = kube::core::Status::failure("pool traffic-1 is in use", "Conflict").with_code(409);
        assert_eq!(words(&Error::Api(Box::new(status))), "pool traffic-1 is in use");
    }

    #[tokio::test]
    async fn people_are_told_what_stood_in_the_way() {
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let client = kube::Client::try_from(nowhere).unwrap();
        let error = client.apiserver_version().await.unwrap_err();
        let text = words(&error);
        assert!(text.contains("Connection refused"), "{text}");
    }
}
