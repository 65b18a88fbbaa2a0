//! How text and tables fit the width there is.

use comfy_table::{Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

/// Columns to write for: the terminal's; into a pipe what `COLUMNS` says, else the most.
pub(crate) fn width() -> usize {
    // A terminal that does not know its size says 0.
    let terminal = Table::new().width().filter(|width| *width > 0).map(usize::from);
    let from_environment = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal
        .or_else(from_environment)
        .map_or(WIDEST, |width| width.clamp(NARROWEST, WIDEST))
}

/// Columns of the terminal that stderr is, if it says.
pub(crate) fn columns_of_stderr() -> Option<u16> {
    let mut table = Table::new();
    table.use_stderr();
    table.width().filter(|width| *width > 0)
}

/// Lines longer than this are hard to read.
const WIDEST: usize = 104;
/// Below this nothing fits.
const NARROWEST: usize = 40;

/// A table with this heading.
pub(crate) fn new_table(colored: bool, heading: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    if colored {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.set_header(heading.iter().map(|word| {
        let cell = Cell::new(word);
        if colored {
            cell.add_attribute(Attribute::Bold)
        } else {
            cell
        }
    }));
    table
}

/// Hides columns, in this order, until the table fits; if it does not even then, cells break. Returns what is hidden.
pub(crate) fn fit(table: &mut Table, width: usize, order: &[usize]) -> Vec<usize> {
    let mut hidden = Vec::new();
    while table.lines().any(|line| visible(&line) > width) {
        let Some(&index) = order.get(hidden.len()) else {
            table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(u16::try_from(width).unwrap_or(u16::MAX));
            return hidden;
        };
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
        hidden.push(index);
    }
    hidden
}

/// Characters of a line that are seen: without colours, and without the blanks at its end.
fn visible(line: &str) -> usize {
    let mut seen = String::new();
    let mut escape = false;
    for c in line.chars() {
        match (escape, c) {
            (false, '\u{1b}') => escape = true,
            (false, _) => seen.push(c),
            (true, _) => escape = c != 'm',
        }
    }
    seen.trim_end().chars().count()
}

/// Aligns columns to the right.
pub(crate) fn align(table: &mut Table, columns: std::ops::Range<usize>) {
    for index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// `text` in lines of at most `width` characters, each after `indent`. A number stays with its unit.
pub(crate) fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        let bare = word.trim_end_matches([',', '.', ';', ':', ')', ']']);
        if line.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&bare) {
            line.push(NO_BREAK);
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let options = textwrap::Options::new(width)
        .initial_indent(indent)
        .subsequent_indent(indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(&line, options).replace(NO_BREAK, " ")
}

/// Stands between a number and its unit until lines are made.
const NO_BREAK: char = '\u{a0}';

const UNITS: &[&str] = &[
    "%", "s", "ms", "us", "ns", "B", "kB", "MB", "kbit/s", "Mbit/s", "Gbit/s",
];

/// The head of a source file: its paragraphs wrapped, lists and tables as they are, without marks of emphasis.
pub(crate) fn document<'a>(lines: impl Iterator<Item = &'a str>, width: usize) -> String {
    let lines: Vec<&str> = lines.collect();
    let paragraphs = lines.split(|line| line.is_empty()).map(|paragraph| {
        let flowing = |line: &&str| !line.starts_with(['-', '|', ' ', '#']);
        let parts = if paragraph.iter().all(flowing) {
            // A paragraph may hold several parts, each with its own heading.
            let mut parts: Vec<String> = Vec::new();
            for line in paragraph {
                match parts.last_mut().filter(|_| !line.starts_with("**")) {
                    Some(part) => {
                        part.push(' ');
                        part.push_str(line);
                    }
                    None => parts.push((*line).to_owned()),
                }
            }
            parts.iter().map(|part| wrapped(part, width, "")).collect()
        } else {
            paragraph
                .iter()
                .map(|line| (*line).to_owned())
                .collect::<Vec<_>>()
        };
        parts.join("\n").replace("**", "")
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::{document, fit, new_table, wrapped};

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(
            wrapped("mean of 30 %, p99 of 2 ms", 10, ""),
            "mean of\n30 %, p99\nof 2 ms"
        );
        assert_eq!(wrapped("in 2 s", 5, "  "), "  in\n  2 s");
    }

    #[test]
    fn columns_are_hidden_in_order_until_the_table_fits() {
        let table = || {
            let mut table = new_table(true, &["first", "second", "third"]);
            table.add_row(["1", "2", "3"]);
            table
        };
        // " first  second  third" is 21 wide.
        assert!(fit(&mut table(), 21, &[1, 0]).is_empty());
        assert_eq!(fit(&mut table(), 20, &[1, 0]), [1]);
        assert_eq!(fit(&mut table(), 12, &[1, 0]), [1, 0]);
        let mut narrow = table();
        assert_eq!(fit(&mut narrow, 4, &[1, 0]), [1, 0]);
        assert!(!narrow.to_string().contains("second"));
    }

    #[test]
    fn paragraphs_of_a_document_flow() {
        let lines = [
            "One two",
            "three.",
            "",
            "**Source.** A.",
            "**Deviations.** B",
            "c.",
            "",
            "- as",
            "- is",
        ];
        let flown = "One two three.\n\nSource. A.\nDeviations. B c.\n\n- as\n- is";
        assert_eq!(document(lines.into_iter(), 100), flown);
    }
}
