//! Files made from a comparison: what stands in them, that nothing breaks out of them, that the dictionary describes them.

mod capture;
mod fixture;
mod live;

use fixture::{HOSTILE, PART, UNSURE, comparison, variant_names};
use fleetfoot_lab::compare::words;
use fleetfoot_lab::metrics::counters::reported;
use fleetfoot_lab::report::live::{FlowRow, MeasuredRow};
use fleetfoot_lab::report::table::{Kind, LinkRow, Row, RunRow, Sample, Table};
use fleetfoot_lab::report::trace::{self, TraceRow};
use fleetfoot_lab::report::{charts, html, vega, write_csv, write_html};
use fleetfoot_lab::result::{Comparison, FlowTrace, Ratio, SendPoint, StatePoint};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&path).expect("the target folder is writable");
    path
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#x27;")
        .replace('/', "&#x2f;")
}

#[test]
fn the_report_says_the_answer_and_every_variant_and_nothing_breaks_out() {
    let comparison = comparison(20, 4, 200);
    let page = html::render(&comparison).expect("the template fits");
    write_html(&scratch("report").join("report.html"), &comparison).expect("writable");
    for name in variant_names(20) {
        assert!(page.contains(&escaped(&name)), "{name}");
    }
    assert!(page.contains(&escaped(&comparison.command)));
    for reason in &comparison.inapplicable {
        assert!(page.contains(&escaped(&reason.reason)));
    }
    let page = &page[..page.find("<script nonce").expect("the script is there")];
    assert!(!page.contains("window.broken=1</script>"), "text ended a script");
    assert!(!page.contains("<img"), "text became an element");
    assert!(!page.contains("\"'<img"));
    assert!(
        page.contains(&escaped("{{ 7*6 }}")),
        "text was taken for a template"
    );
    assert_eq!(page.matches("<script").count(), 1, "only the data");
}

#[test]
fn the_report_fetches_nothing_and_stays_small() {
    let page = html::render(&comparison(20, 10, 400)).expect("the template fits");
    assert!(page.contains("default-src 'none'"));
    for attribute in [
        "src=\"http",
        "href=\"http",
        "src=\"//",
        "href=\"//",
        "url(http",
        "@import",
        "<link",
        "<iframe",
    ] {
        let body = &page[..page.find("<script nonce").expect("the script is there")];
        assert!(!body.contains(attribute), "{attribute}");
    }
    assert!(page.len() < 700_000, "{} bytes", page.len());
    println!("report of 20 variants: {} bytes", page.len());
}

#[test]
fn two_reports_of_one_comparison_are_equal() {
    assert!(
        html::render(&comparison(5, 3, 50)).expect("fits")
            == html::render(&comparison(5, 3, 50)).expect("fits")
    );
}

#[test]
fn a_comparison_without_anything_renders() {
    let page = html::render(&Comparison::default()).expect("the template fits");
    assert!(page.contains("About this report"));
}

/// The page of `run`: what was measured, and nothing of what only a comparison has.
#[test]
fn a_single_run_has_no_ranking() {
    let mut run = comparison(1, 1, 20);
    run.document.recommended = None;
    run.document.sensitivity.clear();
    run.document.jittered = None;
    let page = body(&run);
    assert!(page.contains("as described") && page.contains("id=\"times\"") && page.contains("id=\"flows\""));
    for part in ["ranking", "turn-on", "pareto", "benefit", "near", "described"] {
        assert!(!page.contains(&format!("id=\"{part}\"")), "{part}");
        assert!(!page.contains(&format!("href=\"#{part}\"")), "a link to {part}");
    }
}

/// The page without script and data.
fn body(comparison: &Comparison) -> String {
    let page = html::render(comparison).expect("the template fits");
    let end = page.find("<script type").expect("the data is there");
    page[page.find("<body>").expect("there is a body")..end].to_owned()
}

/// From the element with this id to the first `end` after it.
fn part<'a>(page: &'a str, id: &str, end: &str) -> &'a str {
    let mark = format!("id=\"{id}\"");
    let from = page.find(&mark).unwrap_or_else(|| panic!("{id} is on the page"));
    let length = page[from..].find(end).unwrap_or_else(|| panic!("{id} ends"));
    &page[from..from + length]
}

#[test]
fn the_answer_stands_at_the_top_with_place_certainty_and_harm() {
    let comparison = comparison(20, 4, 20);
    let document = &comparison.document;
    let page = body(&comparison);
    let top = &page[..page.find("</section>").expect("the first section ends")];
    let (headline, rest) = words::headline(&document.answer);
    let shown = |text: &str| escaped(text).replace(" %", "\u{a0}%");
    assert!(top.contains(&format!("<h1>{}</h1>", shown(headline))), "{top}");
    assert!(top.contains(&shown(rest)));
    let recommended = document.recommended.as_ref().expect("the fixture has one");
    let advised = words::done(document, recommended).expect("it is in the table");
    let versus = advised.versus.as_ref().expect("it was compared");
    for said in [
        words::saved(versus),
        words::harm(versus.harm),
        String::from("equal on average: drr"),
        recommended.places[0].clone(),
        words::how_sure(recommended),
    ] {
        assert!(top.contains(&escaped(&said)), "{said}");
    }
    let folded = top.find("id=\"more-notes\"").expect("the other notes are folded");
    for (number, note) in document.notes.iter().enumerate() {
        let at = top.find(&shown(note)).unwrap_or_else(|| panic!("note {number}"));
        assert_eq!(at > folded, number >= words::NOTES, "note {number}");
    }
    assert!(top.contains("2 more notes") && !top.contains("<details open"));
}

#[test]
fn the_table_says_what_the_terminal_says_and_folds_the_rest() {
    let comparison = comparison(20, 4, 20);
    let page = body(&comparison);
    let ranking = part(&page, "ranking", "id=\"pareto\"");
    let rows = words::rows(&comparison.document);
    let folded = ranking.find("id=\"rest\"").expect("the rest is folded");
    let name = |row: &words::Row<'_>| format!("<th scope=\"row\">{}", escaped(&row.variant.name));
    let mut last = [0; 2];
    for row in &rows {
        let at = ranking
            .find(&name(row))
            .unwrap_or_else(|| panic!("{}", row.variant.name));
        assert!(
            at > last[usize::from(row.shown)],
            "{} stands where the terminal has it",
            row.variant.name
        );
        assert_eq!(at < folded, row.shown, "{}", row.variant.name);
        last[usize::from(row.shown)] = at;
        let line = &ranking[ranking[..at].rfind("<tr").expect("a row")..];
        let line = &line[..line.find("</tr>").expect("it ends")];
        let cells = words::cells(row.versus);
        for cell in [
            cells.tier,
            cells.saved,
            cells.harm,
            cells.goodput,
            cells.worst_tail,
            words::places(row.versus),
        ] {
            assert!(line.contains(&escaped(&cell)), "{}: {cell}", row.variant.name);
        }
        assert_eq!(line.contains("<abbr"), row.versus.pareto, "{}", row.variant.name);
        assert_eq!(
            line.contains(" part\" data-needs"),
            row.part,
            "{}",
            row.variant.name
        );
        for remark in &row.versus.remarks {
            assert!(line.contains(&escaped(remark)), "{}: {remark}", row.variant.name);
        }
    }
    assert_eq!(
        rows.iter().filter(|row| row.shown).count(),
        4,
        "two of the tier, a part, one on the front"
    );
    assert_eq!(
        rows[1].variant.name,
        variant_names(20)[PART],
        "a part stands under its whole"
    );
    assert!(ranking.contains("against \u{201c}as described\u{201d}"));
    assert!(ranking.contains(&escaped(&words::legend(|_| true))));
    for heading in words::HEADINGS {
        assert!(
            ranking.to_lowercase().contains(&format!(">{heading}</th>")),
            "{heading}"
        );
    }
}

#[test]
fn the_pareto_picture_needs_no_script_and_names_tier_and_front() {
    let comparison = comparison(20, 4, 20);
    let page = body(&comparison);
    let card = part(&page, "pareto", "</section>");
    assert_eq!(card.matches("<svg").count(), 2, "for a screen and for a phone");
    for picture in card.split("<svg").skip(1) {
        let picture = &picture[..picture.find("</svg>").expect("it ends")];
        assert!(picture.contains("class=\"fr\" d=\"M"), "the front is joined");
        // A part of another stands there where it is on the front.
        for name in [
            "fq-codel",
            "drr",
            "tail-loss-probe",
            variant_names(20)[PART].as_str(),
        ] {
            assert_eq!(picture.matches(&format!(">{name}</text>")).count(), 1, "{name}");
        }
        assert!(!picture.contains(">codel</text>"), "others are not named");
        // Intervals: a line upwards and one across through every mark.
        assert!(
            picture.matches("class=\"fw").count()
                >= 2 * picture.matches("<circle class=\"f1\" cx").count().min(3)
        );
        assert!(picture.contains("time saved (%)") && picture.contains("harm (%)"));
    }
    let table = &card[card.find("<table").expect("the same as a table")..];
    for row in &words::rows(&comparison.document) {
        assert!(table.contains(&escaped(&row.variant.name)) && table.contains(&words::saved(row.versus)));
    }
    assert!(card.contains("whether they are significant is not tested"));
}

#[test]
fn a_wait_at_the_bottleneck_is_everybody_s_only_where_all_share_a_queue() {
    let comparison = comparison(20, 4, 20);
    let variants: Vec<_> = comparison.document.variants.iter().collect();
    let charts = charts::all(&comparison, &variants);
    let delay = charts.iter().find(|chart| chart.id == "delay");
    let text = &delay.expect("packets wait").text;
    assert!(
        text.contains("With one queue for all packets this delay is added to everybody\u{2019}s round trip.")
            && text.contains("a queue of its own"),
        "{text}"
    );
}

#[test]
fn how_to_turn_on_what_is_recommended_is_open_and_the_rest_folded() {
    let comparison = comparison(20, 4, 20);
    let page = body(&comparison);
    let section = part(&page, "turn-on", "</section>");
    let instruction = &comparison.document.variants[1].instructions[0];
    let folded = section.find("<details").expect("the others are folded");
    let (first, others) = section.split_at(folded);
    assert!(
        first.contains(&format!(
            "<pre tabindex=\"0\"><code>{}</code></pre>",
            escaped(&instruction.commands[0])
        )),
        "on one line"
    );
    for said in [
        words::to_turn_on(instruction),
        instruction.why.clone(),
        words::needs(instruction),
        words::afterwards(instruction).expect("there is something to check"),
    ] {
        assert!(first.contains(&escaped(&said)), "{said}");
    }
    assert!(!others.contains("<details open") && others.matches("fold other").count() == 18);
    assert!(others.contains("<pre tabindex=\"0\"><code>"));
}

#[test]
fn a_command_behind_which_nothing_is_won_is_not_advised_before_it_is_shown() {
    let mut comparison = comparison(20, 4, 20);
    let first_card = |comparison: &Comparison| {
        let page = body(comparison);
        part(&page, "recommended", "</pre>").to_owned()
    };
    // At the rate of the command it wins as much, which is said nowhere here.
    comparison.document.as_commanded = comparison.document.variants[1].versus.clone();
    assert!(!first_card(&comparison).contains("Not advised here"));
    let there = comparison.document.as_commanded.as_mut().expect("it was set");
    there.harm = Some(Ratio {
        value: there.win.expect("it wins") + 0.01,
        ..there.harm.expect("harm was measured")
    });
    let card = first_card(&comparison);
    let advice = card.find("Not advised here").expect("it is said");
    assert!(advice < card.find("<pre").expect("the command is shown"), "first");
}

#[test]
fn neighbours_jitter_commit_and_interruption_are_reported() {
    let mut comparison = comparison(20, 4, 20);
    let page = body(&comparison);
    let near = part(&page, "near", "</section>");
    for point in &comparison.document.sensitivity {
        assert!(near.contains(&escaped(&point.change)) && near.contains(words::holds(point.holds)));
    }
    assert!(near.contains("38.0 %") && near.contains("44.0 %") && near.contains("27.0 %"));
    let jittered = comparison.document.jittered.as_ref().expect("the fixture has it");
    assert!(near.contains(&escaped(&words::jittered(
        jittered,
        comparison.document.recommended.as_ref()
    ))));
    let fit = comparison
        .document
        .fit
        .as_ref()
        .expect("the fixture was imported");
    let fitted = part(&page, "fit", "</section>");
    assert!(fitted.contains(&escaped(&fit.sentences())) && fitted.contains(&escaped(&fit.reasons[0])));
    assert!(fitted.contains("cubic") && fitted.contains("8.0 %"));
    let about = part(&page, "about", "</dl>");
    assert!(about.contains("0123456789ab"));
    assert!(!page.contains("id=\"interrupted\""));
    comparison.document.interrupted = true;
    let about_interrupted = body(&comparison);
    assert!(part(&about_interrupted, "interrupted", "</dd>").contains("4 seeds"));
    assert!(about.contains(&comparison.hash));
}

/// A flow of any length takes bounded room, and keeps its peak, its end and its counts.
#[test]
fn a_long_flow_is_kept_in_bounded_room() {
    let mut trace = FlowTrace::default();
    for i in 0..1_000_000_u64 {
        let t_s = i as f64 * 1e-5;
        let cwnd_bytes = if i == 77_777 { 9_000_000 } else { 14_480 + i % 1448 };
        trace.on_state(StatePoint {
            t_s,
            cwnd_bytes,
            ssthresh_bytes: None,
            srtt_s: None,
            pipe_bytes: 0,
            acked_bytes: i,
            state: "open",
        });
        trace.on_send(SendPoint {
            t_s,
            from_byte: i,
            bytes: 1,
            retransmission: i % 100_000 == 7,
        });
    }
    assert!(trace.states.len() <= FlowTrace::MOST_POINTS && trace.sends.len() <= FlowTrace::MOST_POINTS);
    assert!(
        trace.states.iter().any(|state| state.cwnd_bytes == 9_000_000),
        "the peak stays"
    );
    assert_eq!(trace.states.last().map(|state| state.acked_bytes), Some(999_999));
    assert_eq!((trace.segments, trace.retransmitted), (1_000_000, 10));
    assert_eq!(
        trace.sends.iter().filter(|send| send.retransmission).count(),
        10,
        "each of the few stays"
    );
    assert!(trace.sends.windows(2).all(|pair| pair[0].t_s <= pair[1].t_s));
}

/// What the table calls not significant is not green in a chart.
#[test]
fn charts_and_table_agree_on_what_is_significant() {
    let mut comparison = comparison(20, 4, 20);
    // One group that waits: its verdict and the table's are of one difference.
    for variant in &mut comparison.document.variants {
        variant.groups[1].latency_sensitive = false;
    }
    let (variants, shown) = charts::ordered(&comparison);
    let all = charts::all(&comparison, &variants[..shown]);
    assert!(shown < variants.len(), "only what is shown at first is drawn");
    let change = all
        .iter()
        .find(|chart| chart.id == "change")
        .expect("there are times");
    let charts::Data::Change { rows, .. } = &change.data else {
        panic!("{change:?}");
    };
    assert_eq!(rows.len(), shown - 1);
    let unsure = &variant_names(20)[UNSURE];
    for row in rows {
        let name = &row.variant;
        let table = comparison
            .document
            .variants
            .iter()
            .find(|variant| variant.name == *name);
        let significant = table
            .and_then(|variant| variant.versus.as_ref())
            .is_some_and(|versus| versus.significant);
        assert_eq!(row.verdict != charts::Verdict::Undecided, significant, "{name}");
        if name == unsure {
            assert!(
                row.high.is_some_and(|high| high < 0.0),
                "its interval does not cross zero"
            );
        }
    }
    assert!(rows.iter().any(|row| row.variant == *unsure));
}

/// The page and a notebook draw the same numbers, and the page has all of them without a script.
#[test]
fn a_chart_says_the_same_on_the_page_and_in_a_notebook() {
    let comparison = comparison(6, 4, 40);
    let (variants, shown) = charts::ordered(&comparison);
    let all = charts::all(&comparison, &variants[..shown]);
    let specifications = vega::charts(&comparison);
    let ids = |names: Vec<&'static str>| names.join(" ");
    assert_eq!(
        ids(all.iter().map(|chart| chart.id).collect()),
        ids(specifications.iter().map(|chart| chart.id).collect())
    );
    let page = body(&comparison);
    for (chart, specification) in all.iter().zip(&specifications) {
        let drawn = part(&page, &format!("chart-{}", chart.id), "</section>");
        let values = specification.spec["data"]["values"].as_array().expect("values");
        assert!(!values.is_empty(), "{}", chart.id);
        for group in &chart.groups {
            assert!(
                drawn.contains(&format!("data-group=\"{}\"", escaped(group))),
                "{group}"
            );
        }
        for value in values {
            let name = value["variant"].as_str().expect("a name");
            let label = format!("<title>{}", drawn_text(name));
            assert!(drawn.contains(&label), "{}: {label}", chart.id);
        }
    }
}

/// A text as drawings escape it.
fn drawn_text(text: &str) -> String {
    escaped(text).replace("&#x27;", "'").replace("&#x2f;", "/")
}

#[test]
fn csv_has_the_columns_of_the_tables_and_a_row_for_each_flow() {
    let directory = scratch("csv");
    let comparison = comparison(3, 2, 30);
    write_csv(&directory, &comparison).expect("writable");
    let expected = [
        (RunRow::table(), 3 * 2 * 3),
        (Sample::table(), 3 * 2 * (30 + 11 + 2)),
        (LinkRow::table(), 3 * 2 * 2),
    ];
    for (table, rows) in expected {
        let mut reader =
            csv::Reader::from_path(directory.join(format!("{}.csv", table.name))).expect("readable");
        let header = reader.headers().expect("a header").clone();
        assert_eq!(
            header.iter().collect::<Vec<_>>(),
            table
                .columns
                .iter()
                .map(|c| c.name.to_string())
                .collect::<Vec<_>>()
        );
        let records = reader
            .records()
            .collect::<Result<Vec<_>, _>>()
            .expect("every row has every column");
        assert_eq!(records.len(), rows, "{}", table.name);
        for record in &records {
            for (field, column) in record.iter().zip(&table.columns) {
                let fits = match column.kind {
                    Kind::Text => !field.is_empty(),
                    Kind::Integer => field.parse::<u64>().is_ok(),
                    Kind::Number => field.is_empty() || field.parse::<f64>().is_ok(),
                };
                assert!(fits, "{}.{}: {field:?}", table.name, column.name);
            }
        }
        if table.name == "runs" {
            assert_eq!(
                &records[2][20], "7555555.555555556",
                "17 MB in the 18 s between warm-up and end of arrivals"
            );
            assert_eq!(&records[2][7], "0", "a bulk connection is not censored");
        }
        if table.name == "links" {
            assert_eq!(
                records[0].iter().skip(8).collect::<Vec<_>>(),
                ["40", "3", "1", "38", "6", "3"]
            );
        }
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_says_the_same_as_csv_and_where_it_is_from() {
    use arrow_array::{Array, Float64Array, StringArray, UInt64Array};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    let directory = scratch("parquet");
    let comparison = comparison(3, 2, 30);
    write_csv(&directory, &comparison).expect("writable");
    fleetfoot_lab::report::write_parquet(&directory, &comparison).expect("writable");
    for table in [RunRow::table(), Sample::table(), LinkRow::table()] {
        let file = std::fs::File::open(directory.join(format!("{}.parquet", table.name))).expect("readable");
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
        let metadata = builder
            .metadata()
            .file_metadata()
            .key_value_metadata()
            .expect("metadata")
            .clone();
        for (key, value) in fleetfoot_lab::report::parquet::provenance(&comparison) {
            assert!(
                metadata
                    .iter()
                    .any(|pair| pair.key == key && pair.value.as_ref() == Some(&value)),
                "{key}"
            );
        }
        let mut rows: Vec<Vec<String>> = Vec::new();
        for batch in builder.build().expect("readable") {
            let batch = batch.expect("readable");
            for row in 0..batch.num_rows() {
                let texts = batch.columns().iter().map(|column| {
                    let any = column.as_any();
                    if column.is_null(row) {
                        String::new()
                    } else if let Some(text) = any.downcast_ref::<StringArray>() {
                        text.value(row).to_owned()
                    } else if let Some(number) = any.downcast_ref::<UInt64Array>() {
                        number.value(row).to_string()
                    } else {
                        any.downcast_ref::<Float64Array>()
                            .expect("a number")
                            .value(row)
                            .to_string()
                    }
                });
                rows.push(texts.collect());
            }
        }
        let mut reader =
            csv::Reader::from_path(directory.join(format!("{}.csv", table.name))).expect("readable");
        let same = reader
            .records()
            .map(|record| {
                record
                    .expect("readable")
                    .iter()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>();
        assert!(!same.is_empty());
        assert_eq!(rows, same, "{}", table.name);
    }
}

fn trace_row() -> TraceRow {
    TraceRow {
        time_s: 1.5,
        flow: "pages/3".to_owned(),
        event: "ack",
        cwnd_bytes: 14_480,
        ssthresh_bytes: None,
        srtt_s: Some(0.044),
        rto_s: Some(0.244),
        pipe_bytes: 2_896,
        state: "open",
    }
}

#[test]
fn a_trace_is_a_table_too() {
    let path = scratch("trace").join("trace.csv");
    trace::write_csv(&path, [trace_row()]).expect("writable");
    assert_eq!(
        std::fs::read_to_string(path).expect("readable"),
        "time_s,flow,event,cwnd_bytes,ssthresh_bytes,srtt_s,rto_s,pipe_bytes,state\n1.5,pages/3,ack,14480,,0.044,0.244,2896,open\n"
    );
}

fn dictionary_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/data-dictionary.md")
}

fn dictionary() -> String {
    std::fs::read_to_string(dictionary_path()).expect("the data dictionary is in docs")
}

/// `FLEETFOOT_BLESS=1` writes the tables and the counters of the page.
#[test]
fn the_dictionary_has_every_column_and_counter() {
    let text = dictionary();
    let (head, rest) = text.split_once("## `samples`").expect("the tables begin");
    let (_, tail) = rest.split_once("## Captures").expect("the tables end");
    let tables = [
        Sample::table(),
        RunRow::table(),
        LinkRow::table(),
        TraceRow::table(),
        FlowRow::table(),
        MeasuredRow::table(),
    ];
    let tables: String = tables.iter().map(section).collect();
    let mut expected = format!("{head}{tables}## Captures");
    let (before, tail) = tail
        .split_once("| `variants[].groups[].retransmits` |")
        .expect("the counters begin");
    let (_, after) = tail
        .split_once("| `variants[].groups[].dropped_units` |")
        .expect("the counters end");
    expected.push_str(before);
    for counter in reported() {
        let definition = counter.definition.trim().trim_end_matches('.');
        let _ = writeln!(
            expected,
            "| `variants[].groups[].{}` | {definition} |",
            counter.name
        );
    }
    let _ = write!(expected, "| `variants[].groups[].dropped_units` |{after}");
    if std::env::var_os("FLEETFOOT_BLESS").is_some() {
        return std::fs::write(dictionary_path(), expected).expect("docs can be written");
    }
    assert!(
        text == expected,
        "docs/data-dictionary.md is not current: FLEETFOOT_BLESS=1 cargo test -p fleetfoot-lab --test report"
    );
}

fn section(table: &Table) -> String {
    let mut text = format!(
        "## `{}`\n\nOne row: {}.\n\n| column | holds | unit | meaning |\n|---|---|---|---|\n",
        table.name, table.row
    );
    for column in &table.columns {
        let kind = match column.kind {
            Kind::Text => "text",
            Kind::Integer => "integer",
            Kind::Number => "number",
        };
        let unit = if column.unit.is_empty() {
            "–"
        } else {
            column.unit
        };
        let _ = writeln!(
            text,
            "| `{}` | {kind} | {unit} | {} |",
            column.name, column.definition
        );
    }
    text.push('\n');
    text
}

#[test]
fn the_dictionary_has_every_field_of_the_result() {
    let comparison = comparison(3, 2, 30);
    let mut document = comparison.document;
    document.timing = Some(fleetfoot_lab::result::Timing::default());
    document.refuted = Some(String::from("fq-codel"));
    // Its fields are those of `variants[].versus`.
    document.as_commanded = document.variants[1].versus.clone();
    // What a real program adds.
    let live = live::result(&["drop-tail"], 1).document;
    document.live = live.live;
    document.variants[0].live = live.variants.into_iter().next().and_then(|variant| variant.live);
    let mut fields = BTreeSet::new();
    collect(
        "",
        &serde_json::to_value(&document).expect("the document is JSON"),
        &mut fields,
    );
    let text = dictionary();
    let described = text
        .split("## The result document")
        .nth(1)
        .expect("there is a second part")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect::<BTreeSet<_>>();
    assert_eq!(fields, described);
}

/// Paths of all fields; summaries and ratios are one field each, and their own fields are `S.mean`, `R.value`.
fn collect(path: &str, value: &serde_json::Value, fields: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => {
            let kind = if map.contains_key("p99") {
                "S"
            } else if map.contains_key("value") && map.contains_key("significant") {
                "R"
            } else {
                path
            };
            if kind != path {
                fields.insert(path.to_owned());
            }
            for (key, inner) in map {
                if ["set", "more", "counters", "quantiles", "as_commanded"]
                    .iter()
                    .any(|free| kind.ends_with(free))
                {
                    continue;
                }
                let inside = if kind.is_empty() {
                    key.clone()
                } else {
                    format!("{kind}.{key}")
                };
                collect(&inside, inner, fields);
            }
            if !path.is_empty() {
                fields.insert(path.to_owned());
            }
        }
        serde_json::Value::Array(list) if list.iter().any(serde_json::Value::is_object) => {
            fields.insert(path.to_owned());
            for inner in list {
                collect(&format!("{path}[]"), inner, fields);
            }
            fields.remove(&format!("{path}[]"));
        }
        _ => {
            fields.insert(path.to_owned());
        }
    }
}

#[test]
fn the_bundle_is_what_its_sources_were_built_to() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/build.sh");
    let output = Command::new("sh")
        .arg(script)
        .arg("--verify")
        .output()
        .expect("there is a shell");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn hostile_text_is_hostile() {
    assert!(HOSTILE.contains("</script>") && HOSTILE.contains('"') && HOSTILE.contains("{{"));
}

#[test]
fn every_chart_has_its_place_on_the_page() {
    let charts = [
        include_str!("../../src/report/charts.rs"),
        include_str!("../../src/report/charts/distribution.rs"),
    ]
    .concat();
    let page = include_str!("../../assets/report.html.j2");
    let ids: Vec<&str> = charts
        .split("id: \"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(ids.len() >= 5, "{ids:?}");
    for id in ids {
        assert!(page.contains(&format!("{{{{ chart('{id}') }}}}")), "{id}");
    }
}
