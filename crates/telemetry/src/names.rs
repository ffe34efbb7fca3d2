//! Every public name of headers, spans and metrics.

/// Headers of requests and answers.
pub mod header {
    pub const REQUEST_ID: &str = "x-request-id";
    /// In a request: forward it unedited.
    pub const BYPASS: &str = "x-tidegate-bypass";
    pub const CONVERSATION: &str = "x-tidegate-conversation";
    pub const ROUTE: &str = "x-tidegate-route";
    pub const STRATEGY: &str = "x-tidegate-strategy";
    pub const TOKENS_BEFORE: &str = "x-tidegate-tokens-before";
    pub const TOKENS_AFTER: &str = "x-tidegate-tokens-after";
    pub const BUDGET: &str = "x-tidegate-budget";
    pub const EDITS: &str = "x-tidegate-edits";
    /// Who keeps the messages before those of the request, if that is neither the client nor the proxy.
    pub const HISTORY: &str = "x-tidegate-history";
    pub const TRIGGER: &str = "x-tidegate-trigger";
    pub const STOP_HINT: &str = "x-tidegate-stop-hint";
    pub const DEGRADED: &str = "x-tidegate-degraded";
    pub const OVERHEAD: &str = "x-tidegate-overhead-us";
    /// In an answer: nothing of the plan was applied.
    pub const OBSERVE: &str = "x-tidegate-observe";
    /// In an answer: the code with which the request would have been refused.
    pub const WOULD_REFUSE: &str = "x-tidegate-would-refuse";
    /// In an answer: the upstream's error after which the request was shortened and sent again.
    pub const RESCUED: &str = "x-tidegate-rescued";
}

/// Spans of the steps of a request, and of a fold.
pub mod span {
    pub const RECEIVE: &str = "receive";
    pub const ROUTE: &str = "route";
    pub const IDENTIFY: &str = "identify";
    pub const RECALL: &str = "recall";
    pub const RESTORE: &str = "restore";
    pub const REWRITE: &str = "rewrite";
    pub const FORWARD: &str = "forward";
    pub const RELAY: &str = "relay";
    pub const REMEMBER: &str = "remember";
    /// Making a summary: within `rewrite` if the request waits for it, else after the answer.
    pub const FOLD: &str = "fold";
}

/// Events of a request's SERVER span.
pub mod event {
    pub const FOLD: &str = "tidegate.fold";
    pub const PRUNE: &str = "tidegate.prune";
    pub const REFUSED: &str = "tidegate.refused";
    pub const PLATEAU: &str = "tidegate.plateau";
}

/// Attributes of spans. The `gen_ai.*` names are those of OpenTelemetry's semantic conventions, which are still in development. They
/// are repeated here because the crate that defines them as constants marks them as deprecated.
pub mod attribute {
    pub const METHOD: &str = "http.request.method";
    pub const PATH: &str = "url.path";
    pub const HTTP_ROUTE: &str = "http.route";
    pub const STATUS: &str = "http.response.status_code";
    pub const ERROR_TYPE: &str = "error.type";
    pub const SERVER_ADDRESS: &str = "server.address";
    pub const SERVER_PORT: &str = "server.port";

    pub const OPERATION: &str = "gen_ai.operation.name";
    pub const PROVIDER: &str = "gen_ai.provider.name";
    /// Which of OpenAI's APIs was called.
    pub const OPENAI_API: &str = "openai.api.type";
    pub const REQUEST_MODEL: &str = "gen_ai.request.model";
    /// Only under the new conventions, as is the level of reasoning.
    pub const PREVIOUS_RESPONSE: &str = "gen_ai.request.previous_response.id";
    pub const REASONING_LEVEL: &str = "gen_ai.request.reasoning.level";
    pub const REQUEST_STREAM: &str = "gen_ai.request.stream";
    /// Only an id that the client gave.
    pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";
    /// Only ever `true`, and only under the new conventions: a summary stands for earlier messages.
    pub const CONVERSATION_COMPACTED: &str = "gen_ai.conversation.compacted";
    pub const RESPONSE_ID: &str = "gen_ai.response.id";
    pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
    pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
    pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    pub const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
    pub const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_write.input_tokens";
    /// What the conventions called the same until autumn 2026.
    pub const OLD_CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
    pub const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
    pub const TOKEN_TYPE: &str = "gen_ai.token.type";
    /// Only if `telemetry.content` is on.
    pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
    pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";

    pub const ROUTE: &str = "tidegate.route";
    pub const UPSTREAM: &str = "tidegate.upstream";
    pub const REQUEST_ID: &str = "tidegate.request_id";
    pub const OUTCOME: &str = "tidegate.outcome";
    pub const REASON: &str = "tidegate.reason";
    pub const DEGRADED: &str = "tidegate.degraded";
    pub const STRATEGY: &str = "tidegate.strategy";
    pub const VERDICT: &str = "tidegate.verdict";
    pub const TRIGGER: &str = "tidegate.trigger";
    pub const TOKENS_BEFORE: &str = "tidegate.tokens.before";
    pub const TOKENS_AFTER: &str = "tidegate.tokens.after";
    pub const TOKENS_MASKED: &str = "tidegate.tokens.masked";
    pub const TOKENS_TRIMMED: &str = "tidegate.tokens.trimmed";
    pub const TOKENS_SUMMARY: &str = "tidegate.tokens.summary";
    pub const TOKENS_RECALLED: &str = "tidegate.tokens.recalled";
    pub const TOKENS_CACHE_READ: &str = "tidegate.tokens.cache_read";
    pub const MASKED: &str = "tidegate.messages.masked";
    pub const TRIMMED: &str = "tidegate.messages.trimmed";
    pub const FOLDED: &str = "tidegate.messages.folded";
    pub const RECALLED: &str = "tidegate.messages.recalled";
    pub const DROPPED: &str = "tidegate.messages.dropped";
    pub const MESSAGES: &str = "tidegate.messages";
    pub const BUDGET: &str = "tidegate.budget";
    pub const WINDOW: &str = "tidegate.window";
    pub const OVERHEAD_US: &str = "tidegate.overhead_us";
    pub const UPSTREAM_MS: &str = "tidegate.upstream_ms";
    pub const RETRY_AFTER: &str = "tidegate.retry_after_s";
    pub const BILLED: &str = "tidegate.cost.billed_usd";
    pub const AVOIDED: &str = "tidegate.cost.avoided_usd";
    /// Set if the upstream reported no usage, so that the cost follows from our own count.
    pub const COST_ESTIMATED: &str = "tidegate.cost.estimated";
    pub const FOLD_MODE: &str = "tidegate.fold.mode";
    pub const FOLD_OUTCOME: &str = "tidegate.fold.outcome";
    pub const SUMMARIZER: &str = "tidegate.summarizer";
    pub const PLATEAU_TURNS: &str = "tidegate.plateau.turns";
}

/// Metrics, by their OpenTelemetry names. On `/metrics` dots become underscores, and the units `s` and `By` become suffixes.
pub mod metric {
    pub const TOKENS_IN: &str = "agent_context_tokens_in";
    pub const TOKENS_OUT: &str = "agent_context_tokens_out";
    pub const MASKED_TOKENS: &str = "agent_context_masked_observation_tokens";
    pub const TRIMMED_TOKENS: &str = "tidegate_trimmed_tokens_total";
    pub const SUMMARY_TOKENS: &str = "agent_context_summary_tokens";
    pub const SUMMARY_CALLS: &str = "agent_context_summary_calls_total";
    pub const ESTIMATED_COST: &str = "agent_context_estimated_cost_usd";
    pub const TURNS: &str = "agent_context_turn_count";
    pub const SUMMARIES: &str = "context_summary_count";
    pub const PRUNES: &str = "context_prune_count";
    pub const OVERFLOWS: &str = "context_overflow_reject_count";
    pub const AVERAGE_PROMPT: &str = "avg_prompt_tokens_per_turn";
    pub const OLD_TOKEN_USAGE: &str = "gen_ai.client.token.usage";
    pub const OLD_DURATION: &str = "gen_ai.client.operation.duration";
    pub const OLD_FIRST_CHUNK: &str = "gen_ai.client.operation.time_to_first_chunk";
    pub const DURATION: &str = "gen_ai.client.inference.duration";
    pub const FIRST_CHUNK: &str = "gen_ai.client.inference.time_to_first_chunk";
    pub const INPUT_TOKENS: &str = "gen_ai.client.inference.usage.input_tokens";
    pub const OUTPUT_TOKENS: &str = "gen_ai.client.inference.usage.output_tokens";
    pub const CACHE_READ_TOKENS: &str = "gen_ai.client.inference.usage.cache_read.input_tokens";
    pub const CACHE_WRITE_TOKENS: &str = "gen_ai.client.inference.usage.cache_write.input_tokens";
    pub const REASONING_TOKENS: &str = "gen_ai.client.inference.usage.reasoning.output_tokens";
    pub const INPUT_SIZE: &str = "gen_ai.client.inference.operation.input_tokens";
    pub const OUTPUT_SIZE: &str = "gen_ai.client.inference.operation.output_tokens";
    pub const REQUESTS: &str = "tidegate_requests_total";
    pub const RESPONSES: &str = "tidegate_upstream_responses_total";
    pub const RATE_LIMITED: &str = "tidegate_upstream_rate_limited_total";
    pub const UPSTREAM_LATENCY: &str = "tidegate_upstream_latency";
    pub const REFUSALS: &str = "tidegate_refusals_total";
    pub const DEGRADED: &str = "tidegate_degraded_total";
    pub const EDITED: &str = "tidegate_edited_messages_total";
    pub const RECALLED_TOKENS: &str = "tidegate_recalled_tokens_total";
    pub const STOP_HINTS: &str = "tidegate_stop_hints_total";
    pub const PROMPT_TOKENS: &str = "tidegate_prompt_tokens_total";
    pub const CACHED_TOKENS: &str = "tidegate_cached_tokens_total";
    pub const COST: &str = "tidegate_cost_usd_total";
    pub const UNPRICED: &str = "tidegate_unpriced_requests_total";
    pub const OVERHEAD: &str = "tidegate_overhead";
    pub const FACTS_ADDED: &str = "tidegate_facts_added_total";
    pub const SUMMARIZER_TOKENS: &str = "tidegate_summarizer_tokens_total";
    pub const SUMMARIZER_COST: &str = "tidegate_summarizer_cost_usd_total";
    pub const SUMMARIZER_FAILURES: &str = "tidegate_summarizer_failures_total";
    pub const RECALL_CALLS: &str = "tidegate_recall_calls_total";
    pub const STORE_SIZE: &str = "tidegate_store";
    pub const STORE_EVICTED: &str = "tidegate_store_evicted_total";
    pub const UNCOUNTED: &str = "tidegate_store_uncounted_total";
    pub const OBSERVED_TOKENS: &str = "tidegate_observed_tokens_total";
    pub const OBSERVED_COST: &str = "tidegate_observed_cost_usd_total";
    pub const OBSERVED_REFUSALS: &str = "tidegate_observed_refusals_total";
    pub const LEARNT_WINDOW: &str = "tidegate_learnt_window_tokens";
    pub const ARCHIVE_QUEUED: &str = "tidegate_archive_queued";
    pub const ARCHIVE_RECORDS: &str = "tidegate_archive_records_total";
    pub const ARCHIVE_CONNECTED: &str = "tidegate_archive_connected";
    pub const MEMORY_IN_USE: &str = "tidegate_memory";
    pub const MEMORY_LIMIT: &str = "tidegate_memory_limit";
    pub const IN_FLIGHT: &str = "tidegate_requests_in_flight";
    pub const CONNECTIONS: &str = "tidegate_connections";
    pub const QUEUED_WORK: &str = "tidegate_queued_work";
    pub const OVERLOAD: &str = "tidegate_overload_total";
    pub const SPANS: &str = "tidegate_spans_total";
    pub const BUILD: &str = "tidegate_build_info";
    pub const MEMORY: &str = "process_resident_memory";
    pub const START: &str = "process_start_time";
}

/// Labels of metrics. Their values are never chosen by clients.
pub mod label {
    pub const ROUTE: &str = "route";
    pub const MODEL: &str = "model";
    pub const OUTCOME: &str = "outcome";
    /// The class of a status: `2xx`, `3xx`, `4xx`, `5xx`, or `none` without an answer.
    pub const STATUS: &str = "status";
    pub const CODE: &str = "code";
    pub const REASON: &str = "reason";
    pub const EDIT: &str = "edit";
    pub const RESULT: &str = "result";
    pub const KIND: &str = "kind";
    pub const TYPE: &str = "type";
    pub const VERSION: &str = "version";
    pub const UPSTREAM: &str = "upstream";
    pub const LIMIT: &str = "limit";
}
