//! SP-FQ: hardened super-packets for the buffer, round robin over flows for the bandwidth.
//!
//! The admission is SP-H's, with one test more: what waits and what is reserved of one flow stays within the flow's limit. What
//! is admitted is served by deficit round robin, so the rate of a flow does not depend on the length of its super-packets,
//! and announcing too much gains nothing. A short flow's window still enters as a whole or not at all.
//!
//! **Source.** docs/design/sp-hardened.md#sp-fq; service: Shreedhar and Varghese, SIGCOMM 1995, as in `drr`.
//!
//! **Deviations.** Nothing that waits is pushed out, for it may have been promised a place: arrivals are refused instead. By
//! default the limit of a flow is not fixed but as much as nobody has (Choudhury and Hahne 1998): a single flow gets half
//! of the buffer, n flows 1/(n+1) each, and a newcomer always finds room.

use super::super::hash::HashKey;
use super::super::round_robin::RoundRobin;
use super::super::{Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, drr, work};
use super::ledger::{self, Admission, Ledger, Room};
use super::parameters;
use crate::flow::FlowKey;
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::Instant;
use alloc::string::String;

const OWN: &[Parameter] = &[
    parameter!("flow_limit": Integer(1, 1_000_000) = auto,
        "Packets of one flow that may wait or be reserved; by default as many as are free (ours)"),
    drr::QUANTUM,
    drr::BUCKETS,
    drr::KEY,
];

/// A fair queue with hardened super-packets.
#[derive(Clone, Debug)]
pub struct SpFq {
    pub(super) ledger: Ledger,
    /// `None`: as much as is free.
    flow_limit: Option<u64>,
    by_source: bool,
    pub(super) key: HashKey,
    rounds: RoundRobin,
}

impl SpFq {
    /// The parameters of SP-H without `aqm`; `flow_limit`, `quantum`, `buckets`, `key`.
    pub const PARAMETERS: &'static [Parameter] =
        &parameters::with::<{ parameters::SHARED.len() + OWN.len() }>(OWN);

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> SpFq {
        let buckets = values.integer("buckets").unwrap_or(1024) as usize;
        let ledger = Ledger::new(values, link, buckets);
        let packet = ledger.reserved_packet();
        SpFq {
            flow_limit: values
                .integer("flow_limit")
                .map(|packets| packets.saturating_mul(packet)),
            by_source: values.choice("key") == "source",
            key: HashKey::new(link.seed),
            rounds: RoundRobin::new(buckets, drr::quantum(values, link)),
            ledger,
        }
    }

    /// Bytes of memory that the admission takes with `ports` links coming in, without the packets.
    pub fn admission_bytes(&self, ports: usize) -> usize {
        self.ledger.bytes(ports) + self.rounds.bytes()
    }

    fn room(&mut self, bucket: u32) -> Room {
        let queue = self.ledger.occupied(self.rounds.total());
        let own = self.ledger.occupied(self.rounds.backlog(bucket)) + self.ledger.reserved_for(bucket);
        let flow = match self.flow_limit {
            Some(limit) => limit.saturating_sub(own),
            None => {
                // own + x <= free - x, the share of Choudhury and Hahne.
                let free = self.ledger.size().saturating_sub(queue + self.ledger.reserved());
                free.saturating_sub(own) / 2
            }
        };
        // A flow with nothing may always send one packet if there is room at all.
        let flow = if own == 0 {
            flow.max(self.ledger.reserved_packet())
        } else {
            flow
        };
        Room { queue, flow, bucket }
    }
}

impl QueueDiscipline for SpFq {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        work::step();
        self.ledger.rotate(now, &packet, context);
        let bucket = self
            .key
            .bucket_of(&packet, context, self.by_source, self.rounds.queues());
        let case = self.ledger.case(&packet, context);
        let room = self.room(bucket);
        if self.ledger.admit(now, case, &packet, room, context) == Admission::Refused {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        self.rounds.push(bucket, packet);
    }

    #[inline(never)]
    fn dequeue(&mut self, _now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        self.rounds.next().map(|(_, packet)| packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.rounds.total()
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
        ledger::check(values)?;
        let longest = values.integer("max_length").unwrap_or(10);
        match (values.integer("flow_limit"), values.limit("limit")) {
            (Some(limit), _) if limit < longest => Err(String::from(
                "`flow_limit` must be at least `max_length`: no super-packet would ever be admitted",
            )),
            (Some(limit), Limit::Packets(size)) if limit > u64::from(size) => {
                Err(String::from("`flow_limit` must be at most `limit`"))
            }
            _ => Ok(()),
        }
    }
}
