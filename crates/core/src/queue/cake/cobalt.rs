//! COBALT: CoDel and BLUE side by side, one set of variables per queue.
//!
//! CoDel's part marks or drops at a rising rate while the wait is above the target, and comes down again step by step instead
//! of starting anew. BLUE's part raises a drop probability when the queue overflows and lowers it when it runs empty.
//!
//! **Source.** Linux `sch_cake.c` (cobalt_*), whose order of decisions is kept, without its code: 1/sqrt is computed, not
//! approximated.
//!
//! Linux sets 1/sqrt to 0 for a new flow and computes it only when the count changes, so the first drop of a new flow follows the
//! first packet that waited too long at once, not after an interval, as the comment there and the paper have it. With
//! `first_at_once` it is so here.

use crate::time::{Duration, Instant};

/// The constants.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Constants {
    pub(in super::super) target: Duration,
    pub(in super::super) interval: Duration,
    /// Time of one packet of the MTU at the shaper's rate; 0 without a shaper.
    pub(in super::super) mtu_time: Duration,
    /// Whether the first drop of a new flow does not wait for an interval, as in Linux.
    pub(in super::super) first_at_once: bool,
}

/// BLUE's steps in Q0.32: up 1/256, down 1/4096.
const UP: u32 = 1 << 24;
const DOWN: u32 = 1 << 20;

/// The variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Cobalt {
    count: u32,
    drop_next: Instant,
    blue_timer: Instant,
    /// BLUE's drop probability, Q0.32.
    pub(in super::super) p_drop: u32,
    dropping: bool,
    /// Whether `count` was ever raised or lowered in steps.
    stepped: bool,
}

/// What becomes of a packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Judgement {
    pub(in super::super) mark: bool,
    pub(in super::super) drop: bool,
}

impl Cobalt {
    fn after(&self, from: Instant, constants: &Constants) -> Instant {
        let wait = constants.interval.as_nanos() as f64 / libm::sqrt(f64::from(self.count.max(1)));
        from.saturating_add(Duration::from_nanos(wait as u64))
    }

    /// A packet of the queue was dropped because the buffer was full.
    pub(in super::super) fn overflowed(&mut self, now: Instant, constants: &Constants) {
        if now.since(self.blue_timer) > constants.target {
            self.p_drop = self.p_drop.saturating_add(UP);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue was found empty when its turn came.
    pub(in super::super) fn emptied(&mut self, now: Instant, constants: &Constants) {
        if self.p_drop > 0 && now.since(self.blue_timer) > constants.target {
            self.p_drop = self.p_drop.saturating_sub(DOWN);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.come_down(constants);
        }
    }

    fn come_down(&mut self, constants: &Constants) {
        super::super::work::step();
        self.count -= 1;
        self.stepped = true;
        self.drop_next = self.after(self.drop_next, constants);
    }

    /// The queue was empty until `now`: what visits to the empty queue would have done in the meantime, at the most often.
    pub(in super::super) fn rested(&mut self, now: Instant, constants: &Constants) {
        if self.p_drop > 0 {
            let steps = now.since(self.blue_timer).as_nanos() / constants.target.as_nanos().max(1);
            let down = steps.saturating_mul(u64::from(DOWN)).min(u64::from(self.p_drop));
            self.p_drop -= down as u32;
            if steps > 0 {
                self.blue_timer = now;
            }
        }
        // Each step down was paid for by a step up.
        while self.count > 0 && now >= self.drop_next {
            self.come_down(constants);
        }
    }

    /// A packet leaves after waiting for `sojourn`; `draw` is a random number, asked for when BLUE wants one.
    pub(in super::super) fn judge(
        &mut self,
        now: Instant,
        constants: &Constants,
        sojourn: Duration,
        capable: bool,
        draw: impl FnOnce() -> u32,
    ) -> Judgement {
        let Constants { target, mtu_time, .. } = *constants;
        // `late` keeps, as the source does, what was true of `drop_next` before this packet moved it.
        let mut late = now > self.drop_next;
        let mut due = self.count > 0 && now >= self.drop_next;
        let over = sojourn > target && sojourn > mtu_time.saturating_mul(4);
        let mut judgement = Judgement {
            mark: false,
            drop: false,
        };
        if over {
            if !self.dropping {
                self.dropping = true;
                let at_once = constants.first_at_once && !self.stepped;
                self.drop_next = if at_once { now } else { self.after(now, constants) };
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if due && self.dropping {
            judgement.mark = capable;
            judgement.drop = !capable;
            self.count = self.count.saturating_add(1);
            self.stepped = true;
            self.drop_next = self.after(self.drop_next, constants);
            late = now > self.drop_next;
        } else {
            while due {
                self.come_down(constants);
                late = now > self.drop_next;
                due = self.count > 0 && now >= self.drop_next;
            }
        }
        // BLUE never marks: who overflows the buffer does not listen.
        if self.p_drop > 0 && draw() < self.p_drop {
            judgement.drop = true;
        }
        if self.count == 0 {
            self.drop_next = now.saturating_add(constants.interval);
        } else if late && !judgement.drop {
            self.drop_next = now;
        }
        judgement
    }
}
