//! FavourTail under an adversary: packets of a flow that leave out of order, waits against the bound, N's share of the link.
//!
//! The queue of the core is fed at random without a network: mostly single packets of flows never seen before, some of flows
//! that come again, in bursts and in silence, until so many calls are made. Each option of the queue has its turn. Without a budget
//! only the order is looked at.
//!
//! **Source.** Dedu and Lochin, PDP 2009, properties; docs/design/favourtail.md#f1 and #bound. **Deviations.** None known.

use super::{Analysis, Measured, Metric, Outcome, Run};
use fleetfoot_core::flow::{FlowId, FlowKey, FlowTable, HostId};
use fleetfoot_core::packet::{BufId, Flags, Packet, Segment};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Value, Values};
use fleetfoot_core::queue::{FavourTail, Limit, LinkContext, QueueContext, QueueDiscipline};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use std::collections::VecDeque;

pub(super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("favour-order", OPTIONS, include_str!("favour_order.rs")),
    metrics: &[
        Metric {
            name: "reordered_packets",
            doc: "Packets that left after a later one of their flow.",
        },
        Metric {
            name: "reordered_packets_budget",
            doc: "The same with a budget.",
        },
        Metric {
            name: "wait_over_bound",
            doc: "Largest wait of a normal packet over its bound, with a budget.",
        },
        Metric {
            name: "tokens_over_burst",
            doc: "Largest sum of tokens and favoured bytes over the burst.",
        },
    ],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[parameter!("calls": Integer(1, 1_000_000_000) = 20_000,
    "Calls of the queue in all (a verdict: a million)")];

/// Runs, each with other options.
const RUNS: u64 = 16;
const FLOWS: u32 = 20_000;
const SHARE: f64 = 0.5;

#[derive(Default)]
struct Worst {
    reordered: [u64; 2],
    wait: f64,
    tokens: f64,
}

fn run(options: &Values) -> Outcome {
    let calls = options.integer("calls").unwrap_or(20_000) / RUNS;
    let mut worst = Worst::default();
    for run in 0..RUNS {
        adversary(run, calls, &mut worst);
    }
    let [plain, budget] = worst.reordered.map(|count| Measured::exact(count as f64));
    Outcome {
        values: vec![
            plain,
            budget,
            Measured::exact(worst.wait),
            Measured::exact(worst.tokens),
        ],
        curves: Vec::new(),
    }
}

fn adversary(run: u64, calls: u64, worst: &mut Worst) {
    let budget = run % 2 == 1;
    let burst = [2000, 20_000][run as usize / 2 % 2];
    let mut values = Values::defaults(FavourTail::PARAMETERS);
    let mut set = |name, value| values.set(name, value).expect("a parameter of the queue");
    set("limit", Value::Limit(Limit::Packets(60)));
    set("count_in_service", Value::Flag(run / 4 % 2 == 1));
    // A packet that is pushed out never leaves; the bound is for those that do.
    set("push_out", Value::Flag(run / 8 % 2 == 1));
    if budget {
        set("budget", Value::Flag(true));
        set("burst", Value::Bytes(Bytes(burst)));
        set("share", Value::Number(SHARE));
    }
    let link = LinkContext {
        mtu: 1500,
        rate: Rate::from_bps(1_000_000),
        framing: 0,
        delay: Duration::ZERO,
        seed: run,
    };
    let mut queue = FavourTail::new(&values, &link);
    let mut flows = FlowTable::new();
    for flow in 0..FLOWS {
        flows.push(FlowKey {
            source: HostId(flow % [1, 100][run as usize / 2 % 2]),
            destination: HostId(1 << 20),
            source_port: flow as u16,
            destination_port: 80,
            protocol: 6,
        });
    }
    let (mut drops, mut events) = (Vec::new(), Vec::new());
    let mut rng = Rng::for_element(1, "favour-order", "adversary");
    let mut last_out = vec![None; FLOWS as usize];
    // Normal packets: number, bytes served when it came, bytes of normal packets up to it.
    let mut normal: VecDeque<(u32, u64, u64)> = VecDeque::new();
    let (mut fresh, mut served) = (10, 0_u64);
    for number in 0..calls as u32 {
        let mut context = QueueContext {
            flows: &flows,
            ingress: 0,
            drops: &mut drops,
            events: &mut events,
        };
        let now = Instant::from_micros(u64::from(number));
        if rng.below(100) < [70, 52, 45, 90][number as usize / 500 % 4] {
            let flow = if rng.below(100) < 80 {
                fresh = 10 + (fresh + 1) % (FLOWS - 10);
                fresh
            } else {
                rng.below(10) as u32
            };
            let len = [40, 1500, 500, 41 + rng.below(1460) as u32][rng.below(4) as usize];
            let before = queue.parts()[1].packets;
            queue.enqueue(now, packet(flow, number, len), &mut context);
            let after = queue.parts()[1];
            if after.packets > before {
                normal.push_back((number, served, after.bytes.0));
            }
            for (dropped, _) in drops.drain(..) {
                normal.retain(|waiting| waiting.0 != dropped.segment.seq.0);
            }
        } else if let Some(out) = queue.dequeue(now, &mut context) {
            let number = out.segment.seq.0;
            served += u64::from(out.segment.len());
            let last = last_out[out.flow.0 as usize].replace(number);
            worst.reordered[usize::from(budget)] += u64::from(last > Some(number));
            if normal.front().is_some_and(|front| front.0 == number)
                && let Some((_, then, ahead)) = normal.pop_front()
                && budget
            {
                let bound = (ahead + burst) as f64 / (1.0 - SHARE);
                worst.wait = worst.wait.max((served - then) as f64 / bound);
            }
        }
        events.clear();
        if let Some((tokens, most)) = queue.tokens() {
            let sum = tokens.0 + queue.parts()[0].bytes.0;
            worst.tokens = worst.tokens.max(sum as f64 / most.0 as f64);
        }
    }
}

fn packet(flow: u32, number: u32, len: u32) -> Packet {
    Packet {
        enqueued_at: Instant::ZERO,
        flow: FlowId(flow),
        buf: BufId::NONE,
        segment: Segment {
            seq: SeqNumber(number),
            payload: len - 40,
            overhead: 40,
            flags: Flags::ACK,
            ..Segment::default()
        },
    }
}
