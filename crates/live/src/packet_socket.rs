//! A packet socket on one interface: frames in from a ring, with the time at which they came, frames out in batches.

use crate::Error;
use crate::frames::HEADER;
use crate::ring::{Ring, RingFrame, option};
use std::ffi::{CString, c_int};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A packet socket on one interface of the namespace of the thread that opens it: whole Ethernet frames in and out, what is
/// sent here not read back.
pub struct PacketSocket {
    ring: Ring,
    fd: OwnedFd,
    name: String,
    index: u32,
}

/// Why an interface did not take a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The kernel had no memory left for frames that wait to be received.
    Full,
    /// The interface was down.
    Down,
    /// The frame is longer than the interface's MTU.
    TooLong,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Refusal; 3] = [Refusal::Full, Refusal::Down, Refusal::TooLong];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::Full => "no_buffer",
            Refusal::Down => "interface_down",
            Refusal::TooLong => "longer_than_mtu",
        }
    }

    /// Why, in words that go on "... were refused: ".
    pub const fn words(self) -> &'static str {
        match self {
            Refusal::Full => "the receiver's buffer was full",
            Refusal::Down => "the interface was down",
            Refusal::TooLong => "longer than the interface's MTU",
        }
    }
}

/// What sending frames came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// So many of them, from the first on, were taken; at least one.
    Taken(usize),
    /// The first was refused.
    Refused(Refusal),
}

impl PacketSocket {
    /// Opens it on the interface `name`, whose MTU is `mtu`.
    ///
    /// # Errors
    /// The interface is not there, or packet sockets are not permitted.
    pub fn open(name: &str, mtu: u32) -> Result<PacketSocket, Error> {
        let fail = |what: &str| {
            Error::new(
                format!("cannot {what} a packet socket on {name}"),
                io::Error::last_os_error(),
            )
        };
        let text = CString::new(name).map_err(|_| Error::new("an interface", io::ErrorKind::InvalidInput))?;
        // SAFETY: the pointer is to a string that lives to the end of the call.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(fail("find the interface for"));
        }
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0: nothing is received before the socket is bound to its interface.
        // SAFETY: takes numbers only.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(fail("open"));
        }
        // SAFETY: the kernel has just given this descriptor to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        option(&fd, libc::PACKET_IGNORE_OUTGOING, &1).map_err(|_| fail("set up"))?;
        let ring = Ring::new(&fd, mtu as usize + HEADER).map_err(|cause| {
            Error::new(
                format!("cannot make the ring of a packet socket on {name}"),
                cause,
            )
        })?;
        let socket = PacketSocket {
            ring,
            fd,
            name: name.to_owned(),
            index,
        };
        // As many frames may wait for the receiver as the kernel gives room for; without root, as much as its default.
        let room = BUFFER;
        let length = size_of_val(&room) as libc::socklen_t;
        // SAFETY: the pointer is to a live integer of the length given. A refusal leaves the default.
        unsafe {
            libc::setsockopt(
                socket.fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_SNDBUFFORCE,
                (&raw const room).cast(),
                length,
            )
        };
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index as c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the pointer is to a live address of the length given.
        let bound = unsafe { libc::bind(socket.fd.as_raw_fd(), (&raw const address).cast(), length) };
        if bound < 0 {
            return Err(fail("bind"));
        }
        Ok(socket)
    }

    /// The next frame, if one waits.
    pub(crate) fn receive(&mut self) -> Option<RingFrame<'_>> {
        self.ring.next()
    }

    /// Whether a frame waits.
    pub(crate) fn has_frame(&self) -> bool {
        self.ring.has_frame()
    }

    /// Sends frames in their order, as far as the interface takes them.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn send(&self, frames: &[IoSlice<'_>]) -> Result<Sent, Error> {
        // SAFETY: zeros are a valid message: no address, no data.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let count = frames.len().min(BATCH);
        for (message, frame) in messages.iter_mut().zip(frames) {
            // The kernel only reads what it is to send.
            message.msg_hdr.msg_iov = std::ptr::from_ref(frame).cast_mut().cast();
            message.msg_hdr.msg_iovlen = 1;
        }
        loop {
            // SAFETY: each message names a live slice, which has the form of the kernel's `iovec`.
            let sent = unsafe { libc::sendmmsg(self.fd.as_raw_fd(), messages.as_mut_ptr(), count as u32, 0) };
            if sent > 0 {
                return Ok(Sent::Taken(sent as usize));
            }
            let cause = io::Error::last_os_error();
            return match cause.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Ok(Sent::Refused(Refusal::Full)),
                Some(libc::EMSGSIZE) => Ok(Sent::Refused(Refusal::TooLong)),
                Some(libc::ENETDOWN) if self.is_there() => Ok(Sent::Refused(Refusal::Down)),
                _ => Err(self.gone(cause)),
            };
        }
    }

    /// Looks at what the kernel reported beside frames.
    ///
    /// # Errors
    /// The interface is gone.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut code: c_int = 0;
        let mut length = size_of_val(&code) as libc::socklen_t;
        // SAFETY: the pointers are to live values, and the length is that of the first. Reading the error also clears it.
        let done = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut code).cast(),
                &raw mut length,
            )
        };
        // An interface that is down may come up again.
        if done == 0 && (code == 0 || self.is_there()) {
            return Ok(());
        }
        Err(self.gone(io::Error::from_raw_os_error(code)))
    }

    fn is_there(&self) -> bool {
        let mut name = [0; libc::IF_NAMESIZE];
        // SAFETY: the buffer has the length that the call asks for.
        unsafe { !libc::if_indextoname(self.index, name.as_mut_ptr()).is_null() }
    }

    fn gone(&self, cause: io::Error) -> Error {
        Error::new(format!("the link's interface {} is gone", self.name), cause)
    }

    /// Frames that the kernel had to drop because nobody read them in time, since the last call.
    pub fn missed(&self) -> u32 {
        let mut counts = [0_u32; 2];
        let mut length = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the pointers are to live values, and the length is that of the first.
        let done = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                counts.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if done < 0 { 0 } else { counts[1] }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Frames that are sent at once at most.
pub(crate) const BATCH: usize = 64;
/// Bytes that wait for the receiver at most.
const BUFFER: c_int = 8 << 20;
