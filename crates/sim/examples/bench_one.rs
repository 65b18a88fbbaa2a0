//! Runs one workload: `bench_one NAME [PROFILE [SECONDS]]`. Under callgrind its instruction count divided by the packets
//! it prints is the number that gates speed.

use fleetfoot_core::tcp::Profile;
use fleetfoot_core::time::Duration;
use fleetfoot_sim::bench::{WORKLOADS, Workload};
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("bench-xlf1g", String::as_str);
    let profile_name = arguments.get(1).map_or("ns2-sack", String::as_str);
    let (Some(workload), Some(profile)) = (Workload::by_name(name), Profile::by_name(profile_name)) else {
        let names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name).collect();
        eprintln!(
            "usage: bench_one NAME [PROFILE [SECONDS]]; names: {}",
            names.join(", ")
        );
        std::process::exit(2);
    };
    let duration = match arguments.get(2).map(|text| text.parse::<f64>()) {
        Some(Ok(seconds)) => Duration::from_secs_f64(seconds),
        _ => workload.duration,
    };
    let spec = workload.spec(profile, duration);
    let started = std::time::Instant::now();
    let output = match run(&spec, Mode::Fast, &mut (), |_| ControlFlow::Continue(())) {
        Ok(output) => output,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    let wall_s = started.elapsed().as_secs_f64();
    let link = &output.links[Workload::BOTTLENECK];
    let drops: u64 = link.drops.iter().flatten().sum();
    // Peak resident memory, where the system reports it.
    let peak_kb = std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .unwrap_or(0);
    // Time on a processor, not on the wall: other programs do not count.
    let cpu_s = std::fs::read_to_string("/proc/self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(wall_s, |ns| ns / 1e9);
    println!(
        "{name} {profile_name}: delivered {} drops {drops} events {} cpu_s {cpu_s:.3} mpps {:.3} ns_per_packet {:.1} bytes_per_flow {} utilisation {:.4}",
        link.data_packets,
        output.events,
        link.data_packets as f64 / cpu_s / 1e6,
        cpu_s * 1e9 / link.data_packets.max(1) as f64,
        peak_kb * 1024 / u64::from(workload.flows()),
        link.busy.as_secs_f64() / duration.as_secs_f64(),
    );
}
