//! No behaviour depends on a switch where it cannot act (docs/design/endpoint.md#switched-off): the trace is that of the baseline, segment
//! for segment and nanosecond for nanosecond.

use super::pair::{End, Fate, Pair, Sent};
use crate::rng::Rng;
use crate::tcp::{
    Config, DelayedAck, EarlyRetransmit, KeepAlive, Profile, Prr, Rdb, Stats, TailLossProbe, ThinRule,
    WindowValidation,
};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec::Vec;

const TOTAL: u64 = 400_000;

type Change = fn(&mut Config);

/// What the pipe does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pipe {
    /// Nothing.
    Perfect,
    /// Loses one segment in twenty.
    Lossy,
    /// Also duplicates and delays.
    Bad,
}

fn trace(config: &Config, pipe: Pipe, seed: u64) -> (Vec<Sent>, Stats) {
    let ms = Duration::from_millis;
    let mut pair = Pair::established(config, ms(20), ms(40), 14_600, 1460);
    let mut rng = Rng::for_element(seed, "pipe", "fate");
    pair.decide = Box::new(move |sent, _| {
        let draw = rng.below(40);
        match (pipe, draw) {
            (Pipe::Lossy | Pipe::Bad, 0 | 1) if sent.from == End::A => Fate::Drop,
            (Pipe::Bad, 2) => Fate::Twice,
            (Pipe::Bad, 3) => Fate::Delay(ms(rng.below(60))),
            _ => Fate::Deliver,
        }
    });
    pair.write_at(Instant::ZERO, End::A, TOTAL);
    // An hour is enough for everything but keep-alive.
    while pair.now < Instant::from_millis(3_600_000) && pair.a.acked() < TOTAL && pair.step() {
        super::check(&pair.a);
    }
    assert_eq!(pair.a.acked(), TOTAL);
    (pair.log, *pair.a.stats())
}

/// Asserts that `change` makes no difference to `base`, and that `base` does something on that pipe.
fn same(name: &str, base: &Config, pipe: Pipe, change: impl Fn(&mut Config)) {
    let mut changed = base.clone();
    change(&mut changed);
    assert_ne!(&changed, base, "{name} changes something");
    for seed in 0..8 {
        let (expected, stats) = trace(base, pipe, seed);
        assert!(pipe == Pipe::Perfect || stats.retransmits > 0);
        let (got, _) = trace(&changed, pipe, seed);
        let first = expected
            .iter()
            .zip(&got)
            .find(|(a, b)| (a.at, a.from, a.transmit, a.fate) != (b.at, b.from, b.transmit, b.fate));
        assert!(first.is_none(), "{name}, seed {seed}: {first:#?}");
        assert_eq!(expected.len(), got.len(), "{name}, seed {seed}");
    }
}

fn rfc() -> Config {
    Config::profile(Profile::Rfc)
}

#[test]
fn parameters_of_what_is_off_do_nothing() {
    let mut base = rfc();
    base.tail_loss_probe = TailLossProbe::Off;
    for pipe in [Pipe::Lossy, Pipe::Bad] {
        same("max_ack_delay without probes", &base, pipe, |config| {
            config.max_ack_delay = Some(Duration::from_millis(7));
        });
        same("probe restart without probes", &base, pipe, |config| {
            config.tail_loss_probe_restart = true;
        });
        same("early retransmit under RACK", &rfc(), pipe, |config| {
            config.early_retransmit = EarlyRetransmit::Off;
        });
        same("delayed early retransmit under RACK", &rfc(), pipe, |config| {
            config.early_retransmit = EarlyRetransmit::Delayed;
        });
        same("fack under RACK", &rfc(), pipe, |config| config.fack = true);
        let mut newreno = rfc();
        newreno.sack = false;
        newreno.dsack = false;
        same("RACK without SACK", &newreno, pipe, |config| config.rack = false);
        same("probes without SACK", &newreno, pipe, |config| {
            config.tail_loss_probe = TailLossProbe::Off;
        });
        same("D-SACK without SACK", &newreno, pipe, |config| {
            config.dsack = true;
        });
        same("fack without SACK", &newreno, pipe, |config| config.fack = true);
        same("Sack1 without SACK", &newreno, pipe, |config| {
            config.sack1_recovery = true;
        });
        let mut free = rfc();
        free.nagle = false;
        same("Minshall without Nagle", &free, pipe, |config| {
            config.nagle_minshall = true;
        });
        same("values of the SYN's timer", &rfc(), pipe, |config| {
            config.rto.initial = Duration::from_secs(9);
            config.rto.after_syn_timeout = Duration::from_secs(9);
            config.syn_retries = 1;
            config.syn_losses_forgiven = 9;
        });
        same("parameters of spreading that is off", &rfc(), pipe, |config| {
            config.spreading_jiffy = Duration::ZERO;
            config.spreading_gap = Duration::from_millis(1);
            config.spreading_rate = crate::units::Rate::from_bps(1_000_000);
            config.spreading_pair = false;
            config.spreading_memory = Duration::ZERO;
            config.spreading_stop = false;
            config.spreading_phase = true;
            config.spreading_tail = true;
            config.spreading_jitter_percent = 50;
        });
        same("the lifetime of segments", &rfc(), pipe, |config| {
            config.msl = Duration::from_secs(9);
        });
        same("a keep-alive that is not due", &rfc(), pipe, |config| {
            config.keep_alive = Some(KeepAlive {
                idle: Duration::from_secs(7200),
                interval: Duration::from_secs(75),
                probes: 9,
            });
        });
        same(
            "a bound of the window that is not reached",
            &rfc(),
            pipe,
            |config| {
                config.max_window_segments = Some(100_000);
            },
        );
        same("deferral without groups", &rfc(), pipe, |config| {
            config.offload_deferral = true;
        });
        same("ECN of the passive side", &rfc(), pipe, |config| {
            config.ecn_passive = false.into();
        });
        same("where a FIN goes, without one", &rfc(), pipe, |config| {
            config.lone_fin = true;
            config.fin_beyond_window = true;
        });
        same(
            "the acknowledgment of a SYN-ACK, without one",
            &rfc(),
            pipe,
            |config| {
                config.lone_handshake_ack = true;
            },
        );
    }
}

#[test]
fn mechanisms_of_loss_do_nothing_without_loss() {
    let base = rfc();
    let pipe = Pipe::Perfect;
    same("limited transmit", &base, pipe, |config| {
        config.limited_transmit = false;
    });
    for prr in [Prr::Off, Prr::Rfc6937Crb, Prr::Rfc6937Ssrb, Prr::Linux] {
        same("PRR", &base, pipe, |config| config.prr = prr);
    }
    same("RACK", &base, pipe, |config| config.rack = false);
    same("probes", &base, pipe, |config| {
        config.tail_loss_probe = TailLossProbe::Off;
    });
    same("the draft's probes", &base, pipe, |config| {
        config.tail_loss_probe = TailLossProbe::Draft;
    });
    same("F-RTO", &base, pipe, |config| config.frto = false);
    same("undo", &base, pipe, |config| config.undo = false);
    same("D-SACK", &base, pipe, |config| config.dsack = false);
    same("SACK", &base, pipe, |config| config.sack = false);
    same("duplicates", &base, pipe, |config| config.dup_thresh = 5);
    same("RTO restart", &base, pipe, |config| config.rto_restart = true);
    same("retries", &base, pipe, |config| config.retries = 2);
    same("no idle time", &base, pipe, |config| {
        config.window_validation = WindowValidation::None;
    });
}

#[test]
fn detection_of_mistakes_does_nothing_where_there_are_none() {
    // Losses only, and no timeout: F-RTO has nothing to do. Without timestamps Eifel has nothing to read, and no
    // retransmission is redundant.
    let mut base = rfc();
    base.timestamps = false;
    base.delayed_ack = DelayedAck::Off;
    for seed in 0..8 {
        assert_eq!(trace(&base, Pipe::Lossy, seed).1.undos, 0);
    }
    same("undo", &base, Pipe::Lossy, |config| config.undo = false);
    let quiet: Vec<u64> = (0..40)
        .filter(|&seed| trace(&base, Pipe::Lossy, seed).1.timeouts == 0)
        .collect();
    assert!(quiet.len() >= 8, "{quiet:?}");
    let mut off = base.clone();
    off.frto = false;
    for seed in quiet {
        let (with, without) = (
            trace(&base, Pipe::Lossy, seed).0,
            trace(&off, Pipe::Lossy, seed).0,
        );
        assert!(
            with.iter()
                .map(|s| (s.at, s.transmit))
                .eq(without.iter().map(|s| (s.at, s.transmit))),
            "seed {seed}"
        );
    }
}

#[test]
fn switches_act_where_they_can() {
    // The other side of the same: on a bad pipe each of these makes a difference, so that the tests above compare
    // something.
    let base = rfc();
    let changes: [(&str, Change); 7] = [
        ("rack", |config| config.rack = false),
        ("probe", |config| config.tail_loss_probe = TailLossProbe::Off),
        ("prr", |config| config.prr = Prr::Off),
        ("limited transmit", |config| config.limited_transmit = false),
        ("sack", |config| config.sack = false),
        ("undo", |config| config.undo = false),
        ("max_ack_delay", |config| {
            config.max_ack_delay = Some(Duration::from_millis(7));
        }),
    ];
    for (name, change) in changes {
        let mut changed = base.clone();
        change(&mut changed);
        let differs = (0..20).any(|seed| {
            let (a, b) = (
                trace(&base, Pipe::Bad, seed).0,
                trace(&changed, Pipe::Bad, seed).0,
            );
            !a.iter()
                .map(|s| (s.at, s.transmit))
                .eq(b.iter().map(|s| (s.at, s.transmit)))
        });
        assert!(differs, "{name}");
    }
}

#[test]
fn sack_compression_needs_sack_and_linuxs_delayed_acks() {
    let mut linux = Config::profile(Profile::Linux);
    linux.sack = false;
    for pipe in [Pipe::Lossy, Pipe::Bad] {
        same("compression without SACK", &linux, pipe, |config| {
            config.sack_compression = false;
        });
        same("compression with other delayed ACKs", &rfc(), pipe, |config| {
            config.sack_compression = true;
        });
    }
}

#[test]
fn switches_for_thin_streams_leave_bulk_alone() {
    let mut base = rfc();
    base.rack = false;
    for pipe in [Pipe::Perfect, Pipe::Lossy, Pipe::Bad] {
        same("parameters of restarts that are off", &base, pipe, |config| {
            config.rto_restart_threshold = 9;
            config.probe_restart_threshold = Some(2);
        });
        same("thin dupack under RACK", &rfc(), pipe, |config| {
            config.thin_dupack = true;
        });
    }
    let all = Rdb {
        thin: ThinRule::Packets(1_000_000),
        max_segments: 0,
        ..Rdb::STANDARD
    };
    for pipe in [Pipe::Perfect, Pipe::Lossy] {
        same("full segments leave no room for bundles", &base, pipe, |config| {
            config.rdb = Some(all);
        });
        same("one write", &base, pipe, |config| config.coalesce_unsent = false);
    }
}
