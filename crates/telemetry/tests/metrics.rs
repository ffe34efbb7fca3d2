//! `/metrics` and the dashboard's tallies are two views of the same counts.

#![allow(clippy::unwrap_used, reason = "a panic is the failure message of a test")]

use std::time::Duration;
use tidegate_context::{Cost, Dialect, Figures, LeftOut};
use tidegate_engine::{Budget, ContextWindow, Strategy, Tokens, Verdict};
use tidegate_telemetry::{Answered, Completion, Labels, Metrics, OTHER_MODEL, Outcome, Summarized, Tally};

/// A request that every edit was planned for.
fn figures(observed: bool) -> Figures {
    let budget = Budget {
        window: ContextWindow::Known(Tokens(8_000)),
        safe: Some(Tokens(8_000)),
        output: Tokens(500),
        overhead: Tokens(500),
        input: Some(Tokens(7_000)),
        refuse_above: None,
    };
    Figures {
        dialect: Dialect::Chat,
        strategy: Strategy::Hybrid,
        observed,
        is_native: false,
        continues_upstream: false,
        verdict: Verdict::Fits,
        messages: 9,
        before: Tokens(1_000),
        after: Tokens(400),
        budget,
        masked: 3,
        trimmed: Some(2),
        folded: 2,
        dropped: 1,
        newly_left_out: 2,
        postponed: 0,
        bound: 0,
        is_left_alone: false,
        left_out: LeftOut { masked: Tokens(500), ..LeftOut::default() },
        summary_tokens: Tokens(50),
        notes_tokens: Tokens::ZERO,
        recalled: 3,
        recalled_tokens: Tokens(70),
        newly_recalled_tokens: Tokens(40),
        made: None,
        limit: None,
        trigger: None,
        blocks: None,
        stop_hint: Some(4),
    }
}

/// The sum of the samples of `name` whose labels contain `label`; `None` if there are none.
fn value(page: &str, name: &str, label: &str) -> Option<f64> {
    let samples = page.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (family, labels) = series.split_once('{').unwrap_or((series, ""));
        (family == name && labels.contains(label)).then(|| value.parse::<f64>().unwrap())
    });
    samples.reduce(|sum, more| sum + more)
}

fn total(metrics: &Metrics) -> Tally {
    metrics.tallies().iter().fold(Tally::default(), |sum, one| sum.plus(&one.tally))
}

/// Asserts that each figure has the same total on the page and in the tallies.
fn assert_agreement(metrics: &Metrics) {
    let (page, tally) = (metrics.text(), total(metrics));
    let (billed, unedited) = tally.costs().unwrap_or_default();
    for (name, label, tallied) in [
        ("tidegate_requests_total", "", tally.requests as f64),
        ("agent_context_tokens_in", "", tally.tokens_before as f64),
        ("agent_context_tokens_out", "", tally.tokens_after as f64),
        ("tidegate_edited_messages_total", "masked", tally.masked as f64),
        ("tidegate_edited_messages_total", "folded", tally.folded as f64),
        ("tidegate_edited_messages_total", "dropped", tally.dropped as f64),
        ("tidegate_prompt_tokens_total", "", tally.prompt_tokens as f64),
        ("tidegate_cached_tokens_total", "", tally.cached_tokens as f64),
        ("gen_ai_client_token_usage_sum", "output", tally.completion_tokens as f64),
        ("agent_context_estimated_cost_usd", "", billed),
        ("tidegate_cost_usd_total", "billed", billed),
        ("tidegate_cost_usd_total", "unedited", unedited),
        ("tidegate_unpriced_requests_total", "", tally.unpriced as f64),
        ("context_summary_count", "", tally.folds as f64),
        ("tidegate_summarizer_cost_usd_total", "", tally.summarizer_cost()),
        ("tidegate_degraded_total", "", tally.degraded.values().sum::<u64>() as f64),
        ("tidegate_refusals_total", "", tally.refusals.values().sum::<u64>() as f64),
        ("tidegate_overhead_seconds_count", "", tally.overhead.iter().sum::<u64>() as f64),
    ] {
        assert_eq!(value(&page, name, label).unwrap_or(0.0), tallied, "{name} {label} in\n{page}");
    }
}

fn refused(code: &'static str) -> Completion {
    Completion { outcome: Outcome::Refused, refusal: Some(code), ..Completion::default() }
}

fn unanswered(code: &'static str) -> Completion {
    Completion { outcome: Outcome::UpstreamError, upstream: Some(None), ..refused(code) }
}

/// One request of every kind.
fn count_everything(metrics: &Metrics, labels: [&Labels; 2], figures: &Figures) {
    for (labels, cost) in
        labels.into_iter().zip([Some(Cost { billed: 0.25, unedited: 0.75, planned: None }), None])
    {
        metrics.overhead(labels, Duration::from_micros(180));
        metrics.planned(labels, figures);
        let (prompt_tokens, completion_tokens, cached_tokens) = (Some(410), Some(20), Some(128));
        let answered =
            Answered { prompt_tokens, completion_tokens, cached_tokens, cost, ..Answered::default() };
        metrics.answered(labels, &answered);
        metrics.record_duration(labels, Duration::from_secs(1), Some(Duration::from_millis(300)), None);
        metrics.upstream_latency(labels, Duration::from_millis(250));
        let degraded = Some("store_timeout");
        metrics
            .completed(labels, Completion { upstream: Some(Some(200)), degraded, ..Completion::default() });
    }
    let spent = Summarized { calls: 2, input: 900, output: 60, cost: Some(0.125), is_made: true };
    metrics.summarized(labels[0], &spent);
    metrics.record_duration(labels[0], Duration::from_secs(2), None, Some("upstream_timeout".to_owned()));
    metrics.completed(labels[0], unanswered("upstream_timeout"));
    metrics.request("none", refused("no_route"));
    metrics.request("agents", Completion { outcome: Outcome::ClientClosed, ..Completion::default() });
    metrics.over_budget();
    metrics.pruned();
    metrics.summary_failed("summarizer_timeout");
    metrics.turn_uncounted("store_failed");
}

#[test]
fn page_and_tallies_agree() {
    let metrics = Metrics::default();
    ["agents", "chats"].into_iter().for_each(|route| metrics.announce(route));
    assert_agreement(&metrics);
    let labels =
        [metrics.labels("agents", "gpt-4o", "openai"), metrics.labels("agents", OTHER_MODEL, "groq")];
    count_everything(&metrics, labels.each_ref(), &figures(false));
    assert_agreement(&metrics);
    let page = metrics.text();
    assert_eq!(value(&page, "agent_context_tokens_out", "gpt-4o"), Some(400.0));
    assert_eq!(value(&page, "tidegate_edited_messages_total", "masked"), Some(6.0));
    assert_eq!(value(&page, "avg_prompt_tokens_per_turn", ""), Some(400.0));
}

#[test]
fn series_of_a_configured_route_start_at_zero() {
    let metrics = Metrics::default();
    metrics.announce("agents");
    metrics.request("none", refused("no_route"));
    let page = metrics.text();
    let series: Vec<&str> = page.lines().filter(|line| line.contains("route=\"")).collect();
    assert_eq!(
        series,
        [
            r#"agent_context_estimated_cost_usd{model="other",route="agents"} 0"#,
            r#"agent_context_masked_observation_tokens{model="other",route="agents"} 0"#,
            r#"agent_context_summary_tokens{model="other",route="agents"} 0"#,
            r#"agent_context_tokens_in{model="other",route="agents"} 0"#,
            r#"agent_context_tokens_out{model="other",route="agents"} 0"#,
            r#"agent_context_turn_count{model="other",route="agents"} 0"#,
            r#"tidegate_cached_tokens_total{model="other",route="agents"} 0"#,
            r#"tidegate_edited_messages_total{edit="dropped",route="agents"} 0"#,
            r#"tidegate_edited_messages_total{edit="folded",route="agents"} 0"#,
            r#"tidegate_edited_messages_total{edit="masked",route="agents"} 0"#,
            r#"tidegate_edited_messages_total{edit="recalled",route="agents"} 0"#,
            r#"tidegate_edited_messages_total{edit="trimmed",route="agents"} 0"#,
            r#"tidegate_prompt_tokens_total{model="other",route="agents"} 0"#,
            r#"tidegate_refusals_total{code="context_budget_exceeded",route="agents"} 0"#,
            r#"tidegate_refusals_total{code="max_cost_exceeded",route="agents"} 0"#,
            r#"tidegate_refusals_total{code="max_turns_exceeded",route="agents"} 0"#,
            r#"tidegate_refusals_total{code="no_route",route="none"} 1"#,
            r#"tidegate_refusals_total{code="overloaded",route="agents"} 0"#,
            r#"tidegate_refusals_total{code="store_unavailable",route="agents"} 0"#,
            r#"tidegate_refusals_total{code="upstream_timeout",route="agents"} 0"#,
            r#"tidegate_refusals_total{code="upstream_unreachable",route="agents"} 0"#,
            r#"tidegate_requests_total{outcome="answered",route="agents"} 0"#,
            r#"tidegate_requests_total{outcome="client_closed",route="agents"} 0"#,
            r#"tidegate_requests_total{outcome="refused",route="agents"} 0"#,
            r#"tidegate_requests_total{outcome="refused",route="none"} 1"#,
            r#"tidegate_requests_total{outcome="rescued",route="agents"} 0"#,
            r#"tidegate_requests_total{outcome="upstream_broke",route="agents"} 0"#,
            r#"tidegate_requests_total{outcome="upstream_error",route="agents"} 0"#,
            r#"tidegate_trimmed_tokens_total{model="other",route="agents"} 0"#,
            r#"tidegate_unpriced_requests_total{route="agents"} 0"#,
            r#"tidegate_upstream_rate_limited_total{route="agents"} 0"#,
            r#"tidegate_upstream_responses_total{route="agents",status="2xx"} 0"#,
            r#"tidegate_upstream_responses_total{route="agents",status="3xx"} 0"#,
            r#"tidegate_upstream_responses_total{route="agents",status="4xx"} 0"#,
            r#"tidegate_upstream_responses_total{route="agents",status="5xx"} 0"#,
            r#"tidegate_upstream_responses_total{route="agents",status="none"} 0"#,
        ]
    );
}

#[test]
fn unlabelled_counters_start_at_zero() {
    let page = Metrics::default().text();
    for name in [
        "agent_context_summary_calls_total",
        "avg_prompt_tokens_per_turn",
        "context_overflow_reject_count",
        "context_prune_count",
        "context_summary_count",
        "tidegate_stop_hints_total",
        "tidegate_facts_added_total",
        "tidegate_summarizer_cost_usd_total",
    ] {
        assert_eq!(value(&page, name, ""), Some(0.0), "{name} in\n{page}");
    }
    for name in
        ["tidegate_summarizer_tokens_total", "tidegate_summarizer_failures_total", "tidegate_cost_usd_total"]
    {
        assert_eq!(value(&page, name, ""), None, "{name} in\n{page}");
    }
}

#[test]
fn observed_requests_count_as_forwarded_unedited() {
    let metrics = Metrics::default();
    metrics.announce("agents");
    let labels =
        [metrics.labels("agents", "gpt-4o", "openai"), metrics.labels("agents", OTHER_MODEL, "groq")];
    count_everything(&metrics, labels.each_ref(), &figures(true));
    assert_agreement(&metrics);
    let page = metrics.text();
    for (name, label, expected) in [
        ("agent_context_tokens_out", "", 2_000.0),
        ("avg_prompt_tokens_per_turn", "", 1_000.0),
        ("agent_context_masked_observation_tokens", "", 0.0),
        ("agent_context_summary_tokens", "", 0.0),
        ("tidegate_edited_messages_total", "", 0.0),
        ("agent_context_turn_count", "", 2.0),
        // The client is given the hint whether or not the request was edited.
        ("tidegate_stop_hints_total", "", 2.0),
    ] {
        assert_eq!(value(&page, name, label), Some(expected), "{name} in\n{page}");
    }
}
