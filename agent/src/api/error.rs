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
        429 | 500.. => Trouble::Away,
        _ => Trouble::Refused,
    }
}

/// Nothing, where there is no such object.
pub fn optional<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(object) => Ok(Some(object)),
        Err(error) if trouble(&error) == Trouble::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
