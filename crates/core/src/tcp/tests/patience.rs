//! How long a connection tries: SYNs, user timeout, zero windows, orphans.

use super::pair::{ISS_A, ISS_B};
use super::script::{Script, T0, bare};
use crate::packet::{Flags, Segment};
use crate::tcp::{Config, Connection, ConnectionError, Event, Profile, Setting, State, TimerGrid};
use crate::time::Duration;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Milliseconds after `T0` at which segments leave, until nothing is left to do.
fn departures(connection: &mut Connection) -> (Vec<u64>, u64) {
    let mut times = Vec::new();
    let mut last = T0;
    while connection.poll_transmit(T0).is_some() {
        times.push(0);
    }
    while let Some(at) = connection.poll_timeout() {
        last = at;
        connection.on_timeout(at);
        while connection.poll_transmit(at).is_some() {
            times.push(at.since(T0).as_millis());
        }
        assert!(times.len() < 1000);
    }
    (times, last.since(T0).as_millis())
}

/// `profile` with timers that fire at the moment they are set for.
fn exact(profile: Profile) -> Config {
    let mut config = Config::profile(profile);
    config.timer_grid = TimerGrid::Exact;
    config
}

fn failed(connection: &mut Connection) -> bool {
    core::iter::from_fn(|| connection.poll_event()).any(|e| e == Event::Failed(ConnectionError::TimedOut))
}

/// RFC 9293: MUST-22, MUST-23
#[test]
fn syns_as_linux_and_as_the_rfc_send_them() {
    let connect = |config: &Config| Connection::connect(T0, &Arc::new(config.clone()), ISS_A);
    // Linux 6.5 and later: four a second apart, then doubling; six more than those four.
    let mut connection = connect(&exact(Profile::Linux));
    let seconds = [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67].map(|s| s * 1000);
    assert_eq!(departures(&mut connection), (seconds.to_vec(), 131_000));
    assert!(failed(&mut connection));
    // On the wheel, from jiffy 250 on: a second, 250 jiffies, ends at the next multiple of 8, two seconds (500), too; four
    // (1000) of 64; 32 and 64 s of 512.
    let mut connection = connect(&Config::profile(Profile::Linux));
    let times = [
        0, 1016, 2040, 3064, 4088, 5112, 7128, 11_288, 19_480, 35_608, 68_632,
    ];
    assert_eq!(departures(&mut connection), (times.to_vec(), 134_168));
    // Linux 3.2: doubling, five. From 1.024 s on a timer has a jiffy of slack, or 1/256.
    let mut connection = connect(&exact(Profile::Linux3_2));
    let seconds = [0, 1, 3, 7, 15, 31].map(|s| s * 1000);
    assert_eq!(departures(&mut connection), (seconds.to_vec(), 63_000));
    let mut connection = connect(&Config::profile(Profile::Linux3_2));
    let times = [0, 1000, 3004, 7016, 15_032, 31_064];
    assert_eq!(departures(&mut connection), (times.to_vec(), 63_128));
    // The owner's number.
    let mut connection = connect(&exact(Profile::Linux3_2));
    connection.set(T0, Setting::SynRetries(1));
    assert_eq!(departures(&mut connection), ([0, 1000].to_vec(), 3000));
    // The host's ticks stand elsewhere: 12 ms on, jiffy 253; (253 + 250) >> 3 is 62, the next bucket 504 and not 512.
    let mut connection = connect(&Config::profile(Profile::Linux));
    connection.set(T0, Setting::ClockPhase(Duration::from_millis(12)));
    assert_eq!(departures(&mut connection).0[1], 1004);
    // RFC 9293 MUST-23: at least three minutes.
    let mut connection = connect(&Config::profile(Profile::Rfc));
    assert!(departures(&mut connection).1 >= 180_000);
    // SYN-ACKs have their own limit.
    let syn = Segment {
        seq: ISS_B,
        flags: Flags::SYN,
        window: 1000,
        ..Segment::default()
    };
    let config = Arc::new(exact(Profile::Linux));
    let mut connection = Connection::accept(T0, &config, ISS_A, &syn);
    let seconds = [0, 1, 3, 7, 15, 31].map(|s| s * 1000);
    assert_eq!(departures(&mut connection), (seconds.to_vec(), 63_000));
}

/// RFC 9293: MUST-21
#[test]
fn the_user_timeout_ends_retransmissions_on_time() {
    // RTO 1 s, first expiry at 1 s; 3 s of patience from then on end at 4 s, so the RTO of 4 s at 3 s is cut to 1 s.
    let mut config = bare();
    config.retries = 100;
    let mut script = Script::open(&config, 10);
    script
        .connection
        .set(script.now, Setting::UserTimeout(Some(Duration::from_secs(3))));
    script.write(1);
    assert_eq!(departures(&mut script.connection), ([1000, 3000].to_vec(), 4000));
    assert!(failed(&mut script.connection));
}

#[test]
fn linux_counts_retries_as_time() {
    // 15 doublings from 200 ms up to the cap of 120 s: 204.6 s and six caps more. SRTT 100 ms gives an RTO of 300 ms.
    let mut config = Config::profile(Profile::Linux);
    config.timestamps = false;
    config.tail_loss_probe = crate::tcp::TailLossProbe::Off;
    let mut script = Script::open(&config, 10);
    script.write(1);
    let (times, end) = departures(&mut script.connection);
    // From jiffy 250 on: 75 jiffies end at 328, 150 at 480, 300 at 784, 600 at 1408, a multiple of 64.
    assert_eq!(times[..4], [312, 920, 2136, 4632]);
    let first = 312;
    assert!(
        (first + 924_600..first + 924_600 + 120_000).contains(&end),
        "{end}"
    );
    assert!(failed(&mut script.connection));
}

#[test]
fn the_floor_of_the_timeout_does_not_shorten_that_time() {
    // Two doublings from 200 ms: 1.4 s from the first timeout on, however short that was.
    let mut config = exact(Profile::Linux);
    config.timestamps = false;
    config.tail_loss_probe = crate::tcp::TailLossProbe::Off;
    config.retries = 2;
    config.rto.min = Duration::from_millis(20);
    let mut script = Script::open(&config, 10);
    script.write(1);
    let (times, end) = departures(&mut script.connection);
    // SRTT 100 ms gives an RTO of 120 ms: 120, 360, 840, 1800, of which the last is 1,680 ms after the first.
    assert_eq!((times, end), ([120, 360, 840].to_vec(), 1800));
    assert!(failed(&mut script.connection));
}

/// RFC 9293: MUST-37
#[test]
fn an_answered_zero_window_lasts_and_a_silent_one_does_not() {
    let mut config = bare();
    config.retries = 3;
    let mut script = Script::open(&config, 10);
    script.window = 0;
    script.ack_bytes(0, &[]);
    script.write_bytes(500);
    for _ in 0..20 {
        script.timer();
        script.ack_bytes(0, &[]);
    }
    assert_eq!(script.connection.state(), State::Established); // RFC 9293 MUST-37
    let (probes, _) = departures(&mut script.connection);
    assert_eq!(probes.len(), 3);
    assert!(failed(&mut script.connection));

    // The user timeout counts answered probes as well (Linux).
    let mut script = Script::open(&config, 10);
    script
        .connection
        .set(script.now, Setting::UserTimeout(Some(Duration::from_secs(10))));
    script.window = 0;
    script.ack_bytes(0, &[]);
    script.write_bytes(500);
    let mut rounds = 0;
    while script.connection.state() == State::Established {
        script.timer();
        script.ack_bytes(0, &[]);
        rounds += 1;
    }
    // Probes at 1, 3, 7 s; at 15 s more than 10 s have passed since the first.
    assert_eq!(rounds, 4);
}

/// RFC 9293: SHLD-3
#[test]
fn an_orphan_leaves_fin_wait_2_and_refuses_data() {
    let mut config = bare();
    config.patience.fin_wait2 = Some(Duration::from_secs(60));
    let mut script = Script::open(&config, 10);
    let now = script.now;
    script.connection.close(now);
    script.drain();
    let answer = |ack: u32, payload: u32| Segment {
        seq: ISS_B + 1,
        ack: ISS_A + 1 + ack,
        window: 500,
        payload,
        flags: Flags::ACK,
        ..Segment::default()
    };
    script.connection.on_segment(now, &answer(1, 0));
    assert_eq!(script.connection.state(), State::FinWait2);
    assert_eq!(script.timer().0, 60_000);
    assert_eq!(script.connection.state(), State::Closed);
    assert!(script.events().contains(&Event::Closed));

    // RFC 9293 SHLD-3: data that nobody will read is answered with RST, as of the peer's ACK.
    let mut script = Script::open(&config, 10);
    script.connection.close(now);
    script.drain();
    script.connection.on_segment(now, &answer(0, 1));
    let out = script.drain();
    assert_eq!(
        (out.len(), out[0].seq, out[0].flags.without(Flags::DF)),
        (1, ISS_A + 1, Flags::RST)
    );
    assert_eq!(script.connection.state(), State::Closed);

    // Closing with unread data resets at once.
    let mut script = Script::open(&config, 10);
    script.connection.on_segment(now, &answer(0, 10));
    script.drain();
    script.connection.close(now);
    let out = script.drain();
    assert_eq!(out.len(), 1);
    assert!(out[0].flags.contains(Flags::RST.with(Flags::ACK)));
}

#[test]
fn a_stray_ack_in_syn_sent_is_answered_with_a_reset() {
    // RFC 9293 3.10.7.3: <SEQ=SEG.ACK><CTL=RST>, and the attempt goes on.
    let mut connection = Connection::connect(T0, &Arc::new(bare()), ISS_A);
    while connection.poll_transmit(T0).is_some() {}
    for (ack, flags) in [(0, Flags::ACK), (2, Flags::ACK), (2, Flags::SYN.with(Flags::ACK))] {
        let segment = Segment {
            seq: ISS_B,
            ack: ISS_A + ack,
            flags,
            ..Segment::default()
        };
        connection.on_segment(T0, &segment);
        let out = connection.poll_transmit(T0).expect("an answer").segment;
        assert_eq!((out.seq, out.flags.without(Flags::DF)), (ISS_A + ack, Flags::RST));
        assert!(connection.poll_transmit(T0).is_none());
        // A reset with such an ACK is dropped.
        let reset = Segment {
            flags: Flags::RST.with(Flags::ACK),
            ..segment
        };
        connection.on_segment(T0, &reset);
        assert!(connection.poll_transmit(T0).is_none());
    }
    assert_eq!(connection.state(), State::SynSent);
}
