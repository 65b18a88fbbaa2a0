//! One end of a proxied connection: a socket of the kernel's, or a connection of our TCP.
//!
//! Neither waits. What a call found to be used up (`EAGAIN`) is not tried again before there is news: descriptors are watched by
//! edges (`EPOLLET`), and a [`Host`] says what is new once.

use super::request::Refusal;
use crate::host::{Handle, Host, Ready};
use fleetfoot_core::socket::{Errno, How};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault(pub(super) Errno);

impl Fault {
    /// How a client is told of a target that failed before it was connected.
    pub(super) const fn refusal(self) -> Refusal {
        match self.0 {
            Errno::ECONNREFUSED | Errno::ECONNRESET | Errno::ECONNABORTED | Errno::EPIPE => Refusal::Refused,
            Errno::ENETUNREACH | Errno::ENONET | Errno::EAFNOSUPPORT => Refusal::NetUnreachable,
            Errno::ETIMEDOUT => Refusal::TimedOut,
            // A router, or this machine's rules, forbid it (ICMP 3/9, 3/10, 3/13).
            Errno::EACCES => Refusal::NotAllowed,
            Errno::EMFILE | Errno::ENOBUFS | Errno::EADDRNOTAVAIL | Errno::EADDRINUSE => Refusal::Busy,
            _ => Refusal::HostUnreachable,
        }
    }
}

impl From<&io::Error> for Fault {
    fn from(error: &io::Error) -> Fault {
        let number = match error.raw_os_error() {
            Some(libc::EPERM) => libc::EACCES, // a rule of the packet filter
            Some(libc::ENFILE | libc::ENOMEM) => libc::EMFILE,
            Some(number) => number,
            None => libc::EPROTO,
        };
        let known = Errno::ALL.iter().copied().find(|errno| errno.number() == number);
        Fault(known.unwrap_or(Errno::EPROTO))
    }
}

/// One end.
pub(super) enum Leg {
    Kernel(Kernel),
    Ours(Ours),
}

/// A socket of the kernel's, watched by edges.
pub(super) struct Kernel {
    pub(super) stream: TcpStream,
    may_read: bool,
    may_write: bool,
}

/// A connection of our TCP.
pub(super) struct Ours {
    pub(super) handle: Handle,
    may_read: bool,
    may_write: bool,
    /// Both directions are over, or it failed.
    over: bool,
}

impl Leg {
    /// A connection of our TCP, accepted or to be opened.
    pub(super) const fn ours(handle: Handle, open: bool) -> Leg {
        Leg::Ours(Ours {
            handle,
            may_read: open,
            may_write: open,
            over: false,
        })
    }

    /// A connection of the kernel's that was accepted.
    pub(super) fn accepted(stream: TcpStream) -> io::Result<Leg> {
        stream.set_nonblocking(true)?;
        Leg::tuned(stream, true)
    }

    /// A connection of the kernel's that is being opened.
    pub(super) fn connecting(to: SocketAddr) -> io::Result<Leg> {
        let family = if to.is_ipv4() {
            AddressFamily::Inet
        } else {
            AddressFamily::Inet6
        };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Stream, flags, None)?;
        let stream = TcpStream::from(fd);
        match connect(
            std::os::fd::AsRawFd::as_raw_fd(&stream),
            &SockaddrStorage::from(to),
        ) {
            Ok(()) | Err(nix::errno::Errno::EINPROGRESS) => Leg::tuned(stream, false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Small writes leave at once, and a peer that vanished is noticed.
    fn tuned(stream: TcpStream, open: bool) -> io::Result<Leg> {
        stream.set_nodelay(true)?;
        setsockopt(&stream, sockopt::KeepAlive, &true)?;
        setsockopt(&stream, sockopt::TcpKeepIdle, &KEEP_IDLE)?;
        setsockopt(&stream, sockopt::TcpKeepInterval, &KEEP_INTERVAL)?;
        setsockopt(&stream, sockopt::TcpKeepCount, &u32::from(KEEP_COUNT))?;
        Ok(Leg::Kernel(Kernel {
            stream,
            may_read: open,
            may_write: open,
        }))
    }

    /// There is news of a descriptor.
    pub(super) const fn news_of_kernel(&mut self) {
        if let Leg::Kernel(leg) = self {
            leg.may_read = true;
            leg.may_write = true;
        }
    }

    /// There is news of a connection of ours.
    pub(super) const fn news_of_ours(&mut self, ready: Ready) {
        if let Leg::Ours(leg) = self {
            leg.may_read |= ready.read || ready.over;
            leg.may_write |= ready.write || ready.over;
            leg.over |= ready.over;
        }
    }

    pub(super) const fn may_read(&self) -> bool {
        match self {
            Leg::Kernel(leg) => leg.may_read,
            Leg::Ours(leg) => leg.may_read,
        }
    }

    pub(super) const fn may_write(&self) -> bool {
        match self {
            Leg::Kernel(leg) => leg.may_write,
            Leg::Ours(leg) => leg.may_write,
        }
    }

    /// Reads; `None`: nothing is there. 0 is the end of the stream.
    pub(super) fn read(&mut self, host: &mut Host, buffer: &mut [u8]) -> Result<Option<usize>, Fault> {
        match self {
            Leg::Kernel(leg) => loop {
                match leg.stream.read(buffer) {
                    Ok(length) => return Ok(Some(length)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        leg.may_read = false;
                        return Ok(None);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(Fault::from(&error)),
                }
            },
            Leg::Ours(leg) => match host.read(leg.handle, buffer) {
                Ok(length) => Ok(Some(length)),
                Err(Errno::EAGAIN) => {
                    leg.may_read = false;
                    Ok(None)
                }
                Err(errno) => Err(Fault(errno)),
            },
        }
    }

    /// Writes; how much there was room for.
    pub(super) fn write(&mut self, host: &mut Host, bytes: &[u8]) -> Result<usize, Fault> {
        match self {
            Leg::Kernel(leg) => loop {
                match leg.stream.write(bytes) {
                    Ok(length) => {
                        leg.may_write = length == bytes.len();
                        return Ok(length);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        leg.may_write = false;
                        return Ok(0);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(Fault::from(&error)),
                }
            },
            Leg::Ours(leg) => match host.write(leg.handle, bytes) {
                Ok(length) => {
                    leg.may_write = length == bytes.len();
                    Ok(length)
                }
                Err(Errno::EAGAIN) => {
                    leg.may_write = false;
                    Ok(0)
                }
                Err(errno) => Err(Fault(errno)),
            },
        }
    }

    /// Nothing more is written: the other end reads its end.
    pub(super) fn finish(&self, host: &mut Host) {
        // One that failed meanwhile says so when it is read or written.
        match self {
            Leg::Kernel(leg) => drop(leg.stream.shutdown(Shutdown::Write)),
            Leg::Ours(leg) => drop(host.shutdown(leg.handle, How::Write)),
        }
    }

    /// Whether a connection that was established has failed, once. What routers report of a connection that goes on is no failure
    /// (RFC 5927 5.2).
    pub(super) fn broken(&self, host: &mut Host) -> Option<Fault> {
        match self {
            Leg::Ours(leg) if !leg.over => None,
            Leg::Ours(_) | Leg::Kernel(_) => self.fault(host),
        }
    }

    /// Whether it has failed, once; for one that is being opened, also what routers reported.
    pub(super) fn fault(&self, host: &mut Host) -> Option<Fault> {
        match self {
            Leg::Kernel(leg) => match leg.stream.take_error() {
                Ok(error) => error.as_ref().map(Fault::from),
                Err(error) => Some(Fault::from(&error)),
            },
            Leg::Ours(leg) => host.take_error(leg.handle).map(Fault),
        }
    }

    /// Whether a connection that is being opened is established.
    pub(super) fn is_established(&self) -> bool {
        match self {
            Leg::Kernel(leg) => leg.may_write && leg.stream.peer_addr().is_ok(),
            Leg::Ours(leg) => leg.may_write,
        }
    }

    /// The proxy's own address on this connection.
    pub(super) fn local(&self, host: &Host) -> Option<SocketAddr> {
        match self {
            Leg::Kernel(leg) => leg.stream.local_addr().ok(),
            Leg::Ours(leg) => host.local(leg.handle),
        }
    }

    /// Ends it; what was written is still delivered.
    pub(super) fn close(self, host: &mut Host) {
        match self {
            Leg::Kernel(leg) => drop(leg),
            Leg::Ours(leg) => host.close(leg.handle),
        }
    }

    /// Ends it with a reset.
    pub(super) fn abort(self, host: &mut Host) {
        match self {
            Leg::Kernel(leg) => reset(leg.stream),
            Leg::Ours(leg) => host.abort(leg.handle),
        }
    }
}

/// Ends a connection of the kernel's with a reset.
pub(super) fn reset(stream: TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let _ = setsockopt(&stream, sockopt::Linger, &linger); // without it the end is an orderly one
    drop(stream);
}

/// Seconds of silence after which a peer is asked whether it is still there, seconds between such questions, and how many remain
/// unanswered before the connection is given up.
pub(super) const KEEP_IDLE: u32 = 300;
pub(super) const KEEP_INTERVAL: u32 = 30;
pub(super) const KEEP_COUNT: u8 = 5;
