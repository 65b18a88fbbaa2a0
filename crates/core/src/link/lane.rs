//! A link whose future is known on arrival: drop-tail, one constant rate, nothing that damages packets.
//!
//! FIFO order and admission on arrival settle when a packet departs and when it is delivered at the moment it is admitted,
//! so no packet is stored here: what waits is a number for each run of packets of one size. A driver that feeds a lane in
//! order of time may do so ahead of its own clock. Everything is as [`Link`](super::Link) with a drop-tail queue does it, which a
//! test compares packet by packet.

use super::serialiser::{Constant, LONGEST_NS};
use super::{LinkConfig, LinkRate};
use crate::packet::Segment;
use crate::queue::{DropReason, Limit};
use crate::ring::Ring;
use crate::time::{Duration, Instant};
use crate::units::Bytes;

/// A drop-tail link at a constant rate.
#[derive(Debug)]
pub struct Lane {
    /// When the last admitted packet will have been sent.
    free_at: Instant,
    /// The size of packets that pass without further question: the current one while all that wait are of it.
    usual: PacketSize,
    /// The sizes seen last: acknowledgments with SACK blocks come in four.
    sizes: [Size; 4],
    /// Which of them came last.
    current: u8,
    /// Which of them gives way to the next new one.
    next: u8,
    /// Left over from packets sent since the lane was last idle, in bits times 10^9 below `bps` of the rate.
    remainder: u64,
    rate: Constant,
    delay: Duration,
    mtu: u32,
    /// Packets that may wait.
    most_packets: u32,
    /// Bytes that may wait.
    most_bytes: u64,
    /// Packets of the current size that were admitted since one of another was, or [`ANY`] and more if the lane has been idle
    /// since. No more of them wait.
    since: u64,
    /// Where the time of a packet is no whole number: of those, the ones that wait, and perhaps some that wait no more. They
    /// begin to be sent at times that follow from the first.
    alike: u32,
    /// When the first of them begins to be sent, and what is left over then.
    first_start: Instant,
    first_remainder: u64,
    /// Those of other sizes that wait before them.
    runs: Ring<Run>,
    /// How many there are in `runs`.
    before: u32,
    /// Bytes in `runs`.
    bytes_before: u64,
    /// What was counted, but for the counts of these sizes.
    counted: Counted,
    /// Of the packets that were counted or will be, those that took a nanosecond more than whole ones of their size.
    carried: u64,
}

/// Payload and headers of a packet in one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSize(u64);

/// What passes a lane, as its driver keeps it.
pub trait Passenger {
    /// When it comes to the lane, or reaches its end.
    fn at(&self) -> Instant;
    /// Sets that.
    fn set_at(&mut self, at: Instant);
    /// Payload and headers.
    fn size(&self) -> PacketSize;
}

/// Hears of packets of a run that wait.
pub trait LaneMeter {
    /// So long, behind so many.
    fn on_wait(&mut self, waited: Duration, waiting: u32);
}

impl PacketSize {
    /// No packet has this size.
    pub const NONE: PacketSize = PacketSize(u64::MAX);

    /// Of this segment.
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
    /// So many may wait if all are of this size.
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

/// What becomes of a packet that a lane admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// It leaves the queue and begins to be serialised.
    pub start: Instant,
    /// Its last bit leaves.
    pub finish: Instant,
    /// It reaches the far end.
    pub arrival: Instant,
    /// Packets that waited when it came.
    pub waiting: u32,
}

/// A packet that a lane did not admit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: DropReason,
    /// Packets that waited when it came.
    pub waiting: u32,
}

/// Packets that the driver had counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// All.
    pub packets: u64,
    /// Those with payload.
    pub data_packets: u64,
    /// Their bytes at layer 3.
    pub bytes: Bytes,
    /// How long sending them took.
    pub busy: Duration,
}

impl Lane {
    /// The lane that is the same as a link of this configuration with a drop-tail queue; `None` if the link is damaged in
    /// any way, its rate varies or processing overlaps with sending.
    pub fn new(config: &LinkConfig, limit: Limit) -> Option<Lane> {
        let constant = matches!(config.rate, LinkRate::Constant(_));
        let overlaps = config.overlap && !config.processing.is_zero();
        if !constant || overlaps || !config.impairments.is_none() {
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
        Some(Lane {
            free_at: Instant::ZERO,
            usual: PacketSize::NONE,
            sizes: [nothing; 4],
            current: 0,
            next: 1,
            remainder: 0,
            rate: Constant::new(config),
            delay: config.latency().min(Duration::from_nanos(LONGEST_NS)),
            mtu: config.mtu,
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
    pub fn on_packet(&mut self, now: Instant, size: PacketSize) -> Result<Passage, Refusal> {
        if self.is_usual(size) || self.turn_to(now, size) {
            self.on_usual(now)
        } else {
            self.on_unusual(now, size)
        }
    }

    /// Whether a packet of this size may come by [`Lane::on_usual`]: it is of the current size, and none of another waits.
    #[inline(always)]
    pub fn is_usual(&self, size: PacketSize) -> bool {
        size == self.usual
    }

    /// Makes a size the usual one, if the lane is idle at `now` and packets of that size are admitted. False: it is another
    /// case, and nothing was done.
    #[inline]
    pub fn turn_to(&mut self, now: Instant, size: PacketSize) -> bool {
        if self.free_at >= now {
            return false;
        }
        // Nothing waits any more.
        self.alike = 0;
        if self.before > 0 {
            self.runs.clear();
            (self.before, self.bytes_before) = (0, 0);
        }
        if size != self.size().size && !self.find(size) && !self.change_size(now, size) {
            return false;
        }
        self.usual = size;
        self.since = ANY;
        true
    }

    /// [`Lane::on_packet`] of a packet that [`Lane::is_usual`].
    #[inline(always)]
    pub fn on_usual(&mut self, now: Instant) -> Result<Passage, Refusal> {
        if self.free_at < now {
            return Ok(self.pass_idle(now));
        }
        let waiting = self.alike_waiting(now);
        if waiting >= self.size().most {
            let reason = DropReason::Full;
            return Err(Refusal { reason, waiting });
        }
        let remainder = self.remainder;
        let passage = self.pass_after_others(now, waiting);
        if self.size().inverse == 0 && passage.start > now {
            if waiting == 0 {
                self.first_start = passage.start;
                self.first_remainder = remainder;
            }
            self.alike = waiting + 1;
        }
        Ok(passage)
    }

    /// [`Lane::on_packet`] of packets that come one after the other, as long as nothing is out of the ordinary: each
    /// [`Lane::is_usual`], finds room, waits only if sending takes whole nanoseconds, and has been sent before `inside`.
    /// Each is counted, and its time becomes that of its arrival. How many packets these were: of the next nothing is done.
    #[inline(always)]
    pub fn on_run<P: Passenger>(
        &mut self,
        run: &mut [P],
        inside: Instant,
        meter: &mut impl LaneMeter,
    ) -> usize {
        let inside = inside.as_nanos().min(LONGEST_NS);
        let done = match (self.size().inverse > 0, self.remainder > 0) {
            (true, false) if self.is_sure(run, inside) => self.on_run_of::<P, true>(run, inside, meter),
            (true, false) => self.on_run_of::<P, false>(run, inside, meter),
            (true, true) => 0,
            (false, _) => self.on_idle_run(run, inside),
        };
        self.size_mut().count += done as u64;
        done
    }

    /// Whether all these packets find room and have been sent before `inside`, if sending takes whole nanoseconds.
    #[inline(always)]
    fn is_sure<P: Passenger>(&self, run: &[P], inside: u64) -> bool {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return false;
        };
        let (free_at, count) = (self.free_at.as_nanos(), run.len() as u64);
        // No more than this is to be sent, and no more packets wait, when one of them comes.
        let backlog = free_at.saturating_sub(first.at().as_nanos());
        let sending = count.saturating_mul(self.size().time.whole);
        let waiting = times(backlog, self.size().inverse) + count;
        backlog.saturating_add(sending) < self.size().inverse
            && waiting <= u64::from(self.size().most)
            && waiting <= self.since
            && free_at.max(last.at().as_nanos()).saturating_add(sending) < inside
    }

    /// [`Lane::on_run`] where sending takes whole nanoseconds, perhaps of packets that [are sure](Lane::is_sure).
    #[inline(always)]
    fn on_run_of<P: Passenger, const SURE: bool>(
        &mut self,
        run: &mut [P],
        inside: u64,
        meter: &mut impl LaneMeter,
    ) -> usize {
        let Size {
            time: PacketTime { whole, .. },
            most,
            inverse,
            ..
        } = *self.size();
        let (usual, delay) = (self.usual, self.delay.as_nanos());
        let (mut free_at, since) = (self.free_at.as_nanos(), self.since);
        let mut done = 0;
        for passenger in run {
            let now = passenger.at().as_nanos();
            if passenger.size() != usual {
                break;
            }
            let finish = now.max(free_at) + whole;
            if !SURE && finish >= inside {
                break;
            }
            if free_at > now {
                // See `alike_waiting`.
                let left = free_at - now - 1;
                let mut waiting = times(left, inverse);
                if !SURE {
                    waiting = waiting.min(since + done as u64);
                    if left >= inverse || waiting >= u64::from(most) {
                        break;
                    }
                }
                meter.on_wait(Duration::from_nanos(free_at - now), waiting as u32);
            }
            free_at = finish;
            passenger.set_at(Instant::from_nanos(finish + delay));
            done += 1;
        }
        self.free_at = Instant::from_nanos(free_at);
        self.since += done as u64;
        done
    }

    /// [`Lane::on_run`] of packets that find the lane idle.
    #[inline(always)]
    fn on_idle_run<P: Passenger>(&mut self, run: &mut [P], inside: u64) -> usize {
        let (usual, whole) = (self.usual, self.size().time.whole);
        let (mut free_at, delay) = (self.free_at.as_nanos(), self.delay.as_nanos());
        let mut done = 0;
        for passenger in run {
            let now = passenger.at().as_nanos();
            let finish = now + whole;
            if passenger.size() != usual || free_at >= now || finish >= inside {
                break;
            }
            free_at = finish;
            passenger.set_at(Instant::from_nanos(finish + delay));
            done += 1;
        }
        if done > 0 {
            self.free_at = Instant::from_nanos(free_at);
            (self.since, self.remainder) = (ANY, self.size().time.fraction);
        }
        done
    }

    /// A packet of another size than the one before, or one that may find packets of several sizes waiting. The lane is busy,
    /// or never admits it.
    #[inline(never)]
    fn on_unusual(&mut self, now: Instant, size: PacketSize) -> Result<Passage, Refusal> {
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
        let passage = self.pass_after_others(now, waiting);
        if alike == 0 {
            self.first_start = passage.start;
            self.first_remainder = remainder;
        }
        self.alike = alike + 1;
        Ok(passage)
    }

    /// A packet finds the lane idle: it starts at once, on a whole nanosecond, and the fraction alone makes no carry.
    #[inline(always)]
    fn pass_idle(&mut self, now: Instant) -> Passage {
        self.since = ANY;
        self.remainder = self.size().time.fraction;
        let finish = now + Duration::from_nanos(self.size().time.whole);
        self.free_at = finish;
        Passage {
            start: now,
            finish,
            arrival: finish + self.delay,
            waiting: 0,
        }
    }

    /// A packet of the current size starts when those before it have been sent.
    #[inline(always)]
    fn pass_after_others(&mut self, now: Instant, waiting: u32) -> Passage {
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
        Passage {
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
    pub fn pass_over(&mut self, passage: Passage) {
        let took = passage.finish.since(passage.start).as_nanos();
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
        let found = self.sizes.iter().position(|known| known.size == size);
        if let Some(place) = found {
            self.current = place as u8;
        }
        found.is_some()
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

/// Tells the compiler that a branch is not the usual one, so that the usual one pays nothing for it.
#[cold]
#[inline(always)]
fn unusual() {}

#[cfg(test)]
mod tests {
    use super::super::{Link, LinkConfig, LinkObserver};
    use super::{Lane, LaneMeter, PacketSize, Passenger};
    use crate::flow::{FlowId, FlowTable};
    use crate::packet::{BufId, Packet, Segment};
    use crate::parameter::{Value, Values};
    use crate::queue::{Backlog, DropReason, DropTail, Limit, QueueDiscipline};
    use crate::rng::Rng;
    use crate::time::{Duration, Instant};
    use crate::units::{Bytes, Rate};
    use alloc::vec::Vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[derive(Default, Debug, PartialEq)]
    struct Log {
        backlogs: Vec<u32>,
        waits: Vec<(Instant, Duration)>,
        drops: Vec<(u32, DropReason)>,
        deliveries: Vec<(Instant, u32)>,
    }

    impl LinkObserver for Log {
        fn on_arrival(&mut self, _now: Instant, _packet: &Packet, waiting: Backlog) {
            self.backlogs.push(waiting.packets);
        }
        fn on_departure(&mut self, now: Instant, _packet: &Packet, waited: Duration) {
            self.waits.push((now, waited));
        }
        fn on_drop(&mut self, _now: Instant, packet: &Packet, reason: DropReason) {
            self.drops.push((packet.flow.0, reason));
        }
    }

    /// What passes, with what the meter of its lane heard of it.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Walker(Instant, PacketSize);

    impl Passenger for Walker {
        fn at(&self) -> Instant {
            self.0
        }
        fn set_at(&mut self, at: Instant) {
            self.0 = at;
        }
        fn size(&self) -> PacketSize {
            self.1
        }
    }

    #[derive(Default, Debug, PartialEq)]
    struct Waits(Vec<(Duration, u32)>);

    impl LaneMeter for Waits {
        fn on_wait(&mut self, waited: Duration, waiting: u32) {
            self.0.push((waited, waiting));
        }
    }

    #[test]
    fn packets_of_one_size_go_together() {
        for (rate, gap) in [
            (1_000_000_000, 100),
            (1_000_000_000, 9_000),
            (7_777_777_777, 2_000),
        ] {
            let config = LinkConfig::new(Rate(rate), Duration::ZERO);
            let mut lane = Lane::new(&config, Limit::Packets(20)).expect("a plain link");
            let segment = Segment {
                payload: 1000,
                overhead: 40,
                ..Segment::default()
            };
            let size = PacketSize::of(&segment);
            let at = |number: u64| Instant::from_nanos(gap * (1 + number));
            let mut run: Vec<Walker> = (0..9).map(|number| Walker(at(number), size)).collect();
            assert!(lane.turn_to(at(0), size));
            assert_eq!(
                lane.on_run(&mut run, Instant::FAR_FUTURE, &mut Waits::default()),
                9
            );
        }
    }

    proptest! {
        #[test]
        fn a_run_is_one_packet_after_the_other(seed in any::<u64>(), kind in 0_usize..12, end in 0_u64..2_000_000) {
            let mut rng = Rng::from_seed(seed);
            let rate = [1_000_000_000, 7_777_777_777, 8_000_000_000][kind % 3];
            let limit = [Limit::Bytes(Bytes(4000)), Limit::Packets(3), Limit::Packets(40), Limit::Unlimited][kind / 3];
            let mut config = LinkConfig::new(Rate(rate), Duration::from_nanos(rng.below(3000)));
            config.mtu = 1400;
            let mut single = Lane::new(&config, limit).expect("a plain link");
            let mut several = Lane::new(&config, limit).expect("a plain link");
            let (mut heard, mut expected) = (Waits::default(), Waits::default());
            let mut now = 0;
            let inside = Instant::from_nanos(if end % 3 == 0 { 1 << 60 } else { end });
            for _ in 0..60 {
                let (pace, mixed) = (rng.below(16_000), rng.below(3) == 0);
                let mut run: Vec<Walker> = (0..1 + rng.below(9)).map(|_| {
                    now += rng.below(pace + 1);
                    let payload = if mixed { [0, 500, 1000, 1348, 12, 24, 36][rng.below(7) as usize] } else { 1000 };
                    let segment = Segment { payload, overhead: 40, ..Segment::default() };
                    Walker(Instant::from_nanos(now), PacketSize::of(&segment))
                }).collect();
                let mut rest = &mut run[..];
                while !rest.is_empty() {
                    if rng.below(2) == 0 {
                        several.turn_to(rest[0].0, rest[0].1);
                    }
                    let before = rest.to_vec();
                    let done = several.on_run(rest, inside, &mut heard);
                    for (walker, came) in rest[..done].iter().zip(&before) {
                        let passage = single.on_packet(came.0, came.1).expect("there was room");
                        prop_assert!(passage.finish < inside);
                        single.count();
                        if passage.start > came.0 {
                            expected.on_wait(passage.start.since(came.0), passage.waiting);
                        }
                        prop_assert_eq!(walker.0, passage.arrival);
                    }
                    prop_assert_eq!(&rest[done..], &before[done..]);
                    rest = &mut rest[done..];
                    let Some((next, left)) = rest.split_first_mut() else { break };
                    // Not by a run, by both in the same way.
                    let (one, other) = (single.on_packet(next.0, next.1), several.on_packet(next.0, next.1));
                    prop_assert_eq!(one, other);
                    if one.is_ok() {
                        single.count();
                        several.count();
                    }
                    rest = left;
                }
            }
            prop_assert_eq!(heard, expected);
            prop_assert_eq!(single.counted(), several.counted());
        }

        #[test]
        fn a_lane_is_a_drop_tail_link(seed in any::<u64>(), bytes in any::<bool>(), delay in 0_u64..3000) {
            let mut rng = Rng::from_seed(seed);
            let limit = if bytes { Limit::Bytes(Bytes(4000)) } else { Limit::Packets(3) };
            // A nanosecond for each bit, or no whole number.
            let rate = [1_000_000_000, 7_777_777_777, 8_000_000_000][seed as usize % 3];
            let mut config = LinkConfig::new(Rate(rate), Duration::from_nanos(delay));
            config.mtu = 1400;
            config.framing = 18;
            let mut values = Values::defaults(DropTail::PARAMETERS);
            values.set("limit", Value::Limit(limit)).expect("a limit");
            let queue = DropTail::new(&values, &config.surroundings(1));
            prop_assert_eq!(queue.limit(), limit);
            prop_assert_eq!(queue.backlog(), Backlog::default());
            let mut link = Link::new(queue, &config, 1, "test");
            let mut lane = Lane::new(&config, limit).expect("a plain link");
            let (mut expected, mut log) = (Log::default(), Log::default());
            let flows = FlowTable::new();
            let mut now = 0;
            let mut busy = Duration::ZERO;
            for number in 0..300 {
                if rng.below(3) > 0 {
                    now += rng.below(3000);
                }
                let at = Instant::from_nanos(now);
                let payload = [0, 1000, 60 + rng.below(1350) as u32][rng.below(3) as usize];
                let segment = Segment { payload, overhead: 40, ..Segment::default() };
                let mut packet = Packet { enqueued_at: Instant::ZERO, flow: FlowId(number), buf: BufId::NONE, segment };
                while let Some(due) = link.poll_timeout() && due <= at {
                    while let Some(packet) = link.poll_delivery(due, &flows, &mut expected) {
                        expected.deliveries.push((due, packet.flow.0));
                    }
                }
                link.on_packet(at, packet, &flows, &mut expected);
                packet.enqueued_at = at;
                match lane.on_packet(at, PacketSize::of(&packet.segment)) {
                    Err(refusal) => {
                        log.backlogs.push(refusal.waiting);
                        log.drops.push((number, refusal.reason));
                    }
                    Ok(passage) => {
                        log.backlogs.push(passage.waiting);
                        busy += passage.finish.since(passage.start);
                        lane.count();
                        log.waits.push((passage.start, passage.start.since(packet.enqueued_at)));
                        log.deliveries.push((passage.arrival, number));
                    }
                }
            }
            while let Some(due) = link.poll_timeout() {
                while let Some(packet) = link.poll_delivery(due, &flows, &mut expected) {
                    expected.deliveries.push((due, packet.flow.0));
                }
            }
            prop_assert_eq!(log, expected);
            link.on_timeout(Instant::FAR_FUTURE, &flows, &mut ());
            let (counted, statistics) = (lane.counted(), link.statistics());
            prop_assert_eq!(
                (counted.packets, counted.data_packets, counted.bytes, counted.busy),
                (statistics.packets, statistics.data_packets, statistics.bytes, busy)
            );
        }
    }
}
