//! What of a connection's data waits in queues of its own host, and how much may (TCP Small Queues).
//!
//! A sender whose own link is the bottleneck would put its whole window into the queue of that link, in which the host's other
//! connections then wait, and which drops what does not fit. Linux lets a connection have no more there than two groups for
//! segmentation offload or a millisecond of its pacing rate, whichever is more: it goes on when a device has sent some of it. What waits in
//! the host fills no window, so the window stops growing.
//!
//! The driver tells what waits: [`Connection::wait_at_host`], [`Connection::left_host`]. Where it tells nothing, nothing is held back.
//!
//! **Source.** Linux 6.18 `tcp_small_queue_check`, `tcp_wfree` (as of commit 295ce1eb36ae).
//! **Deviations.** Linux counts the memory of buffers with all that belongs to them, here bytes of payload count; and a buffer until the device
//! has sent the last segment in it, here a segment until its transmission begins. So what waits is between two and three groups in Linux, and
//! here two groups and a segment beside the one in service. What is sent again is held back by the same limit (in Linux twice that). A paced connection has the same upper bound.
//!
//! [`Connection::wait_at_host`]: crate::tcp::Connection::wait_at_host
//! [`Connection::left_host`]: crate::tcp::Connection::left_host

use crate::tcp::fast::FastPath;
use crate::tcp::send::half::Sender;
use crate::tcp::send::tempo::Tempo;
use crate::tcp::{Connection, Shared};
use crate::time::Instant;
use crate::units::Bytes;

impl Connection {
    /// A segment with `bytes` of payload, which was polled just now, waits in a queue of this host until its transmission begins; `None`:
    /// [`Connection::left_host`] says when that is. No earlier than the segments before.
    pub fn wait_at_host(&mut self, bytes: u32, begins: Option<Instant>) {
        self.shared.fast = FastPath::NONE;
        if let Some(sender) = &mut self.sender {
            sender.wait_at_host(bytes, begins);
        }
    }

    /// When the transmission begins of the last segment of which [`Connection::wait_at_host`] was told; `None`: nothing is known to wait.
    #[inline(always)]
    pub fn waits_at_host(&self) -> Option<Instant> {
        let host = self.sender.as_deref()?.tempo.as_deref()?.host.as_ref()?;
        host.last()
    }

    /// The transmission of a segment with `bytes` of payload begins, or it is dropped, of which [`Connection::wait_at_host`] was told no time.
    pub fn left_host(&mut self, now: Instant, bytes: u32) {
        let waited = self.sender.as_mut().is_some_and(|sender| sender.left_host(bytes));
        if waited {
            self.shared.timers.pace = now;
        }
    }
}

impl Sender {
    /// A segment with `bytes` of payload waits in the host, until `begins` if that is known.
    pub(in crate::tcp) fn wait_at_host(&mut self, bytes: u32, begins: Option<Instant>) {
        let tempo = self.tempo.get_or_insert_with(Tempo::idle);
        let host = tempo.host.get_or_insert_default();
        host.add(bytes, begins, self.nxt);
    }

    /// A segment with `bytes` of payload, of which it was not known when it would, has left the queues of the host. Whether the sender waited for that.
    pub(in crate::tcp) fn left_host(&mut self, bytes: u32) -> bool {
        let host = self.tempo.as_deref_mut().and_then(|tempo| tempo.host.as_mut());
        host.is_some_and(|host| host.leave(bytes))
    }

    /// Whether too much waits in the host; then the timer is set.
    pub(super) fn is_held_by_host(&mut self, now: Instant, shared: &mut Shared) -> bool {
        let limit = match self.tempo.as_deref() {
            Some(tempo) if tempo.host.is_some() => self.millisecond(shared),
            _ => return false,
        };
        let limit = limit.min(shared.config.path.small_queues.get());
        let Some(host) = self.tempo.as_deref_mut().and_then(|tempo| tempo.host.as_mut()) else {
            return false;
        };
        let held_before = host.holds();
        // Without data out a copy may still wait, and the first buffer leaves all the same.
        let limit = if self.una == self.nxt { u64::MAX } else { limit };
        match host.held_until(now, limit) {
            Some(until) => shared.timers.pace = until,
            None if held_before => shared.timers.pace = Instant::FAR_FUTURE,
            None => {}
        }
        host.holds()
    }

    /// After an acknowledgment: nothing waits any more, since no data is out or the last round trip told of nothing. One that is told of every
    /// segment so keeps what it has.
    pub(super) fn forget_host(&mut self, now: Instant) {
        let (una, idle) = (self.una, self.una == self.nxt);
        if let Some(tempo) = self.tempo.as_deref_mut()
            && tempo
                .host
                .as_mut()
                .is_some_and(|host| (idle || host.is_past(una)) && host.waiting(now) == 0)
        {
            tempo.host = None;
        }
    }

    /// Two groups for segmentation offload, or a millisecond of the pacing rate if that is more, bytes of payload.
    fn millisecond(&self, shared: &Shared) -> u64 {
        let window = self.window(shared);
        let mss = u64::from(shared.mss);
        let least = shared.config.offload_segments.unwrap_or(LEAST_GROUP);
        let Some(paced) = self.paced_per_second(shared, window) else {
            return Bytes::MAX.get();
        };
        (2 * mss * self.worth(shared, least, window)).max(paced / 1024)
    }

    /// Bytes per second at which Linux paces, or would (`sk_pacing_rate`); `None`: there is no RTT yet.
    fn paced_per_second(&self, shared: &Shared, window: u64) -> Option<u64> {
        if let Some(rate) = self.cc.pacing_rate() {
            return Some(rate.bps() / 8);
        }
        let srtt = shared.rtt.srtt()?;
        Some(self.paced_at(
            shared,
            window.max(self.board.out),
            srtt,
            self.pacing_percent(window),
        ))
    }
}

/// Segments of a group where nothing is said of offload (Linux `tcp_min_tso_segs`).
const LEAST_GROUP: u8 = 2;
