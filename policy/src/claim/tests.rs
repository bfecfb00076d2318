//! Tests of the claim protocol, by topic; rules of docs/claims.md and requirement numbers in names or comments.

mod fixtures;
mod host;
mod preview;
mod properties;
mod rebuild;
mod release;
mod reset;
mod serve;
mod several;
mod slices;
mod tend;
mod verify;
