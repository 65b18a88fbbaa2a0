use super::*;
use crate::packet::{BufId, Flags, Segment};
use crate::parameter::Value;
use crate::parameter::Values;
use crate::queue::{DropTail, Limit};
use crate::seq::SeqNumber;

fn packet(flow: u32, seq: u32, len: u32) -> Packet {
    Packet {
        enqueued_at: Instant::ZERO,
        flow: FlowId(flow),
        buf: BufId::NONE,
        segment: Segment {
            seq: SeqNumber(seq),
            payload: len.saturating_sub(40),
            overhead: len.min(40) as u8,
            flags: Flags::ACK,
            tos: 2,
            ..Segment::default()
        },
    }
}

fn drop_tail(limit: Limit) -> DropTail {
    let mut values = Values::defaults(DropTail::PARAMETERS);
    values.set("limit", Value::Limit(limit)).expect("a limit");
    DropTail::new(
        &values,
        &Surroundings {
            mtu: 1500,
            rate: Rate(1),
            seed: 1,
        },
    )
}

fn link(config: &LinkConfig) -> Link<DropTail> {
    Link::new(drop_tail(Limit::Unlimited), config, 1, "test")
}

/// Delivers everything; times are those at which the link asked to be called.
fn drain<Q: QueueDiscipline>(link: &mut Link<Q>) -> Vec<(u64, Packet)> {
    let flows = FlowTable::new();
    let mut out = Vec::new();
    while let Some(at) = link.poll_timeout() {
        while let Some(packet) = link.poll_delivery(at, &flows, &mut ()) {
            out.push((at.as_nanos(), packet));
        }
        assert!(
            link.poll_timeout().is_none_or(|next| next > at),
            "a drain leaves a later deadline"
        );
    }
    out
}

fn send<Q: QueueDiscipline>(link: &mut Link<Q>, at: u64, packets: impl IntoIterator<Item = Packet>) {
    let flows = FlowTable::new();
    for packet in packets {
        link.on_packet(Instant::from_nanos(at), packet, &flows, &mut ());
    }
}

#[test]
fn a_packet_arrives_after_serialisation_and_propagation() {
    let mut link = link(&LinkConfig::new(Rate(1_000_000), Duration::from_millis(10)));
    assert_eq!(link.poll_timeout(), None);
    send(&mut link, 5, [packet(0, 0, 1500), packet(0, 1, 500)]);
    let times: Vec<u64> = drain(&mut link).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [5 + 12_000_000 + 10_000_000, 5 + 16_000_000 + 10_000_000]);
    assert_eq!(link.poll_timeout(), None, "an idle link needs no deadline");
    assert_eq!(link.statistics().busy, Duration::from_millis(16));
}

#[test]
fn the_long_run_rate_is_exact() {
    // 1500 bytes at 7 Mb/s take 1714285.714... ns: after 7 packets exactly 12 ms have passed, and again and again.
    let mut link = link(&LinkConfig::new(Rate(7_000_000), Duration::ZERO));
    send(&mut link, 0, (0..7_000).map(|i| packet(0, i, 1500)));
    let arrivals = drain(&mut link);
    for (i, (at, _)) in arrivals.iter().enumerate() {
        assert_eq!(*at, (i as u64 + 1) * 12_000_000_000 / 7_000);
    }
    assert_eq!(arrivals.len(), 7_000);
}

#[test]
fn late_calls_lose_nothing() {
    let mut link = link(&LinkConfig::new(Rate(8_000_000), Duration::from_nanos(7)));
    send(&mut link, 0, (0..10).map(|i| packet(0, i, 1000)));
    // Nobody calls for 5 ms, in which five packets were sent.
    let flows = FlowTable::new();
    let now = Instant::from_nanos(5_000_007);
    let mut delivered = 0;
    while link.poll_delivery(now, &flows, &mut ()).is_some() {
        delivered += 1;
    }
    assert_eq!(delivered, 5);
    assert_eq!(link.poll_timeout(), Some(Instant::from_nanos(6_000_007)));
}
