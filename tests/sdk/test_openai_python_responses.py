"""openai-python, responses: an agent's conversation is managed, and the client sees no difference."""

import json
import pathlib

import openai
import pytest

from harness import servers
from harness.process import poll
from harness.responses_upstream import ResponsesUpstream, responses_upstream
from harness.servers import Server, get_json

TURNS = 40
MODEL = "gpt-5"
TOOLS = [
    {
        "type": "function",
        "name": "gauge",
        "description": "Reads a tide gauge.",
        "strict": False,
        "parameters": {"type": "object", "properties": {"step": {"type": "integer"}}},
    }
]
EVERY_TURN = "[context.mask]\nkeep = { turns = 3 }\npace = \"every_turn\"\n"
PLACEHOLDER = "[OMITTED_OBSERVATION"


def client_of(origin: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{origin}/v1", api_key="sk-test", max_retries=0, timeout=60.0)


def output(step: int) -> str:
    return f"gauge {step}: " + "high water at noon, low water at six; " * 30


def ask(client: openai.OpenAI, streams: bool, **request):
    if not streams:
        return client.responses.create(model=MODEL, tools=TOOLS, **request)
    with client.responses.stream(model=MODEL, tools=TOOLS, **request) as stream:
        return stream.get_final_response()


def results_of(response) -> list[dict]:
    calls = [item for item in response.output if item.type == "function_call"]
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": output(json.loads(call.arguments)["step"])}
        for call in calls
    ]


def run_agent(client: openai.OpenAI, streams: bool) -> list[dict]:
    """Lets the agent work until it answers. Nothing is stored, so everything is sent again."""
    items: list = [{"role": "user", "content": "Why does berth 7 flood?"}]
    answers = []
    while True:
        response = ask(client, streams, input=items, instructions="You look after a harbour.", store=False)
        answers.append(response.model_dump(mode="json"))
        results = results_of(response)
        if not results:
            return answers
        items += response.output
        items += results


@pytest.fixture
def upstream():
    with responses_upstream(TURNS) as upstream:
        yield upstream
    assert upstream.problems == []


def through(upstream: ResponsesUpstream, directory: pathlib.Path, config: str):
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
    assert {turn["dialect"] for turn in turns} == {"responses"}
    assert {(turn["prompt_tokens"], turn["cached_tokens"]) for turn in turns} == {(1042, 1000)}
    masked = [json.dumps(request).count(PLACEHOLDER) for request in upstream.requests]
    if config:
        assert masked == [max(0, turn - 3) for turn in range(TURNS + 1)]
    else:
        assert masked == sorted(masked) and masked[-1] > 0
    for request, forwarded in zip(sent, upstream.requests, strict=True):
        assert unmasked(request) == unmasked(forwarded)


def unmasked(request: dict) -> dict:
    """A request without the contents of its results."""
    request = json.loads(json.dumps(request))
    for item in request["input"]:
        item.pop("output", None)
    return request


def recorded_turns(tidegate: Server, count: int) -> list[dict]:
    """The turns of the only conversation, once this many are recorded."""

    def turns() -> list[dict]:
        listed = get_json(f"{tidegate.admin}/api/conversations")["conversations"]
        assert len(listed) <= 1
        return get_json(f"{tidegate.admin}/api/conversations/{listed[0]['id']}")["turns"] if listed else []

    poll(lambda: len(turns()) >= count, "the turns to be recorded", 10)
    return turns()


def test_a_history_of_the_providers_is_left_alone(upstream, tmp_path):
    def chain(client: openai.OpenAI) -> list[tuple]:
        answers, previous, given = [], None, "Why does berth 7 flood?"
        while given:
            raw = client.responses.with_raw_response.create(
                model=MODEL, tools=TOOLS, input=given, previous_response_id=previous or openai.omit
            )
            response = raw.parse()
            answers.append(response.model_dump(mode="json"))
            is_kept = raw.headers.get("x-tidegate-history") == "upstream"
            assert not raw.headers.get("x-tidegate-route") or is_kept == (previous is not None)
            previous, given = response.id, results_of(response)
        return answers

    with client_of(upstream.origin) as client:
        direct = chain(client)
    sent = list(upstream.requests)
    upstream.requests.clear()
    with through(upstream, tmp_path, EVERY_TURN) as tidegate, client_of(tidegate.origin) as client:
        assert chain(client) == direct
    assert upstream.requests == sent and len(sent) == TURNS + 1


def test_refusals_are_errors_of_the_sdk(upstream, tmp_path):
    config = '[context.budget]\nmax_input = 50\nrefuse_at = "budget"\n'
    with through(upstream, tmp_path, config) as tidegate, client_of(tidegate.origin) as client:
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            client.responses.create(model=MODEL, input="high water " * 500)
    assert (refused.value.code, refused.value.param) == ("context_budget_exceeded", "input")
    assert not upstream.requests
