//! HTTP/1.1 at the serving end of a connection: requests one after the other, answered from a folder.
//!
//! **Source.** RFC 9110 (ranges: 14.2, of which one is answered; conditional requests are not), RFC 9112.

use super::files::{Folder, Found};
use super::{Next, Served, finish, read, write};
use crate::host::{Handle, Host};
use fleetfoot_core::socket::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A connection and where it is in its requests.
pub(super) struct Exchange {
    folder: Folder,
    /// What came in and is not yet understood.
    request: Vec<u8>,
    /// Head of the answer, and short bodies; how much of it was sent.
    head: Vec<u8>,
    sent: usize,
    /// The file behind the head: which part of it is still to be sent.
    file: Option<(File, u64, u64)>,
    /// The peer has sent everything.
    over: bool,
    /// Nothing more is to be read on this connection.
    last: bool,
    /// The answer to the last request was sent, and so was our FIN.
    finished: bool,
}

impl Exchange {
    pub(super) fn new(folder: Folder) -> Exchange {
        Exchange {
            folder,
            request: Vec::new(),
            head: Vec::new(),
            sent: 0,
            file: None,
            over: false,
            last: false,
            finished: false,
        }
    }

    pub(super) fn go_on(
        &mut self,
        host: &mut Host,
        handle: Handle,
        buffer: &mut [u8],
        served: &mut Served,
    ) -> Result<Next, Errno> {
        loop {
            if self.finished {
                // What the peer still sends is thrown away, so that it is not answered with a reset before it has read ours.
                while let Some(length) = read(host, handle, buffer)? {
                    if length == 0 {
                        return Ok(Next::Close);
                    }
                }
                return Ok(Next::Wait);
            }
            if !self.send(host, handle, buffer, served)? {
                return Ok(Next::Wait);
            }
            if self.last {
                finish(host, handle);
                self.finished = true;
                continue;
            }
            if self.understand(served) {
                continue;
            }
            if self.over {
                return Ok(Next::Close);
            }
            match read(host, handle, buffer)? {
                None => return Ok(Next::Wait),
                Some(0) => self.over = true,
                Some(length) => {
                    served.received += length as u64;
                    self.request.extend_from_slice(&buffer[..length]);
                }
            }
        }
    }

    /// Sends what there is of the answer; whether all of it was sent.
    fn send(
        &mut self,
        host: &mut Host,
        handle: Handle,
        buffer: &mut [u8],
        served: &mut Served,
    ) -> Result<bool, Errno> {
        if self.sent < self.head.len() {
            let length = write(host, handle, &self.head[self.sent..])?;
            self.sent += length;
            served.sent += length as u64;
            if self.sent < self.head.len() {
                return Ok(false);
            }
        }
        self.head.clear();
        self.sent = 0;
        while let Some((file, at, end)) = &mut self.file {
            let wanted = usize::try_from(*end - *at)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            if wanted == 0 {
                self.file = None;
                break;
            }
            // A file that has become shorter cannot be sent as announced: the connection is reset.
            let there = match file.read_at(&mut buffer[..wanted], *at) {
                Ok(length) if length > 0 => length,
                Ok(_) | Err(_) => return Err(Errno::EFAULT),
            };
            let length = write(host, handle, &buffer[..there])?;
            *at += length as u64;
            served.sent += length as u64;
            if length < there {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes a whole request, if one is there, and makes the answer.
    fn understand(&mut self, served: &mut Served) -> bool {
        let mut room = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut room);
        let length = match request.parse(&self.request) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if self.request.len() < HEAD => return false,
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                served.refused += 1;
                self.say(431, "Request Header Fields Too Large", &[], None, false);
                return self.end();
            }
            Err(_) => {
                served.refused += 1;
                self.say(400, "Bad Request", &[], None, false);
                return self.end();
            }
        };
        let header = |name: &str| {
            let mut all = request.headers.iter();
            let found = all.find(|header| header.name.eq_ignore_ascii_case(name))?;
            str::from_utf8(found.value).ok().map(str::trim)
        };
        let method = request.method.unwrap_or_default();
        let version = request.version.unwrap_or(1);
        let connection = header("connection").unwrap_or_default().to_ascii_lowercase();
        let keeps = if version == 0 {
            connection.contains("keep-alive")
        } else {
            !connection.contains("close")
        };
        let has_body =
            header("transfer-encoding").is_some() || header("content-length").is_some_and(|text| text != "0");
        let asked = Asked {
            only_head: method == "HEAD",
            known: matches!(method, "GET" | "HEAD"),
            // A range that holds only for an unchanged file is not answered: whether it changed is not known here.
            range: header("range")
                .filter(|_| header("if-range").is_none())
                .map(str::to_owned),
            target: request.path.unwrap_or_default().to_owned(),
            no_host: version == 1 && header("host").is_none(),
        };
        self.request.drain(..length);
        self.last = !keeps || has_body;
        if has_body {
            served.refused += 1;
            self.say(413, "Content Too Large", &[], None, asked.only_head);
        } else if asked.no_host {
            served.refused += 1;
            self.say(400, "Bad Request", &[], None, asked.only_head); // RFC 9112 3.2
        } else {
            self.answer(&asked, served);
        }
        true
    }

    fn answer(&mut self, asked: &Asked, served: &mut Served) {
        if !asked.known {
            served.refused += 1;
            let allow = [("Allow", String::from("GET, HEAD"))];
            return self.say(405, "Method Not Allowed", &allow, None, asked.only_head);
        }
        match self.folder.find(&asked.target) {
            Some(Found::File(file, length, kind)) => {
                let mut headers = vec![
                    ("Content-Type", String::from(kind)),
                    ("Accept-Ranges", String::from("bytes")),
                ];
                let range = asked.range.as_deref().and_then(|text| range(text, length));
                let (code, reason, start, end) = match range {
                    Some(Some((start, end))) => {
                        headers.push(("Content-Range", format!("bytes {start}-{}/{length}", end - 1)));
                        (206, "Partial Content", start, end)
                    }
                    Some(None) => {
                        served.refused += 1;
                        let headers = [("Content-Range", format!("bytes */{length}"))];
                        return self.say(416, "Range Not Satisfiable", &headers, None, asked.only_head);
                    }
                    None => (200, "OK", 0, length),
                };
                served.answered += 1;
                self.head(code, reason, &headers, end - start);
                if !asked.only_head {
                    self.file = Some((file, start, end));
                }
            }
            Some(Found::List(html)) => {
                served.answered += 1;
                let headers = [("Content-Type", String::from("text/html; charset=utf-8"))];
                self.say(200, "OK", &headers, Some(&html), asked.only_head);
            }
            Some(Found::Moved(to)) => {
                served.answered += 1;
                self.say(
                    301,
                    "Moved Permanently",
                    &[("Location", to)],
                    None,
                    asked.only_head,
                );
            }
            Some(Found::Nothing) => {
                served.refused += 1;
                self.say(404, "Not Found", &[], None, asked.only_head);
            }
            None => {
                served.refused += 1;
                self.say(400, "Bad Request", &[], None, asked.only_head);
            }
        }
    }

    /// Nothing more is understood on this connection.
    fn end(&mut self) -> bool {
        self.request.clear();
        self.last = true;
        true
    }

    /// An answer with a short body; without one, the reason stands there.
    fn say(
        &mut self,
        code: u16,
        reason: &str,
        headers: &[(&str, String)],
        body: Option<&str>,
        only_head: bool,
    ) {
        let text = format!("{code} {reason}\n");
        let body = body.unwrap_or(&text);
        self.head(code, reason, headers, body.len() as u64);
        if !only_head {
            self.head.extend_from_slice(body.as_bytes());
        }
    }

    fn head(&mut self, code: u16, reason: &str, headers: &[(&str, String)], length: u64) {
        let mut text =
            format!("HTTP/1.1 {code} {reason}\r\nServer: fleetfoot\r\nContent-Length: {length}\r\n");
        for (name, value) in headers {
            let value = value.replace(['\r', '\n'], "");
            text += &format!("{name}: {value}\r\n");
        }
        let connection = if self.last { "close" } else { "keep-alive" };
        text += &format!("Connection: {connection}\r\n\r\n");
        self.head.extend_from_slice(text.as_bytes());
    }
}

/// A request, understood.
struct Asked {
    only_head: bool,
    known: bool,
    range: Option<String>,
    target: String,
    no_host: bool,
}

/// The part of `length` bytes that a range header asks for, end exclusive; `Some(None)`: there is none of it; `None`: it is to
/// be ignored (RFC 9110 14.2).
fn range(text: &str, length: u64) -> Option<Option<(u64, u64)>> {
    let wanted = text.strip_prefix("bytes=")?;
    if wanted.contains(',') {
        return None; // several parts: the whole is sent
    }
    let (first, last) = wanted.split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let (start, end) = if first.is_empty() {
        let count = number(last)?;
        (length.saturating_sub(count), if count == 0 { 0 } else { length })
    } else {
        let start = number(first)?;
        let end = if last.is_empty() { u64::MAX } else { number(last)? };
        if end < start {
            return None;
        }
        (start, end.saturating_add(1).min(length))
    };
    Some((start < end).then_some((start, end)))
}

/// The longest head of a request.
const HEAD: usize = 16_384;
/// The most headers of a request.
const HEADERS: usize = 64;

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        for (text, found) in [
            ("bytes=0-499", Some(Some((0, 500)))),
            ("bytes=500-999", Some(Some((500, 1000)))),
            ("bytes=-500", Some(Some((9500, 10_000)))),
            ("bytes=9500-", Some(Some((9500, 10_000)))),
            ("bytes=0-0", Some(Some((0, 1)))),
            ("bytes=-1", Some(Some((9999, 10_000)))),
            ("bytes=0-99999999999999999999", Some(Some((0, 10_000)))),
            ("bytes=-20000", Some(Some((0, 10_000)))),
            ("bytes=10000-", Some(None)),
            ("bytes=-0", Some(None)),
            ("bytes=5-4", None),
            ("bytes=0-1,4-5", None),
            ("bytes=", None),
            ("bytes=-", None),
            ("bytes=+1-2", None),
            ("lines=1-2", None),
        ] {
            assert_eq!(range(text, 10_000), found, "{text}");
        }
    }
}
