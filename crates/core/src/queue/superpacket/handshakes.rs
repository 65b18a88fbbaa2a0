//! Round-trip times of the flows through a queue, from their packets in one direction.
//!
//! Between a SYN and the first later packet that its answer made possible lies one round trip: the SYN goes on to the receiver, its answer to
//! the sender, and what the sender sends then comes to the queue. Behind a client that is the next packet with ACK. A server that accepts Fast
//! Open sends data right behind its SYN-ACK (RFC 7413 3), so behind a server it is the first packet that has heard from the client since: it acknowledges
//! more than the SYN-ACK did, or echoes a later timestamp. Only the last SYN of a flow counts, so a lost one lengthens nothing.
//!
//! **Source.** Schinazi, UCB/EECS-2014-80 (2014), section 3.3: an epoch of "twice the largest RTT observed for flows on the router"; how it is observed
//! is not said. The estimate is that of Jiang and Dovrolis, "Passive estimation of TCP round-trip times", CCR 32(3) (2002), 2.1; what answers a SYN-ACK is ours.
//! **Deviations.** docs/design/super-packets.md#rtt-epoch (ours): flows that began before the router, and round trips that grow later, are not
//! seen, nor are servers that speak first without timestamps; a lost answer, a sender that waits, and behind a server its own thinking time and the client's
//! lengthen the estimate.

use super::table::Table;
use crate::packet::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::time::{Duration, Instant};

/// SYNs whose answer is awaited, in two generations.
#[derive(Clone, Debug)]
pub(super) struct Handshakes {
    waiting: [Table<Syn>; 2],
    current: usize,
    /// Start of the current generation.
    start: Instant,
    /// Length of a generation: a SYN is remembered for at least as long.
    span: Duration,
}

/// A SYN, or SYN-ACK.
#[derive(Clone, Copy, Debug, Default)]
struct Syn {
    /// When it came, in units of `TIME_SHIFT`.
    came: u32,
    flags: Flags,
    /// Acknowledgment number of a SYN-ACK.
    ack: SeqNumber,
    /// Timestamp echoed by a SYN-ACK.
    tsecr: u32,
}

impl Syn {
    /// Whether its sender must have had an answer to it before it sent `later`.
    fn is_answered(&self, later: &Segment) -> bool {
        if !later.flags.contains(Flags::ACK) {
            return false;
        }
        if !self.flags.contains(Flags::ACK) {
            return true;
        }
        let echoes = self.flags.contains(Flags::TIMESTAMPS) && later.flags.contains(Flags::TIMESTAMPS);
        later.ack.gt(self.ack) || echoes && later.tsecr.wrapping_sub(self.tsecr) as i32 > 0
    }
}

/// Flows remembered in a generation; further ones are not measured.
const FLOWS: u32 = 4096;
/// Times are kept in units of 2^10 ns, in 32 bits: they repeat after 73 minutes.
const TIME_SHIFT: u32 = 10;

impl Handshakes {
    pub(super) fn new(span: Duration) -> Handshakes {
        Handshakes {
            waiting: [Table::new(FLOWS), Table::new(FLOWS)],
            current: 0,
            start: Instant::ZERO,
            span,
        }
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Handshakes>() + self.waiting.iter().map(Table::memory).sum::<usize>()
    }

    /// A packet of the flow with this fingerprint comes: the round-trip time, rounded up, if it shows that the flow's SYN was answered.
    pub(super) fn on_packet(&mut self, now: Instant, flow: u64, segment: &Segment) -> Option<Duration> {
        self.turn(now);
        let is_syn = segment.flags.contains(Flags::SYN);
        let mut answered = None;
        for table in &mut self.waiting {
            let Some(place) = table.find(flow) else { continue };
            let syn = table.value(place);
            if is_syn || syn.is_answered(segment) {
                table.remove(place);
                answered = Some(syn);
            }
        }
        if is_syn {
            let syn = Syn {
                came: ticks(now),
                flags: segment.flags,
                ack: segment.ack,
                tsecr: segment.tsecr,
            };
            self.waiting[self.current].insert(flow, syn);
            return None;
        }
        let gone = ticks(now).wrapping_sub(answered?.came);
        Some(Duration::from_nanos((u64::from(gone) + 1) << TIME_SHIFT))
    }

    fn turn(&mut self, now: Instant) {
        let gone = now.since(self.start).as_nanos() / self.span.as_nanos();
        if gone == 0 {
            return;
        }
        self.start += Duration::from_nanos(gone * self.span.as_nanos());
        self.current ^= 1;
        self.waiting[self.current].clear();
        if gone > 1 {
            self.waiting[self.current ^ 1].clear();
        }
    }
}

const fn ticks(now: Instant) -> u32 {
    (now.as_nanos() >> TIME_SHIFT) as u32
}

#[cfg(test)]
mod tests {
    use super::Handshakes;
    use crate::packet::{Flags, Segment};
    use crate::seq::SeqNumber;
    use crate::time::{Duration, Instant};

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn with(flags: Flags) -> Segment {
        Segment {
            flags,
            ..Segment::default()
        }
    }

    /// Whole milliseconds: the unit of time rounds up by less than 2.1 us.
    fn millis(rtt: Option<Duration>) -> Option<u64> {
        rtt.map(|rtt| rtt.as_nanos() / 1_000_000)
    }

    #[test]
    fn a_round_trip_is_from_the_last_syn_to_the_next_packet() {
        let mut handshakes = Handshakes::new(Duration::from_millis(200));
        let mut packet = |ms, flow, flags| millis(handshakes.on_packet(at(ms), flow, &with(flags)));
        assert_eq!(packet(1, 7, Flags::SYN), None);
        assert_eq!(packet(3, 8, Flags::SYN), None);
        assert_eq!(packet(31, 7, Flags::ACK), Some(30));
        assert_eq!(packet(32, 7, Flags::ACK), None, "the handshake is over");
        // A lost SYN: the flow's second one counts.
        assert_eq!(packet(100, 8, Flags::SYN), None);
        assert_eq!(packet(110, 8, Flags::ACK), Some(10));
        assert_eq!(packet(111, 9, Flags::ACK), None, "its SYN was never seen");
    }

    #[test]
    fn a_syn_is_remembered_for_one_to_two_spans() {
        let mut handshakes = Handshakes::new(Duration::from_millis(200));
        let mut packet = |ms, flow, flags| millis(handshakes.on_packet(at(ms), flow, &with(flags)));
        assert_eq!(packet(190, 1, Flags::SYN), None);
        assert_eq!(packet(399, 1, Flags::ACK), Some(209), "in the old generation");
        assert_eq!(packet(410, 1, Flags::SYN), None);
        assert_eq!(packet(801, 1, Flags::ACK), None, "two spans later");
        assert_eq!(packet(810, 2, Flags::SYN), None);
        assert_eq!(packet(5_000, 2, Flags::ACK), None, "many spans at once");
    }

    /// The server's direction, RFC 7413 3: data goes out right behind the SYN-ACK.
    #[test]
    fn behind_a_server_only_what_has_heard_from_the_client_counts() {
        const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);
        const ECHO: Flags = Flags::ACK.with(Flags::TIMESTAMPS);
        let mut handshakes = Handshakes::new(Duration::from_millis(200));
        let mut packet = |ms, flow, flags, ack, tsecr| {
            let segment = Segment {
                ack: SeqNumber(ack),
                tsecr,
                ..with(flags)
            };
            millis(handshakes.on_packet(at(ms), flow, &segment))
        };
        // Without timestamps: more is acknowledged. Numbers wrap.
        assert_eq!(packet(1, 1, SYN_ACK, u32::MAX, 0), None);
        assert_eq!(packet(1, 1, Flags::ACK, u32::MAX, 9), None, "data at once");
        assert_eq!(packet(31, 1, Flags::ACK, u32::MAX, 9), None, "no proof");
        assert_eq!(packet(41, 1, Flags::ACK, 3, 0), Some(40));
        assert_eq!(packet(42, 1, Flags::ACK, 4, 0), None, "the handshake is over");
        // With timestamps: a later one is echoed.
        assert_eq!(packet(50, 2, SYN_ACK.with(Flags::TIMESTAMPS), 7, u32::MAX), None);
        assert_eq!(packet(50, 2, ECHO, 7, u32::MAX), None, "data at once");
        assert_eq!(packet(80, 2, ECHO, 7, 5), Some(30));
        // The last SYN-ACK counts.
        assert_eq!(packet(100, 3, SYN_ACK, 7, 0), None);
        assert_eq!(packet(120, 3, SYN_ACK, 7, 0), None);
        assert_eq!(packet(150, 3, Flags::ACK, 8, 0), Some(30));
    }

    /// The client's direction, RFC 9293 3.10.7.3: whoever has had no SYN acknowledges nothing.
    #[test]
    fn behind_a_client_the_next_packet_with_ack_counts() {
        let mut handshakes = Handshakes::new(Duration::from_millis(200));
        let mut packet = |ms, flags| millis(handshakes.on_packet(at(ms), 1, &with(flags)));
        assert_eq!(packet(1, Flags::SYN), None);
        assert_eq!(packet(2, Flags::RST), None, "sent without an answer");
        assert_eq!(packet(31, Flags::ACK), Some(30));
    }
}
