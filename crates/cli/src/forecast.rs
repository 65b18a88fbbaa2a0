//! How long a batch of runs still takes.
//!
//! Before anything is measured: what is expected of each run, from its packets at a typical cost. The more is done, the more counts the
//! time that passed over the expected time that is done: long runs count for more than short ones, and minutes in which no run ends
//! do not make the speed nothing. What runs at the time is in neither, so a single short run that is done says little. Runs in real time,
//! beside which nothing is simulated, take as long as they say: their time is not counted where the speed of the others is measured.

use fleetfoot_lab::run::{Job, expected_s};
use std::time::{Duration, Instant};

/// Parts are worked on one after the other, the runs of a part on all cores at once.
pub(crate) struct Forecast {
    cores: usize,
    parts: Vec<Part>,
    /// What is done, and all of it.
    done: Work,
    work: Work,
    /// When the work began.
    since: Instant,
}

/// A part of the work: the runs of an experiment, or of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    jobs: Vec<Run>,
    seeds: u32,
}

/// A run of a job.
#[derive(Clone, Copy, Debug)]
struct Run {
    expected: Duration,
    /// Whether it takes place in real time.
    real: bool,
}

/// Time of runs (us).
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    /// Of the simulated ones as expected, one after the other.
    simulated: u64,
    /// Of those in real time, as many at a time as there are cores.
    real: u64,
}

impl Work {
    /// `runs`: so many of this kind; `at_once` of a part may take place at the same time.
    fn add(&mut self, run: Run, runs: u32, at_once: usize) {
        let us = run.expected.as_micros() as u64;
        // Run by run, so that nothing is left of a division when the last one is done.
        match run.real {
            true => self.real += us / at_once as u64 * u64::from(runs),
            false => self.simulated += us * u64::from(runs),
        }
    }

    fn less(self, other: Work) -> Work {
        Work {
            simulated: self.simulated.saturating_sub(other.simulated),
            real: self.real.saturating_sub(other.real),
        }
    }

    /// How long it takes (s).
    fn on(self, cores: usize) -> f64 {
        (self.simulated as f64 / cores as f64 + self.real as f64) / 1e6
    }
}

impl Forecast {
    pub(crate) fn new(parts: Vec<Part>, cores: usize) -> Forecast {
        let mut forecast = Forecast {
            cores: cores.max(1),
            parts: Vec::with_capacity(parts.len()),
            done: Work::default(),
            work: Work::default(),
            since: Instant::now(),
        };
        for part in parts {
            forecast.add(part);
        }
        forecast
    }

    /// Adds a part that follows; returns its number.
    pub(crate) fn add(&mut self, part: Part) -> usize {
        let at_once = part.at_once(self.cores);
        for &run in &part.jobs {
            self.work.add(run, part.seeds, at_once);
        }
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// Runs of all parts.
    pub(crate) fn runs(&self) -> u64 {
        let runs = self
            .parts
            .iter()
            .map(|part| part.jobs.len() as u64 * u64::from(part.seeds));
        runs.sum()
    }

    /// A run of this part and job is finished: it was computed, or kept from before.
    pub(crate) fn on_run(&mut self, part: usize, job: usize, computed: bool) {
        let Some(part) = self.parts.get(part) else {
            return;
        };
        let Some(&run) = part.jobs.get(job) else {
            return;
        };
        let at_once = part.at_once(self.cores);
        if computed {
            self.done.add(run, 1, at_once);
        } else {
            // What takes no time says nothing about the rest.
            let mut work = Work::default();
            work.add(run, 1, at_once);
            self.work = self.work.less(work);
        }
    }

    /// From now to the end (s).
    pub(crate) fn left_s(&self) -> f64 {
        self.left_after_s(self.since.elapsed())
    }

    /// From now to the end, so long after the beginning (s).
    fn left_after_s(&self, elapsed: Duration) -> f64 {
        let left = self.work.less(self.done);
        let longest = |real: bool| {
            let runs = self.parts.iter().flat_map(|part| &part.jobs);
            let longest = runs.filter(|run| run.real == real).map(|run| run.expected).max();
            longest.map_or(0.0, |longest| longest.as_secs_f64())
        };
        let (real, simulated) = (longest(true), longest(false));
        let expected = left
            .on(self.cores)
            .max(if left.real > 0 { real } else { 0.0 })
            .max(if left.simulated > 0 { simulated } else { 0.0 });
        let done = self.done.simulated as f64;
        if done == 0.0 || left.simulated == 0 {
            return expected;
        }
        let spent = (elapsed.as_secs_f64() - self.done.real as f64 / 1e6).max(0.0);
        let measured = left.real as f64 / 1e6 + spent * left.simulated as f64 / done;
        // As many of the longest runs as there are cores may be under way.
        let trust = done / (done + simulated * 1e6 * self.cores as f64);
        trust * measured + (1.0 - trust) * expected
    }

    /// Whether so little is done that its speed says little of the rest.
    pub(crate) fn is_rough(&self) -> bool {
        (self.done.simulated as f64) < ROUGH * self.work.simulated as f64
    }
}

impl Part {
    /// Every job with every one of so many seeds.
    pub(crate) fn new(jobs: &[Job], seeds: usize) -> Part {
        let runs = jobs
            .iter()
            .map(|job| (expected_s(&job.spec), job.spec.world.is_real()));
        Part::expecting(runs, seeds)
    }

    /// One run of each job: how long it takes (s), and whether in real time.
    pub(crate) fn expecting(runs: impl IntoIterator<Item = (f64, bool)>, seeds: usize) -> Part {
        let run = |(run_s, real)| Run {
            expected: Duration::from_secs_f64(run_s).max(LEAST),
            real,
        };
        Part {
            jobs: runs.into_iter().map(run).collect(),
            seeds: u32::try_from(seeds).unwrap_or(u32::MAX),
        }
    }

    /// The forecast where a run of the first job was measured to take `run_s`: all other simulated runs are expected to be off by the
    /// same factor.
    pub(crate) fn measured(mut self, run_s: Option<f64>) -> Part {
        let first = self.jobs.first().filter(|first| !first.real);
        if let (Some(run_s), Some(first)) = (run_s, first) {
            let factor = run_s / first.expected.as_secs_f64();
            for job in self.jobs.iter_mut().filter(|job| !job.real) {
                job.expected = job.expected.mul_f64(factor).max(LEAST);
            }
        }
        self
    }

    /// How many of its runs in real time take place at the same time.
    fn at_once(&self, cores: usize) -> usize {
        let real = self.jobs.iter().filter(|job| job.real).count();
        cores.min(real.saturating_mul(self.seeds as usize)).max(1)
    }
}

/// Share of the work that is done before the speed is to be trusted.
const ROUGH: f64 = 0.02;
/// No run takes no time at all.
const LEAST: Duration = Duration::from_micros(10);

#[cfg(test)]
pub(crate) mod tests {
    use super::{Forecast, Part};
    use std::time::Duration;

    /// Runs that are expected to take so long each (s).
    pub(crate) fn forecast(parts: &[&[f64]], seeds: usize, cores: usize) -> Forecast {
        let parts = parts
            .iter()
            .map(|runs_s| Part::expecting(runs_s.iter().map(|&run_s| (run_s, false)), seeds));
        Forecast::new(parts.collect(), cores)
    }

    #[test]
    fn before_anything_is_measured_the_expectation_is_shared_by_the_cores() {
        let parts = [&[1.0; 10][..], &[4.0]];
        assert_eq!(forecast(&parts, 10, 1).left_s(), 140.0);
        assert_eq!(forecast(&parts, 10, 2).left_s(), 70.0);
        // One run is on one core.
        assert_eq!(forecast(&[&[4.0]], 1, 2).left_s(), 4.0);
        assert_eq!(forecast(&[], 1, 2).left_s(), 0.0);
        assert!(forecast(&parts, 10, 2).is_rough());
    }

    #[test]
    fn a_short_run_that_is_done_says_little_of_long_ones() {
        // Ten runs in real time, two by two, and ten simulations of milliseconds, one of which is over after two seconds.
        let mut forecast = forecast(&[&[0.002, 12.0]], 10, 2);
        forecast.on_run(0, 0, true);
        let left = forecast.left_after_s(Duration::from_secs(2));
        assert!((60.0..75.0).contains(&left), "{left}");
    }

    #[test]
    fn runs_in_real_time_say_nothing_about_the_speed_of_the_others() {
        // Ten minutes in real time, then 400 s of simulation that takes a tenth of what was expected.
        let real = Part::expecting([(60.0, true)], 20);
        let simulated = Part::expecting([(1.0, false)], 400);
        let mut forecast = Forecast::new(vec![real, simulated], 2);
        (0..20).for_each(|_| forecast.on_run(0, 0, true));
        let after = |forecast: &Forecast, seconds| forecast.left_after_s(Duration::from_secs(seconds));
        assert_eq!(after(&forecast, 600), 200.0, "as expected: nothing is known");
        (0..360).for_each(|_| forecast.on_run(1, 0, true));
        // 360 of them took 18 s on two cores; 40 are left: 2 s as measured, 20 s as expected.
        let left = after(&forecast, 618);
        let trust = 360.0 / 362.0;
        assert!(
            (left - (trust * 2.0 + (1.0 - trust) * 20.0)).abs() < 1e-6,
            "{left}"
        );
    }

    #[test]
    fn cores_that_wait_beside_a_run_in_real_time_do_not_make_simulations_slow() {
        let real = Part::expecting([(60.0, true)], 1);
        let mut forecast = Forecast::new(vec![real, Part::expecting([(1.0, false)], 1000)], 8);
        assert_eq!(forecast.left_after_s(Duration::ZERO), 185.0);
        forecast.on_run(0, 0, true);
        assert!(forecast.is_rough(), "no simulation has ended");
        (0..80).for_each(|_| forecast.on_run(1, 0, true));
        // 80 took a second; 920 are left: 11.5 s as measured, 115 s as expected.
        let (left, trust) = (forecast.left_after_s(Duration::from_secs(61)), 80.0 / 88.0);
        let wanted = trust * 11.5 + (1.0 - trust) * 115.0;
        assert!((left - wanted).abs() < 1e-6, "{left}, not {wanted}");
    }

    #[test]
    fn nothing_is_left_when_all_runs_are_done() {
        let mut forecast = Forecast::new(vec![Part::expecting([(60.0, true)], 20)], 7);
        (0..20).for_each(|_| forecast.on_run(0, 0, true));
        assert_eq!(forecast.left_after_s(Duration::from_secs(200)), 0.0);
    }

    #[test]
    fn a_measured_run_puts_all_expectations_right_by_its_factor() {
        let left_s = |runs_s: &[f64], measured| {
            let part = Part::expecting(runs_s.iter().map(|&run_s| (run_s, false)), 10).measured(measured);
            Forecast::new(vec![part], 1).left_s()
        };
        assert_eq!(left_s(&[1.0, 3.0], Some(0.01)), 0.4);
        assert_eq!(left_s(&[1.0, 3.0], None), 40.0);
        assert_eq!(left_s(&[], Some(1.0)), 0.0);
    }

    #[test]
    fn runs_that_were_kept_are_done_and_say_nothing_of_the_rest() {
        let mut forecast = forecast(&[&[1.0; 4]], 5, 1);
        for _ in 0..5 {
            forecast.on_run(0, 0, false);
        }
        assert_eq!((forecast.left_s(), forecast.is_rough()), (15.0, true));
        std::thread::sleep(Duration::from_millis(20));
        forecast.on_run(0, 1, true);
        // A run that is expected to take a second took 20 ms or little more; half of the trust is in that, half in 14 s.
        assert!((7.1..9.5).contains(&forecast.left_s()), "{}", forecast.left_s());
        // 14 are left: as many seconds at the expected speed, and half of the trust is in what the one took that is done.
        let after = |seconds| forecast.left_after_s(Duration::from_secs(seconds));
        assert_eq!((after(1), after(600)), (14.0, 0.5 * 8400.0 + 0.5 * 14.0));
        assert!(!forecast.is_rough());
        for _ in 0..8 {
            forecast.on_run(0, 2, true);
        }
        // Nine are done: what was measured counts for nine tenths.
        let left = forecast.left_after_s(Duration::from_secs(9 * 60));
        assert!((left - (0.9 * 360.0 + 0.1 * 6.0)).abs() < 1e-6, "{left}");
        for _ in 0..6 {
            forecast.on_run(0, 2, true);
        }
        assert_eq!(forecast.left_s(), 0.0);
    }
}
