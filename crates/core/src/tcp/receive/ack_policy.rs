//! When to acknowledge data: at once, with the next segment, or after a delay.
//!
//! Linux's receiver counts: `quick` acknowledgments go out at once after the start, after disorder and after idle; an end
//! that answers what it receives is in "ping-pong", where acknowledgments wait for data to ride on; the delay follows
//! the gaps between segments; a reader who takes all that was pushed acknowledges it.
//!
//! **Source.** RFC 5681 4.2, RFC 9293 3.8.6.3; Linux 6.18 `tcp_event_data_recv`, `tcp_measure_rcv_mss`,
//! `__tcp_ack_snd_check`, `tcp_send_delayed_ack`, `tcp_delack_max`, `tcp_delack_timer_handler`, `tcp_cleanup_rbuf`, `tcp_event_data_sent`.
//! **Deviations.** The gap between segments is rounded down to jiffies, where Linux takes the difference of two counts. When SACKs of disorder are held back is in `held_back`.

use crate::packet::{Flags, Segment};
use crate::tcp::config::{Config, DelayedAck};
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// State of acknowledging.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Acking {
    /// Arrival of the last data segment.
    last_data_at: Instant,
    /// Linux's delayed-ACK estimate; zero until data came.
    ato: Duration,
    /// Bytes received since the last acknowledgment was sent.
    pub(in crate::tcp) unacked: u32,
    /// What counts as a full segment: the largest payload seen, at most our MSS; Linux also lets it shrink.
    full: u32,
    /// Last payload that was not full.
    last_len: u32,
    /// Immediate acknowledgments left.
    pub(in crate::tcp) quick: u8,
    /// Answers sent soon after data came, up to the threshold of one.
    pingpong: bool,
    /// Segments that ended a write of the peer since the last acknowledgment, at most two.
    pushed: u8,
    /// The peer's FIN, or its SYN-ACK, waits to be acknowledged.
    pub(in crate::tcp) waits: bool,
    /// An acknowledgment must leave at the next drain.
    pub(in crate::tcp) now: bool,
}

impl Acking {
    pub(in crate::tcp) fn new(config: &Config) -> Acking {
        let full = match config.delayed_ack {
            DelayedAck::Linux { .. } => config.mss().clamp(LEAST_FULL, MOST_EXPECTED),
            DelayedAck::Off | DelayedAck::Standard { .. } => 0,
        };
        Acking {
            last_data_at: Instant::ZERO,
            ato: Duration::ZERO,
            unacked: 0,
            full,
            last_len: 0,
            quick: 0,
            pingpong: false,
            pushed: 0,
            waits: false,
            now: false,
        }
    }

    /// What Linux takes for a full segment until one has come (`tcp_initialize_rcv_mss`): `segment` is what a segment of this
    /// connection can carry, `window` the first window, which a sender fills with two segments at least.
    pub(in crate::tcp) fn expect(&mut self, config: &Config, segment: u32, window: u64) {
        if let DelayedAck::Linux { .. } = config.delayed_ack {
            let half = u32::try_from(window / 2).unwrap_or(u32::MAX);
            self.full = segment.min(half).clamp(LEAST_FULL, MOST_EXPECTED);
        }
    }

    /// The delayed-ACK estimate, no more than the longest delay where that is bounded by the floor of the timeout (Linux `tcp_get_info`).
    pub(in crate::tcp) fn ato(&self, config: &Config) -> Duration {
        match config.delayed_ack {
            DelayedAck::Linux { max, .. } if config.rto.bounds_acks => {
                config.rto.bound_ack(self.ato.min(max))
            }
            DelayedAck::Off | DelayedAck::Standard { .. } | DelayedAck::Linux { .. } => self.ato,
        }
    }

    /// No acknowledgment of data is delayed less, if [`Acking::delays_long`] and nothing was out of order.
    #[inline(always)]
    pub(in crate::tcp) fn least_delay(&self) -> Duration {
        self.ato.min(LONG)
    }

    /// Whether the bounds of the delay of acknowledgments are not very short.
    pub(in crate::tcp) fn delays_long(config: &Config) -> bool {
        match config.delayed_ack {
            DelayedAck::Off => true,
            DelayedAck::Standard { timeout } => timeout >= LONG,
            DelayedAck::Linux { min, max, .. } => min.min(max) >= LONG,
        }
    }

    /// Payload of a full segment.
    pub(in crate::tcp) fn full(&self) -> u32 {
        self.full
    }

    /// Arrival of the last data segment.
    pub(in crate::tcp) fn last_data_at(&self) -> Instant {
        self.last_data_at
    }

    /// Whether something waits to be acknowledged.
    #[inline]
    pub(in crate::tcp) fn scheduled(&self) -> bool {
        self.unacked > 0 || self.waits
    }

    /// Opened at `now`, or data came then and nothing follows from it but that.
    #[inline]
    pub(in crate::tcp) fn start(&mut self, now: Instant) {
        self.last_data_at = now;
    }

    /// Learns from a segment with payload. `FULL`: it [is full](Acking::is_full).
    #[inline(always)]
    pub(in crate::tcp) fn measure<const FULL: bool>(&mut self, config: &Config, segment: &Segment) {
        let payload = segment.payload;
        let last = core::mem::take(&mut self.last_len);
        if FULL || payload >= self.full {
            // It is no more than our MSS, unless it is what `new` takes for it.
            if !FULL && (payload > self.full || payload <= LEAST_FULL) {
                self.full = payload.min(config.mss());
            }
            if segment.flags.contains(Flags::PSH) {
                self.pushed = self.pushed.max(1);
            }
        } else if matches!(config.delayed_ack, DelayedAck::Linux { .. }) {
            self.measure_small(segment, last);
        }
    }

    /// Whether a segment of so much `payload` is as long as the longest so far, and no shorter than an MSS may be.
    #[inline(always)]
    pub(in crate::tcp) fn is_full(&self, payload: u32) -> bool {
        payload == self.full && payload > LEAST_FULL
    }

    /// A segment that is not full: of two alike in a row that no push made short, their size is the full one.
    fn measure_small(&mut self, segment: &Segment, last: u32) {
        let payload = segment.payload;
        let whole = !segment
            .flags
            .intersects(Flags::PSH.with(Flags::FIN).with(Flags::URG));
        if payload >= 536 || (payload >= 88 && whole) {
            self.last_len = payload;
            if payload == last {
                self.full = payload;
                return;
            }
        }
        self.pushed = (self.pushed + 1).min(2);
    }

    /// Data came: the estimate, and how eager to be. `window` is what the peer may send.
    #[inline(always)]
    pub(in crate::tcp) fn on_data(
        &mut self,
        now: Instant,
        config: &Config,
        window: impl FnOnce() -> u64,
        rto: impl FnOnce() -> Duration,
    ) {
        if let DelayedAck::Linux { min, quick_acks, .. } = config.delayed_ack {
            // Linux counts jiffies (`tcp_event_data_recv`).
            let grid = config.timer_grid;
            let gap = grid.whole(now.since(self.last_data_at));
            let half = |wait: Duration| grid.whole(wait.mul_div(1, 2));
            if self.ato.is_zero() {
                self.enliven(window(), quick_acks);
                self.ato = min;
            } else if gap <= half(min) {
                if self.ato != min {
                    self.ato = half(self.ato) + half(min);
                }
            } else if gap < self.ato {
                self.ato = (half(self.ato) + gap).min(rto());
            } else if gap > rto() {
                self.enliven(window(), quick_acks); // idle: the sender may be in slow start
            }
        }
        self.last_data_at = now;
    }

    /// The next acknowledgments go out at once: as many as the window holds pairs of segments, `most` at most.
    fn enliven(&mut self, window: u64, most: u8) {
        let pairs = window / u64::from(2 * self.full.max(1));
        let count = if pairs == 0 { 2 } else { pairs };
        self.quick = self.quick.max(count.min(u64::from(most)) as u8);
    }

    /// Something is out of order: no ping-pong, quick acknowledgments (`tcp_enter_quickack_mode`).
    pub(in crate::tcp) fn enter_quick(&mut self, config: &Config, window: u64, most: u8) {
        if let DelayedAck::Linux { min, quick_acks, .. } = config.delayed_ack {
            self.enliven(window, most.min(quick_acks));
            self.pingpong = false;
            self.ato = min;
        }
    }

    /// Waits for data to ride on (`inet_csk_enter_pingpong_mode`).
    pub(in crate::tcp) fn enter_pingpong(&mut self) {
        self.pingpong = true;
    }

    /// Whether acknowledgments wait for data.
    pub(in crate::tcp) fn in_pingpong(&self) -> bool {
        self.pingpong
    }

    /// `TCP_QUICKACK`: off is ping-pong; on ends it and acknowledges what was read.
    pub(in crate::tcp) fn set_quick(&mut self, config: &Config, on: bool, all_read: bool) {
        self.pingpong = !on && matches!(config.delayed_ack, DelayedAck::Linux { .. });
        if on {
            self.pushed = self.pushed.max(1);
            self.on_read(config, all_read);
        }
    }

    /// Whether acknowledgments go out at once.
    #[inline]
    pub(in crate::tcp) fn is_quick(&self) -> bool {
        self.quick > 0 && !self.pingpong
    }

    /// Decides on acknowledging what came. `room` says that the window did not shrink for want of a reader.
    #[inline(always)]
    pub(in crate::tcp) fn decide(&mut self, config: &Config, room: bool) {
        self.now |= match config.delayed_ack {
            DelayedAck::Off => true,
            DelayedAck::Standard { .. } => self.unacked >= 2 * self.full, // SHLD-19: every second full segment
            DelayedAck::Linux { .. } => (self.unacked > self.full && room) || self.is_quick(),
        };
    }

    /// The application took data, and whether that was all there is.
    #[inline(always)]
    pub(in crate::tcp) fn on_read(&mut self, config: &Config, all: bool) {
        if matches!(config.delayed_ack, DelayedAck::Linux { .. }) && self.scheduled() {
            let pushed = self.pushed > 1 || (self.pushed > 0 && !self.pingpong);
            self.now |= self.unacked > self.full || (all && pushed);
        }
    }

    /// When the delayed ACK is due, if one is pending; `running` is when one set before would be. `expiry` says when a timer
    /// fires that is set now, `expires_within` whether the one set before does so no later than one set now.
    #[inline(always)]
    pub(in crate::tcp) fn delayed_until(
        &mut self,
        config: &Config,
        srtt: Option<Duration>,
        running: Instant,
        expiry: impl Fn(Duration) -> Instant,
        expires_within: impl FnOnce(Duration) -> bool,
    ) -> Instant {
        if !self.scheduled() || self.now {
            return running;
        }
        match config.delayed_ack {
            DelayedAck::Off => running,
            DelayedAck::Standard { timeout } => running.min(expiry(timeout)),
            DelayedAck::Linux { min, max, .. } => {
                let mut ato = self.ato;
                if ato > min {
                    let most = if self.pingpong || self.pushed > 0 {
                        max
                    } else {
                        Duration::from_millis(500)
                    };
                    ato = ato.min(srtt.map_or(most, |srtt| srtt.max(min).min(most)));
                }
                let ato = config.rto.bound_ack(ato.min(max));
                // It would expire soon, or at once: a FIN before any data has no estimate.
                if ato.is_zero()
                    || (running != Instant::FAR_FUTURE
                        && expires_within(config.timer_grid.whole(ato.mul_div(1, 4))))
                {
                    self.now = true;
                    return Instant::FAR_FUTURE;
                }
                running.min(expiry(ato))
            }
        }
    }

    /// The delayed ACK is due: nobody answered, or less soon than estimated.
    pub(in crate::tcp) fn on_timer(&mut self, config: &Config, rto: Duration) {
        self.now = true;
        if let DelayedAck::Linux { min, .. } = config.delayed_ack
            && self.scheduled()
        {
            self.ato = if self.pingpong {
                min
            } else {
                (self.ato + self.ato).min(rto)
            };
            self.pingpong = false;
        }
    }

    /// Payload left: an answer, if data came a moment ago.
    #[inline(always)]
    pub(in crate::tcp) fn on_data_sent(&mut self, now: Instant) {
        self.pingpong |= now.since(self.last_data_at) < self.ato;
    }

    /// An acknowledgment left, alone or on data.
    #[inline(always)]
    pub(in crate::tcp) fn on_sent(&mut self, config: &Config) {
        if self.quick > 0 && self.scheduled() {
            self.quick -= 1;
            if self.quick == 0
                && let DelayedAck::Linux { min, .. } = config.delayed_ack
            {
                self.ato = min;
            }
        }
        self.now = false;
        self.unacked = 0;
        self.waits = false;
        self.pushed = 0;
    }
}

/// The most that counts as a full segment before one came (`TCP_MSS_DEFAULT`).
const MOST_EXPECTED: u32 = 536;

/// What no bound of a delay is below that is not very short.
const LONG: Duration = Duration::from_millis(1);

/// The least that counts as a full segment at first (`TCP_MIN_MSS`).
const LEAST_FULL: u32 = 88;

#[cfg(test)]
mod tests {
    use super::Acking;
    use crate::tcp::config::{Config, Profile};

    #[test]
    fn what_counts_as_a_full_segment_before_one_came() {
        // `tcp_initialize_rcv_mss`: the segment, half of the window, 536, and never less than 88.
        for (segment, window, full) in [
            (1448, 64_240, 536),
            (448, 64_240, 448),
            (248, 248, 124),
            (248, 100, 88),
            (1448, 900, 450),
        ] {
            let config = Config::profile(Profile::Linux);
            let mut acking = Acking::new(&config);
            acking.expect(&config, segment, window);
            assert_eq!(acking.full(), full, "segment {segment}, window {window}");
        }
        let config = Config::profile(Profile::Rfc);
        let mut acking = Acking::new(&config);
        acking.expect(&config, 1448, 64_240);
        assert_eq!(acking.full(), 0);
    }
}
