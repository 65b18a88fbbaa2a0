//! Quantities as text with units: `"10 Mbit/s"`, `"40 ms"`, `"50 packets"`, `"64 kB"`, `"4 per second"`.

use fleetfoot_core::queue::Limit;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};

/// Units of a kind of quantity: name and factor to the base unit.
type Units = &'static [(&'static str, f64)];

/// To nanoseconds.
const TIME_UNITS: Units = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
];

/// To bytes.
const SIZE_UNITS: Units = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("bytes", 1.0),
    ("byte", 1.0),
];

/// To bits per second.
const RATE_UNITS: Units = &[
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("Tbit/s", 1e12),
    ("bit", 1.0),
    ("kbit", 1e3),
    ("mbit", 1e6),
    ("Mbit", 1e6),
    ("gbit", 1e9),
    ("Gbit", 1e9),
    ("bps", 1.0),
    ("kbps", 1e3),
    ("Mbps", 1e6),
    ("Gbps", 1e9),
    ("kb/s", 1e3),
    ("Mb/s", 1e6),
    ("Gb/s", 1e9),
    ("B/s", 8.0),
    ("kB/s", 8e3),
    ("MB/s", 8e6),
];

/// To events per second.
const FREQUENCY_UNITS: Units = &[
    ("per second", 1.0),
    ("per s", 1.0),
    ("/s", 1.0),
    ("per minute", 1.0 / 60.0),
    ("per min", 1.0 / 60.0),
    ("per hour", 1.0 / 3600.0),
    ("per ms", 1e3),
];

/// Packets.
const PACKET_UNITS: Units = &[("packets", 1.0), ("packet", 1.0)];

/// Why a text is not the quantity wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// There is no number at the beginning.
    NoNumber,
    /// There is no unit.
    NoUnit,
    /// This unit is not one of them; perhaps the second was meant.
    WrongUnit(String, Option<&'static str>),
    /// The number is negative.
    Negative,
    /// The number is beyond what can be counted.
    TooLarge,
}

/// What to write, for messages: an example and the units.
pub(crate) const DURATION_HELP: &str =
    "write a time with its unit, such as \"40 ms\" (ns, us, ms, s, min, h)";
/// What a message says of the form of amounts.
pub(crate) const BYTES_HELP: &str =
    "write an amount with its unit, such as \"64 kB\" (B, kB, MB, GB, KiB, MiB, GiB)";
/// What a message says of the form of speeds.
pub(crate) const RATE_HELP: &str =
    "write a speed with its unit, such as \"10 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s)";
/// What a message says of the form of frequencies.
pub(crate) const FREQUENCY_HELP: &str =
    "write how many per time, such as \"4 per second\" (per second, per minute, per hour)";
/// What a message says of the form of queue limits.
pub(crate) const LIMIT_HELP: &str =
    "write \"50 packets\", \"64 kB\", \"300 ms\" (what full packets send in that time) or \"unlimited\"";

/// A time span.
pub(crate) fn duration(text: &str) -> Result<Duration, Mistake> {
    Ok(Duration::from_nanos(whole(scaled(text, &[TIME_UNITS])?.0)?))
}

/// An amount; `"unlimited"` is [`Bytes::MAX`].
pub(crate) fn bytes(text: &str) -> Result<Bytes, Mistake> {
    if text.trim() == "unlimited" {
        return Ok(Bytes::MAX);
    }
    Ok(Bytes(whole(scaled(text, &[SIZE_UNITS])?.0)?))
}

/// A speed; `"unlimited"` is [`Rate::UNLIMITED`].
pub(crate) fn rate(text: &str) -> Result<Rate, Mistake> {
    if text.trim() == "unlimited" {
        return Ok(Rate::UNLIMITED);
    }
    Ok(Rate::from_bps(whole(scaled(text, &[RATE_UNITS])?.0)?))
}

/// Events per second.
pub(crate) fn frequency(text: &str) -> Result<f64, Mistake> {
    scaled(text, &[FREQUENCY_UNITS]).map(|(value, _)| value)
}

/// A queue limit.
pub(crate) fn limit(text: &str) -> Result<Limit, Mistake> {
    if text.trim() == "unlimited" {
        return Ok(Limit::Unlimited);
    }
    let (value, table) = scaled(text, &[PACKET_UNITS, SIZE_UNITS])?;
    let value = whole(value)?;
    if table == 0 {
        Ok(Limit::Packets(
            u32::try_from(value).map_err(|_| Mistake::TooLarge)?,
        ))
    } else {
        Ok(Limit::Bytes(Bytes(value)))
    }
}

/// A part of one: `"1 %"` is 0.01.
pub(crate) fn percent(text: &str) -> Result<f64, Mistake> {
    scaled(text, &[&[("%", 0.01)]]).map(|(value, _)| value)
}

/// Number times factor of the unit, and which table the unit is in.
fn scaled(text: &str, tables: &[Units]) -> Result<(f64, usize), Mistake> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | '+' | '-')))
        .unwrap_or(text.len());
    // An exponent, as in "1e3 B".
    let end = match text[end..].strip_prefix(['e', 'E']) {
        Some(rest) if end > 0 && rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            let digits = rest[1..]
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len() - 1);
            end + 2 + digits
        }
        _ => end,
    };
    let number: f64 = text[..end]
        .replace('_', "")
        .parse()
        .map_err(|_| Mistake::NoNumber)?;
    let unit = text[end..].trim();
    if unit.is_empty() {
        return Err(Mistake::NoUnit);
    }
    for (index, units) in tables.iter().enumerate() {
        if let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) {
            let value = number * factor;
            if value < 0.0 {
                return Err(Mistake::Negative);
            }
            if !value.is_finite() {
                return Err(Mistake::TooLarge);
            }
            return Ok((value, index));
        }
    }
    let names = || {
        tables
            .iter()
            .flat_map(|units| units.iter().map(|(name, _)| *name))
    };
    let meant = names()
        .find(|name| name.eq_ignore_ascii_case(unit))
        .or_else(|| names().find(|name| unit.len() > 2 && strsim::damerau_levenshtein(name, unit) == 1));
    Err(Mistake::WrongUnit(unit.to_owned(), meant))
}

fn whole(value: f64) -> Result<u64, Mistake> {
    let rounded = libm::round(value);
    // Below 2^63, so that sums of a few quantities stay countable.
    if rounded < 9.2e18 {
        Ok(rounded as u64)
    } else {
        Err(Mistake::TooLarge)
    }
}

#[cfg(test)]
mod tests {
    use super::{Mistake, bytes, duration, frequency, limit, percent, rate};
    use fleetfoot_core::queue::Limit;
    use fleetfoot_core::time::Duration;
    use fleetfoot_core::units::{Bytes, Rate};

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!(duration("40 ms"), Ok(Duration::from_millis(40)));
        assert_eq!(duration("0.1ms"), Ok(Duration::from_micros(100)));
        assert_eq!(duration("1.5 min"), Ok(Duration::from_secs(90)));
        assert_eq!(bytes("64 kB"), Ok(Bytes(64_000)));
        assert_eq!(bytes("2 KiB"), Ok(Bytes(2048)));
        assert_eq!(bytes("1e3 B"), Ok(Bytes(1000)));
        assert_eq!(rate("10 Mbit/s"), Ok(Rate::from_bps(10_000_000)));
        for (words, bps) in [
            ("1Gbit", 1_000_000_000),
            ("100 mbit", 100_000_000),
            ("5 kbit", 5_000),
        ] {
            assert_eq!(
                rate(words),
                Ok(Rate::from_bps(bps)),
                "{words}: as tc and `shell --rate` have it"
            );
        }
        assert_eq!(rate("unlimited"), Ok(Rate::UNLIMITED));
        assert_eq!(limit("1 packet"), Ok(Limit::Packets(1)));
        assert_eq!(limit("12.5 MB"), Ok(Limit::Bytes(Bytes(12_500_000))));
        assert_eq!(frequency("30 per minute"), Ok(0.5));
        assert_eq!(percent("1 %"), Ok(0.01));
    }

    #[test]
    fn mistakes_are_distinguished() {
        assert_eq!(duration("fast"), Err(Mistake::NoNumber));
        assert_eq!(duration("40"), Err(Mistake::NoUnit));
        assert_eq!(
            rate("10 MBit/s"),
            Err(Mistake::WrongUnit("MBit/s".into(), Some("Mbit/s")))
        );
        assert_eq!(
            duration("40 furlongs"),
            Err(Mistake::WrongUnit("furlongs".into(), None))
        );
        assert_eq!(duration("-1 s"), Err(Mistake::Negative));
        assert_eq!(bytes("1e30 GB"), Err(Mistake::TooLarge));
        assert_eq!(duration("1eé"), Err(Mistake::WrongUnit("eé".into(), None)));
    }
}
