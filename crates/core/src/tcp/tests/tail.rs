//! RTO restart, the probe and its restart: the rules and single cases of docs/design/tail-loss.md. Its tables are in `tables`.

use super::pair::{End, Fate, Pair};
use super::script::{Script, T0, bare};
use crate::tcp::{
    Config, DelayedAck, EarlyRetransmit, Profile, RttEstimator, Stats, TailLossProbe, Timer, TimerGrid,
};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::vec::Vec;

const MSS: u64 = 1000;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn at(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// The four mechanisms of docs/design/tail-loss.md#table-delayed that are compared here.
#[derive(Clone, Copy, Debug, PartialEq)]
enum With {
    Nothing,
    RtoRestart,
    Probe,
    ProbeRestart,
}

const ALL: [With; 4] = [With::Nothing, With::RtoRestart, With::Probe, With::ProbeRestart];

fn config(with: With, delayed: u64) -> Config {
    let mut config = Config::profile(Profile::Linux2015);
    // The cases are worked in times that no clock rounds.
    config.rto.estimator = RttEstimator::Rfc6298;
    config.timer_grid = TimerGrid::Exact;
    config.timestamps = false;
    config.nagle = false;
    config.early_retransmit = EarlyRetransmit::Immediate;
    config.delayed_ack = match delayed {
        0 => DelayedAck::Off,
        delay => DelayedAck::Standard { timeout: ms(delay) },
    };
    config.tail_loss_probe = match with {
        With::Nothing | With::RtoRestart => TailLossProbe::Off,
        With::Probe | With::ProbeRestart => TailLossProbe::Draft,
    };
    config.rto_restart = with == With::RtoRestart;
    config.tail_loss_probe_restart = with == With::ProbeRestart;
    config
}

/// The probe of the draft, or RACK-TLP; the timeout is a second at least.
fn probing(base: TailLossProbe) -> Config {
    let mut config = config(With::Probe, 0);
    config.tail_loss_probe = base;
    config.rack = base == TailLossProbe::Rfc8985;
    config.rto.min = ms(1000);
    config
}

/// Two ends 50 ms apart, with SRTT 100 ms and a window of ten segments.
fn path(config: &Config) -> Pair {
    Pair::established(config, ms(50), ms(100), 10 * MSS, MSS as u32)
}

/// Times (ms) of transmissions of A that carry nothing new, and A's counters.
fn again(pair: &mut Pair, until: u64) -> (Vec<u64>, Stats) {
    while pair.now < at(until) && pair.step() {
        super::check(&pair.a);
    }
    let mut highest = 0;
    let mut times = Vec::new();
    for sent in pair.log.iter().filter(|sent| sent.from == End::A) {
        if sent.transmit.end <= highest && sent.transmit.segment.payload > 0 {
            times.push(sent.at.as_nanos() / 1_000_000);
        }
        highest = highest.max(sent.transmit.end);
    }
    (times, *pair.a.stats())
}

#[test]
fn nine_segments_and_a_delayed_acknowledgment_without_loss() {
    // ACK 8 comes at 100 and RTO restart sets the timer for 300; ACK 9 comes at 300 too: arrivals first. One millisecond
    // more on the way back, and it alone sends in vain.
    for (extra, spurious) in [(0, 0), (1, 1)] {
        for with in ALL {
            let mut pair = path(&config(with, 200));
            pair.decide = Box::new(move |sent, _| {
                let last = sent.from == End::B && sent.at > at(200);
                if last {
                    Fate::Delay(ms(extra))
                } else {
                    Fate::Deliver
                }
            });
            pair.write_at(Instant::ZERO, End::A, 9 * MSS);
            let (times, stats) = again(&mut pair, 2000);
            let expected = if with == With::RtoRestart { spurious } else { 0 };
            assert_eq!(times.len(), expected, "{with:?}, {extra} ms: {times:?}");
            assert_eq!(stats.timeouts as usize, expected);
        }
    }
}

#[test]
fn two_late_acknowledgments_without_loss() {
    // ACKs 9 and 10 take 110 ms more and come at 210: the restarted probe leaves at 200, is reported as redundant at 300, and
    // the window stays. With 90 ms more nobody sends anything.
    for (extra, probed) in [(110, true), (90, false)] {
        for with in ALL {
            let mut pair = path(&config(with, 0));
            pair.decide = Box::new(move |sent, index| {
                let late = sent.from == End::B && (8..10).contains(&index);
                if late {
                    Fate::Delay(ms(extra))
                } else {
                    Fate::Deliver
                }
            });
            pair.write_at(Instant::ZERO, End::A, 10 * MSS);
            let (times, stats) = again(&mut pair, 2000);
            let expected: &[u64] = if probed && with == With::ProbeRestart {
                &[200]
            } else {
                &[]
            };
            assert_eq!(times, expected, "{with:?}, {extra} ms");
            assert_eq!(stats.spurious_probes as usize, expected.len());
            assert_eq!((stats.window_reductions, stats.timeouts), (0, 0));
        }
    }
}

#[test]
fn small_segments_behind_a_delayed_acknowledgment() {
    // Two writes of 120 bytes at 0 and 5, RTT 40; the receiver waits 200 ms for a second full segment. Every probe is in
    // vain.
    let probe = |with: With, base: TailLossProbe| {
        let mut config = config(with, 200);
        config.tail_loss_probe = base;
        let mut pair = Pair::established(&config, ms(20), ms(40), 10 * MSS, MSS as u32);
        // An acknowledgment of a full segment is what this receiver waits for.
        pair.b
            .as_mut()
            .expect("it is open")
            .receive
            .acking
            .measure::<false>(
                &config,
                &crate::packet::Segment {
                    payload: MSS as u32,
                    ..crate::packet::Segment::default()
                },
            );
        for when in [0, 5] {
            pair.write_at(at(when), End::A, 120);
        }
        let (times, stats) = again(&mut pair, 2000);
        assert_eq!(stats.spurious_probes, 1, "{with:?}");
        times
    };
    assert_eq!(probe(With::Probe, TailLossProbe::Draft), [85]);
    assert_eq!(probe(With::ProbeRestart, TailLossProbe::Draft), [80]);
    assert_eq!(probe(With::Probe, TailLossProbe::Rfc8985), [85]);
}

#[test]
fn a_thin_stream_whose_acknowledgments_stall() {
    // 30 ms between segments, RTT 150. From the head on no acknowledgment comes: the restarted probe leaves 300 after the
    // head was sent; the plain one is pushed on by every write until the RTO, 470 after it.
    for (with, expected) in [(With::Probe, 470), (With::ProbeRestart, 300)] {
        for single in [false, true] {
            let mut pair = Pair::established(&config(with, 0), ms(75), ms(150), 100 * MSS, MSS as u32);
            pair.decide = Box::new(move |sent, index| {
                let lost = if single { index == 10 } else { index >= 10 };
                if sent.from == End::B && lost {
                    Fate::Drop
                } else {
                    Fate::Deliver
                }
            });
            for index in 0..200 {
                pair.write_at(at(30 * index), End::A, 120);
            }
            while pair.now < at(1500) && pair.a.stats().probes == 0 && pair.step() {}
            let sent = pair.a.stats().probes > 0;
            assert_eq!(sent, !single, "{with:?}");
            if !single {
                // The head is segment 10, sent at 300.
                assert_eq!(pair.now, at(300 + expected), "{with:?}");
            }
        }
    }
}

#[test]
fn one_segment_at_a_time_leaves_nothing_to_restart() {
    for with in [With::Nothing, With::RtoRestart] {
        let mut pair = path(&config(with, 0));
        for index in 0..20 {
            pair.write_at(at(150 * index), End::A, 120);
        }
        while pair.now < at(3000) && pair.step() {
            if let Some(timer) = pair.a.poll_timeout() {
                let begun = Instant::from_nanos(pair.now.as_nanos() / 150_000_000 * 150_000_000);
                assert!(timer.since(begun) == ms(300), "{timer:?} at {:?}", pair.now);
            }
        }
        assert_eq!(pair.a.stats().timeouts, 0);
    }
}

/// When the RTO of a connection with `out` segments out and `unsent` waiting is due after an ACK at 100 ms of the segment
/// before.
fn restarted(out: u32, unsent: u32) -> u64 {
    let mut config = bare();
    config.rto_restart = true;
    let mut script = Script::open(&config, out + 1);
    script.window = 0; // what is beyond the window of the peer stays unsent
    script.write(out + 1);
    script.ack_bytes_quietly(0, &[]);
    script.connection.write(
        script.now,
        Bytes(u64::from(unsent) * MSS),
        crate::tcp::WriteFlags::default(),
    );
    script.window = ((u64::from(out) * MSS).div_ceil(128)) as u16;
    script.at(100).ack_bytes_quietly(MSS as u32, &[]);
    script.drain();
    assert_eq!(script.connection.timer(), Some(Timer::Rto));
    let timer = script.connection.poll_timeout().expect("it runs");
    timer.since(T0).as_millis()
}

#[test]
fn fewer_than_four_segments_outstanding_and_unsent() {
    assert_eq!(restarted(3, 0), 1000, "1000 - 100 after 100");
    assert_eq!(restarted(4, 0), 1100);
    assert_eq!(restarted(1, 3), 1100);
    assert_eq!(restarted(1, 2), 1000);
}

#[test]
fn an_age_beyond_the_timeout_is_not_subtracted() {
    // RFC 7765 step 3b: the earliest segment is older than the RTO; the full RTO runs.
    let mut config = bare();
    config.rto_restart = true;
    let mut script = Script::open(&config, 2);
    script.write(2);
    // No timer was run: the ACK comes after 1,200 ms.
    script.at(1200).ack_bytes_quietly(MSS as u32, &[]);
    script.drain();
    let rto = script.connection.info(script.now).rto;
    assert!(rto > ms(1200), "the late sample counts: {rto:?}");
    let timer = script.connection.poll_timeout().expect("it runs");
    assert_eq!(timer, T0 + rto, "its age is below the new RTO");
}

/// The probe timer after an ACK of the first of `out + 1` segments that left together `age` ms before; no timer was run.
fn probe_after(config: &Config, rtt: u64, age: u64, out: u32) -> Duration {
    let mut script = Script::established(config, ms(rtt), 10 * MSS, MSS as u32);
    script.write(out + 1);
    script.at(age).ack_bytes_quietly(MSS as u32, &[]);
    script.drain();
    assert_eq!(script.connection.timer(), Some(Timer::Pto));
    script
        .connection
        .poll_timeout()
        .expect("it runs")
        .since(script.now)
}

#[test]
fn the_probe_timeout_has_a_floor_and_an_end() {
    let mut draft = config(With::Probe, 0);
    draft.rto.min = ms(1000);
    // RTT 1 ms and two out: 10, not 2.
    let mut pair = Pair::established(&draft, Duration::from_micros(500), ms(1), 10 * MSS, MSS as u32);
    pair.write_at(Instant::ZERO, End::A, 2 * MSS);
    pair.step();
    assert_eq!(pair.a.poll_timeout(), Some(at(10)));
    // RTT 100, one out, an RTO of a second: 1.5 * 100 + 200.
    let mut pair = path(&draft);
    pair.write_at(Instant::ZERO, End::A, MSS);
    pair.step();
    assert_eq!(pair.a.poll_timeout(), Some(at(350)));
    // Restart: SRTT 4 (a sample of 8 counts for an eighth: 4.5), age 8: 9 - 8 = 1, and the floor.
    let restart = config(With::ProbeRestart, 0);
    assert_eq!(probe_after(&restart, 4, 8, 2), ms(10));
    // An age of 24 beyond 2 * SRTT = 2 * 6.5: the whole base.
    assert_eq!(probe_after(&restart, 4, 24, 2), ms(13));
}

#[test]
fn a_restart_for_few_segments_only() {
    let mut config = config(With::ProbeRestart, 0);
    assert_eq!(probe_after(&config, 100, 100, 5), ms(100));
    config.probe_restart_threshold = Some(4);
    assert_eq!(probe_after(&config, 100, 100, 5), ms(200));
    assert_eq!(probe_after(&config, 100, 100, 3), ms(100));
}

#[test]
fn a_probe_with_new_data_leaves_the_window_alone() {
    // The window is full with ten; the probe is the eleventh.
    let mut pair = path(&config(With::Probe, 0));
    pair.lose(End::B, 0..usize::MAX);
    pair.write_at(Instant::ZERO, End::A, 40 * MSS);
    while pair.a.stats().probes == 0 && pair.step() {}
    let info = pair.a.info(pair.now);
    let last = pair
        .log
        .iter()
        .rfind(|sent| sent.from == End::A)
        .expect("it was sent");
    assert_eq!((pair.now, last.transmit.start), (at(200), 10 * MSS));
    assert_eq!((info.cwnd.get(), info.flight.get()), (10 * MSS, 11 * MSS));
    assert_eq!((info.stats.retransmits, info.stats.new_probes), (0, 1));
}

#[test]
fn a_probe_when_only_acknowledgments_were_lost() {
    for base in [TailLossProbe::Draft, TailLossProbe::Rfc8985] {
        let mut config = config(With::Probe, 0);
        config.tail_loss_probe = base;
        config.rack = base == TailLossProbe::Rfc8985;
        let mut pair = path(&config);
        pair.lose(End::B, 0..10);
        pair.write_at(Instant::ZERO, End::A, 10 * MSS);
        let (times, stats) = again(&mut pair, 1000);
        assert_eq!(times, [200], "{base:?}");
        assert_eq!(
            (stats.spurious_probes, stats.window_reductions, stats.timeouts),
            (1, 0, 0)
        );
    }
}

#[test]
fn a_probe_that_repaired_a_loss_costs_one_reduction_once_more_is_acknowledged() {
    for base in [TailLossProbe::Draft, TailLossProbe::Rfc8985] {
        let mut pair = path(&probing(base));
        pair.lose(End::A, 9..10);
        pair.write_at(Instant::ZERO, End::A, 10 * MSS);
        let (_, stats) = again(&mut pair, 1000);
        assert_eq!(
            (stats.probes, stats.window_reductions, stats.timeouts),
            (1, 0, 0),
            "not yet"
        );
        pair.write_at(at(1100), End::A, 5 * MSS);
        let (_, stats) = again(&mut pair, 1500);
        assert_eq!(
            (stats.window_reductions, stats.timeouts, stats.recoveries),
            (1, 0, 0),
            "{base:?}"
        );
    }
}

/// RFC 8985 7.1: fast recovery forgets the probe. 9 and 10 are lost; the probe, sent as 10 at 300, is SACKed, and 9 repaired. What is
/// acknowledged later says nothing about the probe any more.
#[test]
fn the_recovery_that_a_probe_began_is_the_only_answer_to_the_loss() {
    for base in [TailLossProbe::Draft, TailLossProbe::Rfc8985] {
        let mut pair = path(&probing(base));
        pair.lose(End::A, 8..10);
        pair.write_at(Instant::ZERO, End::A, 10 * MSS);
        pair.write_at(at(1100), End::A, 5 * MSS);
        let (_, stats) = again(&mut pair, 1100);
        assert_eq!((stats.probes, stats.recoveries), (1, 1), "{base:?}");
        assert_eq!(pair.a.timer(), Some(Timer::Pto), "the next probe: {base:?}");
        let (_, stats) = again(&mut pair, 2000);
        assert_eq!(
            (stats.recoveries, stats.window_reductions, stats.timeouts),
            (1, 0, 0),
            "{base:?}"
        );
    }
}

/// A reduction for a mark is no recovery from a loss: RFC 8985 7.2 sets the probe timer, and RFC 7765 counts from the first segment out.
#[test]
fn a_reduction_for_a_mark_keeps_probe_and_restart() {
    let timer = |base: TailLossProbe, restart: bool| {
        let mut config = bare();
        config.ecn = true.into();
        config.tail_loss_probe = base;
        config.rto_restart = restart;
        let mut script = Script::open(&config, 4);
        script.write(4);
        script.at(100).ack_marked_quietly(2 * MSS as u32);
        script.drain();
        assert_eq!(script.connection.stats().window_reductions, 1);
        let due = script.connection.poll_timeout().expect("it runs");
        (script.connection.timer(), due.since(T0).as_millis())
    };
    assert_eq!(timer(TailLossProbe::Rfc8985, false), (Some(Timer::Pto), 300));
    assert_eq!(
        timer(TailLossProbe::Draft, false),
        (Some(Timer::Rto), 1100),
        "its probe waits for the open state"
    );
    assert_eq!(timer(TailLossProbe::Off, true), (Some(Timer::Rto), 1000));
}

/// RFC 8985 7.3: SRTT is 100 ms, and the RTT has grown to 600. The probe of the first write, at 2 * 100 + 200, makes its acknowledgment no
/// sample (RFC 6298 3); the second write has none, so that its acknowledgment is one.
#[test]
fn no_probe_before_a_sample_that_is_younger_than_the_last() {
    for (needed, probes) in [(true, [1, 1, 2]), (false, [1, 2, 3])] {
        let mut config = Config::profile(Profile::Rfc);
        config.timestamps = false;
        config.nagle = false;
        config.delayed_ack = DelayedAck::Off;
        config.probe_needs_sample = needed;
        let mut pair = Pair::established(&config, ms(300), ms(100), 10 * MSS, MSS as u32);
        for (write, probes) in (0..).zip(probes) {
            pair.write_at(at(2000 * write), End::A, MSS);
            let (_, stats) = again(&mut pair, 2000 * write + 1900);
            assert_eq!((stats.probes, stats.timeouts), (probes, 0), "write {write}");
        }
        let srtt = pair.a.info(pair.now).srtt;
        assert_eq!(srtt > Some(ms(100)), needed, "{srtt:?}");
    }
}

/// RFC 8985 7.4.2 (2): of a peer that sends no D-SACK, the bare duplicate of an acknowledgment shows that both copies arrived.
#[test]
fn a_bare_duplicate_after_everything_was_acknowledged_ends_the_probe() {
    for base in [TailLossProbe::Draft, TailLossProbe::Rfc8985] {
        let mut config = probing(base);
        config.dsack = false;
        let mut pair = path(&config);
        // It would come at 100 and comes after the probe, which leaves at 350 (RFC 8985: 400).
        pair.decide = Box::new(|sent, index| match sent.from == End::B && index == 0 {
            true => Fate::Delay(ms(320)),
            false => Fate::Deliver,
        });
        pair.write_at(Instant::ZERO, End::A, MSS);
        pair.write_at(at(1000), End::A, 2 * MSS);
        let (_, stats) = again(&mut pair, 2000);
        assert_eq!(
            (stats.probes, stats.spurious_probes, stats.window_reductions),
            (1, 1, 0),
            "{base:?}"
        );
    }
}

/// RFC 8985 6.2 step 4: a wider reordering window lasts for sixteen recoveries, those from timeouts among them.
#[test]
fn recoveries_from_timeouts_count_for_the_reordering_window() {
    let mut config = bare();
    config.rack = true;
    let mut script = Script::open(&config, 4);
    script.write(1);
    script.at(100).ack(1, &[]);
    script.at(110).ack(1, &[(0, 1)]); // a D-SACK
    let window = |script: &Script| {
        let sender = script.connection.sender.as_ref().expect("there is one");
        let rack = sender.recovery.rack().expect("it is on");
        rack.window_for_tests(ms(100))
    };
    assert_eq!(window(&script), ms(50));
    for recovery in 1..=16 {
        script.write(1);
        let (_, again) = script.timer();
        assert_eq!(again, [recovery]);
        script.ack(recovery + 1, &[]);
        assert_eq!(window(&script), if recovery < 16 { ms(50) } else { ms(25) });
    }
}

/// Linux `tcp_try_undo_recovery`: one that was a mistake does not count; by RFC 8985 6.2 step 4 it does.
#[test]
fn a_recovery_that_was_a_mistake_does_not_shorten_the_reordering_window_in_linux() {
    use crate::tcp::TimeoutRules;
    for (rules, then) in [(TimeoutRules::Linux, 50), (TimeoutRules::Rfc, 25)] {
        let mut config = bare();
        (config.rack, config.timestamps, config.undo) = (true, true, true);
        config.timeout_rules = rules;
        let mut script = Script::open(&config, 4);
        script.write(1);
        script.echo = script.tsval;
        script.at(100).ack(1, &[]);
        script.at(110).ack(1, &[(0, 1)]); // a D-SACK
        for recovery in 1..=16 {
            script.write(1);
            script.echo = script.tsval; // the acknowledgment is that of the original
            assert_eq!(script.timer().1, [recovery]);
            script.ack(recovery + 1, &[]);
            let undos = u64::from(recovery);
            assert_eq!(u64::from(script.connection.stats().undos), undos, "{rules:?}");
        }
        let sender = script.connection.sender.as_ref().expect("there is one");
        let rack = sender.recovery.rack().expect("it is on");
        assert_eq!(rack.window_for_tests(ms(100)), ms(then), "{rules:?}");
    }
}

#[test]
fn with_restart_a_learned_delay_probes_sooner() {
    // RACK-TLP with restart, the last of ten lost, an allowance of 25: 2 * 100 + 25 - 100 after the ACK at 100, then 50 on
    // the way. With a learned allowance RTTVAR, which is zero, leaves nothing of 200.
    for (allowance, learn, expected) in [(25, false, 225), (200, true, 200), (200, false, 400)] {
        let mut config = config(With::ProbeRestart, 0);
        config.rack = true;
        config.fack = false;
        config.tail_loss_probe = TailLossProbe::Rfc8985;
        config.max_ack_delay = Some(ms(allowance));
        config.learn_ack_delay = learn;
        let mut pair = path(&config);
        pair.lose(End::A, 9..10);
        pair.write_at(Instant::ZERO, End::A, 10 * MSS);
        let (times, stats) = again(&mut pair, 2000);
        assert_eq!((times, stats.timeouts), ([expected].to_vec(), 0));
        assert_eq!(pair.taken, 10 * MSS);
    }
}

#[test]
fn a_learned_delay_is_given_up_after_a_probe_in_vain() {
    // RTT 40, RTTVAR 5, answers of nine segments, whose last ACK is delayed by 200. By the samples the probe leaves
    // 2 * SRTT after the ninth, or soon after; from the second answer on all 200 are allowed, and nothing is sent in vain.
    for restart in [false, true] {
        let with = if restart { With::ProbeRestart } else { With::Probe };
        for learn in [true, false] {
            let mut config = config(with, 200);
            config.rack = true;
            config.fack = false;
            config.tail_loss_probe = TailLossProbe::Rfc8985;
            config.learn_ack_delay = learn;
            let mut pair = Pair::established(&config, ms(20), ms(40), 10 * MSS, MSS as u32);
            for answer in 0..10 {
                pair.write_at(at(answer * 1000), End::A, 9 * MSS);
            }
            let (times, stats) = again(&mut pair, 12_000);
            let expected = usize::from(learn);
            assert_eq!(
                times.len(),
                expected,
                "restart {restart}, learned {learn}: {times:?}"
            );
            assert_eq!((stats.spurious_probes as usize, stats.timeouts), (expected, 0));
            assert_eq!(pair.taken, 90 * MSS);
        }
    }
}

/// The probe comes in place of an RTO that restart has brought forward (docs/design/endpoint.md#rtor-tlp).
#[test]
fn restart_brings_the_probe_forward_not_the_timeout() {
    let mut config = config(With::RtoRestart, 0);
    config.tail_loss_probe = TailLossProbe::Draft;
    let mut pair = path(&config);
    pair.lose(End::A, 9..10);
    pair.write_at(Instant::ZERO, End::A, 10 * MSS);
    let (times, stats) = again(&mut pair, 1000);
    assert_eq!((times, stats.probes, stats.timeouts), ([300].to_vec(), 1, 0));
}

/// A probe that the peer's window does not hold leaves the timeout of the first segment, which left at 0, of 1.1 s (Linux
/// `tcp_send_loss_probe`, `tcp_rearm_rto`).
#[test]
fn a_probe_beyond_a_shrunk_window_leaves_the_timeout_of_the_first_segment() {
    let mut config = probing(TailLossProbe::Rfc8985);
    config.timeout_rules = crate::tcp::TimeoutRules::Linux;
    let mut script = Script::open(&config, 10);
    assert_eq!(script.write(4), [0, 1, 2, 3]);
    script.window = 7;
    assert_eq!(script.at(100).ack(1, &[]), []);
    let (probe, sent) = script.timer();
    assert!(probe < 400 && sent.is_empty(), "{probe}: {sent:?}");
    let (timeout, sent) = script.timer();
    assert_eq!((timeout, sent), (1100, [1].to_vec()));
}

/// Acknowledgments that acknowledge nothing do not turn the timeout that took the probe's place into a probe again. It is 1.1 s after the first
/// segment, which left at 0, or after the probe's time, 300 ms.
#[test]
fn acknowledgments_do_not_put_off_the_timeout_behind_a_shrunk_window() {
    use crate::tcp::TimeoutRules;
    for (rules, timeouts) in [(TimeoutRules::Linux, 1100), (TimeoutRules::Rfc, 1400)] {
        let mut config = probing(TailLossProbe::Rfc8985);
        config.timeout_rules = rules;
        let mut script = Script::open(&config, 10);
        assert_eq!(script.write(4), [0, 1, 2, 3]);
        script.window = 0;
        assert_eq!(script.at(100).ack(1, &[]), []);
        let (probe, sent) = script.timer();
        assert!(probe < 400 && sent.is_empty(), "{probe}: {sent:?}");
        for at in (400..1100).step_by(100) {
            assert_eq!(script.at(at).ack(1, &[]), []);
        }
        let (timeout, sent) = script.timer();
        assert_eq!((timeout, sent), (timeouts, [1].to_vec()), "{rules:?}");
    }
}
