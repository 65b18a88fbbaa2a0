//! How frames come from an interface and leave by it: a packet socket, or AF_XDP.

use super::Event;
use super::interfaces::Interface;
#[cfg(feature = "xdp")]
use super::packet::is_martian;
use crate::Error;
use crate::packet_socket::{PacketSocket, Sent, Setup};
use crate::ring::{Format, RingFrame};
#[cfg(feature = "xdp")]
use crate::xdp::{Addresses, XdpFrame, XdpSocket};
use fleetfoot_core::time::Instant;
use foldhash::fast::RandomState;
use std::collections::HashSet;
use std::io::IoSlice;
use std::net::IpAddr;
#[cfg(feature = "xdp")]
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

/// The addresses of this machine.
pub(super) type Ours = HashSet<IpAddr, RandomState>;

/// One or the other.
pub(super) enum Io {
    Packet(PacketSocket),
    #[cfg(feature = "xdp")]
    Xdp(Box<XdpSocket>),
}

/// A frame that came.
pub(super) struct Frame<'a> {
    bytes: Bytes<'a>,
    /// When it came (ns of the wall clock), if the kernel says so.
    pub(super) stamp: Option<u64>,
    /// Whether all of it came.
    pub(super) whole: bool,
    /// The VLAN tag that the kernel took out.
    pub(super) tag: Option<[u8; 4]>,
    /// The checksum of its transport header was left to a device and is not there yet.
    pub(super) unfinished: bool,
}

enum Bytes<'a> {
    Ring(RingFrame<'a>),
    #[cfg(feature = "xdp")]
    Xdp(XdpFrame<'a>),
}

impl Frame<'_> {
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Ring(frame) => frame.bytes(),
            #[cfg(feature = "xdp")]
            Bytes::Xdp(frame) => frame.bytes(),
        }
    }
}

impl Io {
    /// Opens an interface for packets of up to `longest` bytes with their tags. In a router the kernel gets what is for this machine, by the
    /// interface's own address or one of `ours`.
    ///
    /// # Errors
    /// The interface is not there, a right is missing, or it cannot do what is asked.
    pub(super) fn open(
        name: &str,
        longest: u32,
        setup: Setup,
        own: Option<(&Interface, &Ours)>,
        log: &mut dyn FnMut(Event),
    ) -> Result<Io, Error> {
        if setup.ring != Format::Xdp {
            return PacketSocket::open_with(name, longest, setup).map(Io::Packet);
        }
        Io::open_xdp(name, longest, setup, own, log)
    }

    #[cfg(feature = "xdp")]
    fn open_xdp(
        name: &str,
        longest: u32,
        setup: Setup,
        own: Option<(&Interface, &Ours)>,
        log: &mut dyn FnMut(Event),
    ) -> Result<Io, Error> {
        let own = own.map(|(facts, ours)| own_addresses(facts, ours));
        let socket = XdpSocket::open(name, longest, setup.waiting.unwrap_or_default(), own.as_ref())?;
        log(Event::Xdp {
            name: name.to_owned(),
            in_driver: socket.in_driver(),
            zero_copy: socket.zero_copy(),
            beside_kernel: own.is_some(),
        });
        Ok(Io::Xdp(Box::new(socket)))
    }

    #[cfg(not(feature = "xdp"))]
    fn open_xdp(
        name: &str,
        _: u32,
        _: Setup,
        _: Option<(&Interface, &Ours)>,
        _: &mut dyn FnMut(Event),
    ) -> Result<Io, Error> {
        Err(Error::new(
            format!("{name} cannot have `ring = \"xdp\"`: this program was built without it"),
            std::io::Error::new(
                std::io::ErrorKind::Unsupported,
                "cargo build --release --locked --features xdp -p fleetfoot-cli; or take `frames` or `blocks`",
            ),
        ))
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Io::Packet(socket) => socket.name(),
            #[cfg(feature = "xdp")]
            Io::Xdp(socket) => socket.name(),
        }
    }

    /// Whether a frame waits.
    #[inline]
    pub(super) fn has_frame(&self) -> bool {
        match self {
            Io::Packet(socket) => socket.has_frame(),
            #[cfg(feature = "xdp")]
            Io::Xdp(socket) => socket.has_frame(),
        }
    }

    /// The next frame, if one waits.
    #[inline]
    pub(super) fn receive(&mut self) -> Option<Frame<'_>> {
        match self {
            Io::Packet(socket) => socket.receive().map(|frame| Frame {
                stamp: Some(frame.stamp),
                whole: frame.whole,
                tag: frame.tag,
                unfinished: frame.unfinished,
                bytes: Bytes::Ring(frame),
            }),
            #[cfg(feature = "xdp")]
            Io::Xdp(socket) => socket.receive().map(|frame| Frame {
                stamp: None,
                whole: true,
                tag: None,
                unfinished: false,
                bytes: Bytes::Xdp(frame),
            }),
        }
    }

    /// Sends frames in their order, as far as the interface takes them.
    ///
    /// # Errors
    /// The interface is gone.
    #[inline]
    pub(super) fn send(&mut self, frames: &[IoSlice<'_>]) -> Result<Sent, Error> {
        match self {
            Io::Packet(socket) => socket.send(frames),
            #[cfg(feature = "xdp")]
            Io::Xdp(socket) => socket.send(frames),
        }
    }

    /// Has the kernel go on with what it was given and has not taken yet.
    #[inline]
    pub(super) fn push(&mut self, now: Instant) {
        match self {
            Io::Packet(_) => {
                let _ = now;
            }
            #[cfg(feature = "xdp")]
            Io::Xdp(socket) => socket.push(now),
        }
    }

    /// When [`Io::push`] is to be called next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Io::Packet(_) => None,
            #[cfg(feature = "xdp")]
            Io::Xdp(socket) => socket.poll_timeout(),
        }
    }

    /// Looks at what the kernel reported beside frames.
    ///
    /// # Errors
    /// The interface is gone.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self {
            Io::Packet(socket) => socket.check(),
            #[cfg(feature = "xdp")]
            Io::Xdp(socket) => socket.check(),
        }
    }

    /// Whether the kernel has a frame that was received here, too.
    pub(super) const fn shares(&self) -> bool {
        matches!(self, Io::Packet(_))
    }

    /// The addresses of the interface, or of this machine, may have changed in a router.
    pub(super) fn follow(&mut self, facts: &Interface, ours: &Ours) {
        match self {
            Io::Packet(_) => {
                let _ = (facts, ours);
            }
            #[cfg(feature = "xdp")]
            Io::Xdp(socket) => socket.leave(&own_addresses(facts, ours)),
        }
    }

    /// Frames that only the kernel got, and their bytes, since the last call.
    pub(super) fn passed(&mut self) -> [u64; 2] {
        match self {
            Io::Packet(_) => [0; 2],
            #[cfg(feature = "xdp")]
            Io::Xdp(socket) => socket.passed(),
        }
    }

    /// Frames that were lost because nobody read them in time, since the last call.
    pub(super) fn missed(&mut self) -> u64 {
        match self {
            Io::Packet(socket) => socket.missed().into(),
            #[cfg(feature = "xdp")]
            Io::Xdp(socket) => socket.missed(),
        }
    }
}

impl AsFd for Io {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Io::Packet(socket) => socket.as_fd(),
            #[cfg(feature = "xdp")]
            Io::Xdp(socket) => socket.as_fd(),
        }
    }
}

/// What the kernel is to have, as [`fate`](super::packet::fate) decides; it knows groups without being told, and addresses that no packet from outside has
/// are nobody's.
#[cfg(feature = "xdp")]
fn own_addresses(facts: &Interface, ours: &Ours) -> Addresses {
    let ours = ours.iter().copied().filter(|address| !is_martian(address));
    Addresses {
        hardware: facts.hardware.unwrap_or_default(),
        destinations: ours.chain([IpAddr::V4(Ipv4Addr::BROADCAST)]).collect(),
    }
}
