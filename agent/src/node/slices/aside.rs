//! What a stranger on the wire keeps set aside in this host's slices (rule 10): free again when its quarantine is over.
//!
//! Nobody else frees it: while its Node lives a slice is its host's alone to write (rule 4). And nothing else wakes the host for it: its
//! policy was given another address, and has what it wants. So the host sets itself a time, the first end of such a quarantine,
//! and serves that pool then, which frees what is over (`claim::serve_slices`). A controller could ask for it instead, since it sees
//! all slices; but it would have to be there, where slices are for clusters that can do without, and to know when to stop
//! asking one that doesn't answer.
//!
//! Costs: a list of this host's slices at its start, which its first claim then doesn't need: what was set aside before may
//! be of a policy that is gone, and nothing else leads there. While something is aside a time, and no request. When it is over one
//! read of the pool, one write of the slice, and two to give it back if nothing else is in it. What is not free then (somebody has it
//! on a link of this host, or the API refuses the write) is tried again once a minute; where slices may not be listed, so is that.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kube::ResourceExt;
use policy::claim::{NodeUid, PoolName, Time};

use crate::api::error::{Trouble, trouble};
use crate::clock::now;
use crate::node::{Agent, NodeError, left};

/// How long until what should be free, and is not, is tried again; and slices that may not be listed.
const AGAIN: Duration = Duration::from_secs(60);

impl Agent {
    /// Frees what was set aside for long enough; when to look again, if there is more.
    pub(in crate::node) async fn free_aside(&mut self) -> Result<Option<Duration>, NodeError> {
        let node = self.objects.node.get(self.name.as_str()).filter(|_| self.objects.are_read());
        let Some(uid) = node.and_then(|node| node.uid()).map(NodeUid::new) else { return Ok(None) };
        if !self.slices.listed && self.slices.barred.is_some_and(|asked| asked.elapsed() < AGAIN) {
            return Ok(None);
        }
        match self.list_slices().await {
            // Who has no slices to list has nothing in them.
            Err(error) if matches!(trouble(&error), Trouble::NotFound | Trouble::Forbidden) => {
                self.slices.barred = Some(Instant::now());
                return Ok(None);
            }
            listed => listed?,
        }
        let at = now();
        let is_over = |end: &Time| *end <= at;
        let in_vain = self.slices.in_vain.filter(|tried| tried.elapsed() < AGAIN);
        if in_vain.is_none() {
            for (pool, _) in self.ends(&uid).iter().filter(|(_, end)| is_over(end)) {
                self.serve(&[pool], &uid).await?;
            }
        }
        let ends = self.ends(&uid);
        self.slices.in_vain = ends.values().any(is_over).then(|| in_vain.unwrap_or_else(Instant::now));
        Ok(ends.values().map(|end| if is_over(end) { AGAIN } else { left(*end, at) }).min())
    }

    /// When the first address is to be free, by pool.
    fn ends(&self, uid: &NodeUid) -> BTreeMap<PoolName, Time> {
        let pools = self.slices.own.keys();
        let first =
            |pool: &PoolName| self.known_slices(pool, uid).filter_map(|slice| slice.first_end()).min();
        pools.filter_map(|pool| Some((pool.clone(), first(pool)?))).collect()
    }
}
