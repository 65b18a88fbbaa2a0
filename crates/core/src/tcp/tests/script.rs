//! A connection and a peer that is played by hand, in segments of 1,000 bytes numbered from 0.

use super::pair::{ISS_A, ISS_B};
use crate::packet::{Flags, Segment};
use crate::tcp::{
    Config, Connection, DelayedAck, EarlyRetransmit, EstablishedState, Event, Profile, Prr, TailLossProbe,
    WindowValidation, WriteFlags,
};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub(super) const MSS: u32 = 1000;
pub(super) const T0: Instant = Instant::from_millis(1000);

/// RFC 5681, 6582, 6675 and 6298 with nothing besides: SRTT 100 ms gives an RTO of 1 s.
pub(super) fn bare() -> Config {
    let mut config = Config::profile(Profile::Rfc);
    config.timestamps = false;
    config.delayed_ack = DelayedAck::Off;
    config.rack = false;
    config.tail_loss_probe = TailLossProbe::Off;
    config.early_retransmit = EarlyRetransmit::Off;
    config.prr = Prr::Off;
    config.frto = false;
    config.undo = false;
    config.nagle = false;
    config.window_validation = WindowValidation::None;
    config
}

pub(super) struct Script {
    pub(super) connection: Connection,
    pub(super) now: Instant,
    /// Window the peer offers, in units of 128 bytes.
    pub(super) window: u16,
    /// TSval of the last segment sent.
    pub(super) tsval: u32,
    /// TSval and TSecr of the peer's next segments.
    pub(super) peer_tsval: u32,
    pub(super) echo: u32,
}

impl Script {
    /// Established at `T0` with SRTT 100 ms and a window of `cwnd` segments.
    pub(super) fn open(config: &Config, cwnd: u32) -> Script {
        Script::established(config, Duration::from_millis(100), u64::from(cwnd * MSS), MSS)
    }

    /// Established at `T0` with a window of `cwnd` bytes.
    pub(super) fn established(config: &Config, srtt: Duration, cwnd: u64, mss: u32) -> Script {
        let state = EstablishedState {
            srtt,
            rttvar: Duration::ZERO,
            cwnd: Bytes(cwnd),
            ssthresh: Bytes::MAX,
            mss,
            iss: ISS_A,
            irs: ISS_B,
            peer_window: Bytes(64_000),
        };
        Script {
            connection: Connection::established(T0, &Arc::new(config.clone()), state),
            now: T0,
            window: 500,
            tsval: 0,
            peer_tsval: 1,
            echo: 0,
        }
    }

    /// Moves the clock to `T0 + ms` without running timers.
    pub(super) fn at(&mut self, ms: u64) -> &mut Script {
        self.now = T0 + Duration::from_millis(ms);
        self
    }

    /// Everything that is waiting to leave.
    pub(super) fn drain(&mut self) -> Vec<Segment> {
        let mut out = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit(self.now) {
            self.tsval = transmit.segment.tsval;
            out.push(transmit.segment);
            assert!(out.len() < 10_000);
        }
        super::check(&self.connection);
        out
    }

    /// Numbers of the data segments that leave.
    pub(super) fn sent(&mut self) -> Vec<u32> {
        self.drain()
            .iter()
            .filter(|segment| segment.payload > 0)
            .map(|segment| ((segment.seq - ISS_A.0).0.wrapping_sub(1)) / MSS)
            .collect()
    }

    /// Writes whole segments.
    pub(super) fn write(&mut self, segments: u32) -> Vec<u32> {
        self.write_bytes(u64::from(segments * MSS))
    }

    pub(super) fn write_bytes(&mut self, bytes: u64) -> Vec<u32> {
        let taken = self
            .connection
            .write(self.now, Bytes(bytes), WriteFlags::default());
        assert_eq!(taken, Bytes(bytes));
        self.sent()
    }

    /// An ACK of everything before byte `ack`, with SACK blocks in bytes.
    pub(super) fn ack_bytes(&mut self, ack: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
        self.ack_bytes_quietly(ack, blocks);
        self.sent()
    }

    /// The same without a drain.
    pub(super) fn ack_bytes_quietly(&mut self, ack: u32, blocks: &[(u32, u32)]) {
        self.ack_with(Flags::ACK, ack, blocks);
    }

    /// An ACK of everything before byte `ack` that echoes a mark, without a drain.
    pub(super) fn ack_marked_quietly(&mut self, ack: u32) {
        self.ack_with(Flags::ACK.with(Flags::ECE), ack, &[]);
    }

    pub(super) fn ack_with(&mut self, flags: Flags, ack: u32, blocks: &[(u32, u32)]) {
        let mut segment = Segment {
            seq: ISS_B + 1,
            ack: ISS_A + 1 + ack,
            window: self.window,
            flags,
            overhead: 40,
            ..Segment::default()
        };
        if self.connection.shared.timestamps {
            segment.flags = segment.flags.with(Flags::TIMESTAMPS);
            segment.tsval = self.peer_tsval;
            segment.tsecr = self.echo;
        }
        for (left, right) in blocks {
            segment.push_sack_block(ISS_A + 1 + *left, ISS_A + 1 + *right);
        }
        self.connection.on_segment(self.now, &segment);
    }

    /// The same in segments: `ack` is the first segment not received.
    pub(super) fn ack(&mut self, ack: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
        let blocks: Vec<_> = blocks.iter().map(|(l, r)| (l * MSS, r * MSS)).collect();
        self.ack_bytes(ack * MSS, &blocks)
    }

    /// Runs the next timer; returns its time after `T0` in milliseconds and what leaves.
    pub(super) fn timer(&mut self) -> (u64, Vec<u32>) {
        let at = self.connection.poll_timeout().expect("a timer runs");
        self.now = at;
        self.connection.on_timeout(at);
        (at.since(T0).as_millis(), self.sent())
    }

    /// Window in force, in bytes.
    pub(super) fn cwnd(&self) -> u64 {
        self.connection.info(self.now).cwnd.get()
    }

    pub(super) fn ssthresh(&self) -> u64 {
        self.connection.info(self.now).ssthresh.get()
    }

    pub(super) fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.connection.poll_event()).collect()
    }
}
