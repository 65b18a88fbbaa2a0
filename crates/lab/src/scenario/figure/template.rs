//! A `[[check]]` with `for`, made for every combination of its axes.

use super::super::document::{Entry, Node, Table, Value};
use super::super::error::{Error, Place};
use super::super::keys;
use super::super::read::Section;
use super::super::value;
use super::expand::NamedPoints;
use super::{plain, sweep, unknown};

/// A check as it is read, and the words that stand for its placeholders.
pub(super) struct Expanded {
    pub(super) node: Node,
    words: Vec<(String, String)>,
}

impl Expanded {
    pub(super) fn name(&self) -> &str {
        self.node
            .as_table()
            .and_then(|table| table.text("name"))
            .unwrap_or("")
    }

    /// The title or name `text` with the words of this check, if it has all of them.
    pub(super) fn fill(&self, text: &str) -> Option<String> {
        fill(text, &self.words, &mut Vec::new()).ok()
    }
}

/// The checks that the entry of `[[check]]` stands for.
pub(super) fn expand_template(
    node: Node,
    document: &Table,
    points: &NamedPoints,
) -> Result<Vec<Expanded>, Error> {
    let table = node.as_table();
    if table.is_some_and(|table| table.get("for").is_some()) {
        return Template::read(&node, document, points)?.expand();
    }
    if let Some(cases) = table.and_then(|table| table.entry("cases")) {
        let message = "`cases` are of a check with `for`";
        return Err(Error::at(&cases.key_place, "check.cases", message));
    }
    let words = Vec::new();
    Ok(vec![Expanded { node, words }])
}

struct Template<'a> {
    place: &'a Place,
    name: &'a Node,
    /// The check without `for` and `cases`.
    table: Table,
    axes: Vec<Axis>,
    cases: Vec<(&'a Table, &'a Place)>,
}

/// One entry of `for`.
struct Axis {
    word: String,
    rows: Vec<Row>,
}

/// One value of an axis.
#[derive(Clone)]
struct Row {
    /// What stands for it in texts.
    label: String,
    /// What it sets in the check, and further words.
    entries: Vec<Entry>,
}

impl<'a> Template<'a> {
    fn read(node: &'a Node, document: &Table, points: &NamedPoints) -> Result<Template<'a>, Error> {
        let table = value::table(node, "check")?;
        let Some(name) = table.get("name") else {
            return Err(Error::at(&node.place, "check.name", "`name` is missing"));
        };
        let path = format!("check.{}", plain(&name.to_toml()));
        let (mut axes, mut cases) = (Vec::new(), Vec::new());
        if let Some(node) = table.get("for") {
            let path = format!("{path}.for");
            for entry in &value::table(node, &path)?.entries {
                axes.push(Axis::read(entry, &path, document, points)?);
            }
            if axes.is_empty() {
                return Err(Error::at(&node.place, &path, "`for` names nothing to combine"));
            }
        }
        if let Some(node) = table.get("cases") {
            let path = format!("{path}.cases");
            for case in value::list(node, &path)? {
                cases.push((value::table(case, &path)?, &case.place));
            }
        }
        let own = |entry: &&Entry| !matches!(entry.key.as_str(), "for" | "cases");
        let entries = table.entries.iter().filter(own).cloned().collect();
        Ok(Template {
            place: &node.place,
            name,
            table: Table { entries },
            axes,
            cases,
        })
    }

    /// A check for each combination, the last axis the fastest.
    fn expand(&self) -> Result<Vec<Expanded>, Error> {
        let combinations = self.axes.iter().fold(vec![Vec::new()], |combinations, axis| {
            let longer = |rows: &Vec<Row>| -> Vec<Vec<Row>> {
                let with = |row: &Row| rows.iter().chain([row]).cloned().collect();
                axis.rows.iter().map(with).collect()
            };
            combinations.iter().flat_map(longer).collect()
        });
        let mut used = vec![false; self.cases.len()];
        let mut found = Vec::new();
        let mut checks: Vec<Expanded> = Vec::new();
        for rows in combinations {
            let check = self.combined(&rows, &mut used, &mut found)?;
            if checks.iter().any(|other| other.name() == check.name()) {
                let axes = self.axes.iter().filter(|axis| axis.rows.len() > 1);
                let words: Vec<String> = axes.map(|axis| format!("{{{}}}", axis.word)).collect();
                let message = format!("several checks of this `for` are called `{}`", check.name());
                let help = format!("the name tells them apart with {}", words.join(" and "));
                let place = &self.name.place;
                return Err(Error::at(place, "check.name", message).help(place, help));
            }
            checks.push(check);
        }
        let rows = self.axes.iter().flat_map(|axis| &axis.rows);
        let mut words = rows
            .flat_map(|row| &row.entries)
            .filter(|entry| !is_key(&entry.key));
        if let Some(Entry { key, key_place, .. }) = words.find(|entry| !found.contains(&entry.key)) {
            let message = format!("`{key}` is no key of a check, and no text of this check has {{{key}}}");
            return Err(Error::at(key_place, "check.for", message));
        }
        match self.cases.iter().zip(used).find(|(_, used)| !used) {
            Some(((_, place), _)) => {
                let message = "no combination of `for` is like this";
                Err(Error::at(place, "check.cases", message))
            }
            None => Ok(checks),
        }
    }

    /// The check for one row of each axis.
    fn combined(&self, rows: &[Row], used: &mut [bool], found: &mut Vec<String>) -> Result<Expanded, Error> {
        let mut table = self.table.clone();
        let mut words = Vec::new();
        for (axis, row) in self.axes.iter().zip(rows) {
            words.push((axis.word.clone(), row.label.clone()));
            for entry in &row.entries {
                if is_key(&entry.key) {
                    set(&mut table, entry);
                } else {
                    words.push((entry.key.clone(), plain(&entry.node.to_toml())));
                }
            }
        }
        let is_axis = |entry: &&Entry| self.axes.iter().any(|axis| axis.word == entry.key);
        for ((case, _), used) in self.cases.iter().zip(used) {
            let mut selected = true;
            for (axis, row) in self.axes.iter().zip(rows) {
                if let Some(selector) = case.get(&axis.word) {
                    selected &= axis.selects(selector, row)?;
                }
            }
            if selected {
                *used = true;
                let settings = case.entries.iter().filter(|entry| !is_axis(entry));
                settings.for_each(|entry| set(&mut table, entry));
            }
        }
        let mut node = Node {
            value: Value::Table(table),
            place: self.place.clone(),
        };
        fill_all(&mut node, &words, found)?;
        Ok(Expanded { node, words })
    }
}

impl Axis {
    fn read(entry: &Entry, path: &str, document: &Table, points: &NamedPoints) -> Result<Axis, Error> {
        let Entry { key: word, node, .. } = entry;
        let path = format!("{path}.{word}");
        let fail = |place: &Place, message: String| Error::at(place, &path, message);
        let row = |label: String, node: &Node| {
            let entry = is_key(word).then(|| Entry {
                key: word.clone(),
                key_place: node.place.clone(),
                node: node.clone(),
            });
            let entries = entry.into_iter().collect();
            Row { label, entries }
        };
        let mut rows: Vec<Row> = Vec::new();
        match &node.value {
            Value::Text(each) if each == "each" => {
                let each = each_of(word, document, points, &node.place)?;
                let wrong = || {
                    fail(
                        &node.place,
                        String::from("`each` is for `variant`, `group` and `point`"),
                    )
                };
                rows.extend(
                    each.ok_or_else(wrong)?
                        .into_iter()
                        .map(|(label, node)| row(label, &node)),
                );
            }
            Value::List(nodes) => {
                for node in nodes {
                    if matches!(node.value, Value::Table(_) | Value::List(_)) {
                        let help =
                            "give tables their words: { \"WORD\" = { ... } }; [figure.points] names points";
                        let message = String::from("a list holds words and numbers");
                        return Err(fail(&node.place, message).help(&node.place, help));
                    }
                    rows.push(row(plain(&node.to_toml()), node));
                }
            }
            Value::Table(table) => {
                for Entry { key, node, .. } in &table.entries {
                    let mut row = row(key.clone(), node);
                    if !is_key(word) {
                        row.entries
                            .clone_from(&value::table(node, &format!("{path}.{key}"))?.entries);
                    }
                    rows.push(row);
                }
            }
            _ => {
                let message = String::from("a list, a table of words or \"each\" is wanted");
                let help = format!("for example for = {{ {word} = [\"...\", \"...\"] }}");
                return Err(fail(&node.place, message).help(&node.place, help));
            }
        }
        if rows.is_empty() {
            let message = format!("`{word}` is empty: this check would be made nowhere");
            return Err(fail(&node.place, message));
        }
        let word = word.clone();
        Ok(Axis { word, rows })
    }

    /// Whether `row` is the word, or one of the list of words, of a case.
    fn selects(&self, selector: &Node, row: &Row) -> Result<bool, Error> {
        let wanted = match &selector.value {
            Value::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(selector),
        };
        let known: Vec<&str> = self.rows.iter().map(|row| row.label.as_str()).collect();
        let mut selected = false;
        for node in wanted {
            let word = plain(&node.to_toml());
            if !known.contains(&word.as_str()) {
                let path = format!("check.cases.{}", self.word);
                return Err(unknown(&node.place, &path, &self.word, &word, &known));
            }
            selected |= word == row.label;
        }
        Ok(selected)
    }
}

/// All variants, traffic groups or points, with their words; `None` for anything else.
fn each_of(
    word: &str,
    document: &Table,
    points: &NamedPoints,
    place: &Place,
) -> Result<Option<Vec<(String, Node)>>, Error> {
    let node = |value| Node {
        value,
        place: place.clone(),
    };
    let text = |word: &str| (word.to_owned(), node(Value::Text(word.to_owned())));
    let named = |key: &str| match document.get(key).map(|node| &node.value) {
        Some(Value::List(nodes)) => nodes.iter().filter_map(Node::name).map(text).collect(),
        _ => Vec::new(),
    };
    let figure = document.get("figure");
    let figure = figure
        .map(|node| Section::open(node, keys::FIGURE, "figure"))
        .transpose()?;
    Ok(match (word, figure) {
        ("variant", Some(figure)) => {
            let described = text(figure.need("as_described")?.text()?);
            Some(std::iter::once(described).chain(named("variant")).collect())
        }
        ("group", _) => Some(named("traffic")),
        ("point", _) if !points.is_empty() => Some(points.iter().map(|(name, _)| text(name)).collect()),
        ("point", Some(figure)) => {
            let settings = |point: &super::Point| {
                let mut table = Table::default();
                for (path, value) in point.set.iter() {
                    table.put(path, place.clone(), Node::from_toml(value, place));
                }
                (point.label(), node(Value::Table(table)))
            };
            let all = sweep::points(&figure.need("sweep")?)?;
            Some(all.iter().map(settings).collect())
        }
        _ => None,
    })
}

/// Puts an entry into a check: tables merge, everything else is replaced.
fn set(table: &mut Table, entry: &Entry) {
    match (
        table.get_mut(&entry.key).map(|node| &mut node.value),
        &entry.node.value,
    ) {
        (Some(Value::Table(old)), Value::Table(new)) => old.merge(new.clone()),
        _ => table.put(&entry.key, entry.key_place.clone(), entry.node.clone()),
    }
}

/// Fills the placeholders of every text in `node`; their words are added to `found`.
fn fill_all(node: &mut Node, words: &[(String, String)], found: &mut Vec<String>) -> Result<(), Error> {
    match &mut node.value {
        Value::Text(text) if text.contains('{') => {
            *text = fill(text, words, found).map_err(|message| {
                let known: Vec<String> = words.iter().map(|(word, _)| format!("{{{word}}}")).collect();
                let help = format!("placeholders of this check: {}", known.join(", "));
                Error::at(&node.place, "check", message).help(&node.place, help)
            })?;
        }
        Value::List(nodes) => nodes
            .iter_mut()
            .try_for_each(|node| fill_all(node, words, found))?,
        Value::Table(table) => {
            let entries = table.entries.iter_mut();
            entries
                .map(|entry| &mut entry.node)
                .try_for_each(|node| fill_all(node, words, found))?;
        }
        _ => {}
    }
    Ok(())
}

/// The text with its placeholders `{word}` filled, or what is wrong with it.
fn fill(text: &str, words: &[(String, String)], found: &mut Vec<String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or("a placeholder is not closed with `}`")?;
        let (word, value) = words
            .iter()
            .find(|(word, _)| word == name)
            .ok_or_else(|| format!("`for` has nothing called {{{name}}}"))?;
        filled.push_str(before);
        filled.push_str(value);
        found.push(word.clone());
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn is_key(word: &str) -> bool {
    !matches!(word, "for" | "cases") && keys::CHECK.iter().any(|key| key.name == word)
}
