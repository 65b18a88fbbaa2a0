//! Switches off what a kernel leaves to devices, so that packets are those of a wire.

use crate::Error;
use features::Features;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

mod features;

/// Switches off what makes packets differ from those on a wire: segments that the kernel puts together or cuts late, and
/// checksums that are left to a device. The interface is in the namespace of this thread.
///
/// # Errors
/// The interface is not there, or one of the features stays on.
pub fn switch_off_offloads(interface: &str) -> Result<(), Error> {
    Offloads::switch_off(interface).map(Offloads::keep)
}

/// What was switched off at an interface; it is as it was again when this is dropped.
pub(crate) struct Offloads {
    fd: OwnedFd,
    interface: String,
    /// Names of features that were on.
    changed: Vec<&'static str>,
    /// All features as they were; `None`: they stay as they are, or were not read.
    before: Option<Features>,
}

impl Offloads {
    /// As [`switch_off_offloads`].
    pub(crate) fn switch_off(interface: &str) -> Result<Offloads, Error> {
        let fd = socket()?;
        let mut offloads = Offloads {
            before: Features::read(&fd, interface).ok(),
            fd,
            interface: interface.to_owned(),
            changed: Vec::new(),
        };
        for feature in &FEATURES {
            let was_on = feature.is_on(&offloads.fd, interface);
            // A feature that the device does not have cannot be set, and is off.
            let done = feature.switch_off(&offloads.fd, interface);
            if feature.is_on(&offloads.fd, interface) {
                // Many a virtual machine's device says that it merges and takes no setting, whether its host merges or not. What it merges
                // is longer than the MTU, and is counted.
                if matches!(feature.by, By::Name(_)) {
                    continue;
                }
                return Err(stays_on(interface, feature.name, done.err()));
            }
            if was_on {
                offloads.changed.push(feature.name);
            }
        }
        Ok(offloads)
    }

    /// Names of what was on.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.changed.clone()
    }

    /// It stays off.
    fn keep(mut self) {
        self.before = None;
    }
}

impl Drop for Offloads {
    fn drop(&mut self) {
        // One request of ethtool may stand for several features, of which only some were on.
        if let Some(before) = &self.before {
            let _ = before.restore(&self.fd, &self.interface);
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
        .filter(|feature| feature.is_on(&fd, interface))
        .collect();
    if on.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = on.iter().map(|feature| feature.name).collect();
    // Most devices have the first ones, which depend on each other.
    let off: Vec<String> = FEATURES
        .iter()
        .filter(|feature| matches!(feature.by, By::Requests { .. }) || names.contains(&feature.name))
        .map(|feature| format!("{} off", feature.key))
        .collect();
    Err(Error::new(
        format!("{interface} has on: {}", names.join(", ")),
        io::Error::other(format!("ethtool -K {interface} {}", off.join(" "))),
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

/// A feature of a network device.
struct Feature {
    /// In words, and as ethtool calls it.
    name: &'static str,
    key: &'static str,
    by: By,
}

/// What a feature is read and set by.
enum By {
    /// Requests of ethtool for it alone.
    Requests { get: u32, set: u32 },
    /// Its name among all features.
    Name(&'static str),
}

impl Feature {
    const fn by_requests(name: &'static str, key: &'static str, get: u32) -> Feature {
        let by = By::Requests { get, set: get + 1 };
        Feature { name, key, by }
    }

    const fn by_name(name: &'static str, key: &'static str, feature: &'static str) -> Feature {
        let by = By::Name(feature);
        Feature { name, key, by }
    }

    fn is_on(&self, fd: &OwnedFd, interface: &str) -> bool {
        match self.by {
            By::Requests { get, .. } => ask(fd, interface, get, 0).unwrap_or(0) != 0,
            By::Name(name) => Features::read(fd, interface).is_ok_and(|features| features.is_on(name)),
        }
    }

    fn switch_off(&self, fd: &OwnedFd, interface: &str) -> io::Result<()> {
        match self.by {
            By::Requests { set, .. } => ask(fd, interface, set, 0).map(|_| ()),
            By::Name(name) => Features::read(fd, interface)?.switch_off(fd, interface, name),
        }
    }
}

/// From linux/ethtool.h. Scatter-gather follows transmit checksums. What devices merge is apart from what the kernel does (gro).
const FEATURES: [Feature; 9] = [
    Feature::by_requests("generic receive offload (gro)", "gro", 0x2b),
    Feature::by_requests("generic segmentation offload (gso)", "gso", 0x23),
    Feature::by_requests("TCP segmentation offload (tso)", "tso", 0x1e),
    Feature::by_requests("scatter-gather (sg)", "sg", 0x18),
    Feature::by_requests("transmit checksums (tx)", "tx", 0x16),
    Feature::by_name("large receive offload (lro)", "lro", "rx-lro"),
    Feature::by_name(
        "receive offload in hardware (rx-gro-hw)",
        "rx-gro-hw",
        "rx-gro-hw",
    ),
    Feature::by_name(
        "receive offload of lists (rx-gro-list)",
        "rx-gro-list",
        "rx-gro-list",
    ),
    Feature::by_name(
        "receive offload of forwarded UDP (rx-udp-gro-forwarding)",
        "rx-udp-gro-forwarding",
        "rx-udp-gro-forwarding",
    ),
];

/// `refusal`: what the kernel answered, if it did not take the setting at all.
fn stays_on(interface: &str, feature: &str, refusal: Option<io::Error>) -> Error {
    Error::new(
        format!("{feature} of {interface} cannot be switched off"),
        refusal.unwrap_or_else(|| io::ErrorKind::Unsupported.into()),
    )
    .needing("CAP_NET_ADMIN")
}

/// Has VLAN tags stay in the frames that come in, those of customers and of providers (802.1ad).
///
/// # Errors
/// The device takes them out whatever it is told.
#[cfg(feature = "xdp")]
pub(crate) fn keep_tags(interface: &str) -> Result<(), Error> {
    const GET: u32 = 0x25;
    const SET: u32 = 0x26;
    const RXVLAN: u32 = 1 << 8;
    const PROVIDERS: &str = "rx-vlan-stag-hw-parse";
    let fd = socket()?;
    let stays = |feature: &str| {
        Err(Error::new(
            format!("{interface} takes VLAN tags out of frames ({feature}), and this cannot be switched off"),
            io::ErrorKind::Unsupported,
        ))
    };
    // A device without flags has none that is on.
    let flags = ask(&fd, interface, GET, 0).unwrap_or(0);
    if flags & RXVLAN != 0 {
        let _ = ask(&fd, interface, SET, flags & !RXVLAN);
    }
    if ask(&fd, interface, GET, 0).unwrap_or(0) & RXVLAN != 0 {
        return stays("rxvlan");
    }
    // A kernel that lists no features by name has none that is on.
    let providers = || {
        Features::read(&fd, interface)
            .ok()
            .filter(|features| features.is_on(PROVIDERS))
    };
    if let Some(features) = providers() {
        let _ = features.switch_off(&fd, interface, PROVIDERS);
    }
    match providers() {
        Some(_) => stays(PROVIDERS),
        None => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use super::{Features, Offloads, refuse_offloads, socket, switch_off_offloads};
    use crate::Namespace;

    /// Names of the features of `one` that are on, of all that there are.
    fn on(place: &Namespace) -> Vec<String> {
        let list = place.shell("ethtool -k one").expect("ethtool lists features");
        let names = list.lines().filter_map(|line| line.split_once(": on"));
        names.map(|(name, _)| name.trim().to_owned()).collect()
    }

    fn with_pair(work: impl FnOnce(&Namespace) + Send) {
        let done = Namespace::run(|place| {
            if let Err(cause) = place.ip("link add one type veth peer name two") {
                println!("skipped: {cause}");
                return Ok(());
            }
            if place.shell("command -v ethtool").is_err() {
                println!("skipped: there is no ethtool to compare with");
                return Ok(());
            }
            work(place);
            Ok(())
        });
        if let Err(cause) = done {
            println!("skipped: {cause}");
        }
    }

    #[test]
    fn what_merges_packets_is_switched_off_and_as_it_was_again_behind() {
        with_pair(|place| {
            // One of the features that `tso` stands for is off, and others that are off by default are on.
            place
                .shell(
                    "ethtool -K one tx-tcp6-segmentation off rx-gro-list on rx-udp-gro-forwarding on gro on",
                )
                .expect("a veth has them");
            let before = on(place);
            for name in ["rx-gro-list", "rx-udp-gro-forwarding", "tx-tcp-segmentation"] {
                assert!(before.iter().any(|known| known == name), "{name}: {before:?}");
            }
            let refused = refuse_offloads("one").expect_err("some are on").to_string();
            assert!(
                refused.ends_with("tx off rx-gro-list off rx-udp-gro-forwarding off"),
                "{refused}"
            );
            let offloads = Offloads::switch_off("one").expect("they can be switched off");
            assert!(
                offloads.names().iter().any(|name| name.contains("rx-gro-list")),
                "{:?}",
                offloads.names()
            );
            refuse_offloads("one").expect("nothing is on");
            let meanwhile = on(place);
            for name in ["lro", "gro", "gso", "tcp-segmentation", "rx-udp-gro-forwarding"] {
                let one = meanwhile.iter().find(|known| known.ends_with(name));
                assert_eq!(one, None, "{meanwhile:?}");
            }
            drop(offloads);
            assert_eq!(on(place), before);
            // For good.
            switch_off_offloads("one").expect("they can be switched off");
            assert_eq!(on(place), meanwhile);
        });
    }

    #[test]
    fn a_feature_that_nobody_knows_is_off() {
        with_pair(|_| {
            let fd = socket().expect("a socket");
            let features = Features::read(&fd, "one").expect("a veth has features");
            assert!(!features.is_on("rx-of-the-future") && !features.is_on("rx-lro"));
            features
                .switch_off(&fd, "one", "rx-of-the-future")
                .expect("it is off");
            assert!(Features::read(&fd, "three").is_err());
        });
    }

    #[cfg(feature = "xdp")]
    #[test]
    fn tags_of_customers_and_providers_stay_in_frames() {
        with_pair(|place| {
            let taken_out = || {
                let on = on(place).into_iter();
                on.filter(|name| name.starts_with("rx-vlan") && name != "rx-vlan-filter")
                    .collect::<Vec<_>>()
            };
            assert_eq!(taken_out(), ["rx-vlan-offload", "rx-vlan-stag-hw-parse"]);
            super::keep_tags("one").expect("both can be switched off");
            assert_eq!(taken_out(), Vec::<String>::new());
        });
    }
}
