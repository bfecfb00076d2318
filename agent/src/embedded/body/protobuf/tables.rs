//! Which number is which field, as Kubernetes' published `generated.proto` files have them. Only what is kept is here.

use super::Kind::{Bool, Map, MaybeNumber, Message, MicroTime, Number, Text, Time};
use super::{Field, Kind, Table};

const fn one(number: u64, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, many: false }
}

const fn many(number: u64, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, many: true }
}

/// The envelope's word on what is in it.
pub(super) const TYPE: Table = &[one(1, "apiVersion", Text), one(2, "kind", Text)];
/// Both sorts of time.
pub(super) const TIME: Table = &[one(1, "seconds", Number), one(2, "nanos", Number)];
/// An entry of a map.
pub(super) const ENTRY: Table = &[one(1, "key", Text), one(2, "value", Text)];

const METADATA: Kind = Message(&[
    one(1, "name", Text),
    one(2, "generateName", Text),
    one(3, "namespace", Text),
    one(5, "uid", Text),
    one(6, "resourceVersion", Text),
    one(7, "generation", Number),
    one(8, "creationTimestamp", Time),
    one(9, "deletionTimestamp", Time),
    one(10, "deletionGracePeriodSeconds", MaybeNumber),
    one(11, "labels", Map),
    one(12, "annotations", Map),
    many(13, "ownerReferences", OWNER),
    many(14, "finalizers", Text),
]);

const OWNER: Kind = Message(&[
    one(5, "apiVersion", Text),
    one(1, "kind", Text),
    one(3, "name", Text),
    one(4, "uid", Text),
    one(6, "controller", Bool),
    one(7, "blockOwnerDeletion", Bool),
]);

pub(super) const DELETE_OPTIONS: Table = &[
    one(1, "gracePeriodSeconds", MaybeNumber),
    one(2, "preconditions", Message(&[one(1, "uid", Text), one(2, "resourceVersion", Text)])),
    one(3, "orphanDependents", Bool),
    one(4, "propagationPolicy", Text),
    many(5, "dryRun", Text),
];

pub(super) const NAMESPACE: Table = &[
    one(1, "metadata", METADATA),
    one(2, "spec", Message(&[many(1, "finalizers", Text)])),
    one(3, "status", Message(&[one(1, "phase", Text)])),
];

pub(super) const LEASE: Table = &[
    one(1, "metadata", METADATA),
    one(
        2,
        "spec",
        Message(&[
            one(1, "holderIdentity", Text),
            one(2, "leaseDurationSeconds", MaybeNumber),
            one(3, "acquireTime", MicroTime),
            one(4, "renewTime", MicroTime),
            one(5, "leaseTransitions", MaybeNumber),
            one(6, "strategy", Text),
            one(7, "preferredHolder", Text),
        ]),
    ),
];

const REFERENCE: Kind = Message(&[
    one(1, "kind", Text),
    one(2, "namespace", Text),
    one(3, "name", Text),
    one(4, "uid", Text),
    one(5, "apiVersion", Text),
    one(6, "resourceVersion", Text),
    one(7, "fieldPath", Text),
]);

const SOURCE: Kind = Message(&[one(1, "component", Text), one(2, "host", Text)]);

const SERIES: Kind = Message(&[one(1, "count", Number), one(2, "lastObservedTime", MicroTime)]);

pub(super) const CORE_EVENT: Table = &[
    one(1, "metadata", METADATA),
    one(2, "involvedObject", REFERENCE),
    one(3, "reason", Text),
    one(4, "message", Text),
    one(5, "source", SOURCE),
    one(6, "firstTimestamp", Time),
    one(7, "lastTimestamp", Time),
    one(8, "count", Number),
    one(9, "type", Text),
    one(10, "eventTime", MicroTime),
    one(11, "series", SERIES),
    one(12, "action", Text),
    one(13, "related", REFERENCE),
    one(14, "reportingComponent", Text),
    one(15, "reportingInstance", Text),
];

pub(super) const NEW_EVENT: Table = &[
    one(1, "metadata", METADATA),
    one(2, "eventTime", MicroTime),
    one(3, "series", SERIES),
    one(4, "reportingController", Text),
    one(5, "reportingInstance", Text),
    one(6, "action", Text),
    one(7, "reason", Text),
    one(8, "regarding", REFERENCE),
    one(9, "related", REFERENCE),
    one(10, "note", Text),
    one(11, "type", Text),
    one(12, "deprecatedSource", SOURCE),
    one(13, "deprecatedFirstTimestamp", Time),
    one(14, "deprecatedLastTimestamp", Time),
    one(15, "deprecatedCount", Number),
];
