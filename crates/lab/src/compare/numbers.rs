//! How numbers are written in the table, the answer and the report.

/// `57.3 %`, without a negative zero.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", cleaned(100.0 * share))
}

/// `+1.2 %`, without a negative zero.
pub fn signed(share: f64) -> String {
    format!("{:+.1} %", cleaned(100.0 * share))
}

pub(super) fn cleaned(value: f64) -> f64 {
    if value.abs() < 0.05 { 0.0 } else { value }
}

/// `[57, 71]`, in per cent, with a decimal where both ends would be one number without; empty without an interval.
pub fn interval(ci95: Option<[f64; 2]>) -> String {
    ci95.map_or_else(String::new, |ends| {
        let [low, high] = ends_in_percent(ends);
        format!("[{low}, {high}]")
    })
}

/// Both ends of an interval, in per cent, with a decimal where they would be one number without.
pub(super) fn ends_in_percent(ends: [f64; 2]) -> [String; 2] {
    let written = |digits: usize| {
        ends.map(|end| {
            let text = format!("{:.digits$}", 100.0 * end);
            match text.strip_prefix('-') {
                Some(zero) if zero.chars().all(|letter| matches!(letter, '0' | '.')) => zero.to_owned(),
                _ => text,
            }
        })
    };
    let (whole, tenths) = (written(0), written(1));
    let says_more = tenths.iter().any(|end| !end.ends_with(".0"));
    if whole[0] == whole[1] && says_more {
        tenths
    } else {
        whole
    }
}

/// Which share of the packets was dropped, with more digits where it is small.
pub(super) fn dropped(share: f64) -> String {
    match 100.0 * share {
        0.0 => String::from("no packet dropped"),
        value if value < 0.005 => String::from("less than 0.01 % of packets dropped"),
        value if value < 0.1 => format!("{value:.2} % of packets dropped"),
        value => format!("{value:.1} % of packets dropped"),
    }
}

pub(super) fn dash() -> String {
    String::from("-")
}

/// A time (s).
pub fn seconds(value: f64) -> String {
    match value.abs() {
        0.0 => String::from("0"),
        v if v >= 10.0 => format!("{value:.1} s"),
        v if v >= 1.0 => format!("{value:.2} s"),
        v if v >= 0.01 => format!("{:.0} ms", value * 1e3),
        v if v >= 0.001 => format!("{:.1} ms", value * 1e3),
        _ => format!("{:.0} us", value * 1e6),
    }
}

/// A rate (bit/s).
pub fn rate(bps: f64) -> String {
    match bps {
        b if b >= 1e9 => format!("{:.2} Gbit/s", b / 1e9),
        b if b >= 1e6 => format!("{:.2} Mbit/s", b / 1e6),
        b => format!("{:.0} kbit/s", b / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::interval;

    #[test]
    fn an_interval_has_a_decimal_where_whole_numbers_would_leave_the_estimate_out() {
        let text = |low, high| interval(Some([low, high]));
        assert_eq!(text(0.551, 0.714), "[55, 71]");
        assert_eq!(text(0.923, 0.9246), "[92.3, 92.5]");
        // An estimate of 0.6 % beside [1, 1] would look wrong.
        assert_eq!(text(0.0061, 0.0064), "[0.6, 0.6]");
        assert_eq!(text(0.0, 0.0004), "[0, 0]");
        assert_eq!(text(0.0098, 0.0103), "[1, 1]");
        assert_eq!(text(-0.0001, 0.0), "[0, 0]");
        assert_eq!(interval(None), "");
    }
}
