//! A drawing as SVG: shapes with classes, so that a page or the file itself says what colours they have.

use crate::report::text::rounded;
use std::fmt::Write as _;

/// Width of every drawing.
pub(super) const WIDTH: f64 = 760.0;

/// Mean width of a character of text (size 12), a little on the wide side.
pub(super) const CHARACTER: f64 = 6.6;

/// Colours of a file that stands alone: it is shown by pages that know nothing of it, so it brings its own ground.
const STYLE: &str = ".ff{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
.ff text{fill:#1b1f24}.ff .g{fill:#fff}.ff .q{fill:#59636e}.ff .h{font-size:15px;font-weight:600}.ff .b{font-weight:600}\
.ff .n{stroke:#d9dee4}.ff .z{stroke:#59636e}.ff .s{fill:#e4f1ea}.ff .e{fill:none;stroke:#d9dee4}.ff .k{fill:#111}\
@media(prefers-color-scheme:dark){.ff text{fill:#e6eaef}.ff .g{fill:#171c23}.ff .q{fill:#9aa5b1}.ff .n{stroke:#2c343e}\
.ff .z{stroke:#9aa5b1}.ff .s{fill:#1c3a30}.ff .e{stroke:#2c343e}.ff .k{fill:#111}}";

/// Where a text is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Shapes from the top down.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    body: String,
    /// Height of what was drawn.
    pub(super) height: f64,
}

/// One decimal is a tenth of a pixel.
fn number(value: f64) -> f64 {
    // Adding zero turns -0 into 0.
    libm::round(value * 10.0) / 10.0 + 0.0
}

/// The points without those that lie within a third of a pixel of the line through the others (Ramer, Douglas and Peucker).
fn simplified(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let Some(last) = points.len().checked_sub(1) else {
        return Vec::new();
    };
    let mut kept = vec![false; points.len()];
    kept[0] = true;
    kept[last] = true;
    let mut spans = vec![(0, last)];
    while let Some((from, to)) = spans.pop() {
        let (a, b) = (points[from], points[to]);
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let length = libm::hypot(dx, dy);
        let distance = |p: (f64, f64)| match length > 0.0 {
            true => ((p.0 - a.0) * dy - (p.1 - a.1) * dx).abs() / length,
            false => libm::hypot(p.0 - a.0, p.1 - a.1),
        };
        let farthest = (from + 1..to).max_by(|&i, &j| distance(points[i]).total_cmp(&distance(points[j])));
        if let Some(middle) = farthest.filter(|&index| distance(points[index]) > 1.0 / 3.0) {
            kept[middle] = true;
            spans.extend([(from, middle), (middle, to)]);
        }
    }
    let with = points.iter().zip(kept);
    with.filter(|(_, kept)| *kept).map(|(point, _)| *point).collect()
}

/// What is shown where the pointer is; nothing where there is nothing to say.
fn hint(label: &str) -> String {
    match label.is_empty() {
        true => String::new(),
        false => format!("<title>{}</title>", escaped(label)),
    }
}

/// Text of an element or attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

impl Canvas {
    /// A text of one of the classes: none, `q` quiet, `h` heading, `b` strong, `k` on a coloured ground.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() {
            String::new()
        } else {
            format!(" class=\"{class}\"")
        };
        let (x, y) = (number(x), number(y));
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\"{anchor}{class}>{}</text>",
            escaped(text)
        );
    }

    /// A text that runs upwards.
    pub(super) fn upward(&mut self, x: f64, y: f64, text: &str) {
        let (x, y) = (number(x), number(y));
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" class=\"q\" transform=\"rotate(-90 {x} {y})\">{}</text>",
            escaped(text)
        );
    }

    /// A line of one of the classes: `n` grid, `z` reference.
    pub(super) fn rule(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"M{x1} {y1}L{x2} {y2}\"/>");
    }

    /// A line of this colour.
    pub(super) fn stroke(&mut self, from: (f64, f64), to: (f64, f64), color: &str, width: f64) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        let _ = writeln!(
            self.body,
            "<path stroke=\"{color}\" stroke-width=\"{width}\" d=\"M{x1} {y1}L{x2} {y2}\"/>"
        );
    }

    /// A line through points.
    pub(super) fn curve(&mut self, points: &[(f64, f64)], color: &str, dash: &[u8]) {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let separator = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{separator}{} {}", number(*x), number(*y));
        }
        let dash = dash.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
        let dash = if dash.is_empty() {
            String::new()
        } else {
            format!(" stroke-dasharray=\"{dash}\"")
        };
        let _ = writeln!(
            self.body,
            "<path fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"{dash} d=\"{path}\"/>"
        );
    }

    /// A line through points, of this colour; `index` tells it from others of its kind, `label` is shown where the pointer is.
    ///
    /// Its path is written in steps and without points that would not be seen, since a page has many such lines.
    pub(super) fn line(
        &mut self,
        points: &[(f64, f64)],
        color: &str,
        dash: &[u8],
        index: Option<usize>,
        label: &str,
    ) {
        let mut path = String::new();
        let mut last: Option<(f64, f64)> = None;
        for (x, y) in simplified(points) {
            let (x, y) = (number(x), number(y));
            let _ = match last {
                None => write!(path, "M{x} {y}"),
                Some((from, up)) => {
                    let (right, down) = (number(x - from), number(y - up));
                    let space = if down < 0.0 { "" } else { " " };
                    write!(path, "l{right}{space}{down}")
                }
            };
            last = Some((x, y));
        }
        if path.is_empty() {
            return;
        }
        let dash = dash.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
        let dash = match dash.is_empty() {
            true => String::new(),
            false => format!(" stroke-dasharray=\"{dash}\""),
        };
        let index = index.map_or_else(String::new, |index| format!(" data-line=\"{index}\""));
        let _ = writeln!(
            self.body,
            "<path class=\"l\"{index} fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"{dash} d=\"{path}\">{}</path>",
            hint(label)
        );
    }

    /// A ring of this colour.
    pub(super) fn ring(&mut self, x: f64, y: f64, color: &str) {
        let (x, y) = (number(x), number(y));
        let _ = writeln!(
            self.body,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"3.5\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>"
        );
    }

    /// Begins shapes that belong together; `label` is shown where the pointer is on one of them.
    pub(super) fn begin(&mut self, label: &str) {
        let _ = writeln!(self.body, "<g><title>{}</title>", escaped(label));
    }

    /// Ends what [`Canvas::begin`] began.
    pub(super) fn end(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// A filled rectangle (left, top, width, height); `label` is shown where the pointer is.
    pub(super) fn labelled_cell(&mut self, place: (f64, f64, f64, f64), color: &str, label: &str) {
        let [x, y, width, height] = [place.0, place.1, place.2, place.3].map(number);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"2\" fill=\"{color}\">{}</rect>",
            hint(label)
        );
    }

    /// A text that ends with an ellipsis where it has no room; the whole of it is shown where the pointer is.
    pub(super) fn cut(&mut self, x: f64, y: f64, anchor: Anchor, text: &str, room: f64) {
        let letters = (room / CHARACTER) as usize;
        if text.chars().count() <= letters {
            self.text(x, y, anchor, "", text);
            return;
        }
        let kept: String = text.chars().take(letters.saturating_sub(1)).collect();
        self.begin(text);
        self.text(x, y, anchor, "", &format!("{kept}\u{2026}"));
        self.end();
    }

    /// The drawing, so wide, as an element of a page that has the colours.
    pub(super) fn picture(&self, width: f64, title: &str) -> String {
        format!(
            "<svg class=\"ff\" viewBox=\"0 0 {width} {:.0}\" role=\"img\" aria-label=\"{}\">\n{}</svg>",
            self.height,
            escaped(title),
            self.moved(0.0)
        )
    }

    /// A rectangle of one of the classes: `s` shaded, `e` only its edge.
    pub(super) fn area(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        let [x, y, width, height] = [x, y, width.max(0.0), height].map(number);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" class=\"{class}\"/>"
        );
    }

    /// A rectangle of this colour, as strong as `opacity` says.
    pub(super) fn cell(&mut self, x: f64, y: f64, width: f64, height: f64, color: &str, opacity: f64) {
        let [x, y, width, height] = [x, y, width, height].map(number);
        let opacity = rounded(opacity, 2);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"2\" fill=\"{color}\" fill-opacity=\"{opacity}\"/>"
        );
    }

    /// A mark of the series at `index`: shapes differ too, for eyes that do not distinguish the colours.
    pub(super) fn mark(&mut self, x: f64, y: f64, index: usize, color: &str) {
        let (x, y) = (number(x), number(y));
        let path = match index % 4 {
            0 => {
                let _ = writeln!(
                    self.body,
                    "<circle cx=\"{x}\" cy=\"{y}\" r=\"4\" fill=\"{color}\"/>"
                );
                return;
            }
            1 => "m-3.5-3.5h7v7h-7z",
            2 => "m0-5l5 5l-5 5l-5-5z",
            _ => "m0-4.5l4.5 8h-9z",
        };
        let _ = writeln!(self.body, "<path fill=\"{color}\" d=\"M{x} {y}{path}\"/>");
    }

    /// A line of this class through points.
    pub(super) fn path(&mut self, points: &[(f64, f64)], class: &str) {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let separator = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{separator}{} {}", number(*x), number(*y));
        }
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    /// A round mark of this class; `label` is shown where the pointer is.
    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, class: &str, label: &str) {
        let (x, y) = (number(at.0), number(at.1));
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"><title>{}</title></circle>",
            escaped(label)
        );
    }

    /// Draws what another canvas has over what is here.
    pub(super) fn push(&mut self, other: &Canvas) {
        self.body.push_str(&other.body);
    }

    /// Draws what another canvas has below what is here.
    pub(super) fn append(&mut self, other: &Canvas) {
        self.body.push_str(&other.moved(self.height));
        self.height += other.height;
    }

    /// What was drawn, moved down by `top`.
    pub(super) fn moved(&self, top: f64) -> String {
        format!(
            "<g transform=\"translate(0 {})\">\n{}</g>\n",
            number(top),
            self.body
        )
    }
}

/// A drawing with its title.
#[derive(Debug)]
pub struct Figure {
    /// Names its file.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// How to read it.
    pub text: String,
    pub(super) canvas: Canvas,
}

impl Figure {
    /// As an element of a page that has the colours.
    pub fn inline(&self) -> String {
        format!(
            "<svg class=\"ff\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>",
            number(self.canvas.height),
            escaped(&self.title),
            self.canvas.moved(0.0)
        )
    }

    /// As a file of its own, light or dark as its reader prefers.
    pub fn standalone(&self) -> String {
        let mut head = Canvas::default();
        let lines = wrapped(&self.title, 84);
        for (index, line) in lines.iter().enumerate() {
            head.text(16.0, 28.0 + 20.0 * index as f64, Anchor::Start, "h", line);
        }
        let top = 20.0 + 20.0 * lines.len() as f64;
        let height = number(top + self.canvas.height + 8.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ff\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
             <title>{}</title>\n<desc>{}</desc>\n<style>{STYLE}</style>\n\
             <rect class=\"g\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>\n{}{}</svg>\n",
            escaped(&self.title),
            escaped(&self.text),
            head.moved(0.0),
            self.canvas.moved(top)
        )
    }
}

/// Breaks a text between words into lines of at most `most` characters.
pub(super) fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Width of a text.
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// What the marks mean, in lines from `top` on; returns where they end.
pub(super) fn legend(canvas: &mut Canvas, top: f64, left: f64, entries: &[Entry<'_>]) -> f64 {
    let (mut x, mut y) = (left, top + 12.0);
    for entry in entries {
        let width = 34.0 + width_of(entry.name) + 14.0;
        if x + width > WIDTH && x > left {
            x = left;
            y += 20.0;
        }
        match entry.mark {
            Some(index) => {
                canvas.stroke((x, y - 4.0), (x + 26.0, y - 4.0), entry.color, 2.0);
                canvas.mark(x + 13.0, y - 4.0, index, entry.color);
            }
            None => canvas.curve(&[(x, y - 4.0), (x + 26.0, y - 4.0)], entry.color, entry.dash),
        }
        canvas.text(x + 34.0, y, Anchor::Start, "", entry.name);
        x += width;
    }
    y + 10.0
}

/// A line of a legend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) color: &'a str,
    pub(super) dash: &'static [u8],
    /// Shape of its marks, if it has any.
    pub(super) mark: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::{Anchor, Canvas, Figure, simplified, wrapped};

    #[test]
    fn a_file_is_well_formed_whatever_its_texts_say() {
        let mut canvas = Canvas::default();
        canvas.text(1.26, -0.01, Anchor::Middle, "q", "a < b & \"c\"");
        canvas.height = 40.0;
        let figure = Figure {
            name: String::from("x"),
            title: String::from("<script>"),
            text: String::from("1 & 2"),
            canvas,
        };
        let file = figure.standalone();
        assert!(file.contains("<text x=\"1.3\" y=\"0\" text-anchor=\"middle\" class=\"q\">a &lt; b &amp; &quot;c&quot;</text>"), "{file}");
        assert!(
            !file.contains("<script>") && file.contains("<desc>1 &amp; 2</desc>"),
            "{file}"
        );
        assert!(!figure.inline().contains("<script>"));
    }

    #[test]
    fn a_line_keeps_its_ends_and_corners_and_drops_what_is_not_seen() {
        let corner = [(0.0, 0.0), (5.0, 0.1), (10.0, 0.0), (10.1, 20.0), (10.0, 40.0)];
        assert_eq!(simplified(&corner), [(0.0, 0.0), (10.0, 0.0), (10.0, 40.0)]);
        let back = [(0.0, 0.0), (30.0, 0.0), (0.0, 0.0)];
        assert_eq!(simplified(&back), back, "a line that returns to its start");
        assert!(simplified(&[]).is_empty());
        let curve: Vec<(f64, f64)> = (0..500)
            .map(|i| (f64::from(i), 100.0 * libm::sin(f64::from(i) / 50.0)))
            .collect();
        let kept = simplified(&curve);
        assert!(kept.len() < 80, "{}", kept.len());
        for &(x, y) in &curve {
            let pair = kept
                .windows(2)
                .find(|pair| pair[0].0 <= x && x <= pair[1].0)
                .expect("it covers the line");
            let share = (x - pair[0].0) / (pair[1].0 - pair[0].0);
            assert!(
                (pair[0].1 + share * (pair[1].1 - pair[0].1) - y).abs() < 0.9,
                "{x}"
            );
        }
    }

    #[test]
    fn a_title_is_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable", 4), ["unbreakable"]);
        assert!(wrapped("", 4).is_empty());
    }
}
