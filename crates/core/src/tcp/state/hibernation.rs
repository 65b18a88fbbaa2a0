//! A connection that does nothing for now, in few bytes: [`Connection::rest`] and [`StoredConnection::wake`].
//!
//! What wakes is what rested, to the last bit: every field is written because `serde` derives it, as a number. Left out (`serde(skip)`)
//! are parts that are empty while a connection rests, what can be worked out again, the configuration, and where the host's timer
//! ticks stand. Kept are the differences from a connection that rested before ([`Models`]): few fields of two idle connections
//! of a group differ, and many of these by the same, as when one was opened later. It costs some thousands of instructions each way.
//!
//! A connection does not rest while its sender is paced, its window is validated (new-CWV) or its controller takes rate samples (BBR,
//! Prague): these act on time that passes without a segment, and the state of the last two is large, so that little would be
//! saved.
//!
//! **Source.** None: nothing of it can be seen from outside.
//! **Deviations.** None.

use super::numbers;
use super::timers::Timer;
use crate::tcp::receive::rcvbuf::Room;
use crate::tcp::receive::reassembly::Beyond;
use crate::tcp::send::half::Sender;
use crate::tcp::{Config, Connection, Control, State};
use crate::time::Duration;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// A connection that does nothing until somebody writes, a segment comes or a timer fires: the model's number, then the differences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredConnection(Box<[u8]>);

/// What connections at rest are told from, each as numbers: the first of its kind.
#[derive(Clone, Debug, Default)]
pub struct Models {
    known: Vec<Box<[u64]>>,
    /// The connection at hand, and its differences.
    numbers: Vec<u64>,
    short: Vec<u8>,
}

impl Connection {
    /// This connection in few bytes, if it has nothing to do or to report and either is established while no timer runs, or opens or
    /// closes and has sent everything. Whoever keeps them drops the connection and wakes them, with the same `models`, before the
    /// next call.
    pub fn rest(&self, models: &mut Models) -> Option<StoredConnection> {
        if !self.may_rest() {
            return None;
        }
        models.numbers.clear();
        numbers::write(self, &mut models.numbers).ok()?;
        models.differences()
    }

    /// As [`Connection::rest`], if it is established and waits for an acknowledgment, for its retransmission timer or for what fills a
    /// hole. Nothing is compared with others: records of segments that are out are told from each other.
    pub fn rest_with_data_out(&self, models: &mut Models) -> Option<StoredConnection> {
        if !self.may_rest_with_data_out() {
            return None;
        }
        models.numbers.clear();
        numbers::write(self, &mut models.numbers).ok()?;
        Some(models.apart())
    }

    /// Whether there is room for many records of segments that are out.
    pub fn holds_many_records(&self) -> bool {
        let ring = self.sender.as_deref().map(|sender| &sender.board.ring);
        ring.is_some_and(|ring| ring.capacity() >= MANY_RECORDS)
    }

    fn may_rest_with_data_out(&self) -> bool {
        let shared = &self.shared;
        let receive = &self.receive;
        let plain =
            |sender: &Sender| sender.thin.is_none() && sender.tempo.is_none() && !sender.cc.is_custom();
        self.state == State::Established
            && self.control == Control::None
            && !self.keep_alive_due
            && shared.events == 0
            && shared.failure.is_none()
            && shared.cold.is_none()
            && !receive.acking.now
            && receive.room.as_deref().is_none_or(Room::is_empty)
            && receive
                .beyond
                .as_deref()
                .is_none_or(|beyond| beyond.pieces.is_empty())
            && self.sender.as_deref().is_none_or(plain)
    }

    fn may_rest(&self) -> bool {
        let shared = &self.shared;
        let calm = match self.state {
            State::Established => !self.close_queued && shared.timers.next().is_none(),
            State::SynSent | State::SynReceived => shared.timers.is_alone(Timer::Syn),
            State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => true,
            State::Closed => false,
        };
        let calm = calm
            && self.control == Control::None
            && !self.keep_alive_due
            && shared.events == 0
            && shared.failure.is_none()
            && shared.cold.is_none();
        let receive = &self.receive;
        let whole = |beyond: &Beyond| beyond.ranges.is_empty() && beyond.pieces.is_empty();
        let open = self.state == State::Established;
        let silent = |sender: &Sender| {
            let board = &sender.board;
            !(open && (sender.is_closed() || !board.ring.is_empty()))
                && board.marks.runs.is_empty()
                && board.marks.stale.is_empty()
                && sender.unsent() == 0
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
    /// The connection as it was. `config` is the one it had, and `phase` its [`Setting::ClockPhase`](crate::tcp::Setting).
    pub fn wake(&self, models: &Models, config: &Arc<Config>, phase: Duration) -> Connection {
        let mut connection: Connection = numbers::read(&models.restored(&self.0)).expect("`rest` wrote it");
        connection.shared.config = Arc::clone(config);
        connection.shared.timers.set_phase(phase);
        connection
    }

    /// Bytes it takes beside the value itself.
    pub const fn held(&self) -> usize {
        self.0.len()
    }
}

impl Models {
    /// What distinguishes the connection at hand from the model that is most like it, which it may become itself.
    fn differences(&mut self) -> Option<StoredConnection> {
        let numbers = &self.numbers[..];
        let alike = self.known.iter().enumerate();
        let alike = alike.filter(|(_, model)| model.len() == numbers.len());
        let alike = alike.map(|(place, model)| (different(model, numbers), place));
        let place = match alike.min() {
            Some((different, place)) if different <= MOST_DIFFERENT || self.known.len() == MOST_MODELS => {
                place
            }
            _ if self.known.len() == MOST_MODELS => return None,
            _ => {
                self.known.push(numbers.into());
                self.known.len() - 1
            }
        };
        self.short.clear();
        self.short.push(place as u8);
        shorten(&self.known[place], numbers, &mut self.short);
        Some(StoredConnection(self.short[..].into()))
    }

    /// The connection at hand by what distinguishes each number from the one [`RECORD`] places before.
    fn apart(&mut self) -> StoredConnection {
        let numbers = &mut self.numbers;
        for place in (RECORD..numbers.len()).rev() {
            numbers[place] = numbers[place].wrapping_sub(numbers[place - RECORD]);
        }
        self.short.clear();
        self.short.push(APART);
        self.short.extend((numbers.len() as u32).to_le_bytes());
        shorten(&vec![0; numbers.len()], numbers, &mut self.short);
        StoredConnection(self.short[..].into())
    }

    fn restored(&self, short: &[u8]) -> Vec<u64> {
        let (place, rest) = short.split_first().expect("the number of the model comes first");
        if *place == APART {
            let (length, rest) = rest.split_first_chunk().expect("the count of numbers comes next");
            let mut numbers = vec![0; u32::from_le_bytes(*length) as usize];
            lengthen(&mut numbers, rest);
            for place in RECORD..numbers.len() {
                numbers[place] = numbers[place].wrapping_add(numbers[place - RECORD]);
            }
            return numbers;
        }
        let mut numbers = self.known[usize::from(*place)].to_vec();
        lengthen(&mut numbers, rest);
        numbers
    }
}

/// In how many places two rows of numbers differ.
fn different(one: &[u64], other: &[u64]) -> usize {
    one.iter().zip(other).filter(|(one, other)| one != other).count()
}

/// Writes a byte for each place where `numbers` differ from those of the `model`: in its high half how many places before it are equal,
/// in its low half which of the differences so far it is. [`FAR`] in the high half: so many are equal, and nothing else is said.
/// [`NEW`] in the low half: the difference follows, seven bits in a byte, the lowest first, its sign the lowest of all.
fn shorten(model: &[u64], numbers: &[u64], short: &mut Vec<u8>) {
    let mut known = [0; NEW as usize];
    let (mut count, mut equal) = (0, 0_usize);
    for (number, model) in numbers.iter().zip(model) {
        let difference = number.wrapping_sub(*model);
        if difference == 0 {
            equal += 1;
            continue;
        }
        while equal >= usize::from(FAR) {
            short.push(FAR << 4);
            equal -= usize::from(FAR);
        }
        let equal_before = (equal as u8) << 4;
        if let Some(place) = known[..count].iter().position(|known| *known == difference) {
            short.push(equal_before | place as u8);
        } else {
            short.push(equal_before | NEW);
            let signed = difference as i64;
            let mut left = (signed << 1 ^ signed >> 63) as u64;
            while left > 127 {
                short.push(left as u8 | 128);
                left >>= 7;
            }
            short.push(left as u8);
            if let Some(slot) = known.get_mut(count) {
                *slot = difference;
                count += 1;
            }
        }
        equal = 0;
    }
}

/// The opposite: `numbers` are those of the model before.
fn lengthen(numbers: &mut [u64], short: &[u8]) {
    let mut known = [0; NEW as usize];
    let (mut count, mut place) = (0, 0);
    let mut bytes = short.iter().copied();
    while let Some(byte) = bytes.next() {
        place += usize::from(byte >> 4);
        if byte >> 4 == FAR {
            continue;
        }
        let difference = match known.get(usize::from(byte & 15)) {
            Some(difference) => *difference,
            None => {
                let mut folded = 0;
                for (at, piece) in bytes.by_ref().enumerate() {
                    folded |= u64::from(piece & 127) << (7 * at);
                    if piece < 128 {
                        break;
                    }
                }
                let difference = folded >> 1 ^ (folded & 1).wrapping_neg();
                if let Some(slot) = known.get_mut(count) {
                    *slot = difference;
                    count += 1;
                }
                difference
            }
        };
        numbers[place] = numbers[place].wrapping_add(difference);
        place += 1;
    }
}

/// As many equal places are told of by a byte of their own.
const FAR: u8 = 15;

/// A difference that was not there before.
const NEW: u8 = 15;

/// Fewer differences than this are not worth another model.
const MOST_DIFFERENT: usize = 32;

/// So many models there are at most: one is found in a moment.
const MOST_MODELS: usize = 64;

/// In place of a model's number: there is none.
const APART: u8 = u8::MAX;

/// Numbers that a record of a segment has.
const RECORD: usize = 7;

/// Room for so many records is worth storing.
const MANY_RECORDS: usize = 32;

#[cfg(test)]
mod tests {
    use super::{lengthen, shorten};
    use alloc::vec::Vec;
    use proptest::prelude::{Just, any, prop_assert_eq, prop_oneof, proptest};

    proptest! {
        #[test]
        fn numbers_come_back(pairs in proptest::collection::vec((any::<u64>(), prop_oneof![90 => Just(0), 2 => Just(7), 1 => any::<u64>()]), 0..900)) {
            let model: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
            let numbers: Vec<u64> = pairs.iter().map(|pair| pair.0.wrapping_add(pair.1)).collect();
            let (mut short, mut back) = (Vec::new(), model.clone());
            shorten(&model, &numbers, &mut short);
            lengthen(&mut back, &short);
            prop_assert_eq!(back, numbers);
        }
    }

    #[test]
    fn worked_by_hand() {
        // Two differ by 300, one by -1, and sixteen are equal before that.
        let mut model = [5; 20];
        let mut numbers = model;
        (numbers[1], numbers[2], numbers[19]) = (305, 305, 4);
        let mut short = Vec::new();
        shorten(&model, &numbers, &mut short);
        // 600 is 0b100_1011000.
        assert_eq!(short, [0x1f, 0xd8, 4, 0x00, 0xf0, 0x1f, 1]);
        lengthen(&mut model, &short);
        assert_eq!(model, numbers);
        short.clear();
        shorten(&model, &numbers, &mut short);
        assert!(short.is_empty(), "the model itself");
    }
}
