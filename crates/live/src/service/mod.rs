//! What a [`Host`] serves and fetches: [`Server`] (echo, discard, chargen, files over HTTP) and [`fetch`].
//!
//! Every session holds at most one buffer of its own and reads no more than it can hand on: a slow reader stops its peer, not this
//! program.

mod exchange;
pub mod fetch;
mod files;

pub use files::Folder;

use crate::Error;
use crate::host::{Event, Handle, Host, Waiter};
use exchange::Exchange;
use fleetfoot_core::socket::{Errno, How};
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// What is served on a port.
#[derive(Clone, Debug)]
pub enum Service {
    /// RFC 862: what comes in goes out.
    Echo,
    /// RFC 863: what comes in is thrown away.
    Discard,
    /// RFC 864: lines of characters, as fast as they are taken.
    Chargen,
    /// The files of a folder, over HTTP/1.1.
    Files(Folder),
}

/// What was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Connections that were taken.
    pub connections: u64,
    /// Connections that ended in an error: a reset, a timeout.
    pub failed: u64,
    /// Bytes that came in.
    pub received: u64,
    /// Bytes that were handed to connections.
    pub sent: u64,
    /// HTTP requests that were answered with a file or a list.
    pub answered: u64,
    /// HTTP requests that were refused.
    pub refused: u64,
}

/// A host and what it serves.
pub struct Server {
    host: Host,
    listener: Handle,
    service: Service,
    /// By the index of the handle.
    sessions: Vec<Option<(Handle, Session)>>,
    buffer: Vec<u8>,
    served: Served,
}

/// One connection.
enum Session {
    Echo(Echo),
    Discard,
    /// How many characters were sent.
    Chargen(u64),
    Files(Box<Exchange>),
}

/// What of an echo waits for room.
#[derive(Default)]
struct Echo {
    waiting: Vec<u8>,
    /// How much of it was sent.
    sent: usize,
    /// The peer has sent everything.
    over: bool,
}

/// What a session wants next.
enum Next {
    /// To be asked again when there is news.
    Wait,
    /// To be closed, everything said.
    Close,
}

impl Server {
    /// Serves `service` at `address`; at most `backlog` connections wait to be accepted.
    ///
    /// # Errors
    /// The port is taken, or the address is not of this host.
    pub fn new(mut host: Host, address: SocketAddr, backlog: i32, service: Service) -> Result<Server, Errno> {
        let listener = host.listen(address, backlog)?;
        Ok(Server {
            host,
            listener,
            service,
            sessions: Vec::new(),
            buffer: vec![0; BUFFER],
            served: Served::default(),
        })
    }

    /// Serves until `stop` can be read. Sleeps while there is nothing to do.
    ///
    /// # Errors
    /// The device is gone.
    pub fn run(&mut self, stop: &impl AsFd) -> Result<(), Error> {
        let mut waiter = Waiter::new()?;
        waiter.add(stop, STOP)?;
        waiter.add(&self.host, DEVICE)?;
        let mut ready = Vec::new();
        loop {
            let more = self.step()?;
            let deadline = if more {
                Some(self.host.clock().now())
            } else {
                self.host.poll_timeout()
            };
            ready.clear();
            waiter.wait(self.host.clock(), deadline, &mut ready)?;
            if ready.contains(&STOP) {
                return Ok(());
            }
        }
    }

    /// Does what there is to do; whether packets may still wait.
    ///
    /// # Errors
    /// The device is gone.
    pub fn step(&mut self) -> Result<bool, Error> {
        let more = self.host.work()?;
        while let Some(event) = self.host.poll_event() {
            self.on_event(event);
        }
        self.host.flush()?;
        Ok(more)
    }

    /// Ends every connection with a reset, so that no peer waits for it.
    ///
    /// # Errors
    /// The device is gone.
    pub fn end(&mut self) -> Result<(), Error> {
        for index in 0..self.sessions.len() {
            if let Some((handle, _)) = self.sessions[index].take() {
                self.host.abort(handle);
            }
        }
        self.host.close(self.listener);
        self.host.flush()
    }

    /// The host.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// What was served.
    pub const fn served(&self) -> Served {
        self.served
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.sessions.iter().flatten().count()
    }

    fn on_event(&mut self, event: Event) {
        if event.handle == self.listener {
            while let Ok((handle, _)) = self.host.accept(self.listener) {
                self.begin(handle);
            }
            return;
        }
        let index = event.handle.index();
        let Some((handle, mut session)) = self.sessions.get_mut(index).and_then(Option::take) else {
            return;
        };
        let Server {
            host, buffer, served, ..
        } = self;
        match session.go_on(host, handle, buffer, served) {
            Ok(Next::Wait) => self.sessions[index] = Some((handle, session)),
            Ok(Next::Close) => host.close(handle),
            Err(_) => {
                served.failed += 1;
                host.abort(handle);
            }
        }
    }

    fn begin(&mut self, handle: Handle) {
        self.served.connections += 1;
        let session = match &self.service {
            Service::Echo => Session::Echo(Echo::default()),
            Service::Discard => Session::Discard,
            Service::Chargen => Session::Chargen(0),
            Service::Files(folder) => Session::Files(Box::new(Exchange::new(folder.clone()))),
        };
        let index = handle.index();
        if self.sessions.len() <= index {
            self.sessions.resize_with(index + 1, || None);
        }
        self.sessions[index] = Some((handle, session));
        let event = Event {
            handle,
            ready: Default::default(),
        };
        self.on_event(event); // who speaks first does so now
    }
}

impl Session {
    fn go_on(
        &mut self,
        host: &mut Host,
        handle: Handle,
        buffer: &mut [u8],
        served: &mut Served,
    ) -> Result<Next, Errno> {
        match self {
            Session::Echo(echo) => echo.go_on(host, handle, buffer, served),
            Session::Discard => {
                while let Some(length) = read(host, handle, buffer)? {
                    served.received += length as u64;
                    if length == 0 {
                        return Ok(Next::Close);
                    }
                }
                Ok(Next::Wait)
            }
            Session::Chargen(at) => {
                while let Some(length) = read(host, handle, buffer)? {
                    served.received += length as u64;
                    if length == 0 {
                        return Ok(Next::Close);
                    }
                }
                loop {
                    for (byte, place) in buffer.iter_mut().zip(*at..) {
                        *byte = character(place);
                    }
                    let length = write(host, handle, buffer)?;
                    *at += length as u64;
                    served.sent += length as u64;
                    if length < buffer.len() {
                        return Ok(Next::Wait);
                    }
                }
            }
            Session::Files(exchange) => exchange.go_on(host, handle, buffer, served),
        }
    }
}

impl Echo {
    fn go_on(
        &mut self,
        host: &mut Host,
        handle: Handle,
        buffer: &mut [u8],
        served: &mut Served,
    ) -> Result<Next, Errno> {
        loop {
            if self.sent < self.waiting.len() {
                let length = write(host, handle, &self.waiting[self.sent..])?;
                self.sent += length;
                served.sent += length as u64;
                if self.sent < self.waiting.len() {
                    return Ok(Next::Wait); // and nothing more is read
                }
                self.waiting.clear();
                self.sent = 0;
            }
            if self.over {
                return Ok(Next::Close);
            }
            match read(host, handle, buffer)? {
                None => return Ok(Next::Wait),
                Some(0) => self.over = true,
                Some(length) => {
                    served.received += length as u64;
                    let sent = write(host, handle, &buffer[..length])?;
                    served.sent += sent as u64;
                    self.waiting.extend_from_slice(&buffer[sent..length]);
                }
            }
        }
    }
}

/// Reads; `None`: nothing is there.
fn read(host: &mut Host, handle: Handle, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
    match host.read(handle, buffer) {
        Ok(length) => Ok(Some(length)),
        Err(Errno::EAGAIN) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Writes; how much there was room for.
fn write(host: &mut Host, handle: Handle, bytes: &[u8]) -> Result<usize, Errno> {
    match host.write(handle, bytes) {
        Ok(length) => Ok(length),
        Err(Errno::EAGAIN) => Ok(0),
        Err(errno) => Err(errno),
    }
}

/// The character of RFC 864 at a place: lines of 72 of the 95 that can be printed, each line beginning one later.
const fn character(place: u64) -> u8 {
    let (line, column) = (place / 74, place % 74);
    match column {
        72 => b'\r',
        73 => b'\n',
        column => b' ' + ((line + column) % 95) as u8,
    }
}

/// Bytes that are read or written at once.
const BUFFER: usize = 65_536;
const STOP: u64 = 0;
const DEVICE: u64 = 1;

/// No more is written on this connection.
fn finish(host: &mut Host, handle: Handle) {
    let _ = host.shutdown(handle, How::Write);
}

#[cfg(test)]
mod tests {
    use super::character;

    #[test]
    fn chargen_begins_as_rfc_864_shows_it() {
        let text: String = (0..148).map(|at| char::from(character(at))).collect();
        assert!(
            text.starts_with(
                " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefg\r\n"
            )
        );
        assert!(
            text[74..].starts_with(
                "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefgh\r\n"
            )
        );
    }
}
