//! SP-FQ: order and limit of each flow, and rates that do not depend on the length of super-packets.

use super::*;
use alloc::collections::VecDeque;

#[test]
fn flows_keep_their_order_and_their_limit() {
    for flow_limit in [None, Some(20)] {
        let mut given = Vec::from([
            ("limit", Value::Limit(Limit::Packets(60))),
            ("buckets", Value::Integer(65_536)),
            ("max_epoch", Value::Duration(Duration::from_millis(20))),
        ]);
        given.extend(flow_limit.map(|limit| ("flow_limit", Value::Integer(limit))));
        let mut bench = Bench::new(SpFq::new(&values(SpFq::PARAMETERS, &given), &LINK));
        let mut traffic = Traffic::new(17);
        let mut waiting: BTreeMap<u32, VecDeque<u32>> = BTreeMap::new();
        let (mut most, mut promises) = (0, 0);
        for step in 0..1_000_000 {
            match traffic.next() {
                Operation::Dequeue => {
                    let some = bench.dequeue(traffic.now);
                    let Some(packet) = some else {
                        assert!(waiting.values().all(VecDeque::is_empty), "work is left behind");
                        continue;
                    };
                    let first = waiting.get_mut(&packet.flow.0).and_then(VecDeque::pop_front);
                    assert_eq!(first, Some(packet.segment.seq.0), "order within a flow");
                }
                Operation::Enqueue { flow, port, mark } => {
                    let queued = bench.enqueue(traffic.now, port, packet(flow, step, mark));
                    assert!(!bench.saw(QueueEventKind::BrokenPromise));
                    if queued {
                        waiting.entry(flow).or_default().push_back(step);
                        promises += u32::from(mark.role == Role::First);
                    }
                    let key = bench.flows.key(FlowId(flow));
                    let bucket = bench.queue.key.flow(key, 65_536);
                    let own = waiting.get(&flow).map_or(0, |own| own.len() as u64)
                        + bench.queue.ledger.reserved_for(bucket);
                    most = most.max(own);
                    assert!(own <= flow_limit.unwrap_or(31), "the flow has {own}");
                    let all = u64::from(bench.queue.backlog().packets) + bench.queue.ledger.reserved();
                    assert!(all <= 60, "Q + R <= size");
                }
            }
        }
        assert!(
            promises > 10_000 && most > 10,
            "{promises} super-packets, a flow had {most}"
        );
    }
}

/// Bytes served of two flows that always want more, one with super-packets of `length`.
fn served(queue: impl QueueDiscipline, length: u8) -> [u64; 2] {
    let mut bench = Bench::new(queue);
    let mut bytes = [0; 2];
    let mut number = 0;
    let mut rng = Rng::from_seed(4);
    for round in 0..200_000_u64 {
        // A packet of each flow arrives for every packet that leaves.
        let now = round * 12_000;
        let member = (round % u64::from(length)) as u8;
        let id = (round / u64::from(length)) as u16 & 255;
        let mark = match (length, member) {
            (1, _) => Mark::REGULAR,
            (_, 0) => Mark::first(length, id),
            _ => Mark::follower(length, id),
        };
        // Which comes first must not matter.
        let mut arrivals = [(0, Mark::REGULAR), (1, mark)];
        if rng.below(2) == 0 {
            arrivals.reverse();
        }
        for (flow, mark) in arrivals {
            number += 1;
            bench.enqueue(now, 1, packet(flow, number, mark));
        }
        let packet = bench.dequeue(now).expect("both want more");
        bytes[packet.flow.0 as usize] += u64::from(packet.segment.len());
    }
    bytes
}

#[test]
fn the_rate_of_a_flow_does_not_depend_on_the_length_of_its_super_packets() {
    let given = [
        ("limit", Value::Limit(Limit::Packets(600))),
        ("max_length", Value::Integer(63)),
    ];
    for length in [1, 10, 63] {
        let [plain, grouped] = served(SpFq::new(&values(SpFq::PARAMETERS, &given), &LINK), length);
        let ratio = grouped as f64 / plain as f64;
        let [plain, grouped] = served(SpH::new(&values(SpH::PARAMETERS, &given), &LINK), length);
        println!(
            "length {length}: sp-fq {ratio:.4}, sp-h {:.4}",
            grouped as f64 / plain as f64
        );
        assert!((0.98..1.02).contains(&ratio), "length {length}: {ratio}");
    }
}

#[test]
fn a_limit_that_admits_no_super_packet_is_refused() {
    let with = |limit| {
        SpFq::check(&values(
            SpFq::PARAMETERS,
            &[("flow_limit", Value::Integer(limit))],
        ))
    };
    assert!(with(9).is_err());
    assert_eq!(with(10), Ok(()));
    assert!(with(101).is_err());
}
