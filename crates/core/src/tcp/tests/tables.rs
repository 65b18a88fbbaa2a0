//! The hand-worked tables of docs/design/tail-loss.md#table, exact to the nanosecond.
//!
//! One-way delay 50 ms, no serialisation, ten segments written at 0, the last `k` first transmissions lost, SRTT 100 ms,
//! RTTVAR 0, early retransmit immediate, PRR of RFC 9937. An entry is (first repair, last byte delivered), in
//! tenths of a millisecond.

use super::pair::{End, Fate, Pair};
use crate::tcp::{Config, DelayedAck, EarlyRetransmit, Profile, Prr, RttEstimator, TailLossProbe, TimerGrid};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

const MSS: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Column {
    Baseline,
    RtoRestart,
    Probe,
    ProbeRestart,
    RtoRestartAndProbe,
    Rack(u64),
}

fn config(profile: Profile, column: Column, delayed: Option<u64>) -> Config {
    let mut config = Config::profile(profile);
    config.prr = Prr::Rfc9937;
    // The tables are worked in times that no clock rounds.
    config.rto.estimator = RttEstimator::Rfc6298;
    config.timer_grid = TimerGrid::Exact;
    config.early_retransmit = EarlyRetransmit::Immediate;
    config.rack = false;
    config.tail_loss_probe = TailLossProbe::Off;
    config.delayed_ack = match delayed {
        None => DelayedAck::Off,
        Some(ms) => DelayedAck::Standard {
            timeout: Duration::from_millis(ms),
        },
    };
    config.timestamps = false;
    match column {
        Column::Baseline => {}
        Column::RtoRestart => config.rto_restart = true,
        Column::Probe => config.tail_loss_probe = TailLossProbe::Draft,
        Column::ProbeRestart => {
            config.tail_loss_probe = TailLossProbe::Draft;
            config.tail_loss_probe_restart = true;
        }
        Column::RtoRestartAndProbe => {
            config.rto_restart = true;
            config.tail_loss_probe = TailLossProbe::Draft;
        }
        Column::Rack(max_ack_delay) => {
            config.rack = true;
            config.tail_loss_probe = TailLossProbe::Rfc8985;
            config.max_ack_delay = Some(Duration::from_millis(max_ack_delay));
        }
    }
    // The draft's probe starts recovery by the FACK rule, whatever the profile.
    config.fack = config.tail_loss_probe == TailLossProbe::Draft;
    config
}

/// First repair and last delivery, in tenths of a millisecond.
fn measure(profile: Profile, column: Column, k: u64, delayed: Option<u64>) -> (u64, u64) {
    measure_with(&config(profile, column, delayed), k)
}

fn measure_with(config: &Config, k: u64) -> (u64, u64) {
    let mut pair = Pair::established(
        config,
        Duration::from_millis(50),
        Duration::from_millis(100),
        10 * u64::from(MSS),
        MSS,
    );
    let total = 10 * u64::from(MSS);
    pair.decide = Box::new(move |sent, index| {
        let tail = sent.transmit.start >= (10 - k) * u64::from(MSS);
        if sent.from == End::A && index < 10 && tail {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    pair.write_at(Instant::ZERO, End::A, total);
    let mut done = None;
    while done.is_none() && pair.step() {
        super::check(&pair.a);
        if pair.b.as_ref().is_some_and(|b| b.received() == total) {
            done = Some(pair.now);
        }
    }
    let first = pair
        .log
        .iter()
        .filter(|sent| sent.from == End::A && sent.transmit.segment.payload > 0)
        .nth(10)
        .map(|sent| sent.at);
    let tenths = |at: Option<Instant>| {
        let ns = at.map_or(0, Instant::as_nanos);
        assert_eq!(ns % 100_000, 0, "exact to a tenth of a millisecond");
        ns / 100_000
    };
    (tenths(first), tenths(done))
}

fn ms(first: u64, last: u64) -> (u64, u64) {
    (first * 10, last * 10)
}

const COLUMNS: [Column; 7] = [
    Column::Baseline,
    Column::RtoRestart,
    Column::Probe,
    Column::ProbeRestart,
    Column::RtoRestartAndProbe,
    Column::Rack(200),
    Column::Rack(25),
];

type Row = (u64, [(u64, u64); 7]);

fn compare(profile: Profile, rows: &[Row]) {
    let mut wrong = alloc::vec::Vec::new();
    for (k, cells) in rows {
        for (column, expected) in COLUMNS.into_iter().zip(cells) {
            let measured = measure(profile, column, *k, None);
            if measured != ms(expected.0, expected.1) {
                wrong.push((*k, column, *expected, measured));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "(k, column, expected ms, measured 0.1 ms): {wrong:#?}"
    );
}

#[test]
fn tail_losses_with_the_timer_of_linux_2015() {
    compare(
        Profile::Linux2015,
        &[
            (
                1,
                [
                    (400, 450),
                    (300, 350),
                    (400, 450),
                    (350, 400),
                    (300, 350),
                    (400, 450),
                    (325, 375),
                ],
            ),
            (
                2,
                [
                    (400, 550),
                    (300, 450),
                    (300, 450),
                    (200, 350),
                    (300, 450),
                    (300, 450),
                    (300, 450),
                ],
            ),
            (
                3,
                [
                    (400, 550),
                    (300, 450),
                    (300, 550),
                    (200, 450),
                    (300, 550),
                    (300, 550),
                    (300, 550),
                ],
            ),
            (
                4,
                [
                    (400, 650),
                    (400, 650),
                    (300, 550),
                    (200, 450),
                    (300, 550),
                    (300, 550),
                    (300, 550),
                ],
            ),
            (
                5,
                [
                    (400, 650),
                    (400, 650),
                    (300, 650),
                    (200, 550),
                    (300, 650),
                    (300, 650),
                    (300, 650),
                ],
            ),
            (
                10,
                [
                    (300, 650),
                    (300, 650),
                    (200, 650),
                    (200, 650),
                    (200, 650),
                    (200, 650),
                    (200, 650),
                ],
            ),
        ],
    );
}

#[test]
fn tail_losses_with_the_timer_of_the_rfcs() {
    compare(
        Profile::Rfc,
        &[
            (
                1,
                [
                    (1100, 1150),
                    (1000, 1050),
                    (450, 500),
                    (350, 400),
                    (450, 500),
                    (500, 550),
                    (325, 375),
                ],
            ),
            (
                2,
                [
                    (1100, 1250),
                    (1000, 1150),
                    (300, 450),
                    (200, 350),
                    (300, 450),
                    (300, 450),
                    (300, 450),
                ],
            ),
            (
                3,
                [
                    (1100, 1250),
                    (1000, 1150),
                    (300, 550),
                    (200, 450),
                    (300, 550),
                    (300, 550),
                    (300, 550),
                ],
            ),
            (
                4,
                [
                    (1100, 1350),
                    (1100, 1350),
                    (300, 550),
                    (200, 450),
                    (300, 550),
                    (300, 550),
                    (300, 550),
                ],
            ),
            (
                5,
                [
                    (1100, 1350),
                    (1100, 1350),
                    (300, 650),
                    (200, 550),
                    (300, 650),
                    (300, 650),
                    (300, 650),
                ],
            ),
            (
                10,
                [
                    (1000, 1350),
                    (1000, 1350),
                    (200, 650),
                    (200, 650),
                    (200, 650),
                    (200, 650),
                    (200, 650),
                ],
            ),
        ],
    );
}

#[test]
fn a_lost_last_segment_with_delayed_acknowledgments() {
    let cases: [(Profile, u64, Column, (u64, u64)); 21] = [
        (Profile::Linux2015, 40, Column::Baseline, (4450, 4950)),
        (Profile::Linux2015, 40, Column::RtoRestart, (3050, 3550)),
        (Profile::Linux2015, 40, Column::Probe, (4450, 4950)),
        (Profile::Linux2015, 40, Column::ProbeRestart, (3575, 4075)),
        (Profile::Linux2015, 40, Column::RtoRestartAndProbe, (3050, 3550)),
        (Profile::Linux2015, 40, Column::Rack(200), (4450, 4950)),
        (Profile::Linux2015, 40, Column::Rack(25), (3750, 4250)),
        (Profile::Linux2015, 200, Column::Baseline, (6250, 6750)),
        (Profile::Linux2015, 200, Column::RtoRestart, (3250, 3750)),
        (Profile::Linux2015, 200, Column::Probe, (6250, 6750)),
        (Profile::Linux2015, 200, Column::ProbeRestart, (2000, 2500)),
        (Profile::Linux2015, 200, Column::RtoRestartAndProbe, (3250, 3750)),
        (Profile::Linux2015, 200, Column::Rack(200), (6250, 6750)),
        (Profile::Linux2015, 200, Column::Rack(25), (5750, 6250)),
        (Profile::Rfc, 40, Column::Baseline, (11400, 11900)),
        (Profile::Rfc, 40, Column::RtoRestart, (10000, 10500)),
        (Profile::Rfc, 40, Column::Probe, (4975, 5475)),
        (Profile::Rfc, 40, Column::ProbeRestart, (3575, 4075)),
        (Profile::Rfc, 40, Column::RtoRestartAndProbe, (4975, 5475)),
        (Profile::Rfc, 40, Column::Rack(200), (5500, 6000)),
        (Profile::Rfc, 40, Column::Rack(25), (3750, 4250)),
    ];
    let mut wrong = alloc::vec::Vec::new();
    for (profile, delay, column, expected) in cases {
        let measured = measure(profile, column, 1, Some(delay));
        if measured != expected {
            wrong.push((profile, delay, column, expected, measured));
        }
    }
    assert!(wrong.is_empty(), "(expected, measured, 0.1 ms): {wrong:#?}");
}

/// The same cells with timestamps on: what an ACK with SACKs echoes is older than the probe and must not hide it.
#[test]
fn timestamps_do_not_hide_the_probe_from_rack() {
    for k in 2..=5 {
        let mut times = [(0, 0); 2];
        for (timestamps, times) in [false, true].into_iter().zip(&mut times) {
            let mut config = config(Profile::Linux2015, Column::Rack(200), None);
            config.timestamps = timestamps;
            *times = measure_with(&config, k);
        }
        assert_eq!(times[0], times[1], "{k} lost");
    }
}
