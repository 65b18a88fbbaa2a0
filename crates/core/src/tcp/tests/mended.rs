//! What the invariants, the fuzz targets and the soak found, one test for each.

use super::pair::{ISS_A, ISS_B};
use super::script::{MSS, Script, bare};
use crate::packet::{Flags, Segment};
use crate::tcp::State;

#[test]
fn a_mark_on_the_ack_of_everything_does_not_stop_the_sender() {
    // The reduction ended only with an ACK beyond it, and its window admitted nothing that could be acknowledged.
    let mut config = bare();
    config.ecn = true.into();
    config.prr = crate::tcp::Prr::Rfc9937;
    let mut script = Script::open(&config, 4);
    assert_eq!(script.write(4), [0, 1, 2, 3]);
    script.at(100);
    let marked = Segment {
        seq: ISS_B + 1,
        ack: ISS_A + 1 + 4 * MSS,
        window: 500,
        flags: Flags::ACK.with(Flags::ECE),
        overhead: 40,
        ..Segment::default()
    };
    script.connection.on_segment(script.now, &marked);
    assert_eq!(script.drain(), []);
    assert_eq!(script.connection.stats().window_reductions, 1);
    assert_eq!(script.write(8), [4, 5], "half of the window, at once");
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
