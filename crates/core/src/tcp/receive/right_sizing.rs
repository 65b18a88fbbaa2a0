//! How Linux finds out how large a receive buffer has to be: dynamic right-sizing.
//!
//! The receiver estimates the round-trip time, from echoed timestamps and from how long a window's worth of data takes to
//! come, and counts what was read in each round trip. More than in any before means that the buffer must hold twice that,
//! and as much again as the sender's rate just grew.
//!
//! **Source.** Linux 6.18 `tcp_rcv_rtt_update`, `tcp_rcv_rtt_measure`, `tcp_rcv_rtt_measure_ts`, `tcp_rcv_space_adjust`,
//! `tcp_rcvbuf_grow`; M. Fisk, W. Feng, "Dynamic Right-Sizing in TCP", LACSI 2001.
//! **Deviations.** Time passes with the data that arrives, not with acknowledgments that came since.

use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// What is known of the sender's rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct RightSizing {
    /// Estimated round-trip time in eighths of a microsecond, zero until there is one (`rcv_rtt_est.rtt_us`).
    rtt: u64,
    /// Where the window's worth of data ends that is being timed, zero until data came (`rcv_rtt_est.seq`).
    edge: u64,
    /// When that data began to come (`rcv_rtt_est.time`).
    edge_since: Instant,
    /// The most that was read in a round trip, in bytes (`rcvq_space.space`).
    most_read: u64,
    /// Where the round trip began whose bytes are being counted (`rcvq_space.seq`).
    read_from: u64,
    /// When that round trip began (`rcvq_space.time`).
    since: Instant,
    /// When data last came (`tcp_mstamp`).
    seen: Instant,
    /// Timestamp that was last echoed (`rcv_rtt_last_tsecr`).
    last_echo: u32,
}

impl RightSizing {
    /// Before the connection is established; `window` bytes count as read in a round trip.
    pub(in crate::tcp) const fn new(window: u64) -> RightSizing {
        RightSizing {
            rtt: 0,
            edge: 0,
            edge_since: Instant::ZERO,
            most_read: window,
            read_from: 1,
            since: Instant::ZERO,
            seen: Instant::ZERO,
            last_echo: 0,
        }
    }

    /// The connection is established: the first round trip begins.
    pub(in crate::tcp) const fn start(&mut self, now: Instant, read: u64) {
        self.since = now;
        self.seen = now;
        self.read_from = read;
    }

    /// The round-trip time as far as it is known.
    pub(in crate::tcp) fn rtt(&self) -> Option<Duration> {
        (self.rtt > 0).then(|| Duration::from_nanos(self.rtt * 125))
    }

    /// A segment echoes the timestamp `echo`, which was sent `elapsed` milliseconds ago (asked for if it is another echo). `full`: it carries a full
    /// segment's worth of data; `all_read`: nothing waits for the application.
    #[inline(always)]
    pub(in crate::tcp) fn on_echo(
        &mut self,
        echo: u32,
        elapsed: impl FnOnce() -> u32,
        full: bool,
        all_read: bool,
    ) {
        if echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        let elapsed = elapsed();
        if full && (1..LONGEST_ECHO).contains(&elapsed) {
            self.sample(u64::from(elapsed) * 1000, false, all_read);
        }
    }

    /// Data came in order up to `rcv_nxt`, where the peer may send up to `edge`.
    #[inline]
    pub(in crate::tcp) fn on_data(&mut self, now: Instant, rcv_nxt: u64, edge: u64) {
        self.seen = now;
        if rcv_nxt >= self.edge {
            self.on_window(now, edge);
        }
    }

    /// A window's worth of data has come.
    #[cold]
    fn on_window(&mut self, now: Instant, edge: u64) {
        if self.edge > 0 {
            let elapsed = now.since(self.edge_since).as_nanos() / 1000;
            self.sample(elapsed.max(1), true, true);
        }
        self.edge = edge;
        self.edge_since = now;
    }

    /// Takes a sample of the round-trip time in microseconds. That of a window is too long if the sender waited, so only the
    /// shortest counts; so it is with data that waits to be read.
    fn sample(&mut self, micros: u64, of_window: bool, all_read: bool) {
        let sample = micros << 3;
        if self.rtt == 0 || sample < self.rtt {
            self.rtt = sample;
        } else if !of_window && all_read {
            self.rtt = self.rtt - (self.rtt >> 3) + micros;
        }
    }

    /// The application has read up to `read` and nothing waits but what lies up to `rcv_nxt`. If more was read in a round
    /// trip than ever before: the window to have room for.
    #[inline(always)]
    pub(in crate::tcp) fn on_read(&mut self, read: u64, rcv_nxt: u64) -> Option<u64> {
        if self.rtt == 0 || self.seen < self.since + Duration::from_micros(self.rtt >> 3) {
            return None;
        }
        self.on_round(read, rcv_nxt)
    }

    #[cold]
    fn on_round(&mut self, read: u64, rcv_nxt: u64) -> Option<u64> {
        let copied = (read - self.read_from).saturating_sub(rcv_nxt - read);
        let before = self.most_read;
        self.read_from = read;
        self.since = self.seen;
        if copied <= before {
            return None;
        }
        self.most_read = copied;
        // Right-sizing is a round trip late, and the sender may double its rate in each.
        let window = 2 * copied;
        Some(window + 2 * (window * (copied - before) / before.max(1)))
    }

    /// The window to have room for when data beyond a hole came: what is read in a round trip twice.
    pub(in crate::tcp) const fn usual(&self) -> u64 {
        2 * self.most_read
    }

    /// The window can never be larger than this.
    pub(in crate::tcp) fn bound(&mut self, clamp: u64) {
        self.most_read = self.most_read.min(clamp);
    }
}

/// Echoes of more milliseconds are not believed (`INT_MAX` microseconds).
const LONGEST_ECHO: u32 = 2_147_483;

#[cfg(test)]
mod tests {
    use super::RightSizing;
    use crate::time::{Duration, Instant};

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// 14,480 bytes count as read in a round trip at first. 28,960 in the next: 57,920 for the delay of the measurement, and
    /// twice the growth of (28,960 - 14,480) / 14,480 = 1 of it, 173,760.
    #[test]
    fn a_rate_that_doubles_makes_room_for_three_times_what_is_needed() {
        let mut sizing = RightSizing::new(14_480);
        sizing.start(at(0), 1);
        assert_eq!(sizing.on_read(1449, 1449), None, "no round-trip time is known");
        sizing.on_echo(5, || 100, true, true);
        sizing.on_data(at(99), 28_961, 65_161);
        assert_eq!(sizing.on_read(28_961, 28_961), None, "the round trip is not over");
        sizing.on_data(at(100), 28_961, 65_161);
        assert_eq!(sizing.on_read(28_961, 28_961), Some(57_920 + 2 * 57_920));
        // 40,000 in the next: 80,000 and twice 80,000 * 11,040 / 28,960 = 30,497.
        sizing.on_data(at(200), 68_961, 100_000);
        assert_eq!(sizing.on_read(68_961, 68_961), Some(80_000 + 2 * 30_497));
        // As much again is no more than before, and what is read but waits does not count.
        sizing.on_data(at(300), 108_961, 200_000);
        assert_eq!(sizing.on_read(108_961, 108_961), None);
        sizing.on_data(at(400), 208_961, 300_000);
        assert_eq!(sizing.on_read(158_961, 208_961), None);
        assert_eq!(sizing.usual(), 80_000);
        sizing.bound(30_000);
        assert_eq!(sizing.usual(), 60_000);
    }

    #[test]
    fn the_round_trip_time_is_smoothed_upwards_and_falls_at_once() {
        let ms = Duration::from_millis;
        let mut sizing = RightSizing::new(14_480);
        assert_eq!(sizing.rtt(), None);
        sizing.on_echo(1, || 0, true, true); // within one tick of the clock
        sizing.on_echo(2, || 100, false, true); // a small segment
        assert_eq!(sizing.rtt(), None);
        sizing.on_echo(3, || 100, true, true);
        assert_eq!(sizing.rtt(), Some(ms(100)));
        sizing.on_echo(3, || 900, true, true); // the same echo again
        sizing.on_echo(4, || 180, true, false); // data waits to be read
        assert_eq!(sizing.rtt(), Some(ms(100)));
        sizing.on_echo(5, || 180, true, true); // 100 + (180 - 100) / 8
        assert_eq!(sizing.rtt(), Some(ms(110)));
        sizing.on_echo(6, || 60, true, true);
        assert_eq!(sizing.rtt(), Some(ms(60)));
    }

    /// Without timestamps: 65,160 bytes are a window, and the shortest time that one took counts.
    #[test]
    fn a_windows_worth_of_data_takes_a_round_trip() {
        let ms = Duration::from_millis;
        let mut sizing = RightSizing::new(14_480);
        sizing.on_data(at(10), 1449, 66_609);
        sizing.on_data(at(50), 66_608, 131_768);
        assert_eq!(sizing.rtt(), None);
        sizing.on_data(at(60), 66_609, 131_769);
        assert_eq!(sizing.rtt(), Some(ms(50)));
        sizing.on_data(at(260), 131_769, 200_000); // the sender paused
        assert_eq!(sizing.rtt(), Some(ms(50)));
        sizing.on_data(at(290), 200_000, 300_000);
        assert_eq!(sizing.rtt(), Some(ms(30)));
    }
}
