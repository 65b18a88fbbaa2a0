//! Spurious timeouts and fast retransmits: F-RTO (RFC 5682), Eifel (RFC 3522, RFC 4015), D-SACK (RFC 3708).
//!
//! Segments are numbered from 0; the window holds six of them, the RTO is 1 s.

use super::script::{Script, bare};
use crate::packet::Flags;
use crate::tcp::{CaState, Config, TimeoutRules};
use crate::time::Duration;

fn frto(sack: bool) -> Config {
    let mut config = bare();
    config.sack = sack;
    config.frto = true;
    config
}

/// Six segments are out, twenty were written, and the timer expired: segment 0 was sent again.
fn after_timeout(config: &Config, written: u32) -> Script {
    let mut script = Script::open(config, 6);
    assert_eq!(script.write(written), (0..6.min(written)).collect::<Vec<_>>());
    script.tsval = script.tsval.max(1);
    script.echo = script.tsval;
    assert_eq!(script.timer(), (1000, [0].to_vec()));
    assert_eq!(script.cwnd(), 1000);
    script
}

use alloc::vec::Vec;

#[test]
fn frto_finds_a_spurious_timeout_by_the_second_acknowledgment() {
    for sack in [false, true] {
        let mut script = after_timeout(&frto(sack), 20);
        // Step 2b: the delayed ACK of the original; two new segments instead of retransmissions.
        assert_eq!(script.at(1010).ack(1, &[]), [6, 7]);
        assert_eq!(script.connection.info(script.now).ca_state, CaState::Loss);
        // Step 3b: segment 1 was never sent again, so the timeout was spurious. 2 to 7 are out; the window was six
        // segments and this ACK adds one in slow start.
        assert_eq!(script.at(1020).ack(2, &[]), [8]);
        let info = script.connection.info(script.now);
        assert_eq!(info.ca_state, CaState::Open, "sack {sack}");
        assert_eq!((info.cwnd.get(), info.ssthresh), (7000, crate::units::Bytes::MAX));
        assert_eq!((info.stats.spurious_timeouts, info.stats.undos), (1, 1));
        assert_eq!(
            info.stats.retransmits, 1,
            "nothing but the segment that the timer sent"
        );
    }
}

#[test]
fn after_a_spurious_timeout_the_rest_of_the_late_flight_is_not_judged_lost() {
    // RFC 8985 6.2 step 2: RACK.rtt is that of the segment just delivered, before RACK_sent_after is asked. The flight of 0 ms is 1.5 s
    // late. With the 500 ms of the retransmission, which was sent later, segments 3 to 5 would be lost at 1510 ms.
    let mut config = frto(true);
    config.rack = true;
    let mut script = after_timeout(&config, 20);
    assert_eq!(script.at(1500).ack(1, &[]), [6, 7]);
    let sent = script.at(1510).ack(3, &[]);
    assert!(
        !sent.is_empty() && sent.iter().all(|segment| *segment >= 8),
        "{sent:?}"
    );
    let info = script.connection.info(script.now);
    assert_eq!((info.ca_state, info.stats.undos), (CaState::Open, 1));
    assert_eq!(info.stats.retransmits, 1);
}

#[test]
fn frto_returns_to_slow_start_on_a_duplicate_acknowledgment() {
    // Step 2a: the first ACK is a duplicate: conventional recovery, no new data.
    let mut script = after_timeout(&frto(false), 20);
    assert_eq!(script.at(1010).ack(0, &[]), []);
    assert_eq!(script.at(1100).ack(1, &[]), [1, 2]);
    // Step 3a: the second ACK is a duplicate: the window is three segments, two of which are the new ones.
    let mut script = after_timeout(&frto(false), 20);
    assert_eq!(script.at(1010).ack(1, &[]), [6, 7]);
    assert_eq!(script.at(1020).ack(1, &[]), [1]);
    assert_eq!(script.cwnd(), 3000);
    assert_eq!(
        script.at(1120).ack(2, &[]),
        [2],
        "retransmissions go on; ssthresh is three segments too"
    );
    assert_eq!(script.connection.stats().undos, 0);
    assert_eq!(script.ssthresh(), 3000);
}

/// RFC 5682 2.1 step 2a ends F-RTO with a duplicate before the answer to the retransmission, and so did Linux before 3.10
/// (`tcp_process_frto`). Since then it goes on (`tcp_process_loss`): one that was under way when the timer expired says nothing.
/// `conformance/frto` has the script, which Linux 6.18 passes.
#[test]
fn frto_without_sack_and_a_duplicate_before_the_answer() {
    let ended = [TimeoutRules::Rfc, TimeoutRules::Linux32].map(|rules| (rules, [1, 2]));
    for (rules, sent) in ended.into_iter().chain([(TimeoutRules::Linux, [6, 7])]) {
        let mut config = frto(false);
        config.timeout_rules = rules;
        let mut script = after_timeout(&config, 20);
        assert_eq!(script.ack(0, &[]), [], "{rules:?}");
        assert_eq!(script.ack(1, &[]), sent, "{rules:?}");
    }
}

#[test]
fn frto_without_new_data_is_conventional() {
    for sack in [false, true] {
        // Step 2b has nothing to send.
        let mut script = after_timeout(&frto(sack), 6);
        assert_eq!(script.at(1010).ack(1, &[]), [1, 2]);
        assert_eq!(script.at(1020).ack(2, &[]), [3, 4]);
        assert_eq!(script.connection.stats().undos, 0);
        // Nor does the peer's window allow any: it ends after segment 5. 47 * 128 = 6016.
        let mut script = Script::open(&frto(sack), 6);
        assert_eq!(script.write(20).len(), 6);
        script.timer();
        script.window = 40; // 5120 bytes from segment 1: up to segment 5
        assert_eq!(script.at(1010).ack(1, &[]), [1, 2]);
    }
}

#[test]
fn frto_accepts_an_acknowledgment_of_everything_as_a_recovery() {
    // Step 2a: the ACK reaches `recover`. No claim is made, slow start continues with new data.
    for sack in [false, true] {
        let mut script = after_timeout(&frto(sack), 20);
        assert_eq!(script.at(1100).ack(6, &[]), [6, 7]);
        assert_eq!((script.connection.stats().undos, script.ssthresh()), (0, 3000));
    }
}

#[test]
fn frto_with_sack_waits_for_the_acknowledgment_of_the_retransmission() {
    // Section 3.1 step 2: duplicates with SACK change the scoreboard only.
    let mut script = after_timeout(&frto(true), 20);
    assert_eq!(script.at(1005).ack(0, &[(1, 2)]), []);
    assert_eq!(script.at(1100).ack(2, &[]), [6, 7]);
    // Step 3b: a SACK of segment 3, which was sent once and before the timeout.
    script.at(1105).ack(2, &[(3, 4)]);
    assert_eq!(script.connection.stats().spurious_timeouts, 1);
    // Step 3a: a SACK of the new segment 6, beyond `recover`: the losses were real. The pipe holds segment 7, the window
    // two segments.
    let mut script = after_timeout(&frto(true), 20);
    assert_eq!(script.at(1100).ack(1, &[]), [6, 7]);
    assert_eq!(script.at(1200).ack(1, &[(6, 7)]), [1]);
    assert_eq!(script.connection.stats().undos, 0);
    // The same where it also covers data from before the timeout.
    let mut script = after_timeout(&frto(true), 20);
    assert_eq!(script.at(1100).ack(1, &[]), [6, 7]);
    script.at(1200).ack(1, &[(6, 7), (3, 4)]);
    assert_eq!(script.connection.stats().undos, 0);
    // An ACK that repeats what is known is not the second acknowledgment of step 3 if it brings nothing: it is a
    // duplicate without new data below `recover`, which step 3a takes as a loss.
    let mut script = after_timeout(&frto(true), 20);
    script.at(1100).ack(1, &[]);
    script.at(1110).ack(1, &[]);
    script.at(1120).ack(2, &[]);
    assert_eq!(script.connection.stats().undos, 0);
}

/// RFC 5682 2.1, 3.1: a timer that expires again starts over at step 1; the condition of step 1 permits it "if the
/// retransmission timer expires multiple times for the same segment" (3.2).
#[test]
fn frto_begins_anew_when_the_timer_expires_again_for_the_same_segment() {
    for sack in [false, true] {
        let mut script = after_timeout(&frto(sack), 20);
        assert_eq!(script.timer(), (3000, [0].to_vec()), "back-off");
        assert_eq!(script.at(3100).ack(1, &[]), [6, 7], "step 2b");
        script.at(3110).ack(2, &[]);
        assert_eq!(
            script.connection.stats().spurious_timeouts,
            1,
            "step 3b, sack {sack}"
        );
    }
}

/// RFC 5682 2.1 step 1: not while the recovery from an earlier timeout goes on.
#[test]
fn frto_does_not_run_within_the_recovery_from_a_timeout() {
    for sack in [false, true] {
        // Without new data the first timeout is repaired in slow start; segments 1 and 2 were sent again.
        let mut script = after_timeout(&frto(sack), 6);
        assert_eq!(script.at(1010).ack(1, &[]), [1, 2]);
        let (at, sent) = script.timer();
        assert_eq!(sent, [1]);
        script.write(20);
        let sent = script.at(at + 10).ack(2, &[]);
        assert!(!sent.contains(&6), "sack {sack}: retransmissions first: {sent:?}");
        assert_eq!(script.connection.stats().undos, 0);
    }
}

/// RFC 5682 3.1: not when a SACK-based fast recovery is under way.
#[test]
fn frto_with_sack_does_not_run_when_fast_recovery_times_out() {
    let mut config = frto(true);
    config.limited_transmit = false;
    let mut script = Script::open(&config, 10);
    assert_eq!(script.write(40).len(), 10);
    script.at(10);
    for end in 2..5 {
        script.ack(0, &[(1, end)]);
    }
    assert_eq!(script.connection.info(script.now).ca_state, CaState::Recovery);
    let (at, sent) = script.timer();
    assert_eq!(sent, [0]);
    let sent = script.at(at + 10).ack(4, &[]);
    assert!(
        sent.iter().all(|&number| number < 10),
        "retransmissions, no new data: {sent:?}"
    );
}

/// RFC 5682 2.1 step 2a: an ACK that does not cover all of the retransmission.
#[test]
fn frto_takes_an_acknowledgment_of_half_a_segment_as_no_proof() {
    let mut script = after_timeout(&frto(false), 20);
    let sent = script.at(1010).ack_bytes(500, &[]);
    assert!(sent.iter().all(|&number| number < 6), "no new data: {sent:?}");
}

#[test]
fn frto_off_retransmits_everything() {
    let mut script = after_timeout(&bare(), 20);
    assert_eq!(script.at(1010).ack(1, &[]), [1, 2]);
    assert_eq!(script.at(1020).ack(2, &[]), [3, 4]);
}

fn eifel() -> Config {
    let mut config = bare();
    config.timestamps = true;
    config.undo = true;
    config
}

#[test]
fn an_echo_from_before_the_timeout_shows_that_it_was_spurious() {
    let mut script = after_timeout(&eifel(), 20);
    // The ACK of the original arrives after 1100 ms: its echo is older than the retransmission (RFC 3522 3.2). The window
    // comes back and 1 to 5 stay out: five of 6 + 1.
    assert_eq!(script.at(1100).ack(1, &[]), [6, 7]);
    let info = script.connection.info(script.now);
    assert_eq!((info.ca_state, info.cwnd.get()), (CaState::Open, 7000));
    assert_eq!((info.stats.spurious_timeouts, info.stats.retransmits), (1, 1));
    // RFC 4015 step 11: SRTT is the sample, RTTVAR half of it: RTO 1100 + 4 * 550.
    assert_eq!(info.srtt, Some(Duration::from_millis(1100)));
    assert_eq!(info.rttvar, Duration::from_millis(550));
    assert_eq!(info.rto, Duration::from_millis(3300));
}

#[test]
fn an_echo_of_the_retransmission_proves_nothing() {
    let mut script = after_timeout(&eifel(), 20);
    script.echo = script.tsval;
    assert_eq!(script.at(1100).ack(1, &[]), [1, 2]);
    assert_eq!(script.connection.stats().undos, 0);
}

#[test]
fn eifel_takes_back_a_fast_retransmit_after_reordering() {
    for undo in [true, false] {
        let mut config = eifel();
        config.undo = undo;
        config.limited_transmit = false;
        let mut script = Script::open(&config, 10);
        assert_eq!(script.write(40).len(), 10);
        script.echo = script.tsval;
        script.at(100);
        assert_eq!(script.ack(0, &[(1, 2)]), []);
        assert_eq!(script.ack(0, &[(1, 3)]), []);
        assert_eq!(script.ack(0, &[(1, 4)]), [0]);
        assert_eq!(
            (script.ssthresh(), script.connection.stats().recoveries),
            (5000, 1)
        );
        // Segment 0 was only late.
        script.at(110).ack(4, &[]);
        let info = script.connection.info(script.now);
        assert_eq!(info.stats.undos, u32::from(undo));
        assert_eq!(info.ssthresh.get() == u64::MAX, undo);
        assert_eq!(info.stats.spurious_timeouts, 0);
    }
}

#[test]
fn dsacks_of_every_retransmission_undo_the_reduction() {
    let mut config = bare();
    config.undo = true;
    // One retransmission, one D-SACK.
    let mut script = Script::open(&config, 10);
    script.write(10);
    script.at(100);
    for last in 2..=4 {
        script.ack(0, &[(1, last)]);
    }
    assert_eq!(script.connection.stats().retransmits, 1);
    script.at(110).ack(5, &[]);
    assert_eq!(
        script.connection.stats().undos,
        0,
        "without timestamps nothing is known yet"
    );
    script.at(200).ack(10, &[(0, 1)]);
    assert_eq!(
        (script.connection.stats().dsacks, script.connection.stats().undos),
        (1, 1)
    );
    assert_eq!(script.ssthresh(), u64::MAX);
    assert_eq!(script.cwnd(), 10_000);
    // Three retransmissions of which two were redundant: the loss was real (RFC 3708 2, last paragraph of the algorithm).
    let mut script = Script::open(&config, 10);
    script.write(10);
    script.at(100);
    script.ack(0, &[(2, 3)]);
    script.ack(0, &[(2, 4)]);
    assert_eq!(script.ack(0, &[(2, 5)]), [0]);
    assert_eq!(
        script.ack(0, &[(2, 9)]),
        [1, 9],
        "1 is lost too, and 9 is the rescue of RFC 6675"
    );
    script.at(200).ack(10, &[(0, 1)]);
    script.ack(10, &[(1, 2)]);
    assert_eq!(
        (script.connection.stats().dsacks, script.connection.stats().undos),
        (2, 0)
    );
    script.ack(10, &[(9, 10)]);
    assert_eq!(script.connection.stats().undos, 1, "and now the third");
}

/// A fast recovery that begins while a retransmission of the one before is under way: what that retransmission fills is no
/// sign of an original that came late (Linux: `tcp_retrans_stamp_cleanup`; RFC 3522 knows the oldest segment only).
#[test]
fn a_retransmission_of_the_last_recovery_proves_nothing_in_the_next() {
    for old in [false, true] {
        let mut config = eifel();
        config.limited_transmit = false;
        let mut script = Script::open(&config, 20);
        assert_eq!(script.write(60).len(), 20);
        script.echo = script.tsval;
        let original = script.tsval;
        for last in 2..=3 {
            assert_eq!(script.at(100).ack(0, &[(1, last)]), []);
        }
        assert_eq!(script.ack(0, &[(1, 4)]), [0]);
        assert_eq!(script.connection.stats().recoveries, 1);
        script.echo = script.tsval;
        // The window is ten segments; of 1 to 19 nothing is in flight any more.
        let new = script.at(150).ack(0, &[(1, 20)]);
        assert_eq!(new, (20..29).collect::<Vec<_>>());
        // 20 is lost, and is sent again in the same recovery, which lasts until 20 is reached.
        assert_eq!(script.at(200).ack(0, &[(21, 24), (1, 20)])[0], 20);
        let again = script.tsval;
        // 20 was sent after the reduction: it is another window's loss (RFC 5681 4.3), and its recovery begins at once, while its
        // retransmission is under way.
        script.at(210).ack(20, &[(21, 24)]);
        assert_eq!(script.connection.stats().recoveries, 2);
        // 24 is lost too.
        let sent = script.at(220).ack(20, &[(25, 28), (21, 24)]);
        assert!(sent.contains(&24), "{sent:?}");
        assert_eq!(script.connection.stats().recoveries, 2);
        assert!(script.tsval > again);
        // 20 arrives: the echo is that of its retransmission, and older than that of 24.
        script.echo = if old { original } else { again };
        script.at(300).ack(24, &[(25, 28)]);
        assert_eq!(
            script.connection.stats().undos,
            0,
            "24 was sent again and is under way"
        );
        // With an echo from before both recoveries what came in order was late all the time.
        script.at(320).ack(28, &[]);
        assert_eq!(script.connection.stats().undos, u32::from(old));
    }
}

/// The stamp of a recovery that is over does not count for a timeout long after it, also where a tail loss probe is under way.
#[test]
fn a_recovery_that_is_over_hides_no_spurious_timeout() {
    let mut config = eifel();
    config.limited_transmit = false;
    config.tail_loss_probe = crate::tcp::TailLossProbe::Rfc8985;
    let mut script = Script::open(&config, 10);
    assert_eq!(script.write(10).len(), 10);
    script.echo = script.tsval;
    script.at(100);
    for last in 2..=3 {
        script.ack(0, &[(1, last)]);
    }
    assert_eq!(script.ack(0, &[(1, 4)]), [0]);
    script.echo = script.tsval;
    script.at(200).ack(10, &[]);
    assert_eq!(script.connection.info(script.now).ca_state, CaState::Open);
    assert_eq!(script.at(5000).write(1), [10]);
    let original = script.tsval;
    let (_, probe) = script.timer();
    assert_eq!((probe, script.connection.stats().timeouts), ([10].to_vec(), 0));
    let (_, again) = script.timer();
    assert_eq!((again, script.connection.stats().timeouts), ([10].to_vec(), 1));
    script.echo = original;
    script.now += Duration::from_millis(10);
    script.ack(11, &[]);
    assert_eq!(script.connection.stats().undos, 1);
}

/// A report of a duplicate takes a timeout back when all is acknowledged and more waits for the peer's window.
#[test]
fn a_mistake_shows_when_nothing_is_out_and_more_waits() {
    let mut config = bare();
    config.undo = true;
    let mut script = Script::open(&config, 20);
    assert_eq!(script.write(30).len(), 20);
    assert_eq!(script.timer().1, [0]);
    script.window = 0;
    assert_eq!(script.ack(20, &[]), []);
    assert_eq!(script.ack(20, &[(0, 1)]), []);
    assert_eq!(script.connection.stats().undos, 1);
    script.window = 500;
    assert_eq!(script.ack(20, &[]).len(), 10);
}

/// Where a mark was echoed in the recovery, the reduction stays (RFC 4015 3.2 step 9) and answers the marks of that window; else an undo leaves nothing
/// answered, so the next mark is. `conformance/ecn` has the scripts, which Linux 6.18 passes.
#[test]
fn an_undo_leaves_the_answer_to_a_mark_and_the_next_is_answered() {
    for (flags, ssthresh, reductions) in [(Flags::ACK, u64::MAX, 1), (Flags::ACK.with(Flags::ECE), 5000, 0)] {
        let mut config = bare();
        config.undo = true;
        config.ecn = true.into();
        let mut script = Script::open(&config, 10);
        script.write(10);
        script.at(100);
        for last in 2..=4 {
            script.ack(0, &[(1, last)]);
        }
        assert_eq!(script.ssthresh(), 5000);
        script.at(110).ack_with(flags, 5000, &[]);
        script.at(200).ack(8, &[(0, 1)]);
        assert_eq!(script.connection.stats().undos, 1);
        assert_eq!(script.ssthresh(), ssthresh, "{flags:?}");
        script.at(210).ack_marked_quietly(9000);
        assert_eq!(
            script.connection.stats().window_reductions,
            reductions,
            "{flags:?}"
        );
    }
}
