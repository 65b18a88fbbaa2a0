//! A tap on the link: what enters, leaves or is dropped, for an observer in a thread of its own.
//!
//! Nothing is allocated and nobody is waited for where packets pass: a record is copied into a ring whose memory is there from
//! the start. When the ring is full, because the observer is slower than the link, the record is lost and counted.

use crate::{Clock, Refusal};
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Bytes of a frame that a tap keeps: the headers of all that is analysed.
pub const SNAP_LENGTH: usize = 128;

/// Records that wait at most for an observer that looks every few milliseconds.
pub const RING: usize = 1 << 16;

/// What happened to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The frame arrived at the queue.
    Entered,
    /// The frame was handed to the interface at the other end.
    Left {
        /// Time in the queue.
        waited: Duration,
        /// How much later than the described link this machine was.
        late: Duration,
    },
    /// The link or its queue dropped the frame.
    Dropped(DropReason),
    /// The interface at the other end did not take the frame.
    Refused(Refusal),
}

/// A frame at a place and time.
#[derive(Clone, Copy, Debug)]
pub struct Tapped {
    /// When, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// When, by the clock of the link: of a frame that arrived, the time that the queue was given.
    pub at: Instant,
    /// What happened.
    pub event: Event,
    /// Which direction of the link it was in.
    pub direction: u8,
    /// Bytes that are kept.
    pub kept: u8,
    /// Length of the frame in bytes, link-layer header included.
    pub length: u32,
    /// The first bytes of the frame.
    pub bytes: [u8; SNAP_LENGTH],
}

impl Tapped {
    /// What was kept of the frame.
    pub fn frame(&self) -> &[u8] {
        &self.bytes[..usize::from(self.kept)]
    }
}

/// The end of a tap at the link.
#[derive(Debug)]
pub struct Tap {
    ring: SyncSender<Tapped>,
    lost: Arc<AtomicU64>,
    direction: u8,
    /// Zero of the link's clock, in nanoseconds since 1970.
    zero_ns: u64,
}

/// The observer's end of a tap on both directions.
#[derive(Debug)]
pub struct TapReader {
    ring: Receiver<Tapped>,
    lost: Arc<AtomicU64>,
}

/// A tap for both directions of a link, with a ring of `capacity` records.
pub fn tap(capacity: usize) -> ([Tap; 2], TapReader) {
    let (sender, ring) = sync_channel(capacity);
    let lost = Arc::new(AtomicU64::new(0));
    let taps = [0, 1].map(|direction| Tap {
        ring: sender.clone(),
        lost: Arc::clone(&lost),
        direction,
        zero_ns: 0,
    });
    (taps, TapReader { ring, lost })
}

impl Tap {
    /// The link begins, with this clock.
    pub(crate) fn start(&mut self, clock: &Clock) {
        self.zero_ns = clock.zero_unix_ns();
    }

    /// Reports a frame.
    pub(crate) fn report(&self, at: Instant, event: Event, frame: &[u8]) {
        let kept = frame.len().min(SNAP_LENGTH);
        let mut bytes = [0; SNAP_LENGTH];
        bytes[..kept].copy_from_slice(&frame[..kept]);
        let tapped = Tapped {
            unix_ns: self.zero_ns + at.since(Instant::ZERO).as_nanos(),
            at,
            event,
            direction: self.direction,
            kept: kept as u8,
            length: frame.len() as u32,
            bytes,
        };
        if self.ring.try_send(tapped).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl TapReader {
    /// The next record, if there is one. Nothing is waited for: a waiting reader would have to be woken by the link.
    pub fn next(&self) -> Option<Tapped> {
        self.ring.try_recv().ok()
    }

    /// Records that were lost because the ring was full.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, SNAP_LENGTH, tap};
    use crate::Refusal;
    use fleetfoot_core::time::Instant;

    #[test]
    fn what_does_not_fit_is_counted() {
        let ([there, back], reader) = tap(2);
        let frame = [7; 2000];
        there.report(Instant::ZERO, Event::Entered, &frame[..60]);
        back.report(Instant::ZERO, Event::Refused(Refusal::ALL[0]), &frame);
        there.report(Instant::ZERO, Event::Entered, &frame);
        assert_eq!(reader.lost(), 1);
        let first = reader.next().expect("it is in the ring");
        assert_eq!((first.direction, first.length, first.frame().len()), (0, 60, 60));
        let second = reader.next().expect("it is in the ring");
        assert_eq!(
            (second.direction, second.length, second.frame().len()),
            (1, 2000, SNAP_LENGTH)
        );
        assert!(reader.next().is_none());
    }
}
