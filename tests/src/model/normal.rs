//! The print of a state: what can be told apart from inside, as a number. Of states with equal prints one is
//! visited.
//!
//! A state is written down in a normal form, and that is hashed (128 bits: among a hundred million states
//! the chance that any two differ and look alike is below 10⁻²²). What the form leaves out, and why it may:
//!
//! - **Names.** UIDs, ids, stamps and resourceVersions are only ever compared for equality. Each is written as
//!   its place in the order in which they first come up.
//! - **Which host is which.** The form is written once for each order of the hosts, and the least is taken.
//!   Hosts differ in nothing but their names: those are picked so that `choose` treats them alike, and where
//!   the order of a list could decide something, every order of it is a move (`order_matters`).
//! - **Times.** A tick is a whole quarantine, so a time is either over or not. Of holds, which guards compare,
//!   also which ones are the same.
//! - **Sequences** are compared and counted up from the pool's. A gap that no pool's sequence is below can't
//!   be counted into: only the order is kept. Other gaps are kept as they are up to [`form::GAP`], and so is that a
//!   leap was made: nothing counts through one.
//! - **What nobody reads again**: when an entry was made; a confirmation that ran out; a quarantine's witness
//!   that is no state's stamp (any state is news then, as it is without one); a backup that can't be restored
//!   any more; of an old copy whose guard can't hold any more all but the requests; an answer to an enactment
//!   or an id that is gone.

use policy::claim::Phase;

use super::config::Config;
use super::fault::Fault;
use super::print::{Print, print_bytes};
use super::store::Store;
use super::world::{HostWorld, World};

mod form;

use form::Form;

impl World {
    pub(super) fn print(&self, config: &Config) -> Print {
        let looks: Vec<usize> = (0..self.hosts.len()).map(|host| self.look(host)).collect();
        // Where hosts are not alike there is one order.
        let only = config.orders.len() == 1;
        let by_looks = |order: &&Vec<usize>| only || order.is_sorted_by_key(|host| looks[*host]);
        let forms = config.orders.iter().filter(by_looks).map(|order| Form::of(self, order, false, config));
        print_bytes(&forms.min().unwrap_or_default())
    }

    /// The print of all that there is, but for the sake of names and the date.
    pub(super) fn full_print(&self, config: &Config) -> Print {
        print_bytes(&Form::of(self, &config.orders[0], true, config))
    }

    /// Something that is seen of a host at a glance, whatever its name: where it tells hosts apart, the form
    /// need not be written for every order of them.
    fn look(&self, host: usize) -> usize {
        let HostWorld { agent, reachable, host, nic, .. } = &*self.hosts[host];
        let phases = host.journal.values().map(|record| match record.phase {
            Phase::Asking { .. } => 1,
            Phase::Holding(_) => 2,
            Phase::Parked(_) => 3,
            Phase::Releasing => 4,
        });
        let phases = phases.fold(0, |all, phase| 5 * all + phase);
        let memory = &host.memory;
        let known = [memory.announced.len(), memory.confirmed.len(), memory.doubted.len()];
        let flags = [*agent as usize, usize::from(*reachable), usize::from(memory.reported), nic.len()];
        flags.into_iter().chain(known).fold(phases, |all, part| 4 * all + part)
    }

    /// Is this the pool as the store has it?
    fn is_current(&self, copy: &Store) -> bool {
        let version = |store: &Store| store.pool.as_ref().map(|pool| pool.version);
        version(copy) == version(&self.store)
    }

    /// Could a write that is guarded by this copy's pool still go through?
    fn may_write(&self, copy: &Store) -> bool {
        self.is_current(copy) || self.restored || self.may_go_back()
    }

    /// The store, and those of its copies whose ledgers and states may still count.
    fn stores(&self) -> impl Iterator<Item = &Store> {
        let backup = self.backup.as_deref().filter(|_| self.may_go_back());
        let cache = self.rival.cache.as_deref().filter(|cache| self.may_write(cache));
        std::iter::once(&*self.store).chain(backup).chain(cache)
    }

    /// Can a restore still happen? Then what a copy or a backup says may be true again.
    fn may_go_back(&self) -> bool {
        self.left.contains(&Fault::StoreRestored)
    }
}
