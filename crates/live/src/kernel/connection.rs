//! One connection between two sockets of the kernel, both of which are here.

use crate::calls;
use fleetfoot_core::tcp::Stats;
use fleetfoot_core::time::Duration;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;

/// One end of a connection.
#[derive(Debug, Default)]
pub(super) struct End {
    /// Its socket, from connect or accept until both directions have ended.
    pub(super) socket: Option<TcpStream>,
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
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> (u64, Progress) {
        let mut read = 0;
        let Some(socket) = &mut self.socket else {
            return (0, Progress::Done);
        };
        let progress = loop {
            match socket.read(buffer) {
                Ok(0) => {
                    self.ended = true;
                    break Progress::Done;
                }
                Ok(count) => read += count as u64,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if waits(error.kind()) => break Progress::Done,
                Err(_) => break Progress::Lost,
            }
        };
        self.received += read;
        (read, progress)
    }

    /// Writes what is wanted as far as the socket takes it, and ends the stream behind the last byte.
    pub(super) fn write(&mut self, payload: &[u8]) -> Progress {
        let Some(socket) = &mut self.socket else {
            return Progress::Done;
        };
        while self.written < self.wanted {
            let most = (self.wanted - self.written).min(payload.len() as u64) as usize;
            match socket.write(&payload[..most]) {
                Ok(count) => self.written += count as u64,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if waits(error.kind()) => return Progress::Done,
                Err(_) => return Progress::Lost,
            }
        }
        if self.closing && !self.shut {
            self.shut = true;
            if socket.shutdown(Shutdown::Write).is_err() {
                return Progress::Lost;
            }
        }
        Progress::Done
    }

    /// Both directions have ended.
    pub(super) const fn is_over(&self) -> bool {
        self.shut && self.ended
    }

    /// What the kernel has counted for this end.
    pub(super) fn counted(&self) -> Option<Counted> {
        let socket = self.socket.as_ref()?;
        let info = calls::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, INFO).ok()?;
        Counted::read(&info)
    }

    /// Ends the connection with a reset.
    pub(super) fn abort(&mut self) {
        if let Some(socket) = self.socket.take() {
            let linger: [i32; 2] = [1, 0];
            let bytes: Vec<u8> = linger.iter().flat_map(|value| value.to_ne_bytes()).collect();
            let _ = calls::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &bytes);
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
