//! Windows: idle restart (RFC 5681 4.1), decay (RFC 2861), shrinking (RFC 9293 3.8.6), silly windows (3.8.6.2), bounds,
//! and when the receiver acknowledges.

use super::pair::{ISS_A, ISS_B};
use super::script::{Script, T0, bare};
use crate::cc::AnyController;
use crate::packet::{Flags, Segment};
use crate::tcp::{CaState, Config, Connection, DelayedAck, Event, Profile, Prr, WindowValidation};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::vec::Vec;

/// Forty segments were sent in a window of forty and acknowledged after 100 ms; then nothing for `idle` ms; then forty
/// more. Returns (window, ssthresh, segments that leave at once). The RTO is 1 s and the window is 41 after the ACK.
fn after_idle(validation: WindowValidation, idle: u64) -> (u64, u64, usize) {
    let mut config = bare();
    config.window_validation = validation;
    let mut script = Script::open(&config, 40);
    assert_eq!(script.write(40).len(), 40);
    script.at(100).ack(40, &[]);
    assert_eq!(
        script.cwnd(),
        40_000,
        "the window was not the limit: it did not grow"
    );
    script.at(idle);
    let sent = script.write(40).len();
    (script.cwnd(), script.ssthresh(), sent)
}

#[test]
fn idle_longer_than_the_rto_returns_to_the_restart_window() {
    let none = u64::MAX;
    // RFC 5681 4.1; the restart window is RFC 6928's initial window, 10 * 1000. The timer runs from the last transmission.
    assert_eq!(after_idle(WindowValidation::Rfc5681, 1000), (40_000, none, 40));
    assert_eq!(after_idle(WindowValidation::Rfc5681, 1001), (10_000, none, 10));
    assert_eq!(after_idle(WindowValidation::None, 60_000), (40_000, none, 40));
}

/// CWR lasts until something beyond its end is acknowledged, so a pause may find it under way: the restart window is that of RFC 5681 4.1 all the
/// same. `conformance/idle` has the script of Linux, where the end of CWR makes the threshold the window.
#[test]
fn a_pause_in_cwr_returns_to_the_restart_window() {
    let mut config = bare();
    config.window_validation = WindowValidation::Rfc5681;
    config.ecn = true.into();
    config.prr = Prr::Rfc9937;
    let mut script = Script::open(&config, 40);
    assert_eq!(script.write(40).len(), 40);
    script.at(100).ack_marked_quietly(1000);
    script.at(110).ack(40, &[]);
    assert_eq!(script.connection.info(script.now).ca_state, CaState::Cwr);
    assert_eq!(script.cwnd(), 20_000);
    assert_eq!(script.at(1500).write(40).len(), 10);
    // The acknowledgment that ends CWR does not raise the window; slow start follows.
    assert_eq!(script.at(1600).ack(42, &[]).len(), 2);
    assert_eq!((script.cwnd(), script.ssthresh()), (10_000, 20_000));
}

/// BBR and Prague keep their window over a pause and while little of it is used: `tcp_slow_start_after_idle_check` and `tcp_cwnd_validate`
/// leave algorithms alone that have a `cong_control`.
#[test]
fn a_pause_leaves_the_window_of_a_model_alone() {
    for entry in AnyController::ENTRIES {
        for validation in [WindowValidation::Rfc5681, WindowValidation::Rfc2861] {
            let mut config = bare();
            config.congestion_control = entry.name;
            config.window_validation = validation;
            let mut script = Script::open(&config, 40);
            script.write(20);
            script.at(100).ack(20, &[]);
            let before = script.cwnd();
            script.at(5000).write(1);
            script.at(5100).ack(21, &[]);
            let keeps = ["bbr", "bbr3", "prague"].contains(&entry.name);
            let kept = script.cwnd() >= before;
            assert_eq!(kept, keeps, "{}: {} after {before}", entry.name, script.cwnd());
        }
    }
}

/// The peer's window stops a repair that the congestion window has room for: the application was the limit before, and the congestion
/// window is not the limit now (RFC 7661 4.3, Linux `tcp_write_xmit`).
#[test]
fn a_repair_that_the_peers_window_stops_does_not_fill_the_congestion_window() {
    // Segments of 1,024 bytes, so that a window can end with one.
    let mut script = Script::established(&bare(), Duration::from_millis(100), 20 * 1024, 1024);
    script.write_bytes(10 * 1024);
    let limited = |script: &Script| {
        script
            .connection
            .sender
            .as_ref()
            .map(|sender| sender.usage.is_limited())
    };
    assert_eq!(limited(&script), Some(false));
    script.window = 8;
    let sent = script.at(100).ack_bytes(1024, &[(3 * 1024, 10 * 1024)]);
    assert_eq!(sent, [1], "the second that was lost does not fit");
    assert_eq!(limited(&script), Some(false));
}

/// CDG forgets gradients and shadow window where the window restarts (docs/design/delay-gradient.md#restart), and not with every pause.
#[test]
fn only_a_restart_resets_cdg() {
    let shadow = |validation, idle| {
        let mut config = bare();
        config.congestion_control = "cdg";
        config.window_validation = validation;
        let mut script = Script::open(&config, 40);
        script.write(40);
        script.at(100).ack(40, &[]);
        script.at(idle).write(1);
        match script.connection.sender.as_ref().map(|sender| sender.cc.any()) {
            Some(AnyController::Cdg(cdg)) => cdg.shadow().get(),
            _ => unreachable!("the test sets it"),
        }
    };
    // The shadow is that of the start, until a reset raises it to the window.
    for validation in [WindowValidation::Rfc5681, WindowValidation::Rfc2861] {
        assert_eq!(shadow(validation, 1000), 10_000, "{validation:?}");
        assert_eq!(shadow(validation, 1001), 40_000, "{validation:?}");
    }
    for validation in [
        WindowValidation::None,
        WindowValidation::NewCwv,
        WindowValidation::NewCwvUnpaced,
        WindowValidation::NewCwvProbing,
    ] {
        assert_eq!(shadow(validation, 60_000), 10_000, "{validation:?}");
    }
}

#[test]
fn the_window_decays_by_half_per_rto() {
    // RFC 2861 3: 40 -> 20 after one RTO, -> 10 after two, not below the restart window. ssthresh stays at its bound,
    // which is above three quarters of the window.
    let none = u64::MAX;
    for (idle, window) in [
        (1000, 40_000),
        (1001, 20_000),
        (2000, 20_000),
        (2001, 10_000),
        (9000, 10_000),
    ] {
        assert_eq!(
            after_idle(WindowValidation::Rfc2861, idle),
            (window, none, (window / 1000) as usize),
            "{idle}"
        );
    }
}

#[test]
fn decay_remembers_three_quarters_of_the_window() {
    // RFC 2861 3: ssthresh = max(ssthresh, 3/4 cwnd). After a loss ssthresh is 20 and the window 20; it has grown to
    // 32 in the meantime, so 24 is remembered.
    let mut config = bare();
    config.window_validation = WindowValidation::Rfc2861;
    let mut script = Script::open(&config, 32);
    let sender = script.connection.sender.as_mut().expect("established");
    sender.cc.set_window(T0, Bytes(32_000), Bytes(20_000));
    assert_eq!(script.write(10).len(), 10);
    script.at(100).ack(10, &[]);
    script.at(1500);
    script.write(1);
    assert_eq!((script.cwnd(), script.ssthresh()), (16_000, 24_000));
}

#[test]
fn an_application_limited_window_stays_while_acknowledgments_come() {
    // Twelve of forty segments are in use for 2.5 s; Linux counts from the last acknowledgment (`tcp_cong_avoid`). Then none comes for an
    // RTO, although data is sent: (40 + 24) / 2 = 32 (RFC 2861 3.2).
    let mut config = bare();
    config.window_validation = WindowValidation::Rfc2861;
    let mut script = Script::open(&config, 40);
    for round in 0..25 {
        script.at(round * 100);
        if round > 0 {
            script.ack(round as u32 * 12, &[]);
        }
        assert_eq!(script.write(12).len(), 12);
        assert_eq!(script.cwnd(), 40_000);
    }
    script.at(3399).write(6);
    assert_eq!(script.cwnd(), 40_000, "the last came at 2400");
    script.at(3400).write(6);
    assert_eq!((script.cwnd(), script.ssthresh()), (32_000, u64::MAX));
}

/// RFC 9293: MUST-34, SHLD-15, SHLD-16
#[test]
fn a_shrunk_window_stops_new_data_but_not_repair() {
    // RFC 9293 3.8.6 (SHLD-15, SHLD-16): the window ended after segment 63; now it ends after segment 4.
    let mut script = Script::open(&bare(), 10);
    assert_eq!(script.write(40).len(), 10);
    script.window = 31; // 3968 bytes from segment 1
    assert_eq!(script.at(100).ack(1, &[]), []);
    assert_eq!(
        script.timer(),
        (1100, [1].to_vec()),
        "what was sent before is repaired"
    );
    script.window = 500;
    assert_eq!(script.at(1200).ack(10, &[]), [10, 11]);
}

/// RFC 9293: MUST-35, MUST-37, SHLD-17
#[test]
fn a_peer_that_answers_with_a_shut_window_is_not_given_up() {
    // RFC 9293 MUST-35, MUST-37, SHLD-17: the window shrank to zero over data that is out. Each retransmission is answered.
    let mut config = bare();
    config.retries = 3;
    let mut script = Script::open(&config, 4);
    script.write(4);
    script.window = 0;
    script.at(100).ack(0, &[]);
    for _ in 0..12 {
        assert_eq!(script.timer().1, [0]);
        assert_eq!(script.ack(0, &[]), []);
    }
    assert_eq!(script.events(), [], "alive");
    script.window = 500;
    script.ack(4, &[]);
    assert_eq!(script.connection.acked(), 4000);
    // A peer that does not answer is given up after three.
    let mut script = Script::open(&config, 4);
    script.write(4);
    script.window = 0;
    script.at(100).ack(0, &[]);
    for _ in 0..3 {
        assert_eq!(script.timer().1, [0]);
    }
    assert_eq!(script.timer().1, []);
    assert!(
        script
            .events()
            .contains(&Event::Failed(crate::tcp::ConnectionError::TimedOut))
    );
}

/// RFC 6675 4, NextSeg (4): a rescue that the peer's window does not hold has not been used up.
#[test]
fn a_rescue_beyond_a_shrunk_window_leaves_when_it_opens() {
    let mut script = Script::open(&bare(), 6);
    assert_eq!(script.write(6).len(), 6);
    script.at(100);
    script.ack(0, &[(1, 2)]);
    script.ack(0, &[(1, 3)]);
    assert_eq!(script.ack(0, &[(1, 4)]), [0]);
    script.window = 31; // 3968 bytes: without segment 5, which is lost
    assert_eq!(script.ack(0, &[(1, 5)]), []);
    script.window = 500;
    assert_eq!(script.ack(0, &[(1, 5)]), [5], "rescue");
    assert_eq!(script.at(200).ack(6, &[]), []);
    assert_eq!(script.connection.stats().timeouts, 0);
}

/// ns-2's agent goes on where it was once the window opens: it has not passed over what was beyond the edge.
#[test]
fn an_agent_of_ns2_does_not_pass_over_what_a_shrunk_window_holds_back() {
    const MSS: u32 = 1024; // eight units of the window
    let mut config = bare();
    config.sack1_recovery = true;
    config.growth = crate::tcp::WindowGrowth::Always;
    let open = || Script::established(&config, Duration::from_millis(100), 10 * u64::from(MSS), MSS);
    // After a timeout.
    let mut script = open();
    assert_eq!(script.write_bytes(u64::from(6 * MSS)), [0, 1, 2, 3, 4, 5]);
    assert_eq!(script.timer().1, [0]);
    script.window = 8;
    assert_eq!(
        script.ack_bytes(MSS, &[]),
        [1],
        "the window of two has room for two"
    );
    script.window = 500;
    assert_eq!(script.ack_bytes(2 * MSS, &[]), [2, 3, 4]);
    // A part of a segment is no more than a part.
    let mut script = open();
    script.write_bytes(u64::from(6 * MSS));
    script.timer();
    script.window = 12;
    let starts = |sent: Vec<Segment>| -> Vec<(u32, u32)> {
        let start = |segment: &Segment| segment.seq.distance(ISS_A + 1) as u32;
        sent.iter().map(|one| (start(one), one.payload)).collect()
    };
    script.ack_bytes_quietly(MSS, &[]);
    assert_eq!(starts(script.drain()), [(MSS, MSS), (2 * MSS, MSS / 2)]);
    script.window = 500;
    script.ack_bytes_quietly(2 * MSS, &[]);
    assert_eq!(starts(script.drain())[0], (5 * MSS / 2, MSS / 2));
    // In a recovery.
    let mut script = open();
    script.write_bytes(u64::from(10 * MSS));
    script.at(100);
    script.ack_bytes(0, &[(MSS, 2 * MSS)]);
    script.ack_bytes(0, &[(MSS, 3 * MSS)]);
    assert_eq!(script.ack_bytes(0, &[(MSS, 4 * MSS)]), [0]);
    script.window = 31; // segment 4 is beyond it, and lost
    let blocks = |end: u32| [(5 * MSS, end * MSS), (MSS, 4 * MSS)];
    for end in 6..=10 {
        assert_eq!(script.ack_bytes(0, &blocks(end)), [], "{end}");
    }
    script.window = 500;
    assert_eq!(script.ack_bytes(0, &blocks(10)), [4]);
}

#[test]
fn the_bound_of_the_window_holds() {
    let mut config = bare();
    config.max_window_segments = Some(7);
    let mut script = Script::open(&config, 40);
    assert_eq!(script.write(40).len(), 7);
    for acked in 1..20 {
        assert_eq!(script.at(u64::from(acked)).ack(acked, &[]).len(), 1);
    }
    assert_eq!(script.cwnd(), 7000);
    // The peer's window too: 33 * 128 = 4224 bytes, four segments.
    let mut script = Script::open(&bare(), 40);
    script.window = 33;
    assert_eq!(script.ack(0, &[]), []);
    assert_eq!(script.write(40).len(), 4);
    assert_eq!(script.at(100).ack(4, &[]).len(), 4);
}

/// In-order data of the peer; returns the window of the ACK, if one leaves.
fn data(connection: &mut Connection, now: Instant, at: u32, payload: u32) -> Option<u64> {
    let segment = Segment {
        seq: ISS_B + 1 + at,
        ack: ISS_A + 1,
        payload,
        window: 500,
        flags: Flags::ACK,
        overhead: 40,
        ..Segment::default()
    };
    connection.on_segment(now, &segment);
    ack(connection, now)
}

fn ack(connection: &mut Connection, now: Instant) -> Option<u64> {
    connection
        .poll_transmit(now)
        .map(|transmit| u64::from(transmit.segment.window))
}

/// RFC 9293: MUST-39
#[test]
fn the_receiver_avoids_silly_windows() {
    // RFC 9293 3.8.6.2.2: the right edge moves by at least min(MSS, buffer / 2). MSS 1000, buffer 4000, no scaling.
    let mut config = bare();
    config.mtu = 1040;
    config.window_scale = None;
    config.receive_buffer = Bytes(4000);
    let mut script = Script::open(&config, 10);
    let connection = &mut script.connection;
    assert_eq!(data(connection, T0, 0, 1000), Some(3000));
    connection.read(T0, Bytes(900));
    assert_eq!(ack(connection, T0), None, "no update for 900 bytes");
    assert_eq!(
        data(connection, T0, 1000, 500),
        Some(2500),
        "the edge stays at 4000"
    );
    connection.read(T0, Bytes(100));
    assert_eq!(
        data(connection, T0, 1500, 500),
        Some(3000),
        "1000 bytes were read: it moves to 5000"
    );
    assert_eq!(data(connection, T0, 2000, 1000), Some(2000));
    assert_eq!(data(connection, T0, 3000, 1000), Some(1000));
    assert_eq!(data(connection, T0, 4000, 1000), Some(0));
    connection.read(T0, Bytes(999));
    assert_eq!(ack(connection, T0), None);
    connection.read(T0, Bytes(1));
    assert_eq!(
        ack(connection, T0),
        Some(1000),
        "the update that wakes the sender"
    );
    // A buffer smaller than two segments: half of it is the step.
    config.receive_buffer = Bytes(1000);
    let mut script = Script::open(&config, 10);
    let connection = &mut script.connection;
    assert_eq!(data(connection, T0, 0, 1000), Some(0));
    connection.read(T0, Bytes(499));
    assert_eq!(ack(connection, T0), None);
    connection.read(T0, Bytes(1));
    assert_eq!(ack(connection, T0), Some(500));
}

fn linux_acks() -> Config {
    let mut config = bare();
    config.delayed_ack = DelayedAck::Linux {
        min: Duration::from_millis(40),
        max: Duration::from_millis(200),
        quick_acks: 16,
    };
    config
}

/// Segments of 100 bytes (too small to raise `rcv_ssthresh`), one per `gap` ms; an answer is `Some(0)` for an ACK at once,
/// else the delay in ms.
fn delays(script: &mut Script, count: u32, from: u32, gap: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    for index in from..from + count {
        script.now += Duration::from_millis(gap);
        let now = script.now;
        let at_once = data(&mut script.connection, now, index * 100, 100).is_some();
        let due = script.connection.poll_timeout();
        seen.push(due.map_or(0, |at| at.since(now).as_millis()));
        assert_eq!(at_once, due.is_none(), "at once, or by the timer");
    }
    seen
}

#[test]
fn sixteen_segments_are_acknowledged_at_once() {
    let mut script = Script::open(&linux_acks(), 10);
    let seen = delays(&mut script, 20, 0, 10);
    // Then every second one; the first of a pair waits for the estimate, which stays at the floor for gaps of 10 ms.
    let mut expected = [0; 20];
    expected[16] = 40;
    expected[18] = 40;
    assert_eq!(seen, expected);
    // A pause of more than a second begins the phase anew.
    assert_eq!(delays(&mut script, 1, 20, 1001), [0]);
    assert_eq!(
        delays(&mut script, 16, 21, 10),
        [[0; 15].as_slice(), &[40]].concat()
    );
}

#[test]
fn the_delay_follows_the_gaps_between_segments() {
    // Gaps of 30 ms, between half the floor and the estimate: ato = ato / 2 + gap. From 40: 50, 55, 57.5, ... to 60.
    let mut config = linux_acks();
    if let DelayedAck::Linux { quick_acks, .. } = &mut config.delayed_ack {
        *quick_acks = 0;
    }
    let mut script = Script::open(&config, 10);
    // The first segment sets 40 ms and leaves a delayed ACK; the second completes the pair, and so on.
    assert_eq!(delays(&mut script, 7, 0, 30), [40, 0, 55, 0, 58, 0, 59]);
    // The smoothed RTT (100 ms) caps it. Gaps of 39 ms: 40, 59, 68.5, 73.25, 75.6; then of 70 ms: 107.8, 123.9.
    let mut script = Script::open(&config, 10);
    assert_eq!(delays(&mut script, 5, 0, 39), [40, 0, 68, 0, 75]);
    assert_eq!(delays(&mut script, 2, 5, 70), [0, 100]);
}

/// Linux `tcp_delack_max`.
#[test]
fn no_acknowledgment_waits_until_the_least_timeout() {
    // In jiffies of 4 ms: 200 ms are 50, less one 49; 20 ms 5, less one 4; 22 ms count as 6, less one 5; and one is the least.
    for (floor, longest) in [(200, 196), (400, 200), (20, 16), (22, 20), (8, 4), (1, 4)] {
        let mut config = linux_acks();
        config.rto = Config::profile(Profile::Linux).rto;
        config.rto.min = Duration::from_millis(floor);
        let DelayedAck::Linux { max, .. } = config.delayed_ack else {
            continue;
        };
        assert_eq!(
            config.rto.bound_ack(max),
            Duration::from_millis(longest),
            "{floor}"
        );
        if let DelayedAck::Linux { quick_acks, .. } = &mut config.delayed_ack {
            *quick_acks = 0;
        }
        let mut script = Script::open(&config, 10);
        assert_eq!(delays(&mut script, 1, 0, 30), [longest.min(40)], "{floor}");
        config.rto.bounds_acks = false;
        assert_eq!(config.rto.bound_ack(max), max);
    }
}

/// RFC 9293 3.8.6.1: what a probe carries is acknowledged like anything else: a FIN closes the half, a byte makes room.
#[test]
fn an_acknowledged_probe_of_a_shut_window_counts() {
    let mut script = Script::open(&bare(), 4);
    script.window = 0;
    script.at(100).ack(0, &[]);
    let now = script.now;
    script.connection.shutdown(now, crate::tcp::Half::Write);
    assert_eq!(script.drain(), []);
    script.timer();
    assert_eq!(script.ack_bytes(1, &[]), []);
    assert_eq!(script.connection.state(), crate::tcp::State::FinWait2);
    assert!(script.events().contains(&Event::SendClosed));

    let mut config = bare();
    config.send_buffer = Bytes(2000);
    let mut script = Script::open(&config, 4);
    script.window = 0;
    script.at(100).ack(0, &[]);
    let now = script.now;
    let taken = script
        .connection
        .write(now, Bytes(3000), crate::tcp::WriteFlags::default());
    assert_eq!((taken, script.drain()), (Bytes(2000), Vec::new()));
    script.timer();
    assert_eq!(script.events(), []);
    script.ack_bytes(1, &[]);
    assert_eq!(script.connection.acked(), 1);
    assert_eq!(script.events(), [Event::Writable]);

    // The probe was all there was: no window is awaited any more, also if what acknowledges it is older than the window.
    let mut script = Script::open(&bare(), 4);
    script.window = 0;
    script.at(100);
    let ahead = Segment {
        seq: ISS_B + 101,
        ack: ISS_A + 1,
        payload: 10,
        flags: Flags::ACK,
        overhead: 40,
        ..Segment::default()
    };
    script.connection.on_segment(script.now, &ahead);
    script.drain();
    assert_eq!(script.write_bytes(1), []);
    assert_eq!(script.timer().1, [0]);
    assert_eq!(script.ack_bytes(1, &[]), []);
    assert_eq!((script.connection.acked(), script.connection.timer()), (1, None));
}

/// Whatever a peer takes back of its window, drops and reports: nothing stays for ever.
#[test]
fn nothing_is_stuck_behind_windows_that_shrink() {
    let mut random = 1_u64;
    let mut next = move |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for turn in 0..400_u64 {
        let mut config = match turn % 4 {
            0 => bare(),
            1 => Config::profile(Profile::Rfc),
            2 => Config::profile(Profile::Ns2Sack),
            _ => Config::profile(Profile::Linux),
        };
        if turn % 8 == 7 {
            config.congestion_control = ["bbr", "bbr3"][(turn / 8 % 2) as usize];
        }
        config.window_scale = Some(7);
        config.retries = 200;
        let mut script = Script::open(&config, 10);
        script.echo = 1;
        let mut got = alloc::vec![false; 40_000];
        let mut written = 0;
        let mut closed = false;
        for step in 0..600 {
            let honest = step >= 200;
            if honest {
                script.window = 500;
            } else {
                script.window = [0, 1, 3, 8, 20, 60, 500][next(7) as usize];
            }
            if written < 40_000 && next(3) == 0 || honest {
                let wanted = (next(3000) + 1).min(40_000 - written);
                let flags = crate::tcp::WriteFlags {
                    more: next(3) == 0,
                    corked: !honest && next(5) == 0,
                };
                let taken = script.connection.write(script.now, Bytes(wanted), flags).get();
                written += taken;
                if written == 40_000 && !closed && next(2) == 0 {
                    script.connection.shutdown(script.now, crate::tcp::Half::Write);
                    closed = true;
                }
            }
            for segment in script.drain() {
                if segment.payload > 0 && (honest || next(4) > 0) {
                    let start = segment.seq.distance(ISS_A + 1) as usize;
                    got[start..start + segment.payload as usize].fill(true);
                }
            }
            if honest && script.connection.acked() >= 40_000 {
                break;
            }
            let acked = got.iter().position(|one| !one).unwrap_or(got.len());
            let mut blocks = Vec::new();
            let mut at = acked;
            while blocks.len() < 3
                && let Some(from) = got[at..].iter().position(|one| *one)
            {
                let from = at + from;
                let to = got[from..]
                    .iter()
                    .position(|one| !one)
                    .map_or(got.len(), |more| from + more);
                blocks.push((from as u32, to as u32));
                at = to;
            }
            if next(3) > 0 || honest {
                script.now += Duration::from_millis(next(60) + 1);
                let late = script
                    .connection
                    .poll_timeout()
                    .is_some_and(|at| at <= script.now);
                if late {
                    script.connection.on_timeout(script.now);
                }
                script.ack_bytes_quietly(acked as u32, &blocks);
            }
            if next(3) == 0 || honest && script.connection.acked() as usize == acked {
                for segment in script.drain().iter().filter(|segment| segment.payload > 0) {
                    let start = segment.seq.distance(ISS_A + 1) as usize;
                    got[start..start + segment.payload as usize].fill(true);
                }
                if let Some(at) = script.connection.poll_timeout() {
                    script.now = script.now.max(at);
                    script.connection.on_timeout(script.now);
                } else {
                    assert!(
                        script.connection.acked() as usize == written as usize
                            || got.iter().take(written as usize).all(|one| *one),
                        "{turn}, {step}: nothing is awaited"
                    );
                }
            }
        }
        assert_eq!(script.connection.acked(), 40_000, "{turn}: written {written}");
    }
}
