//! Times as recorders write them.

use serde_json::value::RawValue;
use std::time::{SystemTime, UNIX_EPOCH};

/// What recorders call the time of a message or a request. None of it is a member that a provider knows.
pub(super) const NAMES: [&str; 6] = ["timestamp", "created_at", "createdAt", "time", "ts", "created"];

/// In milliseconds since 1970: of a number in seconds, milliseconds or microseconds, or of an RFC 3339 date. Nothing for anything else.
pub(super) fn milliseconds(value: &RawValue) -> Option<u64> {
    let text = value.get();
    if let Ok(number) = text.parse::<f64>() {
        return of_number(number);
    }
    let text: String = serde_json::from_str(text).ok()?;
    text.trim().parse::<f64>().ok().and_then(of_number).or_else(|| of_date(text.trim()))
}

/// Which unit a number is in shows in its size: as seconds these limits are in the year 5138, as milliseconds too.
fn of_number(number: f64) -> Option<u64> {
    let milliseconds = match number {
        _ if !number.is_finite() || number < 0.0 => return None,
        _ if number < 1e11 => number * 1e3,
        _ if number < 1e14 => number,
        _ => number / 1e3,
    };
    Some(milliseconds as u64)
}

fn of_date(text: &str) -> Option<u64> {
    // The time zone is what our parser does not know.
    let behind_date = text.get(10..)?;
    let (plain, offset) = match behind_date.rfind(['+', '-']) {
        Some(at) => (&text[..10 + at], of_offset(&behind_date[at..])?),
        None => (text, 0),
    };
    let moment = humantime::parse_rfc3339_weak(plain).ok()?;
    moment_in_milliseconds(moment).map(|utc| utc.saturating_add_signed(-offset))
}

fn moment_in_milliseconds(moment: SystemTime) -> Option<u64> {
    u64::try_from(moment.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// `+02:00` or `-0500`, in milliseconds.
fn of_offset(text: &str) -> Option<i64> {
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
    fn a_time_is_read_in_whatever_form_it_was_written() {
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
