//! The open-loop model of hardened super-packets (docs/design/sp-hardened.md#model): senders that do not react, a link of 1 Gbit/s with a
//! queue of 100 packets, an attacker who sends firsts that nothing follows.
//!
//! Regular packets arrive as a Poisson process at 0.3 of the link. Batches of 14 super-packets of 10 packets arrive as a Poisson
//! process at 0.7; the members of one come 12 us apart, as from a host with a link of the same rate, and the 14 begin within
//! 24 us of each other, so that all are interleaved. Each comes from another of 56 sources behind four ports.

use fleetfoot_core::flow::{FlowId, FlowKey, FlowTable, HostId};
use fleetfoot_core::link::{Link, LinkConfig, LinkObserver};
use fleetfoot_core::packet::{BufId, Flags, Packet, Segment};
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{AnyQueue, DropReason, QueueEvent, QueueEventKind};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::superpacket::{Layout, Mark};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Firsts of ten packets, 40 bytes each, that nothing follows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attack {
    /// Per second; a Poisson process.
    pub(crate) rate: f64,
    /// Whether each comes from another source.
    pub(crate) spoofed: bool,
    /// By which link they come; honest sources use 1 to 4.
    pub(crate) port: u16,
    /// When it stops, seconds.
    pub(crate) until: f64,
}

/// What one run is about.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// Registered name of the queue.
    pub(crate) queue: &'static str,
    /// Its parameters.
    pub(crate) given: Vec<(&'static str, Value)>,
    /// Who attacks.
    pub(crate) attack: Attack,
    /// Super-packets and regular packets that arrive in this interval are counted, seconds.
    pub(crate) counted: (f64, f64),
    /// Seed of the arrivals.
    pub(crate) seed: u64,
    /// What the source leaves open.
    pub(crate) assumed: Assumed,
}

/// What the published model leaves open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assumed {
    /// Honest sources.
    pub(crate) sources: u32,
    /// Time between two members of a super-packet.
    pub(crate) spacing_ns: u64,
    /// Time within which the super-packets of a batch begin.
    pub(crate) spread_ns: u64,
}

impl Default for Assumed {
    fn default() -> Assumed {
        Assumed {
            sources: 56,
            spacing_ns: PACKET_NS,
            spread_ns: 2 * PACKET_NS,
        }
    }
}

/// Shares, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Regular packets lost.
    pub(crate) regular_loss: f64,
    /// Super-packets of which everything came through.
    pub(crate) intact: f64,
    /// Super-packets of which a part came through.
    pub(crate) partial: f64,
    /// Members of admitted super-packets that were dropped for want of room.
    pub(crate) broken_promises: u64,
}

/// Packets of one super-packet.
const LENGTH: u8 = 10;
/// Super-packets of one batch.
const BATCH: u64 = 14;
/// Sources an attacker pretends to be.
const SPOOFED: u32 = 100_000;
/// Time of 1500 bytes on the link.
const PACKET_NS: u64 = 12_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Arrival {
    Regular,
    Batch,
    Attack,
    Member {
        source: u32,
        id: u16,
        of: u32,
        member: u8,
    },
}

#[derive(Default)]
struct Counts {
    dropped: Vec<Packet>,
    broken: u64,
}

impl LinkObserver for Counts {
    fn on_drop(&mut self, _now: Instant, packet: &Packet, _reason: DropReason) {
        self.dropped.push(*packet);
    }
    fn on_event(&mut self, _now: Instant, event: QueueEvent) {
        self.broken += u64::from(event.kind == QueueEventKind::BrokenPromise);
    }
}

impl Model {
    /// Runs it.
    pub(crate) fn run(&self) -> Outcome {
        let Assumed {
            sources,
            spacing_ns,
            spread_ns,
        } = self.assumed;
        let config = LinkConfig::new(Rate(1_000_000_000), Duration::ZERO);
        let entry = AnyQueue::entry(self.queue).expect("a registered queue");
        let mut values = Values::defaults(entry.parameters);
        for &(name, value) in &self.given {
            values.set(name, value).expect("a parameter of the queue");
        }
        (entry.check)(&values).expect("values that make sense");
        let queue = AnyQueue::build(self.queue, &values, &config.link_context(self.seed)).expect("an entry");
        let mut link = Link::new(queue, &config, self.seed, "model");

        let mut flows = FlowTable::new();
        for source in 0..sources + 1 + SPOOFED {
            flows.push(FlowKey {
                source: HostId(source),
                destination: HostId(u32::MAX),
                source_port: 1,
                destination_port: 80,
                protocol: 6,
            });
        }
        let mut rng = Rng::for_element(self.seed, "model", "arrivals");
        let mut hostile = Rng::for_element(self.seed, "model", "attack");
        let mut arrivals = BinaryHeap::new();
        let after = |rng: &mut Rng, now: u64, mean: f64| now + rng.exponential(mean) as u64;
        let regular_ns = PACKET_NS as f64 / 0.3;
        let batch_ns = (BATCH * u64::from(LENGTH) * PACKET_NS) as f64 / 0.7;
        let attack_ns = 1e9 / self.attack.rate;
        arrivals.push(Reverse((after(&mut rng, 0, regular_ns), Arrival::Regular)));
        arrivals.push(Reverse((after(&mut rng, 0, batch_ns), Arrival::Batch)));
        if self.attack.rate > 0.0 {
            arrivals.push(Reverse((after(&mut hostile, 0, attack_ns), Arrival::Attack)));
        }
        let end = (self.counted.1 * 1e9) as u64;
        let counts_at = |now: u64| now as f64 >= self.counted.0 * 1e9;
        let (mut regular, mut regular_lost) = (0_u64, 0_u64);
        // By super-packet: members that came through.
        let mut came: Vec<u8> = Vec::new();
        let mut first_counted = None;
        let mut seen = Counts::default();
        while let Some(Reverse((now, arrival))) = arrivals.pop() {
            if now > end {
                break;
            }
            let mut packet = Packet {
                enqueued_at: Instant::ZERO,
                flow: FlowId(0),
                buf: BufId::NONE,
                segment: Segment {
                    payload: 1460,
                    overhead: 40,
                    flags: Flags::ACK.with(Flags::DF),
                    ..Segment::default()
                },
            };
            let mut mark = Mark::REGULAR;
            let port;
            match arrival {
                Arrival::Regular => {
                    arrivals.push(Reverse((after(&mut rng, now, regular_ns), Arrival::Regular)));
                    packet.flow = FlowId(rng.below(u64::from(sources)) as u32);
                    port = 1 + (packet.flow.0 % 4) as u16;
                    packet.segment.ack = SeqNumber(REGULAR);
                    if counts_at(now) {
                        packet.segment.ack = SeqNumber(COUNTED);
                        regular += 1;
                    }
                }
                Arrival::Batch => {
                    arrivals.push(Reverse((after(&mut rng, now, batch_ns), Arrival::Batch)));
                    if counts_at(now) && first_counted.is_none() {
                        first_counted = Some(came.len());
                    }
                    // Different sources: the stride is prime to their number.
                    let (start, stride) = (rng.below(u64::from(sources)), 1 + 2 * rng.below(3));
                    for n in 0..BATCH {
                        let source = ((start + n * stride) % u64::from(sources)) as u32;
                        let begins = now + rng.below(spread_ns.max(1));
                        let (id, of) = (rng.below(256) as u16, came.len() as u32);
                        came.push(0);
                        for member in 0..LENGTH {
                            let at = begins + u64::from(member) * spacing_ns;
                            let arrival = Arrival::Member {
                                source,
                                id,
                                of,
                                member,
                            };
                            arrivals.push(Reverse((at, arrival)));
                        }
                    }
                    continue;
                }
                Arrival::Member {
                    source,
                    id,
                    of,
                    member,
                } => {
                    packet.flow = FlowId(source);
                    packet.segment.seq = SeqNumber(of);
                    packet.segment.ack = SeqNumber(MEMBER);
                    port = 1 + (source % 4) as u16;
                    mark = if member == 0 {
                        Mark::first(LENGTH, id)
                    } else {
                        Mark::follower(LENGTH, id)
                    };
                }
                Arrival::Attack => {
                    if now as f64 > self.attack.until * 1e9 {
                        continue;
                    }
                    arrivals.push(Reverse((after(&mut hostile, now, attack_ns), Arrival::Attack)));
                    let strangers = if self.attack.spoofed {
                        u64::from(SPOOFED)
                    } else {
                        1
                    };
                    packet.flow = FlowId(sources + 1 + hostile.below(strangers) as u32);
                    packet.segment.payload = 0;
                    packet.segment.ack = SeqNumber(REGULAR);
                    port = self.attack.port;
                    mark = Mark::first(LENGTH, hostile.below(256) as u16);
                }
            }
            Layout::LOCAL
                .mark(&mut packet.segment, mark)
                .expect("layout B can say it");
            link.set_ingress(port);
            let now = Instant::from_nanos(now);
            while let Some(due) = link.poll_timeout().filter(|&due| due <= now) {
                while let Some(out) = link.poll_delivery(due, &flows, &mut seen) {
                    if out.segment.ack == SeqNumber(MEMBER) {
                        came[out.segment.seq.0 as usize] += 1;
                    }
                }
            }
            link.on_packet(now, packet, &flows, &mut seen);
            for lost in seen.dropped.drain(..) {
                regular_lost += u64::from(lost.segment.ack == SeqNumber(COUNTED));
            }
        }
        // The last ones are still on their way.
        let counted = &came[first_counted.unwrap_or(0)..came.len().saturating_sub(2 * BATCH as usize)];
        let share = |filter: &dyn Fn(u8) -> bool| {
            100.0 * counted.iter().filter(|&&n| filter(n)).count() as f64 / counted.len() as f64
        };
        Outcome {
            regular_loss: 100.0 * regular_lost as f64 / regular as f64,
            intact: share(&|n| n == LENGTH),
            partial: share(&|n| 0 < n && n < LENGTH),
            broken_promises: seen.broken,
        }
    }
}

const REGULAR: u32 = 0;
const COUNTED: u32 = 1;
const MEMBER: u32 = 2;

/// A line of the table: what it is called, the published regular loss, intact and partial shares, and the model.
pub(crate) type Row = (String, Option<[f64; 3]>, Model);

/// The design's parameters in the model, with our rules for what finds no room.
pub(crate) fn hardened() -> Vec<(&'static str, Value)> {
    let mut given = as_published();
    given.retain(|(name, _)| !matches!(*name, "denial" | "headroom"));
    given
}

/// The design as published: what is denied is dropped as a whole, and regular packets leave nothing free.
pub(crate) fn as_published() -> Vec<(&'static str, Value)> {
    vec![
        ("denial", Value::Choice("drop")),
        ("headroom", Value::Integer(0)),
        ("reserve", Value::Integer(70)),
        ("newcomers", Value::Integer(18)),
        ("min_epoch", Value::Duration(Duration::from_millis(5))),
        ("max_epoch", Value::Duration(Duration::from_millis(5))),
        ("port_refill", Value::Duration(Duration::from_secs(100_000))),
    ]
}

/// Attacks by firsts at this rate: from one source, from many, and from many behind a port of honest ones.
pub(crate) fn attacks(rate: f64) -> [(&'static str, Attack); 3] {
    let of = |spoofed, port| Attack {
        rate,
        spoofed,
        port,
        until: f64::INFINITY,
    };
    [
        ("one source, own port", of(false, 5)),
        ("spoofed, own port", of(true, 5)),
        ("spoofed, shared port", of(true, 1)),
    ]
}

/// The table of docs/design/sp-hardened.md#model, from runs of `seconds`.
pub(crate) fn table(seconds: f64, seed: u64) -> Vec<Row> {
    let model = |queue, given, attack| Model {
        queue,
        given,
        attack,
        counted: (0.0, seconds),
        seed,
        assumed: Assumed::default(),
    };
    let limit = ("limit", Value::Limit(fleetfoot_core::queue::Limit::Packets(100)));
    let report = |epoch_ms| {
        vec![
            limit,
            ("max_length", Value::Integer(u64::from(LENGTH))),
            ("epoch", Value::Duration(Duration::from_millis(epoch_ms))),
        ]
    };
    let mut rows: Vec<Row> = vec![
        (
            "drop-tail".into(),
            Some([2.7, 6.4, 86.0]),
            model("drop-tail", vec![limit], Attack::default()),
        ),
        (
            "superpacket, no attack".into(),
            Some([7.9, 12.0, 51.0]),
            model("superpacket", report(200), Attack::default()),
        ),
        (
            "sp-h, no attack".into(),
            Some([1.7, 44.0, 21.0]),
            model("sp-h", as_published(), Attack::default()),
        ),
        (
            "sp-h, our rules, no attack".into(),
            None,
            model("sp-h", hardened(), Attack::default()),
        ),
    ];
    for (rate, epoch_ms, published) in [
        (200.0, 200, [82.0, 6.5, 1.0]),
        (2000.0, 200, [98.0, 0.7, 0.2]),
        (2000.0, 5, [29.0, 20.0, 0.0]),
    ] {
        rows.push((
            format!("superpacket, E {epoch_ms} ms, {rate} firsts/s"),
            Some(published),
            model("superpacket", report(epoch_ms), attacks(rate)[0].1),
        ));
    }
    let published = [[1.7, 44.2, 22.0], [1.7, 44.2, 22.0], [3.15, 44.1, 29.0]];
    for ((name, attack), published) in attacks(2000.0).into_iter().zip(published) {
        rows.push((
            format!("sp-h, 2000 firsts/s, {name}"),
            Some(published),
            model("sp-h", as_published(), attack),
        ));
        rows.push((
            format!("sp-h, our rules, 2000 firsts/s, {name}"),
            None,
            model("sp-h", hardened(), attack),
        ));
    }
    rows
}
