//! The one pending arrival of each link, the earliest first.
//!
//! An arrival is a number, time first and the link in the lowest bits, so that the lower link comes first at one moment. In a
//! small network they stand in order: the next packet of a link mostly comes after nearly all that is pending, so its place is
//! found from the end in a step or two. In a large one they are a tournament, whose change costs one comparison per level.

use fleetfoot_core::time::Instant;

/// Pending arrivals.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// The earliest.
    first: u64,
    order: Order,
    link_bits: u32,
    /// The bits that hold a link.
    link_mask: u64,
    /// The latest time that can be told from "never".
    latest: u64,
}

#[derive(Clone, Debug)]
enum Order {
    /// Up to [`FEW`] links.
    Few(Box<List>),
    /// A node holds the earlier of its two children. Node 1 is the root; the children of node n are 2n and 2n + 1; the
    /// leaves are the last half.
    Many(Vec<u64>),
}

impl Arrivals {
    pub(super) fn new(links: usize) -> Arrivals {
        let leaves = links.max(1).next_power_of_two();
        let link_bits = Self::link_bits(links);
        Arrivals {
            first: NEVER,
            order: if links <= FEW {
                Order::Few(Box::new(List::new()))
            } else {
                Order::Many(vec![NEVER; 2 * leaves])
            },
            link_bits,
            link_mask: (1 << link_bits) - 1,
            latest: NEVER >> link_bits,
        }
    }

    /// Bits that tell links apart.
    pub(super) fn link_bits(links: usize) -> u32 {
        links.max(2).next_power_of_two().trailing_zeros()
    }

    /// The earliest arrival, [`NEVER`] without any.
    #[inline(always)]
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    #[inline(always)]
    pub(super) fn write(&self, link: u32, at: u64) -> u64 {
        if at > self.latest {
            return NEVER;
        }
        at << self.link_bits | u64::from(link)
    }

    #[inline(always)]
    pub(super) fn read(&self, arrival: u64) -> (u32, Instant) {
        let link = arrival & self.link_mask;
        (link as u32, Instant::from_nanos(arrival >> self.link_bits))
    }

    /// Whether there are many links.
    #[inline(always)]
    pub(super) fn is_large(&self) -> bool {
        matches!(self.order, Order::Many(_))
    }

    /// Moves the arrival of a link.
    #[inline]
    pub(super) fn set(&mut self, link: u32, at: u64) {
        let arrival = self.write(link, at);
        self.first = match &mut self.order {
            Order::Few(list) => list.set(link, arrival),
            Order::Many(nodes) => set_one_of_many(nodes, link, arrival),
        };
    }

    /// The same for the link of the first arrival.
    #[inline(always)]
    pub(super) fn move_first(&mut self, link: u32, at: u64) {
        debug_assert_eq!(self.first & self.link_mask, u64::from(link));
        let arrival = self.write(link, at);
        self.first = match &mut self.order {
            Order::Few(list) => list.move_first(link, arrival),
            Order::Many(nodes) => set_one_of_many(nodes, link, arrival),
        };
    }

    pub(super) fn len(&self) -> usize {
        let arrivals: &[u64] = match &self.order {
            Order::Few(list) => &list.pending,
            Order::Many(nodes) => &nodes[nodes.len() / 2..],
        };
        arrivals.iter().filter(|&&arrival| arrival != NEVER).count()
    }
}

/// Arrivals of few links in order, in a ring that is never full.
#[derive(Clone, Debug)]
struct List {
    /// From `head` up to `tail`, ascending; 0 before the first, so that a search ends there, [`NEVER`] behind the last.
    ring: [u64; ROOM],
    head: usize,
    tail: usize,
    /// The arrival of each link.
    pending: [u64; FEW],
}

impl List {
    fn new() -> List {
        let mut list = List {
            ring: [0; ROOM],
            head: 0,
            tail: 0,
            pending: [NEVER; FEW],
        };
        list.ring[0] = NEVER;
        list
    }

    #[inline(always)]
    fn at(&mut self, place: usize) -> &mut u64 {
        &mut self.ring[place & (ROOM - 1)]
    }

    /// Moves the first arrival; the first then.
    #[inline(always)]
    fn move_first(&mut self, link: u32, arrival: u64) -> u64 {
        self.pending[link as usize & (FEW - 1)] = arrival;
        *self.at(self.head) = 0;
        self.head = self.head.wrapping_add(1);
        if arrival != NEVER {
            self.insert(arrival);
        }
        *self.at(self.head)
    }

    /// Moves the arrival of a link; the first then.
    #[inline]
    fn set(&mut self, link: u32, arrival: u64) -> u64 {
        let before = std::mem::replace(&mut self.pending[link as usize & (FEW - 1)], arrival);
        if before != NEVER {
            self.remove(before);
        }
        if arrival != NEVER {
            self.insert(arrival);
        }
        *self.at(self.head)
    }

    #[inline(always)]
    fn insert(&mut self, arrival: u64) {
        let mut place = self.tail;
        self.tail = place.wrapping_add(1);
        *self.at(self.tail) = NEVER;
        let most = place.wrapping_sub(STEPS);
        loop {
            let before = *self.at(place.wrapping_sub(1));
            if before <= arrival {
                break;
            }
            *self.at(place) = before;
            place = place.wrapping_sub(1);
            if place == most {
                return self.insert_early(arrival, place);
            }
        }
        *self.at(place) = arrival;
    }

    /// Goes on where all from `place` on are later and have moved up: the gap is there.
    #[inline(never)]
    fn insert_early(&mut self, arrival: u64, mut place: usize) {
        let half = place.wrapping_sub(self.head) / 2;
        if *self.at(self.head.wrapping_add(half)) > arrival {
            // Nearer to the first: those go back, and the ones before it move down.
            while place != self.tail {
                *self.at(place) = *self.at(place.wrapping_add(1));
                place = place.wrapping_add(1);
            }
            self.tail = self.tail.wrapping_sub(1);
            self.head = self.head.wrapping_sub(1);
            *self.at(self.head.wrapping_sub(1)) = 0;
            place = self.head;
            loop {
                let next = *self.at(place.wrapping_add(1));
                if next > arrival {
                    break;
                }
                *self.at(place) = next;
                place = place.wrapping_add(1);
            }
            *self.at(place) = arrival;
            return;
        }
        loop {
            let before = *self.at(place.wrapping_sub(1));
            if before <= arrival {
                break;
            }
            *self.at(place) = before;
            place = place.wrapping_sub(1);
        }
        *self.at(place) = arrival;
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

/// Sets a leaf of a large tournament; the root. Apart from the code for small networks.
#[inline(never)]
fn set_one_of_many(nodes: &mut [u64], link: u32, mut arrival: u64) -> u64 {
    let mut node = nodes.len() / 2 + link as usize;
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

/// Links of a small network.
const FEW: usize = 64;

/// Places of the ring.
const ROOM: usize = 2 * FEW;

/// Places that are looked at one by one before it is clear that an arrival is not among the last.
const STEPS: usize = 8;

/// No arrival.
const NEVER: u64 = u64::MAX;
