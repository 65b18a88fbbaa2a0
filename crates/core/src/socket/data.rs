//! Reading and writing: `recv`, `send` and what they are called otherwise.
//!
//! **Source.** `recv(2)`, `send(2)`, `tcp(7)`; the order of checks is Linux's (`tcp_recvmsg`, `tcp_sendmsg`).

use super::{Body, Called, Errno, Fd, Outcome, Phase, Stack};
use crate::tcp::{State, WriteFlags};
use crate::time::Instant;
use crate::units::Bytes;
use core::net::SocketAddr;

/// Flags of `recv(2)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecvFlags {
    /// `MSG_PEEK`: leave the data.
    pub peek: bool,
    /// `MSG_DONTWAIT`.
    pub dont_wait: bool,
    /// `MSG_WAITALL`: return when everything asked for is there.
    pub wait_all: bool,
    /// `MSG_TRUNC`: throw the data away.
    pub truncate: bool,
    /// `MSG_OOB`: the urgent byte.
    pub out_of_band: bool,
}

/// Flags of `send(2)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SendFlags {
    /// `MSG_MORE`.
    pub more: bool,
    /// `MSG_DONTWAIT`.
    pub dont_wait: bool,
    /// `MSG_OOB`: the last byte is urgent.
    pub out_of_band: bool,
    /// `MSG_FASTOPEN`: connect and send at once.
    pub fast_open: bool,
    /// `MSG_NOSIGNAL`: no effect, there are no signals.
    pub no_signal: bool,
}

impl RecvFlags {
    /// From Linux's `MSG_` bits; `None` if one is unknown here.
    pub const fn from_bits(bits: i32) -> Option<RecvFlags> {
        if bits & !(0x1 | 0x2 | 0x20 | 0x40 | 0x100 | 0x4000) != 0 {
            return None;
        }
        Some(RecvFlags {
            out_of_band: bits & 0x1 != 0,
            peek: bits & 0x2 != 0,
            truncate: bits & 0x20 != 0,
            dont_wait: bits & 0x40 != 0,
            wait_all: bits & 0x100 != 0,
        })
    }
}

impl SendFlags {
    /// From Linux's `MSG_` bits (`MSG_ZEROCOPY` and `MSG_EOR` mean nothing here); `None` if one is unknown here.
    pub const fn from_bits(bits: i32) -> Option<SendFlags> {
        if bits & !(0x1 | 0x40 | 0x80 | 0x4000 | 0x8000 | 0x400_0000 | 0x2000_0000) != 0 {
            return None;
        }
        Some(SendFlags {
            out_of_band: bits & 0x1 != 0,
            dont_wait: bits & 0x40 != 0,
            no_signal: bits & 0x4000 != 0,
            more: bits & 0x8000 != 0,
            fast_open: bits & 0x2000_0000 != 0,
        })
    }
}

/// What a read gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Stream offset of the first byte.
    pub start: u64,
    /// How many; 0 is the end of the stream.
    pub len: u64,
}

/// What a write took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Stream offset of the first byte.
    pub start: u64,
    /// How many.
    pub len: u64,
}

impl Stack {
    /// `read(2)`.
    pub fn read(&mut self, now: Instant, fd: Fd, len: u64) -> Called<Received> {
        self.recv(now, fd, len, RecvFlags::default())
    }

    /// `write(2)`.
    pub fn write(&mut self, now: Instant, fd: Fd, len: u64) -> Called<Sent> {
        self.send(now, fd, len, SendFlags::default(), None)
    }

    /// `recv(2)`.
    pub fn recv(&mut self, now: Instant, fd: Fd, len: u64, flags: RecvFlags) -> Called<Received> {
        let index = self.index_of(fd)?;
        let sock = &mut self.socks[index];
        let connection = match &mut sock.body {
            Body::Listen(_) => return Err(Errno::ENOTCONN),
            Body::Idle if sock.deferred_to.is_some() => {
                let waits = !sock.nonblocking && !flags.dont_wait;
                return if waits {
                    Ok(Outcome::Blocked)
                } else {
                    Err(Errno::EAGAIN)
                };
            }
            Body::Idle => {
                if let Some(error) = sock.error.take() {
                    return Err(error);
                }
                return if sock.shut_read {
                    Ok(Outcome::Done(Received::default()))
                } else {
                    Err(Errno::ENOTCONN)
                };
            }
            Body::Open(connection) => connection,
        };
        if flags.out_of_band {
            return self.recv_urgent(index, len, flags);
        }
        let mut available = connection.readable().get();
        if let Some(mark) = connection.urgent_mark().filter(|_| !sock.options.urgent_inline) {
            // Reading stops before the urgent byte, and goes on behind it.
            if mark == sock.read && available > 0 && sock.reading == 0 && !flags.peek {
                connection.read(now, Bytes(1));
                sock.read += 1;
                available -= 1;
            } else if mark >= sock.read {
                available = available.min(mark - sock.read);
            }
        }
        let start = sock.read - sock.reading;
        let wanted = len - sock.reading.min(len);
        let taken = available.min(wanted);
        if flags.peek {
            let enough = available >= if flags.wait_all { len } else { len.min(1) };
            if enough || available > 0 && !flags.wait_all {
                return Ok(Outcome::Done(Received { start, len: taken }));
            }
        } else if taken > 0 {
            connection.read(now, Bytes(taken));
            sock.read += taken;
            sock.reading += taken;
        }
        let moved = sock.reading;
        let target = if flags.wait_all {
            len
        } else {
            len.min(sock.options.receive_low)
        };
        let over = sock.done || sock.error.is_some() || sock.shut_read || connection.state() == State::Closed;
        let waits = !sock.nonblocking && !flags.dont_wait;
        let result = if moved > 0 && (moved >= target || over || !waits) {
            Ok(Outcome::Done(Received { start, len: moved }))
        } else if flags.peek && available > 0 && (over || !waits) {
            Ok(Outcome::Done(Received { start, len: taken }))
        } else if sock.done || len == 0 && sock.error.is_none() {
            Ok(Outcome::Done(Received { start, len: 0 }))
        } else if let Some(error) = sock.error.take() {
            Err(error)
        } else if sock.shut_read {
            Ok(Outcome::Done(Received { start, len: 0 }))
        } else if connection.state() == State::Closed {
            Err(Errno::ENOTCONN)
        } else if waits {
            Ok(Outcome::Blocked)
        } else {
            Err(Errno::EAGAIN)
        };
        if result != Ok(Outcome::Blocked) {
            sock.reading = 0;
        }
        self.touch(now, index);
        result
    }

    /// `recv(2)` with `MSG_OOB`: the urgent byte, once.
    fn recv_urgent(&mut self, index: usize, len: u64, flags: RecvFlags) -> Called<Received> {
        let sock = &mut self.socks[index];
        let Body::Open(connection) = &sock.body else {
            return Err(Errno::ENOTCONN);
        };
        let Some(mark) = sock.urgent.filter(|_| !sock.options.urgent_inline) else {
            return Err(Errno::EINVAL); // none came, or it was read
        };
        if connection.received() <= mark {
            return if connection.state() == State::Closed || sock.shut_read {
                Ok(Outcome::Done(Received::default()))
            } else {
                Err(Errno::EAGAIN) // announced, not here yet
            };
        }
        if !flags.peek {
            sock.urgent = None;
        }
        Ok(Outcome::Done(Received {
            start: mark,
            len: len.min(1),
        }))
    }

    /// `send(2)`, and `sendto(2)` with `to`. A blocking call is done when all `len` bytes were taken.
    pub fn send(
        &mut self,
        now: Instant,
        fd: Fd,
        len: u64,
        flags: SendFlags,
        to: Option<SocketAddr>,
    ) -> Called<Sent> {
        let index = self.index_of(fd)?;
        let waits = !self.socks[index].nonblocking && !flags.dont_wait;
        let fast_open = flags.fast_open || self.socks[index].deferred_to.is_some();
        if fast_open && let Some(result) = self.send_fast_open(now, index, len, flags, to) {
            return result;
        }
        let sock = &mut self.socks[index];
        match sock.state() {
            Some(State::SynReceived) if sock.fast_open && !sock.shut_write && sock.error.is_none() => {}
            Some(State::SynSent | State::SynReceived) => {
                return if waits {
                    if let Body::Open(connection) = &mut sock.body {
                        connection.expect_data(len > sock.writing);
                    }
                    Ok(Outcome::Blocked)
                } else {
                    Err(Errno::EAGAIN)
                };
            }
            Some(State::Established | State::CloseWait) if !sock.shut_write && sock.error.is_none() => {}
            _ => return self.broken(index),
        }
        if sock.fast_opening {
            sock.fast_opening = false; // the handshake is over: the rest follows
            sock.phase = Phase::Connected;
        }
        let (start, remaining) = (sock.written - sock.writing, len - sock.writing.min(len));
        // A writer that sleeps is woken when a third of the buffer is free, not before (`sk_stream_write_space`).
        let asleep = self.socks[index].write_sleeps && !self.writable(now, index);
        let taken = if asleep {
            0
        } else {
            self.put(now, index, remaining, flags)
        };
        let sock = &mut self.socks[index];
        sock.writing += taken;
        let moved = sock.writing;
        sock.no_space = moved < len;
        sock.write_sleeps = moved < len && waits;
        if sock.write_sleeps {
            self.touch(now, index);
            return Ok(Outcome::Blocked);
        }
        sock.writing = 0;
        self.touch(now, index);
        if moved == 0 && len > 0 {
            return Err(Errno::EAGAIN);
        }
        Ok(Outcome::Done(Sent { start, len: moved }))
    }

    /// Why nothing can be written: what was already taken, the pending error, or EPIPE (`sk_stream_error`).
    fn broken(&mut self, index: usize) -> Called<Sent> {
        let sock = &mut self.socks[index];
        sock.write_sleeps = false;
        if core::mem::take(&mut sock.fast_opening) {
            // A failed `connect`: nothing was delivered, and it may be tried again.
            sock.phase = Phase::Unconnected;
            sock.writing = 0;
        }
        let moved = core::mem::take(&mut sock.writing);
        if moved > 0 {
            return Ok(Outcome::Done(Sent {
                start: sock.written - moved,
                len: moved,
            }));
        }
        Err(sock.error.take().unwrap_or(Errno::EPIPE))
    }

    /// Gives the endpoint what the buffer takes.
    fn put(&mut self, now: Instant, index: usize, wanted: u64, flags: SendFlags) -> u64 {
        self.tune(now, index);
        let notsent_limit = self.notsent_limit(index);
        let sock = &mut self.socks[index];
        let Body::Open(connection) = &mut sock.body else {
            return 0;
        };
        let info = connection.info(now);
        let mss = u64::from(info.mss);
        let sent = sock.written - info.unsent.get();
        let goal = goal(mss, info.peer_window.get());
        let room = notsent_limit.saturating_sub(info.unsent.get());
        let taken = if room == 0 {
            0
        } else {
            sock.memory
                .take(wanted, goal, connection.acked(), sent, sock.written)
        };
        let more = WriteFlags {
            more: flags.more,
            corked: sock.options.cork,
        };
        if taken > 0 {
            if flags.out_of_band {
                let _ = connection.write_urgent(now, Bytes(taken));
            } else {
                let _ = connection.write(now, Bytes(taken), more);
            }
            sock.written += taken;
        }
        taken
    }

    fn notsent_limit(&self, index: usize) -> u64 {
        self.socks[index]
            .options
            .not_sent_low
            .filter(|&limit| limit > 0)
            .unwrap_or(self.config.notsent_lowat)
    }

    /// Send buffer: what was set, or what the window asks for.
    fn tune(&mut self, now: Instant, index: usize) {
        let (start, max) = (self.config.send_memory.default, self.config.send_memory.max);
        let sock = &mut self.socks[index];
        let Body::Open(connection) = &sock.body else {
            return;
        };
        match sock.options.send_buffer {
            Some(locked) => sock.memory.buffer = locked,
            None => {
                let info = connection.info(now);
                let mss = u64::from(info.mss).max(1);
                sock.memory.buffer = sock.memory.buffer.max(start);
                sock.memory.expand(info.cwnd.get() / mss, mss, max);
            }
        }
    }

    /// Whether `poll` says there is room: a third of the buffer, and less unsent than `TCP_NOTSENT_LOWAT`.
    pub(super) fn writable(&mut self, now: Instant, index: usize) -> bool {
        self.tune(now, index);
        let limit = self.notsent_limit(index);
        let sock = &mut self.socks[index];
        match &sock.body {
            Body::Idle => true,
            Body::Listen(_) => false,
            Body::Open(connection) => {
                let unsent = connection.info(now).unsent.get();
                sock.memory.writable(connection.acked(), sock.written) && 2 * unsent < limit.max(1)
            }
        }
    }
}

/// Size of the buffers that writes fill: the most segments that fit 64 KiB, at most half of the peer's largest window.
fn goal(mss: u64, window: u64) -> u64 {
    const MOST: u64 = 65_536 - 1 - 320;
    let cutoff = if window > 536 { window / 2 } else { window };
    let size = MOST.min(cutoff.max(68));
    (size / mss.max(1) * mss).max(mss).max(1)
}
