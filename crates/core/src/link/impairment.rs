//! What a wire does to packets after they were serialised: loss, damage, jitter, reordering, duplication.
//!
//! **Source.** Gilbert and Elliott's two-state model; bit errors are independent, so a packet of n bytes is damaged with
//! probability 1 - (1 - rate)^(8 n) (docs/design/packet-size.md#bit-errors).
//!
//! **Order.** Loss, bit errors, jitter, reordering, duplication. Each draws from a stream of its own, named after the link,
//! so switching one on does not shift the draws of the others. Jitter keeps order; a packet that is held back does not.

use crate::flow::FlowId;
use crate::packet::{Flags, Packet};
use crate::rng::{Distribution, Probability, Rng, Sampler};
use crate::seq::SeqNumber;
use crate::time::{Duration, Instant};
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::Serialize;

/// Impairments of a wire, applied after serialisation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Impairments {
    /// Loss model.
    pub loss: Loss,
    /// Apply `loss` to packets with payload only.
    pub loss_data_only: bool,
    /// Extra delay, drawn per packet (s); order is kept unless `reorder` says otherwise.
    pub jitter: Option<Distribution>,
    /// A packet is held back by this much with this probability, and others overtake it.
    pub reorder: Option<(Probability, Duration)>,
    /// Probability that a packet arrives twice.
    pub duplicate: Probability,
    /// Bit error rate: a packet of n bytes arrives damaged with probability 1 - (1 - rate)^(8 n).
    pub bit_error_rate: f64,
    /// What the link does about packets that bit errors damaged.
    pub arq: Option<Arq>,
}

/// Link-layer retransmission: stop and wait. The sender learns of the damage after `delay` and sends the packet again at
/// once; what follows waits, so the order is kept and every attempt takes its time on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Arq {
    /// Attempts after the first; a packet that is damaged in all of them arrives damaged.
    pub retransmissions: u32,
    /// From the end of an attempt to the beginning of the next.
    pub delay: Duration,
}

/// Loss model of a wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each packet independently.
    Random(Probability),
    /// Gilbert and Elliott: two states with transition and loss probabilities, one step per packet.
    Burst {
        /// Good to bad.
        enter: Probability,
        /// Bad to good.
        leave: Probability,
        /// Loss in the good state.
        good: Probability,
        /// Loss in the bad state.
        bad: Probability,
    },
    /// The packets of each flow with these indices among its packets on this link (from 0), ascending. With
    /// `loss_data_only` only data packets are counted.
    Script(Arc<[u32]>),
    /// The last `k` data segments of each transfer, first transmissions only. The driver reports where transfers end
    /// ([`super::Link::on_stream_end`]).
    Tail(u32),
}

impl Impairments {
    /// Whether the wire does nothing but delay.
    pub fn is_none(&self) -> bool {
        matches!(self.loss, Loss::None)
            && self.jitter.is_none()
            && self.reorder.is_none_or(|(p, _)| p.is_zero())
            && self.duplicate.is_zero()
            && (self.bit_error_rate.is_nan() || self.bit_error_rate <= 0.0)
    }
}

/// Where the data of a flow ends: the packets themselves do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamEnd {
    /// Sequence number of the first byte of the stream (initial sequence number plus one).
    pub origin: SeqNumber,
    /// Bytes from `origin` to the end of the transfer. A later transfer of the same connection names its own end.
    pub end: u64,
    /// Payload of a full segment.
    pub segment: u32,
}

/// What becomes of a packet.
pub(super) struct Fate {
    pub(super) packet: Packet,
    pub(super) at: Instant,
    pub(super) lost: bool,
    pub(super) held: bool,
    pub(super) copies: u8,
}

pub(super) struct ImpairedWire {
    loss: LossState,
    loss_data_only: bool,
    bit_errors: Option<BitErrors>,
    arq: Option<Arq>,
    jitter: Option<Sampler>,
    /// Latest delivery among packets that were neither lost nor held back.
    latest: Instant,
    /// Latest delivery among packets that were held back.
    latest_held: Instant,
    reorder: Option<(Probability, Duration, Rng)>,
    duplicate: Option<(Probability, Rng)>,
}

impl ImpairedWire {
    /// `None` when there is nothing to do.
    pub(super) fn new(impairments: &Impairments, seed: u64, name: &str) -> Option<ImpairedWire> {
        if impairments.is_none() {
            return None;
        }
        let stream = |purpose| Rng::for_element(seed, name, purpose);
        Some(ImpairedWire {
            loss: LossState::new(&impairments.loss, stream("loss")),
            loss_data_only: impairments.loss_data_only,
            bit_errors: (impairments.bit_error_rate > 0.0).then(|| BitErrors {
                log_correct: libm::log1p(-impairments.bit_error_rate.min(1.0)),
                len: 0,
                damaged: Probability::ZERO,
                rng: stream("bit errors"),
            }),
            arq: impairments.arq,
            jitter: impairments
                .jitter
                .clone()
                .map(|distribution| Sampler::new(distribution, stream("jitter"))),
            latest: Instant::ZERO,
            latest_held: Instant::ZERO,
            reorder: impairments.reorder.map(|(p, hold)| (p, hold, stream("reorder"))),
            duplicate: (!impairments.duplicate.is_zero())
                .then(|| (impairments.duplicate, stream("duplicate"))),
        })
    }

    /// What becomes of `packet`, whose first attempt has been sent. `due` says when it is due, of how often it is sent again and the
    /// wait before each of those attempts.
    pub(super) fn fate(&mut self, mut packet: Packet, due: impl FnOnce(u32, Duration) -> Instant) -> Fate {
        let exempt = self.loss_data_only && !packet.segment.is_data();
        let lost = !exempt && self.loss.takes(&packet);
        let mut again = 0;
        if let Some(errors) = &mut self.bit_errors {
            let most = self.arq.map_or(0, |arq| arq.retransmissions);
            while errors.damage(packet.segment.len()) {
                if again == most {
                    packet.segment.flags = packet.segment.flags.with(Flags::CORRUPT);
                    break;
                }
                again += 1;
            }
        }
        let mut at = due(again, self.arq.map_or(Duration::ZERO, |arq| arq.delay));
        if let Some(jitter) = &mut self.jitter {
            at = at.saturating_add(Duration::from_secs_f64(jitter.sample()));
        }
        // Nothing arrives before what was sent earlier and not held back.
        at = at.max(self.latest);
        let mut held = false;
        if let Some((p, hold, rng)) = &mut self.reorder
            && rng.chance(*p)
        {
            at = at.saturating_add(*hold).max(self.latest_held);
            held = true;
        }
        let copies = match &mut self.duplicate {
            Some((p, rng)) => 1 + u8::from(rng.chance(*p)),
            None => 1,
        };
        if !lost {
            *if held {
                &mut self.latest_held
            } else {
                &mut self.latest
            } = at;
        }
        Fate {
            packet,
            at,
            lost,
            held,
            copies,
        }
    }

    pub(super) fn on_stream_end(&mut self, flow: FlowId, end: StreamEnd) {
        if let LossState::Tail { flows, .. } = &mut self.loss {
            let tail = entry(flows, flow);
            match tail {
                Some(tail) if tail.end.origin == end.origin => tail.end = end,
                _ => *tail = Some(Tail { end, sent: 0 }),
            }
        }
    }

    pub(super) fn on_flow_end(&mut self, flow: FlowId) {
        match &mut self.loss {
            LossState::Tail { flows, .. } => *entry(flows, flow) = None,
            LossState::Script { flows, .. } => *entry(flows, flow) = 0,
            LossState::None | LossState::Random(..) | LossState::Burst { .. } => {}
        }
    }
}

enum LossState {
    None,
    Random(Probability, Rng),
    Burst {
        enter: Probability,
        leave: Probability,
        good: Probability,
        bad: Probability,
        in_bad: bool,
        rng: Rng,
    },
    Script {
        indices: Arc<[u32]>,
        /// Packets seen, per flow.
        flows: Vec<u32>,
    },
    Tail {
        segments: u32,
        flows: Vec<Option<Tail>>,
    },
}

#[derive(Clone, Copy)]
struct Tail {
    end: StreamEnd,
    /// Highest offset sent so far: what lies below it is a retransmission.
    sent: u64,
}

impl LossState {
    fn new(loss: &Loss, rng: Rng) -> LossState {
        match loss {
            Loss::None => LossState::None,
            Loss::Random(p) => LossState::Random(*p, rng),
            &Loss::Burst {
                enter,
                leave,
                good,
                bad,
            } => LossState::Burst {
                enter,
                leave,
                good,
                bad,
                in_bad: false,
                rng,
            },
            Loss::Script(indices) => LossState::Script {
                indices: indices.clone(),
                flows: Vec::new(),
            },
            Loss::Tail(segments) => LossState::Tail {
                segments: *segments,
                flows: Vec::new(),
            },
        }
    }

    fn takes(&mut self, packet: &Packet) -> bool {
        match self {
            LossState::None => false,
            LossState::Random(p, rng) => rng.chance(*p),
            LossState::Burst {
                enter,
                leave,
                good,
                bad,
                in_bad,
                rng,
            } => {
                if rng.chance(if *in_bad { *leave } else { *enter }) {
                    *in_bad = !*in_bad;
                }
                rng.chance(if *in_bad { *bad } else { *good })
            }
            LossState::Script { indices, flows } => {
                let seen = entry(flows, packet.flow);
                let index = *seen;
                *seen = seen.saturating_add(1);
                indices.binary_search(&index).is_ok()
            }
            LossState::Tail { segments, flows } => match entry(flows, packet.flow) {
                Some(tail) if packet.segment.is_data() => tail.takes(packet, *segments),
                _ => false,
            },
        }
    }
}

impl Tail {
    fn takes(&mut self, packet: &Packet, segments: u32) -> bool {
        let first = packet.segment.seq.to_offset(self.end.origin, self.sent);
        let Ok(first) = u64::try_from(first) else {
            return false;
        };
        if first < self.sent || first >= self.end.end {
            return false;
        }
        self.sent = first + u64::from(packet.segment.payload);
        self.end.end - first <= u64::from(segments) * u64::from(self.end.segment)
    }
}

struct BitErrors {
    /// ln(1 - bit error rate).
    log_correct: f64,
    /// Length that `damaged` belongs to.
    len: u32,
    damaged: Probability,
    rng: Rng,
}

impl BitErrors {
    fn damage(&mut self, len: u32) -> bool {
        if len != self.len {
            self.len = len;
            self.damaged = Probability::from_f64(-libm::expm1(8.0 * f64::from(len) * self.log_correct));
        }
        self.rng.chance(self.damaged)
    }
}

/// The entry of `flow` in a table that grows with the flows seen. Flow ids are dense.
fn entry<T: Clone + Default>(table: &mut Vec<T>, flow: FlowId) -> &mut T {
    let index = flow.0 as usize;
    if index >= table.len() {
        table.resize(index + 1, T::default());
    }
    &mut table[index]
}
