//! Where the FIN goes: with the last data, or alone (Linux `tcp_send_fin`). Worked by hand.

use super::script::{MSS, Script, bare};
use crate::packet::Flags;
use crate::tcp::{Config, Half, Profile, WindowUnit, WriteFlags};
use crate::units::Bytes;
use alloc::vec;
use alloc::vec::Vec;

/// Payload of a segment, and whether it has PSH and FIN.
type Line = (u32, bool, bool);

const FULL: Line = (MSS, false, false);
const LAST: Line = (MSS, true, false);
const LAST_AND_FIN: Line = (MSS, true, true);
const FIN: Line = (0, false, true);

fn lone() -> Config {
    let mut config = bare();
    config.lone_fin = true;
    config.window_unit = WindowUnit::Packets; // a FIN counts as a segment
    config
}

fn leaves(script: &mut Script) -> Vec<Line> {
    script
        .drain()
        .iter()
        .map(|segment| {
            let has = |flag| segment.flags.contains(flag);
            (segment.payload, has(Flags::PSH), has(Flags::FIN))
        })
        .collect()
}

/// Writes and closes, as a program does in one go.
fn write_and_close(script: &mut Script, bytes: u32) -> Vec<Line> {
    let taken = script
        .connection
        .write(script.now, Bytes(u64::from(bytes)), WriteFlags::default());
    assert_eq!(taken, Bytes(u64::from(bytes)));
    script.connection.shutdown(script.now, Half::Write);
    leaves(script)
}

#[test]
fn what_the_windows_hold_leaves_before_the_fin() {
    let mut script = Script::open(&lone(), 10);
    assert_eq!(write_and_close(&mut script, 3 * MSS), [FULL, FULL, LAST, FIN]);
    assert_eq!(write_and_close_small(&lone()), [(100, true, false), FIN]);
}

fn write_and_close_small(config: &Config) -> Vec<Line> {
    write_and_close(&mut Script::open(config, 10), 100)
}

#[test]
fn elsewhere_it_goes_along() {
    let mut script = Script::open(&bare(), 10);
    assert_eq!(write_and_close(&mut script, 3 * MSS), [FULL, FULL, LAST_AND_FIN]);
    assert_eq!(write_and_close_small(&bare()), [(100, true, true)]);
}

#[test]
fn data_that_waits_for_a_window_takes_it_along() {
    // The congestion window holds two of three segments.
    let mut script = Script::open(&lone(), 2);
    assert_eq!(write_and_close(&mut script, 3 * MSS), [FULL, FULL]);
    script.at(100).ack_bytes_quietly(2 * MSS, &[]);
    assert_eq!(leaves(&mut script), [LAST_AND_FIN]);
    // The peer's does.
    let mut script = Script::open(&lone(), 10);
    script.window = (2 * MSS / 128 + 1) as u16;
    assert_eq!(script.write(1), [0]);
    script.at(100).ack_bytes_quietly(MSS, &[]);
    assert_eq!(write_and_close(&mut script, 3 * MSS), [FULL, FULL]);
    script.at(200).ack_bytes_quietly(3 * MSS, &[]);
    assert_eq!(leaves(&mut script), [LAST_AND_FIN]);
}

#[test]
fn a_small_segment_that_nagle_or_cork_holds_takes_it_along_at_once() {
    let mut config = lone();
    config.nagle = true;
    config.nagle_minshall = true;
    let mut script = Script::open(&config, 10);
    assert!(!script.write_bytes(100).is_empty());
    assert_eq!(script.write_bytes(100), []);
    script.connection.shutdown(script.now, Half::Write);
    assert_eq!(leaves(&mut script), [(100, true, true)]);
    // What was written as a part of more has no PSH, with the FIN either.
    for (drained, more) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut script = Script::open(&lone(), 10);
        let flags = WriteFlags { more, corked: !more };
        script.connection.write(script.now, Bytes(1500), flags);
        let mut sent = vec![];
        if drained {
            sent.extend(leaves(&mut script));
            assert_eq!(sent, [FULL]);
        }
        script.connection.shutdown(script.now, Half::Write);
        sent.extend(leaves(&mut script));
        assert_eq!(sent, [FULL, (500, !more, true)]);
    }
}

#[test]
fn a_fin_waits_for_the_window_but_in_old_kernels() {
    let mut script = Script::open(&lone(), 2);
    assert_eq!(write_and_close(&mut script, 2 * MSS), [FULL, LAST]);
    script.at(100).ack_bytes_quietly(MSS, &[]);
    assert_eq!(leaves(&mut script), [FIN]);
    let mut config = lone();
    config.fin_beyond_window = true;
    let mut script = Script::open(&config, 2);
    assert_eq!(write_and_close(&mut script, 2 * MSS), [FULL, LAST, FIN]);
    // The last data goes beyond the window with the FIN, what is before it does not.
    let mut script = Script::open(&config, 2);
    assert_eq!(write_and_close(&mut script, 3 * MSS), [FULL, FULL, LAST_AND_FIN]);
    let mut script = Script::open(&config, 2);
    assert_eq!(write_and_close(&mut script, 4 * MSS), [FULL, FULL]);
}

#[test]
fn without_data_the_fin_is_alone_anyway() {
    for config in [bare(), lone()] {
        let mut script = Script::open(&config, 10);
        assert_eq!(script.write(1), [0]);
        script.connection.shutdown(script.now, Half::Write);
        assert_eq!(leaves(&mut script), [FIN]);
    }
}

#[test]
fn only_profiles_of_linux_have_it() {
    for profile in Profile::ALL {
        let config = Config::profile(profile);
        let linux = matches!(profile, Profile::Linux | Profile::Linux2015 | Profile::Linux3_2);
        assert_eq!(config.lone_fin, linux, "{profile:?}");
        assert_eq!(
            config.fin_beyond_window,
            linux && profile != Profile::Linux,
            "{profile:?}"
        );
    }
}

/// What `MSG_MORE` held back leaves with an acknowledgment that was overtaken, too (Linux `tcp_ack`, `old_ack`; `tcp_data_snd_check`).
#[test]
fn an_old_acknowledgment_sends_what_was_held_back() {
    let mut script = Script::open(&bare(), 10);
    assert_eq!(script.write(2), [0, 1]);
    script.at(100).ack(1, &[]);
    let flags = WriteFlags {
        more: true,
        corked: false,
    };
    script.connection.write(script.now, Bytes(300), flags);
    assert_eq!(leaves(&mut script), []);
    script.ack_bytes_quietly(0, &[]);
    assert_eq!(leaves(&mut script), [(300, false, false)]);
}
