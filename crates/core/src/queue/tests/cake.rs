//! The pieces of the CAKE-like queue against naive second transcriptions, and what the whole promises.

use super::super::cake::cobalt::{Cobalt, Constants, Judgement};
use super::super::cake::ways::{Place, WAYS, Ways};
use super::*;
use crate::time::Duration;

/// COBALT with signed nanoseconds, as Linux's comments describe it.
#[derive(Default)]
struct CobaltOracle {
    count: i64,
    drop_next: i64,
    blue_timer: i64,
    p_drop: i64,
    dropping: bool,
    /// Square root of the count after its last step; before that one, or in Linux without end.
    root: f64,
}

const TARGET: i64 = 5_000_000;
const INTERVAL: i64 = 100_000_000;
const ONE: i64 = 1 << 32;

impl CobaltOracle {
    fn step(&mut self, by: i64) {
        self.count += by;
        self.root = (self.count.max(1) as f64).sqrt();
    }

    fn control(&self, t: i64) -> i64 {
        t + (INTERVAL as f64 / self.root) as i64
    }

    fn queue_full(&mut self, now: i64) {
        if now - self.blue_timer > TARGET {
            self.p_drop = (self.p_drop + ONE / 256).min(ONE - 1);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        if self.count == 0 {
            self.count = 1;
        }
    }

    fn queue_empty(&mut self, now: i64) {
        if self.p_drop != 0 && now - self.blue_timer > TARGET {
            self.p_drop = (self.p_drop - ONE / 4096).max(0);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count != 0 && now - self.drop_next >= 0 {
            self.step(-1);
            self.drop_next = self.control(self.drop_next);
        }
    }

    /// Marked, dropped.
    fn should_drop(
        &mut self,
        now: i64,
        sojourn: i64,
        mtu_time: i64,
        capable: bool,
        random: i64,
    ) -> (bool, bool) {
        let mut schedule = now - self.drop_next;
        let over_target = sojourn > TARGET && sojourn > 4 * mtu_time;
        let mut next_due = self.count != 0 && schedule >= 0;
        let (mut marked, mut drop) = (false, false);
        if over_target {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control(now);
            }
            if self.count == 0 {
                self.count = 1;
            }
        } else if self.dropping {
            self.dropping = false;
        }
        if next_due && self.dropping {
            marked = capable;
            drop = !capable;
            self.step(1);
            self.drop_next = self.control(self.drop_next);
            schedule = now - self.drop_next;
        } else {
            while next_due {
                self.step(-1);
                self.drop_next = self.control(self.drop_next);
                schedule = now - self.drop_next;
                next_due = self.count != 0 && schedule >= 0;
            }
        }
        if self.p_drop != 0 && random < self.p_drop {
            drop = true;
        }
        if self.count == 0 {
            self.drop_next = now + INTERVAL;
        } else if schedule > 0 && !drop {
            self.drop_next = now;
        }
        (marked, drop)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn cobalt_agrees_with_a_second_transcription(
        mtu_time in 0_u64..3_000_000,
        first_at_once in any::<bool>(),
        phases in prop::collection::vec((0_u8..10, 1_usize..400, 100_000_u64..3_000_000, 0_u64..40_000_000), 5..30),
        draws in prop::collection::vec((any::<u32>(), any::<bool>(), 0_u64..1000), 400..401),
    ) {
        let constants = Constants {
            target: Duration::from_nanos(TARGET as u64),
            interval: Duration::from_nanos(INTERVAL as u64),
            mtu_time: Duration::from_nanos(mtu_time),
            first_at_once,
        };
        let mut cobalt = Cobalt::default();
        let root = if first_at_once { f64::INFINITY } else { 1.0 };
        let mut oracle = CobaltOracle { root, ..CobaltOracle::default() };
        let mut now = 1_000_000_000_u64;
        for (kind, calls, step, sojourn) in phases {
            for &(random, capable, jitter) in draws.iter().take(calls) {
                now += step + jitter * 1000;
                let at = Instant::from_nanos(now);
                match kind {
                    0 => {
                        cobalt.overflowed(at, &constants);
                        oracle.queue_full(now as i64);
                    }
                    1 => {
                        cobalt.emptied(at, &constants);
                        oracle.queue_empty(now as i64);
                    }
                    _ => {
                        let waited = Duration::from_nanos(sojourn + jitter);
                        let Judgement { mark, drop } = cobalt.judge(at, &constants, waited, capable, || random);
                        let expected = oracle.should_drop(
                            now as i64, (sojourn + jitter) as i64, mtu_time as i64, capable, i64::from(random),
                        );
                        prop_assert_eq!((mark, drop), expected);
                    }
                }
                prop_assert_eq!(i64::from(cobalt.p_drop), oracle.p_drop);
            }
        }
    }

    #[test]
    fn ways_agree_with_a_search_of_the_whole_set(
        operations in prop::collection::vec((0_u64..60, 0_u32..24), 1..400),
    ) {
        // 24 places in three sets; 60 fingerprints, so that sets fill up.
        let tag = |name: u64| (name + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut ways = Ways::new(24);
        let mut owner: Vec<Option<u64>> = vec![None; 24];
        let mut busy = [false; 24];
        for (name, freed) in operations {
            let place = ways.find(tag(name), |index| !busy[index as usize]);
            let direct = ((u128::from(tag(name)) * 24) >> 64) as u32;
            let set: Vec<u32> = (0..WAYS).map(|i| direct / WAYS * WAYS + (direct + i) % WAYS).collect();
            let own = set.iter().copied().find(|&index| owner[index as usize] == Some(name));
            let free = set.iter().copied().find(|&index| !busy[index as usize]);
            let expected = match (own, free) {
                (Some(own), _) => Place::Own(own),
                (None, Some(free)) => Place::New(free),
                (None, None) => Place::Shared(direct),
            };
            prop_assert_eq!(place, expected);
            if let Place::New(index) = place {
                owner[index as usize] = Some(name);
            }
            busy[place.index() as usize] = true;
            busy[freed as usize] = false;
        }
    }
}

fn cake(change: impl Fn(&mut Values), table: FlowTable) -> Bench<Cake> {
    let mut values = Values::defaults(Cake::PARAMETERS);
    change(&mut values);
    let limit = values.limit("limit");
    Bench::new(Cake::new(&values, &LINK), table, limit)
}

/// Flow `i` goes from `hosts[i].0` to `hosts[i].1`.
fn between(hosts: &[(u32, u32)]) -> FlowTable {
    let mut table = FlowTable::new();
    for (port, &(source, destination)) in hosts.iter().enumerate() {
        table.push(FlowKey {
            source: HostId(source),
            destination: HostId(destination),
            source_port: port as u16,
            destination_port: 80,
            protocol: 6,
        });
    }
    table
}

/// Share of the bytes of each flow when all are backlogged.
fn shares(isolation: &'static str, hosts: &[(u32, u32)]) -> Vec<f64> {
    let mut bench = cake(
        |values| {
            values
                .set("isolation", Value::Choice(isolation))
                .expect("a choice");
            values
                .set("limit", Value::Limit(Limit::Unlimited))
                .expect("a limit");
            values
                .set("target", Value::Duration(Duration::from_secs(10)))
                .expect("a time");
        },
        between(hosts),
    );
    let mut sent = vec![0.0; hosts.len()];
    let mut number = 0;
    for slot in 0..6000_u64 {
        let now = Instant::from_micros(slot * 1200);
        let flow = slot as u32 % hosts.len() as u32;
        let waiting_of_each = if slot == 0 { 500 } else { 1 };
        for _ in 0..waiting_of_each {
            for flow in if slot == 0 {
                0..hosts.len() as u32
            } else {
                flow..flow + 1
            } {
                bench.enqueue(now, packet(flow, number, 1500, 0));
                number += 1;
            }
        }
        if slot < 1500 {
            let out = bench.dequeue(now).expect("all wait");
            sent[out.flow.0 as usize] += 1.0 / 1500.0;
        }
    }
    sent
}

#[test]
fn cake_gives_each_sender_the_same_whatever_its_flows() {
    // Host 1 opens four flows to four receivers, host 2 one.
    let hosts = [(1, 11), (1, 12), (1, 13), (1, 14), (2, 15)];
    for (isolation, of_host_2) in [
        ("flows", 0.2),
        ("dual-srchost", 0.5),
        ("dual-dsthost", 0.2),
        ("triple-isolate", 0.5),
    ] {
        let sent = shares(isolation, &hosts);
        assert!((sent[4] - of_host_2).abs() < 0.01, "{isolation}: {sent:?}");
        for flow in 1..4 {
            assert!((sent[flow] - sent[0]).abs() < 0.01, "{isolation}: {sent:?}");
        }
    }
}

#[test]
fn cake_isolates_receivers_too() {
    // Four senders to host 11, one to host 12.
    let hosts = [(1, 11), (2, 11), (3, 11), (4, 11), (5, 12)];
    for (isolation, of_host_12) in [
        ("dual-srchost", 0.2),
        ("dual-dsthost", 0.5),
        ("triple-isolate", 0.5),
    ] {
        let sent = shares(isolation, &hosts);
        assert!((sent[4] - of_host_12).abs() < 0.01, "{isolation}: {sent:?}");
    }
}

#[test]
fn cake_shapes_to_the_nanosecond() {
    let mut bench = cake(
        |values| {
            values
                .set("bandwidth", Value::Rate(Rate(7_000_000)))
                .expect("a rate");
            values
                .set("target", Value::Duration(Duration::from_secs(10)))
                .expect("a time");
        },
        flows(3),
    );
    for number in 0..100 {
        bench.enqueue(Instant::from_millis(1), packet(number % 3, number, 1500, 0));
    }
    let mut now = Instant::from_millis(1);
    for sent in 0..100_u64 {
        now = bench.queue.ready_at().expect("packets wait");
        // 12,000 bits at 7 Mbit/s are 1714285 5/7 ns.
        assert_eq!(now.as_nanos(), 1_000_000 + sent * 12_000_000_000_000 / 7_000_000);
        assert!(bench.dequeue(now).is_some());
        let mut context = QueueContext {
            flows: &bench.flows,
            ingress: 0,
            drops: &mut bench.drops,
            events: &mut bench.events,
        };
        assert!(
            bench.queue.dequeue(now, &mut context).is_none(),
            "not before its time"
        );
    }
    assert_eq!(bench.queue.backlog().packets, 0);
    assert_eq!(now.as_nanos(), 1_000_000 + 99 * 12_000_000_000_000 / 7_000_000);
}

#[test]
fn cake_holds_a_sender_that_does_not_listen_by_blue() {
    // Flow 0 offers three times the line; flow 1 a packet in twenty. The buffer holds 100 packets.
    let mut bench = cake(
        |values| {
            values
                .set("limit", Value::Limit(Limit::Packets(100)))
                .expect("a limit");
        },
        between(&[(1, 11), (2, 12)]),
    );
    let (mut number, mut pushed_out, mut dropped_of_flow_1) = (0, 0, 0);
    let mut early = 0;
    let mut worst = Duration::ZERO;
    let mut flow_of = Vec::new();
    for slot in 0..20_000_u64 {
        let now = Instant::from_micros(slot * 1200);
        let senders: &[u32] = if slot % 20 == 0 { &[0, 0, 0, 1] } else { &[0, 0, 0] };
        for &flow in senders {
            flow_of.push(flow);
            bench.enqueue(now, packet(flow, number, 1500, 0));
            number += 1;
        }
        if let Some(out) = bench.dequeue(now)
            && out.flow == FlowId(1)
        {
            worst = worst.max(now.since(out.enqueued_at));
        }
        for (number, _, reason) in bench.log.drain(..) {
            match reason {
                DropReason::PushedOut => pushed_out += 1,
                DropReason::Early => early += 1,
                _ => continue,
            }
            let number = number.expect("a packet");
            dropped_of_flow_1 += usize::from(flow_of[number as usize] == 1);
        }
    }
    assert_eq!(dropped_of_flow_1, 0);
    assert!(worst <= Duration::from_micros(2 * 1200), "{worst:?}");
    assert!(
        pushed_out > 0 && early > pushed_out,
        "{early} early, {pushed_out} pushed out"
    );
}

#[test]
fn cake_refuses_a_table_that_is_not_in_eights() {
    let mut values = Values::defaults(Cake::PARAMETERS);
    values.set("queues", Value::Integer(100)).expect("a number");
    assert_eq!(
        Cake::check(&values),
        Err(String::from(
            "`queues` must be a multiple of 8, the places of a set"
        ))
    );
}

/// Bytes that a queue with the default limit holds of packets of the MTU, on a link of `rate` or with a shaper to it.
fn holds(rate: u64, interval_ms: u64, mtu: u32) -> u64 {
    let [plain, shaped] = [false, true].map(|shapes| holds_with(rate, shapes, interval_ms, mtu));
    assert_eq!(plain, shaped, "{rate} bit/s, {interval_ms} ms, {mtu} B");
    plain
}

fn holds_with(rate: u64, shapes: bool, interval_ms: u64, mtu: u32) -> u64 {
    let mut values = Values::defaults(Cake::PARAMETERS);
    if shapes {
        values.set("bandwidth", Value::Rate(Rate(rate))).expect("a rate");
    }
    values
        .set("interval", Value::Duration(Duration::from_millis(interval_ms)))
        .expect("a time");
    let link = LinkContext {
        mtu,
        rate: if shapes { LINK.rate } else { Rate(rate) },
        ..LINK
    };
    let mut bench = Bench::new(Cake::new(&values, &link), flows(1), Limit::Unlimited);
    let mut number = 0;
    while bench.log.is_empty() {
        bench.enqueue(Instant::ZERO, packet(0, number, mtu, 0));
        number += 1;
    }
    bench.queue.backlog().bytes.0
}

/// Worked out by hand from Linux's cake_reconfigure: of the memory 1500 of 2304 bytes are those of the packet.
#[test]
fn the_default_limit_of_cake_is_that_of_linux() {
    // 500 MB of four intervals are above 10240 x 1514 B of memory; 10,093,333 B are 6728 packets of 1500 B.
    assert_eq!(holds(10_000_000_000, 100, 1500), 6728 * 1500);
    // 10240 x 9014 B; 60,093,333 B are 6677 packets of 9000 B.
    assert_eq!(holds(10_000_000_000, 100, 9000), 6677 * 9000);
    // 4 x 1.25 MB/s x 100 ms are 500 kB, so 4 MiB: 2,730,666 B are 1820 packets.
    assert_eq!(holds(10_000_000, 100, 1500), 1820 * 1500);
    // 4 x 25 MB/s x 100 ms are 10 MB: 6,510,416 B are 4340 packets.
    assert_eq!(holds(200_000_000, 100, 1500), 4340 * 1500);
    // The interval counts: 5 MB for 50 ms, 3,255,208 B or 2170 packets.
    assert_eq!(holds(200_000_000, 50, 1500), 2170 * 1500);
}

/// Worked out by hand from Linux's cake_set_rate: at 1 Gbit/s 244 us are 30 kB, and a turn has no more than 1514 bytes with the header, on a link for
/// jumbo frames, too. So packets of 1500 bytes of two flows leave by turns, where 9000 bytes would be six of each.
#[test]
fn a_turn_of_cake_is_no_longer_on_a_link_for_jumbo_frames() {
    let values = Values::defaults(Cake::PARAMETERS);
    let link = LinkContext {
        mtu: 9000,
        rate: Rate(1_000_000_000),
        ..LINK
    };
    let mut bench = Bench::new(Cake::new(&values, &link), flows(2), Limit::Unlimited);
    for number in 0..24 {
        bench.enqueue(Instant::ZERO, packet(number / 12, number, 1500, 0));
    }
    let sent: Vec<u32> = (0..24)
        .map(|_| bench.dequeue(Instant::ZERO).expect("packets wait").flow.0)
        .collect();
    assert!(sent.chunks(2).all(|turn| turn[0] != turn[1]), "{sent:?}");
}

/// At 10 Mbit/s a turn is 10^7 / 8 / 4096 = 305 B: a flow of packets of 300 B sends one or two while one of 1500 B saves for five turns. A shaper to the
/// rate of the link changes when packets leave, and not in which order.
#[test]
fn cake_serves_as_a_shaper_to_the_rate_of_the_link_does() {
    let order = |shapes: bool| -> Vec<u32> {
        let mut bench = cake(
            |values| {
                if shapes {
                    values.set("bandwidth", Value::Rate(LINK.rate)).expect("a rate");
                }
            },
            between(&[(0, 9), (1, 8)]),
        );
        for number in 0..60 {
            let large = number % 6 == 0;
            let (flow, len) = if large { (0, 1500) } else { (1, 300) };
            bench.enqueue(Instant::ZERO, packet(flow, number, len, 0));
        }
        // 2 ms for each, so that the shaper holds none back.
        let times = (0..60).map(|slot| Instant::from_millis(2 * slot));
        let order: Vec<u32> = times.filter_map(|now| Some(bench.dequeue(now)?.flow.0)).collect();
        assert!(order.len() > 50, "{order:?}");
        order
    };
    let plain = order(false);
    assert_eq!(plain, order(true));
    // Worked by hand: in five turns of 305 B the large one gets 1525 B and sends one packet, the small one five.
    let large = plain[..24].iter().filter(|&&flow| flow == 0).count();
    assert!((4..=5).contains(&large), "{plain:?}");
}

/// cake_enqueue and cake_dequeue of Linux for the lists of queues, without COBALT's state: each flow has a queue of its own.
struct TurnsOracle {
    flows: Vec<TurnsFlow>,
    /// Senders and receivers of the flows, and whether each side is isolated.
    hosts: Vec<(u32, u32)>,
    isolates: (bool, bool),
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
}

#[derive(Clone, Default)]
struct TurnsFlow {
    packets: VecDeque<(u32, u32)>,
    deficit: i64,
    set: &'static str,
}

impl TurnsOracle {
    fn load(&self, flow: usize) -> i64 {
        let bulk = |same: &dyn Fn(usize) -> bool| {
            (0..self.flows.len())
                .filter(|&other| self.flows[other].set == "bulk" && same(other))
                .count() as i64
        };
        let mut load = 1;
        if self.isolates.0 {
            load = load.max(bulk(&|other| self.hosts[other].0 == self.hosts[flow].0));
        }
        if self.isolates.1 {
            load = load.max(bulk(&|other| self.hosts[other].1 == self.hosts[flow].1));
        }
        load
    }

    fn enqueue(&mut self, flow: usize, number: u32, len: u32) {
        self.flows[flow].packets.push_back((number, len));
        match self.flows[flow].set {
            "" => {
                self.new_flows.push_back(flow);
                self.flows[flow].set = "sparse";
                self.flows[flow].deficit = 1500 / self.load(flow);
            }
            "sparse_wait" => self.flows[flow].set = "bulk",
            _ => {}
        }
    }

    fn dequeue(&mut self) -> Option<u32> {
        loop {
            if self.flows.iter().all(|flow| flow.packets.is_empty()) {
                return None;
            }
            let head = if self.new_flows.is_empty() {
                &mut self.old_flows
            } else {
                &mut self.new_flows
            };
            let flow = *head.front()?;
            if self.flows[flow].deficit <= 0 {
                head.pop_front();
                if self.flows[flow].set == "sparse" {
                    let waits = !self.flows[flow].packets.is_empty();
                    self.flows[flow].set = if waits { "bulk" } else { "sparse_wait" };
                }
                self.flows[flow].deficit += 1500 / self.load(flow);
                self.old_flows.push_back(flow);
                continue;
            }
            let Some((number, len)) = self.flows[flow].packets.pop_front() else {
                // Removed from its list, whichever it is.
                head.pop_front();
                self.flows[flow].set = "";
                continue;
            };
            self.flows[flow].deficit -= i64::from(len);
            return Some(number);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_turns_of_cake_agree_with_a_second_transcription(
        isolation in 0_usize..4,
        load in 0.7_f64..1.3,
        steps in prop::collection::vec((0.0_f64..1.0, 40_u32..1501, 0_u32..9), 500..2000),
    ) {
        let hosts = [(1, 11), (1, 12), (1, 13), (2, 11), (2, 12), (3, 11)];
        let (word, isolates) = [
            ("triple-isolate", (true, true)),
            ("dual-srchost", (true, false)),
            ("dual-dsthost", (false, true)),
            ("flows", (false, false)),
        ][isolation];
        let mut bench = cake(
            |values| {
                values.set("isolation", Value::Choice(word)).expect("a choice");
                values.set("target", Value::Duration(Duration::from_secs(10))).expect("a time");
                values.set("quantum", Value::Bytes(Bytes(1500))).expect("an amount");
            },
            between(&hosts),
        );
        let mut oracle = TurnsOracle {
            flows: vec![TurnsFlow::default(); hosts.len()],
            hosts: hosts.to_vec(),
            isolates,
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
        };
        for (number, (draw, len, flow)) in steps.into_iter().enumerate() {
            let now = Instant::from_micros(number as u64 * 100);
            // Flow 0 has a third of the packets, so it is often the only one that is busy.
            let flow = flow.saturating_sub(3);
            if draw < load / (1.0 + load) {
                bench.enqueue(now, packet(flow, number as u32, len, 0));
                oracle.enqueue(flow as usize, number as u32, len);
            } else {
                let out = bench.dequeue(now).map(|packet| packet.segment.seq.0);
                prop_assert_eq!(out, oracle.dequeue());
            }
        }
    }
}

/// In sch_cake.c a sparse queue that is found empty with a deficit left leaves the lists, so its next packet is new again.
#[test]
fn a_sparse_queue_that_ran_empty_is_new_again() {
    let mut bench = cake(
        |values| {
            values.set("isolation", Value::Choice("flows")).expect("a choice");
            values
                .set("target", Value::Duration(Duration::from_secs(10)))
                .expect("a time");
        },
        flows(3),
    );
    let mut number = 0;
    let mut sent = Vec::new();
    for flow in [0, 0, 0, 0, 1, 1, 1, 1] {
        bench.enqueue(Instant::ZERO, packet(flow, number, 1500, 0));
        number += 1;
    }
    // A voice packet of 200 B comes before the third departure and each second one after it.
    for slot in 0..8 {
        if slot >= 2 && slot % 2 == 0 {
            bench.enqueue(Instant::ZERO, packet(2, number, 200, 0));
            number += 1;
        }
        sent.push(bench.dequeue(Instant::ZERO).expect("packets wait").flow.0);
    }
    assert_eq!(sent, [0, 1, 2, 0, 2, 1, 2, 0]);
}
