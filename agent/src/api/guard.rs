//! Writes that land only where what they were decided on still holds: JSON patches with tests.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, TestOperation};
use serde_json::Value;

/// What is at this place must be this.
pub fn same(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: place(path), value })
}

/// Puts a value in place of whatever is there.
pub fn put(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: place(path), value })
}

/// Takes away what is there.
pub fn remove(path: &[&str]) -> PatchOperation {
    PatchOperation::Remove(RemoveOperation { path: place(path) })
}

pub fn patch(operations: Vec<PatchOperation>) -> Patch {
    Patch(operations)
}

fn place(path: &[&str]) -> PointerBuf {
    PointerBuf::from_tokens(path.iter().copied())
}
