//! Messages of SOCKS5.
//!
//! **Source.** RFC 1928: the methods (3), the request (4), addresses (5), the reply (6). **Deviations.** See `request`.

use super::request::{Parsed, Refusal, Target};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// First byte of every message.
pub(super) const VERSION: u8 = 5;
/// Answer to a greeting: no authentication.
pub(super) const NO_AUTHENTICATION: [u8; 2] = [VERSION, 0];
/// Answer to a greeting that offers no method that is spoken here.
pub(super) const NO_METHOD: [u8; 2] = [VERSION, 0xff];
/// Code of a reply: connected.
pub(super) const SUCCEEDED: u8 = 0;

/// The greeting: whether it offers to do without authentication.
pub(super) fn greeting(bytes: &[u8]) -> Parsed<()> {
    let [_, count, rest @ ..] = bytes else {
        return Parsed::More;
    };
    let count = usize::from(*count);
    match rest.get(..count) {
        Some(methods) if methods.contains(&0) => Parsed::Complete((), 2 + count),
        Some(_) => Parsed::Refused(Refusal::Authentication),
        None => Parsed::More,
    }
}

/// The request: where to connect to.
pub(super) fn request(bytes: &[u8]) -> Parsed<Target> {
    let [version, command, _, kind, rest @ ..] = bytes else {
        return Parsed::More;
    };
    if *version != VERSION {
        return Parsed::Refused(Refusal::Malformed);
    }
    if *command != CONNECT {
        return Parsed::Refused(Refusal::Command);
    }
    let (length, before) = match *kind {
        IPV4 => (4, 0),
        IPV6 => (16, 0),
        NAME => match rest.first() {
            Some(&length) => (usize::from(length), 1),
            None => return Parsed::More,
        },
        _ => return Parsed::Refused(Refusal::AddressType),
    };
    let end = before + length;
    let (Some(address), Some(&[high, low])) = (rest.get(before..end), rest.get(end..end + 2)) else {
        return Parsed::More;
    };
    let port = u16::from_be_bytes([high, low]);
    if port == 0 {
        return Parsed::Refused(Refusal::NotAllowed);
    }
    let target = match *kind {
        NAME => str::from_utf8(address)
            .ok()
            .and_then(|name| Target::named(name, port)),
        _ => ip(address).map(|ip| Target::Address(SocketAddr::new(ip, port))),
    };
    match target {
        Some(target) => Parsed::Complete(target, 4 + end + 2),
        None => Parsed::Refused(Refusal::Malformed),
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        _ => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
    }
}

/// A reply with its code; `bound` is the proxy's own address on the connection.
pub(super) fn reply(code: u8, bound: Option<SocketAddr>) -> Vec<u8> {
    let bound = bound.unwrap_or(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0));
    let mut bytes = vec![VERSION, code, 0];
    match bound.ip() {
        IpAddr::V4(four) => {
            bytes.push(IPV4);
            bytes.extend(four.octets());
        }
        IpAddr::V6(six) => {
            bytes.push(IPV6);
            bytes.extend(six.octets());
        }
    }
    bytes.extend(bound.port().to_be_bytes());
    bytes
}

/// The code of a refusal (RFC 1928 6).
pub(super) const fn code(refusal: Refusal) -> u8 {
    match refusal {
        Refusal::Malformed
        | Refusal::TooLong
        | Refusal::TooSlow
        | Refusal::Version
        | Refusal::Method
        | Refusal::Authentication
        | Refusal::Busy => 1,
        Refusal::NotAllowed => 2,
        Refusal::NetUnreachable => 3,
        // There is no code for these two; clients take them as an unreachable host.
        Refusal::HostUnreachable | Refusal::UnknownName | Refusal::TimedOut => 4,
        Refusal::Refused => 5,
        Refusal::Command => 7,
        Refusal::AddressType => 8,
    }
}

const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
