//! Super-packets: a queue that admits or refuses a whole group of packets on its first one and keeps room for the rest.
//!
//! A regular or first packet is admitted if the free room, less a share `weight` of the room promised to others, is at least what
//! `need` asks for. Admission of a first promises room for the rest of its super-packet; each later packet redeems one and is
//! admitted without a test; `last` gives the remainder back. Promises end with the epoch after the one they were made in, so
//! each lives between one and two epochs, without timers.
//!
//! **Source.** Schinazi, "Improving TCP latency with super-packets", UCB/EECS-2014-80 (2014), Algorithm 1 and sections 3.3, 4
//! and 7; docs/design/super-packets.md#test.
//!
//! **Deviations.** Algorithm 1 as printed does not work, so these are ours (docs/design/super-packets.md#defects): what is left is written back; `last`
//! releases exactly what the entry holds, once; expiry returns the remainder to the counter; a first that finds its own
//! identifier unfinished releases the old remainder and is tested anew; length 1, and a first with `last`, are regular packets;
//! a super-packet longer than `max_length` is treated as regular packets. A later packet without an entry is an orphan: dropped
//! (the report) or treated as regular. Arithmetic is in whole thousandths of a packet. The key is the flow and the identifier,
//! the report's is the pair of addresses. The epoch is a parameter, by default 200 ms, or follows the super-packets themselves
//! (until one is completed it is the longest), or the round-trip times of the handshakes that pass (the report's rule; how a router knows
//! them, docs/design/super-packets.md#rtt-epoch, is ours). With a limit in bytes, room counts in packets of the link's MTU, but by the packet's own
//! length where only its own place is asked for. The table
//! holds as many entries as promises can be open (docs/design/super-packets.md#i2); with `weight` below 0.07 or `red = "queue"`, where that is
//! no bound, 16 for each packet of the limit and 256 more, and a first that finds it full is refused.
//!
//! `need = "longest"` (ours) asks every packet for as much room as the longest super-packet of the last one to two seconds needs: refusal is
//! equal for all lengths, no promise is broken at `weight = 1`, and without super-packets it is drop-tail (docs/design/super-packets.md#longest).
//!
//! `state = "bloom"` is the report's idea of section 4: a Bloom filter and a counter per host. It cannot notice reuse of an
//! identifier, `last` gives back one packet, and `expired` counts hosts. `red` is the report's idea of section 7: RED decides on
//! regular and first packets, from the average queue without reservations, or from the average of queue and weighted promises
//! after the test above; with promises counted the queue is idle from when the last packet has left and the last promise has ended. RED drops, it does
//! not mark unless `ecn` is set.

use super::fifo::Fifo;
use super::hash::HashKey;
use super::red::{EarlyDrop, EarlyDropConfig};
use super::{
    Backlog, DropPoint, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, QueueEvent,
    QueueEventKind, work,
};
use crate::flow::FlowId;
use crate::packet::{Ecn, Kind, Packet};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::superpacket::{Layout, Role};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use bloom::Bloom;
use epoch::{Epoch, Follows};
use handshakes::Handshakes;
use longest::Longest;
use promises::{Keys, Promises, Redeemed};

mod bloom;
mod epoch;
mod handshakes;
mod longest;
mod promises;
mod table;
#[cfg(test)]
mod tests;

/// A queue that honours super-packets.
#[derive(Clone, Debug)]
pub struct SuperPacket {
    limit: Limit,
    /// Bytes of a packet when the limit is in bytes.
    mtu: u64,
    max_length: u8,
    need: Need,
    longest: Longest,
    /// alpha, in thousandths.
    weight: i64,
    layout: Layout,
    orphans_are_regular: bool,
    ports_in_key: bool,
    filtered: bool,
    hash: HashKey,
    epoch: Epoch,
    /// Round-trip times, if the epoch follows them.
    handshakes: Option<Box<Handshakes>>,
    promises: Promises,
    red: Option<Red>,
    packets: Fifo,
    latest: Instant,
}

/// How much room a packet that announces a length must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// M, whatever the length: equal refusal for all.
    Max,
    /// The length and this headroom.
    Length(u8),
    /// The longest announced lately, whatever the length.
    Longest,
}

/// RED in front of the test.
#[derive(Clone, Debug)]
struct Red {
    law: EarlyDrop,
    /// Whether promises count, in the average and by the test.
    promised: bool,
    /// Whether ECN-capable packets are marked instead of dropped.
    ecn: bool,
    /// When the last packet left, if promises outlasted it: with these counted the queue is not empty yet.
    left: Option<Instant>,
}

/// 1 in the unit of `weight`.
const WHOLE: i64 = 1000;
/// Largest limit in packets; bounds the tables at 256 MB.
const LARGEST: u32 = 1 << 22;
/// Entries where the limit bounds nothing.
const UNBOUNDED: u32 = 1 << 16;

impl SuperPacket {
    /// `limit`, `max_length`, `need`, `headroom`, `weight`, `orphan`, `key`, epochs, state, RED, layout.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(100),
            "What may wait, not counting the packet being sent (the report's router: 100 packets)"),
        parameter!("max_length": Integer(1, 255) = 10,
            "Longest super-packet admitted as one, in packets; longer ones are regular packets. The report gives no value; 10 is the initial window"),
        parameter!("need": Choice(&["max_length", "length", "longest"]) = "max_length",
            "Room a regular or first packet must find: `max_length` packets whatever it announces (the report), its own length and `headroom`, or the longest that was announced in the last one to two seconds, whatever it announces (ours)"),
        parameter!("headroom": Integer(0, 255) = 0,
            "Packets to be free beyond the length with `need = \"length\"` (ours)"),
        parameter!("weight": Number(0.0, 1.0) = 0.7,
            "Share of promised room that counts as taken (the report: 0.7, by experiment); 1 keeps every promise when `need` is at least the length"),
        parameter!("orphan": Choice(&["drop", "regular"]) = "drop",
            "What happens to a later packet of a super-packet that was not admitted, or is not known any more: dropped (the report) or treated as a regular packet"),
        parameter!("key": Choice(&["flow", "hosts"]) = "flow",
            "What an identifier must be unique within: the flow, or the pair of addresses (the report)"),
        parameter!("epoch": Duration(Duration::from_micros(1), Duration::from_secs(8)) = Duration::from_millis(200),
            "Promises live between one and two of these (the report: twice the largest RTT, see `rtt_epoch`)"),
        parameter!("adaptive_epoch": Flag = false,
            "Make the epoch four times the longest super-packet of the last one to two seconds, at least 1 ms and at most `epoch` (ours)"),
        parameter!("rtt_epoch": Flag = false,
            "Make the epoch twice the largest RTT of the last one to two minutes (the report), seen between the SYN of a flow and what it sends after the answer (ours), at least 1 ms and at most `epoch`"),
        parameter!("state": Choice(&["table", "bloom"]) = "table",
            "What is remembered: each super-packet, or a Bloom filter of them and a counter for each host (the report, as an idea)"),
        parameter!("filter_bits": Integer(1, 64) = 10,
            "Bits of the Bloom filter for each super-packet of `max_length` that fits into an epoch at the link's rate"),
        parameter!("filter_hashes": Integer(1, 32) = 7,
            "Probes of the Bloom filter (0.7 times `filter_bits` is best)"),
        parameter!("red": Choice(&["off", "queue", "promised"]) = "off",
            "Let RED decide on regular and first packets: from the queue alone without reservations (the report), or from queue and weighted promises besides the usual test (ours)"),
        parameter!("min_threshold": Number(0.0, 1e9) = auto,
            "RED: average in packets below which nothing is dropped; by default as queue `red`"),
        parameter!("max_threshold": Number(0.0, 1e9) = auto,
            "RED: average in packets at which `max_probability` is reached; by default 3 times `min_threshold`"),
        parameter!("max_probability": Number(0.0, 1.0) = 0.1,
            "RED: drop probability at `max_threshold` (as queue `red`)"),
        parameter!("red_weight": Number(0.0, 1.0) = auto,
            "RED: weight of a new sample in the average; by default as queue `red`"),
        parameter!("ecn": Flag = false,
            "RED: mark ECN-capable packets instead of dropping them, up to `max_threshold` (RFC 3168 7; the report: off). Layout A has no room for ECN"),
        Layout::PARAMETER,
        Layout::CODEPOINT,
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> SuperPacket {
        let mtu = u64::from(link.mtu.max(1));
        let limit = values.limit("limit");
        let max_length = values.integer("max_length").unwrap_or(10) as u8;
        let need = need(values);
        let weight = thousandths(values);
        let longest = values.duration("epoch").unwrap_or(Duration::from_millis(200));
        let follows = match (values.flag("rtt_epoch"), values.flag("adaptive_epoch")) {
            (true, _) => Follows::RoundTrips,
            (false, true) => Follows::SuperPackets,
            (false, false) => Follows::Nothing,
        };
        let red = match values.choice("red") {
            "queue" => Some(false),
            "promised" => Some(true),
            _ => None,
        }
        .map(|promised| Red {
            law: EarlyDrop::new(
                &EarlyDropConfig {
                    min_threshold: values.number("min_threshold"),
                    max_threshold: values.number("max_threshold"),
                    max_probability: values.number("max_probability").unwrap_or(0.1),
                    weight: values.number("red_weight"),
                    gentle: true,
                    byte_mode: false,
                    mean_packet: mtu as f64,
                },
                link,
            ),
            promised,
            ecn: values.flag("ecn"),
            left: None,
        });
        let capacity = match slots(limit, mtu) {
            Some(size) => {
                let unbounded = size.saturating_mul(16).saturating_add(256);
                match (&red, most_reserved(size, max_length, need, weight)) {
                    (Some(Red { promised: false, .. }), _) | (_, None) => unbounded,
                    (_, Some(most)) => most.min(unbounded),
                }
            }
            None => UNBOUNDED,
        };
        let filtered = values.choice("state") == "bloom";
        let promises = if filtered {
            // Super-packets of the greatest length that fit into an epoch (docs/design/super-packets.md#bloom).
            let packets = u128::from(link.rate.bps()) * u128::from(longest.as_nanos())
                / (8 * u128::from(mtu) * 1_000_000_000);
            let expected = (packets / u128::from(max_length.max(1))).clamp(1, 1 << 24) as u64;
            let bloom = Bloom::new(
                expected + 1,
                values.integer("filter_bits").unwrap_or(10) as u32,
                values.integer("filter_hashes").unwrap_or(7) as u32,
            );
            Promises::filter(&bloom, capacity)
        } else {
            Promises::exact(capacity)
        };
        SuperPacket {
            limit,
            mtu,
            max_length,
            need,
            longest: Longest::new(),
            weight,
            layout: Layout::from_values(values),
            orphans_are_regular: values.choice("orphan") == "regular",
            ports_in_key: values.choice("key") != "hosts",
            filtered,
            hash: HashKey::new(link.seed),
            epoch: Epoch::new(longest, follows),
            handshakes: (follows == Follows::RoundTrips).then(|| Box::new(Handshakes::new(longest))),
            promises,
            red,
            packets: Fifo::new(),
            latest: Instant::ZERO,
        }
    }

    /// Packets promised and not yet seen: R.
    pub fn reserved(&self) -> u32 {
        self.promises.reserved()
    }

    /// Length of the epoch now.
    pub fn epoch(&self) -> Duration {
        self.epoch.length()
    }

    /// Packets that still fit.
    #[inline]
    fn free(&self) -> i64 {
        match self.limit {
            Limit::Packets(limit) => i64::from(limit) - self.packets.len() as i64,
            Limit::Bytes(limit) => (limit.0.saturating_sub(self.packets.bytes()) / self.mtu) as i64,
            Limit::Unlimited => i64::MAX / (2 * WHOLE),
        }
    }

    /// Room that a packet announcing `length` must find.
    #[inline]
    fn needed(&mut self, length: u8) -> i64 {
        match self.need {
            Need::Max => i64::from(self.max_length),
            Need::Length(headroom) => i64::from(length) + i64::from(headroom),
            Need::Longest => i64::from(self.longest.length(self.latest)),
        }
    }

    /// The admission test of regular and first packets; whether an admitted one is to be marked.
    #[inline]
    fn admits(&mut self, length: u8, packet: &Packet) -> Result<bool, DropReason> {
        let (free, needed) = (self.free(), self.needed(length));
        let (reserving, early, marks) = match &mut self.red {
            None => (true, false, false),
            // Every packet reaches RED, so that its spacing between drops is the paper's.
            Some(red) => {
                let early = red.law.decide(0);
                // RFC 3168 7: above the upper threshold packets are dropped, not marked.
                let marks = red.ecn && packet.segment.ecn_capable() && !red.law.is_above();
                (red.promised, early, marks)
            }
        };
        // The test with alpha in thousandths (docs/design/super-packets.md#defect-l).
        let asked = if reserving {
            WHOLE * needed + self.weight * i64::from(self.promises.reserved())
        } else {
            WHOLE
        };
        // One place is the packet's own: it takes its length, not a whole MTU.
        let fits = if asked > WHOLE {
            WHOLE * free >= asked
        } else {
            self.limit.admits(self.backlog(), packet.segment.len())
        };
        match (fits, early) {
            (false, _) => Err(DropReason::Full),
            (true, true) if !marks => Err(DropReason::Early),
            (true, early) => Ok(early),
        }
    }

    fn keys(&self, flow: FlowId, id: u16, context: &QueueContext<'_>) -> Keys {
        let key = context.flows.key(flow);
        Keys {
            super_packet: self.hash.super_packet(key, id, self.ports_in_key),
            host: if self.filtered { self.hash.host(key) } else { 0 },
        }
    }

    /// Takes the round-trip time of a flow whose handshake passes.
    #[cold]
    fn observe(&mut self, now: Instant, packet: &Packet, context: &QueueContext<'_>) {
        let Some(handshakes) = &mut self.handshakes else {
            return;
        };
        if packet.segment.kind() != Kind::Tcp {
            return;
        }
        let flow = self.hash.flow_fingerprint(context.flows.key(packet.flow));
        if let Some(rtt) = handshakes.on_packet(now, flow, &packet.segment) {
            self.epoch.round_trip(now, rtt);
        }
    }

    /// When the last of the promises ends that are not redeemed: with the next epoch, those of the current one an epoch later.
    fn ends(&self) -> Instant {
        let epochs = if self.promises.reserved_lately() > 0 { 2 } else { 1 };
        self.epoch.begins_after(epochs)
    }

    fn rotate(&mut self, now: Instant, flow: FlowId, context: &mut QueueContext<'_>) {
        let turn = self.epoch.turn(now);
        let count = self.promises.turn(turn);
        if count > 0 {
            context.events.push(QueueEvent {
                kind: QueueEventKind::Expired,
                flow,
                count,
            });
        }
    }

    /// What becomes of `packet`, and whether it is to be marked; state changes as if it were queued if it is admitted.
    fn decide(
        &mut self,
        now: Instant,
        packet: &Packet,
        context: &mut QueueContext<'_>,
    ) -> Result<bool, DropReason> {
        let physical = self.limit.admits(self.backlog(), packet.segment.len());
        let full = |marked| {
            if physical {
                Ok(marked)
            } else {
                Err(DropReason::Full)
            }
        };
        let mark = self.layout.decode(&packet.segment);
        // docs/design/super-packets.md#defect-i: a first that is the last promises nothing.
        let member = match mark.role {
            Role::Regular => false,
            Role::First => !mark.last,
            Role::Follower => true,
        };
        if !member || mark.length > self.max_length {
            if member && mark.role == Role::First {
                context.report(QueueEventKind::TooLong, packet.flow);
            }
            return self.admits(1, packet).and_then(full);
        }
        let keys = self.keys(packet.flow, mark.id, context);
        if mark.role == Role::First {
            // docs/design/super-packets.md#defect-h: the identifier of an unfinished super-packet comes again.
            if self.promises.release(keys) {
                context.report(QueueEventKind::IdReuse, packet.flow);
            }
            if self.need == Need::Longest {
                self.longest.announced(now, mark.length);
            }
            let mut verdict = self.admits(mark.length, packet).and_then(full);
            if verdict.is_ok() && !self.promises.admit(now, keys, u32::from(mark.length) - 1) {
                verdict = Err(DropReason::Full);
            }
            if verdict.is_err() {
                context.report(QueueEventKind::Refused, packet.flow);
            }
            return verdict;
        }
        match self.promises.redeem(now, keys, mark.last) {
            Redeemed::Nothing => {
                context.report(QueueEventKind::Orphan, packet.flow);
                if self.orphans_are_regular {
                    self.admits(1, packet).and_then(full)
                } else {
                    Err(DropReason::Orphan)
                }
            }
            Redeemed::One(since_first) => {
                if let Some(gap) = since_first {
                    self.epoch.follower(now, gap);
                }
                if !physical {
                    // docs/design/super-packets.md#defect-k: possible since promises count by less than one.
                    context.report(QueueEventKind::BrokenPromise, packet.flow);
                }
                full(false)
            }
        }
    }
}

impl QueueDiscipline for SuperPacket {
    #[inline]
    fn enqueue(&mut self, now: Instant, mut packet: Packet, context: &mut QueueContext<'_>) {
        work::step();
        self.latest = self.latest.max(now);
        let now = self.latest;
        if self.handshakes.is_some() {
            self.observe(now, &packet, context);
        }
        let ends = self
            .red
            .as_ref()
            .and_then(|red| red.left)
            .map(|left| left.max(self.ends()));
        self.rotate(now, packet.flow, context);
        if let Some(red) = &mut self.red {
            if let Some(ends) = ends
                && self.promises.reserved() == 0
            {
                red.law.emptied(ends);
                red.left = None;
            }
            let promised = if red.promised {
                self.weight as f64 / WHOLE as f64 * f64::from(self.promises.reserved())
            } else {
                0.0
            };
            red.law.estimate(now, self.packets.len() as f64 + promised);
        }
        match self.decide(now, &packet, context) {
            Ok(marked) => {
                if marked {
                    packet.segment.set_ecn(Ecn::Ce);
                    context.report(QueueEventKind::Marked, packet.flow);
                }
                if let Some(red) = &mut self.red {
                    red.law.filled();
                    red.left = None;
                }
                self.packets.push(packet, ());
            }
            Err(reason) => context.drops.push((packet, reason)),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        self.latest = self.latest.max(now);
        let (packet, ()) = self.packets.pop()?;
        if let Some(red) = &mut self.red
            && self.packets.is_empty()
        {
            if red.promised && self.promises.reserved() > 0 {
                red.left = Some(now);
            } else {
                red.law.emptied(now);
            }
        }
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn drop_point(&self) -> DropPoint {
        DropPoint::Arrival
    }

    fn state_bytes(&self) -> Option<usize> {
        let handshakes = self.handshakes.as_ref().map_or(0, |some| some.memory());
        Some(size_of::<SuperPacket>() + self.promises.memory() + handshakes)
    }

    fn check(values: &Values) -> Result<(), String> {
        let limit = values.limit("limit");
        let longest = values.integer("max_length").unwrap_or(10);
        let size = match limit {
            Limit::Packets(packets) => Some(packets),
            // How many packets these are depends on the link: whoever knows it asks again.
            Limit::Bytes(_) => None,
            Limit::Unlimited => {
                return Err(String::from(
                    "super-packets reserve room, so `limit` is a number of packets or bytes",
                ));
            }
        };
        if size.is_some_and(|size| size > LARGEST) {
            return Err(format!("`limit` is at most {LARGEST} packets with super-packets"));
        }
        let room = match need(values) {
            Need::Max | Need::Longest => longest,
            Need::Length(headroom) => longest + u64::from(headroom),
        };
        if let Some(size) = size
            && room > u64::from(size)
        {
            let what = if room == longest {
                "max_length"
            } else {
                "max_length + headroom"
            };
            return Err(format!(
                "`{what}` is {room}, but `limit` holds {size} packets: such a super-packet would never be admitted"
            ));
        }
        let layout = Layout::from_values(values);
        if longest > u64::from(layout.max_length()) {
            return Err(format!(
                "`max_length` is {longest}, but layout {} can announce at most {} packets",
                layout.name(),
                layout.max_length()
            ));
        }
        if values.flag("ecn") && layout == Layout::A {
            return Err(String::from(
                "`ecn` needs layout B or C: layout A keeps the length where ECN is",
            ));
        }
        if values.flag("rtt_epoch") && values.flag("adaptive_epoch") {
            return Err(String::from(
                "`rtt_epoch` and `adaptive_epoch` exclude each other: an epoch follows one or the other",
            ));
        }
        if values.flag("adaptive_epoch") && values.choice("state") == "bloom" {
            return Err(String::from(
                "`adaptive_epoch` needs `state = \"table\"`: the filter does not know when a super-packet is complete",
            ));
        }
        Ok(())
    }
}

fn need(values: &Values) -> Need {
    match values.choice("need") {
        "length" => Need::Length(values.integer("headroom").unwrap_or(0) as u8),
        "longest" => Need::Longest,
        _ => Need::Max,
    }
}

/// alpha in thousandths.
fn thousandths(values: &Values) -> i64 {
    libm::round(values.number("weight").unwrap_or(0.7) * WHOLE as f64) as i64
}

/// Packets that `limit` holds; `None` if it is no bound.
fn slots(limit: Limit, mtu: u64) -> Option<u32> {
    match limit {
        Limit::Packets(packets) => Some(packets.min(LARGEST + 1)),
        Limit::Bytes(bytes) => Some((bytes.0 / mtu).min(u64::from(LARGEST) + 1) as u32),
        Limit::Unlimited => None,
    }
}

/// R_max (docs/design/super-packets.md#i2): no more packets can be promised at once, so no more entries exist. `None` if nothing bounds them.
fn most_reserved(size: u32, max_length: u8, need: Need, weight: i64) -> Option<u32> {
    if weight == 0 {
        return None;
    }
    (2..=max_length.max(2))
        .map(|length| {
            let needed = match need {
                Need::Max => i64::from(max_length),
                Need::Length(headroom) => i64::from(length) + i64::from(headroom),
                // The first itself was announced.
                Need::Longest => i64::from(length),
            };
            // The test passed with R at most this, and then length - 1 more were promised.
            let before = WHOLE * (i64::from(size) - needed).max(0) / weight;
            (before + i64::from(length) - 1).min(i64::from(u32::MAX)) as u32
        })
        .max()
}
