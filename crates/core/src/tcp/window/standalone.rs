//! New-CWV for a sender that is not this TCP: its rules alone, asked event by event.
//!
//! The program that brings New-CWV into a kernel is held to it, acknowledgment by acknowledgment.
//!
//! **Source.** As `window::new_cwv`, whose code this is.
//! **Deviations.** None: who asks says when, and does to the window what the answers say.

use crate::cc::CongestionKind;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::config::WindowValidation;
use crate::tcp::window::new_cwv::Validation;
use crate::tcp::window::usage::View;
use crate::time::{Duration, Instant};
use crate::units::Bytes;

/// New-CWV (RFC 7661) without a connection around it. Windows are whole segments in bytes.
#[derive(Clone, Debug)]
pub struct NewCwv {
    validation: Validation,
}

/// What New-CWV looks at besides the event.
#[derive(Clone, Copy, Debug)]
pub struct NewCwvView {
    /// The congestion window.
    pub window: Bytes,
    /// The slow-start threshold.
    pub ssthresh: Bytes,
    /// Whether the window was the limit when data last left.
    pub full: bool,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// The window at the start.
    pub initial: Bytes,
    /// Smoothed RTT, if known.
    pub srtt: Option<Duration>,
}

impl NewCwvView {
    fn view(&self) -> View {
        View {
            window: self.window,
            ssthresh: self.ssthresh,
            full: self.full,
            unit: u64::from(self.mss.max(1)),
            mss: self.mss,
            restart: self.initial,
            srtt: self.srtt,
        }
    }
}

impl NewCwv {
    /// A connection on which nothing was sent yet.
    pub fn new() -> NewCwv {
        NewCwv {
            validation: Validation::new(WindowValidation::NewCwv).expect("New-CWV has a state"),
        }
    }

    /// Whether the window is not validated (RFC 7661 4.3).
    pub fn is_nonvalidated(&self) -> bool {
        self.validation.is_nonvalidated()
    }

    /// Data leaves and nothing was outstanding.
    pub fn on_first_out(&mut self) {
        self.validation.on_first_out();
    }

    /// An acknowledgment of `acked` new bytes up to offset `una`, while data was sent up to `nxt`. `recovering`: a loss is repaired.
    pub fn on_ack(
        &mut self,
        now: Instant,
        view: &NewCwvView,
        acked: Bytes,
        (una, nxt): (u64, u64),
        recovering: bool,
    ) {
        let delivery = Delivery {
            acked: acked.get(),
            advanced: acked > Bytes::ZERO,
            ..Delivery::default()
        };
        self.validation
            .on_ack(now, &view.view(), &delivery, (una, nxt), recovering);
    }

    /// Before data leaves: window and threshold that five minutes without validation leave, if they change (RFC 7661 4.4.2).
    pub fn before_sending(&mut self, now: Instant, view: &NewCwvView) -> Option<(Bytes, Bytes)> {
        self.validation.before_sending(now, &view.view())
    }

    /// A loss or a mark with `flight` outstanding: the window and threshold that follow in the non-validated phase. `None`: the answer is
    /// the congestion controller's.
    pub fn on_congestion(
        &mut self,
        now: Instant,
        view: &NewCwvView,
        kind: CongestionKind,
        flight: Bytes,
    ) -> Option<Bytes> {
        self.validation
            .on_congestion(now, &view.view(), kind, flight.get())
    }

    /// A segment of `bytes` that left at `sent_at` is sent again.
    pub fn on_retransmission(&mut self, sent_at: Instant, bytes: Bytes) {
        self.validation.on_lost_again(sent_at, bytes.get());
    }

    /// Recovery, or the answer to a mark, is over: the window and threshold that are left, if the answer was New-CWV's.
    pub fn on_recovery_end(&mut self, view: &NewCwvView) -> Option<Bytes> {
        self.validation.on_recovery_end(&view.view())
    }

    /// The reduction was a mistake: window and threshold before it, if the answer was New-CWV's.
    pub fn on_undo(&mut self) -> Option<(Bytes, Bytes)> {
        self.validation.take_back()
    }

    /// The retransmission timer expired; the answer is the congestion controller's.
    pub fn on_timeout(&mut self) {
        self.validation.on_timeout();
    }
}

impl Default for NewCwv {
    fn default() -> NewCwv {
        NewCwv::new()
    }
}
