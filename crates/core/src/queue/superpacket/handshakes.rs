//! Round-trip times of the flows through a queue, from their packets in one direction.
//!
//! Between a SYN and the flow's next packet without SYN lies one round trip: the SYN goes on to the receiver, its answer to the sender, and
//! what the sender sends then comes back to the queue. Only the last SYN of a flow counts, so a lost one lengthens nothing.
//!
//! **Source.** Schinazi, UCB/EECS-2014-80 (2014), section 3.3: an epoch of "twice the largest RTT observed for flows on the router"; how it is observed
//! is not said. The estimate is that of Jiang and Dovrolis, "Passive estimation of TCP round-trip times", CCR 32(3) (2002), 2.1.
//! **Deviations.** docs/design/super-packets.md#rtt-epoch (ours): flows that began before the router, and round trips that grow later, are not
//! seen; a lost answer, a sender that waits, and behind a server its own thinking time lengthen the estimate.

use super::table::Table;
use crate::packet::Flags;
use crate::time::{Duration, Instant};

/// SYNs that wait for the next packet of their flow, in two generations.
#[derive(Clone, Debug)]
pub(super) struct Handshakes {
    waiting: [Table; 2],
    current: usize,
    /// Start of the current generation.
    start: Instant,
    /// Length of a generation: a SYN is remembered for at least as long.
    span: Duration,
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

    /// A packet of the flow with this fingerprint comes: the round-trip time, rounded up, if it answers a SYN.
    pub(super) fn on_packet(&mut self, now: Instant, flow: u64, flags: Flags) -> Option<Duration> {
        self.turn(now);
        let mut sent = None;
        for table in &mut self.waiting {
            if let Some(place) = table.find(flow) {
                sent = Some(table.value(place));
                table.remove(place);
            }
        }
        if flags.contains(Flags::SYN) {
            self.waiting[self.current].insert(flow, ticks(now));
            return None;
        }
        let gone = ticks(now).wrapping_sub(sent?);
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
    use crate::packet::Flags;
    use crate::time::{Duration, Instant};

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Whole milliseconds: the unit of time rounds up by less than 2.1 us.
    fn millis(rtt: Option<Duration>) -> Option<u64> {
        rtt.map(|rtt| rtt.as_nanos() / 1_000_000)
    }

    #[test]
    fn a_round_trip_is_from_the_last_syn_to_the_next_packet() {
        let mut handshakes = Handshakes::new(Duration::from_millis(200));
        let mut packet = |ms, flow, flags| millis(handshakes.on_packet(at(ms), flow, flags));
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
        let mut packet = |ms, flow, flags| millis(handshakes.on_packet(at(ms), flow, flags));
        assert_eq!(packet(190, 1, Flags::SYN), None);
        assert_eq!(packet(399, 1, Flags::ACK), Some(209), "in the old generation");
        assert_eq!(packet(410, 1, Flags::SYN), None);
        assert_eq!(packet(801, 1, Flags::ACK), None, "two spans later");
        assert_eq!(packet(810, 2, Flags::SYN), None);
        assert_eq!(packet(5_000, 2, Flags::ACK), None, "many spans at once");
    }
}
