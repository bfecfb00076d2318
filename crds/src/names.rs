//! Every name that is part of the API: condition types, reasons, labels, annotations, finalizers, and the
//! messages that people and scripts read. Constants, so that no two places spell one differently.

/// API group of all kinds.
pub const GROUP: &str = "nmstate.io";

/// Condition types.
pub mod condition {
    /// Pool, policy, enactment, state: all is well.
    pub const AVAILABLE: &str = "Available";
    /// Policy: some node failed.
    pub const DEGRADED: &str = "Degraded";
    /// Policy, enactment: under way.
    pub const PROGRESSING: &str = "Progressing";
    /// Policy: it matches no node.
    pub const IGNORED: &str = "Ignored";
    /// Enactment, state: the last attempt failed.
    pub const FAILING: &str = "Failing";
    /// Enactment: waits for other nodes, or for an address.
    pub const PENDING: &str = "Pending";
    /// Enactment: given up because other nodes failed.
    pub const ABORTED: &str = "Aborted";

    /// A condition's statuses.
    pub const TRUE: &str = "True";
    pub const FALSE: &str = "False";
    pub const UNKNOWN: &str = "Unknown";

    /// The order in which an enactment is created with its conditions.
    pub const OF_ENACTMENT: [&str; 5] = [AVAILABLE, FAILING, PROGRESSING, PENDING, ABORTED];
    /// The order in which a policy shows its conditions.
    pub const OF_POLICY: [&str; 4] = [AVAILABLE, DEGRADED, PROGRESSING, IGNORED];
}

/// Reasons of a pool's one condition, `Available`. The spelling is API, the odd one included.
pub mod pool {
    /// The ledger could not be rebuilt; nothing is given.
    pub const UNSYNCRONIZED: &str = "UnsyncronizedIPPool";
    /// The ledger is being rebuilt; nothing is given.
    pub const RECONCILING: &str = "ReconcilingPool";
    /// Another pool has addresses of this one.
    pub const OVERLAPPING: &str = "OverlappingIPPool";
    /// Somebody outside the pool uses one of its addresses.
    pub const COLLISION: &str = "IPCollision";
    /// No address is left.
    pub const EXHAUSTED: &str = "ExhaustedIPPool";
    /// All is well.
    pub const RECONCILED: &str = "ReconciledPool";

    /// The first of these that holds is shown; the first two stop the pool from giving.
    pub const BY_PRECEDENCE: [&str; 6] =
        [UNSYNCRONIZED, RECONCILING, OVERLAPPING, COLLISION, EXHAUSTED, RECONCILED];

    pub const MESSAGE_RECONCILED: &str = "The pool is up to date";
    /// The same, beyond [`LEDGER_GOOD_FOR`].
    pub const MESSAGE_LARGE: &str = "The pool is up to date. It has more than 2000 addresses in one ledger, which each \
                                     write writes whole: for more, make pools that are cut into slices (perNodeHostBits)";
    /// So many entries a ledger is good for: a write of one costs the API server a third of a second by then.
    pub const LEDGER_GOOD_FOR: usize = 2_000;
    pub const MESSAGE_RECONCILING: &str = "The pool is being updated";
    pub const MESSAGE_EXHAUSTED: &str =
        "The IP pool has been depleted, manual intervention needed to modify NodeIPPool.";
    pub const MESSAGE_UNSYNCRONIZED: &str =
        "Failed to reconstruct the IP pool, it may not be in sync with the nodes.";

    /// Message of [`OVERLAPPING`].
    pub fn message_overlapping(other_pool: &str) -> String {
        format!("The NodeIPPool {other_pool} is overlapping with this one.")
    }

    /// Who else has an address, by the hardware address that answered.
    pub fn stranger(mac: &str) -> &str {
        if mac.is_empty() { "of an unknown hardware address" } else { mac }
    }

    /// Message of [`COLLISION`].
    pub fn message_collision(ip: &str, node: &str, interface: &str, other_node: &str) -> String {
        format!(
            "The IP address {ip} at node {node} and interface {interface} is colliding with node {other_node}"
        )
    }
}

/// Reasons of an enactment's conditions.
pub mod enactment {
    pub const PROGRESSING: &str = "ConfigurationProgressing";
    pub const CONFIGURED: &str = "SuccessfullyConfigured";
    pub const FAILED: &str = "FailedToConfigure";
    pub const RETRYING: &str = "Retrying";
    pub const LIMIT_REACHED: &str = "MaxUnavailableLimitReached";
    pub const ABORTED: &str = "ConfigurationAborted";
    /// It has asked for an address, and waits for the answer.
    pub const WAITING: &str = "WaitingForAddress";
    /// There is no address for it; tried again as soon as there may be one.
    pub const REFUSED: &str = "NoAddress";

    pub const MESSAGE_PROGRESSING: &str = "Applying desired state";
    pub const MESSAGE_CONFIGURED: &str = "successfully reconciled";
    pub const MESSAGE_LIMIT_REACHED: &str = "Waiting for progressing nodes to finish";

    /// Message of [`RETRYING`].
    pub fn message_retrying(node: &str, attempt: u32, of: u32) -> String {
        format!("failed to reconcile NodeNetworkConfigurationPolicy on node {node}. Retrying {attempt}/{of}")
    }

    /// Message of [`FAILED`] where the state could not be applied.
    pub fn message_apply_failed(node: &str, output: &str, error: &str) -> String {
        format!(
            "error reconciling NodeNetworkConfigurationPolicy on node {node} at desired state apply: \"{output}\",\n {error}"
        )
    }

    /// Message of [`FAILED`] where captures or references could not be resolved.
    pub fn message_render_failed(error: &str) -> String {
        format!("failure generating desiredState and capturedStates: {error}")
    }

    /// Message of the Event on a policy that failed on a node for good.
    pub fn message_gave_up(enactment: &str, retries: u32) -> String {
        format!("reconciliation of enactment \"{enactment}\" has failed after {retries} retries")
    }

    /// Message of [`ABORTED`], and of its Event.
    pub fn message_aborted(enactment: &str) -> String {
        format!("reconciliation of enactment \"{enactment}\" has aborted")
    }
}

/// Reasons of a policy's conditions, and its messages: scripts read the counts in them.
pub mod policy {
    pub const NO_MATCHING_NODE: &str = "NoMatchingNode";
    pub const FAILED: &str = "FailedToConfigure";
    pub const PROGRESSING: &str = "ConfigurationProgressing";
    pub const CONFIGURED: &str = "SuccessfullyConfigured";

    pub const MESSAGE_NO_MATCHING_NODE: &str = "Policy does not match any node";

    /// Reason of the Event on a policy that failed on a node.
    pub const EVENT_FAILED: &str = "ReconcileFailed";

    /// Message of [`FAILED`]: of the nodes that match, so many failed and so many gave up.
    pub fn message_failed(failed: usize, matching: usize, aborted: usize) -> String {
        let tail =
            if aborted > 0 { format!(", {aborted} nodes aborted configuration") } else { String::new() };
        format!("{failed}/{matching} nodes failed to configure{tail}")
    }

    /// Message of [`PROGRESSING`]: of the nodes that match and are ready, so many have finished and so many wait.
    pub fn message_progressing(finished: usize, ready: usize, pending: usize, not_ready: usize) -> String {
        let waiting = if pending > 0 { format!(", {pending} pending") } else { String::new() };
        format!("Policy is progressing {finished}/{ready} nodes finished{waiting}{}", ignored(not_ready))
    }

    /// Message of [`CONFIGURED`]: of the nodes that match, so many are configured.
    pub fn message_configured(available: usize, matching: usize, not_ready: usize) -> String {
        format!("{available}/{matching} nodes successfully configured{}", ignored(not_ready))
    }

    fn ignored(not_ready: usize) -> String {
        if not_ready > 0 {
            format!(", {not_ready} nodes ignored due to NotReady state")
        } else {
            String::new()
        }
    }
}

/// Of a NodeNetworkState.
pub mod state {
    /// Something was left out of a report that would have been too long.
    pub const REPORT_SHORTENED: &str = "ReportShortened";
}

/// Of a Node that its agent registered, where there is no kubelet: reasons of its condition Ready.
pub mod node {
    pub const AGENT_RUNS: &str = "AgentRuns";
    /// Its agent has not renewed its Lease; said by the controller.
    pub const AGENT_SILENT: &str = "AgentSilent";
}

/// Labels.
pub mod label {
    /// On an enactment: its policy.
    pub const POLICY: &str = "nmstate.io/policy";
    /// On an enactment or a slice: its node.
    pub const NODE: &str = "nmstate.io/node";
    /// On a slice: its pool.
    pub const POOL: &str = "nmstate.io/pool";
    /// On a state: changing the value makes the agent write it anew.
    pub const FORCE_STATE_REFRESH: &str = "nmstate.io/force-nns-refresh";
    /// On a pool or policy: it came from a manifest in the directory of a host on its own.
    pub const FROM_MANIFESTS: &str = "nmstate.io/from-manifests";
    /// On a pool: the controller made it, as its configuration lists it.
    pub const FROM_CONFIGURATION: &str = "nmstate.io/from-configuration";
    /// The four labels that every written object carries when they are configured.
    pub const APP_COMPONENT: &str = "app.kubernetes.io/component";
    pub const APP_PART_OF: &str = "app.kubernetes.io/part-of";
    pub const APP_VERSION: &str = "app.kubernetes.io/version";
    pub const APP_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
}

/// Annotations.
pub mod annotation {
    /// On a pool: rebuild its ledger. On a policy or an enactment, with a pool's name as the value: rebuild
    /// what that policy, or that node, holds of the pool.
    pub const RESET_POOL: &str = "nmstate.io/reset-ippool";
    /// On a pool: this many unwitnessed releases are meant, go on with that batch. On slices whose pool is gone the same, with its
    /// name: `4 of storage`. On a slice, a number alone: it may go, though this many addresses are held in it.
    pub const CONFIRM_RELEASE: &str = "nmstate.io/confirm-release";
    /// On a pool or a slice: give nothing new until the annotation is gone (before a restore, and by it).
    pub const HOLD: &str = "nmstate.io/hold";
    /// The value of [`HOLD`] that `berth serve restore` leaves: such a hold ends by itself, after one quarantine.
    pub const RESTORED: &str = "restored from a backup";
    /// On a pool: version of the ledger's schema. An unknown value stops the pool.
    pub const SCHEMA_VERSION: &str = "nmstate.io/schema-version";
    /// On a pool, or on a slice that is made with an address: how the ledger is written down. An unknown value stops the pool;
    /// a slice that can't be read is left alone.
    pub const LEDGER_ENCODING: &str = "nmstate.io/ledger-encoding";
    /// On a pool: it is cut into slices, which agents claim and serve themselves. Written by the controller before it gives
    /// anything, so that an agent need not read the pool to know.
    pub const SLICED: &str = "nmstate.io/sliced";
    /// On a policy: when it last passed kubernetes-nmstate's webhook.
    pub const WEBHOOK_TIMESTAMP: &str = "nmstate.io/webhook-mutating-timestamp";
    /// On a policy: what must go on working when it is applied: `gateway`, `dns`, `api`, `node`, several with commas
    /// between them, or `none`.
    pub const PROBES: &str = "nmstate.io/probes";
    /// On a policy: for how long the wire is asked whether somebody else has a pooled IPv4 address before it is used: `100ms`,
    /// say, or `2s`, or `off`.
    pub const WIRE_PROBE: &str = "nmstate.io/wire-probe";
    /// On an enactment: what it was made to ask for, as JSON: pool, capture, request. It counts until there is a status.
    pub const REQUESTS: &str = "nmstate.io/requests";
    /// On a Node: its agent made it, and keeps its Ready condition by a Lease; there is no kubelet.
    pub const SELF_REGISTERED: &str = "nmstate.io/self-registered";
    /// On a Node that its agent made: the labels that the agent's settings gave it, so that those taken out of them go.
    pub const NODE_LABELS: &str = "nmstate.io/node-labels";

    /// The ledger's schema that this version writes.
    pub const SCHEMA_VERSION_CURRENT: &str = "1";
    /// The encoding that this version writes: a map of allocations, and the list of offsets.
    pub const LEDGER_ENCODING_CURRENT: &str = "allocations";
}

/// Leases.
pub mod lease {
    /// Whoever holds it serves claims and leads rollouts.
    pub const CONTROLLER: &str = "berth-controller";
    /// Where Nodes keep theirs.
    pub const NODES_NAMESPACE: &str = "kube-node-lease";
}

/// Finalizers.
pub mod finalizer {
    /// On a pool: an address of it is held.
    pub const RANGE_IN_USE: &str = "nmstate.io/range-in-use";
    /// On an enactment or a slice: it holds addresses.
    pub const ADDRESSES: &str = "nmstate.io/addresses";
}

/// The name of an enactment. Not the way back: both parts may contain dots, so whose an enactment is, is
/// said by its labels and its owner.
pub fn enactment_name(node: &str, policy: &str) -> String {
    format!("{node}.{policy}")
}

#[cfg(test)]
mod tests;
