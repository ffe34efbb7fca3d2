use super::args::ShowArgs;
use super::transcript::{Length, Transcript, earlier};
use super::{figures, memory, summaries, terminal, turns};
use crate::exit::Exit;
use std::fmt::Write;
use tidegate_admin::{ConversationSummary, MessagePage, Source, TurnPage, UnreadableCounts};
use tidegate_explain::grouped;
use tidegate_store::wall_clock;

pub(super) async fn run(source: &Source, args: &ShowArgs) -> anyhow::Result<Exit> {
    let tenant = args.target.tenant.as_deref();
    let page = conversation(source, &args.id, tenant).await?;
    let limit = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    if args.turns {
        terminal::print(render_turns(&page, limit).as_bytes());
        return Ok(Exit::Success);
    }
    // By id from here on, because another conversation may take the same name between two requests.
    let messages = messages(source, &page.conversation.id, tenant).await?;
    if args.json {
        terminal::print_json(json(&page, &messages, limit)?.as_bytes());
        return Ok(Exit::Success);
    }
    let mut out = header(&page.conversation);
    let shown = last(&page.turns, limit);
    let _ = writeln!(out, "\nturns{}", earlier(page.turns.len(), shown.len()));
    out.push_str(&turns::table(shown));
    let transcript = Transcript {
        messages: &messages.messages,
        last_turn: page.turns.last(),
        length: if args.full { Length::Full } else { Length::Short },
    };
    out.push_str("\n\n");
    out.push_str(&memory::render(&page.memory, transcript.length));
    out.push_str(&summaries::render(&page, limit, transcript.length));
    out.push_str(&transcript.render(limit));
    out.push_str(&missing(&messages));
    terminal::print(out.as_bytes());
    Ok(Exit::Success)
}

/// Only the figures, without messages.
fn render_turns(page: &TurnPage, limit: usize) -> String {
    let shown = last(&page.turns, limit);
    let turns = turns::details(shown);
    format!("{}\nturns{}\n{turns}", header(&page.conversation), earlier(page.turns.len(), shown.len()))
}

async fn conversation(source: &Source, id: &str, tenant: Option<&str>) -> anyhow::Result<TurnPage> {
    let mut all = source.conversation(id, tenant, 0).await?;
    while all.turns.len() < all.turns_total {
        let page = source.conversation(&all.conversation.id, tenant, all.turns.len()).await?;
        if page.turns.is_empty() {
            // It was deleted or has expired while we were reading.
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

/// Formatted by hand, because the messages are the client's own bytes.
fn json(page: &TurnPage, messages: &MessagePage, limit: usize) -> serde_json::Result<String> {
    Ok(format!(
        "{{\"conversation\":{},{},\"turns\":{},\"summaries\":{},\"messages\":{},\"recorded\":{},\"unreadable\":{}}}\n",
        serde_json::to_string(&page.conversation)?,
        // At the top level, as in the admin API.
        memory::members(&page.memory)?,
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

fn header(summary: &ConversationSummary) -> String {
    let now = wall_clock();
    let when = |at| format!("{} ({})", figures::moment(at), figures::ago(now, at));
    let tokens = format!(
        "{}, {} saved",
        figures::change(summary.tokens_before, summary.tokens_after),
        figures::saved(summary.tokens_before, summary.tokens_after)
    );
    let reported = format!(
        "{} prompt, {} of them cached, {} completion",
        grouped(summary.prompt_tokens),
        grouped(summary.cached_tokens),
        grouped(summary.completion_tokens)
    );
    let lines = [
        ("id", summary.id.clone()),
        ("name", terminal::one_line(&summary.name)),
        ("tenant", terminal::one_line(&summary.tenant)),
        ("route", terminal::one_line(&summary.route)),
        ("model", terminal::one_line(&summary.model)),
        ("strategy", terminal::one_line(&summary.strategy)),
        ("first", when(summary.first)),
        ("last", when(summary.last)),
        ("turns", format!("{} in {} requests", grouped(summary.turns), grouped(summary.requests))),
        ("tokens", tokens),
        ("billed", reported),
        ("cost", figures::usd(summary.cost_usd)),
        ("saved", figures::avoided(summary.cost_usd, summary.unedited_cost_usd)),
    ];
    // What the plans of observed turns would have done, with those that were applied.
    let planned = (summary.observed > 0).then(|| {
        let (before, planned) = (summary.tokens_before, summary.tokens_planned);
        let (change, saved) = (figures::change(before, planned), figures::saved(before, planned));
        (
            "planned",
            format!("{change}, {saved} saved, had {} observed turns been applied", grouped(summary.observed)),
        )
    });
    let mut out = String::new();
    for (name, value) in lines.into_iter().chain(planned) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:9}{value}");
    }
    out
}

/// Says why messages are missing.
fn missing(page: &MessagePage) -> String {
    let UnreadableCounts { count, no_key, damaged, newer, too_long } = page.unreadable;
    let mut out = String::new();
    if page.messages.is_empty() && count == 0 {
        out.push_str(match page.recorded {
            true => "  none are recorded\n",
            false => "  none are recorded: `store.raw` is false\n",
        });
    }
    if count > 0 {
        let reasons = [
            (no_key, "encrypted with a key that is not configured (`store.key_env`)"),
            (damaged, "damaged"),
            (newer, "written by a newer version"),
            (too_long, "behind the first 256 MiB of the conversation"),
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
