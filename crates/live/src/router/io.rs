//! How frames come from an interface and leave by it: a packet socket, or AF_XDP.

use super::{Event, Mode};
use crate::Error;
use crate::packet_socket::{PacketSocket, Sent, Setup};
use crate::ring::{Format, RingFrame};
#[cfg(feature = "xdp")]
use crate::xdp::{XdpFrame, XdpSocket};
use fleetfoot_core::time::Instant;
use std::io::{ErrorKind, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

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
    /// Opens an interface for packets of up to `longest` bytes with their tags.
    ///
    /// # Errors
    /// The interface is not there, a right is missing, or it cannot do what is asked.
    pub(super) fn open(
        name: &str,
        longest: u32,
        setup: Setup,
        mode: Mode,
        log: &mut dyn FnMut(Event),
    ) -> Result<Io, Error> {
        if setup.ring != Format::Xdp {
            return PacketSocket::open_with(name, longest, setup).map(Io::Packet);
        }
        if mode == Mode::Route {
            return Err(Error::new(
                format!("{name} cannot have `ring = \"xdp\"` with `mode = \"route\"`"),
                std::io::Error::new(
                    ErrorKind::Unsupported,
                    "the kernel, which answers ARP, would get nothing: it is for bridges; take `frames` or `blocks`",
                ),
            ));
        }
        Io::open_xdp(name, longest, setup, log)
    }

    #[cfg(feature = "xdp")]
    fn open_xdp(name: &str, longest: u32, setup: Setup, log: &mut dyn FnMut(Event)) -> Result<Io, Error> {
        let socket = XdpSocket::open(name, longest, setup.waiting.unwrap_or_default())?;
        log(Event::Xdp {
            name: name.to_owned(),
            in_driver: socket.in_driver(),
            zero_copy: socket.zero_copy(),
        });
        Ok(Io::Xdp(Box::new(socket)))
    }

    #[cfg(not(feature = "xdp"))]
    fn open_xdp(name: &str, _: u32, _: Setup, _: &mut dyn FnMut(Event)) -> Result<Io, Error> {
        Err(Error::new(
            format!("{name} cannot have `ring = \"xdp\"`: this program was built without it"),
            std::io::Error::new(
                ErrorKind::Unsupported,
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
