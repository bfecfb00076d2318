//! The NodeNetworkState: what this host's network looks like, and which pooled addresses it has or is about to use.
//!
//! Filtered as kubernetes-nmstate does, so that what nobody manages and what changes by itself is no news. At most
//! [`LARGEST`]: routes go first, then interfaces without addresses, and a condition says so; addresses are never left out,
//! since whoever gives addresses relies on what is shown. Cost: one write when something changed.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crds::names::condition::{AVAILABLE, TRUE};
use crds::names::label;
use crds::names::state::REPORT_SHORTENED;
use crds::{Condition, NodeNetworkState, NodeNetworkStateStatus};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams, Preconditions};
use policy::claim::{HostState, NodeUid, Stamp};
use serde_json::{Value, json};

use super::{Agent, NodeError};
use crate::api::error::{Trouble, optional, trouble};
use crate::api::random;
use crate::clock::stamp;
use crate::fault;
use crate::records;
use crate::records::condition::renewed;

/// Well below what an API server takes.
const LARGEST: usize = 1 << 20;

impl Agent {
    /// Has somebody asked for a report since the last?
    pub(super) fn asks_for_report(&self, state: &NodeNetworkState) -> bool {
        let asked = state.labels().get(label::FORCE_STATE_REFRESH);
        asked.is_some() && asked != self.refreshed.as_ref()
    }

    /// Is what was last reported of the network still so?
    pub(super) fn is_reported(&self) -> bool {
        let state = self.objects.state.get(self.name.as_str());
        let reported = state.and_then(|state| state.status.clone()?.current_state);
        reported.is_some_and(|reported| reported == filtered(self.current(), &self.named()).state)
    }

    /// The interfaces that policies name on this host.
    fn named(&self) -> BTreeSet<String> {
        let own = self.objects.enactments.all();
        let states = own.iter().filter_map(|own| own.status.as_ref()?.desired_state.as_ref());
        let interfaces = states.flat_map(|state| state["interfaces"].as_array().into_iter().flatten());
        interfaces.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
    }

    /// Writes the report. Whether it was written: not if somebody else wrote first. One without its stamp is none: it would be
    /// written again and again.
    pub(super) async fn report(
        &mut self,
        uid: &NodeUid,
        shows: &BTreeSet<IpAddr>,
    ) -> Result<bool, NodeError> {
        let api: Api<NodeNetworkState> = Api::all(self.client.clone());
        let name = self.name.as_str();
        let metadata = records::state::metadata(&self.name, uid);
        let before = match self.objects.state.get(name) {
            Some(before) if before.metadata.owner_references == metadata.owner_references => {
                (*before).clone()
            }
            Some(other) => {
                // Of a Node that is gone: its report goes with it.
                let exactly = Preconditions { uid: other.uid(), resource_version: None };
                let params = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
                optional(api.delete(name, &params).await)?;
                fault::point("state-dropped");
                self.objects.state.forget(name);
                return Ok(false);
            }
            None => {
                let object = NodeNetworkState { metadata, ..Default::default() };
                match api.create(&PostParams::default(), &object).await {
                    Ok(made) => {
                        fault::point("state-made");
                        made
                    }
                    Err(error) if trouble(&error) == Trouble::Exists => {
                        if let Some(there) = optional(api.get(name).await)? {
                            self.objects.state.note(there);
                        }
                        return Ok(false);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let asked = before.labels().get(label::FORCE_STATE_REFRESH).cloned();
        let state = HostState {
            node: self.name.clone(),
            node_uid: uid.clone(),
            stamp: Stamp::new(random::id()),
            shows: shows.clone(),
        };
        let Ok(status) = records::state::status(&state, &self.host, &NodeNetworkStateStatus::default())
        else {
            return Ok(false);
        };
        let Report { state: current, left_out } = filtered(self.current(), &self.named());
        let before_status = before.status.clone().unwrap_or_default();
        let status = NodeNetworkStateStatus {
            current_state: Some(current),
            conditions: complete(&left_out, &before_status.conditions),
            last_successful_update_time: Some(stamp()),
            handler_nmstate_version: Some(format!("berth {}", env!("CARGO_PKG_VERSION"))),
            ..status
        };
        let written = NodeNetworkState { status: Some(status), ..before };
        match api.replace_status(name, &PostParams::default(), &written).await {
            Ok(now) => {
                let has_stamp = now.status.as_ref().is_some_and(|status| !status.stamp.is_empty());
                self.objects.state.note(now);
                if !has_stamp {
                    let crd = "nodenetworkstates.nmstate.io";
                    return Err(NodeError::LeftOut { crd, field: "status.stamp" });
                }
                if asked.is_some() && asked != self.refreshed {
                    self.slices.look_again();
                }
                self.refreshed = asked;
                Ok(true)
            }
            Err(error) => match trouble(&error) {
                Trouble::Conflict | Trouble::NotFound => {
                    match optional(api.get(name).await)? {
                        Some(there) => self.objects.state.note(there),
                        None => self.objects.state.forget(name),
                    }
                    Ok(false)
                }
                _ => Err(error.into()),
            },
        }
    }
}

/// Where something had to be left out, that is said; where not, there is nothing to say.
fn complete(left_out: &str, before: &[Condition]) -> Vec<Condition> {
    if left_out.is_empty() {
        return Vec::new();
    }
    let message = format!("left out, for the report would be over {} KiB: {left_out}", LARGEST >> 10);
    vec![renewed(AVAILABLE, TRUE, REPORT_SHORTENED, message, before, &stamp())]
}

/// What is reported of a host.
struct Report {
    state: Value,
    /// What would have made it too long, in words; empty where nothing is missing.
    left_out: String,
}

/// What of a host's state is reported. Not the host's ends of containers' cards: they come and go with every pod, and nobody
/// manages them.
fn filtered(state: &Value, named: &BTreeSet<String>) -> Report {
    let is_named = |interface: &Value| interface["name"].as_str().is_some_and(|name| named.contains(name));
    let interfaces: Vec<Value> = state["interfaces"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|interface| is_named(interface) || !is_containers(interface))
        .cloned()
        .map(without_passing)
        .collect();
    let kept = |route: &&Value| interfaces.iter().any(|one| one["name"] == route["next-hop-interface"]);
    let routes = |which: &str| -> Vec<Value> {
        state["routes"][which].as_array().into_iter().flatten().filter(kept).cloned().collect()
    };
    let report = json!({
        "interfaces": interfaces,
        "routes": {"running": routes("running"), "config": routes("config")},
        "dns-resolver": state["dns-resolver"],
    });
    shortened(report, LARGEST)
}

/// At most so many bytes, as far as that can be without leaving an address out.
fn shortened(mut report: Value, largest: usize) -> Report {
    let is_too_long = |report: &Value| report.to_string().len() > largest;
    let mut left_out = Vec::new();
    if is_too_long(&report) {
        let routes = report["routes"]["running"].as_array().map_or(0, Vec::len);
        report["routes"] = json!({"running": [], "config": []});
        left_out.push(counted(routes, "route"));
    }
    if is_too_long(&report)
        && let Some(interfaces) = report["interfaces"].as_array_mut()
    {
        let before = interfaces.len();
        interfaces.retain(has_address);
        left_out.push(format!("{} without addresses", counted(before - interfaces.len(), "interface")));
    }
    if is_too_long(&report) {
        for interface in report["interfaces"].as_array_mut().into_iter().flatten() {
            *interface = bare(interface);
        }
        left_out.push("all of interfaces but their addresses".to_owned());
    }
    Report { state: report, left_out: left_out.join(", ") }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn has_address(interface: &Value) -> bool {
    ["ipv4", "ipv6"]
        .iter()
        .any(|family| interface[family]["address"].as_array().is_some_and(|addresses| !addresses.is_empty()))
}

/// The host's end of a veth whose other end is in another namespace, without an address that anybody gave it.
fn is_containers(interface: &Value) -> bool {
    let given = |address: &Value| !address["ip"].as_str().is_some_and(|ip| ip.starts_with("fe80:"));
    let has_one = |family: &str| {
        interface[family]["address"].as_array().is_some_and(|addresses| addresses.iter().any(given))
    };
    interface["type"] == "veth" && interface.get("veth").is_none() && !has_one("ipv4") && !has_one("ipv6")
}

/// Who it is, and its addresses.
fn bare(interface: &Value) -> Value {
    let mut bare = json!({});
    for field in ["name", "type", "state", "ipv4", "ipv6"] {
        if let Some(value) = interface.get(field) {
            bare[field] = value.clone();
        }
    }
    bare
}

/// Timers and lifetimes run by themselves: no news.
fn without_passing(mut interface: Value) -> Value {
    if let Some(options) = interface.pointer_mut("/bridge/options").and_then(Value::as_object_mut) {
        options.retain(|name, _| name != "gc-timer" && name != "hello-timer");
    }
    for family in ["ipv4", "ipv6"] {
        let addresses = interface.get_mut(family).and_then(|family| family.get_mut("address"));
        let addresses = addresses.and_then(Value::as_array_mut).into_iter().flatten();
        for address in addresses.filter_map(Value::as_object_mut) {
            address.retain(|field, _| field != "preferred-life-time" && field != "valid-life-time");
        }
    }
    interface
}

#[cfg(test)]
mod tests;
