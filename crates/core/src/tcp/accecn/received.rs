//! The receiver of data: what it counts, when a count asks for an acknowledgment, and when and how the option is sent.
//!
//! **Source.** RFC 9768 3.2, 3.2.1, 3.2.2.5.1, 3.2.3.2.2, 3.2.3.3.
//! **Deviations.** See the module above.

use crate::packet::{AccEcnOption, Ecn, Segment};
use crate::tcp::config::EcnOption;
use crate::tcp::receive::ack_policy::Acking;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// What came, by codepoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Received {
    /// Payload bytes that came as ECT(1), CE and ECT(0): r.e1b, r.ceb and r.e0b, without their starts.
    bytes: [u64; 3],
    /// When the option was last sent.
    sent_at: Instant,
    /// Packets that came with CE: r.cep, without its start.
    marked: u32,
    /// Where the duplicate began that the newest option was sent beside.
    duplicate: Option<u32>,
    /// Marked packets since an acknowledgment left.
    pending: u8,
    /// Codepoint of the packet before.
    before: u8,
    /// Options that are to be sent as soon as possible.
    demand: u8,
    /// Leading fields of the option that changed since it was last sent.
    needed: u8,
    /// A marked SYN-ACK was counted.
    counted_syn_ack: bool,
    /// The peer sends the option.
    peer_sends: bool,
    /// Acknowledgments with the option do not reach the peer.
    blocked: bool,
}

/// When the option is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) when: EcnOption,
    /// How often per round trip at least.
    pub(super) beacon: u8,
    pub(super) srtt: Duration,
}

/// Where the option is to fit in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Bytes of the TCP header that are left for options.
    pub(super) header: u32,
    /// Bytes of the segment that are left for options.
    pub(super) segment: u32,
    /// SACK blocks after the second may give way.
    pub(super) spare: bool,
}

impl Received {
    /// The newest SYN of the peer came as `syn`.
    pub(super) const fn new(syn: Ecn) -> Received {
        Received {
            bytes: [0; 3],
            sent_at: Instant::ZERO,
            marked: 0,
            duplicate: None,
            pending: 0,
            before: syn as u8,
            demand: 0,
            needed: 0,
            counted_syn_ack: false,
            peer_sends: false,
            blocked: false,
        }
    }

    /// At least so many options are to be sent as soon as possible.
    pub(super) fn demand(&mut self, options: u8) {
        self.demand = self.demand.max(options);
    }

    /// The peer was seen to send the option.
    pub(super) fn peer_sends_option(&mut self) {
        self.peer_sends = true;
    }

    /// A SYN-ACK came; a mark counts once, however many come (RFC 9768 3.2.2.2).
    pub(super) fn on_syn_ack(&mut self, ecn: Ecn) {
        if ecn == Ecn::Ce && !core::mem::replace(&mut self.counted_syn_ack, true) {
            self.marked += 1;
        }
    }

    /// An acceptable segment of the peer. `old`: all of its payload came before. `answers`: a bare acknowledgment may be acknowledged,
    /// because the peer can distinguish that from a duplicate.
    pub(in crate::tcp) fn on_arrival(
        &mut self,
        acking: &mut Acking,
        segment: &Segment,
        old: bool,
        answers: bool,
    ) {
        let ecn = segment.ecn();
        let marked = ecn == Ecn::Ce;
        let changed = core::mem::replace(&mut self.before, ecn as u8) != ecn as u8;
        if marked {
            self.marked = self.marked.wrapping_add(1);
            self.pending = self.pending.saturating_add(1);
        }
        if changed || marked {
            self.demand(2); // the second one leaves no doubt how the later packets came
        }
        self.count_bytes(ecn, segment.payload);
        if old && segment.payload > 0 && self.duplicate == Some(segment.seq.0) {
            self.blocked = true; // RFC 9768 3.2.3.2.2: data always comes again that was acknowledged with an option
        }
        // RFC 9768 3.2.2.5.1
        let unacknowledged = segment.payload > 0 || acking.scheduled();
        let many = if unacknowledged { 2 } else { 3 };
        acking.now |= changed && segment.payload > 0;
        acking.now |= marked && self.pending >= many && (unacknowledged || answers);
    }

    fn count_bytes(&mut self, ecn: Ecn, payload: u32) {
        let Some(field) = field_of(ecn).filter(|_| payload > 0) else {
            return;
        };
        let bytes = &mut self.bytes[field];
        let before = *bytes;
        *bytes += u64::from(payload);
        self.needed = self.needed.max(field as u8 + 1);
        if (before ^ *bytes) >> 22 != 0 {
            self.demand(1); // RFC 9768 3.2.3.3: at least once for every 2^22 bytes
        }
    }

    /// An acknowledgment leaves: its ACE field.
    pub(super) fn on_departure(&mut self) -> u8 {
        self.pending = 0;
        (START.wrapping_add(self.marked) & 7) as u8
    }

    /// Puts the option into an acknowledgment that leaves, if it is due and fits.
    pub(super) fn put_option(&mut self, now: Instant, rule: Rule, room: Room, segment: &mut Segment) {
        self.duplicate = None;
        if !self.is_due(now, rule) {
            return;
        }
        let Some((fields, blocks)) = self.fit(room, segment.sack_blocks()) else {
            return;
        };
        let twice = duplicate_of(segment);
        while segment.sack_blocks() > blocks {
            segment.pop_sack_block();
            segment.overhead -= 8;
        }
        let values = self.wire();
        segment.set_accecn(&AccEcnOption::new(true, &values[..usize::from(fields)]));
        segment.overhead += AccEcnOption::padded(fields);
        self.sent_at = now;
        self.demand = self.demand.saturating_sub(1);
        self.needed = 0;
        self.duplicate = twice;
    }

    /// The fields as they stand on the wire, in order 1 (RFC 9768 3.2.1: two of them do not begin with zero).
    pub(super) fn wire(&self) -> [u32; 3] {
        let [one, ce, zero] = self.bytes.map(|bytes| bytes as u32);
        [one.wrapping_add(1), ce, zero.wrapping_add(1)]
    }

    fn is_due(&self, now: Instant, rule: Rule) -> bool {
        let beacon = || {
            let beacon = u64::from(rule.beacon);
            beacon > 0 && now.since(self.sent_at).saturating_mul(beacon) >= rule.srtt
        };
        let wanted = match rule.when {
            EcnOption::Never => false,
            EcnOption::WhenUseful => self.demand > 0 || beacon(),
            EcnOption::Always | EcnOption::Persistent => true,
        };
        wanted && self.peer_sends && (!self.blocked || rule.when == EcnOption::Persistent)
    }

    /// How many fields fit beside how many SACK blocks: all that changed, or none (RFC 9768 3.2.3.3).
    fn fit(&self, room: Room, blocks: usize) -> Option<(u8, usize)> {
        let fields = |space: u32| {
            (self.needed.max(1)..=AccEcnOption::FIELDS as u8)
                .rev()
                .find(|&fields| u32::from(AccEcnOption::padded(fields)) <= space)
        };
        let mut left = blocks;
        loop {
            let space = room.header + 8 * (blocks - left) as u32;
            if let Some(fields) = fields(space.min(room.segment)) {
                return Some((fields, left));
            }
            // Two blocks of SACK are more important, and all of them if there is nothing new.
            if !room.spare || left <= 2 || self.needed == 0 {
                return None;
            }
            left -= 1;
        }
    }

    /// Payload bytes that came as ECT(1), CE and ECT(0).
    pub(in crate::tcp) const fn bytes(&self) -> [u64; 3] {
        self.bytes
    }

    /// Packets that came with CE.
    pub(in crate::tcp) const fn marked(&self) -> u32 {
        self.marked
    }

    /// Whether options are known not to reach the peer.
    #[cfg(test)]
    pub(super) const fn is_blocked(&self) -> bool {
        self.blocked
    }
}

/// Where the duplicate begins that the first SACK block reports (RFC 2883 4).
fn duplicate_of(segment: &Segment) -> Option<u32> {
    if segment.sack_blocks() == 0 {
        return None;
    }
    let (left, right) = segment.sack_block(0);
    let below = (right.0.wrapping_sub(segment.ack.0) as i32) <= 0;
    below.then_some(left.0)
}

/// The field of a codepoint in order 1.
pub(super) const fn field_of(ecn: Ecn) -> Option<usize> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect1 => Some(0),
        Ecn::Ce => Some(1),
        Ecn::Ect0 => Some(2),
    }
}

/// Start of the counter of marked packets (RFC 9768 3.2.1).
pub(super) const START: u32 = 5;
