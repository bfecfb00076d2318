//! Writes `docs/api.md`, the reference of the API: `cargo run -p crds --example reference`.

mod page;

use std::{error::Error, fs};

fn main() -> Result<(), Box<dyn Error>> {
    fs::write(page::file(), page::text())?;
    Ok(())
}
