//! Switches off what a kernel leaves to devices, so that packets are those of a wire.

use crate::Error;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Switches off what makes packets differ from those on a wire: segments that the kernel puts together or cuts late, and
/// checksums that are left to a device. The interface is in the namespace of this thread.
///
/// # Errors
/// The interface is not there, or one of the features stays on.
pub fn switch_off_offloads(interface: &str) -> Result<(), Error> {
    Offloads::switch_off(interface).map(Offloads::keep)
}

/// What was switched off at an interface; it is switched on again when this is dropped.
pub(crate) struct Offloads {
    fd: OwnedFd,
    interface: String,
    /// Features that were on.
    changed: Vec<&'static Feature>,
}

impl Offloads {
    /// As [`switch_off_offloads`].
    pub(crate) fn switch_off(interface: &str) -> Result<Offloads, Error> {
        let mut offloads = Offloads {
            fd: socket()?,
            interface: interface.to_owned(),
            changed: Vec::new(),
        };
        for feature in &FEATURES {
            let get = |offloads: &Offloads| ask(&offloads.fd, interface, feature.get, 0).unwrap_or(0) != 0;
            let was_on = get(&offloads);
            // A feature that the device does not have cannot be set, and is off.
            let done = ask(&offloads.fd, interface, feature.set, 0);
            if get(&offloads) {
                return Err(stays_on(interface, feature.name, done.err()));
            }
            if was_on {
                offloads.changed.push(feature);
            }
        }
        Ok(offloads)
    }

    /// Names of what was on.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.changed.iter().map(|feature| feature.name).collect()
    }

    /// It stays off.
    fn keep(mut self) {
        self.changed.clear();
    }
}

impl Drop for Offloads {
    fn drop(&mut self) {
        // What depends on another comes after it, and is switched on again in that order's reverse.
        for feature in self.changed.iter().rev() {
            let _ = ask(&self.fd, &self.interface, feature.set, 1);
        }
    }
}

/// Looks whether one of the features is on that [`switch_off_offloads`] switches off.
///
/// # Errors
/// One is, and how to switch it off.
pub(crate) fn refuse_offloads(interface: &str) -> Result<(), Error> {
    let fd = socket()?;
    let on: Vec<&Feature> = FEATURES
        .iter()
        .filter(|feature| ask(&fd, interface, feature.get, 0).unwrap_or(0) != 0)
        .collect();
    if on.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = on.iter().map(|feature| feature.name).collect();
    Err(Error::new(
        format!("{interface} has on: {}", names.join(", ")),
        io::Error::other(format!(
            "ethtool -K {interface} gro off gso off tso off sg off tx off"
        )),
    ))
}

/// A socket of this thread's namespace, to ask the kernel by.
pub(crate) fn socket() -> Result<OwnedFd, Error> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(Error::new("cannot open a socket", io::Error::last_os_error()));
    }
    // SAFETY: the kernel has just given this descriptor to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A feature of a network device: the requests of ethtool that read and set it.
struct Feature {
    name: &'static str,
    get: u32,
    set: u32,
}

/// From linux/ethtool.h. Scatter-gather follows transmit checksums.
const FEATURES: [Feature; 5] = [
    Feature {
        name: "generic receive offload (gro)",
        get: 0x2b,
        set: 0x2c,
    },
    Feature {
        name: "generic segmentation offload (gso)",
        get: 0x23,
        set: 0x24,
    },
    Feature {
        name: "TCP segmentation offload (tso)",
        get: 0x1e,
        set: 0x1f,
    },
    Feature {
        name: "scatter-gather (sg)",
        get: 0x18,
        set: 0x19,
    },
    Feature {
        name: "transmit checksums (tx)",
        get: 0x16,
        set: 0x17,
    },
];

/// `refusal`: what the kernel answered, if it did not take the setting at all.
fn stays_on(interface: &str, feature: &str, refusal: Option<io::Error>) -> Error {
    Error::new(
        format!("{feature} of {interface} cannot be switched off"),
        refusal.unwrap_or_else(|| io::ErrorKind::Unsupported.into()),
    )
    .needing("CAP_NET_ADMIN")
}

/// Has VLAN tags stay in the frames that come in.
///
/// # Errors
/// The device takes them out whatever it is told.
#[cfg(feature = "xdp")]
pub(crate) fn keep_tags(interface: &str) -> Result<(), Error> {
    const GET: u32 = 0x25;
    const SET: u32 = 0x26;
    const RXVLAN: u32 = 1 << 8;
    let fd = socket()?;
    // A device without flags has none that is on.
    let flags = ask(&fd, interface, GET, 0).unwrap_or(0);
    if flags & RXVLAN != 0 {
        let _ = ask(&fd, interface, SET, flags & !RXVLAN);
    }
    if ask(&fd, interface, GET, 0).unwrap_or(0) & RXVLAN != 0 {
        return Err(Error::new(
            format!("{interface} takes VLAN tags out of frames (rxvlan), and this cannot be switched off"),
            io::ErrorKind::Unsupported,
        ));
    }
    Ok(())
}

/// By how many queues frames come in.
#[cfg(feature = "xdp")]
pub(crate) fn receive_queues(interface: &str) -> Result<u32, Error> {
    const GET_CHANNELS: u32 = 0x3c;
    // `struct ethtool_channels`: what is possible, then what there is: for receiving, sending, other things, both.
    let mut channels = [0_u32; 9];
    channels[0] = GET_CHANNELS;
    // A driver that does not say has one.
    Ok(
        match request(&socket()?, interface, channels.as_mut_ptr().cast()) {
            Ok(()) => (channels[5] + channels[8]).max(1),
            Err(_) => 1,
        },
    )
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

fn ask(fd: &OwnedFd, interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = Value { command, data };
    request(fd, interface, (&raw mut value).cast())?;
    Ok(value.data)
}

/// Asks by a structure of ethtool that begins with its command.
fn request(fd: &OwnedFd, interface: &str, structure: *mut libc::c_char) -> io::Result<()> {
    let mut request = request_for(interface).ok_or(io::ErrorKind::InvalidInput)?;
    request.ifr_ifru.ifru_data = structure;
    // SAFETY: the request names a live structure of the form that its command asks for.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A request about the interface `name`; `None` if no interface can have such a name.
pub(crate) fn request_for(name: &str) -> Option<libc::ifreq> {
    // SAFETY: zeros are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *slot = byte as libc::c_char;
    }
    Some(request)
}

/// From linux/sockios.h.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
