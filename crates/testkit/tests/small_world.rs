//! Every drop, duplicate and change of places of up to two packets in connections of up to eight segments.
//!
//! The packets of the handshake and of the close count too. Whatever happens to two of them, both ends have the whole
//! stream and are closed. Whole: `cargo test --profile ci -p fleetfoot-testkit --test small_world -- --ignored`. A failing run is named:
//! the world, and which packets met which fate.

use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_core::time::Duration;
use fleetfoot_testkit::rig::{CloseWhen, EndSetup, Fate, Hop, Rig};
use std::sync::Arc;

const DELAY: Duration = Duration::from_millis(10);
const MSS: u64 = 500;
/// What can happen to a packet.
const FATES: [Fate; 3] = [Fate::Drop, Fate::Twice(Duration::ZERO), Fate::Swap];
/// Near 0, 2^31 and 2^32, so that a wrap falls into the handshake, the data or the close.
const CORNERS: [u32; 6] = [
    0,
    0x8000_0000 - 1,
    0x8000_0000 - 1200,
    u32::MAX,
    u32::MAX - 1,
    u32::MAX - 1200,
];
/// Who closes first; the last: both as soon as their data is written.
const CLOSES: [[CloseWhen; 2]; 3] = [
    [CloseWhen::Written, CloseWhen::PeerClosed],
    [CloseWhen::PeerClosed, CloseWhen::Written],
    [CloseWhen::Written, CloseWhen::Written],
];

/// One world: how many bytes each end sends, and everything that does not change from run to run.
#[derive(Clone, Copy, Debug)]
struct World {
    profile: Profile,
    segments: [u64; 2],
    iss: [u32; 2],
    close: [CloseWhen; 2],
    both_open: bool,
}

impl World {
    /// Runs it with these fates; returns the number of packets.
    fn run(&self, config: &Arc<Config>, fates: &[(u64, Fate)]) -> u64 {
        let reported = Reported(|| eprintln!("{self:?} {fates:?}"));
        let sent = self.play(config, fates);
        core::mem::forget(reported);
        sent
    }

    fn play(&self, config: &Arc<Config>, fates: &[(u64, Fate)]) -> u64 {
        let setup = |which: usize| EndSetup {
            config: Arc::clone(config),
            iss: SeqNumber(self.iss[which]),
            // The last segment is a short one.
            bytes: (self.segments[which] * MSS).saturating_sub(100),
            close: self.close[which],
            delay: DELAY,
            read_every: Duration::ZERO,
            read_bytes: 0,
        };
        let network = |hop: &Hop| {
            fates
                .iter()
                .find(|(index, _)| *index == hop.index)
                .map_or(Fate::Deliver, |(_, fate)| *fate)
        };
        let mut rig = Rig::new([setup(0), setup(1)], false, Duration::ZERO, network);
        if self.both_open {
            rig.open_second();
        }
        let mut steps = 0;
        while rig.step() {
            steps += 1;
            assert!(steps < 1000, "{self:?} {fates:?}: no end");
        }
        assert!(
            rig.finished(),
            "{self:?} {fates:?}: {:?} {:?}",
            rig.ends[0].failed,
            rig.ends[1].failed
        );
        rig.sent
    }

    /// Every fate of one packet and of two; `keep` chooses which pairs. Returns the number of runs.
    fn explore(&self, mut keep: impl FnMut() -> bool) -> u64 {
        let mut config = Config::profile(self.profile);
        config.mtu = MSS as u32 + 40 + 12 * u32::from(config.timestamps);
        config.retries = 15;
        config.syn_retries = 8;
        config.patience.synack_retries = 8;
        config.msl = Duration::from_secs(20);
        let config = Arc::new(config);
        let packets = self.run(&config, &[]);
        let mut runs = 1;
        for first in 0..packets {
            for fate in FATES {
                let after = self.run(&config, &[(first, fate)]);
                runs += 1;
                for second in first + 1..after {
                    for other in FATES {
                        if keep() {
                            self.run(&config, &[(first, fate), (second, other)]);
                            runs += 1;
                        }
                    }
                }
            }
        }
        runs
    }
}

/// Says something when a run panics.
struct Reported<F: Fn()>(F);

impl<F: Fn()> Drop for Reported<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// All worlds. Every corner of one end's initial sequence number is there; the other end's goes round.
fn worlds() -> Vec<World> {
    let mut worlds = Vec::new();
    let mut turn = 0;
    for profile in Profile::ALL {
        for close in CLOSES {
            for forth in 0..=8 {
                for back in [0, 1, 4, 8] {
                    for both_open in [false, true] {
                        if both_open && (back > 0 || forth % 4 != 0) {
                            continue;
                        }
                        for corner in CORNERS {
                            turn += 1;
                            worlds.push(World {
                                profile,
                                segments: [forth, back],
                                iss: [corner, CORNERS[turn / 6 % 6]],
                                close,
                                both_open,
                            });
                        }
                    }
                }
            }
        }
    }
    worlds
}

/// RFC 9293: MUST-10
#[test]
fn two_packets_lost_doubled_or_late_do_no_harm_sampled() {
    let mut number = 0_u32;
    let runs: u64 = worlds()
        .iter()
        .step_by(29)
        .map(|world| {
            world.explore(|| {
                number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                number >> 28 == 0
            })
        })
        .sum();
    assert!(runs > 10_000, "{runs} runs");
    println!("{runs} runs");
}

#[test]
#[ignore = "long: millions of runs"]
fn two_packets_lost_doubled_or_late_do_no_harm() {
    let runs: u64 = worlds().iter().map(|world| world.explore(|| true)).sum();
    assert!(runs > 1_000_000, "{runs} runs");
    println!("{runs} runs");
}

#[test]
fn every_corner_of_both_initial_sequence_numbers() {
    for first in CORNERS {
        for second in CORNERS {
            let world = World {
                profile: Profile::Rfc,
                segments: [3, 1],
                iss: [first, second],
                close: CLOSES[0],
                both_open: false,
            };
            world.explore(|| false);
        }
    }
}
