//! Second, naive transcriptions of the published pseudocode, compared with the disciplines call by call.

use super::*;
use crate::time::Duration;

/// RFC 8289 section 5, word by word: times are nanoseconds, zero means "not set". Marking as Linux's `codel_dequeue` has it:
/// a packet that can carry a mark is marked where it would be dropped, and again by its own wait.
struct CoDelOracle {
    queue: VecDeque<Waiting>,
    bytes: u64,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    dropped: Vec<u32>,
    ecn: bool,
    ce_threshold: u64,
}

/// Arrival, number, length, codepoint.
type Waiting = (u64, u32, u32, u8);

const TARGET: u64 = 5_000_000;
const INTERVAL: u64 = 100_000_000;
const MAXPACKET: u64 = 1500;

type Popped = (Option<Waiting>, bool);

impl CoDelOracle {
    fn new(ecn: bool, ce_threshold: u64) -> CoDelOracle {
        CoDelOracle {
            queue: VecDeque::new(),
            bytes: 0,
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            dropped: Vec::new(),
            ecn,
            ce_threshold,
        }
    }

    fn control_law(t: u64, count: u32) -> u64 {
        t + (INTERVAL as f64 / f64::from(count).sqrt()) as u64
    }

    fn dodequeue(&mut self, now: u64) -> Popped {
        let Some(p) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        self.bytes -= u64::from(p.2);
        let sojourn_time = now - p.0;
        let mut ok_to_drop = false;
        if sojourn_time < TARGET || self.bytes <= MAXPACKET {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(p), ok_to_drop)
    }

    /// Number and codepoint of the packet that leaves.
    fn deque(&mut self, now: u64) -> Option<(u32, u8)> {
        let mut packet = self.controlled(now)?;
        if now - packet.0 > self.ce_threshold && packet.3 != 0 {
            packet.3 = 3;
        }
        Some((packet.1, packet.3))
    }

    fn controlled(&mut self, now: u64) -> Option<Waiting> {
        let mut r = self.dodequeue(now);
        let marks = |p: &Option<Waiting>| p.is_some_and(|p| p.3 != 0);
        if self.dropping {
            if !r.1 {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                if self.ecn && marks(&r.0) {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                    return r.0.map(|p| (p.0, p.1, p.2, 3));
                }
                self.dropped.extend(r.0.map(|p| p.1));
                r = self.dodequeue(now);
                if !r.1 {
                    self.dropping = false;
                } else {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                }
            }
        } else if r.1 {
            if self.ecn && marks(&r.0) {
                r.0 = r.0.map(|p| (p.0, p.1, p.2, 3));
            } else {
                self.dropped.extend(r.0.map(|p| p.1));
                r = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count.wrapping_sub(self.lastcount) as i32;
            self.count = 1;
            if delta > 1 && now.saturating_sub(self.drop_next) < 16 * INTERVAL {
                self.count = delta as u32;
            }
            self.drop_next = Self::control_law(now, self.count);
            self.lastcount = self.count;
        }
        r.0
    }
}

/// Packets (number, length), deficit, whether the quantum of this turn was added.
#[derive(Clone, Default)]
struct DrrFlow(VecDeque<(u32, u64)>, u64, bool);

/// DRR (docs/design/queues.md#drr-turn) with a linear search for the longest queue.
struct DrrOracle {
    flows: Vec<DrrFlow>,
    active: VecDeque<usize>,
    quantum: u64,
}

impl DrrOracle {
    fn enqueue(&mut self, flow: usize, number: u32, len: u64) {
        if self.flows[flow].0.is_empty() {
            self.flows[flow].1 = 0;
            self.flows[flow].2 = false;
            self.active.push_back(flow);
        }
        self.flows[flow].0.push_back((number, len));
    }

    fn backlog(&self, flow: usize) -> u64 {
        self.flows[flow].0.iter().map(|packet| packet.1).sum()
    }

    fn longest(&self) -> u64 {
        (0..self.flows.len())
            .map(|flow| self.backlog(flow))
            .max()
            .unwrap_or(0)
    }

    fn remove_head(&mut self, number: u32) -> usize {
        let flow = (0..self.flows.len())
            .find(|&flow| self.flows[flow].0.front().is_some_and(|head| head.0 == number))
            .expect("only heads are dropped");
        self.flows[flow].0.pop_front();
        if self.flows[flow].0.is_empty() {
            self.active.retain(|&other| other != flow);
        }
        flow
    }

    fn dequeue(&mut self) -> Option<u32> {
        loop {
            let flow = *self.active.front()?;
            let DrrFlow(queue, deficit, visited) = &mut self.flows[flow];
            if !*visited {
                *deficit += self.quantum;
                *visited = true;
            }
            let (number, len) = queue[0];
            if len <= *deficit {
                *deficit -= len;
                queue.pop_front();
                if queue.is_empty() {
                    self.active.pop_front();
                }
                return Some(number);
            }
            *visited = false;
            self.active.rotate_left(1);
        }
    }
}

/// RED of Floyd and Jacobson's figure 2 over a line of 10 Mbit/s and packets of 1000 B on average, the draw supplied from
/// outside. Gentle: Floyd's note of 2000, in the two-line form of ns-2 (slope and offset above the upper threshold).
/// Byte mode: ns-2's `count_bytes`: the queue and what passed since the last drop are measured in bytes, and the probability
/// that was spread out grows with the packet.
struct RedOracle {
    wq: f64,
    minth: f64,
    maxth: f64,
    maxp: f64,
    gentle: bool,
    bytes: bool,
    ecn: bool,
    /// Linux's `red_use_harddrop`: `RED_HARD_MARK` drops what could be marked.
    hard_drop: bool,
    avg: f64,
    count: i64,
    /// Bytes since the last drop, those of the first packet above the lower threshold left out.
    count_bytes: u64,
    q: usize,
    q_bytes: usize,
    q_time: f64,
    rng: crate::rng::Rng,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Kept,
    Marked,
    Dropped,
}

impl RedOracle {
    const MEAN: f64 = 1000.0;

    /// What ns-2.35 sets when thresholds and weight are 0: half of 5 ms of queue but at least 5 packets, three times
    /// that, and 1 - exp(-1 / packets per second).
    fn automatic() -> (f64, f64, f64) {
        let packets_per_second = 10e6 / 8.0 / Self::MEAN;
        let target = 0.005 * packets_per_second;
        let mut minth = 5.0;
        if minth < target / 2.0 {
            minth = target / 2.0;
        }
        (minth, 3.0 * minth, 1.0 - (-1.0 / packets_per_second).exp())
    }

    fn arrive(&mut self, time: f64, len: u32, capable: bool) -> Verdict {
        let measured = if self.bytes {
            self.q_bytes as f64
        } else {
            self.q as f64
        };
        if self.q > 0 {
            self.avg = (1.0 - self.wq) * self.avg + self.wq * measured;
        } else {
            let s = Self::MEAN * 8.0 / 10e6;
            let m = (time - self.q_time) / s;
            self.avg *= (1.0 - self.wq).powf(m);
            // Linux's red_end_of_idle_period and ns-2's idle_ = 0: this time is over, whatever becomes of the packet.
            self.q_time = time;
        }
        let scale = if self.bytes { Self::MEAN } else { 1.0 };
        let (minth, maxth) = (self.minth * scale, self.maxth * scale);
        let pb;
        if self.avg < minth {
            self.count = -1;
            self.count_bytes = 0;
            return Verdict::Kept;
        } else if self.avg < maxth {
            pb = self.maxp * (self.avg - minth) / (maxth - minth);
        } else if self.gentle && self.avg < 2.0 * maxth {
            let (slope, offset) = ((1.0 - self.maxp) / maxth, 2.0 * self.maxp - 1.0);
            pb = slope * self.avg + offset;
        } else {
            self.count = 0;
            self.count_bytes = 0;
            // No draw, and no mark (RFC 3168 7) unless as in Linux.
            return match self.ecn && capable && !self.hard_drop {
                true => Verdict::Marked,
                false => Verdict::Dropped,
            };
        }
        self.count += 1;
        if self.count > 0 {
            self.count_bytes += u64::from(len);
        }
        let passed = if self.bytes {
            self.count_bytes as f64 / Self::MEAN
        } else {
            self.count as f64
        };
        let mut pa = pb / (1.0 - passed * pb);
        let certain = !(0.0..1.0).contains(&pa);
        if self.bytes {
            pa *= f64::from(len) / Self::MEAN;
        }
        let chosen = certain
            || !(0.0..1.0).contains(&pa)
            || f64::from(self.rng.next_u32()) < (pa * 4_294_967_296.0).round();
        if !chosen {
            return Verdict::Kept;
        }
        self.count = 0;
        self.count_bytes = 0;
        if self.ecn && capable && (self.avg < maxth || !self.hard_drop) {
            Verdict::Marked
        } else {
            Verdict::Dropped
        }
    }
}

/// FQ-CoDel's scheduler of RFC 8290 4.2 without CoDel (nothing waits long enough): two lists of flows.
struct FqOracle {
    flows: Vec<(VecDeque<(u32, i64)>, i64)>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

impl FqOracle {
    fn enqueue(&mut self, flow: usize, number: u32, len: i64) {
        self.flows[flow].0.push_back((number, len));
        if !self.new.contains(&flow) && !self.old.contains(&flow) {
            self.flows[flow].1 = 1500;
            self.new.push_back(flow);
        }
    }

    fn dequeue(&mut self) -> Option<u32> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let flow = *list.front()?;
            if self.flows[flow].1 <= 0 {
                self.flows[flow].1 += 1500;
                list.pop_front();
                self.old.push_back(flow);
            } else if let Some((number, len)) = self.flows[flow].0.pop_front() {
                self.flows[flow].1 -= len;
                return Some(number);
            } else {
                list.pop_front();
                if from_new {
                    self.old.push_back(flow);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn codel_agrees_with_a_second_transcription(
        load in 0.5_f64..2.0,
        ecn in any::<bool>(),
        ce_threshold in prop::option::of(500_u64..20_000),
        steps in prop::collection::vec((1_u64..3000, 0.0_f64..1.0, 40_u32..1501, 0_u8..4), 500..3000),
    ) {
        let mut values = Values::defaults(CoDel::PARAMETERS);
        values.set("limit", Value::Limit(Limit::Unlimited)).expect("a limit");
        values.set("ecn", Value::Flag(ecn)).expect("a flag");
        if let Some(us) = ce_threshold {
            values.set("ce_threshold", Value::Duration(Duration::from_micros(us))).expect("a time");
        }
        let mut oracle = CoDelOracle::new(ecn, ce_threshold.map_or(u64::MAX, |us| us * 1000));
        let mut bench = Bench::new(CoDel::new(&values, &LINK), flows(1), Limit::Unlimited);
        let mut ns = 1_000_000_000;
        for (number, (step, draw, len, tos)) in steps.into_iter().enumerate() {
            ns += step * 1000;
            let now = Instant::from_nanos(ns);
            if draw < load / (1.0 + load) {
                bench.enqueue(now, packet(0, number as u32, len, tos));
                oracle.queue.push_back((ns, number as u32, len, tos));
                oracle.bytes += u64::from(len);
            } else {
                let out = bench.dequeue(now).map(|packet| (packet.segment.seq.0, packet.segment.tos));
                prop_assert_eq!(out, oracle.deque(ns));
                let dropped: Vec<u32> = bench.log.drain(..).filter(|entry| entry.2 == DropReason::Early)
                    .filter_map(|entry| entry.0).collect();
                prop_assert_eq!(dropped, core::mem::take(&mut oracle.dropped));
            }
        }
    }

    #[test]
    fn drr_agrees_with_a_second_transcription(
        quantum in 100_u64..3000,
        calls in prop::collection::vec(prop::option::weighted(0.6, (0_u32..8, 40_u32..1501)), 200..2000),
    ) {
        let limit = Limit::Bytes(Bytes(20_000));
        let mut bench = Bench::new(drr(quantum, limit, |_| ()), flows(8), limit);
        let mut oracle = DrrOracle { flows: vec![Default::default(); 8], active: VecDeque::new(), quantum };
        for (number, call) in calls.into_iter().enumerate() {
            match call {
                Some((flow, len)) => {
                    bench.log.clear();
                    bench.enqueue(Instant::ZERO, packet(flow, number as u32, len, 0));
                    oracle.enqueue(flow as usize, number as u32, u64::from(len));
                    for &(dropped, _, _) in &bench.log {
                        // docs/design/queues.md#drr-longest: a flow with more than half of the longest backlog loses its head.
                        let longest = oracle.longest();
                        let number = dropped.expect("a drop has a number");
                        let before: Vec<u64> = (0..8).map(|flow| oracle.backlog(flow)).collect();
                        let flow = oracle.remove_head(number);
                        prop_assert!(2 * before[flow] > longest, "{} of {longest}", before[flow]);
                    }
                }
                None => {
                    let out = bench.dequeue(Instant::ZERO).map(|packet| packet.segment.seq.0);
                    prop_assert_eq!(out, oracle.dequeue());
                }
            }
        }
    }

    #[test]
    fn fq_codel_schedules_as_a_second_transcription(
        calls in prop::collection::vec(prop::option::weighted(0.55, (0_u32..8, 40_u32..1501)), 200..2000),
    ) {
        let mut bench = Bench::new(build("fq-codel", Limit::Unlimited, false), flows(8), Limit::Unlimited);
        let mut oracle = FqOracle { flows: vec![Default::default(); 8], new: VecDeque::new(), old: VecDeque::new() };
        for (number, call) in calls.into_iter().enumerate() {
            match call {
                Some((flow, len)) => {
                    bench.enqueue(Instant::ZERO, packet(flow, number as u32, len, 0));
                    oracle.enqueue(flow as usize, number as u32, i64::from(len));
                }
                None => {
                    let out = bench.dequeue(Instant::ZERO).map(|packet| packet.segment.seq.0);
                    prop_assert_eq!(out, oracle.dequeue());
                }
            }
        }
    }

    #[test]
    fn red_agrees_with_a_second_transcription(
        load in 0.9_f64..1.6,
        gentle in any::<bool>(),
        bytes in any::<bool>(),
        ecn in any::<bool>(),
        hard_drop in any::<bool>(),
        automatic in any::<bool>(),
        steps in prop::collection::vec((1_u64..1600, 0.0_f64..1.0, 40_u32..1501, any::<bool>()), 3000..8000),
    ) {
        let mut values = Values::defaults(Red::PARAMETERS);
        let (mut minth, mut maxth, mut wq) = RedOracle::automatic();
        if !automatic {
            (minth, maxth, wq) = (5.0, 15.0, 0.002);
            for (name, value) in [("min_threshold", minth), ("max_threshold", maxth), ("weight", wq)] {
                values.set(name, Value::Number(value)).expect("a number");
            }
        }
        let maxp = if automatic { 0.1 } else { 0.02 };
        values.set("max_probability", Value::Number(maxp)).expect("a number");
        values.set("gentle", Value::Flag(gentle)).expect("a flag");
        values.set("byte_mode", Value::Flag(bytes)).expect("a flag");
        values.set("ecn", Value::Flag(ecn)).expect("a flag");
        values.set("hard_drop", Value::Flag(hard_drop)).expect("a flag");
        values.set("limit", Value::Limit(Limit::Unlimited)).expect("a limit");
        let mut bench = Bench::new(Red::new(&values, &LINK), flows(1), Limit::Unlimited);
        let rng = crate::rng::Rng::for_element(LINK.seed, "queue", "red");
        let mut oracle = RedOracle {
            wq, minth, maxth, maxp, gentle, bytes, ecn, hard_drop, avg: 0.0, count: -1, count_bytes: 0, q: 0, q_bytes: 0, q_time: 0.0, rng,
        };
        let mut now = 0;
        let (mut marked, mut dropped) = (VecDeque::new(), 0);
        for (number, (step, draw, len, capable)) in steps.into_iter().enumerate() {
            now += step * 1000;
            let at = Instant::from_nanos(now);
            if draw < load / (1.0 + load) {
                bench.log.clear();
                bench.enqueue(at, packet(0, number as u32, len, u8::from(capable)));
                let verdict = oracle.arrive(now as f64 / 1e9, len, capable);
                prop_assert_eq!(!bench.log.is_empty(), verdict == Verdict::Dropped, "packet {}", number);
                prop_assert!((bench.queue.average() - oracle.avg).abs() < 1e-6 * oracle.avg.max(1.0));
                if verdict == Verdict::Dropped {
                    dropped += 1;
                } else {
                    oracle.q += 1;
                    oracle.q_bytes += len as usize;
                    marked.push_back(verdict == Verdict::Marked);
                }
            } else if let Some(out) = bench.dequeue(at) {
                oracle.q -= 1;
                oracle.q_bytes -= out.segment.len() as usize;
                oracle.q_time = now as f64 / 1e9;
                prop_assert_eq!(marked.pop_front(), Some(out.segment.ecn() == Ecn::Ce));
            }
        }
        let all_marked = ecn && !hard_drop;
        prop_assert!(load < 1.3 || dropped > 0 || all_marked, "nothing was dropped: the trace says nothing");
    }
}

/// ns-2.35 with its default `q_weight_` = -1, worked out by hand: 10 Mbit/s are 1250 packets of 1000 B per second. With 10 ms the RTT is taken
/// for 100 ms, and the weight is 1 - exp(-1 / 1250); with 200 ms it is 3 (200 ms + 0.8 ms) = 602.4 ms, and 1 - exp(-1 / 7530).
#[test]
fn the_automatic_weight_of_red_is_that_of_a_path_of_three_link_delays() {
    for (delay_ms, weight) in [(10, 7.996_801e-4), (32, 7.996_801e-4), (200, 1.327_933e-4)] {
        let link = LinkContext {
            delay: Duration::from_millis(delay_ms),
            ..LINK
        };
        let mut bench = Bench::new(
            Red::new(&Values::defaults(Red::PARAMETERS), &link),
            flows(1),
            Limit::Packets(1000),
        );
        // The first finds an empty queue. The second finds one packet, so the average is the weight.
        for number in 0..2 {
            bench.enqueue(Instant::ZERO, packet(0, number, 1000, 0));
        }
        let average = bench.queue.average();
        assert!(
            (average / weight - 1.0).abs() < 1e-6,
            "{delay_ms} ms: {average}, not {weight}"
        );
    }
}
