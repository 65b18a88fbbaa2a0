//! `fleetfoot explain`: what something does, its source, parameters, evidence, and how to turn it on.

use crate::failure::Failure;
use crate::layout::{document, width, wrapped};
use crate::list::EXAMPLES;
use crate::output::{Common, print};
use clap::Args;
use fleetfoot_core::queue::{AnyQueue, QueueDiscipline};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::tcp::Profile;
use fleetfoot_lab::compare::shown;
use fleetfoot_lab::compare::words::column;
use fleetfoot_lab::experiment::library;
use fleetfoot_lab::experiment::record::Record;
use fleetfoot_lab::explain;
use fleetfoot_lab::mechanisms::{self, ENTRIES, Mechanism, Preset};
use fleetfoot_lab::plugins;
use fleetfoot_lab::scenario::{
    Resolved, Scenario, Setting, Site, SwitchInfo, parameter_type, reference, switch, switches_only_with,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Flags of `explain`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A mechanism, queue, congestion control, switch of `[tcp]`, key of scenario files (or its path, as `--set` takes it), profile, experiment or example.
    name: String,
    /// Print how to cite its source, and the program, as BibTeX.
    #[arg(long)]
    bibtex: bool,
    /// Say for a queue how long an admitted packet waits at most at the bottleneck of this scenario.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let name = arguments.name.as_str();
    let mechanism = mechanisms::find(name);
    let entry = plugins::queue(name).or_else(|| plugins::controller(name));
    if arguments.bibtex {
        let source = mechanism
            .map(|mechanism| mechanism.source.to_owned())
            .or_else(|| entry.map(source));
        let Some(source) = source else {
            return Err(Failure::usage(format!(
                "there is no source to cite of `{name}`: mechanisms, queues and congestion controls have one"
            )));
        };
        return print(&bibtex(name, &source));
    }
    if let Some(document) = explain::document(name).filter(|_| common.json) {
        return print(&format!("{document:#}\n"));
    }
    let mut text = String::new();
    if let Some(mechanism) = mechanism {
        describe(&mut text, mechanism);
    }
    if let Some(entry) = entry {
        registered(&mut text, entry, mechanism.is_none());
    }
    if let Some(found) = switch(name) {
        if !text.is_empty() {
            text.push('\n'); // `pacing` is a mechanism and a switch
        }
        describe_switch(&mut text, &found);
    }
    if let Some(path) = &arguments.scenario {
        waits(&mut text, name, mechanism, path)?;
    }
    if text.is_empty() {
        if let Some(profile) = Profile::by_name(name) {
            let _ = writeln!(
                text,
                "{name}: {}\nA complete set of all TCP switches: [tcp] profile = \"{name}\".",
                profile.document()
            );
        } else if let Some((_, file)) = EXAMPLES.iter().find(|example| example.0 == name) {
            text.push_str(file);
        } else if let Some(file) = library::file(name) {
            experiment(&mut text, name, file)?;
        } else if kind_of_files(&mut text, name) | keys_of_files(&mut text, name, None) {
            // Said.
        } else if path_of_files(&mut text, name) {
            // A path as `--set` takes it.
        } else if let Some(words) = column(name) {
            let _ = writeln!(text, "{}", wrapped(words, width(), ""));
        } else {
            return Err(unknown(name));
        }
    }
    if common.json {
        // Files, profiles and keys are described in words only.
        let document = serde_json::json!({ "name": name, "text": text });
        return print(&format!("{document:#}\n"));
    }
    print(&text)
}

fn describe(text: &mut String, mechanism: &Mechanism) {
    let width = width();
    let _ = writeln!(text, "{} ({})\n", mechanism.name, mechanism.family.name());
    let _ = writeln!(text, "{}\n", wrapped(mechanism.document, width, "  "));
    for (what, body) in [
        ("Source", mechanism.source),
        ("Evidence", mechanism.evidence),
        ("Turn it on", mechanism.turn_on),
    ] {
        let _ = writeln!(text, "{what}:\n{}\n", wrapped(body, width, "  "));
    }
    let ways = mechanism.on_real_packets();
    if !ways.is_empty() {
        text.push_str("On real packets, with Fleetfoot itself:\n");
        for (what, command) in &ways {
            let _ = writeln!(text, "{}", wrapped(&format!("{what}:"), width, "  "));
            let _ = writeln!(text, "{}", wrapped(command, width, "    "));
        }
        text.push('\n');
    }
    text.push_str("In a scenario:\n");
    for (path, value) in mechanism.as_written() {
        let _ = writeln!(text, "  \"{path}\" = {value}");
    }
    let conditional: Vec<SwitchInfo> = mechanism
        .set
        .iter()
        .filter_map(|(path, value)| match value {
            Preset::Text(word) => Some((path.strip_prefix("tcp.")?, *word)),
            _ => None,
        })
        .flat_map(|(key, word)| switches_only_with(key, word).filter_map(switch))
        .collect();
    if !conditional.is_empty() {
        text.push_str("\nIts switches, under [tcp]:\n");
        for found in &conditional {
            let _ = writeln!(text, "  {}: {}; {}", found.name, found.values, today(found));
            let _ = writeln!(text, "{}", wrapped(found.doc, width, "      "));
        }
    }
}

/// A switch of `[tcp]`: what it does, what may be written, what the profiles have and which mechanisms set it.
fn describe_switch(text: &mut String, found: &SwitchInfo) {
    let width = width();
    let path = format!("tcp.{}", found.name);
    let _ = writeln!(text, "{} (switch of [tcp])\n", found.name);
    let _ = writeln!(text, "{}\n", wrapped(found.doc, width, "  "));
    let _ = writeln!(text, "Values:\n{}\n", wrapped(&found.values, width, "  "));
    if !found.profiles.is_empty() {
        text.push_str("In the profiles:\n");
        for (profile, value, source) in &found.profiles {
            let _ = writeln!(text, "  {profile}: {value} ({source})");
        }
        text.push('\n');
    }
    let users: Vec<&str> = ENTRIES
        .iter()
        .filter(|entry| entry.set.iter().any(|(other, _)| *other == path))
        .map(|entry| entry.name)
        .collect();
    if !users.is_empty() {
        let _ = writeln!(
            text,
            "Mechanisms that set it:\n{}\n",
            wrapped(&users.join(", "), width, "  ")
        );
    }
    let _ = writeln!(
        text,
        "In a scenario:\n  [tcp]\n  {} = ...\nIn a variant:\n  \"{path}\" = ...",
        found.name
    );
}

/// Kinds of traffic, network or loss with this name; false if there is none.
fn kind_of_files(text: &mut String, name: &str) -> bool {
    let (page, wanted) = (reference(), format!("### `kind = \"{name}\"`"));
    let (mut inside, mut chapter) = (false, "");
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            chapter = heading;
        }
        if line.starts_with('#') {
            inside = line == wanted;
            if inside {
                let _ = writeln!(
                    text,
                    "{name} ({})",
                    chapter.to_lowercase().replacen("kinds", "kind", 1)
                );
            }
            continue;
        }
        let Some(row) = line.strip_prefix("| `").filter(|_| inside) else {
            if inside && !line.is_empty() && !line.starts_with('|') {
                let _ = writeln!(text, "\n{}\n", wrapped(line, width(), "  "));
            }
            continue;
        };
        let mut cells = row.trim_end_matches(" |").splitn(4, " | ");
        let mut next = || cells.next().unwrap_or_default();
        let (key, values, default, meaning) = (next(), next(), next(), next());
        let key = key.trim_end_matches('`');
        let _ = writeln!(text, "  {key}: {values}; default: {default}");
        let _ = writeln!(text, "{}", wrapped(meaning, width(), "      "));
    }
    if !text.is_empty() {
        let _ = writeln!(text, "\nIn a scenario:\n  kind = \"{name}\"");
    }
    !text.is_empty()
}

/// Names of kinds of traffic, network and loss, and of keys of scenario files.
fn names_of_files() -> Vec<String> {
    let page = reference();
    let kind = |line: &str| Some(line.strip_prefix("### `kind = \"")?.split('"').next()?.to_owned());
    let key = |line: &str| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned());
    page.lines()
        .filter_map(|line| kind(line).or_else(|| key(line)))
        .collect()
}

/// The key that a path names, as `--set` and variants take it: `network.bottleneck.queue.limit`; false if there is none.
fn path_of_files(text: &mut String, path: &str) -> bool {
    let Some((before, key)) = path.rsplit_once('.') else {
        return false;
    };
    let mut parts = before.split('.');
    let root = parts.next().unwrap_or_default();
    if !["network", "link", "node", "traffic", "tcp", "run", "import"].contains(&root) {
        return false;
    }
    let parent = parts.next_back().unwrap_or(root);
    if parent == "tcp"
        && let Some(found) = switch(key)
    {
        describe_switch(text, &found);
        return true;
    }
    // Chapters of the reference in which keys of this table stand.
    let chapters: &[&str] = match (root, parent) {
        (_, "queue") => &["Queues"],
        (_, "loss") => &["Kinds of loss"],
        (_, "reverse") => &["The way back of a link"],
        ("network", "bottleneck" | "access" | "egress") => &["Links"],
        ("network", "network") => &["Kinds of network"],
        ("run", "run") => &["[run]"],
        ("traffic", _) if before.split('.').count() == 2 => &["[[traffic]]", "Kinds of traffic"],
        ("link", _) if before.split('.').count() == 2 => &["[[link]]"],
        _ => return keys_of_files(text, key, None),
    };
    keys_of_files(text, key, Some(chapters))
}

/// Keys of scenario files with this name, in these chapters of the reference or wherever they stand; false if there is none.
fn keys_of_files(text: &mut String, name: &str, chapters: Option<&[&str]>) -> bool {
    let (page, row) = (reference(), format!("| `{name}` | "));
    let (mut place, mut wanted) = ("", chapters.is_none());
    let kind = !text.is_empty();
    let mut found = false;
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            place = heading.trim_start_matches('#').trim();
            if line.starts_with("## ") {
                wanted = chapters.is_none_or(|chapters| chapters.contains(&place));
            }
        }
        let Some(cells) = line.strip_prefix(&row).filter(|_| wanted) else {
            continue;
        };
        if !found {
            let separator = if kind { "\n" } else { "" };
            let _ = writeln!(text, "{separator}{name} (key of scenario files)");
        }
        found = true;
        let mut cells = cells.trim_end_matches(" |").splitn(3, " | ");
        let mut next = || cells.next().unwrap_or_default();
        let (values, default, meaning) = (next(), next(), next());
        let _ = writeln!(
            text,
            "\n{place}: {values}; default: {default}\n{}",
            wrapped(meaning, width(), "  ")
        );
    }
    found
}

/// The value in profile `linux`, in words.
fn today(found: &SwitchInfo) -> String {
    let cell = found.profiles.iter().find(|(profile, _, _)| *profile == "linux");
    cell.map_or_else(
        || String::from("as the profile says"),
        |(_, value, _)| format!("default {value}"),
    )
}

/// An experiment: where it was published, what was said of it, and its file.
fn experiment(text: &mut String, name: &str, file: &str) -> Result<(), Failure> {
    let width = width();
    let experiments = library::select(&[name.to_owned()])?;
    let record = Record::embedded().map_err(|error| Failure::other(format!("recorded verdicts: {error}")))?;
    for experiment in &experiments {
        let figure = &experiment.file.figure;
        let source = &figure.source;
        let _ = writeln!(
            text,
            "{name} ({})\n\n{}\n",
            experiment.group,
            wrapped(&figure.claim, width, "  ")
        );
        let publication = source
            .publication
            .as_ref()
            .map_or_else(String::new, |text| format!(", {text}"));
        let _ = writeln!(
            text,
            "Source:\n  document {}, {}{publication}\n",
            source.document, source.place
        );
        if let Some(full) = record.full(name) {
            let _ = writeln!(text, "Verdict of the full run:\n  {}\n", full.verdict.name());
        }
        if let Some(reason) = &figure.not_comparable {
            let _ = writeln!(text, "Not comparable:\n{}\n", wrapped(reason, width, "  "));
        }
        if let Some(note) = &figure.note {
            let _ = writeln!(text, "Note:\n{}\n", wrapped(note, width, "  "));
        }
        let _ = writeln!(
            text,
            "Run it:\n  fleetfoot reproduce {name}\n\nIts file:\n\n{file}"
        );
    }
    Ok(())
}

fn registered(text: &mut String, entry: &Entry, alone: bool) {
    let width = width();
    if !text.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "{}", document(entry.document(), width));
    if !entry.parameters.is_empty() {
        text.push_str("\nParameters:\n");
        for parameter in entry.parameters {
            let _ = writeln!(
                text,
                "  {}: {}; default {}",
                parameter.name,
                parameter_type(parameter.kind),
                shown(parameter.default)
            );
            let _ = writeln!(text, "{}", wrapped(parameter.doc, width, "      "));
        }
    }
    if plugins::controller(entry.name).is_none() {
        if alone {
            let path = "network.bottleneck.queue.kind";
            let _ = writeln!(text, "\nIn a scenario:\n  \"{path}\" = \"{}\"", entry.name);
        }
        return;
    }
    let name = entry.name;
    if alone {
        let _ = writeln!(
            text,
            "\nIn a scenario:\n  \"tcp.congestion_control\" = \"{name}\""
        );
    }
    if !entry.parameters.is_empty() {
        let _ = writeln!(
            text,
            "With parameters:\n  \"tcp.congestion_control\" = {{ kind = \"{name}\", {} = ... }}",
            entry.parameters[0].name
        );
    }
    let needs = (entry.needs)();
    if !needs.is_empty() {
        text.push_str("It needs:\n");
        for need in needs {
            let or = need.or.map_or_else(String::new, |or| format!(" or {or}"));
            let _ = writeln!(text, "  \"{}\" = {}{or}: {}", need.path, need.value, need.purpose);
        }
    }
}

/// How long an admitted packet waits at most on the bottlenecks of a scenario with this queue, whatever else arrives.
fn waits(text: &mut String, name: &str, mechanism: Option<&Mechanism>, path: &Path) -> Result<(), Failure> {
    let scenario = Scenario::load(path)?;
    let described = scenario.resolve(&Setting::none())?;
    if described.bottleneck_links().next().is_none() {
        let _ = writeln!(
            text,
            "\nHow long an admitted packet waits at most cannot be said for {}: name the link in run.bottleneck.",
            path.display()
        );
        return Ok(());
    }
    let has_it = |resolved: &Resolved| resolved.bottleneck_queues().contains(&name);
    let resolved = match mechanism {
        Some(_) if has_it(&described) => described,
        Some(mechanism) => {
            let links: Vec<usize> = (0..described.spec.links.len())
                .filter(|&link| {
                    described
                        .run
                        .bottleneck
                        .contains(&described.spec.links[link].name)
                })
                .collect();
            let site = Site::new(&described, &links);
            mechanism.apply(&scenario, &described, &site).map_err(|reason| {
                Failure::usage(format!("{name} does not apply to {}: {reason}", path.display()))
            })?
        }
        None if plugins::queue(name).is_some() && !has_it(&described) => {
            scenario.resolve(&Setting::from_origin(name).with("network.bottleneck.queue.kind", name))?
        }
        None => described,
    };
    let _ = writeln!(
        text,
        "\nLongest wait of an admitted packet, whatever else arrives:"
    );
    for link in resolved.bottleneck_links() {
        let config = link.config();
        let (known, around) = (resolved.spec.plugins.queues, config.link_context(0));
        let queue = AnyQueue::build_among(known, link.queue, &link.queue_values, &around);
        let wait = match config.sending_time() {
            Ok(sending) => queue
                .and_then(|queue| queue.longest_wait(&sending))
                .map_or_else(|| String::from("no bound"), |wait| wait.to_string()),
            Err(reason) => format!("no bound: {reason}"),
        };
        let _ = writeln!(
            text,
            "  {} {}, {} at {}: {wait}",
            link.name,
            if link.forward { "forward" } else { "back" },
            link.queue,
            around.rate,
        );
    }
    Ok(())
}

/// The paragraph of a document that names its source.
fn source(entry: &'static Entry) -> String {
    let lines: Vec<&str> = entry
        .document()
        .skip_while(|line| !line.to_lowercase().contains("**source"))
        .take_while(|line| !line.is_empty())
        .collect();
    lines.join(" ").replace("**", "")
}

fn bibtex(name: &str, source: &str) -> String {
    let mut text = String::new();
    let mut words = source.split(|c: char| !c.is_ascii_alphanumeric()).peekable();
    while let Some(word) = words.next() {
        if word == "RFC"
            && let Some(number) = words
                .peek()
                .filter(|next| !next.is_empty() && next.chars().all(|c| c.is_ascii_digit()))
        {
            let _ = writeln!(
                text,
                "@techreport{{rfc{number},\n  type = {{RFC}},\n  number = {{{number}}},\n  institution = {{IETF}},\n  \
                 url = {{https://www.rfc-editor.org/rfc/rfc{number}}}\n}}"
            );
        }
    }
    if text.is_empty() {
        let _ = writeln!(text, "@misc{{{name},\n  note = {{{source}}}\n}}");
    }
    let _ = writeln!(
        text,
        "@software{{fleetfoot,\n  title = {{Fleetfoot: a laboratory for TCP latency}},\n  version = {{{}}}\n}}",
        env!("CARGO_PKG_VERSION")
    );
    text
}

fn unknown(name: &str) -> Failure {
    Failure::usage(explain::unknown(name, names().iter().map(String::as_str)))
}

/// Everything that can be explained.
pub(crate) fn names() -> Vec<String> {
    let others = Profile::NAMES
        .into_iter()
        .chain(EXAMPLES.iter().map(|example| example.0))
        .chain(library::ids());
    explain::names()
        .into_iter()
        .chain(others.map(str::to_owned))
        .chain(names_of_files())
        .collect()
}
