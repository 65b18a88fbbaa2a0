//! Two endpoints and a network that is the enemy: whatever it does to the first packets, both streams arrive whole, nobody
//! is silent for longer than its timeout, and both ends close.

use arbitrary::{Arbitrary, Unstructured};
use fleetfoot_core::packet::Segment;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{Config, Connection, Profile, ReceiveMemory};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_testkit::rig::{CloseWhen, EndSetup, Fate, Hop, Rig};
use std::sync::Arc;

#[derive(Arbitrary, Debug)]
struct Input {
    ends: [End; 2],
    codec: bool,
    both_open: bool,
    rtt_us: u16,
    fates: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
struct End {
    profile: u8,
    switches: u8,
    iss: u32,
    bytes: u16,
    buffer: u16,
    mtu: u8,
    read_every_us: u16,
    read_bytes: u16,
}

impl End {
    fn setup(&self, delay: Duration) -> EndSetup {
        let mut config = Config::profile(Profile::ALL[usize::from(self.profile) % Profile::ALL.len()]);
        let switch = |bit: u8| self.switches >> bit & 1 == 1;
        config.sack &= switch(0);
        config.timestamps &= switch(1);
        config.window_scale = switch(2).then_some(0);
        config.nagle = switch(3);
        config.ecn = switch(4).into();
        config.dsack &= switch(5);
        config.receive_buffer = Bytes(u64::from(self.buffer).max(1024));
        // A tuned buffer begins with a quarter of what it may grow to.
        let most = config.receive_buffer.get();
        config.receive_memory = config
            .receive_memory
            .filter(|_| switch(6))
            .map(|memory| ReceiveMemory {
                buffer: most / 4,
                most,
                ..memory
            });
        config.send_buffer = Bytes(u64::from(self.buffer.rotate_left(5)).max(2000));
        config.mtu = 300 + 8 * u32::from(self.mtu);
        config.retries = u8::MAX;
        config.syn_retries = u8::MAX;
        config.patience.synack_retries = u8::MAX;
        config.patience.retries_as_time = false;
        config.patience.orphan_retries = None;
        config.patience.fin_wait2 = None;
        // A FIN whose retransmissions are lost for longer than TIME-WAIT is answered with a reset.
        config.msl = Duration::from_secs(1 << 20);
        EndSetup {
            config: Arc::new(config),
            iss: SeqNumber(self.iss),
            bytes: u64::from(self.bytes) / 8,
            close: if switch(6) {
                CloseWhen::PeerClosed
            } else {
                CloseWhen::Written
            },
            delay,
            read_every: Duration::from_micros(if switch(7) {
                u64::from(self.read_every_us)
            } else {
                0
            }),
            read_bytes: u64::from(self.read_bytes).max(512),
        }
    }
}

/// One input of the fuzzer. What is too short to be one is nothing.
pub(crate) fn run(bytes: &[u8]) {
    if let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(bytes)) {
        assert_eq!(
            play(&input, true),
            play(&input, false),
            "with and without header prediction"
        );
    }
}

/// Plays it; what left when, from which end.
fn play(input: &Input, prediction: bool) -> Vec<(Instant, usize, Segment)> {
    let delay = Duration::from_micros(u64::from(input.rtt_us) + 1);
    let mut ends = [input.ends[0].setup(delay), input.ends[1].setup(delay)];
    if ends.iter().all(|end| end.close == CloseWhen::PeerClosed) {
        ends[0].close = CloseWhen::Written; // somebody begins
    }
    let fates = &input.fates[..input.fates.len().min(250)];
    let mut sent = Vec::new();
    let network = |hop: &Hop| {
        sent.push((hop.at, hop.from, hop.segment));
        // Fewer losses than there are retries.
        let fate = fates.get(hop.index as usize).copied().unwrap_or(0);
        let extra = delay.mul_div(u64::from(fate >> 3), 8);
        match fate & 7 {
            1 | 2 => Fate::Drop,
            3 => Fate::Twice(extra),
            4 => Fate::Late(extra),
            5 => Fate::Swap,
            6 => Fate::Damage(u32::from(fate).wrapping_mul(2_654_435_761)),
            _ => Fate::Deliver,
        }
    };
    let mut rig = Rig::new(
        ends,
        input.codec && input.fates.len() % 64 == 7,
        delay.saturating_mul(4),
        network,
    );
    if !prediction {
        rig.without_prediction();
    }
    if input.both_open {
        rig.open_second();
    }
    for step in 0.. {
        if !rig.step() {
            break;
        }
        assert!(
            step < 200_000,
            "it ends: {:?} {:#?}",
            rig.now,
            rig.ends.each_ref().map(|end| {
                let info = end.connection.as_ref().map(|connection| connection.info(rig.now));
                (info, end.written, end.read, end.failed)
            })
        );
    }
    assert!(
        rig.finished(),
        "both ends have everything and are closed: {:?} {:?}",
        rig.now,
        rig.ends.each_ref().map(|end| {
            let state = end.connection.as_ref().map(Connection::state);
            (state, end.written, end.read, end.failed)
        })
    );
    drop(rig);
    sent
}
