//! Any calls on any queue discipline: nothing panics, nothing is lost or made up, limits hold after every call.

use arbitrary::{Arbitrary, Unstructured};
use fleetfoot_core::flow::{FlowId, FlowKey, FlowTable, HostId};
use fleetfoot_core::packet::{BufId, Flags, Packet, Segment};
use fleetfoot_core::parameter::{ParameterKind, Value, Values};
use fleetfoot_core::queue::{AnyQueue, Limit, LinkContext, QueueContext, QueueDiscipline};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};

#[derive(Arbitrary, Debug)]
struct Input {
    discipline: u8,
    limit: u16,
    limit_in_bytes: bool,
    seed: u64,
    /// Of a parameter with words to choose from, and which.
    choice: (u8, u8),
    calls: Vec<Call>,
}

#[derive(Arbitrary, Debug)]
enum Call {
    Enqueue {
        now: u64,
        flow: u16,
        payload: u16,
        overhead: u8,
        tos: u8,
        kind: u8,
        flags: u16,
        mark: Mark,
    },
    Dequeue {
        now: u64,
    },
}

/// Fields that carry a super-packet's mark.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Mark {
    /// Give the packet layout B's codepoint and an unfragmented header.
    layout_b: bool,
    ip_id: u16,
    urgent: u16,
}

/// One input of the fuzzer. What is too short to be one is nothing.
pub(crate) fn run(bytes: &[u8]) {
    if let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(bytes)) {
        play(&input);
    }
}

fn play(input: &Input) {
    let entry = &AnyQueue::ENTRIES[usize::from(input.discipline) % AnyQueue::ENTRIES.len()];
    let limit = if input.limit_in_bytes {
        Limit::Bytes(Bytes(u64::from(input.limit).max(1)))
    } else {
        Limit::Packets(u32::from(input.limit).max(1))
    };
    let mut values = Values::defaults(entry.parameters);
    values
        .set("limit", Value::Limit(limit))
        .expect("every discipline has a limit");
    let words: Vec<_> = entry
        .parameters
        .iter()
        .filter_map(|parameter| match parameter.kind {
            ParameterKind::Choice(words) => Some((parameter.name, words)),
            _ => None,
        })
        .collect();
    if !words.is_empty() {
        let (name, words) = words[usize::from(input.choice.0) % words.len()];
        let word = words[usize::from(input.choice.1) % words.len()];
        values
            .set(name, Value::Choice(word))
            .expect("a word of the table");
    }
    let link = LinkContext {
        mtu: 1500,
        rate: Rate(10_000_000),
        framing: 0,
        delay: Duration::ZERO,
        seed: input.seed,
    };
    let mut queue = AnyQueue::build(entry.name, &values, &link).expect("an entry of the registry");
    let mut flows = FlowTable::new();
    for i in 0..300_u32 {
        flows.push(FlowKey {
            source: HostId(i % 7),
            destination: HostId(99),
            source_port: i as u16,
            destination_port: 80,
            protocol: 6,
        });
    }
    let (mut drops, mut events) = (Vec::new(), Vec::new());
    let (mut taken, mut left) = (0_u32, 0_u32);
    for call in &input.calls {
        let mut context = QueueContext {
            flows: &flows,
            ingress: taken as u16 % 5,
            drops: &mut drops,
            events: &mut events,
        };
        match *call {
            Call::Enqueue {
                now,
                flow,
                payload,
                overhead,
                tos,
                kind,
                flags,
                mark,
            } => {
                let now = Instant::from_nanos(now);
                let segment = Segment {
                    seq: SeqNumber(taken),
                    payload: u32::from(payload),
                    overhead,
                    tos: if mark.layout_b { 3 << 2 | tos & 3 } else { tos },
                    kind_sack: kind,
                    flags: Flags(flags | if mark.layout_b { Flags::DF.0 } else { 0 }),
                    ip_id: mark.ip_id,
                    urgent: mark.urgent,
                    ..Segment::default()
                };
                taken += 1;
                let packet = Packet {
                    enqueued_at: now,
                    flow: FlowId(u32::from(flow)),
                    buf: BufId::NONE,
                    segment,
                };
                queue.enqueue(now, packet, &mut context);
            }
            Call::Dequeue { now } => {
                left += u32::from(queue.dequeue(Instant::from_nanos(now), &mut context).is_some());
            }
        }
        left += drops.len() as u32;
        drops.clear();
        events.clear();
        assert_eq!(
            taken - left,
            queue.backlog().packets,
            "{}: conservation",
            entry.name
        );
        assert!(limit.holds(queue.backlog()), "{}: limit", entry.name);
    }
}
