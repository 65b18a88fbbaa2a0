//! Which wires lead to hosts that may take packets ahead of time.
//!
//! What receivers do is other code than what senders do, and both together are more than the processor's first cache holds. So wires
//! that bring data come before those that bring acknowledgments.

use fleetfoot_core::link::PacketSize;

/// FIFO links at whose end the first packet has no event: it may come ahead of time.
#[derive(Default)]
pub(crate) struct Early {
    data: Vec<u32>,
    answers: Vec<u32>,
}

impl Early {
    /// Adds a link whose first packet has this size.
    #[inline(always)]
    pub(crate) fn push(&mut self, link: u32, first: PacketSize) {
        if first.is_data() {
            self.data.push(link);
        } else {
            self.answers.push(link);
        }
    }

    /// Takes the next.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.data.pop().or_else(|| self.answers.pop())
    }

    /// Those that are taken one after the other from the end, before others come.
    #[inline(always)]
    pub(crate) fn next(&self) -> &[u32] {
        if self.data.is_empty() {
            &self.answers
        } else {
            &self.data
        }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.answers.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.data.clear();
        self.answers.clear();
    }
}
