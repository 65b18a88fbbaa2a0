//! The short ways of the usual case do what the long way does: two pairs of connections in lockstep, one of which takes
//! the long way always, compared after every call.

use super::pair::{End, Fate, Pair};
use crate::rng::Rng;
use crate::tcp::{Config, EcnEcho, Profile, Setting, State};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

fn pair(config: &Config, seed: u64, long: bool, auto_read: bool) -> Pair {
    let ms = Duration::from_millis;
    let mut pair = Pair::established(config, ms(20), ms(40), 14_600, 1460);
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
    for end in [End::A, End::B] {
        let connection = pair.connection(end);
        connection.shared.long_way = long;
        connection.set(Instant::ZERO, Setting::AutoRead(auto_read));
    }
    pair
}

fn compare(name: &str, config: &Config, seed: u64) {
    let auto_read = !seed.is_multiple_of(3);
    let mut short = pair(config, seed, false, auto_read);
    let mut long = pair(config, seed, true, auto_read);
    let mut steps = 0;
    let mut logged = 0;
    while steps < 40_000 {
        let more = short.step();
        assert_eq!(more, long.step(), "{name}, seed {seed}, step {steps}");
        if !more {
            break;
        }
        steps += 1;
        let now = short.now;
        for end in [End::A, End::B] {
            let (one, other) = (short.connection(end), long.connection(end));
            one.check(true);
            assert_eq!(
                (one.info(now), one.poll_timeout(), one.timer(), one.readable()),
                (
                    other.info(now),
                    other.poll_timeout(),
                    other.timer(),
                    other.readable()
                ),
                "{name}, seed {seed}, step {steps} at {now:?}, {end:?}"
            );
        }
        assert_eq!(
            short.log.len(),
            long.log.len(),
            "{name}, seed {seed}, step {steps}"
        );
        for (one, other) in short.log[logged..].iter().zip(&long.log[logged..]) {
            assert_eq!(
                (one.at, one.from, one.transmit),
                (other.at, other.from, other.transmit),
                "{name}, seed {seed}, step {steps}"
            );
        }
        logged = short.log.len();
        assert_eq!(short.events, long.events, "{name}, seed {seed}, step {steps}");
    }
    assert_eq!(short.a.state(), State::Established, "{name}, seed {seed}");
    assert!(
        short.a.acked() >= 900_000 || short.a.stats().timeouts > 3,
        "{name}, seed {seed}"
    );
}

#[test]
fn every_profile_goes_both_ways_alike() {
    for (profile, name) in Profile::ALL.into_iter().zip(Profile::NAMES) {
        let mut config = Config::profile(profile);
        config.max_window_segments = None;
        // Some seeds lose many times in a row, a burst after a burst.
        config.patience.retries_as_time = false;
        config.retries = 60;
        for seed in 0..24 {
            compare(name, &config, seed);
        }
        for (sack, timestamps, ecn) in [(false, true, false), (true, false, true), (true, true, true)] {
            config.sack = sack;
            config.timestamps = timestamps;
            config.ecn = ecn;
            config.ecn_echo = if sack && timestamps {
                EcnEcho::Rfc8257
            } else {
                EcnEcho::Rfc3168
            };
            for seed in 24..36 {
                compare(name, &config, seed);
            }
        }
    }
}
