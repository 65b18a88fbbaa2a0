//! How connections end, and what they take no notice of: R2, TIME-WAIT, damaged segments, streams beyond 4 GiB.

use super::pair::{End, Fate, ISS_A, ISS_B, Pair};
use super::script::{MSS, Script, T0, bare};
use crate::packet::{Flags, Segment};
use crate::rng::Rng;
use crate::tcp::{Config, ConnectionError, DelayedAck, Event, KeepAlive, Profile, State};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;

/// RFC 9293: MUST-20, SHLD-9, SHLD-10
#[test]
fn r1_warns_and_r2_gives_up() {
    // RFC 9293 3.8.3, RFC 6298 5.5: expiries at 1, 3, 7, 15, 31 s; with five retries the sixth, at 63 s, gives up.
    let mut config = bare();
    config.retries = 5;
    let mut script = Script::open(&config, 4);
    script.write(1);
    let mut warned = None;
    for expected in [1000, 3000, 7000, 15_000, 31_000] {
        assert_eq!(script.timer(), (expected, [0].to_vec()));
        if script.events().contains(&Event::Retransmitting) {
            warned = Some(expected);
        }
    }
    assert_eq!(warned, Some(7000), "R1 is three");
    assert_eq!(script.timer(), (63_000, [].to_vec()));
    assert_eq!(script.events(), [Event::Failed(ConnectionError::TimedOut)]);
    assert_eq!(
        (script.connection.state(), script.connection.poll_timeout()),
        (State::Closed, None)
    );
    // An ACK of new data starts the count anew.
    let mut script = Script::open(&config, 4);
    script.write(2);
    for _ in 0..5 {
        script.timer();
    }
    script.ack(1, &[]);
    for _ in 0..5 {
        assert_eq!(script.timer().1, [1]);
    }
    assert_eq!(script.connection.state(), State::Established);
    // Fifteen retries with the cap of 60 s are more than the 100 s of SHLD-11.
    let mut script = Script::open(&bare(), 4);
    script.write(1);
    let mut last = 0;
    while script.connection.state() == State::Established {
        last = script.timer().0;
    }
    // 1 + 2 + 4 + 8 + 16 + 32 + 10 * 60 s.
    assert_eq!(last, 663_000);
}

/// RFC 9293: MUST-29
#[test]
fn an_answered_keep_alive_keeps_the_connection() {
    let mut config = bare();
    config.keep_alive = Some(KeepAlive {
        idle: Duration::from_secs(10),
        interval: Duration::from_secs(1),
        probes: 2,
    });
    let mut script = Script::open(&config, 4);
    for round in 1..20 {
        let at = script.connection.poll_timeout().expect("keep-alive");
        assert_eq!(
            at.since(T0).as_millis(),
            round * 10_000,
            "each answer starts the idle time anew"
        );
        script.now = at;
        script.connection.on_timeout(at);
        assert_eq!(script.drain().len(), 1);
        script.ack(0, &[]);
    }
    // Not while data is out (MUST-26: only on an idle connection): the retransmission timer decides.
    script.write(1);
    let mut probes = 0;
    while script.connection.state() == State::Established {
        let at = script.connection.poll_timeout().expect("a timer");
        script.now = at;
        script.connection.on_timeout(at);
        probes += script
            .drain()
            .iter()
            .filter(|segment| segment.payload == 0)
            .count();
    }
    assert_eq!((probes, script.connection.stats().timeouts), (0, 15));
}

fn peer(seq: u32, ack: u32, flags: Flags) -> Segment {
    Segment {
        seq: ISS_B + 1 + seq,
        ack: ISS_A + 1 + ack,
        window: 500,
        flags,
        overhead: 40,
        ..Segment::default()
    }
}

const FIN_ACK: Flags = Flags(Flags::FIN.0 | Flags::ACK.0);

/// We closed, the peer acknowledged and closed: TIME-WAIT at `T0`, two seconds long.
fn time_wait() -> Script {
    let mut script = Script::open(&bare(), 4);
    script.connection.close(T0);
    script.drain();
    script.connection.on_segment(T0, &peer(0, 1, Flags::ACK));
    script.connection.on_segment(T0, &peer(0, 1, FIN_ACK));
    assert_eq!(script.connection.state(), State::TimeWait);
    assert_eq!(script.drain().len(), 1);
    script
}

/// RFC 9293: MUST-13
#[test]
fn time_wait_acknowledges_a_repeated_fin_and_waits_anew() {
    let mut script = time_wait();
    script.at(1500);
    script.connection.on_segment(script.now, &peer(0, 1, FIN_ACK));
    let out = script.drain();
    assert_eq!((out.len(), out[0].ack, out[0].seq), (1, ISS_B + 2, ISS_A + 2));
    assert_eq!(
        script.connection.poll_timeout(),
        Some(T0 + Duration::from_millis(3500))
    );
    assert_eq!(script.timer(), (3500, [].to_vec()));
    assert_eq!(script.connection.state(), State::Closed);
    assert!(script.events().contains(&Event::Closed));
}

#[test]
fn time_wait_answers_a_new_syn_and_survives_a_reset() {
    // RFC 5961 4.2: a SYN, old or new, gets a challenge ACK; the state stays.
    for seq in [0_u32.wrapping_sub(500), 1, 100_000] {
        let mut script = time_wait();
        script.connection.on_segment(T0, &peer(seq, 0, Flags::SYN));
        let out = script.drain();
        assert_eq!((out.len(), out[0].ack), (1, ISS_B + 2), "{seq}");
        assert_eq!(script.connection.state(), State::TimeWait);
    }
    // RFC 1337 F1: a RST at RCV.NXT does not end TIME-WAIT; one beside it is challenged.
    let mut script = time_wait();
    script.connection.on_segment(T0, &peer(2, 0, Flags::RST));
    assert_eq!(
        (script.drain().len(), script.connection.state()),
        (1, State::TimeWait)
    );
    script.connection.on_segment(T0, &peer(1, 0, Flags::RST));
    assert_eq!(
        (script.drain().len(), script.connection.state()),
        (0, State::TimeWait)
    );
    script.timer();
    assert_eq!(script.connection.state(), State::Closed);
    assert!(script.events().contains(&Event::Closed), "closed, not failed");
    // Late data is acknowledged, not delivered.
    let mut script = time_wait();
    let mut late = peer(1, 1, Flags::ACK);
    late.payload = 100;
    script.connection.on_segment(T0, &late);
    assert_eq!((script.drain().len(), script.connection.received()), (1, 0));
}

/// RFC 9293: MUST-3
#[test]
fn a_damaged_segment_did_not_arrive() {
    // RFC 9293 MUST-3. Each of these would do something, were it whole.
    let damage = |mut segment: Segment| {
        segment.flags = segment.flags.with(Flags::CORRUPT);
        segment
    };
    let mut script = Script::open(&bare(), 4);
    script.write(4);
    let before = script.connection.info(T0);
    let mut data = peer(0, 2 * MSS, Flags::ACK);
    data.payload = 100;
    for segment in [
        data,
        peer(0, 0, Flags::RST),
        peer(0, 0, Flags::SYN),
        peer(0, 4 * MSS, FIN_ACK),
    ] {
        let taken = script.connection.on_segment(T0, &damage(segment));
        assert_eq!((taken.start, taken.end), (0, 0));
        assert_eq!(script.drain(), []);
        assert_eq!(script.connection.info(T0), before);
    }
    // The handshake: a damaged SYN-ACK is ignored, the SYN is sent again.
    let config = alloc::sync::Arc::new(bare());
    let mut connection = crate::tcp::Connection::connect(T0, &config, ISS_A);
    assert!(connection.poll_transmit(T0).is_some());
    let mut answer = peer(0, 0, Flags(Flags::SYN.0 | Flags::ACK.0));
    answer.seq = ISS_B;
    connection.on_segment(T0, &damage(answer));
    assert_eq!(connection.state(), State::SynSent);
    connection.on_segment(T0, &answer);
    assert_eq!(connection.state(), State::Established);
    // A listener.
    let syn = damage(peer(0, 0, Flags::SYN));
    assert_eq!(
        crate::tcp::open::listener::on_listen(&syn),
        crate::tcp::open::listener::Answer::Drop
    );
    assert_eq!(
        crate::tcp::open::listener::on_closed(&syn),
        crate::tcp::open::listener::Answer::Drop
    );
}

#[test]
fn a_stream_of_five_gibibytes_arrives_whole() {
    // Segments of 16 MiB: 320 of them pass 2^31 and 2^32, with losses, duplicates and reordering, SACK and NewReno.
    const BIG: u32 = 1 << 24;
    let total = 5_u64 << 30;
    for (profile, sack) in [
        (Profile::Rfc, true),
        (Profile::Rfc, false),
        (Profile::Linux, true),
    ] {
        let mut config = Config::profile(profile);
        config.sack = sack;
        config.rack &= sack;
        config.mtu = BIG + 40;
        config.window_scale = Some(14);
        config.receive_buffer = Bytes(1 << 29);
        config.send_buffer = Bytes::MAX;
        config.delayed_ack = DelayedAck::Off;
        let mut pair = Pair::established(
            &config,
            Duration::from_millis(10),
            Duration::from_millis(20),
            10 * u64::from(BIG),
            BIG,
        );
        let mut rng = Rng::for_element(7, "pipe", "fate");
        pair.decide = Box::new(move |_, _| match rng.below(40) {
            0 => Fate::Drop,
            1 => Fate::Twice,
            2 => Fate::Delay(Duration::from_millis(rng.below(30))),
            _ => Fate::Deliver,
        });
        pair.write_at(Instant::ZERO, End::A, total);
        let mut steps = 0;
        while pair.a.acked() < total && pair.step() {
            super::check(&pair.a);
            steps += 1;
            assert!(steps < 5000, "{:#?}", pair.a.info(pair.now));
        }
        assert_eq!(pair.a.acked(), total, "{profile:?}");
        assert_eq!(
            pair.b.as_ref().map(super::super::Connection::received),
            Some(total)
        );
        // Offsets on the way were right, whatever the sequence numbers.
        let high = pair
            .log
            .iter()
            .filter(|sent| sent.from == End::A)
            .map(|s| s.transmit.end)
            .max();
        assert_eq!(high, Some(total));
        assert!(pair.a.stats().retransmits > 0);
    }
}
