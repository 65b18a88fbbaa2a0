//! Turns of queues, new ones first: the scheduler that FQ-CoDel, FQ-PIE and CAKE share.
//!
//! A queue that becomes active joins the new ones with one quantum. New queues are served before old ones. A queue that has
//! spent its deficit gets another quantum and goes to the end of the old ones; a new queue found empty does too, so that no
//! flow stays new for ever; an old queue found empty leaves.
//!
//! **Source.** RFC 8290 4.1 and 4.2 (DRR++).

use super::hash::HashKey;
use super::store::{NONE, PacketList, PacketPool};
use super::{Backlog, LinkContext, QueueContext, drr};
use crate::packet::Packet;
use crate::parameter::Values;
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
        self.rounds.arrive(index, self.quantum);
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
            let index = self.rounds.turn(|_| quantum)?;
            let queue = &mut self.queues[index as usize];
            if let Some(packet) = serve(index, queue, &mut self.pool) {
                self.rounds.spend(index, packet.segment.len());
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

/// Deficits and lists of queues that are known by their index.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    turns: Vec<Turn>,
    new: List,
    old: List,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    /// Bytes it may still send in this turn.
    deficit: i64,
    next: u32,
    active: bool,
}

/// Queues in turn.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl Rounds {
    pub(super) fn new(queues: usize) -> Rounds {
        Rounds {
            turns: vec![
                Turn {
                    deficit: 0,
                    next: NONE,
                    active: false,
                };
                queues
            ],
            new: List::EMPTY,
            old: List::EMPTY,
        }
    }

    /// A packet was put into the queue.
    #[inline]
    pub(super) fn arrive(&mut self, index: u32, quantum: i64) {
        let turn = &mut self.turns[index as usize];
        if !turn.active {
            // RFC 8290 4.1: a queue that is on neither list joins the new ones with one quantum.
            turn.active = true;
            turn.deficit = quantum;
            self.new.push(&mut self.turns, index);
        }
    }

    /// The queue whose turn it is, if any is active. `exhausted` receives the queues that have spent their deficit and decides what
    /// each gets for its next turn.
    #[inline]
    pub(super) fn turn(&mut self, mut exhausted: impl FnMut(u32) -> i64) -> Option<u32> {
        loop {
            super::work::step();
            // RFC 8290 4.2: new queues before old ones.
            let list = if self.new.head == NONE {
                &mut self.old
            } else {
                &mut self.new
            };
            let index = list.head;
            if index == NONE {
                return None;
            }
            let turn = &mut self.turns[index as usize];
            if turn.deficit > 0 {
                return Some(index);
            }
            turn.deficit += exhausted(index);
            list.pop(&self.turns);
            self.old.push(&mut self.turns, index);
        }
    }

    /// The queue sent a packet.
    #[inline]
    pub(super) fn spend(&mut self, index: u32, bytes: u32) {
        self.turns[index as usize].deficit -= i64::from(bytes);
    }

    /// The queue whose turn it is was found empty. Whether it left the lists.
    #[inline]
    pub(super) fn empty(&mut self) -> bool {
        self.leave(true)
    }

    /// As `empty`, but a new queue that is alone may leave at once, as in Linux's `fq_codel`.
    #[inline]
    pub(super) fn empty_as_in_linux(&mut self) -> bool {
        self.leave(self.old.head != NONE)
    }

    /// The queue whose turn it is was found empty: a new one becomes old, or leaves like an old one.
    #[inline]
    fn leave(&mut self, new_become_old: bool) -> bool {
        let from_new = self.new.head != NONE;
        let list = if from_new { &mut self.new } else { &mut self.old };
        let index = list.head;
        list.pop(&self.turns);
        let stays = from_new && new_become_old;
        if stays {
            // RFC 8290 4.2: an empty new queue becomes an old one, so that it cannot stay new for ever.
            self.old.push(&mut self.turns, index);
        } else {
            self.turns[index as usize].active = false;
        }
        !stays
    }
}

impl List {
    const EMPTY: List = List {
        head: NONE,
        tail: NONE,
    };

    fn push(&mut self, turns: &mut [Turn], index: u32) {
        turns[index as usize].next = NONE;
        if self.tail == NONE {
            self.head = index;
        } else {
            turns[self.tail as usize].next = index;
        }
        self.tail = index;
    }

    fn pop(&mut self, turns: &[Turn]) {
        self.head = turns[self.head as usize].next;
        if self.head == NONE {
            self.tail = NONE;
        }
    }
}
