//! A TUN device.

use crate::{Clock, Error};
use fleetfoot_core::time::Instant;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, SyncDevice};

/// A TUN device: whole IP packets, one per read and write, no header before them, no segmentation offload.
pub struct Tun {
    device: SyncDevice,
}

impl Tun {
    /// Makes the device in the namespace of this thread.
    pub fn open(name: &str) -> Result<Tun, Error> {
        let fail =
            |cause| Error::new(format!("cannot make the TUN device {name}"), cause).needing("CAP_NET_ADMIN");
        let device = DeviceBuilder::new().name(name).build_sync().map_err(fail)?;
        device.set_nonblocking(true).map_err(fail)?;
        Ok(Tun { device })
    }

    /// Gives a packet to the kernel.
    pub fn send(&self, packet: &[u8]) -> Result<(), Error> {
        self.device.send(packet).map(|_| ()).map_err(|cause| {
            Error::new(
                format!("the kernel refused a packet of {} bytes", packet.len()),
                cause,
            )
        })
    }

    /// Gives a packet to the kernel; false if it had no room for it, the device is down, or it is no IP packet.
    ///
    /// # Errors
    /// The device is gone.
    pub fn try_send(&self, packet: &[u8]) -> Result<bool, Error> {
        loop {
            match self.device.send(packet) {
                Ok(_) => return Ok(true),
                Err(cause) => match cause.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // EIO: the device is down and may come up again. EINVAL: this is no IP packet.
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EIO | libc::EINVAL) => {
                        return Ok(false);
                    }
                    _ => return Err(Error::new("cannot write to the TUN device", cause)),
                },
            }
        }
    }

    /// The next packet that the kernel sent, if one waits; its length in `buffer`.
    ///
    /// # Errors
    /// The device is gone.
    pub fn try_receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        loop {
            match self.device.recv(buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(cause) => match cause.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => return Ok(None),
                    _ => return Err(Error::new("cannot read from the TUN device", cause)),
                },
            }
        }
    }

    /// The next packet that the kernel sent, waiting until `deadline`; its length in `buffer`.
    pub fn receive(
        &self,
        clock: &Clock,
        deadline: Instant,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, Error> {
        loop {
            if let Some(length) = self.try_receive(buffer)? {
                return Ok(Some(length));
            }
            let now = clock.now();
            if now >= deadline {
                return Ok(None);
            }
            let left = deadline.since(now).as_nanos();
            let wait = TimeSpec::new((left / 1_000_000_000) as i64, (left % 1_000_000_000) as i64);
            let mut wanted = [PollFd::new(self.device.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut wanted, Some(wait), None) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(Error::new("cannot wait for the TUN device", errno)),
            }
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
