//! Video calls: frames at a constant rate, each cut into datagrams that leave together. A flow record is a frame: it starts
//! when its datagrams are handed over and is complete when the last of them has arrived.
//!
//! **Deviations.** The encoder does not adapt its rate, nothing is sent again, and nothing is repaired by a code: what the network
//! does to the frames is seen as it is. Datagrams of a frame leave at once; real senders spread them over a part of the frame
//! time. **Lost frames.** A frame of which a datagram is lost is never complete. As with pings that is a loss, not a time:
//! an age would measure when the run ended. Such frames count in the share of late ones.

use super::Application;
use super::compact::Draw;
use super::datagrams::{UDP_HEADERS, datagram};
use super::group::{Member, whole_bytes};
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::spec::{self, PairPolicy};
use fleetfoot_core::packet::Segment;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// The calls of a group.
pub(crate) struct Video<'a> {
    group: u32,
    video: &'a spec::Video,
    streams: Vec<Stream>,
    frames: Frames,
}

/// One direction of a call.
struct Stream {
    pair: u32,
    /// Its conversation, or `NONE`.
    slot: u32,
    /// Frames sent.
    sent: u32,
    frame: Draw,
    key_frame: Draw,
}

/// Frames of a group that are on their way, in the order of their records.
#[derive(Debug, Default)]
struct Frames {
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

impl<'a> Video<'a> {
    pub(super) fn new<O: Observer>(
        hosts: &mut Hosts<'a, O>,
        group: u32,
        video: &'a spec::Video,
    ) -> Video<'a> {
        let mut streams: Vec<Stream> = Vec::new();
        for Member { number, pair, start } in members(hosts, group, video) {
            // Cameras do not run in step: each stream begins at a random moment of a frame's time.
            let phase = hosts.stream_of(group, number, "phase").uniform();
            let at = start.saturating_add(Duration::from_secs_f64(phase / video.frame_rate));
            let draw =
                |distribution, purpose| Draw::new(distribution, || hosts.stream_of(group, number, purpose));
            streams.push(Stream {
                pair,
                slot: NONE,
                sent: 0,
                frame: draw(&video.frame, "size"),
                key_frame: draw(&video.key_frame, "request"),
            });
            hosts.act_at(group, number, at);
        }
        Video {
            group,
            video,
            streams,
            frames: Frames::default(),
        }
    }

    /// Nobody waits for a frame that is complete, or of which nothing is on its way.
    fn frame_may_be_over<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, at: usize) {
        let frame = &self.frames.open[at];
        if frame.missing == 0 || frame.in_network == 0 {
            hosts.groups[self.group as usize].datagrams.lost += u64::from(frame.missing);
            self.frames.end(at);
            hosts.open -= 1;
        }
    }
}

/// The streams of all calls. A call that goes both ways has two, on a pair and the next; where the group is repeated on every
/// pair, one on each.
fn members<O: Observer>(hosts: &mut Hosts<'_, O>, group: u32, video: &spec::Video) -> Vec<Member> {
    let spec = &hosts.spec.groups[group as usize];
    if !video.both_ways || spec.spread == PairPolicy::Each {
        return hosts.members(group);
    }
    let mut there = 0;
    let mut stream = |number| {
        let way_back = number % 2 == 1 && spec.spread == PairPolicy::Random;
        let pair = if way_back {
            there ^ 1
        } else {
            hosts.pick_pair(group)
        };
        there = pair;
        let spacing = spec.start_spacing.saturating_mul(u64::from(number / 2));
        let start = (Instant::ZERO + spec.start).saturating_add(spacing);
        Member { number, pair, start }
    };
    (0..2 * video.count).map(&mut stream).collect()
}

impl Application for Video<'_> {
    /// The next frame of a stream leaves.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let (video, stream) = (self.video, &mut self.streams[actor as usize]);
        let number = stream.sent;
        stream.sent += 1;
        let key = video.key_every.is_some_and(|every| number.is_multiple_of(every));
        let size = if key {
            &mut stream.key_frame
        } else {
            &mut stream.frame
        };
        let bytes = whole_bytes(size.sample()).min(LARGEST_FRAME);
        if stream.slot == NONE {
            stream.slot = hosts.open_pair(now, self.group, actor, stream.pair, None);
        }
        let slot = stream.slot;
        let most = video.packet.get().saturating_sub(u64::from(UDP_HEADERS)).max(1);
        let datagrams = bytes.div_ceil(most) as u32;
        let first = hosts.slots[slot as usize].bytes as u32;
        hosts.slots[slot as usize].bytes += u64::from(datagrams);
        let record = hosts.open_record(self.group, stream.pair, now, Bytes(bytes));
        if record != NONE {
            let group = &mut hosts.groups[self.group as usize];
            group.stream_of_record.push(actor);
            group.records.edit(record).add_datagrams(datagrams, bytes);
            self.frames.begin(record, first, datagrams);
        }
        let mut left = bytes;
        for datagram_number in 0..datagrams {
            let payload = left.min(most);
            left -= payload;
            let number = first.wrapping_add(datagram_number);
            hosts.send_from(now, slot, 0, datagram(now, number, payload as u32, record));
        }
        // From the start of the stream: no drift, whatever the rate.
        let since = |frames: u32| Duration::from_secs_f64(f64::from(frames) / video.frame_rate);
        let gap = since(number + 1).saturating_sub(since(number));
        let next = now.saturating_add(gap.max(Duration::from_nanos(1)));
        hosts.act_at(self.group, actor, next);
    }

    fn on_packet<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        side: usize,
        segment: &Segment,
    ) {
        hosts.count_datagram(now, slot, side, segment);
        let record = segment.options[2];
        let Some(at) = self.frames.at(record) else { return };
        let frame = &mut self.frames.open[at];
        let number = segment.seq.0.wrapping_sub(frame.first);
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        frame.in_network = frame.in_network.saturating_sub(1);
        if frame.arrived.get(word).is_some_and(|bits| bits & bit == 0) {
            frame.arrived[word] |= bit;
            frame.missing -= 1;
            let group = &mut hosts.groups[self.group as usize];
            group.datagrams.arrived += 1;
            let mut record = group.records.edit(record);
            record.received += Bytes(u64::from(segment.payload));
            if frame.missing == 0 {
                record.completed = Some(now);
                record.acked = Some(now);
            }
        }
        self.frame_may_be_over(hosts, at);
    }

    fn on_datagram_lost<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, segment: &Segment) {
        if let Some(at) = self.frames.at(segment.options[2]) {
            let frame = &mut self.frames.open[at];
            frame.in_network = frame.in_network.saturating_sub(1);
            self.frame_may_be_over(hosts, at);
        }
    }

    fn on_datagram_doubled<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>, segment: &Segment) {
        if let Some(at) = self.frames.at(segment.options[2]) {
            self.frames.open[at].in_network += 1;
        }
    }

    /// What has not come by now never does.
    fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        let missing = self.frames.open.iter().map(|frame| u64::from(frame.missing));
        hosts.groups[self.group as usize].datagrams.lost += missing.sum::<u64>();
        Vec::new()
    }
}

/// Bytes of the largest frame: as much as a picture of 8192 by 4320 pixels without compression.
const LARGEST_FRAME: u64 = 100 << 20;
