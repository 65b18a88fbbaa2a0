//! Initial Spreading and pacing by hand (docs/design/initial-spreading.md#examples): when each of ten segments leaves.

use super::pair::{ISS_A, ISS_B};
use super::script::{MSS, Script, T0, bare};
use crate::tcp::{
    Config, Connection, EstablishedState, InitialSpreading, InitialWindow, Pacing, Profile, WindowValidation,
    WriteFlags,
};
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

fn open(config: &Config, rtt_ms: u64, cwnd: u32, ssthresh: Bytes) -> Connection {
    open_after(config, Duration::from_millis(rtt_ms), cwnd, ssthresh)
}

pub(super) fn open_after(config: &Config, srtt: Duration, cwnd: u32, ssthresh: Bytes) -> Connection {
    let state = EstablishedState {
        srtt,
        rttvar: Duration::ZERO,
        cwnd: Bytes(u64::from(cwnd * MSS)),
        ssthresh,
        mss: MSS,
        iss: ISS_A,
        irs: ISS_B,
        peer_window: Bytes(1_000_000),
    };
    Connection::established(T0, &Arc::new(config.clone()), state)
}

/// Microseconds after `T0` at which segments leave until `count` have.
pub(super) fn leave(connection: &mut Connection, from: Instant, count: usize) -> Vec<u64> {
    let mut times = Vec::new();
    let mut now = from;
    loop {
        while let Some(transmit) = connection.poll_transmit(now) {
            assert_eq!(u64::from(transmit.segment.payload), u64::from(MSS));
            times.push(now.since(T0).as_micros());
        }
        super::check(connection);
        if times.len() >= count {
            return times;
        }
        let next = connection.poll_timeout().expect("something is held back");
        assert!(next > now, "after a drain the deadline is later");
        now = next;
        connection.on_timeout(now);
    }
}

fn first_window(config: &Config, rtt_ms: u64) -> Vec<u64> {
    let mut connection = open(config, rtt_ms, 10, Bytes::MAX);
    connection.write(T0, Bytes(u64::from(10 * MSS)), WriteFlags::default());
    leave(&mut connection, T0, 10)
}

pub(super) fn spreading(kind: InitialSpreading) -> Config {
    let mut config = bare();
    config.initial_spreading = kind;
    config.initial_window = InitialWindow::Segments(10);
    config
}

fn every(gap_us: u64) -> Vec<u64> {
    (0..10).map(|index| index * gap_us).collect()
}

#[test]
fn the_first_window_is_spread_over_the_round_trip() {
    let (bounded, variable) = (
        spreading(InitialSpreading::Bounded),
        spreading(InitialSpreading::Variable),
    );
    // A share of 2 ms is less than a jiffy: no spreading.
    assert_eq!(first_window(&bounded, 20), every(0));
    assert_eq!(first_window(&variable, 20), every(0));
    // A jiffy exactly: 4 ms, the last at 36.
    assert_eq!(first_window(&bounded, 40), every(4_000));
    assert_eq!(first_window(&variable, 40), every(4_000));
    assert_eq!(first_window(&bounded, 80), every(4_000));
    assert_eq!(first_window(&variable, 80), every(8_000));
    assert_eq!(first_window(&bounded, 500), every(4_000));
    assert_eq!(first_window(&variable, 500), every(50_000));
    assert_eq!(first_window(&spreading(InitialSpreading::Off), 80), every(0));
    // Without jiffies.
    let mut fine = bounded;
    fine.spreading_jiffy = Duration::ZERO;
    assert_eq!(first_window(&fine, 20), every(2_000));
    // A packet of 1040 bytes takes 832 us at 10 Mbit/s.
    let mut known = spreading(InitialSpreading::Known);
    known.spreading_rate = Rate::from_bps(10_000_000);
    assert_eq!(first_window(&known, 80), every(832));
}

/// The draft, clause by clause, in floating-point nanoseconds: when segment `index` leaves.
fn naive_spreading(config: &Config, rtt_ns: f64, index: u32) -> f64 {
    let InitialWindow::Segments(iw) = config.initial_window else {
        unreachable!("the test sets it");
    };
    let ns = |span: Duration| span.as_nanos() as f64;
    // "q = RTT / IW; if q < 1 jiffy: no spreading"
    let q = (rtt_ns / f64::from(iw)).floor();
    if q < ns(config.spreading_jiffy) {
        return 0.0;
    }
    let t_max = ns(config.spreading_gap);
    let packet = f64::from(MSS + 40) * 8.0 / config.spreading_rate.bps() as f64 * 1e9;
    let gap = match config.initial_spreading {
        InitialSpreading::Off => 0.0,
        InitialSpreading::Variable => q,
        InitialSpreading::Bounded => q.min(t_max),
        InitialSpreading::Known => q.min(t_max).min(packet),
        InitialSpreading::Estimated => unreachable!("its oracle is another"),
    };
    f64::from(index) * gap
}

proptest! {
    #[test]
    fn first_windows_leave_as_the_draft_says(
        kind in 0_usize..4,
        rtt_us in 500_u64..700_000,
        iw in 2_u32..40,
        jiffy in prop::sample::select(vec![0_u64, 1, 4, 10]),
        t_max in 1_u64..12,
        kbps in 500_u64..200_000,
    ) {
        let kinds = [InitialSpreading::Off, InitialSpreading::Variable, InitialSpreading::Bounded, InitialSpreading::Known];
        let mut config = spreading(kinds[kind]);
        config.initial_window = InitialWindow::Segments(iw);
        config.spreading_jiffy = Duration::from_millis(jiffy);
        config.spreading_gap = Duration::from_millis(t_max);
        config.spreading_rate = Rate::from_bps(kbps * 1000);
        let rtt = Duration::from_micros(rtt_us);
        let mut connection = open_after(&config, rtt, iw, Bytes::MAX);
        connection.write(T0, Bytes(u64::from(iw * MSS)), WriteFlags::default());
        let times = leave(&mut connection, T0, iw as usize);
        prop_assert_eq!(times.len(), iw as usize);
        for (index, at) in (0..iw).zip(&times) {
            let naive = naive_spreading(&config, rtt.as_nanos() as f64, index) / 1e3;
            // What leaves is noted in whole microseconds; a gap is rounded to a nanosecond.
            prop_assert!((*at as f64 - naive).abs() <= 1.0 + f64::from(index) * 1e-3, "{} for {}", at, naive);
        }
        // Nothing of it lasts: what is written a round trip later leaves at once.
        let later = T0 + rtt + Duration::from_secs(1);
        prop_assert!(connection.poll_transmit(later).is_none());
    }
}

/// An empty path of 10 Mbit/s and 80 ms: the last ACK of ten packets of 1500 bytes comes after 92, 117.2 or 153.2 ms.
#[test]
fn on_an_empty_path_spreading_costs_its_gaps() {
    let last_ack = |times: &[u64]| {
        let free = times.iter().fold(0, |free, at| free.max(*at) + 1_200);
        free + 80_000
    };
    assert_eq!(
        last_ack(&first_window(&spreading(InitialSpreading::Off), 80)),
        92_000
    );
    assert_eq!(
        last_ack(&first_window(&spreading(InitialSpreading::Bounded), 80)),
        117_200
    );
    assert_eq!(
        last_ack(&first_window(&spreading(InitialSpreading::Variable), 80)),
        153_200
    );
}

#[test]
fn later_writes_of_the_first_window_keep_the_spacing() {
    let mut connection = open(&spreading(InitialSpreading::Bounded), 80, 10, Bytes::MAX);
    connection.write(T0, Bytes(u64::from(3 * MSS)), WriteFlags::default());
    assert_eq!(leave(&mut connection, T0, 3), [0, 4_000, 8_000]);
    let later = T0 + Duration::from_millis(10);
    connection.write(later, Bytes(u64::from(3 * MSS)), WriteFlags::default());
    assert_eq!(leave(&mut connection, later, 3), [12_000, 16_000, 20_000]);
    // The round trip is over.
    let after = T0 + Duration::from_millis(85);
    connection.write(after, Bytes(u64::from(4 * MSS)), WriteFlags::default());
    assert_eq!(leave(&mut connection, after, 4), [85_000; 4]);
}

#[test]
fn after_the_first_window_acks_are_the_clock() {
    let mut connection = open(&spreading(InitialSpreading::Bounded), 80, 10, Bytes::MAX);
    connection.write(T0, Bytes(u64::from(30 * MSS)), WriteFlags::default());
    leave(&mut connection, T0, 10);
    assert!(
        connection.sender.as_ref().expect("it sends").tempo.is_none(),
        "nothing is left of it"
    );
    let now = T0 + Duration::from_millis(81);
    let ack = crate::packet::Segment {
        seq: ISS_B + 1,
        ack: ISS_A + 1 + 2 * MSS,
        window: u16::MAX,
        flags: crate::packet::Flags::ACK,
        overhead: 40,
        ..crate::packet::Segment::default()
    };
    connection.on_segment(now, &ack);
    assert_eq!(leave(&mut connection, now, 3).len(), 3, "a mini-burst");
}

/// Ten segments, SRTT 100 ms: one every 10 ms. Linux: ten at once, then 1.2 or 2 times as fast
/// (docs/design/initial-spreading.md#pacing).
#[test]
fn pacing_spreads_every_window() {
    let mut config = bare();
    config.pacing = Pacing::Full;
    assert_eq!(first_window(&config, 100), every(10_000));
    config.pacing = Pacing::Linux;
    for (ssthresh, gap_us) in [
        (Bytes(2), 100_000.0 / 40.0 / 1.2),
        (Bytes::MAX, 100_000.0 / 40.0 / 2.0),
    ] {
        let mut connection = open(&config, 100, 40, ssthresh);
        connection.write(T0, Bytes(u64::from(40 * MSS)), WriteFlags::default());
        let times = leave(&mut connection, T0, 40);
        assert_eq!(times[..10], [0; 10]);
        let span = (times[39] - times[9]) as f64;
        assert!(
            (span / 30.0 - gap_us).abs() < 1.0,
            "{span} us for 30 gaps of {gap_us}"
        );
    }
}

#[test]
fn a_paced_transfer_loses_nothing_of_its_window() {
    let mut config = bare();
    config.pacing = Pacing::Full;
    let mut connection = open(&config, 100, 10, Bytes(10_000));
    connection.write(T0, Bytes(u64::from(200 * MSS)), WriteFlags::default());
    // A path of 100 ms that answers every segment: rounds of congestion avoidance.
    let mut flying: Vec<(Instant, u32)> = Vec::new();
    let (mut now, mut sent) = (T0, 0);
    while now < T0 + Duration::from_millis(1100) {
        while connection.poll_transmit(now).is_some() {
            sent += 1;
            flying.push((now + Duration::from_millis(100), sent));
        }
        let timer = connection.poll_timeout().expect("it sends");
        let back = flying.first().map_or(Instant::FAR_FUTURE, |ack| ack.0);
        now = timer.min(back);
        if back <= now {
            let (_, upto) = flying.remove(0);
            let ack = crate::packet::Segment {
                seq: ISS_B + 1,
                ack: ISS_A + 1 + upto * MSS,
                window: u16::MAX,
                flags: crate::packet::Flags::ACK,
                overhead: 40,
                ..crate::packet::Segment::default()
            };
            connection.on_segment(now, &ack);
        } else {
            connection.on_timeout(now);
        }
        assert!(flying.len() <= 21, "bursts of one");
    }
    let window = connection.info(now).cwnd.get() / u64::from(MSS);
    assert!(
        (18..=20).contains(&window),
        "one segment a round trip: {window} after ten"
    );
}

/// What a transfer of unlimited data makes of a path of 10 Mbit/s and 40 ms with a large buffer.
struct Course {
    /// Share of the rate used in the last four of twenty seconds.
    used: f64,
    /// Mean wait in the queue in that time, ms.
    wait_ms: f64,
    /// Longest wait of all, ms.
    longest_ms: f64,
    /// How many segments left at one time, and how often.
    groups: std::collections::BTreeMap<usize, usize>,
    /// How often New-CWV held the window for not validated when an acknowledgment came, in the last four seconds.
    nonvalidated: u64,
}

/// With SACK and no loss, or without it where every `lost`th of the segments sent is lost.
fn course(name: &'static str, lost: Option<u32>) -> Course {
    course_with(name, lost, WindowValidation::None)
}

fn course_with(name: &'static str, lost: Option<u32>, validation: WindowValidation) -> Course {
    let mut config = bare();
    (config.congestion_control, config.sack) = (name, lost.is_none());
    config.window_validation = validation;
    config.initial_window = InitialWindow::Segments(10);
    let mut connection = open(&config, 40, 10, Bytes::MAX);
    let transmission = Duration::from_micros(800); // a segment of 1000 bytes
    let (mut now, mut free, mut sent) = (T0, T0, 0_u32);
    let mut arrived = std::collections::BTreeSet::new();
    let mut upto = 0_u32;
    let mut flying: alloc::collections::VecDeque<(Instant, u32)> = alloc::collections::VecDeque::new();
    let (mut waits, mut delivered, mut longest) = (Vec::new(), 0_u64, Duration::ZERO);
    let half = T0 + Duration::from_secs(16);
    let mut groups = std::collections::BTreeMap::new();
    let mut nonvalidated = 0;
    while now < T0 + Duration::from_secs(20) {
        connection.write(now, Bytes(1_000_000), WriteFlags::default());
        let before = sent;
        while let Some(transmit) = connection.poll_transmit(now) {
            sent += 1;
            let number = transmit.segment.seq.distance(ISS_A + 1) as u32 / MSS;
            let wait = free.since(now);
            longest = longest.max(wait);
            if now >= half {
                waits.push(wait.as_secs_f64() * 1e3);
            }
            free = free.max(now) + transmission;
            if lost.is_none_or(|lost| sent % lost != 0) {
                flying.push_back((free + Duration::from_millis(40), number));
            }
        }
        if now >= half && sent > before {
            *groups.entry((sent - before) as usize).or_default() += 1;
        }
        let timer = connection.poll_timeout().expect("it sends");
        let back = flying.front().map_or(Instant::FAR_FUTURE, |ack| ack.0);
        now = timer.min(back);
        if back > now {
            connection.on_timeout(now);
            continue;
        }
        arrived.extend(flying.pop_front().map(|ack| ack.1));
        while arrived.remove(&upto) {
            upto += 1;
        }
        delivered += u64::from(now >= half);
        let ack = crate::packet::Segment {
            seq: ISS_B + 1,
            ack: ISS_A + 1 + upto * MSS,
            window: u16::MAX,
            flags: crate::packet::Flags::ACK,
            overhead: 40,
            ..crate::packet::Segment::default()
        };
        connection.on_segment(now, &ack);
        let sender = connection.sender.as_ref().expect("it sends");
        nonvalidated += u64::from(now >= half && sender.is_nonvalidated());
    }
    Course {
        used: delivered as f64 / 5000.0,
        wait_ms: waits.iter().sum::<f64>() / waits.len().max(1) as f64,
        longest_ms: longest.as_secs_f64() * 1e3,
        groups,
        nonvalidated,
    }
}

/// At 10 Mbit/s a millisecond holds one segment of 1000 bytes: two leave together (Linux `bbr_min_tso_segs`; draft-ietf-ccwg-bbr-04 5.6.3).
#[test]
fn models_of_the_path_send_in_pairs() {
    for name in ["bbr", "bbr3"] {
        let groups = course(name, None).groups;
        std::eprintln!("{name}: {groups:?}");
        let (pairs, all) = (groups[&2], groups.values().sum::<usize>());
        assert!(pairs * 10 >= all * 9, "{name}: {groups:?}");
        assert!(groups.keys().all(|count| *count <= 2), "{name}: {groups:?}");
    }
}

/// 51 segments fill the pipe. Vegas holds two to four more, after it has come down a segment a round trip from what slow start
/// left; BBR probes around none.
#[test]
fn models_of_the_path_fill_it_without_a_queue() {
    let courses = [("vegas", 6.0), ("bbr", 20.0), ("bbr3", 15.0)].map(|(name, most_ms)| {
        let course = course(name, None);
        std::eprintln!(
            "{name}: {:.3} used, mean wait {:.1} ms, longest {:.1} ms",
            course.used,
            course.wait_ms,
            course.longest_ms
        );
        (name, most_ms, course)
    });
    for (name, most_ms, course) in courses {
        assert!(course.used > 0.9, "{name}: {:.3} used", course.used);
        assert!(
            course.wait_ms < most_ms,
            "{name}: mean wait {:.1} ms",
            course.wait_ms
        );
        assert!(
            course.longest_ms < 130.0,
            "{name}: longest wait {:.1} ms",
            course.longest_ms
        );
    }
    let reno = course("reno", None);
    assert!(
        reno.wait_ms > 100.0,
        "without a loss its queue grows: {:.1} ms",
        reno.wait_ms
    );
}

/// A path of 100 ms that answers every segment, on which the application writes 4000 bytes every 150 ms, for ten seconds: the window at
/// the end, in segments.
fn window_of_little_use(change: impl FnOnce(&mut Config)) -> u64 {
    let mut config = Config::profile(Profile::Linux);
    (config.nagle, config.timestamps) = (false, false);
    config.initial_window = InitialWindow::Segments(10);
    change(&mut config);
    let mut connection = open(&config, 100, 10, Bytes::MAX);
    let mut flying: alloc::collections::VecDeque<(Instant, u32)> = alloc::collections::VecDeque::new();
    let (mut now, mut writes, mut sent) = (T0, T0, 0);
    while now < T0 + Duration::from_secs(10) {
        if writes <= now {
            connection.write(now, Bytes(4000), WriteFlags::default());
            writes += Duration::from_millis(150);
        }
        while let Some(transmit) = connection.poll_transmit(now) {
            sent += transmit.segment.payload;
            flying.push_back((now + Duration::from_millis(100), sent));
        }
        super::check(&connection);
        let timer = connection.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        let back = flying.front().map_or(Instant::FAR_FUTURE, |ack| ack.0);
        now = timer.min(back).min(writes);
        if back <= now {
            let (_, upto) = flying.pop_front().expect("it is there");
            let ack = crate::packet::Segment {
                seq: ISS_B + 1,
                ack: ISS_A + 1 + upto,
                window: u16::MAX,
                flags: crate::packet::Flags::ACK,
                overhead: 40,
                ..crate::packet::Segment::default()
            };
            connection.on_segment(now, &ack);
        } else if timer <= now {
            connection.on_timeout(now);
        }
    }
    connection.info(now).cwnd.get() / u64::from(MSS)
}

/// RFC 9438 5.8, RFC 7661 4.3, Linux `tcp_is_cwnd_limited`: four of ten segments are in use, and pacing does not make the window the
/// limit. Linux grows to twice what was in flight in slow start, which is less than ten.
#[test]
fn a_paced_window_does_not_grow_while_the_application_is_the_limit() {
    let paced = [Pacing::Off, Pacing::Linux, Pacing::Full]
        .map(|pacing| window_of_little_use(|config| config.pacing = pacing));
    assert_eq!(
        paced, [10; 3],
        "CUBIC without pacing, paced as Linux does, paced fully"
    );
    let controllers =
        ["dctcp", "prague"].map(|name| window_of_little_use(|config| config.congestion_control = name));
    assert_eq!(controllers, [10; 2], "DCTCP, and Prague, which paces");
    let spread = window_of_little_use(|config| config.initial_spreading = InitialSpreading::Bounded);
    assert_eq!(spread, 10, "the first window spread");
    // What fills the window, pacing or not, is limited by it.
    let much = |pacing| {
        window_of_little_use(|config| {
            config.pacing = pacing;
            config.initial_window = InitialWindow::Segments(2);
        })
    };
    assert!(much(Pacing::Off) >= 4, "{}", much(Pacing::Off));
    assert!(much(Pacing::Full) >= 4, "{}", much(Pacing::Full));
}

/// Nor does a window grow of which the peer's window lets twelve of forty segments be used.
#[test]
fn a_paced_window_does_not_grow_while_the_peer_is_the_limit() {
    for pacing in [Pacing::Off, Pacing::Full] {
        let mut config = bare();
        config.pacing = pacing;
        let mut script = Script::open(&config, 40);
        script.window = 96; // 12,288 bytes
        script.ack(0, &[]);
        let mut sent = script.write(52).len() as u32;
        for acked in 0..=40 {
            if acked > 0 {
                script.now = script.now.max(T0 + Duration::from_millis(100));
                sent += script.ack(acked, &[]).len() as u32;
            }
            while sent < acked + 12 {
                sent += script.timer().1.len() as u32;
            }
        }
        assert_eq!(script.cwnd(), 40_000, "{pacing:?}");
    }
}

/// pipeACK is about half of BBR's window however much there is to send: with New-CWV the window is validated as long as what waits behind
/// the pacer would fill it (RFC 7661 4.3), and the path is used.
#[test]
fn a_model_of_the_path_with_much_to_send_stays_validated() {
    for name in ["bbr", "bbr3"] {
        let course = course_with(name, None, WindowValidation::NewCwv);
        assert!(course.used > 0.9, "{name}: {:.3} used", course.used);
        assert_eq!(course.nonvalidated, 0, "{name}");
    }
}

/// What duplicates stand for counts when they come: counted with the repair, a window's worth would seem to arrive at once, twice
/// as fast as the line is, and the queue would be as long as the model believes the path to be.
#[test]
fn models_of_the_path_know_its_rate_after_a_loss_without_sack() {
    for (name, most_ms) in [("bbr", 20.0), ("bbr3", 15.0)] {
        let course = course(name, Some(499));
        std::eprintln!(
            "{name}: {:.3} used, mean wait {:.1} ms, longest {:.1} ms",
            course.used,
            course.wait_ms,
            course.longest_ms
        );
        assert!(course.used > 0.9, "{name}: {:.3} used", course.used);
        assert!(
            course.wait_ms < most_ms,
            "{name}: mean wait {:.1} ms",
            course.wait_ms
        );
    }
}

/// Ten segments without SACK, of which the first is lost: nine duplicates deliver one each, the acknowledgment of all ten the tenth.
/// Reno, which asks for no rates, counts all of them at the end.
#[test]
fn without_sack_a_duplicate_delivers_a_segment_to_those_who_ask_for_rates() {
    for (name, at_once) in [("bbr", true), ("bbr3", true), ("reno", false)] {
        let mut config = bare();
        (config.congestion_control, config.sack) = (name, false);
        config.initial_window = InitialWindow::Segments(10);
        let mut connection = open(&config, 40, 10, Bytes::MAX);
        connection.write(T0, Bytes(10_000), WriteFlags::default());
        let mut now = T0;
        leave(&mut connection, now, 10);
        let mut delivered = |connection: &mut Connection, upto: u32| {
            now += Duration::from_millis(30);
            let ack = crate::packet::Segment {
                seq: ISS_B + 1,
                ack: ISS_A + 1 + upto * MSS,
                window: u16::MAX,
                flags: crate::packet::Flags::ACK,
                overhead: 40,
                ..crate::packet::Segment::default()
            };
            connection.on_segment(now, &ack);
            while connection.poll_transmit(now).is_some() {}
            let sender = connection.sender.as_ref().expect("it sends");
            sender.recovery.delivered_total()
        };
        for duplicates in 1..=9 {
            let expected = if at_once { duplicates * 1000 } else { 0 };
            assert_eq!(
                delivered(&mut connection, 0),
                expected,
                "{name}: {duplicates} duplicates"
            );
        }
        // One more than segments arrived: the network made it.
        assert_eq!(
            delivered(&mut connection, 0),
            if at_once { 9000 } else { 0 },
            "{name}"
        );
        assert_eq!(delivered(&mut connection, 10), 10_000, "{name}");
    }
}

extern crate std;
