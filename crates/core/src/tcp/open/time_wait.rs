//! Handing a connection over: what must be remembered when it has ended, and making one of what a cookie held.

use crate::packet::Segment;
use crate::seq::SeqNumber;
use crate::tcp::{Config, Connection, State};
use crate::time::Instant;
use alloc::sync::Arc;

/// What TIME-WAIT, or waiting for the peer's FIN, needs of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWaitState {
    /// SND.NXT.
    pub snd_nxt: SeqNumber,
    /// RCV.NXT.
    pub rcv_nxt: SeqNumber,
    /// RCV.WND, bytes.
    pub window: u32,
    /// Scale of the windows that are sent.
    pub scale: u8,
    /// TS.Recent, if both ends use timestamps.
    pub ts_recent: Option<u32>,
    /// What is added to the clock, in milliseconds, to give TSval.
    pub ts_offset: u32,
    /// The peer's FIN has not come yet.
    pub half_closed: bool,
}

impl Connection {
    /// What must be remembered, in TIME-WAIT or FIN-WAIT-2 with nothing left to send.
    pub fn remains(&self) -> Option<TimeWaitState> {
        if !matches!(self.state, State::TimeWait | State::FinWait2)
            || self.receive.acking.now
            || self.control != crate::tcp::Control::None
        {
            return None;
        }
        let shared = &self.shared;
        Some(TimeWaitState {
            snd_nxt: SeqNumber::from_offset(shared.iss, self.snd_nxt()),
            rcv_nxt: SeqNumber::from_offset(shared.irs, self.receive.rcv_nxt),
            window: self.receive.window().min(u64::from(u32::MAX)) as u32,
            scale: shared.rcv_scale,
            ts_recent: shared.timestamps.then_some(shared.ts_recent),
            ts_offset: shared.ts_offset,
            half_closed: self.state == State::FinWait2,
        })
    }

    /// Whether a segment carries data not seen before, within the window.
    pub fn brings_data(&self, segment: &Segment) -> bool {
        let seq = segment.seq.to_offset(self.shared.irs, self.receive.rcv_nxt);
        segment.payload > 0
            && seq + i64::from(segment.payload) > self.receive.rcv_nxt as i64
            && self.receive.acceptable(seq, segment.sequence_len())
    }

    /// A passive open whose SYN-ACK was sent without keeping state ([`SynCookies`](crate::tcp::open::listener::SynCookies)): it waits
    /// for the acknowledgment, which gives no RTT sample.
    pub fn restore(now: Instant, config: &Arc<Config>, iss: SeqNumber, syn: &Segment) -> Connection {
        let mut connection = Connection::accept(now, config, iss, syn);
        connection.control = crate::tcp::Control::None;
        connection.syn_sent_at = Instant::FAR_FUTURE;
        connection
    }
}
