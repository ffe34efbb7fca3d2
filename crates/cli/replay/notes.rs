//! Caveats about the figures.

use std::time::Duration;
use tidegate_config::Summarizer;
use tidegate_context::model_table;
use tidegate_explain::grouped;
use tidegate_replay::{Comparison, Kind, Setup};
use tidegate_tokens::Fit;

pub(super) fn of(setup: &Setup, comparison: &Comparison, gap: Duration) -> Vec<String> {
    let table = model_table(&setup.settings.models);
    let models: Vec<_> = comparison.models.iter().map(|name| (name, table.lookup(name))).collect();
    let mut notes = Vec::new();
    if comparison.untimed > 0 {
        let lives = models.iter().map(|(_, model)| model.caching.ttl);
        let life = lives.min().unwrap_or(gap);
        let relation = if gap <= life { "shorter than" } else { "longer than" };
        let who = if comparison.untimed == comparison.conversations.len() {
            "no conversation has timestamps for all of its requests".to_owned()
        } else {
            format!("{} conversations lack timestamps for some requests", comparison.untimed)
        };
        let (gap, life) = (humantime::format_duration(gap), humantime::format_duration(life));
        notes.push(format!(
            "{who}: assuming {gap} between requests, {relation} the provider's cache lifetime ({life})"
        ));
    }
    let named = |wanted: &dyn Fn(&tidegate_tokens::Model) -> bool| {
        let names = models.iter().filter(|(_, model)| wanted(model)).map(|(name, _)| format!("`{name}`"));
        names.collect::<Vec<String>>().join(", ")
    };
    let unpriced = named(&|model| model.prices.is_none());
    if !unpriced.is_empty() {
        notes.push(format!(
            "the price of {unpriced} is unknown: costs are ratios, with cached input at a tenth unless --price says otherwise \
             (set it in `[models]` of proxy.toml)"
        ));
    }
    let unknown = named(&|model| model.window.tokens().is_none());
    if !unknown.is_empty() {
        notes.push(format!("the window of {unknown} is unknown: nothing is refused or folded for its length, unless `budget.fallback_window` is set"));
    }
    let estimated = named(&|model| model.fit == Fit::Nearest);
    if !estimated.is_empty() {
        notes.push(format!(
            "the tokenizer of {estimated} is not available: a running proxy would correct the counts by what the upstream \
             reports, but a replay cannot"
        ));
    }
    if masks_nothing(setup, comparison) {
        notes.push(
            "nothing could be masked: if the agent writes the results of its tools as user messages, set \
             `observations.user_pattern` in `[context.observations]` of proxy.toml to what they begin with"
                .to_owned(),
        );
    }
    if uses_llm_summarizer(setup, comparison) {
        notes.push("an LLM summarizer cannot run offline: the built-in one wrote all summaries".to_owned());
    }
    let over = comparison.totals.first().and_then(|totals| totals.first()).map_or(0, |raw| raw.over);
    if over > 0 {
        let who =
            if over == 1 { "1 request is".to_owned() } else { format!("{} requests are", grouped(over)) };
        notes.push(format!(
            "{who} longer than the model's window without edits: raw is billed as if none had been rejected"
        ));
    }
    notes
}

/// Whether no policy that masks at every turn edited anything, in conversations long enough for it.
fn masks_nothing(setup: &Setup, comparison: &Comparison) -> bool {
    const LONG: u64 = 12;
    let Some(totals) = comparison.totals.first() else { return false };
    let mut masking =
        setup.policies.iter().zip(totals).filter(|(policy, _)| policy.kind == Kind::EveryTurn).peekable();
    let requests = totals.first().map_or(0, |raw| raw.requests);
    masking.peek().is_some()
        && requests >= LONG * comparison.conversations.len() as u64
        && masking.all(|(_, figures)| figures.edited == 0)
}

/// Whether a policy uses an LLM summarizer.
fn uses_llm_summarizer(setup: &Setup, comparison: &Comparison) -> bool {
    let mut pairs =
        setup.policies.iter().flat_map(|policy| comparison.models.iter().map(move |model| (policy, model)));
    pairs.any(|(policy, model)| {
        let context = policy.context(&setup.settings, model);
        context.is_some_and(|context| {
            let summarizer = setup.settings.summarizers.get(&context.fold.summarizer);
            context.strategy.folds() && matches!(summarizer, Some(Summarizer::Llm(_)))
        })
    })
}
