//! Initial Spreading whose gaps are drawn at random: against a naive reading of the rule, and the shape of the draws.

use super::pacing::{leave, spreading};
use super::pair::{ISS_A, ISS_B};
use super::script::{MSS, T0};
use crate::rng::Rng;
use crate::tcp::{
    Config, Connection, EstablishedState, InitialSpreading, InitialWindow, PathSample, Setting, WriteFlags,
};
use crate::time::Duration;
use crate::units::{Bytes, Rate};
use alloc::sync::Arc;
use alloc::vec::Vec;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

/// When the segments of the first window leave, microseconds; `number` distinguishes connections.
fn first_window(config: &Config, rtt: Duration, segments: u32, number: u32) -> Vec<u64> {
    let mut config = config.clone();
    config.initial_window = InitialWindow::Segments(segments);
    let state = EstablishedState {
        srtt: rtt,
        rttvar: Duration::ZERO,
        cwnd: Bytes(u64::from(segments * MSS)),
        ssthresh: Bytes::MAX,
        mss: MSS,
        iss: ISS_A + number,
        irs: ISS_B,
        peer_window: Bytes(1_000_000),
    };
    let mut connection = Connection::established(T0, &Arc::new(config), state);
    connection.set(T0, Setting::Path(None));
    connection.write(T0, Bytes(u64::from(segments * MSS)), WriteFlags::default());
    leave(&mut connection, T0, segments as usize)
}

/// A gap before each segment but the first (`pair`: but the first two), each drawn by itself, nanoseconds after the first.
fn naive(gap: u64, percent: u64, segments: u32, number: u32, pair: bool) -> Vec<u64> {
    let least = gap - gap * percent / 100;
    let most = gap + gap * percent / 100;
    let seed = u64::from((ISS_A + number).0) << 32 | u64::from(ISS_B.0);
    let mut at = 0;
    let mut times = Vec::new();
    for index in 0..segments {
        times.push(at);
        // What is left of the window after this segment numbers the draw.
        let left = u64::from(segments - 1 - index);
        let mut rng = Rng::from_seed(seed ^ 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(left + 1));
        if !(pair && index == 0) {
            at += least + rng.below(most - least + 1);
        }
    }
    times
}

proptest! {
    #[test]
    fn gaps_are_drawn_one_by_one(
        kind in 0_usize..3,
        percent in 1_u8..=100,
        rtt_ms in 10_u64..400,
        segments in 2_u32..40,
        number in 0_u32..1_000_000,
        kbps in 1_000_u64..100_000,
    ) {
        let kinds = [InitialSpreading::Variable, InitialSpreading::Bounded, InitialSpreading::Known];
        let mut config = spreading(kinds[kind]);
        config.spreading_jiffy = Duration::ZERO;
        config.spreading_jitter_percent = percent;
        config.spreading_rate = Rate::from_bps(kbps * 1000);
        let rtt = Duration::from_millis(rtt_ms);
        let share = rtt.as_nanos() / u64::from(segments);
        let packet = u64::from(MSS + 40) * 8 * 1_000_000 / kbps;
        let gap = [share, share.min(4_000_000), share.min(4_000_000).min(packet)][kind];
        let times = first_window(&config, rtt, segments, number);
        prop_assert_eq!(times.len(), segments as usize);
        for (at, expected) in times.iter().zip(naive(gap, u64::from(percent), segments, number, false)) {
            // Rounding of the gap and of either end of the range: some nanoseconds a segment.
            prop_assert!(at.abs_diff(expected / 1000) <= 1, "{:?}", times);
        }
    }
}

/// Estimated: the pair stays together, whatever is drawn; without jitter nothing is drawn.
#[test]
fn the_pair_that_measures_stays_together() {
    let mut config = spreading(InitialSpreading::Estimated);
    config.spreading_jitter_percent = 50;
    let rtt = Duration::from_millis(80);
    let times = first_window(&config, rtt, 10, 3);
    let expected: Vec<u64> = naive(4_000_000, 50, 10, 3, true)
        .iter()
        .map(|ns| ns / 1000)
        .collect();
    assert_eq!(times, expected);
    assert_eq!(times[..2], [0, 0]);
    assert_ne!(times, first_window(&config, rtt, 10, 4), "connections differ");
    assert_eq!(
        times,
        first_window(&config, rtt, 10, 3),
        "one is the same each time"
    );
    config.spreading_jitter_percent = 0;
    let times = first_window(&config, rtt, 10, 3);
    assert!(times[1..].iter().zip(0..).all(|(at, index)| *at == index * 4000));
}

/// Ten thousand gaps of 4 ms and half as much to either side: evenly from 2 to 6 ms, 4 on average, each by itself.
#[test]
fn draws_are_even_and_independent() {
    let mut config = spreading(InitialSpreading::Bounded);
    config.spreading_jitter_percent = 50;
    let mut bins = [0_u32; 20];
    let (mut sum, mut product, mut count) = (0.0, 0.0, 0.0);
    for number in 0..1100 {
        let times = first_window(&config, Duration::from_millis(80), 10, number);
        let mut before = 0.0;
        for pair in times.windows(2) {
            let gap = pair[1] - pair[0];
            assert!((2_000 - 1..=6_000 + 1).contains(&gap), "{gap}");
            bins[((gap.clamp(2_000, 5_999) - 2_000) / 200) as usize] += 1;
            let centred = gap as f64 - 4_000.0;
            sum += gap as f64;
            product += centred * before;
            before = centred;
            count += 1.0;
        }
    }
    assert!((sum / count - 4_000.0).abs() < 40.0, "mean {}", sum / count);
    let expected = count / 20.0;
    let chi: f64 = bins
        .iter()
        .map(|bin| (f64::from(*bin) - expected).powi(2) / expected)
        .sum();
    assert!(chi < 43.8, "19 degrees of freedom, p = 0.001: {chi} of {bins:?}");
    // Correlation of neighbours, over the variance 4^2 / 12 of an even distribution: none, to three deviations.
    let correlation = product / count / (4_000.0_f64.powi(2) / 12.0);
    assert!(correlation.abs() < 3.0 / count.sqrt(), "{correlation}");
}

/// With a rate that was learnt the range goes with it.
#[test]
fn the_range_is_that_of_the_estimate() {
    let mut config = spreading(InitialSpreading::Estimated);
    config.spreading_jitter_percent = 100;
    config.spreading_pair = false;
    config.initial_window = InitialWindow::Segments(10);
    let state = EstablishedState {
        srtt: Duration::from_millis(80),
        rttvar: Duration::ZERO,
        cwnd: Bytes(u64::from(10 * MSS)),
        ssthresh: Bytes::MAX,
        mss: MSS,
        iss: ISS_A,
        irs: ISS_B,
        peer_window: Bytes(1_000_000),
    };
    let mut connection = Connection::established(T0, &Arc::new(config), state);
    let sample = PathSample {
        rate: Rate::from_bps(10_000_000),
        min_rtt: Duration::from_millis(80),
    };
    connection.set(T0, Setting::Path(Some(sample)));
    connection.write(T0, Bytes(u64::from(10 * MSS)), WriteFlags::default());
    let times = leave(&mut connection, T0, 10);
    // 1040 bytes at 10 Mbit/s: 832 us, so that gaps are between none and 1664.
    let expected: Vec<u64> = naive(832_000, 100, 10, 0, false)
        .iter()
        .map(|ns| ns / 1000)
        .collect();
    assert_eq!(times, expected);
}
