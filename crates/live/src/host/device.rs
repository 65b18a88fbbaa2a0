//! Where a host is attached: a TUN device, or the end of a veth pair where TUN is not permitted.

use crate::packet_socket::{PacketSocket, Sent};
use crate::{Error, Tun};
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};

/// What carries whole IP packets to and from a host. Nothing here waits.
pub trait Device {
    /// The next packet, if one waits: its length in `buffer`. One that is longer than the buffer is cut.
    ///
    /// # Errors
    /// The device is gone.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Error>;

    /// Hands a packet over; false if the other side had no room for it or is down.
    ///
    /// # Errors
    /// The device is gone.
    fn send(&mut self, packet: &[u8]) -> Result<bool, Error>;

    /// What can be read when a packet waits.
    fn fd(&self) -> BorrowedFd<'_>;
}

impl Device for Tun {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        self.try_receive(buffer)
    }

    fn send(&mut self, packet: &[u8]) -> Result<bool, Error> {
        self.try_send(packet)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// One end of a veth pair, read and written as frames. No address is resolved: the kernel at the other end has entries that
/// do not expire for this one (`place`).
pub struct Port {
    socket: PacketSocket,
    frame: Vec<u8>,
    /// Hardware addresses: the other end's, then ours.
    ends: [u8; 12],
}

impl Port {
    /// Takes the interface `name`, whose MTU is `mtu`, whose pair has the hardware address `other`, and which has itself `own`.
    ///
    /// # Errors
    /// The interface is not there, or packet sockets are not permitted.
    pub fn open(name: &str, mtu: u32, own: [u8; 6], other: [u8; 6]) -> Result<Port, Error> {
        let mut ends = [0; 12];
        ends[..6].copy_from_slice(&other);
        ends[6..].copy_from_slice(&own);
        Ok(Port {
            socket: PacketSocket::open(name, mtu)?,
            frame: vec![0; HEADER + 65_536],
            ends,
        })
    }
}

impl Device for Port {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        loop {
            let Some(frame) = self.socket.receive() else {
                self.socket.check()?;
                return Ok(None);
            };
            let frame = frame.bytes();
            let (Some(kind), Some(packet)) = (frame.get(12..HEADER), frame.get(HEADER..)) else {
                continue;
            };
            if kind != IPV4 && kind != IPV6 {
                continue; // ARP and the like
            }
            let length = packet.len().min(buffer.len());
            buffer[..length].copy_from_slice(&packet[..length]);
            return Ok(Some(length));
        }
    }

    fn send(&mut self, packet: &[u8]) -> Result<bool, Error> {
        let end = HEADER + packet.len();
        let Some(frame) = self.frame.get_mut(..end) else {
            return Ok(false);
        };
        frame[..12].copy_from_slice(&self.ends);
        let six = packet.first().is_some_and(|first| first >> 4 == 6);
        frame[12..HEADER].copy_from_slice(if six { &IPV6 } else { &IPV4 });
        frame[HEADER..].copy_from_slice(packet);
        Ok(matches!(
            self.socket.send(&[IoSlice::new(frame)])?,
            Sent::Taken(_)
        ))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Length of an Ethernet header.
const HEADER: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
