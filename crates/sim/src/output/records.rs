//! The flow records of a group while it runs: 40 bytes for a flow without losses that took at most four seconds, about 50 more for
//! one with losses. What is left, as a stream of datagrams that is long, is kept as it is: it may change with each packet.

use super::{FlowRecord, Tally};
use fleetfoot_core::tcp::Stats;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use std::ops::{Deref, DerefMut};

/// Flow records, numbered in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct FlowRecords(Vec<Place>);

#[derive(Debug)]
enum Place {
    /// Without losses, all numbers small. Times are nanoseconds, `u32::MAX` for none.
    Short {
        start: Instant,
        pair: u32,
        bytes: u32,
        /// From the start.
        completed: u32,
        /// From the start.
        acked: u32,
        min_rtt: u32,
        bytes_sent: u32,
        ack_latency_sum: u32,
        segments_sent: u16,
        /// All bytes, or none.
        received: bool,
        /// All segments are in `ack_latency_sum`, or none.
        acknowledged: bool,
    },
    /// With losses, as [`written`] makes it.
    Lossy(Box<[u8]>),
    Long(Box<FlowRecord>),
}

/// A record that is being changed; it is stored again when this is dropped.
pub(crate) struct Edited<'a> {
    place: &'a mut Place,
    /// The record, unless its place is long.
    record: FlowRecord,
}

impl FlowRecords {
    pub(crate) const fn new() -> FlowRecords {
        FlowRecords(Vec::new())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a record. Its number.
    pub(crate) fn push(&mut self, record: FlowRecord) -> u32 {
        self.0.push(Place::of(record));
        (self.0.len() - 1) as u32
    }

    /// The record with this number, to be changed.
    pub(crate) fn edit(&mut self, number: u32) -> Edited<'_> {
        let place = &mut self.0[number as usize];
        let record = place.packed().unwrap_or_default();
        Edited { place, record }
    }

    /// All records in their order. Their memory is given back on the way.
    pub(crate) fn into_vec(mut self) -> Vec<FlowRecord> {
        let mut records = Vec::with_capacity(self.0.len());
        while let Some(place) = self.0.pop() {
            let packed = place.packed();
            records.push(match place {
                Place::Long(record) => *record,
                Place::Short { .. } | Place::Lossy(_) => packed.unwrap_or_default(),
            });
            if self.0.len().is_multiple_of(GIVEN_BACK) {
                self.0.shrink_to_fit();
            }
        }
        records.reverse();
        records
    }
}

impl Place {
    fn of(record: FlowRecord) -> Place {
        Place::short_of(&record).unwrap_or_else(|| match record.tally.with_losses {
            Some(_) => Place::Lossy(written(&record)),
            None => Place::Long(Box::new(record)),
        })
    }

    /// The short form of a record, if all of it fits.
    fn short_of(record: &FlowRecord) -> Option<Place> {
        let tally = &record.tally;
        let usual = record.given_up.is_none()
            && tally.with_losses.is_none()
            && record.ack_latency_sum.to_bits() == tally.ack_latency_sum.as_secs_f64().to_bits();
        let since_start = |at: Instant| at.as_nanos().checked_sub(record.start.as_nanos());
        usual.then_some(Place::Short {
            start: record.start,
            pair: record.pair,
            bytes: record.bytes.get().try_into().ok()?,
            completed: shorter(record.completed, since_start)?,
            acked: shorter(record.acked, since_start)?,
            min_rtt: shorter(record.min_rtt, |time| Some(time.as_nanos()))?,
            bytes_sent: tally.bytes_sent.try_into().ok()?,
            ack_latency_sum: tally.ack_latency_sum.as_nanos().try_into().ok()?,
            segments_sent: tally.segments_sent.try_into().ok()?,
            received: all_or_none(record.received.get(), record.bytes.get())?,
            acknowledged: all_or_none(u64::from(tally.ack_latency_count), u64::from(tally.segments_sent))?,
        })
    }

    /// The record, unless it is long.
    fn packed(&self) -> Option<FlowRecord> {
        let &Place::Short {
            start,
            pair,
            bytes,
            completed,
            acked,
            min_rtt,
            bytes_sent,
            ack_latency_sum,
            segments_sent,
            received,
            acknowledged,
        } = self
        else {
            return match self {
                Place::Lossy(bytes) => Some(read(bytes)),
                Place::Short { .. } | Place::Long(_) => None,
            };
        };
        let time = |nanos: u32| Duration::from_nanos(u64::from(nanos));
        let came = |nanos: u32| (nanos != u32::MAX).then(|| time(nanos));
        Some(FlowRecord {
            pair,
            bytes: Bytes(u64::from(bytes)),
            start,
            completed: came(completed).map(|later| start + later),
            acked: came(acked).map(|later| start + later),
            received: Bytes(if received { u64::from(bytes) } else { 0 }),
            min_rtt: came(min_rtt),
            ack_latency_sum: time(ack_latency_sum).as_secs_f64(),
            given_up: None,
            tally: Tally {
                bytes_sent: u64::from(bytes_sent),
                ack_latency_sum: time(ack_latency_sum),
                ack_latency_count: if acknowledged { u32::from(segments_sent) } else { 0 },
                segments_sent: u32::from(segments_sent),
                with_losses: None,
            },
        })
    }
}

/// A record as the numbers that are not zero: which they are, a bit for each, then each of them; all in seven bits a byte, the lowest
/// first.
fn written(record: &FlowRecord) -> Box<[u8]> {
    let since_start = |at: Option<Instant>| {
        let nanos = |at: Instant| at.as_nanos().wrapping_sub(record.start.as_nanos());
        at.map_or(0, |at| nanos(at).wrapping_add(1))
    };
    let stats = record.tally.stats();
    let [latency, counted] = [record.ack_latency_sum, stats.ack_latency_sum.as_secs_f64()];
    let head = [
        u64::from(record.pair),
        record.bytes.get(),
        record.start.as_nanos(),
        since_start(record.completed),
        since_start(record.acked),
        record.received.get(),
        record.min_rtt.map_or(0, |time| time.as_nanos().wrapping_add(1)),
        latency.to_bits() ^ counted.to_bits(),
        since_start(record.given_up.as_deref().copied()),
    ];
    let counters = Stats::COUNTERS.iter().map(|counter| (counter.value)(&stats));
    let numbers = head.into_iter().chain(counters);
    let mut present = 0_u64;
    for (place, number) in numbers.clone().enumerate() {
        present |= u64::from(number != 0) << place;
    }
    let mut bytes = Vec::with_capacity(64);
    for mut left in std::iter::once(present).chain(numbers.filter(|&number| number != 0)) {
        while left > 127 {
            bytes.push(left as u8 | 128);
            left >>= 7;
        }
        bytes.push(left as u8);
    }
    bytes.into()
}

/// The opposite of [`written`].
fn read(bytes: &[u8]) -> FlowRecord {
    let mut bytes = bytes.iter();
    let mut number = || {
        let mut number = 0;
        for (place, piece) in bytes.by_ref().enumerate() {
            number |= u64::from(piece & 127) << (7 * place);
            if piece & 128 == 0 {
                break;
            }
        }
        number
    };
    let mut present = number();
    let mut next = || {
        let is_there = present & 1 != 0;
        present >>= 1;
        if is_there { number() } else { 0 }
    };
    let pair = next() as u32;
    let bytes = Bytes(next());
    let start = Instant::from_nanos(next());
    let later = |number: u64| {
        let nanos = start.as_nanos().wrapping_add(number.wrapping_sub(1));
        (number != 0).then(|| Instant::from_nanos(nanos))
    };
    let [completed, acked] = [next(), next()].map(later);
    let received = Bytes(next());
    let min_rtt = next();
    let latency = next();
    let given_up = later(next()).map(Box::new);
    let stats = Stats::of_numbers(next);
    FlowRecord {
        pair,
        bytes,
        start,
        completed,
        acked,
        received,
        min_rtt: (min_rtt != 0).then(|| Duration::from_nanos(min_rtt.wrapping_sub(1))),
        ack_latency_sum: f64::from_bits(latency ^ stats.ack_latency_sum.as_secs_f64().to_bits()),
        given_up,
        tally: stats.into(),
    }
}

/// Whether it is all there is and not nothing, if it is one of these.
fn all_or_none(part: u64, all: u64) -> Option<bool> {
    (part == 0 || part == all).then_some(part != 0)
}

/// A time in nanoseconds, `u32::MAX` for none, if it is less than that.
fn shorter<T>(time: Option<T>, nanos: impl FnOnce(T) -> Option<u64>) -> Option<u32> {
    let Some(time) = time else {
        return Some(u32::MAX);
    };
    nanos(time)?.try_into().ok().filter(|&nanos| nanos != u32::MAX)
}

impl Deref for Edited<'_> {
    type Target = FlowRecord;

    fn deref(&self) -> &FlowRecord {
        match &*self.place {
            Place::Short { .. } | Place::Lossy(_) => &self.record,
            Place::Long(record) => record,
        }
    }
}

impl DerefMut for Edited<'_> {
    fn deref_mut(&mut self) -> &mut FlowRecord {
        match self.place {
            Place::Short { .. } | Place::Lossy(_) => &mut self.record,
            Place::Long(record) => record,
        }
    }
}

impl Drop for Edited<'_> {
    fn drop(&mut self) {
        match self.place {
            Place::Short { .. } | Place::Lossy(_) => {
                *self.place = Place::of(std::mem::take(&mut self.record));
            }
            Place::Long(_) => {}
        }
    }
}

/// After so many records their memory is given back when all are handed out.
const GIVEN_BACK: usize = 1 << 16;

const _: () = assert!(size_of::<Place>() == 40);

#[cfg(test)]
mod tests {
    use super::{FlowRecords, Place};
    use crate::output::FlowRecord;
    use fleetfoot_core::tcp::Stats;
    use fleetfoot_core::time::{Duration, Instant};
    use fleetfoot_core::units::Bytes;

    #[test]
    fn what_is_put_in_comes_out() {
        let at = |nanos| Instant::ZERO + Duration::from_nanos(nanos);
        let plain = FlowRecord {
            pair: 7,
            bytes: Bytes(3_000),
            start: at(5),
            ..FlowRecord::default()
        };
        let four_seconds = 5 + u64::from(u32::MAX);
        let latest = FlowRecord {
            completed: Some(at(four_seconds - 1)),
            acked: Some(at(5)),
            received: Bytes(3_000),
            min_rtt: Some(Duration::from_millis(10)),
            ..plain.clone()
        };
        let mut counted = latest.clone();
        counted.add(&Stats::without_losses(
            3_000,
            3,
            Duration::from_nanos(33_333_333),
            3,
        ));
        let mut twice = counted.clone();
        twice.add(&Stats::without_losses(1, 1, Duration::from_nanos(10_000_001), 1));
        let mut lossy = counted.clone();
        lossy.add(&Stats {
            retransmits: 1,
            ..Stats::default()
        });
        let too_late = FlowRecord {
            completed: Some(at(four_seconds)),
            ..plain.clone()
        };
        let early = FlowRecord {
            acked: Some(at(4)),
            ..plain.clone()
        };
        let given_up = FlowRecord {
            given_up: Some(Box::new(at(9))),
            ..plain.clone()
        };
        let large = FlowRecord {
            bytes: Bytes(1 << 32),
            ..plain.clone()
        };
        let mut all_numbers = (1..).map(|number: u64| number << (number % 60));
        let mut lossier = given_up.clone();
        lossier.add(&Stats::of_numbers(|| all_numbers.next().unwrap_or_default()));
        lossier.start = at(u64::MAX - 10);
        lossier.acked = Some(at(0));
        let mut lossy_and_large = large.clone();
        lossy_and_large.add(&Stats {
            timeouts: u32::MAX,
            ..Stats::default()
        });
        let in_part = FlowRecord {
            received: Bytes(1),
            ..latest.clone()
        };
        let mut unacknowledged = latest.clone();
        unacknowledged.add(&Stats::without_losses(
            3_000,
            3,
            Duration::from_nanos(33_333_333),
            2,
        ));
        let short = [plain, latest, counted];
        let long = [too_late, early, given_up, large, in_part, unacknowledged];
        let with_losses = [lossy, lossier, lossy_and_large];
        assert!(
            short
                .iter()
                .all(|record| matches!(Place::of(record.clone()), Place::Short { .. }))
        );
        assert!(
            long.iter()
                .all(|record| matches!(Place::of(record.clone()), Place::Long(_)))
        );
        assert!(
            with_losses
                .iter()
                .all(|record| matches!(Place::of(record.clone()), Place::Lossy(_)))
        );
        let all = short.into_iter().chain(long).chain(with_losses).chain([twice]);
        let all: Vec<FlowRecord> = all.collect();
        let mut records = FlowRecords::new();
        for (number, record) in all.iter().enumerate() {
            assert_eq!(records.push(FlowRecord::default()), number as u32);
            *records.edit(number as u32) = record.clone();
            assert_eq!(*records.edit(number as u32), *record);
        }
        assert_eq!(records.len(), all.len());
        assert_eq!(records.into_vec(), all);
    }
}
