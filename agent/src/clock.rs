//! The time, in the forms in which it is asked for. The pure core has no clock: it is told.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as Stamp;
use k8s_openapi::jiff::Timestamp;
use policy::claim::Time;

/// Seconds since 1970.
pub(crate) fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map(|since| since.as_secs()).unwrap_or_default()
}

/// As objects of the API have it.
pub(crate) fn stamp() -> Stamp {
    Stamp(Timestamp::now())
}
