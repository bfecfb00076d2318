//! `berth`, the binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    agent::embedded::guard::abort_outside();
    agent::cli::run()
}
