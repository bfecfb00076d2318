//! The benchmarks of the pure core: `make bench`, or `make bench BENCH=plan` for one table.
//!
//! Every table has its baseline in its first row, measured in the same run, and the last column says how
//! many times that each row takes: ratios travel between machines, times don't.

mod documents;
mod plan;
mod pool;
mod render;
mod serve;

/// Each table by name, in the order in which a policy passes through what they measure.
const TABLES: [(&str, fn()); 4] =
    [("render", render::run), ("plan", plan::run), ("pool", pool::run), ("serve", serve::run)];

fn main() -> Result<(), String> {
    // Cargo adds `--bench`; whatever else begins with a dash isn't ours either.
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    // These are printed by programs of their own.
    const OTHERS: [&str; 3] = ["kernel", "api", "agents"];
    let is_known =
        |name: &String| OTHERS.contains(&name.as_str()) || TABLES.iter().any(|(known, _)| known == name);
    if let Some(unknown) = asked.iter().find(|name| !is_known(name)) {
        let known = TABLES.map(|(name, _)| name).join(", ");
        return Err(format!("no table named {unknown}; there are {known}, {}", OTHERS.join(", ")));
    }
    for (name, run) in TABLES {
        if asked.is_empty() || asked.iter().any(|wanted| wanted == name) {
            run();
            println!();
        }
    }
    Ok(())
}
