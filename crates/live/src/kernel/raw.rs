//! Trains of raw packets from the senders' side, as the simulator's hosts send them: headers that say what an attacker likes.
//!
//! They go to addresses that nobody has, so that nobody answers: one for each group and host. What arrives there is counted, by a
//! packet socket that sees these addresses alone.
//!
//! **Deviations.** A host's own address is the source where the simulator has it too; addresses that nobody has are of 10.0.0.0/8.

use super::place::{Place, hardware_address};
use super::play::Play;
use crate::Error;
use crate::frames::HEADER;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::rng::{Rng, Sampler};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_core::wire;
use fleetfoot_sim::spec::{Raw, RawPorts, RawSource};
use nix::errno::Errno;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;

/// What all processes of a group draw from.
pub(super) struct Draws {
    pub(super) gap: Sampler,
    pub(super) marks: Rng,
    /// Trains that have begun.
    pub(super) conversations: u32,
}

/// A process of trains.
pub(super) struct Trains {
    raw: Raw,
    draws: Rc<RefCell<Draws>>,
    /// When the next train begins.
    next: Instant,
    begun: u64,
    /// Those that are not over, in the order of their next packets.
    open: VecDeque<Train>,
    /// Record of what was sent and what arrived.
    record: Option<usize>,
}

#[derive(Clone, Copy)]
struct Train {
    at: Instant,
    source: SocketAddr,
    destination: SocketAddr,
    sent: u32,
    id: u16,
}

impl Trains {
    /// The first train begins at `next`.
    pub(super) fn new(raw: &Raw, next: Instant, draws: Rc<RefCell<Draws>>) -> Trains {
        Trains {
            raw: raw.clone(),
            draws,
            next,
            begun: 0,
            open: VecDeque::new(),
            record: None,
        }
    }

    /// When something is due again.
    fn due(&self) -> Option<Instant> {
        let more = self.raw.count.is_none_or(|most| self.begun < most);
        let packet = self.open.front().map(|train| train.at);
        packet.into_iter().chain(more.then_some(self.next)).min()
    }
}

impl Play<'_> {
    /// Packets of trains are due, or a train begins.
    pub(super) fn send_trains(&mut self, group: u32, number: u32, now: Instant) -> Result<(), Error> {
        let own = self.groups[group as usize].actors[number as usize].pair;
        let record = match self.trains(group, number).and_then(|trains| trains.record) {
            Some(record) => record,
            None => self.new_record(group, own, now, 0),
        };
        loop {
            let Some(trains) = self.trains(group, number) else {
                return Ok(());
            };
            trains.record = Some(record);
            let Some(due) = trains.due() else {
                return Ok(());
            };
            if due > now {
                self.act_at(group, number, due);
                return Ok(());
            }
            let begins = trains.open.front().is_none_or(|train| train.at > now);
            let train = match begins {
                true => self.begin_train(group, number, own),
                false => trains.open.pop_front(),
            };
            if let Some(train) = train {
                self.continue_train(group, number, record, train)?;
            }
        }
    }

    fn trains(&mut self, group: u32, number: u32) -> Option<&mut Trains> {
        self.groups[group as usize].actors[number as usize].trains()
    }

    /// A train begins with the headers it claims: they are drawn in the simulator's order.
    fn begin_train(&mut self, group: u32, number: u32, own: u32) -> Option<Train> {
        let pair = self.groups[group as usize].pairs.pick(own);
        let hosts = self.hosts;
        let mut source = hosts.address(group as usize, pair, 0);
        let destination = hosts.number(group as usize, pair, 1);
        let trains = self.trains(group, number)?;
        let at = trains.next;
        let mut draws = trains.draws.borrow_mut();
        match trains.raw.source {
            RawSource::Own | RawSource::Victim(_) => {}
            RawSource::Drawn(addresses) => {
                let drawn = draws.marks.below(u64::from(addresses)) as u32;
                source = IpAddr::V4(Ipv4Addr::from_bits(NOBODYS | drawn & 0x00ff_ffff));
            }
            RawSource::Host(node) => source = hosts.address_of_sender(node),
        }
        let conversation = draws.conversations;
        draws.conversations += 1;
        let ports = match trains.raw.ports {
            RawPorts::New | RawPorts::Known => [
                1024 + (conversation % 60_000) as u16,
                1 + (group % 1000) as u16 + 1000 * (conversation / 60_000 % 60) as u16,
            ],
            RawPorts::Same => [1024, 9],
            RawPorts::Drawn => [draws.marks.next_u32() as u16, draws.marks.next_u32() as u16],
        };
        let drawn = draws.marks.next_u32() as u16;
        let gap = Duration::from_secs_f64(draws.gap.sample()).max(Duration::from_nanos(1));
        drop(draws);
        trains.begun += 1;
        let id = trains.raw.id.unwrap_or(drawn) & trains.raw.layout.max_id();
        // From when this one was due, not from now: lateness of this machine does not add up.
        trains.next = trains.next.saturating_add(gap);
        let record = trains.record.unwrap_or(0);
        let to = unanswered(group, destination);
        if let Some(injector) = &mut self.injector {
            injector.counts_for(to, group, record);
        }
        Some(Train {
            at,
            source: SocketAddr::new(source, ports[0]),
            destination: SocketAddr::new(to, ports[1]),
            sent: 0,
            id,
        })
    }

    /// The next packet of a train leaves; with no interval, all that are left.
    fn continue_train(
        &mut self,
        group: u32,
        number: u32,
        record: usize,
        mut train: Train,
    ) -> Result<(), Error> {
        loop {
            let Some(trains) = self.trains(group, number) else {
                return Ok(());
            };
            let (segment, interval) = (trains.raw.packet(train.sent, train.id), trains.raw.interval);
            train.sent += 1;
            let last = train.sent >= trains.raw.members;
            if !last && !interval.is_zero() {
                train.at = train.at.saturating_add(interval);
                trains.open.push_back(train);
            }
            if let Some(injector) = &mut self.injector {
                injector.send(&segment, train.source, train.destination)?;
            }
            let flow = &mut self.groups[group as usize].output.flows[record];
            flow.add_datagrams(1, u64::from(segment.payload));
            if last || !interval.is_zero() {
                return Ok(());
            }
        }
    }

    /// Counts the raw packets that have arrived.
    pub(super) fn count_raw(&mut self) -> Result<(), Error> {
        let now = self.now();
        let measured = (Instant::ZERO + self.spec.warmup..Instant::ZERO + self.spec.duration).contains(&now);
        while let Some(injector) = &mut self.injector
            && let Some(Arrived {
                group,
                record,
                payload,
            }) = injector.arrived()?
        {
            let output = &mut self.groups[group as usize].output;
            if measured {
                output.goodput_bytes += payload;
            }
            let flow = &mut output.flows[record];
            flow.received += payload;
            flow.bytes = flow.received;
        }
        Ok(())
    }
}

/// Sends raw packets at the senders' side, and sees what arrives of them at the receivers'.
pub(super) struct Injector {
    sends: OwnedFd,
    to: libc::sockaddr_ll,
    sees: OwnedFd,
    frame: Vec<u8>,
    /// The record of what goes to each address.
    records: HashMap<Ipv4Addr, (u32, usize)>,
}

/// A raw packet that arrived.
struct Arrived {
    group: u32,
    record: usize,
    payload: Bytes,
}

impl Injector {
    /// In the namespaces of `place`.
    pub(super) fn open(place: &Place) -> Result<Injector, Error> {
        let fail = |cause| Error::new("cannot open a packet socket", cause).needing("CAP_NET_RAW");
        place.enter(1)?;
        // Before it is bound it receives nothing, so nothing passes by the filter.
        let sees = packet_socket(libc::SOCK_DGRAM).map_err(fail)?;
        filter(&sees).map_err(fail)?;
        bind(&sees, libc::ETH_P_IP as u16).map_err(fail)?;
        place.enter(0)?;
        let sends = packet_socket(libc::SOCK_RAW).map_err(fail)?;
        let to = bind(&sends, 0).map_err(fail)?;
        Ok(Injector {
            sends,
            to,
            sees,
            frame: vec![0; LONGEST],
            records: HashMap::new(),
        })
    }

    /// What shows that packets have arrived.
    pub(super) fn descriptor(&self) -> i32 {
        self.sees.as_raw_fd()
    }

    /// What goes to the address counts for this record from now on.
    fn counts_for(&mut self, address: IpAddr, group: u32, record: usize) {
        if let IpAddr::V4(address) = address {
            self.records.insert(address, (group, record));
        }
    }

    /// Sends a packet. One that the interface does not take is lost, as in its queue.
    fn send(&mut self, segment: &Segment, source: SocketAddr, destination: SocketAddr) -> Result<(), Error> {
        let (ethernet, packet) = self.frame.split_at_mut(HEADER);
        ethernet[..6].copy_from_slice(&hardware_address(1));
        ethernet[6..12].copy_from_slice(&hardware_address(0));
        ethernet[12..].copy_from_slice(&(libc::ETH_P_IP as u16).to_be_bytes());
        let length = wire::encode(packet, segment, source, destination, &[])
            .map_err(|error| Error::new(format!("cannot write a raw packet: {error}"), Errno::EINVAL))?;
        let frame = &self.frame[..HEADER + length];
        let (address, size) = (&raw const self.to, size_of::<libc::sockaddr_ll>());
        // SAFETY: pointers and lengths are of live values.
        let sent = unsafe {
            libc::sendto(
                self.sends.as_raw_fd(),
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

    /// The next packet that arrived.
    fn arrived(&mut self) -> Result<Option<Arrived>, Error> {
        loop {
            let mut header = [0_u8; IP_HEADER];
            // SAFETY: pointer and length are of one live array. With MSG_TRUNC the whole length of the packet is returned.
            let length = unsafe {
                libc::recv(
                    self.sees.as_raw_fd(),
                    header.as_mut_ptr().cast(),
                    header.len(),
                    libc::MSG_DONTWAIT | libc::MSG_TRUNC,
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
            if let Some(&(group, record)) = self.records.get(&Ipv4Addr::new(a, b, c, d)) {
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

/// Lets the socket see IPv4 packets to [`UNANSWERED`] alone.
fn filter(socket: &OwnedFd) -> io::Result<()> {
    let statement = |code: u32, k| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 16), // destination address
        statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, UNANSWERED_MASK),
        libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, UNANSWERED)
        },
        statement(libc::BPF_RET | libc::BPF_K, u32::MAX),
        statement(libc::BPF_RET | libc::BPF_K, 0),
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

/// Binds a packet socket to the interface of this thread's namespace, to receive this protocol or nothing.
fn bind(socket: &OwnedFd, protocol: u16) -> io::Result<libc::sockaddr_ll> {
    // SAFETY: the pointer is to a live string that ends with zero.
    let index = unsafe { libc::if_nametoindex(INTERFACE.as_ptr()) };
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
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
fn unanswered(group: u32, host: usize) -> IpAddr {
    let number = (group << 12 | host as u32 & 0xfff) & !UNANSWERED_MASK;
    IpAddr::V4(Ipv4Addr::from_bits(UNANSWERED | number))
}

/// Addresses that nobody has but that are on the link: the upper half of its network.
const UNANSWERED: u32 = 0x6460_0000;
const UNANSWERED_MASK: u32 = 0xffe0_0000;
/// Sources that nobody has.
const NOBODYS: u32 = 0x0a00_0000;
/// The longest frame that a packet can make; the interface refuses what is longer than its MTU.
const LONGEST: usize = HEADER + 65_535;
/// An IPv4 header without options, and with that of UDP.
const IP_HEADER: usize = 20;
const HEADERS: u64 = 28;
/// The interface of an end.
const INTERFACE: &CStr = c"eth0";
