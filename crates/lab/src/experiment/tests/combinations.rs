//! Checks with `for`, named points, names with placeholders: they are what is written out, and mistakes have their place.

use super::{experiment, parse, text};
use crate::scenario::{Check, Figure, PlotKind};

const SWEEP: &str = "as_described = \"plain\"\n[figure.sweep]\n\"tcp.initial_window\" = [10, 20]\n[figure.points]\n\
                     slow = { \"tcp.initial_window\" = 10 }\nfast = { \"tcp.initial_window\" = 20 }\n";

fn figure(figure: &str, checks: &str) -> Figure {
    experiment(figure, checks).file.figure
}

fn names(checks: &[Check]) -> Vec<&str> {
    checks.iter().map(|check| check.name.as_str()).collect()
}

#[test]
fn a_check_with_for_is_the_checks_written_out() {
    let short = "
[[check]]
name = \"{what}, {variant}, {point}\"
relative_to = \"plain\"
cases = [
  { variant = \"better\", expect = \"< 1\" },
  { variant = [\"better\", \"costly\"], point = \"fast\", what = \"times\", expect = { min = 0.1, max = 2 }, published = \"as {variant}\" },
]
[check.for]
variant = [\"better\", \"costly\"]
what.times = { claim = \"mean time of {who}, {variant}\", metric = \"fct_s\", group = \"pages\", who = \"a page\" }
what.count = { metric = \"flows\", group = \"pages\" }
point = \"each\"
";
    let mut long = String::new();
    for variant in ["better", "costly"] {
        for (what, metric) in [("times", "fct_s"), ("count", "flows")] {
            for (point, window) in [("slow", 10), ("fast", 20)] {
                long.push_str(&format!(
                    "[[check]]\nname = \"{what}, {variant}, {point}\"\nmetric = \"{metric}\"\ngroup = \"pages\"\nvariant = \"{variant}\"\n\
                     relative_to = \"plain\"\npoint = {{ \"tcp.initial_window\" = {window} }}\n"
                ));
                if what == "times" {
                    long.push_str(&format!("claim = \"mean time of a page, {variant}\"\n"));
                }
                match (variant, what, point) {
                    (_, "times", "fast") => long.push_str(&format!(
                        "expect = {{ min = 0.1, max = 2 }}\npublished = \"as {variant}\"\n"
                    )),
                    ("better", ..) => long.push_str("expect = \"< 1\"\n"),
                    _ => {}
                }
            }
        }
    }
    let (short, long) = (figure(SWEEP, short), figure(SWEEP, &long));
    assert_eq!(short.checks, long.checks);
    assert_eq!(short.checks.len(), 8);
}

#[test]
fn each_is_every_variant_group_or_point_in_their_order() {
    let check = |axis: &str, more: &str| {
        let text = format!(
            "[[check]]\nname = \"it, {{{axis}}}\"\nfor = {{ {axis} = \"each\" }}\nexpect = \"> 0\"\n{more}"
        );
        let found = figure(SWEEP, &text);
        names(&found.checks).join("; ")
    };
    assert_eq!(
        check("variant", "metric = \"fct_s\"\ngroup = \"pages\""),
        "it, plain; it, better; it, costly"
    );
    assert_eq!(
        check("group", "metric = \"goodput_bps\""),
        "it, pages; it, backup"
    );
    assert_eq!(
        check("point", "metric = \"fct_s\"\ngroup = \"pages\""),
        "it, slow; it, fast"
    );
    // Without names a point is called as everywhere.
    let sweep = "[figure.sweep]\n\"tcp.initial_window\" = [10, 20]\n";
    let text = "[[check]]\nname = \"it, {point}\"\nfor.point = \"each\"\nmetric = \"fct_s\"\ngroup = \"pages\"\nexpect = \"> 0\"\n";
    let found = figure(sweep, text);
    assert_eq!(
        names(&found.checks),
        ["it, initial_window = 10", "it, initial_window = 20"]
    );
    assert_eq!(found.checks[1].point, Some(1));
}

#[test]
fn named_points_are_a_sweep_of_their_own() {
    let points = "[figure.points]\na = { \"tcp.initial_window\" = 10, \"run.warmup\" = \"0 s\" }\nb = { \"tcp.initial_window\" = 20, \"run.warmup\" = \"1 s\" }\n";
    let sweep = "[figure.sweep]\nzip = true\n\"tcp.initial_window\" = [10, 20]\n\"run.warmup\" = [\"0 s\", \"1 s\"]\n";
    let check = "[[check]]\nname = \"it\"\nmetric = \"fct_s\"\ngroup = \"pages\"\nexpect = \"> 0\"\n";
    let at = |point: &str, reference: &str| {
        format!("{check}point = {point}\nrelative_to = {{ point = {reference} }}\n")
    };
    let named = figure(points, &at("\"b\"", "\"a\""));
    let plain = figure(
        sweep,
        &at("{ \"run.warmup\" = \"1 s\" }", "{ \"tcp.initial_window\" = 10 }"),
    );
    assert_eq!(named.checks, plain.checks);
    let labels = |figure: &Figure| {
        figure
            .points
            .iter()
            .map(crate::scenario::Point::label)
            .collect::<Vec<_>>()
    };
    assert_eq!(labels(&named), labels(&plain));
}

#[test]
fn a_name_with_placeholders_is_all_checks_it_fits() {
    let checks = "
[[check]]
name = \"{metric}, {variant}\"
for = { metric = [\"fct_s\", \"flows\"], variant = [\"better\", \"costly\"] }
group = \"pages\"
expect = \"> 0\"
[[plot]]
name = \"one\"
kind = \"dots\"
checks = [\"flows, costly\", \"fct_s, {variant}\"]
titles = [\"how many\", \"time with {variant}\"]
";
    let found = figure("primary = \"flows, {variant}\"\n", checks);
    let primary: Vec<bool> = found.checks.iter().map(|check| check.primary).collect();
    assert_eq!(primary, [false, false, true, true]);
    let PlotKind::Dots { checks, .. } = &found.plots[0].kind else {
        panic!("{:?}", found.plots);
    };
    let shown: Vec<(usize, &str)> = checks
        .iter()
        .map(|shown| (shown.check, shown.title.as_str()))
        .collect();
    assert_eq!(
        shown,
        [(3, "how many"), (0, "time with better"), (1, "time with costly")]
    );
}

#[test]
fn mistakes_in_short_forms_have_their_place() {
    let check = |lines: &str| {
        text(
            SWEEP,
            &format!("[[check]]\nmetric = \"fct_s\"\ngroup = \"pages\"\nexpect = \"< 1\"\n{lines}\n"),
        )
    };
    let plain = "[[check]]\nname = \"it\"\nmetric = \"fct_s\"\ngroup = \"pages\"\nexpect = \"< 1\"\n";
    let cases = [
        (
            "unknown variant",
            check("name = \"{variant}\"\nfor = { variant = [\"better\", \"costli\"] }"),
        ),
        (
            "empty list",
            check("name = \"{variant}\"\nfor = { variant = [] }"),
        ),
        ("empty for", check("name = \"it\"\nfor = {}")),
        (
            "unknown point",
            check("name = \"{point}\"\nfor = { point = [\"slow\", \"fsat\"] }"),
        ),
        (
            "unknown point of a single check",
            check("name = \"it\"\npoint = \"fsat\""),
        ),
        (
            "point out of range",
            check(
                "name = \"{point}\"\nfor.point = { slow = \"slow\", far = { \"tcp.initial_window\" = 40 } }",
            ),
        ),
        (
            "point without names",
            text("", &format!("{plain}point = \"slow\"\n")),
        ),
        (
            "each of something else",
            check("name = \"{link}\"\nfor = { link = \"each\" }"),
        ),
        (
            "a word instead of a list",
            check("name = \"{variant}\"\nfor = { variant = \"better\" }"),
        ),
        (
            "a number instead of a list",
            check("name = \"{load}\"\nfor = { load = 3 }"),
        ),
        (
            "tables in a list",
            check("name = \"{point}\"\nfor = { point = [{ \"tcp.initial_window\" = 10 }] }"),
        ),
        (
            "unknown placeholder",
            check("name = \"{variant}\"\nclaim = \"{varaint}\"\nfor = { variant = [\"better\"] }"),
        ),
        (
            "a brace that is not closed",
            check("name = \"{variant\"\nfor = { variant = [\"better\"] }"),
        ),
        (
            "one name for several",
            check("name = \"it\"\nfor = { variant = [\"better\", \"costly\"] }"),
        ),
        ("no name", check("for = { variant = [\"better\", \"costly\"] }")),
        (
            "a word that is nowhere used",
            check("name = \"{a}\"\n[check.for]\na.one = { varaint = \"better\" }"),
        ),
        (
            "a case of no combination",
            check(
                "name = \"{variant}\"\nfor = { variant = [\"better\", \"costly\"] }\ncases = [{ variant = \"betr\", expect = \"< 2\" }]",
            ),
        ),
        (
            "a case that selects nothing",
            check(
                "name = \"{variant}\"\nfor = { variant = [\"better\", \"costly\"] }\ncases = [{ variant = [], expect = \"< 2\" }]",
            ),
        ),
        (
            "unknown key in a case",
            check(
                "name = \"{variant}\"\nfor = { variant = [\"better\", \"costly\"] }\ncases = [{ variant = \"better\", expects = \"< 2\" }]",
            ),
        ),
        (
            "cases without for",
            check("name = \"it\"\ncases = [{ expect = \"< 2\" }]"),
        ),
        ("no points", text("[figure.points]\n", plain)),
        (
            "points of different paths",
            text(
                "[figure.points]\na = { \"tcp.initial_window\" = 10 }\nb = { \"run.warmup\" = \"1 s\" }\n",
                plain,
            ),
        ),
        (
            "a primary that fits nothing",
            text("primary = \"{variant}\"\n", plain),
        ),
        (
            "titles of a plot",
            text(
                "",
                &format!(
                    "{plain}[[plot]]\nname = \"p\"\nkind = \"dots\"\nchecks = [\"it\"]\ntitles = [\"a\", \"b\"]\n"
                ),
            ),
        ),
    ];
    let mut all = String::new();
    for (what, text) in cases {
        let error = parse(&text)
            .err()
            .unwrap_or_else(|| panic!("{what} was accepted"));
        let file = error.file.to_string();
        let shown = error.to_string().replace(&file, "made-up.toml");
        all.push_str(&format!(
            "== {what}\n{shown}\n[{}:{} key `{}`]\n\n",
            error.line, error.column, error.key
        ));
    }
    insta::assert_snapshot!(all);
}
