//! Header prediction changes nothing: two pairs of connections in lockstep, one of which goes without it, compared after
//! every call.

use super::interplay;
use super::pair::{End, Fate, Pair};
use crate::packet::{Flags, Segment};
use crate::rng::Rng;
use crate::tcp::{Config, EcnEcho, Profile, Setting, State};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::format;

fn pair(config: &Config, seed: u64, predicting: bool, auto_read: bool) -> Pair {
    let ms = Duration::from_millis;
    let mut pair = Pair::established(config, ms(20), ms(40), 14_600, 1460);
    if seed % 5 > 1 {
        pair.tune_receive_buffers();
    }
    let mut rng = Rng::for_element(seed, "pipe", "fate");
    let rate = [0, 1, 2, 6][seed as usize % 4];
    let mut burst = 0;
    pair.decide = Box::new(move |_, _| {
        if burst > 0 {
            burst -= 1;
            return Fate::Drop;
        }
        match rng.below(200) {
            // Every second segment of a stretch, as when a queue overflows, now and then all of it.
            draw if draw < rate => {
                burst = rng.below(4) * rng.below(4);
                Fate::Drop
            }
            draw if draw < 2 * rate => Fate::Twice,
            draw if draw < 3 * rate => Fate::Delay(ms(rng.below(60))),
            draw if draw < 4 * rate => Fate::Mark,
            _ => Fate::Deliver,
        }
    });
    pair.write_at(Instant::ZERO, End::A, 900_000);
    for at in [7, 900, 901, 3000] {
        pair.write_at(Instant::from_millis(at), End::B, 30_000 + at);
        pair.write_at(Instant::from_millis(at + 1), End::A, 5 * at);
    }
    if !predicting {
        pair.switch_header_prediction_off();
    }
    for end in [End::A, End::B] {
        let connection = pair.connection(end);
        connection.set(Instant::ZERO, Setting::AutoRead(auto_read));
    }
    pair
}

/// A segment that somebody else could have sent, near one that was: acknowledgments of parts of segments and of what is old
/// or not sent, other windows, blocks, timestamps, payloads and flags.
fn forge(rng: &mut Rng, sent: &Segment) -> Segment {
    let mut forged = *sent;
    let near = |rng: &mut Rng| (rng.below(8) * 730) as u32;
    match rng.below(4) {
        0 => forged.ack += near(rng),
        1 => forged.ack = forged.ack - near(rng),
        2 => forged.ack += rng.below(3000) as u32,
        _ => {}
    }
    match rng.below(8) {
        0 => forged.seq += near(rng),
        1 => forged.seq = forged.seq - near(rng),
        2 => forged.payload = near(rng),
        3 => forged.payload = 0,
        4 => forged.window = rng.below(65_536) as u16,
        5 => forged.tsecr = forged.tsecr.wrapping_sub(near(rng) / 50),
        6 => forged.tsval = forged.tsval.wrapping_add(near(rng) / 500),
        _ => {
            for _ in 0..=rng.below(3) {
                let left = forged.ack + near(rng);
                forged.push_sack_block(left, left + near(rng));
            }
        }
    }
    let odd = [Flags::ECE, Flags::CWR, Flags::PSH, Flags::URG, Flags::TIMESTAMPS];
    if rng.below(6) == 0 {
        forged.flags = forged.flags.with(odd[rng.below(5) as usize]);
    }
    forged
}

fn compare(name: &str, config: &Config, seed: u64) {
    compare_with(name, config, seed, 0);
}

/// `forgeries` in a thousand steps bring a forged segment, with which the connections need not get anywhere.
fn compare_with(name: &str, config: &Config, seed: u64, forgeries: u64) {
    let auto_read = !seed.is_multiple_of(3);
    let mut rng = Rng::for_element(seed, "forger", "draw");
    let mut with = pair(config, seed, true, auto_read);
    let mut without = pair(config, seed, false, auto_read);
    let mut steps = 0;
    let mut logged = 0;
    while steps < if forgeries > 0 { 2_500 } else { 40_000 } {
        if rng.below(1000) < forgeries
            && let Some(sent) = with.log.last().copied()
        {
            let to = if sent.from == End::A { End::B } else { End::A };
            let forged = forge(&mut rng, &sent.transmit.segment);
            for pair in [&mut with, &mut without] {
                pair.arrive(to, &forged);
                pair.drain();
            }
        } else {
            let more = with.step();
            assert_eq!(more, without.step(), "{name}, seed {seed}, step {steps}");
            if !more {
                break;
            }
        }
        steps += 1;
        logged = with.assert_like(&mut without, logged, &|| {
            format!("{name}, seed {seed}, step {steps}")
        });
    }
    assert!(steps > 300, "{name}, seed {seed}: {steps} steps");
    if forgeries > 0 {
        return;
    }
    assert_eq!(with.a.state(), State::Established, "{name}, seed {seed}");
    assert!(
        with.a.acked() >= 900_000 || with.a.stats().timeouts > 3,
        "{name}, seed {seed}"
    );
}

/// Every profile as it is, then with other options, each over `seeds` seeds from `first`.
fn compare_profiles(first: u64, seeds: u64) {
    for (profile, name) in Profile::ALL.into_iter().zip(Profile::NAMES) {
        let mut config = Config::profile(profile);
        config.max_window_segments = None;
        // Some seeds lose many times in a row, a burst after a burst.
        config.patience.retries_as_time = false;
        config.retries = 60;
        for seed in first..first + 2 * seeds {
            compare(name, &config, seed);
            compare_with(name, &config, seed, 30);
        }
        for (sack, timestamps, ecn) in [(false, true, false), (true, false, true), (true, true, true)] {
            config.sack = sack;
            config.timestamps = timestamps;
            config.ecn = ecn.into();
            config.ecn_echo = if sack && timestamps {
                EcnEcho::Rfc8257
            } else {
                EcnEcho::Rfc3168
            };
            for seed in first + 2 * seeds..first + 3 * seeds {
                compare(name, &config, seed);
                compare_with(name, &config, seed, 100);
            }
        }
    }
}

#[test]
fn every_profile_is_the_same_with_and_without() {
    compare_profiles(0, 12);
}

#[test]
fn every_combination_of_switches_is_the_same_with_and_without() {
    for number in 0..interplay::combinations() {
        let mut config = interplay::combination(number);
        config.max_window_segments = None;
        config.patience.retries_as_time = false;
        config.retries = 60;
        let name = format!("combination {number}");
        compare(&name, &config, number as u64);
        compare_with(&name, &config, number as u64, 30);
    }
}

#[test]
#[ignore = "long: thousands of seeds"]
fn every_profile_is_the_same_with_and_without_for_thousands_of_seeds() {
    for block in 0..100 {
        compare_profiles(1_000 + 36 * block, 12);
    }
}
