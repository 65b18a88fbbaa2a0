//! Closed forms of tail loss: the hand-worked tables and the rules of the restarted timers.

pub(super) mod table;
pub(super) mod timer;

use fleetfoot_core::tcp::{
    Config, DelayedAck, EarlyRetransmit, Profile, Prr, RttEstimator, TailLossProbe, TimerGrid,
};
use fleetfoot_core::time::Duration;

/// What is done about a lost tail, by its name in the published file.
const MECHANISMS: [&str; 7] = [
    "baseline",
    "rtor",
    "tlp",
    "tlpr",
    "rtor_tlp",
    "rack_tlp_mad200",
    "rack_tlp_mad25",
];

/// The conditions of the tables with one of [`MECHANISMS`]; ACKs are delayed by `delayed`, if at all.
fn config(profile: Profile, mechanism: &str, delayed: Option<Duration>) -> Config {
    let mut config = Config::profile(profile);
    // The tables are worked in times that no clock rounds.
    config.rto.estimator = RttEstimator::Rfc6298;
    config.timer_grid = TimerGrid::Exact;
    config.prr = Prr::Rfc9937;
    config.early_retransmit = EarlyRetransmit::Immediate;
    config.timestamps = false;
    config.delayed_ack = delayed.map_or(DelayedAck::Off, |timeout| DelayedAck::Standard { timeout });
    config.rack = mechanism.starts_with("rack");
    config.tail_loss_probe = match mechanism {
        "tlp" | "tlpr" | "rtor_tlp" => TailLossProbe::Draft,
        _ if config.rack => TailLossProbe::Rfc8985,
        _ => TailLossProbe::Off,
    };
    config.rto_restart = mechanism.starts_with("rtor");
    config.tail_loss_probe_restart = mechanism == "tlpr";
    if mechanism == "rack_tlp_mad25" {
        config.max_ack_delay = Some(Duration::from_millis(25));
    }
    // The draft's probe starts recovery by the FACK rule, whatever the profile.
    config.fack = config.tail_loss_probe == TailLossProbe::Draft;
    config
}
