//! The rules where mechanisms meet and the invariants of docs/design/endpoint.md, over combinations of mechanisms on bad pipes.
//!
//! Every combination of what repairs losses is run: RTO restart, the probe and its restart, early retransmit, RACK,
//! bundling. The other switches are drawn for each; a test counts that every value of every switch meets every value of
//! every other. What is asserted after every event:
//!
//! - SND.UNA <= SND.NXT, the pipe as a recount gives it, at least a segment of window, a timer exactly while something is
//!   out or waits: [`Connection::check`].
//! - No segment is sent again twice within the smallest RTT (but after a timeout without RACK), no payload is larger than the MSS, nothing lies beyond what
//!   the peer offered but a zero-window probe.
//! - One reduction per window of data: losses, marks, delay, hidden losses and probes share it; timeouts and what is
//!   undone begin anew.
//! - The probe waits only in Open with nothing SACKed, never longer than the timeout, and adds a segment at most.
//! - If nothing was sent again in vain, nothing is undone, no probe is called redundant and RACK's window does not
//!   widen: what bundles duplicate is invisible to them.
//! - Every byte is delivered once.

use super::pair::{End, Fate, Pair, Sent};
use super::script::{Script, T0};
use crate::cc::AnyController;
use crate::rng::Rng;
use crate::tcp::{
    CaState, Config, Connection, DelayedAck, EarlyRetransmit, EcnFeedback, HiddenLoss, InFlight,
    InitialSpreading, Pacing, Profile, Prr, Rdb, TailLossProbe, ThinRule, TimeoutRules, Timer, TimerGrid,
    WindowGrowth, WindowUnit, WindowValidation, WriteFlags,
};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

const MSS: u32 = 1460;
/// Of the path; what is late comes later.
const RTT: Duration = Duration::from_millis(100);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Each segment of the spread window moves the probe two round trips on (docs/design/endpoint.md#spreading-tlp).
#[test]
fn the_probe_follows_each_spread_segment() {
    let mut config = Config::profile(Profile::Linux2015);
    config.tail_loss_probe = TailLossProbe::Draft;
    config.initial_spreading = InitialSpreading::Bounded;
    let mut script = Script::established(&config, ms(80), 10 * u64::from(MSS), MSS);
    let bytes = Bytes(10 * u64::from(MSS));
    script.connection.write(script.now, bytes, WriteFlags::default());
    for segment in 0..10 {
        script.at(4 * segment);
        assert_eq!(script.drain().len(), 1, "one every 4 ms");
        let timers = &script.connection.shared.timers;
        // With one segment out 1.5 RTT and 200 ms; the timeout of 280 ms, which the first segment began, is sooner.
        let due = if segment == 0 {
            T0 + ms(280)
        } else {
            script.now + ms(160)
        };
        assert!(timers.is_due(Timer::Pto, due), "segment {segment}");
        assert!(
            !timers.is_due(Timer::Pto, due - Duration::from_nanos(1)),
            "segment {segment}"
        );
    }
}

/// A switch: its name, and what its values do to a configuration.
type Switch = (&'static str, &'static [fn(&mut Config)]);

fn nothing(_: &mut Config) {}

/// Those of which every combination is run; then those that are drawn.
const REPAIRS: [Switch; 6] = [
    ("rto_restart", &[nothing, |c| c.rto_restart = true]),
    (
        "tail_loss_probe",
        &[
            |c| c.tail_loss_probe = TailLossProbe::Off,
            |c| c.tail_loss_probe = TailLossProbe::Draft,
            |c| c.tail_loss_probe = TailLossProbe::Rfc8985,
        ],
    ),
    (
        "tail_loss_probe_restart",
        &[nothing, |c| c.tail_loss_probe_restart = true],
    ),
    (
        "early_retransmit",
        &[
            |c| c.early_retransmit = EarlyRetransmit::Off,
            |c| c.early_retransmit = EarlyRetransmit::Rfc5827,
            |c| c.early_retransmit = EarlyRetransmit::Immediate,
            |c| c.early_retransmit = EarlyRetransmit::Delayed,
        ],
    ),
    ("rack", &[|c| c.rack = false, |c| c.rack = true]),
    (
        "rdb",
        &[
            nothing,
            |c| c.rdb = Some(Rdb::STANDARD),
            |c| {
                c.rdb = Some(Rdb {
                    thin: ThinRule::Packets(8),
                    max_segments: 0,
                    detect: HiddenLoss::Original,
                    ..Rdb::STANDARD
                });
            },
            |c| {
                c.rdb = Some(Rdb {
                    thin: ThinRule::Packets(4),
                    in_flight: InFlight::Out,
                    max_segments: 2,
                    charge: true,
                    budget: 50,
                    ..Rdb::STANDARD
                });
            },
            |c| {
                c.rdb = Some(Rdb {
                    min_loss: true,
                    spaced: true,
                    tfrc_bound: true,
                    ..Rdb::STANDARD
                });
            },
        ],
    ),
];

const OTHERS: [Switch; 25] = [
    (
        "window_validation",
        &[
            |c| c.window_validation = WindowValidation::None,
            |c| c.window_validation = WindowValidation::Rfc5681,
            |c| c.window_validation = WindowValidation::Rfc2861,
            |c| c.window_validation = WindowValidation::NewCwv,
            |c| c.window_validation = WindowValidation::NewCwvProbing,
        ],
    ),
    (
        "congestion_control",
        &[
            |c| c.congestion_control = "reno",
            |c| c.congestion_control = "cubic",
            |c| c.congestion_control = "dctcp",
            |c| c.congestion_control = "prague",
            |c| c.congestion_control = "cdg",
            |c| c.congestion_control = "cdg-freebsd",
            |c| c.congestion_control = "vegas",
            |c| c.congestion_control = "westwood",
            |c| c.congestion_control = "bbr",
            |c| c.congestion_control = "bbr3",
        ],
    ),
    (
        "initial_spreading",
        &[
            nothing,
            |c| c.initial_spreading = InitialSpreading::Variable,
            |c| c.initial_spreading = InitialSpreading::Bounded,
            |c| c.initial_spreading = InitialSpreading::Known,
            |c| c.initial_spreading = InitialSpreading::Estimated,
            |c| {
                c.initial_spreading = InitialSpreading::Estimated;
                c.spreading_phase = true;
                c.spreading_tail = true;
            },
            |c| {
                c.initial_spreading = InitialSpreading::Estimated;
                c.spreading_jitter_percent = 60;
            },
        ],
    ),
    (
        "pacing",
        &[nothing, |c| c.pacing = Pacing::Full, |c| c.pacing = Pacing::Linux],
    ),
    (
        "prr",
        &[
            |c| c.prr = Prr::Off,
            |c| c.prr = Prr::Rfc6937Crb,
            |c| c.prr = Prr::Rfc6937Ssrb,
            |c| c.prr = Prr::Rfc9937,
            |c| c.prr = Prr::Linux,
        ],
    ),
    ("sack", &[|c| c.sack = true, |c| c.sack = false]),
    ("dsack", &[|c| c.dsack = true, |c| c.dsack = false]),
    ("timestamps", &[|c| c.timestamps = true, |c| c.timestamps = false]),
    (
        "delayed_ack",
        &[
            nothing,
            |c| c.delayed_ack = DelayedAck::Off,
            |c| {
                c.delayed_ack = DelayedAck::Standard { timeout: ms(40) };
            },
        ],
    ),
    ("thin_dupack", &[nothing, |c| c.thin_dupack = true]),
    ("thin_linear", &[nothing, |c| c.thin_linear = true]),
    ("learn_ack_delay", &[nothing, |c| c.learn_ack_delay = true]),
    (
        "coalesce_unsent",
        &[|c| c.coalesce_unsent = true, |c| c.coalesce_unsent = false],
    ),
    ("nagle", &[|c| c.nagle = true, |c| c.nagle = false]),
    ("frto", &[|c| c.frto = true, |c| c.frto = false]),
    ("undo", &[|c| c.undo = true, |c| c.undo = false]),
    (
        "ecn",
        &[
            |c| c.ecn = false.into(),
            |c| c.ecn = true.into(),
            |c| c.ecn = EcnFeedback::Accurate,
        ],
    ),
    (
        "window_unit",
        &[
            |c| c.window_unit = WindowUnit::Bytes,
            |c| c.window_unit = WindowUnit::Packets,
        ],
    ),
    (
        "growth",
        &[
            |c| c.growth = WindowGrowth::CwndLimited,
            |c| c.growth = WindowGrowth::Linux,
            |c| c.growth = WindowGrowth::Always,
        ],
    ),
    ("fack", &[|c| c.fack = false, |c| c.fack = true]),
    (
        "receive_buffer",
        &[nothing, |c| {
            c.receive_memory = None;
            c.receive_buffer = Bytes(8_000);
        }],
    ),
    ("lone_fin", &[|c| c.lone_fin = false, |c| c.lone_fin = true]),
    (
        "fin_beyond_window",
        &[|c| c.fin_beyond_window = false, |c| c.fin_beyond_window = true],
    ),
    (
        "lone_handshake_ack",
        &[|c| c.lone_handshake_ack = false, |c| c.lone_handshake_ack = true],
    ),
    (
        "sack_compression",
        &[
            nothing,
            |c| c.sack_compression = true,
            |c| {
                c.sack_compression = false;
            },
        ],
    ),
];

/// The base that switches change.
const PROFILES: [Profile; 3] = [Profile::Linux2015, Profile::Linux, Profile::Rfc];

/// Index of a value of each switch, the profile first.
type Choice = Vec<usize>;

fn all_switches() -> impl Iterator<Item = Switch> {
    REPAIRS.into_iter().chain(OTHERS)
}

/// Combination `number`: the repairs are its digits, the others are drawn.
fn choice(number: usize) -> Choice {
    let mut rng = Rng::for_element(number as u64, "combination", "draw");
    let mut rest = number;
    let mut chosen = vec![rng.below(PROFILES.len() as u64) as usize];
    for (_, values) in REPAIRS {
        chosen.push(rest % values.len());
        rest /= values.len();
    }
    chosen.extend(
        OTHERS
            .iter()
            .map(|(_, values)| rng.below(values.len() as u64) as usize),
    );
    chosen
}

pub(super) fn combinations() -> usize {
    REPAIRS.iter().map(|(_, values)| values.len()).product()
}

/// The configuration of combination `number`.
pub(super) fn combination(number: usize) -> Config {
    configured(&choice(number))
}

fn configured(choice: &Choice) -> Config {
    let mut config = Config::profile(PROFILES[choice[0]]);
    config.timer_grid = TimerGrid::Exact;
    for ((_, values), index) in all_switches().zip(&choice[1..]) {
        values[*index](&mut config);
    }
    config
}

#[test]
fn every_value_of_every_switch_meets_every_value_of_every_other() {
    let names: Vec<(&str, usize)> = core::iter::once(("profile", PROFILES.len()))
        .chain(all_switches().map(|(name, values)| (name, values.len())))
        .collect();
    let chosen: Vec<Choice> = (0..combinations()).map(choice).collect();
    let (mut pairs, mut missing) = (0, Vec::new());
    for (first, a) in names.iter().enumerate() {
        for (second, b) in names.iter().enumerate().skip(first + 1) {
            for (x, y) in (0..a.1).flat_map(|x| (0..b.1).map(move |y| (x, y))) {
                pairs += 1;
                if !chosen
                    .iter()
                    .any(|choice| choice[first] == x && choice[second] == y)
                {
                    missing.push((a.0, x, b.0, y));
                }
            }
        }
    }
    assert_eq!(missing, [], "of {pairs} pairs");
    assert!(
        chosen.len() == 480 && pairs > 2500,
        "{} combinations, {pairs} pairs",
        chosen.len()
    );
}

#[test]
fn every_congestion_control_is_drawn() {
    let (_, values) = all_switches()
        .find(|(name, _)| *name == "congestion_control")
        .expect("a switch");
    let mut config = Config::profile(Profile::Rfc);
    let drawn: Vec<&str> = values
        .iter()
        .map(|set| {
            set(&mut config);
            config.congestion_control
        })
        .collect();
    let all: Vec<&str> = AnyController::ENTRIES.iter().map(|entry| entry.name).collect();
    assert_eq!(drawn, all);
}

/// Combinations `part` of four.
fn run_part(part: usize) {
    for number in (part..combinations()).step_by(4) {
        run(number);
    }
}

#[test]
fn combinations_keep_the_invariants_1() {
    run_part(0);
}

#[test]
fn combinations_keep_the_invariants_2() {
    run_part(1);
}

#[test]
fn combinations_keep_the_invariants_3() {
    run_part(2);
}

#[test]
fn combinations_keep_the_invariants_4() {
    run_part(3);
}

/// What a pipe does to segments.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pipe {
    /// Loses data, and nothing else: what arrives twice was sent twice.
    Lossy,
    /// Loses both ways, duplicates, delays, marks.
    Bad,
}

fn run(number: usize) {
    let config = combination(number);
    for pipe in [Pipe::Lossy, Pipe::Bad] {
        let mut watch = Watch::new(&config, pipe, number);
        watch.run();
    }
}

/// A pair that this pipe joins, with what its application writes, and how much that is.
fn connected(config: &Config, pipe: Pipe, number: usize) -> (Pair, u64) {
    let mut pair = Pair::established(config, ms(50), RTT, 10 * u64::from(MSS), MSS);
    let mut rng = Rng::for_element(number as u64, "pipe", "fate");
    let loss = [2, 8, 15][number % 3];
    pair.decide = Box::new(move |sent, _| match (pipe, rng.below(100)) {
        (_, draw) if draw < loss && sent.from == End::A => Fate::Drop,
        (Pipe::Lossy, _) => Fate::Deliver,
        (Pipe::Bad, draw) if draw < loss / 2 => Fate::Drop,
        (Pipe::Bad, 95) => Fate::Mark,
        (Pipe::Bad, 96) => Fate::Twice,
        (Pipe::Bad, 97..) => Fate::Delay(ms(rng.below(150))),
        (Pipe::Bad, _) => Fate::Deliver,
    });
    let mut draw = Rng::for_element(number as u64, "writes", "draw");
    let (mut when, mut total) = (0, 0);
    for index in 0..90 {
        let bytes = if index % 30 == 29 {
            20_000
        } else {
            1 + draw.below(400)
        };
        pair.write_at(Instant::from_millis(when), End::A, bytes);
        total += bytes;
        // Now and then a pause longer than any timeout of this path.
        when += if index % 45 == 44 { 4000 } else { draw.below(60) };
    }
    (pair, total)
}

/// A moment of a combination's run, for messages.
fn described(number: usize, pipe: Pipe, now: Instant) -> String {
    let names = core::iter::once("profile").chain(all_switches().map(|(name, _)| name));
    let chosen: Vec<_> = names.zip(choice(number)).collect();
    format!("combination {number}, {pipe:?}, at {now:?}: {chosen:?}")
}

struct Watch {
    number: usize,
    pipe: Pipe,
    pair: Pair,
    /// Without header prediction.
    long: Pair,
    total: u64,
    /// Entries of the log that were looked at.
    looked: usize,
    /// Bytes sent at least once.
    highest: u64,
    /// When each byte was sent again last.
    again: Vec<Option<Instant>>,
    /// From when on the receiver has each byte, on a pipe that only loses.
    there: Vec<Option<Instant>>,
    /// Something was sent again that the receiver had, or was to have.
    in_vain: bool,
    /// Where the window of the last reduction ended.
    reduced: Option<u64>,
    counts: Counts,
}

/// What the sender counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    recoveries: u32,
    reductions: u32,
    timeouts: u32,
    /// Timeouts, and reductions that were taken back.
    restarts: u32,
    probes: u32,
}

impl Counts {
    fn of(connection: &Connection) -> Counts {
        let stats = connection.stats();
        Counts {
            recoveries: stats.recoveries,
            reductions: stats.window_reductions,
            timeouts: stats.timeouts,
            restarts: stats.timeouts + stats.undos,
            probes: stats.probes,
        }
    }
}

impl Watch {
    fn new(config: &Config, pipe: Pipe, number: usize) -> Watch {
        let (pair, total) = connected(config, pipe, number);
        let (mut long, _) = connected(config, pipe, number);
        long.switch_header_prediction_off();
        Watch {
            number,
            pipe,
            pair,
            long,
            total,
            looked: 0,
            highest: 0,
            again: vec![None; total as usize],
            there: vec![None; total as usize],
            in_vain: false,
            reduced: None,
            counts: Counts::default(),
        }
    }

    /// For messages.
    fn name(&self) -> String {
        described(self.number, self.pipe, self.pair.now)
    }

    fn run(&mut self) {
        let end = Instant::from_millis(20_000_000);
        while self.pair.now < end && self.pair.a.acked() < self.total {
            let (state, pipe) = self.sender();
            let more = self.pair.step();
            assert_eq!(more, self.long.step(), "{}", self.name());
            if !more {
                break;
            }
            super::check(&self.pair.a);
            self.look_at_long();
            self.look_at_window(state, pipe);
            self.look_at_segments();
            self.look_at_timer();
        }
        let name = self.name();
        assert_eq!(
            self.pair.a.acked(),
            self.total,
            "{name}: {:?}",
            self.pair.a.info(self.pair.now)
        );
        assert_eq!(self.pair.taken, self.total, "{name}: every byte once");
        assert_eq!(
            self.pair.b.as_ref().map(Connection::received),
            Some(self.total),
            "{name}"
        );
        self.look_at_mistakes();
    }

    /// Header prediction changes nothing that can be seen.
    fn look_at_long(&mut self) {
        let (number, pipe, now) = (self.number, self.pipe, self.pair.now);
        let context = || described(number, pipe, now);
        self.pair.assert_like(&mut self.long, self.looked, &context);
    }

    fn sender(&self) -> (CaState, u64) {
        let sender = self.pair.a.sender.as_ref().expect("it is established");
        (sender.recovery.state(), sender.board.pipe())
    }

    fn look_at_segments(&mut self) {
        for index in self.looked..self.pair.log.len() {
            let sent = self.pair.log[index];
            if sent.from == End::B {
                continue;
            }
            let (start, end) = (sent.transmit.start, sent.transmit.end);
            assert!(sent.transmit.segment.payload <= MSS, "{}: {sent:?}", self.name());
            // RFC 9293 3.8.6 (MAY-7): what left when the window was larger may be sent again. Windows that are announced in
            // units of the scale shrink by less than one.
            let new = end > self.highest;
            assert!(
                !new || end <= self.pair.a.shared.peer.edge() || sent.transmit.segment.payload <= 1,
                "{}: beyond the peer's window: {sent:?}",
                self.name()
            );
            if new {
                self.highest = end; // new data, maybe with older data before it
            } else if start < end {
                self.look_at_repetition(&sent);
            }
            if sent.fate != Fate::Drop {
                for at in &mut self.there[start as usize..(end.min(self.total)) as usize] {
                    at.get_or_insert(sent.at);
                }
            }
        }
        self.looked = self.pair.log.len();
    }

    fn look_at_repetition(&mut self, sent: &Sent) {
        let range = sent.transmit.start as usize..sent.transmit.end as usize;
        self.in_vain |= self.there[range.clone()].iter().any(Option::is_some);
        // What goes along with a retransmission need not be lost.
        let along = self.pair.a.config().collapse_retransmissions;
        for byte in range {
            let first = byte as u64 == sent.transmit.start;
            if let Some(before) = self.again[byte].replace(sent.at) {
                assert!(
                    sent.at.since(before) >= RTT || along && !first,
                    "{}: byte {byte} again after {:?}: {sent:?}",
                    self.name(),
                    sent.at.since(before)
                );
            }
        }
    }

    fn look_at_timer(&self) {
        if self.pair.a.timer() != Some(Timer::Pto) {
            return;
        }
        let sender = self.pair.a.sender.as_ref().expect("it is established");
        let name = self.name();
        let state = sender.recovery.state();
        let by_rfc = self.pair.a.config().tail_loss_probe == TailLossProbe::Rfc8985;
        assert!(
            state == CaState::Open || by_rfc && state == CaState::Cwr,
            "{name}: a probe in {state:?}"
        );
        assert_eq!(
            sender.board.marks.sacked_segments, 0,
            "{name}: a probe behind a SACK"
        );
        // In Linux only a timeout that is not over bounds it (`tcp_rto_delta_us`).
        let rules = self.pair.a.config().timeout_rules;
        assert!(
            rules == TimeoutRules::Linux
                || self.pair.a.poll_timeout() <= Some(self.pair.a.shared.timers.rto_at()),
            "{name}: a probe after the timeout"
        );
    }

    fn look_at_window(&mut self, state: CaState, pipe: u64) {
        let counts = Counts::of(&self.pair.a);
        let before = core::mem::replace(&mut self.counts, counts);
        let sender = self.pair.a.sender.as_ref().expect("it is established");
        let (una, high_seq) = (sender.una, sender.recovery.high_seq());
        if counts.probes > before.probes {
            let weight = sender.board.weight(MSS);
            assert!(
                sender.board.pipe() <= pipe + weight,
                "{}: a probe of more than a segment",
                self.name()
            );
        }
        if counts.restarts > before.restarts {
            self.reduced = None;
        }
        if counts.timeouts > before.timeouts && sender.recovery.rack().is_none() {
            // All that is not SACKed counts as lost, also what was just sent again (RFC 6675 5.1 leaves it open).
            self.again.fill(None);
        }
        // A recovery that follows an answer to something else takes its reduction over.
        let recovered = counts.recoveries > before.recoveries && state != CaState::Cwr;
        if counts.reductions > before.reductions || recovered {
            // RFC 5681 4.3: the loss of a retransmission lowers it once more.
            let rules = self.pair.a.config().timeout_rules;
            let lost_again = rules == TimeoutRules::Rfc && sender.recovery.lost_a_retransmission();
            if let Some(end) = self.reduced
                && !lost_again
            {
                assert!(una >= end, "{}: two reductions in a window", self.name());
            }
            // In Linux what a probe repaired is answered at once, and then over.
            let over = rules == TimeoutRules::Linux && sender.recovery.state() == CaState::Open;
            self.reduced = (!over).then_some(high_seq);
        }
    }

    fn look_at_mistakes(&self) {
        if self.pipe != Pipe::Lossy || self.in_vain {
            return;
        }
        let stats = self.pair.a.stats();
        // In Linux a timeout counts as spurious where others than the first were only late.
        let late = self.pair.a.config().frto && self.pair.a.config().timeout_rules == TimeoutRules::Linux;
        let undos = if late { 0 } else { stats.undos };
        assert_eq!((undos, stats.spurious_probes), (0, 0), "{}", self.name());
        let sender = self.pair.a.sender.as_ref().expect("it is established");
        if let Some(rack) = sender.recovery.rack() {
            assert!(rack.window_for_tests(RTT) <= ms(25), "{}", self.name());
        }
    }
}
