use std::time::Duration;

const DURATIONS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

const SIZES: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// Parses `250ms`, `5s`, `10m`, `1h`, `7d`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    scaled(text, &DURATIONS).map(Duration::from_millis)
}

/// Parses `32MiB`, `64KiB`, `1GB`.
pub(crate) fn size(text: &str) -> Option<u64> {
    scaled(text, &SIZES)
}

/// Formats a duration in the largest exact unit, as TOML.
pub(crate) fn show_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    show(millis, &DURATIONS)
}

/// Formats a size in the largest exact binary unit, as TOML.
pub(crate) fn show_size(bytes: u64) -> String {
    show(bytes, &SIZES[..3])
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn show(count: u64, units: &[(&str, u64)]) -> String {
    let unit = units.iter().find(|(_, factor)| count > 0 && count.is_multiple_of(*factor));
    unit.map_or_else(|| count.to_string(), |(name, factor)| format!("\"{}{name}\"", count / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_durations() {
        for (text, millis) in [
            ("250ms", 250),
            ("5s", 5_000),
            ("10m", 600_000),
            ("1h", 3_600_000),
            ("7d", 604_800_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "5", "s", "-5s", "5 s", "1.5s", "5S", "5sec", "99999999999999999999d", "300000000000d"]
        {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn parses_sizes() {
        for (text, bytes) in
            [("32MiB", 32 << 20), ("64KiB", 64 << 10), ("1GB", 1_000_000_000), ("2GiB", 2 << 30), ("7B", 7)]
        {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "MiB", "32", "32mib", "-1KB", "1TB", "18446744073709551615GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn shows_the_largest_exact_unit() {
        assert_eq!(show_duration(Duration::from_secs(90)), "\"90s\"");
        assert_eq!(show_duration(Duration::from_secs(7 * 86_400)), "\"7d\"");
        assert_eq!(show_size(32 << 20), "\"32MiB\"");
        assert_eq!(show_size(1_000), "1000");
    }
}
