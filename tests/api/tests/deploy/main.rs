//! `deploy` as an administrator has it: what kustomize and Helm make of it, whether a real API server takes it, whether it is
//! what the documents say, and what is left when it is deleted.
//!
//! Each test lists all that is wrong, not the first.

mod applied;
mod bounds;
mod chart;
mod documents;
mod evaluated;
mod installed;
mod monitoring;
mod rendered;
