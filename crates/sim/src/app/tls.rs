//! TLS 1.3 between an application and its connection: the handshake before the first request, and the records of everything.
//!
//! The client writes its hello when it opens the connection, so that it leaves with the last packet of TCP's handshake; the server
//! answers; the client's Finished goes with the first request: a round trip after the one of TCP (RFC 8446 2). With early data the
//! first request goes with the hello, the answer with the server's flight, and the client ends the handshake when it has that.
//! The server's session tickets go with the first answer (before the client's Finished as RFC 8446 4.6.1 allows).
//!
//! **Deviations.** No time for computation, no alert before the close. What is counted as received and as goodput is what TCP
//! delivers, handshake and records included.

use crate::endpoint::Hosts;
use crate::observe::Observer;
use crate::tls::{Flights, protected};

/// A connection as its application sees it, with TLS or without.
///
/// Both ends write through it, or tell it what they wrote. Stream offsets are those of the connection, with everything that TLS adds.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Stream offsets written so far by the server and the client, or held back for the handshake.
    written: [u64; 2],
    /// `None`: no TLS. Apart: an idle connection without it should be cheap.
    tls: Option<Box<Handshake>>,
}

/// Where a handshake stands.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    flights: Flights,
    step: Step,
    /// Bytes that the client writes when it has the server's flight.
    held: u64,
    /// Where the server's flight ends.
    flight_end: u64,
    /// Where what either end waits for ends that stands behind messages of the handshake.
    goals: [u64; 2],
    /// The client has nothing to write after what is held.
    closing: bool,
    /// Session tickets that were not sent yet.
    tickets: u64,
}

/// What a handshake waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The hello, at the server.
    Hello,
    /// The flight of the server, at the client.
    Flight,
    /// Nothing: it is over at the client.
    Open,
}

impl Session {
    /// No connection yet, or one without TLS.
    pub(super) const PLAIN: Session = Session {
        written: [0; 2],
        tls: None,
    };

    /// The client has opened the connection `slot` of `group` and writes its hello if the group has TLS. It leaves with the next
    /// [`Hosts::push`].
    pub(super) fn begin<O: Observer>(hosts: &mut Hosts<'_, O>, group: u32, slot: u32) -> Session {
        let Some(tls) = &hosts.spec.groups[group as usize].tls else {
            return Session::PLAIN;
        };
        let flights = Flights::new(tls);
        hosts.write(slot, 1, flights.hello);
        hosts.slots[slot as usize].ends[0].goal = flights.hello;
        let held = if flights.early { 0 } else { flights.finished };
        Session {
            written: [0, flights.hello + held],
            tls: Some(Box::new(Handshake {
                flights,
                step: Step::Hello,
                held,
                flight_end: 0,
                goals: [u64::MAX; 2],
                closing: false,
                tickets: flights.tickets,
            })),
        }
    }

    /// Bytes on the connection of `content` bytes that are written at once.
    pub(super) fn on_wire(&self, content: u64) -> u64 {
        self.tls.as_ref().map_or(content, |_| protected(content))
    }

    /// Stream offset up to which an end has written.
    pub(super) const fn written(&self, side: usize) -> u64 {
        self.written[side]
    }

    /// The client writes a request of `content` bytes, as soon as the handshake lets it. Where it ends.
    pub(super) fn request<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32, content: u64) -> u64 {
        let bytes = self.on_wire(content);
        self.written[1] += bytes;
        match &mut self.tls {
            Some(tls) if tls.step != Step::Open && !tls.flights.early => tls.held += bytes,
            _ => hosts.write(slot, 1, bytes),
        }
        self.written[1]
    }

    /// The server writes `content` bytes at once. Where they end.
    pub(super) fn answer<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32, content: u64) -> u64 {
        let added = self.add_answer(content);
        hosts.write(slot, 0, content + added);
        self.written[0]
    }

    /// The application writes an answer of `content` bytes itself. What is to be written before it.
    pub(super) fn add_answer(&mut self, content: u64) -> u64 {
        let tickets = self
            .tls
            .as_mut()
            .map_or(0, |tls| std::mem::take(&mut tls.tickets));
        let added = self.on_wire(content) - content + tickets;
        self.written[0] += content + added;
        added
    }

    /// The end `side` waits for the stream up to `goal`, after what it waits for of the handshake.
    pub(super) fn expect<O>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32, side: usize, goal: u64) {
        let end = &mut hosts.slots[slot as usize].ends[side];
        end.goal = match &mut self.tls {
            Some(tls) if tls.waits(side) => {
                tls.goals[side] = goal;
                match (tls.step, side) {
                    (Step::Flight, _) => tls.flight_end,
                    (_, 0) => tls.flights.hello,
                    (..) => u64::MAX,
                }
            }
            _ => goal,
        };
    }

    /// The client closes after what it has written, if `last`.
    pub(super) fn close_after<O>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32, last: bool) {
        let pending = self.tls.as_mut().filter(|tls| tls.step != Step::Open);
        let now = last && pending.is_none();
        if let Some(tls) = pending {
            tls.closing = last;
        }
        hosts.slots[slot as usize].ends[1].closing = now;
    }

    /// An end has what it waited for. Whether that was a message of the application: those of the handshake are dealt with here,
    /// and what they are answered with leaves with the next [`Hosts::push`].
    pub(super) fn hear<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32, side: usize) -> bool {
        let Some(tls) = &mut self.tls else {
            return true;
        };
        match (tls.step, side) {
            (Step::Hello, 0) => {
                tls.step = Step::Flight;
                self.written[0] += tls.flights.answer;
                tls.flight_end = self.written[0];
                hosts.write(slot, 0, tls.flights.answer);
                let ends = &mut hosts.slots[slot as usize].ends;
                ends[1].goal = tls.flight_end;
                if !tls.flights.early {
                    ends[0].goal = tls.goals[0];
                }
                tls.flights.early
            }
            (Step::Flight, 1) => {
                tls.step = Step::Open;
                if tls.flights.early {
                    self.written[1] += tls.flights.finished;
                    tls.held += tls.flights.finished;
                }
                hosts.write(slot, 1, std::mem::take(&mut tls.held));
                let end = &mut hosts.slots[slot as usize].ends[1];
                end.closing |= tls.closing;
                end.goal = tls.goals[1];
                end.received >= end.goal
            }
            _ => true,
        }
    }
}

impl Handshake {
    /// Whether an end waits for a message of the handshake before those of the application. A server that takes early data has it with
    /// the hello.
    const fn waits(&self, side: usize) -> bool {
        match self.step {
            Step::Hello => side == 1 || !self.flights.early,
            Step::Flight => side == 1,
            Step::Open => false,
        }
    }
}
