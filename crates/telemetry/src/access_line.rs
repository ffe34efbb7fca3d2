//! One request as a line for people: at most 120 columns, with colours on a terminal.

use crate::{AccessRecord, Outcome};
use std::fmt::Write;
use std::time::Duration;

/// The most columns of a line.
const WIDTH: usize = 120;

/// What a part that has to be shortened keeps at least.
const SHORTEST: usize = 8;

/// A part of the line, and the code of its colour.
struct Part {
    text: String,
    colour: &'static str,
    /// Which parts are shortened first if the line is too long; `None` for those that never are.
    rank: Option<u8>,
}

const PLAIN: &str = "";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";

pub(crate) fn human_line(access: &AccessRecord<'_>, time: &str, is_coloured: bool) -> String {
    let mut parts = parts(access, time);
    shorten(&mut parts);
    let mut line = String::with_capacity(WIDTH + 64);
    for (index, Part { text, colour, .. }) in parts.iter().enumerate() {
        line.push_str(if index == 0 { "" } else { " " });
        // Writing into a string does not fail.
        let _ = match is_coloured && !colour.is_empty() {
            true => write!(line, "\x1b[{colour}m{text}\x1b[0m"),
            false => write!(line, "{text}"),
        };
    }
    line.push('\n');
    line
}

fn parts(access: &AccessRecord<'_>, time: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut push = |text: String, colour, rank| {
        if !text.is_empty() {
            parts.push(Part { text, colour, rank });
        }
    };
    push(time.to_owned(), DIM, None);
    push(access.status.to_string(), status_colour(access.status), None);
    push(endpoint(access), PLAIN, Some(2));
    // One route needs no name.
    push(access.route.filter(|route| *route != "default").map(plain).unwrap_or_default(), DIM, Some(3));
    push(access.model.map(plain).unwrap_or_default(), PLAIN, Some(1));
    push(access.conversation.map(plain).unwrap_or_default(), CYAN, Some(0));
    push(ending(access), if access.status < 400 { YELLOW } else { RED }, Some(6));
    push(tokens(access), PLAIN, None);
    push(edits(access), GREEN, Some(7));
    let degraded = access.degraded.map(|reason| format!("degraded: {reason}"));
    push(degraded.unwrap_or_default(), YELLOW, Some(5));
    push(
        access.stop_hint.map(|turns| format!("no progress: {turns} turns")).unwrap_or_default(),
        YELLOW,
        Some(5),
    );
    push(access.retry_after.map(|wait| format!("retry after {wait}s")).unwrap_or_default(), YELLOW, Some(5));
    push(took(access.duration), PLAIN, None);
    push(format!("id={}", access.request_id), DIM, Some(4));
    parts
}

/// Cuts the parts that matter least until the line fits.
fn shorten(parts: &mut [Part]) {
    let columns = |parts: &[Part]| parts.iter().map(|part| part.text.chars().count() + 1).sum::<usize>() - 1;
    let mut excess = columns(parts).saturating_sub(WIDTH);
    for rank in 0..=7 {
        for part in parts.iter_mut().filter(|part| part.rank == Some(rank)) {
            let length = part.text.chars().count();
            let cut = excess.min(length.saturating_sub(SHORTEST));
            if cut > 0 {
                part.text = part.text.chars().take(length - cut - 1).chain(['…']).collect();
                excess -= cut;
            }
        }
    }
}

/// The endpoint of an LLM by a short name, anything else by its method and path.
fn endpoint(access: &AccessRecord<'_>) -> String {
    let is_managed = access.method == "POST" && access.route.is_some();
    let name =
        ["chat/completions", "messages", "responses"].into_iter().find(|end| access.path.ends_with(end));
    match name.filter(|_| is_managed) {
        Some("chat/completions") => "chat".to_owned(),
        Some(name) => name.to_owned(),
        None => format!("{} {}", access.method, plain(access.path)),
    }
}

fn ending(access: &AccessRecord<'_>) -> String {
    match (access.outcome, access.reason) {
        (Outcome::Answered, None) => String::new(),
        (Outcome::Answered, Some(reason)) => reason.to_owned(),
        (outcome, None) => outcome.to_string(),
        (outcome, Some(reason)) => format!("{outcome}: {reason}"),
    }
}

fn tokens(access: &AccessRecord<'_>) -> String {
    match (access.tokens_before, access.tokens_after) {
        (Some(before), Some(after)) if before != after => format!("{}→{}", short(before), short(after)),
        (Some(before), _) => format!("{} tokens", short(before)),
        (None, _) => String::new(),
    }
}

/// What was edited; with a plan that was only observed, what would have been.
fn edits(access: &AccessRecord<'_>) -> String {
    let [mask, trim, fold, drop] = match access.observed {
        true => ["mask", "trim", "fold", "drop"],
        false => ["masked", "trimmed", "folded", "dropped"],
    };
    let counts =
        [(mask, access.masked), (trim, access.trimmed), (fold, access.folded), (drop, access.dropped)];
    let mut edits: Vec<String> = counts
        .into_iter()
        .filter_map(|(edit, count)| Some(format!("{edit} {}", count.filter(|count| *count > 0)?)))
        .collect();
    if access.would_refuse {
        edits.push("refuse".to_owned());
    }
    match (edits.is_empty(), access.observed) {
        (true, true) => "would not edit".to_owned(),
        (true, false) => String::new(),
        (false, true) => format!("would {}", edits.join(", ")),
        (false, false) => edits.join(", "),
    }
}

/// `950`, `41.2k`, `1.3M`.
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..999_950 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

fn took(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.2}s"),
        seconds if seconds >= 0.0995 => format!("{:.0}ms", seconds * 1e3),
        seconds => format!("{:.1}ms", seconds * 1e3),
    }
}

fn status_colour(status: u16) -> &'static str {
    match status {
        0..400 => GREEN,
        400..500 => YELLOW,
        _ => RED,
    }
}

/// A name that a client chose, so that it cannot look like another part, another line or a control sequence.
fn plain(name: &str) -> String {
    let is_plain = |char: &char| char.is_ascii_graphic() && !['=', '"'].contains(char);
    name.chars().map(|char| if is_plain(&char) { char } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> AccessRecord<'static> {
        AccessRecord {
            request_id: "tg-000000000000000000000000000000a1",
            method: "POST",
            path: "/v1/chat/completions",
            status: 200,
            route: Some("default"),
            model: Some("gpt-4o"),
            conversation: Some("build-7"),
            tokens_before: Some(41_234),
            tokens_after: Some(23_760),
            masked: Some(12),
            folded: Some(30),
            duration: Duration::from_millis(1_842),
            ..AccessRecord::default()
        }
    }

    fn line(access: &AccessRecord<'_>) -> String {
        human_line(access, "20:02:11", false)
    }

    #[test]
    fn a_line_says_what_was_edited_and_how_long_it_took() {
        assert_eq!(
            line(&request()),
            "20:02:11 200 chat gpt-4o build-7 41.2k→23.8k masked 12, folded 30 1.84s \
             id=tg-000000000000000000000000000000a1\n"
        );
        let unedited =
            AccessRecord { tokens_after: Some(41_234), masked: Some(0), folded: None, ..request() };
        assert!(line(&unedited).contains(" build-7 41.2k tokens 1.84s id="), "{}", line(&unedited));
    }

    #[test]
    fn an_observed_request_says_what_would_have_happened() {
        let observed = AccessRecord { observed: true, would_refuse: true, ..request() };
        assert!(line(&observed).contains(" would mask 12, fold 30, refuse "), "{}", line(&observed));
        let untouched = AccessRecord { observed: true, masked: Some(0), folded: None, ..request() };
        assert!(line(&untouched).contains(" would not edit "), "{}", line(&untouched));
    }

    #[test]
    fn any_line_fits_120_columns_and_ends_with_the_id() {
        let long = "x".repeat(300);
        let access = AccessRecord {
            model: Some(&long),
            conversation: Some(&long),
            path: &long,
            request_id: &long,
            route: Some(&long),
            outcome: Outcome::UpstreamBroke,
            reason: Some("upstream_unreachable"),
            degraded: Some("summarizer_unreachable"),
            stop_hint: Some(6),
            retry_after: Some(86_400),
            dropped: Some(9_999),
            observed: true,
            would_refuse: true,
            ..request()
        };
        let line = line(&access);
        assert!(line.trim_end().chars().count() <= WIDTH, "{line}");
        assert!(line.trim_end().rsplit(' ').next().is_some_and(|last| last.starts_with("id=x")), "{line}");
    }

    #[test]
    fn a_client_cannot_write_a_part_of_its_own() {
        let access = AccessRecord { model: Some("gpt\n4 id=1\x1b[31m"), ..request() };
        assert!(line(&access).contains(" gpt?4?id?1?[31m build-7 "), "{}", line(&access));
    }

    #[test]
    fn colours_do_not_change_the_text() {
        let coloured = human_line(&request(), "20:02:11", true);
        let codes = coloured.split('\x1b').skip(1).map(|rest| rest.split_once('m').unwrap().1);
        let text: String = coloured.split('\x1b').take(1).chain(codes).collect();
        assert_eq!(text, line(&request()));
    }

    #[test]
    fn other_requests_have_their_method_and_path() {
        let access = AccessRecord {
            request_id: "r-1",
            method: "GET",
            path: "/v1/models",
            status: 502,
            outcome: Outcome::UpstreamError,
            reason: Some("upstream_unreachable"),
            duration: Duration::from_micros(1_500),
            ..AccessRecord::default()
        };
        let expected = "20:02:11 502 GET /v1/models upstream_error: upstream_unreachable 1.5ms id=r-1\n";
        assert_eq!(line(&access), expected);
    }
}
