//! Closed forms of windows: New-CWV's rules, CDG's back-off, Initial Spreading's gaps, the sizes of requests.

pub(super) mod backoff;
pub(super) mod share;
pub(super) mod spread;
pub(super) mod validation;

/// The number under `key` in a published table, in order if it is a list.
fn numbers(table: &toml::Table, key: &str) -> Vec<f64> {
    let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
    match table.get(key) {
        Some(toml::Value::Array(list)) => list.iter().filter_map(number).collect(),
        Some(value) => number(value).into_iter().collect(),
        None => Vec::new(),
    }
}
