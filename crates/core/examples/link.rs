//! A drop-tail link at work, for counting instructions per packet:
//! `cargo build --release -p fleetfoot-core --example link && valgrind --tool=callgrind target/release/examples/link 100000`,
//! once with 100000 packets and once with 200000; the difference over 100000 is the cost of a packet.

use fleetfoot_core::flow::{FlowId, FlowTable};
use fleetfoot_core::link::{Link, LinkConfig};
use fleetfoot_core::packet::{BufId, Packet, Segment};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::queue::AnyQueue;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let packets: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let name = arguments.next().unwrap_or_else(|| "drop-tail".into());
    let config = LinkConfig::new(Rate(1_000_000_000), Duration::from_millis(1));
    let Some(entry) = AnyQueue::entry(&name) else {
        eprintln!("no queue is called {name}");
        return;
    };
    let values = Values::defaults(entry.parameters);
    let Some(queue) = AnyQueue::build(&name, &values, &config.link_context(1)) else {
        return;
    };
    let mut link = Link::new(queue, &config, 1, "link");
    let flows = FlowTable::new();
    let packet = Packet {
        enqueued_at: Instant::ZERO,
        flow: FlowId(0),
        buf: BufId::NONE,
        segment: Segment {
            payload: 1460,
            overhead: 40,
            ..Segment::default()
        },
    };
    // Ten packets every 120 us, the time they take: the queue holds up to nine.
    let (mut sent, mut delivered) = (0, 0);
    let mut burst_at = Instant::ZERO;
    while delivered < packets {
        let next = link.poll_timeout();
        if sent < packets && next.is_none_or(|at| burst_at <= at) {
            for _ in 0..10 {
                link.on_packet(burst_at, packet, &flows, &mut ());
            }
            sent += 10;
            burst_at += Duration::from_micros(120);
        } else if let Some(at) = next {
            while link.poll_delivery(at, &flows, &mut ()).is_some() {
                delivered += 1;
            }
        }
    }
    println!(
        "{delivered} packets delivered, {} dropped",
        link.statistics().dropped()
    );
}
