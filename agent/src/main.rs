//! `berth`, the binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    agent::cli::run()
}
