//! Thin streams of interactive applications: what they write, and how often.
//!
//! **Source.** The table of payload sizes and packet inter-arrival times in Petlund, "Improving latency for interactive,
//! thin-stream applications over reliable transport", Oslo 2009, repeated in the slides of 2015.
//! **Deviations.** Only average, median and extremes are published. A model is a distribution through them: linear between
//! the smallest value, the median, one more point and the largest value; that point makes the average come out. Sizes have
//! no published median; three quarters of the average stand in for it, or 1.2 times where most packets are large. Successive values are independent.
//! Much of an average interval lies between that point and the largest value, which few intervals do: runs of seconds have more writes than the
//! average says.

use std::sync::Arc;

/// An application.
#[derive(Clone, Copy, Debug)]
pub struct ThinApplication {
    /// Its name in scenario files.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Payload of its packets: average, smallest, largest (bytes).
    pub payload: [f64; 3],
    /// Time between them: average, median, smallest, largest (ms); 0: below 1 ms.
    pub interval: [f64; 4],
}

macro_rules! applications {
    ($($name:literal, $what:literal, $payload:expr, $interval:expr;)+) => {
        /// Names of [`APPLICATIONS`].
        pub const APPLICATION_NAMES: &[&str] = &[$($name,)+];

        /// All of them.
        pub const APPLICATIONS: &[ThinApplication] = &[$(
            ThinApplication { name: $name, what: $what, payload: $payload, interval: $interval },
        )+];
    };
}

applications! {
    "remote-desktop", "Windows Remote Desktop", [111.0, 8.0, 1417.0], [318.0, 159.0, 1.0, 12_254.0];
    "vnc-client", "VNC, from the client", [8.0, 1.0, 106.0], [34.0, 8.0, 0.0, 5451.0];
    "vnc-server", "VNC, from the server", [827.0, 2.0, 1448.0], [383.0, 0.0, 0.0, 3557.0];
    "skype", "Skype, two users", [236.0, 14.0, 1267.0], [34.0, 40.0, 0.0, 1671.0];
    "ssh", "SSH text session", [48.0, 16.0, 752.0], [323.0, 159.0, 0.0, 76_610.0];
    "anarchy-online", "Anarchy Online", [98.0, 8.0, 1333.0], [632.0, 449.0, 7.0, 17_032.0];
    "world-of-warcraft", "World of Warcraft", [26.0, 6.0, 1228.0], [314.0, 133.0, 0.0, 14_855.0];
    "age-of-conan", "Age of Conan", [80.0, 5.0, 1460.0], [86.0, 57.0, 0.0, 1375.0];
}

impl ThinApplication {
    /// The application called `name`.
    pub fn find(name: &str) -> Option<&'static ThinApplication> {
        APPLICATIONS.iter().find(|application| application.name == name)
    }

    /// Payload sizes (bytes) and cumulative probabilities.
    pub fn payload(&self) -> Arc<[(f64, f64)]> {
        let [mean, min, max] = self.payload;
        let medians = [0.75, 1.2].map(|share| (share * mean).max(min + 0.5));
        let found = medians
            .into_iter()
            .find_map(|median| through(min, median, mean, max));
        found.unwrap_or_else(|| Arc::new([(min, 0.0), (max, 1.0)]))
    }

    /// Times between packets (s) and cumulative probabilities.
    pub fn interval(&self) -> Arc<[(f64, f64)]> {
        let [mean, median, min, max] = self.interval;
        let points =
            through(min, median.max(0.5), mean, max).unwrap_or_else(|| Arc::new([(min, 0.0), (max, 1.0)]));
        points.iter().map(|(ms, share)| (ms / 1e3, *share)).collect()
    }
}

/// Points of a distribution with these extremes, this median and this mean.
fn through(min: f64, median: f64, mean: f64, max: f64) -> Option<Arc<[(f64, f64)]>> {
    // Between the median and the largest value lies a point (x, p): the mean of what is above the median decides p.
    for part in [2.0, 3.0, 1.5, 1.25, 5.0, 10.0, 30.0, 100.0, 1000.0, 1.1, 1.02] {
        let x = median * part;
        if x >= max {
            continue;
        }
        let (low, middle, high) = ((min + median) / 2.0, (median + x) / 2.0, (x + max) / 2.0);
        let p = (0.5 * low - 0.5 * middle + high - mean) / (high - middle);
        if (0.7..0.9999).contains(&p) {
            return Some(Arc::new([(min, 0.0), (median, 0.5), (x, p), (max, 1.0)]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{APPLICATION_NAMES, APPLICATIONS, ThinApplication};
    use fleetfoot_core::rng::{Distribution, Rng, Sampler};

    fn mean_and_median(points: std::sync::Arc<[(f64, f64)]>) -> (f64, f64) {
        let distribution = Distribution::Empirical(points);
        distribution.validate().expect("it is one");
        let mut sampler = Sampler::new(distribution, Rng::from_seed(4));
        let mut drawn: Vec<f64> = (0..400_000).map(|_| sampler.sample()).collect();
        drawn.sort_by(f64::total_cmp);
        (
            drawn.iter().sum::<f64>() / drawn.len() as f64,
            drawn[drawn.len() / 2],
        )
    }

    /// What the reference says of short runs (`model`).
    #[test]
    fn only_runs_of_minutes_have_as_many_writes_as_the_average_interval_says() {
        // Writes in runs of so many seconds, as a multiple of those of the average interval.
        let writes = |application: &ThinApplication, seconds: f64, runs: u32| {
            let interval = Distribution::Empirical(application.interval());
            let mut sampler = Sampler::new(interval, Rng::from_seed(7));
            let mut writes = 0_u32;
            for _ in 0..runs {
                let mut at = 0.0;
                while at < seconds {
                    writes += 1;
                    at += sampler.sample();
                }
            }
            f64::from(writes) / f64::from(runs) * application.interval[0] / 1e3 / seconds
        };
        for application in APPLICATIONS {
            let (short, long) = (writes(application, 20.0, 3000), writes(application, 300.0, 400));
            let most = match application.name {
                "ssh" => [1.59..1.65, 1.03..1.055],
                _ => [0.99..1.15, 0.99..1.025],
            };
            let name = application.name;
            assert!(
                most[0].contains(&short) && most[1].contains(&long),
                "{name}: {short} {long}"
            );
        }
        let ssh = ThinApplication::find("ssh").expect("it is one").interval();
        let rare = 1.0 - ssh[2].1;
        assert!((232.5..233.5).contains(&(1.0 / rare)), "one in {}", 1.0 / rare);
        let part = rare * (ssh[2].0 + ssh[3].0) / 2.0 / 0.323;
        assert!((part - 0.5).abs() < 0.02, "{part} of the average");
    }

    /// thin-apps: averages and medians within 5 %.
    #[test]
    fn models_have_the_published_averages_and_medians() {
        for (application, name) in APPLICATIONS.iter().zip(APPLICATION_NAMES) {
            assert_eq!(application.name, *name);
            assert!(ThinApplication::find(name).is_some());
            let (mean, _) = mean_and_median(application.payload());
            assert!(
                (mean / application.payload[0] - 1.0).abs() < 0.05,
                "{name}: {mean} bytes"
            );
            let (mean, median) = mean_and_median(application.interval());
            let [wanted_mean, wanted_median, ..] = application.interval;
            assert!((mean * 1e3 / wanted_mean - 1.0).abs() < 0.05, "{name}: {mean} s");
            // A median of 0 stands for less than a millisecond.
            let near = (median * 1e3 - wanted_median).abs() <= (0.05 * wanted_median).max(1.0);
            assert!(near, "{name}: median {median} s");
        }
    }
}
