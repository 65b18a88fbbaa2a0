//! Plays a script against a stack: events at their times, packets in and out, calls, assertions.
//!
//! Before an inbound packet, a call, a command or code the runner lets time pass up to the event's time; for an outbound
//! packet it takes the next one the stack sent, or lets time pass until one appears. In virtual time a chain of `+0`
//! events happens at one instant.

use super::ast::{Action, CallLine, Direction, Event, Script, Time};
use super::backend::{Backend, BackendError, Call, Handle, Output, Setup};
use super::call::Descriptors;
use super::expression::Evaluator;
use super::matching::Neutral;
use super::track::{FIRST_PEER_PORT, Track, show};
use fleetfoot_core::time::{Duration, Instant};
use std::collections::BTreeMap;

mod call;
mod machine;
mod packet;
#[cfg(test)]
mod tests;

/// How strictly a script is played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Replaces every tolerance of the script, nanoseconds.
    pub tolerance: Option<u64>,
    /// What the runner of the script's origin grants every time, nanoseconds, where it is more than the script says.
    pub granted: u64,
    /// The script is of another system.
    pub neutral: Option<Neutral>,
    /// The script expects a Linux of the 3.x years and sets nothing.
    pub old_linux: bool,
    /// The script is one of the Linux kernel's own tests, whose `defaults.sh` leaves the first timeouts of a SYN alone.
    pub kernel_tests: bool,
    /// Packets that no line expects are a failure.
    pub no_extra: bool,
    /// The stack is a kernel: its clock is real and late at times, its window scale is the machine's, and tables of its
    /// connections are not FreeBSD's.
    pub kernel: bool,
    /// Keep every packet for a capture.
    pub capture: bool,
}

/// What came of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// The verdict.
    pub verdict: Verdict,
    /// Line where it was decided.
    pub line: Option<u32>,
    /// Why, on one line; empty for a pass.
    pub reason: String,
    /// Expected and seen, side by side, and the history of segments; empty for a pass.
    pub detail: String,
    /// Outbound lines with a time, and by how much they missed it, nanoseconds.
    pub timing: Vec<Timing>,
    /// Segments that no line expected, as far as they were seen when the script ended.
    pub extra: Vec<String>,
    /// What code printed.
    pub printed: Vec<String>,
    /// Time on the stack's clock from the first event to the end, nanoseconds.
    pub duration: u64,
    /// Most that the runner was late with an event, nanoseconds: zero in virtual time, the machine's fault in real time.
    pub lateness: u64,
    /// Packets both ways, if they were to be kept: nanoseconds since the first event, into the stack or out, bytes.
    pub packets: Vec<(u64, Direction, Vec<u8>)>,
}

impl Played {
    /// A script that was not played.
    pub fn refused(verdict: Verdict, line: Option<u32>, reason: String) -> Played {
        Played {
            verdict,
            line,
            reason,
            detail: String::new(),
            timing: Vec::new(),
            extra: Vec::new(),
            printed: Vec::new(),
            duration: 0,
            lateness: 0,
            packets: Vec::new(),
        }
    }
}

/// A verdict on a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every event was met.
    Pass,
    /// One was not.
    Fail,
    /// The script uses something that is not supported.
    Unsupported,
}

impl Verdict {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Unsupported => "unsupported",
        }
    }
}

/// How far off an outbound line was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Which line.
    pub line: u32,
    /// Seen less expected, or less the nearer end of a range, nanoseconds; 0 inside a range.
    pub off: i64,
}

/// Plays `script` against `backend`, which was made for `setup`.
pub fn run(script: &Script, backend: &mut dyn Backend, setup: &Setup, rules: &Rules) -> Played {
    let mut run = Run::new(script, backend, setup, rules);
    let end = run.play();
    let mut played = Played {
        timing: std::mem::take(&mut run.timing),
        printed: std::mem::take(&mut run.printed),
        ..Played::refused(Verdict::Pass, None, String::new())
    };
    match end.and_then(|()| run.drain()) {
        Ok(extra) => {
            if rules.no_extra && !extra.is_empty() {
                played.verdict = Verdict::Fail;
                played.reason = format!("{} segments that no line expects: {}", extra.len(), extra[0]);
                played.detail = run.history();
            }
            played.extra = extra;
        }
        Err(stop) => {
            played.verdict = stop.verdict;
            played.line = Some(stop.line);
            played.reason = stop.reason;
            played.detail = if stop.verdict == Verdict::Fail {
                let separator = if stop.detail.is_empty() { "" } else { "\n" };
                format!("{}{separator}{}", stop.detail, run.history())
            } else {
                stop.detail
            };
        }
    }
    played.duration = run.since(run.now()).max(0) as u64;
    played.lateness = run.lateness;
    played.packets = run.packets;
    played
}

/// Ports of bound sockets and of peers that are connected to.
const PORT: u16 = 8080;
/// A timer of Linux ends on a tick of the kernel's clock, and scripts were written on kernels of different ticks: so much
/// more, nanoseconds, is granted to what a timer sent (10 ms: 100 Hz, the slowest).
const TICK: i64 = 10_000_000;
/// How long to wait for an outbound packet after its time.
const PATIENCE: i64 = 2_000_000_000;
/// How long a packet that may come at any time is waited for, nanoseconds.
const PATIENCE_ANY: i64 = 600_000_000_000;

struct Stop {
    verdict: Verdict,
    line: u32,
    reason: String,
    detail: String,
}

/// A blocking call under way.
struct Pending<'s> {
    event: &'s Event,
    line: &'s CallLine,
    call: Call,
    output: Option<Output>,
    /// When it has to return, live, and how far that is from its start.
    due: i64,
    span: i64,
}

struct Run<'s> {
    script: &'s Script,
    backend: &'s mut dyn Backend,
    setup: Setup,
    rules: Rules,
    /// Live time of the first event.
    start: Instant,
    /// Live time at which the previous event finished, nanoseconds since `start`.
    finished: i64,
    /// The script's own time of the previous event.
    scheduled: i64,
    /// The previous event was an inbound packet, for this live time.
    after_inbound: Option<i64>,
    tolerance: i64,
    tolerance_share: f64,
    strict_segments: bool,
    timestamp_tick: u64,
    timestamp_scaled: bool,
    descriptors: Descriptors,
    under_test: Option<Handle>,
    /// The socket whose opening the track is about.
    opened: Option<Handle>,
    /// When: what came out before is of another.
    opened_at: Instant,
    lateness: u64,
    /// A timer sent the segment that was taken last.
    by_timer: bool,
    /// Port of the UDP socket that sent last.
    datagram_port: Option<u16>,
    /// Counters of the machine when they were last forgotten.
    counters: BTreeMap<String, u64>,
    track: Option<Track>,
    peers: u16,
    pending: Option<Pending<'s>>,
    evaluator: Evaluator,
    log: Vec<String>,
    timing: Vec<Timing>,
    printed: Vec<String>,
    packets: Vec<(u64, Direction, Vec<u8>)>,
}

impl<'s> Run<'s> {
    fn new(script: &'s Script, backend: &'s mut dyn Backend, setup: &Setup, rules: &Rules) -> Run<'s> {
        let start = backend.now();
        Run {
            script,
            backend,
            setup: setup.clone(),
            rules: rules.clone(),
            start,
            finished: 0,
            scheduled: 0,
            after_inbound: None,
            tolerance: 4_000_000,
            tolerance_share: 0.125,
            strict_segments: false,
            timestamp_tick: 0,
            timestamp_scaled: false,
            descriptors: Descriptors::default(),
            under_test: None,
            opened: None,
            opened_at: start,
            lateness: 0,
            by_timer: false,
            datagram_port: None,
            counters: BTreeMap::new(),
            track: None,
            peers: 0,
            pending: None,
            evaluator: Evaluator::default(),
            log: Vec::new(),
            timing: Vec::new(),
            printed: Vec::new(),
            packets: Vec::new(),
        }
    }

    fn play(&mut self) -> Result<(), Stop> {
        self.options()?;
        self.machine()?;
        self.start = self.backend.now();
        let script = self.script;
        for (index, event) in script.events.iter().enumerate() {
            if index == 0 && !matches!(event.time, Time::Absolute(0) | Time::Relative(0)) {
                return Err(self.fail(
                    event,
                    "the first event has to be at time 0".to_owned(),
                    String::new(),
                ));
            }
            self.event(event)?;
            self.settle()?;
        }
        self.await_pending()
    }

    /// Packets that no line took.
    fn drain(&mut self) -> Result<Vec<String>, Stop> {
        let mut extra = Vec::new();
        let line = self.script.events.last().map_or(0, |event| event.line);
        while let Some((at, packet, segment)) = self.next_segment(line, self.now())? {
            let shown = self.track.as_ref().map_or_else(
                || show(&packet, &segment),
                |track| show(&packet, &track.to_script(&segment)),
            );
            extra.push(format!("{} > {shown}", seconds(self.since(at))));
        }
        Ok(extra)
    }

    fn now(&self) -> Instant {
        self.backend.now()
    }

    fn since(&self, at: Instant) -> i64 {
        at.as_nanos() as i64 - self.start.as_nanos() as i64
    }

    fn instant(&self, offset: i64) -> Instant {
        self.start + Duration::from_nanos(offset.max(0) as u64)
    }

    fn event(&mut self, event: &'s Event) -> Result<(), Stop> {
        let inbound = matches!(&event.action, Action::Packet(line) if line.direction == Direction::Inbound);
        // Two inbound packets in a row: errors do not add up.
        let base = match self.after_inbound {
            Some(at) if inbound => at,
            _ => self.finished,
        };
        let (earliest, latest) = match event.time {
            Time::Absolute(at) => (at, at),
            Time::Relative(after) => (base + after, base + after),
            Time::AbsoluteRange(from, to) => (from, to),
            Time::RelativeRange(from, to) => (base + from, base + to),
            Time::Any => (self.finished, self.finished),
        };
        let script_time = match event.time {
            Time::Absolute(at) | Time::AbsoluteRange(at, _) => at,
            Time::Relative(after) | Time::RelativeRange(after, _) => self.scheduled + after,
            Time::Any => self.scheduled,
        };
        let span = (script_time - self.scheduled).max(0);
        let outbound = matches!(&event.action, Action::Packet(line) if line.direction == Direction::Outbound);
        if !outbound {
            self.wait(event.line, self.instant(earliest))?;
        }
        match &event.action {
            Action::Packet(line) if outbound => self.outbound(event, line, (earliest, latest), span)?,
            Action::Packet(line) => self.inbound(event, line)?,
            Action::Call(line) => self.call(event, line, base)?,
            Action::Command(text) => self.command(event.line, text)?,
            Action::Code(text) => self.code(event, text)?,
        }
        if !outbound {
            self.finished = self.since(self.now());
        }
        self.scheduled = script_time;
        self.after_inbound = inbound.then_some(earliest);
        Ok(())
    }

    /// Lets time pass, and sees what a blocking call does meanwhile.
    fn wait(&mut self, line: u32, until: Instant) -> Result<(), Stop> {
        if until > self.now() {
            self.backend
                .wait(until)
                .map_err(|trouble| broken(line, trouble))?;
        }
        self.lateness = self.lateness.max(self.now().since(until).as_nanos());
        self.settle()
    }

    fn log(&mut self, at: i64, text: &str) {
        self.log.push(format!("{} {text}", seconds(at)));
    }

    fn keep(&mut self, at: Instant, direction: Direction, bytes: &[u8]) {
        if self.rules.capture {
            let at = self.since(at).max(0) as u64;
            self.packets.push((at, direction, bytes.to_vec()));
        }
    }

    fn history(&self) -> String {
        const SHOWN: usize = 40;
        let mut text = String::from("  history:\n");
        let skipped = self.log.len().saturating_sub(SHOWN);
        if skipped > 0 {
            text.push_str(&format!("    ... {skipped} earlier\n"));
        }
        for line in &self.log[skipped..] {
            text.push_str("    ");
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    fn fail(&self, event: &Event, reason: String, detail: String) -> Stop {
        Stop {
            verdict: Verdict::Fail,
            line: event.line,
            reason,
            detail,
        }
    }

    /// How far from its time something may be, `span` after what came before it.
    fn tolerance(&self, span: i64) -> i64 {
        self.tolerance.max((span as f64 * self.tolerance_share) as i64)
    }
}

fn broken(line: u32, trouble: BackendError) -> Stop {
    match trouble {
        BackendError::Unsupported(what) => unsupported(line, what),
        BackendError::Broken(what) => Stop {
            verdict: Verdict::Unsupported,
            line,
            reason: format!("the stack under test broke: {what}"),
            detail: String::new(),
        },
    }
}

fn unsupported(line: u32, reason: String) -> Stop {
    Stop {
        verdict: Verdict::Unsupported,
        line,
        reason,
        detail: String::new(),
    }
}

/// A time as scripts write it, with microseconds.
pub(super) fn seconds(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let micros = nanos.unsigned_abs() / 1000;
    format!("{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}
