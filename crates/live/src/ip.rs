//! Interfaces, addresses and routes, set by `ip` (iproute2).

use crate::{Clock, Error, Namespace};
use fleetfoot_core::time::Duration;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// Addresses of one link: a network of four IPv4 addresses and one of IPv6.
pub(crate) struct Addresses {
    /// The interface at the far end.
    pub(crate) outer: String,
    /// IPv4 and IPv6 of the command's end.
    pub(crate) near: [String; 2],
    /// IPv4 and IPv6 of the far end.
    pub(crate) far: [String; 2],
    /// The networks of both.
    pub(crate) networks: [String; 2],
    /// Hardware addresses of the far end and of the command's end.
    pub(crate) hardware: [String; 2],
    /// IPv4 and IPv6 that a host of our TCP ([`host`](crate::host)) may take at the command's end, and at the far end.
    pub(crate) near_host: [String; 2],
    pub(crate) far_host: [String; 2],
}

/// Lengths of the prefixes of hosts' addresses.
const HOST_PREFIXES: [u8; 2] = [30, 64];

/// A host's addresses with their prefixes, as `FLEETFOOT_ADDRESS` has them.
pub(crate) fn with_prefixes(addresses: &[String; 2]) -> String {
    let [four, six] = HOST_PREFIXES;
    format!("{}/{four} {}/{six}", addresses[0], addresses[1])
}

impl Addresses {
    /// Those with this number, from the shared address space of RFC 6598 and the local addresses of RFC 4193.
    fn numbered(number: u32) -> Addresses {
        let (high, low) = (64 + (number >> 14 & 63), number << 2);
        let four = |host: u32| format!("100.{high}.{}.{}", low >> 8 & 255, (low & 252) + host);
        let six = |host: u32| format!("fd66:6c74:{:x}:{:x}::{host}", number >> 16, number & 0xffff);
        // Of the network that RFC 2544 set aside for measurements.
        let host = |end: u32| {
            [
                format!("198.{}.{}.{}", 18 + end, low >> 8 & 255, (low & 252) + 2),
                format!(
                    "fd66:6c74:{:x}:{:x}::2",
                    (2 + end) << 14 | number >> 16,
                    number & 0xffff
                ),
            ]
        };
        Addresses {
            outer: format!("ff{number}"),
            near: [four(2), six(2)],
            far: [four(1), six(1)],
            networks: [format!("{}/30", four(0)), format!("{}/64", six(0))],
            // Locally administered.
            hardware: [1, 2].map(|host| {
                let [_, a, b, c] = number.to_be_bytes();
                format!("02:66:{a:02x}:{b:02x}:{c:02x}:{host:02x}")
            }),
            near_host: host(1),
            far_host: host(0),
        }
    }

    /// Those of the link that is made by `try_it`, which fails where another has the name. Numbers are drawn, so that links of
    /// different namespaces, of which one may lie behind the other, differ too.
    pub(crate) fn draw(try_it: impl Fn(&Addresses) -> Result<(), Error>) -> Result<Addresses, Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut state = now.as_nanos() as u64 ^ u64::from(std::process::id()) << 32;
        let mut attempt = 0;
        loop {
            // splitmix64
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            let addresses = Addresses::numbered((mixed >> 44) as u32);
            attempt += 1;
            if addresses.are_taken() && attempt < ATTEMPTS {
                continue;
            }
            match try_it(&addresses) {
                Err(error) if attempt < ATTEMPTS && error.to_string().contains("File exists") => {}
                done => return done.map(|()| addresses),
            }
        }
    }

    /// Whether one of them is an address of this namespace already.
    fn are_taken(&self) -> bool {
        [&self.near[0], &self.far[0]]
            .iter()
            .any(|address| UdpSocket::bind((address.as_str(), 0)).is_ok())
    }
}

/// How often a number is drawn at most.
const ATTEMPTS: u32 = 20;

/// Runs lines of `ip -batch` in the namespace of this thread.
pub(crate) fn ip(lines: &str) -> Result<(), Error> {
    batch(Command::new("ip").args(["-batch", "-"]), lines, NO_IP)
}

/// Runs lines of `ip -batch` in another network namespace.
pub(crate) fn ip_at(namespace: &File, lines: &str) -> Result<(), Error> {
    let namespace = namespace
        .try_clone()
        .map_err(|cause| Error::new("cannot use a network namespace", cause))?;
    let mut command = Command::new("ip");
    // SAFETY: between fork and exec only one call of the kernel is made.
    unsafe {
        command.pre_exec(move || Ok(setns(&namespace, CloneFlags::CLONE_NEWNET)?));
    }
    batch(command.args(["-batch", "-"]), lines, NO_IP)
}

/// Why `ip` may not be there.
const NO_IP: &str = "cannot run ip (Debian package iproute2)";

/// Runs a command that reads these lines from its standard input. `missing`: what is said where it cannot be started.
pub(crate) fn batch(command: &mut Command, lines: &str, missing: &str) -> Result<(), Error> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|cause| Error::new(missing, cause))?;
    let name = command.get_program().to_string_lossy().into_owned();
    if let Some(stdin) = &mut child.stdin {
        // A child that died early says why below.
        let _ = stdin
            .write_all(lines.as_bytes())
            .and_then(|()| stdin.write_all(b"\n"));
    }
    let output = child
        .wait_with_output()
        .map_err(|cause| Error::new(format!("cannot run {name}"), cause))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::new(
        format!("{name} {lines:?}"),
        std::io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_string()),
    ))
}

/// What `ip` shows of an interface of this thread's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) mtu: u32,
    pub(crate) loopback: bool,
    /// Whether it is an Ethernet interface; a tunnel (tun, wireguard) has packets without a header before that of IP.
    pub(crate) ethernet: bool,
    /// The bridge or bond that it belongs to.
    pub(crate) master: Option<String>,
}

impl Facts {
    /// Whether packets have an Ethernet header there. Those of a loopback have one of zeros.
    #[cfg(any(test, feature = "bpf"))]
    pub(crate) const fn has_ethernet_header(&self) -> bool {
        self.ethernet || self.loopback
    }

    /// Those of the interface called `name`.
    pub(crate) fn of(name: &str) -> Result<Facts, Error> {
        let output = Command::new("ip")
            .args(["-oneline", "link", "show", "dev", name])
            .stdin(Stdio::null())
            .output()
            .map_err(|cause| Error::new(NO_IP, cause))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Facts::read(&text).ok_or_else(|| {
            let errors = String::from_utf8_lossy(&output.stderr);
            Error::new(
                format!("cannot look at the interface {name}"),
                std::io::Error::other(errors.trim().to_owned()),
            )
        })
    }

    /// Reads a line of `ip -oneline link show`.
    fn read(line: &str) -> Option<Facts> {
        let (_, rest) = line.split_once('<')?;
        let (flags, rest) = rest.split_once('>')?;
        let after = |word: &str| {
            let mut words = rest.split_whitespace();
            words.find(|found| *found == word)?;
            words.next()
        };
        Some(Facts {
            mtu: after("mtu")?.parse().ok()?,
            loopback: flags.split(',').any(|flag| flag == "LOOPBACK"),
            ethernet: rest.split_whitespace().any(|word| word == "link/ether"),
            master: after("master").map(str::to_owned),
        })
    }
}

/// The network that a host's address ([`Addresses::far_host`]) shares with the kernel.
pub(crate) fn network_of(host: &str, family: u8) -> String {
    let [four, six] = HOST_PREFIXES;
    match host.rsplit_once(['.', ':']) {
        Some((rest, last)) if family == 4 => {
            let last: u8 = last.parse().unwrap_or(0);
            format!("{rest}.{}/{four}", last & 0xfc)
        }
        Some((rest, _)) => format!("{rest}:/{six}"),
        None => host.to_owned(),
    }
}

/// Packets of others are passed on in the network namespace of this thread. A refusal concerns hosts behind this one only.
pub(crate) fn forward() {
    for path in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        let _ = std::fs::write(format!("/proc/sys/net/{path}"), "1");
    }
}

/// No address is made for this interface, and no neighbour looked for. A refusal costs a few packets only.
pub(crate) fn quiet(interface: &str) {
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1");
}

/// Waits until an interface of this thread's namespace sends what it is given. The kernel drops all of it for a moment, up to a second,
/// after the other end has come up.
pub(crate) fn carries(interface: &str) -> Result<(), Error> {
    let clock = Clock::start();
    let running = || {
        let flags = getifaddrs()
            .ok()?
            .find(|found| found.interface_name == interface)?;
        Some(flags.flags.contains(InterfaceFlags::IFF_RUNNING))
    };
    if Namespace::wait(&clock, Duration::from_millis(5000), || running() == Some(true)) {
        return Ok(());
    }
    Err(Error::new(
        format!("the link's interface {interface} does not come up"),
        std::io::ErrorKind::TimedOut,
    ))
}

#[cfg(test)]
mod tests {
    use super::{Addresses, Facts, network_of, with_prefixes};

    #[test]
    fn a_line_of_ip_is_read() {
        let line = "7: m0@if6: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400 qdisc noqueue master br0 state UP mode DEFAULT group default qlen 1000\\    link/ether 02:66:00:00:00:01 brd ff:ff:ff:ff:ff:ff";
        let facts = Facts::read(line).expect("a line of ip");
        assert_eq!(
            (facts.mtu, facts.loopback, facts.ethernet, facts.master.as_deref()),
            (1400, false, true, Some("br0"))
        );
        let tunnel = "4: tun0: <POINTOPOINT,MULTICAST,NOARP,UP> mtu 1500 qdisc noop state DOWN qlen 500\\    link/none ";
        assert!(!Facts::read(tunnel).expect("a line of ip").has_ethernet_header());
        let facts = Facts::read("1: lo: <LOOPBACK> mtu 65536 qdisc noop state DOWN").expect("a line of ip");
        assert_eq!((facts.mtu, facts.loopback, facts.master), (65_536, true, None));
        assert_eq!(Facts::read("Device \"x\" does not exist."), None);
    }

    #[test]
    fn hosts_at_both_ends_have_networks_of_their_own() {
        let addresses = Addresses::numbered(0x8_0041);
        assert_eq!(
            with_prefixes(&addresses.far_host),
            "198.18.1.6/30 fd66:6c74:8008:41::2/64"
        );
        assert_eq!(
            with_prefixes(&addresses.near_host),
            "198.19.1.6/30 fd66:6c74:c008:41::2/64"
        );
        assert_eq!(network_of(&addresses.far_host[0], 4), "198.18.1.4/30");
        assert_eq!(network_of(&addresses.far_host[1], 6), "fd66:6c74:8008:41::/64");
    }
}
