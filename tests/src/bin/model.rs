//! The model check, run by hand: `make soak`.

use berth_tests::model::{Bounds, Config, Fault, check};

fn main() {
    let limit: usize = std::env::args()
        .nth(1)
        .and_then(|arg| arg.parse().ok())
        .unwrap_or(200_000);
    let only: Option<usize> = std::env::args().nth(2).and_then(|arg| arg.parse().ok());
    for faults in Fault::sets() {
        if only.is_some_and(|n| faults.len() != n) {
            continue;
        }
        if let Some(name) = std::env::args().nth(3)
            && !faults.iter().any(|f| format!("{f}") == name)
        {
            continue;
        }
        let config = Config::new(
            2,
            std::env::args().nth(4).and_then(|a| a.parse().ok()).unwrap_or(1),
            &faults,
        );
        let t = std::time::Instant::now();
        let report = check(&config, &Bounds { states: limit });
        println!(
            "{faults:?}: {} states, {} moves, depth {}, complete {} {:?}",
            report.states,
            report.moves,
            report.depth,
            report.complete,
            t.elapsed()
        );
        if let Some(violation) = report.violation {
            println!("{violation}");
            std::process::exit(1);
        }
    }
}
