//! The costs of the queue disciplines: `cargo run --release -p fleetfoot-sim --example bench_queues`.

use fleetfoot_sim::bench::queues::{Table, measure};
use std::time::Instant;

fn main() {
    let start = Instant::now();
    let costs = measure(&mut || start.elapsed().as_nanos() as u64);
    print!("{}", Table(&costs));
}
