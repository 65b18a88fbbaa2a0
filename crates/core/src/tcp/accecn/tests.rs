//! The tables of RFC 9768, its worked examples, and the counters against a model.

use super::handshake::{Agreed, LastAck, arrives_soundly, code_of, of_last_ack, of_syn, of_syn_ack};
use super::received::{Received, Room, Rule};
use super::reported::{Feedback, Marks, Reported, most};
use crate::packet::{AccEcnOption, Ecn, Flags, Segment};
use crate::seq::SeqNumber;
use crate::tcp::config::{Config, EcnFeedback, EcnOption, Profile};
use crate::tcp::receive::ack_policy::Acking;
use crate::time::{Duration, Instant};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

const CODEPOINTS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
const MSS: u32 = 1000;

/// RFC 9768: AE-2, AE-8, AE-9, AE-12
#[test]
fn a_server_agrees_as_table_2_says() {
    for ace in 0..8 {
        let accurate = match ace {
            0b000 => Agreed::No,
            0b011 => Agreed::Classic,
            _ => Agreed::Accurate,
        };
        assert_eq!(of_syn(ace, EcnFeedback::Accurate), accurate, "{ace:03b}");
        let classic = if ace & 3 == 3 { Agreed::Classic } else { Agreed::No };
        assert_eq!(of_syn(ace, EcnFeedback::Classic), classic, "{ace:03b}");
        assert_eq!(of_syn(ace, EcnFeedback::Off), Agreed::No, "{ace:03b}");
    }
}

/// RFC 9768: AE-4, AE-7, AE-10, AE-14
#[test]
fn a_client_takes_the_answer_as_table_2_says() {
    for (ace, agreed, arrived) in [
        (0b000, Agreed::No, Ecn::NotEct),
        (0b001, Agreed::Classic, Ecn::NotEct),
        (0b010, Agreed::Accurate, Ecn::NotEct),
        (0b011, Agreed::Accurate, Ecn::Ect1),
        (0b100, Agreed::Accurate, Ecn::Ect0),
        (0b101, Agreed::Accurate, Ecn::NotEct), // as it was sent
        (0b110, Agreed::Accurate, Ecn::Ce),
        (0b111, Agreed::No, Ecn::NotEct),
    ] {
        assert_eq!(of_syn_ack(ace, Ecn::NotEct), (agreed, arrived), "{ace:03b}");
    }
}

/// RFC 9768: AE-2, AE-35, AE-38
#[test]
fn what_came_is_reported_and_understood_as_tables_3_and_4_say() {
    let codes = CODEPOINTS.map(|ecn| code_of(ecn as u8));
    assert_eq!(codes, [0b010, 0b011, 0b100, 0b110]);
    for ecn in CODEPOINTS {
        assert_eq!(of_last_ack(code_of(ecn as u8)), LastAck::Arrived(ecn));
        assert_eq!(
            of_syn_ack(code_of(ecn as u8), Ecn::NotEct),
            (Agreed::Accurate, ecn)
        );
    }
    assert_eq!(of_last_ack(0), LastAck::Zero);
    for unused in [0b001, 0b101, 0b111] {
        assert_eq!(of_last_ack(unused), LastAck::Unused, "{unused:03b}");
    }
}

/// RFC 9768: AE-45
#[test]
fn changes_of_the_codepoint_that_no_sound_path_makes() {
    for sent in CODEPOINTS {
        for arrived in CODEPOINTS {
            let sound = match (sent, arrived) {
                (Ecn::NotEct, _) => arrived == Ecn::NotEct,
                (_, Ecn::NotEct) => false,
                (Ecn::Ce, _) => arrived == Ecn::Ce,
                (Ecn::Ect0 | Ecn::Ect1, _) => true,
            };
            assert_eq!(arrives_soundly(sent, arrived), sound, "{sent:?} {arrived:?}");
        }
    }
}

/// An acknowledgment with the bits that `marked` packets make, and perhaps an option with `bytes` of CE.
fn acknowledgment(marked: u32, bytes: Option<u32>) -> Segment {
    let mut segment = Segment {
        flags: Flags::ACK,
        ..Segment::default()
    };
    segment.set_ace(((5 + marked) & 7) as u8);
    if let Some(bytes) = bytes {
        let option = AccEcnOption::new(true, &[1, bytes, 1]);
        assert_eq!(segment.set_accecn(&option), Some(3));
    }
    segment
}

fn delivers(segments: u32) -> Feedback {
    Feedback {
        segments,
        bytes: u64::from(segments * MSS),
        mss: MSS,
        sent: 0,
    }
}

/// A sender whose acknowledgments usually deliver one segment.
fn reported() -> Reported {
    let mut reported = Reported::new();
    assert!(reported.take(&acknowledgment(0, None), &delivers(1)));
    reported
}

/// RFC 9768: AE-33, AE-52
#[test]
fn the_three_bits_wrap_and_the_count_goes_on() {
    let mut reported = reported();
    let mut marked = 0;
    for more in [1, 2, 7, 0, 3, 7, 7, 1] {
        marked += more;
        assert!(reported.take(&acknowledgment(marked, None), &delivers(7)));
        assert_eq!(reported.newly().packets, more);
        assert_eq!(reported.marked(), marked);
    }
    // More marks than segments: there were marked packets without data.
    assert!(reported.take(&acknowledgment(marked + 5, None), &delivers(1)));
    assert_eq!(reported.newly().packets, 5);
}

/// The examples of A.2.1: nine segments and two marks are two, ten segments and two are ten.
///
/// RFC 9768: AE-51, AE-67
#[test]
fn without_the_option_the_most_is_assumed_that_is_possible() {
    assert_eq!(most(9, 2), 2);
    assert_eq!(most(10, 2), 10);
    assert_eq!((most(7, 7), most(8, 0), most(3, 5)), (7, 8, 5));
    for (segments, packets) in [(9, 2), (10, 10)] {
        let mut reported = reported();
        reported.take(&acknowledgment(2, None), &delivers(segments));
        assert_eq!(reported.newly().packets, packets);
    }
    // Where such acknowledgments are usual, they show nothing (A.2.1: "well below 8").
    let mut reported = Reported::new();
    reported.take(&acknowledgment(2, None), &delivers(10));
    assert_eq!(reported.newly().packets, 2);
}

/// The examples of A.2.2 in segments of 1460 bytes, by the fewest marks that agree.
///
/// RFC 9768: AE-71
#[test]
fn with_the_option_the_fewest_marks_are_assumed_that_agree_with_it() {
    for (bits, segments, bytes, packets) in [
        (0, 8, 1460, 8), // no mark cannot be: there are marked bytes
        (2, 10, 1460, 2),
        (7, 15, 10_200, 7),
        (7, 15, 10_221, 15), // eight segments at least
        (0, 16, 16 * 1460, 16),
    ] {
        let mut reported = Reported::new();
        reported.on_option(&AccEcnOption::new(true, &[1, 0, 1]));
        let feedback = Feedback {
            segments,
            bytes: u64::from(segments) * 1460,
            mss: 1460,
            sent: 0,
        };
        assert!(reported.take(&acknowledgment(bits, Some(bytes)), &feedback));
        let marks = Marks {
            packets,
            bytes: u64::from(bytes),
        };
        assert_eq!(reported.newly(), marks);
        assert_eq!(reported.bytes(), [0, u64::from(bytes), 0]);
    }
}

/// The example of A.1: 33,554,433 bytes known, 1,461 on the wire, 1,460 more.
///
/// RFC 9768: AE-58
#[test]
fn the_24_bits_wrap_and_the_count_goes_on() {
    let mut reported = Reported::new();
    reported.on_option(&AccEcnOption::new(true, &[1, 0, 1]));
    let mut known: u64 = 0;
    while known < 33_554_433 {
        let step = (33_554_433 - known).min(4_000_000);
        known += step;
        reported.take(&acknowledgment(1, Some(known as u32)), &delivers(7));
        assert_eq!(reported.bytes()[1], known);
    }
    reported.take(&acknowledgment(2, Some(1461)), &delivers(7));
    assert_eq!(reported.bytes()[1], 33_555_893);
    // A field that goes back is left alone.
    reported.take(&acknowledgment(2, Some(1460)), &delivers(7));
    assert_eq!(reported.bytes()[1], 33_555_893);
}

#[test]
fn bytes_estimated_before_an_option_are_not_counted_again() {
    let mut reported = Reported::new();
    reported.on_option(&AccEcnOption::new(true, &[1, 0, 1]));
    reported.take(&acknowledgment(2, None), &delivers(3));
    assert_eq!(
        reported.newly(),
        Marks {
            packets: 2,
            bytes: 2000
        }
    );
    reported.take(&acknowledgment(3, Some(3000)), &delivers(3));
    assert_eq!(
        reported.newly(),
        Marks {
            packets: 1,
            bytes: 1000
        }
    );
}

/// RFC 9768: AE-46, AE-68, AE-69
#[test]
fn an_option_that_begins_with_zeros_is_not_looked_at() {
    for counters in [&[0, 0, 1][..], &[1, 0, 0], &[0]] {
        let mut reported = reported();
        reported.on_option(&AccEcnOption::new(true, counters));
        reported.take(&acknowledgment(2, Some(5000)), &delivers(10));
        assert_eq!(reported.newly().packets, 10, "as without the option");
        assert_eq!(reported.bytes(), [0; 3]);
    }
    // Any other start is taken, and an empty one says nothing yet.
    let mut reported = reported();
    reported.on_option(&AccEcnOption::new(true, &[]));
    reported.on_option(&AccEcnOption::new(true, &[77, 5, 99]));
    reported.take(&acknowledgment(2, Some(2000)), &delivers(10));
    assert_eq!(reported.newly().packets, 2);
}

#[test]
fn a_first_option_after_eight_megabytes_comes_too_late() {
    let mut reported = reported();
    let late = Feedback {
        sent: 1 << 23,
        ..delivers(10)
    };
    reported.on_option(&AccEcnOption::new(true, &[]));
    reported.take(&acknowledgment(0, None), &late);
    reported.on_option(&AccEcnOption::new(true, &[1, 2, 3]));
    reported.take(&acknowledgment(2, Some(2000)), &delivers(10));
    assert_eq!(reported.bytes(), [0; 3]);
}

/// RFC 9768: AE-72
#[test]
fn marked_bytes_without_a_marked_packet_contradict_each_other() {
    let mut reported = Reported::new();
    reported.on_option(&AccEcnOption::new(true, &[1, 0, 1]));
    let sound = [1000, 2000, 3000].map(|bytes| reported.take(&acknowledgment(0, Some(bytes)), &delivers(7)));
    assert_eq!(sound, [true, true, false]);
    // The mark may have come with an acknowledgment before.
    let mut reported = Reported::new();
    reported.on_option(&AccEcnOption::new(true, &[1, 0, 1]));
    for marked in 1..9 {
        assert!(reported.take(&acknowledgment(marked, None), &delivers(1)));
        assert!(reported.take(&acknowledgment(marked, Some(1000 * marked)), &delivers(1)));
    }
}

#[test]
fn the_peer_that_reports_zero_is_not_heeded() {
    let mut reported = reported();
    reported.ignore_marks();
    assert!(reported.take(&acknowledgment(3, None), &delivers(3)));
    assert_eq!((reported.newly(), reported.marked()), (Marks::default(), 0));
}

proptest! {
    /// Acknowledgments of at most seven packets: the count is exact.
    #[test]
    fn without_loss_over_a_round_of_the_bits_the_count_is_exact(
        steps in prop::collection::vec((0_u32..8, 0_u32..8, prop::bool::ANY), 1..200), option: bool,
    ) {
        let mut reported = Reported::new();
        if option {
            reported.on_option(&AccEcnOption::new(true, &[1, 0, 1]));
        }
        let mut marked = 0;
        for (segments, marks, with_option) in steps {
            marked += marks.min(segments);
            let bytes = (option && with_option).then_some(marked * MSS);
            prop_assert!(reported.take(&acknowledgment(marked, bytes), &delivers(segments)));
            prop_assert_eq!(reported.marked(), marked);
        }
    }

    /// Acknowledgments are lost, with or without the option: never more than was marked, and with full segments all of it at an option.
    #[test]
    fn with_the_option_the_count_is_never_too_high(
        steps in prop::collection::vec((1_u32..60, 0_u32..=100, prop::bool::ANY, 0_u32..4), 1..100), full: bool,
    ) {
        let mut reported = Reported::new();
        reported.on_option(&AccEcnOption::new(true, &[1, 0, 1]));
        let (mut marked, mut bytes, mut ahead) = (0, 0, 0);
        for (segments, share, with_option, bare) in steps {
            let size = if full { MSS } else { 300 + 7 * share };
            let marks = segments * share / 100;
            let bare = if full { 0 } else { bare }; // marked packets without data
            (marked, bytes, ahead) = (marked + marks + bare, bytes + marks * size, ahead + segments);
            let option = with_option.then_some(bytes);
            let feedback = Feedback { segments, bytes: u64::from(segments * size), mss: MSS, sent: 0 };
            reported.take(&acknowledgment(marked, option), &feedback);
            prop_assert!(reported.marked() <= marked, "{} of {marked}", reported.marked());
            if full && with_option {
                prop_assert_eq!(reported.marked(), marked);
                prop_assert_eq!(reported.bytes()[1], u64::from(bytes));
            }
        }
    }

    /// Without the option the count is never too low, as long as long acknowledgments are rare.
    #[test]
    fn without_the_option_the_count_is_never_too_low(
        steps in prop::collection::vec((0_u32..40, 0_u32..=100), 1..40),
    ) {
        let mut reported = Reported::new();
        let mut marked = 0;
        for (segments, share) in steps {
            for _ in 0..200 {
                reported.take(&acknowledgment(reported.marked(), None), &delivers(1));
            }
            let before = reported.marked();
            let marks = segments * share / 100;
            marked += marks;
            reported.take(&acknowledgment(before + marks, None), &delivers(segments));
            prop_assert!(reported.marked() - before >= marks);
        }
        prop_assert!(reported.marked() >= marked);
    }
}

fn arrival(ecn: Ecn, payload: u32, seq: u32) -> Segment {
    let mut segment = Segment {
        flags: Flags::ACK,
        seq: SeqNumber(seq),
        payload,
        ..Segment::default()
    };
    segment.set_ecn(ecn);
    segment
}

fn acking() -> Acking {
    Acking::new(&Config::profile(Profile::Rfc))
}

/// RFC 9768: AE-30, AE-31, AE-32, AE-57
#[test]
fn what_came_is_counted_by_packets_and_by_bytes() {
    let (mut received, mut acking) = (Received::new(Ecn::NotEct), acking());
    assert_eq!((received.on_departure(), received.wire()), (5, [1, 0, 1]));
    for (ecn, payload) in [
        (Ecn::Ect0, 1000),
        (Ecn::Ce, 500),
        (Ecn::Ce, 0),
        (Ecn::Ect1, 7),
        (Ecn::NotEct, 900),
    ] {
        received.on_arrival(&mut acking, &arrival(ecn, payload, 0), false, true);
    }
    assert_eq!((received.marked(), received.bytes()), (2, [7, 500, 1000]));
    assert_eq!((received.on_departure(), received.wire()), (7, [8, 500, 1001]));
    received.on_arrival(&mut acking, &arrival(Ecn::Ce, 1, 0), true, true);
    assert_eq!((received.on_departure(), received.bytes()[1]), (0, 501)); // a duplicate counts, and eight is zero
}

/// RFC 9768: AE-48, AE-49, AE-50
#[test]
fn changes_and_runs_of_marks_are_acknowledged_at_once() {
    let mut received = Received::new(Ecn::NotEct);
    let mut at_once = |ecn, payload, answers| {
        let mut acking = acking();
        received.on_arrival(&mut acking, &arrival(ecn, payload, 0), false, answers);
        if acking.now {
            received.on_departure();
        }
        acking.now
    };
    assert!(at_once(Ecn::Ect1, 1000, true)); // a change
    assert!(!at_once(Ecn::Ect1, 1000, true));
    assert!(at_once(Ecn::Ce, 1000, true)); // to CE
    assert!(!at_once(Ecn::Ce, 1000, true)); // the first since that acknowledgment
    assert!(at_once(Ecn::Ce, 1000, true)); // the second
    assert!(at_once(Ecn::Ect1, 1000, true));
    // Without data: the third mark, if the answer is no duplicate for the peer.
    let bare: [bool; 6] = core::array::from_fn(|_| at_once(Ecn::Ce, 0, true));
    assert_eq!(bare, [false, false, true, false, false, true]);
    let bare: [bool; 6] = core::array::from_fn(|_| at_once(Ecn::Ce, 0, false));
    assert_eq!(bare, [false; 6]);
    assert!(at_once(Ecn::Ect1, 1000, true));
    assert!(!at_once(Ecn::Ce, 0, true)); // a change without data
}

fn always() -> Rule {
    Rule {
        when: EcnOption::Always,
        beacon: 3,
        srtt: Duration::from_millis(30),
    }
}

const ROOM: Room = Room {
    header: 40,
    segment: u32::MAX,
    spare: true,
};

fn sends(received: &mut Received, now: Instant, rule: Rule, room: Room) -> Option<AccEcnOption> {
    let mut segment = arrival(Ecn::NotEct, 0, 0);
    received.put_option(now, rule, room, &mut segment);
    segment.accecn()
}

#[test]
fn the_option_is_sent_to_a_peer_that_sends_it() {
    let mut received = Received::new(Ecn::NotEct);
    assert_eq!(sends(&mut received, Instant::ZERO, always(), ROOM), None);
    received.peer_sends_option();
    let option = sends(&mut received, Instant::ZERO, always(), ROOM).expect("it is due");
    assert!(option.ect1_first());
    assert_eq!(option.counters(), [1, 0, 1]);
    let never = Rule {
        when: EcnOption::Never,
        ..always()
    };
    assert_eq!(sends(&mut received, Instant::ZERO, never, ROOM), None);
}

/// RFC 9768: AE-77, AE-78, AE-79
#[test]
fn the_option_when_it_is_useful() {
    let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
    let rule = Rule {
        when: EcnOption::WhenUseful,
        ..always()
    };
    let (mut received, mut acking) = (Received::new(Ecn::Ect0), acking());
    received.peer_sends_option();
    let sent = |received: &mut Received, ms_| sends(received, ms(ms_), rule, ROOM).is_some();
    assert!(sent(&mut received, 100)); // the last is long ago
    received.on_arrival(&mut acking, &arrival(Ecn::Ect0, 1000, 0), false, true);
    assert!(!sent(&mut received, 101)); // nothing has changed
    received.on_arrival(&mut acking, &arrival(Ecn::Ce, 1000, 0), false, true);
    assert!(sent(&mut received, 102)); // a mark: twice
    assert!(sent(&mut received, 103));
    assert!(!sent(&mut received, 104));
    assert!(!sent(&mut received, 112));
    assert!(sent(&mut received, 113)); // three times per round trip
    received.on_arrival(&mut acking, &arrival(Ecn::Ect0, 1 << 22, 0), false, true);
    assert!(sent(&mut received, 114) && sent(&mut received, 114)); // a change of the codepoint: twice
    for _ in 0..2 {
        received.on_arrival(&mut acking, &arrival(Ecn::Ect0, (1 << 21) - 1000, 0), false, true);
    }
    assert!(!sent(&mut received, 114));
    received.on_arrival(&mut acking, &arrival(Ecn::Ect0, 2000, 0), false, true);
    assert!(sent(&mut received, 114)); // 2^22 bytes
    assert!(!sent(&mut received, 114));
}

/// RFC 9768: AE-55, AE-73, AE-74, AE-75, AE-76
#[test]
fn the_option_has_all_fields_that_changed_or_is_left_out() {
    let case = |ecn: Option<Ecn>, header: u32, blocks: u32| {
        let (mut received, mut acking) = (Received::new(Ecn::NotEct), acking());
        received.peer_sends_option();
        if let Some(ecn) = ecn {
            received.on_arrival(&mut acking, &arrival(ecn, 1000, 0), false, true);
        }
        let mut segment = arrival(Ecn::NotEct, 0, 0);
        for block in 0..blocks {
            segment.push_sack_block(SeqNumber(10 * block + 5), SeqNumber(10 * block + 9));
        }
        segment.overhead = 100;
        received.put_option(Instant::ZERO, always(), Room { header, ..ROOM }, &mut segment);
        let fields = segment.accecn().map(|option| option.counters().len());
        (fields, segment.sack_blocks(), segment.overhead)
    };
    // Timestamps and so many SACK blocks leave so much room.
    assert_eq!(case(None, 28, 0), (Some(3), 0, 112));
    assert_eq!(case(Some(Ecn::Ect0), 16, 1), (Some(3), 1, 112));
    assert_eq!(case(Some(Ecn::Ect0), 8, 2), (None, 2, 100)); // it needs the third field
    assert_eq!(case(Some(Ecn::Ce), 8, 2), (Some(2), 2, 108));
    assert_eq!(case(Some(Ecn::Ect1), 8, 2), (Some(2), 2, 108));
    assert_eq!(case(Some(Ecn::Ce), 0, 3), (Some(2), 2, 100)); // in the place of the third block
    assert_eq!(case(Some(Ecn::Ect0), 0, 3), (None, 3, 100)); // never in that of the second
    assert_eq!(case(None, 0, 3), (None, 3, 100)); // and for nothing new in none
    // Without timestamps.
    assert_eq!(case(Some(Ecn::Ect0), 12, 3), (Some(3), 3, 112));
    assert_eq!(case(Some(Ecn::Ect0), 4, 4), (Some(3), 3, 104));
}

/// RFC 9768: AE-65
#[test]
fn an_acknowledgment_with_the_option_that_never_arrives_is_the_last_one() {
    let (mut received, mut acking) = (Received::new(Ecn::NotEct), acking());
    received.peer_sends_option();
    let mut again = |received: &mut Received, at: u32| {
        received.on_arrival(&mut acking, &arrival(Ecn::Ect0, 1000, at), true, true);
        let mut segment = arrival(Ecn::NotEct, 0, 0);
        segment.ack = SeqNumber(5000);
        segment.push_sack_block(SeqNumber(at), SeqNumber(at + 1000));
        received.put_option(Instant::ZERO, always(), ROOM, &mut segment);
        segment.accecn().is_some()
    };
    assert!(again(&mut received, 1000)); // a retransmission: the acknowledgment may have been late
    assert!(again(&mut received, 2000)); // another
    assert!(!again(&mut received, 2000)); // the same again, though a D-SACK and the option answered it
    assert!(received.is_blocked());
    assert!(!again(&mut received, 4000));
    let persistent = Rule {
        when: EcnOption::Persistent,
        ..always()
    };
    assert!(sends(&mut received, Instant::ZERO, persistent, ROOM).is_some());
}
