//! Initial Spreading whose gap is measured (docs/design/initial-spreading.md#estimated): by hand, against naive transcriptions, switched off.

use super::pacing::{leave, open_after, spreading};
use super::pair::{ISS_A, ISS_B};
use super::script::{MSS, T0};
use crate::packet::{Flags, Segment};
use crate::rng::Rng;
use crate::tcp::{
    Config, Connection, Event, InitialSpreading, InitialWindow, PathMemory, PathSample, Setting,
    WindowGrowth, WriteFlags,
};
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::{Just, Strategy as _, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// Timers of any length, and every byte that is acknowledged opens the window by one.
fn estimated() -> Config {
    let mut config = spreading(InitialSpreading::Estimated);
    config.spreading_jiffy = Duration::ZERO;
    config.abc_limit = None;
    config.growth = WindowGrowth::Always;
    config
}

/// Established at `T0` after a handshake of `rtt`, with a window of `segments`, given this of its path.
fn established(config: &Config, rtt: Duration, segments: u32, path: Option<(u64, Duration)>) -> Connection {
    let mut config = config.clone();
    config.initial_window = InitialWindow::Segments(segments);
    let mut connection = open_after(&config, rtt, segments, Bytes::MAX);
    let sample = path.map(|(bps, min_rtt)| PathSample {
        rate: Rate::from_bps(bps),
        min_rtt,
    });
    connection.set(T0, Setting::Path(sample));
    connection
}

fn write(connection: &mut Connection, segments: u32) {
    connection.write(T0, Bytes(u64::from(segments * MSS)), WriteFlags::default());
}

/// When the segments of a window of ten leave, microseconds.
fn first_window(config: &Config, rtt: Duration, path: Option<(u64, Duration)>) -> Vec<u64> {
    let mut connection = established(config, rtt, 10, path);
    write(&mut connection, 10);
    leave(&mut connection, T0, 10)
}

fn ack(upto: u32) -> Segment {
    Segment {
        seq: ISS_B + 1,
        ack: ISS_A + 1 + upto * MSS,
        window: u16::MAX,
        flags: Flags::ACK,
        overhead: 40,
        ..Segment::default()
    }
}

fn found(connection: &mut Connection) -> Option<PathSample> {
    let mut announced = false;
    while let Some(event) = connection.poll_event() {
        announced |= event == Event::PathFound;
    }
    let found = connection.take_path().map(|(began, found)| {
        assert_eq!(began, T0);
        found
    });
    assert_eq!(announced, found.is_some(), "an event announces it");
    assert_eq!(connection.take_path(), None, "once");
    found
}

/// A packet of 1040 bytes takes 832 us at 10 Mbit/s; ten in 80 ms are 8 ms apart, at most 4.
#[test]
fn the_gap_is_what_earlier_connections_learnt() {
    let mut config = estimated();
    let known = Some((10_000_000, ms(80)));
    let after = |first: &[u64], from: u64, gap: u64| {
        let rest = (first.len() as u64..10).map(|index| from + (index - first.len() as u64) * gap);
        first.iter().copied().chain(rest).collect::<Vec<u64>>()
    };
    // The first to a host: bounded, but for the pair that measures.
    assert_eq!(first_window(&config, ms(80), None), after(&[0, 0], 4_000, 4_000));
    assert_eq!(first_window(&config, ms(80), known), after(&[0, 0], 832, 832));
    // A slow line: 8320 us at 1 Mbit/s; no gap is longer than 4 ms. 20 ms are 2 ms each.
    assert_eq!(
        first_window(&config, ms(80), Some((1_000_000, ms(80)))),
        after(&[0, 0], 4_000, 4_000)
    );
    assert_eq!(
        first_window(&config, ms(20), Some((1_000_000, ms(20)))),
        after(&[0, 0], 2_000, 2_000)
    );
    // Less than a jiffy: nothing is spread, whatever is known.
    config.spreading_jiffy = ms(4);
    assert_eq!(first_window(&config, ms(20), known), [0; 10]);
    assert_eq!(first_window(&config, ms(40), known), after(&[0, 0], 832, 832));
    config.spreading_jiffy = Duration::ZERO;
    config.spreading_pair = false;
    assert_eq!(first_window(&config, ms(80), known), after(&[0], 832, 832));
    config.spreading_tail = true;
    let mut tail = after(&[0], 832, 832);
    tail[9] = tail[8];
    assert_eq!(
        first_window(&config, ms(80), known),
        tail,
        "the last two together"
    );
    config.spreading_phase = true;
    config.spreading_tail = false;
    let times = first_window(&config, ms(80), known);
    let seed = u64::from(ISS_A.0) << 32 | u64::from(ISS_B.0);
    let phase = Rng::from_seed(seed).below(832_000) / 1000;
    assert!(
        (1..832).contains(&phase),
        "{phase} of 832 us, drawn from the sequence numbers"
    );
    assert!(
        times
            .iter()
            .zip(0..)
            .all(|(at, index)| at.abs_diff(phase + 832 * index) <= 1),
        "{times:?} after {phase}"
    );
}

/// The response of a Fast Open server leaves before the handshake has a sample (docs/design/initial-spreading.md#no-sample): what earlier
/// connections measured stands in for it, 80 ms and 832 us for 1040 bytes.
#[test]
fn a_fast_open_server_spreads_by_what_earlier_connections_learnt() {
    let known = Some(PathSample {
        rate: Rate::from_bps(10_000_000),
        min_rtt: ms(80),
    });
    let syn = Segment {
        seq: ISS_B,
        payload: 10,
        window: u16::MAX,
        flags: Flags::SYN.with(Flags::MSS),
        options: [MSS, 0, 0, 0, 0, 0],
        ..Segment::default()
    };
    let respond = |kind, told: Option<Option<PathSample>>, late: bool| {
        let mut config = spreading(kind);
        config.spreading_pair = false;
        let config = alloc::sync::Arc::new(config);
        let (mut connection, _) = Connection::accept_fast_open(T0, &config, ISS_A, &syn);
        let tell = |connection: &mut Connection| {
            if let Some(told) = told {
                connection.set(T0, Setting::Path(told));
            }
        };
        if !late {
            tell(&mut connection);
        }
        assert!(connection.poll_transmit(T0).is_some(), "the SYN-ACK");
        write(&mut connection, 10);
        if late {
            tell(&mut connection);
        }
        leave(&mut connection, T0, 10)
    };
    let spread: Vec<u64> = (0..10).map(|index| index * 832).collect();
    for late in [false, true] {
        assert_eq!(respond(InitialSpreading::Estimated, Some(known), late), spread);
        assert_eq!(respond(InitialSpreading::Estimated, Some(None), late), [0; 10]);
    }
    // Nothing is known of the path, and nothing is spread.
    assert_eq!(respond(InitialSpreading::Bounded, None, false), [0; 10]);
}

/// 1500 bytes at 10 Mbit/s take 1.2 ms: ten are out after 10.8 instead of 36.
#[test]
fn a_full_packet_counts_with_its_headers_and_timestamps() {
    let mut config = estimated();
    config.timestamps = true;
    config.spreading_pair = false;
    let state = crate::tcp::EstablishedState {
        srtt: ms(80),
        rttvar: Duration::ZERO,
        cwnd: Bytes(14_480),
        ssthresh: Bytes::MAX,
        mss: 1448,
        iss: ISS_A,
        irs: ISS_B,
        peer_window: Bytes(1_000_000),
    };
    let mut connection = Connection::established(T0, &alloc::sync::Arc::new(config), state);
    let sample = PathSample {
        rate: Rate::from_bps(10_000_000),
        min_rtt: ms(80),
    };
    connection.set(T0, Setting::Path(Some(sample)));
    connection.write(T0, Bytes(14_480), WriteFlags::default());
    let mut times = Vec::new();
    let mut now = T0;
    while times.len() < 10 {
        while connection.poll_transmit(now).is_some() {
            times.push(now.since(T0).as_micros());
        }
        now = connection.poll_timeout().expect("it sends");
        connection.on_timeout(now);
    }
    assert_eq!(times, (0..10).map(|index| index * 1_200).collect::<Vec<u64>>());
}

/// The acknowledgments of the pair come 832 us apart: 1040 bytes in 832 us are 10 Mbit/s.
#[test]
fn a_pair_tells_the_rate_of_the_bottleneck() {
    let mut connection = established(&estimated(), ms(80), 10, None);
    write(&mut connection, 10);
    leave(&mut connection, T0, 10);
    connection.on_segment(T0 + ms(81), &ack(1));
    assert_eq!(found(&mut connection), None, "one is not enough");
    connection.on_segment(T0 + ms(81) + us(832), &ack(2));
    assert_eq!(
        found(&mut connection),
        Some(PathSample {
            rate: Rate::from_bps(10_000_000),
            min_rtt: ms(80),
        }),
        "and the handshake was the shortest round trip"
    );
    assert!(
        connection.sender.as_ref().expect("it sends").tempo.is_none(),
        "it asks no more"
    );
    connection.on_segment(T0 + ms(85), &ack(3));
    connection.on_segment(T0 + ms(89), &ack(4));
    assert_eq!(found(&mut connection), None);
}

/// The receiver acknowledges every second segment: nothing is learnt from 4 ms gaps, but from the burst that the first
/// acknowledgment of the second window answers. 2080 bytes in 1664 us are 10 Mbit/s.
#[test]
fn delayed_acknowledgments_tell_it_a_window_later() {
    let mut connection = established(&estimated(), ms(80), 10, None);
    write(&mut connection, 40);
    leave(&mut connection, T0, 10);
    for (at, upto) in [(84, 2), (92, 4), (100, 6), (108, 8), (116, 10)] {
        let now = T0 + ms(at);
        connection.on_segment(now, &ack(upto));
        assert_eq!(found(&mut connection), None, "those up to {upto} left 8 ms apart");
        assert_eq!(
            leave(&mut connection, now, 4).len(),
            4,
            "each is answered by a burst"
        );
    }
    connection.on_segment(T0 + ms(166), &ack(12));
    assert_eq!(found(&mut connection), None, "they left 44 ms after those before");
    connection.on_segment(T0 + ms(166) + us(1664), &ack(14));
    assert_eq!(
        found(&mut connection).map(|path| path.rate),
        Some(Rate::from_bps(10_000_000))
    );
}

#[test]
fn what_tells_nothing_of_the_bottleneck_is_not_measured() {
    let quiet = |acks: &[(u64, u32)], written: u32| {
        let mut connection = established(&estimated(), ms(80), 10, None);
        write(&mut connection, written);
        leave(&mut connection, T0, written.min(10) as usize);
        for (at, upto) in acks {
            connection.on_segment(T0 + ms(*at), &ack(*upto));
        }
        assert_eq!(found(&mut connection), None, "{acks:?} of {written}");
        connection
    };
    // The timer of a delayed acknowledgment: nothing else is out.
    quiet(&[(81, 1), (121, 2)], 2);
    // A round trip of quiet, or acknowledgments that came together.
    quiet(&[(81, 2), (81, 3)], 10);
    // They left as far apart as they came.
    let connection = quiet(&[(82, 2), (86, 3), (90, 4), (94, 5)], 10);
    assert!(
        connection.sender.is_some_and(|sender| sender.tempo.is_some()),
        "it goes on"
    );
    // A loss, and what is out of order.
    let mut connection = established(&estimated(), ms(80), 10, None);
    write(&mut connection, 10);
    leave(&mut connection, T0, 10);
    let mut sack = ack(0);
    sack.push_sack_block(ISS_A + 1 + MSS, ISS_A + 1 + 2 * MSS);
    connection.on_segment(T0 + ms(80), &sack);
    connection.on_segment(T0 + ms(81), &ack(1));
    connection.on_segment(T0 + ms(82), &ack(2));
    connection.on_segment(T0 + ms(83), &ack(3));
    assert_eq!(found(&mut connection), None);
    // Nobody remembers: nothing is reported, the window is spread all the same.
    let mut alone = open_after(&estimated(), ms(80), 10, Bytes::MAX);
    write(&mut alone, 10);
    assert_eq!(leave(&mut alone, T0, 10)[..4], [0, 0, 4_000, 8_000]);
    alone.on_segment(T0 + ms(81), &ack(1));
    alone.on_segment(T0 + ms(82), &ack(2));
    assert_eq!(found(&mut alone), None);
}

/// The handshake took 400 ms, a queue's time: forty segments, 4 ms apart. The pair comes back after 100 ms, when 26 have left.
#[test]
fn an_estimate_shortens_the_gaps_that_are_left() {
    let mut config = estimated();
    config.spreading_stop = false;
    let mut connection = established(&config, ms(400), 40, None);
    write(&mut connection, 40);
    let mut times = Vec::new();
    while times.len() < 26 {
        let from = times.last().map_or(T0, |last| T0 + us(*last));
        let next = connection
            .poll_timeout()
            .filter(|next| *next > from)
            .unwrap_or(from);
        times.extend(leave(&mut connection, next, 1));
    }
    assert_eq!((times[2], times[25]), (4_000, 96_000));
    connection.on_segment(T0 + us(99_000), &ack(1));
    connection.on_segment(T0 + us(99_832), &ack(2));
    assert_eq!(
        found(&mut connection).map(|path| path.rate.bps()),
        Some(10_000_000)
    );
    // The next was due at 100 ms; a packet's time after the last, 96.832, is past. Acknowledgments open the window as well.
    let rest = leave(&mut connection, T0 + us(99_832), 14);
    let expected: Vec<u64> = (0..14).map(|index| 99_832 + index * 832).collect();
    assert_eq!(rest, expected);
}

/// The handshake took 80 ms, earlier connections saw 40, and a packet takes 832 us.
#[test]
fn an_acknowledgment_that_found_no_queue_ends_the_spreading() {
    let known = Some((1_000_000, ms(40)));
    for (rtt_us, stops) in [(41_000, true), (42_000, true), (42_001, false), (60_000, false)] {
        let mut connection = established(&estimated(), ms(80), 40, known);
        write(&mut connection, 40);
        let mut sent = 0;
        let mut now = T0;
        let back = T0 + us(rtt_us);
        while now < back {
            while connection.poll_transmit(now).is_some() {
                sent += 1;
            }
            now = connection.poll_timeout().expect("more is held back").min(back);
            connection.on_timeout(now);
        }
        while connection.poll_transmit(now).is_some() {
            sent += 1;
        }
        // A pair, and one every 2 ms.
        assert_eq!(sent, 2 + rtt_us / 2_000, "at {rtt_us} us");
        connection.on_segment(now, &ack(1));
        let mut at_once = 0;
        while connection.poll_transmit(now).is_some() {
            at_once += 1;
        }
        assert_eq!(at_once + sent == 40, stops, "{at_once} at once after {rtt_us} us");
        assert!(stops || at_once == 0, "{at_once} at once after {rtt_us} us");
    }
}

#[test]
fn without_its_parts_estimated_is_bounded() {
    let mut bare = estimated();
    bare.spreading_pair = false;
    bare.spreading_stop = false;
    let mut bounded = bare.clone();
    bounded.initial_spreading = InitialSpreading::Bounded;
    // What is off has no say where the kind is another.
    let mut others = bounded.clone();
    others.spreading_pair = true;
    others.spreading_stop = true;
    others.spreading_phase = true;
    others.spreading_tail = true;
    others.spreading_memory = Duration::ZERO;
    for rtt in [ms(5), ms(40), ms(80), ms(500)] {
        let expected = first_window(&bounded, rtt, None);
        assert_eq!(first_window(&bare, rtt, None), expected);
        assert_eq!(first_window(&others, rtt, Some((1_000_000_000, ms(1)))), expected);
    }
    assert!(!bounded.remembers_paths() && bare.remembers_paths());
    bare.spreading_memory = Duration::ZERO;
    assert!(!bare.remembers_paths());
}

/// One naive connection: every departure and every acknowledgment is kept, and everything is worked out from those lists.
#[derive(Default)]
struct Naive {
    departures: Vec<u64>,
    /// When acknowledgments came, up to which segment, and how many had left.
    acks: Vec<(u64, usize, usize)>,
}

impl Naive {
    /// "gap = clamp(MTU / estimated bottleneck rate, 0, min(RTT/IW, T_max))", nanoseconds.
    fn gap(q: u64, t_max: u64, bps: Option<u64>, packet: u64) -> u64 {
        let time = bps.map_or(u64::MAX, |bps| {
            (u128::from(packet) * 8_000_000_000 / u128::from(bps)) as u64
        });
        q.min(t_max).min(time)
    }

    /// The first two acknowledgments that count, and which the later one is.
    fn rate(&self, iw: usize, packet: u64) -> Option<(u64, usize)> {
        let mut passed = 0;
        for (index, &(at, upto, out)) in self.acks.iter().enumerate() {
            let before = if index == 0 { 0 } else { self.acks[index - 1].1 };
            if upto == out {
                return None; // nothing more is out: it gives up
            }
            if index > 0 {
                let apart = at - self.acks[index - 1].0;
                let left = self.departures[upto - 1] - self.departures[before - 1];
                if apart > 0 && 8 * left <= apart {
                    let bits = u128::from(packet) * 8 * (upto - before) as u128;
                    return Some(((bits * 1_000_000_000 / u128::from(apart)) as u64, index));
                }
            }
            passed += upto - before;
            if passed >= 3 * iw {
                return None;
            }
        }
        None
    }
}

proptest! {
    /// Departures and estimate against the lists, over random windows, paths and acknowledgments; bursts of slow start included.
    #[test]
    fn a_naive_reading_gives_the_same_departures_and_rates(
        iw in 2_u32..30,
        handshake_ms in 5_u64..600,
        known_kbps in prop_oneof![Just(None), (300_u64..100_000).prop_map(Some)],
        min_ms in 1_u64..600,
        pair in prop::bool::ANY,
        stop in prop::bool::ANY,
        tail in prop::bool::ANY,
        first_ack_us in 1_000_u64..700_000,
        steps in prop::collection::vec((1_u32..4, prop_oneof![Just(0_u64), 1_u64..3_000, 3_000_u64..30_000]), 1..60),
    ) {
        let mut config = estimated();
        config.spreading_pair = pair;
        config.spreading_stop = stop;
        config.spreading_tail = tail;
        let known = known_kbps.map(|kbps| (kbps * 1000, ms(min_ms)));
        let mut connection = established(&config, ms(handshake_ms), iw, known);
        write(&mut connection, 3 * iw);
        let packet = u64::from(MSS + 40);
        let q = ms(handshake_ms).as_nanos() / u64::from(iw);
        let mut gap = Naive::gap(q, 4_000_000, known_kbps.map(|kbps| kbps * 1000), packet);
        let floor = ms(handshake_ms.min(known_kbps.map_or(handshake_ms, |_| min_ms))).as_nanos() + gap;
        let span = ms(handshake_ms).as_nanos();
        let mut naive = Naive::default();
        // Nanoseconds after T0; the window in segments, and what is acknowledged of it.
        let (mut now, mut window, mut una, mut due) = (0_u64, iw as usize, 0_usize, 0_u64);
        let mut spread = true;
        let mut measures = pair;
        let mut learnt = None;
        let mut acks = steps.iter();
        let mut next_ack = first_ack_us * 1000;
        loop {
            // What leaves at this moment.
            let mut left = 0;
            while connection.poll_transmit(T0 + Duration::from_nanos(now)).is_some() {
                left += 1;
            }
            let mut expected = 0;
            loop {
                let sent = naive.departures.len();
                if spread && sent > 0 && now >= naive.departures[0] + span || sent >= iw as usize {
                    spread = false;
                }
                if sent >= 3 * iw as usize || sent - una >= window || spread && due > now {
                    break;
                }
                naive.departures.push(now);
                expected += 1;
                let (sent, last) = (sent + 1, iw as usize - 1);
                let together = pair && sent == 1 || tail && sent == last;
                due = due.max(now) + if together { 0 } else { gap };
            }
            prop_assert_eq!(left, expected, "at {} ns after {:?}", now, &naive.departures);
            // The next departure that is due, or the next acknowledgment.
            let sent = naive.departures.len();
            let held = spread && sent < 3 * iw as usize && sent - una < window;
            let departs = if held { due.min(naive.departures.first().map_or(u64::MAX, |first| first + span)) } else { u64::MAX };
            if held {
                let timeout = connection.poll_timeout().expect("something is held back");
                prop_assert!(timeout > T0 + Duration::from_nanos(now));
                // At the end of the round trip a held segment waits for its own time, which comes first.
                prop_assert!(timeout <= T0 + Duration::from_nanos(due));
            }
            if departs < next_ack {
                now = departs;
                connection.on_timeout(T0 + Duration::from_nanos(now));
                if departs < due {
                    // Nobody asks at that moment; the deadline is the segment's own.
                    now = due.min(next_ack);
                }
                continue;
            }
            now = next_ack;
            let Some((covers, pause_us)) = acks.next() else { break };
            next_ack = now + pause_us * 1000 + 1;
            let upto = (una + *covers as usize).min(sent);
            if upto == una {
                continue; // everything that left is acknowledged
            }
            connection.on_segment(T0 + Duration::from_nanos(now), &ack(upto as u32));
            naive.acks.push((now, upto, sent));
            let first_tx = naive.departures[una];
            window += upto - una;
            una = upto;
            if spread && (now >= naive.departures[0] + span || stop && now - first_tx <= floor) {
                spread = false;
            }
            if measures && learnt.is_none() {
                learnt = naive.rate(iw as usize, packet);
                if let Some((bps, _)) = learnt {
                    let shorter = Naive::gap(u64::MAX, u64::MAX, Some(bps), packet);
                    if shorter < gap && spread {
                        gap = shorter;
                        due = due.min(naive.departures[sent - 1] + gap);
                    }
                    let learnt = found(&mut connection);
                    prop_assert_eq!(learnt.map(|path| path.rate.bps()), Some(bps));
                    measures = false;
                }
            }
            if learnt.is_none() {
                prop_assert_eq!(found(&mut connection), None);
            }
        }
    }

    /// The memory against a list of everything that was ever learnt.
    #[test]
    fn a_list_of_all_samples_recalls_the_same(
        events in prop::collection::vec((0_u8..4, 0_u64..50, 1_u64..1_000, 1_u64..300, 0_u64..40), 1..80),
        lifetime_s in 1_u64..200,
    ) {
        let mut memory = PathMemory::new();
        // Path, when it was learnt, rate, round trip; those of one bunch are one.
        let mut all: Vec<(u8, Instant, u64, u64)> = vec![];
        let mut now = Instant::from_millis(100_000);
        for (path, pause_s, kbps, rtt_ms, ran_s) in events {
            now += Duration::from_secs(pause_s);
            let naive = {
                // The last three of this path, of those that are young enough the middle one: of two the slower.
                let last = all.iter().rev().filter(|sample| sample.0 == path).take(3);
                let young: Vec<_> = last
                    .filter(|sample| now.since(sample.1) < Duration::from_secs(lifetime_s))
                    .collect();
                let mut rates: Vec<u64> = young.iter().map(|sample| sample.2).collect();
                rates.sort_unstable();
                let middle = match rates[..] {
                    [] => None,
                    [one] | [one, _] => Some(one),
                    [_, middle, ..] => Some(middle),
                };
                middle.zip(young.iter().map(|sample| sample.3).min())
            };
            let got = memory.recall(now, path, Duration::from_secs(lifetime_s));
            prop_assert_eq!(got.map(|path| (path.rate.bps(), path.min_rtt.as_millis())), naive);
            let began = Instant::from_millis(now.since(Instant::ZERO).as_millis() - ran_s * 1000);
            memory.learn(now, path, (began, PathSample { rate: Rate::from_bps(kbps), min_rtt: ms(rtt_ms) }));
            match all.iter_mut().rev().find(|sample| sample.0 == path) {
                Some(newest) if began < newest.1 => newest.3 = newest.3.min(rtt_ms),
                _ => all.push((path, now, kbps, rtt_ms)),
            }
        }
        memory.clear();
        prop_assert_eq!(memory.recall(now, 0, Duration::from_secs(lifetime_s)), None);
    }
}

#[test]
fn the_memory_is_bounded_and_forgets_what_is_oldest() {
    let mut memory = PathMemory::new();
    let sample = |bps| PathSample {
        rate: Rate::from_bps(bps),
        min_rtt: ms(1),
    };
    let rate = |memory: &PathMemory<u32>, path| {
        let known = memory.recall(T0 + ms(9_000), path, ms(100_000));
        known.map(|path| path.rate.bps())
    };
    // Names fall while time passes: what is oldest has the greatest name.
    for turn in 0..5000_u32 {
        let at = T0 + ms(u64::from(turn));
        memory.learn(at, 5000 - turn, (at, sample(u64::from(turn) + 1)));
        if turn == 4095 {
            memory.learn(at, 5000, (at, sample(7))); // the first path is used again, and stays
        }
    }
    let known = (0..=5000).filter(|path| rate(&memory, *path).is_some());
    assert_eq!(known.count(), 4096);
    assert_eq!(rate(&memory, 1), Some(5000), "the newest");
    assert_eq!(rate(&memory, 5000), Some(1), "used again: of two the slower");
    assert_eq!(rate(&memory, 4999), None, "the oldest went");
    assert_eq!(rate(&memory, 5000 - 904), None);
    assert_eq!(rate(&memory, 5000 - 905), Some(906));
    assert_eq!(
        memory.recall(T0 + ms(9_000), 1, ms(1)),
        None,
        "it is forgotten in time"
    );
}

/// Six connections at a time count as one of the three, the first of them.
#[test]
fn parallel_connections_are_one_voice() {
    let mut memory = PathMemory::new();
    let sample = |mbps: u64, rtt: u64| PathSample {
        rate: Rate::from_bps(mbps * 1_000_000),
        min_rtt: ms(rtt),
    };
    for page in 0..3_u64 {
        let began = T0 + ms(10_000 * page);
        for (index, mbps) in [10 + page, 1, 1, 1, 1, 1].into_iter().enumerate() {
            let now = began + ms(80 + index as u64);
            memory.learn(now, 0_u32, (began, sample(mbps, 80 - index as u64)));
        }
    }
    let known = memory.recall(T0 + ms(40_000), 0, ms(100_000));
    assert_eq!(
        known,
        Some(sample(11, 75)),
        "the middle of 10, 11 and 12; the shortest round trip"
    );
}
