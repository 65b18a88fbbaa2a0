//! The method CONNECT of HTTP/1.1, and the answers to it.
//!
//! **Source.** RFC 9110 9.3.6 (CONNECT), 15.5 and 15.6 (status codes), RFC 9112 3.2.3 (authority form). The head is parsed by
//! `httparse`. **Deviations.** No other method is proxied, and no `Proxy-Authorization` is looked at.

use super::request::{MOST, Parsed, Refusal, Target};

/// What a client is sent when it is connected.
pub(super) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// The request: where to connect to.
pub(super) fn connect(bytes: &[u8]) -> Parsed<Target> {
    let mut room = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut room);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => Parsed::More,
        Err(httparse::Error::TooManyHeaders) => Parsed::Refused(Refusal::TooLong),
        Err(httparse::Error::Version) => Parsed::Refused(Refusal::Version),
        Err(_) => Parsed::Refused(Refusal::Malformed),
        Ok(httparse::Status::Complete(length)) => {
            if request.method != Some("CONNECT") {
                return Parsed::Refused(Refusal::Method);
            }
            match request.path.and_then(Target::of_authority) {
                Some(target) => Parsed::Complete(target, length),
                None => Parsed::Refused(Refusal::Malformed),
            }
        }
    }
}

/// The answer to a client that is refused.
pub(super) fn refusal(refusal: Refusal) -> Vec<u8> {
    let (status, words) = words(refusal);
    let allow = if refusal == Refusal::Method {
        "Allow: CONNECT\r\n"
    } else {
        ""
    };
    let words = words.replace("{most}", &MOST.to_string());
    format!(
        "HTTP/1.1 {status}\r\n{allow}Content-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{words}\n",
        words.len() + 1
    )
    .into_bytes()
}

/// Status and one sentence.
const fn words(refusal: Refusal) -> (&'static str, &'static str) {
    match refusal {
        Refusal::Malformed | Refusal::Command | Refusal::AddressType | Refusal::Authentication => (
            "400 Bad Request",
            "fleetfoot proxy: this is neither SOCKS5 nor CONNECT HOST:PORT HTTP/1.1",
        ),
        Refusal::NotAllowed => (
            "403 Forbidden",
            "fleetfoot proxy: it does not connect to this address (its own, a loopback address, or none of a host)",
        ),
        Refusal::Method => (
            "405 Method Not Allowed",
            "fleetfoot proxy: only CONNECT is spoken; with curl, --proxytunnel uses it for http:// too",
        ),
        Refusal::TooSlow => (
            "408 Request Timeout",
            "fleetfoot proxy: the request did not come in time",
        ),
        Refusal::TooLong => (
            "431 Request Header Fields Too Large",
            "fleetfoot proxy: a request has at most {most} bytes and 64 header fields",
        ),
        Refusal::UnknownName => (
            "502 Bad Gateway",
            "fleetfoot proxy: no address is known for this name",
        ),
        Refusal::Refused => (
            "502 Bad Gateway",
            "fleetfoot proxy: the target refused the connection",
        ),
        Refusal::NetUnreachable => (
            "502 Bad Gateway",
            "fleetfoot proxy: there is no way to the network of the target",
        ),
        Refusal::HostUnreachable => (
            "502 Bad Gateway",
            "fleetfoot proxy: there is no way to the target",
        ),
        Refusal::Busy => (
            "503 Service Unavailable",
            "fleetfoot proxy: no more connections can be opened now",
        ),
        Refusal::TimedOut => (
            "504 Gateway Timeout",
            "fleetfoot proxy: the target did not answer in time",
        ),
        Refusal::Version => (
            "505 HTTP Version Not Supported",
            "fleetfoot proxy: HTTP/1.1 and HTTP/1.0 are spoken",
        ),
    }
}

/// Header fields of a request.
const HEADERS: usize = 64;
