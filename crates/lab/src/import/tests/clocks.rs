//! Clocks of hosts, as their timestamps show them.

use super::{Maker, Step, import, with_options};
use crate::import::link_layer::ACK;
use crate::import::summary::Summary;

/// Answers of `packets` segments, one each 10 ms, of which every tenth waits 20 ms in a queue, captured at their receiver; the clock of the server
/// counts `tick` milliseconds.
fn answers(connections: &[u32], tick: u32) -> Summary {
    let mut maker = Maker::new();
    let mut packets = Vec::new();
    for (number, segments) in connections.iter().enumerate() {
        let at = 1_000_000 * number as u64;
        maker.port += 1;
        let mut stamp = |step: Step, sent: u64, maker: &mut Maker| {
            let ticks = (sent as u32 / 1000 / tick).to_be_bytes();
            let options = [&[1, 1, 8, 10][..], &ticks, &[0, 0, 0, 0]].concat();
            packets.push((step.0, with_options(&maker.ip(step), &options)));
        };
        maker.shake(at, 20_000);
        stamp(Step(at + 20_000, true, ACK, 1, 1, 100), at + 20_000, &mut maker);
        for segment in 0..*segments {
            let sent = at + 30_000 + 10_000 * u64::from(segment);
            let late = if segment % 10 == 9 { 20_000 } else { 0 };
            let step = Step(sent + 10_000 + late, false, ACK, 1 + 1000 * segment, 101, 1000);
            stamp(step, sent, &mut maker);
        }
    }
    maker.packets.extend(packets);
    maker.packets.sort_by_key(|packet| packet.0);
    import(&maker.pcap()).1.expect("a capture")
}

/// What data waited by timestamps: of how many packets, and the longest (ms).
fn waits(summary: &Summary) -> Option<(u64, u64)> {
    summary.wait_s[1].map(|waits| (waits.n, (waits.max * 1e3) as u64))
}

/// Linux before 4.13 counts jiffies: 1000, 250 or 100 a second, as it was built.
#[test]
fn a_clock_that_does_not_count_milliseconds_shows_no_waits() {
    let connections = [40; 24];
    let known = waits(&answers(&connections, 1)).expect("waits");
    assert!(known.0 > 24 * 29 && (19..=20).contains(&known.1), "{known:?}");
    for tick in [4, 10] {
        let found = waits(&answers(&connections, tick));
        assert_eq!(found, None, "{tick} ms");
    }
}

/// What one connection shows of its host's clock is known of the next one.
#[test]
fn a_host_has_one_clock() {
    // Of connections of 60 ms each shows it for itself, from the third packet on.
    let alone = waits(&answers(&[6; 40], 1)).expect("waits");
    assert_eq!(alone.0, 4 * 40);
    let found = waits(&answers(&[vec![20], vec![6; 40]].concat(), 1)).expect("waits");
    assert_eq!(found.0, 20 - 2 + 6 * 40);
    // One of other ticks.
    let mut mixed = vec![60];
    mixed.extend([6; 40]);
    assert_eq!(waits(&answers(&mixed, 10)), None);
}
