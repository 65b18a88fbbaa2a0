//! SP-H: super-packets that strangers cannot turn against others.
//!
//! The first packet of a super-packet reserves places for its followers, as in `superpacket`, but only as many as are free,
//! within a share for each source, and on credit: a reservation is a deposit that is refunded with a gain of one eighth when
//! its packets come, and lost when they do not. What lacks credit, share or room is downgraded to regular packets. While
//! super-packets pass, regular packets leave as many places free as the longest one needs; they always keep
//! `limit - reserve` places.
//!
//! **Source.** docs/design/sp-hardened.md: its nine rules, active queue management, the length of an epoch. It hardens
//! Schinazi, "Improving TCP latency with super-packets", UCB/EECS-2014-80 (2014). Shares: Choudhury and Hahne, "Dynamic
//! queue length thresholds for shared-memory packet switches", IEEE/ACM ToN 1998. RED and CoDel as in `red` and `codel`.
//!
//! **Deviations.** Two rules of the first design are changed, because measured with TCP they make short flows slower than drop-tail
//! does (61 ms become 102, docs/superpackets.md). A super-packet that finds no room is not dropped as a whole but
//! downgraded (`denial = "drop"` is rule 8 of the first design): a window lost as a whole brings nothing back that would start
//! fast recovery. And there is a headroom (`headroom = 0`: none): while promises are being redeemed, regular packets
//! leave H places free, reserved ones included, and a first must find max(L, H), H being the longest super-packet of the
//! last one to two seconds. Without it a regular packet needs one place and a first of ten needs ten, and long flows keep the
//! queue too full for it. A first must find H too, so that streams do not gain by marking pairs. SYNs may use the headroom:
//! losing one costs a second. H is part of `reserve`, so P3 reads: a regular packet is dropped only when Q + max(R, H) >= size.
//!
//! The epoch follows every follower that is redeemed, not only super-packets that were completed, and is
//! `max_epoch` while none was: with a short epoch slow super-packets would never complete, and the epoch would never grow.
//! A source has eight candidate places in a table of 4096 instead of two, so that it takes many more strangers to push out
//! one with credit. There is no refill for sources. A first that is downgraded earns nothing, only its followers do: else
//! an attack by small firsts pays for itself (with 30000 a second behind a shared port 28.1 % of honest super-packets
//! stay whole instead of 33.7 %). With a limit in bytes a reserved place counts one MTU. RED looks at
//! the queue without what is reserved, so that reservations cannot raise the losses of others. A drop that CoDel owes to a
//! packet that must not be dropped falls on the next first, of whatever flow, that cannot be marked; at most one is owed, and none when the drop state ends.
//! A first that can be marked is not dropped (RFC 3168 5), and not marked either: its flow has marks of its own, and would pay for those without ECN.
//!
//! **Promises.** Reserved packets never exceed `reserve`, and with those that wait never exceed `limit`; an admitted packet is
//! never dropped. A source that redeems nothing can waste what it earned: one reserved packet for eight useful ones, at
//! most `credit` at once. Without super-packets SP-H is `drop-tail`. Every call is bounded: two hashes, 16 probes of the
//! reservations, 24 of the sources, 8 bits of the filter, 64 words at the end of an epoch.
//!
//! **Measured.** `cargo run --release -p fleetfoot-core --example superpacket_model` prints an open-loop model, 1 Gbit/s at
//! load 1, published values beside ours. Four seconds of it, percent of regular packets lost, of super-packets whole and in
//! part: drop-tail 2.7, 6.4, 86.3; `superpacket` 7.9, 12.1, 50.8; SP-H by its first design 1.8, 40.0, 28.0 (published 1.7, 44,
//! 21), by ours 6.6, 36.8, 43.6. What the model leaves open explains the difference: within which time the
//! super-packets of a batch begin (24 us here; at once 36.0 and 33.4, within 120 us 49.8 and 6.4) and how tight a share is
//! (`share = 4`: 42.8 and 23.9). With 2000 firsts a second that nothing follows: `superpacket` 99.2, 0.2, 0.0 (26.3, 20.4,
//! 0.0 with an epoch of 5 ms); SP-H by its first design 1.8, 38.9, 29.3, by ours 6.4, 36.2, 44.2, and 5.3, 34.7, 46.7 if they come by
//! a link that a quarter of the honest sources use too.

use super::codel::{self, Law, State};
use super::fifo::Fifo;
use super::red::{EarlyDrop, EarlyDropConfig};
use super::{Backlog, DropPoint, DropReason, LinkContext, QueueContext, QueueDiscipline, QueueEventKind};
use crate::flow::FlowKey;
use crate::packet::{Ecn, Packet};
use crate::parameter;
use crate::parameter::{Parameter, Values};
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

const OWN: &[Parameter] = &[
    parameter!("aqm": Choice(&["none", "red", "codel"]) = "none",
        "Active queue management: none, RED for all but followers that were promised a place, or CoDel, which marks those and firsts or, without ECN, refuses a later super-packet"),
    parameter!("ecn": Flag = true, "Let RED and CoDel mark ECN-capable packets instead of dropping them"),
    codel::TARGET,
    codel::INTERVAL,
    codel::CE_THRESHOLD,
    parameters::MIN_THRESHOLD,
    parameters::MAX_THRESHOLD,
    parameters::MAX_PROBABILITY,
];

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
        /// A drop is owed to a packet that had to be spared; no longer than the drop state lasts.
        refuse_next_first: bool,
    },
}

/// What active queue management wants of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Managed {
    /// Nothing.
    Pass,
    /// Mark it, if it is queued.
    Mark,
    /// Drop it.
    Drop,
}

impl SpH {
    /// The parameters shared with SP-FQ, and `aqm` with the parameters of its own.
    pub const PARAMETERS: &'static [Parameter] =
        &parameters::with::<{ parameters::SHARED.len() + OWN.len() }>(OWN);

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> SpH {
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
                    link,
                ),
                ecn: values.flag("ecn"),
            },
            "codel" => Aqm::CoDel {
                law: Law::new(values, link),
                state: State::default(),
                refuse_next_first: false,
            },
            _ => Aqm::None,
        };
        SpH {
            ledger: Ledger::new(values, link, 1),
            packets: Fifo::new(),
            aqm,
        }
    }

    /// Bytes of memory that the admission takes with `ports` links coming in, without the packets.
    pub fn admission_bytes(&self, ports: usize) -> usize {
        self.ledger.bytes(ports)
    }

    /// What active queue management wants of an arriving packet. Followers with a promise are not asked.
    fn manage(&mut self, now: Instant, case: Case, packet: &Packet) -> Managed {
        match &mut self.aqm {
            Aqm::None => Managed::Pass,
            Aqm::Red { law, ecn } => {
                law.estimate(now, self.packets.len() as f64);
                if matches!(case, Case::Promised { .. } | Case::Denied) || !law.decide(packet.segment.len()) {
                    return Managed::Pass;
                }
                // RFC 3168 7: above the upper threshold packets are dropped, not marked.
                if *ecn && packet.segment.ecn_capable() && !law.is_above() {
                    return Managed::Mark;
                }
                Managed::Drop
            }
            Aqm::CoDel {
                law,
                refuse_next_first,
                ..
            } => {
                // RFC 3168 5: what can be marked is not dropped. Drops are owed by what cannot.
                let pays = matches!(case, Case::First { .. }) && !law.marks(packet);
                if pays && core::mem::take(refuse_next_first) {
                    Managed::Drop
                } else {
                    Managed::Pass
                }
            }
        }
    }
}

impl QueueDiscipline for SpH {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, mut packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        self.ledger.rotate(now, &packet, context);
        let case = self.ledger.case(&packet, context);
        let managed = self.manage(now, case, &packet);
        if managed == Managed::Drop {
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
        if managed == Managed::Mark {
            packet.segment.set_ecn(Ecn::Ce);
            context.report(QueueEventKind::Marked, packet.flow);
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
            } => {
                let packet = state.dequeue_sparing(now, law, context, pop, |packet, context| {
                    if promised.get() {
                        *refuse_next_first = true;
                        context.report(QueueEventKind::Deferred, packet.flow);
                    }
                    promised.get()
                });
                // RFC 8289 5.4: nothing is dropped below the target, or with at most one packet left.
                *refuse_next_first &= state.is_dropping();
                packet
            }
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn drop_point(&self) -> DropPoint {
        match self.aqm {
            Aqm::None | Aqm::Red { .. } => DropPoint::Arrival,
            Aqm::CoDel { .. } => DropPoint::Departure,
        }
    }

    fn asks_ingress(&self) -> bool {
        true
    }

    fn state_bytes(&self) -> Option<usize> {
        Some(self.admission_bytes(self.ledger.ports_seen()))
    }

    fn most_probes(&self) -> Option<u32> {
        Some(self.ledger.most_probes())
    }

    fn places_of(&self, flow: FlowKey, id: u16) -> Option<[u32; 2]> {
        Some(self.ledger.places_of(flow, id))
    }

    fn check(values: &Values) -> Result<(), String> {
        ledger::check(values)
    }
}
