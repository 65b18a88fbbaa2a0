//! One connection, both ends of which are here: sockets of the kernel, or one of them a handle of our host.

use super::ours::Ours;
use crate::{calls, host};
use fleetfoot_core::socket::{Errno, How};
use fleetfoot_core::tcp::Stats;
use fleetfoot_core::time::{Duration, Instant};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;

/// What an end reads and writes.
#[derive(Debug)]
pub(super) enum Socket {
    Kernel(TcpStream),
    Ours(host::Handle),
}

/// One end of a connection.
#[derive(Debug, Default)]
pub(super) struct End {
    /// Its socket, from connect or accept until both directions have ended.
    pub(super) socket: Option<Socket>,
    /// Bytes that the application has handed over, and those that the socket took.
    pub(super) wanted: u64,
    pub(super) written: u64,
    /// Nothing more will be written: the stream ends after `wanted`.
    pub(super) closing: bool,
    shut: bool,
    /// Bytes that arrived.
    pub(super) received: u64,
    /// The other end's stream has ended.
    pub(super) ended: bool,
}

/// What there was to read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All that could be done now was done.
    Done,
    /// The connection is lost.
    Lost,
}

impl End {
    /// Reads all that is there: how many bytes.
    pub(super) fn read(&mut self, buffer: &mut [u8], ours: &mut Option<Ours>) -> (u64, Progress) {
        let mut read = 0;
        let progress = loop {
            match self.once(ours, |socket, ours| socket.read(buffer, ours)) {
                Once::Some(0) => {
                    self.ended = true;
                    break Progress::Done;
                }
                Once::Some(count) => read += count as u64,
                Once::Waits => break Progress::Done,
                Once::Lost => break Progress::Lost,
            }
        };
        self.received += read;
        (read, progress)
    }

    /// Writes what is wanted as far as the socket takes it, and ends the stream behind the last byte.
    pub(super) fn write(&mut self, payload: &[u8], ours: &mut Option<Ours>) -> Progress {
        while self.written < self.wanted {
            let most = (self.wanted - self.written).min(payload.len() as u64) as usize;
            match self.once(ours, |socket, ours| socket.write(&payload[..most], ours)) {
                Once::Some(0) | Once::Waits => return Progress::Done,
                Once::Some(count) => self.written += count as u64,
                Once::Lost => return Progress::Lost,
            }
        }
        if self.closing && !self.shut && self.socket.is_some() {
            self.shut = true;
            match self.once(ours, Socket::shutdown) {
                Once::Lost => return Progress::Lost,
                Once::Some(_) | Once::Waits => {}
            }
        }
        Progress::Done
    }

    /// A call of its socket; without one it waits for ever.
    fn once(
        &mut self,
        ours: &mut Option<Ours>,
        call: impl FnOnce(&mut Socket, Option<&mut Ours>) -> Once,
    ) -> Once {
        match &mut self.socket {
            Some(socket) => call(socket, ours.as_mut()),
            None => Once::Waits,
        }
    }

    /// Both directions have ended.
    pub(super) const fn is_over(&self) -> bool {
        self.shut && self.ended
    }

    /// What was counted for this end.
    pub(super) fn counted(&self, ours: Option<&Ours>) -> Option<Counted> {
        match self.socket.as_ref()? {
            Socket::Kernel(socket) => {
                let info =
                    calls::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, INFO).ok()?;
                Counted::read(&info)
            }
            Socket::Ours(handle) => {
                let connection = ours?.host.connection(*handle)?;
                Some(Counted {
                    stats: *connection.stats(),
                    min_rtt: connection.info(Instant::ZERO).min_rtt,
                })
            }
        }
    }

    /// Gives the socket up when the connection is over.
    pub(super) fn release(&mut self, ours: &mut Option<Ours>) {
        if let (Some(Socket::Ours(handle)), Some(ours)) = (self.socket.take(), ours) {
            ours.release(handle, false);
        }
    }

    /// Ends the connection with a reset.
    pub(super) fn abort(&mut self, ours: &mut Option<Ours>) {
        match (self.socket.take(), ours) {
            (Some(Socket::Kernel(socket)), _) => {
                let linger: [i32; 2] = [1, 0];
                let bytes: Vec<u8> = linger.iter().flat_map(|value| value.to_ne_bytes()).collect();
                let _ = calls::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &bytes);
            }
            (Some(Socket::Ours(handle)), Some(ours)) => ours.release(handle, true),
            (Some(Socket::Ours(_)) | None, _) => {}
        }
    }
}

/// What one call of a socket gave.
enum Once {
    /// So many bytes; 0 read is the end of the stream.
    Some(usize),
    /// There is nothing now.
    Waits,
    /// The connection is lost.
    Lost,
}

impl Once {
    fn of_kernel(call: &mut dyn FnMut() -> std::io::Result<usize>) -> Once {
        loop {
            match call() {
                Ok(count) => return Once::Some(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if waits(error.kind()) => return Once::Waits,
                Err(_) => return Once::Lost,
            }
        }
    }

    fn of_ours(called: Option<Result<usize, Errno>>) -> Once {
        match called {
            Some(Ok(count)) => Once::Some(count),
            Some(Err(Errno::EAGAIN | Errno::ENOTCONN)) => Once::Waits,
            Some(Err(_)) | None => Once::Lost,
        }
    }
}

impl Socket {
    fn read(&mut self, buffer: &mut [u8], ours: Option<&mut Ours>) -> Once {
        match self {
            Socket::Kernel(socket) => Once::of_kernel(&mut || socket.read(buffer)),
            Socket::Ours(handle) => Once::of_ours(ours.map(|ours| ours.host.read(*handle, buffer))),
        }
    }

    fn write(&mut self, payload: &[u8], ours: Option<&mut Ours>) -> Once {
        match self {
            Socket::Kernel(socket) => Once::of_kernel(&mut || socket.write(payload)),
            Socket::Ours(handle) => Once::of_ours(ours.map(|ours| ours.host.write(*handle, payload))),
        }
    }

    fn shutdown(&mut self, ours: Option<&mut Ours>) -> Once {
        match self {
            Socket::Kernel(socket) => Once::of_kernel(&mut || socket.shutdown(Shutdown::Write).map(|()| 0)),
            Socket::Ours(handle) => {
                Once::of_ours(ours.map(|ours| ours.host.shutdown(*handle, How::Write).map(|()| 0)))
            }
        }
    }
}

/// Whether a socket has nothing to give and takes nothing now. Before its handshake is over it is not connected.
const fn waits(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::NotConnected)
}

/// Counters of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) stats: Stats,
    pub(super) min_rtt: Option<Duration>,
}

impl Counted {
    /// Reads `struct tcp_info` (`include/uapi/linux/tcp.h` of Linux 6.7 or later, in which `tcpi_total_rto` came); `None` of
    /// an older kernel.
    fn read(info: &[u8]) -> Option<Counted> {
        let word = |at: usize| Some(u32::from_ne_bytes(info.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?));
        let timeouts = u16::from_ne_bytes(info.get(TOTAL_RTO..TOTAL_RTO + 2)?.try_into().ok()?);
        let min_rtt = word(MIN_RTT)?;
        Some(Counted {
            stats: Stats {
                bytes_sent: long(BYTES_SENT)?,
                segments_sent: u64::from(word(DATA_SEGS_OUT)?),
                retransmits: word(TOTAL_RETRANS)?,
                timeouts: u32::from(timeouts),
                dsacks: word(DSACK_DUPS)?,
                ..Stats::default()
            },
            min_rtt: (min_rtt != u32::MAX && min_rtt != 0).then(|| Duration::from_micros(u64::from(min_rtt))),
        })
    }

    /// What was counted since `before`.
    pub(super) fn since(&self, before: &Counted) -> Stats {
        self.stats.since(&before.stats)
    }
}

/// Room for `struct tcp_info`, and places in it.
const INFO: usize = 256;
const TOTAL_RETRANS: usize = 100;
const MIN_RTT: usize = 148;
const DATA_SEGS_OUT: usize = 156;
const BYTES_SENT: usize = 200;
const DSACK_DUPS: usize = 216;
const TOTAL_RTO: usize = 240;
