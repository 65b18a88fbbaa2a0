//! How much a send buffer takes: Linux counts the memory that data occupies, not its bytes.
//!
//! Data is written into buffers of up to `goal` bytes; each costs its bytes and a fixed overhead. A buffer may be begun
//! while less than `buffer` is occupied, so a write overshoots by up to one of them; a buffer not yet sent is filled
//! without asking. A buffer's memory is freed when its last byte is acknowledged, its bytes as they are.
//!
//! **Source.** `tcp(7)` (`tcp_wmem`); Linux `tcp_sendmsg_locked`, `sk_stream_memory_free`, `tcp_sndbuf_expand`,
//! `sk_stream_is_writeable`. **Deviations.** Segmentation on sending, which splits buffers and adds overhead, is left out.

use alloc::collections::VecDeque;

/// Memory of a buffer beside its data: what Linux 6.18 on 64 bits shows when writes fill buffers of known size.
pub(super) const OVERHEAD: u64 = 768;

/// Memory of a socket's unacknowledged data.
#[derive(Debug, Default)]
pub(super) struct SendMemory {
    /// `sk_sndbuf`.
    pub(super) buffer: u64,
    /// Stream offsets at which buffers end.
    ends: VecDeque<u64>,
    /// Where the last buffer begins.
    last_start: u64,
}

impl SendMemory {
    /// Memory occupied, after `acked` of `written` bytes were acknowledged.
    pub(super) fn occupied(&mut self, acked: u64, written: u64) -> u64 {
        while self.ends.front().is_some_and(|&end| end <= acked) {
            self.ends.pop_front();
        }
        written - acked.min(written) + OVERHEAD * self.ends.len() as u64
    }

    /// How many of `wanted` more bytes fit; they are taken. `sent` is how far the stream has left.
    pub(super) fn take(&mut self, wanted: u64, goal: u64, acked: u64, sent: u64, written: u64) -> u64 {
        let mut at = written;
        let end = written.saturating_add(wanted);
        if let Some(last) = self.ends.back_mut()
            && *last > sent
            && *last == at
        {
            let room = (self.last_start + goal).saturating_sub(at);
            at += room.min(end - at);
            *last = at;
        }
        while at < end && self.occupied(acked, at) < self.buffer {
            self.last_start = at;
            at += goal.max(1).min(end - at);
            self.ends.push_back(at);
        }
        at - written
    }

    /// `sk_stream_is_writeable`: a third of the memory is free.
    pub(super) fn writable(&mut self, acked: u64, written: u64) -> bool {
        let occupied = self.occupied(acked, written);
        self.buffer.saturating_sub(occupied) >= occupied / 2 && occupied < self.buffer
    }

    /// Grows with the window (`tcp_sndbuf_expand`): twice the memory of the segments it allows.
    pub(super) fn expand(&mut self, window_segments: u64, mss: u64, max: u64) {
        let per_segment = (mss + 320 + 320).next_power_of_two() + 256;
        let wanted = 2 * window_segments.max(10) * per_segment;
        if self.buffer < wanted {
            self.buffer = wanted.min(max).max(self.buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OVERHEAD, SendMemory};

    #[test]
    fn a_write_overshoots_by_one_buffer() {
        let mut memory = SendMemory {
            buffer: 20_000,
            ..SendMemory::default()
        };
        assert_eq!(memory.take(100_000, 10_000, 0, 0, 0), 20_000);
        assert_eq!(memory.occupied(0, 20_000), 20_000 + 2 * OVERHEAD);
        assert!(!memory.writable(0, 20_000));
        assert_eq!(memory.take(1, 10_000, 0, 20_000, 20_000), 0);
        assert_eq!(memory.occupied(10_000, 20_000), 10_000 + OVERHEAD);
        assert!(memory.writable(10_000, 20_000));
        assert_eq!(memory.occupied(20_000, 20_000), 0);
    }

    #[test]
    fn a_full_buffer_holds_what_linux_holds() {
        // SO_SNDBUF as read back, and what the first write of a million bytes took on Linux 6.18 (loopback, MSS 988, a
        // window of four segments: buffers of two).
        for (buffer, taken) in [
            (4608, 3952),
            (10_000, 7904),
            (20_000, 15_808),
            (40_000, 29_640),
            (100_000, 73_112),
            (200_000, 144_248),
        ] {
            let mut memory = SendMemory {
                buffer,
                ..SendMemory::default()
            };
            assert_eq!(memory.take(1_000_000, 1976, 0, 0, 0), taken, "{buffer}");
        }
    }

    #[test]
    fn an_unsent_buffer_is_filled_without_asking() {
        let mut memory = SendMemory {
            buffer: 1,
            ..SendMemory::default()
        };
        assert_eq!(memory.take(100, 1000, 0, 0, 0), 100);
        assert_eq!(memory.take(2000, 1000, 0, 0, 100), 900);
        assert_eq!(memory.take(2000, 1000, 0, 1000, 1000), 0);
    }
}
