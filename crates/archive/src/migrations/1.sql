-- Every message once, as the client or the upstream wrote it.
--
-- `raw_message` is text: jsonb would sort members, normalize numbers and reject some escapes that JSON allows. Use
-- `raw_message::json` to query into it.
CREATE TABLE IF NOT EXISTS agent_context_turns (
    id uuid PRIMARY KEY,
    parent_id uuid,
    conversation_id text NOT NULL,
    conversation_key text NOT NULL,
    tenant text NOT NULL,
    route text NOT NULL,
    turn_number bigint,
    position bigint NOT NULL,
    role text NOT NULL,
    raw_message text NOT NULL,
    estimated_tokens bigint,
    created_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS agent_context_turns_conversation ON agent_context_turns (conversation_id, created_at);
CREATE INDEX IF NOT EXISTS agent_context_turns_created ON agent_context_turns USING brin (created_at);

-- Every summary that replaced messages. The message ids refer to `agent_context_turns`.
CREATE TABLE IF NOT EXISTS session_summaries (
    id uuid PRIMARY KEY,
    session_id text NOT NULL,
    from_message_id uuid NOT NULL,
    to_message_id uuid NOT NULL,
    summary_text text NOT NULL,
    created_at timestamptz NOT NULL,
    conversation_key text NOT NULL,
    tenant text NOT NULL,
    route text NOT NULL,
    key_facts jsonb NOT NULL,
    decisions jsonb NOT NULL,
    open_questions jsonb NOT NULL,
    action_items jsonb NOT NULL,
    goals jsonb NOT NULL,
    artifacts jsonb NOT NULL,
    author text NOT NULL,
    model text,
    estimated_tokens bigint,
    covered_messages bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS session_summaries_session ON session_summaries (session_id, created_at);
CREATE INDEX IF NOT EXISTS session_summaries_created ON session_summaries USING brin (created_at);

-- The decisions about every request, and its outcome.
CREATE TABLE IF NOT EXISTS turn_context_audit (
    id uuid PRIMARY KEY,
    turn_id uuid NOT NULL,
    session_id text NOT NULL,
    model_alias text NOT NULL,
    model_context_limit bigint NOT NULL,
    input_budget bigint NOT NULL,
    estimated_input_tokens_before bigint NOT NULL,
    estimated_input_tokens_after_summary bigint NOT NULL,
    estimated_input_tokens_after_prune bigint NOT NULL,
    summary_triggered boolean NOT NULL,
    prune_triggered boolean NOT NULL,
    overflow_rejected boolean NOT NULL,
    created_at timestamptz NOT NULL,
    conversation_key text NOT NULL,
    tenant text NOT NULL,
    route text NOT NULL,
    strategy text NOT NULL,
    trigger text,
    reported_prompt_tokens bigint,
    reported_completion_tokens bigint,
    reported_cached_tokens bigint,
    cost_usd double precision,
    status integer NOT NULL,
    degraded text
);
CREATE INDEX IF NOT EXISTS turn_context_audit_session ON turn_context_audit (session_id, created_at);
CREATE INDEX IF NOT EXISTS turn_context_audit_created ON turn_context_audit USING brin (created_at);
