//! `TCP_INFO`, in Linux's units: windows in segments, times in microseconds unless the name says otherwise.

use super::{Body, Errno, Fd, Sock, Stack};
use crate::tcp::{CaState, State};
use crate::time::{Duration, Instant};
use crate::units::Bytes;

/// The fields of `struct tcp_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields of tcp_info of linux/tcp.h, without their prefix"
)]
pub struct TcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    pub snd_wscale: u8,
    pub rcv_wscale: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    /// ms.
    pub last_data_sent: u32,
    /// ms.
    pub last_ack_sent: u32,
    /// ms.
    pub last_data_recv: u32,
    /// ms.
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    /// Bytes per second.
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
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
                    state: 7,
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
        let mss = u64::from(view.mss).max(1);
        let segments = |bytes: Bytes| bytes.get().div_ceil(mss).min(u64::from(u32::MAX)) as u32;
        TcpInfo {
            state: TcpInfo::state_number(view.state),
            ca_state: match view.ca_state {
                CaState::Open => 0,
                CaState::Disorder => 1,
                CaState::Cwr => 2,
                CaState::Recovery => 3,
                CaState::Loss => 4,
            },
            rto: micros(view.rto),
            snd_mss: view.mss,
            unacked: segments(view.flight),
            rtt: view.srtt.map_or(0, micros),
            rttvar: micros(view.rttvar),
            min_rtt: view.min_rtt.map_or(u32::MAX, micros),
            snd_cwnd: (view.cwnd.get() / mss) as u32,
            snd_ssthresh: if view.ssthresh == Bytes::MAX {
                0x7fff_ffff
            } else {
                (view.ssthresh.get() / mss).min(0x7fff_ffff) as u32
            },
            pmtu: connection.config().mtu,
            advmss: connection.config().mss(),
            total_retrans: view.stats.retransmits,
            bytes_acked: view.acked,
            bytes_received: view.received,
            notsent_bytes: view.unsent.get().min(u64::from(u32::MAX)) as u32,
            data_segs_out: view.stats.segments_sent as u32,
            bytes_sent: view.stats.bytes_sent,
            delivered: segments(view.delivered),
            dsack_dups: view.stats.dsacks,
            snd_wnd: view.peer_window.get().min(u64::from(u32::MAX)) as u32,
            reordering: u32::from(connection.config().dup_thresh),
            ..TcpInfo::default()
        }
    }
}
