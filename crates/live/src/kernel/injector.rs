//! Sends raw packets at the senders' side, and sees what arrives of them at the receivers'.
//!
//! Those with addresses that are an attacker's own, or nobody's, leave by the interface of the senders. Forged ones, which have the
//! addresses of a victim's connection, come to the link from another machine: behind the marker of the senders, where there is one,
//! which would take them for packets of that connection.
//!
//! **Deviations.** A forged packet is a TCP segment whose checksum is wrong, so the victim's receiver throws it away; it is counted before
//! that. In the simulator no receiver gets it.

use super::place::{MARKER, Place, hardware_address};
use crate::Error;
use crate::forged::{Forger, MAKERS};
use crate::frames::HEADER;
use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::units::Bytes;
use fleetfoot_core::wire;
use nix::errno::Errno;
use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Sends raw packets at the senders' side, and sees what arrives of them at the receivers'.
pub(super) struct Injector {
    sends: Way,
    /// The way of forged packets.
    forges: Way,
    sees: OwnedFd,
    frame: Vec<u8>,
    /// The record of what goes to each address.
    records: HashMap<Ipv4Addr, (u32, usize)>,
    /// The record of the forged packets of each group.
    forged: HashMap<u16, usize>,
}

/// A socket that sends frames out of an interface.
struct Way {
    socket: OwnedFd,
    to: libc::sockaddr_ll,
}

/// A raw packet that arrived.
pub(super) struct Arrived {
    pub(super) group: u32,
    pub(super) record: usize,
    pub(super) payload: Bytes,
}

impl Injector {
    /// In the namespaces of `place`; `marker`: there is one.
    pub(super) fn open(place: &Place, marker: bool) -> Result<Injector, Error> {
        let fail = |cause| Error::new("cannot open a packet socket", cause).needing("CAP_NET_RAW");
        place.enter(1)?;
        // Before it is bound it receives nothing, so nothing passes by the filter.
        let sees = packet_socket(libc::SOCK_DGRAM).map_err(fail)?;
        filter(&sees).map_err(fail)?;
        bind(&sees, INTERFACE, libc::ETH_P_IP as u16).map_err(fail)?;
        let behind = if marker {
            place.enter_middle()?;
            Some(Way::open(MARKER).map_err(fail)?)
        } else {
            None
        };
        place.enter(0)?;
        Ok(Injector {
            sends: Way::open(INTERFACE).map_err(fail)?,
            forges: match behind {
                Some(way) => way,
                None => Way::open(INTERFACE).map_err(fail)?,
            },
            sees,
            frame: vec![0; LONGEST],
            records: HashMap::new(),
            forged: HashMap::new(),
        })
    }

    /// What shows that packets have arrived.
    pub(super) fn descriptor(&self) -> i32 {
        self.sees.as_raw_fd()
    }

    /// What goes to the address counts for this record from now on.
    pub(super) fn counts_for(&mut self, address: IpAddr, group: u32, record: usize) {
        if let IpAddr::V4(address) = address {
            self.records.insert(address, (group, record));
        }
    }

    /// What a forger sends counts for this record from now on.
    pub(super) fn counts_forged(&mut self, forger: Forger, record: usize) {
        self.forged.insert(forger.group, record);
    }

    /// Sends a packet. One that the interface does not take is lost, as in its queue.
    pub(super) fn send(
        &mut self,
        segment: &Segment,
        source: SocketAddr,
        destination: SocketAddr,
        forger: Option<Forger>,
    ) -> Result<(), Error> {
        let (ethernet, packet) = self.frame.split_at_mut(HEADER);
        ethernet[..6].copy_from_slice(&hardware_address(1));
        ethernet[6..12].copy_from_slice(&forger.map_or(hardware_address(0), Forger::address));
        ethernet[12..].copy_from_slice(&(libc::ETH_P_IP as u16).to_be_bytes());
        let of_tcp = forger.map(|_| of_tcp(segment));
        let segment = of_tcp.as_ref().unwrap_or(segment);
        let length = wire::encode(packet, segment, source, destination, &[])
            .map_err(|error| Error::new(format!("cannot write a raw packet: {error}"), Errno::EINVAL))?;
        if of_tcp.is_some() {
            packet[CHECKSUM] ^= 0xff;
        }
        let way = if forger.is_some() {
            &self.forges
        } else {
            &self.sends
        };
        way.send(&self.frame[..HEADER + length])
    }

    /// The next packet that arrived.
    pub(super) fn arrived(&mut self) -> Result<Option<Arrived>, Error> {
        loop {
            let mut header = [0_u8; IP_HEADER];
            let mut from = NOWHERE;
            let mut size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            // SAFETY: pointers and lengths are of live values. With MSG_TRUNC the whole length of the packet is returned.
            let length = unsafe {
                libc::recvfrom(
                    self.sees.as_raw_fd(),
                    header.as_mut_ptr().cast(),
                    header.len(),
                    libc::MSG_DONTWAIT | libc::MSG_TRUNC,
                    (&raw mut from).cast(),
                    &raw mut size,
                )
            };
            if length < 0 {
                match Errno::last() {
                    Errno::EAGAIN => return Ok(None),
                    Errno::EINTR => continue,
                    errno => return Err(Error::new("cannot receive raw packets", errno)),
                }
            }
            let [.., a, b, c, d] = header;
            let of = match Forger::of_address(&from.sll_addr[..6]) {
                Some(forger) => {
                    let record = self.forged.get(&forger.group);
                    record.map(|&record| (u32::from(forger.group), record))
                }
                None => self.records.get(&Ipv4Addr::new(a, b, c, d)).copied(),
            };
            if let Some((group, record)) = of {
                let payload = Bytes((length as u64).saturating_sub(HEADERS));
                return Ok(Some(Arrived {
                    group,
                    record,
                    payload,
                }));
            }
        }
    }
}

impl Way {
    /// Out of an interface of this thread's namespace.
    fn open(interface: &str) -> io::Result<Way> {
        let socket = packet_socket(libc::SOCK_RAW)?;
        let to = bind(&socket, interface, 0)?;
        Ok(Way { socket, to })
    }

    fn send(&self, frame: &[u8]) -> Result<(), Error> {
        let (address, size) = (&raw const self.to, size_of::<libc::sockaddr_ll>());
        // SAFETY: pointers and lengths are of live values.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
                address.cast(),
                size as libc::socklen_t,
            )
        };
        match Errno::last() {
            _ if sent >= 0 => Ok(()),
            Errno::ENOBUFS | Errno::EAGAIN | Errno::EINTR | Errno::EMSGSIZE => Ok(()),
            errno => Err(Error::new("cannot send a raw packet", errno)),
        }
    }
}

/// A datagram's packet as one of TCP, as long and with the same mark.
fn of_tcp(datagram: &Segment) -> Segment {
    Segment {
        seq: SeqNumber(datagram.seq.0),
        payload: datagram.len().saturating_sub(u32::from(OF_TCP)),
        overhead: OF_TCP,
        flags: Flags::DF.with(Flags::ACK),
        ttl: datagram.ttl,
        tos: datagram.tos,
        ip_id: datagram.ip_id,
        ..Segment::default()
    }
}

/// A packet socket that is not bound: it receives nothing.
fn packet_socket(kind: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Lets the socket see IPv4 packets to [`UNANSWERED`] and of forgers alone.
fn filter(socket: &OwnedFd) -> io::Result<()> {
    let statement = |code: u32, k| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let equal = |k, jt, jf| libc::sock_filter {
        jt,
        jf,
        ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k)
    };
    let [a, b, c] = MAKERS;
    let source = (libc::SKF_LL_OFF + 6) as u32;
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, source),
        statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0xffff_ff00),
        equal(u32::from_be_bytes([a, b, c, 0]), 4, 0),
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 16), // destination address
        statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, UNANSWERED_MASK),
        equal(UNANSWERED, 1, 0),
        statement(libc::BPF_RET | libc::BPF_K, 0),
        statement(libc::BPF_RET | libc::BPF_K, u32::MAX),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the pointer is to a live program, whose pointer is to live instructions; the kernel copies them.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Binds a packet socket to an interface of this thread's namespace, to receive this protocol or nothing.
fn bind(socket: &OwnedFd, interface: &str, protocol: u16) -> io::Result<libc::sockaddr_ll> {
    let name = CString::new(interface)?;
    // SAFETY: the pointer is to a live string that ends with zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let address = libc::sockaddr_ll {
        sll_protocol: protocol.to_be(),
        sll_ifindex: index as i32,
        ..NOWHERE
    };
    let (pointer, size) = (&raw const address, size_of::<libc::sockaddr_ll>());
    // SAFETY: the pointer is to a live address of this length.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), pointer.cast(), size as libc::socklen_t) };
    if index == 0 || bound < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(address)
}

/// The address to which a group sends for a host of the receivers.
pub(super) fn unanswered(group: u32, host: usize) -> IpAddr {
    let number = (group << 12 | host as u32 & 0xfff) & !UNANSWERED_MASK;
    IpAddr::V4(Ipv4Addr::from_bits(UNANSWERED | number))
}

/// Addresses that nobody has but that are on the link: the upper half of its network.
const UNANSWERED: u32 = 0x6460_0000;
const UNANSWERED_MASK: u32 = 0xffe0_0000;
/// The longest frame that a packet can make; the interface refuses what is longer than its MTU.
const LONGEST: usize = HEADER + 65_535;
/// An IPv4 header without options, and with that of UDP.
const IP_HEADER: usize = 20;
const HEADERS: u64 = 28;
/// Headers of IPv4 and TCP without options.
const OF_TCP: u8 = 40;
/// Where in an IPv4 packet without options the checksum of TCP stands.
const CHECKSUM: usize = IP_HEADER + 16;
/// The interface of an end.
const INTERFACE: &str = "eth0";
/// An address of no interface.
const NOWHERE: libc::sockaddr_ll = libc::sockaddr_ll {
    sll_family: libc::AF_PACKET as u16,
    sll_protocol: 0,
    sll_ifindex: 0,
    sll_hatype: 0,
    sll_pkttype: 0,
    sll_halen: 0,
    sll_addr: [0; 8],
};
