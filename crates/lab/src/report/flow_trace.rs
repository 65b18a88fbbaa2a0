//! The recorded flows of a comparison as tables: the states of their senders, and the segments that were sent.

use super::table::table;
use crate::result::{Comparison, FlowTrace, SendPoint, StatePoint};

/// A row of `states`: the state of a sender at a moment.
#[derive(Clone, Copy, Debug)]
pub struct StateRow<'a> {
    variant: &'a str,
    trace: &'a FlowTrace,
    point: &'a StatePoint,
}

table! { StateRow<'_>, r, "states", "the state of the sender of one recorded flow at an acknowledgment or a timer",
    "variant" Text "" "name of the variant" = r.variant;
    "group" Text "" "name of the traffic group" = r.trace.group.as_str();
    "flow" Integer "" "number of the flow within the group, from 0 in order of start" = r.trace.number;
    "time_s" Number "s" "time from the start of the run" = r.point.t_s;
    "cwnd_bytes" Integer "B" "congestion window" = r.point.cwnd_bytes;
    "ssthresh_bytes" Integer "B" "slow-start threshold; empty before the first congestion event" = r.point.ssthresh_bytes;
    "srtt_s" Number "s" "smoothed round-trip time" = r.point.srtt_s;
    "pipe_bytes" Integer "B" "bytes in flight as the sender estimates them" = r.point.pipe_bytes;
    "acked_bytes" Integer "B" "stream bytes cumulatively acknowledged" = r.point.acked_bytes;
    "state" Text "" "`open`, `disorder`, `cwr`, `recovery` or `loss`" = r.point.state;
}

/// A row of `segments`: a data segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRow<'a> {
    variant: &'a str,
    trace: &'a FlowTrace,
    point: &'a SendPoint,
}

table! { SegmentRow<'_>, r, "segments", "one data segment that a recorded flow sent",
    "variant" Text "" "name of the variant" = r.variant;
    "group" Text "" "name of the traffic group" = r.trace.group.as_str();
    "flow" Integer "" "number of the flow within the group, from 0 in order of start" = r.trace.number;
    "time_s" Number "s" "time from the start of the run" = r.point.t_s;
    "from_byte" Integer "B" "first stream byte" = r.point.from_byte;
    "size_bytes" Integer "B" "payload" = r.point.bytes;
    "retransmission" Text "" "`true` when it was sent before" = r.point.retransmission;
}

fn traces(comparison: &Comparison) -> impl Iterator<Item = (&str, &FlowTrace)> {
    comparison
        .variants
        .iter()
        .flat_map(|variant| variant.traces.iter().map(|trace| (variant.name.as_str(), trace)))
}

/// Every state of every recorded flow.
pub fn states(comparison: &Comparison) -> impl Iterator<Item = StateRow<'_>> {
    traces(comparison).flat_map(|(variant, trace)| {
        let row = move |point| StateRow {
            variant,
            trace,
            point,
        };
        trace.states.iter().map(row)
    })
}

/// Every segment of every recorded flow.
pub fn segments(comparison: &Comparison) -> impl Iterator<Item = SegmentRow<'_>> {
    traces(comparison).flat_map(|(variant, trace)| {
        let row = move |point| SegmentRow {
            variant,
            trace,
            point,
        };
        trace.sends.iter().map(row)
    })
}
