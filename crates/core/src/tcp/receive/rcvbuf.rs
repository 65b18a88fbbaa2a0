//! Linux's receive memory: how large a window the buffer stands for.
//!
//! The buffer counts what segments occupy, headers and rounding included; `ratio` says how much of it is data, as the
//! last segments showed. The window grows from what the buffer held at first, two segments or twice a segment at a time,
//! towards what is free. Everything is accepted in order while nothing waits to be read, even beyond the window. A buffer
//! that is not locked grows with what is read in a round trip ([`RightSizing`]), or when more comes than it holds.
//!
//! **Source.** Linux 6.18 `tcp_select_initial_window`, `tcp_init_buffer_space`, `tcp_measure_rcv_mss`, `tcp_grow_window`,
//! `__tcp_select_window`, `tcp_set_window_clamp`, `tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`, `tcp_clamp_window`; what a segment
//! occupies is that of a packet written to a TUN device.
//! **Deviations.** Nothing is collapsed when the buffer is full, and all connections together may use any amount of memory.

use crate::tcp::receive::right_sizing::RightSizing;
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use serde::{Deserialize, Serialize};

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

impl ReceiveMemory {
    /// What sockets of Linux 6.18 have unless somebody changed `tcp_rmem`.
    pub const LINUX: ReceiveMemory = ReceiveMemory {
        buffer: 131_072,
        most: 33_554_432,
        locked: false,
        first_segments: None,
    };

    /// 256ths of the memory that are data where segments have so many bytes of `payload` and `header`.
    pub(in crate::tcp) fn share(payload: u32, header: u32) -> u64 {
        let (size, _) = occupied(u64::from(payload + header));
        (u64::from(payload) * 256 / size).clamp(1, 255)
    }
}

/// State of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Room {
    buffer: u64,
    /// The buffer stays what it is.
    locked: bool,
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
    /// Segments that wait to be read, but for the newest: where they end, and what they occupy.
    waiting: VecDeque<(u64, u64)>,
    /// The segment that came last, if it waits to be read: where it ends, and what it occupies.
    newest: (u64, u64),
    /// Payload that still fits into the memory of the newest segment.
    tail_room: u64,
    most: u64,
    mss: u64,
    scale: u8,
    /// A segment came when the buffer was full.
    overflowed: bool,
    /// The window of the next acknowledgment is the one offered: it was decided on before the application read.
    pub(in crate::tcp) decided: bool,
    sizing: RightSizing,
    /// What a packet of the last size occupies.
    #[serde(skip)]
    packet: Occupied,
    /// What follows from the memory occupied.
    #[serde(skip)]
    view: View,
}

/// Most packets have the size of the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Occupied {
    /// Bytes of the packet, headers included.
    packet: u64,
    /// Memory for it; zero: no packet was seen.
    size: u64,
    /// Bytes that fit behind it.
    tail: u64,
}

/// What follows from the memory occupied as long as nothing else changes: mostly a segment finds as much occupied as the one
/// before it did.
#[derive(Clone, Copy, Debug)]
struct View {
    /// Memory occupied; `u64::MAX`: something else has changed.
    held: u64,
    /// Payload of a full segment.
    full: u32,
    /// Less than half is free.
    tight: bool,
    /// The window may grow up to this.
    limit: u64,
    /// The window there is room for.
    window: u64,
    /// Size of a packet that leaves the window as it is if its payload is `full` and no other memory is occupied; 0: none does.
    plain: u64,
}

impl Default for View {
    fn default() -> View {
        View {
            held: u64::MAX,
            full: 0,
            tight: false,
            limit: 0,
            window: 0,
            plain: 0,
        }
    }
}

impl Room {
    /// Before the connection is established. `segment` is the payload of a full segment as far as it is known when the first
    /// window is chosen, `mss` that of a segment of the connection.
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
            locked: memory.locked,
            ratio: FIRST_RATIO,
            clamp,
            ssthresh: window,
            offered: window,
            held: 0,
            waiting: VecDeque::new(),
            newest: (0, 0),
            tail_room: 0,
            most: memory.most,
            mss,
            scale,
            overflowed: false,
            decided: false,
            sizing: RightSizing::new(0),
            packet: Occupied::default(),
            view: View::default(),
        };
        // `tcp_init_buffer_space`: one segment is kept back.
        if room.clamp >= full {
            room.clamp = full;
        }
        if room.clamp > 2 * mss && room.clamp + mss > full {
            room.clamp = (2 * mss).max(full.saturating_sub(mss));
        }
        room.ssthresh = room.ssthresh.min(room.clamp);
        room.sizing = RightSizing::new(room.ssthresh.min(room.offered).min(10 * mss));
        room
    }

    /// The connection is established.
    pub(in crate::tcp) fn start(&mut self, now: Instant, read: u64) {
        self.sizing.start(now, read);
    }

    /// The round-trip time as the receiver sees it.
    pub(in crate::tcp) fn rtt(&self) -> Option<Duration> {
        self.sizing.rtt()
    }

    /// A segment echoes a timestamp: see [`RightSizing::on_echo`].
    #[inline(always)]
    pub(in crate::tcp) fn on_echo(
        &mut self,
        echo: u32,
        elapsed: impl FnOnce() -> u32,
        full: bool,
        all_read: bool,
    ) {
        self.sizing.on_echo(echo, elapsed, full, all_read);
    }

    /// Data came in order up to `rcv_nxt`.
    #[inline]
    pub(in crate::tcp) fn on_data(&mut self, now: Instant, rcv_nxt: u64) {
        self.sizing.on_data(now, rcv_nxt, rcv_nxt + self.offered);
    }

    /// The application has read up to `read`, of what came in order up to `rcv_nxt`; `beyond` bytes span what came out of order.
    ///
    /// The application reads one segment after another. A round trip that is over counts as over at the first of them.
    /// `PLAIN`: nothing is held but what just came.
    #[inline(always)]
    pub(in crate::tcp) fn on_read<const PLAIN: bool>(
        &mut self,
        read: u64,
        rcv_nxt: u64,
        beyond: impl FnOnce() -> u64,
    ) {
        let mut first = read;
        if !PLAIN {
            if self.newest.1 > 0 {
                first = first.min(self.newest.0);
            }
            if !self.waiting.is_empty() {
                first = self.first_waiting(first);
            }
            self.release(read);
        }
        if let Some(window) = self.sizing.on_read(first, rcv_nxt) {
            self.enlarge(window + beyond());
        }
    }

    #[cold]
    fn first_waiting(&self, first: u64) -> u64 {
        self.waiting.front().map_or(first, |&(end, _)| first.min(end))
    }

    /// Data came beyond a hole, which with it spans `beyond` bytes.
    pub(in crate::tcp) fn on_disorder(&mut self, beyond: u64) {
        self.enlarge(self.sizing.usual() + beyond);
    }

    /// There is to be room for a window of so many bytes (`tcp_rcvbuf_grow`).
    #[cold]
    fn enlarge(&mut self, window: u64) {
        let buffer = (window * 256 / self.ratio).min(self.most);
        if !self.locked && buffer > self.buffer {
            self.buffer = buffer;
            self.clamp = self.window_of(buffer);
            self.look_anew();
        }
    }

    /// Bytes in memory that it takes.
    pub(in crate::tcp) fn size(&self) -> usize {
        size_of::<Room>() + self.waiting.capacity() * size_of::<(u64, u64)>()
    }

    /// Whether nothing waits to be read.
    pub(in crate::tcp) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.newest.1 == 0
    }

    /// The window of the SYN or its answer.
    pub(in crate::tcp) fn first_window(&self) -> u64 {
        self.offered
    }

    /// The window offered last (`rcv_wnd`).
    #[inline]
    pub(in crate::tcp) fn offered(&self) -> u64 {
        self.offered
    }

    fn window_of(&self, space: u64) -> u64 {
        space * self.ratio / 256
    }

    fn free(&self) -> u64 {
        self.window_of(self.buffer.saturating_sub(self.held))
    }

    /// What follows from the memory occupied.
    #[inline(always)]
    fn view(&mut self, full: u32) -> &View {
        if self.view.held != self.held || self.view.full != full {
            self.look(full);
        }
        &self.view
    }

    #[inline(never)]
    fn look(&mut self, full: u32) {
        let free = self.free();
        let tight = free < self.window_of(self.buffer).min(self.clamp) / 2;
        let (limit, window) = (self.clamp.min(free), self.select(full));
        let alone = self.held == self.packet.size && self.newest.1 == self.held && self.waiting.is_empty();
        let idle = full >= LEAST_GROWTH && limit <= self.ssthresh && window >= self.offered;
        let plain = alone && idle && self.scale > 0 && !(tight | self.overflowed | self.overflows());
        self.view = View {
            held: self.held,
            full,
            tight,
            limit,
            window,
            plain: if plain { self.packet.packet } else { 0 },
        };
    }

    /// Whether a packet with so much `payload` and `header`, which is read at once, changes nothing here but what is known of the
    /// sender's rate: the buffer does not overflow, and the window does not grow, shrink or become tight.
    #[inline(always)]
    pub(in crate::tcp) fn is_plain(&self, payload: u32, header: u32) -> bool {
        let plain = self.held == 0
            && self.view.plain == u64::from(payload) + u64::from(header)
            && self.view.full == payload;
        debug_assert!(
            !plain || self.is_seen_plain(payload, header),
            "what is kept is still so"
        );
        plain
    }

    /// Computes anew what the cached answer to `is_plain` says; for assertions.
    fn is_seen_plain(&self, payload: u32, header: u32) -> bool {
        let mut after = self.clone();
        after.keep(u64::from(payload), payload, header);
        after.look(payload);
        (after.view.held, after.view.window) == (self.view.held, self.view.window) && after.view.plain > 0
    }

    /// Something else has changed than the memory occupied.
    #[inline(always)]
    fn look_anew(&mut self) {
        self.view.held = u64::MAX;
        self.view.plain = 0;
    }

    /// A segment up to `end` is kept.
    #[inline(always)]
    pub(in crate::tcp) fn keep(&mut self, end: u64, payload: u32, header: u32) {
        let payload = u64::from(payload);
        if payload <= self.tail_room && self.newest.1 > 0 && self.newest.0 + payload == end {
            self.newest.0 = end;
            self.tail_room -= payload;
            return;
        }
        let packet = payload + u64::from(header);
        if self.packet.packet != packet || self.packet.size == 0 {
            let (size, tail) = occupied(packet);
            self.packet = Occupied { packet, size, tail };
        }
        let Occupied { size, tail, .. } = self.packet;
        self.held += size;
        self.tail_room = tail;
        let before = core::mem::replace(&mut self.newest, (end, size));
        if before.1 > 0 {
            self.queue(before);
        }
    }

    /// A segment is no longer the newest.
    #[cold]
    fn queue(&mut self, segment: (u64, u64)) {
        let at = self.waiting.partition_point(|&(other, _)| other <= segment.0);
        self.waiting.insert(at, segment);
    }

    /// Everything up to `read` was read.
    #[inline(always)]
    pub(in crate::tcp) fn release(&mut self, read: u64) {
        if !self.waiting.is_empty() {
            self.release_waiting(read);
        }
        if self.newest.0 <= read {
            self.held -= self.newest.1;
            self.newest.1 = 0;
            if self.waiting.is_empty() {
                self.tail_room = 0;
            }
        }
    }

    #[cold]
    fn release_waiting(&mut self, read: u64) {
        while let Some(&(end, size)) = self.waiting.front()
            && end <= read
        {
            self.held -= size;
            self.waiting.pop_front();
        }
    }

    /// A segment of a new size shows how much of the memory is data.
    pub(in crate::tcp) fn measure(&mut self, payload: u32, header: u32) {
        let ratio = ReceiveMemory::share(payload, header);
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
        self.sizing.bound(clamp);
        self.look_anew();
    }

    /// The window may grow after a segment that was kept. True if it did.
    #[inline(always)]
    pub(in crate::tcp) fn grow(&mut self, payload: u32, header: u32, full: u32) -> bool {
        let limit = self.view(full).limit;
        payload >= LEAST_GROWTH && limit > self.ssthresh && self.grow_up_to(limit, payload, header, full)
    }

    /// Lets the window grow after a segment beyond a hole, which is not counted as kept and may be small.
    pub(in crate::tcp) fn grow_beyond(&mut self, payload: u32, header: u32, full: u32) -> bool {
        let (size, _) = occupied(u64::from(payload + header));
        let held = self.held.saturating_sub(size);
        let limit = self.clamp.min(self.window_of(self.buffer.saturating_sub(held)));
        limit > self.ssthresh && self.grow_up_to(limit, payload, header, full)
    }

    #[inline(never)]
    fn grow_up_to(&mut self, limit: u64, payload: u32, header: u32, full: u32) -> bool {
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
        self.look_anew();
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

    /// Whether the window did not shrink since it was last offered, and whether less than half is free: no more quick
    /// acknowledgments.
    #[inline(always)]
    pub(in crate::tcp) fn keeps_up(&mut self, full: u32) -> (bool, bool) {
        let View { window, tight, .. } = *self.view(full);
        (window >= self.offered, tight)
    }

    /// Whether more is occupied than the buffer allows.
    #[inline]
    pub(in crate::tcp) fn overflows(&self) -> bool {
        self.held > self.buffer
    }

    /// Whether no more data beyond a hole is kept: the buffer is as large as it may be, and full.
    #[cold]
    pub(in crate::tcp) fn is_full(&self) -> bool {
        self.held > self.buffer.max(self.most)
    }

    /// More came than the buffer allows. One that is not locked grows (`tcp_clamp_window`); true if the next acknowledgment is
    /// to leave now, and to shut the window.
    #[cold]
    pub(in crate::tcp) fn stretch(&mut self, in_order: bool) -> bool {
        if !self.locked {
            self.buffer = self.buffer.max(self.held.min(self.most));
        }
        self.look_anew();
        self.overflowed |= in_order && self.overflows();
        self.overflowed
    }

    /// Whether nothing has changed since a window was offered of which all, `current`, is left: it is offered again.
    #[inline(always)]
    pub(in crate::tcp) fn is_settled(&self, current: u64, full: u32) -> bool {
        let View { held, window, .. } = self.view;
        self.offered == current
            && window == current
            && held == self.held
            && self.view.full == full
            && !(self.view.tight | self.overflowed)
    }

    /// Decides on a window to offer, where `current` is left of the last, and says whether less than half is free: no more
    /// quick acknowledgments. `PLAIN`: a packet [is plain](Room::is_plain) that just came.
    #[inline(always)]
    pub(in crate::tcp) fn offer<const PLAIN: bool>(&mut self, current: u64, full: u32) -> (u64, bool) {
        let View {
            mut window, tight, ..
        } = if PLAIN { self.view } else { *self.view(full) };
        if !PLAIN && core::mem::take(&mut self.overflowed) {
            window = 0;
        } else if window < current {
            window = current.next_multiple_of(1 << self.scale);
            self.look_anew();
        }
        self.offered = window;
        if self.scale == 0 {
            self.look_anew(); // without scaling the next window follows from this one
        }
        (window, tight)
    }

    /// Whether reading freed enough to send a window update, where `current` is left of the window.
    pub(in crate::tcp) fn worth_update(&self, current: u64, full: u32) -> bool {
        let window = self.select(full);
        2 * current <= self.clamp && window > 0 && window >= 2 * current
    }
}

/// Payload of the smallest segment after which the window grows.
const LEAST_GROWTH: u32 = 128;

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
            (current, _) = room.offer::<false>(current - u64::from(payload), payload.min(1460));
            offered.push(current >> 8);
        }
        assert_eq!(offered, [1046, 1043, 1040, 1408, 1586]);
    }

    /// A segment of one byte occupies 960 bytes (256 and 704), and what follows it fits behind; none of these follows another.
    #[test]
    fn scattered_bytes_fill_the_largest_buffer() {
        let memory = ReceiveMemory {
            most: 1_000_000,
            ..ReceiveMemory::LINUX
        };
        let mut room = Room::new(memory, 1448, 1448, 7);
        for number in 0..1041 {
            room.keep(2 * number + 10, 1, 52);
            assert!(!room.is_full());
            if room.overflows() {
                assert!(!room.stretch(false), "only what is in order shuts the window");
            }
        }
        room.keep(5000, 1, 52); // 1042 * 960 = 1,000,320
        assert!(room.is_full());
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
        let (offered, _) = room.offer::<false>(20 * 1460 - 1000, 1000);
        assert!(offered > 20 * 1460, "{offered}");
    }
    extern crate std;
}
