//! Two connections and a pipe between them, stepped in virtual time.
//!
//! At equal times arrivals come before writes and writes before timers (docs/design/endpoint.md#ties).

use crate::packet::Segment;
use crate::seq::SeqNumber;
use crate::tcp::open::listener::{Answer, on_closed, on_listen};
use crate::tcp::receive::rcvbuf::Room;
use crate::tcp::send::peer_window::PeerWindow;
use crate::tcp::{Config, Connection, EstablishedState, Event, State, Transmit, WriteFlags};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    A,
    B,
}

/// What becomes of a segment on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Deliver,
    Drop,
    /// Arrives later by this much.
    Delay(Duration),
    /// Arrives twice.
    Twice,
    /// Arrives with CE if it is ECN-capable.
    Mark,
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) from: End,
    pub(super) transmit: Transmit,
    pub(super) fate: Fate,
}

type Decide = Box<dyn FnMut(&Sent, usize) -> Fate>;

pub(super) struct Pair {
    pub(super) now: Instant,
    pub(super) a: Connection,
    pub(super) b: Option<Connection>,
    config_b: Arc<Config>,
    iss_b: SeqNumber,
    delay: Duration,
    /// (arrival, order of sending, to, segment), sorted by arrival then order.
    wire: Vec<(Instant, u64, End, Segment)>,
    order: u64,
    writes: VecDeque<(Instant, End, u64)>,
    pub(super) decide: Decide,
    pub(super) log: Vec<Sent>,
    pub(super) events: Vec<(Instant, End, Event)>,
    /// Read what arrives at once.
    pub(super) reading: bool,
    /// Stream bytes B took from segments.
    pub(super) taken: u64,
    /// Inputs are not drained at once: the test does it.
    pub(super) lazy: bool,
}

pub(super) const ISS_A: SeqNumber = SeqNumber(u32::MAX - 999);
pub(super) const ISS_B: SeqNumber = SeqNumber(u32::MAX - 4);

impl Pair {
    pub(super) fn connecting(config_a: Config, config_b: Config, delay: Duration) -> Pair {
        let (config_a, config_b) = (Arc::new(config_a), Arc::new(config_b));
        Pair {
            now: Instant::ZERO,
            a: Connection::connect(Instant::ZERO, &config_a, ISS_A),
            b: None,
            config_b,
            iss_b: ISS_B,
            delay,
            wire: Vec::new(),
            order: 0,
            writes: VecDeque::new(),
            decide: Box::new(|_, _| Fate::Deliver),
            log: Vec::new(),
            events: Vec::new(),
            reading: true,
            taken: 0,
            lazy: false,
        }
    }

    /// Both ends established; A with the given SRTT, RTTVAR and window.
    pub(super) fn established(
        config: &Config,
        delay: Duration,
        srtt: Duration,
        window: u64,
        mss: u32,
    ) -> Pair {
        let mut pair = Pair::connecting(config.clone(), config.clone(), delay);
        let state = EstablishedState {
            srtt,
            rttvar: Duration::ZERO,
            cwnd: Bytes(window),
            ssthresh: Bytes::MAX,
            mss,
            iss: ISS_A,
            irs: ISS_B,
            // More than the peer takes in would lie beyond its window, and so would every acknowledgment after it.
            peer_window: config.receive_buffer.min(Bytes(1 << 20)),
        };
        let config = Arc::new(config.clone());
        pair.a = Connection::established(Instant::ZERO, &config, state);
        pair.b = Some(Connection::established(
            Instant::ZERO,
            &config,
            EstablishedState {
                iss: ISS_B,
                irs: ISS_A,
                ..state
            },
        ));
        pair
    }

    /// Where the configuration has receive memory, both ends begin with it, as they would after a handshake.
    pub(super) fn tune_receive_buffers(&mut self) {
        let now = self.now;
        let Some(memory) = self.config_b.receive_memory else {
            return;
        };
        for end in [End::A, End::B] {
            let connection = self.connection(end);
            let (full, scale) = (connection.shared.mss, connection.shared.rcv_scale);
            let mut room = Room::new(memory, full, full, scale);
            room.start(now, 1);
            connection.receive.edge = 1 + room.first_window();
            connection.shared.peer = PeerWindow::of_syn(room.first_window(), false);
            connection.receive.room = Some(Box::new(room));
        }
    }

    /// Loses what `from` sends with these numbers, counted from 0, and nothing else.
    pub(super) fn lose(&mut self, from: End, which: Range<usize>) {
        self.decide = Box::new(move |sent, index| {
            if sent.from == from && which.contains(&index) {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
    }

    pub(super) fn write_at(&mut self, at: Instant, end: End, bytes: u64) {
        self.writes.push_back((at, end, bytes));
    }

    pub(super) fn connection(&mut self, end: End) -> &mut Connection {
        match end {
            End::A => &mut self.a,
            End::B => self.b.as_mut().expect("B was opened"),
        }
    }

    /// Drains both ends.
    pub(super) fn drain(&mut self) {
        for end in [End::A, End::B] {
            if end == End::B && self.b.is_none() {
                continue;
            }
            let now = self.now;
            if self.reading {
                self.connection(end).read(now, Bytes::MAX);
            }
            while let Some(transmit) = self.connection(end).poll_transmit(now) {
                self.send(end, transmit);
            }
            while let Some(event) = self.connection(end).poll_event() {
                self.events.push((now, end, event));
            }
            if let Some(deadline) = self.connection(end).poll_timeout() {
                // Equal: a timer is due at the very moment at which a segment arrived, and comes after it.
                assert!(
                    deadline >= now,
                    "after a drain no deadline has passed: {deadline:?} at {now:?}"
                );
            }
        }
    }

    fn send(&mut self, from: End, transmit: Transmit) {
        let mut sent = Sent {
            at: self.now,
            from,
            transmit,
            fate: Fate::Deliver,
        };
        let index = self.log.iter().filter(|other| other.from == from).count();
        sent.fate = (self.decide)(&sent, index);
        let to = if from == End::A { End::B } else { End::A };
        let mut segment = transmit.segment;
        let mut arrival = self.now + self.delay;
        let copies = match sent.fate {
            Fate::Deliver => 1,
            Fate::Drop => 0,
            Fate::Delay(extra) => {
                arrival += extra;
                1
            }
            Fate::Twice => 2,
            Fate::Mark => {
                if segment.ecn_capable() {
                    segment.set_ecn(crate::packet::Ecn::Ce);
                }
                1
            }
        };
        for _ in 0..copies {
            self.order += 1;
            self.wire.push((arrival, self.order, to, segment));
        }
        self.log.push(sent);
    }

    /// Asserts that nothing that can be seen of this pair differs from another; segments before the `logged` first are not looked
    /// at. Returns how many there are.
    pub(super) fn assert_like(
        &mut self,
        other: &mut Pair,
        logged: usize,
        context: &dyn Fn() -> alloc::string::String,
    ) -> usize {
        let now = self.now;
        for end in [End::A, End::B] {
            let (one, two) = (self.connection(end), other.connection(end));
            one.check(true);
            assert_eq!(
                (one.info(now), one.poll_timeout(), one.timer(), one.readable()),
                (two.info(now), two.poll_timeout(), two.timer(), two.readable()),
                "{} at {now:?}, {end:?}",
                context()
            );
        }
        assert_eq!(self.log.len(), other.log.len(), "{}", context());
        for (one, two) in self.log[logged..].iter().zip(&other.log[logged..]) {
            assert_eq!(
                (one.at, one.from, one.transmit),
                (two.at, two.from, two.transmit),
                "{}",
                context()
            );
        }
        assert_eq!(self.events, other.events, "{}", context());
        self.log.len()
    }

    /// Neither end predicts headers from now on.
    pub(super) fn switch_header_prediction_off(&mut self) {
        for end in [End::A, End::B] {
            self.connection(end).shared.predict = false;
        }
    }

    /// Time of the next thing that happens.
    pub(super) fn next(&self) -> Option<Instant> {
        let wire = self.wire.iter().map(|(at, ..)| *at).min();
        let write = self.writes.front().map(|(at, ..)| *at);
        let timers = [
            self.a.poll_timeout(),
            self.b.as_ref().and_then(Connection::poll_timeout),
        ];
        [wire, write].into_iter().chain(timers).flatten().min()
    }

    /// Does the next thing; false if nothing is left.
    pub(super) fn step(&mut self) -> bool {
        let Some(at) = self.next() else { return false };
        self.now = self.now.max(at);
        let now = self.now;
        let due = self
            .wire
            .iter()
            .enumerate()
            .filter(|(_, (at, ..))| *at <= now)
            .min_by_key(|(_, (at, order, ..))| (*at, *order))
            .map(|(index, _)| index);
        if let Some(index) = due {
            let (_, _, to, segment) = self.wire.remove(index);
            self.arrive(to, &segment);
        } else if self.writes.front().is_some_and(|(at, ..)| *at <= now) {
            if let Some((_, end, bytes)) = self.writes.pop_front() {
                let taken = self
                    .connection(end)
                    .write(now, Bytes(bytes), WriteFlags::default());
                assert_eq!(taken, Bytes(bytes), "the send buffer takes the write");
            }
        } else {
            for end in [End::A, End::B] {
                if end == End::B && self.b.is_none() {
                    continue;
                }
                if self.connection(end).poll_timeout().is_some_and(|at| at <= now) {
                    self.connection(end).on_timeout(now);
                    let next = self.connection(end).poll_timeout();
                    assert!(
                        next.is_none_or(|at| at > now),
                        "a timer that fired lies ahead: {next:?} at {now:?}"
                    );
                }
            }
        }
        if !self.lazy {
            self.drain();
        }
        true
    }

    pub(super) fn arrive(&mut self, to: End, segment: &Segment) {
        let now = self.now;
        if to == End::B && self.b.is_none() {
            if on_listen(segment) == Answer::Accept {
                let config = Arc::clone(&self.config_b);
                self.b = Some(Connection::accept(now, &config, self.iss_b, segment));
            }
            return;
        }
        if self.connection(to).state() == State::Closed {
            if let Answer::Reset(reset) = on_closed(segment) {
                let at = self.connection(to).acked();
                self.send(
                    to,
                    Transmit {
                        segment: reset,
                        start: at,
                        end: at,
                    },
                );
            }
            return;
        }
        let accepted = self.connection(to).on_segment(now, segment);
        let mut taken = accepted.end - accepted.start;
        while let Some(piece) = self.connection(to).poll_accepted() {
            taken += piece.end - piece.start;
        }
        if to == End::B {
            self.taken += taken;
        }
    }
}
