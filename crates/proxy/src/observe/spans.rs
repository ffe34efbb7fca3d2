//! What the spans of a request say: the plan on its own span, the call and its answer on the upstream's.

use crate::transport::body::SendBody;
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_config::strategy_name;
use tidegate_context::{Cost, Figures, Outcome};
use tidegate_engine::{FoldJob, Strategy, Verdict};
use tidegate_telemetry::names::{attribute, event};
use tidegate_telemetry::{KeyValue, RequestSpan, Semconv, UpstreamSpan, known_provider, provider};
use tidegate_wire::{Answer, Dialect, Outline};

/// The most of a conversation that a span holds, where it may hold any.
const MAX_CONTENT: usize = 64 * 1024;

/// A request that a route manages is about to go out.
pub(crate) fn routed(span: &RequestSpan, route: &str, strategy: Strategy) {
    if span.is_enabled() {
        span.set(attribute::ROUTE, route.to_owned());
        span.set(attribute::STRATEGY, strategy_name(strategy));
    }
}

/// The turn was planned, whether the request goes out or is refused.
pub(crate) fn planned(span: &RequestSpan, outcome: &Outcome) {
    if !span.is_enabled() {
        return;
    }
    let figures = &outcome.figures;
    describe(span, figures);
    if let Some(job) = outcome.deferred.as_ref().map(|deferred| &deferred.job) {
        span.event(event::FOLD, background_fold(job));
    }
    if let Some(turns) = figures.stop_hint {
        span.event(event::PLATEAU, vec![KeyValue::new(attribute::PLATEAU_TURNS, i64::from(turns))]);
    }
}

fn describe(span: &RequestSpan, figures: &Figures) {
    let verdict = match figures.verdict {
        Verdict::Fits => "fits",
        Verdict::OverBudget | Verdict::Refused => "over_budget",
    };
    span.set(attribute::VERDICT, verdict);
    for (key, figure) in [
        (attribute::TOKENS_BEFORE, figures.before.0),
        (attribute::TOKENS_AFTER, figures.after.0),
        (attribute::TOKENS_SUMMARY, figures.summary_tokens.0),
        (attribute::TOKENS_MASKED, figures.left_out.masked.0),
        (attribute::MASKED, figures.masked as u64),
        (attribute::TOKENS_TRIMMED, figures.left_out.trimmed.0),
        (attribute::TRIMMED, figures.trimmed.unwrap_or(0) as u64),
        (attribute::FOLDED, figures.folded as u64),
        (attribute::RECALLED, figures.recalled as u64),
        (attribute::TOKENS_RECALLED, figures.recalled_tokens.0),
        (attribute::DROPPED, figures.dropped as u64),
    ] {
        span.set(key, int(figure));
    }
    if let Some(budget) = figures.budget.input {
        span.set(attribute::BUDGET, int(budget.0));
    }
    if let Some(window) = figures.budget.window.tokens() {
        span.set(attribute::WINDOW, int(window.0));
    }
    if let Some(cause) = figures.trigger {
        span.set(attribute::TRIGGER, cause.name());
    }
    if let Some(made) = figures.made {
        let messages = KeyValue::new(attribute::MESSAGES, int(figures.folded as u64));
        span.event(event::FOLD, vec![KeyValue::new(attribute::FOLD_MODE, "inline"), messages.clone()]);
        if made.has_pruned {
            span.event(event::PRUNE, vec![messages]);
        }
    }
}

fn background_fold(job: &FoldJob) -> Vec<KeyValue> {
    vec![
        KeyValue::new(attribute::FOLD_MODE, "background"),
        KeyValue::new(attribute::MESSAGES, int(job.messages.len() as u64)),
        KeyValue::new(attribute::TRIGGER, job.cause.name()),
    ]
}

/// How long the client waited for us before its request went out.
pub(crate) fn overhead(span: &RequestSpan, overhead_us: u64) {
    if span.is_enabled() {
        span.set(attribute::OVERHEAD_US, int(overhead_us));
    }
}

/// What a client asks for, as far as the conventions name it.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) is_streamed: bool,
    previous_response: Option<String>,
    reasoning_level: Option<String>,
}

impl Asked {
    pub(crate) fn new(outline: &Outline) -> Asked {
        Asked {
            is_streamed: outline.stream,
            previous_response: outline.previous_response.clone(),
            reasoning_level: outline.reasoning_level.clone(),
        }
    }
}

/// The upstream is about to be called. `conversation` is the client's own id, if it gave one: the conventions allow no other.
/// `content` is given only where spans may hold content.
pub(crate) fn asked(
    call: &UpstreamSpan,
    conversation: Option<String>,
    asked: Asked,
    figures: Option<&Figures>,
    semconv: Semconv,
    content: Option<&SendBody>,
) {
    if let Some(conversation) = conversation {
        call.set(attribute::CONVERSATION_ID, conversation);
    }
    if semconv.has_new() {
        if figures.is_some_and(|figures| figures.folded > 0 && !figures.observed) {
            call.set(attribute::CONVERSATION_COMPACTED, true);
        }
        for (key, text) in [
            (attribute::PREVIOUS_RESPONSE, asked.previous_response),
            (attribute::REASONING_LEVEL, asked.reasoning_level),
        ] {
            if let Some(text) = text {
                call.set(key, text);
            }
        }
    }
    if asked.is_streamed {
        call.set(attribute::REQUEST_STREAM, true);
    }
    if let Some(messages) = content.and_then(SendBody::whole).and_then(|body| messages(&body)) {
        call.set(attribute::INPUT_MESSAGES, messages);
    }
}

/// The provider that spans and metrics name. The name of a host that is not known does not say whose protocol it speaks.
pub(crate) fn provider_of(dialect: Dialect, authority: &str) -> &'static str {
    match dialect {
        Dialect::Messages => known_provider(authority).unwrap_or("anthropic"),
        Dialect::Chat | Dialect::Responses => provider(authority),
    }
}

/// Which API was called.
pub(crate) fn spoken(call: &UpstreamSpan, dialect: Dialect, authority: &str) {
    let api = match dialect {
        Dialect::Chat => "chat_completions",
        Dialect::Responses => "responses",
        Dialect::Messages => {
            call.set(attribute::PROVIDER, provider_of(dialect, authority));
            return;
        }
    };
    call.set(attribute::OPENAI_API, api);
}

/// The answer has been read.
pub(crate) fn answered(
    call: &UpstreamSpan,
    dialect: Dialect,
    answer: &Answer,
    semconv: Semconv,
    with_content: bool,
) {
    if !call.is_enabled() {
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
        let cache_writes = [
            semconv.has_old().then_some(attribute::OLD_CACHE_WRITE_TOKENS),
            semconv.has_new().then_some(attribute::CACHE_WRITE_TOKENS),
        ];
        for key in cache_writes.into_iter().flatten().filter(|_| usage.cache_write_tokens > 0) {
            call.set(key, int(usage.cache_write_tokens));
        }
        if usage.reasoning_tokens > 0 && semconv.has_new() {
            call.set(attribute::REASONING_TOKENS, int(usage.reasoning_tokens));
        }
    }
    if answer.failed {
        call.fail("upstream_error");
    }
    if let Some(message) = dialect.answer_message(answer).filter(|_| with_content) {
        call.set(attribute::OUTPUT_MESSAGES, cut(format!("[{}]", String::from_utf8_lossy(&message))));
    }
}

/// The cost of the request is known.
pub(crate) fn cost(span: &RequestSpan, answer: Option<&Answer>, cost: Option<Cost>) {
    if !span.is_enabled() {
        return;
    }
    if let Some(usage) = answer.and_then(|answer| answer.usage) {
        span.set(attribute::TOKENS_CACHE_READ, int(usage.cached_tokens));
    }
    if let Some(cost) = cost {
        span.set(attribute::BILLED, cost.billed);
        span.set(attribute::AVOIDED, cost.avoided());
        if answer.is_none_or(|answer| answer.usage.is_none()) {
            span.set(attribute::COST_ESTIMATED, true);
        }
    }
}

fn messages(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Asked<'a> {
        #[serde(borrow, alias = "input")]
        messages: &'a RawValue,
    }
    let asked: Asked<'_> = serde_json::from_slice(body).ok()?;
    Some(cut(asked.messages.get().to_owned()))
}

fn cut(mut text: String) -> String {
    let end = (0..=MAX_CONTENT.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text.truncate(end.unwrap_or(0));
    text
}

fn int(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}
