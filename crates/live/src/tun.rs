//! A TUN device.

use crate::offload::{request_for, socket};
use crate::{Clock, Error};
use fleetfoot_core::time::Instant;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::unistd::{read, write};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// A TUN device: whole IP packets, one per read and write, no header before them, no segmentation offload.
pub struct Tun {
    device: File,
}

impl Tun {
    /// Makes the device in the namespace of this thread.
    pub fn open(name: &str) -> Result<Tun, Error> {
        let fail =
            |cause| Error::new(format!("cannot make the TUN device {name}"), cause).needing("CAP_NET_ADMIN");
        let device = make(name).map_err(fail)?;
        let control = socket()?;
        set_up(&control, name).map_err(fail)?;
        Ok(Tun { device })
    }

    /// Gives a packet to the kernel.
    pub fn send(&self, packet: &[u8]) -> Result<(), Error> {
        write(&self.device, packet).map(|_| ()).map_err(|cause| {
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
            match write(&self.device, packet) {
                Ok(_) => return Ok(true),
                Err(Errno::EINTR) => {}
                // EIO: the device is down and may come up again. EINVAL: this is no IP packet.
                Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM | Errno::EIO | Errno::EINVAL) => {
                    return Ok(false);
                }
                Err(errno) => return Err(Error::new("cannot write to the TUN device", errno)),
            }
        }
    }

    /// The next packet that the kernel sent, if one waits; its length in `buffer`.
    ///
    /// # Errors
    /// The device is gone.
    pub fn try_receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        loop {
            match read(&self.device, buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => return Err(Error::new("cannot read from the TUN device", errno)),
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
                Ok(_) | Err(Errno::EINTR) => {}
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

/// The device itself, which exists as long as the file is open.
fn make(name: &str) -> io::Result<File> {
    let mut request = request_for(name).ok_or(io::ErrorKind::InvalidInput)?;
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request is live, and of the form that this command asks for.
    done(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    // A device that outlives its file keeps what it was told of segmentation offload.
    // SAFETY: this command takes a number.
    done(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD as _, 0) })?;
    Ok(device)
}

fn set_up(control: &impl AsRawFd, name: &str) -> io::Result<()> {
    let mut request = request_for(name).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: the request is live, and of the form that this command asks for.
    done(unsafe { libc::ioctl(control.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) })?;
    // SAFETY: the kernel has filled this field.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: as above.
    done(unsafe { libc::ioctl(control.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request) })
}

fn done(result: libc::c_int) -> io::Result<()> {
    match result < 0 {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    }
}
