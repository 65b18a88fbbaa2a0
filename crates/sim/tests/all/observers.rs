//! What traces and captures hold of a connection that was worked out by hand: see `traffic.rs` for the times.

use crate::line::{always, group, network, one, outcome};
use fleetfoot_core::flow::{FlowId, HostId};
use fleetfoot_core::packet::Flags;
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::record::{Capture, CapturePlace, Captured, Trace, TraceKind};
use fleetfoot_sim::spec::{LinkIndex, Loss, Spec, Traffic};
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;
use std::sync::Arc;

fn transfer(count: u64) -> Traffic {
    Traffic::Transfer {
        size: always(3_000.0),
        interarrival: always(0.1),
        count: Some(count),
    }
}

fn observed(spec: &Spec, mode: Mode, trace: Trace, capture: Capture) -> (Trace, Capture) {
    let mut both = (trace, capture);
    let output = run(spec, mode, &mut both, |_| ControlFlow::Continue(())).expect("a runnable scenario");
    let mut quiet = outcome(spec);
    quiet.events = output.events;
    assert_eq!(
        format!("{output:?}"),
        format!("{quiet:?}"),
        "listening changes nothing"
    );
    both.1.sort();
    both
}

fn micros(at: fleetfoot_core::time::Instant) -> u64 {
    at.as_nanos() / 1_000
}

#[test]
fn a_trace_has_a_row_per_event_of_the_sender() {
    // SYN-ACK, three ACKs and the peer's FIN (on the third ACK or after it), then TIME-WAIT ends after 2 x 1 s.
    let mut spec = one(3_000, transfer(1));
    spec.groups[0].start = Duration::from_millis(7);
    let (trace, _) = observed(&spec, Mode::Fast, Trace::new([0], 1), Capture::default());
    let start = 107_000;
    let acked = |end: u64| start + 20_104 + end + 10_000 + 10_040;
    let rows: Vec<_> = trace
        .rows
        .iter()
        .map(|row| (micros(row.time), row.kind))
        .collect();
    assert_eq!(
        rows[..4],
        [
            (start + 20_104, TraceKind::Ack),
            (acked(1_500), TraceKind::Ack),
            (acked(3_000), TraceKind::Ack),
            (acked(3_120), TraceKind::Ack),
        ]
    );
    assert!(trace.rows.iter().all(|row| (row.group, row.number) == (0, 0)));
    assert!(trace.rows.is_sorted_by_key(|row| row.time));
    // After the SYN-ACK everything is out; the window of ten grows by one per ACK.
    assert_eq!(trace.rows[0].info.stats.segments_sent, 3);
    let windows: Vec<u64> = trace.rows[..4]
        .iter()
        .map(|row| row.info.cwnd.get() / 1_460)
        .collect();
    assert_eq!(windows, [10, 11, 12, 13]);
}

#[test]
fn a_trace_names_timeouts_and_keeps_to_what_was_asked() {
    let mut spec = one(3_000, transfer(3));
    spec.groups.push(group(1, transfer(3)));
    spec.groups[1].name = "other".to_owned();
    spec.links[0].impairments.loss = Loss::Tail(3);
    let (trace, _) = observed(&spec, Mode::Fast, Trace::new([1], 2), Capture::default());
    assert!(trace.rows.iter().all(|row| row.group == 1 && row.number < 2));
    for number in 0..2 {
        let rows: Vec<_> = trace.rows.iter().filter(|row| row.number == number).collect();
        let timeouts: Vec<_> = rows.iter().filter(|row| row.kind == TraceKind::Timeout).collect();
        assert!(!timeouts.is_empty());
        assert_eq!(timeouts.len() as u32, rows[rows.len() - 1].info.stats.timeouts);
        assert_eq!(timeouts[0].info.cwnd.get(), 1_460, "after a timeout one segment");
    }
    // Nothing for a group that is not there.
    let (trace, _) = observed(&spec, Mode::Fast, Trace::new([7], 9), Capture::default());
    assert!(trace.rows.is_empty());
}

#[test]
fn traces_do_not_depend_on_the_mode() {
    let mut spec = network(3, 2_000);
    spec.groups.push(group(3, transfer(12)));
    spec.links[0].impairments.loss = Loss::Script(Arc::new([1, 3]));
    let all = || Capture::new((0..spec.links.len() as u32).map(LinkIndex), usize::MAX);
    let (fast, mut fast_packets) = observed(&spec, Mode::Fast, Trace::new([0], 99), all());
    let (plain, mut plain_packets) = observed(&spec, Mode::Plain, Trace::new([0], 99), all());
    let ordered = |trace: Trace| {
        let mut rows = trace.rows;
        rows.sort_by_key(|row| (row.time, row.number));
        rows
    };
    assert_eq!(ordered(fast), ordered(plain));
    // Order between places at one moment is free.
    let order = |captured: &Captured| (captured.time, captured.link.0, format!("{:?}", captured.place));
    fast_packets.packets.sort_by_key(order);
    plain_packets.packets.sort_by_key(order);
    let strip = |capture: &Capture| -> Vec<String> {
        let packets = capture.packets.iter();
        packets
            .map(|captured| {
                let Captured {
                    time,
                    link,
                    place,
                    packet,
                } = captured;
                format!(
                    "{time:?} {link:?} {place:?} {:?} {:?}",
                    capture.flows.key(packet.flow),
                    packet.segment
                )
            })
            .collect()
    };
    assert_eq!(strip(&fast_packets), strip(&plain_packets));
}

#[test]
fn a_capture_has_both_ends_and_both_directions_in_order() {
    let spec = one(1_000, transfer(2));
    let capture = Capture::new([LinkIndex(0), LinkIndex(1)], usize::MAX);
    let (_, capture) = observed(&spec, Mode::Fast, Trace::default(), capture);
    assert!(capture.packets.is_sorted_by_key(|captured| captured.time));
    // Two flows per connection, never used twice; keys mirror each other.
    assert_eq!(capture.flows.len(), 4);
    let (data, acks) = (capture.flows.key(FlowId(0)), capture.flows.key(FlowId(1)));
    assert_eq!(
        (data.source, data.destination, data.protocol),
        (HostId(0), HostId(1), 6)
    );
    assert_eq!((acks.source, acks.destination), (data.destination, data.source));
    assert_eq!(
        (acks.source_port, acks.destination_port),
        (data.destination_port, data.source_port)
    );
    assert_ne!(capture.flows.key(FlowId(2)), data);

    // The first connection: SYN, SYN-ACK, three segments.
    let seen: Vec<_> = capture
        .packets
        .iter()
        .filter(|captured| captured.packet.flow.0 < 2)
        .take(10)
        .map(|captured| {
            let syn = captured.packet.segment.flags.contains(Flags::SYN);
            let payload = captured.packet.segment.payload;
            (
                micros(captured.time) - 100_000,
                captured.link.0,
                captured.place,
                syn,
                payload,
            )
        })
        .collect();
    use CapturePlace::{Deliver, Enter};
    let out = 20_104;
    let there = out + 10_000;
    assert_eq!(
        seen[..8],
        [
            (0, 0, Enter, true, 0),
            (10_052, 0, Deliver, true, 0),
            (10_052, 1, Enter, true, 0),
            (out, 1, Deliver, true, 0),
            (out, 0, Enter, false, 1_460),
            (out, 0, Enter, false, 1_460),
            (out, 0, Enter, false, 80),
            (there + 1_500, 0, Deliver, false, 1_460),
        ]
    );
    // Every packet that entered was delivered: SYN, three segments and an ACK; SYN-ACK, three ACKs, the last with a FIN.
    for (link, packets) in [(0, 10), (1, 8)] {
        let count = |place| {
            let packets = capture.packets.iter();
            packets
                .filter(|captured| captured.link.0 == link && captured.place == place)
                .count()
        };
        assert_eq!(count(Enter), count(Deliver));
        assert_eq!(count(Enter), packets);
    }
    let payload: u64 = capture
        .packets
        .iter()
        .filter(|captured| captured.place == Deliver)
        .map(|captured| u64::from(captured.packet.segment.payload))
        .sum();
    assert_eq!(Bytes(payload), Bytes(6_000));
}

#[test]
fn a_capture_keeps_to_its_links_and_its_size_and_has_drops() {
    let mut spec = one(1_000, transfer(2));
    spec.links[0].impairments.loss = Loss::Script(Arc::new([2]));
    let (_, capture) = observed(
        &spec,
        Mode::Fast,
        Trace::default(),
        Capture::new([LinkIndex(0)], usize::MAX),
    );
    assert!(
        capture
            .packets
            .iter()
            .all(|captured| captured.link == LinkIndex(0))
    );
    let drops: Vec<_> = capture
        .packets
        .iter()
        .filter(|captured| matches!(captured.place, CapturePlace::Drop(_)))
        .collect();
    assert_eq!(drops.len(), 2, "the third packet of each connection");
    for drop in drops {
        assert_eq!(drop.place, CapturePlace::Drop(DropReason::RandomLoss));
        assert_eq!(drop.packet.segment.payload, 1_460);
    }
    let whole = capture.packets;
    let (_, capture) = observed(
        &spec,
        Mode::Fast,
        Trace::default(),
        Capture::new([LinkIndex(0)], 7),
    );
    assert_eq!(capture.packets.len(), 7);
    assert!(capture.packets.iter().all(|captured| whole.contains(captured)));
}
