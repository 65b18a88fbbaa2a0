//! How many packets a second the router forwards beside the kernel, with several queues and rings, by turns in one run.
//!
//! ```sh
//! cargo run --release -p fleetfoot-live --features xdp --example forwarding -- [SECONDS [ROUNDS]]
//! cargo run --release -p fleetfoot-live --features xdp --example forwarding -- loss [SECONDS [ROUNDS]]
//! ```
//! The second offers shares of the rate at which the kernel can lose no more, because its sender cannot send more, and shows what is lost.
//! Needs root; everything happens in network namespaces of its own. Trust the ratios: the kernel does all its work in the sender's thread, on
//! one core, and the router has a thread of its own, on another.

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("forwarding real packets needs Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use fleetfoot_core::parameter::Values;
    use fleetfoot_core::plugin::Plugins;
    use fleetfoot_core::queue::AnyQueue;
    use fleetfoot_core::time::Duration;
    use fleetfoot_live::router::{Config, InterfaceConfig, Mode, Offloads, Queue, Route};
    use fleetfoot_live::{Error, Format, Offered, kernel_forwards, router_forwards};
    use std::net::IpAddr;

    /// A row of the table: its name, and the router, unless it is the kernel's.
    type Subject = (String, Option<Config>);

    pub(crate) fn main() {
        let loss = std::env::args().nth(1).is_some_and(|word| word == "loss");
        let words = std::env::args().skip(if loss { 2 } else { 1 });
        let mut numbers = words.map(|word| word.parse::<u64>());
        let seconds = numbers.next().and_then(Result::ok).unwrap_or(1);
        let rounds = numbers.next().and_then(Result::ok).unwrap_or(5);
        for bytes in [46, 1500] {
            let made = match loss {
                true => losses(bytes, seconds, rounds),
                false => table(bytes, seconds, rounds),
            };
            if let Err(error) = made {
                eprintln!("{error}");
                std::process::exit(1);
            }
        }
    }

    fn table(bytes: u32, seconds: u64, rounds: u64) -> Result<(), Error> {
        let mut subjects: Vec<Subject> = vec![(String::from("kernel"), None)];
        for (mode, name) in [(Mode::Bridge, "bridge"), (Mode::Route, "route")] {
            for (ring, format) in [("frames", Format::Frames), ("blocks", Format::Blocks)] {
                subjects.push((
                    format!("{name} {ring} drop-tail"),
                    Some(config(mode, format, "drop-tail")),
                ));
            }
        }
        if cfg!(feature = "xdp") {
            for (mode, name) in [(Mode::Bridge, "bridge"), (Mode::Route, "route")] {
                for queue in ["drop-tail", "favourtail", "fq-codel"] {
                    let config = config(mode, Format::Xdp, queue);
                    subjects.push((format!("{name} xdp {queue}"), Some(config)));
                }
            }
        }
        for queue in ["favourtail", "superpacket", "sp-h", "sp-fq", "fq-codel"] {
            let config = config(Mode::Bridge, Format::Blocks, queue);
            subjects.push((format!("bridge blocks {queue}"), Some(config)));
        }
        let mut rates = vec![Vec::new(); subjects.len()];
        let mut lost = vec![0; subjects.len()];
        for _ in 0..rounds {
            for (index, (_, config)) in subjects.iter().enumerate() {
                let offered = Offered::flood(bytes, Duration::from_millis(1000 * seconds));
                rates[index].push(match config {
                    None => kernel_forwards(offered)?.per_s,
                    Some(config) => {
                        let (carried, snapshot) = router_forwards(config, offered)?;
                        lost[index] += snapshot.interfaces[0].input.missed;
                        carried.per_s
                    }
                });
            }
        }
        println!("\npackets of {bytes} bytes at layer 3, {rounds} rounds of {seconds} s by turns");
        println!(
            "{:<28} {:>12} {:>10} {:>13} {:>12}",
            "", "packets/s", "of kernel", "of drop-tail", "not read"
        );
        let median = |index: usize| {
            let mut sorted = rates[index].clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        };
        // Each compared with what ran beside it in the same round: the median of these ratios.
        let ratio = |index: usize, other: usize| {
            let mut ratios: Vec<f64> = rates[index]
                .iter()
                .zip(&rates[other])
                .map(|(a, b)| a / b)
                .collect();
            ratios.sort_by(f64::total_cmp);
            ratios[ratios.len() / 2]
        };
        let plain = subjects
            .iter()
            .position(|(name, _)| name == "bridge blocks drop-tail")
            .unwrap_or(0);
        for (index, (name, _)) in subjects.iter().enumerate() {
            println!(
                "{name:<28} {:>12.0} {:>10.2} {:>13.2} {:>12}",
                median(index),
                ratio(index, 0),
                ratio(index, plain),
                lost[index]
            );
        }
        Ok(())
    }

    /// What is lost of shares of what the kernel forwards at most.
    fn losses(bytes: u32, seconds: u64, rounds: u64) -> Result<(), Error> {
        let span = Duration::from_millis(1000 * seconds);
        let mut subjects: Vec<Subject> = vec![(String::from("kernel"), None)];
        let mut ways = vec![
            ("bridge frames", Mode::Bridge, Format::Frames),
            ("bridge blocks", Mode::Bridge, Format::Blocks),
        ];
        if cfg!(feature = "xdp") {
            ways.extend([
                ("bridge xdp", Mode::Bridge, Format::Xdp),
                ("route xdp", Mode::Route, Format::Xdp),
            ]);
        }
        for (name, mode, format) in ways {
            let config = config(mode, format, "drop-tail");
            subjects.push((format!("{name} drop-tail"), Some(config)));
        }
        let mut best = 0.0_f64;
        for _ in 0..rounds {
            best = best.max(kernel_forwards(Offered::flood(bytes, span))?.per_s);
        }
        println!(
            "\npackets of {bytes} bytes at layer 3: share lost, in the worst and the median of {rounds} rounds of {seconds} s, at shares of the kernel's {best:.0} packets/s"
        );
        for (name, config) in &subjects {
            let mut line = format!("{name:<28}");
            for share in SHARES {
                let offered = Offered {
                    bytes,
                    span,
                    per_s: Some(best * share),
                };
                let mut lost = Vec::new();
                for _ in 0..rounds {
                    lost.push(match config {
                        None => kernel_forwards(offered)?.lost(),
                        Some(config) => router_forwards(config, offered)?.0.lost(),
                    });
                }
                lost.sort_by(f64::total_cmp);
                let (worst, median) = (lost[lost.len() - 1], lost[lost.len() / 2]);
                line += &format!("  {:.0} %: {worst:.5}, {median:.5}", share * 100.0);
            }
            println!("{line}");
        }
        Ok(())
    }

    /// Shares of the kernel's rate that are offered.
    const SHARES: [f64; 4] = [0.25, 0.5, 0.75, 0.9];

    fn config(mode: Mode, ring: Format, queue: &str) -> Config {
        let entry = AnyQueue::entry_among(&[], queue).unwrap_or(&AnyQueue::ENTRIES[0]);
        let interface = |name: &str| InterfaceConfig {
            name: String::from(name),
            rate: None,
            framing: 0,
            queue: Queue {
                name: entry.name,
                values: Values::defaults(entry.parameters),
                plugins: Plugins::NONE,
            },
            ring,
            device_buffer: 212_992,
            check_source: false,
        };
        let route = |third: u8, interface| Route {
            network: IpAddr::from([10, 0, third, 0]),
            prefix: 24,
            interface,
            via: None,
        };
        Config {
            mode,
            interfaces: vec![interface("near"), interface("far")],
            routes: if mode == Mode::Route {
                vec![route(0, 0), route(1, 1)]
            } else {
                Vec::new()
            },
            metrics: None,
            offloads: Offloads::SwitchOff,
        }
    }
}
