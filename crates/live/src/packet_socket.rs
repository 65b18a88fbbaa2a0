//! A packet socket on one interface: frames in from a ring, with the time at which they came, frames out in batches.

use crate::Error;
use crate::frames::HEADER;
use crate::ring::{Format, Ring, RingFrame, option};
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

/// How a packet socket is to be set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// How frames come in.
    pub(crate) ring: Format,
    /// Bytes that may wait in the interface or for the receiver, with what the kernel needs to keep them; `None`: the kernel's default.
    pub(crate) waiting: Option<c_int>,
    /// Frames to other hardware addresses come in too, while the socket is open.
    pub(crate) promiscuous: bool,
    /// Frames go straight to the interface, past the kernel's own queue discipline.
    pub(crate) bypass: bool,
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
    /// More frames were on the link than this program may keep.
    NoRoom,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Refusal; 4] = [Refusal::Full, Refusal::Down, Refusal::TooLong, Refusal::NoRoom];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::Full => "no_buffer",
            Refusal::Down => "interface_down",
            Refusal::TooLong => "longer_than_mtu",
            Refusal::NoRoom => "no_memory",
        }
    }

    /// Why, in words that go on "... were refused: ".
    pub const fn words(self) -> &'static str {
        match self {
            Refusal::Full => "the receiver's buffer was full",
            Refusal::Down => "the interface was down",
            Refusal::TooLong => "longer than the interface's MTU",
            Refusal::NoRoom => "the memory for frames was used up (--memory)",
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
    /// Opens it on the interface `name`, whose MTU is `mtu`. Each frame wakes the reader, and as many may wait for the far end as the
    /// kernel gives room for.
    ///
    /// # Errors
    /// The interface is not there, or packet sockets are not permitted.
    pub fn open(name: &str, mtu: u32) -> Result<PacketSocket, Error> {
        let setup = Setup {
            ring: Format::Frames,
            waiting: Some(BUFFER),
            promiscuous: false,
            bypass: false,
        };
        PacketSocket::open_with(name, mtu, setup)
    }

    /// Opens it on the interface `name`, whose MTU is `mtu`, as `setup` says.
    ///
    /// # Errors
    /// The interface is not there, or packet sockets are not permitted.
    pub(crate) fn open_with(name: &str, mtu: u32, setup: Setup) -> Result<PacketSocket, Error> {
        let fail = |what: &str| {
            Error::new(
                format!("cannot {what} a packet socket on {name}"),
                io::Error::last_os_error(),
            )
            .needing("CAP_NET_RAW")
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
        if setup.bypass {
            option(&fd, libc::PACKET_QDISC_BYPASS, &1).map_err(|_| fail("set up"))?;
        }
        let ring = Ring::new(&fd, mtu as usize + HEADER, setup.ring).map_err(|cause| {
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
        if let Some(room) = setup.waiting {
            socket.set_waiting(room);
        }
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
        if setup.promiscuous {
            let request = libc::packet_mreq {
                mr_ifindex: index as c_int,
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            option(&socket.fd, libc::PACKET_ADD_MEMBERSHIP, &request).map_err(|_| fail("set up"))?;
        }
        Ok(socket)
    }

    /// Sets how many bytes of frames, with what the kernel needs to keep them, may wait in the interface. Beyond the kernel's limit
    /// (`net.core.wmem_max`) only with CAP_NET_ADMIN; a refusal leaves what there was.
    fn set_waiting(&self, bytes: c_int) {
        let length = size_of_val(&bytes) as libc::socklen_t;
        // SAFETY: the pointer is to a live integer of the length given.
        unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_SNDBUFFORCE,
                (&raw const bytes).cast(),
                length,
            )
        };
    }

    /// The interface's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Takes in frames for other hosts, too, while this is open.
    ///
    /// # Errors
    /// The interface does not do it.
    pub(crate) fn take_all(&self) -> Result<(), Error> {
        let request = libc::packet_mreq {
            mr_ifindex: self.index as c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        option(&self.fd, libc::PACKET_ADD_MEMBERSHIP, &request).map_err(|cause| {
            Error::new(
                format!("cannot make {} take in frames for other hosts", self.name),
                cause,
            )
        })
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

#[cfg(test)]
mod tests {
    use super::{PacketSocket, Sent};
    use crate::{Clock, Namespace};
    use fleetfoot_core::time::Duration;
    use std::io::IoSlice;

    /// The kernel takes tags out of what it hands up, and another's frames are not for this host.
    #[test]
    fn tags_and_frames_for_others_come_through() {
        if let Err(reason) = Namespace::available() {
            println!("skipped: {reason}");
            return;
        }
        Namespace::run(|namespace| {
            namespace.ip("link add v0 type veth peer name v1\nlink set v0 up\nlink set v1 up")?;
            for name in ["v0", "v1"] {
                namespace.sysctl(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1")?;
                crate::ip::carries(name)?;
            }
            let (near, mut far) = (PacketSocket::open("v0", 1500)?, PacketSocket::open("v1", 1500)?);
            far.take_all()?;
            let to = [2, 0x77, 0, 0, 0, 9];
            let from = [2, 0x77, 0, 0, 0, 8];
            let payload: Vec<u8> = (0..100).collect();
            let frames: [Vec<u8>; 4] = [
                [&[0x81, 0x00, 0x60, 0x05, 0x08, 0x00][..], &payload].concat(),
                [
                    &[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x05, 0x08, 0x00][..],
                    &payload,
                ]
                .concat(),
                [&[0x08, 0x00][..], &payload].concat(),
                [&[0x81, 0x00, 0x00, 0x05, 0x08, 0x00][..], &[7; 1500]].concat(),
            ]
            .map(|rest| [&to[..], &from, &rest].concat());
            for frame in &frames {
                assert_eq!(near.send(&[IoSlice::new(frame)])?, Sent::Taken(1));
            }
            for frame in &frames {
                let clock = Clock::start();
                assert!(Namespace::wait(&clock, Duration::from_secs(5), || far.has_frame()));
                let came = far.receive().expect("it waits");
                let tag = came.tag.unwrap_or_default();
                let (addresses, rest) = came.bytes().split_at(12);
                let tag = if came.tag.is_some() { &tag[..] } else { &[] };
                assert_eq!([addresses, tag, rest].concat(), *frame);
            }
            Ok(())
        })
        .expect("namespaces are there");
    }
}
