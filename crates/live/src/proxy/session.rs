//! One client, its target, and what is on the way between them.
//!
//! A [`Flow`] is one direction. It reads no more than it can hand on at once: what the other end did not take waits here, at most
//! [`BUFFER`] bytes, and nothing more is read before it is gone. So a reader that stops closes the window of its sender, through both
//! TCPs.

use super::leg::{Fault, Leg};
use super::request::Handshake;
use crate::host::Host;
use fleetfoot_core::time::Instant;
use std::net::SocketAddr;

/// One client.
pub(super) struct Session {
    pub(super) phase: Phase,
    /// The end of the client.
    pub(super) front: Leg,
    /// The end of the target, from the attempt to connect on.
    pub(super) back: Option<Leg>,
    pub(super) to_target: Flow,
    pub(super) to_client: Flow,
    /// What was asked; `None` where the target is fixed.
    pub(super) handshake: Option<Handshake>,
    /// Addresses that were not tried yet.
    pub(super) candidates: Vec<SocketAddr>,
    /// When the phase ends.
    pub(super) deadline: Option<Instant>,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The request has not come in full.
    Request,
    /// The name of the target is looked up.
    Resolving,
    /// The target is being connected to.
    Connecting,
    /// Bytes pass.
    Relaying,
    /// The client was refused and is to read that.
    Refusing,
}

/// One direction.
#[derive(Default)]
pub(super) struct Flow {
    /// What waits for room, of which `sent` bytes are gone.
    waiting: Vec<u8>,
    sent: usize,
    /// Its source has ended.
    over: bool,
    /// Its sink was told so.
    pub(super) finished: bool,
}

/// At which end a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Target,
}

/// Memory for what waits: pieces are used again.
#[derive(Default)]
pub(super) struct Buffers {
    /// What a read fills.
    pub(super) read: Vec<u8>,
    spare: Vec<Vec<u8>>,
    held: u64,
    /// The most that was held at once.
    pub(super) most: u64,
}

impl Session {
    pub(super) fn new(front: Leg, phase: Phase, handshake: Option<Handshake>) -> Session {
        Session {
            phase,
            front,
            back: None,
            to_target: Flow::default(),
            to_client: Flow::default(),
            handshake,
            candidates: Vec::new(),
            deadline: None,
        }
    }

    /// Passes on what can be in both directions; counts bytes in `passed` (to the target, to the client).
    pub(super) fn relay(
        &mut self,
        host: &mut Host,
        buffers: &mut Buffers,
        passed: [&mut u64; 2],
    ) -> Result<(), End> {
        let Some(back) = &mut self.back else {
            return Ok(());
        };
        let [to_target, to_client] = passed;
        self.to_target
            .pass(&mut self.front, back, host, buffers, to_target)
            .map_err(|from_source| if from_source { End::Client } else { End::Target })?;
        self.to_client
            .pass(back, &mut self.front, host, buffers, to_client)
            .map_err(|from_source| if from_source { End::Target } else { End::Client })?;
        // A reset of an end that is not being read, because the other one takes nothing, shows nowhere else.
        for (end, leg, flow) in [
            (End::Client, &self.front, &self.to_target),
            (End::Target, &*back, &self.to_client),
        ] {
            if (leg.may_read() || flow.over) && leg.broken(host).is_some() {
                return Err(end);
            }
        }
        Ok(())
    }

    /// Whether both directions are over and both ends know.
    pub(super) const fn is_over(&self) -> bool {
        self.to_target.finished && self.to_client.finished
    }

    /// Gives its memory back.
    pub(super) fn release(&mut self, buffers: &mut Buffers) {
        self.to_target.release(buffers);
        self.to_client.release(buffers);
    }
}

impl Flow {
    /// Passes on what can be; an error says whether its source failed, else its sink did.
    fn pass(
        &mut self,
        source: &mut Leg,
        sink: &mut Leg,
        host: &mut Host,
        buffers: &mut Buffers,
        passed: &mut u64,
    ) -> Result<(), bool> {
        loop {
            if self.sent < self.waiting.len() {
                if !sink.may_write() {
                    return Ok(());
                }
                let rest = self.waiting.get(self.sent..).unwrap_or_default();
                let length = sink.write(host, rest).map_err(|Fault(_)| false)?;
                self.sent += length;
                buffers.held -= length as u64;
                if self.sent < self.waiting.len() {
                    return Ok(());
                }
                self.release(buffers);
            }
            if self.over {
                if !self.finished {
                    sink.finish(host);
                    self.finished = true;
                }
                return Ok(());
            }
            if !source.may_read() || !sink.may_write() {
                return Ok(());
            }
            let mut read = std::mem::take(&mut buffers.read);
            let found = source.read(host, &mut read);
            let outcome = match found {
                Err(Fault(_)) => Err(true),
                Ok(None) => Ok(false),
                Ok(Some(0)) => {
                    self.over = true;
                    Ok(true)
                }
                Ok(Some(length)) => {
                    *passed += length as u64;
                    let bytes = read.get(..length).unwrap_or_default();
                    match sink.write(host, bytes) {
                        Ok(sent) => {
                            self.keep(bytes.get(sent..).unwrap_or_default(), buffers);
                            Ok(true)
                        }
                        Err(Fault(_)) => Err(false),
                    }
                }
            };
            buffers.read = read;
            if !outcome? {
                return Ok(());
            }
        }
    }

    /// Keeps what is to leave next; at most [`BUFFER`] bytes at once, since no more is read before it has left.
    pub(super) fn keep(&mut self, bytes: &[u8], buffers: &mut Buffers) {
        if bytes.is_empty() {
            return;
        }
        if self.waiting.capacity() == 0 {
            self.waiting = buffers.spare.pop().unwrap_or_default();
        }
        self.waiting.extend_from_slice(bytes);
        buffers.held += bytes.len() as u64;
        buffers.most = buffers.most.max(buffers.held);
    }

    fn release(&mut self, buffers: &mut Buffers) {
        buffers.held -= (self.waiting.len() - self.sent) as u64;
        self.sent = 0;
        let mut used = std::mem::take(&mut self.waiting);
        if used.capacity() > 0 && buffers.spare.len() < SPARE {
            used.clear();
            buffers.spare.push(used);
        }
    }
}

impl Buffers {
    pub(super) fn new() -> Buffers {
        Buffers {
            read: vec![0; BUFFER],
            ..Buffers::default()
        }
    }
}

/// Bytes that are read at once, and that wait in one direction at most (with an answer to a request, a few more).
pub(super) const BUFFER: usize = 65_536;
/// Pieces of memory that are kept for later.
const SPARE: usize = 64;
