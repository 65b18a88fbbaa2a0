//! What the report and the files of a single run are made of: time series of a few flows, and what the simulator's
//! [`Trace`] and [`Capture`] kept, as rows of a trace file and packets of a capture file.

use super::pcapng::{self, Interface};
use super::trace::TraceRow;
use crate::compare::{Plan, words};
use crate::result::{Comparison, FlowTrace, SendPoint, StatePoint};
use crate::run::{Pulse, observe_with_progress};
use crate::scenario::Resolved;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{CaState, Connection};
use fleetfoot_core::tfrc;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::record::{Capture, CapturePlace, Trace, as_window};
use fleetfoot_sim::spec::LinkIndex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Packets a capture holds at most; they wait in memory until the run ends.
pub const MOST_PACKETS: usize = 20_000_000;

/// Flows of each group whose time series the report shows.
pub const FLOWS_TRACED: usize = 2;

/// Number of variants, the best of the table, whose flows are traced for the report.
const VARIANTS_TRACED: usize = 4;

/// Adds the time series of a few flows of the baseline and the best variants, from the first seed.
pub fn of_the_best(plan: &Plan, comparison: &mut Comparison, stop: &AtomicBool) {
    let best = words::rows(&comparison.document);
    let best: Vec<String> = best
        .iter()
        .filter(|row| row.shown && !row.part)
        .take(VARIANTS_TRACED)
        .map(|row| row.variant.name.clone())
        .collect();
    for (index, planned) in plan.variants.iter().enumerate() {
        let baseline = comparison.document.variants[index].versus.is_none();
        if !baseline && !best.contains(&planned.name) {
            continue;
        }
        // The same run succeeded a moment ago; if it is stopped now the charts are left out.
        if let Ok(Some(traces)) = traces(&planned.resolved, plan.seeds[0], stop) {
            comparison.variants[index].traces = traces;
        }
    }
}

/// The time series of a few flows of each group of a run, which is made again for them and ends as soon as they are over; none if it
/// was stopped.
///
/// # Errors
/// The run fails.
pub fn traces(resolved: &Resolved, seed: u64, stop: &AtomicBool) -> Result<Option<Vec<FlowTrace>>, String> {
    let mut series = TimeSeries::new(resolved, FLOWS_TRACED);
    let enough = Arc::clone(&series.complete);
    let stopping = |_: &Pulse| {
        if stop.load(Ordering::Relaxed) {
            enough.store(true, Ordering::Relaxed);
        }
    };
    let output = observe_with_progress(&resolved.spec(seed), &enough, &mut series, &stopping)?;
    let whole = !output.interrupted || series.is_complete();
    Ok(whole.then_some(series.traces))
}

/// Time series of a few flows of each group: the first that start after the warm-up; long-lived ones from the beginning.
#[derive(Debug)]
pub struct TimeSeries {
    flows_per_group: usize,
    warmup: Instant,
    groups: Vec<GroupState>,
    /// By id of the data flow: who holds it, if it was chosen.
    chosen: Vec<Option<Chosen>>,
    /// Chosen flows that are not over.
    open: usize,
    /// Set when as many flows as are wanted of each group are over.
    complete: Arc<AtomicBool>,
    /// Traces of the chosen flows.
    pub traces: Vec<FlowTrace>,
}

#[derive(Debug)]
struct GroupState {
    name: String,
    endless: bool,
    opened: u64,
    chosen: usize,
}

#[derive(Clone, Copy, Debug)]
struct Chosen {
    trace: usize,
    /// Sequence number and stream offset of the highest byte sent.
    highest: Option<(SeqNumber, u64)>,
}

impl TimeSeries {
    /// Follows `flows_per_group` flows of each group of a run of `resolved`.
    pub fn new(resolved: &Resolved, flows_per_group: usize) -> TimeSeries {
        let groups = resolved.groups.iter().map(|group| GroupState {
            name: group.name.clone(),
            endless: group.kind.facts().long_lived,
            opened: 0,
            chosen: 0,
        });
        TimeSeries {
            flows_per_group,
            warmup: Instant::ZERO + resolved.run.warmup,
            groups: groups.collect(),
            chosen: Vec::new(),
            open: 0,
            complete: Arc::default(),
            traces: Vec::new(),
        }
    }

    /// Whether the flows that are followed are over, and no others will be.
    fn is_complete(&self) -> bool {
        self.open == 0
            && self
                .groups
                .iter()
                .all(|group| group.chosen == self.flows_per_group)
    }

    fn stream_state(&mut self, now: Instant, flow: FlowId, sender: &tfrc::Sender) {
        if let Some(Some(chosen)) = self.chosen.get(flow.0 as usize) {
            let info = as_window(&sender.info());
            self.traces[chosen.trace].on_state(StatePoint {
                t_s: now.as_secs_f64(),
                cwnd_bytes: info.cwnd.0,
                ssthresh_bytes: None,
                srtt_s: info.srtt.map(Duration::as_secs_f64),
                pipe_bytes: info.pipe.0,
                acked_bytes: info.acked,
                state: state_name(info.ca_state),
            });
        }
    }

    fn state(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        let Some(Some(chosen)) = self.chosen.get(flow.0 as usize) else {
            return;
        };
        let info = connection.info(now);
        self.traces[chosen.trace].on_state(StatePoint {
            t_s: now.as_secs_f64(),
            cwnd_bytes: info.cwnd.0,
            ssthresh_bytes: (info.ssthresh != Bytes::MAX).then_some(info.ssthresh.0),
            srtt_s: info.srtt.map(Duration::as_secs_f64),
            pipe_bytes: info.pipe.0,
            acked_bytes: info.acked,
            state: state_name(info.ca_state),
        });
    }
}

impl Observer for TimeSeries {
    fn on_send(&mut self, now: Instant, flow: FlowId, segment: &Segment) {
        let Some(Some(chosen)) = self.chosen.get_mut(flow.0 as usize) else {
            return;
        };
        if segment.kind() == Kind::TfrcData {
            // Nothing is sent twice: the bytes follow each other.
            let from_byte = chosen.highest.map_or(0, |highest| highest.1);
            chosen.highest = Some((segment.seq, from_byte + u64::from(segment.payload)));
            self.traces[chosen.trace].on_send(SendPoint {
                t_s: now.as_secs_f64(),
                from_byte,
                bytes: segment.payload,
                retransmission: false,
            });
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            chosen.highest = Some((segment.seq + 1, 0));
            return;
        }
        let Some((seq, offset)) = chosen.highest else {
            return;
        };
        if segment.payload == 0 {
            return;
        }
        // Segments are never 2 GiB from the highest one, so the signed distance gives the stream offset.
        let distance = i64::from(segment.seq.0.wrapping_sub(seq.0) as i32);
        let from_byte = offset.saturating_add_signed(distance);
        let end = from_byte + u64::from(segment.payload);
        if end > offset {
            chosen.highest = Some((segment.seq + segment.payload, end));
        }
        self.traces[chosen.trace].on_send(SendPoint {
            t_s: now.as_secs_f64(),
            from_byte,
            bytes: segment.payload,
            retransmission: from_byte < offset,
        });
    }

    fn on_ack(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        self.state(now, flow, connection);
    }

    fn on_timer(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        self.state(now, flow, connection);
    }

    fn on_stream(&mut self, now: Instant, flow: FlowId, sender: &tfrc::Sender, _expired: bool) {
        self.stream_state(now, flow, sender);
    }

    fn on_app(&mut self, now: Instant, event: &AppEvent) {
        match *event {
            AppEvent::Opened { group, data, .. } => {
                let state = &mut self.groups[group as usize];
                let number = state.opened;
                state.opened += 1;
                let wanted = state.chosen < self.flows_per_group && (state.endless || now >= self.warmup);
                let slot = data.0 as usize;
                self.chosen.resize(self.chosen.len().max(slot + 1), None);
                self.chosen[slot] = wanted.then(|| {
                    state.chosen += 1;
                    self.open += 1;
                    self.traces.push(FlowTrace {
                        group: state.name.clone(),
                        number,
                        ..FlowTrace::default()
                    });
                    Chosen {
                        trace: self.traces.len() - 1,
                        highest: None,
                    }
                });
            }
            AppEvent::Relayed { .. } => {}
            AppEvent::Closed { data } => {
                let chosen = self.chosen.get_mut(data.0 as usize);
                if chosen.is_some_and(|chosen| chosen.take().is_some()) {
                    self.open -= 1;
                    if self.is_complete() {
                        self.complete.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
    }
}

/// The rows of a trace file, in order of time.
pub fn trace_rows(trace: &Trace, resolved: &Resolved) -> Vec<TraceRow> {
    let mut rows: Vec<TraceRow> = trace
        .rows
        .iter()
        .map(|row| TraceRow {
            time_s: row.time.as_secs_f64(),
            flow: format!("{}/{}", resolved.groups[row.group as usize].name, row.number),
            event: row.kind.name(),
            cwnd_bytes: row.info.cwnd.0,
            ssthresh_bytes: (row.info.ssthresh != Bytes::MAX).then_some(row.info.ssthresh.0),
            srtt_s: row.info.srtt.map(Duration::as_secs_f64),
            rto_s: Some(row.info.rto.as_secs_f64()),
            pipe_bytes: row.info.pipe.0,
            state: state_name(row.info.ca_state),
        })
        .collect();
    rows.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    rows
}

/// The links called one of `names`, both directions.
pub fn links_called(resolved: &Resolved, names: &[String]) -> Vec<LinkIndex> {
    let links = resolved.spec.links.iter().zip(0..);
    links
        .filter(|(link, _)| names.contains(&link.name))
        .map(|(_, index)| LinkIndex(index))
        .collect()
}

/// The places of a capture at `links`, three per link, and its packets in order of time.
pub fn captured(
    capture: &Capture,
    links: &[LinkIndex],
    resolved: &Resolved,
) -> (Vec<Interface>, Vec<pcapng::Captured>) {
    let interfaces = links.iter().flat_map(|index| {
        let link = &resolved.spec.links[index.0 as usize];
        let direction = if link.forward { "forward" } else { "reverse" };
        [
            ("in", "before its queue"),
            ("out", "at its far end"),
            ("drop", "where it drops packets"),
        ]
        .map(|(end, place)| Interface {
            name: format!("{}-{direction}-{end}", link.name),
            description: format!("link {}, {direction}, {place}", link.name),
        })
    });
    let mut first = vec![0; resolved.spec.links.len()];
    for (number, index) in links.iter().enumerate() {
        first[index.0 as usize] = 3 * number as u32;
    }
    let mut packets: Vec<pcapng::Captured> = capture
        .packets
        .iter()
        .map(|seen| {
            let (end, comment) = match seen.place {
                CapturePlace::Enter => (0, None),
                CapturePlace::Deliver => (1, None),
                CapturePlace::Drop(reason) => (2, Some(reason.name())),
            };
            pcapng::Captured {
                time: seen.time,
                interface: first[seen.link.0 as usize] + end,
                packet: seen.packet,
                comment,
            }
        })
        .collect();
    packets.sort_by_key(|packet| (packet.time, packet.interface));
    (interfaces.collect(), packets)
}

/// An end of a link, where both of its directions pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tap {
    /// Before the queue of the forward direction, and where the reverse direction arrives.
    Near,
    /// The other end.
    Far,
}

/// What a capture at one end of the `links` of one name would show, with its only interface: every packet once, in order of time. Packets
/// that a queue of the other end dropped never came there.
pub fn tapped(
    capture: &Capture,
    links: &[LinkIndex],
    tap: Tap,
    resolved: &Resolved,
) -> (Vec<Interface>, Vec<pcapng::Captured>) {
    let spec = |index: LinkIndex| &resolved.spec.links[index.0 as usize];
    let (end, place) = match tap {
        Tap::Near => ("near", "before the queue of the forward direction"),
        Tap::Far => ("far", "at the far end of the forward direction"),
    };
    let name = links.first().map_or("", |index| spec(*index).name.as_str());
    let interface = Interface {
        name: format!("{name}-{end}"),
        description: format!("link {name}, both directions, {place}"),
    };
    let passed = capture.packets.iter().filter(|seen| {
        let enters = spec(seen.link).forward == (tap == Tap::Near);
        links.contains(&seen.link)
            && match seen.place {
                CapturePlace::Enter => enters,
                CapturePlace::Deliver => !enters,
                CapturePlace::Drop(_) => false,
            }
    });
    let mut packets: Vec<pcapng::Captured> = passed
        .map(|seen| pcapng::Captured {
            time: seen.time,
            interface: 0,
            packet: seen.packet,
            comment: None,
        })
        .collect();
    packets.sort_by_key(|packet| packet.time); // stable
    (vec![interface], packets)
}

fn state_name(state: CaState) -> &'static str {
    match state {
        CaState::Open => "open",
        CaState::Disorder => "disorder",
        CaState::Cwr => "cwr",
        CaState::Recovery => "recovery",
        CaState::Loss => "loss",
    }
}
