//! Loss detection and recovery by hand: RFC 6675, RFC 3042, RFC 5827, RFC 2018 8, RFC 6582, RFC 9937.

use super::script::{MSS, Script, bare};
use crate::packet::Flags;
use crate::tcp::{CaState, EarlyRetransmit, Prr, TimeoutRules, Timer, WindowUnit};
use alloc::vec::Vec;

/// Bytes judged lost.
fn lost(script: &Script) -> u64 {
    script
        .connection
        .sender
        .as_ref()
        .map_or(0, |sender| sender.board.marks.lost)
}

#[test]
fn lost_is_more_than_two_segments_of_sacked_bytes() {
    // RFC 6675 IsLost, second rule: more than (DupThresh - 1) * SMSS = 2000 bytes above. Segments of 1000, 1000, 1000, 1.
    let mut script = Script::open(&bare(), 10);
    for bytes in [1000, 1000, 1000, 1, 1000] {
        script.write_bytes(bytes);
    }
    assert_eq!(script.ack_bytes(0, &[(1000, 3000)]), [], "exactly 2000");
    assert_eq!(
        script.ack_bytes(0, &[(1000, 3001)]),
        [0],
        "2001, with two duplicates"
    );
    assert_eq!(script.connection.info(script.now).ca_state, CaState::Recovery);
}

#[test]
fn lost_is_three_discontiguous_runs() {
    // First rule: three runs above, however small. Ten segments of 100 bytes.
    let mut script = Script::open(&bare(), 10);
    for _ in 0..10 {
        script.write_bytes(100);
    }
    // One ACK with three blocks: a single duplicate, 300 bytes, but three runs. Only what is below the third is lost.
    // NextSeg then also takes 4 and 6 (rule 3) and 9 (rule 4), because ssthresh is 2000.
    assert_eq!(
        script.ack_bytes(0, &[(700, 800), (500, 600), (300, 400)]).len(),
        6
    );
    assert_eq!(lost(&script), 300, "0, 1 and 2");
    // Two runs and two duplicates are not enough; the third duplicate is (5 (4): DupAcks >= DupThresh).
    let mut script = Script::open(&bare(), 10);
    for _ in 0..10 {
        script.write_bytes(100);
    }
    assert_eq!(script.ack_bytes(0, &[(300, 400)]), []);
    assert_eq!(script.ack_bytes(0, &[(500, 600), (300, 400)]), []);
    assert_eq!(script.connection.stats().recoveries, 0);
    script.ack_bytes(0, &[(500, 700), (300, 400)]);
    assert_eq!((script.connection.stats().recoveries, lost(&script)), (1, 100));
}

#[test]
fn one_rescue_retransmission_per_recovery() {
    // Segments 0 and 5 of six are lost. 0 is repaired; 5 has nothing above it. NextSeg rule 4 sends it once: the window is
    // ssthresh = 3 segments, the pipe 5 and the retransmission of 0.
    let mut script = Script::open(&bare(), 6);
    assert_eq!(script.write(6).len(), 6);
    script.at(100);
    assert_eq!(script.ack(0, &[(1, 2)]), []);
    assert_eq!(script.ack(0, &[(1, 3)]), []);
    assert_eq!(script.ack(0, &[(1, 4)]), [0], "the pipe is full: 4, 5 and 0");
    assert_eq!(script.ack(0, &[(1, 5)]), [5], "rescue");
    assert_eq!(script.ack(0, &[(1, 5)]), [], "once");
    // Without the rescue the connection would wait for the timer: here the recovery ends.
    assert_eq!(script.at(200).ack(6, &[]), []);
    let info = script.connection.info(script.now);
    assert_eq!((info.ca_state, info.stats.timeouts), (CaState::Open, 0));
}

#[test]
fn a_rescue_does_not_move_highrxt() {
    // Rule 4: HighRxt must not be updated. Segments 0, 2 and 6 of seven are lost (window 12, so the pipe never stops it);
    // 2 is not IsLost but below the highest SACKed one: rule 3 takes it before rule 4 takes 6.
    let mut script = Script::open(&bare(), 12);
    assert_eq!(script.write(7).len(), 7);
    script.at(100);
    script.ack(0, &[(1, 2)]);
    script.ack(0, &[(3, 4), (1, 2)]);
    // Runs {1}, {3, 4}: 0 is lost (three segments above), 2 is not (two). The pipe is 2, 5, 6 and 0: four, over
    // ssthresh = 3.
    assert_eq!(script.ack(0, &[(3, 5), (1, 2)]), [0]);
    // 5 too: 2 has three above it now.
    assert_eq!(
        script.ack(0, &[(3, 6), (1, 2)]),
        [2],
        "lost by rule 1; pipe 6, 0, 2"
    );
    assert_eq!(script.ack(2, &[(3, 6)]), [6], "rescue: pipe 6, 2");
    assert_eq!(script.at(300).ack(7, &[]), []);
    assert_eq!(script.connection.stats().timeouts, 0);
}

#[test]
fn limited_transmit_sends_two_segments_before_recovery() {
    // RFC 3042: one new segment on each of the first two duplicates, whatever the window says. RFC 5681 3.2 step 2: they
    // are left out of FlightSize, so ssthresh is 10 / 2.
    for sack in [true, false] {
        for (on, expected) in [(true, [[10].as_slice(), &[11]]), (false, [&[], &[]])] {
            let mut config = bare();
            config.sack = sack;
            config.limited_transmit = on;
            let mut script = Script::open(&config, 10);
            assert_eq!(script.write(40).len(), 10);
            let block = |last| if sack { [(1, last)].to_vec() } else { Vec::new() };
            script.at(100);
            assert_eq!(script.ack(0, &block(2)), expected[0], "sack {sack}");
            assert_eq!(script.ack(0, &block(3)), expected[1], "sack {sack}");
            assert_eq!(script.cwnd(), 10_000, "the window does not change");
            assert_eq!(script.ack(0, &block(4)), [0]);
            assert_eq!(script.ssthresh(), 5000, "sack {sack}, limited transmit {on}");
        }
    }
}

#[test]
fn early_retransmit_counts_segments() {
    // RFC 5827 3.2 with `oseg` out, all written sent: SACKed segments (or duplicates) that start recovery.
    for sack in [true, false] {
        for (variant, oseg, needed) in [
            (EarlyRetransmit::Rfc5827, 2, Some(1)),
            (EarlyRetransmit::Rfc5827, 3, Some(2)),
            (EarlyRetransmit::Rfc5827, 4, Some(3)),
            (EarlyRetransmit::Rfc5827, 1, None),
            (EarlyRetransmit::Immediate, 3, Some(1)),
            (EarlyRetransmit::Immediate, 4, Some(3)),
            (EarlyRetransmit::Off, 3, None),
            (EarlyRetransmit::Off, 4, Some(3)),
        ] {
            let mut config = bare();
            config.sack = sack;
            config.early_retransmit = variant;
            let mut script = Script::open(&config, 10);
            script.write(oseg);
            script.at(100);
            let mut first = None;
            for count in 1..oseg {
                let block = [(1, 1 + count)];
                let sent = script.ack(0, if sack { &block } else { &[] });
                if first.is_none() && sent.first() == Some(&0) {
                    first = Some(count);
                }
            }
            assert_eq!(first, needed, "sack {sack}, {variant:?}, {oseg} out");
        }
    }
}

#[test]
fn early_retransmit_gives_way_to_new_data() {
    // RFC 5827 3: only if nothing new can be sent. Three out, window three, more waiting: limited transmit sends it.
    let mut config = bare();
    config.early_retransmit = EarlyRetransmit::Rfc5827;
    let mut script = Script::open(&config, 3);
    assert_eq!(script.write(10), [0, 1, 2]);
    assert_eq!(script.ack(0, &[(1, 2)]), [3]);
    assert_eq!(script.ack(0, &[(1, 3)]), [4]);
    assert_eq!(script.connection.stats().recoveries, 0);
    // The peer's window stops new data: then it acts. Three segments and no more: 24 * 128 = 3072.
    let mut script = Script::open(&config, 3);
    script.write(10);
    script.window = 24;
    assert_eq!(script.ack(0, &[(1, 2)]), []);
    assert_eq!(script.ack(0, &[(1, 3)]), [0]);
}

#[test]
fn delayed_early_retransmit_waits_a_quarter_of_the_rtt() {
    let mut config = bare();
    config.early_retransmit = EarlyRetransmit::Delayed;
    let mut script = Script::open(&config, 10);
    script.write(3);
    // The SACK's sample is 100 ms as SRTT is: 25 ms.
    assert_eq!(script.at(100).ack(0, &[(1, 2)]), []);
    assert_eq!(script.connection.timer(), Some(Timer::EarlyRetransmit));
    assert_eq!(script.timer(), (125, [0].to_vec()));
    assert_eq!(script.connection.stats().recoveries, 1);
    // Reordering that ends before that costs nothing.
    let mut script = Script::open(&config, 10);
    script.write(3);
    script.at(100).ack(0, &[(1, 2)]);
    script.at(110).ack(2, &[]);
    assert_eq!(script.connection.timer(), Some(Timer::Rto));
    assert_eq!(script.connection.stats().retransmits, 0);
}

/// Linux 3.x `tcp_pause_early_retransmit`: an ACK that echoes a mark delays nothing.
#[test]
fn delayed_early_retransmit_does_not_wait_after_a_mark() {
    for (flags, sent) in [
        (Flags::ACK, Vec::new()),
        (Flags::ACK.with(Flags::ECE), [0].to_vec()),
    ] {
        let mut config = bare();
        config.early_retransmit = EarlyRetransmit::Delayed;
        config.ecn = true.into();
        let mut script = Script::open(&config, 10);
        script.write(3);
        script.at(100).ack_with(flags, 0, &[(1000, 2000)]);
        assert_eq!(script.sent(), sent, "{flags:?}");
    }
}

/// 300 bytes of the first of two segments are acknowledged after 400 ms. RFC 6298 5.3 restarts the timer of a second for new data, Linux
/// for a segment that is acknowledged whole (`tcp_clean_rtx_queue`).
#[test]
fn an_acknowledgment_of_a_part_and_the_retransmission_timer() {
    for (rules, ack, at) in [
        (TimeoutRules::Rfc, 300, 1400),
        (TimeoutRules::Linux, 300, 1000),
        (TimeoutRules::Linux, 1000, 1400),
        (TimeoutRules::Linux, 1300, 1400),
    ] {
        let mut config = bare();
        config.timeout_rules = rules;
        let mut script = Script::open(&config, 10);
        script.write(2);
        script.at(400).ack_bytes(ack, &[]);
        let sender = script.connection.sender.as_ref().expect("it sends");
        assert!(sender.board.out > 0);
        assert_eq!(script.connection.timer(), Some(Timer::Rto));
        assert_eq!(script.timer().0, at, "{rules:?} {ack}");
    }
}

/// Of three segments two can have arrived. To Linux the third duplicate is none (`tcp_limit_reno_sacked`); to RFC 5681 3.2 three are three.
#[test]
fn without_sack_duplicates_stand_for_what_may_have_arrived() {
    for (rules, third) in [
        (TimeoutRules::Rfc, [0].to_vec()),
        (TimeoutRules::Linux, Vec::new()),
    ] {
        let mut config = bare();
        (config.sack, config.timeout_rules) = (false, rules);
        let mut script = Script::open(&config, 10);
        script.write(3);
        script.at(100);
        for _ in 0..2 {
            assert_eq!(script.ack(0, &[]), []);
        }
        assert_eq!(script.ack(0, &[]), third, "{rules:?}");
    }
}

/// RFC 9937 6: what the ACK that begins the episode delivers counts in RecoverFS, also the segment that a duplicate stands for. Twenty
/// out, the first lost: the same leaves with SACK as without, by every duplicate.
#[test]
fn the_share_of_a_recovery_without_sack_is_that_with_sack() {
    let sent = |sack| -> Vec<usize> {
        let mut config = bare();
        (config.sack, config.prr, config.limited_transmit) = (sack, Prr::Rfc9937, false);
        let mut script = Script::open(&config, 20);
        assert_eq!(script.write(40).len(), 20);
        script.at(100);
        let by_duplicate = |count: u32| {
            let block = [(1, 1 + count)];
            script.ack(0, if sack { &block } else { &[] }).len()
        };
        (1..=10).map(by_duplicate).collect()
    };
    // RecoverFS 18, ssthresh 10. The third sends the first again; then 10/18 of a segment for each that was delivered, as soon as a
    // whole one has come together: 2.22 by the fourth delivered, 3.33 by the sixth, 4.44 by the eighth.
    assert_eq!(sent(true), [0, 0, 1, 0, 0, 1, 0, 1, 0, 1]);
    assert_eq!(sent(false), sent(true));
}

#[test]
fn a_timeout_with_the_head_sacked_forgets_all_sacks() {
    // RFC 2018 8: the peer SACKed 1 to 3, acknowledged 0, and yet does not acknowledge 1: it reneged.
    let mut script = Script::open(&bare(), 4);
    assert_eq!(script.write(4).len(), 4);
    script.at(100).ack(0, &[(1, 3)]);
    script.at(110).ack(1, &[]);
    assert_eq!(
        script.connection.info(script.now).pipe.get(),
        u64::from(MSS),
        "only 3 counts"
    );
    let (at, sent) = script.timer();
    assert_eq!(
        (at, sent),
        (1110, [1].to_vec()),
        "SACKed, but the timer does not trust it"
    );
    // Everything is sent again in slow start.
    assert_eq!(script.at(1210).ack(2, &[]), [2, 3]);
    assert_eq!(script.at(1310).ack(4, &[]), []);
    // Not SACKed at the head: the marks stay and only the hole is repaired.
    let mut script = Script::open(&bare(), 4);
    script.write(4);
    script.at(100).ack(0, &[(1, 3)]);
    assert_eq!(script.timer().1, [0]);
    assert_eq!(script.at(1200).ack(3, &[]), [3]);
}

#[test]
fn new_data_shows_fack_that_a_retransmission_was_lost() {
    // Linux until 4.3, `tcp_mark_lost_retrans`: the highest SACKed offset lies beyond SND.NXT at the retransmission. Segment 0 of
    // ten is lost twice; 10 and 11 follow by limited transmit, then the window is 5 segments.
    for fack in [false, true] {
        let mut config = bare();
        config.fack = fack;
        let mut script = Script::open(&config, 10);
        assert_eq!(script.write(40).len(), 10);
        script.at(100);
        assert_eq!(script.ack(0, &[(1, 2)]), [10]);
        assert_eq!(script.ack(0, &[(1, 3)]), [11]);
        assert_eq!(script.ack(0, &[(1, 4)]), [0]);
        for upto in 5..=8 {
            assert_eq!(script.ack(0, &[(1, upto)]), []);
        }
        assert_eq!(script.ack(0, &[(1, 9)]), [12], "pipe 4: 9, 10, 11 and 0");
        assert_eq!(script.ack(0, &[(1, 10)]), [13]);
        // 10 and 11 left before the retransmission, if in the same moment: they show nothing.
        script.at(200);
        assert_eq!(script.ack(0, &[(1, 11)]), [14]);
        assert_eq!(script.ack(0, &[(1, 12)]), [15]);
        // 12 left after it.
        let expected: &[u32] = if fack { &[0, 16] } else { &[16] };
        assert_eq!(script.ack(0, &[(1, 13)]), expected, "FACK {fack}");
        // 13 to 15 left before the second retransmission, 16 after it.
        for upto in 14..=16 {
            assert_eq!(script.ack(0, &[(1, upto)]), [upto + 3], "FACK {fack}");
        }
        let expected: &[u32] = if fack { &[0, 20] } else { &[20] };
        assert_eq!(script.at(300).ack(0, &[(1, 17)]), expected, "FACK {fack}");
        assert_eq!(script.at(400).ack(21, &[]), [21, 22, 23, 24, 25]);
        let stats = script.connection.stats();
        assert_eq!((stats.recoveries, stats.timeouts), (1, 0));
    }
}

#[test]
fn what_left_before_a_retransmission_costs_fack_no_look_at_it() {
    // Segments 0 and 40 of 60 are lost and sent again, as is the last, for the peer's window has no room (RFC 6675 NextSeg 4). Up to
    // segment 59 the SACKs show nothing of them.
    let mut config = bare();
    config.fack = true;
    let mut script = Script::open(&config, 60);
    assert_eq!(script.write(120).len(), 60);
    script.at(100).ack(0, &[(1, 40)]);
    script.ack(0, &[(41, 45), (1, 40)]);
    assert_eq!(script.connection.stats().retransmits, 3);
    for upto in 46..=60 {
        let before = script.connection.work();
        script.ack(0, &[(41, upto), (1, 40)]);
        let looks = script.connection.work() - before;
        assert!(
            looks < 30,
            "{looks} looks for segment {upto}: from 0 to 40 there are 41"
        );
    }
    assert_eq!(script.connection.stats().retransmits, 3);
}

#[test]
fn newreno_repairs_one_hole_per_partial_acknowledgment() {
    // RFC 6582 3.2 without SACK. Segments 0 and 3 of ten are lost; 10 and 11 follow by limited transmit.
    let mut config = bare();
    config.sack = false;
    let mut script = Script::open(&config, 10);
    assert_eq!(script.write(40).len(), 10);
    script.at(100);
    assert_eq!(script.ack(0, &[]), [10]);
    assert_eq!(script.ack(0, &[]), [11]);
    assert_eq!(script.ack(0, &[]), [0]);
    assert_eq!(script.ssthresh(), 5000);
    // Step 4: each further duplicate inflates the window, 5 + n segments. 12 are out, so the eighth lets one leave.
    for _ in 4..=7 {
        assert_eq!(script.ack(0, &[]), []);
    }
    assert_eq!(script.ack(0, &[]), [12]);
    assert_eq!(script.ack(0, &[]), [13]);
    assert_eq!(script.ack(0, &[]), [14]);
    // Step 5, partial: segment 3 at once.
    assert_eq!(script.at(200).ack(3, &[]).first(), Some(&3));
    assert_eq!(script.connection.info(script.now).ca_state, CaState::Recovery);
    // Full: `recover` was 12; the window is ssthresh.
    script.at(300).ack(12, &[]);
    let info = script.connection.info(script.now);
    assert_eq!((info.ca_state, info.cwnd.get()), (CaState::Open, 5000));
    assert_eq!(
        (info.stats.recoveries, info.stats.retransmits, info.stats.timeouts),
        (1, 2, 0)
    );
}

#[test]
fn duplicates_of_what_a_timeout_repeated_start_no_fast_retransmit() {
    // RFC 6582 3.2 step 2: not before the cumulative ACK covers more than `recover`.
    let mut config = bare();
    config.sack = false;
    let mut script = Script::open(&config, 4);
    assert_eq!(script.write(40).len(), 4);
    assert_eq!(script.timer().1, [0]);
    assert_eq!(script.at(1100).ack(1, &[]), [1, 2]);
    for _ in 0..4 {
        script.ack(1, &[]);
    }
    assert_eq!(script.connection.stats().recoveries, 0);
    // The ACK equals `recover` (everything sent before the timeout): the duplicates may stem from needless
    // retransmissions.
    script.at(1200).ack(4, &[]);
    assert_eq!(script.connection.info(script.now).ca_state, CaState::Open);
    for _ in 0..4 {
        script.ack(4, &[]);
    }
    assert_eq!(script.connection.stats().recoveries, 0);
    // One more and it counts.
    script.at(1300).ack(5, &[]);
    for _ in 0..3 {
        script.ack(5, &[]);
    }
    assert_eq!(script.connection.stats().recoveries, 1);
}

/// Sends at each of the ACKs that SACK one more of `segments`, 20 being out and 0 to `lost` - 1 missing.
fn reduction(prr: Prr, unit: WindowUnit, lost: u32, upto: u32) -> (Vec<usize>, Script) {
    let mut config = bare();
    config.prr = prr;
    config.window_unit = unit;
    let mut script = Script::open(&config, 20);
    assert_eq!(script.write(60).len(), 20);
    script.at(100);
    let sent = (lost..upto)
        .map(|segment| script.ack(0, &[(lost, segment + 1)]).len())
        .collect();
    (sent, script)
}

#[test]
fn prr_halves_with_one_loss() {
    // RFC 9937's first example through a connection. Limited transmit sends 20 and 21; at the third duplicate RecoverFS is
    // 22 - 2 = 20, ssthresh 10, the pipe 22 - 3 - 1 = 18. In segments the share is rounded up: one leaves on every second
    // ACK from the fifth. In bytes 500 are left over at the fifth, so it is every second from the sixth. Either way the
    // pipe comes to ten (at ACK 19 and 18) and then one segment leaves per ACK.
    for (unit, expected) in [
        (WindowUnit::Packets, [1, 2, 3, 5, 7, 9, 11, 13, 15, 17, 20, 21]),
        (WindowUnit::Bytes, [1, 2, 3, 6, 8, 10, 12, 14, 16, 19, 20, 21]),
    ] {
        let (sent, mut script) = reduction(Prr::Rfc9937, unit, 1, 22);
        let at: Vec<_> = (1..)
            .zip(&sent)
            .filter(|(_, n)| **n > 0)
            .map(|(ack, _)| ack)
            .collect();
        assert_eq!(at, expected);
        assert!(sent.iter().all(|n| *n <= 1));
        assert_eq!(script.ssthresh(), 10_000);
        // The retransmission arrives: recovery ends with ssthresh in the window and in flight.
        script.at(200).ack(22, &[]);
        let info = script.connection.info(script.now);
        assert_eq!(info.ca_state, CaState::Open);
        assert_eq!((info.cwnd.get(), info.pipe.get()), (10_000, 10_000));
    }
}

#[test]
fn prr_bounds_differ_when_most_is_lost() {
    // RFC 6937's second example: 15 of 20 lost. ACKs 15 and 16 send new data; at ACK 17 the pipe is 22 - 3 - 15 = 4 and
    // ssthresh 10. The conservative bound sends what was delivered, the slow-start bound one more.
    assert_eq!(
        reduction(Prr::Rfc6937Crb, WindowUnit::Bytes, 15, 20).0,
        [1, 1, 1, 1, 1]
    );
    assert_eq!(
        reduction(Prr::Rfc6937Ssrb, WindowUnit::Bytes, 15, 20).0,
        [1, 1, 2, 2, 2]
    );
    // RFC 9937: conservative while SND.UNA stands still, one more once an ACK is safe.
    let (sent, mut script) = reduction(Prr::Rfc9937, WindowUnit::Bytes, 15, 20);
    assert_eq!(sent, [1, 1, 1, 1, 1]);
    script.at(200);
    assert_eq!(script.ack(1, &[(15, 20)]), [3, 4], "safe");
    assert_eq!(script.ack(1, &[(15, 21)]), [5], "SND.UNA did not move");
    assert_eq!(script.ack(2, &[(15, 21)]), [6, 7]);
}

#[test]
fn prr_without_sack_counts_what_duplicates_stood_for_once() {
    // RFC 9937 4: a duplicate delivers one SMSS; a cumulative ACK delivers its advance less the duplicates before it.
    // 0 and 10 of 20 are lost, 20 and 21 go by limited transmit, ssthresh 10, RecoverFS 20: the third duplicate sends 0,
    // and of the other seventeen (segments 4 to 9, 11 to 21) every second one a new segment, the pipe falling from 19 to
    // 10 at the fifteenth.
    let mut config = bare();
    config.sack = false;
    config.prr = Prr::Rfc9937;
    let mut script = Script::open(&config, 20);
    assert_eq!(script.write(60).len(), 20);
    script.at(100);
    let sent: u32 = (0..20).map(|_| script.ack(0, &[]).len() as u32).sum();
    assert!(script.connection.info(script.now).pipe.get() <= 11_000);
    assert!(sent > 8);
    // The partial ACK delivers segment 0 and stands for nine duplicates that were counted: it sends segment 10 and at most
    // one more, not ten.
    let burst = script.at(200).ack(10, &[]);
    assert_eq!(burst.first(), Some(&10));
    assert!(burst.len() <= 2, "{burst:?}");
    assert!(script.connection.info(script.now).pipe.get() <= 11_000);
}

#[test]
fn the_loss_of_a_retransmission_lowers_the_window_once_more() {
    // RFC 5681 4.3. Segments 0 to 19 leave at 0 ms, 0 is lost: the window falls from 20 to 10 at 100 ms. New segments leave as the SACKs
    // of 4 to 19 come; 20 left after the retransmission, so its SACK at 200 ms shows that this was lost, too: 10 to 5.
    for rules in [TimeoutRules::Rfc, TimeoutRules::Linux] {
        let mut config = bare();
        config.rack = true;
        config.prr = Prr::Rfc9937;
        config.timeout_rules = rules;
        let mut script = Script::open(&config, 20);
        assert_eq!(script.write(40).len(), 20);
        assert_eq!(script.at(100).ack(0, &[(1, 4)])[0], 0, "the retransmission");
        let mut fresh = Vec::new();
        for end in 5..=20 {
            fresh.extend(script.at(101).ack(0, &[(1, end)]));
        }
        assert_eq!(fresh[0], 20);
        let threshold = |script: &Script| script.connection.info(script.now).ssthresh.get() / u64::from(MSS);
        assert_eq!(threshold(&script), 10);
        assert_eq!(script.at(201).ack(0, &[(1, 21)])[0], 0, "once more");
        let second = if rules == TimeoutRules::Rfc { 5 } else { 10 };
        assert_eq!(threshold(&script), second);
        // That one is not lost: a further loss of the same window does not reduce.
        let before = threshold(&script);
        script.at(202).ack(0, &[(1, 22)]);
        assert_eq!(threshold(&script), before);
    }
}
