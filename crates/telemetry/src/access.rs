use crate::access_line::human_line;
use crate::{Format, LogSink, Outcome, logs};
use serde::Serialize;
use std::cell::RefCell;
use std::fmt;
use std::io::Write;
use std::time::{Duration, SystemTime};
use tidegate_context::Figures;

/// A line of the access log, one for each request. There is no field for a query, a header, a body or a key.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AccessRecord<'a> {
    pub request_id: &'a str,
    pub method: &'a str,
    pub path: &'a str,
    pub status: u16,
    pub outcome: Outcome,
    /// The code of the error; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Why the request was served without something it should have had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degraded: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<&'a str>,
    /// The model's name and the conversation's, as the client wrote them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masked: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimmed: Option<usize>,
    /// Messages that a summary replaces, and messages that are left out; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folded: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<usize>,
    /// Whether the edits were only planned, and the request forwarded as it came.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub observed: bool,
    /// Whether it would have been refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub would_refuse: bool,
    /// The number of turns without progress, if the answer had a stop hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_hint: Option<u32>,
    pub bytes_in: u64,
    pub bytes_out: u64,
    #[serde(rename = "first_byte_ms", serialize_with = "millis", skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Duration>,
    /// The time between forwarding the request and the head of the upstream's answer.
    #[serde(rename = "upstream_ms", serialize_with = "millis", skip_serializing_if = "Option::is_none")]
    pub upstream_latency: Option<Duration>,
    /// How many seconds the upstream asks the client to wait.
    #[serde(rename = "retry_after_s", skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    #[serde(rename = "duration_ms", serialize_with = "some_millis")]
    pub duration: Duration,
}

thread_local! {
    /// Reused for every line, so that requests do not allocate for the access log.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl AccessRecord<'_> {
    /// Adds the figures of a measured request.
    #[must_use]
    pub fn with_figures(self, figures: &Figures) -> Self {
        let unless_none = |count: usize| Some(count).filter(|count| *count > 0);
        AccessRecord {
            tokens_before: Some(figures.before.0),
            tokens_after: Some(figures.after.0),
            masked: Some(figures.masked),
            trimmed: figures.trimmed.and_then(unless_none),
            folded: unless_none(figures.folded),
            dropped: unless_none(figures.dropped),
            stop_hint: figures.stop_hint,
            observed: figures.observed,
            would_refuse: figures.would_refuse(),
            ..self
        }
    }

    pub fn write(&self, log: &LogSink, format: Format) {
        LINE.with_borrow_mut(|line| {
            line.clear();
            match format {
                Format::Json => {
                    let time = humantime::format_rfc3339_millis(SystemTime::now());
                    // Writing to memory cannot fail.
                    let _ = self.write_json(line, &time);
                }
                Format::Human | Format::Terminal => {
                    let is_coloured = format == Format::Terminal;
                    line.extend_from_slice(human_line(self, &logs::time(format), is_coloured).as_bytes());
                }
            }
            log.push(line);
        });
    }

    fn write_json(&self, line: &mut Vec<u8>, time: &impl fmt::Display) -> std::io::Result<()> {
        write!(line, r#"{{"timestamp":"{time}","level":"INFO","target":"access","#)?;
        let start = line.len();
        serde_json::to_writer(&mut *line, self)?;
        // Remove the record's own opening brace, so that its fields continue the object above.
        line.remove(start);
        line.push(b'\n');
        Ok(())
    }
}

fn millis<S: serde::Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    some_millis(&duration.unwrap_or_default(), serializer)
}

fn some_millis<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((duration.as_secs_f64() * 1e6).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(access: &AccessRecord<'_>, format: Format) -> String {
        let (log, written) = LogSink::to_memory();
        access.write(&log, format);
        log.flush();
        written.text()
    }

    #[test]
    fn a_json_line_is_one_object() {
        let access = AccessRecord {
            request_id: "r-1",
            method: "POST",
            path: "/v1/\"quoted\"",
            status: 502,
            outcome: Outcome::Refused,
            reason: Some("upstream_unreachable"),
            route: Some("default"),
            duration: Duration::from_micros(1500),
            ..AccessRecord::default()
        };
        let text = line(&access, Format::Json);
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(object["path"], "/v1/\"quoted\"");
        assert_eq!(object["outcome"], "refused");
        assert_eq!(object["duration_ms"], 1.5);
        assert!(object.get("first_byte_ms").is_none());
        assert!(text.ends_with("}\n"));
    }
}
