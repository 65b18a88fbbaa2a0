//! The profile `linux` beside what Linux 6.18 really did.
//!
//! `specs/linux-6.18/*.txt` are records of transfers between two namespaces, made by `bench/peers/linux/record.py`. Each
//! case is played here with two connections of profile `linux` over the same path, and what the sender sends is compared: which
//! bytes, how often, and when, and when it acknowledges the SYN-ACK. Of the cases `tuned` the receiver is compared alone: it is given the
//! segments of the record when they came there, and must acknowledge them as Linux did. `FLEETFOOT_LINUX_RECORDS` names another folder of records
//! (`bench/peers/linux.sh` makes one of the kernel it runs on).

use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{Config, Connection, Event, Profile, ReceiveMemory, Setting, WriteFlags};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

const SENDER_ISS: SeqNumber = SeqNumber(u32::MAX - 20_000); // the transfers cross the wrap
const RECEIVER_ISS: SeqNumber = SeqNumber(77);

/// What the recorder's table says of a case.
struct Case {
    /// (time after the connection is established, bytes)
    writes: Vec<(Duration, u64)>,
    rate: Rate,
    limit: usize,
    drop: Vec<usize>,
    drop_syn: usize,
    drop_synack: usize,
    hold: Vec<(usize, Duration)>,
    nodelay: bool,
    control: &'static str,
}

impl Case {
    fn new(writes: Vec<(Duration, u64)>) -> Case {
        Case {
            writes,
            rate: Rate::UNLIMITED,
            limit: 100_000,
            drop: Vec::new(),
            drop_syn: 0,
            drop_synack: 0,
            hold: Vec::new(),
            nodelay: false,
            control: "cubic",
        }
    }

    fn one(bytes: u64) -> Case {
        Case::new(vec![(Duration::ZERO, bytes)])
    }
}

/// Data, a FIN or the acknowledgment of the SYN-ACK: first byte, end, whether it carried FIN.
type Line = (Duration, u32, u32, bool);

/// Plays `case` on hosts whose timer ticks stand at `phase` when it begins, and returns what the sender sent, relative to
/// its first SYN.
fn play(case: &Case, phase: Duration) -> Vec<Line> {
    let mut config = Config::profile(Profile::Linux);
    config.nagle = !case.nodelay;
    config.congestion_control = case.control;
    // The recorder's buffers are large from the start.
    config.receive_memory = Some(ReceiveMemory {
        buffer: 6_291_456,
        most: 6_291_456,
        ..ReceiveMemory::LINUX
    });
    config.window_scale = Some(7);
    let config = Arc::new(config);
    let mut client = Connection::connect(Instant::ZERO, &config, SENDER_ISS);
    client.set(Instant::ZERO, Setting::ClockPhase(phase));
    let mut server: Option<Connection> = None;
    let delay = Duration::from_millis(50);
    let mut now = Instant::ZERO;
    // (due, order) -> (towards the server, segment)
    let mut wire: BTreeMap<(Instant, u64), (bool, Segment)> = BTreeMap::new();
    let (mut order, mut data, mut syns, mut synacks) = (0_u64, 0_usize, 0, 0);
    let mut busy_until = Instant::ZERO;
    let mut starts: Vec<Instant> = Vec::new();
    let mut writes = case.writes.iter().copied().peekable();
    let mut established = None;
    let mut closed = false;
    let mut pending = 0_u64;
    let mut lines = Vec::new();
    while now < Instant::from_millis(60_000) {
        while let Some(event) = client.poll_event() {
            if event == Event::Established {
                established = Some(now);
            }
        }
        let due = |when: Duration| established.is_some_and(|begin| begin + when <= now);
        if let Some(&(when, bytes)) = writes.peek()
            && pending == 0
            && due(when)
        {
            pending = bytes;
            writes.next();
        }
        if pending > 0 {
            pending -= client.write(now, Bytes(pending), WriteFlags::default()).get();
        }
        // Nothing is sent between the last write and the close.
        if established.is_some() && pending == 0 && writes.peek().is_none() && !closed {
            client.close(now);
            closed = true;
        }
        while let Some(transmit) = client.poll_transmit(now) {
            let segment = transmit.segment;
            let start = segment.seq.distance(SENDER_ISS) as u32;
            let fin = segment.flags.contains(Flags::FIN);
            if !segment.flags.contains(Flags::SYN) && (segment.payload > 0 || fin || start == 1) {
                lines.push((now.since(Instant::ZERO), start, start + segment.payload, fin));
            }
            let (mut lost, mut due) = (false, now + delay);
            if segment.payload > 0 {
                lost = case.drop.contains(&data);
                if let Some((_, late)) = case.hold.iter().find(|(index, _)| *index == data) {
                    due += *late;
                }
                data += 1;
            }
            if segment.flags.contains(Flags::SYN) {
                lost = syns < case.drop_syn;
                syns += 1;
            }
            if case.rate != Rate::UNLIMITED && !lost {
                starts.retain(|&start| start > now);
                if starts.len() >= case.limit {
                    lost = true;
                } else {
                    let start = busy_until.max(now);
                    starts.push(start);
                    busy_until = start + case.rate.time_for(Bytes(u64::from(segment.len())));
                    due = busy_until + delay;
                }
            }
            if !lost {
                order += 1;
                wire.insert((due, order), (true, segment));
            }
        }
        // The next write is a call of its own: what the last one could send has left.
        if pending == 0 && writes.peek().is_some_and(|&(when, _)| due(when)) {
            continue;
        }
        if let Some(server) = &mut server {
            while let Some(event) = server.poll_event() {
                if event == Event::PeerClosed {
                    server.close(now);
                }
            }
            while let Some(transmit) = server.poll_transmit(now) {
                let lost = transmit.segment.flags.contains(Flags::SYN) && {
                    synacks += 1;
                    synacks <= case.drop_synack
                };
                if !lost {
                    order += 1;
                    wire.insert((now + delay, order), (false, transmit.segment));
                }
            }
        }
        // Arrivals, then writes, then timers (docs/design/endpoint.md#ties).
        let arrival = wire.first_key_value().map(|((due, _), _)| *due);
        let write = established.and_then(|begin| writes.peek().map(|&(when, _)| begin + when));
        let timer = [
            client.poll_timeout(),
            server.as_ref().and_then(Connection::poll_timeout),
        ]
        .into_iter()
        .flatten()
        .min();
        let Some(next) = [arrival, write, timer].into_iter().flatten().min() else {
            break;
        };
        now = next;
        if arrival == Some(now) {
            let (_, (to_server, segment)) = wire.pop_first().expect("an arrival is due");
            if !to_server {
                client.on_segment(now, &segment);
            } else if let Some(server) = &mut server {
                server.on_segment(now, &segment);
            } else {
                let mut accepted = Connection::accept(now, &config, RECEIVER_ISS, &segment);
                accepted.set(now, Setting::AutoRead(true));
                accepted.set(now, Setting::ClockPhase(phase)); // the namespaces share a kernel
                server = Some(accepted);
            }
        } else if write != Some(now) {
            if client.poll_timeout() == Some(now) {
                client.on_timeout(now);
            }
            if let Some(server) = server
                .as_mut()
                .filter(|server| server.poll_timeout() == Some(now))
            {
                server.on_timeout(now);
            }
        }
    }
    lines
}

/// The text of a record.
fn text_of(name: &str) -> String {
    let folder = std::env::var("FLEETFOOT_LINUX_RECORDS")
        .unwrap_or_else(|_| format!("{}/../../specs/linux-6.18", env!("CARGO_MANIFEST_DIR")));
    let path = format!("{folder}/{name}.txt");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The sender's lines of a record.
fn recorded(name: &str) -> Vec<Line> {
    let text = text_of(name);
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        if words[1] != ">" || words[2].starts_with('S') {
            continue;
        }
        let ms: f64 = words[0].parse().expect("a time in ms");
        let (start, end) = words[3].split_once(':').expect("start:end");
        let (start, end): (u32, u32) = (start.parse().expect("a number"), end.parse().expect("a number"));
        let fin = words[2].contains('F');
        if start != end || fin || start == 1 {
            lines.push((Duration::from_secs_f64(ms / 1e3), start, end, fin));
        }
    }
    lines
}

/// Holds the profile to the record: the same segments the same number of times, each at most [`LATE`] later in the record
/// than here, and never more than a millisecond earlier, at one of the phases that the kernel's timer ticks may have had.
fn compare(name: &str, case: &Case) {
    compare_until(name, case, u32::MAX);
}

/// Compares the segments that end at or before `last`, and their retransmissions.
fn compare_until(name: &str, case: &Case, last: u32) {
    let sorted = |mut lines: Vec<Line>| {
        lines.retain(|line| line.2 <= last);
        // By segment, then by transmission: which of two leaves first within a millisecond is the kernel's batching.
        lines.sort_by_key(|line| (line.1, line.2));
        lines
    };
    let theirs = sorted(recorded(name));
    let mut best: Option<(usize, String)> = None;
    for phase in (0..PHASES).map(Duration::from_millis) {
        let ours = sorted(play(case, phase));
        let (wrong, table) = beside(&theirs, &ours);
        if wrong == 0 {
            return;
        }
        if best.as_ref().is_none_or(|(least, _)| wrong < *least) {
            best = Some((wrong, table));
        }
    }
    let (_, table) = best.expect("there are phases");
    panic!(
        "{name}: Linux 6.18 (ms, bytes) on the left, profile linux at its best phase on the right\n{table}"
    );
}

/// How many lines disagree, and the lines side by side.
fn beside(theirs: &[Line], ours: &[Line]) -> (usize, String) {
    let (mut table, mut wrong) = (String::new(), 0);
    for index in 0..theirs.len().max(ours.len()) {
        let (a, b) = (theirs.get(index), ours.get(index));
        let agree = matches!((a, b), (Some(a), Some(b)) if (a.1, a.2, a.3) == (b.1, b.2, b.3)
            && b.0 <= a.0 + Duration::from_millis(1) && a.0 - b.0 <= LATE);
        wrong += usize::from(!agree);
        let show = |line: Option<&Line>| {
            line.map_or(String::new(), |(at, start, end, fin)| {
                format!(
                    "{:8.1} {start}:{end}{}",
                    at.as_secs_f64() * 1e3,
                    if *fin { " FIN" } else { "" }
                )
            })
        };
        let _ = writeln!(
            table,
            "{:<32}{:<32}{}",
            show(a),
            show(b),
            if agree { "" } else { "  <--" }
        );
    }
    (wrong, table)
}

/// Half a millisecond per round trip of processing, and the lateness of the recording process. Timers have no allowance.
const LATE: Duration = Duration::from_millis(6);

/// Phases that are tried, in milliseconds: the coarsest ticks of timers below 16 s, 64 jiffies of HZ 250.
const PHASES: u64 = 256;

fn drop(bytes: u64, indices: impl IntoIterator<Item = usize>) -> Case {
    Case {
        drop: indices.into_iter().collect(),
        ..Case::one(bytes)
    }
}

#[test]
fn slow_start_without_loss() {
    compare("clean-100k", &Case::one(100_000));
}

#[test]
fn slow_start_at_ten_megabits() {
    compare(
        "clean-10mbit",
        &Case {
            rate: Rate(10_000_000),
            limit: 1000,
            ..Case::one(400_000)
        },
    );
}

#[test]
fn a_queue_of_fifty_overflows_in_slow_start() {
    compare(
        "queue-50",
        &Case {
            rate: Rate(10_000_000),
            limit: 50,
            ..Case::one(600_000)
        },
    );
}

#[test]
fn reno_overflows_a_queue_of_fifty_without_hystart() {
    let case = Case {
        rate: Rate(10_000_000),
        limit: 50,
        control: "reno",
        ..Case::one(600_000)
    };
    // Up to the first loss. Which of two segments that arrive together finds room then differs between recordings, how
    // many are lost does not.
    compare_until("reno-queue-50", &case, 360_553);
    let again = |lines: &[Line]| lines.iter().filter(|line| line.2 > line.1).count() - SEGMENTS;
    const SEGMENTS: usize = 600_000_usize.div_ceil(1448);
    assert_eq!(
        (
            again(&recorded("reno-queue-50")),
            again(&play(&case, Duration::ZERO))
        ),
        (78, 78)
    );
}

#[test]
fn one_byte() {
    compare("one-byte", &Case::one(1));
}

#[test]
fn the_fin_goes_with_what_is_unsent_or_alone() {
    let writes = vec![(Duration::ZERO, 100), (Duration::ZERO, 100)];
    compare("small-writes", &Case::new(writes));
    compare("full-window", &Case::one(14_480));
    compare("one-more", &Case::one(14_481));
}

#[test]
fn lost_tails_are_probed_and_repaired() {
    for (name, indices) in [
        ("tail-1", 9..10),
        ("tail-2", 8..10),
        ("tail-3", 7..10),
        ("tail-10", 0..10),
    ] {
        compare(name, &drop(14_480, indices));
    }
}

#[test]
fn a_lost_probe_leaves_the_retransmission_timer() {
    compare("tail-10-and-probe", &drop(14_480, 0..11));
}

#[test]
fn losses_in_the_window_are_repaired_by_rack() {
    compare("first-lost", &drop(60_000, [0]));
    // There a jiffy passed among the nine ACKs of the round before, which arrive here at one instant: Linux looked at its
    // curve twice, and its window is ten segments where it is twelve without the tick.
    compare_until("middle-lost", &drop(60_000, [3]), 56_473);
    compare("two-lost", &drop(60_000, [3, 6]));
    compare("five-lost", &drop(60_000, [1, 3, 5, 7, 8]));
}

/// The second recovery begins while a retransmission of the first is under way, and is not taken back when that arrives.
#[test]
fn a_recovery_follows_another() {
    let case = Case {
        rate: Rate::from_bps(10_000_000),
        limit: 1000,
        drop: vec![40, 80, 91, 119],
        ..Case::one(300_000)
    };
    compare("two-recoveries", &case);
}

#[test]
fn a_retransmission_among_others_is_lost() {
    compare("retransmission-lost", &drop(60_000, [3, 16]));
}

#[test]
fn lost_handshakes_wait_a_second() {
    compare(
        "syn-lost",
        &Case {
            drop_syn: 1,
            ..Case::one(14_480)
        },
    );
    compare(
        "synack-lost",
        &Case {
            drop_synack: 1,
            ..Case::one(14_480)
        },
    );
}

#[test]
fn syns_wait_on_the_timer_wheel() {
    compare(
        "syns-lost",
        &Case {
            drop_syn: 3,
            ..Case::one(14_480)
        },
    );
}

#[test]
fn timeouts_back_off_on_the_timer_wheel() {
    compare(
        "queue-then-silence",
        &Case {
            rate: Rate(10_000_000),
            limit: 1000,
            ..drop(300_000, 190..212)
        },
    );
}

#[test]
fn the_timeout_has_the_peak_of_the_deviation() {
    let writes = [0, 1, 2, 3, 4, 5, 14].map(|i| (Duration::from_millis(500 * i), 120));
    let ms = Duration::from_millis;
    compare(
        "late-then-lost",
        &Case {
            nodelay: true,
            hold: vec![(2, ms(280)), (3, ms(330))],
            drop: vec![6, 7],
            ..Case::new(writes.to_vec())
        },
    );
}

#[test]
fn an_idle_second_shrinks_the_window() {
    let writes = vec![(Duration::ZERO, 100_000), (Duration::from_millis(2000), 60_000)];
    compare("idle-1s", &Case::new(writes));
}

#[test]
fn thin_streams_with_and_without_nagle() {
    let writes = |n: u64| (0..n).map(|i| (Duration::from_millis(30 * i), 120)).collect();
    compare(
        "thin",
        &Case {
            nodelay: true,
            ..Case::new(writes(20))
        },
    );
    compare("thin-nagle", &Case::new(writes(20)));
}

#[test]
fn a_late_segment_is_not_taken_for_lost_twice() {
    compare(
        "reordered",
        &Case {
            hold: vec![(4, Duration::from_millis(30))],
            ..Case::one(60_000)
        },
    );
}

/// An acknowledgment of the receiver: when it left, what it acknowledges, its window field, and the SACK blocks.
type Answer = (Duration, u32, u16, Vec<(u32, u32)>);

/// A line of a record whose times are those at the receiver.
struct AtReceiver<'a> {
    at: Instant,
    /// Whether the packet came from the data sender.
    came: bool,
    flags: &'a str,
    start: u32,
    end: u32,
    ack: u32,
    window: u16,
    blocks: Vec<(u32, u32)>,
    /// Tick of the receiver's clock whose timestamp is echoed.
    echo: u32,
}

impl<'a> AtReceiver<'a> {
    /// `None`: the packet was dropped.
    fn of(line: &'a str) -> Option<AtReceiver<'a>> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |text: &str| text.parse::<u32>().expect("a number");
        let pair = |text: &str| {
            let (left, right) = text.split_once(':').expect("left:right");
            (number(left), number(right))
        };
        let option = |name| words[6..].iter().find_map(|word| word.strip_prefix(name));
        let ms: f64 = words[0].parse().expect("a time in ms");
        let (start, end) = pair(words[3]);
        let line = AtReceiver {
            at: Instant::ZERO + Duration::from_secs_f64(ms / 1e3),
            came: words[1] == ">",
            flags: words[2],
            start,
            end,
            ack: number(words[4]),
            window: number(words[5]) as u16,
            blocks: option("sack=").map_or(Vec::new(), |blocks| blocks.split(',').map(pair).collect()),
            echo: option("echo=").map_or(0, number),
        };
        (!line.flags.contains('x')).then_some(line)
    }

    /// The segment, for a receiver whose clock of timestamps stood at `clock` at tick 0.
    fn segment(&self, clock: u32) -> Segment {
        let mut flags = Flags::DF.with(Flags::TIMESTAMPS);
        for (letter, flag) in [
            (
                'S',
                Flags::SYN
                    .with(Flags::MSS)
                    .with(Flags::SCALE)
                    .with(Flags::SACK_PERMITTED),
            ),
            ('F', Flags::FIN),
            ('P', Flags::PSH),
            ('.', Flags::ACK),
        ] {
            if self.flags.contains(letter) {
                flags = flags.with(flag);
            }
        }
        let syn = self.flags.contains('S');
        Segment {
            seq: SENDER_ISS + self.start,
            ack: RECEIVER_ISS + self.ack,
            tsval: (self.at.as_nanos() / 1_000_000) as u32 + 1,
            tsecr: clock.wrapping_add(self.echo),
            options: [if syn { 1460 | 10 << 16 } else { 0 }, 0, 0, 0, 0, 0],
            payload: self.end - self.start,
            window: self.window,
            flags,
            ttl: 64,
            overhead: if syn { 60 } else { 52 },
            ..Segment::default()
        }
    }
}

/// Gives the receiver what came to it in the record; returns its acknowledgments.
fn answers(lines: &[AtReceiver]) -> Vec<Answer> {
    let config = Arc::new(Config::profile(Profile::Linux));
    let mut lines = lines.iter().filter(|line| line.came).peekable();
    let syn = lines.next().expect("a SYN");
    let mut server = Connection::accept(syn.at, &config, RECEIVER_ISS, &syn.segment(0));
    server.set(syn.at, Setting::AutoRead(true));
    let (mut now, mut clock, mut answers) = (syn.at, 0, Vec::new());
    loop {
        while let Some(event) = server.poll_event() {
            if event == Event::PeerClosed {
                server.close(now);
            }
        }
        while let Some(transmit) = server.poll_transmit(now) {
            let segment = transmit.segment;
            clock = segment.tsval.wrapping_sub((now.as_nanos() / 1_000_000) as u32);
            let blocks = (0..segment.sack_blocks()).map(|block| {
                let (left, right) = segment.sack_block(block);
                (
                    left.distance(SENDER_ISS) as u32,
                    right.distance(SENDER_ISS) as u32,
                )
            });
            let ack = segment.ack.distance(SENDER_ISS) as u32;
            answers.push((now.since(Instant::ZERO), ack, segment.window, blocks.collect()));
        }
        let arrival = lines.peek().map(|line| line.at);
        let Some(next) = [arrival, server.poll_timeout()].into_iter().flatten().min() else {
            return answers;
        };
        now = next;
        if arrival == Some(now) {
            let segment = lines.next().expect("it was peeked at").segment(clock);
            server.on_segment(now, &segment);
        } else if now > Instant::from_millis(10_000) {
            return answers;
        } else {
            server.on_timeout(now);
        }
    }
}

/// Holds the receiver to the record: the same acknowledgments with the same windows and blocks, none more than `tolerance`
/// earlier or later.
fn compare_answers(name: &str, tolerance: Duration) {
    let text = text_of(name);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<AtReceiver> = lines.filter_map(AtReceiver::of).collect();
    let ours = answers(&lines);
    let theirs = lines.iter().filter(|line| !line.came);
    let theirs: Vec<Answer> = theirs
        .map(|line| {
            (
                line.at.since(Instant::ZERO),
                line.ack,
                line.window,
                line.blocks.clone(),
            )
        })
        .collect();
    let mut table = String::new();
    let mut same = theirs.len() == ours.len();
    for index in 0..theirs.len().max(ours.len()) {
        let (a, b) = (theirs.get(index), ours.get(index));
        let agree = matches!((a, b), (Some(a), Some(b)) if (a.1, a.2, &a.3) == (b.1, b.2, &b.3)
            && a.0.max(b.0) - a.0.min(b.0) <= tolerance);
        same &= agree;
        let show = |line: Option<&Answer>| {
            line.map_or(String::new(), |(at, ack, window, blocks)| {
                format!("{:8.3} {ack} {window} {blocks:?}", at.as_secs_f64() * 1e3)
            })
        };
        let mark = if agree { "" } else { "  <--" };
        let _ = writeln!(table, "{:<60}{:<60}{mark}", show(a), show(b));
    }
    assert!(
        same,
        "{name}: Linux 6.18 (ms, acknowledged, window, SACK) on the left, profile linux on the right\n{table}"
    );
}

#[test]
fn the_receive_buffer_is_tuned() {
    compare_answers("tuned", Duration::from_millis(1));
}

#[test]
fn sacks_of_disorder_are_held_back() {
    compare_answers("tuned-one-lost", Duration::from_millis(1));
    compare_answers("tuned-many-lost", Duration::from_millis(1));
}
