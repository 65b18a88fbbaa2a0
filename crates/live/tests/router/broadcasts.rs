//! Packets for all hosts of a network.

use crate::configs::{queue, rings, routed};
use crate::row::{self, Row, Running, skips};
use crate::traffic::echo;
use fleetfoot_live::router::{Discard, Event, Snapshot};

/// RFC 1122 3.2.2, RFC 1812 4.3.2.7: no error about a packet for many; RFC 2644: such a packet is not forwarded.
#[test]
fn packets_for_all_hosts_of_a_network_are_discarded_and_nobody_is_told() {
    if skips() {
        return;
    }
    for ring in rings() {
        let row = Row::routed();
        let config = routed(queue("codel", None), queue("codel", None), None, ring);
        // A network of which only the interface knows.
        row.middle.ip("address add 10.0.5.2/24 dev b1");
        let running = Running::start(&row, config);
        echo(&row, "10.0.2.1".parse().expect("an address"));
        row.middle.ip("link set dev b1 mtu 1300");
        running.until(|_| {
            running
                .events()
                .iter()
                .any(|event| matches!(event, Event::Mtu { .. }))
        });
        let before = running.snapshot();
        let hardware = row.hardware("b0");
        let long = |destination| {
            let mut frame = row::frame(hardware, "10.0.1.1:1", destination, 64);
            frame.resize(14 + 1400, 0);
            frame[16..18].copy_from_slice(&1400_u16.to_be_bytes());
            row::sum(frame)
        };
        let frame = |destination, ttl| row::frame(hardware, "10.0.1.1:1", destination, ttl);
        let frames = [
            (frame("10.0.2.255:2", 64), Discard::MartianDestination),
            (frame("10.0.2.0:2", 64), Discard::MartianDestination),
            (frame("10.0.2.255:2", 1), Discard::TtlExpired),
            (long("10.0.2.255:2"), Discard::LongerThanMtu),
            (frame("10.0.5.255:2", 64), Discard::NoRoute),
        ];
        let wanted = frames.len() as u64;
        let sent = frames.clone().map(|(frame, _)| frame).to_vec();
        row.near.run(move || row::inject("a0", &sent));
        let discards = |snapshot: &Snapshot| snapshot.interfaces[0].input.discarded();
        let after = running.until(|snapshot| discards(snapshot) >= discards(&before) + wanted);
        for (_, why) in &frames {
            let of = |snapshot: &Snapshot| snapshot.interfaces[0].input.discards[*why as usize];
            let count = frames.iter().filter(|(_, other)| other == why).count() as u64;
            assert_eq!(of(&after) - of(&before), count, "{}", why.name());
        }
        assert_eq!(after.icmp_errors, before.icmp_errors, "{ring:?}");
        // The same about a packet for one host is reported.
        let one = vec![frame("10.0.2.1:2", 1)];
        row.near.run(move || row::inject("a0", &one));
        running.until(|snapshot| snapshot.icmp_errors == before.icmp_errors + 1);
        running.stop();
    }
}
