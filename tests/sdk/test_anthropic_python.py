"""anthropic-sdk-python: an agent's conversation is managed, and the client sees no difference."""

import json
import pathlib

import anthropic
import pytest

from harness import servers
from harness.anthropic_upstream import AnthropicUpstream, anthropic_upstream
from harness.process import poll
from harness.servers import Server, get_json

TURNS = 40
MODEL = "claude-opus-5"
TOOLS = [
    {
        "name": "gauge",
        "description": "Reads a tide gauge.",
        "input_schema": {"type": "object", "properties": {"step": {"type": "integer"}, "where": {"type": "string"}}},
    }
]
EVERY_TURN = "[context.mask]\nkeep = { turns = 3 }\npace = \"every_turn\"\n"
PLACEHOLDER = "[OMITTED_OBSERVATION"


def client_of(origin: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=origin, api_key="sk-ant-test", max_retries=0, timeout=60.0)


def output(step: int) -> str:
    return f"gauge {step}: " + "high water at noon, low water at six; " * 30


def run_agent(client: anthropic.Anthropic, streams: bool) -> list[dict]:
    """Lets the agent work until it answers. The last result has a cache marker, which moves at every turn."""
    messages: list[dict] = [{"role": "user", "content": "Why does berth 7 flood?"}]
    answers = []
    while True:
        request = {
            "model": MODEL,
            "max_tokens": 4000,
            "system": [{"type": "text", "text": "You look after a harbour.", "cache_control": {"type": "ephemeral"}}],
            "tools": TOOLS,
            "thinking": {"type": "adaptive"},
            "messages": messages,
        }
        if streams:
            with client.messages.stream(**request) as stream:
                answer = stream.get_final_message()
        else:
            answer = client.messages.create(**request)
        answers.append(answer.model_dump(mode="json"))
        if answer.stop_reason != "tool_use":
            return answers
        messages.append({"role": "assistant", "content": answer.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": output(block.input["step"])}
            for block in answer.content
            if block.type == "tool_use"
        ]
        for message in messages:
            if message["role"] == "user" and isinstance(message["content"], list):
                for block in message["content"]:
                    block.pop("cache_control", None)
        results[-1]["cache_control"] = {"type": "ephemeral"}
        messages.append({"role": "user", "content": results})


@pytest.fixture
def upstream():
    with anthropic_upstream(TURNS) as upstream:
        yield upstream


def through(upstream: AnthropicUpstream, directory: pathlib.Path, config: str):
    return servers.tidegate(upstream, directory, config)


@pytest.mark.parametrize("streams", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("config", [EVERY_TURN, ""], ids=["every_turn", "default"])
def test_an_agent_gets_the_same_answers(upstream, tmp_path, streams, config):
    with client_of(upstream.origin) as client:
        direct = run_agent(client, streams)
    sent = list(upstream.requests)
    upstream.requests.clear()
    with through(upstream, tmp_path, config) as tidegate, client_of(tidegate.origin) as client:
        assert run_agent(client, streams) == direct
        turns = recorded_turns(tidegate, TURNS + 1)
    assert len(direct) == len(upstream.requests) == len(turns) == TURNS + 1
    assert {turn["dialect"] for turn in turns} == {"messages"}
    assert {(turn["prompt_tokens"], turn["cached_tokens"]) for turn in turns} == {(1042, 1000)}
    masked = [json.dumps(request).count(PLACEHOLDER) for request in upstream.requests]
    if config:
        assert masked == [max(0, turn - 3) for turn in range(TURNS + 1)]
    else:
        assert masked == sorted(masked)
    for request, forwarded in zip(sent, upstream.requests, strict=True):
        assert unmasked(request) == unmasked(forwarded)


def unmasked(request: dict) -> dict:
    """A request without the contents of its results."""
    request = json.loads(json.dumps(request))
    for message in request["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_result":
                del block["content"]
    return request


def recorded_turns(tidegate: Server, count: int) -> list[dict]:
    """The turns of the only conversation, once this many are recorded."""

    def turns() -> list[dict]:
        listed = get_json(f"{tidegate.admin}/api/conversations")["conversations"]
        assert len(listed) <= 1
        return get_json(f"{tidegate.admin}/api/conversations/{listed[0]['id']}")["turns"] if listed else []

    poll(lambda: len(turns()) >= count, "the turns to be recorded", 10)
    return turns()


def test_the_providers_own_context_management_is_left_alone(upstream, tmp_path):
    history = [{"role": "user", "content": "Why does berth 7 flood?"}]
    for step in range(1, 9):
        call = {"type": "tool_use", "id": f"toolu_{step}", "name": "gauge", "input": {"step": step}}
        history.append({"role": "assistant", "content": [call]})
        history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": output(step)}]})
    with through(upstream, tmp_path, EVERY_TURN) as tidegate, client_of(tidegate.origin) as client:
        answer = client.beta.messages.with_raw_response.create(
            model=MODEL,
            max_tokens=100,
            messages=history,
            tools=TOOLS,
            betas=["context-management-2025-06-27"],
            context_management={"edits": [{"type": "clear_tool_uses_20250919"}]},
        )
    assert answer.headers["x-tidegate-edits"] == "native"
    assert upstream.requests[0]["messages"] == history
    assert upstream.headers[0]["anthropic-beta"] == "context-management-2025-06-27"


def test_refusals_are_errors_of_the_sdk(upstream, tmp_path):
    config = '[context.budget]\nmax_input = 50\nrefuse_at = "budget"\n'
    with through(upstream, tmp_path, config) as tidegate, client_of(tidegate.origin) as client:
        with pytest.raises(anthropic.UnprocessableEntityError) as refused:
            client.messages.create(model=MODEL, max_tokens=10, messages=[{"role": "user", "content": "high water " * 500}])
    assert refused.value.body["error"]["code"] == "context_budget_exceeded"
    assert not upstream.requests


def test_a_real_small_llm_gives_the_same_text(llm_sides):
    def ask(server: Server) -> tuple[str, str, int]:
        request = {
            "model": "smollm2",
            "max_tokens": 24,
            "extra_body": {"temperature": 0},
            "system": "You are a harbour pilot.",
            "messages": [{"role": "user", "content": "Name three things that move with the tide."}],
        }
        with client_of(server.origin) as client:
            whole = client.messages.create(**request)
            with client.messages.stream(**request) as stream:
                streamed = stream.get_final_message()
        return whole.content[0].text, streamed.content[0].text, whole.usage.output_tokens

    assert ask(llm_sides.through) == ask(llm_sides.direct)
    assert ask(llm_sides.direct)[2] == 24
