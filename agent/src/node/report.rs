//! The NodeNetworkState: what this host's network looks like, and which pooled addresses it has or is about to use.
//!
//! Filtered as kubernetes-nmstate does, so that what nobody manages and what changes by itself is no news. At most
//! [`LARGEST`]: routes go first, then interfaces without addresses; addresses are never left out, since whoever gives
//! addresses relies on what is shown. Cost: one write when something changed.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crds::names::label;
use crds::{NodeNetworkState, NodeNetworkStateStatus};
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
        reported.is_some_and(|reported| reported == filtered(self.current()))
    }

    /// Writes the report. Whether it was written: not if somebody else wrote first.
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
        let status = NodeNetworkStateStatus {
            current_state: Some(filtered(self.current())),
            last_successful_update_time: Some(stamp()),
            handler_nmstate_version: Some(format!("berth {}", env!("CARGO_PKG_VERSION"))),
            ..status
        };
        let written = NodeNetworkState { status: Some(status), ..before };
        match api.replace_status(name, &PostParams::default(), &written).await {
            Ok(now) => {
                self.objects.state.note(now);
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

/// What of a host's state is reported.
fn filtered(state: &Value) -> Value {
    let interfaces: Vec<Value> = state["interfaces"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|interface| interface["type"] != "veth" || interface["state"] != "ignore")
        .cloned()
        .map(without_passing)
        .collect();
    let kept = |route: &&Value| interfaces.iter().any(|one| one["name"] == route["next-hop-interface"]);
    let routes = |which: &str| -> Vec<Value> {
        state["routes"][which].as_array().into_iter().flatten().filter(kept).cloned().collect()
    };
    let mut report = json!({
        "interfaces": interfaces,
        "routes": {"running": routes("running"), "config": routes("config")},
        "dns-resolver": state["dns-resolver"],
    });
    if report.to_string().len() > LARGEST {
        report["routes"] = json!({"running": [], "config": []});
    }
    if report.to_string().len() > LARGEST {
        let has_address = |interface: &Value| {
            ["ipv4", "ipv6"].iter().any(|family| {
                interface[family]["address"].as_array().is_some_and(|addresses| !addresses.is_empty())
            })
        };
        if let Some(interfaces) = report["interfaces"].as_array_mut() {
            interfaces.retain(has_address);
        }
    }
    report
}

/// Timers and lifetimes run by themselves: no news.
fn without_passing(mut interface: Value) -> Value {
    if let Some(options) = interface["bridge"]["options"].as_object_mut() {
        options.retain(|name, _| name != "gc-timer" && name != "hello-timer");
    }
    for family in ["ipv4", "ipv6"] {
        if let Some(addresses) = interface.get_mut(family).and_then(|family| family["address"].as_array_mut())
        {
            for address in addresses.iter_mut().filter_map(Value::as_object_mut) {
                address.retain(|field, _| field != "preferred-life-time" && field != "valid-life-time");
            }
        }
    }
    if interface["bridge"].is_null()
        && let Some(fields) = interface.as_object_mut()
    {
        fields.shift_remove("bridge");
    }
    interface
}
