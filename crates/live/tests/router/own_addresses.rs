//! A router that routes stands beside the kernel of its machine: what is for that machine is the kernel's, everything else the router's.

use crate::configs::{queue, rings, routed};
use crate::row::{self, Place, Row, Running, has, skips};
use crate::traffic::{SIZE, echo, no_loss, transfer_between};
use fleetfoot_live::Format;
use fleetfoot_live::router::{Discard, Snapshot};
use std::time::Duration;

/// Pings `to` from a place until an answer comes, or none does.
pub(crate) fn ping_until(from: &Place, to: &str, answers: bool) {
    let until = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        let output = from.run(|| {
            std::process::Command::new("ping")
                .args(["-n", "-c", "1", "-W", "1", to])
                .output()
                .expect("ping is there")
        });
        if output.status.success() == answers {
            return;
        }
        assert!(std::time::Instant::now() < until, "ping {to}: {output:?}");
    }
}

#[test]
fn what_is_for_the_machine_of_a_router_is_answered_by_its_kernel() {
    if skips() || !has("ping") {
        return;
    }
    for ring in rings() {
        let row = Row::routed();
        let running = Running::start(
            &row,
            routed(queue("fq-codel", None), queue("codel", None), None, ring),
        );
        let sent_before = running.snapshot().interfaces[1].output.queued;
        // By the address of this side and by that of the other, and from both sides.
        let near = ["10.0.1.2", "fd00:1::2", "10.0.2.2", "fd00:2::2"];
        for (place, addresses) in [
            (&row.near, near),
            (&row.far, ["10.0.2.2", "fd00:2::2", "10.0.1.2", "fd00:1::2"]),
        ] {
            for to in addresses {
                ping_until(place, to, true);
            }
        }
        for to in near {
            transfer_between(&row.near, &row.middle, to.parse().expect("an address"));
        }
        let snapshot = running.snapshot();
        for at in &snapshot.interfaces {
            assert_eq!(at.input.discarded(), 0, "{ring:?}: {at:?}");
        }
        // Every packet of it: more than a thousand frames each way, for four transfers.
        assert!(
            snapshot.interfaces[0].input.kernel > 4000,
            "{ring:?}: {snapshot:?}"
        );
        assert!(snapshot.interfaces[0].input.bytes > 4 * SIZE as u64);
        assert_eq!(
            snapshot.interfaces[1].output.queued, sent_before,
            "{ring:?}: nothing of it was forwarded"
        );
        // Neighbours are found again, by everybody.
        for (place, name) in [
            (&row.near, "a0"),
            (&row.middle, "b0"),
            (&row.middle, "b1"),
            (&row.far, "c0"),
        ] {
            place.ip(&format!("neighbour flush dev {name}"));
        }
        for to in ["10.0.2.1", "fd00:2::1"] {
            echo(&row, to.parse().expect("an address"));
        }
        ping_until(&row.near, "fd00:1::2", true);
        running.stop();
    }
}

#[test]
fn what_is_forwarded_has_a_hop_less_and_is_otherwise_as_it_was() {
    if skips() {
        return;
    }
    for ring in rings() {
        let row = Row::routed();
        let running = Running::start(
            &row,
            routed(queue("drop-tail", None), queue("drop-tail", None), None, ring),
        );
        for to in ["10.0.2.1", "fd00:2::1"] {
            echo(&row, to.parse().expect("an address"));
        }
        let (hardware, out) = (row.hardware("b0"), row.hardware("b1"));
        let far = row.far.run(|| row::hardware_of("c0"));
        let sent = [
            row::frame(hardware, "10.0.1.1:1", "10.0.2.1:2", 9),
            row::frame(hardware, "[fd00:1::1]:1", "[fd00:2::1]:2", 9),
        ];
        let wanted: Vec<Vec<u8>> = sent
            .iter()
            .map(|frame| {
                let mut frame = frame.clone();
                frame[..6].copy_from_slice(&far);
                frame[6..12].copy_from_slice(&out);
                let four = frame[12..14] == [8, 0];
                frame[if four { 14 + 8 } else { 14 + 7 }] = 8;
                if four { row::sum(frame) } else { frame }
            })
            .collect();
        let last = wanted[1].clone();
        let inject = sent.to_vec();
        let got = row::captured(
            &row.far,
            "c0",
            move |frame| frame == last,
            || row.near.run(move || row::inject("a0", &inject)),
        );
        // Beside what the kernels of both ends say to each other.
        let got: Vec<Vec<u8>> = got.into_iter().filter(|frame| wanted.contains(frame)).collect();
        assert_eq!(got, wanted, "{ring:?}");
        no_loss(&running.stop());
    }
}

#[test]
fn addresses_that_come_and_go_are_followed() {
    if skips() || !has("ping") {
        return;
    }
    for ring in rings() {
        let row = Row::routed();
        let running = Running::start(
            &row,
            routed(queue("codel", None), queue("codel", None), None, ring),
        );
        // On an interface that is not the router's; no route leads there.
        for (to, prefix) in [("10.77.0.1", 32), ("2001:db8::77", 128)] {
            ping_until(&row.near, to, false);
            row.middle.ip(&format!("address add {to}/{prefix} dev lo"));
            ping_until(&row.near, to, true);
            let input = |snapshot: &Snapshot| snapshot.interfaces[0].input.clone();
            let before = input(&running.snapshot());
            ping_until(&row.near, to, true);
            // The answer may come before the router has read its own copy.
            let after = input(&running.until(|snapshot| input(snapshot).kernel > before.kernel));
            assert_eq!(before.discards, after.discards, "{ring:?}");
            row.middle.ip(&format!("address del {to}/{prefix} dev lo"));
            ping_until(&row.near, to, false);
            // The router has noticed, too: no route leads there.
            let no_route =
                |snapshot: &Snapshot| snapshot.interfaces[0].input.discards[Discard::NoRoute as usize];
            let before = no_route(&running.snapshot());
            ping_until(&row.near, to, false);
            running.until(|snapshot| no_route(snapshot) > before);
        }
        // Another Ethernet address.
        row.middle.ip("link set b0 address 02:00:00:00:77:01");
        running.events();
        row.near.ip("neighbour flush dev a0");
        for to in ["10.0.1.2", "fd00:1::2"] {
            ping_until(&row.near, to, true);
        }
        for to in ["10.0.2.1", "fd00:2::1"] {
            echo(&row, to.parse().expect("an address"));
        }
        let snapshot = running.stop();
        let late: u64 = snapshot
            .interfaces
            .iter()
            .map(|at| at.input.discards[Discard::OwnDestination as usize])
            .sum();
        // One ping at most came between an address and the router's notice of it.
        assert!(
            late <= 2 && (ring == Format::Xdp || late == 0),
            "{ring:?}: {snapshot:?}"
        );
    }
}
