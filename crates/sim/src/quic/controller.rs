//! Congestion controls of QUIC connections: quinn's own, and ours behind quinn's interface.
//!
//! quinn reports each acknowledged packet, then the end of a batch; ours want one report of a batch. What quinn does not report
//! is kept here: bytes in flight, rounds by packet numbers, and recovery, which ends with the first acknowledgment of a
//! packet that was sent after it began (RFC 9002 7.3.2). A back-off for delay begins one too, which takes the place of CWR; a loss in it
//! counts as any other.
//!
//! **Deviations.** There is no rate halving or PRR: as with quinn's own controls the window is the reduced one at once. The window
//! is never below two datagrams (RFC 9002 7.2), because quinn sends nothing with less. Slow start ends by loss or mark only. A
//! change of the datagram size continues from window and threshold with a new state. Not among them: `bbr` and `bbr3`, because quinn paces by window and
//! round-trip time and asks no control for a rate; `dctcp` and `prague`, because quinn reports that there was a mark
//! and not how many.

use super::Clock;
use crate::spec::{QuicController, QuicTransport};
use fleetfoot_core::cc::{
    Ack, AnyController, Config, Congestion, CongestionController, CongestionKind, CubicArithmetic, HyStart,
    Reaction, Sent,
};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{BbrConfig, Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant as Moment;

/// The factory of the control that `transport` names.
pub(super) fn factory(
    transport: &QuicTransport,
    clock: Clock,
    seed: u64,
) -> Arc<dyn ControllerFactory + Send + Sync> {
    let window = transport.initial_window.get();
    match transport.controller {
        QuicController::QuinnNewReno => {
            let mut config = NewRenoConfig::default();
            config.initial_window(window);
            Arc::new(config)
        }
        QuicController::QuinnCubic => {
            let mut config = CubicConfig::default();
            config.initial_window(window);
            Arc::new(config)
        }
        QuicController::QuinnBbr => {
            let mut config = BbrConfig::default();
            config.initial_window(window);
            Arc::new(config)
        }
        QuicController::Reno
        | QuicController::Cubic
        | QuicController::Cdg
        | QuicController::CdgFreeBsd
        | QuicController::Vegas
        | QuicController::Westwood => Arc::new(Factory {
            name: transport.controller.name(),
            window: transport.initial_window,
            clock,
            seed,
        }),
    }
}

/// Makes one of our controls for each connection.
#[derive(Clone, Copy, Debug)]
struct Factory {
    name: &'static str,
    window: Bytes,
    clock: Clock,
    seed: u64,
}

impl Factory {
    fn control(&self, mtu: u64) -> AnyController {
        let config = Config {
            mss: Bytes(mtu),
            initial_window: self.window,
            hystart: HyStart::Off,
            paced: true,
            abc_limit: None,
            reduce_from_window: true,
            count_segments: false,
            fractions: false,
            cubic_arithmetic: CubicArithmetic::Rfc9438,
            handshake_rtt: None,
            passive: false,
            seed: self.seed,
        };
        let parameters = AnyController::entry(self.name).map_or(&[][..], |entry| entry.parameters);
        AnyController::build(self.name, &Values::defaults(parameters), &config)
            .expect("a test finds every name in the registry")
    }

    fn start(&self, mtu: u64) -> Ours {
        let control = self.control(mtu);
        Ours {
            window: control.window(),
            ssthresh: control.ssthresh(),
            control: Mutex::new(control),
            factory: *self,
            mtu,
            in_flight: 0,
            delivered: 0,
            lost: 0,
            last_sent: 0,
            round_end: 0,
            recovery: None,
            answered: None,
            batch: Batch::default(),
            now: Instant::ZERO,
        }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Moment, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.start(u64::from(current_mtu)))
    }
}

/// One of our controls.
struct Ours {
    /// quinn wants what can be shared; nothing is.
    control: Mutex<AnyController>,
    /// Window and threshold as they are.
    window: Bytes,
    ssthresh: Bytes,
    factory: Factory,
    /// UDP payload of a full datagram.
    mtu: u64,
    in_flight: u64,
    delivered: u64,
    /// Bytes lost since the last batch of acknowledgments.
    lost: u64,
    /// Number of the newest packet, and of the last one of this round.
    last_sent: u64,
    round_end: u64,
    /// The last recovery, from a loss, a mark or a back-off for delay.
    recovery: Option<Recovery>,
    /// When the last loss or mark was answered; packets sent until then say nothing new.
    answered: Option<Moment>,
    batch: Batch,
    /// Time of the last report.
    now: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Recovery {
    start: Moment,
    over: bool,
}

/// Packets acknowledged together.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    bytes: u64,
    packets: u32,
    newest: Option<Moment>,
    srtt: Option<Duration>,
    min_rtt: Option<Duration>,
}

impl Ours {
    /// Lets the control act, and notes its window.
    fn act<T>(&mut self, act: impl FnOnce(&mut AnyController) -> T) -> T {
        let control = self.control.get_mut().unwrap_or_else(PoisonError::into_inner);
        let answer = act(control);
        (self.window, self.ssthresh) = (control.window(), control.ssthresh());
        answer
    }

    /// Goes on from this window and threshold with a new control.
    fn renew(&mut self, window: Bytes, ssthresh: Bytes) {
        let (now, control) = (self.now, self.factory.control(self.mtu));
        self.control = Mutex::new(control);
        self.act(|control| control.set_window(now, window, ssthresh));
    }

    fn congestion(&mut self, now: Instant, kind: CongestionKind, flight: u64) {
        let in_flight = match kind {
            CongestionKind::Timeout { .. } => 0, // RFC 9002 7.6.2: down to the minimum
            _ => self.in_flight,
        };
        let event = Congestion {
            kind,
            flight_size: Bytes(flight),
            in_flight: Bytes(in_flight),
        };
        self.act(|control| control.on_congestion(now, &event));
    }

    /// A packet was acknowledged; the smoothed and the least round-trip time are those before this batch.
    fn acknowledged(&mut self, sent: Moment, bytes: u64, [srtt, min_rtt]: [std::time::Duration; 2]) {
        self.batch.bytes += bytes;
        self.batch.packets += 1;
        self.batch.newest = self.batch.newest.max(Some(sent));
        self.batch.srtt = Some(span(srtt));
        self.batch.min_rtt = Some(span(min_rtt));
    }

    /// Recovery begins: it ends with the first acknowledgment of a packet that is sent after `now`.
    fn recover(&mut self, now: Moment) {
        self.recovery = Some(Recovery {
            start: now,
            over: false,
        });
    }
}

impl Controller for Ours {
    fn on_sent(&mut self, now: Moment, bytes: u64, last_packet_number: u64) {
        self.now = self.factory.clock.time_of(now);
        self.in_flight += bytes;
        self.last_sent = last_packet_number;
        let sent = Sent {
            bytes: Bytes(bytes),
            in_flight: Bytes(self.in_flight),
            retransmission: false,
        };
        let now = self.now;
        self.act(|control| control.on_sent(now, &sent));
    }

    fn on_ack(&mut self, _now: Moment, sent: Moment, bytes: u64, _app_limited: bool, rtt: &RttEstimator) {
        self.acknowledged(sent, bytes, [rtt.get(), rtt.min()]);
    }

    fn on_end_acks(
        &mut self,
        now: Moment,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let batch = std::mem::take(&mut self.batch);
        let Some(newest) = batch.newest else {
            self.in_flight = in_flight;
            return;
        };
        let (moment, rtt) = (now, span(now.duration_since(newest)));
        let (now, prior) = (self.factory.clock.time_of(now), self.in_flight);
        self.now = now;
        self.in_flight = in_flight;
        self.delivered += batch.bytes;
        let recovering = self.recovery.is_some_and(|recovery| newest <= recovery.start);
        if let Some(recovery) = &mut self.recovery
            && !recovering
            && !std::mem::replace(&mut recovery.over, true)
        {
            self.congestion(now, CongestionKind::RecoveryEnd, prior);
        }
        let largest = largest_packet_num_acked.unwrap_or(0);
        let round_start = largest > self.round_end;
        if round_start {
            self.round_end = self.last_sent;
        }
        let ack = Ack {
            acked: Bytes(batch.bytes),
            delivered: Bytes(batch.bytes),
            sacked: Bytes::ZERO,
            sacked_total: Bytes::ZERO,
            segments: batch.packets,
            delivered_total: Bytes(self.delivered),
            lost: Bytes(std::mem::take(&mut self.lost)),
            in_flight: Bytes(in_flight),
            prior_in_flight: Bytes(prior),
            rtt: Some(rtt),
            newest_rtt: Some(rtt),
            one_way_delay: None,
            rate: None,
            round_start,
            app_limited,
            cwnd_limited: !app_limited,
            recovering,
            ce_bytes: Bytes::ZERO,
            srtt: batch.srtt,
            min_rtt: batch.min_rtt.map(|least| least.min(rtt)),
        };
        if self.act(|control| control.on_ack(now, &ack)) == Reaction::ReduceWindow {
            self.congestion(now, CongestionKind::Delay, prior);
            self.recover(moment);
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Moment,
        sent: Moment,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let flight = self.in_flight;
        self.in_flight = flight.saturating_sub(lost_bytes);
        self.lost += lost_bytes;
        if self.answered.is_some_and(|answered| sent <= answered) && !is_persistent_congestion {
            return;
        }
        self.answered = Some(now);
        self.recover(now);
        self.now = self.factory.clock.time_of(now);
        let kind = if is_persistent_congestion {
            CongestionKind::Timeout { first: true }
        } else if lost_bytes == 0 {
            CongestionKind::Ecn
        } else {
            CongestionKind::Loss
        };
        self.congestion(self.now, kind, flight);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = u64::from(new_mtu);
        self.renew(self.window.max(Bytes(self.mtu)), self.ssthresh);
    }

    fn window(&self) -> u64 {
        self.window.get().max(2 * self.mtu) // RFC 9002 7.2
    }

    /// For a new path to the peer, which no connection here takes.
    fn clone_box(&self) -> Box<dyn Controller> {
        let mut other = self.factory.start(self.mtu);
        other.renew(self.window, self.ssthresh);
        Box::new(other)
    }

    fn initial_window(&self) -> u64 {
        self.factory.window.get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A time span of the standard library as ours.
fn span(span: std::time::Duration) -> Duration {
    Duration::from_nanos(span.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration as Span;

    const MTU: u64 = 1_200;

    /// A sender that fills the window in every round trip.
    struct Rounds {
        control: Ours,
        now: Moment,
        rtt: Span,
        next: u64,
    }

    impl Rounds {
        fn new(name: &'static str) -> Rounds {
            let clock = Clock::new();
            let factory = Factory {
                name,
                window: Bytes(12_000),
                clock,
                seed: 1,
            };
            Rounds {
                control: factory.start(MTU),
                now: clock.moment_of(Instant::ZERO),
                rtt: Span::from_millis(99),
                next: 0,
            }
        }

        /// Sends a window; when, and how many packets. Then a round-trip time passes.
        fn send(&mut self) -> (Moment, u64) {
            self.now += Span::from_millis(1);
            let (sent, packets) = (self.now, self.control.window() / MTU);
            for _ in 0..packets {
                self.control.on_sent(sent, MTU, self.next);
                self.next += 1;
            }
            self.now += self.rtt;
            (sent, packets)
        }

        /// The last `from` packets but `to` arrive.
        fn acknowledge(&mut self, sent: Moment, from: u64, to: u64) {
            for left in (to..from).rev() {
                self.control.acknowledged(sent, MTU, [self.rtt; 2]);
                let newest = self.next - 1 - left;
                self.control
                    .on_end_acks(self.now, left * MTU, false, Some(newest));
            }
        }

        /// The window after a round in which everything arrives, or everything is `lost`.
        fn round(&mut self, lost: bool) -> u64 {
            let (sent, packets) = self.send();
            if lost {
                self.control
                    .on_congestion_event(self.now, sent, false, packets * MTU);
                return self.control.window();
            }
            self.acknowledge(sent, packets, 0);
            self.control.window()
        }
    }

    #[test]
    fn every_name_of_ours_is_registered_and_no_other_can_be_used() {
        let ours = QuicController::ALL
            .iter()
            .filter_map(|controller| controller.registered());
        let ours: Vec<&str> = ours.collect();
        for entry in AnyController::ENTRIES {
            let control = AnyController::build(
                entry.name,
                &Values::defaults(entry.parameters),
                &Config {
                    mss: Bytes(MTU),
                    initial_window: Bytes(12_000),
                    hystart: HyStart::Off,
                    paced: true,
                    abc_limit: None,
                    reduce_from_window: true,
                    count_segments: false,
                    fractions: false,
                    cubic_arithmetic: CubicArithmetic::Rfc9438,
                    handshake_rtt: None,
                    passive: false,
                    seed: 1,
                },
            );
            let paced = control.is_some_and(|control| control.uses_rates());
            let marks = (entry.needs)().iter().any(|need| need.path == "tcp.ecn_echo");
            assert_eq!(ours.contains(&entry.name), !paced && !marks, "{}", entry.name);
        }
    }

    #[test]
    fn reno_doubles_halves_once_per_round_and_adds_a_datagram() {
        let mut rounds = Rounds::new("reno");
        assert_eq!(rounds.control.window(), 12_000);
        // Slow start: what was acknowledged is added (RFC 5681 3.1).
        assert_eq!(rounds.round(false), 24_000);
        assert_eq!(rounds.round(false), 48_000);
        assert_eq!(rounds.round(true), 24_000);
        // Congestion avoidance: one datagram per window of data.
        assert_eq!(rounds.round(false), 25_200);
        assert_eq!(rounds.round(false), 26_400);
        // What was sent before a reduction calls for no second one.
        let sent = rounds.now - Span::from_millis(50);
        rounds.control.on_congestion_event(rounds.now, sent, false, MTU);
        rounds.control.on_congestion_event(rounds.now, sent, false, MTU);
        assert_eq!(rounds.control.window(), 13_200);
    }

    #[test]
    fn cubic_keeps_seven_tenths_and_a_mark_counts_as_a_loss() {
        let mut rounds = Rounds::new("cubic");
        assert_eq!(rounds.round(false), 24_000);
        let sent = rounds.now - Span::from_millis(50);
        rounds.control.on_congestion_event(rounds.now, sent, false, 0);
        assert_eq!(rounds.control.window(), 24_000 * 7 / 10);
    }

    /// The RTT jumps from 99 to 399 ms, so that CDG backs off with certainty at the first acknowledgment after it.
    fn backed_off() -> (Rounds, Moment, u64) {
        let mut rounds = Rounds::new("cdg");
        for _ in 0..3 {
            rounds.round(false);
        }
        rounds.rtt = Span::from_millis(399);
        let before = rounds.control.window();
        let (sent, packets) = rounds.send();
        rounds.acknowledge(sent, packets, packets - 1);
        let kept = before as f64 * 0.707_031_25;
        assert_eq!(rounds.control.window(), kept.round() as u64, "a back-off");
        (rounds, sent, packets)
    }

    /// docs/design/delay-gradient.md#beta: nothing grows and nothing is judged until a packet that was sent after the reduction is acknowledged.
    #[test]
    fn a_back_off_for_delay_is_answered_for_a_round_trip() {
        let (mut rounds, sent, packets) = backed_off();
        let window = rounds.control.window();
        rounds.acknowledge(sent, packets - 1, 0);
        assert_eq!(rounds.control.window(), window, "what was sent before");
        // Then rounds begin again; the RTT has fallen, and in two of them the window grows by a datagram.
        rounds.rtt = Span::from_millis(99);
        rounds.round(false);
        assert_eq!(rounds.round(false), window + MTU);
    }

    /// A loss during it counts as any other: half of the window before, which the shadow window remembers.
    #[test]
    fn a_loss_after_a_back_off_for_delay_is_answered_once() {
        let (mut rounds, sent, packets) = backed_off();
        let (before, lost) = (packets * MTU, rounds.control.window());
        for _ in 0..2 {
            rounds.control.on_congestion_event(rounds.now, sent, false, MTU);
            assert!(rounds.control.window() < lost, "of {lost}");
            assert!(
                rounds.control.window().abs_diff(before / 2) <= MTU,
                "{} of {before}",
                rounds.control.window()
            );
        }
    }

    #[test]
    fn persistent_congestion_leaves_two_datagrams() {
        let mut rounds = Rounds::new("reno");
        rounds.round(false);
        let sent = rounds.now - Span::from_millis(50);
        rounds.control.on_congestion_event(rounds.now, sent, true, MTU);
        assert_eq!(rounds.control.window(), 2 * MTU);
    }

    #[test]
    fn larger_datagrams_keep_window_and_threshold() {
        let mut rounds = Rounds::new("reno");
        rounds.round(false);
        rounds.round(true);
        rounds.control.on_mtu_update(1_452);
        assert_eq!(rounds.control.window(), 12_000);
        assert_eq!(rounds.control.ssthresh, Bytes(12_000));
        assert_eq!(rounds.control.clone_box().window(), 12_000);
    }
}
