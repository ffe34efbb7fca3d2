//! Parses times in the formats that recorders write.

use serde_json::value::RawValue;
use std::time::{SystemTime, UNIX_EPOCH};

/// Member names that recorders use for the time of a message or request. None is part of the provider's API.
pub(super) const TIME_MEMBERS: [&str; 6] = ["timestamp", "created_at", "createdAt", "time", "ts", "created"];

/// Parses a number in seconds, milliseconds or microseconds, or an RFC 3339 date, into milliseconds since
/// 1970. Returns `None` for anything else.
pub(super) fn milliseconds(value: &RawValue) -> Option<u64> {
    let text = value.get();
    if let Ok(number) = text.parse::<f64>() {
        return from_number(number);
    }
    let text: String = serde_json::from_str(text).ok()?;
    text.trim().parse::<f64>().ok().and_then(from_number).or_else(|| from_date(text.trim()))
}

/// Infers the unit from the magnitude: both limits correspond to the year 5138.
fn from_number(number: f64) -> Option<u64> {
    let milliseconds = match number {
        _ if !number.is_finite() || number < 0.0 => return None,
        _ if number < 1e11 => number * 1e3,
        _ if number < 1e14 => number,
        _ => number / 1e3,
    };
    Some(milliseconds as u64)
}

fn from_date(text: &str) -> Option<u64> {
    // `humantime` does not parse time zones.
    let after_date = text.get(10..)?;
    let (plain, offset) = match after_date.rfind(['+', '-']) {
        Some(at) => (&text[..10 + at], parse_offset(&after_date[at..])?),
        None => (text, 0),
    };
    let moment = humantime::parse_rfc3339_weak(plain).ok()?;
    since_epoch(moment).map(|utc| utc.saturating_add_signed(-offset))
}

fn since_epoch(moment: SystemTime) -> Option<u64> {
    u64::try_from(moment.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// Parses `+02:00` or `-0500` into milliseconds.
fn parse_offset(text: &str) -> Option<i64> {
    let (sign, digits) = text.split_at(1);
    let digits: String = digits.chars().filter(|digit| *digit != ':').collect();
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = if digits.len() > 2 { digits.get(2..4)?.parse().ok()? } else { 0 };
    let offset = (hours * 60 + minutes) * 60_000;
    Some(if sign == "-" { -offset } else { offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_supported_time_format_is_parsed() {
        let read = |json: &str| milliseconds(&RawValue::from_string(json.to_owned()).unwrap());
        let same = [
            "1715781600",
            "1715781600.0",
            "1715781600000",
            "1715781600000000",
            "\"1715781600\"",
            "\"2024-05-15T14:00:00Z\"",
            "\"2024-05-15 14:00:00\"",
            "\"2024-05-15T16:00:00+02:00\"",
            "\"2024-05-15T09:00:00.000-0500\"",
        ];
        for json in same {
            assert_eq!(read(json), Some(1_715_781_600_000), "{json}");
        }
        for json in ["null", "\"\"", "\"yesterday\"", "-1", "{}", "true", "\"ééééééé\""] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
