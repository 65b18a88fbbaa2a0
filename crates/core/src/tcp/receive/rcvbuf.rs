//! Linux's receive memory: how large a window the buffer stands for.
//!
//! The buffer counts what segments occupy, headers and rounding included; `ratio` says how much of it is data, as the
//! last segments showed. The window grows from what the buffer held at first, two segments or twice a segment at a time,
//! towards what is free. Everything is accepted in order while nothing waits to be read, even beyond the window.
//!
//! **Source.** Linux 6.18 `tcp_select_initial_window`, `tcp_init_buffer_space`, `tcp_measure_rcv_mss`, `tcp_grow_window`,
//! `__tcp_select_window`, `tcp_set_window_clamp`; what a segment occupies is that of a packet written to a TUN device.
//! **Deviations.** The buffer stays what it is (`tcp_rcv_space_adjust` is left out), nothing is collapsed when it is full.

use alloc::collections::VecDeque;
use serde::Serialize;

/// Receive memory of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReceiveMemory {
    /// `sk_rcvbuf`, bytes.
    pub buffer: u64,
    /// What tuning may raise it to (`tcp_rmem`, third).
    pub most: u64,
    /// Set by `SO_RCVBUF`: it also bounds the window scale.
    pub locked: bool,
    /// Segments that the first window holds at most (`initrwnd` of a route); `None`: what the buffer holds.
    pub first_segments: Option<u32>,
}

/// State of it.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Room {
    buffer: u64,
    /// 256ths of the memory that are data.
    ratio: u64,
    /// Largest window (`window_clamp`).
    clamp: u64,
    /// Window offered at most for now (`rcv_ssthresh`).
    ssthresh: u64,
    /// Window offered last (`rcv_wnd`).
    offered: u64,
    /// Memory occupied.
    held: u64,
    /// Segments that wait to be read: where they end, and what they occupy.
    waiting: VecDeque<(u64, u64)>,
    /// Bytes that still fit behind the last of them.
    tail_room: u64,
    most: u64,
    mss: u64,
    scale: u8,
    /// A segment came when the buffer was full.
    overflowed: bool,
}

impl Room {
    /// Before the connection is established. `segment` is the payload of a full segment, `mss` what it would be without options.
    pub(in crate::tcp) fn new(memory: ReceiveMemory, mss: u32, segment: u32, scale: u8) -> Room {
        let full = memory.buffer * FIRST_RATIO / 256;
        let clamp = if memory.locked { full } else { 65_535 << 14 };
        let space = full.min(clamp);
        let segment = u64::from(segment.max(1));
        let window = if space > segment {
            space / segment * segment
        } else {
            space
        };
        let window = memory
            .first_segments
            .map_or(window, |most| window.min(u64::from(most) * segment));
        let clamp = clamp.min(65_535 << scale);
        let mss = u64::from(mss);
        let mut room = Room {
            buffer: memory.buffer,
            ratio: FIRST_RATIO,
            clamp,
            ssthresh: window,
            offered: window,
            held: 0,
            waiting: VecDeque::new(),
            tail_room: 0,
            most: memory.most,
            mss,
            scale,
            overflowed: false,
        };
        // `tcp_init_buffer_space`: one segment is kept back.
        if room.clamp >= full {
            room.clamp = full;
        }
        if room.clamp > 2 * mss && room.clamp + mss > full {
            room.clamp = (2 * mss).max(full.saturating_sub(mss));
        }
        room.ssthresh = room.ssthresh.min(room.clamp);
        room
    }

    /// The window of the SYN or its answer.
    pub(in crate::tcp) fn first_window(&self) -> u64 {
        self.offered
    }

    fn window_of(&self, space: u64) -> u64 {
        space * self.ratio / 256
    }

    fn free(&self) -> u64 {
        self.window_of(self.buffer.saturating_sub(self.held))
    }

    /// A segment up to `end` is kept.
    pub(in crate::tcp) fn keep(&mut self, end: u64, payload: u32, header: u32) {
        let payload = u64::from(payload);
        if payload <= self.tail_room
            && let Some(last) = self.waiting.back_mut()
            && last.0 + payload == end
        {
            last.0 = end;
            self.tail_room -= payload;
            return;
        }
        let packet = payload + u64::from(header);
        let (size, tail) = occupied(packet);
        self.held += size;
        self.tail_room = tail;
        let at = self.waiting.partition_point(|&(other, _)| other <= end);
        self.waiting.insert(at, (end, size));
    }

    /// Everything up to `read` was read.
    pub(in crate::tcp) fn release(&mut self, read: u64) {
        while let Some(&(end, size)) = self.waiting.front()
            && end <= read
        {
            self.held -= size;
            self.waiting.pop_front();
        }
        if self.waiting.is_empty() {
            self.tail_room = 0;
        }
    }

    /// A segment of a new size shows how much of the memory is data.
    pub(in crate::tcp) fn measure(&mut self, payload: u32, header: u32) {
        let (size, _) = occupied(u64::from(payload + header));
        let ratio = (u64::from(payload) * 256 / size).clamp(1, 255);
        if ratio == self.ratio {
            return;
        }
        self.ratio = ratio;
        let clamp = self.window_of(self.buffer).max(1152); // SOCK_MIN_RCVBUF / 2
        if clamp < self.clamp {
            self.ssthresh = self.ssthresh.min(clamp);
        } else if clamp > self.clamp {
            self.ssthresh = self.ssthresh.max(self.offered.min(clamp));
        }
        self.clamp = clamp;
    }

    /// The window may grow after a segment. True if it did.
    pub(in crate::tcp) fn grow(&mut self, payload: u32, header: u32, full: u32) -> bool {
        let limit = self.clamp.min(self.free());
        if payload < 128 || limit <= self.ssthresh {
            return false;
        }
        let payload = u64::from(payload);
        let (size, _) = occupied(payload + u64::from(header));
        let mut step = 0;
        if self.window_of(size) <= payload {
            step = 2 * self.mss;
        } else {
            // `__tcp_grow_window`: small segments let it grow while it is small.
            let mut size = self.window_of(size) / 2;
            let mut window = self.window_of(self.most) / 2;
            while self.ssthresh <= window && step == 0 {
                if size <= payload {
                    step = 2 * u64::from(full);
                }
                size /= 2;
                window /= 2;
            }
        }
        if step == 0 {
            return false;
        }
        self.ssthresh += step.max(2 * payload).min(limit - self.ssthresh);
        true
    }

    /// The window there is room for now.
    pub(in crate::tcp) fn select(&self, full: u32) -> u64 {
        let scale = self.scale;
        let allowed = self.window_of(self.buffer);
        let whole = allowed.min(self.clamp);
        let segment = u64::from(full).min(whole);
        let mut free = self.free();
        if free < whole / 2 {
            free &= !((1_u64 << scale) - 1);
            if free < allowed / 16 || free < segment {
                return 0;
            }
        }
        free = free.min(self.ssthresh);
        if scale > 0 {
            return free.next_multiple_of(1 << scale);
        }
        if self.offered <= free.saturating_sub(segment) || self.offered > free {
            free / segment.max(1) * segment
        } else if segment == whole && free > self.offered + whole / 2 {
            free
        } else {
            self.offered
        }
    }

    /// Whether the window did not shrink since it was last offered.
    pub(in crate::tcp) fn keeps_up(&self, full: u32) -> bool {
        self.select(full) >= self.offered
    }

    /// Whether less than half is free: no more quick acknowledgments.
    pub(in crate::tcp) fn is_tight(&self) -> bool {
        self.free() < self.window_of(self.buffer).min(self.clamp) / 2
    }

    /// Whether more is occupied than the buffer allows: the next acknowledgment shuts the window.
    pub(in crate::tcp) fn overflows(&mut self) -> bool {
        self.overflowed = self.held > self.buffer;
        self.overflowed
    }

    /// Decides on a window to offer, where `current` is left of the last.
    pub(in crate::tcp) fn offer(&mut self, current: u64, full: u32) -> u64 {
        if core::mem::take(&mut self.overflowed) {
            self.offered = 0;
            return 0;
        }
        let mut window = self.select(full);
        if window < current {
            window = current.next_multiple_of(1 << self.scale);
        }
        self.offered = window;
        window
    }

    /// Whether a reader that made room is to say so, where `current` is left of the window.
    pub(in crate::tcp) fn worth_telling(&self, current: u64, full: u32) -> bool {
        let window = self.select(full);
        2 * current <= self.clamp && window > 0 && window >= 2 * current
    }
}

/// What a packet occupies, and how many bytes would fit behind it: the head is a power of two with 64 bytes before and 320
/// after the packet, what exceeds a page is in pages, the descriptor has 256.
fn occupied(packet: u64) -> (u64, u64) {
    if packet + 64 < 4096 {
        let needed = (packet + 64).next_multiple_of(64) + 320;
        let head = if needed <= 704 {
            704
        } else {
            needed.next_power_of_two()
        };
        return (256 + head, (head - 320).saturating_sub(packet + 64));
    }
    (256 + 4096 + (packet - 3712).next_multiple_of(4096), 0)
}

/// `TCP_DEFAULT_SCALING_RATIO`: half.
const FIRST_RATIO: u64 = 128;

#[cfg(test)]
mod tests {
    use super::{ReceiveMemory, Room};

    /// What Linux 6.18 offered when these segments came and the first two were read (`rmem` 540,000, scale 8).
    #[test]
    fn the_window_is_what_linux_offers() {
        let memory = ReceiveMemory {
            buffer: 540_000,
            most: 15_728_640,
            locked: false,
            first_segments: None,
        };
        let mut room = Room::new(memory, 1460, 1460, 8);
        let mut current = room.first_window();
        let mut offered = std::vec::Vec::new();
        let mut end = 1;
        for payload in [1000, 1000, 1000, 47_000, 50_000] {
            end += u64::from(payload);
            if end == 3001 {
                room.release(2001);
            }
            room.keep(end, payload, 40);
            room.measure(payload, 40);
            room.grow(payload, 40, payload.min(1460));
            current = room.offer(current - u64::from(payload), payload.min(1460));
            offered.push(current >> 8);
        }
        assert_eq!(offered, [1046, 1043, 1040, 1408, 1586]);
    }

    #[test]
    fn a_route_bounds_the_first_window_which_grows_then() {
        let memory = ReceiveMemory {
            buffer: 131_072,
            most: 6_291_456,
            locked: false,
            first_segments: Some(20),
        };
        let mut room = Room::new(memory, 1460, 1460, 0);
        assert_eq!(room.first_window(), 20 * 1460);
        room.keep(1001, 1000, 40);
        room.measure(1000, 40);
        room.grow(1000, 40, 1000);
        room.release(1001);
        let offered = room.offer(20 * 1460 - 1000, 1000);
        assert!(offered > 20 * 1460, "{offered}");
    }
    extern crate std;
}
