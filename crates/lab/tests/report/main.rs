//! Files made from a comparison: what stands in them, that nothing breaks out of them, that the dictionary describes them.

mod capture;
mod fixture;

use fixture::{HOSTILE, comparison, variant_names};
use fleetfoot_lab::report::table::{Kind, LinkRow, Row, RunRow, Sample, Table};
use fleetfoot_lab::report::trace::{self, TraceRow};
use fleetfoot_lab::report::{html, write_csv, write_html};
use std::collections::BTreeSet;
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
    assert!(page.contains(&escaped(&comparison.document.answer)));
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
    assert!(page.len() < 1_600_000, "{} bytes", page.len());
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
    let page = html::render(&fleetfoot_lab::result::Comparison::default()).expect("the template fits");
    assert!(page.contains("Ranking"));
    let single = html::render(&comparison(1, 1, 20)).expect("the template fits");
    assert!(single.contains("as described"));
}

#[test]
fn csv_has_the_columns_of_the_tables_and_a_row_for_each_flow() {
    let directory = scratch("csv");
    let comparison = comparison(3, 2, 30);
    write_csv(&directory, &comparison).expect("writable");
    let expected = [
        (RunRow::TABLE, 3 * 2 * 3),
        (Sample::TABLE, 3 * 2 * (30 + 11 + 2)),
        (LinkRow::TABLE, 3 * 2 * 2),
    ];
    for (table, rows) in expected {
        let mut reader =
            csv::Reader::from_path(directory.join(format!("{}.csv", table.name))).expect("readable");
        let header = reader.headers().expect("a header").clone();
        assert_eq!(
            header.iter().collect::<Vec<_>>(),
            table.columns.iter().map(|c| c.name).collect::<Vec<_>>()
        );
        let records = reader
            .records()
            .collect::<Result<Vec<_>, _>>()
            .expect("every row has every column");
        assert_eq!(records.len(), rows, "{}", table.name);
        for record in &records {
            for (field, column) in record.iter().zip(table.columns) {
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
                &records[2][19], "7555555.555555556",
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
    for table in [RunRow::TABLE, Sample::TABLE, LinkRow::TABLE] {
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

fn dictionary() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/data-dictionary.md");
    std::fs::read_to_string(path).expect("the data dictionary is in docs")
}

#[test]
fn the_dictionary_has_every_column_and_no_other() {
    let text = dictionary();
    let mut expected = String::new();
    for table in [RunRow::TABLE, Sample::TABLE, LinkRow::TABLE, TraceRow::TABLE] {
        expected.push_str(&section(&table));
    }
    for line in expected.lines() {
        assert!(
            text.lines().any(|own| own == line),
            "docs/data-dictionary.md lacks this line, or words it otherwise:\n{line}\n\nall of it:\n{expected}"
        );
    }
    let described = text
        .split("## The result document")
        .next()
        .expect("there is a first part");
    let rows = described.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(
        rows,
        expected.lines().filter(|line| line.starts_with("| `")).count(),
        "the dictionary describes a column that does not exist"
    );
}

fn section(table: &Table) -> String {
    let mut text = format!("## `{}`\n\nOne row: {}.\n\n", table.name, table.row);
    for column in table.columns {
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
        text.push_str(&format!(
            "| `{}` | {kind} | {unit} | {} |\n",
            column.name, column.definition
        ));
    }
    text
}

#[test]
fn the_dictionary_has_every_field_of_the_result() {
    let comparison = comparison(3, 2, 30);
    let mut document = comparison.document;
    document.timing = Some(fleetfoot_lab::result::Timing::default());
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
                if ["set", "more", "counters", "quantiles"]
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
