//! Any frames through the marker: nothing panics, every frame leaves within the time that it may be held, changed by nothing but a mark
//! whose checksums are right, and is counted once.
//!
//! An input is a header of six bytes (layouts, times, length) and frames: two bytes of time, a byte that says how the frame is made, and its
//! bytes, or a few fields of one that is well formed but for one byte.

use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::superpacket::group::Declare;
use fleetfoot_core::superpacket::marker::Marking;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::wire;
use fleetfoot_live::{MarkRules, Passage, Sent, Way};
use std::convert::Infallible;
use std::net::SocketAddr;

/// One input of the fuzzer. What is too short to be one is nothing.
pub(crate) fn run(bytes: &[u8]) {
    let Some((&[layouts, t_buffer, hold, max, rules, mtu], mut rest)) = bytes.split_first_chunk::<6>() else {
        return;
    };
    let lies = [
        None,
        Some(Declare::Beyond(-9)),
        Some(Declare::Beyond(53)),
        Some(Declare::Always(63)),
    ][usize::from(rules >> 3 & 3)];
    let rules = MarkRules {
        marking: Marking {
            t_buffer: Duration::from_micros(1 + u64::from(t_buffer)),
            hold: Duration::from_micros(1 + u64::from(hold)),
            max: max.clamp(2, 63),
            by_write: rules & 1 != 0,
        },
        four: [
            Some(Layout::A),
            Some(Layout::LOCAL),
            Some(Layout::B { dscp: 63 }),
            None,
        ][usize::from(layouts & 3)],
        six: (layouts & 4 == 0).then_some(Layout::C),
        udp: rules & 2 != 0,
        ports: if rules & 4 == 0 {
            Vec::new()
        } else {
            vec![0..=255, 65_000..=65_535]
        },
        networks: Vec::new(),
        mtu: 40 + 8 * u32::from(mtu),
        seed: 7,
        lies: lies.map(|lie| (0..=u16::MAX, lie)).into_iter().collect(),
    };
    let hold = rules.marking.hold;
    let mut passage = Passage::marking(rules);
    let (mut now, mut came, mut left) = (Instant::ZERO, Vec::new(), Vec::new());
    while let Some((&[high, low, how], more)) = rest.split_first_chunk::<3>() {
        now += Duration::from_nanos(u64::from(u16::from_be_bytes([high, low])) * 16);
        let (frame, more) = made(how, more);
        rest = more;
        drain(&mut passage, now, &mut left);
        passage.on_frame(now, &frame);
        came.push(frame);
    }
    drain(&mut passage, now + hold, &mut left);
    assert!(passage.poll_timeout().is_none(), "nothing is held any more");
    assert_eq!(left.len(), came.len());
    let (marked, measured) = (passage.marked(), passage.measured());
    assert_eq!(marked.packets + marked.unmarked_packets(), came.len() as u64);
    assert_eq!(
        (measured.arrived, measured.delivered),
        (came.len() as u64, came.len() as u64)
    );
    assert!(marked.held.max() <= hold.as_nanos());
    let members: u64 = (0..)
        .zip(marked.groups)
        .map(|(length, count)| length * count)
        .sum();
    assert_eq!(members, marked.packets, "groups are whole");
    let (mut before, mut after): (Vec<_>, Vec<_>) = (
        came.iter().map(|frame| plain(frame)).collect(),
        left.iter().map(|frame| plain(frame)).collect(),
    );
    before.sort_unstable();
    after.sort_unstable();
    assert_eq!(before, after, "nothing but marks has changed");
}

/// Meets every deadline up to `until`.
fn drain(passage: &mut Passage, until: Instant, left: &mut Vec<Vec<u8>>) {
    let mut at = passage.poll_timeout().map_or(until, |at| at.min(until));
    loop {
        let Ok(()) = passage.poll_frames::<Infallible>(
            at,
            || at,
            |frames| {
                left.extend(frames.iter().map(|frame| frame.to_vec()));
                Ok(Sent::Taken(frames.len()))
            },
        );
        if at >= until {
            return;
        }
        let next = passage.poll_timeout().map_or(until, |at| at.min(until));
        assert!(next > at, "after a drain");
        at = next;
    }
}

/// A frame, and what follows it.
fn made(how: u8, rest: &[u8]) -> (Vec<u8>, &[u8]) {
    let (field, rest) = rest.split_at(rest.len().min(12));
    let byte = |at: usize| field.get(at).copied().unwrap_or_default();
    if how & 1 == 0 {
        // Anything, in a frame of IPv4, of IPv6 or of neither.
        let length = rest.len().min(usize::from(how));
        let (bytes, rest) = rest.split_at(length);
        let kind = [[0x08, 0x00], [0x86, 0xdd], [byte(0), byte(1)]][usize::from(how) % 3];
        return ([&[2; 12], &kind[..], field, bytes].concat(), rest);
    }
    let mut segment = Segment {
        seq: SeqNumber(u32::from(byte(0))),
        payload: u32::from(byte(1)) * 4,
        flags: Flags(u16::from(byte(2) & 0x3f)),
        tos: byte(3) & byte(4),
        ip_id: u16::from(byte(4)) << 8 | u16::from(byte(5)),
        ttl: 64,
        ..Segment::default()
    };
    if how & 2 != 0 {
        segment.flags = segment.flags.with(Flags::DF);
    }
    if how & 4 != 0 {
        segment.set_kind(Kind::Datagram);
    }
    let address = |host: u8| match how & 8 {
        0 => SocketAddr::from(([10, 0, 0, host], u16::from(byte(6) & 3))),
        _ => SocketAddr::from((
            [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host],
            u16::from(byte(6) & 3),
        )),
    };
    let mut frame = vec![2; 14 + 80 + 1100];
    frame[12..14].copy_from_slice(if how & 8 == 0 {
        &[0x08, 0x00]
    } else {
        &[0x86, 0xdd]
    });
    let length = wire::encode(
        &mut frame[14..],
        &segment,
        address(1),
        address(2 + (byte(7) & 1)),
        &[],
    )
    .unwrap_or(0);
    frame.truncate(14 + length);
    // One byte is another than it should be, or the frame ends early.
    let at = usize::from(byte(8));
    match how >> 5 {
        1 if at < frame.len() => frame[at] ^= byte(9),
        2 => frame.truncate(at),
        _ => {}
    }
    (frame, rest)
}

/// The frame without what a mark changes.
fn plain(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    match frame.get(12..14) {
        Some([0x08, 0x00]) if frame.len() >= 34 => {
            frame[15] = 0;
            frame[18..20].fill(0);
            frame[24..26].fill(0);
        }
        // Our option behind the fixed header.
        Some([0x86, 0xdd]) if frame.len() >= 62 && frame[20] == 0 && frame[55..58] == [0, 0x1e, 4] => {
            let length = u16::from_be_bytes([frame[18], frame[19]]).wrapping_sub(8);
            frame[18..20].copy_from_slice(&length.to_be_bytes());
            frame[20] = frame[54];
            frame.drain(54..62);
        }
        _ => {}
    }
    frame
}
