//! Rows of the table of switches that concern short flows and thin streams.

use super::profile::Switch;

pub(super) const THIN: &[Switch] = &[
    Switch {
        name: "rto_restart_threshold",
        doc: "Outstanding and unsent segments below which the RTO is restarted so.",
        cells: [
            ("4", "unused"),
            ("4", "unused"),
            ("4", "unused"),
            ("4", "unused"),
            ("4", "unused"),
            ("4", "RFC 7765 4: rrthresh"),
        ],
    },
    Switch {
        name: "probe_restart_threshold",
        doc: "Outstanding segments below which the probe timeout is restarted so.",
        cells: [
            ("none", "unused"),
            ("none", "unused"),
            ("none", "unused"),
            ("none", "unused"),
            ("none", "unused"),
            ("none", "unused"),
        ],
    },
    Switch {
        name: "learn_ack_delay",
        doc: "The allowance for delayed ACKs is at most four times RTTVAR.",
        cells: [
            ("false", "unused"),
            ("false", "unused"),
            ("false", "unused"),
            ("false", "tcp_schedule_loss_probe: TCP_DELACK_MAX"),
            ("false", "tcp_schedule_loss_probe: tcp_rto_min"),
            ("false", "RFC 8985 7.2"),
        ],
    },
    Switch {
        name: "thin_dupack",
        doc: "One SACKed segment shows a loss of a thin stream.",
        cells: [
            ("false", "not in ns-2.35"),
            ("false", "not in ns-2.35"),
            ("false", "tcp_thin_dupack 0"),
            ("false", "tcp_thin_dupack 0"),
            ("false", "removed in 4.11"),
            ("false", "no RFC"),
        ],
    },
    Switch {
        name: "thin_linear",
        doc: "First timeouts of a thin stream without back-off.",
        cells: [
            ("false", "not in ns-2.35"),
            ("false", "not in ns-2.35"),
            ("false", "tcp_thin_linear_timeouts 0"),
            ("false", "tcp_thin_linear_timeouts 0"),
            ("false", "tcp_thin_linear_timeouts 0"),
            ("false", "RFC 6298 5.5"),
        ],
    },
    Switch {
        name: "rdb",
        doc: "Redundant data bundling.",
        cells: [
            ("off", "not in ns-2.35"),
            ("off", "not in ns-2.35"),
            ("off", "not in Linux"),
            ("off", "not in Linux: patches of March 2016"),
            ("off", "not in Linux"),
            ("off", "no RFC"),
        ],
    },
    Switch {
        name: "coalesce_unsent",
        doc: "Writes that wait flow together into full segments.",
        cells: [
            ("true", "tcp.cc: sends whole segments"),
            ("true", "tcp.cc: sends whole segments"),
            ("true", "tcp_sendmsg fills the last segment of the queue"),
            ("true", "tcp_sendmsg fills the last segment of the queue"),
            ("true", "tcp_sendmsg fills the last segment of the queue"),
            ("true", "RFC 9293 3.7.4"),
        ],
    },
];
