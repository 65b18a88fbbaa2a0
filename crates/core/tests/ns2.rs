//! The profile `ns2-sack` beside what ns-2.35 really did.
//!
//! `specs/ns-2.35/*.txt` are single flows over one link, recorded by `bench/peers/ns2.sh`: the first line has the arguments
//! of `bench/peers/ns2-single.tcl`, then comes a line per packet that left the sender, microseconds and number (the SYN is 0).
//! Each is played here with two connections over the same link, and must agree packet by packet, times included.
//! `FLEETFOOT_NS2_RECORDS` names another folder of records.

use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{Config, Connection, Event, InitialWindow, Profile, Setting, WriteFlags};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

const PAYLOAD: u32 = 1_460;
/// The phase of the RTT clock is this part of a tick, 0.6. ns-2's (`boot_time_`) is random; its RTTs in `far-path` show that it
/// is between 0.530 and 0.684.
const SENDER_ISS: SeqNumber = SeqNumber(2576980377);
const RECEIVER_ISS: SeqNumber = SeqNumber(77);

/// The arguments of the recorder.
#[derive(Debug)]
struct Case {
    profile: Profile,
    packets: u64,
    initial_window: u32,
    window: u32,
    limit: usize,
    delay: Duration,
    drops: Vec<usize>,
}

impl Case {
    fn parse(line: &str) -> Case {
        let words: Vec<&str> = line
            .split([' ', '{', '}'])
            .filter(|word| !word.is_empty())
            .collect();
        let number = |index: usize| -> u64 { words[index].parse().expect("a number") };
        Case {
            profile: match words[1] {
                "Sack1" => Profile::Ns2Sack,
                "Newreno" => Profile::Ns2NewReno,
                other => panic!("no profile for {other}"),
            },
            packets: number(2),
            initial_window: number(3) as u32,
            window: number(4) as u32,
            limit: number(5) as usize,
            delay: Duration::from_secs_f64(words[6].parse().expect("seconds")),
            drops: words[7..]
                .iter()
                .map(|word| word.parse().expect("a place"))
                .collect(),
        }
    }
}

/// One direction of the link: 8 Mbit/s behind a queue of `limit` packets.
struct Direction {
    limit: usize,
    delay: Duration,
    free_at: Instant,
    /// When the packets that wait begin to be sent.
    waiting: VecDeque<Instant>,
}

impl Direction {
    /// When a packet of `bytes` that comes now arrives; `None`: the queue is full.
    fn carry(&mut self, now: Instant, bytes: u64) -> Option<Instant> {
        // What arrives in the instant in which a packet's last bit left still finds it there, as in ns-2, whose events
        // of one instant come in the order in which they were scheduled.
        while self.waiting.front().is_some_and(|&start| start < now) {
            self.waiting.pop_front();
        }
        let start = self.free_at.max(now);
        if self.free_at >= now && now > Instant::ZERO {
            if self.waiting.len() >= self.limit {
                return None;
            }
            self.waiting.push_back(start);
        }
        self.free_at = start + Rate::from_bps(8_000_000).time_for(Bytes(bytes));
        Some(self.free_at + self.delay)
    }
}

/// (microseconds, packet) of every packet that left the sender.
type Line = (u64, u64);

fn play(case: &Case) -> Vec<Line> {
    let config = Arc::new(Config {
        mtu: PAYLOAD + 40,
        initial_window: InitialWindow::Segments(case.initial_window),
        max_window_segments: Some(case.window),
        ..Config::profile(case.profile)
    });
    let direction = |limit| Direction {
        limit,
        delay: case.delay,
        free_at: Instant::ZERO,
        waiting: VecDeque::new(),
    };
    let (mut forward, mut backward) = (direction(case.limit), direction(usize::MAX));
    let mut client = Connection::connect(Instant::ZERO, &config, SENDER_ISS);
    let mut server: Option<Connection> = None;
    let mut wire: BTreeMap<(Instant, u64), (bool, Segment)> = BTreeMap::new();
    let (mut order, mut sent) = (0_u64, 0_usize);
    let mut now = Instant::ZERO;
    let mut lines = Vec::new();
    let total = case.packets * u64::from(PAYLOAD);
    while client.acked() < total && now < Instant::from_millis(300_000) {
        while let Some(event) = client.poll_event() {
            if event == Event::Established {
                let taken = client.write(now, Bytes(total), WriteFlags::default());
                assert_eq!(taken, Bytes(total));
            }
        }
        while let Some(transmit) = client.poll_transmit(now) {
            let segment = transmit.segment;
            let syn = segment.flags.contains(Flags::SYN);
            if segment.payload == 0 && !syn {
                continue; // ns-2 has no third segment of the handshake
            }
            let packet = (segment.seq.distance(SENDER_ISS) as u64).div_ceil(u64::from(PAYLOAD));
            lines.push((now.as_nanos() / 1_000, packet));
            let lost = case.drops.contains(&sent);
            sent += 1;
            if !lost && let Some(due) = forward.carry(now, 40 + u64::from(segment.payload)) {
                order += 1;
                wire.insert((due, order), (true, segment));
            }
        }
        if let Some(server) = &mut server {
            while let Some(transmit) = server.poll_transmit(now) {
                let segment = transmit.segment;
                let bytes = 40 + 8 * segment.sack_blocks() as u64;
                if let Some(due) = backward.carry(now, bytes) {
                    order += 1;
                    wire.insert((due, order), (false, segment));
                }
            }
        }
        let arrival = wire.first_key_value().map(|((due, _), _)| *due);
        let timer = client.poll_timeout();
        let Some(next) = [arrival, timer].into_iter().flatten().min() else {
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
                server = Some(accepted);
            }
        } else {
            client.on_timeout(now);
        }
    }
    lines
}

/// Where the two part, with a few lines before and after; `None`: nowhere.
fn divergence(theirs: &[Line], ours: &[Line]) -> Option<String> {
    let at = (0..theirs.len().max(ours.len())).find(|&index| theirs.get(index) != ours.get(index))?;
    let mut table = String::new();
    for index in at.saturating_sub(6)..(at + 10).min(theirs.len().max(ours.len())) {
        let show =
            |line: Option<&Line>| line.map_or(String::new(), |(at, packet)| format!("{at:>10} {packet:>5}"));
        let _ = writeln!(
            table,
            "{index:>6} {:<20}{:<20}{}",
            show(theirs.get(index)),
            show(ours.get(index)),
            if index == at { "  <--" } else { "" }
        );
    }
    Some(table)
}

#[test]
fn every_record_agrees() {
    let folder = std::env::var("FLEETFOOT_NS2_RECORDS")
        .unwrap_or_else(|_| format!("{}/../../specs/ns-2.35", env!("CARGO_MANIFEST_DIR")));
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the records")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    assert!(names.len() >= 20, "{} records", names.len());
    let mut report = String::new();
    for path in &names {
        let text = std::fs::read_to_string(path).expect("a record");
        let case = Case::parse(text.lines().next().expect("a first line"));
        let theirs: Vec<Line> = text
            .lines()
            .filter(|line| !line.starts_with(['#', 't']))
            .map(|line| {
                let (at, packet) = line.split_once(' ').expect("two words");
                (
                    at.parse().expect("microseconds"),
                    packet.parse().expect("a number"),
                )
            })
            .collect();
        if let Some(table) = divergence(&theirs, &play(&case)) {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
            let _ = writeln!(report, "{}: {case:?}\n{table}", name.unwrap_or_default());
        }
    }
    assert!(report.is_empty(), "{report}");
}
