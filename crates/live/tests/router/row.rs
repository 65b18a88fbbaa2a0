//! Three network namespaces in a row, `a0`-`b0` and `b1`-`c0`, a router in the middle one, and frames that no host sends.

use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::wire;
use fleetfoot_core::wire::checksum::Sum;
use fleetfoot_live::router::{Config, Discard, Event, Order, Orders, Router, Snapshot, interfaces};
use fleetfoot_live::{Clock, Namespace, PacketSocket, Sent, switch_off_offloads};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io::{IoSlice, PipeReader, PipeWriter, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) fn skips() -> bool {
    match Namespace::available() {
        Ok(()) => false,
        Err(reason) => {
            println!("skipped: {reason}");
            true
        }
    }
}

pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program).arg("-V").output().is_ok();
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// A network namespace, and a thread that is in it until this is dropped.
pub(crate) struct Place {
    _stays: Sender<()>,
    thread: i32,
    namespace: File,
}

impl Place {
    fn new() -> Place {
        let (stays, leaves) = channel::<()>();
        let (report, reports) = channel();
        std::thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).expect("root may");
            let namespace = File::open("/proc/thread-self/ns/net").expect("it is there");
            report
                .send((fleetfoot_live::thread_id(), namespace))
                .expect("the test waits");
            // Until the sender is gone.
            let _ = leaves.recv();
        });
        let (thread, namespace) = reports.recv().expect("the thread lives");
        Place {
            _stays: stays,
            thread,
            namespace,
        }
    }

    /// Does `work` in a thread of the namespace; several may run at once.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                setns(&self.namespace, CloneFlags::CLONE_NEWNET).expect("root may");
                work()
            });
            match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    pub(crate) fn try_ip(&self, lines: &str) -> bool {
        self.run(|| {
            lines.lines().all(|line| {
                let output = Command::new("ip")
                    .args(line.split_whitespace())
                    .output()
                    .expect("iproute2");
                let good = output.status.success();
                if !good {
                    println!("ip {line}: {}", String::from_utf8_lossy(&output.stderr));
                }
                good
            })
        })
    }

    pub(crate) fn ip(&self, lines: &str) {
        assert!(self.try_ip(lines), "ip {lines}");
    }

    /// Runs a command in the namespace.
    pub(crate) fn shell(&self, command: &str) {
        let output = self.run(|| Command::new("sh").args(["-c", command]).output().expect("sh"));
        assert!(output.status.success(), "{command}: {output:?}");
    }

    pub(crate) fn set(&self, path: &str, value: &str) {
        let (path, value) = (format!("/proc/sys/net/{path}"), value.to_owned());
        self.run(move || std::fs::write(path, value).expect("root may"));
    }
}

/// The namespaces.
pub(crate) struct Row {
    pub(crate) near: Place,
    pub(crate) middle: Place,
    pub(crate) far: Place,
}

impl Row {
    fn new(offloads: bool) -> Row {
        let row = Row {
            near: Place::new(),
            middle: Place::new(),
            far: Place::new(),
        };
        let Row { near, middle, far } = &row;
        near.ip(&format!(
            "link add a0 type veth peer name b0 netns {}",
            middle.thread
        ));
        middle.ip(&format!(
            "link add b1 type veth peer name c0 netns {}",
            far.thread
        ));
        for (place, name) in [(near, "a0"), (far, "c0")] {
            if !offloads {
                place.run(|| switch_off_offloads(name).expect("they can be switched off"));
            }
        }
        row
    }

    fn up(&self) {
        for (place, name) in [
            (&self.near, "a0"),
            (&self.middle, "b0"),
            (&self.middle, "b1"),
            (&self.far, "c0"),
        ] {
            place.ip(&format!("link set lo up\nlink set {name} up"));
        }
        self.wait_for("b0");
        self.wait_for("b1");
        self.wait_for_far("c0");
    }

    fn one_network(offloads: bool) -> Row {
        let row = Row::new(offloads);
        for name in ["b0", "b1"] {
            row.middle.set(&format!("ipv6/conf/{name}/disable_ipv6"), "1");
        }
        row.up();
        row.near
            .ip("address add 10.0.1.1/24 dev a0\naddress add fd00:1::1/64 dev a0 nodad");
        row.far
            .ip("address add 10.0.1.3/24 dev c0\naddress add fd00:1::3/64 dev c0 nodad");
        row
    }

    /// Both ends in one network, and nothing of the kernel in the middle.
    pub(crate) fn bridged() -> Row {
        Row::one_network(false)
    }

    /// As [`Row::bridged`], with ends that leave checksums to a device.
    pub(crate) fn with_offloads() -> Row {
        Row::one_network(true)
    }

    /// Two networks with addresses of the middle in both.
    pub(crate) fn routed() -> Row {
        let row = Row::new(false);
        row.up();
        row.near.ip(
            "address add 10.0.1.1/24 dev a0\naddress add fd00:1::1/64 dev a0 nodad\n\
             route add default via 10.0.1.2\nroute add default via fd00:1::2",
        );
        row.middle.ip(
            "address add 10.0.1.2/24 dev b0\naddress add fd00:1::2/64 dev b0 nodad\n\
             address add 10.0.2.2/24 dev b1\naddress add fd00:2::2/64 dev b1 nodad",
        );
        row.far.ip(
            "address add 10.0.2.1/24 dev c0\naddress add fd00:2::1/64 dev c0 nodad\n\
             route add default via 10.0.2.2\nroute add default via fd00:2::2",
        );
        row
    }

    /// Waits until an interface of the middle sends what it is given.
    pub(crate) fn wait_for(&self, name: &'static str) {
        wait_at(&self.middle, name);
    }

    /// The same at the far end.
    pub(crate) fn wait_for_far(&self, name: &'static str) {
        wait_at(&self.far, name);
    }

    /// The Ethernet address of an interface of the middle.
    pub(crate) fn hardware(&self, name: &'static str) -> [u8; 6] {
        self.middle.run(|| hardware_of(name))
    }
}

/// The Ethernet address of an interface of this thread's namespace.
pub(crate) fn hardware_of(name: &str) -> [u8; 6] {
    let all = interfaces().expect("they can be listed");
    let found = all.into_iter().find(|one| one.name == name).expect("it is there");
    found.hardware.expect("a veth has one")
}

/// Whether this kernel has sockets of AF_XDP.
pub(crate) fn xdp_sockets() -> std::io::Result<()> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to nobody else.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

fn wait_at(place: &Place, name: &'static str) {
    place.run(|| {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let running = nix::ifaddrs::getifaddrs()
                .expect("they can be listed")
                .any(|found| {
                    found.interface_name == name
                        && found.flags.contains(nix::net::if_::InterfaceFlags::IFF_RUNNING)
                });
            if running {
                return;
            }
            assert!(Instant::now() < until, "{name} does not come up");
            std::thread::sleep(Duration::from_millis(2));
        }
    });
}

/// Orders that come through a channel.
struct Channel {
    bell: PipeReader,
    orders: Receiver<Order>,
}

impl Orders for Channel {
    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn next(&mut self) -> Option<Order> {
        let order = self.orders.try_recv().ok()?;
        let _ = self.bell.read(&mut [0]);
        Some(order)
    }
}

/// A router that runs in a thread of its own.
pub(crate) struct Running {
    thread: Option<JoinHandle<Result<Snapshot, String>>>,
    orders: Sender<Order>,
    bell: PipeWriter,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Running {
    pub(crate) fn start(row: &Row, config: Config) -> Running {
        Running::try_start(row, config).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn try_start(row: &Row, config: Config) -> Result<Running, String> {
        let (bell, ring) = std::io::pipe().expect("a pipe");
        let (orders, ordered) = channel();
        let (report, started) = channel();
        let events = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&events);
        let namespace = row.middle.namespace.try_clone().expect("a descriptor");
        let thread = std::thread::spawn(move || {
            setns(&namespace, CloneFlags::CLONE_NEWNET).expect("root may");
            let mut log = |event| kept.lock().expect("no thread panics with it").push(event);
            let clock = Clock::start();
            let mut router = match Router::open(config, &mut log) {
                Ok(router) => router,
                Err(error) => {
                    report.send(Err(error.to_string())).expect("the test waits");
                    return Ok(Snapshot::default());
                }
            };
            report.send(Ok(())).expect("the test waits");
            let mut orders = Channel {
                bell,
                orders: ordered,
            };
            let ended = router.run(&clock, &mut orders, &mut log);
            ended.map(|()| router.finish()).map_err(|error| error.to_string())
        });
        started.recv().expect("the router reports")?;
        Ok(Running {
            thread: Some(thread),
            orders,
            bell: ring,
            events,
        })
    }

    pub(crate) fn order(&self, order: Order) {
        self.orders.send(order).expect("the router runs");
        (&self.bell).write_all(&[1]).expect("the router runs");
    }

    /// What happened, up to all orders so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.snapshot();
        self.events.lock().expect("no thread panics with it").clone()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let (answer, answers) = channel();
        self.order(Order::Report(answer));
        answers.recv().expect("the router runs")
    }

    /// The first snapshot for which `holds`.
    pub(crate) fn until(&self, holds: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let snapshot = self.snapshot();
            if holds(&snapshot) {
                return snapshot;
            }
            assert!(Instant::now() < until, "{snapshot:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn stop(mut self) -> Snapshot {
        self.order(Order::Stop);
        let thread = self.thread.take().expect("it is stopped once");
        let ended = thread.join().expect("the router does not panic");
        ended.expect("interfaces stay")
    }

    /// Why it has ended by itself.
    pub(crate) fn why_it_ends(mut self) -> String {
        let thread = self.thread.take().expect("it is stopped once");
        let until = Instant::now() + Duration::from_secs(20);
        while !thread.is_finished() {
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let ended = thread.join().expect("the router does not panic");
        ended.expect_err("an interface is gone")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = self.orders.send(Order::Stop);
            let _ = (&self.bell).write_all(&[1]);
            let _ = thread.join();
        }
    }
}

/// Sends frames by an interface of this thread's namespace.
pub(crate) fn inject(name: &str, frames: &[Vec<u8>]) {
    let socket = PacketSocket::open(name, 1500).expect("root may");
    for frame in frames {
        let sent = socket
            .send(&[IoSlice::new(frame)])
            .expect("the interface is there");
        assert_eq!(sent, Sent::Taken(1), "{frame:02x?}");
    }
}

/// Frames that come to an interface while `work` is done, up to the first for which `last`, with the tags that the kernel took out of them.
pub(crate) fn captured(
    place: &Place,
    name: &'static str,
    last: impl Fn(&[u8]) -> bool + Send,
    work: impl FnOnce(),
) -> Vec<Vec<u8>> {
    let (ready, listens) = channel();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            place.run(move || {
                let socket = tagging_socket(name);
                ready.send(()).expect("the test waits");
                let mut all = Vec::new();
                loop {
                    let frame = next_frame(&socket);
                    let end = last(&frame);
                    all.push(frame);
                    if end {
                        return all;
                    }
                }
            })
        });
        listens.recv().expect("the reader listens");
        work();
        reader.join().expect("the reader is content")
    })
}

fn tagging_socket(name: &str) -> OwnedFd {
    let index = nix::net::if_::if_nametoindex(name).expect("the interface is there");
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let on = 1_i32;
    let limit = libc::timeval {
        tv_sec: 20,
        tv_usec: 0,
    };
    // SAFETY: pointers are to live values of the lengths given; the descriptor is nobody else's.
    unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        let set = |level, option, value: *const libc::c_void, length: usize| {
            let done = libc::setsockopt(fd, level, option, value, length as libc::socklen_t);
            assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        };
        set(
            libc::SOL_PACKET,
            libc::PACKET_AUXDATA,
            (&raw const on).cast(),
            size_of_val(&on),
        );
        set(
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const limit).cast(),
            size_of_val(&limit),
        );
        let bound = libc::bind(
            fd,
            (&raw const address).cast(),
            size_of_val(&address) as libc::socklen_t,
        );
        assert_eq!(bound, 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(fd)
    }
}

fn next_frame(socket: &OwnedFd) -> Vec<u8> {
    let mut frame = vec![0_u8; 4000];
    let mut control = [0_u64; 32];
    let mut part = libc::iovec {
        iov_base: frame.as_mut_ptr().cast(),
        iov_len: frame.len(),
    };
    // SAFETY: the message names live buffers of the lengths given, and what the kernel says of it is read as it was written.
    let (length, auxiliary) = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let length = libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0);
        assert!(length > 0, "{}", std::io::Error::last_os_error());
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        assert!(!header.is_null(), "auxiliary data were asked for");
        (
            length as usize,
            libc::CMSG_DATA(header)
                .cast::<libc::tpacket_auxdata>()
                .read_unaligned(),
        )
    };
    frame.truncate(length);
    if auxiliary.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
        let tag = [
            auxiliary.tp_vlan_tpid.to_be_bytes(),
            auxiliary.tp_vlan_tci.to_be_bytes(),
        ]
        .concat();
        frame.splice(12..12, tag);
    }
    frame
}

const HEADER: usize = 14;

pub(crate) fn frame(hardware: [u8; 6], source: &str, destination: &str, ttl: u8) -> Vec<u8> {
    let (source, destination): (SocketAddr, SocketAddr) = (
        source.parse().expect("an address"),
        destination.parse().expect("an address"),
    );
    let mut segment = Segment {
        payload: 64,
        ttl,
        flags: Flags::DF,
        ..Segment::default()
    };
    segment.set_kind(Kind::Datagram);
    let mut bytes = vec![0; HEADER + 200];
    bytes[..6].copy_from_slice(&hardware);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    bytes[12..HEADER].copy_from_slice(if source.is_ipv4() { &[8, 0] } else { &[0x86, 0xdd] });
    let length = wire::encode(&mut bytes[HEADER..], &segment, source, destination, &[]).expect("it fits");
    bytes.truncate(HEADER + length);
    bytes
}

/// The IPv4 header's checksum is made right again.
pub(crate) fn sum(mut bytes: Vec<u8>) -> Vec<u8> {
    let header = usize::from(bytes[HEADER] & 15) * 4;
    bytes[HEADER + 10..HEADER + 12].fill(0);
    let sum = Sum::default().over(&bytes[HEADER..HEADER + header]);
    bytes[HEADER + 10..HEADER + 12].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Frames that no honest host sends, and why each goes no further; `None`: it is the kernel's. The router is at `hardware`.
pub(crate) fn hostile(hardware: [u8; 6]) -> Vec<(Vec<u8>, Option<Discard>)> {
    let from_to = |source: &str, destination: &str| frame(hardware, source, destination, 64);
    let good = || from_to("10.0.1.1:1", "10.0.2.1:2");
    let mut all = Vec::new();
    for (source, destination, why) in [
        ("127.0.0.1:1", "10.0.2.1:2", Some(Discard::MartianSource)),
        ("0.0.0.0:1", "10.0.2.1:2", Some(Discard::MartianSource)),
        ("224.0.0.9:1", "10.0.2.1:2", Some(Discard::MartianSource)),
        ("255.255.255.255:1", "10.0.2.1:2", Some(Discard::MartianSource)),
        ("10.0.2.1:2", "10.0.2.1:2", Some(Discard::MartianSource)),
        ("10.0.2.2:1", "10.0.2.1:2", Some(Discard::OwnSource)),
        ("10.0.1.255:1", "10.77.0.1:2", Some(Discard::NoRoute)),
        ("10.0.1.1:1", "127.0.0.1:2", Some(Discard::MartianDestination)),
        ("10.0.1.1:1", "245.0.0.1:2", Some(Discard::MartianDestination)),
        ("10.0.1.1:1", "169.254.7.7:2", Some(Discard::LinkLocal)),
        ("10.0.1.1:1", "10.77.0.1:2", Some(Discard::NoRoute)),
        ("10.0.1.1:1", "10.0.1.2:2", None),
        ("10.0.1.1:1", "224.0.0.9:2", None),
        ("[::1]:1", "[fd00:2::1]:2", Some(Discard::MartianSource)),
        ("[ff02::1]:1", "[fd00:2::1]:2", Some(Discard::MartianSource)),
        ("[fd00:2::2]:1", "[fd00:2::1]:2", Some(Discard::OwnSource)),
        ("[fe80::9]:1", "[fd00:2::1]:2", Some(Discard::LinkLocal)),
        ("[fd00:1::1]:1", "[::1]:2", Some(Discard::MartianDestination)),
        ("[fd00:1::1]:1", "[2001:db8::1]:2", Some(Discard::NoRoute)),
    ] {
        all.push((from_to(source, destination), why));
    }
    for ttl in [0, 1] {
        all.push((
            frame(hardware, "10.0.1.1:1", "10.0.2.1:2", ttl),
            Some(Discard::TtlExpired),
        ));
        all.push((
            frame(hardware, "[fd00:1::1]:1", "[fd00:2::1]:2", ttl),
            Some(Discard::TtlExpired),
        ));
    }
    let mut short = good();
    short.truncate(HEADER + 40);
    all.push((short, Some(Discard::Truncated)));
    let mut wrong = good();
    wrong[HEADER + 10] ^= 0x55;
    all.push((wrong, Some(Discard::HeaderChecksum)));
    let mut header = good();
    header[HEADER] = 0x43;
    all.push((header, Some(Discard::Malformed)));
    let mut version = good();
    version[HEADER] = 0x95;
    all.push((version, Some(Discard::Malformed)));
    let mut routed = good();
    routed.splice(HEADER + 20..HEADER + 20, [131, 7, 4, 10, 0, 2, 1, 0]);
    routed[HEADER] = 0x47;
    let total = (routed.len() - HEADER) as u16;
    routed[HEADER + 2..HEADER + 4].copy_from_slice(&total.to_be_bytes());
    all.push((sum(routed), Some(Discard::SourceRouted)));
    let mut extended = from_to("[fd00:1::1]:1", "[fd00:2::1]:2");
    let next = extended[HEADER + 6];
    extended.splice(HEADER + 40..HEADER + 40, [next, 0, 0, 1, 0, 0, 0, 0]);
    extended[HEADER + 6] = 43;
    let length = (extended.len() - HEADER - 40) as u16;
    extended[HEADER + 4..HEADER + 6].copy_from_slice(&length.to_be_bytes());
    all.push((extended, Some(Discard::SourceRouted)));
    // Another host's, ARP of nobody, and a tag.
    let mut others = good();
    others[5] ^= 0xff;
    all.push((others, None));
    let mut tagged = good();
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    all.push((tagged, None));
    all
}
