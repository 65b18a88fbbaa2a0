//! The urgent pointer in both directions: RFC 9293 3.8.5, RFC 6093.

use super::pair::{ISS_A, ISS_B};
use super::script::{MSS, Script, bare};
use crate::packet::{Flags, Segment};
use crate::tcp::{Config, Event, Setting, UrgentPointer};
use crate::units::Bytes;
use alloc::vec::Vec;

/// Stream offset, length and urgent pointer of what leaves.
fn sent(script: &mut Script) -> Vec<(u32, u32, Option<u16>)> {
    script
        .drain()
        .iter()
        .map(|segment| {
            let urgent = segment.flags.contains(Flags::URG).then_some(segment.urgent);
            ((segment.seq - ISS_A.0).0.wrapping_sub(1), segment.payload, urgent)
        })
        .collect()
}

fn from_peer(seq: u32, payload: u32, urgent: u16) -> Segment {
    Segment {
        seq: ISS_B + 1 + seq,
        ack: ISS_A + 1,
        payload,
        window: 500,
        urgent,
        flags: Flags::ACK.with(Flags::URG),
        overhead: 40,
        ..Segment::default()
    }
}

/// RFC 9293: MUST-30, MUST-62
#[test]
fn the_pointer_names_the_octet_after_the_urgent_data() {
    for (pointer, less) in [(UrgentPointer::Following, 0), (UrgentPointer::Last, 1)] {
        let mut config = bare();
        config.path.urgent_pointer = pointer;
        let mut script = Script::open(&config, 10);
        script.write_bytes(1500);
        // Three urgent bytes at 1,500 to 1,502: the point is 1,503.
        script.connection.write_urgent(script.now, Bytes(3));
        assert_eq!(sent(&mut script), [(1500, 3, Some(3 - less))]);
        // What follows is not urgent.
        script.connection.write(script.now, Bytes(10), Default::default());
        assert_eq!(sent(&mut script), [(1503, 10, None)]);
        // A retransmission of what lies before says how far it is (RFC 9293 3.8.5).
        let at = script.connection.poll_timeout().expect("a timer runs");
        script.now = at;
        script.connection.on_timeout(at);
        assert_eq!(sent(&mut script), [(0, MSS, Some(1503 - less))]);
    }
}

/// RFC 9293: MUST-30
#[test]
fn urgent_data_does_not_wait_for_nagle_and_announces_itself_to_a_closed_window() {
    let mut config = bare();
    config.nagle = true;
    let mut script = Script::open(&config, 10);
    script.write_bytes(10);
    script.connection.write(script.now, Bytes(5), Default::default());
    assert!(sent(&mut script).is_empty(), "held by Nagle");
    script.connection.write_urgent(script.now, Bytes(1));
    assert_eq!(sent(&mut script), [(10, 6, Some(6))]);

    script.window = 0;
    script.ack_bytes(16, &[]);
    script.connection.write_urgent(script.now, Bytes(70_000));
    assert_eq!(sent(&mut script), [(16, 0, Some(0xffff))]); // farther than the field can say
}

/// RFC 9293: MUST-32, MUST-33
#[test]
fn the_owner_learns_of_the_point_when_it_appears_and_when_it_moves() {
    let mut script = Script::open(&bare(), 10);
    script.events();
    let now = script.now;
    let feed = |script: &mut Script, segment: Segment| {
        script.connection.on_segment(now, &segment);
        script.drain();
        let events = script.events();
        (events.contains(&Event::Urgent), script.connection.urgent_mark())
    };
    // 100 bytes, the last urgent octet is number 99.
    assert_eq!(feed(&mut script, from_peer(0, 100, 100)), (true, Some(99)));
    // Repeated: no news. Farther, and beyond what has arrived: news (MUST-32).
    assert_eq!(feed(&mut script, from_peer(100, 10, 0)), (false, Some(99)));
    assert_eq!(feed(&mut script, from_peer(110, 10, 500)), (true, Some(609)));
    // Once everything up to it is read it is gone (MUST-33).
    let mut rest = from_peer(120, 490, 490);
    rest.flags = Flags::ACK;
    assert_eq!(feed(&mut script, rest), (false, Some(609)));
    assert_eq!(script.connection.read(now, Bytes(609)), Bytes(609));
    assert_eq!(script.connection.urgent_mark(), Some(609));
    script.connection.read(now, Bytes(1));
    assert_eq!(script.connection.urgent_mark(), None);
}

/// RFC 9293: MUST-66
#[test]
fn a_closed_window_does_not_hide_the_urgent_flag() {
    // RFC 9293 MUST-66: 1,000 bytes of buffer are full.
    let mut config: Config = bare();
    config.receive_buffer = Bytes(1000);
    config.window_scale = Some(0);
    let mut script = Script::open(&config, 10);
    let mut full = from_peer(0, 1000, 0);
    full.flags = Flags::ACK;
    script.connection.on_segment(script.now, &full);
    assert_eq!(script.drain()[0].window, 0);
    script.events();
    script.connection.on_segment(script.now, &from_peer(1000, 1, 1));
    assert_eq!(script.events(), [Event::Urgent]);
    assert_eq!(
        (script.connection.urgent_mark(), script.connection.received()),
        (Some(1000), 1000)
    );
}

/// RFC 9293: MUST-48, MUST-49, SHLD-21, SHLD-22
#[test]
fn type_of_service_and_time_to_live_go_on_every_segment_and_leave_ecn_alone() {
    let mut config = bare();
    config.ecn = true.into();
    let mut script = Script::open(&config, 10);
    script.connection.set(script.now, Setting::Tos(0xff));
    script.connection.set(script.now, Setting::Ttl(7));
    script.connection.write(script.now, Bytes(10), Default::default());
    let data = script.drain()[0];
    assert_eq!((data.tos, data.ttl), (0xfe, 7)); // ECT(0) of the sender, DSCP of the owner
    let mut segment = from_peer(0, 10, 0);
    segment.flags = Flags::ACK;
    script.connection.on_segment(script.now, &segment);
    let ack = script.drain()[0];
    assert_eq!((ack.tos, ack.ttl), (0xfc, 7));
}
