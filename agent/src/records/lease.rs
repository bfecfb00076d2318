//! A lease: `policy::claim::Lease` ↔ an enactment's `holds`, and the part of a grant that the protocol needs.
//!
//! The API has a place for one address, or for one of each family, IPv4 first; a lease of any other shape is an error.

use std::net::IpAddr;

use crds::enactment::{Address, Grant, Holds};
use policy::claim::{Lease, PoolUid};
use policy::pool::{Family, Pool, Range};

use super::{RecordError, read_ip, read_number, write_ip, write_number};

const ONE_OR_BOTH: &str = "one address, or one of each family";

pub(super) fn read_holds(path: &str, holds: &Holds) -> Result<Lease, RecordError> {
    let Holds { ip, ipv6, sequence, pool_uid } = holds;
    let at = |field: &str| format!("{path}.{field}");
    let mut ips = vec![read_ip(&at("ip"), ip)?];
    if let Some(ipv6) = ipv6 {
        ips.push(read_ip(&at("ipv6"), ipv6)?);
    }
    let lease =
        Lease { ips, sequence: read_number(&at("sequence"), *sequence)?, pool: PoolUid::new(&**pool_uid) };
    families(path, &lease)?;
    Ok(lease)
}

pub(super) fn write_holds(path: &str, lease: &Lease) -> Result<Holds, RecordError> {
    let (first, second) = families(path, lease)?;
    let Lease { ips: _, sequence, pool } = lease;
    Ok(Holds {
        ip: write_ip(&format!("{path}.ip"), first)?,
        ipv6: second.map(|ip| write_ip(&format!("{path}.ipv6"), ip)).transpose()?,
        sequence: write_number(&format!("{path}.sequence"), *sequence)?,
        pool_uid: pool.to_string(),
    })
}

pub(super) fn read_grant(path: &str, grant: &Grant) -> Result<Lease, RecordError> {
    // What else a grant has is for who uses the address, not for the protocol.
    let Grant { id: _, address, range: _, attributes: _, ipv4, ipv6, sequence, pool_uid } = grant;
    let at = |field: &str| format!("{path}.{field}");
    let ips = match (ipv4, ipv6) {
        (None, None) => vec![read_ip(&at("ip"), &address.ip)?],
        (Some(ipv4), Some(ipv6)) => {
            let (first, second) = (read_ip(&at("ipv4.ip"), &ipv4.ip)?, read_ip(&at("ipv6.ip"), &ipv6.ip)?);
            if read_ip(&at("ip"), &address.ip)? != first {
                let (found, wanted) = (address.ip.clone(), ipv4.ip.clone());
                return Err(RecordError::Disagree { path: at("ip"), found, other: "ipv4.ip", wanted });
            }
            vec![first, second]
        }
        (Some(_), None) => return Err(RecordError::Missing { path: at("ipv6") }),
        (None, Some(_)) => return Err(RecordError::Missing { path: at("ipv4") }),
    };
    let lease =
        Lease { ips, sequence: read_number(&at("sequence"), *sequence)?, pool: PoolUid::new(&**pool_uid) };
    families(path, &lease)?;
    Ok(lease)
}

/// A grant of a lease with what the pool says of its addresses: in the words of these of its ranges, one for each.
pub(super) fn write_grant(
    path: &str,
    id: &str,
    lease: &Lease,
    ranges: &[String],
    pool: &Pool,
) -> Result<Grant, RecordError> {
    let (first, second) = families(path, lease)?;
    let Lease { ips: _, sequence, pool: pool_uid } = lease;
    let range_of = |place: usize, ip| {
        let named = ranges.get(place).and_then(|name| pool.ranges().iter().find(|own| own.name() == name));
        named.ok_or_else(|| outside(path, ip, pool))
    };
    let range = range_of(0, first)?;
    let address = address(path, first, range, pool)?;
    let second = second.map(|ip| self::address(path, ip, range_of(1, ip)?, pool)).transpose()?;
    Ok(Grant {
        id: id.to_owned(),
        range: Some(range.name().to_owned()),
        attributes: range.attributes().clone(),
        ipv4: second.is_some().then(|| address.clone()),
        ipv6: second,
        address,
        sequence: write_number(&format!("{path}.sequence"), *sequence)?,
        pool_uid: pool_uid.to_string(),
    })
}

fn address(path: &str, ip: IpAddr, range: &Range, pool: &Pool) -> Result<Address, RecordError> {
    let part = range.part(Family::of(ip)).ok_or_else(|| outside(path, ip, pool))?;
    let gateway = part.gateway().map(|gateway| write_ip(&format!("{path}.gateway"), gateway));
    Ok(Address {
        ip: write_ip(&format!("{path}.ip"), ip)?,
        prefix_length: part.prefix_length(),
        gateway: gateway.transpose()?,
    })
}

fn outside(path: &str, ip: IpAddr, pool: &Pool) -> RecordError {
    RecordError::OutOfRange { path: path.to_owned(), ip, pool: pool.name().to_owned() }
}

/// The addresses of a lease in the two places that the API has for them.
fn families(path: &str, lease: &Lease) -> Result<(IpAddr, Option<IpAddr>), RecordError> {
    match lease.ips.as_slice() {
        [one] => Ok((*one, None)),
        [v4, v6] if v4.is_ipv4() && v6.is_ipv6() => Ok((*v4, Some(*v6))),
        _ => Err(RecordError::Shape { path: path.to_owned(), wanted: ONE_OR_BOTH }),
    }
}
