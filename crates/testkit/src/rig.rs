//! Two connections over a wire that a test commands: what the small world, the soak and the fuzz target share.
//!
//! The rig steps virtual time: arrivals first, then reads, then timers. The network is a function that decides the fate of
//! each packet. With the wire codec on, packets are bytes with position-dependent payload, damage is flipped bits that
//! only the checksums can find, and the receiver copies payload by the ranges that `on_segment` returns into a buffer of
//! its window's size, which is compared when it is read.
//!
//! What is asserted along the way: after a drain no deadline has passed; the stream arrives whole and in order; no end that
//! has something to say is silent for longer than its own timeout and a round trip.

use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::listener::{Answer, on_closed, on_listen};
use fleetfoot_core::tcp::{
    Config, Connection, ConnectionError, Event, Half, Setting, State, Timer, TimerGrid, WriteFlags,
};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_core::wire;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The packet arrives after the delay of the path.
    Deliver,
    /// The packet does not arrive.
    Drop,
    /// The packet arrives, and again later by this.
    Twice(Duration),
    /// The packet arrives later by this.
    Late(Duration),
    /// The packet changes places with the next packet of its direction.
    Swap,
    /// The packet arrives with damage; the number says where.
    Damage(u32),
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Number among all packets of the run.
    pub index: u64,
    /// The end that sends.
    pub from: usize,
    /// When.
    pub at: Instant,
    /// Its headers.
    pub segment: Segment,
}

/// When an end closes its sending half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseWhen {
    /// All of its data is written.
    Written,
    /// That, and the peer has closed.
    PeerClosed,
}

/// One end, as a test wants it.
#[derive(Clone, Debug)]
pub struct EndSetup {
    /// Its configuration.
    pub config: Arc<Config>,
    /// Its initial sequence number.
    pub iss: SeqNumber,
    /// Bytes it sends.
    pub bytes: u64,
    /// When it closes.
    pub close: CloseWhen,
    /// Delay of its packets.
    pub delay: Duration,
    /// The application reads this often; zero: at once.
    pub read_every: Duration,
    /// And this much.
    pub read_bytes: u64,
}

/// An end in the run.
pub struct End {
    setup: EndSetup,
    /// The connection, once open.
    pub connection: Option<Connection>,
    /// Bytes the connection has taken.
    pub written: u64,
    /// Bytes read and found right.
    pub read: u64,
    /// The peer's FIN came.
    pub peer_closed: bool,
    /// The error that ended it.
    pub failed: Option<ConnectionError>,
    irs: SeqNumber,
    /// Received bytes by offset modulo its length.
    buffer: Vec<u8>,
    next_read: Instant,
    active_at: Instant,
    active: bool,
    /// Its longest timeout since data was last acknowledged: a sample that comes by SACK does not shorten a timer that runs.
    patience: Duration,
    acked: u64,
}

/// The run.
pub struct Rig<N> {
    /// Opener and listener.
    pub ends: [End; 2],
    /// Virtual time.
    pub now: Instant,
    /// Packets sent so far.
    pub sent: u64,
    /// Packets that arrived damaged and were noticed.
    pub damaged: u64,
    network: N,
    /// Packets are bytes.
    codec: bool,
    /// `Setting::HeaderPrediction` of both ends.
    predict: bool,
    /// Longest round trip, with what the network adds.
    round_trip: Duration,
    wire: BinaryHeap<Reverse<Flight>>,
    /// A packet that waits to change places.
    held: [Option<Flight>; 2],
    order: u64,
    spare: Vec<Vec<u8>>,
    pattern: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Flight {
    at: Instant,
    order: u64,
    to: usize,
    segment: Segment,
    bytes: Vec<u8>,
}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Flight) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flight {
    fn cmp(&self, other: &Flight) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<N: FnMut(&Hop) -> Fate> Rig<N> {
    /// An opener and a listener; `extra` is the most that the network adds to a delay.
    pub fn new(setups: [EndSetup; 2], codec: bool, extra: Duration, network: N) -> Rig<N> {
        let round_trip = setups[0].delay + setups[1].delay + extra + extra;
        let ends = setups.map(|setup| End {
            buffer: if codec {
                vec![0; setup.config.receive_buffer.get() as usize + 2]
            } else {
                Vec::new()
            },
            connection: None,
            written: 0,
            read: 0,
            peer_closed: false,
            failed: None,
            irs: SeqNumber(0),
            next_read: Instant::FAR_FUTURE,
            active_at: Instant::ZERO,
            active: false,
            patience: Duration::ZERO,
            acked: 0,
            setup,
        });
        let mut rig = Rig {
            ends,
            now: Instant::from_millis(1),
            sent: 0,
            damaged: 0,
            network,
            codec,
            predict: true,
            round_trip,
            wire: BinaryHeap::new(),
            held: [None, None],
            order: 0,
            spare: Vec::new(),
            pattern: if codec { pattern() } else { Vec::new() },
        };
        rig.open(0);
        rig
    }

    /// Both ends take the general path for every segment.
    pub fn without_prediction(&mut self) {
        self.predict = false;
        let now = self.now;
        for connection in self.ends.iter_mut().filter_map(|end| end.connection.as_mut()) {
            connection.set(now, Setting::HeaderPrediction(false));
        }
    }

    /// Both ends open at once.
    pub fn open_second(&mut self) {
        self.open(1);
    }

    fn open(&mut self, which: usize) {
        let now = self.now;
        let end = &mut self.ends[which];
        let mut connection = Connection::connect(now, &end.setup.config, end.setup.iss);
        connection.set(now, Setting::HeaderPrediction(self.predict));
        end.connection = Some(connection);
        self.serve(which);
    }

    /// Does the next thing; false if nothing is left.
    pub fn step(&mut self) -> bool {
        let Some(at) = self.next() else { return false };
        self.now = self.now.max(at);
        self.check_silence();
        let due = self
            .wire
            .peek()
            .is_some_and(|Reverse(flight)| flight.at <= self.now);
        if due {
            if let Some(Reverse(flight)) = self.wire.pop() {
                self.arrive(flight);
            }
            return true;
        }
        for which in 0..2 {
            let now = self.now;
            let end = &mut self.ends[which];
            let mut busy = false;
            if end.next_read <= now {
                end.next_read = Instant::FAR_FUTURE;
                let wanted = end.setup.read_bytes;
                self.read(which, wanted);
                busy = true;
            }
            if let Some(connection) = &mut self.ends[which].connection
                && connection.poll_timeout().is_some_and(|at| at <= now)
            {
                connection.on_timeout(now);
                busy = true;
            }
            if busy {
                self.serve(which);
            }
        }
        true
    }

    /// Both ends are closed and everything arrived.
    pub fn finished(&self) -> bool {
        [0, 1].into_iter().all(|which| {
            let (end, peer) = (&self.ends[which], &self.ends[1 - which]);
            end.read == peer.setup.bytes
                && end.failed.is_none()
                && end
                    .connection
                    .as_ref()
                    .is_some_and(|connection| connection.state() == State::Closed)
        })
    }

    fn next(&self) -> Option<Instant> {
        let wire = self.wire.peek().map(|Reverse(flight)| flight.at);
        let ends = self.ends.iter().flat_map(|end| {
            let timer = end.connection.as_ref().and_then(Connection::poll_timeout);
            let read = (end.next_read != Instant::FAR_FUTURE).then_some(end.next_read);
            [timer, read]
        });
        ends.flatten().chain(wire).min()
    }

    /// No end that has something to say was silent for longer than its timeout and a round trip.
    fn check_silence(&self) {
        for end in &self.ends {
            let Some(connection) = &end.connection else {
                continue;
            };
            if self.now.since(end.active_at) <= self.round_trip || !end.active {
                continue;
            }
            let info = connection.info(self.now);
            let handshake = matches!(info.state, State::SynSent | State::SynReceived);
            if info.state == State::Closed
                || info.flight == Bytes::ZERO && info.unsent == Bytes::ZERO && !handshake
            {
                continue;
            }
            let patience = if connection.timer() == Some(Timer::Persist) {
                end.setup.config.rto.max
            } else {
                info.rto.max(end.patience)
            };
            // Linux's timers are late by an eighth of what they wait for, and a jiffy (`kernel/time/timer.c`).
            let patience = match end.setup.config.timer_grid {
                TimerGrid::Exact => patience,
                TimerGrid::Jiffies | TimerGrid::Wheel => {
                    patience + patience.mul_div(1, 8) + Duration::from_millis(8)
                }
            };
            assert!(
                self.now.since(end.active_at) <= patience + self.round_trip,
                "silent since {:?}, now {:?}, timeout {patience:?}, {:?} {info:#?}",
                end.active_at,
                self.now,
                connection.timer()
            );
        }
    }

    fn arrive(&mut self, flight: Flight) {
        let to = flight.to;
        let (now, codec) = (self.now, self.codec);
        let (segment, payload) = if codec {
            match wire::parse(&flight.bytes) {
                Ok(parsed) => (parsed.segment, parsed.payload),
                Err(_) => {
                    self.damaged += 1;
                    self.spare.push(flight.bytes);
                    return;
                }
            }
        } else {
            (flight.segment, 0..0)
        };
        let end = &mut self.ends[to];
        end.active_at = now;
        if segment.flags.contains(Flags::SYN)
            && segment.payload == 0
            && !segment.flags.contains(Flags::CORRUPT)
        {
            end.irs = segment.seq;
        }
        match &mut end.connection {
            None => {
                if on_listen(&segment) == Answer::Accept {
                    let mut connection = Connection::accept(now, &end.setup.config, end.setup.iss, &segment);
                    connection.set(now, Setting::HeaderPrediction(self.predict));
                    end.connection = Some(connection);
                }
            }
            Some(connection) if connection.state() == State::Closed => {
                if let Answer::Reset(reset) = on_closed(&segment) {
                    self.send(to, &reset, 0);
                }
            }
            Some(connection) => {
                let origin = segment.seq.to_offset(end.irs + 1, connection.received());
                let taken = connection.on_segment(now, &segment);
                let mut piece = Some(taken.start..taken.end);
                while let Some(taken) = piece {
                    if codec && !taken.is_empty() {
                        let from = payload.start + (taken.start as i64 - origin) as usize;
                        let bytes = &flight.bytes[from..from + (taken.end - taken.start) as usize];
                        copy_into(&mut end.buffer, taken.start, bytes);
                    }
                    piece = connection.poll_accepted();
                }
            }
        }
        if codec {
            self.spare.push(flight.bytes);
        }
        if self.ends[to].setup.read_every == Duration::ZERO {
            self.read(to, u64::MAX);
        } else if self.ends[to].next_read == Instant::FAR_FUTURE {
            self.ends[to].next_read = now + self.ends[to].setup.read_every;
        }
        self.serve(to);
    }

    /// The application reads, and compares.
    fn read(&mut self, which: usize, wanted: u64) {
        let now = self.now;
        let end = &mut self.ends[which];
        let Some(connection) = &mut end.connection else {
            return;
        };
        let count = connection.read(now, Bytes(wanted)).get();
        if self.codec {
            check_and_spoil(&mut end.buffer, &self.pattern, end.read, count);
        }
        end.read += count;
        if connection.readable() > Bytes::ZERO && end.setup.read_every > Duration::ZERO {
            end.next_read = now + end.setup.read_every;
        }
    }

    /// The application writes and closes; then the connection is drained.
    fn serve(&mut self, which: usize) {
        let now = self.now;
        let mut again = true;
        while again {
            again = false;
            let end = &mut self.ends[which];
            let Some(connection) = &mut end.connection else {
                return;
            };
            while let Some(event) = connection.poll_event() {
                match event {
                    Event::PeerClosed => end.peer_closed = true,
                    Event::Failed(error) => end.failed = Some(error),
                    _ => {}
                }
            }
            if end.written < end.setup.bytes {
                let wanted = Bytes(end.setup.bytes - end.written);
                end.written += connection.write(now, wanted, WriteFlags::default()).get();
            }
            if end.written == end.setup.bytes
                && (end.setup.close == CloseWhen::Written || end.peer_closed)
                && !matches!(connection.state(), State::SynSent | State::Closed)
            {
                connection.shutdown(now, Half::Write);
            }
            while let Some(transmit) = self.ends[which]
                .connection
                .as_mut()
                .and_then(|connection| connection.poll_transmit(now))
            {
                again = true;
                self.send(which, &transmit.segment, transmit.start);
            }
        }
        let end = &mut self.ends[which];
        let Some(connection) = &end.connection else { return };
        let info = connection.info(now);
        if info.acked > end.acked {
            end.acked = info.acked;
            end.patience = Duration::ZERO;
        }
        end.patience = end.patience.max(info.rto);
        if let Some(at) = connection.poll_timeout() {
            // Equal: a timer is due at the very moment at which a segment arrived, and comes after it.
            assert!(
                at >= now,
                "after a drain no deadline has passed: {at:?} at {now:?}"
            );
        }
    }

    fn send(&mut self, from: usize, segment: &Segment, start: u64) {
        let now = self.now;
        let hop = Hop {
            index: self.sent,
            from,
            at: now,
            segment: *segment,
        };
        self.sent += 1;
        let end = &mut self.ends[from];
        end.active_at = now;
        end.active = true;
        let mut arrival = now + end.setup.delay;
        let fate = (self.network)(&hop);
        let mut segment = *segment;
        match fate {
            Fate::Drop => return,
            Fate::Late(extra) => arrival += extra,
            Fate::Damage(_) => segment.flags = segment.flags.with(Flags::CORRUPT),
            Fate::Deliver | Fate::Twice(_) | Fate::Swap => {}
        }
        let mut flight = self.flight(arrival, 1 - from, segment, start);
        if let Fate::Damage(place) = fate
            && self.codec
        {
            flip(&mut flight.bytes, place);
        }
        if let Fate::Twice(extra) = fate {
            let mut copy = flight.clone();
            copy.at += extra;
            self.order += 1;
            copy.order = self.order;
            self.wire.push(Reverse(copy));
        }
        if let Some(mut held) = self.held[from].take() {
            self.order += 1;
            held.at = flight.at.max(held.at);
            held.order = self.order;
            self.wire.push(Reverse(held));
        }
        if fate == Fate::Swap {
            self.held[from] = Some(flight);
            return;
        }
        self.wire.push(Reverse(flight));
    }

    fn flight(&mut self, at: Instant, to: usize, mut segment: Segment, start: u64) -> Flight {
        self.order += 1;
        let mut bytes = Vec::new();
        if self.codec {
            segment.flags = segment.flags.without(Flags::CORRUPT);
            bytes = self.spare.pop().unwrap_or_default();
            bytes.resize(segment.len() as usize + 60, 0);
            let (source, destination) = if to == 1 { (A, B) } else { (B, A) };
            let payload = slice(&self.pattern, start, u64::from(segment.payload));
            let len = wire::encode(&mut bytes, &segment, source, destination, payload)
                .expect("invariant: what a connection sends fits its own wire format");
            bytes.truncate(len);
        }
        Flight {
            at,
            order: self.order,
            to,
            segment,
            bytes,
        }
    }

    /// Packets under way.
    pub fn under_way(&self) -> usize {
        self.wire.len()
    }
}

const A: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 40_000));
const B: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 80));

/// The stream repeats after this many bytes: a prime, so that no power of two is a multiple.
const PERIOD: u64 = 1_048_573;
/// How much of the stream is at hand in one piece.
const PIECE: u64 = 70_000;

/// The stream's bytes, a period and a piece.
fn pattern() -> Vec<u8> {
    let mut rng = Rng::from_seed(1);
    let mut bytes: Vec<u8> = (0..PERIOD.div_ceil(8))
        .flat_map(|_| rng.next_u64().to_le_bytes())
        .take(PERIOD as usize)
        .collect();
    bytes.extend_from_within(..PIECE as usize);
    bytes
}

/// `count` bytes of the stream from offset `start`, at most [`PIECE`].
fn slice(pattern: &[u8], start: u64, count: u64) -> &[u8] {
    let at = (start % PERIOD) as usize;
    &pattern[at..at + count as usize]
}

fn copy_into(buffer: &mut [u8], start: u64, bytes: &[u8]) {
    let at = (start % buffer.len() as u64) as usize;
    let first = bytes.len().min(buffer.len() - at);
    buffer[at..at + first].copy_from_slice(&bytes[..first]);
    buffer[..bytes.len() - first].copy_from_slice(&bytes[first..]);
}

/// Compares what is read with the stream, and overwrites it, so that bytes which were never copied are found.
fn check_and_spoil(buffer: &mut [u8], pattern: &[u8], start: u64, count: u64) {
    let mut done = 0;
    while done < count {
        let at = ((start + done) % buffer.len() as u64) as usize;
        let piece = (count - done).min(PIECE).min((buffer.len() - at) as u64);
        let part = &mut buffer[at..at + piece as usize];
        assert!(
            part == slice(pattern, start + done, piece),
            "the stream is wrong at {} or after",
            start + done
        );
        part.fill(0x55);
        done += piece;
    }
}

/// A burst of one to fifteen wrong bits: what the Internet checksum always finds.
fn flip(bytes: &mut [u8], place: u32) {
    let bits = bytes.len() as u32 * 8;
    let (at, burst) = (place % bits, 1 + (place >> 20) % 15);
    for bit in at..(at + burst).min(bits) {
        // The first and the last of the burst, and some between.
        if bit == at || bit + 1 == at + burst || (place >> (bit % 17)) & 1 == 1 {
            bytes[bit as usize / 8] ^= 0x80 >> (bit % 8);
        }
    }
}
