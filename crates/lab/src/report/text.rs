//! Numbers as a reader likes them: three significant digits and the nearest unit.

/// Three significant digits without an exponent.
pub(crate) fn short(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 99.95 || magnitude == 0.0 {
        format!("{value:.0}")
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else if magnitude >= 0.9995 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// A time: `412 ms`, `1.25 s`.
pub(super) fn seconds(value: f64) -> String {
    match value.abs() {
        0.0 => "0 ms".to_owned(),
        s if s >= 0.9995 => format!("{} s", short(value)),
        s if s >= 0.000_999_5 => format!("{} ms", short(value * 1e3)),
        _ => format!("{} \u{b5}s", short(value * 1e6)),
    }
}

/// A length that someone chose: `20 s`, `2.5 s`.
pub(super) fn chosen_seconds(value: f64) -> String {
    if value >= 1.0 {
        format!("{value} s")
    } else {
        format!("{} ms", value * 1e3)
    }
}

/// A rate: `9.41 Mbit/s`.
pub(super) fn bits_per_second(value: f64) -> String {
    match value.abs() {
        r if r >= 999.5e6 => format!("{} Gbit/s", short(value / 1e9)),
        r if r >= 999.5e3 => format!("{} Mbit/s", short(value / 1e6)),
        r if r >= 999.5 => format!("{} kbit/s", short(value / 1e3)),
        _ => format!("{} bit/s", short(value)),
    }
}

/// An amount: `64 kB`.
pub(super) fn bytes(value: u64) -> String {
    match value {
        0..1_000 => format!("{value} B"),
        1_000..1_000_000 => format!("{} kB", trim(value as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} MB", trim(value as f64 / 1e6)),
        _ => format!("{} GB", trim(value as f64 / 1e9)),
    }
}

/// A range of sizes; the last class has no end.
pub(super) fn size_class(from: u64, to: u64) -> String {
    match (from, to) {
        (0, to) => format!("below {}", bytes(to)),
        (from, u64::MAX) => format!("from {}", bytes(from)),
        (from, to) => format!("{} to {}", bytes(from), bytes(to)),
    }
}

/// A share with its sign: `+12.3 %`, with a real minus.
pub(super) fn signed_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 0.05 {
        return "0 %".to_owned();
    }
    let sign = if percent < 0.0 { '\u{2212}' } else { '+' };
    format!("{sign}{:.1} %", percent.abs())
}

/// A share: `93.1 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn trim(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Rounded to `digits` significant digits, to keep files small.
pub(super) fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1))
        .parse()
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::{bits_per_second, bytes, rounded, seconds, short, signed_percent, size_class};

    #[test]
    fn numbers_have_three_digits_and_the_nearest_unit() {
        assert_eq!(
            [0.0, 0.0312, 3.0, 9.996, 41.26, 412.3].map(short),
            ["0", "0.031", "3.00", "10.0", "41.3", "412"]
        );
        assert_eq!(
            [1.25, 0.41234, 0.000_012, 0.0].map(seconds),
            ["1.25 s", "412 ms", "12.0 \u{b5}s", "0 ms"]
        );
        assert_eq!(
            [9.414e6, 2.5e9, 800.0].map(bits_per_second),
            ["9.41 Mbit/s", "2.50 Gbit/s", "800 bit/s"]
        );
        assert_eq!([512, 40_000, 2_500_000].map(bytes), ["512 B", "40 kB", "2.5 MB"]);
        assert_eq!(size_class(10_000, 100_000), "10 kB to 100 kB");
        assert_eq!(size_class(0, 10_000), "below 10 kB");
        assert_eq!(
            [0.1234, -0.05, 0.000_1].map(signed_percent),
            ["+12.3 %", "\u{2212}5.0 %", "0 %"]
        );
        assert_eq!(rounded(0.123_456_7, 4), 0.1235);
    }
}
