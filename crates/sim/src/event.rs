//! The event queue and the one order of events.
//!
//! **Order** (engine rule 2): time, then kind (departures, arrivals, application writes, timers, pacing), then for
//! packets the link, for the rest host, flow and timer. It never depends on the order of insertion, so batches, lanes
//! and lazy modes give the same bytes. There is one pending event per link and kind, so the sequence of packets on a
//! link is the order of its ring, and one pending timer per endpoint, so the timer's kind is the endpoint's business.
//!
//! **Structure.** Two 4-ary heaps of 16-byte keys: links, which change with every packet, and everything else, which
//! hardly moves since timers are lazy. A key says whose event it is, so no payload is stored. A popped root leaves a hole
//! which the next push fills: a link that goes on to its next packet costs one sift, not two.

use fleetfoot_core::time::Instant;

/// What happens, in the order in which it happens at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventKind {
    /// A link finishes or starts serialising a packet.
    Departure = 0,
    /// The packet at the head of a link's wire reaches the other end.
    Arrival = 1,
    /// An application acts.
    App = 2,
    /// A deadline of an endpoint passes.
    Timer = 3,
    /// A paced endpoint may send again.
    Pacing = 4,
}

/// Place of an event in the total order: time, kind, place, number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey(u128);

impl EventKey {
    /// Place and number mean: link and 0 for packets; host and endpoint for timers; group and actor for applications.
    #[inline]
    pub const fn new(at: Instant, kind: EventKind, place: u32, number: u32) -> EventKey {
        debug_assert!(place < 1 << PLACE_BITS);
        EventKey(
            (at.as_nanos() as u128) << 64
                | (kind as u128) << (32 + PLACE_BITS)
                | (place as u128) << 32
                | number as u128,
        )
    }

    /// When.
    #[inline]
    pub const fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }

    /// What.
    #[inline]
    pub const fn kind(self) -> EventKind {
        match (self.0 >> (32 + PLACE_BITS)) as u8 & 7 {
            0 => EventKind::Departure,
            1 => EventKind::Arrival,
            2 => EventKind::App,
            3 => EventKind::Timer,
            _ => EventKind::Pacing,
        }
    }

    /// Link, host or group.
    #[inline]
    pub const fn place(self) -> u32 {
        (self.0 >> 32) as u32 & ((1 << PLACE_BITS) - 1)
    }

    /// Endpoint or actor.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0 as u32
    }
}

impl std::fmt::Debug for EventKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:?} {:?} at {}, {}",
            self.at(),
            self.kind(),
            self.place(),
            self.number()
        )
    }
}

/// Pending events.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    packets: Heap,
    others: Heap,
}

impl EventQueue {
    /// Adds an event.
    #[inline]
    pub fn push(&mut self, key: EventKey) {
        if key.kind() <= EventKind::Arrival {
            self.packets.push(key.0);
        } else {
            self.others.push(key.0);
        }
    }

    /// Takes the next event if it is not later than `end`.
    #[inline]
    pub fn pop_until(&mut self, end: Instant) -> Option<EventKey> {
        let bound = u128::from(end.as_nanos()) << 64 | u128::from(u64::MAX);
        let packet = self.packets.peek();
        let other = self.others.peek();
        if packet <= other {
            (packet <= bound && packet != EMPTY).then(|| {
                self.packets.pop();
                EventKey(packet)
            })
        } else {
            (other <= bound).then(|| {
                self.others.pop();
                EventKey(other)
            })
        }
    }

    /// Events pending, stale ones included.
    pub fn len(&self) -> usize {
        self.packets.len() + self.others.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A 4-ary heap whose popped root is filled by the next push.
#[derive(Clone, Debug, Default)]
struct Heap {
    keys: Vec<u128>,
    /// The root has been taken and not replaced.
    hole: bool,
}

impl Heap {
    #[inline]
    fn push(&mut self, key: u128) {
        if self.hole {
            self.hole = false;
            self.sift_down(key);
            return;
        }
        let mut index = self.keys.len();
        self.keys.push(key);
        while index > 0 {
            let parent = (index - 1) / 4;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[index] = self.keys[parent];
            index = parent;
        }
        self.keys[index] = key;
    }

    /// The smallest key, [`EMPTY`] without any.
    #[inline]
    fn peek(&mut self) -> u128 {
        if self.hole {
            self.hole = false;
            if let Some(last) = self.keys.pop()
                && !self.keys.is_empty()
            {
                self.sift_down(last);
            }
        }
        self.keys.first().copied().unwrap_or(EMPTY)
    }

    /// Takes the root that `peek` has shown.
    #[inline]
    fn pop(&mut self) {
        self.hole = true;
    }

    /// Writes `key` at the root and moves it down to its place.
    #[inline]
    fn sift_down(&mut self, key: u128) {
        let keys = self.keys.as_mut_slice();
        let mut index = 0;
        loop {
            let first = 4 * index + 1;
            let (mut least, mut child) = (key, index);
            if let Some(four) = keys.get(first..first + 4) {
                for (offset, &candidate) in four.iter().enumerate() {
                    if candidate < least {
                        (least, child) = (candidate, first + offset);
                    }
                }
            } else {
                for (offset, &candidate) in keys.get(first..).unwrap_or(&[]).iter().enumerate() {
                    if candidate < least {
                        (least, child) = (candidate, first + offset);
                    }
                }
            }
            if child == index {
                break;
            }
            keys[index] = least;
            index = child;
        }
        keys[index] = key;
    }

    fn len(&self) -> usize {
        self.keys.len() - usize::from(self.hole)
    }
}

/// Later than every event.
const EMPTY: u128 = u128::MAX;

/// Bits of a place: 512 million links or hosts.
const PLACE_BITS: u32 = 29;

#[cfg(test)]
mod tests {
    use super::{EventKey, EventKind, EventQueue};
    use fleetfoot_core::rng::Rng;
    use fleetfoot_core::time::Instant;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::collections::BTreeSet;

    #[test]
    fn a_key_says_what_it_was_made_of() {
        let key = EventKey::new(
            Instant::from_nanos(u64::MAX - 1),
            EventKind::Pacing,
            (1 << 29) - 1,
            u32::MAX,
        );
        assert_eq!(key.at(), Instant::from_nanos(u64::MAX - 1));
        assert_eq!(
            (key.kind(), key.place(), key.number()),
            (EventKind::Pacing, (1 << 29) - 1, u32::MAX)
        );
    }

    #[test]
    fn one_moment_is_ordered_by_kind_then_place_then_number() {
        let at = Instant::from_millis(5);
        let ordered = [
            EventKey::new(at, EventKind::Departure, 9, 0),
            EventKey::new(at, EventKind::Arrival, 3, 0),
            EventKey::new(at, EventKind::Arrival, 4, 0),
            EventKey::new(at, EventKind::App, 0, 7),
            EventKey::new(at, EventKind::Timer, 1, 2),
            EventKey::new(at, EventKind::Timer, 2, 1),
            EventKey::new(at, EventKind::Pacing, 0, 0),
            EventKey::new(
                at + fleetfoot_core::time::Duration::from_nanos(1),
                EventKind::Departure,
                0,
                0,
            ),
        ];
        for rotation in 0..ordered.len() {
            let mut queue = EventQueue::default();
            for index in 0..ordered.len() {
                queue.push(ordered[(index * 3 + rotation) % ordered.len()]);
            }
            let popped: Vec<_> = std::iter::from_fn(|| queue.pop_until(Instant::FAR_FUTURE)).collect();
            assert_eq!(popped, ordered);
        }
    }

    #[test]
    fn nothing_later_than_the_end_comes_out() {
        let mut queue = EventQueue::default();
        queue.push(EventKey::new(Instant::from_millis(2), EventKind::Timer, 0, 0));
        queue.push(EventKey::new(Instant::from_millis(3), EventKind::Arrival, 0, 0));
        assert!(queue.pop_until(Instant::from_millis(1)).is_none());
        assert!(queue.pop_until(Instant::from_millis(2)).is_some());
        assert!(queue.pop_until(Instant::from_nanos(2_999_999)).is_none());
        assert_eq!(queue.len(), 1);
    }

    proptest! {
        #[test]
        fn pops_agree_with_an_ordered_set(seed in any::<u64>()) {
            let mut rng = Rng::from_seed(seed);
            let (mut queue, mut oracle) = (EventQueue::default(), BTreeSet::new());
            for _ in 0..2000 {
                if rng.below(5) < 3 {
                    let kind = [EventKind::Departure, EventKind::Arrival, EventKind::App, EventKind::Timer][rng.below(4) as usize];
                    let key = EventKey::new(Instant::from_nanos(rng.below(300)), kind, rng.below(40) as u32, rng.below(9) as u32);
                    if oracle.insert(key) {
                        queue.push(key);
                    }
                } else {
                    prop_assert_eq!(queue.pop_until(Instant::FAR_FUTURE), oracle.pop_first());
                }
                prop_assert_eq!(queue.len(), oracle.len());
            }
        }
    }
}
