//! The examples of docs/design/super-packets.md#layout-a, decoders on every header, and round trips.

use super::*;
use crate::packet::{Ecn, Flags, Segment};
use proptest::prelude::*;

const LAYOUTS: [Layout; 3] = [Layout::A, Layout::LOCAL, Layout::C];

fn segment(tos: u8, ip_id: u16) -> Segment {
    Segment {
        tos,
        ip_id,
        flags: Flags::ACK.with(Flags::DF),
        overhead: 40,
        ..Segment::default()
    }
}

#[test]
fn layout_a_writes_the_worked_bytes() {
    // docs/design/super-packets.md#layout-a
    for (mark, tos) in [
        (Mark::first(10, 0xabc), 0x8a),
        (Mark::follower(10, 0xabc), 0x0a),
        (Mark::follower(10, 0xabc).ending(), 0x4a),
        (Mark::first(63, 0xabc), 0xbf),
    ] {
        let mut packet = segment(0, 0);
        Layout::A.mark(&mut packet, mark).expect("a mark of layout A");
        assert_eq!((packet.tos, packet.ip_id), (tos, 0x0abc), "{mark:?}");
        assert_eq!(Layout::A.decode(&packet), mark);
        packet.ip_id |= 0x7000; // reserved bits are ignored
        assert_eq!(Layout::A.decode(&packet), mark);
    }
}

#[test]
fn ordinary_traffic_decodes_as_super_packets_under_layout_a() {
    let decode = |tos| Layout::A.decode(&segment(tos, 0));
    assert_eq!(decode(46 << 2), Mark::first(56, 0), "EF");
    assert_eq!(decode(34 << 2), Mark::first(8, 0), "AF41");
    assert_eq!(
        decode(Ecn::Ect0 as u8),
        Mark::follower(2, 0),
        "best effort, ECT(0)"
    );
    assert_eq!(decode(8 << 2), Mark::follower(32, 0), "CS1");
    for selector in 4..8_u8 {
        // `first` is CS4 and above; first and last are CS6.
        let tos = selector << 5 | 8;
        let mark = decode(tos);
        assert_eq!(mark.role, Role::First);
        assert_eq!(mark.last, selector >= 6);
    }
    assert_eq!(decode(0), Mark::REGULAR);
    assert_eq!(decode(Ecn::Ect1 as u8), Mark::REGULAR, "length 1");
    // An AQM that marks a first of length 10 makes it one of length 11.
    let mut packet = segment(0x8a, 7);
    assert!(packet.ecn_capable());
    packet.set_ecn(Ecn::Ce);
    assert_eq!(packet.tos, 0x8b);
    assert_eq!(Layout::A.decode(&packet), Mark::first(11, 7));
    // The low bits of the length are the ECN field.
    for length in 2..=63_u8 {
        let mut packet = segment(0, 0);
        Layout::A
            .mark(&mut packet, Mark::first(length, 0))
            .expect("a mark of layout A");
        let reads_as = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(length % 4)];
        assert_eq!(packet.ecn(), reads_as);
    }
}

#[test]
fn segmentation_offload_makes_forty_four_firsts_of_one_frame() {
    // docs/design/super-packets.md#offload: the type of service is copied, the identification counted up, so the identifier changes too.
    let mut frame = segment(0, 0);
    Layout::A
        .mark(&mut frame, Mark::first(44, 0x100))
        .expect("a mark of layout A");
    let ids: alloc::collections::BTreeSet<u16> = (0..44)
        .map(|at| {
            let mark = Layout::A.decode(&Segment {
                ip_id: frame.ip_id.wrapping_add(at),
                ..frame
            });
            assert_eq!((mark.role, mark.length), (Role::First, 44));
            mark.id
        })
        .collect();
    assert_eq!(ids.len(), 44);
}

#[test]
fn layout_b_needs_its_codepoint_an_atomic_packet_and_an_identification() {
    let marked = |tos, ip_id| Layout::LOCAL.decode(&segment(tos, ip_id));
    // first, not last, length 10, identifier 0x5c.
    let id = 0x8a5c;
    for ecn in 0..4 {
        assert_eq!(marked(3 << 2 | ecn, id), Mark::first(10, 0x5c));
        let mut packet = segment(46 << 2 | ecn, 0);
        Layout::LOCAL
            .mark(&mut packet, Mark::first(10, 0x5c))
            .expect("a mark of layout B");
        assert_eq!((packet.tos, packet.ip_id), (3 << 2 | ecn, id), "ECN is untouched");
    }
    assert_eq!(marked(0, id), Mark::REGULAR, "another codepoint");
    assert_eq!(marked(46 << 2, id), Mark::REGULAR, "EF");
    assert_eq!(
        marked(3 << 2, 0),
        Mark::REGULAR,
        "Linux sends 0 on atomic packets"
    );
    let mut fragmentable = segment(3 << 2, id);
    fragmentable.flags = Flags::ACK;
    assert_eq!(Layout::LOCAL.decode(&fragmentable), Mark::REGULAR);
    let other = Layout::B { dscp: 11 };
    assert_eq!(other.decode(&segment(11 << 2, id)), Mark::first(10, 0x5c));
    assert_eq!(other.decode(&segment(3 << 2, id)), Mark::REGULAR);
}

#[test]
fn what_a_layout_cannot_say_is_refused_and_changes_nothing() {
    let refused = |layout: Layout, packet: Segment, mark| {
        let mut copy = packet;
        let error = layout.mark(&mut copy, mark).expect_err("it cannot be said");
        assert_eq!(copy, packet);
        error
    };
    let atomic = segment(0, 0);
    let urgent = Segment {
        flags: atomic.flags.with(Flags::URG),
        ..atomic
    };
    let full = Segment {
        overhead: 248,
        ..atomic
    };
    let fragmentable = Segment {
        flags: Flags::ACK,
        ..atomic
    };
    for layout in LAYOUTS {
        for length in [0, 1] {
            assert_eq!(refused(layout, atomic, Mark::first(length, 1)), MarkError::Length);
        }
    }
    for layout in [Layout::A, Layout::LOCAL] {
        assert_eq!(refused(layout, atomic, Mark::first(64, 1)), MarkError::Length);
        let id = layout.max_id() + 1;
        assert_eq!(refused(layout, atomic, Mark::first(2, id)), MarkError::Identifier);
        assert_eq!(
            refused(layout, fragmentable, Mark::first(2, 1)),
            MarkError::Fragmentable
        );
    }
    assert_eq!(refused(Layout::C, urgent, Mark::first(2, 1)), MarkError::Urgent);
    assert_eq!(refused(Layout::C, full, Mark::first(2, 1)), MarkError::Room);
}

#[test]
fn every_header_decodes_to_a_mark_that_can_be_written() {
    // All of layout A and of layout B under its codepoint: 2^24 and 2^18 headers; C by property below.
    for tos in 0..=255_u8 {
        for ip_id in 0..=u16::MAX {
            let packet = segment(tos, ip_id);
            for layout in [Layout::A, Layout::LOCAL] {
                let mark = layout.decode(&packet);
                if mark.is_regular() {
                    assert_eq!(mark, Mark::REGULAR);
                    continue;
                }
                let mut again = segment(tos, 0);
                assert_eq!(layout.mark(&mut again, mark), Ok(()));
                assert_eq!(layout.decode(&again), mark);
            }
        }
    }
}

prop_compose! {
    fn any_mark(layout: Layout)(
        first: bool, last: bool, length in 2..=layout.max_length(), id in 0..=layout.max_id(),
    ) -> Mark {
        Mark { role: if first { Role::First } else { Role::Follower }, length, last, id }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_segment_is_some_mark(
        (tos, ip_id, urgent, flags, overhead) in any::<(u8, u16, u16, u16, u8)>(), dscp in 1_u8..64,
    ) {
        let packet = Segment { tos, ip_id, urgent, overhead, flags: Flags(flags), ..Segment::default() };
        for layout in [Layout::A, Layout::B { dscp }, Layout::C] {
            let mark = layout.decode(&packet);
            prop_assert!(mark == Mark::REGULAR || mark.length >= 2 && !mark.is_regular());
            prop_assert!(mark.length <= layout.max_length() && mark.id <= layout.max_id());
            let mut stripped = packet;
            layout.strip(&mut stripped);
            prop_assert_eq!(layout.decode(&stripped), Mark::REGULAR);
        }
    }

    #[test]
    fn what_is_marked_decodes_and_strips(
        (layout, mark) in prop::sample::select(&LAYOUTS[..]).prop_flat_map(|layout| (Just(layout), any_mark(layout))),
        (tos, overhead, second) in (any::<u8>(), 40_u8..200, any::<bool>()),
    ) {
        let plain = Segment { overhead, ..segment(tos, 0) };
        let mut packet = plain;
        prop_assert_eq!(layout.mark(&mut packet, mark), Ok(()));
        prop_assert_eq!(layout.decode(&packet), mark);
        prop_assert_eq!(packet.overhead, plain.overhead + layout.overhead());
        if second {
            // Marking again replaces.
            prop_assert_eq!(layout.mark(&mut packet, Mark { last: !mark.last, ..mark }), Ok(()));
            prop_assert_eq!(packet.overhead, plain.overhead + layout.overhead());
        }
        if layout != Layout::A {
            prop_assert_eq!(packet.ecn(), plain.ecn());
        }
        prop_assert_eq!(layout.mark(&mut packet, Mark::REGULAR), Ok(()));
        prop_assert_eq!(layout.decode(&packet), Mark::REGULAR);
        prop_assert_eq!((packet.overhead, packet.ip_id, packet.urgent), (plain.overhead, 0, 0));
        if layout == Layout::C {
            prop_assert_eq!(packet, plain);
        }
    }
}
