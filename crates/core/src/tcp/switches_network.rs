//! The last part of the table of switches: the network layer, and how long to try.

use super::profile::Switch;

const NS2: &str = "ns-2.35 has no such thing";

/// A switch whose two ns-2 profiles, and whose Linux profiles, agree.
const fn switch(
    name: &'static str,
    doc: &'static str,
    ns2: &'static str,
    old: (&'static str, &'static str),
    linux: (&'static str, &'static str),
    rfc: (&'static str, &'static str),
) -> Switch {
    Switch {
        name,
        doc,
        cells: [(ns2, NS2), (ns2, NS2), old, old, linux, rfc],
    }
}

/// A switch that is the same in every profile of Linux.
const fn same(
    name: &'static str,
    doc: &'static str,
    ns2: &'static str,
    linux: (&'static str, &'static str),
    rfc: (&'static str, &'static str),
) -> Switch {
    switch(name, doc, ns2, linux, linux, rfc)
}

/// Switches of `Config::path` and `Config::patience`, and of pacing.
pub(super) const NETWORK: [Switch; 29] = [
    same(
        "pacing",
        "How far segments of a window stay apart.",
        "off",
        (
            "off",
            "tcp_pacing_status: SK_PACING_NONE without fq or a controller that asks",
        ),
        ("off", "RFC 9293 has none"),
    ),
    same(
        "initial_spreading",
        "Space the segments of the first window.",
        "off",
        ("off", "not in Linux: 335 lines outside it"),
        (
            "off",
            "draft-irtf-iccrg-sallantin-initial-spreading-00 became no RFC",
        ),
    ),
    same(
        "spreading_jiffy",
        "No spreading where RTT / initial window is less.",
        "4 ms",
        ("4 ms", "HZ 250; of use with initial_spreading only"),
        (
            "4 ms",
            "draft-irtf-iccrg-sallantin-initial-spreading-00; of use with initial_spreading only",
        ),
    ),
    same(
        "spreading_gap",
        "Longest gap of bounded spreading.",
        "4 ms",
        ("4 ms", "T_max of the draft; of use with initial_spreading only"),
        (
            "4 ms",
            "draft-irtf-iccrg-sallantin-initial-spreading-00; of use with initial_spreading only",
        ),
    ),
    same(
        "spreading_rate",
        "The bottleneck's rate, for spreading by a known one.",
        "10 Mbit/s",
        ("10 Mbit/s", "of use with initial_spreading = known only"),
        ("10 Mbit/s", "of use with initial_spreading = known only"),
    ),
    same(
        "spreading_pair",
        "The first two segments leave together and measure the bottleneck's rate.",
        "true",
        ("true", "of use with initial_spreading = estimated only"),
        ("true", "of use with initial_spreading = estimated only"),
    ),
    same(
        "spreading_memory",
        "How long later connections to the same host use it.",
        "3600 s",
        (
            "3600 s",
            "as tcp_metrics (an hour); of use with initial_spreading = estimated only",
        ),
        (
            "3600 s",
            "RFC 9040 6 names no time; of use with initial_spreading = estimated only",
        ),
    ),
    same(
        "spreading_stop",
        "An acknowledgment that found no queue ends the spreading.",
        "true",
        ("true", "of use with initial_spreading = estimated only"),
        ("true", "of use with initial_spreading = estimated only"),
    ),
    same(
        "spreading_phase",
        "The first segment waits for a random part of the gap.",
        "false",
        ("false", "of use with initial_spreading = estimated only"),
        ("false", "of use with initial_spreading = estimated only"),
    ),
    same(
        "spreading_tail",
        "The last two segments of the window leave together.",
        "false",
        ("false", "of use with initial_spreading = estimated only"),
        ("false", "of use with initial_spreading = estimated only"),
    ),
    same(
        "spreading_jitter_percent",
        "Gaps are drawn at random around the gap.",
        "0",
        ("0", "of use with initial_spreading only"),
        (
            "0",
            "draft-irtf-iccrg-sallantin-initial-spreading-00 has equal gaps; of use with initial_spreading only",
        ),
    ),
    same(
        "path.ip",
        "IP version.",
        "4",
        ("4", "the network's choice"),
        ("4", "the network's choice"),
    ),
    same(
        "path.pmtu_discovery",
        "Set DF and obey \"too big\" messages.",
        "false",
        ("true", "ip_no_pmtu_disc 0"),
        ("true", "RFC 1191, RFC 8201"),
    ),
    same(
        "path.min_pmtu",
        "Smallest IPv4 path MTU that is believed.",
        "68",
        ("552", "net.ipv4.route.min_pmtu"),
        ("68", "RFC 791, RFC 1191 3"),
    ),
    same(
        "path.pmtu_lifetime",
        "How long a learnt path MTU is believed.",
        "600 s",
        ("600 s", "net.ipv4.route.mtu_expires"),
        ("600 s", "RFC 1191 6.3"),
    ),
    same(
        "path.mtu_probing",
        "Search for the path MTU without routers' help (RFC 4821).",
        "off",
        ("off", "tcp_mtu_probing 0"),
        ("off", "RFC 4821 is optional"),
    ),
    same(
        "path.base_mss",
        "Payload that search begins with.",
        "1024",
        ("1024", "tcp_base_mss"),
        ("1024", "RFC 4821 7.2"),
    ),
    same(
        "path.probe_interval",
        "Time after which a finished search begins anew.",
        "600 s",
        ("600 s", "tcp_probe_interval"),
        ("600 s", "RFC 4821 7.5"),
    ),
    same(
        "path.min_mss",
        "Smallest payload of a full segment.",
        "48",
        ("48", "tcp_min_snd_mss"),
        ("48", "CVE-2019-11479; RFC 9293 has no minimum"),
    ),
    same(
        "path.icmp_abort",
        "ICMP errors that end a handshake.",
        "hard",
        ("any", "tcp_v4_err"),
        ("hard", "RFC 1122 4.2.3.9, RFC 9293 MUST-56"),
    ),
    same(
        "path.icmp_reverts_backoff",
        "ICMP unreachable takes back one back-off (RFC 6069).",
        "false",
        ("true", "tcp_ld_RTO_revert"),
        ("false", "RFC 6069 is experimental"),
    ),
    same(
        "path.urgent_pointer",
        "Octet the urgent pointer names.",
        "following",
        ("following", "tcp_stdurg 0"),
        ("following", "RFC 6093, RFC 9293 MUST-62"),
    ),
    switch(
        "patience.syn_linear_timeouts",
        "First SYN retransmissions without back-off.",
        "0",
        ("0", "before 6.5"),
        ("4", "tcp_syn_linear_timeouts (6.5)"),
        ("0", "RFC 6298 5.5"),
    ),
    same(
        "patience.synack_retries",
        "SYN-ACK retransmissions before giving up.",
        "255",
        ("5", "tcp_synack_retries"),
        ("8", "RFC 9293 MUST-23: three minutes"),
    ),
    same(
        "patience.retries_as_time",
        "`retries` stands for a time.",
        "false",
        ("true", "retransmits_timed_out"),
        ("false", "RFC 9293 3.8.3"),
    ),
    same(
        "patience.orphan_retries",
        "Retransmissions after both halves were closed; 0 means 8.",
        "none",
        ("0", "tcp_orphan_retries"),
        ("none", "RFC 9293 3.8.3 makes no difference"),
    ),
    same(
        "patience.user_timeout",
        "Longest time without an answer.",
        "none",
        ("none", "TCP_USER_TIMEOUT 0"),
        ("none", "RFC 9293 3.8.3: `retries` decides"),
    ),
    same(
        "patience.fin_wait2",
        "Longest stay in FIN-WAIT-2 after both halves were closed.",
        "none",
        ("60 s", "tcp_fin_timeout"),
        ("none", "RFC 9293 3.3.2 has no limit"),
    ),
    same(
        "patience.reset_on_unread",
        "Data the owner will never read resets.",
        "false",
        ("true", "tcp_close, tcp_rcv_state_process"),
        ("true", "RFC 9293 SHLD-3"),
    ),
];
