//! The event queue and the one order of events.
//!
//! **Order** (docs/design/engine.md#order): time, then kind (departures, arrivals, application writes, timers, pacing,
//! interrupts, delayed packets), then for packets the link, for interrupts the interface, for applications group and actor, for
//! delayed packets group and recorded connection, for timers the connection, by the order of creation (which says
//! the host and is never used again, unlike flow ids), and its end. It never depends on the order of insertion, so
//! batches, FIFO links and lazy modes give the same bytes. There is one pending event per link and kind, so the sequence of
//! packets on a link is the order of its ring; one per actor; and one timer per endpoint, so the timer's kind is the
//! endpoint's business. Each of them remembers the time of its event, and an event at another time is stale. So two equal
//! keys are an event and what a deadline that moved away and back has left behind: the first acts, the second does not.
//!
//! **Structure.** A list in order or a tournament over the links, each of which has at most one pending arrival (or, kept by the network
//! where there are many links, a calendar of all arrivals over FIFO links), and 4-ary
//! heaps of 16-byte keys for applications and for everything else, which hardly move since timers are lazy. A key says whose event it
//! is, so no payload is stored.

use arrivals::Arrivals;
pub use arrivals::Feeders;
pub(crate) use calendar::{Calendar, Dated};
use fleetfoot_core::time::Instant;

mod arrivals;
mod calendar;

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
    /// A host's interface hands up what arrived.
    Interrupt = 5,
    /// A packet of a replayed connection has taken the time that is its own.
    Delayed = 6,
}

/// Place of an event in the total order: time, kind, place, number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey(u128);

impl EventKey {
    /// Place and number mean: link and 0 for packets; group and actor for applications; interface and 0 for interrupts;
    /// group and end of a recorded connection for delayed packets.
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

    /// A timer of an endpoint of the connection that was the `created`th.
    #[inline]
    pub const fn timer(at: Instant, created: u32, endpoint: u32) -> EventKey {
        debug_assert!(endpoint < 1 << ENDPOINT_BITS);
        EventKey(
            (at.as_nanos() as u128) << 64
                | (EventKind::Timer as u128) << (32 + PLACE_BITS)
                | (created as u128) << ENDPOINT_BITS
                | endpoint as u128,
        )
    }

    /// Number of the connection and its end, of a timer.
    #[inline]
    pub const fn endpoint(self) -> (u32, u32) {
        (
            (self.0 >> ENDPOINT_BITS) as u32,
            self.0 as u32 & ((1 << ENDPOINT_BITS) - 1),
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
            4 => EventKind::Pacing,
            5 => EventKind::Interrupt,
            _ => EventKind::Delayed,
        }
    }

    /// Link or group.
    #[inline]
    pub const fn place(self) -> u32 {
        (self.0 >> 32) as u32 & ((1 << PLACE_BITS) - 1)
    }

    /// Actor.
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
#[derive(Clone, Debug)]
pub struct EventQueue {
    arrivals: Arrivals,
    apps: Heap,
    others: Heap,
    /// The smallest key in both heaps, [`EMPTY`] without any.
    first_other: u128,
    /// An arrival before this, as [`Arrivals`] writes it, is the next event.
    arrivals_until: u64,
    /// What `arrivals_until` was made with.
    end: Instant,
    /// The time of the first of `apps`.
    next_app: Instant,
}

impl EventQueue {
    /// An empty queue for so many links.
    pub fn new(links: usize) -> EventQueue {
        EventQueue {
            arrivals: Arrivals::new(links),
            apps: Heap::default(),
            others: Heap::default(),
            first_other: EMPTY,
            arrivals_until: 0,
            end: Instant::ZERO,
            next_app: Instant::FAR_FUTURE,
        }
    }

    /// The latest time at which an arrival at one of so many links differs from "never".
    pub fn longest(links: usize) -> Instant {
        Instant::from_nanos((u64::MAX >> Arrivals::link_bits(links).max(2)) - 1)
    }

    /// Adds an event that is not an arrival.
    #[inline]
    pub fn push(&mut self, key: EventKey) {
        debug_assert!(key.kind() != EventKind::Arrival, "arrivals are set per link");
        match key.kind() {
            EventKind::App => {
                self.apps.push(key.0);
                self.next_app = self.next_app.min(key.at());
            }
            EventKind::Departure
            | EventKind::Arrival
            | EventKind::Timer
            | EventKind::Pacing
            | EventKind::Interrupt
            | EventKind::Delayed => {
                self.others.push(key.0);
            }
        }
        if key.0 < self.first_other {
            self.first_other = key.0;
            self.limit_arrivals(self.end);
        }
    }

    /// Moves the arrival event of a link; what is later than [`EventQueue::longest`] never comes.
    #[inline(always)]
    pub fn set_arrival(&mut self, link: u32, at: Instant) {
        self.arrivals.set(link, at.as_nanos());
    }

    /// Moves the first arrival, which is at this link; it is in no group.
    #[inline(always)]
    pub fn move_first_arrival(&mut self, link: u32, at: Instant) {
        self.arrivals.move_first(link, at.as_nanos());
    }

    /// Joins the links of each group, before anything arrives.
    pub fn join(&mut self, groups: &[Vec<u32>]) {
        self.arrivals.join(groups);
    }

    /// The group of a link.
    #[inline(always)]
    pub fn group(&self, link: u32) -> Option<u32> {
        self.arrivals.group(link)
    }

    /// Takes a group out, so that its arrivals may be taken one after the other; what is pending does not include them
    /// until it comes back.
    #[inline]
    pub fn take_out(&mut self, group: u32) -> Option<Box<Feeders>> {
        self.arrivals.take_out(group)
    }

    /// Puts it back.
    #[inline]
    pub fn put_back(&mut self, group: u32, feeders: Box<Feeders>) {
        self.arrivals.put_back(group, feeders);
    }

    /// The first arrival, as a number in the order of arrivals, and its time; `FAR_FUTURE` without any.
    #[inline]
    pub fn first_arrival(&self) -> (u64, Instant) {
        let first = self.arrivals.first();
        if first == u64::MAX {
            return (first, Instant::FAR_FUTURE);
        }
        (first, self.arrivals.read(first).1)
    }

    /// A moment as a number in the order of arrivals.
    #[inline]
    pub fn before(&self, at: Instant) -> u64 {
        self.arrivals.write(0, at.as_nanos())
    }

    /// An arrival as a number in the order of arrivals; `None`: it is later than [`EventQueue::longest`] and never comes.
    #[inline(always)]
    pub fn number(&self, link: u32, at: Instant) -> Option<u64> {
        let number = self.arrivals.write(link, at.as_nanos());
        (number != u64::MAX).then_some(number)
    }

    /// The link and the time of an arrival.
    #[inline(always)]
    pub fn arrival(&self, number: u64) -> (u32, Instant) {
        self.arrivals.read(number)
    }

    /// Bits of such a number that name the link.
    pub(crate) fn link_bits(&self) -> u32 {
        self.arrivals.bits()
    }

    /// Arrivals before this number come before every other event and not after the end that was set last.
    #[inline(always)]
    pub fn arrivals_are_next(&self) -> u64 {
        self.arrivals_until
    }

    /// Nothing arrives over a link.
    #[cold]
    #[inline(never)]
    pub fn forget_arrival(&mut self, link: u32) {
        self.set_arrival(link, Instant::FAR_FUTURE);
    }

    /// When an application acts next; `FAR_FUTURE`: none will.
    #[inline]
    pub fn next_app(&self) -> Instant {
        self.next_app
    }

    /// The next event if it is an arrival not later than the end that [`EventQueue::pop_until`] was given last: the link and
    /// the time. It stays until [`EventQueue::set_arrival`] moves it.
    #[inline(always)]
    pub fn next_arrival(&self) -> Option<(u32, Instant)> {
        let first = self.arrivals.first();
        (first < self.arrivals_until).then(|| self.arrivals.read(first))
    }

    /// How [`EventQueue::arrival_before`] reports arrivals before `limit` that are the next event, as long as
    /// nothing but arrivals is added.
    #[inline]
    pub fn arrivals_until(&self, limit: Instant) -> u64 {
        self.arrivals_until.min(self.arrivals.write(0, limit.as_nanos()))
    }

    /// The first arrival if it is before this.
    #[inline(always)]
    pub fn arrival_before(&self, until: u64) -> Option<(u32, Instant)> {
        let first = self.arrivals.first();
        (first < until).then(|| self.arrivals.read(first))
    }

    /// Whether there are many links.
    #[inline(always)]
    pub fn is_large(&self) -> bool {
        self.arrivals.is_large()
    }

    /// The next event if it is not later than `end`. An arrival stays until [`EventQueue::set_arrival`] moves it; all
    /// others are taken.
    pub fn pop_until(&mut self, end: Instant) -> Option<EventKey> {
        self.limit(end);
        if let Some((link, at)) = self.next_arrival() {
            return Some(EventKey::new(at, EventKind::Arrival, link, 0));
        }
        let key = self.next_other()?;
        if key.at() > end {
            return None;
        }
        self.pop_other();
        Some(key)
    }

    /// The first event that is no arrival.
    #[inline]
    pub fn next_other(&self) -> Option<EventKey> {
        (self.first_other != EMPTY).then_some(EventKey(self.first_other))
    }

    /// Takes the first event that is no arrival.
    pub fn pop_other(&mut self) {
        if self.apps.first() == self.first_other {
            self.apps.pop();
            self.next_app = EventKey(self.apps.first()).at();
        } else {
            self.others.pop();
        }
        self.first_other = self.apps.first().min(self.others.first());
        self.limit_arrivals(self.end);
    }

    /// Takes the first event that is no arrival if it comes before `key`.
    #[inline]
    pub fn pop_other_before(&mut self, key: EventKey) -> Option<EventKey> {
        let first = EventKey(self.first_other);
        if first >= key {
            return None;
        }
        self.pop_other();
        Some(first)
    }

    /// [`EventQueue::next_arrival`] reports arrivals not later than `end`.
    #[inline]
    pub fn limit(&mut self, end: Instant) {
        if end != self.end {
            self.limit_arrivals(end);
        }
    }

    /// Arrivals up to `end` come before the first other event if that is later, or at the same moment and no departure.
    fn limit_arrivals(&mut self, end: Instant) {
        self.end = end;
        let other = EventKey(self.first_other);
        let equal = u64::from(other.kind() != EventKind::Departure);
        let until = other
            .at()
            .as_nanos()
            .saturating_add(equal)
            .min(end.as_nanos().saturating_add(1));
        self.arrivals_until = self.arrivals.write(0, until);
    }

    /// Events pending, stale ones included.
    pub fn len(&self) -> usize {
        self.arrivals.len() + self.apps.len() + self.others.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A 4-ary heap.
#[derive(Clone, Debug, Default)]
struct Heap {
    keys: Vec<u128>,
}

impl Heap {
    fn push(&mut self, key: u128) {
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
    fn first(&self) -> u128 {
        self.keys.first().copied().unwrap_or(EMPTY)
    }

    /// Takes the smallest key. Room that many events needed and few use is given back: most flows may be idle.
    fn pop(&mut self) {
        if let Some(last) = self.keys.pop()
            && !self.keys.is_empty()
        {
            self.sift_down(last);
        }
        if self.keys.capacity() > MUCH_ROOM.max(4 * self.keys.len()) {
            self.keys.shrink_to(2 * self.keys.len());
        }
    }

    /// Writes `key` at the root and moves it down to its place.
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
        self.keys.len()
    }
}

/// Keys that a heap may always have room for.
const MUCH_ROOM: usize = 4096;

/// Later than every event.
const EMPTY: u128 = u128::MAX;

/// Bits of a place: 512 million links or groups.
const PLACE_BITS: u32 = 29;

/// Bits of an endpoint: 256 million connections at a time.
const ENDPOINT_BITS: u32 = 29;

#[cfg(test)]
mod tests {
    use super::{EventKey, EventKind, EventQueue};
    use fleetfoot_core::rng::Rng;
    use fleetfoot_core::time::{Duration, Instant};
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
        let key = EventKey::timer(Instant::from_nanos(7), u32::MAX, (1 << 29) - 1);
        assert_eq!((key.at(), key.kind()), (Instant::from_nanos(7), EventKind::Timer));
        assert_eq!(key.endpoint(), (u32::MAX, (1 << 29) - 1));
    }

    fn add(queue: &mut EventQueue, key: EventKey) {
        if key.kind() == EventKind::Arrival {
            queue.set_arrival(key.place(), key.at());
        } else {
            queue.push(key);
        }
    }

    fn take(queue: &mut EventQueue, end: Instant) -> Option<EventKey> {
        let key = queue.pop_until(end)?;
        if key.kind() == EventKind::Arrival {
            queue.set_arrival(key.place(), Instant::FAR_FUTURE);
        }
        Some(key)
    }

    #[test]
    fn one_moment_is_ordered_by_kind_then_place_then_number() {
        let at = Instant::from_millis(5);
        let ordered = [
            EventKey::new(at, EventKind::Departure, 9, 0),
            EventKey::new(at, EventKind::Arrival, 3, 0),
            EventKey::new(at, EventKind::Arrival, 4, 0),
            EventKey::new(at, EventKind::App, 0, 7),
            EventKey::timer(at, 1, 8),
            EventKey::timer(at, 2, 4),
            EventKey::timer(at, 2, 5),
            EventKey::new(at, EventKind::Pacing, 0, 0),
            EventKey::new(at + Duration::from_nanos(1), EventKind::Departure, 0, 0),
        ];
        for rotation in 0..ordered.len() {
            let mut queue = EventQueue::new(10);
            for index in 0..ordered.len() {
                add(&mut queue, ordered[(index * 2 + rotation) % ordered.len()]);
            }
            let popped: Vec<_> = std::iter::from_fn(|| take(&mut queue, Instant::FAR_FUTURE)).collect();
            assert_eq!(popped, ordered);
        }
    }

    #[test]
    fn nothing_later_than_the_end_comes_out() {
        let mut queue = EventQueue::new(1);
        queue.push(EventKey::new(Instant::from_millis(2), EventKind::Timer, 0, 0));
        queue.set_arrival(0, Instant::from_millis(3));
        assert!(queue.pop_until(Instant::from_millis(1)).is_none());
        assert!(queue.pop_until(Instant::from_millis(2)).is_some());
        assert!(queue.pop_until(Instant::from_nanos(2_999_999)).is_none());
        assert_eq!(queue.len(), 1);
    }

    proptest! {
        #[test]
        fn pops_agree_with_an_ordered_set(seed in any::<u64>()) {
            let mut rng = Rng::from_seed(seed);
            let links = 1 + rng.below(80);
            let (mut queue, mut oracle) = (EventQueue::new(links as usize), BTreeSet::new());
            let mut groups = vec![Vec::new(); rng.below(4) as usize];
            for link in 0..links as u32 {
                if let Some(group) = groups.get_mut(rng.below(5) as usize) {
                    group.push(link);
                }
            }
            queue.join(&groups);
            let (span, steps) = (300 + rng.below(3000), rng.below(2) == 0);
            for _ in 0..2000 {
                if rng.below(5) < 3 {
                    let kind = [EventKind::Departure, EventKind::Arrival, EventKind::App, EventKind::Timer][rng.below(4) as usize];
                    let arrival = kind == EventKind::Arrival;
                    let (place, number) = (rng.below(links) as u32, if arrival { 0 } else { rng.below(9) as u32 });
                    let key = EventKey::new(Instant::from_nanos(rng.below(span)), kind, place, number);
                    if arrival {
                        oracle.retain(|old: &EventKey| old.kind() != EventKind::Arrival || old.place() != place);
                    }
                    if oracle.insert(key) {
                        add(&mut queue, key);
                    }
                } else {
                    let key = oracle.pop_first();
                    if let Some(key) = key && steps && key.kind() == EventKind::Arrival {
                        // A link that has its next arrival at once.
                        prop_assert_eq!(queue.pop_until(Instant::FAR_FUTURE), Some(key));
                        let most = if rng.below(9) == 0 { span } else { 50 };
                        let next = key.at() + Duration::from_nanos(1 + rng.below(most));
                        // It may have none, and what was taken may be put back.
                        let (ends, back) = (rng.below(4) == 0, rng.below(3) == 0);
                        let mut then = Some(next);
                        if let Some(group) = queue.group(key.place()) {
                            let mut feeders = queue.take_out(group).expect("it is there");
                            prop_assert_eq!(feeders.read(feeders.first()), (key.place(), key.at()));
                            let mut taken = [0; 4];
                            let most = 1 + rng.below(4) as usize;
                            let until = 1 + feeders.first();
                            let merged = feeders.merge(until, &mut taken[..most], |link, slot| {
                                *slot = link;
                                Some((!ends).then_some(next))
                            });
                            prop_assert_eq!((merged, taken[0]), (1, key.place()));
                            then = then.filter(|_| !ends);
                            if back {
                                feeders.set_first(key.place(), key.at());
                                then = Some(key.at());
                            }
                            queue.put_back(group, feeders);
                        } else {
                            queue.move_first_arrival(key.place(), next);
                        }
                        oracle.extend(then.map(|at| EventKey::new(at, EventKind::Arrival, key.place(), 0)));
                    } else {
                        prop_assert_eq!(take(&mut queue, Instant::FAR_FUTURE), key);
                    }
                }
                prop_assert_eq!(queue.len(), oracle.len());
            }
        }
    }
}
