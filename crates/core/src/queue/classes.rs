//! Flows by backlog, in classes by powers of two: a flow with at least half the largest backlog is found in constant time.
//!
//! **Source.** docs/design/queues.md#drr-longest. Within a class the flow that entered it first is taken.

use super::store::NONE;
use alloc::vec;
use alloc::vec::Vec;

/// Doubly linked lists of flows, one per power of two.
#[derive(Clone, Debug)]
pub(super) struct BacklogClasses {
    links: Vec<Link>,
    /// Head and tail per class.
    lists: [(u32, u32); 64],
    /// Bit per class that is not empty.
    occupied: u64,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    class: u8,
    previous: u32,
    next: u32,
}

/// The class of a flow without backlog: in no list.
const ABSENT: u8 = u8::MAX;

impl BacklogClasses {
    pub(super) fn new(flows: usize) -> BacklogClasses {
        BacklogClasses {
            links: vec![
                Link {
                    class: ABSENT,
                    previous: NONE,
                    next: NONE,
                };
                flows
            ],
            lists: [(NONE, NONE); 64],
            occupied: 0,
        }
    }

    /// A flow whose backlog is more than half of the largest.
    pub(super) fn longest(&self) -> Option<u32> {
        let class = 63_u32.checked_sub(self.occupied.leading_zeros())?;
        Some(self.lists[class as usize].0)
    }

    /// Sets the backlog of `flow`, which has `packets` waiting.
    pub(super) fn update(&mut self, flow: u32, packets: u32, bytes: u64) {
        let class = if packets == 0 {
            ABSENT
        } else {
            bytes.max(1).ilog2() as u8
        };
        let link = self.links[flow as usize];
        if link.class == class {
            return;
        }
        if link.class != ABSENT {
            let list = &mut self.lists[usize::from(link.class)];
            if link.previous == NONE {
                list.0 = link.next;
            } else {
                self.links[link.previous as usize].next = link.next;
            }
            if link.next == NONE {
                list.1 = link.previous;
            } else {
                self.links[link.next as usize].previous = link.previous;
            }
            if list.0 == NONE {
                self.occupied &= !(1 << link.class);
            }
        }
        let mut moved = Link {
            class,
            previous: NONE,
            next: NONE,
        };
        if class != ABSENT {
            let list = &mut self.lists[usize::from(class)];
            moved.previous = list.1;
            if list.1 == NONE {
                list.0 = flow;
            } else {
                self.links[list.1 as usize].next = flow;
            }
            list.1 = flow;
            self.occupied |= 1 << class;
        }
        self.links[flow as usize] = moved;
    }
}
