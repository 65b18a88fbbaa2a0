//! A connection that rested is the one it was: two pairs in lockstep, one of which rests whenever it may, compared after
//! every call.

use super::pair::{End, Fate, Pair};
use crate::cc::{AnyController, HyStart};
use crate::rng::Rng;
use crate::tcp::{
    Config, Connection, InitialSpreading, Models, PathSample, Profile, Setting, State, StoredConnection,
};
use crate::time::{Duration, Instant};
use crate::units::Rate;
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

fn pair(config: &Config, seed: u64, opened: bool) -> Pair {
    let ms = Duration::from_millis;
    let mut pair = if opened {
        let mut pair = Pair::established(config, ms(20), ms(40), 14_600, 1460);
        if seed % 5 > 1 {
            pair.tune_receive_buffers();
        }
        pair
    } else {
        Pair::connecting(config.clone(), config.clone(), ms(20))
    };
    let mut rng = Rng::for_element(seed, "pipe", "fate");
    let rate = [0, 1, 3, 8][seed as usize % 4];
    pair.decide = Box::new(move |_, _| match rng.below(200) {
        draw if draw < rate => Fate::Drop,
        draw if draw < 2 * rate => Fate::Twice,
        draw if draw < 3 * rate => Fate::Delay(ms(rng.below(60))),
        draw if draw < 4 * rate => Fate::Mark,
        _ => Fate::Deliver,
    });
    let mut rng = Rng::for_element(seed, "pipe", "writes");
    let mut at = Instant::from_millis(if opened { 0 } else { 100 });
    for _ in 0..30 {
        // B may not be there yet if it is still to be opened.
        let end = if rng.below(3) > 0 || !opened {
            End::A
        } else {
            End::B
        };
        let most = [100, 3000, 100_000][rng.below(3) as usize];
        pair.write_at(at, end, 1 + rng.below(most));
        let most = [30, 300, 3000][rng.below(3) as usize];
        at += ms(1 + rng.below(most));
    }
    pair
}

/// How a connection is packed.
type Rest = fn(&Connection, &mut Models) -> Option<StoredConnection>;

/// Rests and wakes; whether it did.
fn nap(connection: &mut Connection, models: &mut Models, rest: Rest) -> bool {
    let Some(resting) = rest(connection, models) else {
        return false;
    };
    let config = Arc::clone(connection.config());
    *connection = resting.wake(models, &config, Duration::ZERO);
    assert_eq!(rest(connection, models), Some(resting), "as it was");
    true
}

fn compare(name: &str, config: &Config, seed: u64, rest: Rest) -> usize {
    let opened = seed.is_multiple_of(2);
    let (mut awake, mut resting) = (pair(config, seed, opened), pair(config, seed, opened));
    if opened {
        for pair in [&mut awake, &mut resting] {
            for end in [End::A, End::B] {
                let connection = pair.connection(end);
                connection.set(Instant::ZERO, Setting::AutoRead(!seed.is_multiple_of(3)));
                if connection.config().remembers_paths() {
                    let known = PathSample {
                        rate: Rate::from_bps(3_000_000),
                        min_rtt: Duration::from_millis(40),
                    };
                    connection.set(Instant::ZERO, Setting::Path(Some(known)));
                }
            }
        }
    }
    let (mut steps, mut logged, mut naps, mut models) = (0, 0, 0, Models::default());
    while steps < 40_000 {
        let more = awake.step();
        assert_eq!(more, resting.step(), "{name}, seed {seed}, step {steps}");
        if !more {
            break;
        }
        steps += 1;
        let now = awake.now;
        let ends = if resting.b.is_some() {
            &[End::A, End::B][..]
        } else {
            &[End::A]
        };
        for &end in ends {
            naps += usize::from(nap(resting.connection(end), &mut models, rest));
            let (one, other) = (awake.connection(end), resting.connection(end));
            other.check(true);
            assert_eq!(
                (
                    one.info(now),
                    one.detail(now),
                    one.poll_timeout(),
                    one.readable(),
                    one.work()
                ),
                (
                    other.info(now),
                    other.detail(now),
                    other.poll_timeout(),
                    other.readable(),
                    other.work()
                ),
                "{name}, seed {seed}, step {steps} at {now:?}, {end:?}"
            );
        }
        assert_eq!(
            awake.log.len(),
            resting.log.len(),
            "{name}, seed {seed}, step {steps}"
        );
        for (one, other) in awake.log[logged..].iter().zip(&resting.log[logged..]) {
            assert_eq!(
                (one.at, one.from, one.transmit),
                (other.at, other.from, other.transmit),
                "{name}, seed {seed}, step {steps}"
            );
        }
        logged = awake.log.len();
        assert_eq!(awake.events, resting.events, "{name}, seed {seed}, step {steps}");
    }
    naps
}

#[test]
fn what_rested_goes_on_as_if_it_had_not() {
    let naps = compare_all(Connection::rest);
    assert!(naps > 1000, "{naps}");
}

#[test]
fn what_rested_with_data_out_goes_on_as_if_it_had_not() {
    let naps = compare_all(Connection::rest_with_data_out);
    assert!(naps > 100_000, "{naps}");
}

/// All profiles with all controllers; how often an end rested.
fn compare_all(rest: Rest) -> usize {
    let mut naps = 0;
    for (profile, name) in Profile::ALL.into_iter().zip(Profile::NAMES) {
        for entry in AnyController::ENTRIES {
            for seed in 0..12 {
                let mut config = Config::profile(profile);
                config.congestion_control = entry.name;
                config.patience.retries_as_time = false;
                config.ecn = (matches!(entry.name, "dctcp" | "prague") || seed == 5).into();
                config.spreading_jiffy = Duration::ZERO;
                match seed {
                    2 | 3 => config.initial_spreading = InitialSpreading::Bounded,
                    4 => config.initial_spreading = InitialSpreading::Estimated,
                    6 | 7 => config.sack = false,
                    8 | 9 => config.timestamps = !config.timestamps,
                    10 | 11 => config.hystart = HyStart::HyStartPlusPlus,
                    _ => {}
                }
                naps += compare(&format!("{name} with {}", entry.name), &config, seed, rest);
            }
        }
    }
    naps
}

#[test]
fn what_has_something_to_do_does_not_rest() {
    let config = Config::profile(Profile::Linux);
    let mut pair = pair(&config, 0, true);
    let models = &mut Models::default();
    assert!(pair.a.rest(models).is_some(), "nothing was written yet");
    pair.a.write(
        Instant::ZERO,
        crate::units::Bytes(5000),
        crate::tcp::WriteFlags::default(),
    );
    assert!(pair.a.rest(models).is_none(), "data waits");
    while pair.a.poll_transmit(Instant::ZERO).is_some() {}
    assert!(pair.a.rest(models).is_none(), "data is out");
    assert!(pair.a.rest_with_data_out(models).is_some(), "data is out");
    let closing = Connection::connect(Instant::ZERO, &Arc::new(config), crate::seq::SeqNumber(7));
    assert_eq!(closing.state(), State::SynSent);
    assert!(closing.rest(models).is_none(), "the handshake is under way");
}

/// What an idle connection takes, for the record.
#[test]
fn an_idle_connection_rests_in_few_bytes() {
    for profile in [Profile::Ns2Sack, Profile::Linux] {
        let models = &mut Models::default();
        let mut held = Vec::new();
        for seed in [0, 8, 16] {
            let mut pair = pair(&Config::profile(profile), seed, true);
            while pair.step() {}
            held.extend(pair.a.rest(models).map(|resting| resting.held()));
        }
        assert_eq!((held.len(), held[0]), (3, 1), "the first is the model");
        assert!(held.iter().all(|held| *held < 200), "{held:?}");
    }
}
