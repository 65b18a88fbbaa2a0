//! `TCP_INFO`, in Linux's units: windows in segments, times in microseconds unless the name says otherwise.

use super::{Body, Errno, Fd, Sock, Stack};
use crate::tcp::{CaState, State};
use crate::time::{Duration, Instant};
use crate::units::Bytes;

macro_rules! tcp_info {
    ($($(#[doc = $doc:literal])? $name:ident: $type:ty;)*) => {
        /// The fields of `struct tcp_info`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the fields of tcp_info of linux/tcp.h, without their prefix")]
        pub struct TcpInfo {
            $($(#[doc = $doc])? pub $name: $type,)*
        }

        impl TcpInfo {
            /// Every field with its Linux name.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((concat!("tcpi_", stringify!($name)), u64::from(self.$name)),)*].into_iter()
            }
        }
    };
}

tcp_info! {
    state: u8;
    ca_state: u8;
    retransmits: u8;
    probes: u8;
    backoff: u8;
    options: u8;
    snd_wscale: u8;
    rcv_wscale: u8;
    rto: u32;
    ato: u32;
    snd_mss: u32;
    rcv_mss: u32;
    unacked: u32;
    sacked: u32;
    lost: u32;
    retrans: u32;
    fackets: u32;
    #[doc = "ms."]
    last_data_sent: u32;
    #[doc = "ms."]
    last_ack_sent: u32;
    #[doc = "ms."]
    last_data_recv: u32;
    #[doc = "ms."]
    last_ack_recv: u32;
    pmtu: u32;
    rcv_ssthresh: u32;
    rtt: u32;
    rttvar: u32;
    snd_ssthresh: u32;
    snd_cwnd: u32;
    advmss: u32;
    reordering: u32;
    rcv_rtt: u32;
    rcv_space: u32;
    total_retrans: u32;
    #[doc = "Bytes per second."]
    pacing_rate: u64;
    max_pacing_rate: u64;
    bytes_acked: u64;
    bytes_received: u64;
    segs_out: u32;
    segs_in: u32;
    notsent_bytes: u32;
    min_rtt: u32;
    data_segs_in: u32;
    data_segs_out: u32;
    delivery_rate: u64;
    busy_time: u64;
    rwnd_limited: u64;
    sndbuf_limited: u64;
    delivered: u32;
    delivered_ce: u32;
    bytes_sent: u64;
    bytes_retrans: u64;
    dsack_dups: u32;
    reord_seen: u32;
    rcv_ooopack: u32;
    snd_wnd: u32;
    received_ce: u32;
    delivered_e1_bytes: u32;
    delivered_e0_bytes: u32;
    delivered_ce_bytes: u32;
    received_e1_bytes: u32;
    received_e0_bytes: u32;
    received_ce_bytes: u32;
}

impl TcpInfo {
    /// Timestamps were negotiated.
    pub const OPTION_TIMESTAMPS: u8 = 1;
    /// SACK was negotiated.
    pub const OPTION_SACK: u8 = 2;
    /// Window scaling was negotiated.
    pub const OPTION_WSCALE: u8 = 4;
    /// ECN was negotiated.
    pub const OPTION_ECN: u8 = 8;
    /// A packet with CE arrived.
    pub const OPTION_ECN_SEEN: u8 = 16;
    /// The SYN-ACK acknowledged data of the SYN.
    pub const OPTION_SYN_DATA: u8 = 32;

    /// Linux's number of a state.
    pub const fn state_number(state: State) -> u8 {
        match state {
            State::Established => 1,
            State::SynSent => 2,
            State::SynReceived => 3,
            State::FinWait1 => 4,
            State::FinWait2 => 5,
            State::TimeWait => 6,
            State::Closed => 7,
            State::CloseWait => 8,
            State::LastAck => 9,
            State::Closing => 11,
        }
    }
}

fn micros(span: Duration) -> u32 {
    span.as_micros().min(u64::from(u32::MAX)) as u32
}

fn millis(span: Duration) -> u32 {
    span.as_millis().min(u64::from(u32::MAX)) as u32
}

impl Stack {
    /// `getsockopt(TCP_INFO)`.
    pub fn info(&self, now: Instant, fd: Fd) -> Result<TcpInfo, Errno> {
        let sock = &self.socks[self.index_of(fd)?];
        Ok(self.info_of(now, sock))
    }

    fn info_of(&self, now: Instant, sock: &Sock) -> TcpInfo {
        let connection = match &sock.body {
            Body::Idle => {
                return TcpInfo {
                    state: if sock.deferred_to.is_some() { 2 } else { 7 },
                    ..TcpInfo::default()
                };
            }
            Body::Listen(queue) => {
                return TcpInfo {
                    state: 10,
                    unacked: queue.ready.len() as u32, // Linux shows the queue and its limit here
                    sacked: queue.limit,
                    ..TcpInfo::default()
                };
            }
            Body::Open(connection) => connection,
        };
        let view = connection.info(now);
        let detail = connection.detail(now);
        let mss = u64::from(view.mss).max(1);
        let mut options = 0;
        for (on, bit) in [
            (detail.timestamps, TcpInfo::OPTION_TIMESTAMPS),
            (detail.sack, TcpInfo::OPTION_SACK),
            (detail.window_scaling, TcpInfo::OPTION_WSCALE),
            (detail.ecn, TcpInfo::OPTION_ECN),
            (view.stats.ce_received > 0, TcpInfo::OPTION_ECN_SEEN),
            (detail.syn_data, TcpInfo::OPTION_SYN_DATA),
        ] {
            options |= if on { bit } else { 0 };
        }
        let clock = sock.clock.at(now);
        let counts = detail.accurate_ecn.unwrap_or_default();
        let low = |bytes: [u64; 3]| bytes.map(|bytes| bytes as u32);
        let [delivered_e1_bytes, delivered_ce_bytes, delivered_e0_bytes] = low(counts.reported_bytes);
        let [received_e1_bytes, received_ce_bytes, received_e0_bytes] = low(counts.received_bytes);
        TcpInfo {
            state: TcpInfo::state_number(view.state),
            ca_state: match view.ca_state {
                CaState::Open => 0,
                CaState::Disorder => 1,
                CaState::Cwr => 2,
                CaState::Recovery => 3,
                CaState::Loss => 4,
            },
            retransmits: detail.timeouts_in_row,
            probes: detail.probes,
            backoff: detail.backoff,
            options,
            snd_wscale: detail.snd_scale,
            rcv_wscale: detail.rcv_scale,
            rto: micros(view.rto),
            ato: micros(detail.ato),
            snd_mss: view.mss,
            rcv_mss: detail.rcv_mss,
            unacked: detail.out,
            sacked: detail.sacked,
            lost: detail.lost,
            retrans: detail.retransmitted,
            last_data_sent: millis(detail.since_sent),
            last_data_recv: millis(detail.since_received),
            pmtu: connection.config().mtu,
            rcv_ssthresh: detail.offered.min(u64::from(u32::MAX)) as u32,
            rtt: view.srtt.map_or(0, micros),
            rttvar: micros(view.rttvar),
            snd_ssthresh: if view.ssthresh == Bytes::MAX {
                0x7fff_ffff
            } else {
                (view.ssthresh.get() / mss).min(0x7fff_ffff) as u32
            },
            snd_cwnd: (view.cwnd.get() / mss) as u32,
            advmss: connection.config().mss() - if detail.timestamps { 12 } else { 0 },
            reordering: detail.reordering,
            reord_seen: detail.reorderings,
            total_retrans: view.stats.retransmits,
            bytes_acked: view.acked,
            bytes_received: view.received,
            notsent_bytes: view.unsent.get().min(u64::from(u32::MAX)) as u32,
            min_rtt: view.min_rtt.map_or(u32::MAX, micros),
            data_segs_out: view.stats.segments_sent as u32,
            busy_time: clock[0].as_micros(),
            rwnd_limited: clock[1].as_micros(),
            sndbuf_limited: clock[2].as_micros(),
            delivered: detail.delivered,
            delivered_ce: detail
                .accurate_ecn
                .map_or(view.stats.ecn_echoes, |counts| counts.reported_ce),
            received_ce: counts.received_ce,
            delivered_e1_bytes,
            delivered_e0_bytes,
            delivered_ce_bytes,
            received_e1_bytes,
            received_e0_bytes,
            received_ce_bytes,
            bytes_sent: view.stats.bytes_sent,
            dsack_dups: view.stats.dsacks,
            snd_wnd: view.peer_window.get().min(u64::from(u32::MAX)) as u32,
            ..TcpInfo::default()
        }
    }
}

/// What keeps a sender from going faster (`tcp_chrono`): times spent with data unacknowledged, and of these, held by the
/// peer's window, or by the send buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    spent: [Duration; 3],
    since: Instant,
    what: Limit,
}

/// What holds a sender now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Limit {
    /// There is nothing to send.
    #[default]
    Idle,
    /// Congestion, or the path.
    Busy,
    /// The peer's window.
    Window,
    /// The application could not write more.
    Buffer,
}

impl Clock {
    /// From now on it is `what`.
    pub(super) fn turn(&mut self, now: Instant, what: Limit) {
        if what != self.what {
            self.spent = self.at(now);
            self.since = now;
            self.what = what;
        }
    }

    /// Times up to now: busy in all, held by the window, by the buffer.
    pub(super) fn at(&self, now: Instant) -> [Duration; 3] {
        let mut spent = self.spent;
        let more = now.since(self.since);
        if self.what != Limit::Idle {
            spent[0] += more;
        }
        match self.what {
            Limit::Window => spent[1] += more,
            Limit::Buffer => spent[2] += more,
            Limit::Idle | Limit::Busy => {}
        }
        spent
    }
}

impl Sock {
    /// What holds the sender, after a drain.
    pub(super) fn watch(&mut self, now: Instant) {
        let Body::Open(connection) = &self.body else {
            return;
        };
        let info = connection.info(now);
        let usable = info.peer_window.saturating_sub(info.flight);
        let what = if self.written == info.acked {
            Limit::Idle
        } else if info.unsent > Bytes::ZERO && usable < info.unsent.min(Bytes(u64::from(info.mss))) {
            Limit::Window
        } else if info.unsent == Bytes::ZERO && self.no_space {
            Limit::Buffer
        } else {
            Limit::Busy
        };
        self.clock.turn(now, what);
    }
}
