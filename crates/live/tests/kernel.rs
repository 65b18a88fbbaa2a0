//! The kernel's TCP behind a TUN device. Needs root or the capabilities for it; says so and skips without.
#![cfg(target_os = "linux")]

use fleetfoot_core::time::Duration;
use fleetfoot_live::{Clock, Error, Namespace, calls};
use std::net::SocketAddr;

fn skips() -> bool {
    match Namespace::available() {
        Ok(()) => false,
        Err(reason) => {
            println!("skipped: {reason}");
            true
        }
    }
}

#[test]
fn the_kernel_sends_its_syn_through_the_device_and_takes_a_reset() {
    if skips() {
        return;
    }
    Namespace::run(|namespace| {
        let clock = Clock::start();
        let tun = namespace.tun("tun0", 1500)?;
        namespace.ip("address add 192.168.0.1/16 dev tun0\nroute add default via 192.168.0.2 dev tun0")?;
        namespace.sysctl("net.ipv4.tcp_timestamps", "0")?;
        let fd = calls::socket(
            libc::AF_INET,
            libc::SOCK_STREAM | libc::SOCK_NONBLOCK,
            libc::IPPROTO_TCP,
        )
        .expect("socket");
        let peer: SocketAddr = "192.0.2.1:8080".parse().expect("an address");
        assert_eq!(calls::connect(fd, peer), Err(calls::Errno(libc::EINPROGRESS)));
        let mut buffer = vec![0; 65_536];
        let syn = loop {
            let length = tun
                .receive(&clock, clock.now() + Duration::from_secs(1), &mut buffer)?
                .expect("a packet within a second");
            // IPv6 chatter of a fresh interface is not ours.
            if buffer[0] >> 4 == 4 && buffer[9] == 6 {
                break buffer[..length].to_vec();
            }
        };
        assert_eq!(
            (&syn[12..16], &syn[16..20]),
            (&[192, 168, 0, 1][..], &[192, 0, 2, 1][..])
        );
        assert_eq!(syn[20 + 13], 0x02, "SYN alone");
        assert!(
            !syn[40..].windows(2).any(|pair| pair == [8, 10]),
            "no timestamps after the sysctl"
        );
        // RST+ACK of that SYN, checksums by hand.
        let mut reset = vec![0u8; 40];
        reset[0] = 0x45;
        reset[3] = 40;
        reset[8] = 64;
        reset[9] = 6;
        reset[12..16].copy_from_slice(&syn[16..20]);
        reset[16..20].copy_from_slice(&syn[12..16]);
        reset[20..22].copy_from_slice(&syn[22..24]);
        reset[22..24].copy_from_slice(&syn[20..22]);
        let sequence = u32::from_be_bytes([syn[24], syn[25], syn[26], syn[27]]);
        reset[28..32].copy_from_slice(&sequence.wrapping_add(1).to_be_bytes());
        reset[32] = 0x50;
        reset[33] = 0x14;
        let header = sum(&reset[..20], 0);
        reset[10..12].copy_from_slice(&(!header).to_be_bytes());
        let pseudo = sum(&reset[12..20], 6 + 20);
        let segment = sum(&reset[20..], pseudo);
        reset[36..38].copy_from_slice(&(!segment).to_be_bytes());
        tun.send(&reset)?;
        let refused = || {
            calls::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, 4)
                .is_ok_and(|value| value == libc::ECONNREFUSED.to_ne_bytes())
        };
        assert!(
            Namespace::wait(&clock, Duration::from_secs(1), refused),
            "ECONNREFUSED"
        );
        calls::close(fd).expect("close");
        Ok::<(), Error>(())
    })
    .expect("a namespace");
}

#[test]
fn what_the_kernel_refuses_is_named() {
    if skips() {
        return;
    }
    let error = Namespace::run(|namespace| namespace.sysctl("net.ipv4.no_such_thing", "1"))
        .expect_err("no such sysctl");
    assert!(
        error.to_string().contains("/proc/sys/net/ipv4/no_such_thing"),
        "{error}"
    );
    let error = Namespace::run(|namespace| namespace.ip("link set nothing up")).expect_err("no such device");
    assert!(error.to_string().contains("nothing"), "{error}");
}

/// The Internet checksum before its complement.
fn sum(bytes: &[u8], start: u16) -> u16 {
    let mut sum = u32::from(start);
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
