//! HULL's phantom queue: hand traces, and the closed form of its counter compared call by call.

use super::*;
use crate::time::Duration;

/// `LINK` has 10 Mbit/s; a drain of 0.8 is 8 Mbit/s, a byte per microsecond.
fn hull(limit: Limit, threshold: u64) -> Hull {
    let mut values = Values::defaults(Hull::PARAMETERS);
    values.set("limit", Value::Limit(limit)).expect("a limit");
    values.set("drain", Value::Number(0.8)).expect("a share");
    values
        .set("threshold", Value::Bytes(Bytes(threshold)))
        .expect("an amount");
    Hull::new(&values, &LINK)
}

/// Numbers of the packets that leave with a mark, of `departures` at these microseconds.
fn marked(threshold: u64, departures: &[(u64, u32)]) -> Vec<u32> {
    let mut bench = Bench::new(hull(Limit::Unlimited, threshold), flows(1), Limit::Unlimited);
    let mut marked = Vec::new();
    for (number, &(at, len)) in departures.iter().enumerate() {
        let now = Instant::from_micros(at);
        bench.enqueue(now, packet(0, number as u32, len, Ecn::Ect0 as u8));
        let out = bench.dequeue(now).expect("it waits");
        if out.segment.ecn() == Ecn::Ce {
            marked.push(number as u32);
        }
    }
    marked
}

#[test]
fn at_the_rate_of_the_link_the_excess_over_the_drain_is_marked() {
    // 1500 B every 1200 us is 10 Mbit/s; 1200 B of each drain until the next, so the counter is 1500 + 300 n after packet n.
    let back_to_back: Vec<(u64, u32)> = (0..20).map(|n| (1200 * n, 1500)).collect();
    // 1500 + 300 * 15 = 6000 is at the threshold, not above it.
    assert_eq!(marked(6000, &back_to_back), (16..20).collect::<Vec<u32>>());
}

#[test]
fn at_the_drain_or_below_nothing_is_marked() {
    let paced: Vec<(u64, u32)> = (0..2000).map(|n| (1500 * n, 1500)).collect();
    assert_eq!(marked(1500, &paced), []);
    // A microsecond less between packets: the counter grows by a byte each time.
    let faster: Vec<(u64, u32)> = (0..2000).map(|n| (1499 * n, 1500)).collect();
    assert_eq!(marked(1600, &faster)[0], 101);
}

/// The line carries `len` bytes and their framing in the same time, so the counter has to grow by both. Worked out by hand: 576 B with 38 B
/// of framing take 491.2 us, in which 491.2 B drain; so after packet n the counter is 614 + 122.8 n.
#[test]
fn the_framing_of_the_line_fills_the_counter_too() {
    let framed = LinkContext { framing: 38, ..LINK };
    let mut values = Values::defaults(Hull::PARAMETERS);
    values.set("drain", Value::Number(0.8)).expect("a share");
    let mut bench = Bench::new(Hull::new(&values, &framed), flows(1), Limit::Packets(1000));
    let first_mark = (0..100).find(|&number| {
        let now = Instant::from_nanos(u64::from(number) * 491_200);
        bench.enqueue(now, packet(0, number, 576, Ecn::Ect0 as u8));
        bench.dequeue(now).expect("it waits").segment.ecn() == Ecn::Ce
    });
    // 614 + 122.8 x 43 = 5894.4, 614 + 122.8 x 44 = 6017.2.
    assert_eq!(first_mark, Some(44));
}

#[test]
fn a_pause_empties_the_counter_and_no_more() {
    // 3000 B at once; after 5 ms nothing is left, and no credit for the rest of the pause either.
    let bursts = [(0, 1500), (0, 1500), (5000, 1500), (5000, 1500), (5000, 1500)];
    assert_eq!(marked(3000, &bursts), [4]);
}

#[test]
fn what_cannot_be_marked_counts() {
    let mut bench = Bench::new(hull(Limit::Unlimited, 2000), flows(1), Limit::Unlimited);
    for (number, ecn) in [(0, Ecn::NotEct), (1, Ecn::NotEct), (2, Ecn::Ect0)] {
        bench.enqueue(Instant::ZERO, packet(0, number, 1500, ecn as u8));
    }
    let out: Vec<u8> = (0..3)
        .map(|_| bench.dequeue(Instant::ZERO).expect("it waits").segment.tos)
        .collect();
    assert_eq!(out, [Ecn::NotEct as u8, Ecn::NotEct as u8, Ecn::Ce as u8]);
}

/// What waits in front of a link that drains a byte per microsecond: the largest, over all departures so far, of the bytes since
/// then less what drained since then (Lindley). In thousandths of a byte, times in nanoseconds.
fn waits(departures: &[(u64, u32)]) -> u64 {
    let &(now, _) = departures.last().expect("a departure");
    (0..departures.len())
        .map(|first| {
            let bytes: u64 = departures[first..].iter().map(|&(_, len)| u64::from(len)).sum();
            (1000 * bytes).saturating_sub(now - departures[first].0)
        })
        .max()
        .unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_counter_is_the_queue_of_the_slower_link(
        threshold in 0_u64..8000,
        limit in 1_usize..30,
        calls in prop::collection::vec((0_u64..2_500_000, prop::option::weighted(0.55, (1_u32..1501, 0_u8..4))), 100..500),
    ) {
        let limit = Limit::Packets(limit as u32);
        let mut bench = Bench::new(hull(limit, threshold), flows(1), limit);
        let mut now = Instant::ZERO;
        let (mut waiting, mut departures) = (VecDeque::new(), Vec::new());
        for (number, (step, call)) in calls.into_iter().enumerate() {
            now += Duration::from_nanos(step);
            match call {
                Some((len, ecn)) => {
                    let before = bench.log.len();
                    bench.enqueue(now, packet(0, number as u32, len, ecn));
                    // As drop-tail.
                    let fits = limit.admits(Backlog { packets: waiting.len() as u32, bytes: Bytes(0) }, len);
                    prop_assert_eq!(bench.log.len() == before, fits);
                    if fits {
                        waiting.push_back((number as u32, len, ecn));
                    }
                }
                None => {
                    let out = bench.dequeue(now);
                    let expected = waiting.pop_front();
                    prop_assert_eq!(out.map(|packet| packet.segment.seq.0), expected.map(|packet| packet.0));
                    let (Some(out), Some((_, len, ecn))) = (out, expected) else { continue };
                    departures.push((now.as_nanos(), len));
                    let marks = ecn != 0 && waits(&departures) > 1000 * threshold;
                    prop_assert_eq!(out.segment.tos, if marks { Ecn::Ce as u8 } else { ecn });
                }
            }
        }
    }
}
