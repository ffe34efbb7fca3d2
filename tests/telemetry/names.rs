//! The metric names that operators rely on, on `/metrics` and at a collector.

use super::scene::{MASKING, ask, page, traced, until_counted, upstream};
use crate::support::chat::{body, chat};
use crate::support::metrics::value;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::{OtlpReceiver, until};

const NAMES: [&str; 23] = [
    "agent_context_tokens_in",
    "agent_context_tokens_out",
    "agent_context_masked_observation_tokens",
    "agent_context_summary_tokens",
    "agent_context_summary_calls_total",
    "agent_context_estimated_cost_usd",
    "agent_context_turn_count",
    "context_summary_count",
    "context_prune_count",
    "context_overflow_reject_count",
    "avg_prompt_tokens_per_turn",
    "gen_ai.client.token.usage",
    "gen_ai.client.operation.duration",
    "gen_ai.client.operation.time_to_first_chunk",
    "gen_ai.client.inference.duration",
    "gen_ai.client.inference.time_to_first_chunk",
    "gen_ai.client.inference.usage.input_tokens",
    "gen_ai.client.inference.usage.output_tokens",
    "gen_ai.client.inference.usage.cache_read.input_tokens",
    "gen_ai.client.inference.usage.cache_write.input_tokens",
    "gen_ai.client.inference.usage.reasoning.output_tokens",
    "gen_ai.client.inference.operation.input_tokens",
    "gen_ai.client.inference.operation.output_tokens",
];

#[tokio::test]
async fn every_name_is_on_the_metrics_page() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(MASKING, &upstream).await;
    // Counters start at zero, so that the first increment is visible.
    let before = page(&tidegate).await;
    for name in NAMES.iter().filter(|name| !name.contains('.')) {
        assert_eq!(value(&before, name, &[]), Some(0.0), "{name} in\n{before}");
    }
    let reply = ask(&tidegate, "n", body(&chat(3)), &[]).await;
    let edits = reply.header("x-tidegate-edits").unwrap();
    let masked: f64 = edits.strip_prefix("masked=").unwrap().split(',').next().unwrap().parse().unwrap();
    assert!(masked > 0.0);
    let page = until_counted(&tidegate, 1.0).await;
    for name in NAMES {
        let name = match name.replace('.', "_") {
            name if name.ends_with("duration") || name.ends_with("chunk") => name + "_seconds",
            name if name.contains("_usage_") => name + "_total",
            name => name,
        };
        let kind = page.lines().find_map(|line| line.strip_prefix(&format!("# TYPE {name} ")));
        assert!(kind.is_some(), "{name} in\n{page}");
    }
    for (name, labels, wanted) in [
        ("tidegate_requests_total", &["route=\"default\"", "outcome=\"answered\""][..], 1.0),
        ("agent_context_turn_count", &["route=\"default\"", "model=\"gpt-4o\""][..], 1.0),
        ("tidegate_prompt_tokens_total", &["model=\"gpt-4o\""][..], 2_000.0),
        ("tidegate_cached_tokens_total", &["model=\"gpt-4o\""][..], 1_024.0),
        ("tidegate_overhead_seconds_count", &["route=\"default\""][..], 1.0),
        (
            "gen_ai_client_token_usage_sum",
            &["gen_ai_token_type=\"input\"", "gen_ai_request_model=\"gpt-4o\""][..],
            2_000.0,
        ),
        ("gen_ai_client_token_usage_bucket", &["gen_ai_token_type=\"input\"", "le=\"4096\""][..], 1.0),
        ("gen_ai_client_token_usage_bucket", &["gen_ai_token_type=\"input\"", "le=\"1024\""][..], 0.0),
        ("gen_ai_client_operation_duration_seconds_count", &["gen_ai_provider_name=\"openai\""][..], 1.0),
        ("gen_ai_client_inference_duration_seconds_count", &["gen_ai_provider_name=\"openai\""][..], 1.0),
        (
            "gen_ai_client_inference_usage_input_tokens_total",
            &["gen_ai_request_model=\"gpt-4o\""][..],
            2_000.0,
        ),
        ("gen_ai_client_inference_usage_cache_read_input_tokens_total", &[][..], 1_024.0),
        ("gen_ai_client_inference_operation_input_tokens_bucket", &["le=\"4096\""][..], 1.0),
        ("tidegate_edited_messages_total", &["edit=\"masked\""][..], masked),
    ] {
        assert_eq!(value(&page, name, labels), Some(wanted), "{name} in\n{page}");
    }
    let after = value(&page, "agent_context_tokens_out", &[]);
    assert_eq!(value(&page, "avg_prompt_tokens_per_turn", &[]), after);
    assert!(value(&page, "process_resident_memory_bytes", &[]).unwrap() > 1e6);
}

#[tokio::test]
async fn every_name_reaches_a_collector() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let tidegate = traced(MASKING, &upstream, &collector.http_url()).start().await;
    ask(&tidegate, "n", body(&chat(3)), &[]).await;
    collector.metrics(&NAMES).await;
    collector.metrics(&["tidegate_requests_total", "tidegate_overhead", "tidegate_spans_total"]).await;
}

#[tokio::test]
async fn a_refusal_is_counted_by_its_code() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(&format!("{MASKING}[context.budget]\nmax_input = 50\n"), &upstream).await;
    assert_eq!(ask(&tidegate, "n", body(&chat(3)), &[]).await.status, 422);
    let page = page(&tidegate).await;
    let labels = ["code=\"context_budget_exceeded\"", "route=\"default\""];
    assert_eq!(value(&page, "tidegate_refusals_total", &labels), Some(1.0), "{page}");
    assert_eq!(value(&page, "context_overflow_reject_count", &[]), Some(1.0));
    let failed = value(
        &page,
        "gen_ai_client_operation_duration_seconds_count",
        &["error_type=\"context_budget_exceeded\""],
    );
    assert_eq!(failed, Some(1.0));
}

#[tokio::test]
async fn the_conventions_are_old_or_new_as_configured() {
    const OLD: &str = "gen_ai_client_token_usage_sum";
    const NEW: &str = "gen_ai_client_inference_usage_input_tokens_total";
    for (semconv, has_old, has_new) in [("old", true, false), ("new", false, true), ("both", true, true)] {
        let upstream = upstream().await;
        let settings = format!("{MASKING}[telemetry]\nsemconv = \"{semconv}\"\n");
        let tidegate = Tidegate::start(&settings, &upstream).await;
        ask(&tidegate, "n", body(&chat(1)), &[]).await;
        until("it is counted", async || {
            value(&page(&tidegate).await, "tidegate_prompt_tokens_total", &["gpt-4o"]) == Some(2_000.0)
        })
        .await;
        let page = page(&tidegate).await;
        assert_eq!(value(&page, OLD, &["input"]).is_some(), has_old, "{semconv}\n{page}");
        assert_eq!(value(&page, NEW, &[]).is_some(), has_new, "{semconv}\n{page}");
        assert_eq!(page.contains("gen_ai_client_operation_duration"), has_old, "{semconv}\n{page}");
        assert_eq!(page.contains("gen_ai_client_inference_duration"), has_new, "{semconv}\n{page}");
    }
}
