//! What a mark must not overwrite.

use crate::{attaches, isolated, shell};
use fleetfoot_live::bpf::{Program, Settings, attached, detach};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Packets of the sender, of 1000 bytes each.
const PACKETS: usize = 12;

fn set(socket: &TcpStream, option: libc::c_int, value: i32) {
    // SAFETY: the pointer is to a value of the length that is given.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Takes in what comes by the loopback, without what leaves by it.
fn listen() -> OwnedFd {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let on = 1_i32;
    // SAFETY: pointers are to values of the lengths that are given; the descriptor is nobody else's.
    unsafe {
        let fd = libc::socket(libc::AF_PACKET, kind, i32::from((libc::ETH_P_IP as u16).to_be()));
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        let done = libc::setsockopt(
            fd,
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        );
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(fd)
    }
}

/// The next frame that has come.
fn next(socket: &OwnedFd) -> Option<Vec<u8>> {
    let mut frame = vec![0; 2000];
    // SAFETY: the pointer is to as many bytes as are given.
    let length = unsafe { libc::recv(socket.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
    frame.truncate(usize::try_from(length).ok()?);
    Some(frame)
}

/// The types of service, and whether DF is set, of packets with data that a server sends.
fn sent(prepare: impl FnOnce(&TcpStream)) -> Vec<(u8, bool)> {
    let socket = listen();
    let listener = TcpListener::bind("127.0.0.1:7103").expect("a port");
    let mut client = TcpStream::connect("127.0.0.1:7103").expect("it listens");
    let mut server = listener.accept().expect("a client").0;
    prepare(&server);
    let mut seen = Vec::new();
    for _ in 0..PACKETS {
        server.write_all(&[7; 1000]).expect("the connection holds");
        client.read_exact(&mut [0; 1000]).expect("it arrives");
    }
    while let Some(frame) = next(&socket) {
        let ip = &frame[14..];
        let ours = ip[0] == 0x45 && ip[9] == 6 && ip[20..22] == 7103_u16.to_be_bytes();
        if ours && ip.len() > 1000 {
            let sum: u32 = ip[..20]
                .chunks(2)
                .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
                .sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the checksum of the header");
            seen.push((ip[1], ip[6] & 0x40 != 0));
        }
    }
    assert_eq!(seen.len(), PACKETS);
    seen
}

#[test]
fn marks_leave_dscp_ecn_and_fragmentable_packets_alone() {
    const ECT: u8 = 2;
    const EF: u8 = 0xb8;
    /// `IP_MTU_DISCOVER`: packets may be fragmented.
    const NEVER: i32 = 0;
    isolated(|| {
        shell("ip link set lo up");
        for codepoint in [3, 0] {
            let settings = Settings {
                interface: Some(String::from("lo")),
                codepoint,
                // Of `PACKETS` in all: every packet of each kind is one of a group.
                length: 63,
                ..Settings::default()
            };
            if !attaches(Program::Mark, None, &settings) {
                return;
            }
            let mut counted = [0; 3];
            for ecn in [0, ECT] {
                std::fs::write("/proc/sys/net/ipv4/tcp_ecn", if ecn == 0 { "0" } else { "1" })
                    .expect("root may");
                let plain = sent(|_| ());
                match (codepoint, ecn) {
                    (0, 0) => {
                        assert_eq!(plain[0], (0x80 | 63, true), "the first of 63");
                        assert!(
                            plain[1..].iter().all(|&packet| packet == (63, true)),
                            "{plain:x?}"
                        );
                        counted[0] += PACKETS as u64;
                    }
                    (0, _) => {
                        assert!(plain.iter().all(|&packet| packet == (ECT, true)), "{plain:x?}");
                        counted[1] += PACKETS as u64;
                    }
                    _ => {
                        assert!(
                            plain.iter().all(|&packet| packet == (3 << 2 | ecn, true)),
                            "{plain:x?}"
                        );
                        counted[0] += PACKETS as u64;
                    }
                }
                let classed = sent(|socket| set(socket, libc::IP_TOS, EF.into()));
                assert!(
                    classed.iter().all(|&packet| packet == (EF | ecn, true)),
                    "{classed:x?}"
                );
                counted[1] += PACKETS as u64;
                let fragmentable = sent(|socket| set(socket, libc::IP_MTU_DISCOVER, NEVER));
                assert!(
                    fragmentable.iter().all(|&packet| packet == (ecn, false)),
                    "{fragmentable:x?}"
                );
                // Layout A looks at ECN first.
                let at = if codepoint == 0 && ecn != 0 { 1 } else { 2 };
                counted[at] += PACKETS as u64;
            }
            let counters = attached().expect("pins can be read").remove(0).counters;
            println!("{counters:?}");
            for (at, name, count) in [
                (0, "marked", counted[0]),
                (3, "with a DSCP or ECN of their own left unmarked", counted[1]),
                (4, "fragmentable left unmarked", counted[2]),
            ] {
                assert_eq!(counters[at].0, name);
                // With a FIN of each side of each connection.
                assert!(
                    (count..=count + 12).contains(&counters[at].1),
                    "{counters:?} {counted:?}"
                );
            }
            detach(Program::Mark, None).expect("it was attached");
        }
    });
}
