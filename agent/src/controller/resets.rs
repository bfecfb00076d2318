//! Resets of a part of a pool: `nmstate.io/reset-ippool: <pool>` on a policy (R36) or on an enactment (R37).
//!
//! What the part comes to `policy::claim::reset` says; the annotation goes when it is done. Until then the pool says
//! that it is being updated (R38), and gives nothing; nobody outside the part loses anything, and no address on a card
//! changes. A name that no pool has is told, once, and the annotation left as it is (D7): a pool of that name may come.
//!
//! Cost: nothing where nobody asks. A reset is two writes of the pool's status at most besides that of the ledger, three
//! lists and one small patch.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crds::names::annotation::RESET_POOL;
use crds::{NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use kube::Resource;
use kube::api::{Api, Patch, PatchParams};
use policy::claim::{self, PolicyName, PoolName, Scope};
use serde_json::json;

use super::known::Index;
use super::pools::{Look, Put, Step};
use super::{Lead, told};
use crate::api::error::{Trouble, trouble};
use crate::api::guard;
use crate::telemetry::warn;

/// An object with the annotation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Marked {
    Policy(PolicyName),
    Enactment(String),
}

impl fmt::Display for Marked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(name) => write!(f, "policy {name}"),
            Self::Enactment(name) => write!(f, "enactment {name}"),
        }
    }
}

/// What is asked for, by who asks.
#[derive(Debug, Default)]
pub(super) struct Marks(BTreeMap<Marked, Mark>);

#[derive(Debug)]
struct Mark {
    pool: PoolName,
    /// It was told that there is no such pool.
    told: bool,
}

impl Marks {
    /// An object as it is now; the pool that wants a look by it.
    pub(super) fn note(&mut self, of: Marked, annotations: &BTreeMap<String, String>) -> Option<PoolName> {
        let Some(pool) = annotations.get(RESET_POOL).map(|pool| PoolName::new(pool.clone())) else {
            self.0.remove(&of);
            return None;
        };
        let is_known = self.0.get(&of).is_some_and(|mark| mark.pool == pool);
        if !is_known {
            self.0.insert(of, Mark { pool: pool.clone(), told: false });
        }
        (!is_known).then_some(pool)
    }

    pub(super) fn forget(&mut self, of: &Marked) {
        self.0.remove(of);
    }

    /// Who asks for this pool first.
    pub(super) fn first(&self, pool: &PoolName) -> Option<&Marked> {
        self.0.iter().find(|(_, mark)| mark.pool == *pool).map(|(of, _)| of)
    }

    /// Pools that are asked for.
    pub(super) fn pools(&self) -> impl Iterator<Item = &PoolName> {
        self.0.values().map(|mark| &mark.pool)
    }

    /// Who asks for this pool, which there is not, and was not told so.
    fn untold(&mut self, pool: &PoolName) -> Vec<Marked> {
        let untold = self.0.iter_mut().filter(|(_, mark)| mark.pool == *pool && !mark.told);
        untold.map(|(of, mark)| (mark.told = true, of.clone()).1).collect()
    }
}

impl Index {
    /// Whose entries are meant; none, where that can't be read.
    fn scope(&self, of: &Marked) -> Option<Scope> {
        match of {
            Marked::Policy(name) => Some(Scope::Policy(name.clone())),
            Marked::Enactment(name) => {
                self.enactments.get(name).map(|known| Scope::Node(known.claims.node_uid.clone()))
            }
        }
    }
}

impl Lead {
    /// Puts together what somebody asks for; none, where nobody does, or a holder knows more than the ledger (rule 6), which
    /// serving finds out.
    pub(super) async fn reset(&self, look: &Look) -> Result<Option<Step>, kube::Error> {
        let Some((of, scope)) = ({
            let index = self.known.index();
            index.marks.first(&look.name).map(|of| (of.clone(), index.scope(of)))
        }) else {
            return Ok(None);
        };
        if let Some(step) = self.say_reconciling(look).await? {
            return Ok(Some(step));
        }
        let Some(scope) = scope else {
            let why =
                format!("{of} can't be read: mend or delete it, or take its annotation {RESET_POOL} off");
            return Ok(Some(self.unsynced(look, &[why]).await));
        };
        let Some(reading) = self.reading_to_rebuild(look).await? else {
            return Ok(Some(Step::On));
        };
        // What slices have is their nodes' to put together.
        let uncovered = look.uncovered(&reading);
        let (pool, facts) = (&look.known.pool, uncovered.facts(&reading.facts(None)));
        let Some(reset) = claim::reset(&look.ledger, &look.name, pool, &facts, &scope, look.now) else {
            return Ok(None);
        };
        if reset.ledger.allocations != look.ledger.allocations {
            let put = self.put(look, &reset.ledger).await?;
            if !matches!(put, Put::Done) {
                return Ok(Some(put.into()));
            }
        }
        told::lost(&self.events, &look.known.object, &reset.lost);
        told::reset(&self.events, &look.known.object, &of.to_string());
        self.unmark(&of, &look.name).await?;
        Ok(Some(Step::Again))
    }

    /// Takes the annotation away, if it still says the same.
    async fn unmark(&self, of: &Marked, pool: &PoolName) -> Result<(), kube::Error> {
        const PLACE: [&str; 3] = ["metadata", "annotations", RESET_POOL];
        let patch = guard::patch(vec![guard::same(&PLACE, json!(pool.as_str())), guard::remove(&PLACE)]);
        let (params, patch) = (PatchParams::default(), Patch::Json::<()>(patch));
        let done = match of {
            Marked::Policy(name) => {
                let api: Api<NodeNetworkConfigurationPolicy> = Api::all(self.client.clone());
                let done = api.patch(name.as_str(), &params, &patch).await;
                done.map(|now| self.known.policy(&crate::api::Change::Put(Arc::new(now))))
            }
            Marked::Enactment(name) => {
                let api: Api<NodeNetworkConfigurationEnactment> = Api::all(self.client.clone());
                api.patch(name, &params, &patch).await.map(|now| self.known.fresh_enactment(now))
            }
        };
        match done {
            Ok(()) => Ok(()),
            // Somebody was quicker, or asks for another by now: the watch tells.
            Err(error) if matches!(trouble(&error), Trouble::NotFound | Trouble::Refused) => {
                self.known.index().marks.forget(of);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// There is no such pool: whoever asks for it hears so.
    pub(super) fn no_such_pool(&self, pool: &PoolName) {
        let mut index = self.known.index();
        for of in index.marks.untold(pool) {
            let about = match &of {
                Marked::Policy(name) => index.policies.get(name).map(|object| object.object_ref(&())),
                Marked::Enactment(name) => index.enactments.get(name).map(|own| own.object.object_ref(&())),
            };
            warn(&format!("{of}: annotation {RESET_POOL}: there is no pool {pool}"));
            if let Some(about) = about {
                told::no_such_pool(&self.events, about, pool.as_str());
            }
        }
    }
}
