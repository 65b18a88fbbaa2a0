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
