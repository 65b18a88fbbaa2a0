//! What controllers that look at delay have in common: rounds counted in delivered data, and the smallest and largest delay of one.

use super::Ack;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// A round trip in terms of data: it ends when what was in flight at its begin has been delivered.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Round {
    /// The round is over when more than this was delivered; zero: with the first acknowledgment.
    pub(super) end: Bytes,
}

impl Round {
    pub(super) fn is_over(self, ack: &Ack<'_>) -> bool {
        ack.delivered_total > self.end
    }

    pub(super) fn begin(&mut self, ack: &Ack<'_>) {
        self.end = ack.delivered_total.saturating_add(ack.in_flight);
    }
}

/// Smallest and largest delay, in the unit of its owner.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Extremes {
    pub(super) min: i64,
    pub(super) max: i64,
}

/// Delays of a round, without those of acknowledgments that the receiver may have kept back.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Delays {
    /// `None` before the first.
    pub(super) extremes: Option<Extremes>,
    /// Suspected delayed ACKs to come.
    delayed: u8,
}

impl Delays {
    /// Takes a delay into the round. Hayes, CAIA TR 100219A: an ACK of one segment from a receiver that acknowledges several may have
    /// waited, so that it can only lower the minimum.
    pub(super) fn take(&mut self, ack: &Ack<'_>, delay: i64) {
        if ack.sacked_total == Bytes::ZERO {
            if ack.segments == 1 && self.delayed > 0 {
                if let Some(extremes) = &mut self.extremes {
                    extremes.min = extremes.min.min(delay);
                }
                self.delayed -= 1;
                return;
            }
            if ack.segments > 1 && self.delayed < MOST_DELAYED {
                self.delayed += 1;
            }
        }
        self.put(delay);
    }

    /// Takes in a delay that no delayed ACK enlarged.
    pub(super) fn put(&mut self, delay: i64) {
        let extremes = self.extremes.get_or_insert(Extremes {
            min: delay,
            max: delay,
        });
        extremes.min = extremes.min.min(delay);
        extremes.max = extremes.max.max(delay);
    }
}

const MOST_DELAYED: u8 = 5;
