//! A connection that does nothing for now, in few bytes: [`Connection::rest`] and [`StoredConnection::wake`].
//!
//! What wakes is what rested, to the last bit: every field is written because `serde` derives it. Left out (`serde(skip)`)
//! are parts that are empty while a connection rests, what can be worked out again, the configuration, and where the host's timer
//! ticks stand. It costs some tens of thousands of instructions each way, so the driver rests connections that were silent for
//! some time.
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
pub struct StoredConnection(Box<[u8]>);

impl Connection {
    /// This connection in few bytes, if it is established, has nothing to do or to report, and no timer runs. Whoever
    /// keeps them drops the connection and wakes them before the next call.
    pub fn rest(&self) -> Option<StoredConnection> {
        if !self.may_rest() {
            return None;
        }
        let plain = postcard::to_extend(self, Vec::with_capacity(512)).ok()?;
        Some(StoredConnection(shortened(&plain)))
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

impl StoredConnection {
    /// The connection as it was. `config` is the one it had; [`Setting::ClockPhase`](crate::tcp::Setting) is to be set again.
    pub fn wake(&self, config: &Arc<Config>) -> Connection {
        let mut connection: Connection = postcard::from_bytes(&restored(&self.0)).expect("`rest` wrote it");
        connection.shared.config = Arc::clone(config);
        connection
    }

    /// Bytes it takes beside the value itself.
    pub const fn held(&self) -> usize {
        self.0.len()
    }
}

/// Writes two bits for each step, four of them together, and behind these what the steps need: a zero and what never happens (an
/// instant at the largest of times) need nothing, bytes that were there before a distance and a length, any other byte itself. Most flags
/// and counters are zero, and many positions and times are equal.
fn shortened(plain: &[u8]) -> Box<[u8]> {
    let mut short = Vec::with_capacity(plain.len());
    let mut seen = [0_u16; 256];
    let mut at = 0;
    while at < plain.len() {
        let codes = short.len();
        short.push(0);
        for place in 0..4 {
            let left = &plain[at..];
            let (code, taken) = match left {
                [] => (OTHER, 0), // without a byte: the end
                _ if left.starts_with(&NEVER) => (AT_NO_TIME, NEVER.len()),
                [first, ..] => match repeated(plain, at, &seen) {
                    Some((distance, length)) => {
                        short.extend([distance, length]);
                        (AGAIN, usize::from(length))
                    }
                    None if *first == 0 => (ZERO, 1),
                    None => {
                        short.push(*first);
                        (OTHER, 1)
                    }
                },
            };
            for from in at..at + taken {
                if let Some(slot) = slot(&plain[from..]) {
                    seen[slot] = from as u16 + 1;
                }
            }
            short[codes] |= code << (2 * place);
            at += taken;
        }
    }
    short.into_boxed_slice()
}

/// Where the three bytes that come next are remembered.
fn slot(left: &[u8]) -> Option<usize> {
    let [a, b, c, ..] = left else { return None };
    Some(usize::from(a.wrapping_mul(31) ^ b.wrapping_mul(17) ^ c))
}

/// How far back the bytes at `at` stand already, and how many of them, if that is shorter.
fn repeated(plain: &[u8], at: usize, seen: &[u16; 256]) -> Option<(u8, u8)> {
    let from = usize::from(seen[slot(&plain[at..])?].checked_sub(1)?);
    let distance = u8::try_from(at - from).ok()?;
    let pairs = plain[at..].iter().zip(&plain[from..]);
    let same = pairs
        .take(usize::from(u8::MAX))
        .take_while(|(one, other)| one == other);
    // Quarters of a byte: a zero takes one, another byte five, this nine.
    let (length, plainly) = same.fold((0_u8, 0_u32), |(length, plainly), (&byte, _)| {
        (length + 1, plainly + if byte == 0 { 1 } else { 5 })
    });
    (plainly > 9).then_some((distance, length))
}

fn restored(short: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(512);
    let mut bytes = short.iter().copied();
    while let Some(codes) = bytes.next() {
        for place in 0..4 {
            match codes >> (2 * place) & 3 {
                ZERO => plain.push(0),
                AT_NO_TIME => plain.extend_from_slice(&NEVER),
                AGAIN => {
                    let (distance, length) = (bytes.next().unwrap_or(0), bytes.next().unwrap_or(0));
                    for _ in 0..length {
                        let byte = plain
                            .len()
                            .checked_sub(usize::from(distance))
                            .map(|from| plain[from]);
                        plain.push(byte.unwrap_or(0));
                    }
                }
                _ => plain.extend(bytes.next()),
            }
        }
    }
    plain
}

const ZERO: u8 = 0;
const AGAIN: u8 = 1;
const AT_NO_TIME: u8 = 2;
const OTHER: u8 = 3;

/// `Instant::FAR_FUTURE` as `postcard` writes it.
const NEVER: [u8; 10] = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];

#[cfg(test)]
mod tests {
    use super::{NEVER, restored, shortened};
    use crate::time::Instant;
    use alloc::vec::Vec;
    use proptest::prelude::{Just, any, prop_assert_eq, prop_oneof, proptest};

    proptest! {
        #[test]
        fn bytes_come_back(plain in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(u8::MAX)], 0..900)) {
            prop_assert_eq!(restored(&shortened(&plain)), plain);
        }
    }

    proptest! {
        #[test]
        fn repeated_bytes_come_back(parts in proptest::collection::vec((0_usize..40, 1_usize..30), 0..60)) {
            let mut plain: Vec<u8> = (1..=40).collect();
            for (from, length) in parts {
                let from = from.min(plain.len() - 1);
                for at in from..from + length {
                    plain.push(plain[at]);
                }
                plain.push(length as u8);
            }
            prop_assert_eq!(restored(&shortened(&plain)), plain);
        }
    }

    #[test]
    fn worked_by_hand() {
        let never = postcard::to_extend(&Instant::FAR_FUTURE, Vec::new()).expect("it is written");
        assert_eq!(never, NEVER);
        // Zero, what never happens, 1, 2; 3, then these three again and a 9; then the end.
        let plain: Vec<u8> = [&[0][..], &NEVER, &[1, 2, 3, 1, 2, 3, 9]].concat();
        let short = [0b11_11_10_00, 1, 2, 0b11_11_01_11, 3, 3, 3, 9];
        assert_eq!(*shortened(&plain), short);
        assert_eq!(restored(&short), plain);
        assert_eq!(*shortened(&[]), []);
    }
}
