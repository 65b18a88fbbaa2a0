//! A random transfer over a random bad path, drawn from a seed.
//!
//! Both ends are drawn alike: profile, congestion control, switches, buffers, initial numbers near a corner, delay, loss,
//! duplication, reordering and damage. Packets go through the wire codec. A long run sends more than 5 GiB over a path
//! that loses at most 3 %, so that its numbers wrap at 2^31 and 2^32; a short one up to 10 MB over one that loses up to
//! 30 %. Retransmission limits are off.

use crate::rig::{CloseWhen, EndSetup, Fate, Hop, Rig};
use fleetfoot_core::cc::AnyController;
use fleetfoot_core::rng::{Probability, Rng};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{Config, DelayedAck, Profile, ReceiveMemory, RetryLimits};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Bytes;
use std::sync::Arc;

/// What a run drew, for messages.
#[derive(Clone)]
pub struct Draw {
    /// From which number.
    pub seed: u64,
    /// Stream bytes, from the opener and from the listener.
    pub bytes: [u64; 2],
    /// Profile of each end.
    pub profiles: [Profile; 2],
    /// Congestion control of each end.
    pub controls: [&'static str; 2],
    /// Chances of loss, a second copy, a late arrival, damage.
    pub chances: [f64; 4],
    /// Round trip without queueing.
    pub round_trip: Duration,
    /// Receive buffers.
    pub buffers: [u64; 2],
    setups: [EndSetup; 2],
}

impl std::fmt::Debug for Draw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draw")
            .field("seed", &self.seed)
            .field("bytes", &self.bytes)
            .field("profiles", &self.profiles)
            .field("controls", &self.controls)
            .field("chances", &self.chances)
            .field("round_trip", &self.round_trip)
            .field("buffers", &self.buffers)
            .finish_non_exhaustive()
    }
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Stream bytes that arrived and were compared.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets whose damage the checksums found.
    pub damaged: u64,
    /// Virtual time.
    pub time: Duration,
}

impl Draw {
    /// Draws a run; `long`: more than 5 GiB, otherwise up to `most` bytes.
    pub fn new(seed: u64, long: bool, most: u64) -> Draw {
        let mut rng = Rng::for_element(seed, "soak", "draw");
        let rng = &mut rng;
        let round_trip = Duration::from_nanos(log_uniform(rng, 10_000, 2_000_000_000));
        let most_loss = if long { 0.03 } else { 0.3 };
        let some = |rng: &mut Rng, most: f64| {
            if rng.below(3) == 0 {
                0.0
            } else {
                rng.uniform() * most
            }
        };
        let chances = [
            some(rng, most_loss),
            some(rng, most_loss),
            some(rng, most_loss),
            some(rng, most_loss / 2.0),
        ];
        let bytes = if long {
            [(5 << 30) + rng.below(1 << 28), rng.below(1 << 20)]
        } else {
            [
                log_uniform(rng, 1, most),
                log_uniform(rng, 1, most) * rng.below(2),
            ]
        };
        let delay = round_trip.mul_div(1, 2);
        let setups = [0, 1].map(|which| end(rng, long, bytes[which], delay));
        let first_closes = rng.below(3);
        let mut setups = setups;
        setups[0].close = if first_closes == 0 {
            CloseWhen::PeerClosed
        } else {
            CloseWhen::Written
        };
        setups[1].close = if first_closes == 1 {
            CloseWhen::PeerClosed
        } else {
            CloseWhen::Written
        };
        Draw {
            seed,
            bytes,
            profiles: [0, 1].map(|which| profile(&setups[which].config)),
            controls: [0, 1].map(|which| setups[which].config.congestion_control),
            chances,
            round_trip,
            buffers: [0, 1].map(|which| setups[which].config.receive_buffer.get()),
            setups,
        }
    }

    /// Runs it; panics where something is wrong. `progress` is called now and then with the bytes read so far; false
    /// ends the run.
    pub fn run(&self, mut progress: impl FnMut(u64) -> bool) -> Outcome {
        let mut rng = Rng::for_element(self.seed, "soak", "network");
        let [loss, twice, late, damage] = self.chances.map(Probability::from_f64);
        let spread = self.round_trip.as_nanos().max(1);
        let network = move |_: &Hop| {
            if rng.chance(loss) {
                Fate::Drop
            } else if rng.chance(twice) {
                Fate::Twice(Duration::from_nanos(rng.below(spread)))
            } else if rng.chance(late) {
                Fate::Late(Duration::from_nanos(rng.below(spread)))
            } else if rng.chance(damage) {
                Fate::Damage(rng.next_u32())
            } else {
                Fate::Deliver
            }
        };
        let mut rig = Rig::new(self.setups.clone(), true, self.round_trip, network);
        let start = rig.now;
        let outcome = |rig: &Rig<_>| Outcome {
            bytes: rig.ends[0].read + rig.ends[1].read,
            packets: rig.sent,
            damaged: rig.damaged,
            time: rig.now.since(start),
        };
        let mut steps = 0_u64;
        while rig.step() {
            steps += 1;
            if steps.is_multiple_of(1 << 16) && !progress(rig.ends[0].read + rig.ends[1].read) {
                return outcome(&rig);
            }
        }
        assert!(
            rig.finished(),
            "both ends are closed and have everything: {:?} {:?} {:?}",
            rig.ends.each_ref().map(|end| (end.read, end.failed)),
            rig.now,
            self
        );
        outcome(&rig)
    }
}

fn end(rng: &mut Rng, long: bool, bytes: u64, delay: Duration) -> EndSetup {
    let mut config = Config::profile(Profile::ALL[rng.below(Profile::ALL.len() as u64) as usize]);
    let entries = AnyController::ENTRIES;
    config.congestion_control = entries[rng.below(entries.len() as u64) as usize].name;
    let smallest = if long { 65_536 } else { 1024 };
    config.receive_buffer = Bytes(log_uniform(rng, smallest, 64 << 20));
    // A tuned buffer grows up to the drawn one, if that is larger than what it begins with.
    let most = config.receive_buffer.get();
    config.receive_memory = config
        .receive_memory
        .filter(|memory| memory.buffer < most)
        .map(|memory| ReceiveMemory { most, ..memory });
    config.send_buffer = Bytes(log_uniform(rng, smallest, 64 << 20));
    config.window_scale = (rng.below(8) > 0 || long).then(|| {
        let needed = config.receive_buffer.get().ilog2().saturating_sub(15) as u8;
        needed.min(14)
    });
    config.mtu = match rng.below(4) {
        0 if !long => 576,
        0 | 1 => 1500,
        2 => 9000,
        _ => 65_535,
    };
    config.sack = rng.below(4) > 0;
    config.timestamps = rng.below(3) > 0;
    config.nagle = rng.below(2) > 0;
    config.ecn = (rng.below(4) == 0).into();
    if rng.below(2) > 0 {
        config.delayed_ack = DelayedAck::Standard {
            timeout: Duration::from_millis(1 + rng.below(200)),
        };
    }
    config.retries = u8::MAX;
    config.syn_retries = u8::MAX;
    config.patience = RetryLimits {
        synack_retries: u8::MAX,
        retries_as_time: false,
        orphan_retries: None,
        user_timeout: None,
        fin_wait2: None,
        ..config.patience
    };
    // Late copies of the last acknowledgment must not outlive it.
    config.msl = Duration::from_secs(240);
    let corner = [0, 1 << 31, 0_u32][rng.below(3) as usize];
    let near = log_uniform(rng, 1, if long { 1 << 31 } else { bytes.max(2) * 2 }) as u32;
    EndSetup {
        iss: SeqNumber(corner.wrapping_sub(near)),
        bytes,
        close: CloseWhen::Written,
        delay,
        read_every: Duration::from_nanos(if rng.below(4) == 0 {
            log_uniform(rng, 1000, 1 << 28)
        } else {
            0
        }),
        read_bytes: log_uniform(rng, smallest / 4, config.receive_buffer.get().max(smallest) * 2),
        config: Arc::new(config),
    }
}

/// For messages: the profile whose initial settings these are, by what no draw changes.
fn profile(config: &Config) -> Profile {
    let same = |profile: &Profile| {
        let other = Config::profile(*profile);
        (
            other.rto,
            other.prr,
            other.rack,
            other.tail_loss_probe,
            other.fack,
        ) == (
            config.rto,
            config.prr,
            config.rack,
            config.tail_loss_probe,
            config.fack,
        )
    };
    Profile::ALL.into_iter().find(same).unwrap_or(Profile::Rfc)
}

/// Between `low` and `high`, every order of magnitude as likely as another.
fn log_uniform(rng: &mut Rng, low: u64, high: u64) -> u64 {
    let (from, to) = (libm::log(low as f64), libm::log(high as f64));
    (libm::exp(from + (to - from) * rng.uniform()) as u64).clamp(low, high)
}
