//! An administrator's word for a batch of holders that vanished, which is held up until then (rule 4): the annotation
//! `nmstate.io/confirm-release`, on the pool or, where that is gone, on its slices.
//!
//! On a pool it is the number of holders, on slices also whose they are: `4 of storage`. A number alone on a slice is another word,
//! that this one may go though so many addresses are held in it (deploy/admission/slices.yaml): who annotates all slices of a pool
//! must not say that of those whose nodes live.
//!
//! A word is for the batch that waits for it. Where none does, it is taken off, or it would be good for another of that size some
//! day. Cost: one patch for each annotation that goes; nothing where there is none.

use std::sync::Arc;

use crds::names::annotation::CONFIRM_RELEASE;
use crds::{NodeIPPool, NodeIPSlice};
use kube::ResourceExt;
use policy::claim::{self, PoolName};
use serde_json::json;

use super::Lead;
use super::pools::{Look, Step};
use super::reading::Reading;
use crate::api::slices;

/// How many vanished holders were confirmed on their pool.
pub(super) fn on_pool(object: &NodeIPPool) -> Option<usize> {
    object.annotations().get(CONFIRM_RELEASE)?.parse().ok()
}

/// How many were on these slices: on each the same, for the word of one alone is about that one.
pub(super) fn on_all(slices: &[Arc<NodeIPSlice>]) -> Option<usize> {
    let mut words = slices.iter().map(|slice| on_slice(slice));
    let first = words.next().flatten();
    first.filter(|first| words.all(|word| word == Some(*first)))
}

fn on_slice(object: &NodeIPSlice) -> Option<usize> {
    let (count, pool) = object.annotations().get(CONFIRM_RELEASE)?.split_once(" of ")?;
    count.parse().ok().filter(|_| pool == object.spec.pool)
}

/// What is to be said on slices.
pub(super) fn for_slices(count: usize, pool: &PoolName) -> String {
    format!("{count} of {pool}")
}

impl Lead {
    /// Takes it off a pool where no batch waits for it.
    pub(super) async fn end_confirmation(&self, look: &Look) -> Result<Step, kube::Error> {
        if !look.known.object.annotations().contains_key(CONFIRM_RELEASE) {
            return Ok(Step::On);
        }
        let known = Reading::known_whole(&self.known.index());
        let (facts, quarantine) = (known.facts(None), look.known.pool.quarantine());
        let own = claim::tend(&look.ledger, &facts, quarantine, look.now).braked;
        let of_slices =
            claim::tend_slices(&look.slices, Some(&look.ledger), &facts, quarantine, look.now).braked;
        if own.or(of_slices).is_some() {
            return Ok(Step::On);
        }
        self.patch_pool(look, json!({"annotations": {CONFIRM_RELEASE: null}})).await
    }

    /// The same on slices, whosever they are.
    pub(super) async fn end_confirmations(&self, slices: &[Arc<NodeIPSlice>]) -> Result<(), kube::Error> {
        for object in slices.iter().filter(|object| on_slice(object).is_some()) {
            if let Some(now) = slices::take_off(&self.client, object, CONFIRM_RELEASE).await? {
                self.known.slice(&crate::api::Change::Put(now.into()));
            }
        }
        Ok(())
    }
}
