//! A storm of frames through the marker, in sessions of many, with rules drawn for each.
//!
//! What must hold is taken from docs/design/super-packets.md#marker and #outsiders: as many frames leave as came, no frame before it came nor later
//! than the longest time that it may be held; who cannot be a member leaves at once; order within a flow is kept, but for pure
//! ACKs, and nothing is overtaken by a frame whose flow cannot be read; and only marks change, in packets that are right before and after.

use crate::{damage, mend};
use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::superpacket::marker::Marking;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::wire;
use fleetfoot_live::{MarkRules, Passage, Sent, Way};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;

/// Frames of a session at most.
const SESSION: u64 = 100;

/// What came of a storm.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) frames: u64,
    pub(crate) marked: u64,
    pub(crate) unreadable: u64,
    pub(crate) held: u64,
}

/// A storm of so many frames, `seeds` and frames made here, damaged or not.
pub(crate) fn storm(frames: u64, seed: u64, seeds: &[Vec<u8>]) -> Sums {
    let mut sums = Sums::default();
    let mut session = 0;
    while sums.frames < frames {
        // Each can be made again alone.
        let mut rng = Rng::from_seed(seed << 40 | session);
        if let Err(wrong) = play(&mut rng, seeds, &mut sums) {
            panic!("session {session} of seed {seed}: {wrong}");
        }
        session += 1;
    }
    sums
}

/// A frame that came.
struct Came {
    bytes: Vec<u8>,
    at: Instant,
    what: What,
}

/// What a frame is to a marker.
#[derive(PartialEq)]
enum What {
    /// A packet of a flow: its VLAN, addresses, ports and transport; whether it never waits, and whether it is a pure ACK.
    Of(Flow, bool, bool),
    /// An IP packet whose flow cannot be read.
    Unreadable,
    /// No IP packet, or of a transport that has no flows.
    Other,
}

type Flow = (u16, SocketAddr, SocketAddr, bool);

fn play(rng: &mut Rng, seeds: &[Vec<u8>], sums: &mut Sums) -> Result<(), String> {
    let rules = rules(rng);
    let hold = rules.marking.hold;
    let layout = rules.four;
    // One that looks whenever something is due, or one that comes late.
    let prompt = rng.below(4) > 0;
    // Half of them are calm, so that groups become long: what cannot be read lets all go that is held.
    let calm = rng.below(2) == 0;
    let mut passage = Passage::marking(rules);
    let (mut now, mut came, mut left) = (Instant::ZERO, Vec::<Came>::new(), Vec::new());
    for number in 0..1 + rng.below(SESSION) {
        now += match rng.below(8) {
            0..=3 => Duration::ZERO,
            4..=6 => Duration::from_nanos(rng.below(40_000)),
            _ => Duration::from_nanos(rng.below(1 << 10) << rng.below(14)),
        };
        let bytes = if calm && rng.below(16) > 0 {
            honest(rng, number as u32)
        } else {
            frame(rng, number as u32, seeds)
        };
        let what = what(&bytes);
        if prompt {
            poll_up_to(&mut passage, now, &mut left);
        }
        passage.on_frame(now, &bytes);
        came.push(Came { bytes, at: now, what });
        if prompt || rng.below(8) == 0 {
            poll(&mut passage, now, &mut left);
        }
        if left.len() > came.len() {
            return Err(format!("{} frames left of {}", left.len(), came.len()));
        }
    }
    poll_up_to(&mut passage, now + hold, &mut left);
    if passage.poll_timeout().is_some() || left.len() != came.len() {
        return Err(format!("{} frames left of {} in the end", left.len(), came.len()));
    }
    let (marked, measured) = (passage.marked(), passage.measured());
    let count = came.len() as u64;
    if (
        measured.arrived,
        measured.delivered,
        marked.packets + marked.unmarked_packets(),
    ) != (count, count, count)
    {
        return Err(String::from("not every frame was counted once"));
    }
    if marked.held.max() > hold.as_nanos() {
        return Err(format!("one was held for {} ns", marked.held.max()));
    }
    sums.frames += count;
    sums.marked += marked.packets;
    sums.unreadable += came.iter().filter(|one| one.what == What::Unreadable).count() as u64;
    sums.held += compare(&came, &left, prompt.then_some(hold), layout)?;
    Ok(())
}

/// Every frame that left is one that came; `hold`: how late at most, if they were looked at in time. How many left later than they came.
fn compare(
    came: &[Came],
    left: &[(Vec<u8>, Instant)],
    hold: Option<Duration>,
    layout: Option<Layout>,
) -> Result<u64, String> {
    let mut held = 0;
    let mut alike: HashMap<Vec<u8>, VecDeque<usize>> = HashMap::new();
    for (index, one) in came.iter().enumerate() {
        alike.entry(plain(&one.bytes)).or_default().push_back(index);
    }
    let mut places = vec![usize::MAX; came.len()];
    for (place, (bytes, at)) in left.iter().enumerate() {
        let index = alike.get_mut(&plain(bytes)).and_then(VecDeque::pop_front);
        let index = index.ok_or_else(|| format!("a frame left that did not come: {bytes:02x?}"))?;
        places[index] = place;
        let one = &came[index];
        if *at < one.at {
            return Err(format!("it left before it came: {bytes:02x?}"));
        }
        held += u64::from(*at > one.at);
        let at_once = !matches!(one.what, What::Of(_, false, _));
        if hold.is_some_and(|hold| at.since(one.at) > if at_once { Duration::ZERO } else { hold }) {
            return Err(format!(
                "it was held for {:?}: {:02x?}",
                at.since(one.at),
                one.bytes
            ));
        }
        if *bytes != one.bytes {
            sound(&one.bytes, bytes, layout)?;
        }
    }
    let mut last: HashMap<(&Flow, bool), usize> = HashMap::new();
    let mut furthest = 0;
    for (one, &place) in came.iter().zip(&places) {
        match &one.what {
            What::Of(flow, _, pure_ack) => {
                let before = last.insert((flow, *pure_ack), place);
                if before.is_some_and(|before| before > place) {
                    return Err(format!("it overtook its own flow: {:02x?}", one.bytes));
                }
            }
            What::Unreadable if place < furthest => {
                return Err(format!("it overtook what it may belong to: {:02x?}", one.bytes));
            }
            What::Unreadable | What::Other => {}
        }
        furthest = furthest.max(place);
    }
    Ok(held)
}

/// A packet that was marked was right, and is: its headers, its ECN field where the layout leaves that alone.
fn sound(before: &[u8], after: &[u8], layout: Option<Layout>) -> Result<(), String> {
    let (network, _, _) = network_of(before);
    let read = |bytes: &[u8]| {
        let packet = bytes.get(network..).unwrap_or_default();
        wire::parse(packet).map_err(|error| format!("{error:?} in {bytes:02x?}"))
    };
    let (was, is) = (read(before)?, read(after)?);
    let four = was.source.is_ipv4();
    if (!four || layout != Some(Layout::A)) && was.segment.ecn() != is.segment.ecn() {
        return Err(format!("the ECN field changed: {before:02x?}"));
    }
    if (was.source, was.destination, was.segment.payload) != (is.source, is.destination, is.segment.payload) {
        return Err(format!("more than a mark changed: {before:02x?}"));
    }
    Ok(())
}

fn poll(passage: &mut Passage, at: Instant, left: &mut Vec<(Vec<u8>, Instant)>) {
    let Ok(()) = passage.poll_frames::<Infallible>(
        at,
        || at,
        |frames| {
            left.extend(frames.iter().map(|frame| (frame.to_vec(), at)));
            Ok(Sent::Taken(frames.len()))
        },
    );
}

/// Looks at every deadline up to `until`, and then.
fn poll_up_to(passage: &mut Passage, until: Instant, left: &mut Vec<(Vec<u8>, Instant)>) {
    while let Some(at) = passage.poll_timeout().filter(|at| *at <= until) {
        poll(passage, at, left);
        assert!(
            passage.poll_timeout().is_none_or(|next| next > at),
            "after a drain"
        );
    }
    poll(passage, until, left);
}

fn rules(rng: &mut Rng) -> MarkRules {
    let flag = |rng: &mut Rng| rng.below(2) == 0;
    MarkRules {
        marking: Marking {
            t_buffer: Duration::from_micros(1 + rng.below(200)),
            hold: Duration::from_micros(1 + rng.below(400)),
            max: 2 + rng.below(62) as u8,
            by_write: flag(rng),
        },
        four: [
            Some(Layout::A),
            Some(Layout::LOCAL),
            Some(Layout::B { dscp: 63 }),
            None,
        ][rng.below(4) as usize],
        six: flag(rng).then_some(Layout::C),
        udp: flag(rng),
        ports: if rng.below(4) == 0 {
            vec![1..=2]
        } else {
            Vec::new()
        },
        networks: Vec::new(),
        mtu: [576, 1500, 1500, 9000][rng.below(4) as usize],
        seed: rng.next_u64(),
        lies: Vec::new(),
    }
}

fn frame(rng: &mut Rng, number: u32, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = match rng.below(16) {
        0 => {
            let length = rng.below(200) as usize;
            return (0..length).map(|_| rng.below(256) as u8).collect();
        }
        1 | 2 => seeds[rng.below(seeds.len() as u64) as usize].clone(),
        _ => honest(rng, number),
    };
    match rng.below(12) {
        // In pieces, with options or a source route, with headers of extension, in a VLAN.
        0 if frame.get(12..14) == Some(&[8, 0]) && frame.len() > 34 => {
            frame[20] = [0x20, 0x00, 0x20][rng.below(3) as usize];
            frame[21] = rng.below(3) as u8;
        }
        1 if frame.get(12..15) == Some(&[8, 0, 0x45]) && frame.len() > 34 => {
            let kind = [131, 137, 7, 1][rng.below(4) as usize];
            frame.splice(34..34, [kind, 7, 4, 10, 0, 2, 1, 0]);
            frame[14] = 0x47;
            let total = (frame.len() - 14) as u16;
            frame[16..18].copy_from_slice(&total.to_be_bytes());
        }
        2 if frame.get(12..14) == Some(&[0x86, 0xdd]) && frame.len() > 54 => {
            let next = std::mem::replace(&mut frame[20], [0, 43, 60, 44][rng.below(4) as usize]);
            frame.splice(54..54, [next, 0, 1, 4, 0, 0, 0, 0]);
            let length = (frame.len() - 54) as u16;
            frame[18..20].copy_from_slice(&length.to_be_bytes());
        }
        3 if frame.len() > 12 => {
            frame.splice(12..12, [0x81, 0, 0, 1 + rng.below(2) as u8]);
        }
        4 | 5 => {
            for _ in 0..1 + rng.below(4) {
                damage(&mut frame, rng);
            }
        }
        _ => {}
    }
    if rng.below(8) > 0 {
        mend(&mut frame);
    }
    frame
}

/// A packet of one of a few flows, most of which carry data.
fn honest(rng: &mut Rng, number: u32) -> Vec<u8> {
    let six = rng.below(3) == 0;
    let payload = match rng.below(16) {
        0..=2 => 0,
        3 => 1 + rng.below(8900) as u32,
        4 => 1440 + rng.below(40) as u32,
        _ => 4 + rng.below(600) as u32,
    };
    let mut segment = Segment {
        seq: SeqNumber(number * 10_000),
        payload,
        flags: Flags::ACK,
        ttl: 64,
        ..Segment::default()
    };
    for (flag, one_in) in [
        (Flags::PSH, 6),
        (Flags::FIN, 30),
        (Flags::SYN, 40),
        (Flags::RST, 60),
        (Flags::URG, 60),
    ] {
        if rng.below(one_in) == 0 {
            segment.flags = segment.flags.with(flag);
        }
    }
    if rng.below(12) > 0 {
        segment.flags = segment.flags.with(Flags::DF);
    }
    segment.tos = match rng.below(10) {
        0 => rng.below(256) as u8,
        1..=4 => rng.below(4) as u8,
        _ => 0,
    };
    if rng.below(5) == 0 {
        segment.set_kind(Kind::Datagram);
    }
    let port = |rng: &mut Rng| 1 + (rng.below(4) * rng.below(4) / 3) as u16;
    let ends = |host: u8, port| match six {
        false => SocketAddr::from(([10, 0, 0, host], port)),
        true => SocketAddr::from(([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host], port)),
    };
    let (source, destination) = (ends(1, port(rng)), ends(2, 80));
    let mut bytes = vec![2; 14 + 80 + payload as usize];
    bytes[12..14].copy_from_slice(if six { &[0x86, 0xdd] } else { &[8, 0] });
    let own = number.to_be_bytes();
    let own = &own[..own.len().min(payload as usize)];
    let length = wire::encode(&mut bytes[14..], &segment, source, destination, own).expect("it fits");
    bytes.truncate(14 + length);
    bytes
}

/// Where the network header of a frame begins, its type, and its VLAN.
fn network_of(frame: &[u8]) -> (usize, [u8; 2], u16) {
    let word = |at: usize| frame.get(at..at + 2).map_or([0; 2], |two| [two[0], two[1]]);
    let (mut at, mut vlan) = (12, None);
    while at < 24 && matches!(word(at), [0x81, 0] | [0x88, 0xa8]) && frame.len() >= at + 4 {
        vlan = vlan.or(Some(u16::from_be_bytes(word(at + 2)) & 0xfff));
        at += 4;
    }
    (at + 2, word(at), vlan.unwrap_or(0))
}

fn what(frame: &[u8]) -> What {
    let (network, kind, vlan) = network_of(frame);
    let packet = frame.get(network..).unwrap_or_default();
    if !matches!(kind, [8, 0] | [0x86, 0xdd]) {
        return What::Other;
    }
    let version = packet.first().map_or(0, |first| first >> 4);
    if version != if kind == [8, 0] { 4 } else { 6 } {
        return What::Unreadable;
    }
    match wire::parse(packet) {
        Ok(parsed) => {
            let segment = &parsed.segment;
            let tcp = segment.kind() == Kind::Tcp;
            let opens = tcp && segment.flags.intersects(Flags::SYN.with(Flags::RST));
            let empty = segment.payload == 0 && !(tcp && segment.flags.contains(Flags::FIN));
            let flow = (vlan, parsed.source, parsed.destination, tcp);
            What::Of(flow, opens || empty, tcp && empty && !opens)
        }
        Err(wire::Error::Protocol) => What::Other,
        Err(_) => What::Unreadable,
    }
}

/// A frame without what a mark changes.
fn plain(frame: &[u8]) -> Vec<u8> {
    let (network, kind, _) = network_of(frame);
    let mut frame = frame.to_vec();
    let Some(packet) = frame.get_mut(network..) else {
        return frame;
    };
    if kind == [8, 0] && packet.len() >= 20 {
        packet[1] = 0;
        packet[4..6].fill(0);
        packet[10..12].fill(0);
    }
    // Our option behind the fixed header.
    if kind == [0x86, 0xdd] && packet.len() >= 48 && packet[6] == 0 && packet[41..44] == [0, 0x1e, 4] {
        let length = u16::from_be_bytes([packet[4], packet[5]]).wrapping_sub(8);
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        packet[6] = packet[40];
        frame.drain(network + 40..network + 48);
    }
    frame
}
