//! What is on its way over many links, in one order: a calendar whose cost does not grow with their number.
//!
//! Entries of one span of time stand together in a bucket, in the order in which they came, and a bucket is sorted when its turn comes. Most of
//! what comes next to a bucket comes from a few places that each bring it in order, so a bucket is filled and read from front to end, and the
//! caches foresee it. This round and the next have buckets, so that what is on its way is mostly put into one at once, and there is
//! room for it once only. Entries beyond these wait by round, those beyond all rounds together. The span becomes shorter or longer when
//! buckets hold many or few.
//!
//! Equal entries (two packets that one link delivers at one moment) keep the order in which they came: they are always in the same place
//! together, and every step keeps the order within a place.

/// An entry: a number says its place in the order, as [`Arrivals`](super::arrivals::Arrivals) writes an arrival.
pub(crate) trait Dated: Copy {
    /// Time first, the link in the lowest bits.
    fn key(&self) -> u64;
}

/// Entries in order.
#[derive(Clone, Debug)]
pub(crate) struct Calendar<T> {
    /// The bucket in hand, in order; those before `next` have been taken.
    current: Vec<T>,
    next: usize,
    /// Its number: keys shifted by `shift`.
    turn: u64,
    /// The buckets of the round of `turn` and of the next one, those after `turn`.
    buckets: Vec<Vec<T>>,
    /// The first bucket after these.
    end: u64,
    /// A bit for each bucket that has entries.
    filled: Vec<u64>,
    /// The rounds from `end` on, up to the next multiple of their number.
    rounds: Vec<Vec<T>>,
    /// Which multiple it is.
    era: u64,
    /// What comes after those.
    far: Vec<T>,
    /// Empty lists with room, of buckets and of rounds.
    spare: Vec<Vec<T>>,
    spare_rounds: Vec<Vec<T>>,
    shift: u32,
    /// No bucket is shorter than the time of one nanosecond.
    least_shift: u32,
    len: usize,
    /// Buckets that were taken since the span was looked at, and the entries in them.
    taken: (u32, u32),
}

impl<T: Dated> Calendar<T> {
    /// Nothing. Keys have so many bits below the nanoseconds.
    pub(crate) fn new(link_bits: u32) -> Calendar<T> {
        Calendar {
            current: Vec::new(),
            next: 0,
            turn: 0,
            buckets: vec![Vec::new(); BUCKETS],
            end: BUCKETS as u64,
            filled: vec![0; BUCKETS / 64],
            rounds: vec![Vec::new(); ROUNDS],
            era: 0,
            far: Vec::new(),
            spare: Vec::new(),
            spare_rounds: Vec::new(),
            shift: link_bits + FIRST_SPAN_BITS,
            least_shift: link_bits,
            len: 0,
            taken: (0, 0),
        }
    }

    /// Adds an entry, which may not come before one that was taken.
    #[inline(always)]
    pub(crate) fn push(&mut self, entry: T) {
        let bucket = entry.key() >> self.shift;
        self.len += 1;
        if bucket > self.turn && bucket < self.end {
            let place = bucket as usize % BUCKETS;
            let list = &mut self.buckets[place];
            if !list.is_empty() {
                list.push(entry);
            } else {
                self.fill(place, entry);
            }
            return;
        }
        self.push_elsewhere(entry, bucket);
    }

    /// As `push`, into the bucket in hand, before it or beyond those that there are.
    #[inline(never)]
    fn push_elsewhere(&mut self, entry: T, bucket: u64) {
        if bucket < self.turn {
            self.turn_back(bucket);
        }
        if bucket == self.turn {
            let mut place = self.current.len();
            while place > self.next && self.current[place - 1].key() > entry.key() {
                place -= 1;
            }
            self.current.insert(place, entry);
            return;
        }
        let round = bucket / ROUND;
        if round / ROUNDS as u64 == self.era {
            self.keep(round, entry);
        } else {
            self.far.push(entry);
        }
    }

    /// Puts an entry into a round to come.
    fn keep(&mut self, round: u64, entry: T) {
        let list = &mut self.rounds[round as usize % ROUNDS];
        if list.capacity() == 0
            && let Some(spare) = self.spare_rounds.pop()
        {
            *list = spare;
        }
        list.push(entry);
    }

    /// The bucket in hand, which was looked at and not taken from, becomes one to come, and this one is in hand.
    #[cold]
    #[inline(never)]
    fn turn_back(&mut self, bucket: u64) {
        let place = self.turn as usize % BUCKETS;
        let mut rest = std::mem::take(&mut self.current);
        rest.drain(..self.next);
        self.next = 0;
        if !rest.is_empty() {
            self.filled[place / 64] |= 1 << (place % 64);
            self.buckets[place] = rest;
        }
        if bucket / ROUND == self.turn / ROUND {
            self.turn = bucket;
        } else {
            self.begin_anew(bucket, self.shift);
        }
    }

    /// The bucket in hand, of which nothing is left, is this one from now on, and buckets have this span.
    fn begin_anew(&mut self, turn: u64, shift: u32) {
        let len = self.len;
        let mut entries = Vec::with_capacity(len);
        for place in 0..BUCKETS / 64 {
            while let Some(bucket) = self.next_filled(64 * place, 64 * place + 64) {
                self.filled[place] &= !(1 << (bucket % 64));
                entries.append(&mut self.buckets[bucket]);
            }
        }
        for list in &mut self.rounds {
            entries.append(list);
        }
        entries.append(&mut self.far);
        self.turn = turn;
        self.shift = shift;
        self.end = (turn / ROUND + 2) * ROUND;
        self.era = (turn / ROUND + 1) / ROUNDS as u64;
        for entry in entries {
            self.push(entry);
        }
        self.len = len;
    }

    /// The first entry's key; `u64::MAX` without any.
    #[inline(always)]
    pub(crate) fn first(&mut self) -> u64 {
        if let Some(entry) = self.current.get(self.next) {
            return entry.key();
        }
        self.turn_over();
        self.current.first().map_or(u64::MAX, Dated::key)
    }

    /// Takes the first entry if it comes before `until`.
    #[inline(always)]
    pub(crate) fn take_before(&mut self, until: u64) -> Option<T> {
        if self.next >= self.current.len() {
            self.turn_over();
        }
        let entry = *self.current.get(self.next)?;
        if entry.key() >= until {
            return None;
        }
        self.next += 1;
        self.len -= 1;
        Some(entry)
    }

    /// Entries that come next, in order, as many as are known to be.
    #[inline(always)]
    pub(crate) fn soon(&self) -> &[T] {
        self.current.get(self.next..).unwrap_or(&[])
    }

    /// All entries, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let lists = self.buckets.iter().chain(&self.rounds).flatten();
        self.soon().iter().chain(lists).chain(&self.far)
    }

    /// Goes on to the next bucket that has entries, if there is one.
    #[inline(never)]
    fn turn_over(&mut self) {
        self.current.clear();
        self.next = 0;
        if self.len == 0 {
            return;
        }
        if self.taken.0 == LOOK_AFTER {
            self.fit_span();
            if !self.current.is_empty() {
                return;
            }
        }
        let place = loop {
            if let Some(place) = self.next_bucket() {
                break place;
            }
            self.go_to_round(self.next_round());
        };
        self.filled[place / 64] &= !(1 << (place % 64));
        let bucket = std::mem::take(&mut self.buckets[place]);
        let empty = std::mem::replace(&mut self.current, bucket);
        if self.spare.len() < MOST_SPARE {
            self.spare.push(empty);
        }
        sort(&mut self.current);
        self.taken.0 += 1;
        self.taken.1 = self.taken.1.saturating_add(self.current.len() as u32);
    }

    /// The place of the first bucket that has entries, which is in hand from now on.
    fn next_bucket(&mut self) -> Option<usize> {
        let from = self.turn as usize % BUCKETS;
        let half = from - from % ROUND as usize;
        if let Some(place) = self.next_filled(from, half + ROUND as usize) {
            self.turn += (place - from) as u64;
            return Some(place);
        }
        let half = (half + ROUND as usize) % BUCKETS;
        let place = self.next_filled(half, half + ROUND as usize)?;
        self.go_to_round(self.turn / ROUND + 1);
        self.turn += (place - half) as u64;
        Some(place)
    }

    /// The next round that has entries; there is one, and no bucket has any.
    fn next_round(&self) -> u64 {
        let first = self.end / ROUND;
        let waiting = if first / ROUNDS as u64 == self.era {
            &self.rounds[first as usize % ROUNDS..]
        } else {
            &[]
        };
        if let Some(next) = waiting.iter().position(|entries| !entries.is_empty()) {
            return first + next as u64;
        }
        let bucket = |entry: &T| entry.key() >> self.shift;
        let first = self.far.iter().map(bucket).min();
        debug_assert!(first.is_some(), "there is an entry");
        first.unwrap_or(self.turn) / ROUND
    }

    /// Nothing is left before the first bucket of a round, which is next; no round between those that have buckets and this one has
    /// entries.
    fn go_to_round(&mut self, round: u64) {
        let first = (self.end / ROUND).max(round);
        self.turn = round * ROUND;
        self.end = (round + 2) * ROUND;
        for opened in first..round + 2 {
            self.open_round(opened);
        }
    }

    /// Spreads the entries of a round, which has buckets from now on.
    fn open_round(&mut self, round: u64) {
        let era = round / ROUNDS as u64;
        if era != self.era {
            self.era = era;
            let far = std::mem::take(&mut self.far);
            for entry in far {
                let other = (entry.key() >> self.shift) / ROUND;
                if other / ROUNDS as u64 == era {
                    self.keep(other, entry);
                } else {
                    self.far.push(entry);
                }
            }
        }
        let mut entries = std::mem::take(&mut self.rounds[round as usize % ROUNDS]);
        for &entry in &entries {
            self.fill((entry.key() >> self.shift) as usize % BUCKETS, entry);
        }
        entries.clear();
        if self.spare_rounds.len() < MOST_SPARE_ROUNDS {
            self.spare_rounds.push(entries);
        }
    }

    /// Puts an entry into a bucket that may be empty.
    #[inline(never)]
    fn fill(&mut self, place: usize, entry: T) {
        self.filled[place / 64] |= 1 << (place % 64);
        let list = &mut self.buckets[place];
        if list.capacity() == 0
            && let Some(spare) = self.spare.pop()
        {
            *list = spare;
        }
        list.push(entry);
    }

    /// The first bucket from one place on and before another that has entries.
    fn next_filled(&self, from: usize, to: usize) -> Option<usize> {
        let mut bits = u64::MAX << (from % 64);
        for (word, filled) in (from / 64..to / 64).zip(&self.filled[from / 64..]) {
            bits &= filled;
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            bits = u64::MAX;
        }
        None
    }

    /// Makes the span of a bucket shorter if buckets hold many entries, longer if they hold few.
    #[cold]
    #[inline(never)]
    fn fit_span(&mut self) {
        let (buckets, entries) = std::mem::take(&mut self.taken);
        let shift = if entries > MANY * buckets {
            self.shift.saturating_sub(1).max(self.least_shift)
        } else if entries < FEW * buckets {
            (self.shift + 1).min(self.least_shift + LONGEST_SPAN_BITS)
        } else {
            self.shift
        };
        if shift == self.shift {
            return;
        }
        // What has been taken comes before all that is left: the bucket in hand is the last one that may have been taken from.
        self.begin_anew(((self.turn + 1) << self.shift).wrapping_sub(1) >> shift, shift);
    }
}

/// Sorts entries that nearly are, and keeps equal ones as they are.
fn sort<T: Dated>(entries: &mut [T]) {
    if entries.len() > SHORT {
        entries.sort_by_key(Dated::key);
        return;
    }
    for sorted in 1..entries.len() {
        let entry = entries[sorted];
        let mut place = sorted;
        while place > 0 && entries[place - 1].key() > entry.key() {
            entries[place] = entries[place - 1];
            place -= 1;
        }
        entries[place] = entry;
    }
}

/// Buckets of two rounds.
const BUCKETS: usize = 4096;

/// Buckets in a round.
const ROUND: u64 = BUCKETS as u64 / 2;

/// Rounds that wait by themselves.
const ROUNDS: usize = 64;

/// A bucket is this long at first, as a power of two in nanoseconds.
const FIRST_SPAN_BITS: u32 = 14;

/// A bucket is no longer than that.
const LONGEST_SPAN_BITS: u32 = 24;

/// After so many buckets the span is looked at.
const LOOK_AFTER: u32 = 256;

/// Entries per bucket above which the span becomes shorter.
const MANY: u32 = 20;

/// Entries per bucket below which it becomes longer.
const FEW: u32 = 4;

/// So many are sorted by insertion.
const SHORT: usize = 96;

/// Empty lists that are kept.
const MOST_SPARE: usize = BUCKETS;

/// And of rounds.
const MOST_SPARE_ROUNDS: usize = 2;

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Calendar, Dated, FIRST_SPAN_BITS, ROUNDS};
    use fleetfoot_core::rng::Rng;
    use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};
    use std::collections::{BTreeMap, VecDeque};

    /// A key, and when it came.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Entry(u64, u32);

    impl Dated for Entry {
        fn key(&self) -> u64 {
            self.0
        }
    }

    const BITS: u32 = 7;

    #[test]
    fn equal_entries_keep_their_order_and_a_look_is_no_turn() {
        let mut calendar = Calendar::new(BITS);
        let late = ((BUCKETS * ROUNDS) as u64 + 5) << (BITS + FIRST_SPAN_BITS);
        calendar.push(Entry(late, 0));
        assert_eq!(calendar.first(), late);
        // All of these come before what was looked at: in another bucket, another round, and at the same time as others.
        for (number, key) in [(1, 900), (2, 1 << 38), (3, 900), (4, late), (5, 899)] {
            calendar.push(Entry(key, number));
            calendar.first();
        }
        assert_eq!(calendar.iter().count(), 6);
        let mut taken = Vec::new();
        while let Some(entry) = calendar.take_before(u64::MAX) {
            taken.push(entry.1);
        }
        assert_eq!(taken, [5, 1, 3, 2, 0, 4]);
        assert_eq!(calendar.first(), u64::MAX);
    }

    #[test]
    fn nothing_is_taken_before_its_time() {
        let mut calendar = Calendar::new(BITS);
        calendar.push(Entry(500, 0));
        assert_eq!(calendar.take_before(500), None);
        assert_eq!(calendar.take_before(501), Some(Entry(500, 0)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Any mixture of spans, from a nanosecond to many rounds, gives what a sorted map of lists gives; the span of a bucket
        /// becomes shorter and longer on the way.
        #[test]
        fn it_is_a_sorted_list(seed in any::<u64>()) {
            let mut rng = Rng::for_element(seed, "calendar", "test");
            let mut calendar = Calendar::new(BITS);
            let mut sorted: BTreeMap<u64, VecDeque<u32>> = BTreeMap::new();
            let (mut now, mut number) = (0_u64, 0);
            let (mut reach, mut most) = (20, 100);
            for _ in 0..60_000 {
                let draw = rng.next_u32();
                if draw.is_multiple_of(8192) {
                    (reach, most) = (8 + rng.below(30), 4 << rng.below(11));
                }
                if draw & 0x300 != 0x300 && calendar.len < most {
                    // Mostly near, sometimes far; often at a time of its own.
                    let reach = if (draw >> 14).is_multiple_of(512) { 44 } else { reach };
                    let span = (u64::from(rng.next_u32()) << 24) & ((1 << reach) - 1);
                    let key = (now + span + u64::from(draw & 3)) & if draw & 0x1000 == 0 { u64::MAX } else { !0xff };
                    let key = key.max(now);
                    calendar.push(Entry(key, number));
                    sorted.entry(key).or_default().push_back(number);
                    number += 1;
                } else {
                    let until = now + (1 << (draw >> 16 & 31));
                    prop_assert_eq!(calendar.first(), sorted.keys().next().copied().unwrap_or(u64::MAX));
                    let mut expected = None;
                    if let Some(mut first) = sorted.first_entry() && *first.key() < until {
                        expected = first.get_mut().pop_front().map(|number| Entry(*first.key(), number));
                        if first.get().is_empty() {
                            first.remove();
                        }
                    }
                    let taken = calendar.take_before(until);
                    prop_assert_eq!(taken, expected);
                    now = taken.map_or(now, |taken| taken.0);
                }
            }
            let left = sorted.values().map(VecDeque::len).sum::<usize>();
            prop_assert_eq!(calendar.iter().count(), left);
        }
    }
}
