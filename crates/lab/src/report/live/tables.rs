//! The tables of a real program: its flows, and its runs.

use crate::import::flows::{Flow, Incomplete};
use crate::live::Run;
use crate::report::table::table;
use crate::result::Comparison;

/// A row of `flows`: one flow of one run.
#[derive(Clone, Copy, Debug)]
pub struct FlowRow<'a> {
    variant: &'a str,
    run: u64,
    flow: &'a Flow,
}

table! { FlowRow<'_>, f, "flows", "one flow of one run of `fleetfoot shell`, as it passed the link",
    "variant" Text "" "name of the variant" = f.variant;
    "run" Integer "" "number of the run, from 1" = f.run;
    "protocol" Text "" "`tcp`, `quic`, `udp`, `icmp`, or the number of the protocol" = f.flow.protocol.as_str();
    "by_command" Text "" "`true` when the command's side opened it, or sent first" = f.flow.by_command;
    "source" Text "" "address and port of the end that opened it" = f.flow.source.as_str();
    "destination" Text "" "address and port of the other end" = f.flow.destination.as_str();
    "start_s" Number "s" "when its first packet entered the link, from the first packet of the run" = f.flow.start_s;
    "end_s" Number "s" "when its last packet entered or left the link" = f.flow.end_s;
    "completion_s" Number "s" "first packet to arrival of the last new payload byte (TCP)" = f.flow.completion_s;
    "completed" Text "" "`true` when every payload byte that was sent arrived and the connection was not aborted (TCP)" = f.flow.completed;
    "incomplete" Text "" "why it is not complete: `refused`, `unanswered` (its SYN), `no-data`, `data-missing` when it was last seen, `reset`" = f.flow.incomplete.map(Incomplete::name);
    "handshake_rtt_s" Number "s" "round-trip time of the handshake, as the end that opened saw it" = f.flow.handshake_rtt_s;
    "rtt_n" Integer "" "round-trip times of data that were measured" = f.flow.rtt.map(|rtt| rtt.n);
    "rtt_min_s" Number "s" "the smallest of them, as the sender of the data saw it" = f.flow.rtt.map(|rtt| rtt.min_s);
    "rtt_mean_s" Number "s" "their mean" = f.flow.rtt.map(|rtt| rtt.mean_s);
    "rtt_max_s" Number "s" "the largest" = f.flow.rtt.map(|rtt| rtt.max_s);
    "sent_packets" Integer "" "packets of the command's side that entered the link" = f.flow.sent.packets;
    "sent_bytes" Integer "B" "their layer-3 bytes" = f.flow.sent.bytes;
    "sent_payload_bytes" Integer "B" "bytes of the stream that the command's side sent (TCP)" = f.flow.sent.payload_bytes;
    "sent_retransmits" Integer "" "data segments that it sent again (TCP)" = f.flow.sent.retransmits;
    "sent_dropped" Integer "" "packets of it that the link dropped" = f.flow.sent.dropped;
    "received_packets" Integer "" "packets of the far side that entered the link" = f.flow.received.packets;
    "received_bytes" Integer "B" "their layer-3 bytes" = f.flow.received.bytes;
    "received_payload_bytes" Integer "B" "bytes of the stream that the far side sent (TCP)" = f.flow.received.payload_bytes;
    "received_retransmits" Integer "" "data segments that it sent again (TCP)" = f.flow.received.retransmits;
    "received_dropped" Integer "" "packets of it that the link dropped" = f.flow.received.dropped;
}

/// A row of `measured`: one run.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredRow<'a> {
    variant: &'a str,
    run: &'a Run,
}

table! { MeasuredRow<'_>, m, "measured", "one run of the command of `fleetfoot shell`",
    "variant" Text "" "name of the variant" = m.variant;
    "run" Integer "" "number of the run, from 1" = m.run.run;
    "seed" Integer "" "seed of what was random on the link" = m.run.seed;
    "exit_code" Integer "" "exit status of the command; 128 plus the number of the signal that ended it" = m.run.exit_code.unsigned_abs();
    "wall_s" Number "s" "from the start of the command to its end" = m.run.wall_s;
    "value" Number "" "what runs are compared by; empty where the run has none" = m.run.value;
    "problem" Text "" "why the run failed and counts in nothing; empty if it did not" = m.run.problem.as_deref().unwrap_or("");
    "kept" Text "" "`true` when the described link was kept" = m.run.kept;
    "lateness_mean_s" Number "s" "how much later than the described link packets were delivered, mean" = m.run.lateness.mean_s;
    "lateness_p99_s" Number "s" "99th percentile of the same" = m.run.lateness.p99_s;
    "lateness_max_s" Number "s" "the largest" = m.run.lateness.max_s;
    "late_share" Number "" "share of deliveries that were more than a millisecond late" = m.run.lateness.share_above_1ms;
    "sent_bps" Number "bit/s" "layer-3 bits of the command that were delivered, from the first delivery of TCP or UDP, where there is any, to the last" = m.run.sent.throughput_bps;
    "received_bps" Number "bit/s" "layer-3 bits delivered to the command, from the first delivery of TCP or UDP, where there is any, to the last" = m.run.received.throughput_bps;
    "sent_queue_delay_p95_s" Number "s" "time in the queue of what the command sent, 95th percentile" = m.run.sent.queue_delay_s.as_ref().map(|delay| delay.p95);
    "received_queue_delay_p95_s" Number "s" "time in the queue of what it received, 95th percentile" = m.run.received.queue_delay_s.as_ref().map(|delay| delay.p95);
    "dropped" Integer "" "packets dropped in both directions" = m.run.dropped();
    "flows" Integer "" "flows that were seen" = m.run.flows_seen;
}

/// Every flow of every run.
pub fn flows(comparison: &Comparison) -> impl Iterator<Item = FlowRow<'_>> + Clone {
    measured(comparison).flat_map(|row| {
        row.run.flows.iter().map(move |flow| FlowRow {
            variant: row.variant,
            run: row.run.run,
            flow,
        })
    })
}

/// Every run.
pub fn measured(comparison: &Comparison) -> impl Iterator<Item = MeasuredRow<'_>> + Clone {
    comparison.document.variants.iter().flat_map(|variant| {
        let live = variant.live.iter();
        live.flat_map(|live| &live.measured).map(move |run| MeasuredRow {
            variant: &variant.name,
            run,
        })
    })
}
