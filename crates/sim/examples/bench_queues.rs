//! The costs of the queue disciplines: `cargo run --release -p fleetfoot-sim --example bench_queues`. With `NAME FLOWS PACKETS` it lets
//! so many packets pass through one of them and times nothing: under callgrind, two runs differ by the instructions of the
//! packets that one has more.

use fleetfoot_sim::bench::queues::{Table, measure, names, pass};
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, flows, packets] = &arguments[..]
        && names().any(|known| known == name)
        && let (Ok(flows @ 1..), Ok(packets)) = (flows.parse(), packets.parse())
    {
        println!("{} packets wait", pass(name, flows, packets));
        return;
    }
    if !arguments.is_empty() {
        let names: Vec<_> = names().collect();
        eprintln!(
            "usage: bench_queues [NAME FLOWS PACKETS]; names: {}",
            names.join("; ")
        );
        std::process::exit(2);
    }
    let start = Instant::now();
    let costs = measure(&mut || start.elapsed().as_nanos() as u64);
    print!("{}", Table(&costs));
}
