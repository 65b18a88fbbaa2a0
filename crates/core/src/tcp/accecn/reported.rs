//! The sender of data: how many packets and bytes the peer reports as marked, also when its three bits may have wrapped.
//!
//! With the option of a peer the count is the fewest packets that agree with the bits and with the bytes, so that it is never more than
//! what was marked. Without one, an acknowledgment of more than seven segments may hide a round of the bits: then the most is assumed
//! that is possible (RFC 9768 A.2.1), unless such acknowledgments are usual, as behind a link that thins them out.
//!
//! **Source.** RFC 9768 3.2.1, 3.2.2.2, 3.2.2.5.2, 3.2.3.1, 3.2.3.2.3 to 3.2.3.2.5, A.1, A.2.1, A.3; the average of A.2.1 as in Linux 6.19
//! (`pkts_acked_ewma`: weight 1/64, at most four segments).
//! **Deviations.** A byte counter that seems to have gone back is left as it is, where the RFC would read it as having gone once around.

use crate::packet::{AccEcnOption, Ecn, Segment};
use crate::tcp::accecn::received::{START, field_of};
use serde::{Deserialize, Serialize};

/// What the peer reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Reported {
    /// Payload bytes that came there as ECT(1), CE and ECT(0): s.e1b, s.ceb and s.e0b, without their starts.
    bytes: [u64; 3],
    /// Bytes delivered since the last option.
    bytes_since: u64,
    /// Marked bytes that were estimated since the last option.
    estimated: u64,
    /// What the last acknowledgment reported.
    newly: Marks,
    /// Packets that came there with CE: s.cep, without its start.
    marked: u32,
    /// The value of `marked` at the last option.
    marked_at_option: u32,
    /// Segments delivered since the last option.
    segments_since: u32,
    /// Moving average of the segments that an acknowledgment delivers, in 64ths; zero before the first.
    usual: u32,
    /// What is known of the peer's option.
    option: Seen,
    /// The peer's counts mean nothing.
    ignored: bool,
    /// Options in a row with more marked bytes and no marked packet.
    contradictions: u8,
}

/// Newly marked packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marks {
    pub(super) packets: u32,
    pub(super) bytes: u64,
}

/// What is known of the peer's option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Seen {
    /// No option with a counter came yet.
    No,
    /// The counters of the option are used.
    Yes,
    /// The option began with zeros, or too late, and is ignored.
    Unsound,
}

/// What an acknowledgment delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feedback {
    /// Segments.
    pub(super) segments: u32,
    /// Payload bytes.
    pub(super) bytes: u64,
    /// Payload of a full segment.
    pub(super) mss: u32,
    /// Payload bytes sent on the connection.
    pub(super) sent: u64,
}

impl Reported {
    pub(super) const fn new() -> Reported {
        Reported {
            bytes: [0; 3],
            bytes_since: 0,
            estimated: 0,
            newly: Marks { packets: 0, bytes: 0 },
            marked: 0,
            marked_at_option: 0,
            segments_since: 0,
            usual: 0,
            option: Seen::No,
            ignored: false,
            contradictions: 0,
        }
    }

    /// The SYN-ACK came there with CE.
    pub(super) fn syn_ack_was_marked(&mut self) {
        self.marked = 1;
        self.marked_at_option = 1;
    }

    /// The peer's counts mean nothing (RFC 9768 table 4, note 1).
    pub(super) fn ignore_marks(&mut self) {
        self.ignored = true;
    }

    /// An option came. The first one with a counter shows whether something on the way sets it to zero (RFC 9768 3.2.3.2.4).
    pub(super) fn on_option(&mut self, option: &AccEcnOption) {
        if self.option == Seen::No && !option.counters().is_empty() {
            let zeroed = [Ecn::Ect0, Ecn::Ect1].map(|ecn| option.counter(ecn) == Some(0));
            self.option = if zeroed.contains(&true) {
                Seen::Unsound
            } else {
                Seen::Yes
            };
        }
    }

    /// The last acknowledgment reported nothing that is looked at.
    pub(super) fn skip(&mut self) {
        self.newly = Marks::default();
    }

    /// Takes the counts of an acknowledgment that no later one came before. False: they contradict each other, and segments are to
    /// leave without ECN (RFC 9768 3.2.3.2.5).
    pub(super) fn take(&mut self, segment: &Segment, feedback: &Feedback) -> bool {
        self.skip();
        if self.ignored {
            return true;
        }
        let ace = u32::from(segment.ace());
        let least = ace.wrapping_sub(START.wrapping_add(self.marked)) & 7;
        let usual = self.note_segments(feedback.segments);
        self.segments_since = self.segments_since.saturating_add(feedback.segments);
        self.bytes_since = self.bytes_since.saturating_add(feedback.bytes);
        if self.option == Seen::No && feedback.sent >= LATEST_START {
            self.option = Seen::Unsound; // its counters may have gone around
        }
        let option = segment.accecn().filter(|_| self.option == Seen::Yes);
        if let Some(option) = option.filter(|option| option.counter(Ecn::Ce).is_some() || least == 0) {
            return self.take_option(&option, least, feedback.mss);
        }
        // The receiver sends the option at least once per 2^22 bytes of a counter, if it gets through.
        let available = self.option == Seen::Yes && self.bytes_since < RENEWAL;
        let packets = if available || usual {
            least
        } else {
            most(feedback.segments, least)
        };
        let size = match feedback.segments {
            0 => u64::from(feedback.mss),
            segments => feedback.bytes / u64::from(segments), // A.3
        };
        let bytes = u64::from(packets) * size;
        self.estimated += bytes;
        self.marked = self.marked.wrapping_add(packets);
        self.newly = Marks { packets, bytes };
        true
    }

    fn take_option(&mut self, option: &AccEcnOption, least: u32, mss: u32) -> bool {
        let mut ce = 0;
        for ecn in [Ecn::Ect1, Ecn::Ce, Ecn::Ect0] {
            let (Some(counter), Some(field)) = (option.counter(ecn), field_of(ecn)) else {
                continue;
            };
            let start = u32::from(ecn != Ecn::Ce);
            let known = self.bytes[field] as u32;
            let ahead = counter.wrapping_sub(start).wrapping_sub(known) % AccEcnOption::MODULUS;
            if ahead < AccEcnOption::MODULUS / 2 {
                self.bytes[field] += u64::from(ahead);
                if ecn == Ecn::Ce {
                    ce = u64::from(ahead);
                }
            }
        }
        let counted = self
            .marked
            .wrapping_add(least)
            .wrapping_sub(self.marked_at_option);
        let certain = self.segments_since <= 7;
        // A round of the bits may hide in marked acknowledgments of ours, but hardly each time.
        let contradicts = ce > 0 && counted == 0 && certain;
        self.contradictions = if contradicts {
            self.contradictions.saturating_add(1)
        } else {
            0
        };
        let needed = if certain {
            0
        } else {
            ce.div_ceil(u64::from(mss.max(1))) as u32
        };
        let packets = least + needed.saturating_sub(counted).div_ceil(8) * 8;
        self.marked = self.marked.wrapping_add(packets);
        self.newly = Marks {
            packets,
            bytes: ce.saturating_sub(self.estimated),
        };
        self.marked_at_option = self.marked;
        (self.segments_since, self.bytes_since, self.estimated) = (0, 0, 0);
        self.contradictions < CERTAIN
    }

    /// Moves the average, and says whether acknowledgments of many segments are usual.
    fn note_segments(&mut self, segments: u32) -> bool {
        if segments > 0 {
            let now = segments.min(1 << 10) << 6;
            self.usual = if self.usual == 0 {
                now
            } else {
                ((self.usual << 6) - self.usual + now) >> 6
            };
        }
        self.usual > MANY << 6
    }

    /// What the last acknowledgment reported.
    pub(super) const fn newly(&self) -> Marks {
        self.newly
    }

    /// Whether an ACE field is not the one expected.
    pub(super) const fn differs(&self, ace: u8) -> bool {
        (START.wrapping_add(self.marked) & 7) as u8 != ace & 7
    }

    /// Payload bytes that came there as ECT(1), CE and ECT(0).
    pub(in crate::tcp) const fn bytes(&self) -> [u64; 3] {
        self.bytes
    }

    /// Packets that came there with CE.
    pub(in crate::tcp) const fn marked(&self) -> u32 {
        self.marked
    }
}

/// The most marks among so many `segments`, of which the bits show `least` (RFC 9768 A.2.1).
pub(super) const fn most(segments: u32, least: u32) -> u32 {
    if segments <= least {
        return least; // there were marked packets without data
    }
    segments - (segments - least) % 8
}

/// Segments per acknowledgment above which acknowledgments of eight are nothing unusual.
const MANY: u32 = 4;
/// Contradictions in a row that nothing but a change on the way explains.
const CERTAIN: u8 = 3;
/// Bytes after which the option is sent again in any case (RFC 9768 3.2.3.3).
const RENEWAL: u64 = 1 << 22;
/// Bytes sent from which on a first option may have counted half around.
const LATEST_START: u64 = (1 << 23) - 1;
