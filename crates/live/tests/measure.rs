//! Figures of this machine. They depend on what else it does: they are printed, not judged.
//! `cargo test --profile ci -p fleetfoot-live --test measure -- --ignored --nocapture`
#![cfg(target_os = "linux")]

use fleetfoot_core::time::Duration;
use fleetfoot_live::{Forwarded, Namespace, Shaped, Timers};

#[test]
#[ignore = "a measurement, not a check"]
fn figures() {
    if let Err(reason) = Namespace::available() {
        println!("skipped: {reason}");
        return;
    }
    let timers = Timers::measure(2000);
    let us = |value: u64| value as f64 / 1e3;
    let row = |lateness: &fleetfoot_sim::output::Histogram| {
        let at = |quantile| us(lateness.quantile(quantile).unwrap_or(0));
        format!(
            "lateness mean {:.1} us, p50 {:.1}, p99 {:.1}, max {:.1}",
            lateness.mean().unwrap_or(0.0) / 1e3,
            at(0.5),
            at(0.99),
            us(lateness.max())
        )
    };
    println!(
        "timers: {}, real time {}",
        row(&timers.lateness),
        timers.real_time
    );
    let shaped = Shaped::measure(Duration::from_millis(3000)).expect("namespaces are there");
    println!(
        "100 Mbit/s: goodput {:.2} Mbit/s, {}, {} missed",
        shaped.goodput_bps / 1e6,
        row(&shaped.lateness),
        shaped.missed
    );
    for bytes in [1500, 100] {
        let forwarded =
            Forwarded::measure(bytes, 3, Duration::from_millis(500)).expect("namespaces are there");
        println!(
            "{bytes} bytes: kernel {:.0} packets/s, link {:.0} packets/s, ratio {:.2}",
            forwarded.kernel_per_s,
            forwarded.link_per_s,
            forwarded.ratio()
        );
    }
}
