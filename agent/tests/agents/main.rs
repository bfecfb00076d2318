//! Agents on real namespaces and cards, with the embedded API and the controller. Needs root.
//!
//! `field` has them in this process, `fleet` as processes of their own; each of the rest is a subject.

mod alone;
mod conditions;
mod crowd;
mod failing;
mod faults;
mod field;
mod fleet;
#[path = "../common/folder.rs"]
mod folder;
mod holders;
mod many;
mod names;
mod nodes;
mod probes;
mod ranges;
mod restart;
mod story;
mod told;
mod whole;

const SEEDS: &str = "10.10.10.0/24";
