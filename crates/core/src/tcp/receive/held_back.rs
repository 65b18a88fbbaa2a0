//! Acknowledgments of disorder that are held back: SACK compression.
//!
//! The first three duplicates leave at once, for they start a repair. After them one acknowledgment speaks for all segments
//! that come beyond the hole within a twentieth of the round trip, but within a millisecond at most.
//!
//! **Source.** Linux 6.18 `__tcp_ack_snd_check`, `tcp_sack_compress_send_ack`; `tcp_comp_sack_nr`, `tcp_comp_sack_delay_ns`,
//! `tcp_comp_sack_slack_ns`.
//! **Deviations.** The slack of the timer is always used up, as on a machine that is otherwise idle. What comes in a third block
//! ends the wait; Linux sends what it had before, and holds that segment back anew. Without receive memory the round trip is
//! the sender's.

use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Acknowledgments held back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::tcp) struct HeldBack {
    /// What had come in order when the duplicates were counted (`compressed_ack_rcv_nxt`).
    at: u64,
    /// Duplicates that left at once (`dup_ack_counter`).
    duplicates: u8,
    /// Acknowledgments held back since the last one left (`compressed_ack`).
    count: u8,
}

impl HeldBack {
    /// A segment came beyond a hole, in order was everything up to `rcv_nxt`: whether its acknowledgment is held back.
    pub(in crate::tcp) const fn hold(&mut self, rcv_nxt: u64) -> bool {
        if self.count >= MOST {
            return false;
        }
        if self.at != rcv_nxt {
            self.at = rcv_nxt;
            self.duplicates = 0;
        }
        if self.duplicates < AT_ONCE {
            self.duplicates += 1;
            return false;
        }
        self.count += 1;
        true
    }

    /// Whether an acknowledgment is held back.
    pub(in crate::tcp) const fn waits(&self) -> bool {
        self.count > 0
    }

    /// An acknowledgment left.
    pub(in crate::tcp) const fn release(&mut self) {
        self.count = 0;
    }

    /// How long one is held back where the round trip takes `rtt`.
    pub(in crate::tcp) fn delay(rtt: Duration) -> Duration {
        rtt.mul_div(1, 20).min(LONGEST) + SLACK
    }
}

/// `TCP_FASTRETRANS_THRESH`.
const AT_ONCE: u8 = 3;

/// `tcp_comp_sack_nr`.
const MOST: u8 = 44;

/// `tcp_comp_sack_delay_ns`.
const LONGEST: Duration = Duration::from_millis(1);

/// `tcp_comp_sack_slack_ns`.
const SLACK: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::{Duration, HeldBack};

    #[test]
    fn three_leave_at_once_and_44_are_held_back() {
        let mut held = HeldBack::default();
        assert_eq!([(); 5].map(|()| held.hold(1)), [false, false, false, true, true]);
        assert!(held.waits());
        held.release();
        assert!(!held.waits());
        assert!(held.hold(1), "three duplicates of this have left");
        for _ in 1..44 {
            assert!(held.hold(1));
        }
        assert!(!held.hold(1));
        held.release();
        assert!(!held.hold(1449), "another hole");
    }

    #[test]
    fn it_takes_a_twentieth_of_the_round_trip_and_a_millisecond_at_most() {
        let (ms, us) = (Duration::from_millis, Duration::from_micros);
        assert_eq!(HeldBack::delay(ms(10)), us(600));
        assert_eq!(HeldBack::delay(ms(20)), us(1100));
        assert_eq!(HeldBack::delay(ms(200)), us(1100));
        assert_eq!(HeldBack::delay(ms(0)), us(100));
    }
}
