//! DualPI2 against a second transcription with a timer of its own, and against numbers worked out by hand from RFC 9332.

use super::*;
use crate::time::Duration;
use core::ops::Range;

/// Arrival, number, length, codepoint.
type Waiting = (u64, u32, i64, u8);

/// RFC 9332 appendices A.1 and A.2 with an event per update: seconds and bytes.
struct DualPi2Oracle {
    lq: VecDeque<Waiting>,
    cq: VecDeque<Waiting>,
    p: f64,
    prevq: f64,
    next_tick: u64,
    l_count: f64,
    l_drop_count: f64,
    c_count: f64,
    k: f64,
    min_th: u64,
    range: u64,
    drops: bool,
    /// Percent of the bytes for C, or nanoseconds by which L is ahead.
    wrr: Option<i64>,
    tshift: u64,
    credit: i64,
    dropped: Vec<u32>,
}

const TUPDATE: u64 = 16_000_000;

impl DualPi2Oracle {
    fn run_timer(&mut self, now: u64) {
        while self.next_tick <= now {
            let at = self.next_tick;
            let wait = |q: &VecDeque<Waiting>| q.front().map_or(0, |head| at.saturating_sub(head.0));
            let curq = wait(&self.lq).max(wait(&self.cq)) as f64 / 1e9;
            self.p = self.p + 0.16 * (curq - 0.015) + 3.2 * (curq - self.prevq);
            let most = if self.drops { 1.0 } else { 1.0 / self.k };
            if self.p < 0.0 {
                self.p = 0.0;
            } else if self.p > most {
                self.p = most;
            }
            self.prevq = curq;
            self.next_tick += TUPDATE;
        }
    }

    fn enqueue(&mut self, now: u64, packet: Waiting) {
        self.run_timer(now);
        if packet.3 % 2 == 1 {
            self.lq.push_back(packet);
        } else {
            self.cq.push_back(packet);
        }
    }

    fn scheduler_says_l(&self, now: u64) -> bool {
        let (Some(l), Some(c)) = (self.lq.front(), self.cq.front()) else {
            return !self.lq.is_empty();
        };
        match self.wrr {
            Some(_) => self.credit <= 0,
            None => (now - l.0) + self.tshift >= now - c.0,
        }
    }

    fn laqm(&self, qdelay: u64) -> f64 {
        if self.lq.is_empty() || qdelay <= self.min_th {
            0.0
        } else if qdelay - self.min_th >= self.range {
            1.0
        } else {
            ((qdelay - self.min_th) as f64 / 1e9) / (self.range as f64 / 1e9)
        }
    }

    fn recur(count: &mut f64, likelihood: f64) -> bool {
        *count += likelihood;
        let yes = *count > 1.0;
        if yes {
            *count -= 1.0;
        }
        yes
    }

    fn dequeue(&mut self, now: u64) -> Option<(u32, u8)> {
        self.run_timer(now);
        while !self.lq.is_empty() || !self.cq.is_empty() {
            let (p_cl, p_c) = (self.k * self.p, self.p * self.p);
            let from_l = self.scheduler_says_l(now);
            let mut packet;
            if from_l {
                packet = self.lq.pop_front()?;
                let native = self.laqm(now - packet.0);
                if p_cl < 1.0 || !self.drops {
                    let p_l = native.max(p_cl).min(1.0);
                    if Self::recur(&mut self.l_count, p_l) {
                        packet.3 = 3;
                    }
                } else {
                    if Self::recur(&mut self.l_drop_count, p_c) {
                        self.dropped.push(packet.1);
                        continue;
                    }
                    if Self::recur(&mut self.l_count, 1.0) {
                        packet.3 = 3;
                    }
                }
            } else {
                packet = self.cq.pop_front()?;
                if Self::recur(&mut self.c_count, p_c) {
                    if packet.3 == 0 || (self.drops && p_cl >= 1.0) {
                        self.dropped.push(packet.1);
                        continue;
                    }
                    packet.3 = 3;
                }
            }
            if let Some(share) = self.wrr {
                if from_l && !self.cq.is_empty() {
                    self.credit += share * packet.2;
                } else if !from_l && !self.lq.is_empty() {
                    self.credit -= (100 - share) * packet.2;
                }
                if self.lq.is_empty() && self.cq.is_empty() {
                    self.credit = 1500 * (2 * share - 100);
                }
            }
            return Some((packet.1, packet.3));
        }
        if let Some(share) = self.wrr {
            self.credit = 1500 * (2 * share - 100);
        }
        None
    }
}

/// With a step of 1 ms, as on a fast line.
fn dualpi2(change: impl Fn(&mut Values)) -> Bench<DualPi2> {
    dualpi2_of_the_link(|values| {
        let step = Value::Duration(Duration::from_millis(1));
        values.set("step", step).expect("a time");
        change(values);
    })
}

fn dualpi2_of_the_link(change: impl Fn(&mut Values)) -> Bench<DualPi2> {
    let mut values = Values::defaults(DualPi2::PARAMETERS);
    values
        .set("limit", Value::Limit(Limit::Unlimited))
        .expect("a limit");
    change(&mut values);
    let mut bench = Bench::new(DualPi2::new(&values, &LINK), flows(4), Limit::Unlimited);
    bench.class = |packet| packet.segment.tos & 1;
    bench
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn dualpi2_agrees_with_a_second_transcription(
        load in 0.8_f64..1.6,
        k in 1_u32..5,
        ramp in 0_u64..1000,
        share in prop::option::of(0_i64..101),
        drops in any::<bool>(),
        steps in prop::collection::vec((1_u64..1600, 0.0_f64..1.0, 40_u32..1501, 0_u8..4, 0_u32..500), 2000..5000),
    ) {
        let mut bench = dualpi2(|values| {
            values.set("coupling", Value::Number(f64::from(k))).expect("a number");
            values.set("ramp", Value::Duration(Duration::from_micros(ramp))).expect("a time");
            values.set("drop_on_overload", Value::Flag(drops)).expect("a flag");
            match share {
                Some(share) => values.set("classic_share", Value::Number(share as f64 / 100.0)).expect("a share"),
                None => values.set("scheduler", Value::Choice("time-shifted")).expect("a choice"),
            }
        });
        let mut oracle = DualPi2Oracle {
            lq: VecDeque::new(), cq: VecDeque::new(), p: 0.0, prevq: 0.0, next_tick: TUPDATE,
            l_count: 0.0, l_drop_count: 0.0, c_count: 0.0, k: f64::from(k), min_th: 1_000_000, range: ramp * 1000,
            drops, wrr: share, tshift: 40_000_000, credit: share.map_or(0, |share| 1500 * (2 * share - 100)), dropped: Vec::new(),
        };
        let mut now = 0;
        let mut judged = 0;
        for (number, (step, draw, len, ecn, pause)) in steps.into_iter().enumerate() {
            now += if pause == 0 { step * 20_000_000 } else { step * 1000 };
            let at = Instant::from_nanos(now);
            if draw < load / (1.0 + load) {
                bench.enqueue(at, packet(u32::from(ecn), number as u32, len, ecn));
                oracle.enqueue(now, (now, number as u32, i64::from(len), ecn));
            } else {
                bench.log.clear();
                let out = bench.dequeue(at).map(|packet| (packet.segment.seq.0, packet.segment.tos));
                prop_assert_eq!(out, oracle.dequeue(now));
                let dropped: Vec<u32> = bench.log.iter().filter(|entry| entry.2 == DropReason::Early)
                    .filter_map(|entry| entry.0).collect();
                prop_assert_eq!(&dropped, &oracle.dropped);
                judged += dropped.len();
                oracle.dropped.clear();
            }
            prop_assert_eq!(bench.queue.base_probability(), oracle.p);
        }
        prop_assert!(load < 1.4 || judged > 0, "nothing was dropped: the trace says nothing");
    }
}

#[test]
fn dualpi2_couples_as_worked_out_by_hand_from_rfc_9332() {
    let mut bench = dualpi2(|_| ());
    for number in 0..300 {
        bench.enqueue(Instant::ZERO, packet(0, number, 1500, Ecn::Ect0 as u8));
    }
    // The head has waited 16 ms at the first update and 32 ms at the second:
    // p' = 0.16 (16 - 15) ms + 3.2 x 16 ms = 0.05136, then 0.16 (32 - 15) ms + 3.2 x 16 ms = 0.05392 more.
    let now = Instant::from_millis(32);
    for number in 300..400 {
        bench.enqueue(now, packet(1, number, 1500, Ecn::Ect1 as u8));
    }
    assert!((bench.queue.base_probability() - 0.105_28).abs() < 1e-12);
    // L marks with 2 p' = 0.21056: the fifth is the first whose sum exceeds 1. C with p'^2 = 0.011084: the 91st.
    let (mut l, mut c, mut first_l, mut first_c) = (0, 0, None, None);
    for _ in 0..200 {
        let packet = bench.dequeue(now).expect("400 wait");
        let marked = packet.segment.ecn() == Ecn::Ce;
        let (count, first) = if packet.flow == FlowId(1) {
            (&mut l, &mut first_l)
        } else {
            (&mut c, &mut first_c)
        };
        *count += 1;
        if marked {
            first.get_or_insert(*count);
        }
    }
    assert_eq!((first_l, first_c), (Some(5), Some(91)));
    assert_eq!(l, 100, "L is served first and C gets its tenth");
}

#[test]
fn dualpi2_starts_over_after_its_last_packet_was_dropped() {
    let mut bench = dualpi2(|_| ());
    let both = |bench: &mut Bench<DualPi2>, now: Instant, c: Range<u32>, l: Range<u32>| {
        for number in c {
            bench.enqueue(now, packet(0, number, 1500, Ecn::NotEct as u8));
        }
        for number in l {
            bench.enqueue(now, packet(1, number, 1500, Ecn::Ect1 as u8));
        }
    };
    let next =
        |bench: &mut Bench<DualPi2>, now: Instant| bench.dequeue(now).map(|packet| packet.segment.seq.0);
    both(&mut bench, Instant::ZERO, 0..3, 100..109);
    // The credit rises from -1500 x 80 by 1500 x 10 for each of L that C waits for: 15,000 after nine, so C would be next.
    for number in 100..109 {
        assert_eq!(next(&mut bench, Instant::ZERO), Some(number));
    }
    // After ten seconds p' is 1: the count of C reaches 1 with the first packet, which passes, and exceeds it with both others.
    let late = Instant::from_millis(10_000);
    assert_eq!((next(&mut bench, late), next(&mut bench, late)), (Some(0), None));
    let dropped = bench.log.iter().filter(|entry| entry.2 == DropReason::Early);
    assert_eq!(dropped.count(), 2, "both others are dropped");
    // Ten seconds more and p' is 0 again. Both classes wait, and the credit is that of the beginning: L is next.
    let later = Instant::from_millis(20_000);
    both(&mut bench, later, 3..4, 109..110);
    assert_eq!(bench.queue.base_probability(), 0.0);
    assert_eq!(next(&mut bench, later), Some(109));
}

#[test]
fn dualpi2_marks_all_l_packets_above_the_step_and_none_below() {
    // By itself the step is the time of two full packets at 10 Mbit/s.
    for (set, wait_us, marked) in [
        (true, 999, false),
        (true, 1001, true),
        (false, 2399, false),
        (false, 2401, true),
    ] {
        let mut bench = if set {
            dualpi2(|_| ())
        } else {
            dualpi2_of_the_link(|_| ())
        };
        for number in 0..10 {
            bench.enqueue(Instant::ZERO, packet(1, number, 1500, Ecn::Ect1 as u8));
        }
        let now = Instant::from_micros(wait_us);
        let mut marks: Vec<bool> = Vec::new();
        for _ in 0..10 {
            let packet = bench.dequeue(now).expect("ten wait");
            marks.push(packet.segment.ecn() == Ecn::Ce);
        }
        // recur() wants a sum above 1, so the first goes free; the last leaves nothing behind.
        let expected: Vec<bool> = (0..10).map(|i| marked && (1..9).contains(&i)).collect();
        assert_eq!(marks, expected);
    }
}

/// The line carries 150 bytes more with each packet: two of 1500 take 2 x 1650 x 8 bits at 10 Mbit/s, 2640 us.
#[test]
fn the_step_of_dualpi2_counts_the_framing_of_the_line() {
    let framed = LinkContext { framing: 150, ..LINK };
    for (wait_us, marked) in [(2639, false), (2641, true)] {
        let queue = DualPi2::new(&Values::defaults(DualPi2::PARAMETERS), &framed);
        let mut bench = Bench::new(queue, flows(2), Limit::Unlimited);
        for number in 0..3 {
            bench.enqueue(Instant::ZERO, packet(1, number, 1500, Ecn::Ect1 as u8));
        }
        let now = Instant::from_micros(wait_us);
        // recur() wants a sum above 1, so the first goes free.
        assert!(bench.dequeue(now).is_some());
        let second = bench.dequeue(now).expect("two wait");
        assert_eq!(second.segment.ecn() == Ecn::Ce, marked, "{wait_us} us");
    }
}

#[test]
fn dualpi2_keeps_a_tenth_for_c_whatever_l_offers() {
    let mut bench = dualpi2(|values| {
        values.set("beta", Value::Number(0.0)).expect("a number");
        values.set("alpha", Value::Number(0.0)).expect("a number");
    });
    let (mut bytes, mut number) = ([0_u64; 2], 0);
    for slot in 0..10_000_u64 {
        let now = Instant::from_micros(slot * 1200);
        for (flow, ecn) in [(0, Ecn::Ect0), (1, Ecn::Ect1)] {
            bench.enqueue(now, packet(flow, number, 1500, ecn as u8));
            number += 1;
        }
        let out = bench.dequeue(now).expect("both wait");
        bytes[out.flow.0 as usize] += 1500;
    }
    let share = bytes[0] as f64 / (bytes[0] + bytes[1]) as f64;
    assert!((share - 0.1).abs() < 0.001, "{share}");
}
