//! Switches of links under `/proc/sys/net`, which no netlink message turns. They are those of the network namespace of the thread
//! that opens them, wherever the directory is mounted.

use std::io;
use std::path::Path;

use policy::plan::Step;
use policy::state::{AcceptRa, Family};

use crate::netlink::StepCause;

/// What is a switch rather than a message or another file; `None` for every other step.
pub(super) fn turn(root: &Path, step: &Step) -> Option<Result<(), StepCause>> {
    let number = |on: bool| if on { "1" } else { "0" };
    let (family, link, name, value) = match step {
        Step::SetIpv6 { link, on } => (Family::Ipv6, link, "disable_ipv6", number(!on)),
        Step::SetAcceptRa { link, accept } => {
            let value = match accept {
                AcceptRa::Off => "0",
                AcceptRa::On => "1",
                AcceptRa::Always => "2",
            };
            (Family::Ipv6, link, "accept_ra", value)
        }
        Step::SetForwarding { link, family, on } => (*family, link, "forwarding", number(*on)),
        _ => return None,
    };
    let path = root.join(format!("proc/sys/net/{family}/conf/{link}/{name}"));
    match (step, std::fs::write(&path, value)) {
        // Without IPv6 there is no switch to turn it off with.
        (Step::SetIpv6 { on: false, .. }, Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            Some(Ok(()))
        }
        (_, written) => {
            let path = path.display().to_string();
            Some(written.map_err(|source| StepCause::Switch { path, value, source }))
        }
    }
}
