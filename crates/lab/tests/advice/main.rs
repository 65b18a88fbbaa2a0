//! Is the advice of `recommend` right? On six examples and on four lines of homes drawn at random from a published measurement
//! (`households.csv`), the setting that it finds is compared with the best of its whole space. Every candidate of that space is run
//! with three seeds and the best hundred with all ten; the printed distance of the first that is left out says how likely it is that
//! a better one is among the rest.
//!
//! `FLEETFOOT_ADVICE` names the networks to try, separated by commas, or `all` (some 40,000 runs: in release mode half an hour of one
//! core); without it one of each kind is tried. `FLEETFOOT_ADVICE_THREADS` is the number of threads, `FLEETFOOT_ADVICE_TALK` prints every
//! step of the searches, `FLEETFOOT_ADVICE_OUT` names a folder that keeps what each candidate is worth: what is there is not run again.

use fleetfoot_core::rng::Rng;
use fleetfoot_lab::compare::exhaustive::{Difference, Worth, difference, exhaustive, planned, space};
use fleetfoot_lab::compare::search::recommend;
use fleetfoot_lab::compare::space::Wish;
use fleetfoot_lab::compare::study::Study;
use fleetfoot_lab::compare::{Candidate, Choice, Plan};
use fleetfoot_lab::result::RunData;
use fleetfoot_lab::run::{Batch, Error, Job, Options, execute, simulate};
use fleetfoot_lab::scenario::{Scenario, Setting};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The examples, each shortened: what is changed of its run. Seeds are those of the file, ten.
const EXAMPLES: [(&str, &[(&str, &str)]); 6] = [
    (
        "home-line",
        &[
            ("run.duration", "8 s"),
            ("run.warmup", "2 s"),
            ("run.drain", "8 s"),
        ],
    ),
    ("lossy-mobile", &[("run.duration", "20 s"), ("run.drain", "15 s")]),
    ("datacenter", &[("run.duration", "120 ms")]),
    ("thin-game", &[("run.duration", "10 s")]),
    ("satellite", &[("run.duration", "30 s"), ("run.drain", "15 s")]),
    ("xlframes", &[("run.duration", "2500 ms"), ("run.warmup", "1 s")]),
];

/// Seeds that every candidate gets, and how many of the best get all.
const FIRST_SEEDS: usize = 3;
const KEPT: usize = 100;

/// Homes that are drawn, and the seed of the draw.
const HOMES: usize = 4;
const DRAWN_WITH: u64 = 21;

/// Networks that are tried where none are named: a few minutes.
const BY_ITSELF: &str = "lossy-mobile,home-70";

fn example(name: &str, settings: &[(&str, &str)]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.toml"));
    let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
    let set = settings
        .iter()
        .fold(Setting::from_origin("shortened"), |set, &(key, value)| {
            set.with(key, value)
        });
    scenario.with(&set).unwrap_or_else(|error| panic!("{error}"))
}

/// Scenarios drawn from the prior: line and round-trip time of a home as measured; the modem's queues hold 64, 128 or 256 kB, sizes
/// of the kind that Netalyzr infers (Kreibich, Weaver, Nechaev and Paxson, "Netalyzr: illuminating the edge network", IMC 2010);
/// one to three people read pages, one in two homes uploads and one in two downloads something, one in two has a game. The shares are
/// ours: no measurement ties them to these homes.
fn homes() -> Vec<(String, Scenario)> {
    let mut rows: Vec<[f64; 4]> = include_str!("households.csv")
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .map(|line| {
            let columns: Vec<&str> = line.split(',').collect();
            [0, 2, 3, 4].map(|column| columns[column].parse().expect("it is a number"))
        })
        .collect();
    assert_eq!(rows.len(), 20);
    let mut rng = Rng::for_element(DRAWN_WITH, "advice", "homes");
    (0..HOMES)
        .map(|_| {
            let [row, down, up, latency] = rows.remove(rng.below(rows.len() as u64) as usize);
            let text = home([down, up, latency], &mut rng);
            let name = format!("home-{row}");
            let scenario = Scenario::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"));
            (name, scenario)
        })
        .collect()
}

fn home([down, up, latency]: [f64; 3], rng: &mut Rng) -> String {
    let buffers = [(); 2].map(|()| 64 << rng.below(3));
    let readers = 1 + rng.below(3);
    let [uploads, downloads, plays] = [(); 3].map(|()| rng.below(2) == 1);
    // Hosts send up to one packet time of the line later, at random.
    let [down_jitter, up_jitter] = [down, up].map(|rate| (1500.0 / rate * 1e6) as u64);
    let [down, up] = [down, up].map(|rate| (8.0 * rate / 1000.0) as u64);
    let delay = (latency / 2.0) as u64 - 2000;
    let mut text = format!(
        "title = \"A home\"\n[network]\nkind = \"dumbbell\"\npairs = 6\n\
         access = {{ delay = \"1 ms\", jitter = {{ dist = \"uniform\", min = \"0 us\", max = \"{down_jitter} us\" }} }}\n\
         egress = {{ delay = \"1 ms\", reverse = {{ jitter = {{ dist = \"uniform\", min = \"0 us\", max = \"{up_jitter} us\" }} }} }}\n\
         [network.bottleneck]\nrate = \"{down} kbit/s\"\ndelay = \"{delay} us\"\nqueue = {{ kind = \"drop-tail\", limit = \"{} kB\" }}\n\
         [network.bottleneck.reverse]\nrate = \"{up} kbit/s\"\nqueue = {{ kind = \"drop-tail\", limit = \"{} kB\" }}\n\
         [tcp]\nprofile = \"linux\"\n\
         [[traffic]]\nname = \"pages\"\nkind = \"web\"\ncount = {readers}\nobjects = 20\nthink = {{ dist = \"exponential\", mean = \"1 s\" }}\n",
        buffers[0], buffers[1]
    );
    if uploads {
        text += "[[traffic]]\nname = \"backup\"\nkind = \"bulk\"\ndirection = \"up\"\n";
    }
    if downloads {
        text += "[[traffic]]\nname = \"download\"\nkind = \"bulk\"\n";
    }
    if plays {
        text += "[[traffic]]\nname = \"game\"\nkind = \"ping\"\npacket = \"100 B\"\ninterval = { dist = \"uniform\", min = \"30 ms\", max = \"70 ms\" }\nlatency_sensitive = true\n";
    }
    text + "[run]\nduration = \"15 s\"\nwarmup = \"3 s\"\ndrain = \"15 s\"\nseeds = 10\n"
}

fn run(jobs: &[Job], seeds: &[u64]) -> Result<Batch, Error> {
    let threads = std::env::var("FLEETFOOT_ADVICE_THREADS");
    let options = Options {
        jobs: threads.ok().and_then(|text| text.parse().ok()).unwrap_or(0),
        ..Options::default()
    };
    execute(jobs, seeds, &options, &AtomicBool::new(false), &simulate, &|_| ())
}

/// The scenario as described, with its runs.
fn baseline(scenario: Scenario, wish: Wish) -> (Plan, Vec<RunData>) {
    let choice = Choice {
        search: Some(wish),
        ..Choice::default()
    };
    let plan = Plan::baseline(scenario, &choice).unwrap_or_else(|error| panic!("{error}"));
    let mut runs = run(&plan.jobs(), &plan.seeds)
        .unwrap_or_else(|error| panic!("{error}"))
        .runs;
    (plan, runs.swap_remove(0))
}

/// What a search found, and what it took.
struct Found {
    study: Study,
    /// Runs of the described network, the comparison of the finalists included.
    runs: usize,
    /// Runs of networks near it, and with jitter.
    checks: usize,
}

fn searched(plan: &Plan, wish: Wish) -> Found {
    let (mut runs, mut checks) = (0, 0);
    let study = recommend(plan, wish, "", &mut |title, jobs, seeds| {
        let near = title.starts_with("with ")
            || title.contains("jitter")
            || title.starts_with("queue mechanisms at ");
        *(if near { &mut checks } else { &mut runs }) += jobs.len() * seeds.len();
        if chatty() {
            eprintln!("  {title}: {} runs", jobs.len() * seeds.len());
        }
        run(jobs, seeds)
    });
    Found {
        study: study.unwrap_or_else(|error| panic!("{error}")),
        runs,
        checks,
    }
}

fn chatty() -> bool {
    std::env::var_os("FLEETFOOT_ADVICE_TALK").is_some()
}

/// How far `own` is behind `best` over the seeds of `plan`; both are run again, with their jobs in one plan.
fn behind(plan: &Plan, described: &[RunData], best: &Candidate, own: &Candidate) -> Difference {
    let both =
        planned(plan, described, vec![best.clone(), own.clone()]).unwrap_or_else(|error| panic!("{error}"));
    let mut batch = run(&both.jobs()[1..], &both.seeds).unwrap_or_else(|error| panic!("{error}"));
    batch.runs.insert(0, described.to_vec());
    difference(&both, &batch).expect("both were compared")
}

/// What candidates are worth, by name and number of seeds; kept in a file if there is a folder for it.
struct Kept {
    file: Option<PathBuf>,
    worths: BTreeMap<(usize, String), [f64; 3]>,
}

impl Kept {
    fn of(network: &str) -> Kept {
        let folder = std::env::var_os("FLEETFOOT_ADVICE_OUT");
        let file = folder.map(|folder| Path::new(&folder).join(format!("{network}.tsv")));
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let worths = text.unwrap_or_default();
        // A line that was being written when the test was stopped is not whole.
        let whole = worths.rsplit_once('\n').map_or("", |(whole, _)| whole).lines();
        let worths = whole.map(|line| {
            let [seeds, net, win, harm, name] =
                <[&str; 5]>::try_from(line.split('\t').collect::<Vec<_>>()).expect("it has five columns");
            let numbers = [net, win, harm].map(|text| text.parse().expect("it is a number"));
            ((seeds.parse().expect("it is a number"), name.to_owned()), numbers)
        });
        Kept {
            worths: worths.collect(),
            file,
        }
    }

    fn keep(&mut self, seeds: usize, worth: &Worth) {
        let Worth {
            name, net, win, harm, ..
        } = worth;
        self.worths.insert((seeds, name.clone()), [*net, *win, *harm]);
        if let Some(path) = &self.file {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let line = format!("{seeds}\t{net}\t{win}\t{harm}\t{name}\n");
            let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
            written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

/// What these candidates are worth over the first `seeds` seeds, the best first.
fn worths(
    plan: &Plan,
    described: &[RunData],
    candidates: &[(String, Candidate)],
    seeds: usize,
    kept: &mut Kept,
) -> Vec<Worth> {
    let mut plan = plan.clone();
    plan.seeds.truncate(seeds);
    let described = &described[..seeds];
    let wanted: Vec<Candidate> = candidates
        .iter()
        .filter(|(name, _)| !kept.worths.contains_key(&(seeds, name.clone())))
        .map(|(_, candidate)| candidate.clone())
        .collect();
    for some in wanted.chunks(16) {
        let made = exhaustive(&plan, described, some, &mut |_, jobs, seeds| run(jobs, seeds));
        for worth in made.unwrap_or_else(|error| panic!("{error}")) {
            kept.keep(seeds, &worth);
        }
    }
    let mut all: Vec<Worth> = candidates
        .iter()
        .map(|(name, candidate)| {
            let [net, win, harm] = kept.worths[&(seeds, name.clone())];
            Worth {
                candidate: candidate.clone(),
                name: name.clone(),
                win,
                harm,
                net,
            }
        })
        .collect();
    all.sort_by(|one, other| other.net.total_cmp(&one.net));
    all
}

/// Compares the search with everything; prints a row of the table in docs/recommend.md. Returns why the advice is wrong, if it is.
fn judged(name: &str, scenario: Scenario) -> Result<(), String> {
    let wish = Wish::default();
    let (plan, described) = baseline(scenario, wish);
    let all = space(&plan, &described, wish).unwrap_or_else(|error| panic!("{error}"));
    let planned = planned(&plan, &described, all.clone()).unwrap_or_else(|error| panic!("{error}"));
    let names = planned.variants[1..].iter().map(|variant| variant.name.clone());
    assert_eq!(names.len(), all.len(), "each candidate is a variant");
    let all: Vec<(String, Candidate)> = names.zip(all).collect();
    let mut kept = Kept::of(name);
    let first = worths(&plan, &described, &all, FIRST_SEEDS, &mut kept);
    let (best, rest) = first.split_at(KEPT.min(first.len()));
    if let Some(next) = rest.first() {
        eprintln!(
            "  {name}: after {FIRST_SEEDS} seeds {KEPT} of {} are left; {} is {:.1} points behind the best and is not",
            all.len(),
            next.name,
            100.0 * (best[0].net - next.net)
        );
    }
    let best: Vec<(String, Candidate)> = best
        .iter()
        .map(|one| (one.name.clone(), one.candidate.clone()))
        .collect();
    let best = worths(&plan, &described, &best, plan.seeds.len(), &mut kept);
    // What the search took is told as a share of all seeds of all candidates.
    let exhausted = (1 + all.len()) * plan.seeds.len();
    let rest = rest.iter().cloned();
    let worths: Vec<Worth> = best.into_iter().chain(rest).collect();
    row(name, &plan, &described, &worths, exhausted, wish)
}

fn row(
    name: &str,
    plan: &Plan,
    described: &[RunData],
    worths: &[Worth],
    exhausted: usize,
    wish: Wish,
) -> Result<(), String> {
    let found = searched(plan, wish);
    let document = &found.study.comparison.document;
    if chatty() {
        eprintln!("  {}", document.answer);
    }
    let best = &worths[0];
    let own = document
        .recommended
        .as_ref()
        .map(|own| &own.variant)
        .or(document.refuted.as_ref());
    let (words, wrong) = match own.and_then(|own| worths.iter().find(|one| one.name == *own)) {
        None if best.net < 0.01 => (String::from("nothing is a win"), false),
        None => (String::from("found nothing"), true),
        Some(own) if own.name == best.name => (String::from("the best"), false),
        Some(own) => {
            let Difference { value, ci95, margin } = behind(plan, described, &best.candidate, &own.candidate);
            let [low, high] = ci95.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
            let how = match () {
                () if low <= 0.0 => "within the interval",
                () if value <= margin => "within the margin",
                () => "worse",
            };
            let words = format!(
                "{how}: {:.1} points behind ({:.1} to {:.1})",
                100.0 * value,
                100.0 * low,
                100.0 * high
            );
            (words, how == "worse")
        }
    };
    let share = 100.0 * found.runs as f64 / exhausted as f64;
    let in_short = |name: Option<&String>| {
        let one = name.and_then(|name| worths.iter().find(|one| one.name == *name));
        one.map_or_else(
            || String::from("nothing"),
            |one| format!("{} {:.1} %", one.name, 100.0 * one.net),
        )
    };
    let recommended = match (&document.recommended, &document.refuted) {
        (Some(own), None) => in_short(Some(&own.variant)),
        (Some(own), Some(refuted)) => format!(
            "{}; not {}, refuted near",
            in_short(Some(&own.variant)),
            in_short(Some(refuted))
        ),
        (None, refuted) => format!("nothing; {} refuted near", in_short(refuted.as_ref())),
    };
    let line = format!(
        "| {name} | {} | {exhausted} | {} ({share:.1} %) | {} | {recommended} | {} | {words} |",
        worths.len(),
        found.runs,
        found.checks,
        in_short(Some(&best.name)),
    );
    eprintln!("{line}");
    if let Some(folder) = std::env::var_os("FLEETFOOT_ADVICE_OUT") {
        let mut text = format!("{line}\n\n{}\n", document.answer);
        for point in &document.sensitivity {
            writeln!(text, "{}", serde_json::to_string(point).expect("it is written"))
                .expect("it is written");
        }
        let path = Path::new(&folder).join(format!("{name}.md"));
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    match (wrong, share <= 10.0) {
        (false, true) => Ok(()),
        (true, _) => Err(format!("{name}: {words}")),
        (false, false) => Err(format!("{name}: {share:.1} % of the runs")),
    }
}

#[test]
#[ignore = "minutes; hours with FLEETFOOT_ADVICE=all"]
fn what_is_recommended_is_among_the_best_of_everything_at_a_tenth_of_the_runs() {
    let wanted = std::env::var("FLEETFOOT_ADVICE").unwrap_or_else(|_| String::from(BY_ITSELF));
    let examples = EXAMPLES
        .iter()
        .map(|(name, settings)| ((*name).to_owned(), example(name, settings)));
    let networks: Vec<(String, Scenario)> = examples.chain(homes()).collect();
    for name in wanted.split(',') {
        assert!(
            name == "all" || networks.iter().any(|(own, _)| own == name),
            "no network is called {name}"
        );
    }
    eprintln!(
        "| network | candidates | runs of all | runs of the search | checks | recommended | best of all | verdict |\n|---|---|---|---|---|---|---|---|"
    );
    let wrong: Vec<String> = networks
        .into_iter()
        .filter(|(name, _)| wanted.split(',').any(|one| one == name || one == "all"))
        .filter_map(|(name, scenario)| judged(&name, scenario).err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn homes_are_drawn_from_the_prior_and_resolve() {
    let names: Vec<String> = homes().into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["home-1060", "home-4140", "home-70", "home-50"].map(String::from),
        "the draw is seeded"
    );
}
