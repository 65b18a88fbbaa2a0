//! IPv6, both families on one socket, and IPv4-mapped addresses.

use super::super::{Header, IcmpError};
use super::{
    CLIENT, Duration, Errno, Family, Fd, IpAddr, OptionValue, PORT, Packet, Pair, SERVER, SocketAddr,
    SocketOption, StackConfig, Vec, blocked, done,
};
use core::net::Ipv6Addr;

pub(super) const CLIENT6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
pub(super) const SERVER6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2));
const ANY6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Both hosts have an address of each family.
pub(super) fn both_families(config: &mut StackConfig) {
    let own = if config.addresses == [CLIENT] {
        CLIENT6
    } else {
        SERVER6
    };
    config.addresses.push(own);
}

fn mapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) => IpAddr::V6(v4.to_ipv6_mapped()),
        IpAddr::V6(_) => address,
    }
}

fn socket(pair: &mut Pair, host: usize, family: Family) -> Fd {
    pair.hosts[host].socket(pair.now, family).expect("a socket")
}

fn listener(pair: &mut Pair, family: Family, at: IpAddr, only: bool) -> Result<Fd, Errno> {
    let fd = socket(pair, 1, family);
    let (now, host) = (pair.now, &mut pair.hosts[1]);
    if only {
        host.setsockopt(now, fd, SocketOption::V6Only, &OptionValue::Int(1))
            .expect("unbound");
    }
    host.bind(now, fd, SocketAddr::new(at, PORT))?;
    host.listen(now, fd, 5)?;
    Ok(fd)
}

/// A client socket that connects; the listener accepts. Both sockets, the peer's name, and the packets of the handshake.
fn open(pair: &mut Pair, family: Family, to: IpAddr, listener: Fd) -> (Fd, Fd, SocketAddr, Vec<Packet>) {
    let client = socket(pair, 0, family);
    blocked(pair.hosts[0].connect(pair.now, client, SocketAddr::new(to, PORT)));
    let mut packets = Vec::new();
    for _ in 0..6 {
        pair.drain();
        packets.extend(pair.wire.iter().map(|entry| entry.2.clone()));
        pair.run(Duration::from_millis(10));
    }
    done(pair.hosts[0].connect(pair.now, client, SocketAddr::new(to, PORT)));
    let (server, peer) = done(pair.hosts[1].accept(pair.now, listener));
    (client, server, peer, packets)
}

#[test]
fn a_connection_over_ipv6() {
    let mut pair = Pair::with(both_families);
    let listener = listener(&mut pair, Family::V6, ANY6, false).expect("free");
    let (client, server, peer, packets) = open(&mut pair, Family::V6, SERVER6, listener);
    assert_eq!(peer.ip(), CLIENT6);
    let syn = &packets[0];
    assert_eq!(
        (syn.header.source.ip(), syn.header.destination.ip()),
        (CLIENT6, SERVER6)
    );
    assert_eq!(syn.segment.mss(), Some(1440)); // RFC 9293 3.7.1: 1500 without 40 + 20
    assert_eq!(
        syn.segment.overhead, 80,
        "the IPv6 header, and TCP's with 20 bytes of options"
    );
    for (host, fd, local, remote) in [(0, client, CLIENT6, SERVER6), (1, server, SERVER6, CLIENT6)] {
        let stack = &pair.hosts[host];
        assert_eq!(
            stack.local_address(fd).map(|name| name.map(|name| name.ip())),
            Ok(Some(local))
        );
        assert_eq!(stack.remote_address(fd).map(|name| name.ip()), Ok(remote));
    }
    assert_eq!(done(pair.hosts[0].write(pair.now, client, 50_000)).len, 50_000);
    pair.run(Duration::from_millis(200));
    assert_eq!(done(pair.hosts[1].read(pair.now, server, 100_000)).len, 50_000);
    assert_eq!(done(pair.hosts[1].write(pair.now, server, 3000)).len, 3000);
    pair.run(Duration::from_millis(200));
    assert_eq!(done(pair.hosts[0].read(pair.now, client, 100_000)).len, 3000);
}

/// Length of the longest packet that the client has on the wire.
fn longest(pair: &mut Pair) -> u32 {
    pair.drain();
    let sent = pair.wire.iter().filter(|entry| entry.1 == 1);
    sent.map(|entry| entry.2.segment.len()).max().unwrap_or(0)
}

/// RFC 8201 4: the packets shrink to what the message says; one that says less than 1280 is discarded.
#[test]
fn packet_too_big_shrinks_the_packets() {
    for (announced, used) in [(1400, 1400), (1280, 1280), (1279, 1500)] {
        let mut pair = Pair::with(both_families);
        let listener = listener(&mut pair, Family::V6, ANY6, false).expect("free");
        let (client, server, ..) = open(&mut pair, Family::V6, SERVER6, listener);
        assert_eq!(done(pair.hosts[0].write(pair.now, client, 8000)).len, 8000);
        assert_eq!(longest(&mut pair), 1500);
        let lost: Vec<Packet> = pair.wire.drain(..).map(|entry| entry.2).collect();
        let header = Header {
            source: lost[0].header.source,
            destination: lost[0].header.destination,
        };
        let too_big = IcmpError {
            kind: 2,
            code: 0,
            mtu: announced,
            seq: lost[0].segment.seq,
        };
        pair.hosts[0].on_icmp(pair.now, &header, &too_big);
        let mut most = longest(&mut pair);
        let mut read = 0;
        for _ in 0..400 {
            pair.run(Duration::from_millis(10));
            if let Ok(super::Outcome::Done(got)) = pair.hosts[1].read(pair.now, server, 100_000) {
                read += got.len;
            }
            most = most.max(longest(&mut pair));
        }
        assert_eq!((read, most), (8000, used), "announced {announced}");
    }
}

/// `ipv6(7)`: an IPv6 socket also takes IPv4, under mapped names; the packets are IPv4.
#[test]
fn an_ipv6_listener_accepts_ipv4_under_a_mapped_name() {
    let mut pair = Pair::with(both_families);
    let listener = listener(&mut pair, Family::V6, ANY6, false).expect("free");
    let (client, server, peer, packets) = open(&mut pair, Family::V4, SERVER, listener);
    assert_eq!(peer.ip(), mapped(CLIENT));
    assert!(packets.iter().all(|packet| packet.header.source.is_ipv4()));
    assert_eq!(packets[0].segment.mss(), Some(1460));
    let stack = &pair.hosts[1];
    assert_eq!(
        stack.remote_address(server).map(|name| name.ip()),
        Ok(mapped(CLIENT))
    );
    let local = stack.local_address(server);
    assert_eq!(local, Ok(Some(SocketAddr::new(mapped(SERVER), PORT))));
    assert_eq!(
        pair.hosts[0].remote_address(client).map(|name| name.ip()),
        Ok(SERVER)
    );
    assert_eq!(done(pair.hosts[1].write(pair.now, server, 3000)).len, 3000);
    pair.run(Duration::from_millis(200));
    assert_eq!(done(pair.hosts[0].read(pair.now, client, 5000)).len, 3000);
}

#[test]
fn an_ipv6_socket_connects_to_a_mapped_address_over_ipv4() {
    let mut pair = Pair::with(both_families);
    let listener = pair.listener(5);
    let (client, _, peer, packets) = open(&mut pair, Family::V6, mapped(SERVER), listener);
    assert_eq!(peer.ip(), CLIENT);
    assert!(packets.iter().all(|packet| packet.header.source.is_ipv4()));
    assert_eq!(
        pair.hosts[0].remote_address(client).map(|name| name.ip()),
        Ok(mapped(SERVER))
    );
}

/// `ipv6(7)`, `IPV6_V6ONLY`.
#[test]
fn with_v6only_the_families_are_apart() {
    let mut pair = Pair::with(both_families);
    let any4 = IpAddr::from([0, 0, 0, 0]);
    let six = listener(&mut pair, Family::V6, ANY6, true).expect("free");
    // IPv4 finds nobody there,
    let client = socket(&mut pair, 0, Family::V4);
    blocked(pair.hosts[0].connect(pair.now, client, SocketAddr::new(SERVER, PORT)));
    pair.run(Duration::from_millis(50));
    let refused = pair.hosts[0].connect(pair.now, client, SocketAddr::new(SERVER, PORT));
    assert_eq!(refused, Err(Errno::ECONNREFUSED));
    // and may have the port for itself.
    let four = listener(&mut pair, Family::V4, any4, false).expect("the port is free for IPv4");
    assert_eq!(open(&mut pair, Family::V4, SERVER, four).2.ip(), CLIENT);
    assert_eq!(open(&mut pair, Family::V6, SERVER6, six).2.ip(), CLIENT6);

    let mut pair = Pair::with(both_families);
    listener(&mut pair, Family::V6, ANY6, false).expect("free");
    assert_eq!(
        listener(&mut pair, Family::V4, any4, false),
        Err(Errno::EADDRINUSE)
    );
}

#[test]
fn names_of_the_wrong_family_are_refused() {
    let mut pair = Pair::with(both_families);
    let (four, six) = (socket(&mut pair, 0, Family::V4), socket(&mut pair, 0, Family::V6));
    let (now, host) = (pair.now, &mut pair.hosts[0]);
    let [to4, to6, to_mapped] = [SERVER, SERVER6, mapped(SERVER)].map(|ip| SocketAddr::new(ip, PORT));
    assert_eq!(host.connect(now, four, to6), Err(Errno::EAFNOSUPPORT));
    assert_eq!(
        host.bind(now, four, SocketAddr::new(CLIENT6, 0)),
        Err(Errno::EAFNOSUPPORT)
    );
    assert_eq!(
        host.bind(now, six, SocketAddr::new(CLIENT, 0)),
        Err(Errno::EINVAL)
    );
    host.setsockopt(now, six, SocketOption::V6Only, &OptionValue::Int(1))
        .expect("unbound");
    assert_eq!(host.connect(now, six, to_mapped), Err(Errno::ENETUNREACH));
    assert_eq!(
        host.bind(now, six, SocketAddr::new(mapped(CLIENT), 0)),
        Err(Errno::EINVAL)
    );
    // Bound to one family, no packet can go to the other.
    host.setsockopt(now, six, SocketOption::V6Only, &OptionValue::Int(0))
        .expect("unbound");
    host.bind(now, six, SocketAddr::new(CLIENT6, 0)).expect("free");
    assert_eq!(host.connect(now, six, to_mapped), Err(Errno::ENETUNREACH));
    blocked(host.connect(now, four, to4));
}

/// RFC 4443 3.1 and 3.3 in SYN-SENT; the errno are Linux's (`icmpv6_err_convert`).
#[test]
fn icmpv6_errors_end_an_opening() {
    for (kind, code, errno) in [
        (1, 0, Errno::ENETUNREACH),
        (1, 1, Errno::EACCES),
        (1, 3, Errno::EHOSTUNREACH),
        (1, 4, Errno::ECONNREFUSED),
    ] {
        let mut pair = Pair::with(both_families);
        let client = socket(&mut pair, 0, Family::V6);
        let to = SocketAddr::new(SERVER6, PORT);
        blocked(pair.hosts[0].connect(pair.now, client, to));
        pair.drain();
        let (_, _, syn) = pair.wire.pop().expect("a SYN");
        let icmp = IcmpError {
            kind,
            code,
            mtu: 0,
            seq: syn.segment.seq,
        };
        pair.hosts[0].on_icmp(pair.now, &syn.header, &icmp);
        assert_eq!(
            pair.hosts[0].connect(pair.now, client, to),
            Err(errno),
            "type {kind} code {code}"
        );
    }
}
