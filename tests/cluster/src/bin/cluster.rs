//! A cluster to try things on: `cargo run -p cluster-tests --bin cluster [NODES] [BERTH]`.
//!
//! Prints what to type to reach it; ends when its input does. BERTH is a static berth, whose image the nodes then have
//! (`make test-cluster` leaves one in `target/cluster`).

use std::io::{Read, stdin};
use std::path::Path;

use cluster_tests::{Cluster, Node};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let nodes: u8 = arguments.next().map_or(3, |count| count.parse().expect("a number of nodes"));
    let cluster = Cluster::start();
    if let Some(berth) = arguments.next() {
        cluster.image(Path::new(&berth), "localhost/berth:0.1.0");
    }
    for node in 1..=nodes {
        cluster.boot(Node(node));
    }
    println!("kubectl() {{ {} \"$@\"; }}", cluster.kubectl_line());
    println!("Logs are in {}. Ctrl-D ends it.", cluster.folder().display());
    let mut nothing = Vec::new();
    // However the input ends: so does this.
    let _ = stdin().read_to_end(&mut nothing);
}
