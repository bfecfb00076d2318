//! Writes `docs/man` and `agent/completions` anew from the command line: `cargo run -p agent --example commands`.

mod pages;

use std::{error::Error, fs};

fn main() -> Result<(), Box<dyn Error>> {
    for stale in pages::stale() {
        fs::remove_file(stale)?;
    }
    for (path, text) in pages::files()? {
        fs::write(path, text)?;
    }
    Ok(())
}
