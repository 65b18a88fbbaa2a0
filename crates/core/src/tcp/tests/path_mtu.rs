//! Path MTU discovery, worked by hand: RFC 1191, RFC 8201, RFC 4821.

use super::pair::ISS_A;
use super::script::{MSS, Script, bare};
use crate::packet::Flags;
use crate::tcp::{Config, Icmp, IcmpKind, IpVersion, MtuProbing, WindowUnit};
use alloc::vec::Vec;

fn too_big(script: &mut Script, offset: u32, mtu: u32) -> Vec<(u32, u32)> {
    let icmp = Icmp {
        kind: IcmpKind::TooBig { mtu },
        seq: ISS_A + offset,
    };
    script.connection.on_icmp(script.now, &icmp);
    pieces(script)
}

/// Stream offset and length of what leaves.
fn pieces(script: &mut Script) -> Vec<(u32, u32)> {
    script
        .drain()
        .iter()
        .filter(|segment| segment.payload > 0)
        .map(|segment| ((segment.seq - ISS_A.0).0.wrapping_sub(1), segment.payload))
        .collect()
}

fn plain() -> Config {
    let mut config = bare();
    config.mtu = MSS + 40;
    config.path.min_pmtu = 68;
    config
}

#[test]
fn segments_too_big_are_cut_and_sent_again_without_a_reduction() {
    for unit in [WindowUnit::Bytes, WindowUnit::Packets] {
        let mut config = plain();
        config.window_unit = unit;
        let mut script = Script::open(&config, 10);
        script.write_bytes(2500);
        let before = script.cwnd();
        // 640 bytes of packet hold 600 of payload: 0..1000 and 1000..2000 are cut, 2000..2500 fits.
        let again = too_big(&mut script, 1, 640);
        assert_eq!(again, [(0, 600), (600, 400), (1000, 600), (1600, 400)]);
        assert_eq!(
            (script.cwnd(), script.connection.info(script.now).mss),
            (before, 600)
        );
        assert_eq!(script.ack_bytes(2500, &[]), [0_u32; 0]);
        // New data comes in the new size; nothing was counted as congestion.
        script.write_bytes(1300);
        let info = script.connection.info(script.now);
        assert_eq!(
            (info.stats.recoveries, info.stats.timeouts, info.flight.get()),
            (0, 0, 1300)
        );
        assert!(script.cwnd() >= before);
    }
}

#[test]
fn a_message_about_nothing_in_flight_or_about_a_larger_size_changes_nothing() {
    let mut script = Script::open(&plain(), 10);
    script.write(2);
    assert!(too_big(&mut script, 5000, 640).is_empty());
    assert!(too_big(&mut script, 1, 9000).is_empty());
    assert_eq!(script.connection.info(script.now).mss, MSS);
    assert_eq!(script.connection.path_mtu(), MSS + 40);
}

#[test]
fn an_attackers_tiny_mtu_stops_at_the_floor() {
    let mut config = plain();
    config.path.min_pmtu = 552;
    let mut script = Script::open(&config, 10);
    script.write(1);
    assert_eq!(too_big(&mut script, 1, 68), [(0, 512), (512, 488)]);
    // Routers may fragment from now on.
    script.ack_bytes(1000, &[]);
    script
        .connection
        .write(script.now, crate::units::Bytes(100), Default::default());
    let sent = script.drain();
    assert!(!sent[0].flags.contains(Flags::DF));
    // IPv6 has a floor of its own, below which messages are ignored (RFC 8201 4).
    let mut config = plain();
    config.path.ip = IpVersion::V6;
    config.mtu = 1500;
    let mut script = Script::open(&config, 10);
    script.write(1);
    assert!(too_big(&mut script, 1, 1279).is_empty());
    assert_eq!(script.connection.path_mtu(), 1500);
}

#[test]
fn a_router_that_does_not_tell_is_guessed_by_plateaus() {
    let mut config = plain();
    config.mtu = 1500;
    let mut script = Script::open(&config, 10);
    script.write(1);
    too_big(&mut script, 1, 0);
    assert_eq!(script.connection.path_mtu(), 1492);
    too_big(&mut script, 1, 0);
    assert_eq!(script.connection.path_mtu(), 1006);
}

#[test]
fn after_ten_minutes_the_full_size_is_tried_again() {
    let mut script = Script::open(&plain(), 10);
    script.write(1);
    too_big(&mut script, 1, 640);
    script.ack_bytes(1000, &[]);
    script.at(599_000).write_bytes(600);
    assert_eq!(script.connection.info(script.now).mss, 600);
    script.ack_bytes(1600, &[]);
    script.at(601_000).write_bytes(1000);
    assert_eq!(script.connection.info(script.now).mss, MSS);
}

#[test]
fn a_probe_that_passes_raises_the_size_and_a_lost_one_costs_nothing() {
    // Search between 512 + 40 and 1000 + 40: the first probe is 796 bytes, 756 of payload.
    let mut config = plain();
    config.path.mtu_probing = MtuProbing::Always;
    config.path.base_mss = 512;
    config.window_unit = WindowUnit::Packets;
    let open = |config: &Config| {
        let mut script = Script::open(config, 20);
        script.connection.start_mtu_search(script.now);
        script
    };
    let mut script = open(&config);
    assert_eq!(script.connection.info(script.now).mss, 512);
    let written = crate::units::Bytes(756 + 4 * 512);
    script.connection.write(script.now, written, Default::default());
    assert_eq!(
        pieces(&mut script),
        [(0, 756), (756, 512), (1268, 512), (1780, 512), (2292, 512)]
    );
    script.ack_bytes(756 + 4 * 512, &[]);
    assert_eq!(script.connection.info(script.now).mss, 756);

    let mut script = open(&config);
    let before = script.cwnd();
    script.connection.write(script.now, written, Default::default());
    pieces(&mut script);
    let icmp_free = script.connection.icmp_ignored();
    // Everything but the probe arrives: it alone is sent again, in pieces, and the window stays.
    for right in [1268, 1780, 2292] {
        script.ack_bytes_quietly(0, &[(756, right)]);
    }
    assert_eq!(pieces(&mut script)[..2], [(0, 512), (512, 244)]);
    let info = script.connection.info(script.now);
    assert_eq!((info.stats.recoveries, info.mss, icmp_free), (0, 512, 0));
    assert!(script.cwnd() >= before);
}

#[test]
fn three_timeouts_shrink_the_segments_where_routers_are_silent() {
    let mut config = plain();
    config.path.mtu_probing = MtuProbing::BlackHole;
    config.path.base_mss = 512;
    let mut script = Script::open(&config, 10);
    script.write(1);
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let at = script.connection.poll_timeout().expect("a timer runs");
        script.now = at;
        script.connection.on_timeout(at);
        sizes.push(pieces(&mut script)[0].1);
    }
    assert_eq!(sizes, [1000, 1000, 512, 512]);
}
