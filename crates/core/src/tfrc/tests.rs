//! Two ends over an imagined path, hand-worked courses, adversaries, and the comparison with the naive transcription.

use super::oracle::{NaiveLosses, NaiveSender};
use super::{Config, Feedback, Receiver, Sender, Variant};
use crate::packet::{Ecn, Kind, Segment};
use crate::seq::SeqNumber;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

const ENDLESS: Bytes = Bytes(1 << 62);

/// A path of constant delay each way whose data packets a rule drops or marks.
struct Path {
    config: Config,
    sender: Sender,
    receiver: Receiver,
    now: Instant,
    delay: Duration,
    there: VecDeque<(Instant, Segment)>,
    back: VecDeque<(Instant, Segment)>,
    /// Times at which data packets left.
    departures: Vec<Instant>,
    received: u64,
}

impl Path {
    fn new(config: Config, delay: Duration) -> Path {
        let now = Instant::from_millis(1000);
        Path {
            config,
            sender: Sender::new(now, &config),
            receiver: Receiver::new(&config),
            now,
            delay,
            there: VecDeque::new(),
            back: VecDeque::new(),
            departures: Vec::new(),
            received: 0,
        }
    }

    /// Lets everything happen until `end`; `fate` says of each data packet whether it arrives.
    fn run(&mut self, end: Instant, mut fate: impl FnMut(&mut Segment) -> bool) {
        loop {
            while let Some(mut segment) = self.sender.poll_transmit(self.now) {
                self.departures.push(self.now);
                if fate(&mut segment) {
                    self.there.push_back((self.now + self.delay, segment));
                }
            }
            while let Some(segment) = self.receiver.poll_transmit(self.now) {
                self.back.push_back((self.now + self.delay, segment));
            }
            for deadline in [self.sender.poll_timeout(), self.receiver.poll_timeout()] {
                assert!(
                    deadline.is_none_or(|at| at > self.now),
                    "drained, the deadline is later"
                );
            }
            let next = [
                self.there.front().map(|packet| packet.0),
                self.back.front().map(|packet| packet.0),
                self.sender.poll_timeout(),
                self.receiver.poll_timeout(),
            ];
            let Some(next) = next.into_iter().flatten().min().filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = next;
            while self.there.front().is_some_and(|packet| packet.0 <= next) {
                let (_, segment) = self.there.pop_front().expect("a packet");
                self.received += self.receiver.on_data(next, &segment);
            }
            while self.back.front().is_some_and(|packet| packet.0 <= next) {
                let (_, segment) = self.back.pop_front().expect("a packet");
                assert!(
                    self.sender.on_feedback(next, &segment),
                    "honest feedback is taken"
                );
            }
            self.receiver.on_timeout(next);
            self.sender.on_timeout(next);
        }
    }

    fn run_for(&mut self, span: Duration, fate: impl FnMut(&mut Segment) -> bool) {
        self.run(self.now + span, fate);
    }
}

fn all(_: &mut Segment) -> bool {
    true
}

#[test]
fn the_first_second_is_slow_start() {
    // s = 460, R = 100 ms: one packet, then 4 * 460 = 1840 B per round-trip time, doubling.
    let config = Config {
        packet: 500,
        ..Config::default()
    };
    let mut path = Path::new(config, Duration::from_millis(50));
    let start = path.now;
    path.sender.write(start, ENDLESS);
    path.run_for(Duration::from_millis(1), all);
    assert_eq!(
        path.departures,
        [start],
        "one packet per second before the first feedback"
    );
    path.run_for(Duration::from_millis(199), all);
    // Four packets, evenly spaced by 25 ms from 100 ms on.
    let expected: Vec<_> = [0, 100, 125, 150, 175, 200]
        .into_iter()
        .map(|ms| start + Duration::from_millis(ms))
        .collect();
    assert_eq!(path.departures, expected);
    let mut rates = Vec::new();
    for _ in 0..5 {
        path.run_for(Duration::from_millis(100), all);
        rates.push(path.sender.rate() / 4600.0);
    }
    // In packets per round-trip time, every round-trip time twice as many.
    assert!(rates.is_sorted(), "{rates:?}");
    assert!(rates[4] >= 32.0 && rates[4] <= 128.0, "{rates:?}");
    let info = path.sender.info();
    assert_eq!(info.rtt, Some(Duration::from_millis(100)));
    assert_eq!(info.calculated, None);
}

#[test]
fn packets_keep_their_distance() {
    let mut path = Path::new(Config::default(), Duration::from_millis(20));
    path.sender.write(path.now, ENDLESS);
    let mut number = 0;
    path.run_for(Duration::from_secs(20), |_| {
        number += 1;
        number % 100 != 0
    });
    // With a constant round-trip time the distance is s / X, whatever happens.
    let late = &path.departures[path.departures.len() - 500..];
    let gaps: Vec<f64> = late
        .windows(2)
        .map(|two| two[1].since(two[0]).as_secs_f64())
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!(
        gaps.iter().all(|gap| (gap / mean - 1.0).abs() < 0.5),
        "no bursts, no holes"
    );
}

#[test]
fn one_loss_in_a_hundred_gives_the_equations_rate() {
    for (variant, packet, rate) in [
        (Variant::Standard, 1500, 164_005.0),
        // 120-byte packets: 164005 * 120 / 160 = 123004 B/s would be 1025 packets per second; 100 are allowed.
        (Variant::SmallPackets, 160, 12_000.0),
    ] {
        let config = Config {
            packet,
            variant,
            ..Config::default()
        };
        let mut path = Path::new(config, Duration::from_millis(50));
        path.sender.write(path.now, ENDLESS);
        let mut number = 0;
        path.run_for(Duration::from_secs(60), |_| {
            number += 1;
            number % 100 != 0
        });
        let before = path.sender.info();
        path.run_for(Duration::from_secs(60), |_| {
            number += 1;
            number % 100 != 0
        });
        let after = path.sender.info();
        let sent = (after.bytes_sent - before.bytes_sent) as f64 / 60.0;
        assert!((after.loss_event_rate - 0.01).abs() < 1e-4, "{after:?}");
        assert!((sent / rate - 1.0).abs() < 0.02, "{variant:?}: {sent} B/s");
        if variant == Variant::SmallPackets {
            assert!(
                (after.calculated.expect("loss") / 123_004.0 - 1.0).abs() < 0.02,
                "{after:?}"
            );
        }
    }
}

#[test]
fn losses_within_a_round_trip_are_one_event() {
    let mut path = Path::new(Config::default(), Duration::from_millis(50));
    path.sender.write(path.now, ENDLESS);
    while path.sender.rate() < 150_000.0 {
        path.run_for(Duration::from_millis(1), all);
    }
    let rate = path.sender.rate(); // it has just doubled
    // Ten packets in a row, far less than a round-trip time.
    let mut left = 10;
    path.run_for(Duration::from_millis(300), |_| {
        left -= 1;
        left < 0
    });
    let received = path.receiver.received();
    assert_eq!((received.lost, received.loss_events), (10, 1));
    let info = path.sender.info();
    assert!(info.loss_event_rate > 0.0);
    // RFC 5348 6.3.1: after the first loss event the rate is about half of what it was, which is what arrived.
    assert!(
        info.rate < 0.75 * rate && info.rate > 0.2 * rate,
        "{rate} became {}",
        info.rate
    );
}

#[test]
fn reordering_by_two_is_no_loss() {
    let config = Config::default();
    let mut receiver = Receiver::new(&config);
    let at = Instant::from_millis;
    let mut segment = Segment::default();
    segment.set_kind(Kind::TfrcData);
    segment.options[0] = 100_000;
    segment.payload = 1460;
    for (place, number) in [0, 1, 4, 3, 2, 5, 8, 9, 6, 7, 10].into_iter().enumerate() {
        segment.seq = SeqNumber(number);
        assert_eq!(receiver.on_data(at(10 * place as u64), &segment), 1460);
    }
    assert_eq!(receiver.received().loss_events, 0);
    assert_eq!(
        receiver.on_data(at(200), &segment),
        0,
        "a duplicate is nothing new"
    );
    // Three packets above make one lost, and it stays lost.
    for number in [12, 13, 14] {
        assert_eq!(receiver.received().loss_events, 0);
        segment.seq = SeqNumber(number);
        receiver.on_data(at(210), &segment);
    }
    assert_eq!(
        (receiver.received().lost, receiver.received().loss_events),
        (1, 1)
    );
    segment.seq = SeqNumber(11);
    assert_eq!(receiver.on_data(at(220), &segment), 0);
    assert_eq!(receiver.received().lost, 1);
}

#[test]
fn marks_are_losses() {
    let config = Config {
        ecn: true,
        ..Config::default()
    };
    let mut path = Path::new(config, Duration::from_millis(50));
    path.sender.write(path.now, ENDLESS);
    let mut number = 0;
    path.run_for(Duration::from_secs(60), |segment| {
        assert_eq!(segment.ecn(), Ecn::Ect0);
        number += 1;
        if number % 100 == 0 {
            segment.set_ecn(Ecn::Ce);
        }
        true
    });
    assert_eq!(path.receiver.received().lost, 0);
    assert!((path.sender.info().loss_event_rate - 0.01).abs() < 1e-4);
}

#[test]
fn silence_halves_the_rate_down_to_a_packet_in_64_seconds() {
    let mut path = Path::new(Config::default(), Duration::from_millis(50));
    path.sender.write(path.now, ENDLESS);
    let mut number = 0;
    path.run_for(Duration::from_secs(10), |_| {
        number += 1;
        number % 100 != 0
    });
    let before = path.sender.rate();
    // The path breaks. 4 R after the last feedback the rate is halved, and again.
    path.run_for(Duration::from_millis(900), |_| false);
    let info = path.sender.info();
    assert!(
        info.expiries >= 1 && info.rate <= before / 2.0,
        "{before} {info:?}"
    );
    path.run_for(Duration::from_secs(3000), |_| false);
    assert_eq!(path.sender.rate(), 1460.0 / 64.0);
    // The path mends.
    path.run_for(Duration::from_secs(200), all);
    assert!(path.sender.rate() > 10_000.0, "{}", path.sender.rate());
}

#[test]
fn an_idle_sender_keeps_the_initial_rate() {
    let mut path = Path::new(Config::default(), Duration::from_millis(50));
    let packet = u64::from(path.config.segment());
    path.sender.write(path.now, Bytes(200 * packet));
    path.run_for(Duration::from_secs(3), all);
    assert_eq!(path.sender.queued(), Bytes(0));
    assert!(path.sender.is_reported() && path.received == 200 * packet);
    path.run_for(Duration::from_secs(600), all);
    // RFC 5348 4.4: idle, the rate falls to between once and twice the recover rate, W_init / R, and stays.
    let initial = 4380.0 / 0.1;
    let rate = path.sender.rate();
    assert!(rate >= initial && rate < 2.0 * initial, "{rate}");
    assert_eq!(path.sender.poll_timeout(), None, "nothing to wait for");
    assert_eq!(path.receiver.poll_timeout(), None);
    // It goes on with that, without credit for the time that has passed.
    let before = path.departures.len();
    path.sender.write(path.now, Bytes(20 * packet));
    path.run_for(Duration::from_millis(40), all);
    assert!(path.departures.len() - before <= 4, "no burst");
}

#[test]
fn an_application_slower_than_the_rate_does_not_raise_it() {
    let mut path = Path::new(Config::default(), Duration::from_millis(50));
    // 20 packets per second, 29,200 B/s: the rate stays at twice the largest that arrived, the initial 43,800 B/s.
    for _ in 0..600 {
        path.sender.write(path.now, Bytes(1460));
        path.run_for(Duration::from_millis(50), all);
    }
    let rate = path.sender.rate();
    assert!(rate <= 2.0 * 43_800.0, "{rate}");
    // A loss event halves the limit once (RFC 5348 4.3), not the application's rate.
    let mut number = 0;
    for _ in 0..600 {
        path.sender.write(path.now, Bytes(1460));
        path.run_for(Duration::from_millis(50), |_| {
            number += 1;
            number != 100
        });
    }
    assert_eq!(path.received, (1200 - 1) * 1460);
}

#[test]
fn feedback_is_written_and_read() {
    let feedback = Feedback {
        timestamp: 0xfedc_ba98,
        delay_us: 12_345,
        receive_rate: 164_005.0,
        loss_event_rate: 0.0625,
    };
    assert_eq!(Feedback::read(&feedback.write()), feedback);
    assert_eq!(feedback.write().len(), 44);
    let tiny = Feedback {
        loss_event_rate: 1e-12,
        ..feedback
    };
    assert!(
        Feedback::read(&tiny.write()).loss_event_rate > 0.0,
        "loss stays loss"
    );
    let all = Feedback {
        loss_event_rate: 1.0,
        receive_rate: 1e12,
        ..feedback
    };
    assert!(Feedback::read(&all.write()).loss_event_rate > 0.999_999);
}

fn config() -> impl Strategy<Value = Config> {
    (41_u32..3000, any::<[bool; 4]>(), 0_u64..3).prop_map(|(packet, [small, discount, damp, ecn], grain)| {
        Config {
            packet,
            variant: if small {
                Variant::SmallPackets
            } else {
                Variant::Standard
            },
            history_discounting: discount,
            oscillation_prevention: damp,
            granularity: Duration::from_millis(5 * grain),
            ecn,
            ..Config::default()
        }
    })
}

proptest! {
    /// Every packet with its fate, against looking at all of them.
    #[test]
    fn loss_events_are_those_of_the_naive_list(
        config in config(),
        steps in proptest::collection::vec((0_i64..30, 0_u64..60_000, any::<bool>(), 1_u64..200_000), 1..300),
    ) {
        let mut receiver = super::reception::Reception::new(
            1 << 32, Instant::ZERO, config.history_discounting, config.variant == Variant::SmallPackets,
        );
        let mut naive = NaiveLosses::new(1 << 32, 0, config);
        let (mut at, mut highest) = (0_u64, 1_u64 << 32);
        for (jump, gap_us, marked, rtt_us) in steps {
            at += gap_us * 1000;
            // Mostly the next, sometimes far ahead, sometimes behind.
            let number = match jump {
                0..=15 => highest + 1,
                16..=20 => highest.saturating_sub(jump as u64 - 15).max(1 << 32),
                21..=28 => highest + jump as u64 - 19,
                _ => highest + 300,
            };
            highest = highest.max(number);
            let marked = marked && jump == 3;
            let (now, rtt) = (Instant::from_nanos(at), Duration::from_micros(rtt_us));
            receiver.on_packet(number, now, marked, rtt, || 40.0);
            naive.on_packet(number, at, marked, rtt_us * 1000, 40.0);
            prop_assert_eq!(receiver.events(), naive.events.len() as u64);
            let (one, other) = (receiver.rate(now, rtt), naive.rate(at, rtt_us * 1000));
            prop_assert!((one - other).abs() <= 1e-9 * other, "{} against {}", one, other);
        }
    }

    /// Every call to the sender, against the RFC's text.
    #[test]
    fn rates_are_those_of_the_naive_sender(
        config in config(),
        steps in proptest::collection::vec((0_u8..8, 1_u32..400, 0.0_f64..0.3, 0.0_f64..2.0, 0_u64..4), 1..200),
    ) {
        let config = Config { granularity: Duration::ZERO, ..config };
        let start = Instant::from_millis(1000);
        let mut now = start;
        let mut sender = Sender::new(now, &config);
        let mut naive = NaiveSender::new(now.as_secs_f64(), config);
        for (what, wait_ms, p, share, packets) in steps {
            // Time passes: packets leave, timers expire, one by one.
            let until = now + Duration::from_millis(u64::from(wait_ms));
            if what > 1 {
                sender.write(now, Bytes(packets * u64::from(config.segment())));
            }
            loop {
                while sender.poll_transmit(now).is_some() {
                    if naive.expires.is_none() {
                        naive.set_timer(now.as_secs_f64());
                    }
                    naive.sent = true;
                }
                if sender.queued() > Bytes(0) {
                    naive.held.push(now.as_secs_f64());
                }
                let Some(next) = sender.poll_timeout().filter(|at| *at <= until) else { break };
                now = next;
                if naive.expires.is_some_and(|at| libm::round(at * 1e9) as u64 <= now.as_nanos()) {
                    naive.on_expiry(now.as_secs_f64());
                }
                sender.on_timeout(now);
                prop_assert!((sender.rate() / naive.x - 1.0).abs() < 1e-6, "{} against {}", sender.rate(), naive.x);
            }
            now = until;
            if what == 7 || sender.info().packets_sent == 0 {
                continue;
            }
            // A report that took what it took.
            let elapsed = (now.since(start).as_micros() as u32).clamp(1, 300_000);
            let delay = elapsed / 3;
            let p = if what < 4 { 0.0 } else { p };
            let feedback = Feedback {
                timestamp: super::timestamp(now).wrapping_sub(elapsed),
                delay_us: delay,
                receive_rate: libm::round(sender.rate() * share),
                loss_event_rate: p,
            };
            let segment = feedback.write();
            let read = Feedback::read(&segment);
            if sender.on_feedback(now, &segment) {
                naive.on_feedback(
                    now.as_secs_f64(),
                    f64::from((elapsed - delay).max(1)) / 1e6,
                    read.loss_event_rate,
                    read.receive_rate,
                );
            }
            prop_assert!((sender.rate() / naive.x - 1.0).abs() < 1e-6, "{} against {}", sender.rate(), naive.x);
            let interval = sender.info().interval.as_secs_f64();
            prop_assert!((interval - naive.t_ipi()).abs() < 1e-6 * naive.t_ipi() + 2e-9);
        }
    }

    /// Whatever arrives: no panic, bounded rates, deadlines in the future, timers while something is out.
    #[test]
    fn nothing_from_the_network_hurts(
        config in config(),
        steps in proptest::collection::vec(
            (0_u8..6, prop_oneof![0_u64..1000, 0_u64..10_000_000_000, Just(1 << 60)], any::<[u32; 6]>()), 1..200),
    ) {
        let mut now = Instant::from_millis(1000);
        let mut sender = Sender::new(now, &config);
        let mut receiver = Receiver::new(&config);
        let least = f64::from(config.segment()) / 64.0;
        for (what, wait, words) in steps {
            now = now.saturating_add(Duration::from_nanos(wait.min(1 << 55)));
            let mut segment = Segment {
                seq: SeqNumber(words[0]),
                tsval: words[1],
                tsecr: if words[1] % 2 == 0 { super::timestamp(now).wrapping_sub(words[2] % 1_000_000) } else { words[2] },
                payload: words[3] % 10_000,
                tos: words[4] as u8 & 3,
                ..Segment::default()
            };
            segment.options[..3].copy_from_slice(&[words[5] % 2_000_000, words[4], words[3]]);
            segment.options[0] = if words[0] % 3 == 0 { words[5] } else { words[5] % 200_000 };
            segment.set_kind(if what % 2 == 0 { Kind::TfrcData } else { Kind::TfrcFeedback });
            match what {
                0 | 2 => { receiver.on_data(now, &segment); }
                1 | 3 => { sender.on_feedback(now, &segment); }
                4 => sender.write(now, Bytes(u64::from(words[0]))),
                _ => {
                    // The other one's packets are ignored.
                    prop_assert_eq!(receiver.on_data(now, &segment), 0);
                    segment.set_kind(Kind::TfrcData);
                    prop_assert!(!sender.on_feedback(now, &segment));
                }
            }
            receiver.on_timeout(now);
            sender.on_timeout(now);
            let mut burst = 0;
            while sender.poll_transmit(now).is_some() && burst < 50 {
                burst += 1;
            }
            while let Some(feedback) = receiver.poll_transmit(now) {
                let p = Feedback::read(&feedback).loss_event_rate;
                prop_assert!((0.0..=1.0).contains(&p));
            }
            let info = sender.info();
            prop_assert!(info.rate >= least && info.rate.is_finite());
            prop_assert!(info.interval >= Duration::from_nanos(1) && info.interval <= Duration::from_secs(65));
            // Twice what was reported, or the start.
            if let (Some(received), Some(rtt)) = (info.receive_rate, info.rtt) {
                let bound = (2.0 * received).max(4.0 * 3000.0 / info.min_rtt.unwrap_or(rtt).as_secs_f64().max(1e-6));
                prop_assert!(info.rate <= bound.max(least) * 2.0, "{info:?}");
            }
            if burst < 50 {
                prop_assert!(sender.poll_timeout().is_none_or(|at| at > now));
                if sender.queued() > Bytes(0) {
                    prop_assert!(sender.poll_timeout().is_some());
                }
            }
            prop_assert!(receiver.poll_timeout().is_none_or(|at| at > now));
        }
    }
}
