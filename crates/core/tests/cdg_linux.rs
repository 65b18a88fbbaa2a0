//! `cdg` beside what the tcp_cdg of Linux 6.1 really did on scripted sequences of RTTs.
//!
//! `specs/linux-6.1-cdg/*.txt` are records made by `bench/peers/linux/cdg.sh` (format: `cdg.py` there). A connection of profile
//! `linux` with the parameters of the record's first line gets the recorded ACKs at the recorded times; after each of them the
//! congestion window and the threshold must be the kernel's. Where back-offs are left to chance (`chance`), their number
//! is held against the probabilities of the recorded gradients. `FLEETFOOT_CDG_RECORDS` names another folder.

use fleetfoot_core::cc::Cdg;
use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{Config, Connection, Profile, WriteFlags};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

const ISS: SeqNumber = SeqNumber(u32::MAX - 20_000); // the transfers cross the wrap
const PEER_ISS: SeqNumber = SeqNumber(77);
const BEGIN: Instant = Instant::from_millis(1000);
const MSS: u32 = 1460;

/// A line of a record.
enum Line {
    Syn,
    SynAck,
    Write,
    Sent,
    Ack {
        ack: u64,
        cwnd: u64,
        ssthresh: u64,
        reducing: bool,
        sack: Vec<(u64, u64)>,
    },
}

struct Record {
    parameters: BTreeMap<String, u64>,
    lines: Vec<(Instant, Line)>,
}

fn record(name: &str) -> Record {
    let folder = std::env::var("FLEETFOOT_CDG_RECORDS")
        .unwrap_or_else(|_| format!("{}/../../specs/linux-6.1-cdg", env!("CARGO_MANIFEST_DIR")));
    let path = format!("{folder}/{name}.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut record = Record {
        parameters: BTreeMap::new(),
        lines: Vec::new(),
    };
    let number = |word: &str| word.parse::<u64>().unwrap_or_else(|_| panic!("{path}: {word}"));
    let edges = |word: &str| {
        let (left, right) = word.split_once(':').expect("left:right");
        (number(left), number(right))
    };
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "#" {
            let pairs = words.iter().filter_map(|word| word.split_once('='));
            record.parameters = pairs
                .map(|(key, value)| (key.to_owned(), number(value)))
                .collect();
            continue;
        }
        let what = match words[1] {
            "s" => Line::Syn,
            "=" => Line::SynAck,
            "w" => Line::Write,
            ">" => Line::Sent,
            "<" => Line::Ack {
                ack: number(words[2]),
                cwnd: number(words[3]),
                ssthresh: number(words[4]),
                reducing: words[5] == "2",
                sack: words[6..].iter().map(|word| edges(word)).collect(),
            },
            other => panic!("{path}: no such line: {other}"),
        };
        let at = BEGIN + Duration::from_micros(number(words[0]));
        record.lines.push((at, what));
    }
    record
}

/// The module's parameters by our names.
fn values(parameters: &BTreeMap<String, u64>) -> Values {
    let mut values = Values::defaults(Cdg::PARAMETERS);
    let hystart = ["off", "train", "delay", "both"][parameters["hystart_detect"] as usize];
    for (name, value) in [
        ("window", Value::Integer(parameters["window"])),
        (
            "beta_delay",
            Value::Number(parameters["backoff_beta"] as f64 / 1024.0),
        ),
        ("backoff_factor", Value::Integer(parameters["backoff_factor"])),
        ("hystart", Value::Choice(hystart)),
        ("ineffective", Value::Integer(parameters["use_ineff"])),
        ("shadow", Value::Flag(parameters["use_shadow"] != 0)),
        ("tolerance", Value::Flag(parameters["use_tolerance"] != 0)),
    ] {
        values.set(name, value).expect("a value in range");
    }
    values
}

fn from_peer(ack: u64) -> Segment {
    Segment {
        seq: PEER_ISS + 1,
        ack: ISS + 1 + ack as u32,
        window: u16::MAX,
        flags: Flags::ACK,
        overhead: Segment::IPV4_TCP_HEADER,
        ..Segment::default()
    }
}

/// Plays the record: where window and threshold are not the kernel's, and how many ACKs and back-offs there were.
fn replay(record: &Record) -> (String, usize, usize) {
    let mut config = Config::profile(Profile::Linux);
    config.congestion_control = "cdg";
    config.congestion_control_values = Some(values(&record.parameters));
    config.timestamps = false;
    config.offload_deferral = false; // the switch is the rule of 6.18
    let mut connection = Connection::connect(BEGIN, &Arc::new(config), ISS);
    let (mut different, mut acks, mut backoffs) = (String::new(), 0, 0);
    let mut last = u64::MAX;
    let mut now = BEGIN;
    let drain = |connection: &mut Connection, now| while connection.poll_transmit(now).is_some() {};
    drain(&mut connection, now);
    for (at, line) in &record.lines {
        while let Some(timer) = connection.poll_timeout().filter(|timer| timer < at) {
            now = timer.max(now);
            connection.on_timeout(now);
            drain(&mut connection, now);
        }
        now = *at;
        match line {
            Line::SynAck => {
                let mut segment = from_peer(0);
                segment.seq = PEER_ISS;
                segment.flags = Flags::SYN
                    .with(Flags::ACK)
                    .with(Flags::MSS)
                    .with(Flags::SCALE)
                    .with(Flags::SACK_PERMITTED);
                segment.options[0] = MSS | 7 << 16;
                connection.on_segment(now, &segment);
            }
            Line::Syn | Line::Write => {}
            Line::Sent => continue,
            Line::Ack {
                ack,
                cwnd,
                ssthresh,
                sack,
                ..
            } => {
                let mut segment = from_peer(*ack);
                for &(left, right) in sack {
                    segment.push_sack_block(ISS + 1 + left as u32, ISS + 1 + right as u32);
                }
                connection.on_segment(now, &segment);
                drain(&mut connection, now);
                let info = connection.info(now);
                let units = |bytes: Bytes| bytes.get() / u64::from(MSS);
                let ours = (units(info.cwnd), units(info.ssthresh).min(i32::MAX as u64));
                acks += 1;
                backoffs += usize::from(ours.1 != last);
                last = ours.1;
                if ours != (*cwnd, *ssthresh) {
                    let _ = writeln!(
                        different,
                        "{:>9} us ack {ack}: Linux {cwnd} {ssthresh}, cdg {} {}",
                        now.since(BEGIN).as_micros(),
                        ours.0,
                        ours.1
                    );
                }
            }
        }
        if !matches!(line, Line::Syn | Line::SynAck) {
            while connection.write(now, Bytes(1 << 20), WriteFlags::default()).get() == 1 << 20 {}
        }
        drain(&mut connection, now);
    }
    (different, acks, backoffs)
}

fn same(name: &str) {
    let (different, acks, changes) = replay(&record(name));
    let lines = different.lines().count();
    println!("{name}: {acks} ACKs, {changes} values of the threshold, {lines} ACKs differ");
    assert!(
        different.is_empty(),
        "{name}: segments of window and threshold after an ACK\n{}",
        different.lines().take(40).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn rising_delay_backs_off_and_falling_delay_does_not() {
    same("certain");
}

#[test]
fn the_sixth_ineffective_back_off_is_left_out() {
    same("ineffective");
}

#[test]
fn the_shadow_window_softens_a_loss() {
    same("shadow");
    same("no-shadow");
}

#[test]
fn losses_are_tolerated_while_the_queue_is_not_full() {
    same("tolerance");
}

#[test]
fn four_rounds_and_half_a_window() {
    same("window-4");
}

#[test]
fn its_own_hystart() {
    same("hystart");
}

/// What is kept of a round: its smallest and largest RTT, microseconds.
type Extremes = Option<(i64, i64)>;

/// Back-offs are drawn: their number is held against the probabilities that the recorded gradients have by the published rule,
/// transcribed here once more. The peer's window of six segments and the recorded windows show when each segment left.
#[test]
fn back_offs_by_chance_are_as_frequent_as_the_gradients_say() {
    let record = record("chance");
    let (ring, factor) = (
        record.parameters["window"] as usize,
        record.parameters["backoff_factor"] as f64,
    );
    let mut left: Vec<Instant> = Vec::new(); // when each segment was released
    let mut gradients = vec![(0_i64, 0_i64); ring];
    let (mut tail, mut filled) = (0, false);
    let handshake = record.lines[1].0.since(record.lines[0].0).as_micros() as i64;
    let (mut rtt, mut previous): (Extremes, Extremes) = (Some((handshake, handshake)), None);
    let (mut round_end, mut high, mut reducing) = (0_u64, 0_u64, false);
    let (mut expected, mut variance, mut seen, mut judged) = (0.0, 0.0, 0_u32, 0_u32);
    for (at, line) in &record.lines {
        let (ack, cwnd, now_reducing) = match line {
            Line::Write => (0, 6, false),
            Line::Ack {
                ack, cwnd, reducing, ..
            } => (ack / u64::from(MSS), *cwnd, *reducing),
            Line::Syn | Line::SynAck | Line::Sent => continue,
        };
        let next = left.len() as u64;
        if ack > 0 {
            let sample = at.since(left[ack as usize - 1]).as_micros() as i64;
            rtt = Some(rtt.map_or((sample, sample), |(min, max)| (min.min(sample), max.max(sample))));
            if reducing && ack > high {
                reducing = false;
                (previous, rtt, round_end) = (rtt, None, next);
            } else if !reducing
                && ack > round_end
                && let Some(new) = rtt
            {
                let mut gradient = 0;
                if let Some(old) = previous {
                    gradients[tail] = (new.0 - old.0, new.1 - old.1);
                    tail = (tail + 1) % ring;
                    let (min, max) = gradients
                        .iter()
                        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
                    gradient = if min > 0 { min } else { max };
                    if !filled {
                        if tail == 0 {
                            filled = true;
                        } else {
                            gradient = gradient * ring as i64 / tail as i64;
                        }
                    }
                }
                (previous, rtt, round_end) = (rtt, None, next);
                if gradient > 0 {
                    let chance = 1.0 - (-(gradient as f64) * factor * 1e-6).exp();
                    (expected, variance) = (expected + chance, variance + chance * (1.0 - chance));
                    judged += 1;
                    seen += u32::from(now_reducing);
                } else {
                    assert!(
                        !now_reducing,
                        "a back-off without a gradient after {ack} segments"
                    );
                }
                if now_reducing {
                    (reducing, high) = (true, next);
                }
            }
        }
        assert_eq!(reducing, now_reducing, "the state after {ack} segments");
        while (left.len() as u64) < ack + cwnd.min(6) {
            left.push(*at);
        }
    }
    let score = (f64::from(seen) - expected) / variance.sqrt();
    println!("chance: {judged} rising rounds, {seen} back-offs, {expected:.1} expected, z {score:.2}");
    assert!(
        judged > 300 && score.abs() < 2.58,
        "{judged} rounds: {seen} and {expected:.1}, z {score:.2}"
    );
}
