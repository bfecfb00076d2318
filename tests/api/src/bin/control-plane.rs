//! A control plane with our CRDs to try things on: `cargo run -p api-tests --bin control-plane`.
//!
//! Prints what to type to reach it; ends when its input does.

use std::io::{Read, stdin};

use api_tests::control_plane::{ControlPlane, StartError};

fn main() -> Result<(), StartError> {
    let plane = ControlPlane::start()?;
    println!("export KUBECONFIG={}", plane.kubeconfig().display());
    println!("{} get nodeippools", plane.kubectl().display());
    println!("Ctrl-D ends it.");
    let mut nothing = Vec::new();
    // However the input ends: so does this.
    let _ = stdin().read_to_end(&mut nothing);
    Ok(())
}
