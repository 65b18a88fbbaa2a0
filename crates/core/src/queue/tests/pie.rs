//! PIE against a second transcription with a timer of its own, and against numbers worked out by hand from RFC 8033.

use super::*;
use crate::rng::Rng;
use crate::time::Duration;

/// RFC 8033 appendices A and B with an event per update: seconds, bytes, and the draw supplied from outside.
struct PieOracle {
    drop_prob: f64,
    accu_prob: f64,
    current_qdelay: f64,
    qdelay_old: f64,
    burst_allowance_ns: i64,
    next_tick: u64,
    queue: VecDeque<(u64, u32, u64)>,
    in_measurement: bool,
    measurement_start: u64,
    dq_count: u64,
    avg_dq_time: f64,
    by_rate: bool,
    derandomise: bool,
    rng: Rng,
}

const T_UPDATE: u64 = 15_000_000;
const QDELAY_REF: f64 = 0.015;

impl PieOracle {
    fn new(by_rate: bool, derandomise: bool) -> PieOracle {
        PieOracle {
            drop_prob: 0.0,
            accu_prob: 0.0,
            current_qdelay: 0.0,
            qdelay_old: 0.0,
            burst_allowance_ns: 150_000_000,
            next_tick: T_UPDATE,
            queue: VecDeque::new(),
            in_measurement: false,
            measurement_start: 0,
            dq_count: 0,
            avg_dq_time: 0.0,
            by_rate,
            derandomise,
            rng: Rng::for_element(LINK.seed, "queue", "pie"),
        }
    }

    fn byte_length(&self) -> u64 {
        self.queue.iter().map(|packet| packet.2).sum()
    }

    fn run_timer(&mut self, now: u64) {
        while self.next_tick <= now {
            if self.by_rate {
                // The discipline keeps whole nanoseconds.
                let s = self.byte_length() as f64 * self.avg_dq_time / 16384.0;
                self.current_qdelay = Duration::from_secs_f64(s).as_nanos() as f64 / 1e9;
            }
            let mut p =
                0.125 * (self.current_qdelay - QDELAY_REF) + 1.25 * (self.current_qdelay - self.qdelay_old);
            if self.drop_prob < 0.000001 {
                p /= 2048.0;
            } else if self.drop_prob < 0.00001 {
                p /= 512.0;
            } else if self.drop_prob < 0.0001 {
                p /= 128.0;
            } else if self.drop_prob < 0.001 {
                p /= 32.0;
            } else if self.drop_prob < 0.01 {
                p /= 8.0;
            } else if self.drop_prob < 0.1 {
                p /= 2.0;
            }
            if self.drop_prob >= 0.1 && p > 0.02 {
                p = 0.02;
            }
            self.drop_prob += p;
            if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
                self.drop_prob *= 0.98;
            }
            self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
            self.qdelay_old = self.current_qdelay;
            self.burst_allowance_ns = (self.burst_allowance_ns - T_UPDATE as i64).max(0);
            self.next_tick += T_UPDATE;
        }
    }

    /// 0 passes, 1 is chosen to be marked or dropped.
    fn drop_early(&mut self) -> bool {
        if (self.qdelay_old < QDELAY_REF / 2.0 && self.drop_prob < 0.2) || self.byte_length() <= 2 * 1500 {
            return false;
        }
        if self.derandomise {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        f64::from(self.rng.next_u32()) < (self.drop_prob * 4_294_967_296.0).round()
    }

    /// Whether the packet is queued, and marked.
    fn enque(&mut self, now: u64, number: u32, len: u64, capable: bool) -> (bool, bool) {
        self.run_timer(now);
        if self.drop_prob == 0.0
            && self.current_qdelay < QDELAY_REF / 2.0
            && self.qdelay_old < QDELAY_REF / 2.0
        {
            self.burst_allowance_ns = 150_000_000;
        }
        let mut marked = false;
        if self.burst_allowance_ns == 0 && self.drop_early() {
            self.accu_prob = 0.0;
            if !(capable && self.drop_prob < 0.1) {
                return (false, false);
            }
            marked = true;
        }
        self.queue.push_back((now, number, len));
        (true, marked)
    }

    fn deque(&mut self, now: u64) -> Option<u32> {
        self.run_timer(now);
        let (arrived, number, len) = self.queue.pop_front()?;
        let left = self.byte_length();
        if self.by_rate {
            // Appendix B of the RFC with the order of Linux's steady state: what left is counted, then a cycle starts.
            if self.in_measurement {
                self.dq_count += len;
                if self.dq_count >= 16384 && now > self.measurement_start {
                    let dq_time = (now - self.measurement_start) as f64 / 1e9;
                    if self.avg_dq_time == 0.0 {
                        self.avg_dq_time = dq_time;
                    } else {
                        self.avg_dq_time = dq_time * 0.25 + self.avg_dq_time * 0.75;
                    }
                    self.in_measurement = false;
                }
            }
            if !self.in_measurement && left >= 16384 {
                self.in_measurement = true;
                self.measurement_start = now;
                self.dq_count = 0;
            }
        } else {
            self.current_qdelay = if left == 0 {
                0.0
            } else {
                (now - arrived) as f64 / 1e9
            };
        }
        Some(number)
    }
}

fn pie(change: impl Fn(&mut Values)) -> Pie {
    let mut values = Values::defaults(Pie::PARAMETERS);
    values
        .set("limit", Value::Limit(Limit::Unlimited))
        .expect("a limit");
    change(&mut values);
    Pie::new(&values, &LINK)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn pie_agrees_with_a_second_transcription(
        load in 0.9_f64..1.5,
        by_rate in any::<bool>(),
        derandomise in any::<bool>(),
        ecn in any::<bool>(),
        steps in prop::collection::vec((1_u64..1600, 0.0_f64..1.0, 40_u32..1501, any::<bool>(), 0_u32..500), 3000..6000),
    ) {
        let queue = pie(|values| {
            values.set("delay", Value::Choice(if by_rate { "rate" } else { "timestamp" })).expect("a choice");
            values.set("derandomise", Value::Flag(derandomise)).expect("a flag");
            values.set("ecn", Value::Flag(ecn)).expect("a flag");
        });
        let mut bench = Bench::new(queue, flows(1), Limit::Unlimited);
        let mut oracle = PieOracle::new(by_rate, derandomise);
        let (mut now, mut chosen) = (0, 0);
        let mut marks = BTreeMap::new();
        for (number, (step, draw, len, capable, pause)) in steps.into_iter().enumerate() {
            // One step in 500 is a pause of up to half a minute: many missed updates.
            now += if pause == 0 { step * 20_000_000 } else { step * 1000 };
            let at = Instant::from_nanos(now);
            if draw < load / (1.0 + load) {
                bench.log.clear();
                bench.enqueue(at, packet(0, number as u32, len, u8::from(capable)));
                let (queued, marked) = oracle.enque(now, number as u32, u64::from(len), ecn && capable);
                prop_assert_eq!(bench.log.is_empty(), queued, "packet {}", number);
                chosen += usize::from(!queued || marked);
                marks.insert(number as u32, marked);
            } else {
                let out = bench.dequeue(at);
                prop_assert_eq!(out.map(|packet| packet.segment.seq.0), oracle.deque(now));
                if let Some(packet) = out {
                    prop_assert_eq!(marks[&packet.segment.seq.0], packet.segment.ecn() == Ecn::Ce);
                }
            }
            prop_assert_eq!(bench.queue.probability(), oracle.drop_prob);
        }
        prop_assert!(load < 1.3 || chosen > 0, "nothing was chosen: the trace says nothing");
    }
}

#[test]
fn pie_moves_as_worked_out_by_hand_from_rfc_8033() {
    // Every 15 ms a packet leaves that waited 30 ms; others stay behind.
    let mut bench = Bench::new(pie(|_| ()), flows(1), Limit::Unlimited);
    for number in 0..2 {
        bench.enqueue(Instant::from_millis(1), packet(0, number, 1500, 0));
    }
    let mut seen = Vec::new();
    for tick in 0..4_u64 {
        let now = Instant::from_nanos(31_000_000 + tick * T_UPDATE);
        let next = Instant::from_nanos(1_000_000 + (tick + 1) * T_UPDATE);
        bench.enqueue(
            next.max(Instant::from_millis(30)),
            packet(0, 2 + tick as u32, 1500, 0),
        );
        bench.dequeue(now);
        seen.push(bench.queue.probability());
    }
    // Updates at 15 and 30 ms see a delay of 0. At 45 ms: (0.125 x 15 ms + 1.25 x 30 ms) / 2048 = 1.9226e-5.
    // At 60 ms the delay is the 45 ms of the packet that left at 46 ms: (0.125 x 30 ms + 1.25 x 15 ms) / 128 more.
    assert_eq!(seen[0], 0.0);
    let first = (0.125 * 0.015 + 1.25 * 0.030) / 2048.0;
    assert!((seen[1] - first).abs() < 1e-12, "{seen:?}");
    assert!((first - 1.922_6e-5).abs() < 1e-9);
    let second = first + (0.125 * 0.030 + 1.25 * 0.015) / 128.0;
    assert!((seen[2] - second).abs() < 1e-12, "{seen:?}");
}

/// Time in which 16384 B leave, ns, as PIE measures it, after `packets` of `len` bytes have left a line of 10 Mbit/s that never idles.
fn drain_ns(len: u32, packets: u64) -> f64 {
    let mut bench = Bench::new(
        pie(|values| values.set("delay", Value::Choice("rate")).expect("a choice")),
        flows(1),
        Limit::Unlimited,
    );
    for number in 0..packets as u32 + 50 {
        bench.enqueue(Instant::ZERO, packet(0, number, len, 0));
    }
    for number in 0..packets {
        bench.dequeue(Instant::from_nanos(number * u64::from(len) * 800));
    }
    bench.queue.drain_time() * 1e9
}

/// A byte takes 800 ns. A cycle begins when a packet has left and counts those that leave after it.
#[test]
fn the_drain_rate_is_that_of_the_line_whatever_the_size_of_packets() {
    for (len, packets_of_a_cycle) in [(1500, 11), (9000, 2), (16_384, 1), (19_500, 1)] {
        let expected = f64::from(packets_of_a_cycle * len * 800);
        for cycles in [1, 5] {
            let measured = drain_ns(len, u64::from(1 + cycles * packets_of_a_cycle));
            assert!(
                (measured - expected).abs() < 1.0,
                "{len} B: {measured} ns, not {expected}"
            );
        }
    }
}

#[test]
fn packets_that_leave_at_one_instant_measure_nothing() {
    let mut bench = Bench::new(
        pie(|values| values.set("delay", Value::Choice("rate")).expect("a choice")),
        flows(1),
        Limit::Unlimited,
    );
    for number in 0..60 {
        bench.enqueue(Instant::ZERO, packet(0, number, 1500, 0));
    }
    // 1 + 20 packets at once: no time has passed, so the cycle goes on. One more after 1.2 ms ends it with 21 packets.
    for _ in 0..21 {
        bench.dequeue(Instant::ZERO);
    }
    assert_eq!(bench.queue.drain_time(), 0.0);
    bench.dequeue(Instant::from_micros(1200));
    assert!((bench.queue.drain_time() - 0.0012).abs() < 1e-12);
}

/// 19,500 B take 15.6 ms; they arrive every 10 ms. PIE has to see the queue and to hold it.
#[test]
fn pie_by_rate_drops_large_packets() {
    let mut bench = Bench::new(
        pie(|values| values.set("delay", Value::Choice("rate")).expect("a choice")),
        flows(1),
        Limit::Unlimited,
    );
    let mut next_departure = 0;
    for number in 0..3000_u64 {
        while next_departure <= number * 10_000 {
            bench.dequeue(Instant::from_micros(next_departure));
            next_departure += 15_600;
        }
        bench.enqueue(
            Instant::from_micros(number * 10_000),
            packet(0, number as u32, 19_500, 0),
        );
    }
    let dropped = bench
        .log
        .iter()
        .filter(|(_, _, reason)| *reason == DropReason::Early)
        .count();
    assert!(dropped > 500, "{dropped} of 3000, of which the line carries 1923");
    assert!(bench.queue.backlog().packets < 100, "{:?}", bench.queue.backlog());
}

#[test]
fn pie_lets_a_burst_of_150_ms_pass_and_then_drops() {
    // 10 Mbit/s serves 1500 B in 1.2 ms; they arrive twice as fast.
    let mut bench = Bench::new(pie(|_| ()), flows(1), Limit::Unlimited);
    let mut first_drop = None;
    let mut number = 0;
    for slot in 0..2000_u64 {
        let now = Instant::from_micros(slot * 1200);
        for _ in 0..2 {
            bench.enqueue(now, packet(0, number, 1500, 0));
            number += 1;
        }
        if bench
            .log
            .iter()
            .any(|(_, _, reason)| *reason == DropReason::Early)
        {
            first_drop.get_or_insert(now);
        }
        bench.dequeue(now);
    }
    let first_drop = first_drop.expect("twice the load for two seconds");
    assert!(first_drop > Instant::from_millis(150), "{first_drop:?}");
    assert!(first_drop < Instant::from_millis(700), "{first_drop:?}");
}

#[test]
fn pie_marks_up_to_ten_percent_and_drops_above() {
    let queue = pie(|values| values.set("ecn", Value::Flag(true)).expect("a flag"));
    let mut bench = Bench::new(queue, flows(1), Limit::Unlimited);
    let (mut number, mut marks_below, mut drops_below, mut drops_above) = (0, 0, 0, 0);
    for slot in 0..4000_u64 {
        let now = Instant::from_micros(slot * 1200);
        for _ in 0..2 {
            bench.log.clear();
            bench.enqueue(now, packet(0, number, 1500, Ecn::Ect0 as u8));
            number += 1;
            let dropped = !bench.log.is_empty();
            if bench.queue.probability() < 0.1 {
                drops_below += usize::from(dropped);
            } else {
                drops_above += usize::from(dropped);
            }
        }
        let marked = bench
            .dequeue(now)
            .is_some_and(|packet| packet.segment.ecn() == Ecn::Ce);
        marks_below += usize::from(marked);
    }
    assert!(marks_below > 0);
    assert_eq!(drops_below, 0);
    assert!(drops_above > 0);
}

/// FQ-PIE from its parts: two lists of flows, and a [`PieOracle`] per flow that runs its own timer.
struct FqPieOracle {
    flows: Vec<PieOracle>,
    deficit: Vec<i64>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

impl FqPieOracle {
    fn deque(&mut self, now: u64) -> Option<u32> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let flow = *list.front()?;
            if self.deficit[flow] <= 0 {
                self.deficit[flow] += 1500;
                list.pop_front();
                self.old.push_back(flow);
                continue;
            }
            let len = self.flows[flow].queue.front().map(|packet| packet.2);
            if let Some(number) = self.flows[flow].deque(now) {
                self.deficit[flow] -= len.expect("it left") as i64;
                return Some(number);
            }
            list.pop_front();
            if from_new {
                self.old.push_back(flow);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn fq_pie_agrees_with_its_parts(
        load in 1.0_f64..1.6,
        ecn in any::<bool>(),
        steps in prop::collection::vec((1_u64..1600, 0.0_f64..1.0, 40_u32..1501, any::<bool>(), 0_u32..6), 3000..6000),
    ) {
        let mut values = Values::defaults(FqPie::PARAMETERS);
        values.set("limit", Value::Limit(Limit::Unlimited)).expect("a limit");
        values.set("queues", Value::Integer(65_536)).expect("a number");
        values.set("ecn", Value::Flag(ecn)).expect("a flag");
        let mut bench = Bench::new(FqPie::new(&values, &LINK), flows(4), Limit::Unlimited);
        // One stream of random numbers for all flows: it is handed to the flow that draws.
        let mut rng = Rng::for_element(LINK.seed, "queue", "fq-pie");
        let mut oracle = FqPieOracle {
            flows: (0..4).map(|_| PieOracle::new(false, true)).collect(),
            deficit: vec![0; 4],
            new: VecDeque::new(),
            old: VecDeque::new(),
        };
        let (mut now, mut chosen) = (0, 0);
        for (number, (step, draw, len, capable, flow)) in steps.into_iter().enumerate() {
            now += step * 1000;
            let at = Instant::from_nanos(now);
            let flow = flow.saturating_sub(2); // half of the packets are of flow 0
            if draw < load / (1.0 + load) {
                bench.log.clear();
                bench.enqueue(at, packet(flow, number as u32, len, u8::from(capable)));
                let index = flow as usize;
                core::mem::swap(&mut oracle.flows[index].rng, &mut rng);
                let (queued, marked) = oracle.flows[index].enque(now, number as u32, u64::from(len), ecn && capable);
                core::mem::swap(&mut oracle.flows[index].rng, &mut rng);
                prop_assert_eq!(bench.log.is_empty(), queued, "packet {}", number);
                chosen += usize::from(!queued || marked);
                if queued && !oracle.new.contains(&index) && !oracle.old.contains(&index) {
                    oracle.deficit[index] = 1500;
                    oracle.new.push_back(index);
                }
            } else {
                let out = bench.dequeue(at).map(|packet| packet.segment.seq.0);
                prop_assert_eq!(out, oracle.deque(now));
            }
        }
        prop_assert!(load < 1.4 || chosen > 0, "nothing was chosen: the trace says nothing");
    }
}

#[test]
fn fq_pie_drops_from_the_flow_that_fills_the_line_only() {
    let limit = Limit::Packets(10_240);
    let mut bench = Bench::new(build("fq-pie", limit, false), flows(2), limit);
    let mut number = 0;
    let mut dropped = [0, 0];
    for slot in 0..4000_u64 {
        let now = Instant::from_micros(slot * 1200);
        // Flow 0 offers twice the rate of the line; flow 1 a packet in 20.
        let senders: &[u32] = if slot % 20 == 0 { &[0, 0, 1] } else { &[0, 0] };
        for &flow in senders {
            bench.log.clear();
            bench.enqueue(now, packet(flow, number, 1500, 0));
            dropped[flow as usize] += bench.log.len();
            number += 1;
        }
        bench.dequeue(now);
    }
    assert!(dropped[0] > 100, "{dropped:?}");
    assert_eq!(dropped[1], 0);
}
