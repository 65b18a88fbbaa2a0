//! SFQ against a naive transcription of Linux's `sch_sfq`, call by call, and traces worked by hand.

use super::*;
use crate::queue::hash::HashKey;
use crate::rng::Rng;
use crate::time::Duration;

/// Limit, flows, depth, divisor, quantum, head drop.
type Settings = (u32, u64, u64, u64, u64, bool);

fn values((limit, flows, depth, divisor, quantum, head_drop): Settings, perturb: Duration) -> Values {
    let mut values = Values::defaults(Sfq::PARAMETERS);
    for (name, value) in [
        ("limit", Value::Limit(Limit::Packets(limit))),
        ("flows", Value::Integer(flows)),
        ("depth", Value::Integer(depth)),
        ("divisor", Value::Integer(divisor)),
        ("quantum", Value::Bytes(Bytes(quantum))),
        ("perturb", Value::Duration(perturb)),
        ("headdrop", Value::Flag(head_drop)),
    ] {
        values.set(name, value).expect("a legal value");
    }
    values
}

/// Packets (flow, number, length), allotment, hash.
#[derive(Clone, Default)]
struct Slot(VecDeque<(u32, u32, u32)>, i64, u32);

/// `sfq_enqueue`, `sfq_dequeue`, `sfq_drop` and `sfq_rehash` with lists that are searched.
struct Oracle {
    settings: Settings,
    slots: Vec<Slot>,
    table: BTreeMap<u32, usize>,
    /// Slots by number of packets, the one that came last at the front.
    dep: Vec<VecDeque<usize>>,
    /// The next to be served at the front.
    round: VecDeque<usize>,
    qlen: u32,
    dropped: Vec<u32>,
}

impl Oracle {
    fn new(settings: Settings) -> Oracle {
        let (limit, flows, depth, divisor, ..) = settings;
        let flows = flows.min(u64::from(limit)).min(divisor) as usize;
        let mut dep = vec![VecDeque::new(); depth as usize + 1];
        dep[0] = (0..flows).rev().collect();
        Oracle {
            settings,
            slots: vec![Slot::default(); flows],
            table: BTreeMap::new(),
            dep,
            round: VecDeque::new(),
            qlen: 0,
            dropped: Vec::new(),
        }
    }

    fn relink(&mut self, x: usize, from: usize) {
        self.dep[from].retain(|slot| *slot != x);
        let packets = self.slots[x].0.len();
        self.dep[packets].push_front(x);
    }

    fn start(&mut self, x: usize) {
        if self.slots[x].0.len() == 1 {
            self.round.push_back(x);
            self.slots[x].1 = self.settings.4 as i64;
        }
    }

    fn drop_one(&mut self) {
        let depth = (1..self.dep.len())
            .rev()
            .find(|depth| !self.dep[*depth].is_empty());
        let Some(depth) = depth else { return };
        let x = if depth > 1 {
            self.dep[depth][0]
        } else {
            let x = self.round.pop_front().expect("one packet waits");
            self.table.remove(&self.slots[x].2);
            x
        };
        let packets = &mut self.slots[x].0;
        let packet = match self.settings.5 {
            true => packets.pop_front(),
            false => packets.pop_back(),
        };
        self.dropped.extend(packet.map(|packet| packet.1));
        self.relink(x, depth);
        self.qlen -= 1;
    }

    fn enqueue(&mut self, hash: u32, packet: (u32, u32, u32)) {
        let x = match self.table.get(&hash) {
            Some(&x) => x,
            None => {
                let Some(&x) = self.dep[0].front() else {
                    self.dropped.push(packet.1);
                    return;
                };
                self.table.insert(hash, x);
                self.slots[x].2 = hash;
                x
            }
        };
        let packets = self.slots[x].0.len();
        if packets as u64 >= self.settings.2 {
            if !self.settings.5 {
                self.dropped.push(packet.1);
                return;
            }
            let head = self.slots[x].0.pop_front().expect("it is full");
            self.dropped.push(head.1);
            self.slots[x].0.push_back(packet);
            return;
        }
        self.slots[x].0.push_back(packet);
        self.relink(x, packets);
        self.start(x);
        self.qlen += 1;
        if self.qlen > self.settings.0 {
            self.drop_one();
        }
    }

    fn dequeue(&mut self) -> Option<u32> {
        loop {
            let &x = self.round.front()?;
            if self.slots[x].1 <= 0 {
                self.slots[x].1 += self.settings.4 as i64;
                self.round.rotate_left(1);
                continue;
            }
            let packets = self.slots[x].0.len();
            let packet = self.slots[x].0.pop_front()?;
            self.relink(x, packets);
            self.qlen -= 1;
            if packets == 1 {
                self.table.remove(&self.slots[x].2);
                self.round.pop_front();
            } else {
                self.slots[x].1 -= i64::from(packet.2);
            }
            return Some(packet.1);
        }
    }

    fn rehash(&mut self, hash: &dyn Fn(u32) -> u32) {
        let mut list = Vec::new();
        for x in 0..self.slots.len() {
            while let Some(packet) = self.slots[x].0.pop_front() {
                list.push(packet);
                let before = self.slots[x].0.len() + 1;
                self.relink(x, before);
            }
        }
        self.table.clear();
        self.round.clear();
        for packet in list {
            let hash = hash(packet.0);
            let x = self.table.get(&hash).or(self.dep[0].front()).copied();
            let x = x.filter(|&x| (self.slots[x].0.len() as u64) < self.settings.2);
            let Some(x) = x else {
                self.dropped.push(packet.1);
                self.qlen -= 1;
                continue;
            };
            self.table.insert(hash, x);
            self.slots[x].2 = hash;
            let packets = self.slots[x].0.len();
            self.slots[x].0.push_back(packet);
            self.relink(x, packets);
            self.start(x);
        }
    }
}

/// Both over the same random calls; returns packets that left, and dropped ones.
fn agree(settings: Settings, perturb: Duration, seed: u64) -> (usize, usize) {
    let mut rng = Rng::from_seed(seed);
    let mut sfq = Sfq::new(&values(settings, perturb), &LINK);
    let mut oracle = Oracle::new(settings);
    let table = flows(40);
    let mut keys = Rng::for_element(LINK.seed, "queue", "sfq");
    let mut key = HashKey::new(LINK.seed);
    let (mut now, mut due) = (Instant::ZERO, Instant::ZERO + perturb);
    let (mut left, mut lost) = (0, 0);
    for number in 0..4000 {
        now += Duration::from_micros(rng.below(2000));
        let hash = |key: HashKey, flow: u32| key.flow(table.key(FlowId(flow)), settings.3 as u32);
        if !perturb.is_zero() && now >= due {
            while now >= due {
                due += perturb;
            }
            key = HashKey::new(keys.next_u64());
            oracle.rehash(&|flow| hash(key, flow));
        }
        let (mut drops, mut events) = (Vec::new(), Vec::new());
        let mut context = QueueContext {
            flows: &table,
            ingress: 0,
            drops: &mut drops,
            events: &mut events,
        };
        // Bursts of arrivals and of departures in turn.
        if rng.below(10) < if number / 50 % 2 == 0 { 7 } else { 4 } {
            let (flow, len) = (rng.below(40) as u32, 40 + rng.below(1461) as u32);
            sfq.enqueue(now, packet(flow, number, len, 0), &mut context);
            oracle.enqueue(hash(key, flow), (flow, number, len));
        } else {
            let out = sfq.dequeue(now, &mut context).map(|packet| packet.segment.seq.0);
            assert_eq!(out, oracle.dequeue(), "call {number} of {settings:?}");
            left += usize::from(out.is_some());
        }
        let dropped: Vec<u32> = drops.iter().map(|(packet, _)| packet.segment.seq.0).collect();
        assert_eq!(
            dropped,
            core::mem::take(&mut oracle.dropped),
            "call {number} of {settings:?}"
        );
        assert_eq!(sfq.backlog().packets, oracle.qlen);
        lost += dropped.len();
    }
    (left, lost)
}

#[test]
fn sfq_agrees_with_a_naive_transcription_of_linux() {
    let mut lost = 0;
    for head_drop in [false, true] {
        for (number, (limit, flows, depth, divisor, quantum)) in [
            (20, 128, 127, 1024, 1500), // the limit
            (100, 6, 127, 1024, 1500),  // queues
            (100, 128, 3, 1024, 500),   // packets of a queue
            (30, 128, 127, 8, 3000),    // flows that share queues
            (5, 4, 2, 4, 1500),
        ]
        .into_iter()
        .enumerate()
        {
            let settings = (limit, flows, depth, divisor, quantum, head_drop);
            for perturb in [Duration::ZERO, Duration::from_millis(20)] {
                let (left, dropped) = agree(settings, perturb, number as u64);
                assert!(left > 1000, "{settings:?}: {left}");
                lost += dropped;
            }
        }
    }
    assert!(lost > 5000, "{lost}");
}

fn sfq(settings: Settings) -> Bench<Sfq> {
    let queue = Sfq::new(&values(settings, Duration::ZERO), &LINK);
    Bench::new(queue, flows(20), Limit::Packets(settings.0))
}

/// Three packets of 1000 B of a flow and three of 500 B of another, quantum 1000: one of the first, then two of the second, and so on.
#[test]
fn sfq_gives_flows_equal_bytes() {
    let mut bench = sfq((100, 128, 127, 65_536, 1000, false));
    for number in 0..6 {
        let (flow, len) = if number < 3 { (0, 1000) } else { (1, 500) };
        bench.enqueue(Instant::ZERO, packet(flow, number, len, 0));
    }
    let order: Vec<u32> = core::iter::from_fn(|| bench.dequeue(Instant::ZERO))
        .map(|packet| packet.segment.seq.0)
        .collect();
    assert_eq!(order, [0, 3, 4, 1, 5, 2]);
}

#[test]
fn sfq_lets_the_flow_with_most_packets_pay_for_overflow() {
    for (head_drop, dropped) in [(false, 2), (true, 0)] {
        let mut bench = sfq((3, 128, 127, 65_536, 1500, head_drop));
        for number in 0..4 {
            bench.enqueue(Instant::ZERO, packet(number / 3, number, 100, 0));
        }
        assert_eq!(bench.log, [(Some(dropped), 0, DropReason::PushedOut)]);
    }
}

#[test]
fn sfq_refuses_what_is_beyond_the_depth_of_a_queue_or_makes_room_at_its_head() {
    for (head_drop, log) in [
        (false, (Some(2), 0, DropReason::Full)),
        (true, (Some(0), 0, DropReason::PushedOut)),
    ] {
        let mut bench = sfq((100, 128, 2, 1024, 1500, head_drop));
        for number in 0..3 {
            bench.enqueue(Instant::ZERO, packet(0, number, 100, 0));
        }
        assert_eq!(bench.log, [log]);
    }
}

#[test]
fn sfq_wants_a_power_of_two_of_hash_values() {
    let mut values = Values::defaults(Sfq::PARAMETERS);
    assert_eq!(Sfq::check(&values), Ok(()));
    values.set("divisor", Value::Integer(1000)).expect("in its range");
    assert!(Sfq::check(&values).is_err_and(|error| error.contains("power of two")));
}
