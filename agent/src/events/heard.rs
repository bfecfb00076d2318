//! Events as people read them: what was told, when, and of which address.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Event;
use policy::claim::Time;

/// One thing that was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The last time.
    pub(crate) at: Time,
    pub(crate) what: String,
    pub(crate) message: String,
    pub(crate) count: i32,
    pub(crate) by: String,
}

impl Heard {
    pub(crate) fn of(event: &Event) -> Self {
        let last = event.last_timestamp.as_ref().map(|time| time.0);
        let last = last.or_else(|| event.event_time.as_ref().map(|time| time.0));
        let source = event.source.as_ref().and_then(|source| source.component.clone());
        Self {
            at: last.map(|time| time.as_second().unsigned_abs()).unwrap_or_default(),
            what: event.reason.clone().unwrap_or_default(),
            message: event.message.clone().unwrap_or_default(),
            count: event.count.unwrap_or(1),
            by: source.or_else(|| event.reporting_component.clone()).unwrap_or_default(),
        }
    }

    /// Is this address a word of the message?
    pub(crate) fn mentions(&self, ip: IpAddr) -> bool {
        let part_of_one = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':');
        self.message
            .split(|c: char| !part_of_one(c))
            .map(|word| word.trim_matches(['.', ':']))
            .any(|word| word.parse::<IpAddr>().is_ok_and(|one| one.to_canonical() == ip))
    }
}
