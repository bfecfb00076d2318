//! What can be wrong with a pool's spec: always a path and a problem, always all of them at once.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use super::family::Family;

/// One thing wrong with a spec: `spec.ranges[1].start: 10.0.1.1 is not in 10.0.0.0/24`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct PoolError {
    pub path: String,
    pub problem: Problem,
}

/// Everything wrong with a spec, one per line. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolErrors(pub Vec<PoolError>);

impl fmt::Display for PoolErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for PoolErrors {}

/// Something a spec may have, but that its author should hear of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {remark}")]
pub struct PoolWarning {
    pub path: String,
    pub remark: Remark,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Remark {
    #[error("{text} has host bits set; read as {cidr}")]
    HostBits { text: String, cidr: IpNet },
    #[error("concerns IPv4 only and this range has none")]
    NoOctetEnds,
    #[error("{ip} is excluded: it will never be given, to {node} neither")]
    ReservedButExcluded { ip: IpAddr, node: String },
    #[error("{ip} is the gateway of a range: it will never be given, to {node} neither")]
    ReservedGateway { ip: IpAddr, node: String },
    #[error("{ip} is in the network of a range, but not from its start to its end: {node} won't get it")]
    ReservedBeyond { ip: IpAddr, node: String },
    #[error("no usable address in {start} to {end}: network and broadcast addresses are never given")]
    NothingUsable { start: IpAddr, end: IpAddr },
    #[error("no whole block of 2^{bits} addresses lies between {start} and {end}: nothing will be given")]
    NoWholeSlice { bits: u32, start: IpAddr, end: IpAddr },
    #[error("{lost} addresses at the edges are in no whole block of {block} and will not be given")]
    NotInWholeBlocks { lost: u128, block: u128 },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("is required")]
    Missing,
    #[error("unknown field; known here: {known}")]
    UnknownField { known: String },
    #[error("must be {wanted}, not {found}")]
    WrongType { wanted: &'static str, found: String },
    #[error("is {found}, not NodeIPPool")]
    WrongKind { found: String },
    #[error("{name:?} must be one DNS label: a-z, 0-9 and '-', at most 63, no dot, no '-' at either end")]
    NotALabel { name: String },
    #[error("exactly one of range and ranges must be set")]
    RangeOrRanges,
    #[error("must list at least one range")]
    NoRanges,
    #[error("{name} is the name of another range too")]
    DuplicateName { name: String },
    #[error("set cidr, or ipv4 and/or ipv6, not both")]
    TwoForms,
    #[error("set cidr, or ipv4 and/or ipv6")]
    NoAddresses,
    #[error("{cidr} is {found}; here belongs {wanted}")]
    WrongFamily { cidr: IpNet, found: Family, wanted: Family },
    #[error("{text:?} is not a CIDR such as 10.0.0.0/24 or fd00::/64")]
    NotACidr { text: String },
    #[error("{text:?} is not an IP address")]
    NotAnAddress { text: String },
    #[error("{text:?} is neither an IP address nor a CIDR")]
    NotAddressOrCidr { text: String },
    #[error("{text} is IPv4 written as IPv6; write it as IPv4")]
    Mapped { text: String },
    #[error("{cidr} holds {what} addresses, which no host can have")]
    NotForHosts { cidr: IpNet, what: &'static str },
    #[error("{cidr} is larger than a /{least}; split it into the parts that are yours")]
    TooLarge { cidr: IpNet, least: u8 },
    #[error("{ip} is not in {cidr}")]
    OutsideCidr { ip: IpAddr, cidr: IpNet },
    #[error("{net} is not inside {cidr}")]
    NetOutsideCidr { net: IpNet, cidr: IpNet },
    #[error("{start} is above end {end}")]
    StartAboveEnd { start: IpAddr, end: IpAddr },
    #[error("{bits} host bits are more than {cidr} has; at most {most}")]
    SliceTooLarge { bits: u32, cidr: IpNet, most: u8 },
    #[error("all ranges of a pool are sliced or none: set perNodeHostBits here too, or nowhere")]
    MixedSlicing,
    #[error("overlaps range {other}: ranges of a sliced pool must not overlap")]
    SlicedOverlap { other: String },
    #[error("{text:?} must be Active or Draining")]
    NotAState { text: String },
    #[error("{text} must be Auto, None or a number")]
    NotABand { text: String },
    #[error("{text:?} is not a duration such as 90s, 5m or 1h30m")]
    NotADuration { text: String },
    #[error("{text} is too short: must be at least 1s")]
    TooShort { text: String },
    #[error("{ip} is in no range of this pool")]
    ReservedOutside { ip: IpAddr },
    #[error("{ip} is already reserved, for node {node}")]
    ReservedTwice { ip: IpAddr, node: String },
    #[error("{text:?} must be In, NotIn, Exists, DoesNotExist, Gt or Lt")]
    NotAnOperator { text: String },
    #[error("{operator} must list at least one value")]
    NeedsValues { operator: String },
    #[error("{operator} takes no values")]
    NeedsNoValues { operator: String },
    #[error("{operator} takes exactly one value, an integer")]
    NeedsInteger { operator: String },
    #[error("{key:?} is not a field to select by; only metadata.name is")]
    NotAField { key: String },
    #[error("{operator} can't be used with a field; only In and NotIn can")]
    NotAFieldOperator { operator: String },
    #[error("can't change: a range is immutable; add another to ranges and drain this one")]
    Immutable,
    #[error("can't lose {ip}: exclude may only grow")]
    ExcludeShrank { ip: IpAddr },
    #[error("ranges can't become a single range again")]
    BackToSingle,
    #[error("range {name} is gone: set its state to Draining before removing it")]
    RemovedActive { name: String },
    #[error("range {name} is gone while {ip} is held in it and no other range covers it; release it first")]
    RemovedInUse { name: String, ip: IpAddr },
    #[error("the first of ranges must be what range was, unchanged")]
    SingleNotKept,
}

/// Collects errors and warnings under their paths.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<PoolError>,
    pub(crate) warnings: Vec<PoolWarning>,
}

impl Findings {
    pub(crate) fn error(&mut self, path: impl Into<String>, problem: Problem) {
        self.errors.push(PoolError { path: path.into(), problem });
    }

    pub(crate) fn warn(&mut self, path: impl Into<String>, remark: Remark) {
        self.warnings.push(PoolWarning { path: path.into(), remark });
    }

    pub(crate) fn done<T>(self, value: T) -> Result<T, PoolErrors> {
        if self.errors.is_empty() { Ok(value) } else { Err(PoolErrors(self.errors)) }
    }
}
