//! Enactments that are read again for a decision.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::NodeNetworkConfigurationEnactment;
use policy::claim::Enactment;
use serde_json::json;

use crate::controller::known::EnactmentKnown;
use crate::controller::reading::Reading;
use crate::records;

/// A node's enactment with this UID, which asks under this id.
fn enactment(node: &str, uid: &str, id: &str) -> Arc<NodeNetworkConfigurationEnactment> {
    let owner = format!("uid-of-{node}");
    let metadata =
        records::enactment::metadata(&node.into(), &owner.as_str().into(), &"policy".into()).unwrap();
    let mut metadata = json!(metadata);
    metadata["uid"] = json!(uid);
    let claims = json!({"pool": {"requests": {"addr": {"id": id, "want": true}}}});
    Arc::new(serde_json::from_value(json!({"metadata": metadata, "status": {"ippool": claims}})).unwrap())
}

fn ids(enactments: &[Enactment]) -> Vec<&str> {
    let requests =
        enactments.iter().flat_map(|own| own.slots.values()).filter_map(|slot| slot.request.as_ref());
    requests.map(|request| request.id.text()).collect()
}

/// Of those that were read again, what there is now counts: one that is gone asks nothing, and one that came under its name, by another
/// UID, was not asked about.
#[test]
fn what_is_gone_when_it_is_read_again_asks_nothing() {
    let known = [
        enactment("kept", "1", "kept"),
        enactment("changed", "2", "before"),
        enactment("gone", "3", "gone"),
        enactment("made-anew", "4", "former"),
    ];
    let known = known.iter().filter_map(EnactmentKnown::of).map(|known| known.claims);
    let mut reading = Reading::default().among(known.collect());
    assert_eq!(ids(&reading.enactments), ["kept", "before", "gone", "former"]);
    let again: BTreeSet<String> = ["2", "3", "4"].map(str::to_owned).into();
    reading.replace(&again, &[enactment("changed", "2", "after"), enactment("made-anew", "5", "later")]);
    assert_eq!(ids(&reading.enactments), ["kept", "after"]);
}
