//! A connection that does nothing for now, in few bytes: [`Connection::rest`] and [`Resting::wake`].
//!
//! What wakes is what rested, to the last bit: every field is written because `serde` derives it. Left out (`serde(skip)`)
//! are parts that are empty while a connection rests, what can be worked out again, the configuration, and where the host's timer ticks stand. It costs about 15,000
//! instructions each way, so the driver rests connections that were silent for some time.
//!
//! A connection does not rest while its sender is paced, its window is validated (new-CWV) or its controller takes rate samples (BBR,
//! Prague): these act on time that passes without a segment, and the state of the last two is large, so that little would be
//! saved.
//!
//! **Source.** None: nothing of it can be seen from outside.
//! **Deviations.** None.

use crate::tcp::receive::rcvbuf::Room;
use crate::tcp::receive::reassembly::Beyond;
use crate::tcp::send::half::Sender;
use crate::tcp::{Config, Connection, Control, State};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A connection that does nothing until somebody writes or a segment comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resting(Box<[u8]>);

impl Connection {
    /// This connection in few bytes, if it is established, has nothing to do or to report, and no timer runs. Whoever
    /// keeps them drops the connection and wakes them before the next call.
    pub fn rest(&self) -> Option<Resting> {
        if !self.may_rest() {
            return None;
        }
        let plain = postcard::to_extend(self, Vec::with_capacity(512)).ok()?;
        Some(Resting(without_runs(&plain)))
    }

    fn may_rest(&self) -> bool {
        let shared = &self.shared;
        let calm = self.state == State::Established
            && self.control == Control::None
            && !self.keep_alive_due
            && !self.close_queued
            && shared.timers.next().is_none()
            && shared.events == 0
            && shared.failure.is_none()
            && shared.cold.is_none();
        let receive = &self.receive;
        let whole = |beyond: &Beyond| beyond.ranges.is_empty() && beyond.pieces.is_empty();
        let silent = |sender: &Sender| {
            let board = &sender.board;
            board.ring.is_empty()
                && board.marks.runs.is_empty()
                && board.marks.stale.is_empty()
                && sender.unsent() == 0
                && !sender.is_closed()
                && sender.thin.is_none()
                && sender.tempo.is_none()
                && !sender.cc.is_custom()
        };
        calm && !receive.acking.now
            && receive.room.as_deref().is_none_or(Room::is_empty)
            && receive.beyond.as_deref().is_none_or(whole)
            && self.sender.as_deref().is_none_or(silent)
    }
}

impl Resting {
    /// The connection as it was. `config` is the one it had; [`Setting::ClockPhase`](crate::tcp::Setting) is to be set again.
    pub fn wake(&self, config: &Arc<Config>) -> Connection {
        let mut connection: Connection = postcard::from_bytes(&with_runs(&self.0)).expect("`rest` wrote it");
        connection.shared.config = Arc::clone(config);
        connection
    }

    /// Bytes it takes beside the value itself.
    pub const fn held(&self) -> usize {
        self.0.len()
    }
}

/// Writes runs of bytes that are all zeros or all ones as the byte and how often it follows itself: most flags and counters
/// are zero, and what never happens is at the largest of instants.
fn without_runs(plain: &[u8]) -> Box<[u8]> {
    let mut short = Vec::with_capacity(plain.len() + 64);
    let mut left = plain;
    while let Some((&byte, rest)) = left.split_first() {
        short.push(byte);
        left = rest;
        if is_counted(byte) {
            let most = &rest[..rest.len().min(usize::from(u8::MAX))];
            let more = most.iter().position(|&next| next != byte).unwrap_or(most.len());
            short.push(more as u8);
            left = &rest[more..];
        }
    }
    short.into_boxed_slice()
}

fn with_runs(short: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(512);
    let mut bytes = short.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(byte);
        if is_counted(byte) {
            let more = bytes.next().copied().unwrap_or(0);
            plain.resize(plain.len() + usize::from(more), byte);
        }
    }
    plain
}

const fn is_counted(byte: u8) -> bool {
    matches!(byte, 0 | u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::{with_runs, without_runs};
    use alloc::vec;
    use proptest::prelude::{Just, any, prop_assert_eq, prop_oneof, proptest};

    proptest! {
        #[test]
        fn runs_come_back(plain in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(u8::MAX)], 0..900)) {
            prop_assert_eq!(with_runs(&without_runs(&plain)), plain);
        }
    }

    #[test]
    fn long_runs_are_short() {
        for length in [1, 255, 256, 257, 600] {
            let plain = vec![u8::MAX; length];
            let short = without_runs(&plain);
            assert_eq!(short.len(), 2 * length.div_ceil(256));
            assert_eq!(with_runs(&short), plain);
        }
    }
}
