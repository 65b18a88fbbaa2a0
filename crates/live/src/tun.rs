use crate::{Clock, Error};
use fleetfoot_core::time::Instant;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use tun_rs::{DeviceBuilder, SyncDevice};

/// A TUN device: whole IP packets, one per read and write, no header before them, no segmentation offload.
pub struct Tun {
    device: SyncDevice,
}

impl Tun {
    /// Makes the device in the namespace of this thread.
    pub fn open(name: &str) -> Result<Tun, Error> {
        let fail = |cause| Error::new(format!("cannot make the TUN device {name}"), cause);
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

    /// The next packet that the kernel sent, waiting until `deadline`; its length in `buffer`.
    pub fn receive(
        &self,
        clock: &Clock,
        deadline: Instant,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, Error> {
        loop {
            match self.device.recv(buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(cause) if cause.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(cause) => return Err(Error::new("cannot read from the TUN device", cause)),
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
