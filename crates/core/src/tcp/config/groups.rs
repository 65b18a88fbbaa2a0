//! Switches in groups: the retransmission timer, the network layer, and how long to try before giving up.
//!
//! **Source.** In every cell, as in the table of [`Config`].
#![allow(
    unreachable_patterns,
    reason = "the first cell that names a profile holds for it"
)]

use super::choices::{
    IcmpAbort, IpVersion, MtuProbing, Profile, RtoFloor, RttEstimator, RttSamples, UrgentPointer,
};
use super::switch::{Switch, SwitchForm, count, joined};
use super::{TIME, millis, secs};
use crate::parameter::{ParameterKind, Written};
use crate::time::Duration;
use crate::units::Bytes;

const POSITIVE_TIME: ParameterKind = ParameterKind::Duration(Duration::from_nanos(1), secs(86_400));

switches! {
    /// Retransmission timer (RFC 6298 and Linux's variant).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
    pub struct RtoConfig at [rto] {
        /// How samples make SRTT, its variation and the timeout.
        estimator: RttEstimator as "rtt_estimator" = {
            ns2 => RttEstimator::Rfc6298, "tcp.cc: rtt_update, in ticks";
            linux_3_2 => RttEstimator::Linux, "tcp_rtt_estimator, in microseconds; 3.2 had it in jiffies";
            linux_2015 => RttEstimator::Linux, "tcp_rtt_estimator, in microseconds since 3.15 (740b0f1841f6)";
            linux => RttEstimator::Linux, "tcp_rtt_estimator";
            rfc => RttEstimator::Rfc6298, "RFC 6298 2.2, 2.3";
        }
        /// Whether the floor holds for the whole timer (RFC 6298) or for its variance term (Linux).
        floor: RtoFloor as "rto_floor" = {
            ns2 => RtoFloor::Rto, "tcp.cc: rtt_timeout";
            linux => RtoFloor::Variance, "tcp_rtt_estimator: rttvar at least rto_min";
            rfc => RtoFloor::Rto, "RFC 6298 2.4";
        }
        /// Floor of the retransmission timer.
        min: Duration [POSITIVE_TIME] as "min_rto" = {
            ns2 => millis(200), "ns-default.tcl: minrto_ 0.2";
            linux => millis(200), "TCP_RTO_MIN";
            rfc => secs(1), "RFC 6298 2.4";
        }
        /// Linux's delayed ACKs come a jiffy before `min_rto` is over at the latest: the peer's timeout may be as short.
        bounds_acks: bool = {
            ns2 => false, "ns-2 delays none";
            linux_old => false, "TCP_DELACK_MAX alone";
            linux => true, "tcp_delack_max; conformance/acknowledging";
            rfc => false, "not in the RFCs";
        }
        /// Retransmission timer before the first sample.
        initial: Duration [POSITIVE_TIME] as "initial_rto" = {
            ns2 => secs(3), "ns-default.tcl: rtxcur_init_ 3.0";
            linux => secs(1), "TCP_TIMEOUT_INIT";
            rfc => secs(1), "RFC 6298 2.1";
        }
        /// For data if the SYN was retransmitted (RFC 6298 5.7).
        after_syn_timeout: Duration = {
            ns2 => secs(6), "ns-default.tcl: rtxcur_init_ 3.0; tcp.cc: t_backoff_ stays";
            linux => secs(3), "TCP_TIMEOUT_FALLBACK";
            rfc => secs(3), "RFC 6298 5.7";
        }
        /// Cap of the retransmission timer.
        max: Duration [POSITIVE_TIME] as "max_rto" = {
            ns2 => secs(60), "ns-default.tcl: maxrto_ 60";
            linux => secs(120), "TCP_RTO_MAX";
            rfc => secs(60), "RFC 6298 2.5";
        }
        /// Clock granularity G; with `rtt_estimator = linux` the timeout is rounded up to a multiple of it.
        granularity: Duration = {
            ns2 => millis(10), "ns-default.tcl: tcpTick_ 0.01";
            linux => millis(4), "tcp_set_rto: usecs_to_jiffies; HZ 250";
            rfc => millis(1), "RFC 6298 4: 100 ms or finer";
        }
        /// Which acknowledgments give samples.
        samples: RttSamples as "rtt_samples" = {
            ns2 => RttSamples::OncePerRtt, "tcp.cc: rtt_active_";
            linux => RttSamples::EveryAck, "tcp_ack_update_rtt";
            rfc => RttSamples::EveryAck, "RFC 6298 3: at least one per RTT; RFC 7323 4";
        }
        /// Tick of the RTT clock: the estimator is BSD's in integers (`tcpTick_` in ns-2); zero: exact.
        tick: Duration [TIME] as "tick" = {
            ns2 => millis(10), "ns-default.tcl: tcpTick_ 0.01; tcp.cc: rtt_update, rtt_backoff";
            linux => Duration::ZERO, "microseconds; treated as exact";
            rfc => Duration::ZERO, "no rounding in RFC 6298";
        }
        /// A timeout that was spurious because the RTT had grown starts the estimator from that RTT (RFC 4015).
        after_spurious: bool as "rto_after_spurious" = {
            ns2 => false, "nothing is undone";
            linux => false, "tcp_try_undo_loss: the window only";
            rfc => true, "RFC 4015 3.1 step 11";
        }
    }
}

switches! {
    /// What the connection expects of the network layer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
    pub struct PathConfig at [path] {
        /// Most bytes of a connection that may wait in queues of its own host, of which two groups for segmentation offload or a
        /// millisecond of its rate is the usual bound (TCP Small Queues). Where a link is the host's own and the slowest of the path.
        small_queues: Bytes [ParameterKind::Bytes(Bytes(1), Bytes::MAX)] as "small_queues" = {
            ns2 => Bytes::MAX, "not in ns-2.35";
            linux_3_2 => Bytes::MAX, "came with 3.6";
            linux_2015 => Bytes(131_072), "tcp_limit_output_bytes; 256 KiB since 4.2 (c39c4c6abb89)";
            linux => Bytes(4_194_304), "net.ipv4.tcp_limit_output_bytes";
            rfc => Bytes::MAX, "not in the RFCs";
        }
        /// IP version.
        ip: IpVersion = {
            ns2 => IpVersion::V4, "ns-2.35 has no such thing";
            linux => IpVersion::V4, "the network's choice";
            rfc => IpVersion::V4, "the network's choice";
        }
        /// Set DF and obey "too big" messages (RFC 1191, RFC 8201).
        pmtu_discovery: bool = {
            ns2 => false, "ns-2.35 has no such thing";
            linux => true, "ip_no_pmtu_disc 0";
            rfc => true, "RFC 1191, RFC 8201";
        }
        /// Smallest IPv4 path MTU that is believed; below it segments may be fragmented.
        min_pmtu: u32 = {
            ns2 => 68, "ns-2.35 has no such thing";
            linux => 552, "net.ipv4.route.min_pmtu";
            rfc => 68, "RFC 791, RFC 1191 3";
        }
        /// How long a learnt path MTU is believed (RFC 1191 6.3).
        pmtu_lifetime: Duration = {
            ns2 => secs(600), "ns-2.35 has no such thing";
            linux => secs(600), "net.ipv4.route.mtu_expires";
            rfc => secs(600), "RFC 1191 6.3";
        }
        /// Search for the path MTU without routers' help (RFC 4821).
        mtu_probing: MtuProbing = {
            ns2 => MtuProbing::Off, "ns-2.35 has no such thing";
            linux => MtuProbing::Off, "tcp_mtu_probing 0";
            rfc => MtuProbing::Off, "RFC 4821 is optional";
        }
        /// Payload the search begins with.
        base_mss: u32 = {
            ns2 => 1024, "ns-2.35 has no such thing";
            linux => 1024, "tcp_base_mss";
            rfc => 1024, "RFC 4821 7.2";
        }
        /// Time after which a finished search begins anew.
        probe_interval: Duration = {
            ns2 => secs(600), "ns-2.35 has no such thing";
            linux => secs(600), "tcp_probe_interval";
            rfc => secs(600), "RFC 4821 7.5";
        }
        /// Smallest payload of a full segment, whatever the peer or a router says (CVE-2019-11479).
        min_mss: u32 = {
            ns2 => 48, "ns-2.35 has no such thing";
            linux => 48, "tcp_min_snd_mss";
            rfc => 48, "CVE-2019-11479; RFC 9293 has no minimum";
        }
        /// Which ICMP errors end a connection that is not established.
        icmp_abort: IcmpAbort = {
            ns2 => IcmpAbort::Hard, "ns-2.35 has no such thing";
            linux => IcmpAbort::Any, "tcp_v4_err";
            rfc => IcmpAbort::Hard, "RFC 1122 4.2.3.9, RFC 9293 MUST-56";
        }
        /// An ICMP error that says a retransmission did not get through takes back one back-off (RFC 6069).
        icmp_reverts_backoff: bool = {
            ns2 => false, "ns-2.35 has no such thing";
            linux => true, "tcp_ld_RTO_revert";
            rfc => false, "RFC 6069 is experimental";
        }
        /// Which octet the urgent pointer names.
        urgent_pointer: UrgentPointer = {
            ns2 => UrgentPointer::Following, "ns-2.35 has no such thing";
            linux => UrgentPointer::Following, "tcp_stdurg 0";
            rfc => UrgentPointer::Following, "RFC 6093, RFC 9293 MUST-62";
        }
    }
}

switches! {
    /// How long to try before giving up.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
    pub struct RetryLimits at [patience] {
        /// First SYN retransmissions without back-off (Linux 6.5, `tcp_syn_linear_timeouts`); they come on top of
        /// `syn_retries`.
        syn_linear_timeouts: u8 = {
            ns2 => 0, "ns-2.35 has no such thing";
            linux_old => 0, "before 6.5";
            linux => 4, "tcp_syn_linear_timeouts (6.5)";
            rfc => 0, "RFC 6298 5.5";
        }
        /// SYN-ACK retransmissions before giving up.
        synack_retries: u8 = {
            ns2 => 255, "ns-2.35 has no such thing";
            linux => 5, "tcp_synack_retries";
            rfc => 8, "RFC 9293 MUST-23: three minutes";
        }
        /// `retries` means the time that so many retransmissions would take from an RTO of 200 ms (Linux), not
        /// their number.
        retries_as_time: bool = {
            ns2 => false, "ns-2.35 has no such thing";
            linux => true, "retransmits_timed_out";
            rfc => false, "RFC 9293 3.8.3";
        }
        /// Retransmissions after the owner closed both halves (Linux `tcp_orphan_retries`: 0 means 8); `None`: as
        /// many as before.
        orphan_retries: Option<u8> = {
            ns2 => None, "ns-2.35 has no such thing";
            linux => Some(0), "tcp_orphan_retries";
            rfc => None, "RFC 9293 3.8.3 makes no difference";
        }
        /// Longest time data or probes may go unanswered (RFC 9293 MUST-21; `TCP_USER_TIMEOUT`); `None`: `retries`
        /// decides.
        user_timeout: Option<Duration> = {
            ns2 => None, "ns-2.35 has no such thing";
            linux => None, "TCP_USER_TIMEOUT 0";
            rfc => None, "RFC 9293 3.8.3: `retries` decides";
        }
        /// Longest stay in FIN-WAIT-2 after both halves were closed; `None`: for ever.
        fin_wait2: Option<Duration> = {
            ns2 => None, "ns-2.35 has no such thing";
            linux => Some(secs(60)), "tcp_fin_timeout";
            rfc => None, "RFC 9293 3.3.2 has no limit";
        }
        /// Closing both halves with unread data, or data that comes later, resets (RFC 9293 SHLD-3).
        reset_on_unread: bool = {
            ns2 => false, "ns-2.35 has no such thing";
            linux => true, "tcp_close, tcp_rcv_state_process";
            rfc => true, "RFC 9293 SHLD-3";
        }
    }
}
