//! What `TCP_INFO` reports: [`Info`], and beyond it negotiated options and counts of segments.

use crate::cc::Phase;
use crate::tcp::ack::rack::Rack;
use crate::tcp::ack::records::Record;
use crate::tcp::ack::scoreboard::Run;
use crate::tcp::send::half::Sender;
use crate::tcp::state::types::CaState;
use crate::tcp::{Connection, Info, State};
use crate::time::{Duration, Instant};
use crate::units::Bytes;

/// Counts of congestion marks (RFC 9768 3.2): what came, and what the peer reports that came there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets that came with CE.
    pub received_ce: u32,
    /// Payload bytes that came as ECT(1), CE and ECT(0).
    pub received_bytes: [u64; 3],
    /// Packets that the peer reports as CE.
    pub reported_ce: u32,
    /// Payload bytes that the peer reports as ECT(1), CE and ECT(0), as far as it sends its option.
    pub reported_bytes: [u64; 3],
}

/// Negotiated options and counts of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Both ends use timestamps.
    pub timestamps: bool,
    /// Both ends use SACK.
    pub sack: bool,
    /// Both ends scale their windows.
    pub window_scaling: bool,
    /// Both ends use ECN.
    pub ecn: bool,
    /// Both ends use Accurate ECN, and this is what its counters say.
    pub accurate_ecn: Option<EcnCounts>,
    /// Data of the SYN was accepted (Fast Open).
    pub syn_data: bool,
    /// Scale of the windows that arrive.
    pub snd_scale: u8,
    /// Scale of the windows that are sent.
    pub rcv_scale: u8,
    /// Segments sent and not acknowledged; a SYN is one.
    pub out: u32,
    /// Segments out that were reported received.
    pub sacked: u32,
    /// Segments out that were judged lost.
    pub lost: u32,
    /// Segments out that were retransmitted.
    pub retransmitted: u32,
    /// Segments known to be delivered, the SYN among them.
    pub delivered: u32,
    /// Most segments by which one was seen to be late, at least `dup_thresh`.
    pub reordering: u32,
    /// Acknowledgments that showed reordering.
    pub reorderings: u32,
    /// Timeouts in a row.
    pub timeouts_in_row: u8,
    /// Zero-window probes without an answer.
    pub probes: u8,
    /// Doublings of the RTO.
    pub backoff: u8,
    /// Delayed-ACK estimate.
    pub ato: Duration,
    /// Largest payload received.
    pub rcv_mss: u32,
    /// Since the last data was sent.
    pub since_sent: Duration,
    /// Since the last data arrived.
    pub since_received: Duration,
    /// Receive window offered last, bytes.
    pub offered: u64,
}

impl Connection {
    /// Everything an observer may want to know.
    pub fn info(&self, _now: Instant) -> Info {
        let shared = &self.shared;
        let sender = self.sender.as_deref();
        let una = sender.map_or(1, |sender| sender.una);
        Info {
            state: self.state,
            ca_state: sender.map_or(CaState::Open, |sender| sender.recovery.state()),
            phase: sender.map_or(Phase::SlowStart, |sender| sender.cc.phase()),
            cwnd: Bytes(sender.map_or_else(|| shared.initial_window(), |sender| sender.window(shared))),
            ssthresh: sender.map_or(Bytes::MAX, |sender| sender.cc.ssthresh()),
            pipe: Bytes(sender.map_or(0, |sender| sender.board.pipe())),
            flight: Bytes(sender.map_or(0, |sender| sender.nxt - sender.una)),
            unsent: Bytes(sender.map_or(self.written, Sender::unsent)),
            peer_window: Bytes(shared.peer.edge().saturating_sub(una)),
            delivered: Bytes(sender.map_or(0, |sender| sender.recovery.delivered_total())),
            received: self.received(),
            acked: self.acked(),
            srtt: shared.rtt.srtt(),
            rttvar: shared.rtt.rttvar(),
            min_rtt: shared.rtt.min(),
            rto: shared.rtt.rto(&shared.config.rto),
            mss: shared.mss,
            stats: *shared.stats,
        }
    }

    /// Negotiated options and counts of segments.
    pub fn detail(&self, now: Instant) -> Detail {
        let shared = &self.shared;
        let mss = u64::from(shared.mss).max(1);
        let segments = |weight: u64| weight.div_ceil(mss).min(u64::from(u32::MAX)) as u32;
        let synchronised = !matches!(self.state, State::SynSent | State::SynReceived | State::Closed);
        let mut detail = Detail {
            timestamps: shared.timestamps,
            sack: shared.sack,
            window_scaling: shared.peer_scales && shared.config.window_scale.is_some(),
            ecn: shared.ecn,
            accurate_ecn: shared.accecn.as_deref().map(|accecn| EcnCounts {
                received_ce: accecn.received.marked(),
                received_bytes: accecn.received.bytes(),
                reported_ce: accecn.reported.marked(),
                reported_bytes: accecn.reported.bytes(),
            }),
            syn_data: self.syn_data_accepted(),
            snd_scale: shared.snd_scale,
            rcv_scale: shared.rcv_scale,
            out: u32::from(matches!(self.state, State::SynSent | State::SynReceived)),
            timeouts_in_row: self.syn_attempts,
            delivered: u32::from(synchronised),
            ato: self.receive.acking.ato(&shared.config),
            rcv_mss: self.receive.acking.full(),
            since_received: now.since(self.receive.acking.last_data_at()),
            offered: self.receive.window(),
            backoff: shared.rtt.back_offs(),
            reordering: u32::from(shared.config.dup_thresh),
            ..Detail::default()
        };
        if let Some(sender) = &self.sender {
            let board = &sender.board;
            detail.out = board.segments();
            detail.sacked = if shared.sack {
                board.marks.sacked_segments
            } else {
                board.marks.duplicates
            };
            detail.lost = segments(board.marks.lost);
            detail.retransmitted = segments(board.marks.retrans);
            detail.delivered += segments(sender.recovery.delivered_total());
            if let Some(rack) = sender.recovery.rack() {
                (detail.reordering, detail.reorderings) = (rack.degree(), rack.reorderings);
            }
            detail.timeouts_in_row = sender.attempts.count();
            detail.probes = sender.zero_probes();
            detail.since_sent = sender.since_sent(now);
        }
        detail
    }
}

impl Connection {
    /// Entries of queues looked at or moved so far, in builds with debug assertions; otherwise 0.
    pub fn work(&self) -> u64 {
        self.receive.work() + self.sender.as_ref().map_or(0, |sender| sender.board.work.count())
    }

    /// Bytes of memory that the connection occupies, with the received bytes that the driver keeps for it. What the
    /// application wrote is bounded by the send buffer and not counted.
    pub fn held(&self) -> u64 {
        let sender = self.sender.as_ref().map_or(0, |sender| {
            size_of::<Sender>()
                + sender.board.ring.capacity() * size_of::<Record>()
                + (sender.board.marks.runs.capacity() + sender.board.marks.stale.capacity())
                    * size_of::<Run>()
                + sender
                    .recovery
                    .rack()
                    .map_or(0, |rack| size_of::<Rack>() + rack.held())
        });
        (size_of::<Connection>() + sender + self.receive.overhead()) as u64 + self.receive.held()
    }
}
