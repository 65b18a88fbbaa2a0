//! What passed one direction of the described link, held to the simulator: the packets that arrived, at the times that the queue was
//! given, pass the simulated link once more, and everything that left or was dropped must be the same packet at the same time.
//!
//! The link on real packets and the one of the simulator share the code of queues, not that of their drivers: here packets are read
//! from frames, flows and hosts get their numbers as they come, and the link is carried on when this machine finds time; there
//! events are in virtual time, and a drop-tail queue is none at all but arithmetic. Times of arrival settle everything else, so
//! no moment at which the link was carried on is recorded.

use crate::Event;
use crate::frames::{self, Frames};
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::{Ecn, Flags, Packet, Segment};
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::output::LinkOutput;
use fleetfoot_sim::recorded::{Arrival, forward};
use fleetfoot_sim::spec::{LinkIndex, LinkSpec, Spec};
use fleetfoot_sim::world::{Mode, RunError};

/// What a tap saw of one direction, from the start of the link on.
#[derive(Default)]
pub struct Recording {
    frames: Frames,
    arrivals: Vec<Arrival>,
    /// Packets that reached the far end, and packets that did not, each in order.
    left: Vec<Outcome>,
    dropped: Vec<Outcome>,
    /// The latest of all times.
    last: Instant,
    /// A frame with zeros in place of what was not kept of it.
    frame: Vec<u8>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    /// When, as far as it is known: by the link, not by this machine.
    at: Option<Instant>,
    flow: FlowId,
    segment: Segment,
    /// Why it was dropped, if it was.
    reason: Option<DropReason>,
}

/// A recording beside its simulation.
#[derive(Clone, Debug)]
pub struct Held {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that left, and of those the ones with a mark of congestion.
    pub left: u64,
    /// See `left`.
    pub marked: u64,
    /// Packets that were dropped, by reason.
    pub dropped: [u64; DropReason::ALL.len()],
    /// Counters of the simulated link.
    pub simulated: LinkOutput,
    /// The first packet of which the recording and the simulator say different things, and what; `None`: they say the same of all.
    pub difference: Option<String>,
}

impl Recording {
    /// Nothing has passed.
    pub fn new() -> Recording {
        Recording::default()
    }

    /// Adds what happened at `at`, by the clock of the link, to a frame of `length` bytes that begins with `kept`. All that a tap
    /// reports of a direction is to be added, in order.
    ///
    /// # Errors
    /// Why this cannot be what a tap saw of one link, or is more than can be told apart.
    pub fn add(&mut self, at: Instant, event: Event, kept: &[u8], length: u32) -> Result<(), String> {
        if length as usize > LONGEST || kept.len() > length as usize {
            return Err(format!("{} of {length} bytes are no frame", kept.len()));
        }
        self.frame.clear();
        self.frame.extend_from_slice(kept);
        self.frame.resize(length as usize, 0);
        let seen = frames::read(&self.frame, None);
        let Some((packet, taken_over)) = self.frames.keep(&self.frame, None, &seen) else {
            return Err(String::from("there is no room for it"));
        };
        self.frames.release(&packet);
        if taken_over.is_some() {
            return Err(String::from("there are more flows than are told apart"));
        }
        let Packet { flow, segment, .. } = packet;
        let outcome = |at, reason| Outcome {
            at,
            flow,
            segment: comparable(segment),
            reason,
        };
        match event {
            Event::Entered => {
                if self.arrivals.last().is_some_and(|before| at < before.at) {
                    return Err(String::from("it arrived before the one that arrived before it"));
                }
                self.arrivals.push(Arrival { at, flow, segment });
                self.last = self.last.max(at);
            }
            Event::Left { late, .. } => {
                let due = Instant::ZERO + at.since(Instant::ZERO).saturating_sub(late);
                self.left.push(outcome(Some(due), None));
                self.last = self.last.max(due);
            }
            // The link delivered it; what the interface then did is no business of the queue.
            Event::Refused(_) => self.left.push(outcome(None, None)),
            Event::Dropped(reason) => {
                self.dropped.push(outcome(Some(at), Some(reason)));
                self.last = self.last.max(at);
            }
        }
        Ok(())
    }

    /// Sends what arrived over `link`, a direction of a link of `spec`, in the simulator, and compares every packet.
    ///
    /// # Errors
    /// The link cannot be simulated.
    pub fn hold(&self, spec: &Spec, link: &LinkSpec, mode: Mode) -> Result<Held, RunError> {
        let mut watch = Watch::default();
        let flows = self.frames.flows().clone();
        let simulated = forward(spec, link, flows, &self.arrivals, self.last, mode, &mut watch)?;
        let mut dropped = [0; DropReason::ALL.len()];
        for reason in self.dropped.iter().filter_map(|outcome| outcome.reason) {
            dropped[reason as usize] += 1;
        }
        let mut recorded = self.dropped.clone();
        for drops in [&mut recorded, &mut watch.dropped] {
            // Which of two drops for different reasons is reported first depends on when the link is carried on.
            drops.sort_by_key(|outcome| (outcome.at, outcome.reason));
        }
        let marked = self.left.iter().filter(|left| left.segment.ecn() == Ecn::Ce);
        Ok(Held {
            arrived: self.arrivals.len() as u64,
            left: self.left.len() as u64,
            marked: marked.count() as u64,
            dropped,
            simulated,
            difference: self
                .difference("dropped", &recorded, &watch.dropped)
                .or_else(|| self.difference("left", &self.left, &watch.left)),
        })
    }

    /// The first packet of which two lists say different things.
    fn difference(&self, what: &str, recorded: &[Outcome], simulated: &[Outcome]) -> Option<String> {
        let number = (0..recorded.len().max(simulated.len())).find(|&number| {
            match (recorded.get(number), simulated.get(number)) {
                (Some(recorded), Some(simulated)) => {
                    let at = recorded.at.or(simulated.at);
                    Outcome { at, ..*recorded } != *simulated
                }
                _ => true,
            }
        })?;
        let words = |outcomes: &[Outcome]| match outcomes.get(number) {
            Some(outcome) => self.words(outcome),
            None => String::from("none"),
        };
        Some(format!(
            "packet {} that was {what}: {} in the recording, {} in the simulator",
            number + 1,
            words(recorded),
            words(simulated)
        ))
    }

    fn words(&self, outcome: &Outcome) -> String {
        let Outcome {
            at,
            flow,
            segment,
            reason,
        } = outcome;
        let at = at.map_or_else(String::new, |at| format!(" at {:.9} s", at.as_secs_f64()));
        let reason = reason.map_or_else(String::new, |reason| format!(" ({})", reason.name()));
        let mark = if segment.ecn() == Ecn::Ce { ", marked" } else { "" };
        format!(
            "{}, {} B, sequence number {}{mark}{at}{reason}",
            self.frames.ends(*flow),
            segment.len(),
            segment.seq.0
        )
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording")
            .field("arrived", &self.arrivals.len())
            .field("left", &self.left.len())
            .field("dropped", &self.dropped.len())
            .finish_non_exhaustive()
    }
}

/// What the simulator says.
#[derive(Default)]
struct Watch {
    left: Vec<Outcome>,
    dropped: Vec<Outcome>,
}

impl Observer for Watch {
    fn on_deliver(&mut self, now: Instant, _: LinkIndex, packet: &Packet, _: Duration) {
        self.left.push(outcome(now, packet, None));
    }

    fn on_drop(&mut self, now: Instant, _: LinkIndex, packet: &Packet, reason: DropReason) {
        self.dropped.push(outcome(now, packet, Some(reason)));
    }
}

fn outcome(at: Instant, packet: &Packet, reason: Option<DropReason>) -> Outcome {
    Outcome {
        at: Some(at),
        flow: packet.flow,
        segment: comparable(packet.segment),
        reason,
    }
}

/// A segment without what has no bytes in a frame: that it was damaged, and the time to live, which the simulator's `low-ttl` lowers in
/// place of a router.
fn comparable(mut segment: Segment) -> Segment {
    segment.flags = segment.flags.without(Flags::CORRUPT);
    segment.ttl = 0;
    segment
}

/// No frame is longer, in bytes.
const LONGEST: usize = 1 << 17;
