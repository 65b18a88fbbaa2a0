//! Redundant data bundling: the examples of docs/design/thin-streams.md#vectors, and what bundles duplicate.

use super::pair::{End, Fate, ISS_A, ISS_B, Pair};
use super::script::{Script, T0};
use crate::packet::{Flags, Segment};
use crate::rng::Rng;
use crate::tcp::{
    CaState, Config, DelayedAck, EarlyRetransmit, Half, HiddenLoss, Profile, Rdb, TailLossProbe, ThinRule,
    TimerGrid, WindowGrowth, WindowUnit, WindowValidation, WriteFlags,
};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::vec::Vec;

const MSS: u32 = 1460;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn at(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// Unlimited bundling, always thin.
const ALL: Rdb = Rdb {
    thin: ThinRule::Packets(1000),
    max_segments: 0,
    ..Rdb::STANDARD
};

fn config(rdb: Option<Rdb>) -> Config {
    let mut config = Config::profile(Profile::Linux2015);
    config.timer_grid = TimerGrid::Exact; // the cases are worked in times that no clock rounds
    config.congestion_control = "reno";
    config.delayed_ack = DelayedAck::Off;
    config.nagle = false;
    config.timestamps = false;
    config.tail_loss_probe = TailLossProbe::Off;
    config.early_retransmit = EarlyRetransmit::Off;
    config.fack = false;
    config.coalesce_unsent = false;
    config.rdb = rdb;
    config
}

fn pair(config: &Config, rtt: u64, window: u64) -> Pair {
    Pair::established(config, ms(rtt / 2), ms(rtt), window * u64::from(MSS), MSS)
}

/// Stream ranges of the first packets when `bytes` are written every `interval` ms.
fn packets(config: &Config, rtt: u64, bytes: u64, interval: u64, count: u64) -> Vec<(u64, u64)> {
    let mut pair = pair(config, rtt, 20);
    for index in 0..count {
        pair.write_at(at(index * interval), End::A, bytes);
    }
    while pair.now <= at(count * interval) && pair.log.len() < count as usize && pair.step() {
        super::check(&pair.a);
    }
    let data = pair.log.iter().filter(|sent| sent.from == End::A);
    data.map(|sent| (sent.transmit.start, sent.transmit.end))
        .take(count as usize)
        .collect()
}

#[test]
fn four_hundred_bytes_four_times() {
    // [S1], [S1 S2], [S1 S2 S3], [S2 S3 S4].
    let sent = packets(&config(Some(ALL)), 100, 400, 0, 4);
    assert_eq!(sent, [(0, 400), (0, 800), (0, 1200), (400, 1600)]);
    let free: Vec<_> = sent
        .iter()
        .map(|(start, end)| u64::from(MSS) - (end - start))
        .collect();
    assert_eq!(free, [1060, 660, 260, 260]);
}

#[test]
fn a_hundred_bytes_every_ten_milliseconds() {
    let mut rdb = Rdb {
        max_segments: 1,
        ..Rdb::STANDARD
    };
    let one = packets(&config(Some(rdb)), 200, 100, 10, 4);
    assert_eq!(one, [(0, 100), (0, 200), (100, 300), (200, 400)]);
    (rdb.max_segments, rdb.max_payload) = (0, 450);
    let bounded = packets(&config(Some(rdb)), 200, 100, 10, 6);
    assert_eq!(
        bounded,
        [(0, 100), (0, 200), (0, 300), (0, 400), (100, 500), (200, 600)]
    );
}

#[test]
fn the_dynamic_limit_is_the_rtt_over_the_least_interval() {
    // (RTT, least interval, most in flight that is thin): PIF * ITT < RTT.
    for (rtt, least, thin) in [
        (150, 10, 14),
        (35, 10, 3),
        (10, 10, 0),
        (150, 20, 7),
        (100, 10, 9),
    ] {
        let rdb = Rdb {
            thin: ThinRule::Interval {
                min: ms(least),
                smoothed: false,
            },
            ..Rdb::STANDARD
        };
        let mut pair = pair(&config(Some(rdb)), rtt, 100);
        for _ in 0..20 {
            pair.write_at(Instant::ZERO, End::A, 50);
        }
        while pair.now == Instant::ZERO && pair.log.len() < 20 && pair.step() {}
        let bundles = pair
            .log
            .iter()
            .filter(|sent| sent.transmit.segment.payload > 50)
            .count();
        // The first has nothing to carry along, the one with `thin` in flight is the last that does.
        assert_eq!(bundles, thin, "RTT {rtt}, interval {least}");
    }
}

fn open(config: &Config, window: u64) -> Script {
    Script::established(config, ms(100), window * u64::from(MSS), MSS)
}

fn write(script: &mut Script, bytes: u64) {
    script
        .connection
        .write(script.now, Bytes(bytes), WriteFlags::default());
    script.drain();
}

#[test]
fn every_segment_acknowledged_is_no_loss_and_only_new_bytes_count() {
    for (unit, window) in [
        (WindowUnit::Packets, 17 * 1460),
        (WindowUnit::Bytes, 10 * 1460 + 700),
    ] {
        let mut config = config(Some(ALL));
        config.window_unit = unit;
        config.growth = WindowGrowth::Always;
        config.abc_limit = None;
        let mut script = open(&config, 10);
        for _ in 0..7 {
            write(&mut script, 100);
        }
        for end in 1..=7 {
            // What came with each packet but its last hundred bytes is there already.
            let duplicate = [(0, (end - 1) * 100)];
            let blocks = if end > 1 { &duplicate[..] } else { &[] };
            script.at(100).ack_bytes(end * 100, blocks);
        }
        let info = script.connection.info(script.now);
        assert_eq!(
            (info.cwnd.get(), info.ca_state),
            (window, CaState::Open),
            "{unit:?}"
        );
        assert_eq!(
            info.stats.rdb_losses + info.stats.window_reductions + info.stats.undos,
            0
        );
        assert_eq!((info.stats.rdb_packets, info.stats.dsacks), (6, 6));
    }
}

/// Four writes of 200 bytes in one drain and one acknowledgment of all; `alone` writes before, each acknowledged alone.
fn four_at_once(detect: HiddenLoss, unit: WindowUnit, alone: u32, reported: bool) -> Script {
    let mut config = config(Some(Rdb { detect, ..ALL }));
    config.window_unit = unit;
    config.reduce_from_window = unit == WindowUnit::Packets;
    config.growth = WindowGrowth::CwndLimited;
    let mut script = open(&config, 10);
    for count in 1..=alone {
        write(&mut script, 200);
        script.at(100 * u64::from(count)).ack_bytes(count * 200, &[]);
    }
    for _ in 0..4 {
        write(&mut script, 200);
    }
    let base = alone * 200;
    let block = [(base, base + 600)];
    script.ack_bytes(base + 800, if reported { &block } else { &[] });
    script
}

#[test]
fn one_acknowledgment_of_four_bundles() {
    // By numbers alone three segments were lost in their own packets; half of ten segments is left, or two segments at
    // least by RFC 5681 (4).
    for (unit, ssthresh) in [(WindowUnit::Packets, 5), (WindowUnit::Bytes, 2)] {
        let script = four_at_once(HiddenLoss::Original, unit, 0, false);
        let info = script.connection.info(script.now);
        assert_eq!(
            (info.stats.rdb_losses, info.stats.window_reductions),
            (3, 1),
            "{unit:?}"
        );
        assert_eq!(
            (info.ca_state, info.ssthresh.get()),
            (CaState::Cwr, ssthresh * 1460),
            "{unit:?}"
        );
    }
    let losses = |detect, alone, reported| {
        let script = four_at_once(detect, WindowUnit::Packets, alone, reported);
        let stats = *script.connection.stats();
        (stats.rdb_losses, stats.window_reductions)
    };
    assert_eq!(
        losses(HiddenLoss::Original, 0, true),
        (3, 1),
        "it does not listen"
    );
    assert_eq!(
        losses(HiddenLoss::Dsack, 0, true),
        (0, 0),
        "an ACK that was delayed"
    );
    assert_eq!(
        losses(HiddenLoss::Dsack, 0, false),
        (0, 0),
        "nothing is known of the receiver"
    );
    assert_eq!(
        losses(HiddenLoss::Dsack, 3, false),
        (3, 1),
        "it acknowledges every segment"
    );
    assert_eq!(losses(HiddenLoss::Ignored, 3, false), (0, 0));
}

#[test]
fn what_is_not_bundled() {
    let starts = |config: &Config, writes: &[u64], close: bool| {
        let mut script = open(config, 10);
        let mut starts = Vec::new();
        for (index, bytes) in writes.iter().enumerate() {
            script
                .connection
                .write(script.now, Bytes(*bytes), WriteFlags::default());
            if close && index + 1 == writes.len() {
                let now = script.now;
                script.connection.shutdown(now, Half::Write);
            }
            starts.extend(
                script
                    .drain()
                    .iter()
                    .map(|segment| (segment.seq - (ISS_A + 1).0).0),
            );
        }
        starts
    };
    assert_eq!(starts(&config(Some(ALL)), &[100, 100], false), [0, 0]);
    let mut along = config(Some(ALL));
    along.lone_fin = false;
    assert_eq!(starts(&along, &[100, 100], true), [0, 100], "with a FIN");
    along.lone_fin = true;
    assert_eq!(starts(&along, &[100, 100], true), [0, 0, 200], "before a FIN");
    assert_eq!(
        starts(&config(Some(ALL)), &[1400, 100], false),
        [0, 1400],
        "no room"
    );
    let two = Rdb {
        thin: ThinRule::Packets(2),
        ..ALL
    };
    assert_eq!(
        starts(&config(Some(two)), &[100, 100, 100], false),
        [0, 0, 200],
        "two are in flight"
    );
    // Retransmissions carry nothing along.
    let mut script = open(&config(Some(ALL)), 10);
    write(&mut script, 100);
    let at = script.connection.poll_timeout().expect("the RTO runs");
    script.now = at;
    script.connection.on_timeout(at);
    assert_eq!(script.drain()[0].payload, 100);
    // Nor does the next segment carry along what was just sent again.
    script
        .connection
        .write(script.now, Bytes(100), WriteFlags::default());
    script.at(400).ack_bytes_quietly(50, &[]);
    assert!(script.drain().iter().all(|segment| segment.payload <= 100));
}

/// A mean over 256 segments: one loss is 0.39 %, less than one in 200, and of one that lies a thousand segments back 0.008 % are left. So a
/// loss in a thousand segments is never enough, and one in sixty always is.
#[test]
fn one_loss_in_a_thousand_segments_is_no_reason_to_bundle() {
    let bundles = |lost: u64| {
        let rdb = Rdb {
            min_loss: true,
            ..ALL
        };
        let mut pair = pair(&config(Some(rdb)), 100, 30);
        let mut sent = 0;
        pair.decide = Box::new(move |one, _| {
            sent += u64::from(one.from == End::A);
            match one.from == End::A && sent % lost == 0 {
                true => Fate::Drop,
                false => Fate::Deliver,
            }
        });
        for index in 0..4500 {
            pair.write_at(at(index * 20), End::A, 100);
        }
        while pair.now < at(4500 * 20 + 2000) && pair.step() {}
        assert_eq!(pair.taken, 450_000);
        pair.a.stats().rdb_packets
    };
    assert_eq!(bundles(1000), 0);
    let often = bundles(60);
    assert!(often > 4000, "{often}");
}

#[test]
fn protections_stop_bundling() {
    let count = |rdb: Rdb, window: u64, interval: u64| {
        let mut pair = pair(&config(Some(rdb)), 100, window);
        for index in 0..200 {
            pair.write_at(at(index * interval), End::A, 100);
        }
        while pair.now < at(200 * interval + 500) && pair.step() {}
        assert_eq!(pair.taken, 20_000);
        pair.a.stats().rdb_packets
    };
    assert!(count(ALL, 30, 20) > 190);
    // A packet with k old segments has 140 + 100 k bytes, 100 k of them redundant: one in seven and not more than half.
    let budget = Rdb { budget: 20, ..ALL };
    let few = count(budget, 30, 20);
    assert!((10..40).contains(&few), "{few}");
    assert_eq!(count(Rdb { spaced: true, ..ALL }, 60, 5), 0, "faster than 10 ms");
    assert!(count(Rdb { spaced: true, ..ALL }, 60, 12) > 150);
    assert_eq!(
        count(
            Rdb {
                min_loss: true,
                ..ALL
            },
            30,
            20
        ),
        0,
        "nothing was lost"
    );
    assert_eq!(
        count(
            Rdb {
                tfrc_bound: true,
                ..ALL
            },
            60,
            5
        ),
        0,
        "faster than 10 ms"
    );
    assert!(
        count(
            Rdb {
                tfrc_bound: true,
                ..ALL
            },
            60,
            12
        ) > 190
    );
    // With room for five segments, and five in flight, the redundant bytes of a segment have none.
    let mut tight = config(Some(Rdb { charge: true, ..ALL }));
    tight.window_unit = WindowUnit::Packets;
    tight.growth = WindowGrowth::CwndLimited;
    let mut script = open(&tight, 3);
    for _ in 0..3 {
        write(&mut script, 100);
    }
    assert_eq!(
        script.connection.stats().rdb_packets,
        1,
        "the third would need 300 bytes beside three segments"
    );
}

/// Fifteen writes 5 ms apart after a pause of ten seconds are not spaced for that: it counts as eight times the mean before it, which rises
/// from 5 to 9.4 ms.
#[test]
fn a_pause_does_not_space_what_follows_it() {
    let of = |rdb: Rdb| {
        let mut config = config(Some(rdb));
        config.window_validation = WindowValidation::None; // nothing waits for the window after the pause
        let mut pair = pair(&config, 100, 60);
        for index in 0..30 {
            pair.write_at(at(index * 5), End::A, 100);
        }
        for index in 0..15 {
            pair.write_at(at(10_000 + index * 5), End::A, 100);
        }
        while pair.now < at(12_000) && pair.step() {}
        assert_eq!(pair.taken, 4500);
        pair.a.stats().rdb_packets
    };
    assert!(of(ALL) > 40);
    assert_eq!(of(Rdb { spaced: true, ..ALL }), 0);
    assert_eq!(
        of(Rdb {
            tfrc_bound: true,
            ..ALL
        }),
        0
    );
}

/// Two segments that leave together make the mean interval nothing; a write every 30 ms after them is spaced all the same.
#[test]
fn two_segments_at_once_are_not_the_interval_for_good() {
    let rdb = Rdb { spaced: true, ..ALL };
    let mut pair = pair(&config(Some(rdb)), 100, 60);
    pair.write_at(at(0), End::A, 100);
    pair.write_at(at(0), End::A, 100);
    for index in 1..100 {
        pair.write_at(at(index * 30), End::A, 100);
    }
    while pair.now < at(4000) && pair.step() {}
    let bundles = pair.a.stats().rdb_packets;
    assert!(bundles > 60, "{bundles}");
}

/// A probe in vain is no loss: every acknowledgment is 100 ms late, beyond the probe's timeout of about two RTTs of 40 ms, until SRTT has
/// followed.
#[test]
fn probes_in_vain_are_no_losses() {
    let rdb = Rdb {
        min_loss: true,
        ..ALL
    };
    let mut config = config(Some(rdb));
    config.tail_loss_probe = TailLossProbe::Rfc8985;
    config.max_ack_delay = Some(ms(0));
    let mut pair = pair(&config, 40, 30);
    // Every acknowledgment is 100 ms late.
    pair.decide = Box::new(|sent, _| match sent.from {
        End::A => Fate::Deliver,
        End::B => Fate::Delay(ms(100)),
    });
    for index in 0..50 {
        pair.write_at(at(index * 1000), End::A, 100);
        pair.write_at(at(index * 1000 + 5), End::A, 100);
    }
    while pair.now < at(50_000) && pair.step() {}
    let stats = pair.a.stats();
    assert!(stats.probes > 0, "{stats:?}");
    assert_eq!(stats.rdb_packets, 0, "nothing was lost: {stats:?}");
}

/// What arrives twice is acknowledged at once: bundles do not show that a receiver acknowledges every segment (digest in
/// docs/design/thin-streams.md#dsack). Its ACK of the first segment, which came alone, waits for the second.
#[test]
fn acknowledgments_of_bundles_show_nothing_about_the_receiver() {
    let mut config = config(Some(Rdb {
        max_segments: 1,
        ..ALL
    }));
    config.dsack = false;
    config.delayed_ack = DelayedAck::Standard { timeout: ms(200) };
    let mut pair = pair(&config, 100, 20);
    for burst in 0..5 {
        for index in 0..6 {
            pair.write_at(at(burst * 2000 + index * 30), End::A, 120);
        }
    }
    while pair.now < at(12_000) && pair.step() {}
    let stats = pair.a.stats();
    assert!(stats.rdb_packets >= 20, "{stats:?}");
    assert_eq!((stats.rdb_losses, stats.window_reductions), (0, 0));
}

/// Interval 30, RTT 150: the 11th write, of 300, is lost, and so is the 17th, of 480, which left when the reduction for the first began.
#[test]
fn a_hidden_loss_of_the_next_window_is_another() {
    let reductions = |detect: HiddenLoss| {
        let mut pair = pair(
            &config(Some(Rdb {
                detect,
                max_segments: 1,
                ..ALL
            })),
            150,
            100,
        );
        pair.decide = Box::new(
            |sent, index| match sent.from == End::A && matches!(index, 10 | 16) {
                true => Fate::Drop,
                false => Fate::Deliver,
            },
        );
        for index in 0..40 {
            pair.write_at(at(index * 30), End::A, 100);
        }
        while pair.now < at(3000) && pair.step() {}
        let stats = pair.a.stats();
        (stats.rdb_losses, stats.window_reductions)
    };
    assert_eq!(reductions(HiddenLoss::Dsack), (2, 2));
    assert_eq!(reductions(HiddenLoss::Original), (2, 1), "Linux's state alone");
}

/// ACK latency of segments 10 and 11 and 12 when `lost` segments from the tenth on are lost once; ITT 30, RTT 150.
fn latencies(config: &Config, lost: u64) -> [u64; 3] {
    let mut pair = pair(config, 150, 100);
    pair.decide = Box::new(move |sent, index| {
        let fresh = sent.from == End::A && (10..10 + lost).contains(&(index as u64));
        if fresh { Fate::Drop } else { Fate::Deliver }
    });
    for index in 0..40 {
        pair.write_at(at(index * 30), End::A, 120);
    }
    let mut acked = [0; 40];
    while pair.now < at(4000) && pair.step() {
        super::check(&pair.a);
        for (index, acked) in acked.iter_mut().enumerate() {
            if *acked == 0 && pair.a.acked() >= 120 * (index as u64 + 1) {
                *acked = pair.now.since(at(30 * index as u64)).as_millis();
                assert_eq!(pair.now.as_nanos() % 500_000, 0, "to half a millisecond");
            }
        }
    }
    assert_eq!(pair.taken, 40 * 120);
    [acked[10], acked[11], acked[12]]
}

#[test]
fn a_lost_segment_of_a_thin_stream() {
    let one = Rdb {
        max_segments: 1,
        ..Rdb::STANDARD
    };
    for rdb in [one, ALL] {
        assert_eq!(
            latencies(&config(Some(rdb)), 1),
            [180, 150, 150],
            "one loss costs one interval"
        );
    }
    assert_eq!(latencies(&config(Some(ALL)), 2), [210, 180, 150]);
    // One segment is not enough for two losses: counting SACKed segments as Linux, 240 after the first was sent.
    assert_eq!(latencies(&config(Some(one)), 2)[0], 390);
    let mut rfc = config(Some(one));
    rfc.window_unit = WindowUnit::Bytes;
    assert_eq!(latencies(&rfc, 2)[0], 420, "counting duplicates");
    // Without bundling.
    assert_eq!(latencies(&config(None), 1)[0], 390);
    let mut thin = config(None);
    thin.thin_dupack = true;
    assert_eq!(latencies(&thin, 1)[0], 390, "six segments are out");
    let mut rack = config(None);
    rack.rack = true;
    // 187.5 after the first was sent, and an RTT.
    assert_eq!(latencies(&rack, 1)[0], 337);
}

#[test]
fn thin_dupack_repairs_on_the_first_duplicate_and_rack_takes_its_place() {
    // Three segments are out of a window that was reduced before; the second is acknowledged out of order.
    let sent = |thin: bool, rack: bool| {
        let mut config = config(None);
        (config.thin_dupack, config.rack) = (thin, rack);
        let mut script = open(&config, 10);
        let sender = script.connection.sender.as_mut().expect("there is one");
        let window = sender.cc.window();
        sender.cc.set_window(T0, window, window);
        for _ in 0..3 {
            write(&mut script, 100);
        }
        script.at(100).ack_bytes_quietly(0, &[(100, 200)]);
        script.drain().len()
    };
    assert_eq!((sent(false, false), sent(true, false)), (0, 1));
    assert_eq!(
        (sent(false, true), sent(true, true)),
        (0, 0),
        "RACK waits for its window"
    );
}

#[test]
fn the_first_six_timeouts_of_a_thin_stream_do_not_back_off() {
    for thin in [false, true] {
        let mut config = config(None);
        config.thin_linear = thin;
        let mut script = open(&config, 10);
        write(&mut script, 100);
        let mut before = 0;
        let waits: Vec<u64> = (0..8)
            .map(|_| {
                let (at, _) = script.timer();
                at - core::mem::replace(&mut before, at)
            })
            .collect();
        let expected: [u64; 8] = if thin {
            [300, 300, 300, 300, 300, 300, 300, 600]
        } else {
            [300, 600, 1200, 2400, 4800, 9600, 19200, 38400]
        };
        assert_eq!(waits, expected);
    }
}

/// Linux `tcp_retransmit_timer`: only while the connection is established. We close, or the peer does.
#[test]
fn timeouts_of_a_thin_stream_that_closes_back_off() {
    for we in [true, false] {
        let mut config = config(None);
        config.thin_linear = true;
        let mut script = open(&config, 10);
        write(&mut script, 100);
        if we {
            script.connection.shutdown(script.now, Half::Write);
        } else {
            let fin = Segment {
                seq: ISS_B + 1,
                ack: ISS_A + 1,
                window: 500,
                flags: Flags::ACK.with(Flags::FIN),
                overhead: 40,
                ..Segment::default()
            };
            script.connection.on_segment(script.now, &fin);
        }
        script.drain();
        let times: [u64; 4] = core::array::from_fn(|_| script.timer().0);
        assert_eq!(times, [300, 900, 2100, 4500], "we close: {we}");
    }
}

/// D-SACKs that bundles cause are invisible to RACK, undo and the probe (docs/design/endpoint.md#rdb-dsack).
#[test]
fn duplicates_of_bundles_change_nothing() {
    let mut config = config(Some(Rdb {
        max_segments: 1,
        ..Rdb::STANDARD
    }));
    config.rack = true;
    config.undo = true;
    config.tail_loss_probe = TailLossProbe::Rfc8985;
    let mut pair = pair(&config, 150, 100);
    let mut rng = Rng::from_seed(3);
    pair.decide = Box::new(move |sent, _| {
        if sent.from == End::A && rng.below(10) == 0 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    for index in 0..400 {
        pair.write_at(at(index * 30), End::A, 120);
    }
    let mut deepest = Duration::ZERO;
    while pair.now < at(120_000) && pair.taken < 400 * 120 && pair.step() {
        super::check(&pair.a);
        let sender = pair.a.sender.as_ref().expect("there is one");
        let rack = sender.recovery.rack().expect("it is on");
        deepest = deepest.max(rack.window_for_tests(ms(100)));
    }
    let stats = *pair.a.stats();
    assert_eq!(pair.taken, 400 * 120);
    assert!(stats.dsacks > 200 && stats.rdb_losses > 15, "{stats:?}");
    assert_eq!(deepest, ms(25), "the reordering window stays a quarter");
    assert_eq!((stats.undos, stats.spurious_probes), (0, 0));
}

/// Section 12, RDB x New-CWV: half of what was used, and what was presumed lost does not count.
#[test]
fn hidden_losses_of_a_window_that_is_not_validated() {
    let mut config = config(Some(Rdb {
        detect: HiddenLoss::Original,
        ..ALL
    }));
    config.window_validation = WindowValidation::NewCwvUnpaced;
    config.window_unit = WindowUnit::Bytes;
    config.growth = WindowGrowth::CwndLimited;
    let mut script = open(&config, 40);
    // 4000 bytes of 58,400 are used in a round trip.
    write(&mut script, 4000);
    script.at(100).ack_bytes(4000, &[]);
    for _ in 0..4 {
        write(&mut script, 200);
    }
    script.at(200).ack_bytes(4800, &[]);
    let info = script.connection.info(script.now);
    assert_eq!((info.stats.rdb_losses, info.ca_state), (3, CaState::Cwr));
    assert_eq!(info.ssthresh.get(), 2000, "max(pipeACK, flight) / 2");
    write(&mut script, 100);
    script.at(300).ack_bytes(4900, &[]);
    let info = script.connection.info(script.now);
    assert_eq!(info.ca_state, CaState::Open);
    assert_eq!(
        (info.cwnd.get(), info.ssthresh.get()),
        (1700, 1700),
        "(4000 - 600) / 2"
    );
}
