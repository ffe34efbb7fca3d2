//! What was brought back of messages that have left the request, and why.

use crate::Case;
use crate::case::CaseKind;
use crate::figures::{counted, tokens};
use tidegate_context::{PlacedExcerpt, Unrecalled, shared_words};
use tidegate_engine::Tokens;

/// The most words that are named as the reason of an excerpt.
const MAX_WORDS: usize = 8;

/// Says what was brought back, or why nothing was.
pub fn recall_note(case: &Case<'_>) -> String {
    let excerpts = &case.assessment.excerpts;
    if excerpts.is_empty() {
        return why_nothing(case).to_owned();
    }
    let cost: Tokens = excerpts.iter().map(|excerpt| excerpt.tokens).sum();
    let new = excerpts.iter().filter(|excerpt| excerpt.is_new).count();
    let which = if new == 0 { ", all of them repeated from earlier requests" } else { "" };
    format!(
        "{} in {} tokens: passages of messages that have left and share distinctive words with the message that quotes them{which}",
        counted(excerpts.len(), "excerpt"),
        tokens(cost)
    )
}

/// The distinctive words that an excerpt shares with the message that it stands in.
pub fn recalled_for(case: &Case<'_>, excerpt: &PlacedExcerpt) -> Vec<String> {
    let outline = case.request.outline;
    let raw = outline.messages.get(excerpt.message).map(|message| message.of(case.request.body));
    let Some(Ok(mut view)) = raw.map(|raw| outline.dialect.read_message(raw)) else { return Vec::new() };
    view.results.clear();
    let mut words = shared_words(&view.text(), &excerpt.text);
    words.truncate(MAX_WORDS);
    words
}

fn why_nothing(case: &Case<'_>) -> &'static str {
    let plan = &case.assessment.decision.plan;
    match case.assessment.unrecalled {
        _ if plan.folded.is_none() && plan.dropped.is_empty() => "no message has left the request",
        Some(Unrecalled::Off) => {
            "nothing is brought back: recall.auto is off, or the request is left as it is"
        }
        Some(Unrecalled::NothingNew) => "no new message of the user's takes an excerpt",
        Some(Unrecalled::NoRoom) => {
            "there is no room for an excerpt: the budget or what the edits save is used up"
        }
        Some(Unrecalled::NothingTelling) => {
            "no message that has left shares enough distinctive words with the newest user message"
        }
        Some(Unrecalled::SaidAlready) => {
            "the summary or another excerpt says what bears on the newest user message"
        }
        None if case.kind == CaseKind::Recorded => "this turn brought nothing back",
        None => "nothing was brought back",
    }
}
