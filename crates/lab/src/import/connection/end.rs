//! What follows from what is known of one end.

use super::{End, Prompt};
use std::collections::VecDeque;

impl End {
    /// Bytes of its stream that were seen, without those in holes that are remembered.
    pub(in crate::import) fn seen_bytes(&self) -> u64 {
        let holes: u64 = self.holes.iter().map(|hole| hole.to - hole.from).sum();
        self.next.saturating_sub(holes)
    }

    pub(super) fn handshake(&mut self, now_ns: u64, half_ns: u64) {
        self.handshake_half_ns.get_or_insert(half_ns);
        self.prompt.get_or_insert(Prompt {
            way_ns: half_ns,
            gap_ns: 0,
            at_ns: now_ns,
        });
        self.half_ns = Some(self.half_ns.map_or(half_ns, |least| least.min(half_ns)));
    }

    /// What the options of both ends allow; `None`: neither was seen. RFC 9293 3.7.1: its peer's option bounds what an end may send, and its own interface
    /// carries no more than its own option.
    pub(super) fn agreed(&self) -> Option<u32> {
        let both = [self.peer_mss, self.mss];
        both.into_iter().flatten().min().map(|mss| self.payload(mss))
    }

    /// Its maximum segment size, where an option shows it.
    pub(in crate::import) fn segment_size(&self) -> Option<u16> {
        let options = if self.stamps { 12 } else { 0 };
        self.agreed()?;
        u16::try_from(self.full() + options).ok()
    }

    /// Payload of segments of this size: timestamps are in it.
    fn payload(&self, mss: u16) -> u32 {
        let options = if self.stamps { 12 } else { 0 };
        u32::from(mss).saturating_sub(options).max(1)
    }

    /// Payload of a full segment: what the path carries as far as segments show it, or what was agreed, or the largest that was seen.
    pub(super) fn full(&self) -> u32 {
        if let Some(agreed) = self.agreed() {
            let most = self.peer_mss.or(self.mss).map_or(agreed, |mss| self.payload(mss));
            return self.cut.agreed_on().filter(|cut| *cut <= most).unwrap_or(agreed);
        }
        // More than fits into a frame, and no round number of it: segmentation offload.
        if self.largest > u32::from(ETHERNET_MSS) && self.largest < JUMBO_MSS || self.largest > JUMBO_MSS + 52
        {
            self.payload(ETHERNET_MSS)
        } else {
            self.largest.max(1)
        }
    }
}

/// How far an end may send: the right edges of the windows that its peer announced.
///
/// A segment that the window cuts ends at such an edge, and is as long as the window leaves room for (Linux `tcp_mss_split_point`). Edges are known where they
/// pass, which may be long before the data that goes up to them. Each is with the time at which it passed (ns).
#[derive(Clone, Debug, Default)]
pub(super) struct Edges(VecDeque<(u64, u64)>);

impl Edges {
    /// The peer takes all up to `edge`; `next`: stream offset behind the last byte that was seen.
    pub(super) fn announce(&mut self, now_ns: u64, edge: u64, next: u64) {
        let last = self.0.back().map_or(next, |last| last.0);
        if edge > last && self.0.len() < MOST_EDGES {
            self.0.push_back((edge, now_ns));
        }
    }

    /// Data up to `stop` passed, `half_ns` being the way from here to its sender and back. Whether a window ended there: a later edge that passed longer
    /// ago than that was known to the sender.
    pub(super) fn reach(&mut self, stop: u64, now_ns: u64, half_ns: u64) -> bool {
        while self.0.front().is_some_and(|(edge, _)| *edge < stop) {
            self.0.pop_front();
        }
        let ends = self.0.pop_front_if(|(edge, _)| *edge == stop).is_some();
        let next = self.0.front();
        ends && next.is_none_or(|(_, announced_ns)| announced_ns.saturating_add(half_ns) > now_ns)
    }

    /// When the first edge passed that leaves room for a segment of `full` bytes behind `next`: a sender waits for less only by a timer (RFC 9293 3.8.6.2.1).
    pub(super) fn opened(&self, next: u64, full: u32) -> Option<u64> {
        let mut edges = self.0.iter();
        let room = |(edge, _): &&(u64, u64)| edge.saturating_sub(next) >= u64::from(full);
        edges.find(room).map(|(_, announced_ns)| *announced_ns)
    }
}

/// Length of the segments of an end that were cut off from more data: that which most of them have.
///
/// The last segment that is queued has PSH (RFC 9293 MUST-61), so that one without was not all that there was to send. Where neither end ever sets it nothing is
/// known (a gateway may clear it).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CutLength {
    /// An end of the connection has set PSH.
    pub(super) pushes: bool,
    /// A vote for each such segment, against each of another length.
    length: u32,
    votes: u32,
}

impl CutLength {
    /// Takes a segment with data. Whether its sender had more to send.
    pub(super) fn take(&mut self, length: u32, pushed: bool) -> bool {
        if pushed || !self.pushes {
            return false;
        }
        if self.length == length {
            self.votes = (self.votes + 1).min(MOST_VOTES);
        } else if self.votes > 0 {
            self.votes -= 1;
        } else {
            (self.length, self.votes) = (length, 1);
        }
        true
    }

    /// The length, where enough segments show it.
    fn agreed_on(&self) -> Option<u32> {
        (self.votes >= LEAST_VOTES).then_some(self.length)
    }
}

/// Edges that are remembered of one end.
const MOST_EDGES: usize = 256;

/// Segments of one length that show what the path carries, and how many of another length show that it is another one now.
const LEAST_VOTES: u32 = 4;
const MOST_VOTES: u32 = 16;
/// Payload of an Ethernet frame, and of a jumbo frame with timestamps over IPv6.
const ETHERNET_MSS: u16 = 1460;
const JUMBO_MSS: u32 = 8908;

#[cfg(test)]
mod tests {
    use super::Edges;

    #[test]
    fn a_window_whose_next_edge_the_sender_knew_holds_nothing_back() {
        let mut edges = Edges::default();
        edges.announce(0, 4_000, 0);
        edges.announce(1_000, 8_000, 0);
        edges.announce(9_000, 12_000, 0);
        // The next edge passed 9000 ns before: longer than the way to the sender and back, and not as long.
        assert!(!edges.clone().reach(4_000, 10_000, 5_000));
        assert!(edges.clone().reach(4_000, 10_000, 9_001));
        assert!(!edges.clone().reach(5_000, 10_000, 9_001), "no edge");
        // The one behind the second is on its way to the sender, and there is none behind the third.
        assert!(edges.reach(8_000, 10_000, 5_000));
        assert!(edges.reach(12_000, 90_000, 5_000));
    }

    #[test]
    fn a_window_is_open_when_a_segment_has_room() {
        let mut edges = Edges::default();
        edges.announce(0, 4_000, 0);
        edges.announce(1_000, 5_000, 0);
        edges.announce(2_000, 5_460, 0);
        assert!(edges.reach(4_000, 500, 5_000));
        assert_eq!(edges.opened(4_000, 1_460), Some(2_000));
        assert_eq!(edges.opened(4_000, 1_000), Some(1_000));
        assert_eq!(edges.opened(4_000, 1_461), None);
    }
}
