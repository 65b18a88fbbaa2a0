//! Urgent data: the pointer in both directions.
//!
//! Bytes written as urgent stay in the stream; while the point after them is ahead of a segment, the segment carries URG
//! and the distance. A receiver keeps the farthest point announced and informs its owner when it appears or moves; taking the
//! last urgent octet out of the stream (sockets without `SO_OOBINLINE`) is the owner's: the mark says where it is.
//!
//! **Source.** RFC 9293 3.8.5, RFC 6093 (the pointer names the octet after the urgent data), RFC 9293 MUST-30 to MUST-33,
//! MUST-62, MUST-66; `UrgentPointer::Last` is RFC 1122's reading (Linux `tcp_stdurg`).
//! **Deviations.** As in Linux a point farther away than 65,535 bytes is announced as 65,535 bytes ahead.

use crate::packet::{Flags, Segment};
use crate::tcp::config::{UrgentPointer, ZeroWindowProbe};
use crate::tcp::{Connection, Event, Shared, WriteFlags};
use crate::time::Instant;
use crate::units::Bytes;

/// Urgent mode's part of the cold state; offsets count from the SYN, 0: none.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Urgent {
    /// One past our last urgent octet (SND.UP).
    send: u64,
    /// One past the peer's last urgent octet (RCV.UP).
    receive: u64,
    /// How we write the pointer.
    last: bool,
    /// The probe of a shut window that is due has announced the point.
    announced: bool,
}

impl Urgent {
    /// The URG flag and pointer of a segment that begins at offset `seq`.
    pub(in crate::tcp) fn mark(&self, seq: u64, segment: &mut Segment) {
        if self.send <= seq {
            return;
        }
        segment.flags = segment.flags.with(Flags::URG);
        let ahead = self.send - seq - u64::from(self.last);
        segment.urgent = ahead.min(0xffff) as u16; // RFC 6093 2.1
    }
}

impl Shared {
    /// Whether urgent bytes wait for an acknowledgment beyond offset `una`: nothing that may be sent waits to be longer (Linux
    /// `tcp_nagle_test`).
    pub(in crate::tcp) fn is_urgent(&self, una: u64) -> bool {
        self.cold.as_ref().is_some_and(|cold| cold.urgent.send > una)
    }

    /// Whether a segment at offset `una` announces urgent bytes before an empty probe leaves: once for each probe (Linux `tcp_write_wakeup`).
    #[cold]
    pub(in crate::tcp) fn probe_announces(&mut self, una: u64) -> bool {
        let Some(cold) = &mut self.cold else { return false };
        let urgent = &mut cold.urgent;
        urgent.announced = !urgent.announced && (una + 1..=una + 0xffff).contains(&urgent.send);
        urgent.announced
    }
}

impl Connection {
    /// Writes urgent bytes; they leave without Nagle's delay, and the point after the last of them is announced.
    pub fn write_urgent(&mut self, now: Instant, wanted: Bytes) -> Bytes {
        let taken = self.write(now, wanted, WriteFlags::default());
        if taken == Bytes::ZERO {
            return taken;
        }
        let send = 1 + self.written;
        let last = self.shared.config.path.urgent_pointer == UrgentPointer::Last;
        let urgent = &mut self.shared.cold_mut().urgent;
        urgent.send = send;
        urgent.last = last;
        if let Some(sender) = &self.sender
            && self.shared.peer.edge() <= sender.nxt
            && self.shared.config.zero_window_probe != ZeroWindowProbe::Empty
        {
            self.receive.acking.now = true; // a closed window does not stop the announcement; in Linux a probe makes it
        }
        taken
    }

    /// RFC 9293 3.10.7.4, sixth: the URG bit of an acceptable segment at offset `seq`, also with a closed window
    /// (MUST-66).
    #[cold]
    pub(in crate::tcp) fn on_urgent(&mut self, segment: &Segment, seq: i64) {
        let pointer = i64::from(segment.urgent);
        let last = self.shared.config.path.urgent_pointer == UrgentPointer::Last;
        let point = seq + pointer + i64::from(last);
        let read = self.receive.read_offset() as i64;
        if (pointer == 0 && !last) || point <= read {
            return; // nothing ahead of what was read
        }
        let urgent = &mut self.shared.cold_mut().urgent;
        if point as u64 > urgent.receive {
            urgent.receive = point as u64;
            self.shared.raise(Event::Urgent); // MUST-32
        }
    }

    /// Stream offset of the peer's last urgent octet, while it is not read (RFC 9293 MUST-33).
    pub fn urgent_mark(&self) -> Option<u64> {
        let point = self.shared.cold.as_ref().map_or(0, |cold| cold.urgent.receive);
        (point > self.receive.read_offset()).then(|| point.max(2) - 2)
    }
}
