//! A file over HTTP/1.1, with our TCP as the client.
//!
//! **Source.** RFC 9110, RFC 9112 (7.1 for chunks). **Deviations.** Redirections are reported, not followed.

use crate::host::{Handle, Host, Waiter};
use fleetfoot_core::socket::Errno;
use fleetfoot_core::time::{Duration, Instant};
use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Name or address, without brackets.
    pub host: String,
    /// Port, 80 if none is given.
    pub port: u16,
    /// Path and query.
    pub target: String,
    /// Host and port as they were written.
    pub authority: String,
}

impl std::str::FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let wrong = |what: &str| {
            Err(format!(
                "{text:?}: {what}; for example http://192.0.2.1:8000/file"
            ))
        };
        if text.starts_with("https://") {
            return wrong("only http:// is spoken");
        }
        let Some(rest) = text.strip_prefix("http://") else {
            return wrong("an address begins with http://");
        };
        let (authority, target) = rest
            .find(['/', '?', '#'])
            .map_or((rest, ""), |at| rest.split_at(at));
        let target = target.split('#').next().unwrap_or_default();
        let target = if target.starts_with('/') {
            target.to_owned()
        } else {
            format!("/{target}")
        };
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("spaces and letters beyond ASCII have to be written as %20 and the like");
        }
        if authority.contains('@') {
            return wrong("names and passwords are not sent");
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(six) => match six.split_once(']') {
                Some((host, "")) => (host, "80"),
                Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or("x")),
                None => return wrong("a bracket is not closed"),
            },
            None => authority.split_once(':').unwrap_or((authority, "80")),
        };
        if host.is_empty() {
            return wrong("there is no host");
        }
        match port.parse() {
            Ok(port) if port > 0 => Ok(Url {
                host: host.to_owned(),
                port,
                target,
                authority: authority.to_owned(),
            }),
            Ok(_) | Err(_) => wrong("the port is no number from 1 to 65535"),
        }
    }
}

/// What was fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Status of the answer.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
    /// From the first SYN to the established connection.
    pub connected: Duration,
    /// From the first SYN to the first byte of the answer.
    pub first_byte: Duration,
    /// From the first SYN to the last byte.
    pub took: Duration,
    /// Segments that were sent again.
    pub retransmitted: u64,
}

/// Why nothing was fetched, or not all of it.
#[derive(Debug)]
pub enum Failure {
    /// The connection.
    Connection(Errno),
    /// The answer is no HTTP/1.1, or ended too early.
    Answer(&'static str),
    /// A status that is no success, and where the answer points.
    Status(u16, Option<String>),
    /// The body could not be written.
    Output(std::io::Error),
    /// The device.
    Device(crate::Error),
    /// Nothing came for so long.
    Silent(Duration),
    /// The caller wanted no more.
    Stopped,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connection(errno) => write!(f, "the connection failed: {errno}"),
            Failure::Answer(what) => f.write_str(what),
            Failure::Status(code, None) => write!(f, "the server answered {code}"),
            Failure::Status(code, Some(to)) => write!(f, "the server answered {code} and points to {to:?}"),
            Failure::Output(error) => write!(f, "cannot write what was fetched: {error}"),
            Failure::Device(error) => error.fmt(f),
            Failure::Silent(span) => write!(f, "nothing came for {} s", span.as_secs_f64()),
            Failure::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for Failure {}

/// Fetches `url` from `to` and writes the body to `output`, until `stop` can be read.
///
/// # Errors
/// See [`Failure`]. What was written before stays written.
pub fn fetch(
    host: &mut Host,
    to: SocketAddr,
    url: &Url,
    output: &mut dyn Write,
    stop: &impl AsFd,
) -> Result<Fetched, Failure> {
    let began = host.clock().now();
    let handle = host.connect(to).map_err(Failure::Connection)?;
    let mut transfer = Transfer {
        handle,
        request: format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: fleetfoot\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            url.target, url.authority
        )
        .into_bytes(),
        sent: 0,
        head: Some(Vec::new()),
        body: Body::UntilEnd,
        began,
        last_news: began,
        fetched: Fetched::default(),
    };
    let result = transfer.run(host, output, stop);
    if let Some(connection) = host.connection(handle) {
        transfer.fetched.retransmitted = connection.info(host.clock().now()).stats.retransmits.into();
    }
    match result {
        Ok(()) => host.close(handle),
        Err(_) => host.abort(handle),
    }
    let ended = linger(host);
    result?;
    ended.map_err(Failure::Device)?;
    Ok(transfer.fetched)
}

/// Lets a connection that was closed end: the peer need not ask in vain for what is gone.
fn linger(host: &mut Host) -> Result<(), crate::Error> {
    let mut waiter = Waiter::new()?;
    waiter.add(host, 0)?;
    let until = host.clock().now() + Duration::from_secs(1);
    let mut ready = Vec::new();
    loop {
        let more = host.work()?;
        let now = host.clock().now();
        if host.stack().slots_in_use() == 0 || now >= until {
            return Ok(());
        }
        let next = host.poll_timeout().map_or(until, |due| due.min(until));
        waiter.wait(host.clock(), Some(if more { now } else { next }), &mut ready)?;
    }
}

struct Transfer {
    handle: Handle,
    request: Vec<u8>,
    sent: usize,
    /// What came of the head; `None`: it is over.
    head: Option<Vec<u8>>,
    body: Body,
    began: Instant,
    last_news: Instant,
    fetched: Fetched,
}

/// What of the body is still to come.
enum Body {
    /// So many bytes.
    Counted(u64),
    /// Chunks: what is not yet understood, and how much of the chunk is left.
    Chunks(Vec<u8>, ChunkState),
    /// Until the connection ends.
    UntilEnd,
    /// Nothing.
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    Size,
    Data(u64),
    /// The line end behind a chunk.
    LineEnd,
    /// What follows the last chunk, up to an empty line.
    Trailer,
}

impl Transfer {
    fn run(&mut self, host: &mut Host, output: &mut dyn Write, stop: &impl AsFd) -> Result<(), Failure> {
        let mut waiter = Waiter::new().map_err(Failure::Device)?;
        waiter.add(stop, 0).map_err(Failure::Device)?;
        waiter.add(host, 1).map_err(Failure::Device)?;
        let mut ready = Vec::new();
        let mut buffer = vec![0; 65_536];
        loop {
            let more = host.work().map_err(Failure::Device)?;
            while let Some(event) = host.poll_event() {
                if event.handle == self.handle && self.on_news(host, output, &mut buffer)? {
                    return Ok(());
                }
            }
            host.flush().map_err(Failure::Device)?;
            let now = host.clock().now();
            let patience = self.last_news + PATIENCE;
            if now >= patience {
                return Err(Failure::Silent(PATIENCE));
            }
            let next = host.poll_timeout().map_or(patience, |due| due.min(patience));
            ready.clear();
            waiter
                .wait(host.clock(), Some(if more { now } else { next }), &mut ready)
                .map_err(Failure::Device)?;
            if ready.contains(&0) {
                return Err(Failure::Stopped);
            }
        }
    }

    /// Writes and reads what can be; whether all has come.
    fn on_news(
        &mut self,
        host: &mut Host,
        output: &mut dyn Write,
        buffer: &mut [u8],
    ) -> Result<bool, Failure> {
        let now = host.clock().now();
        self.last_news = now;
        if self.sent < self.request.len() {
            match host.write(self.handle, &self.request[self.sent..]) {
                Ok(length) => {
                    if self.sent == 0 {
                        self.fetched.connected = now.since(self.began);
                    }
                    self.sent += length;
                }
                Err(Errno::EAGAIN) => {}
                Err(errno) => return Err(Failure::Connection(errno)),
            }
        }
        loop {
            let length = match host.read(self.handle, buffer) {
                Ok(length) => length,
                Err(Errno::EAGAIN) => return Ok(false),
                Err(errno) => return Err(Failure::Connection(errno)),
            };
            let now = host.clock().now();
            if length == 0 {
                self.fetched.took = now.since(self.began);
                return match self.body {
                    Body::UntilEnd if self.head.is_none() => Ok(true),
                    _ => Err(Failure::Answer("the answer ended before all of it had come")),
                };
            }
            if self.fetched.first_byte == Duration::ZERO {
                self.fetched.first_byte = now.since(self.began);
            }
            if self.take(&buffer[..length], output)? {
                self.fetched.took = now.since(self.began);
                return Ok(true);
            }
        }
    }

    fn take(&mut self, bytes: &[u8], output: &mut dyn Write) -> Result<bool, Failure> {
        let Some(head) = &mut self.head else {
            return self.body.take(bytes, &mut self.fetched, output);
        };
        head.extend_from_slice(bytes);
        let mut room = [httparse::EMPTY_HEADER; 128];
        let mut answer = httparse::Response::new(&mut room);
        let length = match answer.parse(head) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if head.len() < HEAD => return Ok(false),
            Ok(httparse::Status::Partial) => {
                return Err(Failure::Answer("the head of the answer is too long"));
            }
            Err(_) => return Err(Failure::Answer("the answer is no HTTP/1.1")),
        };
        let header = |name: &str| {
            let mut all = answer.headers.iter();
            let found = all.find(|header| header.name.eq_ignore_ascii_case(name))?;
            str::from_utf8(found.value).ok().map(str::trim)
        };
        let status = answer.code.unwrap_or(0);
        self.fetched.status = status;
        if (100..200).contains(&status) {
            let rest = head.split_off(length);
            head.clear();
            return self.take(&rest, output); // RFC 9110 15.2: the answer follows
        }
        if !(200..300).contains(&status) {
            return Err(Failure::Status(status, header("location").map(str::to_owned)));
        }
        self.body = if header("transfer-encoding").is_some_and(|text| text.eq_ignore_ascii_case("chunked")) {
            Body::Chunks(Vec::new(), ChunkState::Size)
        } else if header("transfer-encoding").is_some() {
            return Err(Failure::Answer("the answer has a coding that was not asked for"));
        } else {
            match header("content-length").map(str::parse) {
                Some(Ok(0)) => Body::Over,
                Some(Ok(length)) => Body::Counted(length),
                Some(Err(_)) => return Err(Failure::Answer("the length of the answer is no number")),
                None if status == 204 => Body::Over,
                None => Body::UntilEnd,
            }
        };
        let rest = head.split_off(length);
        self.head = None;
        self.body.take(&rest, &mut self.fetched, output)
    }
}

impl Body {
    /// Takes bytes of it; whether it is over.
    fn take(&mut self, bytes: &[u8], fetched: &mut Fetched, output: &mut dyn Write) -> Result<bool, Failure> {
        let mut put = |bytes: &[u8]| {
            fetched.bytes += bytes.len() as u64;
            output.write_all(bytes).map_err(Failure::Output)
        };
        match self {
            Body::Over => Ok(true),
            Body::UntilEnd => put(bytes).map(|()| false),
            Body::Counted(left) => {
                let now = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                put(&bytes[..now])?;
                *left -= now as u64;
                Ok(*left == 0)
            }
            Body::Chunks(waiting, state) => {
                waiting.extend_from_slice(bytes);
                let wrong = Failure::Answer("a chunk of the answer is malformed");
                let mut at = 0;
                let over = loop {
                    let rest = &waiting[at..];
                    match *state {
                        ChunkState::Size => match httparse::parse_chunk_size(rest) {
                            Ok(httparse::Status::Complete((length, size))) => {
                                at += length;
                                *state = if size == 0 {
                                    ChunkState::Trailer
                                } else {
                                    ChunkState::Data(size)
                                };
                            }
                            Ok(httparse::Status::Partial) if rest.len() < 1024 => break false,
                            Ok(httparse::Status::Partial) | Err(_) => return Err(wrong),
                        },
                        ChunkState::Data(0) => *state = ChunkState::LineEnd,
                        ChunkState::Data(left) => {
                            let now = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                            if now == 0 {
                                break false;
                            }
                            put(&rest[..now])?;
                            at += now;
                            *state = ChunkState::Data(left - now as u64);
                        }
                        ChunkState::LineEnd => match rest {
                            [b'\r', b'\n', ..] => {
                                at += 2;
                                *state = ChunkState::Size;
                            }
                            [] | [b'\r'] => break false,
                            _ => return Err(wrong),
                        },
                        ChunkState::Trailer => match rest.iter().position(|&byte| byte == b'\n') {
                            Some(end) => {
                                at += end + 1;
                                if matches!(rest[..end], [] | [b'\r']) {
                                    break true;
                                }
                            }
                            None if rest.len() < HEAD => break false,
                            None => return Err(wrong),
                        },
                    }
                };
                waiting.drain(..at);
                Ok(over)
            }
        }
    }
}

/// The longest head of an answer.
const HEAD: usize = 65_536;
/// How long a silent connection is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::{Body, ChunkState, Fetched, Url};

    #[test]
    fn addresses_are_read_and_mistakes_named() {
        let url = |text: &str| text.parse::<Url>();
        let found = url("http://192.0.2.1:8000/a/b?c#d").expect("an address");
        assert_eq!(
            (found.host.as_str(), found.port, found.target.as_str()),
            ("192.0.2.1", 8000, "/a/b?c")
        );
        let found = url("http://[2001:db8::1]").expect("an address");
        assert_eq!(
            (found.host.as_str(), found.port, found.target.as_str()),
            ("2001:db8::1", 80, "/")
        );
        assert_eq!(found.authority, "[2001:db8::1]");
        assert_eq!(url("http://a?x=1").expect("an address").target, "/?x=1");
        for (text, why) in [
            ("https://a/", "only http"),
            ("ftp://a/", "begins with"),
            ("a", "begins with"),
            ("http://", "no host"),
            ("http://:80/", "no host"),
            ("http://a:0/", "port"),
            ("http://a:99999/", "port"),
            ("http://[::1", "bracket"),
            ("http://[::1]80/", "port"),
            ("http://u:p@a/", "passwords"),
            ("http://a/ b", "spaces"),
        ] {
            let error = url(text).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn chunks_in_any_pieces_are_the_body() {
        let wire = b"4;x=y\r\nWiki\r\n6\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nA: b\r\n\r\n";
        for piece in 1..wire.len() {
            let (mut out, mut fetched) = (Vec::new(), Fetched::default());
            let mut body = Body::Chunks(Vec::new(), ChunkState::Size);
            let mut over = false;
            for bytes in wire.chunks(piece) {
                assert!(!over, "pieces of {piece}");
                over = body.take(bytes, &mut fetched, &mut out).expect("well formed");
            }
            assert!(over);
            assert_eq!(out, b"Wikipedia in \r\n\r\nchunks.");
            assert_eq!(fetched.bytes, 24);
        }
        let mut body = Body::Chunks(Vec::new(), ChunkState::Size);
        assert!(
            body.take(b"zz\r\n", &mut Fetched::default(), &mut Vec::new())
                .is_err()
        );
        let mut body = Body::Chunks(Vec::new(), ChunkState::Size);
        assert!(
            body.take(b"1\r\nabc", &mut Fetched::default(), &mut Vec::new())
                .is_err()
        );
    }
}
