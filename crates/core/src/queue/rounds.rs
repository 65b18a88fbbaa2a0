//! Turns of queues, new ones first: the scheduler that FQ-CoDel, FQ-PIE and CAKE share.
//!
//! A queue that becomes active joins the new ones with one quantum. New queues are served before old ones. A queue that has
//! spent its deficit gets another quantum and goes to the end of the old ones; a new queue found empty does too, so that no
//! flow stays new for ever (not with CAKE, where it leaves); an old queue found empty leaves.
//!
//! **Source.** RFC 8290 4.1 and 4.2 (DRR++).

use super::hash::HashKey;
use super::store::{PacketList, PacketPool};
use super::{Backlog, LinkContext, QueueContext, drr};
use crate::packet::Packet;
use crate::parameter::Values;
use crate::ring::Ring;
use alloc::vec;
use alloc::vec::Vec;

/// Queues of hashed flows, each with the state `S` of an active queue management of its own: FQ-CoDel's and FQ-PIE's.
#[derive(Clone, Debug)]
pub(super) struct FairQueues<S> {
    quantum: i64,
    key: HashKey,
    queues: Vec<FairQueue<S>>,
    pub(super) pool: PacketPool,
    rounds: Rounds,
}

#[derive(Clone, Debug)]
pub(super) struct FairQueue<S> {
    pub(super) packets: PacketList,
    pub(super) state: S,
}

impl<S: Clone> FairQueues<S> {
    /// From the parameters `queues` and `quantum`; every queue begins with this state.
    pub(super) fn new(values: &Values, link: &LinkContext, state: S) -> FairQueues<S> {
        let queues = values.integer("queues").unwrap_or(1024) as usize;
        let packets = PacketList::EMPTY;
        FairQueues {
            quantum: (drr::quantum(values, link) as i64).max(1),
            key: HashKey::new(link.seed),
            queues: vec![FairQueue { packets, state }; queues],
            pool: PacketPool::new(),
            rounds: Rounds::new(queues),
        }
    }

    /// Number of queues.
    pub(super) fn len(&self) -> u32 {
        self.queues.len() as u32
    }

    /// What waits in all queues.
    #[inline]
    pub(super) fn total(&self) -> Backlog {
        self.pool.total()
    }

    /// The queue of a packet's flow.
    #[inline]
    pub(super) fn index(&self, packet: &Packet, context: &QueueContext<'_>) -> u32 {
        self.key.flow(context.flows.key(packet.flow), self.len())
    }

    #[inline]
    pub(super) fn queue(&mut self, index: u32) -> &mut FairQueue<S> {
        &mut self.queues[index as usize]
    }

    /// What waits in one queue.
    #[inline]
    pub(super) fn packets(&self, index: u32) -> &PacketList {
        &self.queues[index as usize].packets
    }

    /// Appends a packet to a queue.
    #[inline]
    pub(super) fn push(&mut self, index: u32, packet: Packet) {
        self.pool.push(&mut self.queues[index as usize].packets, packet);
        self.rounds.arrive(index, self.quantum, ());
    }

    /// Takes the first packet of a queue, outside its turn.
    #[inline]
    pub(super) fn pop(&mut self, index: u32) -> Option<Packet> {
        self.pool.pop(&mut self.queues[index as usize].packets)
    }

    /// The next packet: `serve` takes it from the queue whose turn it is, or finds nothing to send there. `as_in_linux`: an empty
    /// new queue may leave at once.
    #[inline]
    pub(super) fn next(
        &mut self,
        as_in_linux: bool,
        mut serve: impl FnMut(u32, &mut FairQueue<S>, &mut PacketPool) -> Option<Packet>,
    ) -> Option<Packet> {
        loop {
            let quantum = self.quantum;
            let index = match self.rounds.turn_of_new(|_| quantum) {
                Some(index) => index,
                None => self.rounds.turn_of_old(|()| quantum)?,
            };
            let queue = &mut self.queues[index as usize];
            if let Some(packet) = serve(index, queue, &mut self.pool) {
                self.rounds.spend(packet.segment.len());
                return Some(packet);
            }
            if as_in_linux {
                self.rounds.empty_as_in_linux();
            } else {
                self.rounds.empty();
            }
        }
    }
}

/// Deficits and lists of queues that are known by their index. Each list is a ring of what a turn needs, so that a round of queues
/// that wait for their deficit reads memory in order. `T` is what the discipline wants to know of a queue in its turn.
#[derive(Clone, Debug)]
pub(super) struct Rounds<T = ()> {
    active: Vec<bool>,
    new: Ring<Turn<T>>,
    old: Ring<Turn<T>>,
}

#[derive(Clone, Copy, Debug)]
struct Turn<T> {
    /// Bytes it may still send in this turn.
    deficit: i64,
    index: u32,
    about: T,
}

const _: () = assert!(size_of::<Turn<[u16; 2]>>() == 16);

impl<T: Copy> Turn<T> {
    /// The next turn, with this many bytes more.
    #[inline(always)]
    fn after(&self, more: i64) -> Turn<T> {
        Turn {
            deficit: self.deficit + more,
            ..*self
        }
    }
}

impl<T: Copy> Rounds<T> {
    pub(super) fn new(queues: usize) -> Rounds<T> {
        Rounds {
            active: vec![false; queues],
            new: Ring::new(),
            old: Ring::new(),
        }
    }

    /// A packet was put into the queue.
    #[inline]
    pub(super) fn arrive(&mut self, index: u32, quantum: i64, about: T) {
        let active = &mut self.active[index as usize];
        if !*active {
            // RFC 8290 4.1: a queue that is on neither list joins the new ones with one quantum.
            *active = true;
            self.new.push_back(Turn {
                deficit: quantum,
                index,
                about,
            });
        }
    }

    /// The new queue whose turn it is, if there is one (RFC 8290 4.2: new queues before old ones). `exhausted` receives those that
    /// have spent their deficit, which become old, and says what each gets for its next turn.
    #[inline]
    pub(super) fn turn_of_new(&mut self, mut exhausted: impl FnMut(u32) -> i64) -> Option<u32> {
        while let Some(&turn) = self.new.front() {
            super::work::step();
            if turn.deficit > 0 {
                return Some(turn.index);
            }
            self.new.forget_front();
            let more = exhausted(turn.index);
            self.old.push_back(turn.after(more));
        }
        None
    }

    /// The old queue whose turn it is, if there is one and none is new. `exhausted` says what a queue gets that has spent its deficit.
    #[inline]
    pub(super) fn turn_of_old(&mut self, exhausted: impl Fn(T) -> i64) -> Option<u32> {
        self.old.rotate_while(|turn| {
            super::work::step();
            let spent = turn.deficit <= 0;
            if spent {
                *turn = turn.after(exhausted(turn.about));
            }
            spent
        });
        self.old.front().map(|turn| turn.index)
    }

    /// The queue whose turn it is sent a packet.
    #[inline]
    pub(super) fn spend(&mut self, bytes: u32) {
        let first = match self.new.front_mut() {
            None => self.old.front_mut(),
            first => first,
        };
        if let Some(turn) = first {
            turn.deficit -= i64::from(bytes);
        }
    }

    /// The queue whose turn it is was found empty. Whether it left the lists.
    #[inline]
    pub(super) fn empty(&mut self) -> bool {
        self.leave(true)
    }

    /// As `empty`, but a new queue that is alone may leave at once, as in Linux's `fq_codel`.
    #[inline]
    pub(super) fn empty_as_in_linux(&mut self) -> bool {
        self.leave(!self.old.is_empty())
    }

    /// The queue whose turn it is was found empty and leaves the lists, new or old, as in Linux's `sch_cake`.
    #[inline]
    pub(super) fn remove(&mut self) {
        self.leave(false);
    }

    /// The queue whose turn it is was found empty: a new one becomes old, or leaves like an old one.
    #[inline]
    fn leave(&mut self, new_become_old: bool) -> bool {
        if let Some(turn) = self.new.pop_front() {
            if new_become_old {
                // RFC 8290 4.2: an empty new queue becomes an old one, so that it cannot stay new for ever.
                self.old.push_back(turn);
                return false;
            }
            self.active[turn.index as usize] = false;
        } else if let Some(turn) = self.old.pop_front() {
            self.active[turn.index as usize] = false;
        }
        true
    }
}
