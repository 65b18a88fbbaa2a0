//! What acknowledges a SYN-ACK: a segment of its own, or the first data (Linux `tcp_rcv_synsent_state_process`). Worked by hand.

use super::pair::{ISS_A, ISS_B};
use super::script::{T0, bare};
use crate::packet::{Flags, Segment};
use crate::tcp::{
    Config, Connection, Cookie, DelayedAck, FastOpenRequest, Half, Profile, Setting, WriteFlags,
};
use crate::time::Duration;
use crate::units::Bytes;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Stream offset, payload, and whether it has FIN.
type Line = (u32, u32, bool);

const ACK: Line = (0, 0, false);

fn config(lone: bool) -> Config {
    let mut config = bare();
    config.mtu = 1500;
    config.lone_handshake_ack = lone;
    config.lone_fin = lone;
    config
}

fn leaves(connection: &mut Connection) -> Vec<Line> {
    core::iter::from_fn(|| connection.poll_transmit(T0))
        .map(|transmit| transmit.segment)
        .map(|segment| {
            assert_eq!(segment.ack, ISS_B + 1);
            let seq = (segment.seq - ISS_A.0).0.wrapping_sub(1);
            (seq, segment.payload, segment.flags.contains(Flags::FIN))
        })
        .collect()
}

/// The SYN has left, and the peer acknowledges it and `data` bytes on it.
fn answered(connection: &mut Connection, data: u32) -> Vec<Line> {
    let syn = connection.poll_transmit(T0).expect("a SYN");
    assert!(syn.segment.flags.contains(Flags::SYN) && connection.poll_transmit(T0).is_none());
    connection.on_segment(
        T0,
        &Segment {
            seq: ISS_B,
            ack: ISS_A + 1 + data,
            window: 60_000,
            flags: Flags::SYN.with(Flags::ACK).with(Flags::MSS),
            options: [1460, 0, 0, 0, 0, 0],
            ..Segment::default()
        },
    );
    leaves(connection)
}

fn open(lone: bool, write: u64) -> Connection {
    let mut connection = Connection::connect(T0, &Arc::new(config(lone)), ISS_A);
    connection.write(T0, Bytes(write), WriteFlags::default());
    connection
}

#[test]
fn the_acknowledgment_leaves_before_data_that_is_ready() {
    let sent = answered(&mut open(true, 2000), 0);
    assert_eq!(sent, [ACK, (0, 1460, false), (1460, 540, false)]);
    let sent = answered(&mut open(false, 2000), 0);
    assert_eq!(sent, [(0, 1460, false), (1460, 540, false)]);
    for lone in [false, true] {
        assert_eq!(answered(&mut open(lone, 0), 0), [ACK]);
    }
}

#[test]
fn a_program_that_has_written_and_closed_sends_three_segments() {
    for (lone, expected) in [
        (true, &[ACK, (0, 100, false), (100, 0, true)][..]),
        (false, &[(0, 100, true)]),
    ] {
        let mut connection = open(lone, 100);
        connection.shutdown(T0, Half::Write);
        assert_eq!(answered(&mut connection, 0), expected);
    }
}

#[test]
fn a_writer_that_waits_or_an_end_without_quick_acknowledgments_saves_it() {
    let mut connection = open(true, 100);
    connection.expect_data(true);
    assert_eq!(answered(&mut connection, 0), [(0, 100, false)]);
    let mut linux = config(true);
    linux.delayed_ack = DelayedAck::LINUX;
    let mut connection = Connection::connect(T0, &Arc::new(linux), ISS_A);
    connection.set(T0, Setting::QuickAck(false));
    assert_eq!(answered(&mut connection, 0), []);
    let at = T0 + Duration::from_millis(200); // TCP_DELACK_MAX
    assert_eq!(connection.poll_timeout(), Some(at));
}

#[test]
fn data_of_the_syn_that_is_sent_again_carries_it() {
    let request = FastOpenRequest {
        option: Cookie::new(&[1, 2, 3, 4], false),
        mss: None,
    };
    let open = |write| {
        let mut connection = Connection::connect_fast_open(T0, &Arc::new(config(true)), ISS_A, request);
        connection.write(T0, Bytes(write), WriteFlags::default());
        connection
    };
    assert_eq!(answered(&mut open(400), 0), [(0, 400, false)]);
    // Where the peer took it, what was written besides follows the acknowledgment.
    assert_eq!(answered(&mut open(400), 400), [(400, 0, false)]);
    assert_eq!(
        answered(&mut open(1520), 1420),
        [(1420, 0, false), (1420, 100, false)]
    );
}

#[test]
fn only_profiles_of_linux_have_it() {
    for profile in Profile::ALL {
        let linux = matches!(profile, Profile::Linux | Profile::Linux2015 | Profile::Linux3_2);
        assert_eq!(Config::profile(profile).lone_handshake_ack, linux, "{profile:?}");
    }
}

/// A segment without timestamps echoes none, also where a fourth SACK block takes their place.
#[test]
fn a_handshake_that_ends_without_timestamps_gives_no_sample_of_them() {
    let mut config = Config::profile(Profile::Linux);
    config.mtu = 1500;
    let syn = Segment {
        seq: ISS_B,
        window: 60_000,
        flags: Flags::SYN
            .with(Flags::MSS)
            .with(Flags::TIMESTAMPS)
            .with(Flags::SACK_PERMITTED),
        options: [1460, 0, 0, 0, 0, 0],
        tsval: 5,
        ..Segment::default()
    };
    let mut connection = Connection::accept(T0, &Arc::new(config), ISS_A, &syn);
    assert!(connection.poll_transmit(T0).is_some());
    let late = connection.poll_timeout().expect("the SYN-ACK may be lost");
    connection.on_timeout(late);
    assert!(connection.poll_transmit(late).is_some());
    let mut ack = Segment {
        seq: ISS_B + 1,
        ack: ISS_A + 1,
        window: 500,
        flags: Flags::ACK,
        ..Segment::default()
    };
    for block in 0..4 {
        ack.push_sack_block(ISS_A + 100 + 20 * block, ISS_A + 110 + 20 * block);
    }
    let now = late + Duration::from_millis(100);
    connection.on_segment(now, &ack);
    assert_eq!(connection.state(), crate::tcp::State::Established);
    assert_eq!(connection.info(now).srtt, None);
}
