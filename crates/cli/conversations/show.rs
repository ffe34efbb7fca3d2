use super::args::ShowArgs;
use super::transcript::{Length, Transcript, earlier};
use super::{figures, summaries, terminal};
use crate::number::grouped;
use std::fmt::Write;
use std::process::ExitCode;
use tidegate_admin::{MessagePage, Source, Summary, TurnPage, Unreadable};
use tidegate_store::{TurnRecord, wall_clock};

pub(super) async fn run(source: &Source, args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let tenant = args.whose.tenant.as_deref();
    let page = turns(source, &args.id, tenant).await?;
    // From here on by its id: a name may get a second owner between two questions.
    let messages = messages(source, &page.conversation.id, tenant).await?;
    let limit = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    if args.json {
        terminal::print_json(json(&page, &messages, limit)?.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = head(&page.conversation);
    let shown = last(&page.turns, limit);
    let _ = writeln!(out, "\nturns{}", earlier(page.turns.len(), shown.len()));
    out.push_str(&turn_table(shown));
    let transcript = Transcript {
        messages: &messages.messages,
        last_turn: page.turns.last(),
        length: if args.full { Length::Full } else { Length::Short },
    };
    out.push_str("\n\n");
    out.push_str(&summaries::render(&page, limit, transcript.length));
    out.push_str(&transcript.render(limit));
    out.push_str(&absent(&messages));
    terminal::print(out.as_bytes());
    Ok(ExitCode::SUCCESS)
}

async fn turns(source: &Source, id: &str, tenant: Option<&str>) -> anyhow::Result<TurnPage> {
    let mut all = source.conversation(id, tenant, 0).await?;
    while all.turns.len() < all.turns_total {
        let page = source.conversation(&all.conversation.id, tenant, all.turns.len()).await?;
        if page.turns.is_empty() {
            // It was deleted, or has expired, while we read.
            break;
        }
        all.turns.extend(page.turns);
    }
    Ok(all)
}

async fn messages(source: &Source, id: &str, tenant: Option<&str>) -> anyhow::Result<MessagePage> {
    let mut all = source.messages(id, tenant, 0).await?;
    while all.messages.len() < all.total {
        let page = source.messages(id, tenant, all.messages.len()).await?;
        if page.messages.is_empty() {
            break;
        }
        all.messages.extend(page.messages);
    }
    Ok(all)
}

/// Written by hand, because the messages in it are the client's own bytes.
fn json(page: &TurnPage, messages: &MessagePage, limit: usize) -> serde_json::Result<String> {
    Ok(format!(
        "{{\"conversation\":{},\"turns\":{},\"summaries\":{},\"messages\":{},\"recorded\":{},\"unreadable\":{}}}\n",
        serde_json::to_string(&page.conversation)?,
        serde_json::to_string(last(&page.turns, limit))?,
        serde_json::to_string(last(&page.summaries, limit))?,
        serde_json::to_string(last(&messages.messages, limit))?,
        messages.recorded,
        serde_json::to_string(&messages.unreadable)?,
    ))
}

pub(super) fn last<T>(all: &[T], limit: usize) -> &[T] {
    &all[all.len().saturating_sub(limit)..]
}

fn head(one: &Summary) -> String {
    let now = wall_clock();
    let when = |at| format!("{} ({})", figures::moment(at), figures::ago(now, at));
    let tokens = format!(
        "{}, {} saved",
        figures::change(one.tokens_before, one.tokens_after),
        figures::saved(one.tokens_before, one.tokens_after)
    );
    let reported = format!(
        "{} prompt, {} of them cached, {} completion",
        grouped(one.prompt_tokens),
        grouped(one.cached_tokens),
        grouped(one.completion_tokens)
    );
    let lines = [
        ("id", one.id.clone()),
        ("name", terminal::one_line(&one.name)),
        ("tenant", terminal::one_line(&one.tenant)),
        ("route", terminal::one_line(&one.route)),
        ("model", terminal::one_line(&one.model)),
        ("strategy", terminal::one_line(&one.strategy)),
        ("first", when(one.first)),
        ("last", when(one.last)),
        ("turns", format!("{} in {} requests", grouped(one.turns), grouped(one.requests))),
        ("tokens", tokens),
        ("billed", reported),
    ];
    let mut out = String::new();
    for (name, value) in lines {
        // Writing into a string does not fail.
        let _ = writeln!(out, "{name:9}{value}");
    }
    out
}

fn turn_table(turns: &[TurnRecord]) -> String {
    let row = |turn: &TurnRecord| {
        let optional = |text: &Option<String>| terminal::one_line(text.as_deref().unwrap_or("-"));
        let status = match turn.outcome.as_str() {
            "" | "answered" => turn.status.to_string(),
            outcome => format!("{} {}", turn.status, terminal::one_line(outcome)),
        };
        [
            figures::moment(turn.at),
            terminal::one_line(&turn.model),
            figures::change(turn.tokens_before, turn.tokens_after),
            turn.masked.len().to_string(),
            optional(&turn.trigger),
            status,
            optional(&turn.degraded),
        ]
    };
    let header = ["time", "model", "tokens", "masked", "trigger", "status", "degraded"];
    figures::table(header, &[2, 3], turns.iter().map(row).collect())
}

/// Why there are fewer messages than were sent.
fn absent(page: &MessagePage) -> String {
    let Unreadable { count, no_key, damaged, newer } = page.unreadable;
    let mut out = String::new();
    if page.messages.is_empty() && count == 0 {
        out.push_str(match page.recorded {
            true => "  none are recorded\n",
            false => "  none are recorded: `store.raw` is false\n",
        });
    }
    if count > 0 {
        let reasons = [
            (no_key, "encrypted with a key that is not given (`store.key_env`)"),
            (damaged, "damaged"),
            (newer, "written by a newer version"),
        ];
        let reasons: Vec<String> = reasons
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, reason)| format!("{count} {reason}"))
            .collect();
        let _ = writeln!(out, "  {count} cannot be read: {}", reasons.join(", "));
    }
    out
}
