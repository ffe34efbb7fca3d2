//! What the spans of a request say: the plan on its own, the call and its answer on the upstream's.

use crate::body::SendBody;
use crate::reply::Refusal;
use crate::rewrite::{Made, Rewritten};
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_config::{Route, strategy_name};
use tidegate_engine::{Plan, Strategy, Verdict};
use tidegate_telemetry::names::{attribute, event};
use tidegate_telemetry::{Call, Cost, Journey, KeyValue};
use tidegate_wire::{Answer, Dialect};

/// As much of a conversation as a span holds, where it may hold any.
const MOST_CONTENT: usize = 64 * 1024;

pub(crate) fn planned(
    journey: &Journey,
    route: &Route,
    strategy: Strategy,
    rewritten: Option<&Rewritten>,
    overhead_us: u64,
) {
    if !journey.is_on() {
        return;
    }
    describe_route(journey, route, strategy);
    journey.set(attribute::OVERHEAD_US, int(overhead_us));
    let Some(rewritten) = rewritten else { return };
    describe_plan(journey, &rewritten.plan);
    journey.set(attribute::TOKENS_MASKED, int(rewritten.left_out.masked.0));
    made(journey, &rewritten.plan, rewritten.made);
    if let Some(later) = &rewritten.later {
        let messages = KeyValue::new(attribute::MESSAGES, length(later.job.messages.len()));
        journey.event(
            event::FOLD,
            vec![
                KeyValue::new(attribute::FOLD_MODE, "background"),
                messages,
                KeyValue::new(attribute::TRIGGER, later.job.cause.name()),
            ],
        );
    }
    if let Some(turns) = rewritten.stop_hint {
        journey.event(event::PLATEAU, vec![KeyValue::new(attribute::PLATEAU_TURNS, i64::from(turns))]);
    }
}

/// A request that does not fit has a plan all the same.
pub(crate) fn refused(journey: &Journey, route: &Route, strategy: Strategy, refusal: &Refusal) {
    if !journey.is_on() {
        return;
    }
    describe_route(journey, route, strategy);
    if let Refusal::OverBudget(over) = refusal {
        describe_plan(journey, &over.plan);
        made(journey, &over.plan, over.made);
    }
}

fn describe_route(journey: &Journey, route: &Route, strategy: Strategy) {
    journey.set(attribute::ROUTE, route.name.clone());
    journey.set(attribute::STRATEGY, strategy_name(strategy));
}

fn describe_plan(journey: &Journey, plan: &Plan) {
    let folded = plan.folded.as_ref();
    let verdict = match plan.verdict {
        Verdict::Fits => "fits",
        Verdict::OverBudget => "over_budget",
    };
    journey.set(attribute::VERDICT, verdict);
    for (key, figure) in [
        (attribute::TOKENS_BEFORE, plan.before.0),
        (attribute::TOKENS_AFTER, plan.after.0),
        (attribute::TOKENS_SUMMARY, folded.map_or(0, |folded| folded.tokens.0)),
        (attribute::MASKED, plan.masked.len() as u64),
        (attribute::FOLDED, folded.map_or(0, |folded| folded.removed.len()) as u64),
        (attribute::DROPPED, plan.dropped.len() as u64),
        (attribute::BUDGET, plan.budget.input.0),
        (attribute::WINDOW, plan.budget.window.0),
    ] {
        journey.set(key, int(figure));
    }
    if let Some(cause) = plan.cause {
        journey.set(attribute::TRIGGER, cause.name());
    }
}

/// A summary that the request waited for.
fn made(journey: &Journey, plan: &Plan, made: Option<Made>) {
    let Some(made) = made else { return };
    let messages = plan.folded.as_ref().map_or(0, |folded| folded.removed.len());
    let messages = KeyValue::new(attribute::MESSAGES, length(messages));
    journey.event(event::FOLD, vec![KeyValue::new(attribute::FOLD_MODE, "inline"), messages.clone()]);
    if made.has_pruned {
        journey.event(event::PRUNE, vec![messages]);
    }
}

/// What is known of a call before its answer. `said` is there only where spans may hold what was said.
pub(crate) fn asked(call: &Call, conversation: Option<String>, is_streamed: bool, said: Option<&SendBody>) {
    if let Some(conversation) = conversation {
        call.set(attribute::CONVERSATION_ID, conversation);
    }
    if is_streamed {
        call.set(attribute::REQUEST_STREAM, true);
    }
    if let Some(messages) = said.and_then(SendBody::whole).and_then(|body| messages(&body)) {
        call.set(attribute::INPUT_MESSAGES, messages);
    }
}

/// What its answer says.
pub(crate) fn answered(call: &Call, answer: &Answer, with_content: bool) {
    if !call.is_on() {
        return;
    }
    if let Some(id) = &answer.id {
        call.set(attribute::RESPONSE_ID, id.clone());
    }
    if let Some(model) = &answer.model {
        call.set(attribute::RESPONSE_MODEL, model.clone());
    }
    if !answer.finish_reasons.is_empty() {
        call.set_texts(attribute::FINISH_REASONS, &answer.finish_reasons);
    }
    if let Some(usage) = answer.usage {
        call.set(attribute::INPUT_TOKENS, int(usage.prompt_tokens));
        call.set(attribute::OUTPUT_TOKENS, int(usage.completion_tokens));
        call.set(attribute::CACHE_READ_TOKENS, int(usage.cached_tokens));
    }
    if answer.failed {
        call.fail("upstream_error");
    }
    if let Some(message) = Dialect::Chat.answer_message(answer).filter(|_| with_content) {
        call.set(attribute::OUTPUT_MESSAGES, cut(format!("[{}]", String::from_utf8_lossy(&message))));
    }
}

/// What it was worth.
pub(crate) fn cost(journey: &Journey, answer: Option<&Answer>, cost: Option<Cost>) {
    if !journey.is_on() {
        return;
    }
    if let Some(usage) = answer.and_then(|answer| answer.usage) {
        journey.set(attribute::TOKENS_CACHE_READ, int(usage.cached_tokens));
    }
    if let Some(cost) = cost {
        journey.set(attribute::BILLED, cost.billed);
        journey.set(attribute::AVOIDED, cost.avoided());
    }
}

fn messages(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Asked<'a> {
        #[serde(borrow)]
        messages: &'a RawValue,
    }
    let asked: Asked<'_> = serde_json::from_slice(body).ok()?;
    Some(cut(asked.messages.get().to_owned()))
}

fn cut(mut text: String) -> String {
    let end = (0..=MOST_CONTENT.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text.truncate(end.unwrap_or(0));
    text
}

fn int(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}

fn length(messages: usize) -> i64 {
    i64::try_from(messages).unwrap_or(i64::MAX)
}
