//! What of a connection's data waits in queues of its own host. When that holds a sender back is the matter of
//! `send::small_queues`.
//!
//! **Source.** None: a count of bytes and times.
//! **Deviations.** None known.

use crate::ring::Ring;
use crate::time::Instant;

/// What waits in the host.
#[derive(Default)]
pub(in crate::tcp) struct HostQueue {
    /// Segments of which it is known when their transmission begins, in order: that, and their payload.
    known: Ring<(Instant, u32)>,
    /// Payload of those.
    known_bytes: u64,
    /// Payload of which it is not known.
    unknown_bytes: u64,
    /// How much is to leave for the sender to go on, if it waits for news of the driver.
    awaited: Option<u64>,
    /// It is held back.
    holds: bool,
    /// Where the data ended that had been sent when something came to wait here last.
    until: u64,
}

impl HostQueue {
    /// A segment with `bytes` of payload waits, until `begins` if that is known. What was sent ends at offset `nxt`.
    pub(super) fn add(&mut self, bytes: u32, begins: Option<Instant>, nxt: u64) {
        let payload = u64::from(bytes);
        self.until = nxt;
        match begins {
            Some(begins) => {
                self.known.push_back((begins, bytes));
                self.known_bytes += payload;
            }
            None => self.unknown_bytes += payload,
        }
    }

    /// A segment with `bytes` of payload leaves, of which it was not known when it would. Whether the sender waited for that.
    pub(super) fn leave(&mut self, bytes: u32) -> bool {
        let bytes = u64::from(bytes);
        self.unknown_bytes = self.unknown_bytes.saturating_sub(bytes);
        self.awaited = self.awaited.map(|awaited| awaited.saturating_sub(bytes));
        self.awaited.take_if(|awaited| *awaited == 0).is_some()
    }

    /// Whether the sender is held back.
    pub(super) fn holds(&self) -> bool {
        self.holds
    }

    /// Whether all that had been sent when something came to wait here last is acknowledged, up to offset `una`, and nothing is held back.
    pub(super) fn is_past(&self, una: u64) -> bool {
        una >= self.until && !self.holds
    }

    /// When the transmission of the last of those segments begins of which that is known.
    pub(super) fn last(&self) -> Option<Instant> {
        let [older, newer] = self.known.pieces();
        newer.last().or(older.last()).map(|&(begins, _)| begins)
    }

    /// Forgets what has begun to be sent, and says what waits.
    pub(super) fn waiting(&mut self, now: Instant) -> u64 {
        while self.known.front().is_some_and(|&(begins, _)| begins <= now) {
            if let Some((_, bytes)) = self.known.pop_front() {
                self.known_bytes -= u64::from(bytes);
            }
        }
        self.known_bytes + self.unknown_bytes
    }

    /// Until when more than `limit` waits; `None`: it does not.
    pub(super) fn held_until(&mut self, now: Instant, limit: u64) -> Option<Instant> {
        let mut waiting = self.waiting(now);
        self.awaited = None;
        self.holds = waiting > limit;
        if !self.holds {
            return None;
        }
        for &(begins, bytes) in self.known.pieces().into_iter().flatten() {
            waiting -= u64::from(bytes);
            if waiting <= limit {
                return Some(begins);
            }
        }
        self.awaited = Some(waiting - limit);
        Some(Instant::FAR_FUTURE)
    }
}
