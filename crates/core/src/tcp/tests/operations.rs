//! What a driver may do in the middle of a connection's life, in any order, with and without header prediction: writes, settings,
//! ICMP messages, forged segments, reads, inputs that are not drained at once, a rest on one side only, closing. Nothing that can
//! be seen differs.

use super::interplay;
use super::pair::{End, Fate, Pair};
use crate::cc::{AnyController, HyStart};
use crate::packet::{Flags, Segment};
use crate::rng::Rng;
use crate::tcp::{
    Config, Half, Icmp, IcmpKind, KeepAlive, Models, Profile, Setting, State, WindowGrowth, WindowUnit,
    WindowValidation, WriteFlags,
};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

fn pair(config: &Config, seed: u64, predicting: bool) -> Pair {
    let ms = Duration::from_millis;
    let mut pair = Pair::established(config, ms(20), ms(40), 14_600, 1460);
    if seed % 5 > 1 {
        pair.tune_receive_buffers();
    }
    pair.reading = seed.is_multiple_of(2);
    let mut rng = Rng::for_element(seed, "pipe", "fate");
    let rate = [0, 1, 3, 8][seed as usize % 4];
    let mut burst = 0;
    pair.decide = Box::new(move |_, _| {
        if burst > 0 {
            burst -= 1;
            return Fate::Drop;
        }
        match rng.below(200) {
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
    pair.write_at(Instant::ZERO, End::A, 60_000);
    if !predicting {
        for end in [End::A, End::B] {
            pair.connection(end)
                .set(Instant::ZERO, Setting::HeaderPrediction(false));
        }
    }
    pair
}

fn forge(rng: &mut Rng, sent: &Segment) -> Segment {
    let mut forged = *sent;
    let near = |rng: &mut Rng| (rng.below(8) * 730) as u32;
    match rng.below(6) {
        0 => forged.ack += near(rng),
        1 | 2 => forged.ack = forged.ack - near(rng),
        3 => forged.ack += rng.below(3000) as u32,
        _ => {}
    }
    match rng.below(12) {
        0 => forged.seq += near(rng),
        1 => forged.seq = forged.seq - near(rng),
        2 => forged.payload = near(rng),
        3 => forged.payload = 0,
        4 | 8 => forged.window = rng.below(65_536) as u16 >> rng.below(14),
        5 => forged.tsecr = forged.tsecr.wrapping_sub(near(rng) / 50),
        6 => forged.tsval = forged.tsval.wrapping_add(near(rng) / 500),
        9..=11 => {
            // Newer data with an older acknowledgment and another window.
            forged.seq += rng.below(3) as u32;
            forged.payload = rng.below(2) as u32 * 100;
            forged.ack = forged.ack - (1 + rng.below(3000) as u32);
            forged.window = rng.below(65_536) as u16 >> rng.below(14);
        }
        _ => {
            for _ in 0..=rng.below(3) {
                let left = forged.ack + near(rng);
                forged.push_sack_block(left, left + near(rng));
            }
        }
    }
    let odd = [Flags::ECE, Flags::CWR, Flags::PSH, Flags::URG, Flags::TIMESTAMPS];
    if rng.below(10) == 0 {
        forged.flags = forged.flags.with(odd[rng.below(5) as usize]);
    }
    forged
}

fn view(pair: &mut Pair, end: End) -> String {
    let now = pair.now;
    let c = pair.connection(end);
    let info = c.info(now);
    let timers = format!("{:?}", c.shared.timers);
    let sender = c.sender.as_ref().map(|s| {
        format!(
            "una {} window {:?} ssthresh {:?} usage {:?} state {:?}",
            s.una,
            s.cc.window(),
            s.cc.ssthresh(),
            s.usage,
            s.recovery.state(),
        )
    });
    format!(
        "{info:?}\n{:?}\n{timers}\n{sender:?}\n{:?}",
        c.detail(now),
        (
            c.readable(),
            c.poll_timeout(),
            c.timer(),
            c.rest(&mut Models::default()).is_some()
        )
    )
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// No forged segments, no closing.
    Plain,
    All,
}

fn compare(name: &str, config: &Config, seed: u64, mode: Mode) -> Result<(), String> {
    let mut rng = Rng::for_element(seed, "ops", "draw");
    let mut with = pair(config, seed, true);
    let mut without = pair(config, seed, false);
    let mut history: Vec<String> = Vec::new();
    let (mut waits, mut models) = (false, Models::default());
    for step in 0..700 {
        let end = if rng.below(2) == 0 { End::A } else { End::B };
        let op = rng.below(100);
        if waits && op < 62 && with.next().is_none_or(|at| at > with.now) {
            with.drain();
            without.drain();
        }
        let (mut what, drained) = (String::new(), rng.below(4) != 0);
        let now = with.now;
        if op < 62 {
            let lazy = !drained;
            (with.lazy, without.lazy) = (lazy, lazy);
            let more = with.step();
            let other = without.step();
            if more != other {
                return Err(format!("{name} seed {seed} step {step}: steps {more} {other}"));
            }
            what = format!("step lazy {lazy}");
        } else if op < 72 {
            if mode == Mode::All
                && let Some(sent) = with.log.iter().rev().nth(rng.below(3) as usize).copied()
            {
                let to = if sent.from == End::A { End::B } else { End::A };
                let forged = forge(&mut rng, &sent.transmit.segment);
                what = format!("forged {forged:?} to {to:?}");
                with.arrive(to, &forged);
                without.arrive(to, &forged);
            }
        } else if op < 80 {
            let bytes = [1, 700, 1460, 5000, 30_000][rng.below(5) as usize];
            let flags = WriteFlags {
                more: rng.below(4) == 0,
                corked: rng.below(8) == 0,
            };
            what = format!("write {bytes} {flags:?} {end:?}");
            for pair in [&mut with, &mut without] {
                pair.connection(end).write(now, Bytes(bytes), flags);
            }
        } else if op < 86 {
            let draw = rng.below(9);
            let on = rng.below(2) == 0;
            let most = rng.below(12_000);
            let setting = match draw {
                0 => Setting::Nagle(on),
                1 => Setting::KeepAlive(on),
                2 => Setting::KeepAliveValues(KeepAlive {
                    idle: Duration::from_millis(1 + most),
                    interval: Duration::from_millis(1 + most / 3),
                    probes: 200,
                }),
                3 => Setting::AutoRead(on),
                4 => Setting::QuickAck(on),
                5 if mode == Mode::All => Setting::Tos(most as u8),
                6 if mode == Mode::All => Setting::MaxSegment(536),
                7 if mode == Mode::All => Setting::Ttl(9),
                8 if mode == Mode::All && most.is_multiple_of(7) => {
                    Setting::UserTimeout(Some(Duration::from_secs(60)))
                }
                _ => Setting::AutoRead(on),
            };
            what = format!("{setting:?} {end:?}");
            for pair in [&mut with, &mut without] {
                pair.connection(end).set(now, setting);
            }
        } else if op < 89 {
            if let Some(sent) = with.log.iter().rev().find(|sent| sent.from == end).copied()
                && (mode == Mode::All || rng.below(4) == 0)
            {
                let kind = [
                    IcmpKind::HostUnreachable,
                    IcmpKind::NetUnreachable,
                    IcmpKind::SourceQuench,
                    IcmpKind::TooBig { mtu: 1300 },
                    IcmpKind::TooBig { mtu: 700 },
                    IcmpKind::TooBig { mtu: 0 },
                ][rng.below(6) as usize];
                let icmp = Icmp {
                    kind,
                    seq: sent.transmit.segment.seq,
                };
                what = format!("{icmp:?} {end:?}");
                for pair in [&mut with, &mut without] {
                    pair.connection(end).on_icmp(now, &icmp);
                }
            }
        } else if op < 93 {
            let wanted = Bytes(rng.below(4000));
            what = format!("read {wanted:?} {end:?}");
            for pair in [&mut with, &mut without] {
                pair.connection(end).read(now, wanted);
            }
        } else if op < 96 {
            // Packed and woken, on one side only.
            let c = with.connection(end);
            if let Some(resting) = c.rest(&mut models) {
                let config = Arc::clone(c.config());
                *c = resting.wake(&models, &config, Duration::ZERO);
                what = format!("nap {end:?}");
            }
        } else if op == 96 {
            // A timer that is due comes at once after the arrivals.
            what = format!("timer {end:?}");
            for pair in [&mut with, &mut without] {
                if pair.connection(end).poll_timeout().is_some_and(|at| at <= now) {
                    pair.connection(end).on_timeout(now);
                }
            }
        } else if mode == Mode::All && step > 500 {
            match op {
                97 => {
                    what = format!("shutdown {end:?}");
                    for pair in [&mut with, &mut without] {
                        pair.connection(end).shutdown(now, Half::Write);
                    }
                }
                98 => {
                    what = format!("close {end:?}");
                    for pair in [&mut with, &mut without] {
                        pair.connection(end).close(now);
                    }
                }
                _ => {
                    what = format!("shutdown read {end:?}");
                    for pair in [&mut with, &mut without] {
                        pair.connection(end).shutdown(now, Half::Read);
                    }
                }
            }
        }
        if drained {
            with.drain();
            without.drain();
        }
        history.push(format!("{step} at {:?}: {what} drained {drained}", with.now));
        let mut bad = None;
        for end in [End::A, End::B] {
            let (one, two) = (view(&mut with, end), view(&mut without, end));
            if one != two {
                let differ: Vec<_> = one
                    .lines()
                    .zip(two.lines())
                    .filter(|(a, b)| a != b)
                    .map(|(a, b)| format!("  with    {a}\n  without {b}"))
                    .collect();
                bad = Some(format!("{end:?}\n{}", differ.join("\n")));
                break;
            }
        }
        if bad.is_none() && with.log.len() != without.log.len() {
            bad = Some(format!("log {} {}", with.log.len(), without.log.len()));
        }
        if bad.is_none()
            && let (Some(a), Some(b)) = (with.log.last(), without.log.last())
            && (a.at, a.from, a.transmit) != (b.at, b.from, b.transmit)
        {
            bad = Some(format!("last {a:?} {b:?}"));
        }
        if bad.is_none() && with.events != without.events {
            bad = Some(String::from("events"));
        }
        if let Some(bad) = bad {
            let from = history.len().saturating_sub(6);
            return Err(format!(
                "{name} seed {seed}: {bad}\n   {}",
                history[from..].join("\n   ")
            ));
        }
        waits = !drained;
        if with.a.state() == State::Closed {
            break;
        }
    }
    Ok(())
}

fn configs() -> Vec<(String, Config)> {
    let mut all = Vec::new();
    for (profile, name) in Profile::ALL.into_iter().zip(Profile::NAMES) {
        for entry in AnyController::ENTRIES {
            for variant in 0..7 {
                let mut config = Config::profile(profile);
                config.max_window_segments = if variant == 5 { Some(9) } else { None };
                config.patience.retries_as_time = false;
                config.retries = 60;
                config.congestion_control = entry.name;
                match variant {
                    1 => config.sack = false,
                    2 => {
                        config.window_unit = WindowUnit::Bytes;
                        config.offload_segments = Some(2);
                        config.hystart = HyStart::HyStartPlusPlus;
                        config.nagle = false;
                    }
                    3 => {
                        config.receive_memory = None;
                        config.receive_buffer = Bytes(9_000);
                        config.growth = WindowGrowth::Linux;
                        config.window_validation = WindowValidation::Rfc2861;
                    }
                    4 => {
                        config.receive_memory = None;
                        config.growth = WindowGrowth::CwndLimited;
                        config.keep_alive = Some(KeepAlive {
                            idle: Duration::from_millis(300),
                            interval: Duration::from_millis(100),
                            probes: 250,
                        });
                        config.timestamps = !config.timestamps;
                    }
                    6 => {
                        config.growth = WindowGrowth::CwndLimited;
                        config.window_validation = WindowValidation::Rfc2861;
                        config.window_unit = WindowUnit::Bytes;
                        config.offload_segments = Some(3);
                        config.receive_memory = None;
                    }
                    _ => {}
                }
                all.push((format!("{name} {} {variant}", entry.name), config));
            }
        }
    }
    for number in 0..interplay::combinations() {
        let mut config = interplay::combination(number);
        config.patience.retries_as_time = false;
        config.retries = 60;
        all.push((format!("combination {number}"), config));
    }
    all
}

fn run(mode: Mode, first: u64, every: usize) {
    let mut wrong = Vec::new();
    for (number, (name, config)) in configs().into_iter().enumerate() {
        if number % every != first as usize % every {
            continue;
        }
        if let Err(text) = compare(&name, &config, first + number as u64, mode) {
            wrong.push(text);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ, the first: {}",
        wrong.len(),
        wrong[0]
    );
}

#[test]
fn a_life_without_errors_is_the_same_with_and_without_header_prediction() {
    run(Mode::Plain, 0, 3);
}

#[test]
fn a_life_with_everything_is_the_same_with_and_without_header_prediction() {
    run(Mode::All, 1, 3);
}

/// Every combination, more draws.
#[test]
#[ignore = "minutes"]
fn a_long_life_is_the_same_with_and_without_header_prediction() {
    for seed in 0..8 {
        run(Mode::Plain, 100 * seed, 1);
        run(Mode::All, 100 * seed, 1);
    }
}

/// An old acknowledgment with newer data and a smaller window brings no window, at the moment at which it was found full either.
#[test]
fn an_old_ack_at_the_moment_of_a_full_window() {
    let mut config = Config::profile(Profile::Rfc);
    config.window_validation = WindowValidation::Rfc2861;
    config.growth = WindowGrowth::CwndLimited;
    let mut seen = Vec::new();
    for predicting in [true, false] {
        let mut pair = Pair::established(
            &config,
            Duration::from_millis(20),
            Duration::from_millis(40),
            14_600,
            1460,
        );
        pair.a.set(Instant::ZERO, Setting::HeaderPrediction(predicting));
        pair.write_at(Instant::ZERO, End::A, 500_000);
        for _ in 0..40 {
            pair.step();
        }
        let from_b = pair
            .log
            .iter()
            .rev()
            .find(|sent| sent.from == End::B)
            .expect("B acknowledged")
            .transmit
            .segment;
        while !(pair.a.sender.as_ref().is_some_and(|s| s.una > 1)
            && pair
                .log
                .last()
                .is_some_and(|sent| sent.from == End::A && sent.at == pair.now))
        {
            pair.step();
        }
        let mut old = from_b;
        old.seq += 1;
        old.ack = crate::seq::SeqNumber::from_offset(
            super::pair::ISS_A,
            pair.a.sender.as_ref().map_or(1, |s| s.una) - 1,
        );
        old.tsval = from_b.tsval.wrapping_add(50);
        old.window = 100;
        let before = pair.a.sender.as_ref().map(|s| s.full_at == pair.now);
        let edge = pair.a.shared.peer.edge();
        pair.arrive(End::A, &old);
        assert_eq!(
            pair.a.shared.peer.edge(),
            edge,
            "RFC 9293 3.10.7.4: no window below SND.UNA"
        );
        pair.drain();
        seen.push((
            before,
            pair.a.shared.peer.edge(),
            pair.a
                .sender
                .as_ref()
                .map(|s| (s.usage.is_limited(), format!("{:?}", s.usage))),
        ));
    }
    assert_eq!((seen[0].1, &seen[0].2), (seen[1].1, &seen[1].2), "{seen:?}");
}

/// After the path MTU fell, a reduction with nothing in flight leaves at least what a segment weighs, so that sending goes on.
#[test]
fn a_reduction_with_nothing_out_after_the_mtu_fell() {
    use crate::cc::CongestionKind;
    let mut config = Config::profile(Profile::Linux);
    config.ecn = true.into();
    let mut pair = Pair::established(
        &config,
        Duration::from_millis(20),
        Duration::from_millis(40),
        14_600,
        1460,
    );
    pair.write_at(Instant::ZERO, End::A, 1460);
    pair.step();
    let seq = pair.log[0].transmit.segment.seq;
    let now = pair.now;
    pair.a.on_icmp(
        now,
        &Icmp {
            kind: IcmpKind::TooBig { mtu: 1300 },
            seq,
        },
    );
    while pair.step() {}
    assert_eq!(pair.a.acked(), 1460);
    let now = pair.now;
    let connection = &mut pair.a;
    let sender = connection.sender.as_mut().expect("it sent");
    let delivery = crate::tcp::ack::delivered::Delivery {
        advanced: true,
        ..Default::default()
    };
    sender.enter_cwr(now, &mut connection.shared, CongestionKind::Ecn, &delivery);
    connection.write(now, Bytes(50_000), WriteFlags::default());
    pair.drain();
    while pair.step() {}
    assert_eq!(pair.a.acked(), 51_460);
}

/// The persist timer fires, a segment arrives, then the driver drains: the probe of one octet leaves, and its acknowledgment is one.
#[test]
fn a_segment_between_the_persist_timer_and_the_drain() {
    use crate::cc::CongestionKind;
    let config = Config::profile(Profile::Rfc);
    let mut pair = Pair::established(
        &config,
        Duration::from_millis(20),
        Duration::from_millis(40),
        14_600,
        1460,
    );
    pair.write_at(Instant::ZERO, End::A, 2920);
    while pair.step() {}
    let now = pair.now;
    let mut shut = pair
        .log
        .iter()
        .rev()
        .find(|sent| sent.from == End::B)
        .expect("B acknowledged")
        .transmit
        .segment;
    shut.window = 0;
    let connection = &mut pair.a;
    let sender = connection.sender.as_mut().expect("it sent");
    let delivery = crate::tcp::ack::delivered::Delivery {
        advanced: true,
        ..Default::default()
    };
    sender.enter_cwr(now, &mut connection.shared, CongestionKind::Delay, &delivery);
    connection.shared.fast = Default::default(); // as after the acknowledgment that reduced
    pair.arrive(End::A, &shut);
    pair.drain();
    pair.a.write(now, Bytes(5000), WriteFlags::default());
    pair.drain();
    let at = pair.a.poll_timeout().expect("the window is awaited");
    pair.now = at;
    pair.a.on_timeout(at);
    pair.arrive(End::A, &shut);
    pair.drain();
    while pair.step() {}
    assert_eq!(pair.a.acked(), 7920);
    assert_eq!(pair.a.stats().challenge_acks, 0);
}
