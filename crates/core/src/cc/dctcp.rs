//! DCTCP: reduce the window in proportion to the share of bytes that were marked.
//!
//! Once per round trip the share of bytes that were marked is averaged into alpha; a mark then takes alpha / 2 of the window. Everything
//! else is NewReno. The receiver counts the marks (Accurate ECN, RFC 9768), which the connection asks for when this controller is chosen
//! and nothing else is written; or it echoes each change of marking at once, and the bytes acknowledged under an echo count as marked.
//!
//! **Source.** RFC 8257 3.3 and 3.4; RFC 9768 1 (feedback for DCTCP).
//! **Deviations.** The observation window is the connection's round, and the acknowledgment that ends it counts in
//! it, as in RFC 8257 3.3 steps 1 to 3; a mark on it is answered with the average that it moved (steps 4 to 9, and Linux's
//! `in_ack_event`). Bytes count when delivered, SACKed ones too (3.3 permits it). An echo reduces the window itself, not FlightSize (step 9). The window stays
//! at two segments or above, as Linux holds it. Where the window counts segments, a reduction takes as many whole ones as there are in alpha / 2
//! of it, as in Linux (`dctcp_ssthresh`); alpha is a real number, and Linux's 1,024ths reach zero.
//! **Parameters.** `gain` 1/16, `initial_alpha` 1 (RFC 8257 3.3, 4.2).

use super::reno::of_reno;
use super::{Ack, Config, Congestion, CongestionController, CongestionKind, Echo, Reaction, Reno};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::registry::Need;
use crate::time::Instant;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// DCTCP.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dctcp {
    /// Growth, and the answer to losses and timeouts (RFC 8257 3.5: as conventional TCP).
    reno: Reno,
    gain: f64,
    /// Estimate of the share of bytes marked.
    alpha: f64,
    /// Bytes delivered before this round began.
    delivered_before: Bytes,
    /// Bytes delivered under an echo in this round.
    marked: Bytes,
    /// What this acknowledgment says of marks has been counted.
    counted: bool,
}

impl Dctcp {
    /// `gain` and `initial_alpha`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("gain": Number(0.000_976_562_5, 1.0) = 0.0625,
            "Weight of a round's share of marked bytes in its average (RFC 8257 4.2: 1/16)"),
        parameter!("initial_alpha": Number(0.0, 1.0) = 1.0,
            "The average at the start; 1 halves the window at the first mark (RFC 8257 3.3)"),
    ];

    /// A controller with `config.initial_window`.
    pub fn new(values: &Values, config: &Config) -> Dctcp {
        Dctcp {
            reno: Reno::new(values, config),
            gain: values.number("gain").unwrap_or(0.0625),
            alpha: values.number("initial_alpha").unwrap_or(1.0),
            delivered_before: Bytes::ZERO,
            marked: Bytes::ZERO,
            counted: false,
        }
    }

    /// The estimate of the share of bytes marked.
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Counts marks; at the end of a round the average moves.
    fn observe(&mut self, echo: &Echo) {
        self.marked = self.marked.saturating_add(echo.marked);
        if echo.round_start {
            // RFC 8257 3.3 steps 4 to 7. A round without delivered bytes says nothing.
            let delivered = echo.delivered_total.saturating_sub(self.delivered_before);
            if delivered > Bytes::ZERO {
                let share = (self.marked.0 as f64 / delivered.0 as f64).min(1.0);
                self.alpha = self.alpha * (1.0 - self.gain) + self.gain * share;
            }
            self.delivered_before = echo.delivered_total;
            self.marked = Bytes::ZERO;
        }
    }
}

impl CongestionController for Dctcp {
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction {
        if !core::mem::take(&mut self.counted) {
            self.observe(&Echo::of(ack));
        }
        self.reno.on_ack(now, ack)
    }

    fn is_milder_on_marks(&self) -> bool {
        true
    }

    fn on_echo(&mut self, _now: Instant, echo: &Echo) {
        self.observe(echo);
        self.counted = true;
    }

    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        match event.kind {
            CongestionKind::Ecn => {
                // RFC 8257 3.3 step 9
                let from_window = Congestion {
                    flight_size: self.reno.window(),
                    ..*event
                };
                self.reno.give_up(&from_window, self.alpha / 2.0);
            }
            CongestionKind::Loss
            | CongestionKind::Timeout { .. }
            | CongestionKind::Delay
            | CongestionKind::Undo
            | CongestionKind::RecoveryEnd => self.reno.on_congestion(now, event),
        }
    }

    of_reno!(set_window window ssthresh uses_sent phase);

    fn needs() -> &'static [Need] {
        const NEEDS: &[Need] = &[
            Need::new(
                "tcp.ecn",
                "\"accurate\"",
                "marks are what it answers; required, and set by itself",
            )
            .or_value("true")
            .by_itself()
            .or_refused("`dctcp` answers marks, and without ECN it would see none: it would be Reno"),
            Need::new(
                "tcp.ecn_echo",
                "\"rfc8257\"",
                "every mark is reported, with `tcp.ecn` = true or a peer without Accurate ECN; so unless written otherwise",
            )
            .by_itself(),
            Need::new(
                "network.bottleneck.queue.ce_threshold",
                "1/7 of the RTT",
                "a queue that marks early; a key of codel and fq-codel",
            ),
        ];
        NEEDS
    }
}
