//! The one pending arrival of each link, the earliest first.
//!
//! An arrival is a number, time first and the link in the lowest bits, so that the lower link comes first at one moment. Few
//! stand in order: the next packet of a link mostly comes after nearly all that is pending, so its place is
//! found from the end in a step or two. Many are a tournament, whose change costs one comparison per level.
//!
//! Links whose packets all go to the same next link may be joined: they have an order of their own ([`Feeders`]), of which the
//! first stands for all. Whoever takes many of them one after the other takes that order out meanwhile.

use fleetfoot_core::time::Instant;

/// Pending arrivals.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// The earliest.
    first: u64,
    /// Order of the first arrivals of all sources.
    order: Order,
    /// By link, the source that it belongs to.
    sources: Vec<u32>,
    /// Links that were joined, by the number of the source that stands for them.
    joined: Vec<Option<Box<Feeders>>>,
    format: Format,
}

/// How arrivals are written.
#[derive(Clone, Copy, Debug)]
struct Format {
    link_bits: u32,
    /// The bits that hold a link.
    link_mask: u64,
    /// The latest time that differs from "never".
    latest: u64,
}

impl Format {
    #[inline(always)]
    fn write(self, link: u32, at: u64) -> u64 {
        if at > self.latest {
            return NEVER;
        }
        at << self.link_bits | u64::from(link)
    }

    #[inline(always)]
    fn read(self, arrival: u64) -> (u32, Instant) {
        let link = arrival & self.link_mask;
        (link as u32, Instant::from_nanos(arrival >> self.link_bits))
    }
}

#[derive(Clone, Debug)]
enum Order {
    /// Up to [`FEW`].
    Few(Box<List>),
    /// A node holds the earlier of its two children. Node 1 is the root; the children of node n are 2n and 2n + 1; the
    /// leaves are the last half.
    Many(Vec<u64>),
}

impl Order {
    fn new(count: usize) -> Order {
        if count <= FEW {
            Order::Few(Box::new(List::new()))
        } else {
            Order::Many(vec![NEVER; 2 * count.next_power_of_two()])
        }
    }

    #[inline]
    fn set(&mut self, place: u32, arrival: u64) -> u64 {
        match self {
            Order::Few(list) => list.set(place, arrival),
            Order::Many(nodes) => set_one_of_many(nodes, place, arrival),
        }
    }

    fn len(&self) -> usize {
        let arrivals: &[u64] = match self {
            Order::Few(list) => &list.pending,
            Order::Many(nodes) => &nodes[nodes.len() / 2..],
        };
        arrivals.iter().filter(|&&arrival| arrival != NEVER).count()
    }
}

/// Links whose packets all go to the same next link.
#[derive(Clone, Debug)]
pub struct Feeders {
    /// The earliest.
    first: u64,
    list: Box<List>,
    format: Format,
}

impl Feeders {
    /// The first arrival as a number in the order of arrivals.
    #[inline(always)]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The link and the time of an arrival.
    #[inline(always)]
    pub(crate) fn read(&self, arrival: u64) -> (u32, Instant) {
        self.format.read(arrival)
    }

    /// Takes arrivals before `until` in order, as many as `taken` has room for, and says how many. `take` puts that of a
    /// link in its place and says when the next over it is.
    #[inline(always)]
    pub(crate) fn merge<T>(
        &mut self,
        until: u64,
        taken: &mut [T],
        mut take: impl FnMut(u32, &mut T) -> Option<Option<Instant>>,
    ) -> usize {
        let format = self.format;
        let mut count = 0;
        let List { ring, head, tail, .. } = &mut *self.list;
        let (mut first, mut last) = (*head, *tail);
        for slot in taken {
            let arrival = ring[usize::from(first)];
            if arrival >= until {
                break;
            }
            let link = (arrival & format.link_mask) as u32;
            let Some(next) = take(link, slot) else { break };
            count += 1;
            ring[usize::from(first)] = 0;
            first = first.wrapping_add(1);
            if let Some(at) = next
                && at.as_nanos() <= format.latest
            {
                let arrival = at.as_nanos() << format.link_bits | u64::from(link);
                last = insert(ring, first, last, arrival);
            }
        }
        (*head, *tail) = (first, last);
        self.first = ring[usize::from(first)];
        count
    }

    /// Moves the arrival of any of them.
    #[inline]
    pub(crate) fn set(&mut self, link: u32, at: Instant) {
        let arrival = self.format.write(link, at.as_nanos());
        self.first = self.list.set_of(link, self.format.link_mask, arrival);
    }

    /// Sets the arrival of any of them to one that comes before all others, of which its own may come at the same moment.
    #[inline]
    pub(crate) fn set_first(&mut self, link: u32, at: Instant) {
        let arrival = self.format.write(link, at.as_nanos());
        debug_assert!(arrival <= self.first, "before all others");
        self.first = self.list.set_first_of(link, self.format.link_mask, arrival);
    }

    fn len(&self) -> usize {
        usize::from(self.list.tail.wrapping_sub(self.list.head))
    }
}

impl Arrivals {
    pub(super) fn new(links: usize) -> Arrivals {
        let link_bits = Self::link_bits(links);
        Arrivals {
            first: NEVER,
            order: Order::new(links),
            sources: (0..links as u32).collect(),
            joined: Vec::new(),
            format: Format {
                link_bits,
                link_mask: (1 << link_bits) - 1,
                latest: NEVER >> link_bits,
            },
        }
    }

    /// Joins links, before anything arrives; no link is in two of the groups, and no group has more than
    /// [`FEW`].
    pub(super) fn join(&mut self, groups: &[Vec<u32>]) {
        debug_assert!(self.first == NEVER, "joined before anything arrives");
        self.sources.fill(u32::MAX);
        for (number, group) in groups.iter().enumerate() {
            debug_assert!(group.len() <= FEW, "they stand in a list");
            for &link in group {
                self.sources[link as usize] = number as u32;
            }
        }
        let mut count = groups.len() as u32;
        for source in self.sources.iter_mut().filter(|source| **source == u32::MAX) {
            *source = count;
            count += 1;
        }
        self.order = Order::new(count as usize);
        let feeders = || Feeders {
            first: NEVER,
            list: Box::new(List::new()),
            format: self.format,
        };
        self.joined = groups.iter().map(|_| Some(Box::new(feeders()))).collect();
    }

    /// The group of a link.
    #[inline(always)]
    pub(super) fn group(&self, link: u32) -> Option<u32> {
        let source = self.sources[link as usize];
        ((source as usize) < self.joined.len()).then_some(source)
    }

    /// Takes a group out: its arrivals are not there until it comes back.
    pub(super) fn take_out(&mut self, group: u32) -> Option<Box<Feeders>> {
        let feeders = self.joined[group as usize].take();
        self.first = self.order.set(group, NEVER);
        feeders
    }

    /// Puts it back.
    pub(super) fn put_back(&mut self, group: u32, feeders: Box<Feeders>) {
        self.first = self.order.set(group, feeders.first);
        self.joined[group as usize] = Some(feeders);
    }

    /// Bits that identify a link.
    pub(super) fn link_bits(links: usize) -> u32 {
        links.max(2).next_power_of_two().trailing_zeros()
    }

    /// Bits that identify one of these links.
    pub(super) fn bits(&self) -> u32 {
        self.format.link_bits
    }

    /// The earliest arrival, [`NEVER`] without any.
    #[inline(always)]
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    #[inline(always)]
    pub(super) fn write(&self, link: u32, at: u64) -> u64 {
        self.format.write(link, at)
    }

    #[inline(always)]
    pub(super) fn read(&self, arrival: u64) -> (u32, Instant) {
        self.format.read(arrival)
    }

    /// Whether there are many links.
    #[inline(always)]
    pub(super) fn is_large(&self) -> bool {
        self.sources.len() > FEW
    }

    /// Moves the arrival of a link.
    #[inline]
    pub(super) fn set(&mut self, link: u32, at: u64) {
        let mut arrival = self.write(link, at);
        let source = self.sources[link as usize];
        if let Some(group) = self.joined.get_mut(source as usize) {
            let Some(feeders) = group else {
                debug_assert!(false, "links of a group that is out have no arrivals");
                return;
            };
            let before = feeders.first;
            feeders.set(link, Instant::from_nanos(at));
            arrival = feeders.first;
            if arrival == before {
                return;
            }
        }
        self.first = self.order.set(source, arrival);
    }

    /// Sets the arrival of the link of the first arrival, which is in no group.
    #[inline(always)]
    pub(super) fn move_first(&mut self, link: u32, at: u64) {
        debug_assert_eq!(self.first & self.format.link_mask, u64::from(link));
        let arrival = self.write(link, at);
        let source = self.sources[link as usize];
        debug_assert!(source as usize >= self.joined.len());
        self.first = match &mut self.order {
            Order::Few(list) => list.move_first(source, arrival),
            Order::Many(nodes) => set_one_of_many(nodes, source, arrival),
        };
    }

    pub(super) fn len(&self) -> usize {
        let groups = self.joined.iter().flatten();
        let several = groups.filter(|feeders| feeders.first != NEVER);
        self.order.len() + several.map(|feeders| feeders.len() - 1).sum::<usize>()
    }
}

/// Few arrivals in order, in a ring that is never full and whose places are the values of a byte.
#[derive(Clone, Debug)]
struct List {
    /// From `head` up to `tail`, ascending; 0 before the first, so that a search ends there, [`NEVER`] behind the last.
    ring: [u64; 256],
    head: u8,
    tail: u8,
    /// By place.
    pending: [u64; FEW],
}

impl List {
    fn new() -> List {
        let mut list = List {
            ring: [0; 256],
            head: 0,
            tail: 0,
            pending: [NEVER; FEW],
        };
        list.ring[0] = NEVER;
        list
    }

    #[inline(always)]
    fn at(&mut self, place: u8) -> &mut u64 {
        &mut self.ring[usize::from(place)]
    }

    /// Moves the first arrival, which has this place; the first then.
    #[inline(always)]
    fn move_first(&mut self, place: u32, arrival: u64) -> u64 {
        self.pending[place as usize & (FEW - 1)] = arrival;
        *self.at(self.head) = 0;
        self.head = self.head.wrapping_add(1);
        if arrival != NEVER {
            self.insert(arrival);
        }
        *self.at(self.head)
    }

    /// Moves the arrival with this place; the first then.
    #[inline]
    fn set(&mut self, place: u32, arrival: u64) -> u64 {
        let before = std::mem::replace(&mut self.pending[place as usize & (FEW - 1)], arrival);
        if before != NEVER {
            self.remove(before);
        }
        if arrival != NEVER {
            self.insert(arrival);
        }
        *self.at(self.head)
    }

    /// Sets the arrival of a link that is found by its lowest bits.
    fn set_of(&mut self, link: u32, link_mask: u64, arrival: u64) -> u64 {
        let mut place = self.head;
        while place != self.tail {
            let before = *self.at(place);
            if before & link_mask == u64::from(link) {
                self.remove(before);
                break;
            }
            place = place.wrapping_add(1);
        }
        if arrival != NEVER {
            self.insert(arrival);
        }
        *self.at(self.head)
    }

    /// As `set_of`, for an arrival that comes before all others: those before the link's old one move up.
    #[inline]
    fn set_first_of(&mut self, link: u32, link_mask: u64, arrival: u64) -> u64 {
        let mut moving = arrival;
        let mut place = self.head;
        while place != self.tail {
            std::mem::swap(self.at(place), &mut moving);
            if moving & link_mask == u64::from(link) {
                return arrival;
            }
            place = place.wrapping_add(1);
        }
        *self.at(place) = moving;
        self.tail = place.wrapping_add(1);
        *self.at(self.tail) = NEVER;
        arrival
    }

    #[inline(always)]
    fn insert(&mut self, arrival: u64) {
        self.tail = insert(&mut self.ring, self.head, self.tail, arrival);
    }

    #[inline(never)]
    fn remove(&mut self, arrival: u64) {
        let mut place = self.head;
        if *self.at(place) == arrival {
            *self.at(place) = 0;
            self.head = place.wrapping_add(1);
            return;
        }
        while *self.at(place) != arrival {
            place = place.wrapping_add(1);
        }
        // Those behind it move up, the end among them.
        while place != self.tail {
            *self.at(place) = *self.at(place.wrapping_add(1));
            place = place.wrapping_add(1);
        }
        self.tail = self.tail.wrapping_sub(1);
    }
}

/// Puts an arrival in its place in the ring of a [`List`]; the tail then.
#[inline(always)]
fn insert(ring: &mut [u64; 256], head: u8, tail: u8, arrival: u64) -> u8 {
    let mut place = tail;
    let after = tail.wrapping_add(1);
    ring[usize::from(after)] = NEVER;
    let most = place.wrapping_sub(STEPS);
    loop {
        let before = ring[usize::from(place.wrapping_sub(1))];
        if before <= arrival {
            break;
        }
        ring[usize::from(place)] = before;
        place = place.wrapping_sub(1);
        if place == most {
            insert_early(ring, head, place, arrival);
            return after;
        }
    }
    ring[usize::from(place)] = arrival;
    after
}

/// Goes on where all from `place` on are later and have moved up: the gap is there.
#[inline(never)]
fn insert_early(ring: &mut [u64; 256], head: u8, mut place: u8, arrival: u64) {
    // The half it is in, from the earlier end of the list on.
    let (mut low, mut high) = (0, place.wrapping_sub(head));
    while low < high {
        let middle = low + (high - low) / 2;
        if ring[usize::from(head.wrapping_add(middle))] <= arrival {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let own = head.wrapping_add(low);
    while place != own {
        let before = place.wrapping_sub(1);
        ring[usize::from(place)] = ring[usize::from(before)];
        place = before;
    }
    ring[usize::from(own)] = arrival;
}

/// Sets a leaf of a large tournament; the root. Apart from the code for small networks.
#[inline(never)]
fn set_one_of_many(nodes: &mut [u64], place: u32, mut arrival: u64) -> u64 {
    let mut node = nodes.len() / 2 + place as usize;
    nodes[node] = arrival;
    while node > 1 {
        arrival = arrival.min(nodes[node ^ 1]);
        node >>= 1;
        if nodes[node] == arrival {
            break;
        }
        nodes[node] = arrival;
    }
    nodes[1]
}

/// As many may stand in a list.
const FEW: usize = 64;

/// Places that are looked at one by one before it is clear that an arrival is not among the last.
const STEPS: u8 = 8;

/// No arrival.
const NEVER: u64 = u64::MAX;
