//! The JSON form of a case. `tidegate explain --help` documents its members as stable.

use crate::fate::Action;
use crate::{Case, Change, Ending, What, figures, folding, grouped, recalling};
use serde_json::{Value, json};
use std::ops::Range;
use tidegate_config::strategy_name;
use tidegate_context::PlacedExcerpt;
use tidegate_engine::Kind;
use tidegate_tokens::{Fit, Prices};

impl Ending {
    fn name(self) -> &'static str {
        match self {
            Ending::AsSent => "as_sent",
            Ending::Edited => "edited",
            Ending::Refused => "refused",
        }
    }
}

/// Returns a case as JSON, with all messages.
#[must_use]
pub fn of(case: &Case<'_>) -> Value {
    page(case, &(0..case.fates.len()))
}

/// Returns a case as JSON, with the messages in a range.
#[must_use]
pub fn page(case: &Case<'_>, range: &Range<usize>) -> Value {
    let plan = &case.assessment.decision.plan;
    let (messages_tokens, fixed) = figures::parts(case);
    let mut object = json!({
        "route": case.request.route.name.as_str(),
        "upstream": case.request.route.upstream.name.as_str(),
        "strategy": strategy_name(case.request.strategy),
        "observe": case.request.route.context.observe,
        "messages": messages(case, range),
        "budget": budget(case),
        "usage": json!({
            "messages": messages_tokens.0,
            "fixed": fixed.0,
            "before": plan.before.0,
            "saved": plan.before.saturating_sub(plan.after).0,
            "after": plan.after.0,
        }),
        "masking": if case.request.strategy.masks() { masking(case) } else { Value::Null },
        "folding": if case.request.strategy.folds() { fold(case) } else { Value::Null },
        "verdict": verdict(case),
        "model": model(case),
    });
    if case.recalls() {
        object["recall"] = recall(case);
    }
    object
}

/// Returns the JSON for a request that matches no route.
#[must_use]
pub fn without_route(model: Option<&str>, sentence: &str) -> Value {
    json!({
        "route": null,
        "upstream": "default",
        "verdict": json!({
            "ending": Ending::AsSent.name(),
            "sentence": sentence,
        }),
        "model": json!({
            "asked": model,
        }),
    })
}

fn messages(case: &Case<'_>, range: &Range<usize>) -> Value {
    let fates = case.fates.iter().enumerate().skip(range.start).take(range.len());
    let one = |(index, fate): (usize, &crate::Fate)| {
        let kind = match fate.kind {
            Kind::Speech => "speech",
            Kind::Observation => "observation",
        };
        let mut object = json!({
            "index": index,
            "role": fate.role,
            "kind": kind,
            "tool": fate.tool.as_deref(),
            "calls": fate.calls,
            "tokens": fate.tokens.0,
            "tokens_after": fate.after.0,
            "action": fate.action.name(),
            "reason": fate.why.name(),
            "why": figures::why(case, fate.why),
        });
        if !fate.quotes.is_empty() {
            object["quotes"] = json!(fate.quotes);
        }
        object
    };
    Value::Array(fates.map(one).collect())
}

fn budget(case: &Case<'_>) -> Value {
    let budget = &case.assessment.decision.plan.budget;
    let (_, window) = figures::sources(case);
    json!({
        "window": budget.window.tokens().map(|window| window.0),
        "window_source": window.name(),
        "safe": budget.safe.map(|safe| safe.0),
        "output": budget.output.0,
        "output_source": if figures::is_output_asked_for(case) { "request" } else { "policy" },
        "overhead": budget.overhead.0,
        "input": budget.input.map(|input| input.0),
        "refuse_above": budget.refuse_above.map(|limit| limit.0),
    })
}

fn masking(case: &Case<'_>) -> Value {
    let plan = &case.assessment.decision.plan;
    json!({
        "keep": case.setting("mask.keep"),
        "pace": case.setting("mask.pace").trim_matches('"'),
        "cause": figures::mask_cause(case).map(|cause| cause.name()),
        "postponed": plan.postponed,
        "bound": plan.bound,
        "note": figures::note(case),
    })
}

fn fold(case: &Case<'_>) -> Value {
    let summary = case.summary();
    json!({
        "when": case.setting("fold.when"),
        "keep": case.setting("fold.keep"),
        "mode": case.setting("fold.mode").trim_matches('"'),
        "prune_when": case.setting("prune.when"),
        "prune_keep": case.setting("prune.keep"),
        "summarizer": case.request.route.context.fold.summarizer.as_str(),
        "cause": case.fold_cause().map(|cause| cause.name()),
        "covered": summary.map(|(_, _, covered)| covered),
        "summary_tokens": summary.map(|(_, tokens, _)| tokens.0),
        "summary_role": summary.map(|_| case.fold_role()),
        "summary_before": summary.map(|(before, _, _)| before),
        "later": case.is_folded_later(),
        "note": folding::notes(case).join("; "),
    })
}

fn recall(case: &Case<'_>) -> Value {
    let excerpt = |placed: &PlacedExcerpt| {
        json!({
            "message": placed.message,
            "quotes": placed.sources,
            "passages": placed.excerpt.passages.len(),
            "tokens": placed.tokens.0,
            "words": recalling::recalled_for(case, placed),
            "new": placed.is_new,
        })
    };
    json!({
        "max_tokens": case.request.route.context.recall.max_tokens.0,
        "excerpts": case.assessment.excerpts.iter().map(excerpt).collect::<Vec<_>>(),
        "note": recalling::recall_note(case),
    })
}

fn verdict(case: &Case<'_>) -> Value {
    let plan = &case.assessment.decision.plan;
    json!({
        "ending": case.ending().name(),
        "masked": case.fates.iter().filter(|fate| fate.action.masks()).count(),
        "trimmed": case.fates.iter().filter(|fate| fate.action.trims()).count(),
        "folded": case.fates.iter().filter(|fate| fate.action == Action::Fold).count(),
        "dropped": case.fates.iter().filter(|fate| fate.action == Action::Drop).count(),
        "untagged": case.fates.iter().filter(|fate| fate.action.untags()).count(),
        "over": figures::over(plan).0,
        "left": plan.budget.input.map(|input| input.saturating_sub(plan.after).0),
        "sentence": figures::verdict(case),
    })
}

fn model(case: &Case<'_>) -> Value {
    let model = case.request.model;
    let (entry, _) = figures::sources(case);
    let fit = match model.fit {
        Fit::Exact => "exact",
        Fit::Nearest => "nearest",
    };
    let prices = |Prices { input, cached_input, cache_write, output }: Prices| {
        json!({
            "input": input,
            "cached_input": cached_input,
            "cache_write": cache_write,
            "output": output,
        })
    };
    json!({
        "asked": case.request.outline.model.as_deref(),
        "matched": (entry != figures::Source::Unknown).then_some(model.name.as_str()),
        "source": entry.name(),
        "window": model.window.tokens().map(|window| window.0),
        "max_output": model.max_output.map(|max| max.0),
        "encoding": model.encoding.name(),
        "fit": fit,
        "prices": model.prices.map(prices),
        "cache": model.caching.kind.name(),
        "cache_life_s": model.caching.ttl.as_secs(),
    })
}

/// The limits of one change. Readers of the JSON have the complete messages.
const MAX_LINES: usize = 400;
const MAX_LINE: usize = 2_000;

/// Returns changes as JSON. Long ones are truncated.
#[must_use]
pub fn changes(changes: &[Change]) -> Value {
    Value::Array(changes.iter().map(change).collect())
}

fn change(change: &Change) -> Value {
    let (first, last) = (change.messages.start, change.messages.end - 1);
    let which =
        if first == last { format!("messages[{first}]") } else { format!("messages[{first}] to [{last}]") };
    let (kind, title) = match &change.what {
        What::Changed(Action::Keep, own) if own.is_empty() => {
            ("changed", format!("{which}: with a text of Tidegate's"))
        }
        What::Changed(action, own) if own.is_empty() => {
            ("changed", format!("{which}: {}", participle(*action)))
        }
        What::Changed(action, own) => {
            ("changed", format!("{which}: {}, with {}", participle(*action), folding::titles(own)))
        }
        What::Removed(action) => ("removed", format!("{which}: {}", participle(*action))),
        What::Inserted(own) => ("inserted", folding::titles(own)),
    };
    let lines = change.lines.iter().take(MAX_LINES);
    json!({
        "kind": kind,
        "first": first,
        "last": last,
        "title": title,
        "tokens_before": change.before.0,
        "tokens_after": change.after.0,
        "lines": lines.map(|line| json!({ "op": line.op.mark(), "text": shortened(&line.text) })).collect::<Vec<_>>(),
        "omitted": change.lines.len().saturating_sub(MAX_LINES),
    })
}

fn participle(action: Action) -> &'static str {
    match action {
        Action::Keep => "as sent",
        Action::Mask => "masked",
        Action::Trim => "trimmed",
        Action::TrimAndUntag => "trimmed, and its tag removed",
        Action::Untag => "its tag removed",
        Action::MaskAndUntag => "masked, and its tag removed",
        Action::Fold => "covered by the summary",
        Action::Drop => "dropped for the marker",
    }
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE) {
        None => line.to_owned(),
        Some((cut, _)) => {
            format!("{} … {} more characters", &line[..cut], grouped(line[cut..].chars().count() as u64))
        }
    }
}
