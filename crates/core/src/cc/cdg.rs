//! CAIA Delay-Gradient: back off with a probability that grows with the gradient of the RTT.
//!
//! Once per round trip the smallest and the largest RTT of the round are compared with those of the round before, and the
//! differences of the last `window` rounds are added up. While the sum says that a queue grows, the window is reduced with
//! probability 1 - exp(-gradient/G): no threshold of delay is needed, and flows with different RTTs back off equally often.
//! Against flows that react to losses alone it stops backing off where that has no effect, and a shadow window remembers what
//! was given up, for the next loss.
//!
//! **Source.** Hayes and Armitage, "Revisiting TCP congestion control using delay gradients", Networking 2011; rules and
//! defaults as Linux has them since 4.2 (`tcp_cdg`, Jonassen 2015). `cdg-freebsd` is the authors' own.
//! **Deviations.** exp is computed, not read from a table. Windows are bytes unless the endpoint counts segments. A loss in a
//! reduction for delay counts as any other. `gradient = "one-way"` takes the one-way delay of the data path from timestamps instead
//! of the RTT, so that queues of the ACK path do not count; the clock of timestamps is milliseconds, so the smallest gradient is
//! too. `freeze` leaves out rounds in which the application was the limit. `at_once` is what a program in BPF does, which cannot put
//! the kernel into CWR. None of the three is in Linux. The handshake's RTT belongs to
//! the first round where this end opened the connection, as in Linux. Where New-CWV, which Linux lacks, sets the window, the shadow is at most
//! that window: NewReno's would be the same.
//! **Parameters.** `window`, `beta_delay`, `backoff_factor`, `hystart`, `ineffective`, `shadow`, `tolerance` with the defaults of Linux;
//! `gradient`, `freeze`, `at_once`.

use super::delays::{Delays, Extremes, Round};
use super::reno::of_reno;
use super::{Ack, Config, Congestion, CongestionController, CongestionKind, HyStart, Reaction, Reno, Units};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::registry::Need;
use crate::rng::{Probability, Rng};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// CDG as in Linux.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cdg {
    /// Growth, and the window itself.
    reno: Reno,
    law: Box<Law>,
}

/// What the gradient decides.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Law {
    units: Units,
    settings: Settings,
    /// Microseconds, of this round.
    delays: Delays,
    /// Smallest and largest delay of the round before.
    previous: Option<Extremes>,
    gradients: Gradients,
    round: Round,
    /// A reduction is over: the next acknowledgment begins a round.
    restart: bool,
    /// After a back-off at once, until what was in flight then has arrived.
    resting: bool,
    /// Loss tolerance: the queue is judged not to be full.
    nonfull: bool,
    /// What NewReno would have.
    shadow: Bytes,
    /// Back-offs since the gradient last fell.
    backoffs: u32,
    start: Start,
    clock: OneWay,
    random: Rng,
}

/// Parameters.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Settings {
    beta_delay: f64,
    /// Back-off probability: 1 - exp(-factor x gradient in seconds).
    factor: u64,
    train: bool,
    delay: bool,
    ineffective: u32,
    shadow: bool,
    tolerance: bool,
    one_way: bool,
    freeze: bool,
    at_once: bool,
}

/// The differences of the last rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Gradients {
    ring: Box<[(i64, i64)]>,
    sum: (i64, i64),
    tail: usize,
    filled: bool,
}

/// Slow start's own detector: HyStart with a clock of microseconds and from the first window on.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Start {
    /// Smallest RTT of the connection and of the round; 0: none yet.
    delay_min_us: i64,
    round_min_us: i64,
    last_ack: Option<Instant>,
    train: Instant,
    samples: u8,
}

/// One-way delays relative to the first, microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct OneWay {
    first_ms: Option<u32>,
}

impl Cdg {
    /// Linux's module parameters, and two more.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("window": Integer(1, 256) = 8,
            "Rounds whose gradients are added up, a power of two (Linux tcp_cdg: 8)"),
        parameter!("beta_delay": Number(0.0, 1.0) = 0.707_031_25,
            "Share of the window kept when the delay grows (Linux tcp_cdg: 724/1024)"),
        parameter!("backoff_factor": Integer(1, 1_000_000) = 42,
            "1000/(G x window): 42 is G = 3 ms with 8 rounds (Linux tcp_cdg)"),
        parameter!("hystart": Choice(&["off", "train", "delay", "both", "hystart++"]) = "both",
            "What ends slow start besides gradient and loss (Linux tcp_cdg: both)"),
        parameter!("ineffective": Integer(0, 65_535) = 5,
            "Back-offs without effect after which none follows until the gradient falls; 0: no limit (Linux tcp_cdg: 5)"),
        parameter!("shadow": Flag = true,
            "A loss takes back what delay back-offs gave up, as far as NewReno would have it (Linux tcp_cdg: true)"),
        parameter!("tolerance": Flag = false,
            "Losses while the queue is judged not to be full change nothing (Linux tcp_cdg: false)"),
        parameter!("gradient": Choice(&["rtt", "one-way"]) = "rtt",
            "Delay whose gradient counts: the RTT, or that of the data path, which needs timestamps (the paper: rtt)"),
        parameter!("freeze": Flag = false,
            "Rounds in which the application was the limit are left out (Linux tcp_cdg: false)"),
        parameter!("at_once": Flag = false,
            "A back-off lowers the window at once and rests for a round trip, as `fleetfoot attach cdg` has to, instead of lowering it over a round trip (Linux tcp_cdg: false)"),
    ];

    /// A controller with `config.initial_window`.
    pub fn new(values: &Values, config: &Config) -> Cdg {
        let detector = values.choice("hystart");
        let inner = Config {
            hystart: if detector == "hystart++" {
                HyStart::HyStartPlusPlus
            } else {
                HyStart::Off
            },
            ..*config
        };
        let reno = Reno::new(values, &inner);
        let window = values.integer("window").unwrap_or(8).clamp(1, 256) as usize;
        let mut delays = Delays::default();
        if let Some(handshake) = config
            .handshake_rtt
            .filter(|_| values.choice("gradient") == "rtt" && !config.passive)
        {
            delays.put(handshake.as_micros() as i64); // the first round's of the end that opened, as in Linux
        }
        Cdg {
            law: Box::new(Law {
                units: Units::new(config),
                settings: Settings {
                    beta_delay: values.number("beta_delay").unwrap_or(0.707_031_25),
                    factor: values.integer("backoff_factor").unwrap_or(42),
                    train: matches!(detector, "train" | "both"),
                    delay: matches!(detector, "delay" | "both"),
                    ineffective: values.integer("ineffective").unwrap_or(5) as u32,
                    shadow: values.flag("shadow"),
                    tolerance: values.flag("tolerance"),
                    one_way: values.choice("gradient") == "one-way",
                    freeze: values.flag("freeze"),
                    at_once: values.flag("at_once"),
                },
                delays,
                previous: None,
                gradients: Gradients {
                    ring: alloc::vec![(0, 0); window].into_boxed_slice(),
                    sum: (0, 0),
                    tail: 0,
                    filled: false,
                },
                round: Round::default(),
                restart: false,
                resting: false,
                nonfull: false,
                shadow: reno.window(),
                backoffs: 0,
                start: Start::default(),
                clock: OneWay::default(),
                random: Rng::for_element(config.seed, "cdg", "back-off"),
            }),
            reno,
        }
    }

    /// Probability of a back-off when the gradients add up to `gradient_us`.
    pub fn back_off_probability(gradient_us: i64, factor: u64) -> f64 {
        probability(gradient_us, factor).as_f64()
    }

    /// What is kept of the window when the delay grows.
    fn back_off(&mut self) {
        let kept = self
            .law
            .units
            .share(self.reno.window(), self.law.settings.beta_delay);
        self.reno.reduce_to(kept);
        self.reno.fall_to_threshold();
    }

    /// The shadow window.
    pub fn shadow(&self) -> Bytes {
        self.law.shadow
    }
}

impl CongestionController for Cdg {
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction {
        let law = &mut *self.law;
        law.sample(ack);
        if law.resting {
            if ack.recovering || !law.round.is_over(ack) {
                return Reaction::None;
            }
            law.resting = false;
            law.restart = true;
        }
        if law.restart && !ack.recovering {
            // The reduction itself says nothing about the queue: its last delays are what the next round is held against.
            law.restart = false;
            law.nonfull = false;
            law.begin_round(ack);
        }
        if ack.recovering {
            return Reaction::None;
        }
        if self.reno.window() < self.reno.ssthresh() && law.ends_slow_start(now, ack) {
            self.reno.end_slow_start();
        }
        if let Some(rtt) = law.delays.extremes.filter(|_| law.round.is_over(ack)) {
            let frozen = law.settings.freeze && ack.app_limited;
            let before = law.previous.filter(|_| !frozen);
            let gradient = before.and_then(|before| law.gradients.add(rtt, before));
            law.begin_round(ack);
            law.start.last_ack = None;
            law.start.samples = 0;
            law.start.round_min_us = 0;
            if let Some(gradient) = gradient {
                law.judge(gradient);
                if gradient.value > 0 && law.backs_off(gradient.value, self.reno.window()) {
                    if !law.settings.at_once {
                        return Reaction::ReduceWindow;
                    }
                    law.resting = true;
                    self.back_off();
                    return Reaction::None;
                }
            }
        }
        if !ack.cwnd_limited {
            law.shadow = law.shadow.min(self.reno.window());
            return Reaction::None;
        }
        let before = self.reno.window();
        self.reno.on_ack(now, ack);
        let grown = self.reno.window().saturating_sub(before);
        law.shadow = law.shadow.saturating_add(grown);
        Reaction::None
    }

    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        let law = &mut *self.law;
        let window = self.reno.window();
        match event.kind {
            CongestionKind::Delay => self.back_off(),
            CongestionKind::Loss | CongestionKind::Ecn => {
                self.reno.reduce_to(law.after_loss(window, event));
                self.reno.fall_to_threshold();
            }
            CongestionKind::Timeout { first } => {
                law.resting = false;
                if first {
                    self.reno.reduce_to(law.after_loss(window, event));
                }
                // Only what follows a change of the threshold.
                self.reno.on_congestion(
                    now,
                    &Congestion {
                        kind: CongestionKind::Timeout { first: false },
                        ..*event
                    },
                );
            }
            CongestionKind::Undo => self.reno.on_congestion(now, event),
            CongestionKind::RecoveryEnd => (law.restart, law.resting) = (true, false),
        }
    }

    fn on_window_restart(&mut self, _now: Instant) {
        let window = self.reno.window();
        let law = &mut *self.law;
        law.delays = Delays::default();
        law.previous = None;
        law.gradients.clear();
        law.round = Round::default(); // the first acknowledgment ends the round
        (law.restart, law.resting, law.nonfull) = (false, false, false);
        law.backoffs = 0;
        law.shadow = window;
        law.start = Start::default();
    }

    fn override_window(&mut self, now: Instant, window: Bytes, ssthresh: Bytes) {
        self.set_window(now, window, ssthresh);
        // NewReno would have this window too: it follows from what was used.
        self.law.shadow = self.law.shadow.min(self.reno.window());
    }

    of_reno!(set_window window ssthresh uses_sent phase);

    fn check(values: &Values) -> Result<(), String> {
        match values.integer("window") {
            Some(window) if !window.is_power_of_two() => {
                Err(alloc::format!("`window` is {window}, and must be a power of two"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn needs() -> &'static [Need] {
        const NEEDS: &[Need] = &[Need::new(
            "tcp.timestamps",
            "true",
            "with gradient = \"one-way\" only; required then",
        )
        .when("gradient", "one-way")
        .or_refused(
            "one-way delays are read from timestamps, which are off here: it would take round trips",
        )];
        NEEDS
    }
}

/// What a round ends with.
#[derive(Clone, Copy, Debug)]
struct Gradient {
    /// Sums of the differences of the smallest and the largest delays.
    sums: (i64, i64),
    /// What counts: extended to a full window of rounds.
    value: i64,
}

impl Law {
    /// Takes in the delay that an acknowledgment shows.
    fn sample(&mut self, ack: &Ack<'_>) {
        let rtt = ack.newest_rtt.or(ack.rtt).map(|rtt| rtt.as_micros() as i64);
        let mut delay = rtt.filter(|rtt| *rtt > 0);
        if self.settings.one_way
            && let Some(one_way) = ack.one_way_delay
        {
            let least = self.start.round_min_us;
            self.start.round_min_us =
                delay.map_or(least, |rtt| if least == 0 { rtt } else { least.min(rtt) });
            delay = Some(self.clock.relative_us(one_way));
        }
        if let Some(delay) = delay {
            self.delays.take(ack, delay);
        }
    }

    fn begin_round(&mut self, ack: &Ack<'_>) {
        self.round.begin(ack);
        self.previous = self.delays.extremes.take();
    }

    /// What the sums say besides the back-off.
    fn judge(&mut self, gradient: Gradient) {
        let (min, max) = gradient.sums;
        if min <= -FALL_US || max <= -FALL_US {
            self.backoffs = 0; // the last one had an effect
        }
        if self.settings.tolerance {
            let (min, max) = (nearest(min), nearest(max));
            if min > 0 && max <= 0 {
                self.nonfull = false;
            } else if (min > 0 && max > 0) || max < 0 {
                self.nonfull = true;
            }
        }
    }

    /// One draw for each positive gradient.
    fn backs_off(&mut self, gradient_us: i64, window: Bytes) -> bool {
        if !self.random.chance(probability(gradient_us, self.settings.factor)) {
            return false;
        }
        if self.settings.ineffective > 0 {
            self.backoffs = self.backoffs.saturating_add(1);
            if self.backoffs > self.settings.ineffective {
                return false; // it competes with flows that do not look at delay
            }
        }
        self.shadow = self.shadow.max(window);
        true
    }

    /// The threshold after a loss or a mark.
    fn after_loss(&mut self, window: Bytes, event: &Congestion) -> Bytes {
        if self.settings.tolerance && self.nonfull {
            return window;
        }
        self.shadow = self.units.whole_units(self.shadow / 2).min(window);
        let base = self.units.reduction_base(window, event);
        let half = self.units.share(base, 0.5);
        if self.settings.shadow {
            half.max(self.shadow)
        } else {
            half
        }
    }

    /// HyStart's two tests, of which either ends slow start.
    fn ends_slow_start(&mut self, now: Instant, ack: &Ack<'_>) -> bool {
        let (settings, start) = (self.settings, &mut self.start);
        if !(settings.train || settings.delay) {
            return false;
        }
        if !settings.one_way {
            start.round_min_us = self.delays.extremes.map_or(0, |rtt| rtt.min);
        }
        start.delay_min_us = match (start.delay_min_us, start.round_min_us) {
            (0, least) | (least, 0) => least,
            (least, round) => least.min(round),
        };
        if start.delay_min_us == 0 {
            return false;
        }
        if settings.train {
            match start.last_ack {
                Some(last) if ack.cwnd_limited => {
                    if now.since(last) < TRAIN_GAP {
                        let half = (start.delay_min_us / 2).max(LEAST_US) as u64;
                        start.last_ack = Some(now);
                        if now.since(start.train) > Duration::from_micros(half) {
                            return true;
                        }
                    }
                }
                Some(_) | None => {
                    start.last_ack = Some(now);
                    start.train = now;
                }
            }
        }
        if settings.delay {
            if start.samples < SAMPLES {
                start.samples += 1;
            } else {
                let eighth = start.delay_min_us / 8;
                return start.round_min_us > (start.delay_min_us + eighth).max(LEAST_US);
            }
        }
        false
    }
}

impl Gradients {
    fn clear(&mut self) {
        self.ring.fill((0, 0));
        self.sum = (0, 0);
        (self.tail, self.filled) = (0, false);
    }

    /// A round's differences take the place of the oldest.
    fn add(&mut self, rtt: Extremes, previous: Extremes) -> Option<Gradient> {
        let new = (rtt.min - previous.min, rtt.max - previous.max);
        let oldest = self.ring.get_mut(self.tail)?;
        self.sum.0 += new.0 - oldest.0;
        self.sum.1 += new.1 - oldest.1;
        *oldest = new;
        self.tail = (self.tail + 1) % self.ring.len();
        let (min, max) = self.sum;
        let mut value = if min > 0 { min } else { max };
        if !self.filled {
            if self.tail == 0 {
                self.filled = true;
            } else {
                value = value * self.ring.len() as i64 / self.tail as i64;
            }
        }
        Some(Gradient {
            sums: self.sum,
            value,
        })
    }
}

impl OneWay {
    /// Clocks of two hosts: only differences mean something.
    fn relative_us(&mut self, delay: Duration) -> i64 {
        let delay_ms = delay.as_millis() as u32;
        let first_ms = *self.first_ms.get_or_insert(delay_ms);
        i64::from(delay_ms.wrapping_sub(first_ms) as i32) * 1000
    }
}

/// 1 - exp(-factor x gradient in seconds).
pub(super) fn probability(gradient_us: i64, factor: u64) -> Probability {
    Probability::from_f64(-libm::expm1(-(gradient_us as f64) * factor as f64 * 1e-6))
}

/// The nearest multiple of 64, counted in 64; halves away from zero.
fn nearest(sum_us: i64) -> i64 {
    (sum_us + 32 * sum_us.signum()) / 64
}

/// A fall of the gradient (us) that shows that a back-off had an effect.
const FALL_US: i64 = 32;
const TRAIN_GAP: Duration = Duration::from_millis(3);
const LEAST_US: i64 = 125;
const SAMPLES: u8 = 8;
