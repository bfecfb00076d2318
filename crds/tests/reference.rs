//! The committed reference of the API is what the types generate.

#[path = "../examples/reference/page.rs"]
mod page;

#[test]
fn the_committed_page_is_up_to_date() {
    let committed = std::fs::read_to_string(page::file()).unwrap_or_default();
    assert!(committed == page::text(), "docs/api.md is stale: run `make generate`");
}
