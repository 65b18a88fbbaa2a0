//! The loop of a storm: arguments, progress, the line for the log; and a cheap stream of numbers. Shared by the storms of several crates.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static STOP: AtomicBool = AtomicBool::new(false);

/// Inputs of one kind.
pub(crate) trait Storm {
    /// Makes and plays input `index`.
    fn play(&mut self, seed: u64, index: u64);
    /// What was reached, for the log.
    fn summary(&self) -> String;
}

/// Plays inputs until the arguments after the kind of storm, or Ctrl-C, end it.
pub(crate) fn run(storm: &mut dyn Storm, mut arguments: impl Iterator<Item = String>) {
    let (mut runs, mut seconds, mut seed, mut first) = (u64::MAX, u64::MAX, 1, 0);
    while let Some(argument) = arguments.next() {
        let text = arguments.next().unwrap_or_default();
        let number = text
            .parse()
            .unwrap_or_else(|_| fail(&format!("{argument} wants a number, not `{text}`")));
        match argument.as_str() {
            "--runs" => runs = number,
            "--seconds" => seconds = number,
            "--seed" => seed = number,
            "--first" => first = number,
            _ => fail(&format!(
                "unknown argument `{argument}`; choose --runs, --seconds, --seed or --first"
            )),
        }
    }
    if let Err(error) = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed)) {
        eprintln!("storm: Ctrl-C ends it without a line for the log: {error}");
    }
    let begin = Instant::now();
    let (mut done, mut shown) = (0_u64, begin);
    while done < runs && !STOP.load(Ordering::Relaxed) && begin.elapsed().as_secs() < seconds {
        let batch = 4096.min(runs - done);
        for index in first + done..first + done + batch {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| storm.play(seed, index)));
            if result.is_err() {
                fail(&format!(
                    "input {index} failed; --seed {seed} --first {index} --runs 1 repeats it"
                ));
            }
        }
        done += batch;
        if shown.elapsed() > Duration::from_secs(2) {
            shown = Instant::now();
            let rate = done as f64 / begin.elapsed().as_secs_f64();
            eprint!(
                "\r{:5} s  {done} inputs, {rate:.0} a second ",
                begin.elapsed().as_secs()
            );
        }
    }
    eprintln!();
    let time = begin.elapsed().as_secs_f64();
    println!(
        "seed {seed}: {done} inputs from {first} in {time:.0} s ({:.0} a second); {}",
        done as f64 / time,
        storm.summary()
    );
}

pub(crate) fn fail(message: &str) -> ! {
    eprintln!("storm: {message}");
    std::process::exit(2);
}

/// A cheap stream of numbers (SplitMix64): the generator must not cost more than what is tested.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64, index: u64) -> Draw {
        let mut draw = Draw(seed.rotate_left(32) ^ index.wrapping_mul(0xd134_2543_de82_ef95));
        let _ = draw.next();
        draw
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `0..n`; the bias does not matter here.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Less than two to a power that is drawn from `least` to `most`: small numbers are frequent.
    pub(crate) fn scaled(&mut self, least: u64, most: u64) -> u64 {
        let bits = least + self.below(most - least + 1);
        self.below(1 << bits)
    }

    /// True once in `n`.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
