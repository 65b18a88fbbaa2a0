//! How long a batch of runs still takes.
//!
//! Before anything is measured: what is expected of each run, from its packets at a typical cost. The more is done, the more counts the
//! time that passed over the expected time that is done: long runs count for more than short ones, and minutes in which no run ends
//! do not make the speed nothing. What runs at the time is in neither, so a single short run that is done says little.

use fleetfoot_lab::run::{Job, expected_s};
use std::time::{Duration, Instant};

/// Parts are worked on one after the other, the runs of a part on all cores at once.
pub(crate) struct Forecast {
    cores: usize,
    parts: Vec<Part>,
    /// Expected time that is done, and all of it (us).
    done: u64,
    work: u64,
    /// When the work began.
    since: Instant,
}

/// A part of the work: the runs of an experiment, or of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Expected time of one run of each job.
    jobs: Vec<Duration>,
    seeds: u32,
}

impl Forecast {
    pub(crate) fn new(parts: Vec<Part>, cores: usize) -> Forecast {
        Forecast {
            cores: cores.max(1),
            work: parts.iter().map(Part::work).sum(),
            parts,
            done: 0,
            since: Instant::now(),
        }
    }

    /// Adds a part that follows; returns its number.
    pub(crate) fn add(&mut self, part: Part) -> usize {
        self.work += part.work();
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
        let run = self.parts.get(part).and_then(|part| part.jobs.get(job));
        let work = run.map_or(0, |run| run.as_micros() as u64);
        if computed {
            self.done += work;
        } else {
            // What takes no time says nothing about the rest.
            self.work = self.work.saturating_sub(work);
        }
    }

    /// From now to the end (s).
    pub(crate) fn left_s(&self) -> f64 {
        self.left_after_s(self.since.elapsed())
    }

    /// From now to the end, so long after the beginning (s).
    fn left_after_s(&self, elapsed: Duration) -> f64 {
        let left = self.work.saturating_sub(self.done) as f64;
        if left == 0.0 {
            return 0.0;
        }
        let longest = self.parts.iter().filter_map(|part| part.jobs.iter().max()).max();
        let longest = longest.map_or(0.0, Duration::as_secs_f64);
        let expected = longest.max(left / 1e6 / self.cores as f64);
        if self.done == 0 {
            return expected;
        }
        let done = self.done as f64;
        let measured = elapsed.as_secs_f64() * left / done;
        // As many of the longest runs as there are cores may be under way.
        let trust = done / (done + longest * 1e6 * self.cores as f64);
        trust * measured + (1.0 - trust) * expected
    }

    /// Whether so little is done that its speed says little of the rest.
    pub(crate) fn is_rough(&self) -> bool {
        (self.done as f64) < ROUGH * self.work as f64
    }
}

impl Part {
    /// Every job with every one of so many seeds.
    pub(crate) fn new(jobs: &[Job], seeds: usize) -> Part {
        Part::expecting(jobs.iter().map(|job| expected_s(&job.spec)), seeds)
    }

    /// `runs_s`: of one run of each job.
    pub(crate) fn expecting(runs_s: impl IntoIterator<Item = f64>, seeds: usize) -> Part {
        Part {
            jobs: runs_s
                .into_iter()
                .map(|run_s| Duration::from_secs_f64(run_s).max(LEAST))
                .collect(),
            seeds: u32::try_from(seeds).unwrap_or(u32::MAX),
        }
    }

    /// The forecast where a run of the first job was measured to take `run_s`: all other runs are expected to be off by the same factor.
    pub(crate) fn measured(mut self, run_s: Option<f64>) -> Part {
        if let (Some(run_s), Some(&first)) = (run_s, self.jobs.first()) {
            let factor = run_s / first.as_secs_f64();
            for job in &mut self.jobs {
                *job = job.mul_f64(factor).max(LEAST);
            }
        }
        self
    }

    /// Expected time of all runs, one after the other (us).
    fn work(&self) -> u64 {
        (self.jobs.iter().sum::<Duration>() * self.seeds).as_micros() as u64
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
            .map(|runs_s| Part::expecting(runs_s.iter().copied(), seeds));
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
    fn a_measured_run_puts_all_expectations_right_by_its_factor() {
        let left_s = |runs_s: &[f64], measured| {
            let part = Part::expecting(runs_s.iter().copied(), 10).measured(measured);
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
