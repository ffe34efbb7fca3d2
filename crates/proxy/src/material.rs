//! What a summary is made of.

use crate::assess::Question;
use crate::look::Look;
use crate::summarize::{OwnedSource, OwnedSpeaker};
use crate::summary_message::{State, SummaryMessage, tokens};
use std::collections::HashMap;
use tidegate_config::{Fold, FoldRole};
use tidegate_engine::{Cause, FoldJob, Kind, Role, Timestamp, Tokens};
use tidegate_store::StoredFold;
use tidegate_summary::{Call, MessageRef, Source, Summary, cap, extract, render};
use tidegate_tokens::Encoding;
use tidegate_wire::{CallId, Content, MessageView, Outline, ParsedRequest, Part};

/// The summary that the built-in summarizer makes of a conversation that has none: what a request would get, without a network
/// and without a store.
#[must_use]
pub fn summarize_offline(
    question: &Question<'_>,
    chat: &ParsedRequest,
    job: &FoldJob,
) -> Option<SummaryMessage> {
    let fold = &question.context.fold;
    let sources = sources(question.body, question.outline, chat, job);
    let sources: Vec<Source<'_>> = sources.iter().map(OwnedSource::borrowed).collect();
    let limit = longest(fold, job);
    let look = Look::of(question.context, question.model, question.pinned.map(|pinned| pinned.text.as_str()));
    let summary = extract(None, &sources, u32::try_from(limit.0).unwrap_or(u32::MAX));
    let encoding = question.model.encoding;
    let fits = |text: &str| tokens(text, fold.role, encoding) <= limit;
    let summary = cap(&summary, sources.len(), &fits);
    let cost = tokens(&render(&summary, sources.len()), fold.role, encoding);
    let kept = kept(chat, job, &summary, cost);
    let state = State { summary, keeps_request: job.keeps_request, kept, seen: job.seen, ..State::default() };
    let stored = StoredFold {
        covers: job.covers,
        covered: u32::try_from(sources.len()).unwrap_or(u32::MAX),
        at: Timestamp(0),
        state: state.to_bytes(),
    };
    SummaryMessage::of(&stored, &look)
}

/// The summary that the built-in summarizer makes of a conversation, as it would be stored: for whoever rehearses a conversation.
pub(crate) fn fold_offline(
    question: &Question<'_>,
    chat: &ParsedRequest,
    job: &FoldJob,
    previous: Option<&Summary>,
) -> Result<StoredFold, &'static str> {
    let fold = &question.context.fold;
    let (limit, covered) = (longest(fold, job), covered(chat, job));
    let sources = sources(question.body, question.outline, chat, job);
    let sources: Vec<Source<'_>> = sources.iter().map(OwnedSource::borrowed).collect();
    let uncapped = extract(previous, &sources, u32::try_from(limit.0).unwrap_or(u32::MAX));
    let (summary, cost) = capped(&uncapped, covered, limit, fold.role, question.model.encoding);
    let state = beside(chat, job, summary, question.scaled(cost))?;
    Ok(StoredFold {
        covers: job.covers,
        covered: u32::try_from(covered).unwrap_or(u32::MAX),
        at: Timestamp(0),
        state: state.to_bytes(),
    })
}

/// A summary within its limit, and what the message costs that holds it.
pub(crate) fn capped(
    uncapped: &Summary,
    covered: usize,
    limit: Tokens,
    role: FoldRole,
    encoding: Encoding,
) -> (Summary, Tokens) {
    let summary = cap(uncapped, covered, &|text| tokens(text, role, encoding) <= limit);
    let cost = tokens(&render(&summary, covered), role, encoding);
    (summary, cost)
}

/// A summary with the messages that stay beside it, or why it is not worth its place: what does not shrink the request is not, and is
/// not tried again at once. Where the history has a limit, keeping to that is what it is worth.
pub(crate) fn beside(
    chat: &ParsedRequest,
    job: &FoldJob,
    summary: Summary,
    cost: Tokens,
) -> Result<State, &'static str> {
    if cost >= job.worth && job.cause != Cause::Blocks {
        return Err("summarizer_no_gain");
    }
    let kept = kept(chat, job, &summary, cost);
    Ok(State { summary, keeps_request: job.keeps_request, kept, seen: job.seen, ..State::default() })
}

/// How many messages a new summary stands for.
pub(crate) fn covered(chat: &ParsedRequest, job: &FoldJob) -> usize {
    chat.messages[..job.messages.end].iter().filter(|message| !message.role.is_instruction()).count()
}

/// The messages that stay beside a summary, each by how many come before it: as many of those that only pruning takes as there
/// is room for, and first of all those that its facts, decisions and open questions rest on.
fn kept(chat: &ParsedRequest, job: &FoldJob, summary: &Summary, cost: Tokens) -> Vec<usize> {
    let anchors = summary.anchors().into_iter();
    let anchors: Vec<usize> = anchors.filter_map(|MessageRef(number)| usize::try_from(number).ok()).collect();
    FoldJob::places(&chat.messages, &job.kept(&chat.messages, &anchors, cost))
}

/// The longest that a summary may be: a tenth shorter than what it stands for, so that it is worth its place. One for a limit of
/// the history has its place anyway.
pub(crate) fn longest(fold: &Fold, job: &FoldJob) -> Tokens {
    match job.cause {
        Cause::Blocks => fold.max_tokens,
        _ => fold.max_tokens.min(Tokens(job.worth.0 / 10 * 9)),
    }
}

/// The messages as a summarizer reads them. Instructions stay in the context, so nobody has to summarize them.
pub(crate) fn sources(
    body: &[u8],
    outline: &Outline,
    chat: &ParsedRequest,
    job: &FoldJob,
) -> Vec<OwnedSource> {
    let mut tools: HashMap<CallId, String> = HashMap::new();
    let mut sources = Vec::new();
    for index in 0..job.messages.end {
        let parsed = &chat.parsed[index];
        tools.extend(parsed.facts.calls.iter().map(|call| (call.id, call.tool.to_string())));
        let message = &chat.messages[index];
        if index < job.messages.start || message.role.is_instruction() {
            continue;
        }
        let Ok(view) = outline.dialect.read_message(outline.messages[index].of(body)) else { continue };
        let tool = parsed.facts.answers.iter().find_map(|id| tools.get(id).cloned());
        let speaker = match (message.kind, message.role) {
            (Kind::Observation, _) => OwnedSpeaker::Observation {
                tool: tool.or_else(|| parsed.facts.name.as_deref().map(str::to_owned)),
            },
            (Kind::Speech, Role::User) => OwnedSpeaker::User,
            (Kind::Speech, Role::Assistant) => OwnedSpeaker::Assistant,
            (Kind::Speech, _) => OwnedSpeaker::Other(view.role.as_deref().unwrap_or_default().to_owned()),
        };
        sources.push(OwnedSource {
            number: MessageRef(u32::try_from(index).unwrap_or(u32::MAX)),
            speaker,
            text: text(&view),
            calls: view
                .calls()
                .map(|function| Call {
                    tool: function.name.clone().into_owned().into(),
                    arguments: function.arguments.clone().into_owned().into(),
                })
                .collect(),
        });
    }
    sources
}

/// What a message says in words; what it shows or plays is only named.
fn text(view: &MessageView<'_>) -> String {
    let mut texts = Vec::new();
    match &view.content {
        Content::Text(text) => texts.push(text.as_ref()),
        Content::Parts(parts) => texts.extend(parts.iter().map(|part| match part {
            Part::Text(text) | Part::Refusal(text) => text.as_ref(),
            Part::Image { .. } => "[an image]",
            Part::Audio { .. } => "[a recording]",
            Part::File { name, .. } => name.as_deref().unwrap_or("[a file]"),
            Part::Other(_) => "",
        })),
        Content::Absent | Content::Null | Content::Unexpected(_) => {}
    }
    texts.extend(view.refusal.as_deref());
    texts.join("\n")
}
