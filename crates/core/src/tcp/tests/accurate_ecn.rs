//! Accurate ECN on whole connections: handshakes, marks both ways, and pairs over a path that loses and marks.

use super::pair::{End, Fate, ISS_A, ISS_B, Pair};
use crate::packet::{AccEcnOption, Ecn, Flags, Segment};
use crate::rng::Rng;
use crate::tcp::{Config, Connection, EcnFeedback, EcnOption, Profile, State, WriteFlags};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

const T0: Instant = Instant::from_millis(1000);
const CODEPOINTS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
/// The ACE field that reports each.
const CODES: [u8; 4] = [0b010, 0b011, 0b100, 0b110];

fn accurate() -> Config {
    let mut config = Config::profile(Profile::Rfc);
    config.ecn = EcnFeedback::Accurate;
    config.timestamps = false;
    config
}

fn drain(connection: &mut Connection, now: Instant) -> Vec<Segment> {
    core::iter::from_fn(|| connection.poll_transmit(now))
        .map(|transmit| transmit.segment)
        .collect()
}

/// A SYN or SYN-ACK of the peer with this ACE field that comes as `ecn`.
fn syn(ace: u8, ecn: Ecn, answers: bool) -> Segment {
    let mut segment = Segment {
        seq: ISS_B,
        ack: ISS_A + 1,
        flags: Flags::SYN.with(Flags::MSS).with(Flags::SACK_PERMITTED),
        options: [1000, 0, 0, 0, 0, 0],
        window: 60_000,
        overhead: 48,
        ..Segment::default()
    };
    if answers {
        segment.flags = segment.flags.with(Flags::ACK);
    }
    segment.set_ace(ace);
    segment.set_ecn(ecn);
    segment
}

/// A segment of the peer at stream offset `seq`, acknowledging our stream offset `ack`.
fn from_peer(seq: u32, payload: u32, ack: u32, ace: u8) -> Segment {
    let mut segment = Segment {
        seq: ISS_B + 1 + seq,
        ack: ISS_A + 1 + ack,
        payload,
        window: 60_000,
        flags: Flags::ACK,
        overhead: 40,
        ..Segment::default()
    };
    segment.set_ace(ace);
    segment
}

fn client(config: &Config, answer: &Segment) -> (Connection, Vec<Segment>) {
    let mut connection = Connection::connect(T0, &Arc::new(config.clone()), ISS_A);
    drain(&mut connection, T0);
    connection.on_segment(T0, answer);
    let out = drain(&mut connection, T0);
    (connection, out)
}

fn server(config: &Config, syn: &Segment) -> (Connection, Segment) {
    let mut connection = Connection::accept(T0, &Arc::new(config.clone()), ISS_A, syn);
    let out = drain(&mut connection, T0);
    assert_eq!(out.len(), 1);
    (connection, out[0])
}

fn is_accurate(connection: &Connection) -> bool {
    connection.shared.accecn.is_some()
}

/// What a write sends: whether it is ECN-capable, and its ACE field.
fn sends(connection: &mut Connection) -> (bool, u8) {
    connection.write(T0, Bytes(500), WriteFlags::default());
    let out = drain(connection, T0);
    let data = out
        .iter()
        .find(|segment| segment.payload > 0)
        .expect("it may leave");
    (data.ecn_capable(), data.ace())
}

fn marks(connection: &Connection) -> (u32, u32) {
    let counts = connection.detail(T0).accurate_ecn.expect("both ends use it");
    (counts.received_ce, counts.reported_ce)
}

/// RFC 9768: AE-1, AE-5, AE-13, AE-16, AE-17, AE-18, AE-22, AE-59
#[test]
fn a_client_asks_twice_and_then_does_without() {
    for fallback in [true, false] {
        let mut config = accurate();
        config.ecn_fallback = fallback;
        let mut connection = Connection::connect(T0, &Arc::new(config), ISS_A);
        let mut now = T0;
        for attempt in 0..4 {
            let syn = drain(&mut connection, now)[0];
            let expected = if attempt < 2 || !fallback { 0b111 } else { 0 };
            assert_eq!((syn.ace(), syn.seq), (expected, ISS_A), "attempt {attempt}");
            assert_eq!((syn.ecn(), syn.accecn()), (Ecn::NotEct, None));
            assert!(!is_accurate(&connection), "nothing is agreed before an answer");
            now = connection.poll_timeout().expect("the SYN is unanswered");
            connection.on_timeout(now);
        }
        // The first answer decides, whatever was sent last.
        connection.on_segment(now, &syn(0b010, Ecn::NotEct, true));
        assert!(is_accurate(&connection) && sends(&mut connection).0);
    }
}

/// RFC 9768: AE-2, AE-3, AE-8, AE-9, AE-12, AE-15, AE-60, AE-61
#[test]
fn a_server_reports_how_the_syn_came() {
    let mut rows = 0;
    for ace in 0..8 {
        for (ecn, code) in CODEPOINTS.into_iter().zip(CODES) {
            for feedback in [EcnFeedback::Classic, EcnFeedback::Accurate] {
                let mut config = accurate();
                (config.ecn, config.ecn_passive) = (EcnFeedback::Off, feedback);
                let mut request = syn(ace, ecn, false);
                request.set_accecn(&AccEcnOption::new(true, &[0, 0, 0])); // which wire would not even read
                let (connection, answer) = server(&config, &request);
                let agrees = feedback == EcnFeedback::Accurate && !matches!(ace, 0 | 0b011);
                let classic = if ace & 3 == 3 { 0b001 } else { 0 };
                assert_eq!(
                    answer.ace(),
                    if agrees { code } else { classic },
                    "{ace:03b} {ecn:?}"
                );
                assert_eq!(is_accurate(&connection), agrees);
                let option = answer.accecn().map(|option| option.counters().to_vec());
                assert_eq!(option, agrees.then(|| [1, 0, 1].to_vec()));
                assert_eq!(answer.ecn(), Ecn::NotEct);
                rows += 1;
            }
        }
    }
    assert_eq!(rows, 64);
}

/// RFC 9768: AE-4, AE-7, AE-10, AE-14, AE-26, AE-41, AE-45
#[test]
fn a_client_takes_each_answer() {
    for ace in 0..8 {
        let (mut connection, _) = client(&accurate(), &syn(ace, Ecn::NotEct, true));
        assert_eq!(connection.state(), State::Established);
        let on = matches!(ace, 0b010..=0b110);
        assert_eq!(is_accurate(&connection), on, "{ace:03b}");
        assert_eq!(connection.detail(T0).ecn, on || ace == 0b001);
        // Its SYN was not ECN-capable: any other report shows that something changes the field.
        let capable = matches!(ace, 0b001 | 0b010 | 0b101);
        let (sent, field) = sends(&mut connection);
        assert_eq!(sent, capable, "{ace:03b}");
        assert_eq!(field, if on { 5 } else { 0 });
        if on {
            // Feedback of CE on the SYN is no packet of the counter, but the first window is one segment.
            assert_eq!(marks(&connection), (0, 0));
            let marked = ace == 0b110;
            assert_eq!(connection.info(T0).cwnd == Bytes(1000), marked, "{ace:03b}");
        }
        // Marks that come are reported all the same.
        connection.on_segment(T0, &{
            let mut data = from_peer(0, 1000, 0, if on { 5 } else { 0 });
            data.set_ecn(Ecn::Ce);
            data
        });
        let answer = drain(&mut connection, T0);
        if on {
            assert_eq!(answer[0].ace(), 6);
        }
    }
}

/// RFC 9768: AE-20, AE-24, AE-35, AE-36, AE-42, AE-62
#[test]
fn a_client_reports_how_the_answer_came_in_a_bare_acknowledgment() {
    for (ecn, code) in CODEPOINTS.into_iter().zip(CODES) {
        for lone in [false, true] {
            let mut config = accurate();
            config.lone_handshake_ack = lone;
            let mut connection = Connection::connect(T0, &Arc::new(config), ISS_A);
            connection.write(T0, Bytes(700), WriteFlags::default()); // it would carry the acknowledgment
            drain(&mut connection, T0);
            let mut answer = syn(0b010, ecn, true);
            answer.set_accecn(&AccEcnOption::new(true, &[1, 0, 1]));
            connection.on_segment(T0, &answer);
            let out = drain(&mut connection, T0);
            assert_eq!((out[0].payload, out[0].ace()), (0, code), "{ecn:?}");
            let marked = u8::from(ecn == Ecn::Ce);
            assert_eq!((out[1].payload, out[1].ace()), (700, 5 + marked), "{ecn:?}");
            for segment in &out {
                assert_eq!(segment.ecn(), Ecn::Ect0);
                assert!(
                    segment.accecn().is_some(),
                    "the first acknowledgment and data carry the option"
                );
                assert_eq!(segment.overhead, 52);
            }
            // A SYN-ACK that comes again counts no more, and is answered as it came.
            for ecn in [Ecn::Ce, Ecn::Ce, Ecn::Ect0] {
                connection.on_segment(T0, &syn(0, ecn, true));
            }
            let challenge = drain(&mut connection, T0);
            assert_eq!(challenge[0].ace(), 0b100);
            assert_eq!(marks(&connection).0, 1);
            assert!(is_accurate(&connection), "its flags mean nothing any more");
        }
    }
}

/// RFC 9768: AE-37
#[test]
fn a_repeated_answer_is_acknowledged_by_how_it_came() {
    let (mut connection, _) = client(&accurate(), &syn(0b010, Ecn::NotEct, true));
    for (ecn, code) in CODEPOINTS.into_iter().zip(CODES) {
        connection.on_segment(T0, &syn(0b010, ecn, true));
        let challenge = drain(&mut connection, T0);
        assert_eq!((challenge.len(), challenge[0].ace()), (1, code), "{ecn:?}");
    }
}

/// RFC 9768: AE-38, AE-39, AE-43, AE-44, AE-45
#[test]
fn a_server_infers_how_its_answer_came() {
    for ace in 0..8 {
        let (mut connection, _) = server(&accurate(), &syn(0b111, Ecn::NotEct, false));
        connection.on_segment(T0, &from_peer(0, 0, 0, ace));
        assert_eq!(connection.state(), State::Established);
        let marked = u32::from(ace == 0b110);
        assert_eq!(marks(&connection), (0, marked), "{ace:03b}");
        let capable = matches!(ace, 0b001 | 0b010 | 0b101 | 0b111);
        assert_eq!(sends(&mut connection), (capable, 5), "{ace:03b}");
        // Marks are heeded but by whom the peer answered with zero.
        connection.on_segment(T0, &from_peer(0, 0, 500, 6 + marked as u8));
        let heeded = ace != 0;
        assert_eq!(marks(&connection).1 > marked, heeded, "{ace:03b}");
        assert_eq!(connection.stats().window_reductions, u32::from(heeded));
        connection.on_segment(T0, &{
            let mut data = from_peer(0, 1000, 500, 5);
            data.set_ecn(Ecn::Ce);
            data
        });
        assert_eq!(drain(&mut connection, T0)[0].ace(), 6, "{ace:03b}");
    }
}

/// RFC 9768: AE-33
#[test]
fn data_in_place_of_the_last_acknowledgment_carry_the_counter() {
    let (mut connection, _) = server(&accurate(), &syn(0b111, Ecn::NotEct, false));
    connection.on_segment(T0, &from_peer(0, 1000, 0, 0b110));
    assert_eq!(
        marks(&connection).1,
        0,
        "nothing of ours was acknowledged that the count could be of"
    );
    assert!(sends(&mut connection).0, "and nothing is said of the SYN-ACK");
}

/// RFC 9768: AE-20, AE-21, AE-28, AE-63
#[test]
fn an_answer_is_repeated_without_the_option_and_then_without_the_flags() {
    let mut config = accurate();
    let (mut connection, first) = server(&config, &syn(0b111, Ecn::Ect0, false));
    let mut answers = Vec::from([first]);
    for _ in 0..3 {
        let now = connection.poll_timeout().expect("it is unanswered");
        connection.on_timeout(now);
        answers.extend(drain(&mut connection, now));
    }
    let seen: Vec<_> = answers
        .iter()
        .map(|answer| (answer.ace(), answer.accecn().is_some()))
        .collect();
    assert_eq!(seen, [(0b100, true), (0b100, false), (0, false), (0, false)]);
    // It stays in this mode, reports marks, and sends nothing that is ECN-capable.
    let now = connection.poll_timeout().expect("it is unanswered");
    connection.on_segment(now, &from_peer(0, 0, 0, 0b010));
    assert!(is_accurate(&connection));
    assert_eq!(sends(&mut connection), (false, 5));
    // Without the fallback it keeps the flags.
    config.ecn_fallback = false;
    let (mut connection, _) = server(&config, &syn(0b111, Ecn::Ect0, false));
    for _ in 0..3 {
        let now = connection.poll_timeout().expect("it is unanswered");
        connection.on_timeout(now);
        assert_eq!(drain(&mut connection, now)[0].ace(), 0b100);
    }
}

/// RFC 9768: AE-20, AE-23, AE-24, AE-28, AE-40, AE-63, AE-80
#[test]
fn a_server_that_gets_another_syn() {
    // Of the same kind: how the newest came, without the option.
    let (mut connection, first) = server(&accurate(), &syn(0b111, Ecn::Ce, false));
    assert_eq!(first.ace(), 0b110);
    connection.on_segment(T0, &syn(0b111, Ecn::Ect1, false));
    let again = drain(&mut connection, T0)[0];
    assert_eq!((again.ace(), again.accecn()), (0b011, None));
    connection.on_segment(T0, &from_peer(0, 0, 0, 0b010));
    assert_eq!(
        sends(&mut connection),
        (true, 5),
        "a marked SYN is no packet of the counter"
    );
    // Without ECN: the answer agrees once more, and nothing is sent ECN-capable.
    let (mut connection, _) = server(&accurate(), &syn(0b111, Ecn::NotEct, false));
    connection.on_segment(T0, &syn(0, Ecn::NotEct, false));
    assert_eq!(drain(&mut connection, T0)[0].ace(), 0b010);
    connection.on_segment(T0, &from_peer(0, 0, 0, 0b010));
    assert!(is_accurate(&connection) && !sends(&mut connection).0);
    // Of another kind than the first: a reset.
    for (first, second) in [(0b111, 0b011), (0b011, 0b111)] {
        let (mut connection, _) = server(&accurate(), &syn(first, Ecn::NotEct, false));
        connection.on_segment(T0, &syn(second, Ecn::NotEct, false));
        let out = drain(&mut connection, T0);
        assert!(out.len() == 1 && out[0].flags.contains(Flags::RST), "{out:?}");
        assert_eq!(connection.state(), State::Closed);
    }
}

/// RFC 9768: AE-25, AE-29
#[test]
fn a_server_without_ecn_stays_without() {
    let (mut connection, first) = server(&accurate(), &syn(0, Ecn::NotEct, false));
    connection.on_segment(T0, &syn(0b111, Ecn::Ect0, false));
    let again = drain(&mut connection, T0)[0];
    assert_eq!((first.ace(), again.ace()), (0, 0));
    connection.on_segment(T0, &from_peer(0, 0, 0, 0));
    let mut data = from_peer(0, 1000, 0, 0);
    data.set_ecn(Ecn::Ce);
    connection.on_segment(T0, &data); // ECT is no sign of ECN
    assert_eq!(sends(&mut connection), (false, 0));
}

/// RFC 9768: AE-11, AE-34
#[test]
fn syns_that_cross_agree_too() {
    let mut connection = Connection::connect(T0, &Arc::new(accurate()), ISS_A);
    drain(&mut connection, T0);
    let mut request = syn(0b111, Ecn::Ect1, false);
    request.ack = crate::seq::SeqNumber(0);
    connection.on_segment(T0, &request);
    let answer = drain(&mut connection, T0)[0];
    assert!(answer.flags.contains(Flags::SYN.with(Flags::ACK)));
    assert_eq!(answer.ace(), 0b011);
    connection.on_segment(T0, &syn(0b110, Ecn::NotEct, true));
    assert_eq!(connection.state(), State::Established);
    assert_eq!(marks(&connection), (0, 0), "the flags of a SYN are no counter");
    assert!(is_accurate(&connection));
}

/// A server that has sent `segments` of 1,000 bytes, `T0` being now.
fn sender(config: &Config, segments: u64) -> Connection {
    let (mut connection, _) = server(config, &syn(0b111, Ecn::NotEct, false));
    connection.on_segment(T0, &from_peer(0, 0, 0, 0b010));
    connection.write(T0, Bytes(1000 * segments), WriteFlags::default());
    drain(&mut connection, T0);
    connection
}

/// RFC 9768: AE-26, AE-27
#[test]
fn marks_reduce_the_window_once_and_no_flag_says_so() {
    let mut connection = sender(&accurate(), 100);
    for (acked, ace) in [(1, 6), (2, 7), (3, 7)] {
        connection.on_segment(T0, &from_peer(0, 0, 1000 * acked, ace));
        for segment in drain(&mut connection, T0) {
            assert_eq!((segment.ace(), segment.ecn()), (5, Ecn::Ect0), "CWR would show");
        }
    }
    assert_eq!(marks(&connection).1, 2);
    let stats = connection.stats();
    assert_eq!((stats.window_reductions, stats.ecn_echoes), (1, 2));
}

/// RFC 9768: AE-40
#[test]
fn an_acknowledgment_that_shows_nothing_new_may_be_an_old_one() {
    let mut connection = sender(&accurate(), 100);
    connection.on_segment(T0, &from_peer(0, 0, 3000, 7));
    connection.on_segment(T0, &from_peer(0, 0, 3000, 6)); // duplicates, and what came before
    connection.on_segment(T0, &from_peer(0, 0, 2000, 6));
    assert_eq!(marks(&connection).1, 2);
    connection.on_segment(T0, &from_peer(0, 0, 4000, 7));
    assert_eq!(marks(&connection).1, 2);
}

/// RFC 9768: AE-64
#[test]
fn retransmissions_are_capable_and_without_the_option() {
    let (mut connection, _) = server(&accurate(), &syn(0b111, Ecn::NotEct, false));
    let mut last = from_peer(0, 0, 0, 0b010);
    last.set_accecn(&AccEcnOption::new(false, &[1, 0, 1]));
    connection.on_segment(T0, &last);
    connection.write(T0, Bytes(500), WriteFlags::default());
    let first = drain(&mut connection, T0)[0];
    assert!(first.accecn().is_some());
    let now = connection.poll_timeout().expect("data is out");
    connection.on_timeout(now);
    let again = drain(&mut connection, now);
    assert_eq!(
        (again[0].seq, again[0].accecn(), again[0].ecn()),
        (first.seq, None, Ecn::Ect0)
    );
}

/// Ends that send `bytes` each over a path that loses `loss` and marks `mark` of 100 segments, data and acknowledgments.
fn pair(seed: u64, bytes: [u64; 2], [loss, mark]: [u64; 2], option: EcnOption) -> Pair {
    let mut config = accurate();
    (config.timestamps, config.ecn_option) = (true, option);
    let mut pair = Pair::connecting(config.clone(), config, Duration::from_millis(10));
    let mut rng = Rng::from_seed(seed);
    pair.decide = Box::new(move |sent, _| {
        let fate = (rng.below(100), rng.below(100));
        if sent.transmit.segment.flags.contains(Flags::SYN) {
            Fate::Deliver
        } else if fate.0 < loss {
            Fate::Drop
        } else if fate.1 < mark {
            Fate::Mark
        } else {
            Fate::Deliver
        }
    });
    pair.drain();
    for (end, bytes) in [End::A, End::B].into_iter().zip(bytes) {
        pair.write_at(Instant::from_millis(50), end, bytes);
    }
    pair
}

#[test]
fn what_is_reported_is_never_more_than_was_marked() {
    for seed in 0..60 {
        let both = seed % 3 == 0;
        let shares = [[0, 20], [2, 30], [5, 5], [10, 60], [1, 100]][seed as usize % 5];
        let option = if seed % 2 == 0 {
            EcnOption::Always
        } else {
            EcnOption::WhenUseful
        };
        let mut pair = pair(seed, [150_000, if both { 90_000 } else { 0 }], shares, option);
        let mut steps = 0;
        while pair.step() && steps < 20_000 {
            steps += 1;
            let Some(b) = &pair.b else { continue };
            let counts = [&pair.a, b].map(|end| end.detail(pair.now).accurate_ecn);
            let [Some(a), Some(b)] = counts else { continue };
            for (sender, receiver) in [(a, b), (b, a)] {
                assert!(
                    sender.reported_ce <= receiver.received_ce,
                    "seed {seed}: {sender:?} {receiver:?}"
                );
                for (known, true_) in sender.reported_bytes.iter().zip(receiver.received_bytes) {
                    assert!(*known <= true_, "seed {seed}: {sender:?} {receiver:?}");
                }
            }
        }
        assert_eq!(
            pair.b.as_ref().map(Connection::received),
            Some(150_000),
            "seed {seed}"
        );
    }
}

#[test]
fn without_loss_every_mark_is_reported() {
    for seed in 0..40 {
        let option = [EcnOption::Never, EcnOption::WhenUseful, EcnOption::Always][seed as usize % 3];
        let mark = [5, 10, 50, 100][seed as usize % 4];
        let mut pair = pair(seed, [200_000, 0], [0, 0], option);
        let mut rng = Rng::from_seed(seed);
        // Data alone is marked: a mark of an acknowledgment may be known later than the last data.
        pair.decide = Box::new(move |sent, _| {
            let marked = sent.transmit.segment.payload > 0 && rng.below(100) < mark;
            if marked { Fate::Mark } else { Fate::Deliver }
        });
        while pair.step() {
            if pair.a.acked() == 200_000 {
                break;
            }
        }
        let truth = pair.b.as_ref().and_then(|b| b.detail(pair.now).accurate_ecn);
        let truth = truth.expect("both ends use it");
        let known = pair.a.detail(pair.now).accurate_ecn.expect("both ends use it");
        assert!(truth.received_ce > 0, "seed {seed}");
        assert_eq!(known.reported_ce, truth.received_ce, "seed {seed}");
        if option == EcnOption::Always {
            assert_eq!(known.reported_bytes, truth.received_bytes, "seed {seed}");
        }
    }
}

/// A controller that learns shares, once with RFC 8257's echo and once with the counts: the counts are of packets, the echo of
/// acknowledgments.
#[test]
fn dctcp_learns_the_share_of_marked_bytes() {
    let alpha = |feedback: EcnFeedback| {
        let mut config = accurate();
        config.ecn = feedback;
        config.congestion_control = "dctcp";
        config.ecn_echo = crate::tcp::EcnEcho::Rfc8257;
        let mut pair = Pair::connecting(config.clone(), config, Duration::from_millis(10));
        let mut count = 0;
        pair.decide = Box::new(move |sent, _| {
            count += u64::from(sent.transmit.segment.payload > 0);
            let marked = sent.transmit.segment.payload > 0 && count % 20 == 0;
            if marked { Fate::Mark } else { Fate::Deliver }
        });
        pair.write_at(Instant::from_millis(50), End::A, 4_000_000);
        while pair.step() && pair.a.acked() < 4_000_000 {}
        let sender = pair.a.sender.as_ref().expect("it sent");
        match sender.cc.any() {
            crate::cc::AnyController::Dctcp(dctcp) => dctcp.alpha(),
            _ => panic!("another controller"),
        }
    };
    let share = alpha(EcnFeedback::Accurate);
    assert!((share - 0.05).abs() < 0.02, "{share}");
    let echoed = alpha(EcnFeedback::Classic);
    assert!((echoed - 0.05).abs() < 0.05, "{echoed}");
}

/// RFC 8257 3.3: where one acknowledgment ends a round and reports a mark, the average moves before the window (steps 4 to 9).
#[test]
fn dctcp_answers_with_the_average_that_the_mark_moved() {
    let mut config = accurate();
    config.congestion_control = "dctcp";
    let mut pair = Pair::connecting(config.clone(), config, Duration::from_millis(10));
    let mut count = 0;
    pair.decide = Box::new(move |sent, _| {
        count += u64::from(sent.transmit.segment.payload > 0);
        let marked = sent.transmit.segment.payload > 0 && count % 61 == 0;
        if marked { Fate::Mark } else { Fate::Deliver }
    });
    pair.write_at(Instant::from_millis(50), End::A, 4_000_000);
    let look = |pair: &Pair| {
        let sender = pair.a.sender.as_ref()?;
        match sender.cc.any() {
            crate::cc::AnyController::Dctcp(dctcp) => Some((sender.cc.window(), dctcp.alpha())),
            _ => panic!("another controller"),
        }
    };
    let (mut both, mut reductions) = (0, 0);
    while pair.a.acked() < 4_000_000 {
        let (before, reduced) = (look(&pair), pair.a.info(pair.now).stats.window_reductions);
        if !pair.step() {
            break;
        }
        let (Some((window, alpha)), Some((now, moved))) = (before, look(&pair)) else {
            continue;
        };
        if pair.a.info(pair.now).stats.window_reductions > reduced {
            reductions += 1;
            both += u32::from(alpha != moved);
            let expected = (window.0 as f64 * (1.0 - moved / 2.0)).max(2920.0); // two segments at least
            assert!(
                (now.0 as f64 - expected).abs() < 2.0,
                "{window:?} by {moved}: {now:?}"
            );
        }
    }
    assert!(both > 0, "{both} of {reductions} at the end of a round");
}

#[test]
fn a_marked_answer_begins_with_one_segment() {
    let window = |ace: u8| {
        let (mut connection, _) = server(&accurate(), &syn(0b111, Ecn::NotEct, false));
        connection.on_segment(T0, &from_peer(0, 0, 0, ace));
        connection.info(T0).cwnd
    };
    assert_eq!((window(0b010), window(0b110)), (Bytes(10_000), Bytes(1000)));
}
