//! Video calls: frames at a constant rate, each cut into datagrams that leave together. A flow record is a frame: it starts
//! when its datagrams are handed over and is complete when the last of them has arrived.
//!
//! **Deviations.** The encoder does not adapt its rate, nothing is sent again, and nothing is repaired by a code: what the network
//! does to the frames is seen as it is. Datagrams of a frame leave at once; real senders spread them over a part of the frame
//! time. **Lost frames.** A frame of which a datagram is lost is never complete. As with pings that is a loss, not a time:
//! an age would measure when the run ended. Such frames count in the share of late ones.

use super::{NONE, UDP_HEADERS, datagram, whole_bytes};
use crate::observe::Observer;
use crate::spec::Video;
use crate::world::World;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// Frames of a group that are on their way, in the order of their records.
#[derive(Debug, Default)]
pub(super) struct Frames {
    open: Vec<Frame>,
    /// Bits of earlier frames, to be used again.
    spare: Vec<Vec<u64>>,
}

#[derive(Debug)]
struct Frame {
    record: u32,
    /// Number of its first datagram in its conversation.
    first: u32,
    /// Datagrams that have not arrived.
    missing: u32,
    /// Copies of its datagrams that are in the network.
    in_network: u32,
    /// Which of its datagrams have arrived.
    arrived: Vec<u64>,
}

impl Frames {
    fn begin(&mut self, record: u32, first: u32, datagrams: u32) {
        let mut arrived = self.spare.pop().unwrap_or_default();
        arrived.clear();
        arrived.resize(datagrams.div_ceil(64) as usize, 0);
        self.open.push(Frame {
            record,
            first,
            missing: datagrams,
            in_network: datagrams,
            arrived,
        });
    }

    fn at(&self, record: u32) -> Option<usize> {
        self.open.binary_search_by_key(&record, |frame| frame.record).ok()
    }

    fn end(&mut self, at: usize) {
        self.spare.push(self.open.remove(at).arrived);
    }
}

impl<O: Observer> World<'_, O> {
    /// The next frame of a stream leaves.
    pub(super) fn act_frame(&mut self, index: u32, actor: u32, now: Instant, video: &Video) {
        let place = &mut self.groups[index as usize].actors[actor as usize];
        let (pair, mut slot) = (place.pair, place.slot);
        let Some(dialogue) = &mut place.dialogue else {
            return;
        };
        let number = dialogue.begun;
        dialogue.begun += 1;
        let key = video.key_every.is_some_and(|every| number.is_multiple_of(every));
        let size = match &mut dialogue.request {
            Some(key_size) if key => key_size,
            _ => &mut dialogue.size,
        };
        let bytes = whole_bytes(size.sample()).min(LARGEST_FRAME);
        if slot == NONE {
            slot = self.open_pair(now, index, actor, pair, None);
            self.groups[index as usize].actors[actor as usize].slot = slot;
        }
        let most = video.packet.get().saturating_sub(u64::from(UDP_HEADERS)).max(1);
        let datagrams = bytes.div_ceil(most) as u32;
        let first = self.slots[slot as usize].bytes as u32;
        self.slots[slot as usize].bytes += u64::from(datagrams);
        let record = if self.window.contains(now) {
            let record = self.new_record(index, pair, now, Bytes(bytes));
            let group = &mut self.groups[index as usize];
            let sent = &mut group.records[record as usize];
            sent.segments_sent = datagrams;
            sent.bytes_sent = Bytes(bytes);
            group.frames.begin(record, first, datagrams);
            self.open += 1;
            record
        } else {
            NONE
        };
        let mut left = bytes;
        for datagram_number in 0..datagrams {
            let payload = left.min(most);
            left -= payload;
            let number = first.wrapping_add(datagram_number);
            self.send_from(now, slot, 0, datagram(now, number, payload as u32, record));
        }
        // From the start of the stream: no drift, whatever the rate.
        let since = |frames: u32| Duration::from_secs_f64(f64::from(frames) / video.frame_rate);
        let gap = since(number + 1).saturating_sub(since(number));
        self.act_at(index, actor, now.saturating_add(gap.max(Duration::from_nanos(1))));
    }

    /// A datagram of a frame has arrived.
    pub(super) fn on_frame_datagram(&mut self, now: Instant, index: usize, segment: &Segment) {
        let record = segment.options[2];
        let group = &mut self.groups[index];
        let Some(at) = group.frames.at(record) else { return };
        let frame = &mut group.frames.open[at];
        let number = segment.seq.0.wrapping_sub(frame.first);
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        frame.in_network = frame.in_network.saturating_sub(1);
        if frame.arrived.get(word).is_some_and(|bits| bits & bit == 0) {
            frame.arrived[word] |= bit;
            frame.missing -= 1;
            group.datagrams.arrived += 1;
            let record = &mut group.records[record as usize];
            record.received += Bytes(u64::from(segment.payload));
            if frame.missing == 0 {
                record.completed = Some(now);
                record.acked = Some(now);
            }
        }
        self.frame_may_be_over(index, at);
    }

    /// A copy of a datagram of a frame will not arrive.
    pub(super) fn on_frame_datagram_lost(&mut self, index: usize, segment: &Segment) {
        if let Some(at) = self.groups[index].frames.at(segment.options[2]) {
            let frame = &mut self.groups[index].frames.open[at];
            frame.in_network = frame.in_network.saturating_sub(1);
            self.frame_may_be_over(index, at);
        }
    }

    /// A datagram of a frame was doubled on the way.
    pub(super) fn on_frame_datagram_doubled(&mut self, index: usize, segment: &Segment) {
        if let Some(at) = self.groups[index].frames.at(segment.options[2]) {
            self.groups[index].frames.open[at].in_network += 1;
        }
    }

    /// Nobody waits for a frame that is complete, or of which nothing is on its way.
    fn frame_may_be_over(&mut self, index: usize, at: usize) {
        let group = &mut self.groups[index];
        let frame = &group.frames.open[at];
        if frame.missing == 0 || frame.in_network == 0 {
            group.datagrams.lost += u64::from(frame.missing);
            group.frames.end(at);
            self.open -= 1;
        }
    }
}

/// Bytes of the largest frame: as much as a picture of 8192 by 4320 pixels without compression.
const LARGEST_FRAME: u64 = 100 << 20;
