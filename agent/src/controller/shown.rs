//! A host's report, as far as a controller needs it: what it shows, and how many interfaces and routes there are.
//!
//! A NodeNetworkState is tens of kilobytes of JSON, and ten times that as values: of thousands of nodes all of it would be more
//! than a gigabyte. So it is taken apart when it is read, one at a time, and what nobody asks for is never kept. It is read only:
//! whoever writes a NodeNetworkState writes the whole. Cost: some hundred bytes per node, and per address that it has.

use std::borrow::Cow;

use crds::NodeNetworkState;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use policy::claim::HostState;
use serde::Deserialize;
use serde_json::Value;

use crate::metrics::cluster::Counted;
use crate::records;

/// Named after its kind, which logs name.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "NodeNetworkState")]
pub(crate) struct NodeNetworkStateShown {
    metadata: ObjectMeta,
    /// Or what can't be read of it.
    pub(crate) shown: Result<HostState, String>,
    pub(crate) counted: Counted,
}

impl From<NodeNetworkState> for NodeNetworkStateShown {
    fn from(object: NodeNetworkState) -> Self {
        let current = object.status.as_ref().and_then(|status| status.current_state.as_ref());
        Self {
            shown: records::state::shown(&object).map_err(|wrong| wrong.to_string()),
            counted: Counted::of(current.unwrap_or(&Value::Null)),
            metadata: ObjectMeta { managed_fields: None, ..object.metadata },
        }
    }
}

impl Resource for NodeNetworkStateShown {
    type DynamicType = ();
    type Scope = <NodeNetworkState as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        NodeNetworkState::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        NodeNetworkState::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        NodeNetworkState::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        NodeNetworkState::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
