//! Segments and acknowledgments in a row ([`Mirror`](crate::tcp::Mirror), [`Connection::stride`]) against one after the other
//! by the general ways.

use super::pair::{ISS_A, ISS_B};
use super::script::T0;
use crate::packet::{Ecn, Flags, Segment};
use crate::rng::Rng;
use crate::seq::SeqNumber;
use crate::tcp::{Acknowledgments, Config, Connection, EstablishedState, Profile, Setting, WriteFlags};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::sync::Arc;
use alloc::vec::Vec;

const MSS: u32 = 1000;

fn open(cwnd: u32, ssthresh: u32, buffer: u64, long: bool) -> Connection {
    let mut config = Config::profile(Profile::Ns2Sack);
    config.receive_buffer = Bytes(buffer);
    config.send_buffer = Bytes(1 << 50);
    let state = EstablishedState {
        srtt: Duration::from_millis(100),
        rttvar: Duration::from_millis(10),
        cwnd: Bytes(u64::from(cwnd * MSS)),
        ssthresh: Bytes(u64::from(ssthresh * MSS)),
        mss: MSS,
        iss: ISS_A,
        irs: ISS_B,
        peer_window: Bytes(1 << 30),
    };
    let mut connection = Connection::established(T0, &Arc::new(config), state);
    connection.shared.predict = !long;
    connection.open_ways();
    connection
}

/// Compares all that can be seen of two connections.
fn compare(one: &Connection, other: &Connection, now: Instant, context: &str) {
    one.check(true);
    assert_eq!(
        (
            one.info(now),
            one.poll_timeout(),
            one.timer(),
            one.stats(),
            one.received()
        ),
        (
            other.info(now),
            other.poll_timeout(),
            other.timer(),
            other.stats(),
            other.received()
        ),
        "{context}"
    );
}

/// All that a connection sends now.
fn drain(connection: &mut Connection, now: Instant, sent: &mut Vec<(Instant, Segment)>) {
    let mut segment = Segment::default();
    while connection.poll_segment(now, &mut segment).is_some() {
        sent.push((now, segment));
    }
}

/// Acknowledgments from a list; what leaves goes to another.
struct List<'l> {
    acks: &'l [(Instant, Segment)],
    taken: usize,
    place: Segment,
    pending: Option<(Instant, usize)>,
    sent: &'l mut Vec<(Instant, Segment)>,
}

impl List<'_> {
    /// What was written last leaves.
    fn flush(&mut self) {
        if let Some((at, _)) = self.pending.take() {
            self.sent.push((at, self.place));
        }
    }
}

impl Acknowledgments for List<'_> {
    fn next(&mut self) -> Option<(Instant, &mut Segment)> {
        self.flush();
        let &(at, segment) = self.acks.get(self.taken)?;
        self.place = segment;
        Some((at, &mut self.place))
    }

    fn answered(&mut self) {
        self.pending = Some((self.acks[self.taken].0, 0));
        self.taken += 1;
        self.flush();
    }

    fn another(&mut self) -> &mut Segment {
        self.pending = Some((self.acks[self.taken - 1].0, 1));
        &mut self.place
    }
}

#[test]
fn strides_are_one_acknowledgment_after_the_other() {
    let (mut together, mut all) = (0, 0);
    for seed in 0..400 {
        let mut rng = Rng::for_element(seed, "acks", "draw");
        let (cwnd, ssthresh) = (2 + rng.below(40) as u32, 1 + rng.below(60) as u32);
        let mut single = open(cwnd, ssthresh, 1 << 20, true);
        let mut several = open(cwnd, ssthresh, 1 << 20, false);
        let (mut expected, mut sent) = (Vec::new(), Vec::new());
        let amount = Bytes([1 << 40, 1 << 40, 900_000][seed as usize % 3]);
        for (connection, log) in [(&mut single, &mut expected), (&mut several, &mut sent)] {
            connection.write(T0, amount, WriteFlags::default());
            drain(connection, T0, log);
        }
        let mut now = T0;
        let window = 4000 + rng.below(60_000) as u16;
        for round in 0..30 {
            // Most acknowledge the next segment.
            let acks: Vec<(Instant, Segment)> = (0..rng.below(30))
                .map(|_| {
                    now += Duration::from_micros(rng.below(3000));
                    let odd = rng.below(250);
                    let news = match odd {
                        0 => 0,
                        1 => 2 * u64::from(MSS),
                        2 => u64::from(MSS) / 2,
                        _ => u64::from(MSS) - single.acked() % u64::from(MSS),
                    };
                    // Never beyond what is out.
                    let ack = single.acked() + news.min(single.info(now).flight.get());
                    let mut segment = Segment {
                        seq: SeqNumber::from_offset(ISS_B, 1),
                        ack: SeqNumber::from_offset(ISS_A, 1 + ack),
                        window: if odd == 3 { window / 2 } else { window },
                        flags: Flags::ACK.with(Flags::DF),
                        ttl: 64,
                        overhead: 40,
                        ..Segment::default()
                    };
                    match odd {
                        4 => segment.payload = 100,
                        5 => segment.flags = segment.flags.with(Flags::PSH),
                        6 => segment.set_ecn(Ecn::Ect0),
                        7 if round % 10 == 9 => {
                            let left = segment.ack + 2 * MSS;
                            segment.push_sack_block(left, left + MSS);
                        }
                        _ => {}
                    }
                    single.on_segment(now, &segment);
                    drain(&mut single, now, &mut expected);
                    (now, segment)
                })
                .collect();
            all += acks.len();
            let mut rest = &acks[..];
            while let Some(&(at, came)) = rest.first() {
                rest = &rest[1..];
                let mut place = came;
                let exchange = several.exchange(at, &mut place);
                if exchange.answers {
                    sent.push((at, place));
                }
                if exchange.more {
                    while several.poll_event().is_some() {}
                    drain(&mut several, at, &mut sent);
                }
                let last = sent.last().map(|last| last.1);
                if let Some(last) = last
                    && exchange.answers
                {
                    let mut list = List {
                        acks: rest,
                        taken: 0,
                        place,
                        pending: None,
                        sent: &mut sent,
                    };
                    let taken = several.stride(&came, &last, &mut list);
                    list.flush();
                    together += taken;
                    rest = &rest[taken..];
                }
            }
            while single.poll_event().is_some() {}
            let context = alloc::format!("seed {seed}, round {round}");
            assert_eq!(sent, expected, "{context}");
            compare(&several, &single, now, &context);
        }
    }
    assert!(together > all / 3, "{together} of {all} went together");
}

#[test]
fn mirrors_show_one_segment_after_the_other() {
    let (mut together, mut all) = (0, 0);
    for seed in 0..400 {
        let mut rng = Rng::for_element(seed, "data", "draw");
        let buffer = [20_000, 200_000, 1 << 22][seed as usize % 3];
        let mut single = open(2, 2, buffer, true);
        let mut several = open(2, 2, buffer, false);
        for connection in [&mut single, &mut several] {
            connection.sender = None; // it never sent
            connection.set(T0, Setting::AutoRead(true));
            connection.open_ways();
        }
        let (mut expected, mut sent) = (Vec::new(), Vec::new());
        let (mut now, mut next) = (T0, 1);
        let mut holes: Vec<u64> = Vec::new();
        for round in 0..30 {
            let data: Vec<(Instant, Segment)> = (0..rng.below(30))
                .map(|_| {
                    now += Duration::from_micros(rng.below(3000));
                    let odd = rng.below(100);
                    let mut seq = next;
                    if odd < 2 && next > 1 {
                        holes.push(seq); // lost, and sent again some time
                        seq += u64::from(MSS);
                    } else if !(4..90).contains(&odd) && !holes.is_empty() {
                        seq = holes.remove(0);
                    }
                    let payload = if odd == 5 { 700 } else { MSS };
                    if seq >= next {
                        next = seq + u64::from(payload);
                    }
                    let mut segment = Segment {
                        seq: SeqNumber::from_offset(ISS_B, seq),
                        ack: SeqNumber::from_offset(ISS_A, 1),
                        payload,
                        window: if odd == 6 { 900 } else { 1000 },
                        flags: Flags::ACK.with(Flags::DF),
                        ttl: 64,
                        overhead: 40,
                        ..Segment::default()
                    };
                    match odd {
                        7 => segment.flags = segment.flags.with(Flags::PSH),
                        8 => segment.set_ecn(Ecn::Ce),
                        9 if round % 4 == 0 => segment.seq += 10 * MSS, // far away
                        _ => {}
                    }
                    single.on_segment(now, &segment);
                    drain(&mut single, now, &mut expected);
                    (now, segment)
                })
                .collect();
            all += data.len();
            let mut rest = &data[..];
            while let Some(&(at, came)) = rest.first() {
                rest = &rest[1..];
                let mut place = came;
                if several.reflect(at, &mut place) {
                    sent.push((at, place));
                    if let Some(mut mirror) = several.mirror(&came, &place) {
                        let mut last = None;
                        while let Some(&(at, mut segment)) = rest.first()
                            && mirror.reflect(&mut segment)
                        {
                            assert_eq!(segment.overhead, mirror.answer().overhead);
                            sent.push((at, segment));
                            rest = &rest[1..];
                            last = Some(at);
                            together += 1;
                        }
                        if let Some(last) = last {
                            several.take_mirror(&mirror, last);
                        }
                    }
                } else {
                    several.on_segment(at, &came);
                    drain(&mut several, at, &mut sent);
                }
            }
            for connection in [&mut single, &mut several] {
                while connection.poll_event().is_some() {}
            }
            let context = alloc::format!("seed {seed}, round {round}");
            assert_eq!(sent, expected, "{context}");
            compare(&several, &single, now, &context);
        }
    }
    assert!(together > all / 3, "{together} of {all} went together");
}
