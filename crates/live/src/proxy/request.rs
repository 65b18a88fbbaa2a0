//! What a client asks of a proxy: a [`Handshake`] takes its first bytes and gives the target, or the refusal and its words.
//!
//! Both protocols are spoken at the same port: a first byte of 5 is SOCKS5 (`socks`), anything else has to be HTTP (`http`). Nothing
//! here waits or holds more than [`MOST`] bytes; time limits are the caller's.
//!
//! **Source.** RFC 1928 (SOCKS5), RFC 9110 9.3.6 and RFC 9112 3.2.3 (CONNECT). **Deviations.** Of SOCKS5 only the command CONNECT and
//! the method "no authentication" are spoken; who may connect is decided by address. No crate takes this place: fast-socks5 is a
//! task per connection on an asynchronous runtime, and socks5-proto and socks5-impl are under a licence that is not permitted here.

use super::{http, socks};
use std::net::{IpAddr, SocketAddr};

/// The most bytes that are kept before a request is complete, what follows it included.
pub const MOST: usize = 8192;

/// Where a client wants to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An address.
    Address(SocketAddr),
    /// A name that is to be looked up, and a port.
    Name(String, u16),
}

impl Target {
    /// A target by name or address in text; `None` if it is neither. Names have letters, digits, hyphens, underscores and dots.
    pub fn named(host: &str, port: u16) -> Option<Target> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Some(Target::Address(SocketAddr::new(address, port)));
        }
        let fits = (1..=253).contains(&host.len())
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && !host.starts_with(['.', '-'])
            && !host.contains("..");
        fits.then(|| Target::Name(host.to_owned(), port))
    }

    /// A target as an authority writes it (RFC 3986 3.2): `name:port`, `192.0.2.1:80`, `[2001:db8::1]:80`.
    pub fn of_authority(text: &str) -> Option<Target> {
        let (host, port) = text.rsplit_once(':')?;
        let decimal = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|&port| decimal && port > 0)?;
        match host.strip_prefix('[') {
            Some(six) => {
                let six: std::net::Ipv6Addr = six.strip_suffix(']')?.parse().ok()?;
                Some(Target::Address(SocketAddr::new(six.into(), port)))
            }
            None if host.contains(':') => None,
            None => Target::named(host, port),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Address(address) => address.fmt(f),
            Target::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

/// Why a client does not get what it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The request is neither SOCKS5 nor HTTP, or malformed.
    Malformed,
    /// The request is longer than [`MOST`].
    TooLong,
    /// The request was not complete in time.
    TooSlow,
    /// HTTP of another version than 1.0 and 1.1.
    Version,
    /// HTTP with another method than CONNECT.
    Method,
    /// SOCKS5 with another command than CONNECT.
    Command,
    /// SOCKS5 with an address of an unknown type.
    AddressType,
    /// SOCKS5 without the method "no authentication".
    Authentication,
    /// The target is this proxy, or one that it does not connect to.
    NotAllowed,
    /// No address is known for the name.
    UnknownName,
    /// The target refused the connection.
    Refused,
    /// There is no way to the network of the target.
    NetUnreachable,
    /// There is no way to the target.
    HostUnreachable,
    /// The target did not answer in time.
    TimedOut,
    /// The proxy lacks something: names to look up, ports, descriptors.
    Busy,
}

/// What the bytes so far amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More has to come.
    More,
    /// The request is complete.
    Complete(Target),
    /// The bytes cannot become a request.
    Refused(Refusal),
}

/// Result of a parser of one message.
pub(super) enum Parsed<T> {
    /// More has to come.
    More,
    /// The message, and how long it is.
    Complete(T, usize),
    /// The bytes are no message of this kind.
    Refused(Refusal),
}

/// The first bytes of a client.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    bytes: Vec<u8>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Nothing has come.
    #[default]
    Silent,
    /// SOCKS5, of which the methods have not come.
    Greeting,
    /// SOCKS5, of which the request has not come.
    Socks,
    Http,
}

impl Handshake {
    /// How many more bytes are taken.
    pub fn room(&self) -> usize {
        MOST - self.bytes.len().min(MOST)
    }

    /// Takes bytes, [`Handshake::room`] of them at most; adds to `answer` what the client is to be sent.
    pub fn take(&mut self, bytes: &[u8], answer: &mut Vec<u8>) -> Progress {
        let bytes = bytes.get(..self.room()).unwrap_or(bytes);
        self.bytes.extend_from_slice(bytes);
        if self.stage == Stage::Silent {
            self.stage = match self.bytes.first() {
                None => return Progress::More,
                Some(&socks::VERSION) => Stage::Greeting,
                Some(_) => Stage::Http,
            };
        }
        if self.stage == Stage::Greeting {
            match socks::greeting(&self.bytes) {
                Parsed::More => return self.more(),
                Parsed::Refused(refusal) => return Progress::Refused(refusal),
                Parsed::Complete((), length) => {
                    self.bytes.drain(..length);
                    self.stage = Stage::Socks;
                    answer.extend_from_slice(&socks::NO_AUTHENTICATION);
                }
            }
        }
        let parsed = match self.stage {
            Stage::Http => http::connect(&self.bytes),
            Stage::Silent | Stage::Greeting | Stage::Socks => socks::request(&self.bytes),
        };
        match parsed {
            Parsed::More => self.more(),
            Parsed::Refused(refusal) => Progress::Refused(refusal),
            Parsed::Complete(target, length) => {
                self.bytes.drain(..length);
                Progress::Complete(target)
            }
        }
    }

    fn more(&self) -> Progress {
        if self.room() == 0 {
            Progress::Refused(Refusal::TooLong)
        } else {
            Progress::More
        }
    }

    /// Whether SOCKS5 is spoken; else it is HTTP, or nothing has come.
    pub fn is_socks(&self) -> bool {
        matches!(self.stage, Stage::Greeting | Stage::Socks)
    }

    /// What the client is sent when it is connected; `bound` is the proxy's own address on that connection.
    pub fn accepted(&self, bound: Option<SocketAddr>) -> Vec<u8> {
        if self.is_socks() {
            socks::reply(socks::SUCCEEDED, bound)
        } else {
            http::ESTABLISHED.to_vec()
        }
    }

    /// What the client is sent when it is refused. Empty where the protocol has no words for it.
    pub fn refused(&self, refusal: Refusal) -> Vec<u8> {
        match self.stage {
            Stage::Silent => Vec::new(),
            Stage::Greeting if refusal == Refusal::Authentication => socks::NO_METHOD.to_vec(),
            Stage::Greeting => Vec::new(),
            Stage::Socks => socks::reply(socks::code(refusal), None),
            Stage::Http => http::refusal(refusal),
        }
    }

    /// What the client sent behind its request.
    pub fn into_rest(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Handshake, MOST, Progress, Refusal, Target};

    fn target(text: &str) -> Option<Target> {
        Target::of_authority(text)
    }

    #[test]
    fn authorities_are_read_as_rfc_3986_writes_them() {
        let address = |text: &str| Some(Target::Address(text.parse().expect("an address")));
        assert_eq!(target("192.0.2.1:80"), address("192.0.2.1:80"));
        assert_eq!(target("[2001:db8::1]:443"), address("[2001:db8::1]:443"));
        assert_eq!(
            target("www.example.org:443"),
            Some(Target::Name("www.example.org".into(), 443))
        );
        for text in [
            "",
            ":80",
            "a",
            "a:",
            "a:0",
            "a:+1",
            "a:65536",
            "a:b",
            "2001:db8::1:80",
            "[::1]",
            "[::1]80",
            "[::1:80",
            "[a]:80",
            "a b:80",
            "a/b:80",
            "u@a:80",
            ".a:80",
            "a..b:80",
            "-a:80",
        ] {
            assert_eq!(target(text), None, "{text}");
        }
        assert_eq!(target(&format!("{}:1", "a".repeat(254))), None);
    }

    /// Feeds a conversation in pieces of every length; what was answered in all, and what came of it.
    fn in_pieces(bytes: &[u8], check: impl Fn(usize, &[u8], &Progress, Vec<u8>)) {
        for piece in 1..=bytes.len() {
            let (mut handshake, mut answer) = (Handshake::default(), Vec::new());
            let mut progress = Progress::More;
            let mut fed = 0;
            for part in bytes.chunks(piece) {
                if progress != Progress::More {
                    break;
                }
                progress = handshake.take(part, &mut answer);
                fed += part.len();
            }
            let mut rest = handshake.into_rest();
            rest.extend_from_slice(&bytes[fed..]);
            check(piece, &answer, &progress, rest);
        }
    }

    #[test]
    fn socks5_in_any_pieces_is_a_request() {
        let greeting = [5, 2, 2, 0];
        for (request, expected) in [
            (
                vec![5, 1, 0, 1, 192, 0, 2, 1, 0, 80],
                Target::Address("192.0.2.1:80".parse().expect("an address")),
            ),
            (
                [vec![5, 1, 0, 4], vec![0; 15], vec![1, 1, 187]].concat(),
                Target::Address("[::1]:443".parse().expect("an address")),
            ),
            (
                [vec![5, 1, 0, 3, 11], b"example.org".to_vec(), vec![0, 22]].concat(),
                Target::Name("example.org".into(), 22),
            ),
        ] {
            let bytes = [&greeting[..], &request, b"early data"].concat();
            in_pieces(&bytes, |piece, answer, progress, rest| {
                assert_eq!(answer, [5, 0], "pieces of {piece}");
                assert_eq!(
                    *progress,
                    Progress::Complete(expected.clone()),
                    "pieces of {piece}"
                );
                assert_eq!(rest, b"early data", "pieces of {piece}");
            });
        }
    }

    #[test]
    fn connect_in_any_pieces_is_a_request() {
        let bytes =
            b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nUser-Agent: x\r\n\r\nearly";
        in_pieces(bytes, |piece, answer, progress, rest| {
            assert!(answer.is_empty());
            let expected = Progress::Complete(Target::Name("example.org".into(), 443));
            assert_eq!(*progress, expected, "pieces of {piece}");
            assert_eq!(rest, b"early");
        });
    }

    fn refusal(bytes: &[u8]) -> (Refusal, Vec<u8>) {
        let mut handshake = Handshake::default();
        let mut answer = Vec::new();
        match handshake.take(bytes, &mut answer) {
            Progress::Refused(refusal) => {
                answer.extend(handshake.refused(refusal));
                (refusal, answer)
            }
            other => panic!("{other:?} of {bytes:?}"),
        }
    }

    #[test]
    fn what_is_not_spoken_is_refused_in_the_words_of_the_protocol() {
        for (bytes, why, answer) in [
            (&[5, 1, 2][..], Refusal::Authentication, &[5, 255][..]),
            (&[5, 0], Refusal::Authentication, &[5, 255]),
            (
                &[5, 1, 0, 5, 2, 0, 1, 1, 2, 3, 4, 0, 80],
                Refusal::Command,
                &[5, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0],
            ),
            (
                &[5, 1, 0, 5, 1, 0, 9],
                Refusal::AddressType,
                &[5, 0, 5, 8, 0, 1, 0, 0, 0, 0, 0, 0],
            ),
            (
                &[5, 1, 0, 4, 1, 0, 1, 1, 2, 3, 4, 0, 80],
                Refusal::Malformed,
                &[5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0],
            ),
            (
                &[5, 1, 0, 5, 1, 0, 1, 1, 2, 3, 4, 0, 0],
                Refusal::NotAllowed,
                &[5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0],
            ),
            (
                &[5, 1, 0, 5, 1, 0, 3, 3, b'a', 0, b'b', 0, 80],
                Refusal::Malformed,
                &[5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0],
            ),
        ] {
            assert_eq!(refusal(bytes), (why, answer.to_vec()), "{bytes:?}");
        }
        for (text, why, status) in [
            (
                "GET http://example.org/ HTTP/1.1\r\n\r\n",
                Refusal::Method,
                "405 ",
            ),
            ("CONNECT example.org HTTP/1.1\r\n\r\n", Refusal::Malformed, "400 "),
            ("CONNECT /x HTTP/1.1\r\n\r\n", Refusal::Malformed, "400 "),
            ("CONNECT a:1 HTTP/2.0\r\n\r\n", Refusal::Version, "505 "),
            ("\u{1}\u{2}\u{3}\r\n\r\n", Refusal::Malformed, "400 "),
        ] {
            let (found, answer) = refusal(text.as_bytes());
            assert_eq!(found, why, "{text}");
            let answer = String::from_utf8(answer).expect("text");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
            assert!(answer.contains("\r\n\r\n"), "{answer}");
        }
    }

    #[test]
    fn no_request_is_longer_than_the_limit() {
        let mut long = b"CONNECT a:1 HTTP/1.1\r\nX: ".to_vec();
        long.resize(2 * MOST, b'x');
        let (found, answer) = refusal(&long);
        assert_eq!(found, Refusal::TooLong);
        assert!(answer.starts_with(b"HTTP/1.1 431 "));
        let many = "CONNECT a:1 HTTP/1.1\r\n".to_owned() + &"a: b\r\n".repeat(200) + "\r\n";
        assert_eq!(refusal(many.as_bytes()).0, Refusal::TooLong);
    }

    #[test]
    fn whoever_says_nothing_is_told_nothing() {
        let mut handshake = Handshake::default();
        assert_eq!(handshake.take(&[], &mut Vec::new()), Progress::More);
        assert_eq!(handshake.refused(Refusal::TooSlow), []);
        assert_eq!(handshake.take(b"CON", &mut Vec::new()), Progress::More);
        assert!(handshake.refused(Refusal::TooSlow).starts_with(b"HTTP/1.1 408 "));
    }
}
