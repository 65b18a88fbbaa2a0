//! A link whose future is known on arrival: drop-tail, one constant rate, nothing that damages packets.
//!
//! FIFO order and admission on arrival settle when a packet departs and when it is delivered at the moment it is admitted,
//! so no packet is stored here: what waits is a number for each run of packets of one size. A driver that feeds a FIFO link in
//! order of time may do so ahead of its own clock. Everything is as [`Link`](super::Link) with a drop-tail queue does it, which a
//! test compares packet by packet.

mod run;

use super::serialiser::{Constant, LONGEST_NS};
use super::{LinkConfig, LinkRate};
use crate::packet::Segment;
use crate::queue::{DropReason, Limit};
use crate::ring::Ring;
use crate::time::{Duration, Instant};
use crate::units::Bytes;

/// A drop-tail link at a constant rate. What every packet needs stands first, in two lines of the cache: with thousands of links each
/// line comes from memory.
#[derive(Debug)]
#[repr(C)]
pub struct FifoLink {
    /// When the last admitted packet will have been sent.
    free_at: Instant,
    /// The size of packets that pass without further question: the current one while all that wait are of it.
    usual: PacketSize,
    /// Left over from packets sent since the FIFO link was last idle, in bits times 10^9 below `bps` of the rate.
    remainder: u64,
    delay: Duration,
    /// Packets of the current size that were admitted since one of another was, or [`ANY`] and more if the FIFO link has been idle
    /// since. No more of them wait.
    since: u64,
    /// Packets, counted or to be counted, that took a nanosecond more than their size takes in whole nanoseconds.
    carried: u64,
    /// Where the time of a packet is no whole number: of those, the ones that wait, and perhaps some that wait no more. They
    /// begin to be sent at times that follow from the first.
    alike: u32,
    mtu: u32,
    /// Packets in `runs`.
    before: u32,
    /// Which of `sizes` came last.
    current: u8,
    /// Which of them gives way to the next new one.
    next: u8,
    /// The sizes seen last: acknowledgments with SACK blocks come in four.
    sizes: [Size; 4],
    /// When the first of `alike` begins to be sent, and what is left over then.
    first_start: Instant,
    first_remainder: u64,
    rate: Constant,
    /// Bytes that may wait.
    most_bytes: u64,
    /// Packets that may wait.
    most_packets: u32,
    /// Packets of other sizes that wait before those that `alike` counts.
    runs: Ring<Run>,
    /// Bytes in `runs`.
    bytes_before: u64,
    /// What was counted, but for the counts of these sizes.
    counted: Counted,
}

/// Payload and headers of a packet in one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSize(u64);

/// What passes a FIFO link, as its driver keeps it.
pub trait FifoPacket {
    /// When it comes to the FIFO link, or reaches its end.
    fn at(&self) -> Instant;
    /// Sets that.
    fn set_at(&mut self, at: Instant);
    /// Payload and headers.
    fn size(&self) -> PacketSize;
}

/// Hears of packets of a run that wait.
pub trait WaitMeter {
    /// A packet waited for `waited` behind `waiting` others.
    fn on_wait(&mut self, waited: Duration, waiting: u32);
}

impl PacketSize {
    /// No packet has this size.
    pub const NONE: PacketSize = PacketSize(u64::MAX);

    /// The size of a segment.
    #[inline(always)]
    pub const fn of(segment: &Segment) -> PacketSize {
        PacketSize(segment.payload as u64 | (segment.overhead as u64) << 32)
    }

    /// Bytes at layer 3.
    #[expect(clippy::len_without_is_empty, reason = "no packet is empty")]
    pub const fn len(self) -> u32 {
        (self.0 as u32).saturating_add((self.0 >> 32) as u32)
    }

    /// Whether there is payload.
    pub const fn is_data(self) -> bool {
        self.0 as u32 > 0
    }
}

/// What is known of packets of one size.
#[derive(Clone, Copy, Debug)]
struct Size {
    size: PacketSize,
    len: u32,
    time: PacketTime,
    /// Packets that may wait if all are of this size.
    most: u32,
    /// 2^64 divided by the time of a packet, rounded up, if that is a whole number of nanoseconds; otherwise 0.
    inverse: u64,
    /// How many were counted.
    count: u64,
}

/// How long a packet takes to be sent.
#[derive(Clone, Copy, Debug)]
struct PacketTime {
    /// Whole nanoseconds.
    whole: u64,
    /// The rest.
    fraction: u64,
}

/// Packets of one size that wait one behind the other: each begins to be sent when the one before has been.
#[derive(Clone, Copy, Debug)]
struct Run {
    count: u32,
    len: u32,
    /// When the first of them begins to be sent, and what is left over then.
    first_start: Instant,
    first_remainder: u64,
    time: PacketTime,
}

/// What becomes of a packet that a FIFO link admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// When the packet leaves the queue and begins to be serialised.
    pub start: Instant,
    /// When its last bit leaves.
    pub finish: Instant,
    /// When it reaches the far end.
    pub arrival: Instant,
    /// Packets that waited when it came.
    pub waiting: u32,
}

/// A packet that a FIFO link did not admit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: DropReason,
    /// Packets that waited when it came.
    pub waiting: u32,
}

/// Counts of packets that the driver had counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// All packets.
    pub packets: u64,
    /// Packets with payload.
    pub data_packets: u64,
    /// Bytes of all packets at layer 3.
    pub bytes: Bytes,
    /// How long sending them took.
    pub busy: Duration,
}

impl FifoLink {
    /// The FIFO link that is the same as a link of this configuration with a drop-tail queue; `None` if the link is damaged in
    /// any way, its rate varies or processing overlaps with sending.
    pub fn new(config: &LinkConfig, limit: Limit) -> Option<FifoLink> {
        // All fields are named: a new one does not compile before it is decided what it means here. `Constant` takes framing.
        let LinkConfig {
            rate,
            delay: _,
            mtu,
            framing: _,
            processing,
            overlap,
            impairments,
        } = config;
        let constant = matches!(rate, LinkRate::Constant(_));
        let overlaps = *overlap && !processing.is_zero();
        if !constant || overlaps || !impairments.is_none() {
            return None;
        }
        let (most_packets, most_bytes) = match limit {
            Limit::Packets(packets) => (packets, u64::MAX),
            Limit::Bytes(bytes) => (u32::MAX, bytes.get()),
            Limit::Unlimited => (u32::MAX, u64::MAX),
        };
        // Nothing is of this size: the first packet looks for its own.
        let nothing = Size {
            size: PacketSize::NONE,
            len: 0,
            time: PacketTime {
                whole: 0,
                fraction: 0,
            },
            most: 0,
            inverse: 0,
            count: 0,
        };
        Some(FifoLink {
            free_at: Instant::ZERO,
            usual: PacketSize::NONE,
            sizes: [nothing; 4],
            current: 0,
            next: 1,
            remainder: 0,
            rate: Constant::new(config),
            delay: config.latency().min(Duration::from_nanos(LONGEST_NS)),
            mtu: *mtu,
            most_packets,
            most_bytes,
            since: 0,
            alike: 0,
            first_start: Instant::ZERO,
            first_remainder: 0,
            runs: Ring::new(),
            before: 0,
            bytes_before: 0,
            counted: Counted::default(),
            carried: 0,
        })
    }

    /// Propagation delay: no packet takes less time.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// A packet arrives at the sending end, not earlier than the one before: what becomes of it. `now` may be a hundred
    /// years at most.
    #[inline(always)]
    pub fn on_packet(&mut self, now: Instant, size: PacketSize) -> Result<Schedule, Refusal> {
        if self.is_usual(size) || self.turn_to(now, size) {
            self.on_usual(now)
        } else {
            self.on_unusual(now, size)
        }
    }

    /// Whether a packet of this size may come by [`FifoLink::on_usual`]: it is of the current size, and none of another waits.
    #[inline(always)]
    pub fn is_usual(&self, size: PacketSize) -> bool {
        size == self.usual
    }

    /// Makes a size the usual one, if the FIFO link is idle at `now` and packets of that size are admitted. False: it is another
    /// case, and nothing was done.
    #[inline]
    pub fn turn_to(&mut self, now: Instant, size: PacketSize) -> bool {
        if self.free_at >= now {
            return false;
        }
        self.forget_waiting();
        if size != self.size().size && !self.find(size) && !self.change_size(now, size) {
            return false;
        }
        self.usual = size;
        self.since = ANY;
        true
    }

    /// [`FifoLink::on_packet`] of a packet that [`FifoLink::is_usual`].
    #[inline(always)]
    pub fn on_usual(&mut self, now: Instant) -> Result<Schedule, Refusal> {
        if self.free_at < now {
            return Ok(self.pass_idle(now));
        }
        let waiting = self.alike_waiting(now);
        if waiting >= self.size().most {
            let reason = DropReason::Full;
            return Err(Refusal { reason, waiting });
        }
        let remainder = self.remainder;
        let schedule = self.pass_after_others(now, waiting);
        if self.size().inverse == 0 && schedule.start > now {
            if waiting == 0 {
                self.first_start = schedule.start;
                self.first_remainder = remainder;
            }
            self.alike = waiting + 1;
        }
        Ok(schedule)
    }

    /// A packet of another size than the one before, or one that may find packets of several sizes waiting. The FIFO link is busy,
    /// or never admits it.
    #[inline(never)]
    fn on_unusual(&mut self, now: Instant, size: PacketSize) -> Result<Schedule, Refusal> {
        if size != self.size().size && !self.change_size(now, size) {
            return Err(self.refuse(now, size));
        }
        self.let_runs_go(now);
        if self.before == 0 {
            self.usual = size;
            return self.on_usual(now);
        }
        self.usual = PacketSize::NONE;
        let alike = self.alike_waiting(now);
        let waiting = self.before + alike;
        // Neither factor has more than 32 bits.
        let bytes = self.bytes_before + (u64::from(alike) + 1) * u64::from(self.size().len);
        if waiting >= self.most_packets || bytes > self.most_bytes {
            let reason = DropReason::Full;
            return Err(Refusal { reason, waiting });
        }
        let remainder = self.remainder;
        let schedule = self.pass_after_others(now, waiting);
        if alike == 0 {
            self.first_start = schedule.start;
            self.first_remainder = remainder;
        }
        self.alike = alike + 1;
        Ok(schedule)
    }

    /// A packet finds the FIFO link idle: it starts at once, on a whole nanosecond, and the fraction alone makes no carry.
    #[inline(always)]
    fn pass_idle(&mut self, now: Instant) -> Schedule {
        self.since = ANY;
        self.remainder = self.size().time.fraction;
        let finish = now + Duration::from_nanos(self.size().time.whole);
        self.free_at = finish;
        Schedule {
            start: now,
            finish,
            arrival: finish + self.delay,
            waiting: 0,
        }
    }

    /// A packet of the current size starts when those before it have been sent.
    #[inline(always)]
    fn pass_after_others(&mut self, now: Instant, waiting: u32) -> Schedule {
        debug_assert!(self.free_at >= now);
        let start = self.free_at;
        let mut finish = start + Duration::from_nanos(self.size().time.whole);
        let mut remainder = self.remainder + self.size().time.fraction;
        if remainder >= self.rate.bps {
            unusual();
            finish += Duration::from_nanos(1);
            remainder -= self.rate.bps;
            self.carried += 1;
        }
        // Twice this, and a delay, are below what an instant holds.
        let finish = finish.min(Instant::from_nanos(LONGEST_NS));
        self.free_at = finish;
        self.remainder = remainder;
        self.since += 1;
        Schedule {
            start,
            finish,
            arrival: finish + self.delay,
            waiting,
        }
    }

    /// How many packets are sure to be admitted from `now` on, if none is larger than the MTU; there may be room for more.
    #[inline]
    pub fn sure_room(&mut self, now: Instant) -> u64 {
        let alike = self.alike_waiting(now);
        let packets = self.most_packets.saturating_sub(self.before + alike);
        let bytes = self.bytes_before + u64::from(alike) * u64::from(self.size().len);
        let left = self.most_bytes.saturating_sub(bytes);
        u64::from(packets).min(left / u64::from(self.mtu.max(1)))
    }

    /// No larger packet passes.
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Counts the packet that came last.
    #[inline(always)]
    pub fn count(&mut self) {
        self.size_mut().count += 1;
    }

    /// Does not count the packet that came last.
    #[inline]
    pub fn pass_over(&mut self, schedule: Schedule) {
        let took = schedule.finish.since(schedule.start).as_nanos();
        self.carried -= u64::from(took > self.size().time.whole);
    }

    /// What was counted.
    pub fn counted(&self) -> Counted {
        let mut counted = self.counted;
        self.sizes.iter().for_each(|size| counted.add(size));
        counted.busy += Duration::from_nanos(self.carried);
        counted
    }

    /// The current size.
    #[inline(always)]
    fn size(&self) -> &Size {
        &self.sizes[usize::from(self.current % 4)]
    }

    #[inline(always)]
    fn size_mut(&mut self) -> &mut Size {
        &mut self.sizes[usize::from(self.current % 4)]
    }

    /// When a packet of the current size that begins at `start` will have been sent, and what is left over then.
    #[inline(always)]
    fn after(&self, start: Instant, remainder: u64) -> (Instant, u64) {
        after(self.size().time, self.rate.bps, start, remainder)
    }

    /// Packets of the current size that wait at `now`. If each takes a whole number of nanoseconds, their number follows from
    /// when the last will have been sent.
    #[inline(always)]
    fn alike_waiting(&mut self, now: Instant) -> u32 {
        // All but a nanosecond of what is still to be sent.
        let left = self
            .free_at
            .as_nanos()
            .wrapping_sub(now.as_nanos())
            .wrapping_sub(1);
        if left < self.size().inverse {
            return times(left, self.size().inverse).min(self.since) as u32;
        }
        self.alike_waiting_at_length(now)
    }

    #[inline(never)]
    fn alike_waiting_at_length(&mut self, now: Instant) -> u32 {
        if self.size().inverse == 0 {
            self.let_alike_go(now);
            return self.alike;
        }
        let left = self.free_at.since(now).as_nanos().saturating_sub(1);
        (left / self.size().time.whole).min(self.since) as u32
    }

    /// Forgets those of the current size that have begun to be sent.
    #[inline(always)]
    fn let_alike_go(&mut self, now: Instant) {
        while self.alike > 0 && self.first_start <= now {
            self.alike -= 1;
            (self.first_start, self.first_remainder) = self.after(self.first_start, self.first_remainder);
        }
    }

    /// Forgets those of other sizes that have begun to be sent.
    #[inline(never)]
    fn let_runs_go(&mut self, now: Instant) {
        while let Some(run) = self.runs.front_mut() {
            while run.count > 0 && run.first_start <= now {
                run.count -= 1;
                self.before -= 1;
                self.bytes_before -= u64::from(run.len);
                (run.first_start, run.first_remainder) =
                    after(run.time, self.rate.bps, run.first_start, run.first_remainder);
            }
            if run.count > 0 {
                return;
            }
            self.runs.forget_front();
        }
    }

    /// Takes up another size, unless packets of that size are never admitted.
    #[inline(never)]
    fn change_size(&mut self, now: Instant, size: PacketSize) -> bool {
        let len = size.len();
        if len > self.mtu || u64::from(len) > self.most_bytes || self.most_packets == 0 {
            return false;
        }
        // Those that wait keep their times.
        let alike = self.alike_waiting(now);
        if alike > 0 {
            let (mut first_start, mut first_remainder) = (self.first_start, self.first_remainder);
            if self.size().inverse > 0 {
                first_start = self.free_at - Duration::from_nanos(u64::from(alike) * self.size().time.whole);
                first_remainder = self.remainder;
            }
            self.runs.push_back(Run {
                count: alike,
                len: self.size().len,
                first_start,
                first_remainder,
                time: self.size().time,
            });
            self.before += alike;
            self.bytes_before += u64::from(alike) * u64::from(self.size().len);
        }
        self.alike = 0;
        self.since = 0;
        if self.find(size) {
            return true;
        }
        let mut place = self.next;
        if place == self.current {
            place = (place + 1) % 4;
        }
        self.next = (place + 1) % 4;
        let time = self.rate.time(len);
        let new = Size {
            size,
            len,
            time: PacketTime {
                whole: time.whole,
                fraction: time.fraction,
            },
            most: u64::from(self.most_packets).min(self.most_bytes / u64::from(len.max(1))) as u32,
            inverse: match (time.whole, time.fraction) {
                (0 | 1, _) => 0,
                (whole, 0) => u64::MAX / whole + 1,
                (_, _) => 0,
            },
            count: 0,
        };
        let before = core::mem::replace(&mut self.sizes[usize::from(place)], new);
        self.counted.add(&before);
        self.current = place;
        true
    }

    /// Makes a size the current one if it was seen lately.
    #[inline(always)]
    fn find(&mut self, size: PacketSize) -> bool {
        let found = self.place_of(size);
        self.current = found.unwrap_or(self.current);
        found.is_some()
    }

    /// The place of a size among those seen last, of which the current one is looked at first.
    #[inline(always)]
    fn place_of(&self, size: PacketSize) -> Option<u8> {
        if size == self.size().size {
            return Some(self.current);
        }
        let found = self.sizes.iter().position(|known| known.size == size);
        found.map(|place| place as u8)
    }

    /// A packet that is never admitted.
    #[cold]
    fn refuse(&mut self, now: Instant, size: PacketSize) -> Refusal {
        let reason = if size.len() > self.mtu {
            DropReason::TooBig
        } else {
            DropReason::Full
        };
        self.let_runs_go(now);
        let waiting = self.before + self.alike_waiting(now);
        Refusal { reason, waiting }
    }
}

impl Counted {
    fn add(&mut self, size: &Size) {
        self.packets += size.count;
        self.data_packets += if size.size.is_data() { size.count } else { 0 };
        self.bytes += Bytes(size.count * u64::from(size.len));
        self.busy += Duration::from_nanos(size.count * size.time.whole);
    }
}

/// When a packet that begins at `start` will have been sent, and what is left over then.
#[inline(always)]
fn after(time: PacketTime, bps: u64, start: Instant, remainder: u64) -> (Instant, u64) {
    let finish = start + Duration::from_nanos(time.whole);
    let sum = remainder + time.fraction;
    if sum >= bps {
        unusual();
        return (finish + Duration::from_nanos(1), sum - bps);
    }
    (finish, sum)
}

/// How many times a span holds the time whose [`Size::inverse`] this is; exact for spans below the inverse.
#[inline(always)]
fn times(span: u64, inverse: u64) -> u64 {
    ((u128::from(span) * u128::from(inverse)) >> 64) as u64
}

/// More packets than ever wait.
const ANY: u64 = 1 << 62;

/// Marks a branch as unusual for the compiler, so that the usual one pays nothing for it.
#[cold]
#[inline(always)]
fn unusual() {}

#[cfg(test)]
mod tests;
