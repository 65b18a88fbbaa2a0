//! Any segments, times and calls on a TCP connection: nothing panics, and a drain leaves a deadline in the future.

use arbitrary::{Arbitrary, Unstructured};
use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{Config, Connection, Half, Profile, WriteFlags};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use std::sync::Arc;

#[derive(Arbitrary, Debug)]
pub(crate) struct Input {
    pub(crate) profile: u8,
    pub(crate) passive: bool,
    pub(crate) syn: Raw,
    pub(crate) calls: Vec<Call>,
}

#[derive(Arbitrary, Debug)]
pub(crate) enum Call {
    Segment(Raw),
    /// The deadline passes.
    Timeout,
    Wait {
        us: u32,
    },
    Write {
        bytes: u32,
        more: bool,
    },
    Read {
        bytes: u32,
    },
    Shutdown {
        write: bool,
    },
    Close,
    Abort,
}

/// A segment whose numbers lie near those of the connection, so that some of it is acceptable.
#[derive(Arbitrary, Debug)]
pub(crate) struct Raw {
    pub(crate) seq: i16,
    pub(crate) ack: i16,
    pub(crate) far: bool,
    pub(crate) tsval: u32,
    pub(crate) tsecr: u32,
    pub(crate) options: [i16; 6],
    pub(crate) payload: u16,
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    pub(crate) flags: u16,
    pub(crate) tos: u8,
    pub(crate) sack_blocks: u8,
}

const ISS: SeqNumber = SeqNumber(u32::MAX - 4_000);
const PEER: SeqNumber = SeqNumber(u32::MAX - 900);

impl Raw {
    fn segment(&self, received: u64, acked: u64) -> Segment {
        let near = |origin: SeqNumber, done: u64, offset: i16| {
            let scale = if self.far { 65_536 } else { 1 };
            origin
                + (done as u32)
                    .wrapping_add(1)
                    .wrapping_add((i32::from(offset) * scale) as u32)
        };
        Segment {
            seq: near(PEER, received, self.seq),
            ack: near(ISS, acked, self.ack),
            tsval: self.tsval,
            tsecr: self.tsecr,
            options: self.options.map(|edge| near(ISS, acked, edge).0),
            payload: u32::from(self.payload),
            window: self.window,
            urgent: self.urgent,
            flags: Flags(self.flags),
            tos: self.tos,
            ttl: 64,
            overhead: 40,
            kind_sack: (self.sack_blocks % 5) << 4,
            ip_id: 0,
        }
    }
}

fn drain(connection: &mut Connection, now: Instant) {
    for turn in 0.. {
        assert!(turn < 1_000_000, "a drain ends");
        if connection.poll_transmit(now).is_none() {
            break;
        }
    }
    while connection.poll_event().is_some() {}
}

/// One input of the fuzzer. What is too short to be one is nothing.
pub(crate) fn run(bytes: &[u8]) {
    if let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(bytes)) {
        play(&input);
    }
}

pub(crate) fn play(input: &Input) {
    let profile = Profile::ALL[usize::from(input.profile) % Profile::ALL.len()];
    let config = Arc::new(Config::profile(profile));
    let mut now = Instant::from_millis(1);
    let mut connection = if input.passive {
        let mut syn = input.syn.segment(0, 0);
        syn.seq = PEER;
        syn.flags = syn.flags.with(Flags::SYN).without(Flags::ACK.with(Flags::RST));
        Connection::accept(now, &config, ISS, &syn)
    } else {
        Connection::connect(now, &config, ISS)
    };
    drain(&mut connection, now);
    for call in &input.calls {
        now += Duration::from_nanos(1);
        // A driver calls at the deadline: one that lies a nanosecond ahead (a probe after a round trip of one) is due now.
        while connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.on_timeout(now);
            drain(&mut connection, now);
        }
        match *call {
            Call::Segment(ref raw) => {
                let segment = raw.segment(connection.received(), connection.acked());
                let _ = connection.on_segment(now, &segment);
            }
            Call::Timeout => {
                if let Some(at) = connection.poll_timeout() {
                    now = now.max(at);
                    connection.on_timeout(now);
                }
            }
            Call::Wait { us } => {
                now += Duration::from_micros(u64::from(us));
                if connection.poll_timeout().is_some_and(|at| at <= now) {
                    connection.on_timeout(now);
                }
            }
            Call::Write { bytes, more } => {
                let _ = connection.write(now, Bytes(u64::from(bytes)), WriteFlags { more, corked: false });
            }
            Call::Read { bytes } => {
                let _ = connection.read(now, Bytes(u64::from(bytes)));
            }
            Call::Shutdown { write } => {
                connection.shutdown(now, if write { Half::Write } else { Half::Read });
            }
            Call::Close => connection.close(now),
            Call::Abort => connection.abort(now),
        }
        drain(&mut connection, now);
        let next = connection.poll_timeout();
        assert!(
            next.is_none_or(|at| at > now),
            "{:?} is left behind at {next:?}, now {now:?}, after {call:?}",
            connection.timer()
        );
    }
}
