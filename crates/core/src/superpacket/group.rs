//! Grouping: which outgoing packets of a flow become one super-packet.
//!
//! A [`Grouper`] stands between a connection and its interface. It holds data packets back until it knows how many belong
//! together, marks them and lets them go back to back. When a group is complete is the [`Mode`]: after a silence of
//! T_buffer, perhaps with a bound on how long a packet is held, at the end of the burst that the connection sends at one
//! moment, after so many packets or an eighth of the smoothed RTT; or nothing is held back and a length is announced whatever
//! comes, a fixed one or that of the window before; or a group is what one large segment of TCP is cut into. Segments without data leave at once, unmarked. What it holds is a [`Segment`] in the simulator, and
//! with real packets ([`marker`](super::marker)) whatever a segment can be had of.
//!
//! **Source.** Schinazi, UCB/EECS-2014-80 (2014), 4 (T_buffer), 5.3 (fixed length, estimated window length); docs/design/super-packets.md#burst, #accumulate, #bound,
//! #estimate and #segment (the other modes, and how a window's length is estimated).
//! **Deviations.**
//! - A group is complete at `max` packets too: a busy flow is never silent (docs/design/super-packets.md#cap).
//! - `last` is set only when a length announced beforehand is not reached: a FIN comes first (docs/design/super-packets.md#last).
//! - Pure ACKs overtake data that is held back, which they do not depend on; SYN and RST let it go before them
//!   (docs/design/super-packets.md#control).
//! - A packet that comes exactly at the deadline begins the next group.
//!
//! Parameters: T_buffer 60 us (five packet times of 1500 bytes at 1 Gbit/s, the report's), `max` 10 packets (the longest that
//! routers accept by default), layout B, the true length declared.

use super::pieces::Joiner;
use super::{Layout, Mark, Role};
use crate::packet::{Flags, Segment};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use serde::Serialize;

/// How outgoing packets are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Grouping {
    /// When a group is complete.
    pub mode: Mode,
    /// Where marks stand.
    pub layout: Layout,
    /// Most packets of a group, at least 1; [`Mode::Fixed`]: the length.
    pub max: u8,
    /// What the marks say of the length.
    pub declare: Declare,
}

/// When a group is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Mode {
    /// When nothing came for `t_buffer`.
    Timer {
        /// T_buffer.
        t_buffer: Duration,
    },
    /// When nothing came for `t_buffer`, or the first of them has waited for `hold`: no packet is held longer.
    BoundedTimer {
        /// T_buffer.
        t_buffer: Duration,
        /// Longest time that a packet is held.
        hold: Duration,
    },
    /// At once: packets that come at one moment, before the outputs are taken, are a group.
    Burst,
    /// When `max` packets are there, or the first of them has waited for an eighth of the smoothed RTT.
    Accumulate {
        /// Wait while there is no RTT.
        t_buffer: Duration,
    },
    /// Never held back: the first announces `max` packets, and the next ones are its followers whenever they come.
    Fixed,
    /// Never held back: the first of a window announces as many packets as the window before had, `max` at first and at most. A window is over when
    /// nothing came for `t_buffer`; what is longer than announced begins another super-packet of the same length.
    Estimate {
        /// T_buffer.
        t_buffer: Duration,
    },
    /// Never held back: a segment of TCP that is larger than a packet is cut into packets, which are a group. The receiver's [`Grouper::join`]
    /// puts it together.
    Segment {
        /// Largest packet, its headers included, without what marks add (bytes).
        packet: u32,
    },
}

/// What the marks say of a group's length. All but the truth are for experiments with senders that lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Declare {
    /// What it is.
    Truth,
    /// The length and this number of packets, which may be negative.
    Beyond(i8),
    /// Always this.
    Always(u8),
}

impl Grouping {
    /// The default T_buffer.
    pub const T_BUFFER: Duration = Duration::from_micros(60);
    /// The default `max`.
    pub const MAX: u8 = 10;

    /// What a group of `packets` packets declares.
    fn declared(&self, packets: u8) -> u8 {
        let declared = match self.declare {
            Declare::Truth => i16::from(packets),
            Declare::Beyond(more) => i16::from(packets) + i16::from(more),
            Declare::Always(length) => i16::from(length),
        };
        declared.clamp(1, i16::from(self.layout.max_length())) as u8
    }
}

/// Groups the packets of one flow.
#[derive(Clone, Debug)]
pub struct Grouper<P = Segment> {
    grouping: Grouping,
    /// Packets in the order in which they leave; the first `ready` of them may.
    packets: VecDeque<Outgoing<P>>,
    ready: usize,
    /// When the group that is being collected is complete.
    deadline: Option<Instant>,
    /// When the first packet of that group came.
    began: Instant,
    srtt: Option<Duration>,
    identifiers: Identifiers,
    /// [`Mode::Fixed`] and [`Mode::Estimate`]: followers still to come, and their mark.
    followers: u8,
    follower: Mark,
    window: Window,
    joiner: Joiner,
}

/// [`Mode::Estimate`]: the window that is being sent.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Packets expected.
    estimate: u8,
    /// Packets so far.
    packets: u32,
    /// When the last of them came.
    last: Instant,
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<P = Segment> {
    /// The packet, marked.
    pub packet: P,
    /// Packets of the group that begins with it, 1 if it is alone; 0 if it begins none, or is a FIN alone.
    pub group: u8,
}

impl<P: AsRef<Segment> + AsMut<Segment>> Grouper<P> {
    /// Nothing is held back yet. Identifiers are drawn from `random`.
    pub fn new(grouping: Grouping, random: Rng) -> Grouper<P> {
        let max = grouping.max.clamp(1, grouping.layout.max_length());
        Grouper {
            grouping: Grouping { max, ..grouping },
            packets: VecDeque::new(),
            ready: 0,
            deadline: None,
            began: Instant::ZERO,
            srtt: None,
            identifiers: Identifiers::new(random),
            followers: 0,
            follower: Mark::REGULAR,
            window: Window {
                estimate: max,
                packets: 0,
                last: Instant::ZERO,
            },
            joiner: Joiner::default(),
        }
    }

    /// When its groups are complete.
    pub fn mode(&self) -> Mode {
        self.grouping.mode
    }

    /// The connection's smoothed RTT, for [`Mode::Accumulate`].
    pub fn set_srtt(&mut self, srtt: Option<Duration>) {
        self.srtt = srtt;
    }

    /// The connection sends a packet.
    pub fn on_packet(&mut self, now: Instant, packet: P) {
        let segment = packet.as_ref();
        let (flags, payload) = (segment.flags, segment.payload);
        // A burst is what one moment brings; the others are complete at their deadline.
        if self.grouping.mode != Mode::Burst || self.deadline.is_some_and(|deadline| deadline < now) {
            self.on_timeout(now);
        }
        if flags.intersects(Flags::SYN.with(Flags::RST)) {
            self.on_outsider(packet);
            return;
        }
        let outgoing = Outgoing { packet, group: 0 };
        let fin = flags.contains(Flags::FIN);
        if payload == 0 && !fin {
            self.packets.insert(self.ready, outgoing);
            self.ready += 1;
            return;
        }
        self.packets.push_back(outgoing);
        match self.grouping.mode {
            Mode::Fixed => return self.announce(self.grouping.max, fin),
            Mode::Estimate { t_buffer } => {
                let length = self.estimate(now, t_buffer);
                return self.announce(length, fin);
            }
            Mode::Timer { .. }
            | Mode::BoundedTimer { .. }
            | Mode::Burst
            | Mode::Accumulate { .. }
            | Mode::Segment { .. } => {}
        }
        let collected = self.packets.len() - self.ready;
        if collected == 1 {
            self.began = now;
        }
        self.deadline = Some(match self.grouping.mode {
            Mode::Timer { t_buffer } => now.saturating_add(t_buffer),
            Mode::BoundedTimer { t_buffer, hold } => {
                now.saturating_add(t_buffer).min(self.began.saturating_add(hold))
            }
            Mode::Accumulate { t_buffer } => self.deadline.unwrap_or_else(|| {
                now.saturating_add(self.srtt.map_or(t_buffer, |srtt| {
                    Duration::from_nanos(srtt.as_nanos() / SRTT_SHARE)
                }))
            }),
            Mode::Burst | Mode::Fixed | Mode::Estimate { .. } | Mode::Segment { .. } => now,
        });
        if fin || collected >= usize::from(self.grouping.max) {
            self.complete();
        }
    }

    /// A packet that belongs to no group leaves at once, and what is held leaves before it.
    pub fn on_outsider(&mut self, packet: P) {
        self.complete();
        self.packets.push_back(Outgoing { packet, group: 0 });
        self.ready = self.packets.len();
    }

    /// The next packet that leaves. With [`Mode::Burst`] the first call ends the burst.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing<P>> {
        self.on_timeout(now);
        if self.ready == 0 {
            return None;
        }
        self.ready -= 1;
        self.packets.pop_front()
    }

    /// When [`Grouper::on_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// Completes the group whose time has come.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.complete();
        }
    }

    /// The caller knows that nothing more comes soon: the group is complete.
    pub fn end_of_burst(&mut self) {
        self.complete();
    }

    /// Packets that wait, those that may leave included.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Marks what was collected and lets it go.
    fn complete(&mut self) {
        self.deadline = None;
        let packets = self.packets.len() - self.ready;
        if packets == 0 {
            return;
        }
        let length = packets as u8; // at most `max`
        let declared = self.grouping.declared(length);
        // A packet alone that says so is a regular packet.
        if declared > 1 {
            let id = self.identifiers.draw(self.grouping.layout);
            let mut mark = Mark::first(declared, id);
            for outgoing in self.packets.iter_mut().skip(self.ready) {
                write(self.grouping.layout, outgoing.packet.as_mut(), mark);
                mark.role = Role::Follower;
            }
        }
        if let Some(first) = self.packets.get_mut(self.ready) {
            first.group = if packets == 1 {
                alone(first.packet.as_ref())
            } else {
                length
            };
        }
        self.ready = self.packets.len();
    }

    /// A packet of data comes: what its window's length is expected to be (docs/design/super-packets.md#estimate).
    fn estimate(&mut self, now: Instant, t_buffer: Duration) -> u8 {
        let window = &mut self.window;
        if window.packets > 0 && now.since(window.last) >= t_buffer {
            window.estimate = window.packets.min(u32::from(self.grouping.max)) as u8;
            window.packets = 0;
            self.followers = 0; // what was announced and did not come is not taken up again
        }
        window.packets = window.packets.saturating_add(1);
        window.last = now;
        window.estimate
    }

    /// Marks the newest packet with its place in a super-packet of a length that is announced beforehand.
    fn announce(&mut self, length: u8, fin: bool) {
        self.ready = self.packets.len();
        let Some(outgoing) = self.packets.back_mut() else {
            return;
        };
        if length < 2 || self.followers == 0 && fin {
            outgoing.group = alone(outgoing.packet.as_ref());
            return;
        }
        let mut mark = self.follower;
        if self.followers == 0 {
            let id = self.identifiers.draw(self.grouping.layout);
            mark = Mark::first(length, id);
            self.follower = Mark::follower(length, id);
            self.followers = length;
            outgoing.group = length;
        }
        self.followers -= 1;
        if fin && self.followers > 0 {
            mark = mark.ending();
            self.followers = 0;
        }
        write(self.grouping.layout, outgoing.packet.as_mut(), mark);
    }
}

impl Grouper<Segment> {
    /// The connection sends a segment: as [`Grouper::on_packet`], but with [`Mode::Segment`] one that is larger than a packet is cut.
    pub fn on_segment(&mut self, now: Instant, segment: Segment) {
        let Mode::Segment { packet } = self.grouping.mode else {
            return self.on_packet(now, segment);
        };
        if segment.payload == 0 || segment.flags.intersects(Flags::SYN.with(Flags::RST)) {
            self.on_packet(now, segment);
            self.complete(); // a FIN without data
            return;
        }
        let room = packet.saturating_sub(u32::from(segment.overhead)).max(1);
        let mut sent = 0;
        while sent < segment.payload {
            let payload = room.min(segment.payload - sent);
            let mut piece = segment;
            piece.seq = segment.seq + sent;
            piece.payload = payload;
            // As segmentation offload does it: CWR on the first, FIN and PSH on the last.
            if sent > 0 {
                piece.flags = piece.flags.without(Flags::CWR);
            }
            sent += payload;
            if sent < segment.payload {
                piece.flags = piece.flags.without(Flags::FIN.with(Flags::PSH));
            }
            self.packets.push_back(Outgoing {
                packet: piece,
                group: 0,
            });
            if self.packets.len() - self.ready == usize::from(self.grouping.max) {
                self.complete();
            }
        }
        self.complete();
    }

    /// Whether what arrives is to pass [`Grouper::join`].
    #[inline]
    pub fn joins(&self) -> bool {
        matches!(self.grouping.mode, Mode::Segment { .. })
    }

    /// A packet of the other end has arrived: what TCP gets now, if anything. That is the packet itself if it is no piece of a segment, and with the last piece that
    /// was missing the segment.
    pub fn join(&mut self, packet: &Segment) -> Option<Segment> {
        self.joiner.on_packet(self.grouping.layout, packet)
    }
}

/// Length of a group of one packet.
fn alone(segment: &Segment) -> u8 {
    u8::from(segment.is_data())
}

/// Marks a packet. One that cannot carry the mark stays regular.
fn write(layout: Layout, segment: &mut Segment, mark: Mark) {
    segment.flags = segment.flags.with(Flags::DF); // RFC 6864 4.1: only then the identification is free
    let _ = layout.mark(segment, mark);
}

/// Identifiers that cannot be guessed and do not come again soon.
#[derive(Clone, Debug)]
struct Identifiers {
    random: Rng,
    recent: [Option<u16>; RECENT],
    oldest: u8,
}

impl Identifiers {
    fn new(random: Rng) -> Identifiers {
        Identifiers {
            random,
            recent: [None; RECENT],
            oldest: 0,
        }
    }

    fn draw(&mut self, layout: Layout) -> u16 {
        let mut id = self.random.next_u32() as u16 & layout.max_id();
        while self.recent.contains(&Some(id)) {
            id = id.wrapping_add(1) & layout.max_id();
        }
        self.recent[usize::from(self.oldest)] = Some(id);
        self.oldest = (self.oldest + 1) % RECENT as u8;
        id
    }
}

/// Number of earlier groups whose identifiers are not drawn again.
const RECENT: usize = 8;

/// Part of the smoothed RTT that [`Mode::Accumulate`] waits.
const SRTT_SHARE: u64 = 8;

#[cfg(test)]
mod tests;
