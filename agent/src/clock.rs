//! The time, in the forms in which it is asked for. The pure core has no clock: it is told.

use std::sync::LazyLock;
use std::time::Instant;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as Stamp;
use k8s_openapi::jiff::Timestamp;
use policy::claim::Time;

/// Seconds since 1970.
pub(crate) fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map(|since| since.as_secs()).unwrap_or_default()
}

/// Seconds since something in this process first asked: for waits, which a clock that is set must neither end nor prolong.
pub(crate) fn steady() -> Time {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGIN.elapsed().as_secs()
}

/// As objects of the API have it.
pub(crate) fn stamp() -> Stamp {
    Stamp(Timestamp::now())
}
