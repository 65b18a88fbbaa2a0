//! How long a batch of runs still takes: what is expected of each run, put right by what the finished ones took.
//!
//! Expectations are from packets, at a typical cost, and wrong by a factor that depends on the machine, on the experiment and on the
//! run. Each of the three is learnt as time taken over time expected: of all runs so far, of those of the experiment, of those
//! with other seeds. Little evidence moves each of them little: it starts from the one before, the first from 1. In between is
//! a geometric mean, since too fast by a factor is as likely as too slow by it.

use fleetfoot_lab::run::Job;
use fleetfoot_sim::spec::{LinkRate, Spec};

/// Parts are worked on one after the other, the runs of a part on all cores at once.
pub(crate) struct Forecast {
    cores: usize,
    parts: Vec<Part>,
}

/// A part of the work: the runs of an experiment, or of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// One for each job.
    jobs: Vec<Expected>,
    seeds: u64,
}

/// The runs of a job, which differ in their seeds.
#[derive(Clone, Copy, Debug)]
struct Expected {
    /// Of one run (s).
    run_s: f64,
    /// Runs that are finished, or were kept from before.
    done: u64,
    seen: Seen,
}

/// What was computed.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    taken_s: f64,
    expected_s: f64,
}

impl Forecast {
    pub(crate) fn new(parts: Vec<Part>, cores: usize) -> Forecast {
        Forecast {
            cores: cores.max(1),
            parts,
        }
    }

    /// Another part follows; returns its number.
    pub(crate) fn add(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// Runs of all parts.
    pub(crate) fn runs(&self) -> u64 {
        self.parts
            .iter()
            .map(|part| part.jobs.len() as u64 * part.seeds)
            .sum()
    }

    /// A run of this part and job is finished. `taken_s`: how long it took; `None` if it was kept from before.
    pub(crate) fn on_run(&mut self, part: usize, job: usize, taken_s: Option<f64>) {
        let Some(job) = self.parts.get_mut(part).and_then(|part| part.jobs.get_mut(job)) else {
            return;
        };
        job.done += 1;
        if let Some(taken_s) = taken_s {
            job.seen.taken_s += taken_s;
            job.seen.expected_s += job.run_s;
        }
    }

    /// From now to the end (s).
    pub(crate) fn left_s(&self) -> f64 {
        let overall = self.seen().ratio(1.0, self.doubt_s());
        self.parts
            .iter()
            .map(|part| part.left_s(overall, self.cores))
            .sum()
    }

    /// Whether the expectation still counts for more than what was measured.
    pub(crate) fn is_rough(&self) -> bool {
        self.seen().expected_s <= self.doubt_s()
    }

    fn seen(&self) -> Seen {
        Seen::of(self.parts.iter().map(Part::seen))
    }

    /// How much expected work must be measured to count for as much as the expectation (s).
    fn doubt_s(&self) -> f64 {
        DOUBT * self.parts.iter().map(Part::expected_s).sum::<f64>()
    }
}

impl Part {
    /// Every job with every one of so many seeds.
    pub(crate) fn new(jobs: &[Job], seeds: usize) -> Part {
        Part::expecting(jobs.iter().map(|job| expected_s(&job.spec)), seeds as u64)
    }

    /// `runs_s`: of one run of each job.
    pub(crate) fn expecting(runs_s: impl IntoIterator<Item = f64>, seeds: u64) -> Part {
        let jobs = runs_s.into_iter().map(|run_s| Expected {
            run_s: run_s.max(LEAST_S),
            done: 0,
            seen: Seen::default(),
        });
        Part {
            jobs: jobs.collect(),
            seeds,
        }
    }

    /// The same where a run of the first job was measured to take so long (s): all others are expected to differ from what is
    /// expected of them by the same factor.
    pub(crate) fn measured(mut self, run_s: Option<f64>) -> Part {
        if let (Some(run_s), Some(first)) = (run_s, self.jobs.first()) {
            let factor = run_s.max(LEAST_S) / first.run_s;
            for job in &mut self.jobs {
                job.run_s = (job.run_s * factor).max(LEAST_S);
            }
        }
        self
    }

    fn expected_s(&self) -> f64 {
        self.jobs.iter().map(|job| job.run_s).sum::<f64>() * self.seeds as f64
    }

    fn seen(&self) -> Seen {
        Seen::of(self.jobs.iter().map(|job| job.seen))
    }

    /// From now to its end (s); `overall` is what all runs took over what was expected of them.
    fn left_s(&self, overall: f64, cores: usize) -> f64 {
        let runs = self.jobs.len() as f64 * self.seeds as f64;
        let own = self
            .seen()
            .ratio(overall, PART_DOUBT * self.expected_s() / runs.max(1.0));
        let (mut work_s, mut longest_s) = (0.0, 0.0_f64);
        for job in self.jobs.iter().filter(|job| job.done < self.seeds) {
            let run_s = job.run_s * job.seen.ratio(own, SEED_DOUBT * job.run_s);
            work_s += run_s * (self.seeds - job.done) as f64;
            longest_s = longest_s.max(run_s);
        }
        longest_s.max(work_s / cores as f64)
    }
}

impl Seen {
    fn of(parts: impl Iterator<Item = Seen>) -> Seen {
        parts.fold(Seen::default(), |sum, part| Seen {
            taken_s: sum.taken_s + part.taken_s,
            expected_s: sum.expected_s + part.expected_s,
        })
    }

    /// Time taken over time expected: `prior` before anything is seen, half way from there when `doubt_s` of expected work is.
    fn ratio(self, prior: f64, doubt_s: f64) -> f64 {
        if self.taken_s <= 0.0 {
            return prior;
        }
        let seen = self.taken_s / self.expected_s;
        prior * (seen / prior).powf(self.expected_s / (doubt_s + self.expected_s))
    }
}

/// About how long a run takes (s): the data packets that the slowest link can carry, at a typical cost. Within a factor of
/// three of what the groups of experiments and the built-in line took on one machine.
fn expected_s(spec: &Spec) -> f64 {
    let seconds = spec.duration.as_secs_f64();
    let bottleneck = spec
        .links
        .iter()
        .filter_map(|link| match link.rate {
            LinkRate::Constant(rate) => Some(rate.bps() as f64),
            LinkRate::Trace { .. } => None,
        })
        .fold(f64::INFINITY, f64::min);
    let bulk = spec.groups.iter().any(|group| group.traffic.facts().greedy);
    // Long flows cost least for each packet; others leave the line idle, yet open and close connections.
    let packet_s = if bulk { 0.6e-6 } else { 1.2e-6 };
    // As if every group had the same share.
    let per_byte: f64 = spec
        .groups
        .iter()
        .map(|group| 1.0 / f64::from(group.sender.mtu.max(1)))
        .sum();
    let per_byte = per_byte / spec.groups.len().max(1) as f64;
    packet_s * (seconds * bottleneck / 8.0 * per_byte).min(1e9)
}

/// A fiftieth of all work counts for as much as the expectation.
const DOUBT: f64 = 0.02;
/// A run counts for twice as much for the others of its experiment as what the experiments before took.
const PART_DOUBT: f64 = 0.5;
/// A run counts for four times as much for the runs with other seeds as what the experiment took in all.
const SEED_DOUBT: f64 = 0.25;
/// No run takes no time at all (s).
const LEAST_S: f64 = 1e-5;

#[cfg(test)]
mod tests {
    use super::{Forecast, Part};

    /// Jobs of a part: what is expected of a run and what it takes (s).
    type Jobs = Vec<(f64, f64)>;

    fn forecast(parts: &[Jobs], seeds: u64, cores: usize) -> Forecast {
        let expecting = |jobs: &Jobs| Part::expecting(jobs.iter().map(|(expected_s, _)| *expected_s), seeds);
        Forecast::new(parts.iter().map(expecting).collect(), cores)
    }

    /// Works on the parts as a batch does, with a clock that is made up: after each run what is told to be left and what is (s).
    fn play(parts: &[Jobs], seeds: u64, cores: usize) -> Vec<(f64, f64)> {
        let mut forecast = forecast(parts, seeds, cores);
        let (mut now_s, mut told) = (0.0, Vec::new());
        for (part, jobs) in parts.iter().enumerate() {
            let mut tasks = (0..seeds).flat_map(|_| 0..jobs.len());
            let mut running: Vec<(f64, usize)> = Vec::new();
            loop {
                while running.len() < cores
                    && let Some(job) = tasks.next()
                {
                    running.push((now_s + jobs[job].1, job));
                }
                running.sort_by(|a, b| b.0.total_cmp(&a.0));
                let Some((end_s, job)) = running.pop() else { break };
                now_s = end_s;
                forecast.on_run(part, job, Some(jobs[job].1));
                told.push((now_s, forecast.left_s()));
            }
        }
        told.into_iter()
            .map(|(at_s, left_s)| (left_s, now_s - at_s))
            .collect()
    }

    /// The worst factor by which what is told is too long or too short.
    fn worst(told: &[(f64, f64)]) -> f64 {
        told.iter()
            .filter(|(_, is_s)| *is_s > 0.0)
            .map(|(told_s, is_s)| (told_s / is_s).max(is_s / told_s))
            .fold(1.0, f64::max)
    }

    #[test]
    fn before_anything_is_measured_the_expectation_is_shared_by_the_cores() {
        let parts = [vec![(1.0, 1.0); 10], vec![(4.0, 4.0)]];
        assert_eq!(forecast(&parts, 10, 1).left_s(), 140.0);
        assert_eq!(forecast(&parts, 10, 2).left_s(), 70.0);
        // The runs of the last part are one on each core.
        assert_eq!(forecast(&parts, 1, 2).left_s(), 5.0 + 4.0);
        assert_eq!(forecast(&[], 1, 2).left_s(), 0.0);
        assert!(forecast(&parts, 10, 2).is_rough());
    }

    #[test]
    fn a_measured_run_puts_all_expectations_right_by_its_factor() {
        let part = Part::expecting([1.0, 3.0], 10).measured(Some(0.01));
        assert_eq!(Forecast::new(vec![part], 1).left_s(), 0.01 * 40.0);
        let part = Part::expecting([1.0, 3.0], 10).measured(None);
        assert_eq!(Forecast::new(vec![part], 1).left_s(), 40.0);
        assert_eq!(
            Forecast::new(vec![Part::expecting([], 10).measured(Some(1.0))], 1).left_s(),
            0.0
        );
    }

    #[test]
    fn an_expectation_that_is_met_is_told_to_the_end() {
        let parts = [vec![(1.0, 1.0), (3.0, 3.0)], vec![(2.0, 2.0); 5]];
        let told = play(&parts, 10, 1);
        assert!(worst(&told) < 1.000_001, "{told:?}");
        assert_eq!(told.last(), Some(&(0.0, 0.0)));
    }

    /// 21 minutes were told where one was left: the whole expectation was too long by as much.
    #[test]
    fn a_machine_that_is_twenty_times_as_fast_is_known_after_a_tenth_of_the_runs() {
        for (expected_s, taken_s) in [(3.0, 0.15), (0.15, 3.0)] {
            let parts: Vec<Jobs> = (0..20).map(|_| vec![(expected_s, taken_s); 5]).collect();
            assert_eq!(forecast(&parts, 4, 2).left_s(), expected_s * 200.0);
            let told = play(&parts, 4, 2);
            assert!(worst(&told[40..360]) < 2.0, "{:?}", &told[40..44]);
            assert!(worst(&told[100..360]) < 1.25, "{:?}", &told[100..104]);
        }
    }

    #[test]
    fn a_small_part_that_is_cheap_says_little_of_the_others() {
        // A thousandth of the work takes a twentieth of its time.
        let parts = [vec![(0.01, 0.0005); 10], vec![(10.0, 10.0); 10]];
        let told = play(&parts, 1, 1);
        assert!(worst(&told[..10]) < 1.25, "{:?}", &told[..10]);
    }

    #[test]
    fn what_one_experiment_takes_beyond_its_expectation_is_learnt_within_it() {
        // The first teaches that all is as expected; the second takes eight times that.
        let parts = [vec![(1.0, 1.0); 40], vec![(1.0, 8.0); 10]];
        let told = play(&parts, 4, 1);
        let second = &told[160..];
        assert!(second[0].1 / second[0].0 > 1.5, "it cannot be known at once");
        assert!(worst(&second[4..]) < 1.25, "{second:?}");
    }

    #[test]
    fn runs_of_a_job_are_told_from_its_runs_with_other_seeds() {
        // A sweep: what is expected to be equal takes 0.1 to 10 s.
        let sweep: Jobs = [0.1, 0.1, 1.0, 10.0].map(|taken_s| (1.0, taken_s)).to_vec();
        let told = play(&[sweep], 10, 1);
        assert!(worst(&told[7..36]) < 1.2, "{:?}", &told[7..36]);
    }

    #[test]
    fn runs_that_were_kept_are_done_and_teach_nothing() {
        let parts = [vec![(1.0, 1.0); 4]];
        let mut forecast = forecast(&parts, 5, 1);
        for _ in 0..5 {
            forecast.on_run(0, 0, None);
        }
        assert_eq!((forecast.left_s(), forecast.is_rough()), (15.0, true));
        forecast.on_run(0, 1, Some(1.0));
        assert_eq!((forecast.left_s(), forecast.is_rough()), (14.0, false));
    }
}
