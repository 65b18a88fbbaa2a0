//! The kept inputs of the fuzzer, played without it, and a storm of inputs made of them.
#![cfg(target_os = "linux")]

#[path = "../../../fuzz/inputs/mark.rs"]
mod mark;
#[path = "corpus/marker.rs"]
mod marker;
#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;
#[path = "../../../fuzz/inputs/requests.rs"]
mod requests;
#[path = "../../../fuzz/inputs/router.rs"]
mod router;

use fleetfoot_core::rng::Rng;
use fleetfoot_core::wire::checksum::Sum;
use fleetfoot_live::router::packet::try_frame;

#[test]
fn kept_inputs_of_the_target_router() {
    replay::replay("router", 14, router::run);
}

#[test]
fn kept_inputs_of_the_target_requests() {
    replay::replay("requests", 6, requests::run);
}

#[test]
fn kept_inputs_of_the_target_mark() {
    replay::replay("mark", 8, mark::run);
}

/// Inputs of a storm: `FLEETFOOT_STORM=100000000 cargo test --profile ci -p fleetfoot-live --test corpus -- --nocapture storm` makes as many.
fn wanted(otherwise: u64) -> u64 {
    let wanted = std::env::var("FLEETFOOT_STORM").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Frames that the fuzzer of the router keeps.
fn kept_frames() -> Vec<Vec<u8>> {
    let folder = format!("{}/../../fuzz/corpus/router", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus is in the tree")
        .map(|file| file.expect("a file").path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).expect("readable"))
        .collect()
}

#[test]
fn a_storm_of_frames_through_the_marker() {
    let (wanted, seed) = (wanted(100_000), 1);
    let sums = marker::storm(wanted, seed, &kept_frames());
    let marker::Sums {
        frames,
        marked,
        unreadable,
        held,
    } = sums;
    println!("{frames} frames of seed {seed}: {marked} marked, {unreadable} unreadable, {held} held");
    assert!(
        marked > frames / 20 && unreadable > frames / 20 && held > frames / 10,
        "{marked}, {unreadable}, {held} of {frames}"
    );
}

#[test]
fn a_storm_of_damaged_frames() {
    let (runs, seed) = (wanted(200_000), 1);
    let seeds = kept_frames();
    let mut rng = Rng::from_seed(seed);
    let (mut frame, mut passed) = (Vec::new(), 0_u64);
    for run in 0..runs {
        frame.clear();
        frame.extend_from_slice(&seeds[rng.below(seeds.len() as u64) as usize]);
        for _ in 0..rng.below(5) {
            damage(&mut frame, &mut rng);
        }
        // Without a right checksum hardly anything would get far.
        if rng.below(8) > 0 {
            mend(&mut frame);
        }
        match try_frame(&frame) {
            Ok(forwarded) => passed += u64::from(forwarded),
            Err(wrong) => panic!("input {run} of seed {seed}: {wrong}: {frame:02x?}"),
        }
    }
    println!("{runs} inputs of seed {seed}, {passed} of which would be passed on");
    assert!(passed > runs / 20 && passed < runs, "{passed} of {runs}");
}

fn damage(frame: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.below(frame.len() as u64 + 1) as usize;
    // Values that mean something in some field.
    const WORDS: [u8; 12] = [0, 1, 4, 6, 17, 43, 44, 58, 60, 127, 131, 255];
    match rng.below(8) {
        0 => frame.truncate(at),
        1 => frame.extend(std::iter::repeat_n(0x5a, rng.below(1600) as usize)),
        2 => {
            let word = WORDS[rng.below(12) as usize];
            frame.splice(at..at, [word; 4]);
        }
        3 => drop(frame.drain(at..frame.len().min(at + 4))),
        4 => {
            if let Some(byte) = frame.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
        5 => {
            if let Some(byte) = frame.get_mut(at) {
                *byte = WORDS[rng.below(12) as usize];
            }
        }
        _ => {
            // In the headers, mostly.
            let at = 12 + rng.below(48) as usize;
            if let Some(byte) = frame.get_mut(at) {
                *byte = rng.below(256) as u8;
            }
        }
    }
}

/// Makes the checksum of an IPv4 header right, if there is one.
fn mend(frame: &mut [u8]) {
    let Some(packet) = frame.get_mut(14..) else { return };
    let header = packet.first().map_or(0, |first| usize::from(first & 15) * 4);
    if header < 20 || packet.len() < header || packet[0] >> 4 != 4 {
        return;
    }
    packet[10..12].fill(0);
    let sum = Sum::default().over(&packet[..header]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}
