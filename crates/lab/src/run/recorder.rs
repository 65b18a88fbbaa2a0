//! An observer for single runs: the course of chosen flows for charts, rows of a trace, packets of a capture.

use crate::report::pcapng::{Captured, Interface};
use crate::report::trace::TraceRow;
use crate::result::{FlowTrace, SendPoint, StatePoint};
use crate::scenario::Resolved;
use fleetfoot_core::flow::{FlowId, FlowKey, FlowTable};
use fleetfoot_core::packet::{Flags, Packet, Segment};
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{CaState, Connection};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::spec::LinkIndex;

/// What to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct What {
    /// The course of this many flows of each group: the first that start after the warm-up; long-lived ones from the
    /// beginning.
    pub flows_per_group: usize,
    /// A row for every acknowledgment and timer of every sender.
    pub rows: bool,
    /// Packets at the bottleneck.
    pub packets: bool,
}

/// Records a run.
#[derive(Debug)]
pub struct Recorder {
    what: What,
    warmup: Instant,
    groups: Vec<GroupState>,
    live: Vec<Option<Live>>,
    points: Vec<Option<u32>>,
    /// The course of the chosen flows.
    pub traces: Vec<FlowTrace>,
    /// Rows of the trace.
    pub rows: Vec<TraceRow>,
    /// Captured packets; their flow ids belong to `flows`.
    pub packets: Vec<Captured>,
    /// Where they were captured.
    pub interfaces: Vec<Interface>,
    /// Keys of all flows, without reuse of ids.
    pub flows: FlowTable,
}

#[derive(Debug)]
struct GroupState {
    name: String,
    endless: bool,
    opened: u64,
    chosen: usize,
}

/// What a flow id stands for at present.
#[derive(Clone, Debug)]
struct Live {
    id: FlowId,
    label: String,
    /// Whether it carries the data.
    data: bool,
    trace: Option<usize>,
    /// Sequence number and stream offset of the highest byte sent.
    highest: Option<(SeqNumber, u64)>,
}

impl Recorder {
    /// A recorder for a run of `resolved`. `bottleneck` are the names of the links where packets are captured.
    pub fn new(what: What, resolved: &Resolved, bottleneck: &[String]) -> Recorder {
        let mut interfaces = Vec::new();
        let points = resolved
            .spec
            .links
            .iter()
            .map(|link| {
                if !bottleneck.contains(&link.name) {
                    return None;
                }
                let direction = if link.forward { "forward" } else { "reverse" };
                let first = interfaces.len() as u32;
                for (end, place) in [
                    ("in", "before its queue"),
                    ("out", "at its far end"),
                    ("drop", "where it drops packets"),
                ] {
                    interfaces.push(Interface {
                        name: format!("{}-{direction}-{end}", link.name),
                        description: format!("link {}, {direction}, {place}", link.name),
                    });
                }
                Some(first)
            })
            .collect();
        Recorder {
            what,
            warmup: Instant::ZERO + resolved.run.warmup,
            groups: resolved
                .groups
                .iter()
                .map(|group| GroupState {
                    name: group.name.clone(),
                    endless: group.kind == "bulk",
                    opened: 0,
                    chosen: 0,
                })
                .collect(),
            live: Vec::new(),
            points,
            traces: Vec::new(),
            rows: Vec::new(),
            packets: Vec::new(),
            interfaces,
            flows: FlowTable::new(),
        }
    }

    fn put(&mut self, flow: FlowId, live: Live) {
        let slot = flow.0 as usize;
        if self.live.len() <= slot {
            self.live.resize(slot + 1, None);
        }
        self.live[slot] = Some(live);
    }

    fn state(&mut self, now: Instant, flow: FlowId, connection: &Connection, event: &'static str) {
        if !self.what.rows && self.what.flows_per_group == 0 {
            return;
        }
        let Some(live) = self.live.get(flow.0 as usize).and_then(Option::as_ref) else {
            return;
        };
        if !live.data || (!self.what.rows && live.trace.is_none()) {
            return;
        }
        let info = connection.info(now);
        let ssthresh_bytes = (info.ssthresh != Bytes::MAX).then_some(info.ssthresh.0);
        let srtt_s = info.srtt.map(Duration::as_secs_f64);
        let state = state_name(info.ca_state);
        if let Some(trace) = live.trace {
            self.traces[trace].states.push(StatePoint {
                t_s: now.as_secs_f64(),
                cwnd_bytes: info.cwnd.0,
                ssthresh_bytes,
                srtt_s,
                pipe_bytes: info.pipe.0,
                acked_bytes: info.acked,
                state,
            });
        }
        if self.what.rows {
            self.rows.push(TraceRow {
                time_s: now.as_secs_f64(),
                flow: live.label.clone(),
                event,
                cwnd_bytes: info.cwnd.0,
                ssthresh_bytes,
                srtt_s,
                rto_s: Some(info.rto.as_secs_f64()),
                pipe_bytes: info.pipe.0,
                state,
            });
        }
    }

    fn capture(
        &mut self,
        now: Instant,
        at: LinkIndex,
        end: u32,
        packet: &Packet,
        comment: Option<&'static str>,
    ) {
        if !self.what.packets {
            return;
        }
        let Some(first) = self.points.get(at.0 as usize).copied().flatten() else {
            return;
        };
        let Some(live) = self.live.get(packet.flow.0 as usize).and_then(Option::as_ref) else {
            return;
        };
        self.packets.push(Captured {
            time: now,
            interface: first + end,
            packet: Packet {
                flow: live.id,
                ..*packet
            },
            comment,
        });
    }
}

impl Observer for Recorder {
    fn on_send(&mut self, now: Instant, flow: FlowId, segment: &Segment) {
        let Some(live) = self.live.get_mut(flow.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        let Some(trace) = live.trace else { return };
        if segment.flags.contains(Flags::SYN) {
            live.highest = Some((segment.seq + 1, 0));
            return;
        }
        let Some((seq, offset)) = live.highest else { return };
        if segment.payload == 0 {
            return;
        }
        // Segments are never 2 GiB from the highest one, so the signed distance tells the stream offset.
        let distance = i64::from(segment.seq.0.wrapping_sub(seq.0) as i32);
        let from_byte = offset.saturating_add_signed(distance);
        let end = from_byte + u64::from(segment.payload);
        if end > offset {
            live.highest = Some((segment.seq + segment.payload, end));
        }
        self.traces[trace].sends.push(SendPoint {
            t_s: now.as_secs_f64(),
            from_byte,
            bytes: segment.payload,
            retransmission: from_byte < offset,
        });
    }

    fn on_enter(&mut self, now: Instant, at: LinkIndex, packet: &Packet) {
        self.capture(now, at, 0, packet, None);
    }

    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, _sojourn: Duration) {
        self.capture(now, at, 1, packet, None);
    }

    fn on_drop(&mut self, now: Instant, at: LinkIndex, packet: &Packet, reason: DropReason) {
        self.capture(now, at, 2, packet, Some(reason.name()));
    }

    fn on_ack(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        self.state(now, flow, connection, "ack");
    }

    fn on_timer(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        self.state(now, flow, connection, "timer");
    }

    fn on_app(&mut self, now: Instant, event: &AppEvent) {
        let AppEvent::Opened {
            group,
            data,
            acks,
            key,
            ..
        } = *event
        else {
            return;
        };
        let limit = self.what.flows_per_group;
        let warmup = self.warmup;
        let state = &mut self.groups[group as usize];
        let number = state.opened;
        state.opened += 1;
        let chosen = state.chosen < limit && (state.endless || now >= warmup);
        let label = format!("{}/{number}", state.name);
        let trace = chosen.then(|| {
            state.chosen += 1;
            self.traces.push(FlowTrace {
                group: state.name.clone(),
                number,
                ..FlowTrace::default()
            });
            self.traces.len() - 1
        });
        let back = FlowKey {
            source: key.destination,
            destination: key.source,
            source_port: key.destination_port,
            destination_port: key.source_port,
            ..key
        };
        // Only data flows have a course; the flow of ACKs is there for captures.
        let ids = (self.flows.push(key), self.flows.push(back));
        self.put(
            data,
            Live {
                id: ids.0,
                label: label.clone(),
                data: true,
                trace,
                highest: None,
            },
        );
        self.put(
            acks,
            Live {
                id: ids.1,
                label,
                data: false,
                trace: None,
                highest: None,
            },
        );
    }
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
