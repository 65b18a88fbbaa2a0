//! What the invariants, the fuzz targets and the soak found, one test for each.

use super::pair::{ISS_A, ISS_B};
use super::script::{MSS, Script, bare};
use crate::packet::{Flags, Segment};
use crate::tcp::{CaState, State};
use alloc::vec::Vec;

#[test]
fn a_mark_on_the_ack_of_everything_does_not_stop_the_sender() {
    // The reduction ended only with an ACK beyond it, and its window admitted nothing that could be acknowledged.
    let mut config = bare();
    config.ecn = true.into();
    config.prr = crate::tcp::Prr::Rfc9937;
    let mut script = Script::open(&config, 4);
    assert_eq!(script.write(4), [0, 1, 2, 3]);
    script.at(100).ack_marked_quietly(4 * MSS);
    assert_eq!(script.drain(), []);
    assert_eq!(script.connection.stats().window_reductions, 1);
    assert_eq!(script.write(8), [4, 5], "half of the window, at once");
}

/// RFC 8257 3.5: a loss is answered as by any TCP, also in the round trip of a mark. 60 out, the first ten acknowledged with a mark, which
/// halves (alpha is 1 at first), then a loss among the 50 others.
#[test]
fn a_loss_in_the_round_trip_of_a_mark_is_answered() {
    for (name, ssthresh) in [("dctcp", 25_000), ("prague", 25_000), ("reno", 30_000)] {
        let mut config = bare();
        config.congestion_control = name;
        config.ecn = true.into();
        config.prr = crate::tcp::Prr::Rfc9937;
        config.pacing = crate::tcp::Pacing::Off;
        let mut script = Script::open(&config, 60);
        let mut sent = script.write(60).len();
        while sent < 60 {
            sent += script.timer().1.len(); // Prague's pacing
        }
        let sent_after = script.now.since(super::script::T0).as_millis();
        script.at(sent_after + 100).ack_marked_quietly(10 * MSS);
        script.drain();
        assert_eq!(script.ssthresh(), 30_000, "{name}");
        script.at(sent_after + 101).ack(10, &[(11, 20)]);
        assert_eq!(script.ssthresh(), ssthresh, "{name}");
        assert_eq!(script.connection.info(script.now).ca_state, CaState::Recovery);
    }
}

/// A mark is answered by 20 of 40 segments. Segment 1 comes three places late in the same flight: that recovery was a mistake, and what is
/// taken back of it is not the answer to the mark.
#[test]
fn a_mistaken_recovery_after_a_mark_does_not_take_the_answer_to_the_mark_back() {
    let mut config = bare();
    config.ecn = true.into();
    config.undo = true;
    let mut script = Script::open(&config, 40);
    script.write(40);
    script.at(100).ack_marked_quietly(MSS);
    script.drain();
    assert_eq!(script.ssthresh(), 20_000);
    script.at(101).ack(1, &[(2, 40)]);
    assert_eq!(script.connection.info(script.now).ca_state, CaState::Recovery);
    script.at(102).ack(40, &[]);
    script.at(200).ack(40, &[(1, 2)]);
    assert_eq!(script.connection.stats().undos, 1);
    assert_eq!(script.ssthresh(), 20_000);
    assert!(script.cwnd() <= 20_000, "{}", script.cwnd());
    // Nothing new has left since the mark: its CWR is still due.
    script.connection.write(
        script.now,
        crate::units::Bytes(1000),
        crate::tcp::WriteFlags::default(),
    );
    assert!(script.drain()[0].flags.contains(Flags::CWR));
}

/// RFC 3168 6.1.2: CWR stands on the first new segment after a reduction for whatever reason, and on no other.
#[test]
fn a_reduction_is_announced_once_whatever_its_reason() {
    let announced = |first: &dyn Fn(&mut Script), marked: bool| {
        let mut config = bare();
        config.ecn = true.into();
        let mut script = Script::open(&config, 20);
        script.write(60);
        first(&mut script);
        let mut sent = script.drain();
        for ack in 11..if marked { 21 } else { 40 } {
            let now = script.now + crate::time::Duration::from_millis(1);
            script.now = now;
            match marked {
                true => script.ack_marked_quietly(ack * MSS),
                false => script.ack_bytes_quietly(ack * MSS, &[]),
            }
            sent.extend(script.drain());
        }
        let new = |segment: &&Segment| segment.payload > 0 && segment.seq.0.wrapping_sub(ISS_A.0) > 20 * MSS;
        let flags: Vec<bool> = sent
            .iter()
            .filter(new)
            .map(|segment| segment.flags.contains(Flags::CWR))
            .collect();
        assert!(flags.len() > 3, "{flags:?}");
        assert!(
            sent.iter()
                .all(|segment| new(&segment) || !segment.flags.contains(Flags::CWR))
        );
        (flags[0], flags[1..].contains(&true))
    };
    let mark = |script: &mut Script| script.at(100).ack_marked_quietly(10 * MSS);
    let loss = |script: &mut Script| script.at(100).ack_bytes_quietly(5 * MSS, &[(6 * MSS, 20 * MSS)]);
    let timeout = |script: &mut Script| {
        script.timer();
    };
    assert_eq!(
        announced(&mark, true),
        (true, false),
        "a mark, echoed until the peer has CWR"
    );
    assert_eq!(announced(&loss, false), (true, false), "a loss");
    assert_eq!(announced(&timeout, false), (true, false), "a timeout");
}

/// RFC 3168 6.1.6: the octet that probes a shut window is not ECN-capable.
#[test]
fn a_window_probe_is_not_ecn_capable() {
    let mut config = bare();
    config.ecn = true.into();
    let mut script = Script::open(&config, 4);
    script.window = 0;
    script.write(1);
    script.at(100).ack(1, &[]);
    script.write(2);
    let at = script.connection.poll_timeout().expect("it probes");
    script.now = at;
    script.connection.on_timeout(at);
    let probe = script.drain();
    assert_eq!((probe.len(), probe[0].payload), (1, 1));
    assert!(!probe[0].ecn_capable());
}

#[test]
fn data_beyond_a_fin_is_no_data() {
    // It stayed in the reassembly queue, next to RCV.NXT, once the FIN was in order.
    let mut script = Script::open(&bare(), 4);
    let mut segment = Segment {
        seq: ISS_B + 2,
        ack: ISS_A + 1,
        payload: 700,
        window: 500,
        flags: Flags::ACK,
        overhead: 40,
        ..Segment::default()
    };
    script.connection.on_segment(script.now, &segment);
    script.drain();
    segment.seq = ISS_B + 1;
    segment.payload = 0;
    segment.flags = Flags::ACK.with(Flags::FIN);
    script.connection.on_segment(script.now, &segment);
    let out = script.drain();
    assert_eq!(out.len(), 1);
    assert_eq!((out[0].ack, out[0].sack_blocks()), (ISS_B + 2, 0));
    assert_eq!(
        (script.connection.state(), script.connection.received()),
        (State::CloseWait, 0)
    );
}

#[test]
fn a_full_last_segment_with_a_fin_fits_a_window_of_one_segment() {
    // Counted in bytes it weighed one more than the window, and waited for ever.
    let mut script = Script::open(&bare(), 1);
    let taken = script.connection.write(
        script.now,
        crate::units::Bytes(u64::from(MSS)),
        crate::tcp::WriteFlags::default(),
    );
    assert_eq!(taken.get(), u64::from(MSS));
    script.connection.shutdown(script.now, crate::tcp::Half::Write);
    let out = script.drain();
    assert_eq!(out.len(), 1);
    assert!(out[0].payload == MSS && out[0].flags.contains(Flags::FIN));
    // And again after a timeout.
    assert_eq!(script.timer().1, [0]);
}

#[test]
fn two_ends_that_reject_each_others_acks_do_not_answer_for_ever() {
    // One had filled the window, so its ACKs lay at the right edge; the other's came from before its accepted probe.
    let mut script = Script::open(&bare(), 4);
    let mut segment = Segment {
        seq: ISS_B + 1 - 1,
        ack: ISS_A + 1,
        window: 500,
        flags: Flags::ACK,
        overhead: 40,
        ..Segment::default()
    };
    let mut answers = 0;
    for _ in 0..2000 {
        script.connection.on_segment(script.now, &segment);
        answers += script.drain().len();
    }
    assert!((1..=150).contains(&answers), "{answers} in one moment");
    // At the right edge an ACK counts.
    script.write(2);
    let edge = script.connection.config().receive_buffer.get().min(65_535 << 7) as u32;
    segment.seq = ISS_B + 1 + edge;
    segment.ack = ISS_A + 1 + 2 * MSS;
    script.connection.on_segment(script.now, &segment);
    assert_eq!(
        (script.connection.acked(), script.drain().len()),
        (u64::from(2 * MSS), 0)
    );
}

#[test]
fn what_is_sacked_and_sent_again_is_not_in_flight() {
    // After a timeout ns-2's agent goes through everything again, also what is SACKed meanwhile. That retransmission counted
    // in the pipe, until the record was reported again, and for good where SACKs were set aside.
    let pipes = [true, false].map(|predict| {
        let mut config = bare();
        config.sack1_recovery = true;
        config.limited_transmit = true;
        config.growth = crate::tcp::WindowGrowth::Always;
        let mut script = Script::open(&config, 8);
        script.connection.shared.predict = predict;
        assert_eq!(script.write(8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(script.timer().1, [0]);
        assert_eq!(script.ack(1, &[]), [1, 2]);
        let pipe = |script: &Script| script.connection.info(script.now).pipe.get();
        let before = pipe(&script);
        // One more may leave for a duplicate: the third in the row, which the peer has just reported.
        assert_eq!(script.ack(1, &[(3, 5)]), [3]);
        let reported = pipe(&script);
        // Half a segment opens no window, but SACKs are set aside, and reported again.
        assert_eq!(script.ack_bytes(MSS * 3 / 2, &[]), []);
        let forgotten = pipe(&script);
        assert_eq!(script.ack_bytes(MSS * 3 / 2, &[(3 * MSS, 5 * MSS)]), []);
        [before, reported, forgotten, pipe(&script)]
    });
    // Two went again. The two that are reported are lost no more, and count while the SACKs are forgotten.
    assert_eq!(
        pipes,
        [[2000, 2000, 3500, 1500]; 2],
        "with header prediction and without"
    );
}

#[test]
fn an_empty_probe_before_the_first_octet_stands_on_the_syn() {
    // Its place in the stream was one before the beginning.
    let mut config = bare();
    config.zero_window_probe = crate::tcp::config::ZeroWindowProbe::Empty;
    let mut script = Script::open(&config, 4);
    script.window = 0;
    assert_eq!(script.ack(0, &[]), []);
    assert_eq!(script.write(2), []);
    let at = script.connection.poll_timeout().expect("the window may open");
    script.connection.on_timeout(at);
    let probe = script
        .connection
        .poll_transmit(at)
        .expect("a probe of the shut window");
    assert_eq!(
        (probe.segment.seq, probe.segment.payload, probe.start, probe.end),
        (ISS_A, 0, 0, 0)
    );
    script.now = at;
    script.window = 500;
    assert_eq!(script.ack(0, &[]), [0, 1]);
}
