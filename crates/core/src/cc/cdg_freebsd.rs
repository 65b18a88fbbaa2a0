//! CAIA Delay-Gradient as its authors wrote it for FreeBSD.
//!
//! The idea is that of `cdg`; the differences are in the numbers. RTTs are whole milliseconds, gradients are a moving
//! average, slow start looks at the last gradient alone, a back-off takes the window down at once and the round after it is
//! not looked at, a loss counts only where the queue is judged full, and the shadow window is thrown away when it is judged
//! empty.
//!
//! **Source.** Hayes and Armitage, "Revisiting TCP congestion control using delay gradients", Networking 2011, and FreeBSD's
//! `cc_cdg` (2013) for what the paper leaves open: rules, precision (1/128 ms), exponents up to five.
//! **Deviations.** exp is computed for the same 128 steps per G, not read from a table of 15 bits. A round is the connection's
//! window, where FreeBSD measures one segment of each; its filter for delayed ACKs is that of `cdg`. The window grows only where
//! it is in use (FreeBSD lets it grow always), and never at a loss: a shadow window above it is a threshold up to which slow
//! start goes. Recovery is the endpoint's (FreeBSD 10 had no PRR). Where New-CWV sets the window, the shadow is at most
//! that window, as in `cdg`.
//! **Parameters.** `smoothing`, `beta_delay`, `beta_loss`, `scale`, `consecutive`, `hold`, `alpha_rounds`: FreeBSD's sysctls with their
//! defaults.

use super::delays::{Delays, Extremes, Round};
use super::reno::of_reno;
use super::{Ack, Config, Congestion, CongestionController, CongestionKind, HyStart, Reaction, Reno, Units};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::rng::{Probability, Rng};
use crate::time::Instant;
use crate::units::Bytes;
use alloc::boxed::Box;
use serde::{Deserialize, Serialize};

/// CDG as in FreeBSD.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CdgFreeBsd {
    /// The window; its growth is [`Law::grow`]'s.
    reno: Reno,
    law: Box<Law>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Law {
    units: Units,
    settings: Settings,
    /// RTTs of this round, ms.
    delays: Delays,
    /// Smallest and largest delay of the round before, if this round is to be compared with it.
    previous: Option<Extremes>,
    /// The last gradients, 1/128 ms, and how many there are.
    ring: Box<[(i64, i64)]>,
    filled: u32,
    tail: u32,
    /// Moving averages, kept as FreeBSD adds them up: each difference divided, cut to whole 1/128 ms.
    trend: (i64, i64),
    queue: Queue,
    round: Round,
    /// A reduction is being answered until more than this was delivered.
    recover: Bytes,
    /// What NewReno would have; zero: nothing.
    shadow: Bytes,
    /// Rounds in a row that asked for a back-off.
    consecutive: u32,
    /// Segments per round, with `alpha_rounds`.
    increment: u32,
    rounds: u32,
    random: Rng,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Settings {
    beta_delay: f64,
    beta_loss: f64,
    /// The paper's G, ms.
    scale: i64,
    consecutive: u32,
    hold: u32,
    alpha_rounds: u32,
}

/// What the trends say about the queue of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Queue {
    Unknown,
    Empty,
    Rising,
    Falling,
    Full,
}

impl CdgFreeBsd {
    /// FreeBSD's sysctls.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("smoothing": Integer(0, 256) = 8,
            "Rounds in the moving average of the gradient; 0: none (FreeBSD cc_cdg smoothing_factor: 8)"),
        parameter!("beta_delay": Number(0.01, 1.0) = 0.7,
            "Share of the window kept when the delay grows (FreeBSD cc_cdg beta_delay: 70)"),
        parameter!("beta_loss": Number(0.01, 1.0) = 0.5,
            "Share of the window kept after a loss in a full queue (FreeBSD cc_cdg beta_loss: 50)"),
        parameter!("scale": Integer(1, 1000) = 3,
            "The paper's G in ms: a mean gradient of G backs off with probability 1 - 1/e (FreeBSD cc_cdg exp_backoff_scale: 3)"),
        parameter!("consecutive": Integer(0, 65_535) = 5,
            "Back-offs in a row after which it stops (FreeBSD cc_cdg loss_compete_consec_cong: 5)"),
        parameter!("hold": Integer(0, 65_535) = 5,
            "Back-offs then left out before it begins again (FreeBSD cc_cdg loss_compete_hold_backoff: 5)"),
        parameter!("alpha_rounds": Integer(0, 65_535) = 0,
            "Rounds after which the increase per round grows by a segment; 0: it stays at one (FreeBSD cc_cdg alpha_inc: 0)"),
    ];

    /// A controller with `config.initial_window`.
    pub fn new(values: &Values, config: &Config) -> CdgFreeBsd {
        let reno = Reno::new(
            values,
            &Config {
                hystart: HyStart::Off,
                ..*config
            },
        );
        let number = |name| values.integer(name).unwrap_or(0) as u32;
        CdgFreeBsd {
            law: Box::new(Law {
                units: Units::new(config),
                settings: Settings {
                    beta_delay: values.number("beta_delay").unwrap_or(0.7),
                    beta_loss: values.number("beta_loss").unwrap_or(0.5),
                    scale: i64::from(number("scale").max(1)),
                    consecutive: number("consecutive"),
                    hold: number("hold"),
                    alpha_rounds: number("alpha_rounds"),
                },
                delays: Delays::default(),
                previous: None,
                ring: alloc::vec![(0, 0); number("smoothing") as usize].into_boxed_slice(),
                filled: 0,
                tail: 0,
                trend: (0, 0),
                queue: Queue::Unknown,
                round: Round::default(),
                recover: Bytes::ZERO,
                shadow: reno.window(),
                consecutive: 0,
                increment: 0,
                rounds: 0,
                random: Rng::for_element(config.seed, "cdg", "back-off"),
            }),
            reno,
        }
    }

    /// The shadow window.
    pub fn shadow(&self) -> Bytes {
        self.law.shadow
    }
}

impl CongestionController for CdgFreeBsd {
    fn on_ack(&mut self, _now: Instant, ack: &Ack<'_>) -> Reaction {
        let law = &mut *self.law;
        law.sample(ack);
        let mut congested = false;
        let measured = law.round.is_over(ack) && law.delays.extremes.is_some();
        if measured {
            let slow_start = self.reno.window() <= self.reno.ssthresh();
            congested = law.end_round(slow_start);
            law.round.begin(ack);
        }
        if !congested {
            if !ack.recovering && ack.acked > Bytes::ZERO && ack.cwnd_limited {
                let increase = law.grow(self.reno.window() <= self.reno.ssthresh(), measured);
                self.reno.enlarge(increase);
            }
            return Reaction::None;
        }
        law.consecutive += 1;
        if ack.recovering {
            return Reaction::None;
        }
        if law.consecutive <= law.settings.consecutive {
            let kept = law.units.share(self.reno.window(), law.settings.beta_delay);
            self.reno.reduce_to(kept);
            self.reno.fall_to_threshold();
            law.recover = law.round.end;
            (law.increment, law.rounds) = (0, 0);
        } else if law.consecutive >= law.settings.consecutive + law.settings.hold {
            law.consecutive = 0;
        }
        law.previous = None; // an effect shows in the second round
        law.shadow = law.shadow.max(self.reno.window());
        Reaction::None
    }

    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        let law = &mut *self.law;
        let window = self.reno.window();
        match event.kind {
            CongestionKind::Loss => {
                let answered = law.recover > Bytes::ZERO;
                if answered || matches!(law.queue, Queue::Empty | Queue::Rising | Queue::Falling) {
                    self.reno.reduce_to(window);
                } else {
                    law.shadow = law.units.whole_units(law.shadow / 2);
                    let kept = law.units.share(window, law.settings.beta_loss);
                    self.reno.reduce_to(kept.max(law.shadow));
                    (law.increment, law.rounds) = (0, 0);
                }
                self.reno.fall_to_threshold();
            }
            CongestionKind::Ecn | CongestionKind::Delay => {
                self.reno.reduce_to(law.units.share(window, 0.5));
                self.reno.fall_to_threshold();
            }
            CongestionKind::Timeout { .. } | CongestionKind::Undo | CongestionKind::RecoveryEnd => {
                self.reno.on_congestion(now, event);
            }
        }
    }

    fn override_window(&mut self, now: Instant, window: Bytes, ssthresh: Bytes) {
        self.set_window(now, window, ssthresh);
        // NewReno would have this window too: it follows from what was used.
        self.law.shadow = self.law.shadow.min(self.reno.window());
    }

    of_reno!(set_window window ssthresh uses_sent phase);
}

impl Law {
    fn sample(&mut self, ack: &Ack<'_>) {
        if ack.delivered_total > self.recover {
            self.recover = Bytes::ZERO;
        }
        if let Some(rtt) = ack.newest_rtt.or(ack.rtt) {
            self.delays.take(ack, rtt.as_millis() as i64);
        }
    }

    /// Gradients, their trends and the queue; whether to back off.
    fn end_round(&mut self, slow_start: bool) -> bool {
        let mut congested = false;
        let rtt = self.delays.extremes.take();
        if let (Some(rtt), Some(previous)) = (rtt, self.previous) {
            let last = (
                (rtt.min - previous.min) * PRECISION,
                (rtt.max - previous.max) * PRECISION,
            );
            self.average(last);
            let (min, max) = self.trend;
            congested = if slow_start && last.0 > 0 {
                self.draw(last.0)
            } else if min > 0 {
                self.draw(min)
            } else if slow_start && last.1 > 0 {
                self.draw(last.1)
            } else if max > 0 {
                self.draw(max)
            } else {
                false
            };
            if min > 0 && max <= 0 {
                self.queue = Queue::Full;
            } else if min >= 0 && max < 0 {
                self.queue = Queue::Empty;
                self.shadow = Bytes::ZERO;
            } else if min > 0 && max > 0 {
                self.queue = Queue::Rising;
            } else if min < 0 && max < 0 {
                self.queue = Queue::Falling;
            }
            if min < 0 || max < 0 {
                self.consecutive = 0;
            }
        }
        self.previous = rtt;
        congested
    }

    fn average(&mut self, last: (i64, i64)) {
        let rounds = self.ring.len() as i64;
        let Some(oldest) = self.ring.get_mut(self.tail as usize) else {
            self.trend = last;
            return;
        };
        let gone = if i64::from(self.filled) < rounds {
            self.filled += 1;
            (0, 0)
        } else {
            *oldest
        };
        *oldest = last;
        self.tail = (self.tail + 1) % self.ring.len() as u32;
        self.trend.0 += (last.0 - gone.0) / rounds;
        self.trend.1 += (last.1 - gone.1) / rounds;
    }

    /// Whether a positive trend, 1/128 ms, backs off.
    fn draw(&mut self, trend: i64) -> bool {
        let scale = self.settings.scale;
        if trend > MOST_EXPONENT * scale * PRECISION {
            return true;
        }
        let step = if scale > 1 {
            (trend + scale / 2) / scale
        } else {
            trend
        };
        let p = match step {
            0 => LEAST_PROBABILITY,
            step => -libm::expm1(-(step as f64) / PRECISION as f64),
        };
        self.random.chance(Probability::from_f64(p))
    }

    /// What an acknowledgment adds to the window; the shadow grows as NewReno.
    fn grow(&mut self, slow_start: bool, measured: bool) -> Bytes {
        let mss = self.units.mss();
        let (mut increase, mut as_newreno) = (Bytes::ZERO, Bytes::ZERO);
        if slow_start {
            (increase, as_newreno) = (mss, mss);
            (self.increment, self.rounds) = (0, 0);
        } else if measured {
            (increase, as_newreno) = (mss, mss);
            if self.settings.alpha_rounds > 0 {
                self.rounds += 1;
                if self.rounds >= self.settings.alpha_rounds {
                    self.increment += 1;
                    self.rounds = 0;
                }
                increase = mss * u64::from(self.increment);
            }
        }
        if self.shadow > Bytes::ZERO {
            self.shadow = self.shadow.saturating_add(as_newreno);
        }
        increase
    }
}

/// Steps per ms.
const PRECISION: i64 = 128;
/// Trends beyond this many G always back off.
const MOST_EXPONENT: i64 = 5;
/// Back-off probability of a trend that rounds to nothing: 10 / 2^15.
const LEAST_PROBABILITY: f64 = 10.0 / 32_768.0;
