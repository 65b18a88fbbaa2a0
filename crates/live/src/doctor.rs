//! What works on this machine, and what to do about what does not.
//!
//! Each [`Check`] tries the thing itself in a namespace of its own, which is gone afterwards; only what cannot be tried without
//! changing the machine is read from `/proc` and `/sys`.

use crate::clock::WallClock;
use crate::ip::ip;
use crate::packet_socket::PacketSocket;
use crate::{Clock, Error, Namespace, Tun, switch_off_offloads};
use fleetfoot_core::time::Duration;
use nix::sched::{CloneFlags, unshare};
use std::fs::{read, read_to_string};
use std::io::{self, IoSlice};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// One thing that a verb needs or can use.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its name in documents.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// Whether `shell` cannot run without it.
    pub required: bool,
    /// Whether it works.
    pub works: bool,
    /// What was found.
    pub found: String,
    /// What to do where it does not work; else nothing.
    pub advice: &'static str,
}

/// A check before it is made.
struct Plan {
    id: &'static str,
    name: &'static str,
    required: bool,
    advice: &'static str,
    check: fn() -> Result<String, Error>,
}

/// What can be seen from outside of a namespace. Call it before [`crate::Shell::isolate`].
pub fn outside() -> Vec<Check> {
    OUTSIDE.iter().map(Plan::make).collect()
}

/// What has to be tried by one who may make network namespaces: root, or whoever called [`crate::Shell::isolate`].
pub fn inside() -> Vec<Check> {
    let mut without = false;
    let check = |plan: &Plan| {
        if without && !matches!(plan.id, "process_namespaces" | "congestion_controls") {
            return plan.not_tried();
        }
        let check = plan.make();
        without |= plan.id == "network_namespaces" && !check.works;
        check
    };
    INSIDE.iter().map(check).collect()
}

impl Plan {
    /// What needs a network namespace cannot be tried without one.
    fn not_tried(&self) -> Check {
        Check {
            id: self.id,
            name: self.name,
            required: self.required,
            works: false,
            found: "not tried: it needs a network namespace".into(),
            advice: "See network namespaces.",
        }
    }

    fn make(&self) -> Check {
        let result = (self.check)();
        Check {
            id: self.id,
            name: self.name,
            required: self.required,
            works: result.is_ok(),
            advice: if result.is_ok() { "" } else { self.advice },
            found: result.unwrap_or_else(|error| error.to_string()),
        }
    }
}

const OUTSIDE: [Plan; 11] = [
    Plan {
        id: "iproute2",
        name: "ip",
        required: true,
        advice: "Install the Debian package iproute2.",
        check: || version("ip", "-V"),
    },
    Plan {
        id: "user_namespaces",
        name: "user namespaces",
        required: false,
        advice: "Only root can run `shell`; where the system may be changed, set kernel.unprivileged_userns_clone=1, \
                 user.max_user_namespaces above 0 and kernel.apparmor_restrict_unprivileged_userns=0 (as far as they exist).",
        check: user_namespaces,
    },
    Plan {
        id: "clock",
        name: "clock",
        required: false,
        advice: "Reading the clock is slow: boot with a clock source that programs read without a system call (tsc, kvm-clock).",
        check: clock,
    },
    Plan {
        id: "wake_up",
        name: "cores kept awake",
        required: false,
        advice: "Idle cores may wake late: run as root, and in a container give it /dev/cpu_dma_latency.",
        check: || match crate::thread::stay_awake() {
            Some(_) => Ok("/dev/cpu_dma_latency can be asked".into()),
            None => Err(
                Error::new("/dev/cpu_dma_latency", io::ErrorKind::PermissionDenied)
                    .needing("the right to write to that file"),
            ),
        },
    },
    Plan {
        id: "real_time",
        name: "real-time priority",
        required: false,
        advice: "Packets wait when other programs run: run as root, or give the user an rtprio limit above 0 (limits.conf).",
        check: real_time,
    },
    Plan {
        id: "nft",
        name: "nft",
        required: false,
        advice: "--masquerade needs it: install the Debian package nftables.",
        check: || version("nft", "--version"),
    },
    Plan {
        id: "btf",
        name: "BPF types",
        required: false,
        advice: "Congestion controls in BPF need a kernel with CONFIG_DEBUG_INFO_BTF.",
        check: || match std::fs::metadata(BTF) {
            Ok(file) => Ok(format!("{BTF}, {} bytes", file.len())),
            Err(cause) => Err(Error::new(BTF, cause)),
        },
    },
    Plan {
        id: "struct_ops",
        name: "BPF congestion control",
        required: false,
        advice: "`attach` with a congestion control needs Linux 6.4 or later with CONFIG_BPF_SYSCALL, CONFIG_BPF_JIT and its types.",
        check: struct_ops,
    },
    Plan {
        id: "tcx",
        name: "BPF at interfaces",
        required: false,
        advice: "`attach mark` needs Linux 6.6 or later with CONFIG_NET_XGRESS and its types.",
        check: tcx,
    },
    Plan {
        id: "attach",
        name: "fleetfoot attach",
        required: false,
        advice: "Build it with the feature `bpf`: cargo build --release --locked --features bpf -p fleetfoot-cli (Debian packages: clang libbpf-dev libelf-dev zlib1g-dev pkg-config make).",
        check: attach,
    },
    Plan {
        id: "clang",
        name: "clang",
        required: false,
        advice: "Programs in BPF are compiled with it: install the Debian packages clang and libbpf-dev.",
        check: || version("clang", "--version"),
    },
];

const INSIDE: [Plan; 10] = [
    Plan {
        id: "network_namespaces",
        name: "network namespaces",
        required: true,
        advice: "Run as root or as a user who may make user namespaces; a container needs CAP_SYS_ADMIN and CAP_NET_ADMIN.",
        check: || Namespace::run(|_| Ok("can be made".into())),
    },
    Plan {
        id: "process_namespaces",
        name: "process namespaces",
        required: true,
        advice: "The command runs in one: a container needs CAP_SYS_ADMIN, a kernel of one's own CONFIG_PID_NS.",
        check: || unshared(CloneFlags::CLONE_NEWPID).map(|()| "can be made".into()),
    },
    Plan {
        id: "veth",
        name: "veth pairs",
        required: true,
        advice: "Load the module (modprobe veth) or use a kernel with CONFIG_VETH.",
        check: || Namespace::run(|_| pair().map(|()| "can be made".into())),
    },
    Plan {
        id: "packet_sockets",
        name: "packet sockets",
        required: true,
        advice: "Use a kernel with CONFIG_PACKET; a container needs CAP_NET_RAW, and a seccomp profile that permits AF_PACKET.",
        check: packets,
    },
    Plan {
        id: "offloads",
        name: "offloads can be switched off",
        required: true,
        advice: "Queues would see aggregates instead of packets: use a kernel whose veth obeys ethtool.",
        check: || {
            Namespace::run(|_| {
                pair()?;
                switch_off_offloads("one")
                    .map(|()| "gro, gso, tso, sg and checksums are off on request".into())
            })
        },
    },
    Plan {
        id: "ipv6",
        name: "IPv6",
        required: false,
        advice: "Only IPv4 passes the link: boot without ipv6.disable=1.",
        check: || {
            Namespace::run(|_| {
                pair()?;
                ip("address add fd66:6c74::1/64 dev one nodad").map(|()| "addresses can be set".into())
            })
        },
    },
    Plan {
        id: "tun",
        name: "TUN devices",
        required: false,
        advice: "`host` and packetdrill scripts against the kernel need /dev/net/tun: run as root, in a container with that device.",
        check: || Namespace::run(|_| Tun::open("tun0").map(|_| "can be made".into())),
    },
    Plan {
        id: "nat",
        name: "masquerading",
        required: false,
        advice: "--masquerade needs nft (Debian package nftables) and a kernel with CONFIG_NFT_NAT and CONFIG_NFT_MASQ.",
        check: || {
            Namespace::run(|namespace| {
                namespace
                    .shell("nft 'table ip t {\nchain c {\ntype nat hook postrouting priority 100\nmasquerade\n}\n}'")
                    .map(|_| "nft takes a rule".into())
            })
        },
    },
    Plan {
        id: "congestion_controls",
        name: "congestion controls",
        required: false,
        advice: "Load more of them, for example modprobe tcp_bbr.",
        check: || {
            let name = "/proc/sys/net/ipv4/tcp_available_congestion_control";
            let text = read_to_string(name).map_err(|cause| Error::new(name, cause))?;
            Ok(text.trim().to_owned())
        },
    },
    Plan {
        id: "qdiscs",
        name: "the kernel's queues",
        required: false,
        advice: "The kernel has none; the queues of `shell` are Fleetfoot's own and need none.",
        check: qdiscs,
    },
];

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The first line that a program prints about itself.
fn version(program: &str, flag: &str) -> Result<String, Error> {
    let output = Command::new(program)
        .arg(flag)
        .stdin(Stdio::null())
        .output()
        .map_err(|cause| Error::new(program, io::Error::other(cause.to_string())))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Whether a child of this process may make such a namespace.
fn unshared(kind: CloneFlags) -> Result<(), Error> {
    let mut command = Command::new("true");
    // SAFETY: between fork and exec only one call of the kernel is made.
    unsafe {
        command.pre_exec(move || Ok(unshare(kind)?));
    }
    command
        .status()
        .map(|_| ())
        .map_err(|cause| Error::new("cannot make it", cause))
}

fn user_namespaces() -> Result<String, Error> {
    // What root may says nothing of others.
    for (name, refuses) in [
        ("kernel/unprivileged_userns_clone", "0"),
        ("user/max_user_namespaces", "0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ] {
        let value = read_to_string(format!("/proc/sys/{name}")).unwrap_or_default();
        if value.trim() == refuses {
            let name = name.replace('/', ".");
            return Err(Error::new(
                format!("{name} is {refuses}"),
                io::ErrorKind::Unsupported,
            ));
        }
    }
    unshared(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)
        .map(|()| "`shell` works without root".into())
}

fn clock() -> Result<String, Error> {
    let name = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = read_to_string(name).unwrap_or_else(|_| "unknown".into());
    let clock = Clock::start();
    let began = clock.now();
    let count = 10_000;
    for _ in 1..count {
        clock.now();
    }
    let each = clock.now().since(began).as_nanos() / count;
    let found = format!("source {}, {each} ns to read it", source.trim());
    if each > 500 {
        return Err(Error::new(found, io::ErrorKind::Unsupported));
    }
    Ok(found)
}

fn real_time() -> Result<String, Error> {
    // In a thread, which takes the priority with it when it ends.
    let permitted = std::thread::spawn(crate::thread::prefer).join();
    if permitted.unwrap_or(false) {
        return Ok("SCHED_FIFO is permitted".into());
    }
    Err(Error::new("SCHED_FIFO", io::ErrorKind::PermissionDenied).needing("CAP_SYS_NICE, or an rtprio limit"))
}

fn attach() -> Result<String, Error> {
    match cfg!(feature = "bpf") {
        true => Ok("built in".into()),
        false => Err(Error::new("fleetfoot attach", io::Error::other("not built in"))),
    }
}

/// Whether the kernel's types have these names, of which the second is what a later kernel added.
fn types(names: [(&str, &'static str); 2]) -> Result<(), Error> {
    let types = read(BTF).map_err(|cause| Error::new(BTF, cause))?;
    // Names are strings that end with zero.
    let has = |name: &str| {
        let wanted = [b"\0", name.as_bytes(), b"\0"].concat();
        types.windows(wanted.len()).any(|window| window == wanted)
    };
    match names.into_iter().find(|(name, _)| !has(name)) {
        Some((_, what)) => Err(Error::new(what, io::ErrorKind::Unsupported)),
        None => Ok(()),
    }
}

fn struct_ops() -> Result<String, Error> {
    types([
        (
            "bpf_struct_ops_tcp_congestion_ops",
            "the kernel has no struct_ops for tcp_congestion_ops",
        ),
        // Since 6.4: what is pinned is a link.
        (
            "bpf_struct_ops_link",
            "the kernel has struct_ops, but no links of them",
        ),
    ])
    .map(|()| "struct_ops takes tcp_congestion_ops, by a link".into())
}

fn tcx() -> Result<String, Error> {
    types([
        // Since 6.6.
        ("BPF_TCX_EGRESS", "the kernel has no TCX"),
        ("tcx_entry", "the kernel was built without TCX"),
    ])
    .map(|()| "TCX takes programs".into())
}

/// A pair of interfaces in the namespace of this thread.
fn pair() -> Result<(), Error> {
    ip("link add one type veth peer name two\nlink set one up\nlink set two up")
}

/// A frame through a pair: it comes with a time, and the time is right.
fn packets() -> Result<String, Error> {
    Namespace::run(|_| {
        pair()?;
        let sender = PacketSocket::open("one", 1500)?;
        let mut receiver = PacketSocket::open("two", 1500)?;
        let clock = Clock::start();
        let mut frame = [0xff; 60];
        // An experimental type, which nobody answers.
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        let sent = clock.now();
        sender.send(&[IoSlice::new(&frame)])?;
        let mut arrival = None;
        Namespace::wait(&clock, Duration::from_millis(1000), || {
            let stamps = WallClock::default().read(&clock);
            while let Some(received) = receiver.receive() {
                if received.bytes().get(12..14) == Some(&[0x88, 0xb5]) {
                    arrival = Some(stamps.arrival(received.stamp));
                }
            }
            arrival.is_some()
        });
        let arrival = arrival.ok_or_else(|| Error::new("a frame did not arrive", io::ErrorKind::TimedOut))?;
        // What the kernel stamps while the clocks are read apart may differ by that.
        let early = sent.since(arrival);
        if early > Duration::from_millis(1) {
            return Err(Error::new(
                "the kernel stamps frames by another clock than it shows",
                io::ErrorKind::InvalidData,
            ));
        }
        Ok("rings and receive times work".into())
    })
}

/// Which of the kernel's queue disciplines can be set on an interface.
fn qdiscs() -> Result<String, Error> {
    Namespace::run(|namespace| {
        pair()?;
        let found: Vec<&str> = QDISCS
            .iter()
            .filter(|(_, arguments)| {
                namespace
                    .shell(&format!("tc qdisc replace dev one root {arguments}"))
                    .is_ok()
            })
            .map(|&(name, _)| name)
            .collect();
        if found.is_empty() {
            return Err(Error::new("none of those tried", io::ErrorKind::Unsupported));
        }
        Ok(found.join(" "))
    })
}

/// Names, and how each is set.
const QDISCS: [(&str, &str); 14] = [
    ("pfifo", "pfifo"),
    ("bfifo", "bfifo"),
    ("fq", "fq"),
    ("fq_codel", "fq_codel"),
    ("codel", "codel"),
    ("pie", "pie"),
    ("cake", "cake"),
    ("red", "red limit 100000 avpkt 1000"),
    ("sfq", "sfq"),
    ("drr", "drr"),
    ("dualpi2", "dualpi2"),
    ("tbf", "tbf rate 1mbit burst 10k latency 10ms"),
    ("htb", "htb"),
    ("netem", "netem delay 1ms"),
];
