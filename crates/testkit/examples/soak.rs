//! Random transfers over random bad paths in virtual time, until a number of GiB or seconds is reached.
//!
//! `cargo run --release -p fleetfoot-testkit --example soak -- [--gib N] [--seconds N] [--seed N] [--short]`. Every fourth run is
//! long (more than 5 GiB); `--short` leaves those out. Progress goes to stderr, the line for the log to stdout, after
//! Ctrl-C too. A failure panics and names the seed; `--seed N --runs 1` repeats it.

use fleetfoot_testkit::soak::{Draw, Outcome};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static STOP: AtomicBool = AtomicBool::new(false);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut gib, mut seconds, mut seed, mut runs, mut short) = (100.0, u64::MAX, 1, u64::MAX, false);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let text = arguments.next().unwrap_or_default();
            text.parse::<f64>().unwrap_or_else(|_| {
                eprintln!("soak: {argument} wants a number, not `{text}`");
                std::process::exit(2);
            })
        };
        match argument.as_str() {
            "--gib" => gib = number(),
            "--seconds" => seconds = number() as u64,
            "--seed" => seed = number() as u64,
            "--runs" => runs = number() as u64,
            "--short" => short = true,
            _ => {
                eprintln!(
                    "soak: unknown argument `{argument}`; choose --gib, --seconds, --seed, --runs or --short"
                );
                std::process::exit(2);
            }
        }
    }
    if let Err(error) = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed)) {
        eprintln!("soak: Ctrl-C ends it without a line for the log: {error}");
    }
    let begin = Instant::now();
    let (goal, first) = ((gib * (1_u64 << 30) as f64) as u64, seed);
    let (mut total, mut connections, mut shown) = (Outcome::default(), 0_u64, begin);
    while total.bytes < goal && connections < runs && !STOP.load(Ordering::Relaxed) {
        let draw = Draw::new(seed, !short && seed.is_multiple_of(4), 10_000_000);
        // Nothing of a draw that panicked is used again.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut shown = shown;
            draw.run(|bytes| {
                if shown.elapsed() > Duration::from_secs(2) {
                    shown = Instant::now();
                    let all = (total.bytes + bytes) as f64 / (1_u64 << 30) as f64;
                    eprint!(
                        "\r{:5} s  {all:8.2} GiB  {connections} connections  seed {seed} ",
                        begin.elapsed().as_secs()
                    );
                }
                !STOP.load(Ordering::Relaxed) && begin.elapsed().as_secs() < seconds
            })
        }));
        let Ok(outcome) = outcome else {
            eprintln!("soak: seed {seed} failed: {draw:?}");
            std::process::exit(1);
        };
        shown = shown.max(begin);
        total.bytes += outcome.bytes;
        total.packets += outcome.packets;
        total.damaged += outcome.damaged;
        total.time += outcome.time;
        connections += 1;
        seed += 1;
        if begin.elapsed().as_secs() >= seconds {
            break;
        }
    }
    eprintln!();
    println!(
        "seeds {first} to {}: {connections} connections, {:.2} GiB, {} packets ({} damaged), {:.0} days of virtual time, {} s",
        seed - 1,
        total.bytes as f64 / (1_u64 << 30) as f64,
        total.packets,
        total.damaged,
        total.time.as_secs_f64() / 86_400.0,
        begin.elapsed().as_secs()
    );
}
