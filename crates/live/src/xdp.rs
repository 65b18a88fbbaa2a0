//! AF_XDP on one interface: frames in and out by rings in memory that the kernel and this process share.
//!
//! A small program, which is attached to the interface as long as this exists, gives frames to the socket before the
//! kernel's network stack sees them: in the driver, and where a driver cannot, behind it. In a bridge these are all, in a router all but
//! those that are this machine's own (`program`). So nothing else of this interface reaches the
//! kernel, the time at which a frame came is not known, and tags and checksums are those in the frame.
//!
//! Memory is cut into pieces of one frame each. Those of the first half are given to the kernel to be filled ("fill"), come back with frames
//! in them ("receive") and are given back; those of the second half go out ("send") and come back ("complete"). How many of
//! these are used limits what waits in the interface. Everything is gone with the process.

mod calls;
mod memory;
mod own;
mod program;

pub(crate) use own::Addresses;

use crate::offload::{keep_tags, receive_queues};
use crate::packet_socket::{Refusal, Sent};
use crate::ring::option;
use crate::{Error, frames};
use calls::{check, owned, read};
use fleetfoot_core::time::{Duration, Instant};
use memory::{Descriptors, Mapping, Rings, SLOTS};
use own::Own;
use program::Program;
use std::ffi::CString;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The socket, its memory and its program.
pub(crate) struct XdpSocket {
    memory: Mapping,
    receive: Descriptors,
    send: Descriptors,
    fill: Descriptors,
    complete: Descriptors,
    /// Bytes of a piece.
    piece: u32,
    /// Pieces into which frames that leave are put.
    free: Vec<u64>,
    /// The kernel has not taken all that was given to it: when it is asked again.
    retry: Option<Instant>,
    pending: bool,
    /// The interface was down when it was asked last.
    down: bool,
    missed: u64,
    in_driver: bool,
    zero_copy: bool,
    name: String,
    index: u32,
    fd: OwnedFd,
    /// What the program leaves to the kernel, if it does.
    own: Option<Own>,
    /// Detaches the program when it is closed.
    _link: OwnedFd,
    _program: Program,
    /// Keeps the interface promiscuous.
    _promiscuous: Option<OwnedFd>,
}

/// A frame in memory that the kernel shares; its piece is the kernel's again when this is dropped.
pub(crate) struct XdpFrame<'a> {
    socket: &'a mut XdpSocket,
    address: u64,
    length: usize,
}

impl XdpFrame<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the range lies in one piece (`receive` saw to it), which the kernel leaves alone until it is given back.
        unsafe { std::slice::from_raw_parts(self.socket.memory.at(self.address as usize), self.length) }
    }
}

impl Drop for XdpFrame<'_> {
    fn drop(&mut self) {
        self.socket.give_back(self.address);
    }
}

impl XdpSocket {
    /// Takes frames that come in by the interface `name`, whose packets with their tags have up to `longest` bytes: all but those that are for
    /// what is `own`, or every one, those for other hosts included. `waiting` bytes, with what the kernel needs to keep frames, may
    /// wait in the interface.
    ///
    /// # Errors
    /// The kernel, the driver or the rights of this process are not enough.
    pub(crate) fn open(
        name: &str,
        longest: u32,
        waiting: i32,
        own: Option<&Addresses>,
    ) -> Result<XdpSocket, Error> {
        let fail = |what: &str, cause: io::Error| {
            Error::new(format!("{name} cannot have `ring = \"xdp\"`: {what}"), cause)
                .needing("CAP_BPF with CAP_NET_ADMIN and CAP_NET_RAW")
        };
        let text = CString::new(name).map_err(|_| Error::new("an interface", io::ErrorKind::InvalidInput))?;
        // SAFETY: the pointer is to a string that lives to the end of the call.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(fail("there is no such interface", io::Error::last_os_error()));
        }
        let longest = longest as usize + frames::HEADER + HEADROOM;
        let Some(piece) = PIECES.into_iter().find(|&piece| longest <= piece as usize) else {
            let most = PIECES[1] as usize - HEADROOM - frames::HEADER - 2 * frames::TAG;
            let cause = io::Error::new(io::ErrorKind::Unsupported, "take `frames` or `blocks`");
            return Err(fail(&format!("its MTU is above {most}"), cause));
        };
        let queues = receive_queues(name)?;
        if queues != 1 {
            let cause = io::Error::other(format!("ethtool -L {name} combined 1, or rx 1"));
            return Err(fail(
                &format!("frames come in by {queues} queues, and one is read"),
                cause,
            ));
        }
        keep_tags(name)?;
        let promiscuous = match own {
            Some(_) => None,
            None => Some(promiscuous(index).map_err(|cause| fail("promiscuous mode", cause))?),
        };
        // SAFETY: takes numbers only.
        let fd = owned(unsafe {
            libc::socket(
                libc::AF_XDP,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                0,
            )
        })
        .map_err(|cause| fail("the kernel gives no AF_XDP socket (CONFIG_XDP_SOCKETS)", cause))?;
        let rings = Rings::new(&fd, piece).map_err(|cause| {
            fail(
                "no memory to share (16 MiB must be lockable: LimitMEMLOCK=)",
                cause,
            )
        })?;
        set_waiting(&fd, waiting);
        let zero_copy =
            bind(&fd, index).map_err(|cause| fail("the socket cannot be bound to its queue", cause))?;
        let own = own
            .map(Own::new)
            .transpose()
            .map_err(|cause| fail("no table of this machine's addresses can be made", cause))?;
        let program =
            Program::load(fd.as_raw_fd(), own.as_ref()).map_err(|(what, cause)| fail(what, cause))?;
        let (link, in_driver) = program.attach(index).map_err(|(what, cause)| fail(what, cause))?;
        let Rings {
            memory,
            receive,
            send,
            fill,
            complete,
        } = rings;
        let count = (waiting.max(0) as u32 / WEIGHT).clamp(1, SLOTS);
        let free = (SLOTS..SLOTS + count)
            .map(|number| u64::from(number) * u64::from(piece))
            .collect();
        Ok(XdpSocket {
            memory,
            receive,
            send,
            fill,
            complete,
            piece,
            free,
            retry: None,
            pending: false,
            down: false,
            missed: 0,
            in_driver,
            zero_copy,
            name: name.to_owned(),
            index,
            fd,
            own,
            _link: link,
            _program: program,
            _promiscuous: promiscuous,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the program runs in the driver.
    pub(crate) const fn in_driver(&self) -> bool {
        self.in_driver
    }

    /// Whether the device reads and writes the shared memory itself.
    pub(crate) const fn zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Whether a frame waits.
    #[inline]
    pub(crate) fn has_frame(&self) -> bool {
        self.receive.has()
    }

    /// The next frame, if one waits.
    #[inline]
    pub(crate) fn receive(&mut self) -> Option<XdpFrame<'_>> {
        if self.receive.ready() == 0 {
            return None;
        }
        // SAFETY: the kernel has written this entry.
        let entry = unsafe { self.receive.entry::<libc::xdp_desc>(self.receive.own).read() };
        self.receive.own = self.receive.own.wrapping_add(1);
        self.receive.read_up_to_here();
        // Nobody but the kernel writes these; what would lie elsewhere is not read.
        let address = entry.addr.min((self.memory.length - 1) as u64);
        let room = u64::from(self.piece) - address % u64::from(self.piece);
        Some(XdpFrame {
            address,
            length: u64::from(entry.len).min(room) as usize,
            socket: self,
        })
    }

    fn give_back(&mut self, address: u64) {
        let fill = &mut self.fill;
        // SAFETY: as many entries as there are pieces for frames that come in.
        unsafe {
            fill.entry::<u64>(fill.own)
                .write(address - address % u64::from(self.piece));
        }
        fill.own = fill.own.wrapping_add(1);
        fill.written_up_to_here();
    }

    /// Sends frames in their order, as far as there are pieces for them.
    ///
    /// # Errors
    /// The interface is gone.
    pub(crate) fn send(&mut self, frames: &[IoSlice<'_>]) -> Result<Sent, Error> {
        if self.down && !self.kick()? {
            return Ok(Sent::Refused(Refusal::Down));
        }
        self.reclaim();
        let first = self.send.own;
        for frame in frames {
            if frame.len() > self.piece as usize {
                break;
            }
            let Some(address) = self.free.pop() else { break };
            // SAFETY: a piece that nothing else uses, and which the frame fits in; an entry of a ring that has one for each piece.
            unsafe {
                std::ptr::copy_nonoverlapping(frame.as_ptr(), self.memory.at(address as usize), frame.len());
                self.send
                    .entry::<libc::xdp_desc>(self.send.own)
                    .write(libc::xdp_desc {
                        addr: address,
                        len: frame.len() as u32,
                        options: 0,
                    });
            }
            self.send.own = self.send.own.wrapping_add(1);
        }
        let taken = self.send.own.wrapping_sub(first);
        if taken == 0 {
            let long = frames
                .first()
                .is_some_and(|frame| frame.len() > self.piece as usize);
            self.kick()?;
            return Ok(Sent::Refused(if long { Refusal::TooLong } else { Refusal::Full }));
        }
        self.send.written_up_to_here();
        // Where the interface has gone down, the kernel may have looked at these already: they stay, and leave when it is up again.
        self.kick()?;
        Ok(Sent::Taken(taken as usize))
    }

    /// Has the kernel take what it was given: false where the interface is down.
    fn kick(&mut self) -> Result<bool, Error> {
        // It takes 32 at once at most.
        for _ in 0..KICKS {
            if self.send.all_read() {
                (self.pending, self.down) = (false, false);
                return Ok(true);
            }
            // SAFETY: no data, no address.
            let done = unsafe {
                libc::sendto(
                    self.fd.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null(),
                    0,
                )
            };
            if done >= 0 {
                self.down = false;
                continue;
            }
            let cause = io::Error::last_os_error();
            match cause.raw_os_error() {
                Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => {}
                Some(libc::ENETDOWN | libc::ENXIO) if self.is_there() => {
                    (self.pending, self.down) = (true, true);
                    return Ok(false);
                }
                _ => return Err(self.gone(cause)),
            }
        }
        self.pending = !self.send.all_read();
        Ok(true)
    }

    /// Has the kernel go on with what it has not taken yet.
    pub(crate) fn push(&mut self, now: Instant) {
        if !self.pending {
            self.retry = None;
            return;
        }
        if self.retry.is_none_or(|retry| retry <= now) {
            // What is wrong is reported to whoever sends next.
            let _ = self.kick();
            let after = if self.down { RETRY_DOWN } else { RETRY };
            self.retry = self.pending.then(|| now + after);
        }
    }

    /// When [`XdpSocket::push`] is to be called next.
    pub(crate) const fn poll_timeout(&self) -> Option<Instant> {
        self.retry
    }

    fn reclaim(&mut self) {
        for _ in 0..self.complete.ready() {
            // SAFETY: the kernel has written this entry.
            self.free
                .push(unsafe { self.complete.entry::<u64>(self.complete.own).read() });
            self.complete.own = self.complete.own.wrapping_add(1);
        }
        self.complete.read_up_to_here();
    }

    /// Looks at what the kernel reported beside frames.
    ///
    /// # Errors
    /// The interface is gone.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_there() {
            return Ok(());
        }
        Err(self.gone(io::Error::from_raw_os_error(libc::ENODEV)))
    }

    fn is_there(&self) -> bool {
        let mut name = [0; libc::IF_NAMESIZE];
        // SAFETY: the buffer has the length that the call asks for.
        unsafe { !libc::if_indextoname(self.index, name.as_mut_ptr()).is_null() }
    }

    fn gone(&self, cause: io::Error) -> Error {
        Error::new(format!("the link's interface {} is gone", self.name), cause)
    }

    /// What is left to the kernel is what `addresses` say from now on. What does not fit comes here, and is to be counted.
    pub(crate) fn leave(&mut self, addresses: &Addresses) {
        if let Some(own) = &mut self.own {
            let _ = own.set(addresses);
        }
    }

    /// Frames that were left to the kernel, and their bytes, since the last call.
    pub(crate) fn passed(&mut self) -> [u64; 2] {
        self.own.as_mut().map_or([0; 2], Own::passed)
    }

    /// Frames that were lost because nobody read them in time, since the last call.
    pub(crate) fn missed(&mut self) -> u64 {
        // SAFETY: zeros are valid counts.
        let mut counts: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        if read(&self.fd, libc::XDP_STATISTICS, &mut counts).is_err() {
            return 0;
        }
        let all = counts.rx_dropped + counts.rx_ring_full;
        all.saturating_sub(std::mem::replace(&mut self.missed, all))
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Binds the socket to the only queue: whether the device shares the memory.
fn bind(fd: &OwnedFd, index: u32) -> io::Result<bool> {
    let with = |flags: u16| {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: index,
            sxdp_queue_id: 0,
            sxdp_shared_umem_fd: 0,
        };
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the pointer is to a live address of the length given.
        check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) })
    };
    let until = std::time::Instant::now() + LEAVES;
    loop {
        if with(libc::XDP_ZEROCOPY).is_ok() {
            return Ok(true);
        }
        match with(libc::XDP_COPY) {
            Ok(_) => return Ok(false),
            // The kernel takes a moment to put the socket of a process away that has ended.
            Err(cause) if cause.raw_os_error() == Some(libc::EBUSY) && std::time::Instant::now() < until => {
                std::thread::sleep(LEAVES / 200);
            }
            Err(cause) => return Err(cause),
        }
    }
}

/// A socket that keeps an interface promiscuous as long as it is open.
fn promiscuous(index: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only. Of protocol 0 nothing is received.
    let fd = owned(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })?;
    let request = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    option(&fd, libc::PACKET_ADD_MEMBERSHIP, &request)?;
    Ok(fd)
}

/// As `PacketSocket` does: a refusal leaves what there was.
fn set_waiting(fd: &OwnedFd, bytes: i32) {
    let length = size_of_val(&bytes) as libc::socklen_t;
    // SAFETY: the pointer is to a live integer of the length given.
    unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_SNDBUFFORCE,
            (&raw const bytes).cast(),
            length,
        )
    };
}

/// What a piece may have in bytes.
const PIECES: [u32; 2] = [2048, 4096];
/// Bytes that the kernel leaves before a frame.
const HEADROOM: usize = 256;
/// Bytes that a frame of 1500 bytes takes in the kernel, as packet sockets count it.
const WEIGHT: u32 = 2304;
/// So often the kernel is asked at once to take what it was given.
const KICKS: u32 = 8;
/// So long the socket of a process that has ended may hold a queue.
const LEAVES: std::time::Duration = std::time::Duration::from_secs(2);
/// After so long it is asked again.
const RETRY: Duration = Duration::from_micros(50);
/// The same while the interface is down.
const RETRY_DOWN: Duration = Duration::from_millis(5);
