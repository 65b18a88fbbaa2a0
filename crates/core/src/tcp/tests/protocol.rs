//! Single cases with the peer played by hand: RFC 9293's drawings, RFC 2018 and 2883, RFC 5961, RFC 7323, RFC 8257.

extern crate std;
use super::pair::{ISS_A, ISS_B};
use crate::packet::{Ecn, Flags, Segment};
use crate::seq::SeqNumber;
use crate::tcp::{
    Config, Connection, ConnectionError, DelayedAck, EcnEcho, EstablishedState, Event, Half, KeepAlive,
    Profile, State, WriteFlags,
};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::sync::Arc;
use alloc::vec::Vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

const T0: Instant = Instant::from_millis(1000);
const MSS: u32 = 1000;

fn plain() -> Config {
    let mut config = Config::profile(Profile::Rfc);
    config.timestamps = false;
    config.delayed_ack = DelayedAck::Off;
    config
}

fn open(config: &Config) -> Connection {
    Connection::established(
        T0,
        &Arc::new(config.clone()),
        EstablishedState {
            srtt: Duration::from_millis(100),
            rttvar: Duration::ZERO,
            cwnd: Bytes(10 * u64::from(MSS)),
            ssthresh: Bytes::MAX,
            mss: MSS,
            iss: ISS_A,
            irs: ISS_B,
            peer_window: Bytes(64_000),
        },
    )
}

/// A segment of the peer at stream offset `seq`, acknowledging our stream offset `ack`.
fn from_peer(seq: u32, payload: u32, ack: u32) -> Segment {
    Segment {
        seq: ISS_B + 1 + seq,
        ack: ISS_A + 1 + ack,
        payload,
        window: 500, // scaled by 7
        flags: Flags::ACK,
        overhead: 40,
        ..Segment::default()
    }
}

fn drain(connection: &mut Connection, now: Instant) -> Vec<Segment> {
    let mut out = Vec::new();
    while let Some(transmit) = connection.poll_transmit(now) {
        out.push(transmit.segment);
        assert!(out.len() < 10_000);
    }
    out
}

/// SACK blocks of a segment as stream offsets of the peer.
fn blocks(segment: &Segment) -> Vec<(u32, u32)> {
    (0..segment.sack_blocks())
        .map(|index| segment.sack_block(index))
        .map(|(left, right)| {
            (
                (left - ISS_B.0).0.wrapping_sub(1),
                (right - ISS_B.0).0.wrapping_sub(1),
            )
        })
        .collect()
}

/// Feeds data segments and returns (ACK, blocks) of the answer to each.
fn answers(connection: &mut Connection, segments: &[(u32, u32)]) -> Vec<(u32, Vec<(u32, u32)>)> {
    segments
        .iter()
        .map(|&(seq, payload)| {
            connection.on_segment(T0, &from_peer(seq, payload, 0));
            let out = drain(connection, T0);
            assert_eq!(out.len(), 1, "one ACK per segment");
            ((out[0].ack - ISS_B.0).0.wrapping_sub(1), blocks(&out[0]))
        })
        .collect()
}

#[test]
fn a_repeated_syn_asks_for_ecn_again_only_without_the_fallback() {
    for fallback in [true, false] {
        let mut config = plain();
        (config.ecn, config.ecn_fallback) = (true.into(), fallback);
        let mut connection = Connection::connect(T0, &Arc::new(config), ISS_A);
        let mut now = T0;
        for attempt in 0..3 {
            let syn = drain(&mut connection, now)[0];
            let asks = syn.flags.contains(Flags::ECE.with(Flags::CWR));
            assert_eq!(asks, attempt == 0 || !fallback, "attempt {attempt}");
            now = connection.poll_timeout().expect("the SYN is unanswered");
            connection.on_timeout(now);
        }
    }
}

/// RFC 9293: SHLD-31
#[test]
fn rfc_2018_case_1_and_2_and_3() {
    // Section 4 of the RFC: eight segments of 500 octets from 5000; offsets here from 0.
    let mut connection = open(&plain());
    let first_four: Vec<_> = (0..4).map(|n| (n * 500, 500)).collect();
    for (index, answer) in answers(&mut connection, &first_four).into_iter().enumerate() {
        assert_eq!(answer, ((index as u32 + 1) * 500, Vec::new())); // case 1
    }
    let mut connection = open(&plain());
    let tail: Vec<_> = (1..8).map(|n| (n * 500, 500)).collect();
    for (index, answer) in answers(&mut connection, &tail).into_iter().enumerate() {
        assert_eq!(answer, (0, [(500, 1000 + index as u32 * 500)].to_vec())); // case 2
    }
    let mut connection = open(&plain());
    let got = answers(
        &mut connection,
        &[(0, 500), (1000, 500), (2000, 500), (3000, 500)],
    );
    assert_eq!(got[3], (500, [(3000, 3500), (2000, 2500), (1000, 1500)].to_vec())); // case 3
    // The fourth segment arrives: merged, and first.
    let got = answers(&mut connection, &[(1500, 500)]);
    assert_eq!(got[0], (500, [(1000, 2500), (3000, 3500)].to_vec()));
    let got = answers(&mut connection, &[(500, 500)]);
    assert_eq!(got[0], (2500, [(3000, 3500)].to_vec()));
}

#[test]
fn rfc_2883_duplicates_come_first() {
    // 4.1.1: a duplicate below the cumulative ACK, with a block above it.
    let mut connection = open(&plain());
    let got = answers(&mut connection, &[(0, 500), (500, 500), (1500, 500), (500, 500)]);
    assert_eq!(got[3], (1000, [(500, 1000), (1500, 2000)].to_vec()));
    assert_eq!(connection.stats().redundant_bytes, 500);
    // Reported once.
    let got = answers(&mut connection, &[(2000, 500)]);
    assert_eq!(got[0], (1000, [(1500, 2500)].to_vec()));
    // 4.2.3: a duplicate inside a block above the cumulative ACK is followed by that block.
    let got = answers(&mut connection, &[(1500, 500)]);
    assert_eq!(got[0], (1000, [(1500, 2000), (1500, 2500)].to_vec()));
    // 4.3: a partial duplicate reports only the duplicate part.
    let mut connection = open(&plain());
    let got = answers(&mut connection, &[(0, 500), (250, 500)]);
    assert_eq!(got[1], (750, [(250, 500)].to_vec()));
}

#[test]
fn the_fourth_block_gives_way_to_timestamps() {
    for (timestamps, expected) in [(false, 4), (true, 3)] {
        let mut config = plain();
        config.timestamps = timestamps;
        let mut connection = open(&config);
        let mut last = Segment::default();
        for n in 0..5 {
            let mut segment = from_peer(1000 + n * 1000, 500, 0);
            if timestamps {
                segment.flags = segment.flags.with(Flags::TIMESTAMPS);
                segment.tsval = 1;
            }
            connection.on_segment(T0, &segment);
            last = drain(&mut connection, T0)[0];
        }
        assert_eq!(last.sack_blocks(), expected);
    }
}

/// RFC 9293: MAY-12
#[test]
fn challenge_acks_answer_what_an_attacker_could_send() {
    let mut connection = open(&plain());
    // A RST beside RCV.NXT, a SYN, an ACK of what was never sent.
    let mut reset = from_peer(1, 0, 0);
    reset.flags = Flags::RST;
    let mut syn = from_peer(10, 0, 0);
    syn.flags = Flags::SYN;
    let future = from_peer(0, 0, 5000);
    for segment in [reset, syn, future] {
        connection.on_segment(T0, &segment);
        let out = drain(&mut connection, T0);
        assert_eq!(out.len(), 1);
        assert_eq!((out[0].seq, out[0].ack), (ISS_A + 1, ISS_B + 1));
        assert_eq!(connection.state(), State::Established);
    }
    // The budget of a second is finite.
    for _ in 0..1000 {
        connection.on_segment(T0, &syn);
        drain(&mut connection, T0);
    }
    assert!((50..150).contains(&connection.stats().challenge_acks));
    // A RST at RCV.NXT resets.
    let mut reset = from_peer(0, 0, 0);
    reset.flags = Flags::RST;
    connection.on_segment(T0, &reset);
    assert_eq!(connection.state(), State::Closed);
    let events: Vec<_> = core::iter::from_fn(|| connection.poll_event()).collect();
    assert!(events.contains(&Event::Failed(ConnectionError::Reset)));
}

#[test]
fn an_old_timestamp_is_dropped_and_acknowledged() {
    let mut config = plain();
    config.timestamps = true;
    let mut connection = open(&config);
    let mut segment = from_peer(0, 100, 0);
    segment.flags = segment.flags.with(Flags::TIMESTAMPS);
    segment.tsval = 1000;
    connection.on_segment(T0, &segment);
    assert_eq!(connection.received(), 100);
    drain(&mut connection, T0);
    let mut old = from_peer(100, 100, 0);
    old.flags = old.flags.with(Flags::TIMESTAMPS);
    old.tsval = 999;
    connection.on_segment(T0, &old);
    assert_eq!(connection.received(), 100, "PAWS");
    assert_eq!(drain(&mut connection, T0).len(), 1);
}

/// RFC 7323 5.5: after 24 days of silence the peer's clock of milliseconds has gone more than half around, and TS.Recent refuses nothing.
/// Linux since 6.7 waits 2^31 microseconds, 2147 s (`TCP_PAWS_WRAP`): its peers' clocks may be that fast.
#[test]
fn after_a_long_silence_no_timestamp_is_too_old() {
    let days = |days: u64| Duration::from_secs(days * 86_400);
    for (profile, refused, taken) in [
        (
            Profile::Rfc,
            days(24) - Duration::from_secs(60),
            days(24) + Duration::from_secs(60),
        ),
        (
            Profile::Linux,
            Duration::from_secs(2140),
            Duration::from_secs(2160),
        ),
    ] {
        for (silence, arrives) in [(refused, 100), (taken, 200)] {
            let config = Arc::new(Config::profile(profile));
            let stamped = |mut segment: Segment, tsval: u32| {
                segment.flags = segment.flags.with(Flags::TIMESTAMPS);
                segment.tsval = tsval;
                segment
            };
            let mut syn = from_peer(u32::MAX, 0, 0);
            syn.flags = Flags::SYN;
            let mut connection = Connection::accept(T0, &config, ISS_A, &stamped(syn, 1000));
            drain(&mut connection, T0);
            connection.on_segment(T0, &stamped(from_peer(0, 100, 0), 1000));
            drain(&mut connection, T0);
            assert_eq!(connection.received(), 100);
            let now = T0 + silence;
            // A clock of milliseconds that went half around looks older.
            let old = stamped(
                from_peer(100, 100, 0),
                1000_u32.wrapping_add(1 << 31).wrapping_add(5),
            );
            connection.on_segment(now, &old);
            assert_eq!(connection.received(), arrives, "{profile:?} after {silence:?}");
            // What was taken is the measure from then on.
            connection.on_segment(
                now,
                &stamped(from_peer(arrives as u32, 100, 0), old.tsval.wrapping_add(1)),
            );
            let newer = if arrives == 200 { 300 } else { 100 };
            assert_eq!(connection.received(), newer, "{profile:?} after {silence:?}");
        }
    }
}

/// RFC 9293: MUST-10
#[test]
fn simultaneous_open_connects_both() {
    // RFC 9293 figure 7.
    let config = Arc::new(plain());
    let mut a = Connection::connect(T0, &config, ISS_A);
    let mut b = Connection::connect(T0, &config, ISS_B);
    let (syn_a, syn_b) = (drain(&mut a, T0)[0], drain(&mut b, T0)[0]);
    a.on_segment(T0, &syn_b);
    b.on_segment(T0, &syn_a);
    assert_eq!((a.state(), b.state()), (State::SynReceived, State::SynReceived));
    let (from_a, from_b) = (drain(&mut a, T0)[0], drain(&mut b, T0)[0]);
    assert!(from_a.flags.contains(Flags::SYN.with(Flags::ACK)));
    a.on_segment(T0, &from_b);
    b.on_segment(T0, &from_a);
    for segment in drain(&mut a, T0) {
        b.on_segment(T0, &segment);
    }
    for segment in drain(&mut b, T0) {
        a.on_segment(T0, &segment);
    }
    assert_eq!((a.state(), b.state()), (State::Established, State::Established));
}

#[test]
fn simultaneous_close_ends_in_time_wait() {
    // RFC 9293 figure 13.
    let mut connection = open(&plain());
    connection.close(T0);
    let fin = drain(&mut connection, T0)[0];
    assert!(fin.flags.contains(Flags::FIN));
    let mut crossing = from_peer(0, 0, 0);
    crossing.flags = crossing.flags.with(Flags::FIN);
    connection.on_segment(T0, &crossing);
    assert_eq!(connection.state(), State::Closing);
    drain(&mut connection, T0);
    connection.on_segment(T0, &from_peer(1, 0, 1));
    assert_eq!(connection.state(), State::TimeWait);
    let end = connection.poll_timeout().expect("2 MSL");
    assert_eq!(end, T0 + Duration::from_secs(2));
    connection.on_timeout(end);
    assert_eq!(
        (connection.state(), connection.poll_timeout()),
        (State::Closed, None)
    );
}

#[test]
fn half_close_keeps_the_other_direction() {
    let mut connection = open(&plain());
    connection.shutdown(T0, Half::Write);
    drain(&mut connection, T0);
    connection.on_segment(T0, &from_peer(0, 0, 1));
    assert_eq!(connection.state(), State::FinWait2);
    connection.on_segment(T0, &from_peer(0, 700, 1));
    assert_eq!(connection.received(), 700);
    let mut connection = open(&plain());
    let mut fin = from_peer(0, 0, 0);
    fin.flags = fin.flags.with(Flags::FIN);
    connection.on_segment(T0, &fin);
    assert_eq!(connection.state(), State::CloseWait);
    assert_eq!(
        connection.write(T0, Bytes(300), WriteFlags::default()),
        Bytes(300)
    );
    assert!(
        drain(&mut connection, T0)
            .iter()
            .any(|segment| segment.payload == 300)
    );
}

/// RFC 9293: MUST-36, SHLD-29, SHLD-30
#[test]
fn a_zero_window_is_probed_with_growing_patience() {
    let mut config = plain();
    config.rto.min = Duration::from_millis(200);
    config.rto.max = Duration::from_secs(60);
    let mut connection = open(&config);
    let mut shut = from_peer(0, 1, 0);
    shut.window = 0;
    connection.on_segment(T0, &shut);
    drain(&mut connection, T0);
    connection.write(T0, Bytes(5000), WriteFlags::default());
    assert_eq!(drain(&mut connection, T0), []);
    let mut now = T0;
    let mut waits = Vec::new();
    for _ in 0..5 {
        let at = connection.poll_timeout().expect("the window is probed");
        waits.push(at.since(now).as_millis());
        now = at;
        connection.on_timeout(now);
        let out = drain(&mut connection, now);
        assert_eq!((out.len(), out[0].payload), (1, 1));
        let mut answer = from_peer(1, 0, 0);
        answer.window = 0;
        connection.on_segment(now, &answer);
        drain(&mut connection, now);
    }
    assert_eq!(waits, [200, 400, 800, 1600, 3200]);
    assert_eq!(connection.info(now).stats.zero_window_probes, 5);
    connection.on_segment(now, &from_peer(1, 0, 0));
    assert_eq!(drain(&mut connection, now).len(), 5, "the window opened");
}

/// RFC 9293: MUST-17, SHLD-7
#[test]
fn nagle_holds_the_second_small_segment() {
    for (nagle, expected) in [(true, 1), (false, 2)] {
        let mut config = plain();
        config.nagle = nagle;
        let mut connection = open(&config);
        connection.write(T0, Bytes(100), WriteFlags::default());
        let mut sent = drain(&mut connection, T0).len();
        connection.write(T0, Bytes(100), WriteFlags::default());
        sent += drain(&mut connection, T0).len();
        assert_eq!(sent, expected);
        connection.on_segment(T0, &from_peer(0, 0, 100));
        assert_eq!(drain(&mut connection, T0).len(), 2 - expected);
    }
}

/// RFC 9293: MUST-29, SHLD-12
#[test]
fn keep_alive_gives_up_only_after_its_probes() {
    let mut config = plain();
    config.keep_alive = Some(KeepAlive {
        idle: Duration::from_secs(10),
        interval: Duration::from_secs(1),
        probes: 3,
    });
    let mut connection = open(&config);
    let mut probes = Vec::new();
    while let Some(at) = connection.poll_timeout() {
        connection.on_timeout(at);
        for segment in drain(&mut connection, at) {
            if segment.flags.contains(Flags::RST) {
                assert_eq!((segment.seq, at.since(T0).as_millis()), (ISS_A + 1, 13_000));
                continue;
            }
            assert_eq!((segment.seq, segment.payload), (ISS_A, 0));
            probes.push(at.since(T0).as_millis() / 1000);
        }
    }
    assert_eq!(probes, [10, 11, 12]);
    let events: Vec<_> = core::iter::from_fn(|| connection.poll_event()).collect();
    assert_eq!(events, [Event::Failed(ConnectionError::TimedOut)]);
}

#[test]
fn dctcp_echoes_every_change_of_mark() {
    let mut config = plain();
    config.ecn = true.into();
    config.ecn_echo = EcnEcho::Rfc8257;
    config.delayed_ack = DelayedAck::Standard {
        timeout: Duration::from_millis(200),
    };
    let mut connection = open(&config);
    let mut acks = Vec::new();
    for (index, marked) in [false, false, true, true, false].into_iter().enumerate() {
        let mut segment = from_peer(index as u32 * 1000, 1000, 0);
        segment.set_ecn(if marked { Ecn::Ce } else { Ecn::Ect0 });
        connection.on_segment(T0, &segment);
        for ack in drain(&mut connection, T0) {
            acks.push((index + 1, ack.flags.contains(Flags::ECE)));
        }
    }
    assert_eq!(acks, [(2, false), (3, true), (5, false)]);
}

/// RFC 9293: SHLD-8
#[test]
fn classic_ecn_latches_until_the_window_was_reduced() {
    let mut config = plain();
    config.ecn = true.into();
    let mut connection = open(&config);
    let mut echoes = Vec::new();
    for (index, (ecn, flags)) in [
        (Ecn::Ect0, Flags::ACK),
        (Ecn::Ce, Flags::ACK),
        (Ecn::Ect0, Flags::ACK),
        (Ecn::Ect0, Flags::ACK.with(Flags::CWR)),
    ]
    .into_iter()
    .enumerate()
    {
        let mut segment = from_peer(index as u32 * 1000, 1000, 0);
        segment.flags = flags;
        segment.set_ecn(ecn);
        connection.on_segment(T0, &segment);
        echoes.push(drain(&mut connection, T0)[0].flags.contains(Flags::ECE));
    }
    assert_eq!(echoes, [false, true, true, false]);
    // The sender: one reduction per window, CWR on the next new data, not on what follows.
    connection.write(T0, Bytes(20_000), WriteFlags::default());
    assert_eq!(drain(&mut connection, T0).len(), 10);
    for acked in 1..=4 {
        let mut ack = from_peer(4000, 0, acked * 1000);
        ack.flags = ack.flags.with(Flags::ECE);
        connection.on_segment(T0, &ack);
        drain(&mut connection, T0);
    }
    let info = connection.info(T0);
    assert_eq!((info.stats.window_reductions, info.ssthresh), (1, Bytes(5000)));
}

#[test]
fn an_idle_flow_is_small() {
    std::eprintln!(
        "connection {}, sending half {}, rack {}",
        size_of::<Connection>(),
        size_of::<crate::tcp::send::half::Sender>(),
        size_of::<crate::tcp::ack::rack::Rack>()
    );
    assert!(size_of::<Connection>() <= 448, "{}", size_of::<Connection>());
    let sender = size_of::<crate::tcp::send::half::Sender>();
    let both = 2 * size_of::<Connection>() + sender + size_of::<crate::tcp::ack::rack::Rack>();
    assert!(
        both <= 1536,
        "both ends of an idle flow that sent: {both} (sending half {sender})"
    );
}

/// Any segment at all, near the interesting numbers more often than not.
fn segments() -> impl Strategy<Value = Segment> {
    let near = |origin: SeqNumber| {
        prop_oneof![
            3 => (-3000_i32..9000).prop_map(move |delta| SeqNumber(origin.0.wrapping_add(delta as u32))),
            1 => any::<u32>().prop_map(SeqNumber),
        ]
    };
    (
        near(ISS_B),
        near(ISS_A),
        proptest::array::uniform6(prop_oneof![near(ISS_A).prop_map(|seq| seq.0), any::<u32>()]),
        prop_oneof![Just(0), 0_u32..3000, any::<u32>().prop_map(|n| n >> 8)],
        any::<(u16, u32, u32)>(),
        (
            prop_oneof![3 => Just(Flags::ACK.0), 1 => any::<u16>()],
            0_u8..5,
            0_u8..4,
        ),
    )
        .prop_map(
            |(seq, ack, options, payload, (window, tsval, tsecr), (flags, blocks, ecn))| Segment {
                seq,
                ack,
                tsval,
                tsecr,
                options,
                payload,
                window,
                flags: Flags(flags),
                tos: ecn,
                overhead: 40,
                kind_sack: blocks << 4,
                ..Segment::default()
            },
        )
}

proptest! {
    #[test]
    fn no_segment_breaks_a_connection(
        profile in 0_usize..6,
        start in 0_u8..4,
        input in proptest::collection::vec((segments(), 0_u64..400, 0_u8..8), 1..60),
    ) {
        let config = Config::profile(Profile::ALL[profile]);
        let shared = Arc::new(config.clone());
        let mut now = T0;
        let mut connection = match start {
            0 => Connection::connect(now, &shared, ISS_A),
            1 => Connection::accept(now, &shared, ISS_A, &Segment { seq: ISS_B, flags: Flags::SYN, ..Segment::default() }),
            _ => open(&config),
        };
        for (segment, wait, call) in input {
            match call {
                0 => { connection.write(now, Bytes(5000), WriteFlags::default()); }
                1 => { connection.read(now, Bytes(500)); }
                2 => connection.shutdown(now, Half::Write),
                3 if wait == 7 => connection.abort(now),
                _ => {}
            }
            connection.on_segment(now, &segment);
            drain(&mut connection, now);
            super::check(&connection);
            now += Duration::from_millis(wait);
            for _ in 0..100 {
                match connection.poll_timeout() {
                    Some(at) if at <= now => connection.on_timeout(now),
                    _ => break,
                }
                drain(&mut connection, now);
            }
            assert!(connection.poll_timeout().is_none_or(|at| at > now));
            super::check(&connection);
            let info = connection.info(now);
            assert!(info.cwnd.get() >= 1 && info.acked <= 5000 * 60);
            while connection.poll_event().is_some() {}
        }
    }
}
