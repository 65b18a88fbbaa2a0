//! Attacks on a host: floods of SYNs, a packet from itself, forged ICMP.

use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::socket::{
    Family, Fd, Header, IcmpError, Outcome, Packet, Stack, StackConfig, SynCookies,
};
use fleetfoot_core::tcp::{Config, Profile, State};
use fleetfoot_core::time::{Duration, Instant};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// As programs listen by default: at every address.
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const PORT: u16 = 80;
const T0: Instant = Instant::from_millis(1000);

fn server(change: impl FnOnce(&mut StackConfig)) -> (Stack, Fd) {
    server_at(SERVER, change)
}

fn server_at(address: IpAddr, change: impl FnOnce(&mut StackConfig)) -> (Stack, Fd) {
    let mut config = StackConfig::new(vec![SERVER], Config::profile(Profile::Linux));
    change(&mut config);
    let mut stack = Stack::new(config);
    let fd = stack.socket(T0, Family::V4).expect("a socket");
    stack.bind(T0, fd, SocketAddr::new(address, PORT)).expect("bound");
    stack.listen(T0, fd, 4096).expect("listening");
    (stack, fd)
}

/// Address `number` of the attackers.
fn attacker(number: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(0x0b00_0000 + number)), 1024)
}

fn syn(number: u32) -> Segment {
    Segment {
        seq: SeqNumber(number.wrapping_mul(2_654_435_761)),
        options: [1460, 0, 0, 0, 0, 0],
        window: 65_535,
        flags: Flags::SYN.with(Flags::MSS),
        ttl: 64,
        overhead: 44,
        ..Segment::default()
    }
}

fn arrive(stack: &mut Stack, now: Instant, source: SocketAddr, segment: &Segment) -> Vec<Packet> {
    let header = Header {
        source,
        destination: SocketAddr::new(SERVER, PORT),
    };
    stack.on_packet(now, &header, segment);
    core::iter::from_fn(|| stack.poll_transmit(now)).collect()
}

/// An honest client opens a connection; true: it stands and carries data.
fn honest(stack: &mut Stack, now: Instant, listener: Fd, port: u16) -> bool {
    let client = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9)), port);
    let first = syn(u32::from(port));
    let answers = arrive(stack, now, client, &first);
    let Some(answer) = answers.iter().find(|packet| packet.header.destination == client) else {
        return false;
    };
    assert!(answer.segment.flags.contains(Flags::SYN.with(Flags::ACK)));
    let data = Segment {
        seq: first.seq + 1,
        ack: answer.segment.seq + 1,
        payload: 100,
        window: 65_535,
        flags: Flags::ACK.with(Flags::PSH),
        ttl: 64,
        overhead: 40,
        ..Segment::default()
    };
    arrive(stack, now, client, &data);
    let Ok(Outcome::Done((fd, peer))) = stack.accept(now, listener) else {
        return false;
    };
    assert_eq!(peer, client);
    // A connection made from a cookie alone takes the data that comes after.
    arrive(stack, now, client, &data);
    matches!(stack.read(now, fd, 1000), Ok(Outcome::Done(read)) if read.len == 100)
}

#[test]
fn attack_15_syn_flood() {
    let all = [SynCookies::OnOverflow, SynCookies::Always, SynCookies::Off];
    for (address, cookies) in [SERVER, ANY].into_iter().flat_map(|ip| all.map(|how| (ip, how))) {
        let (mut stack, listener) = server_at(address, |config| config.syn_cookies = cookies);
        let mut now = T0;
        let mut opened = 0;
        for number in 0..20_000 {
            now += Duration::from_micros(100);
            arrive(&mut stack, now, attacker(number), &syn(number));
            assert!(
                stack.slots_in_use() <= 512 + 20,
                "{cookies:?}: {} slots",
                stack.slots_in_use()
            );
            assert!(
                stack.work() <= 2 * u64::from(number + 1) + 20,
                "{} looks",
                stack.work()
            );
            if number % 2000 == 1000 {
                opened += u32::from(honest(&mut stack, now, listener, 2000 + (number / 2000) as u16));
            }
        }
        if cookies == SynCookies::Off {
            // Without cookies the queue is the attacker's, but only until its embryos have timed out.
            while let Some(at) = stack.poll_timeout() {
                if at > now + Duration::from_secs(200) {
                    break;
                }
                now = at;
                stack.on_timeout(now);
                while stack.poll_transmit(now).is_some() {}
            }
            assert!(honest(&mut stack, now, listener, 3000));
        } else {
            assert_eq!(
                opened, 10,
                "{cookies:?}: every honest connection opens during the flood"
            );
        }
    }
}

#[test]
fn attack_16_land() {
    let (mut stack, _) = server(|_| {});
    let before = stack.slots_in_use();
    let own = SocketAddr::new(SERVER, PORT);
    let segments = [Flags::SYN, Flags::SYN.with(Flags::ACK), Flags::ACK, Flags::RST];
    for flags in segments {
        let mut segment = syn(1);
        segment.flags = flags;
        assert_eq!(arrive(&mut stack, T0, own, &segment), [], "{flags:?}");
    }
    assert_eq!(stack.slots_in_use(), before);
    assert_eq!(stack.poll_timeout(), None);
}

#[test]
fn attack_25_a_hundred_thousand_half_open_connections() {
    for address in [SERVER, ANY] {
        hold_half_open(address);
    }
}

fn hold_half_open(address: IpAddr) {
    let (mut stack, _) = server_at(address, |config| {
        config.syn_cookies = SynCookies::Off;
        config.syn_backlog = 200_000;
        config.somaxconn = 200_000;
    });
    let before = stack.slots_in_use();
    let mut now = T0;
    for number in 0..100_000 {
        now += Duration::from_micros(10);
        arrive(&mut stack, now, attacker(number), &syn(number));
    }
    let slots = stack.slots_in_use();
    assert!(slots <= 100_000 + before, "{slots}");
    // Whoever waits already, a SYN is for the one listener.
    assert_eq!(stack.work(), 100_000);
    // Five retransmissions each, then all is given back: no timer, no slot.
    let (mut timeouts, mut sent) = (0_u32, 0_u32);
    while let Some(at) = stack.poll_timeout() {
        now = now.max(at);
        stack.on_timeout(now);
        timeouts += 1;
        while stack.poll_transmit(now).is_some() {
            sent += 1;
        }
        assert!(timeouts <= 700_000, "timers are bounded");
    }
    assert!(sent <= 500_000, "{sent} SYN-ACKs sent again");
    assert_eq!(stack.slots_in_use(), before);
    assert!(now < T0 + Duration::from_secs(200), "{now:?}");
}

#[test]
fn attack_19_forged_icmp() {
    let (mut stack, listener) = server(|_| {});
    assert!(honest(&mut stack, T0, listener, 2000));
    let client = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9)), 2000);
    let fd = Fd(listener.0 + 1);
    stack.write(T0, fd, 20_000).expect("taken");
    let out: Vec<Packet> = core::iter::from_fn(|| stack.poll_transmit(T0)).collect();
    let (header, first) = (out[0].header, out[0].segment.seq);
    assert_eq!(header.destination, client);
    let before = stack.connection(fd).expect("it lives").info(T0);
    // Every type and code, about nothing that is in flight: no effect at all.
    for seq in [first - 1, first + 0x1000_0000, first + 0x8000_0000] {
        for kind in 0..20 {
            for code in 0..16 {
                for mtu in [0, 68, 500] {
                    stack.on_icmp(T0, &header, &IcmpError { kind, code, mtu, seq });
                }
            }
        }
    }
    let connection = stack.connection(fd).expect("it lives");
    assert_eq!((connection.info(T0), connection.path_mtu()), (before, 1500));
    assert_eq!(stack.poll_transmit(T0), None);
    // Hard errors, source quench and an MTU of 68 about what is in flight: it lives, with segments of a sensible size.
    for (kind, code) in [(3, 2), (3, 3), (4, 0), (3, 4), (12, 0)] {
        stack.on_icmp(
            T0,
            &header,
            &IcmpError {
                kind,
                code,
                mtu: 68,
                seq: first,
            },
        );
    }
    let connection = stack.connection(fd).expect("it lives");
    assert_eq!(connection.state(), State::Established);
    assert!(connection.path_mtu() >= 552, "{}", connection.path_mtu());
    let again: Vec<u32> = core::iter::from_fn(|| stack.poll_transmit(T0))
        .map(|packet| packet.segment.payload)
        .collect();
    assert!(
        again.iter().all(|&payload| payload == 0 || payload >= 400),
        "{again:?}"
    );
}
