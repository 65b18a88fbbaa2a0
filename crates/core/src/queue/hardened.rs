//! SP-H: super-packets that strangers cannot turn against others.
//!
//! The first packet of a super-packet reserves places for its followers, as in `superpacket`, but only as many as are free,
//! within a share for each source, and on credit: a reservation is a deposit that is refunded with a gain of one eighth when
//! its packets come, and lost when they do not. What lacks credit or share is downgraded to regular packets; what lacks
//! room is denied as a whole. Regular packets always keep `limit - reserve` places.
//!
//! **Source.** Router digest 11.2 (its nine rules), 11.6 (active queue management), D-14 (length of an epoch). It hardens
//! Schinazi, "Improving TCP latency with super-packets", UCB/EECS-2014-80 (2014). Shares: Choudhury and Hahne, "Dynamic
//! queue length thresholds for shared-memory packet switches", IEEE/ACM ToN 1998. RED and CoDel as in `red` and `codel`.
//!
//! **Deviations.** The epoch follows every follower that is redeemed, not only super-packets that were completed, and is
//! `max_epoch` while none was: with a short epoch slow super-packets would never complete, and the epoch would never grow.
//! A source has eight candidate places in a table of 4096 instead of two, so that it takes many more strangers to push out
//! one with credit. There is no refill for sources. A first that is downgraded earns nothing, only its followers do: else
//! an attack by small firsts pays for itself (with 30000 a second behind a shared port 28.1 % of honest super-packets
//! stay whole instead of 33.7 %). With a limit in bytes a reserved place counts one MTU. RED looks at
//! the queue without what is reserved, so that reservations cannot raise the losses of others. A drop that CoDel owes to a
//! packet that must not be dropped falls on the next first, of whatever flow, and at most one is owed.
//!
//! **Promises.** Reserved packets never exceed `reserve`, and with those that wait never exceed `limit`; an admitted packet is
//! never dropped. A source that redeems nothing can waste what it earned: one reserved packet for eight useful ones, at
//! most `credit` at once. Without super-packets SP-H is `drop-tail`. Every call is bounded: two hashes, 8 probes of the
//! reservations, 8 of the sources, 8 bits of the filter, 64 words at the end of an epoch.
//!
//! **Measured.** `cargo run --release -p fleetfoot-core --example superpacket_model` prints an open-loop model, 1 Gbit/s at
//! load 1, published values beside ours. Six seconds of it, percent of regular packets lost, of super-packets whole and in
//! part: drop-tail 2.7, 6.4, 86.8; `superpacket` 7.9, 12.0, 51.3; SP-H 1.8, 40.4, 27.9. With 2000 firsts a second that
//! nothing follows: `superpacket` 99.2, 0.2, 0.0 (26.9, 19.9, 0.0 with an epoch of 5 ms); SP-H 1.8, 39.5, 28.7, and 3.1,
//! 37.4, 36.9 if they come by a link that a quarter of the honest sources use too.

use super::codel::{self, Law, State};
use super::fifo::Fifo;
use super::red::{EarlyDrop, EarlyDropConfig};
use super::{Backlog, Decides, DropReason, QueueContext, QueueDiscipline, QueueEventKind, Surroundings};
use crate::packet::{Ecn, Packet};
use crate::parameter::{Parameter, ParameterKind, Value, Values};
use crate::superpacket::Layout;
use crate::time::Instant;
use alloc::string::String;
use core::cell::Cell;

mod credit;
mod fair;
mod generations;
mod ledger;
mod parameters;
#[cfg(test)]
mod tests;

pub use fair::SpFq;
use ledger::{Admission, Case, Ledger, Room};

/// A queue with hardened super-packets.
#[derive(Clone, Debug)]
pub struct SpH {
    ledger: Ledger,
    /// With each, whether it is of an admitted super-packet.
    packets: Fifo<bool>,
    aqm: Aqm,
}

/// Active queue management beside the admission.
#[derive(Clone, Debug)]
enum Aqm {
    None,
    Red {
        law: EarlyDrop,
        ecn: bool,
    },
    CoDel {
        law: Law,
        state: State,
        /// A drop is owed to a packet that had to be spared.
        refuse_next_first: bool,
    },
}

impl SpH {
    /// `limit`, `max_length`, `layout`, `codepoint`, `reserve`, `share`, `newcomers`, `credit`, `port_credit`,
    /// `port_refill`, `min_epoch`, `max_epoch`, `sources`, and `aqm` with its own.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameters::LIMIT,
        parameters::MAX_LENGTH,
        Layout::PARAMETER,
        Layout::CODEPOINT,
        parameters::RESERVE,
        parameters::SHARE,
        parameters::NEWCOMERS,
        parameters::CREDIT,
        parameters::PORT_CREDIT,
        parameters::PORT_REFILL,
        parameters::MIN_EPOCH,
        parameters::MAX_EPOCH,
        parameters::SOURCES,
        Parameter {
            name: "aqm",
            kind: ParameterKind::Choice(&["none", "red", "codel"]),
            default: Value::Choice("none"),
            doc: "Active queue management: none, RED for all but followers that were promised a place, or CoDel, which marks those and firsts or refuses a later super-packet",
        },
        Parameter {
            name: "ecn",
            kind: ParameterKind::Flag,
            default: Value::Flag(true),
            doc: "Let RED and CoDel mark ECN-capable packets instead of dropping them",
        },
        codel::TARGET,
        codel::INTERVAL,
        codel::CE_THRESHOLD,
        parameters::MIN_THRESHOLD,
        parameters::MAX_THRESHOLD,
        parameters::MAX_PROBABILITY,
    ];

    /// An empty queue.
    pub fn new(values: &Values, surroundings: &Surroundings) -> SpH {
        let aqm = match values.choice("aqm") {
            "red" => Aqm::Red {
                law: EarlyDrop::new(
                    &EarlyDropConfig {
                        min_threshold: values.number("min_threshold"),
                        max_threshold: values.number("max_threshold"),
                        max_probability: values.number("max_probability").unwrap_or(0.1),
                        weight: None,
                        gentle: true,
                        byte_mode: false,
                        mean_packet: 1000.0,
                    },
                    surroundings,
                ),
                ecn: values.flag("ecn"),
            },
            "codel" => Aqm::CoDel {
                law: Law::new(values, surroundings),
                state: State::default(),
                refuse_next_first: false,
            },
            _ => Aqm::None,
        };
        SpH {
            ledger: Ledger::new(values, surroundings, 1),
            packets: Fifo::new(),
            aqm,
        }
    }

    /// Bytes of memory that the admission takes with `ports` links coming in, without the packets.
    pub fn admission_bytes(&self, ports: usize) -> usize {
        self.ledger.bytes(ports)
    }

    /// Whether active queue management drops an arriving packet, or marks it. Followers with a promise are not asked.
    fn manage(
        &mut self,
        now: Instant,
        case: Case,
        packet: &mut Packet,
        context: &mut QueueContext<'_>,
    ) -> bool {
        match &mut self.aqm {
            Aqm::None => false,
            Aqm::Red { law, ecn } => {
                law.estimate(now, self.packets.len() as f64);
                if matches!(case, Case::Promised { .. } | Case::Denied) || !law.decide(packet.segment.len()) {
                    return false;
                }
                // RFC 3168 7: above the upper threshold packets are dropped, not marked.
                if *ecn && packet.segment.ecn_capable() && !law.is_above() {
                    packet.segment.set_ecn(Ecn::Ce);
                    context.report(QueueEventKind::Marked, packet.flow);
                    return false;
                }
                true
            }
            Aqm::CoDel {
                refuse_next_first, ..
            } => matches!(case, Case::First { .. }) && core::mem::take(refuse_next_first),
        }
    }
}

impl QueueDiscipline for SpH {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, mut packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        self.ledger.rotate(now, &packet, context);
        let case = self.ledger.case(&packet, context);
        if self.manage(now, case, &mut packet, context) {
            if let Case::First { key, .. } = case {
                self.ledger.deny(key, &packet, 0, context);
            }
            context.drops.push((packet, DropReason::Early));
            return;
        }
        let room = Room {
            queue: self.ledger.occupied(self.backlog()),
            flow: u64::MAX,
            bucket: 0,
        };
        let admission = self.ledger.admit(now, case, &packet, room, context);
        if admission == Admission::Refused {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        if let Aqm::Red { law, .. } = &mut self.aqm {
            law.filled();
        }
        self.packets.push(packet, admission == Admission::Promised);
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<Packet> {
        let packets = &mut self.packets;
        let promised = Cell::new(false);
        let mut pop = || {
            let (packet, of_promise) = packets.pop()?;
            promised.set(of_promise);
            Some((packet, packets.bytes()))
        };
        match &mut self.aqm {
            Aqm::None => pop().map(|(packet, _)| packet),
            Aqm::Red { law, .. } => {
                let (packet, _) = pop()?;
                if self.packets.is_empty() {
                    law.emptied(now);
                }
                Some(packet)
            }
            Aqm::CoDel {
                law,
                state,
                refuse_next_first,
            } => state.dequeue_sparing(now, law, context, pop, |packet, context| {
                if promised.get() {
                    *refuse_next_first = true;
                    context.report(QueueEventKind::Deferred, packet.flow);
                }
                promised.get()
            }),
        }
    }

    #[inline]
    fn ready_at(&self) -> Option<Instant> {
        self.packets.ready_at()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn decides(&self) -> Decides {
        match self.aqm {
            Aqm::None | Aqm::Red { .. } => Decides::Arrival,
            Aqm::CoDel { .. } => Decides::Departure,
        }
    }

    fn asks_ingress(&self) -> bool {
        true
    }

    fn check(values: &Values) -> Result<(), String> {
        ledger::check(values)
    }
}
