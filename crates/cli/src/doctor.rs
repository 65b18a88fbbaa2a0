//! `fleetfoot doctor`: what works on this machine, and what to do about what does not.

use crate::failure::Failure;
use crate::output::Common;
use clap::Args;

/// Flags of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Also measure how many packets pass and how late they are, which takes about ten seconds of both cores.
    #[arg(long)]
    measure: bool,
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn execute(arguments: &Arguments, _: &Common) -> Result<(), Failure> {
    let _ = arguments.measure;
    Err(Failure::other(
        "the verbs with real packets need Linux; simulation works here",
    ))
}

#[cfg(target_os = "linux")]
pub(crate) use linux::execute;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Arguments, Common, Failure};
    use crate::layout::width;
    use crate::output::{plain, print};
    use fleetfoot_core::time::Duration;
    use fleetfoot_live::doctor::{Check, inside, outside};
    use fleetfoot_live::{Forwarded, Shaped, Shell, Timers};
    use fleetfoot_sim::output::Histogram;
    use serde_json::{Value, json};
    use std::fmt::Write;

    pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
        let root =
            std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        let mut checks = outside();
        // Without root the rest is tried where `shell` would work: in a user namespace.
        let isolated = root || Shell::isolate().is_ok();
        checks.extend(inside());
        let works = checks.iter().all(|check| check.works || !check.required);
        let timers = Timers::measure(SLEEPS);
        let measured = (arguments.measure && works && isolated).then(measure);
        if common.json {
            let document = json!({
                "schema": "fleetfoot-doctor", "version": 1, "shell": works, "root": root,
                "kernel": kernel(), "machine": machine(),
                "checks": checks.iter().map(check).collect::<Vec<_>>(),
                "timers": { "real_time": timers.real_time, "lateness": lateness(&timers.lateness) },
                "measured": measured.as_ref().map(|measured| match measured {
                    Ok(measured) => measured.document(),
                    Err(error) => json!({ "error": error }),
                }),
            });
            print(&format!("{document:#}\n"))?;
        } else {
            print(&text(&checks, works, root, &timers, measured.as_ref()))?;
        }
        if works { Ok(()) } else { Err(Failure::reported()) }
    }

    /// What the network of this machine is good for.
    struct Measured {
        shaped: Shaped,
        forwarded: Vec<Forwarded>,
    }

    fn measure() -> Result<Measured, String> {
        let words = |error: fleetfoot_live::Error| error.to_string();
        let shaped = Shaped::measure(Duration::from_millis(3000)).map_err(words)?;
        let forwarded = SIZES
            .iter()
            .map(|&bytes| Forwarded::measure(bytes, 3, Duration::from_millis(400)).map_err(words));
        Ok(Measured {
            shaped,
            forwarded: forwarded.collect::<Result<_, _>>()?,
        })
    }

    impl Measured {
        fn document(&self) -> Value {
            let forwarding = self.forwarded.iter().map(|forwarded| {
                json!({
                    "bytes": forwarded.bytes, "kernel_packets_per_s": forwarded.kernel_per_s,
                    "link_packets_per_s": forwarded.link_per_s, "ratio": forwarded.ratio(),
                })
            });
            json!({
                "shaped": {
                    "rate_bps": 100e6, "goodput_bps": self.shaped.goodput_bps,
                    "lateness": lateness(&self.shaped.lateness), "missed_packets": self.shaped.missed,
                },
                "forwarding": forwarding.collect::<Vec<_>>(),
            })
        }
    }

    fn check(check: &Check) -> Value {
        json!({
            "id": check.id, "name": check.name, "required": check.required, "works": check.works,
            "found": check.found, "advice": check.advice,
        })
    }

    fn lateness(values: &Histogram) -> Value {
        let at = |quantile| values.quantile(quantile).map(|value| value as f64 / 1e9);
        json!({
            "n": values.n(), "mean_s": values.mean().map(|mean| mean / 1e9), "p50_s": at(0.5),
            "p99_s": at(0.99), "max_s": at(1.0),
        })
    }

    fn words(values: &Histogram) -> String {
        let us = |value: u64| format!("{:.1} us", value as f64 / 1e3);
        let at = |quantile| us(values.quantile(quantile).unwrap_or(0));
        format!(
            "mean {:.1} us, median {}, 99 % {}, longest {}",
            values.mean().unwrap_or(0.0) / 1e3,
            at(0.5),
            at(0.99),
            us(values.max())
        )
    }

    fn text(
        checks: &[Check],
        works: bool,
        root: bool,
        timers: &Timers,
        measured: Option<&Result<Measured, String>>,
    ) -> String {
        let mut text = String::new();
        let mut line = |name: &str, state: &str, found: &str| {
            let indent = format!("{name:28} {state:8} ");
            let found = crate::layout::wrapped(&plain(found), width(), &" ".repeat(38));
            let _ = writeln!(text, "{indent}{}", found.trim_start());
        };
        line("kernel", "", &kernel());
        for check in checks {
            let state = match (check.works, check.required) {
                (true, _) => "ok",
                (false, true) => "missing",
                (false, false) => "no",
            };
            line(check.name, state, &check.found);
            if !check.advice.is_empty() {
                line("", "", check.advice);
            }
        }
        let priority = if timers.real_time {
            "at real-time priority"
        } else {
            "at ordinary priority"
        };
        line(
            "sleeps end late",
            "",
            &format!("{}, {priority}", words(&timers.lateness)),
        );
        match measured {
            None => {}
            Some(Err(error)) => line("measured", "no", error),
            Some(Ok(measured)) => {
                line(
                    "link of 100 Mbit/s",
                    "",
                    &format!(
                        "{:.1} Mbit/s of datagrams; lateness: {}; {} packets not read in time",
                        measured.shaped.goodput_bps / 1e6,
                        words(&measured.shaped.lateness),
                        measured.shaped.missed
                    ),
                );
                for forwarded in &measured.forwarded {
                    line(
                        &format!("packets of {} bytes", forwarded.bytes),
                        "",
                        &format!(
                            "{:.0} per second through the kernel (one core), {:.0} through a link without a limit (two cores): {:.2}",
                            forwarded.kernel_per_s,
                            forwarded.link_per_s,
                            forwarded.ratio()
                        ),
                    );
                }
            }
        }
        text.push_str(match (works, root) {
            (true, true) => "\n`fleetfoot shell` works here.\n",
            (true, false) => "\n`fleetfoot shell` works here without root, with both ends inside (--far).\n",
            (false, _) => "\n`fleetfoot shell` does not work here: see what is missing.\n",
        });
        text
    }

    fn kernel() -> String {
        let read =
            |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        format!("{} {}", read("ostype").trim(), read("osrelease").trim())
    }

    fn machine() -> Value {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processor
            .lines()
            .find_map(|line| line.strip_prefix("model name"))
            .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned());
        json!({ "cores": cores, "processor": model })
    }

    /// How often it is slept for half a millisecond.
    const SLEEPS: u32 = 1000;
    /// Packet sizes with which forwarding is measured.
    const SIZES: [u32; 2] = [1500, 64];
}
