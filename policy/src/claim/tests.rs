//! Tests of the claim protocol, by topic; rules of docs/claims.md and requirement numbers in names or comments.

mod fixtures;
mod host;
mod properties;
mod rebuild;
mod serve;
mod several;
mod tend;
