//! What data waited in queues, by direction and by the side of the capture point on which they did.
//!
//! A round-trip time has the queues of both directions in it, and so has what a connection always found beyond the smallest round-trip
//! time between its hosts. Of the direction that most data took that is its own queue. The other one is measured by timestamps alone, which
//! tell the directions apart (to a millisecond, from the most punctual packet of the connection on); where there are none, nothing is said of it.

use super::counts::counted;
use crate::import::rate::AT_HOST;
use crate::import::summary::{Counted, Quantiles};
use fleetfoot_sim::output::Histogram;

/// Waits in nanoseconds: from the hosts that opened and to them, behind the capture point and before it.
type Table = [[Histogram; 2]; 2];

/// Where a wait was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// 0 from the hosts that opened, 1 to them.
    pub(super) direction: usize,
    /// 0 behind the capture point, 1 before it.
    pub(super) place: usize,
    /// Timestamps show that it is this direction's.
    pub(super) timed: bool,
}

/// All of them.
#[derive(Default)]
pub(super) struct Waits {
    all: Table,
    timed: Table,
    /// Of packets next to lost ones.
    at_loss: Table,
}

/// What is known of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    pub(super) waits: Option<Quantiles>,
    /// What hardly any data waited longer than (99.9th percentile).
    pub(super) most_s: Option<f64>,
    /// What packets next to lost ones waited.
    pub(super) at_loss: Option<Quantiles>,
    /// Waits that may be of either direction, and are therefore not in the others.
    either: u64,
}

impl Waits {
    /// A wait, and what the connection always found.
    pub(super) fn record(&mut self, at: At, waited_ns: u64, always_ns: u64) {
        self.all[at.direction][at.place].record(waited_ns + always_ns);
        if at.timed {
            self.timed[at.direction][at.place].record(waited_ns);
        }
    }

    /// The wait of a packet next to a lost one.
    pub(super) fn record_at_loss(&mut self, at: At, waited_ns: u64) {
        self.at_loss[at.direction][at.place].record(waited_ns);
    }

    /// The longest wait before the capture point; 0: unknown.
    pub(super) fn longest_before_ns(&self, direction: usize) -> u64 {
        let waits = &self.all[direction][1];
        match waits.n() {
            n if n >= LEAST_WAITS => waits.max(),
            _ => 0,
        }
    }

    /// What is known of a direction, by the bytes of both and the sums of the halves of round-trip times.
    pub(super) fn of(&self, direction: usize, bytes: [u64; 2], halves: [f64; 2]) -> Found {
        // Captured at the receiver: what waited behind that is none of the line.
        let behind = usize::from(halves[1 - direction] < AT_HOST * (halves[0] + halves[1]));
        // On one side of the capture point is the queue.
        let deepest = |table: &Table| {
            let places = (behind..2).filter(|place| table[direction][*place].n() >= LEAST_WAITS);
            places.max_by_key(|place| table[direction][*place].quantile(0.999))
        };
        let quiet = bytes[direction].saturating_mul(QUIET) < bytes[1 - direction];
        let timed = deepest(&self.timed).filter(|_| quiet);
        let table = if timed.is_some() { &self.timed } else { &self.all };
        let Some(place) = timed.or_else(|| deepest(table)) else {
            return Found::default();
        };
        let waits = &table[direction][place];
        if quiet && timed.is_none() && waits.quantile(0.99) > Some(SHORT_NS) {
            return Found {
                either: waits.n(),
                ..Found::default()
            };
        }
        let seconds = |histogram: &Histogram| Quantiles::of(histogram, 1e-9);
        Found {
            waits: seconds(waits),
            most_s: waits.quantile(0.999).map(|most| most as f64 * 1e-9),
            at_loss: seconds(&self.at_loss[direction][place]),
            either: 0,
        }
    }
}

/// Notes on directions of which nothing is said.
pub(super) fn notes(found: &[Found; 2]) -> impl Iterator<Item = Counted> {
    let either = found.iter().enumerate().filter(|(_, found)| found.either > 0);
    either.map(|(direction, found)| {
        let way = ["from them", "to them"][direction];
        counted(
            found.either,
            format!(
                "packet[s] {way} [were|was] acknowledged late, and without timestamps nothing shows in which direction the wait was: of the queue {way}, \
                 where less was sent, nothing is said"
            ),
        )
    })
}

/// Fewer waits say nothing of a queue.
const LEAST_WAITS: u64 = 100;
/// A direction with less than one byte for so many of the other is quiet.
pub(in crate::import) const QUIET: u64 = 4;
/// Waits up to this make no difference.
const SHORT_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::{At, Waits, notes};

    /// An upload whose queue all that comes back always finds, and which waits 2 ms itself.
    fn upload(timed: bool) -> Waits {
        let mut waits = Waits::default();
        for _ in 0..200 {
            for (direction, place, waited) in [(0, 0, 150), (1, 1, 2)] {
                let at = At {
                    direction,
                    place,
                    timed,
                };
                waits.record(at, waited * 1_000_000, 100_000_000);
            }
        }
        waits
    }

    #[test]
    fn the_quiet_direction_has_no_part_of_the_others_queue() {
        let bytes = [24_000_000, 1_500_000];
        let found = [0, 1].map(|direction| upload(true).of(direction, bytes, [0.0, 1.0]));
        let p90 = found.map(|found| found.waits.map_or(0.0, |waits| waits.p90));
        assert!(
            (p90[0] - 0.25).abs() < 0.01 && (p90[1] - 0.002).abs() < 0.0001,
            "{p90:?}"
        );
        assert_eq!(notes(&found).count(), 0);
    }

    #[test]
    fn without_timestamps_nothing_is_said_of_it() {
        let bytes = [24_000_000, 1_500_000];
        let found = [0, 1].map(|direction| upload(false).of(direction, bytes, [0.0, 1.0]));
        assert!(found[0].waits.is_some() && found[1].waits.is_none() && found[1].most_s.is_none());
        let note = notes(&found).next().expect("a note");
        assert!(
            note.count == 200 && note.what.contains("of the queue to them"),
            "{}",
            note.what
        );
    }
}
