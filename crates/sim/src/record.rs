//! Two observers that keep what they saw: [`Trace`] of senders, [`Capture`] of packets.

use crate::observe::{AppEvent, Observer};
use crate::spec::LinkIndex;
use fleetfoot_core::cc::Phase;
use fleetfoot_core::flow::{FlowId, FlowKey, FlowTable};
use fleetfoot_core::packet::Packet;
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::tcp::{CaState, Connection, Info, State, Stats};
use fleetfoot_core::tfrc;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// State of data senders after every event, for the groups asked for.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// What was seen, in order of time.
    pub rows: Vec<TraceEvent>,
    /// By group: whether it is traced.
    groups: Vec<bool>,
    /// At most this many connections per group.
    most_per_group: u32,
    /// By slot (half the flow id): who holds it, if traced.
    holders: Vec<Option<Holder>>,
}

/// A row of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// When.
    pub time: Instant,
    /// Traffic group.
    pub group: u32,
    /// Number of the connection in its group.
    pub number: u32,
    /// What happened.
    pub kind: TraceKind,
    /// The sender's state after it.
    pub info: Info,
}

/// What a trace distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// A segment of the peer was processed.
    Ack,
    /// The retransmission timer expired.
    Timeout,
    /// A tail loss probe was sent.
    Probe,
    /// Another timer fired.
    Timer,
}

impl TraceKind {
    /// The name in traces.
    pub const fn name(self) -> &'static str {
        match self {
            TraceKind::Ack => "ack",
            TraceKind::Timeout => "timeout",
            TraceKind::Probe => "probe",
            TraceKind::Timer => "timer",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    group: u32,
    number: u32,
    timeouts: u32,
    probes: u32,
}

impl Trace {
    /// Traces the first `most_per_group` connections of each of `groups`.
    pub fn new(groups: impl IntoIterator<Item = u32>, most_per_group: u32) -> Trace {
        let mut trace = Trace {
            most_per_group,
            ..Trace::default()
        };
        for group in groups {
            let group = group as usize;
            trace.groups.resize(trace.groups.len().max(group + 1), false);
            trace.groups[group] = true;
        }
        trace
    }

    fn row(&mut self, now: Instant, flow: FlowId, connection: &Connection, timer: bool) {
        if flow.0 & 1 == 1 {
            return;
        }
        let Some(Some(holder)) = self.holders.get_mut((flow.0 >> 1) as usize) else {
            return;
        };
        let info = connection.info(now);
        let kind = if !timer {
            TraceKind::Ack
        } else if info.stats.timeouts > holder.timeouts {
            TraceKind::Timeout
        } else if info.stats.probes > holder.probes {
            TraceKind::Probe
        } else {
            TraceKind::Timer
        };
        holder.timeouts = info.stats.timeouts;
        holder.probes = info.stats.probes;
        self.rows.push(TraceEvent {
            time: now,
            group: holder.group,
            number: holder.number,
            kind,
            info,
        });
    }
}

/// The state of a TFRC sender in the words of TCP: its window is what it may send in a round-trip time, its timeout four of
/// them (RFC 5348 4.3).
pub fn as_window(info: &tfrc::Info) -> Info {
    let rtt = info.rtt.unwrap_or_default();
    Info {
        state: State::Established,
        ca_state: if info.loss_event_rate > 0.0 {
            CaState::Cwr
        } else {
            CaState::Open
        },
        phase: if info.loss_event_rate > 0.0 {
            Phase::CongestionAvoidance
        } else {
            Phase::SlowStart
        },
        cwnd: Bytes(libm::round(info.rate * rtt.as_secs_f64()) as u64),
        ssthresh: Bytes::MAX,
        pipe: Bytes::ZERO,
        flight: Bytes::ZERO,
        unsent: Bytes::ZERO,
        peer_window: Bytes::MAX,
        delivered: Bytes::ZERO,
        received: 0,
        acked: 0,
        srtt: info.rtt,
        rttvar: Duration::ZERO,
        min_rtt: info.min_rtt,
        rto: rtt.saturating_mul(4),
        mss: info.segment,
        stats: Stats {
            segments_sent: info.packets_sent,
            bytes_sent: info.bytes_sent,
            timeouts: info.expiries as u32,
            ..Stats::default()
        },
    }
}

impl Observer for Trace {
    fn on_ack(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        self.row(now, flow, connection, false);
    }

    fn on_timer(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        self.row(now, flow, connection, true);
    }

    fn on_stream(&mut self, now: Instant, flow: FlowId, sender: &tfrc::Sender, expired: bool) {
        if let Some(Some(holder)) = self.holders.get((flow.0 >> 1) as usize) {
            self.rows.push(TraceEvent {
                time: now,
                group: holder.group,
                number: holder.number,
                kind: if expired {
                    TraceKind::Timeout
                } else {
                    TraceKind::Ack
                },
                info: as_window(&sender.info()),
            });
        }
    }

    fn on_app(&mut self, _now: Instant, event: &AppEvent) {
        if let AppEvent::Relayed { data, .. } = *event
            && let Some(holder) = self.holders.get_mut((data.0 >> 1) as usize)
        {
            *holder = None;
        }
        if let AppEvent::Opened {
            group, number, data, ..
        } = *event
        {
            let slot = (data.0 >> 1) as usize;
            self.holders.resize(self.holders.len().max(slot + 1), None);
            let traced = self.groups.get(group as usize) == Some(&true) && number < self.most_per_group;
            self.holders[slot] = traced.then_some(Holder {
                group,
                number,
                timeouts: 0,
                probes: 0,
            });
        }
    }
}

/// Packets at chosen places. Flow ids are the capture's own and are never used twice: see [`Capture::flows`].
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// What passed, in order per place.
    pub packets: Vec<Captured>,
    /// Keys of the captured packets' flows.
    pub flows: FlowTable,
    /// By link: whether its two ends are captured.
    links: Vec<bool>,
    /// By flow id of the engine: the capture's id.
    ids: Vec<FlowId>,
    /// Capture no more than this many packets.
    most: usize,
}

/// A packet that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When.
    pub time: Instant,
    /// On which link.
    pub link: LinkIndex,
    /// Where on it.
    pub place: CapturePlace,
    /// What.
    pub packet: Packet,
}

/// Where on a link a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturePlace {
    /// Before the queue.
    Enter,
    /// At the far end.
    Deliver,
    /// The packet was dropped.
    Drop(DropReason),
}

impl Capture {
    /// Captures at both ends of `links`, at most `most` packets.
    pub fn new(links: impl IntoIterator<Item = LinkIndex>, most: usize) -> Capture {
        let mut capture = Capture {
            most,
            ..Capture::default()
        };
        for link in links {
            let link = link.0 as usize;
            capture.links.resize(capture.links.len().max(link + 1), false);
            capture.links[link] = true;
        }
        capture
    }

    /// Puts everything in order of time. Within one place the order is right already.
    pub fn sort(&mut self) {
        self.packets.sort_by_key(|captured| captured.time);
    }

    fn take(&mut self, time: Instant, link: LinkIndex, place: CapturePlace, packet: &Packet) {
        if self.links.get(link.0 as usize) != Some(&true) || self.packets.len() >= self.most {
            return;
        }
        let Some(&flow) = self.ids.get(packet.flow.0 as usize) else {
            return;
        };
        self.packets.push(Captured {
            time,
            link,
            place,
            packet: Packet { flow, ..*packet },
        });
    }
}

impl Observer for Capture {
    fn on_enter(&mut self, now: Instant, at: LinkIndex, packet: &Packet) {
        self.take(now, at, CapturePlace::Enter, packet);
    }

    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, _sojourn: Duration) {
        self.take(now, at, CapturePlace::Deliver, packet);
    }

    fn on_drop(&mut self, now: Instant, at: LinkIndex, packet: &Packet, reason: DropReason) {
        self.take(now, at, CapturePlace::Drop(reason), packet);
    }

    fn on_app(&mut self, _now: Instant, event: &AppEvent) {
        if let AppEvent::Opened { data, acks, key, .. } | AppEvent::Relayed { data, acks, key } = *event {
            let len = self.ids.len().max(acks.0 as usize + 1);
            self.ids.resize(len, FlowId(0));
            self.ids[data.0 as usize] = self.flows.push(key);
            self.ids[acks.0 as usize] = self.flows.push(FlowKey {
                source: key.destination,
                destination: key.source,
                source_port: key.destination_port,
                destination_port: key.source_port,
                protocol: key.protocol,
            });
        }
    }
}
