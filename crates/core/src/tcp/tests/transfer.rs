//! Two connections talk through perfect and bad pipes.

use super::pair::{End, Fate, Pair};
use crate::rng::Rng;
use crate::tcp::{Config, DelayedAck, Event, Profile, State};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;

fn finished(pair: &mut Pair, bytes: u64) {
    let info = pair.a.info(pair.now);
    assert_eq!(info.acked, bytes, "{info:#?}");
    assert_eq!(
        pair.b.as_ref().map(super::super::Connection::received),
        Some(bytes)
    );
    assert!(
        pair.events
            .iter()
            .any(|(_, end, event)| (*end, *event) == (End::B, Event::PeerClosed))
    );
    assert_eq!(pair.a.state(), State::Closed);
    assert_eq!(
        pair.b.as_ref().map(super::super::Connection::state),
        Some(State::Closed)
    );
}

fn transfer(
    profile: Profile,
    bytes: u64,
    decide: impl FnMut(&super::pair::Sent, usize) -> Fate + 'static,
) -> Pair {
    transfer_with(&Config::profile(profile), bytes, decide)
}

fn transfer_with(
    config: &Config,
    bytes: u64,
    decide: impl FnMut(&super::pair::Sent, usize) -> Fate + 'static,
) -> Pair {
    let mut pair = Pair::connecting(config.clone(), config.clone(), Duration::from_millis(20));
    pair.decide = Box::new(decide);
    pair.a
        .write(Instant::ZERO, Bytes(bytes), crate::tcp::WriteFlags::default());
    pair.a.shutdown(Instant::ZERO, crate::tcp::Half::Write);
    pair.drain();
    let mut closed = false;
    let mut steps = 0;
    while pair.step() {
        steps += 1;
        assert!(steps < 20_000, "{:?} {:#?}", pair.now, pair.a.info(pair.now));
        super::check(&pair.a);
        if !closed
            && pair
                .events
                .iter()
                .any(|(_, end, event)| (*end, *event) == (End::B, Event::PeerClosed))
        {
            closed = true;
            let now = pair.now;
            pair.connection(End::B).close(now);
            pair.drain();
        }
    }
    pair
}

#[test]
fn every_profile_transfers_over_a_perfect_pipe_without_retransmission() {
    for profile in Profile::ALL {
        let mut pair = transfer(profile, 300_000, |_, _| Fate::Deliver);
        finished(&mut pair, 300_000);
        let stats = *pair.a.stats();
        assert_eq!((stats.retransmits, stats.timeouts), (0, 0), "{profile:?}");
        assert_eq!(stats.bytes_sent, 300_000, "{profile:?}");
    }
}

/// The window of profile `linux` is about 65 kB at first: 3 MB would take 46 round trips of 40 ms.
#[test]
fn a_tuned_window_grows_however_acknowledgments_are_delayed() {
    let kinds = [
        Config::profile(Profile::Linux).delayed_ack,
        DelayedAck::Off,
        DelayedAck::Standard {
            timeout: Duration::from_millis(40),
        },
    ];
    for delayed_ack in kinds {
        let mut config = Config::profile(Profile::Linux);
        config.delayed_ack = delayed_ack;
        let mut pair = transfer_with(&config, 3_000_000, |_, _| Fate::Deliver);
        finished(&mut pair, 3_000_000);
        let over = pair
            .events
            .iter()
            .find(|(_, end, event)| (*end, *event) == (End::B, Event::PeerClosed));
        let over = over.map(|(at, ..)| at.as_nanos() / 1_000_000);
        assert!(
            over.is_some_and(|over| over < 20 * 40),
            "{delayed_ack:?}: {over:?} ms"
        );
    }
}

#[test]
fn every_profile_survives_loss_duplication_and_reordering() {
    for profile in Profile::ALL {
        for seed in 0..40 {
            let mut rng = Rng::for_element(seed, "pipe", "fate");
            let mut pair = transfer(profile, 120_000, move |_, _| match rng.below(20) {
                0 | 1 => Fate::Drop,
                2 => Fate::Twice,
                3 => Fate::Delay(Duration::from_millis(rng.below(60))),
                _ => Fate::Deliver,
            });
            finished(&mut pair, 120_000);
        }
    }
}

#[test]
fn a_lost_syn_is_sent_again_after_the_initial_timeout() {
    let pair = transfer(Profile::Rfc, 1000, |sent, index| {
        if sent.from == End::A && index == 0 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    let syns: alloc::vec::Vec<_> = pair
        .log
        .iter()
        .filter(|s| s.transmit.segment.flags.contains(crate::packet::Flags::SYN))
        .collect();
    assert_eq!(syns[1].at, Instant::from_millis(1000));
}

/// RFC 9293: SHLD-8
#[test]
fn marks_reduce_the_window_once_per_round_trip_without_retransmission() {
    for echo in [crate::tcp::EcnEcho::Rfc3168, crate::tcp::EcnEcho::Rfc8257] {
        let mut config = Config::profile(Profile::Rfc);
        config.ecn = true.into();
        config.ecn_echo = echo;
        let mut pair = Pair::connecting(config.clone(), config, Duration::from_millis(20));
        pair.decide = Box::new(|_, index| {
            if index % 50 == 49 {
                Fate::Mark
            } else {
                Fate::Deliver
            }
        });
        pair.a
            .write(Instant::ZERO, Bytes(600_000), crate::tcp::WriteFlags::default());
        pair.drain();
        while pair.b.as_ref().is_none_or(|b| b.received() < 600_000) && pair.step() {
            super::check(&pair.a);
        }
        let stats = *pair.a.stats();
        assert_eq!((stats.retransmits, stats.timeouts), (0, 0));
        assert!((2..12).contains(&stats.window_reductions), "{stats:?}");
    }
}
