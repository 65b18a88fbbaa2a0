//! FavourTail: a packet whose flow has nothing in the queue overtakes the packets of flows that have.
//!
//! One queue in two parts. A packet of a flow that has no packet waiting here joins the end of the favoured part, which is
//! served first; any other packet joins the end of the normal part. So the first packets of a flow, and all packets of a flow
//! that sends less than one packet per stay in the queue, do not wait behind the bulk; the order within a flow is kept.
//!
//! **Source.** Dedu and Lochin, "A study on the benefit of TCP packet prioritisation", PDP 2009 (doi 10.1109/PDP.2009.60), of
//! which the slides were at hand; docs/design/favourtail.md. The slides move a pointer behind the last favoured packet of one list; two
//! lists are the same thing, and the tests hold them to it.
//!
//! **Deviations.** None in the plain form. Where the slides are silent: the packet being sent is not in the queue, as in ns-2,
//! unless `count_in_service`; a full queue drops the arriving packet, favoured or not, unless `push_out` (the idea of FavourQueue
//! by Anelli, Diana and Lochin, arXiv 1103.2303, in our own rule: the newest normal packet leaves). With `count_in_service` a
//! flow counts as present until its packet has been sent.
//!
//! **Budget.** Ours: the slides say that sources cannot cheat and that starvation is future work, but one packet of each of many
//! flows, or a flow that sends its next packet when the previous one has left, is always favoured, and then normal packets
//! starve. With `budget` favour costs tokens. T bytes of tokens, at first `burst`, are spent by favoured packets of their size,
//! which their hosts then owe; of each byte that leaves, `share` pays what one host owes. Hosts have turns, all that have packets
//! here or a debt, and one without a debt lets its turn pass: so none is favoured with more than an equal part of `share` for
//! long, however many flows it opens. A host may owe no more than tokens are left. Who cannot pay is a normal packet, never a
//! dropped one. Then T and the bytes in the favoured part together never exceed `burst`, and a normal packet with q bytes of
//! normal packets before it, itself included, has left after at most (q + `burst` + largest packet) / ((1 - `share`) C) on a link
//! of rate C, if it is not pushed out. The first design of the rule for hosts, no more favoured bytes waiting than tokens are left, does
//! not bind, because favoured packets hardly wait: one host that offered half of the line was favoured with half of it.

use super::fifo::Fifo;
use super::hash::HashKey;
use super::{
    Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, QueueEvent, QueueEventKind,
    SendingTime, plus, work,
};
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Value, Values};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::string::String;
use budget::Budget;
use tally::{NONE, Tally};

mod budget;
mod tally;
#[cfg(test)]
mod tests;

/// A FavourTail queue.
#[derive(Clone, Debug)]
pub struct FavourTail {
    limit: Limit,
    mtu: u32,
    push_out: bool,
    key: HashKey,
    /// P (docs/design/favourtail.md#favour): served first.
    favoured: Fifo<Mark>,
    /// N (docs/design/favourtail.md#favour): served when P is empty.
    normal: Fifo<Mark>,
    /// Packets of each flow.
    flows: Tally,
    /// Whether the packet being sent counts as present.
    count_in_service: bool,
    /// Its flow in `flows`, or `NONE`.
    in_service: u32,
    budget: Option<Budget>,
}

/// Where a packet is counted.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Entry of its flow.
    flow: u32,
    /// Entry of its host in the budget; `NONE` if hosts have none.
    host: u32,
}

/// 1 in the units of the budget.
const WHOLE: u64 = 1000;
/// Largest burst: what a host can have is counted in 32 bits.
const LARGEST_BURST: u64 = 1 << 31;

impl FavourTail {
    /// `limit`, `ns2_compat`, `count_in_service`, `push_out`, `budget`, `share`, `burst`, `host`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(1000),
            "What may wait in both parts together, not counting the packet being sent (as drop-tail; the slides: 50 packets)"),
        parameter!("ns2_compat": Flag = false, "Hold one packet less, or one byte less with a limit in bytes, as ns-2.35's drop-tail does"),
        parameter!("count_in_service": Flag = false,
            "A flow whose packet is being sent has a packet here (ns-2's queues do not see it)"),
        parameter!("push_out": Flag = false,
            "A packet to be favoured that finds the queue full takes the place of the newest normal packets (the slides drop it)"),
        parameter!("budget": Flag = false,
            "Favour costs tokens, which bounds what normal packets wait (ours)"),
        parameter!("share": Number(0.0, 0.99) = 0.5,
            "With `budget`: tokens in bytes for each byte that leaves, phi; normal packets keep the rest of the link (ours)"),
        parameter!("burst": Bytes(Bytes(1), Bytes(LARGEST_BURST)) = auto,
            "With `budget`: most tokens, sigma; by default a quarter of the limit, at least ten packets of the link's MTU (ours)"),
        parameter!("host": Choice(&["source", "destination", "none"]) = "source",
            "With `budget`: who owes them and pays in turn: each source, each destination (for links towards users), or nobody (ours)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> FavourTail {
        let mtu = link.mtu.max(1);
        let limit = match values.limit("limit") {
            limit if values.flag("ns2_compat") => limit.as_in_ns2(),
            limit => limit,
        };
        let packets = match limit {
            Limit::Packets(packets) => packets,
            Limit::Bytes(bytes) => (bytes.0 / u64::from(mtu.min(64))).min(u64::from(u32::MAX)) as u32,
            Limit::Unlimited => u32::MAX,
        };
        FavourTail {
            limit,
            mtu,
            push_out: values.flag("push_out"),
            key: HashKey::new(link.seed),
            favoured: Fifo::new(),
            normal: Fifo::new(),
            flows: Tally::new(packets),
            count_in_service: values.flag("count_in_service"),
            in_service: NONE,
            budget: values
                .flag("budget")
                .then(|| Budget::new(values, limit, mtu, packets)),
        }
    }

    /// Longest time from the arrival of a normal packet to the end of its transmission, where the queue holds what its limit allows.
    /// `None`: without a budget favoured packets can keep it waiting for ever.
    fn wait_bound(&self, sending: &SendingTime) -> Option<Duration> {
        let budget = self.budget.as_ref()?;
        let normal = self.limit.bytes(self.mtu)?.0.saturating_add(u64::from(self.mtu));
        // docs/design/favourtail.md#bound, in bytes. Those beyond the normal ones are of favoured packets.
        let all = (normal.saturating_mul(WHOLE).saturating_add(budget.burst)).div_ceil(WHOLE - budget.share);
        let favoured = sending.bytes(Bytes(all - normal));
        Some(plus(self.limit.longest_wait(self.mtu, sending)?, favoured))
    }

    /// Tokens left in bytes, rounded down, and what they cannot exceed.
    pub fn tokens(&self) -> Option<(Bytes, Bytes)> {
        let budget = self.budget.as_ref()?;
        Some((Bytes(budget.tokens / WHOLE), Bytes(budget.burst / WHOLE)))
    }

    /// What waits in the favoured and in the normal part.
    pub fn parts(&self) -> [Backlog; 2] {
        [self.favoured.backlog(), self.normal.backlog()]
    }

    /// Drops normal packets from the tail until a packet of `len` bytes fits.
    fn make_room(&mut self, len: u32, context: &mut QueueContext<'_>) {
        while !self.limit.admits(self.backlog(), len) {
            work::step();
            let Some((packet, mark)) = self.normal.pop_last() else {
                return;
            };
            self.flows.subtract(mark.flow, 1);
            if let Some(budget) = &mut self.budget {
                budget.withdraw(mark.host);
            }
            context.drops.push((packet, DropReason::PushedOut));
        }
    }
}

impl QueueDiscipline for FavourTail {
    #[inline(never)]
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        work::step();
        let len = packet.segment.len();
        let full = !self.limit.admits(self.backlog(), len);
        // The slides look at the limit first, so a full queue costs nothing more.
        if full && !self.push_out {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        let fingerprint = self.key.flow_fingerprint(context.flows.key(packet.flow));
        let held = self.flows.find(fingerprint);
        // Room that can be made for a favoured packet; what is normal already cannot take the place of what waits.
        let fits = !full || self.limit.admits(self.favoured.backlog(), len);
        let payer = match &self.budget {
            Some(budget) => budget.payer(self.key, &packet, context),
            None => None,
        };
        let mut favour = held.is_none() && fits;
        if favour && let Some(budget) = &self.budget {
            favour = budget.affords(payer, len);
            if !favour {
                context.report(QueueEventKind::Unfavoured, packet.flow);
            }
        }
        if full && !favour {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        // Before room is made: who is pushed out may be the last packet of the same host.
        let host = match &mut self.budget {
            Some(budget) => budget.arrive(payer, len, favour),
            None => NONE,
        };
        self.make_room(len, context);
        let flow = self.flows.add(held, fingerprint, 1);
        if !favour {
            self.normal.push(packet, Mark { flow, host });
            return;
        }
        let overtaken = self.normal.len() as u32;
        if overtaken > 0 {
            context.report(QueueEventKind::Favoured, packet.flow);
            context.events.push(QueueEvent {
                kind: QueueEventKind::Overtook,
                flow: packet.flow,
                count: overtaken,
            });
        }
        self.favoured.push(packet, Mark { flow, host });
    }

    fn on_sent(&mut self) {
        if self.in_service != NONE {
            self.flows.subtract(self.in_service, 1);
            self.in_service = NONE;
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, _now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        work::step();
        self.on_sent();
        let (packet, mark) = self.favoured.pop().or_else(|| self.normal.pop())?;
        if self.count_in_service {
            self.in_service = mark.flow;
        } else {
            self.flows.subtract(mark.flow, 1);
        }
        if let Some(budget) = &mut self.budget {
            budget.leave(packet.segment.len(), mark.host);
        }
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog {
            packets: (self.favoured.len() + self.normal.len()) as u32,
            bytes: Bytes(self.favoured.bytes() + self.normal.bytes()),
        }
    }

    fn state_bytes(&self) -> Option<usize> {
        let hosts = self.budget.as_ref().and_then(|budget| budget.hosts.as_ref());
        Some(self.flows.memory() + hosts.map_or(0, budget::Hosts::memory))
    }

    fn longest_wait(&self, sending: &SendingTime) -> Option<Duration> {
        self.wait_bound(sending)
    }

    fn check(values: &Values) -> Result<(), String> {
        if !values.flag("budget") {
            for (name, default) in [
                ("burst", Value::Auto),
                ("share", Value::Number(0.5)),
                ("host", Value::Choice("source")),
            ] {
                if values.value(name) != default {
                    return Err(alloc::format!("`{name}` belongs to `budget = true`"));
                }
            }
        }
        Ok(())
    }
}
