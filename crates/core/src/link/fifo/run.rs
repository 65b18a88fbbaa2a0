//! Packets that come one after the other and are alike: a FIFO link takes them in one loop, with its state in registers.

use super::{ANY, FifoLink, FifoPacket, PacketTime, Size, WaitMeter, times};
use crate::link::serialiser::LONGEST_NS;
use crate::time::{Duration, Instant};

impl FifoLink {
    /// When the last admitted packet will have been sent.
    #[inline(always)]
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Reads what the next packet will need, so that it comes from memory while others are worked on. The number means nothing.
    #[inline(always)]
    pub fn look_at(&self) -> u64 {
        self.free_at.as_nanos() ^ u64::from(self.size().len)
    }

    /// [`FifoLink::on_packet`] of packets that come one after the other, as long as nothing is out of the ordinary: each
    /// [`FifoLink::is_usual`], finds room, waits only if sending takes whole nanoseconds, and has been sent before `inside`.
    /// Each is counted, and its time becomes that of its arrival. How many packets these were: of the next nothing is done.
    #[inline(always)]
    pub fn on_run<P: FifoPacket>(
        &mut self,
        run: &mut [P],
        inside: Instant,
        meter: &mut impl WaitMeter,
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
    fn is_sure<P: FifoPacket>(&self, run: &[P], inside: u64) -> bool {
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

    /// [`FifoLink::on_run`] where sending takes whole nanoseconds, perhaps of packets that [are sure](FifoLink::is_sure).
    #[inline(always)]
    fn on_run_of<P: FifoPacket, const SURE: bool>(
        &mut self,
        run: &mut [P],
        inside: u64,
        meter: &mut impl WaitMeter,
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
        for packet in run {
            let now = packet.at().as_nanos();
            if packet.size() != usual {
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
            packet.set_at(Instant::from_nanos(finish + delay));
            done += 1;
        }
        self.free_at = Instant::from_nanos(free_at);
        self.since += done as u64;
        done
    }

    /// [`FifoLink::on_packet`] of packets that come one after the other and find the FIFO link idle: acknowledgments of several
    /// connections, with and without SACK blocks. Each is of a size that was seen lately and has been sent before `inside`. Each is
    /// counted, and its time becomes that of its arrival. How many packets these were: of the next nothing is done.
    #[inline(always)]
    pub fn on_idle_packets<P: FifoPacket>(&mut self, run: &mut [P], inside: Instant) -> usize {
        let inside = inside.as_nanos().min(LONGEST_NS);
        let (mut free_at, delay) = (self.free_at.as_nanos(), self.delay.as_nanos());
        let mut done = 0;
        for packet in run {
            let now = packet.at().as_nanos();
            let Some(place) = self.place_of(packet.size()) else {
                break;
            };
            let size = &mut self.sizes[usize::from(place % 4)];
            let finish = now + size.time.whole;
            if free_at >= now || finish >= inside {
                break;
            }
            size.count += 1;
            self.current = place;
            free_at = finish;
            packet.set_at(Instant::from_nanos(finish + delay));
            done += 1;
        }
        if done > 0 {
            self.forget_waiting();
            self.free_at = Instant::from_nanos(free_at);
            self.usual = self.size().size;
            (self.since, self.remainder) = (ANY, self.size().time.fraction);
        }
        done
    }

    /// The FIFO link is idle: nothing waits any more.
    #[inline(always)]
    pub(super) fn forget_waiting(&mut self) {
        self.alike = 0;
        if self.before > 0 {
            self.runs.clear();
            (self.before, self.bytes_before) = (0, 0);
        }
    }

    /// [`FifoLink::on_run`] of packets that find the FIFO link idle.
    #[inline(always)]
    fn on_idle_run<P: FifoPacket>(&mut self, run: &mut [P], inside: u64) -> usize {
        let (usual, whole) = (self.usual, self.size().time.whole);
        let (mut free_at, delay) = (self.free_at.as_nanos(), self.delay.as_nanos());
        let mut done = 0;
        for packet in run {
            let now = packet.at().as_nanos();
            let finish = now + whole;
            if packet.size() != usual || free_at >= now || finish >= inside {
                break;
            }
            free_at = finish;
            packet.set_at(Instant::from_nanos(finish + delay));
            done += 1;
        }
        if done > 0 {
            self.free_at = Instant::from_nanos(free_at);
            (self.since, self.remainder) = (ANY, self.size().time.fraction);
        }
        done
    }
}
