"""A conversation that is too long for its model: sixty turns with tools on a real small LLM with a window of 2,048 tokens, checked by
its own token counts and its own cache."""

import dataclasses
import json
import pathlib
import sys

import pytest
from openai import BadRequestError, OpenAI

from harness.process import START_DEADLINE, Process, poll
from harness.recorder import Exchange, recording
from harness.sdk import client_of
from harness.servers import HARNESS, Server, announced_origin, get_json, running, status_of, tidegate

WINDOW = 2048
TURNS = 60
ANSWER = 2

ONLY_THE_MODEL = """
[models."smollm2"]
window = 2048
"""

POLICY = """
[context]
strategy = "STRATEGY"
[context.budget]
output_reserve = { cap = 64, ratio = 0.05, min = 16 }
overhead_reserve = { min = 128, ratio = 0.05 }
[context.mask]
keep = { turns = 6 }
pace = { batch = 8 }
[context.fold]
when = { budget_ratio = 0.6 }
keep = { turns = 3 }
mode = "inline"
max_tokens = 150
timeout = "120s"
summarizer = "SUMMARIZER"
pin_task = true
placement = "message"
[context.prune]
keep = { turns = 3 }
[context.recall]
auto = RECALL
"""

MODEL_AS_SUMMARIZER = """
[summarizers.small]
kind = "llm"
model = "smollm2"
"""

SYSTEM = {"role": "system", "content": "You are a harbour pilot. Answer in a few words."}
TASK = "Survey every berth of the harbour and report the depth of each."
CONVERSATION = "survey"

# What is said beside the question of a turn, what is asked for at the end, and what the answer needs.
PLANTED = {
    7: ("By the way, the harbour master's dog is called Balthazar.", "What is the harbour master's dog called?", "Balthazar"),
    15: ("The spare key of the crane hangs behind the barometer.", "Where does the spare key of the crane hang?", "barometer"),
    22: ("Remember that the ferry to Anholt leaves at 16:45.", "When does the ferry to Anholt leave?", "16:45"),
    30: ("Our tug is the Aurora, and Ingrid Solberg steers it.", "Who steers our tug, the Aurora?", "Ingrid Solberg"),
    38: ("Die Zufahrt ist am Dienstag wegen Baggerarbeiten gesperrt.", "An welchem Tag ist die Zufahrt gesperrt?", "Dienstag"),
}


@dataclasses.dataclass
class Turn:
    prompt_tokens: int
    cached_tokens: int
    edits: dict[str, int]
    degraded: str | None


@dataclasses.dataclass
class Conversation:
    turns: list[Turn]
    # The requests that reached the LLM: the conversation, and the calls of the summarizer.
    chats: list[Exchange]
    questions: list[Exchange]
    # From the admin API.
    summaries: list[dict]


@pytest.fixture(scope="module")
def small_window(tmp_path_factory: pytest.TempPathFactory):
    directory = tmp_path_factory.mktemp("small-window")
    source, wide = (HARNESS / "llm_server.py").read_text(), "n_ctx = 4096"
    assert wide in source
    script = directory / "llm_server.py"
    script.write_text(source.replace(wide, f"n_ctx = {WINDOW}"))
    with running(Process("small-window-llm", [sys.executable, script], directory)) as process:
        origin = announced_origin(process)
        poll(lambda: status_of(f"{origin}/health") == 200, "the small LLM to load", START_DEADLINE, process.output)
        yield Server(origin, process)


def history(turn: int, planted: dict | None = None) -> list[dict]:
    """The messages of turn `turn`: every earlier turn had a call, its result and an answer."""
    said = {number: f" {fact}" for number, (fact, *_) in (planted or {}).items()}
    messages = [SYSTEM]
    for number in range(turn):
        call = {"name": "sound", "arguments": json.dumps({"berth": number})}
        messages += [
            {"role": "user", "content": TASK if number == 0 else f"And berth {number}?{said.get(number, '')}"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
            },
            {
                "role": "tool",
                "tool_call_id": f"call_{number}",
                "content": f"Berth {number}: {number % 9 + 3} metres, mud over gravel.",
            },
            {"role": "assistant", "content": f"It is {number % 9 + 3} metres deep."},
        ]
    return [*messages, {"role": "user", "content": TASK if turn == 0 else f"And berth {turn}?{said.get(turn, '')}"}]


def ask(client: OpenAI, turn: int) -> Turn:
    return send(client, history(turn))


def send(client: OpenAI, messages: list[dict]) -> Turn:
    answer = client.chat.completions.with_raw_response.create(
        model="smollm2",
        messages=messages,
        max_tokens=ANSWER,
        temperature=0,
        extra_headers={"x-conversation-id": CONVERSATION},
    )
    usage = answer.parse().usage
    edits = dict(part.split("=") for part in answer.headers.get("x-tidegate-edits", "").split(",") if part)
    return Turn(
        usage.prompt_tokens,
        usage.prompt_tokens_details.cached_tokens,
        {name: int(count) for name, count in edits.items()},
        answer.headers.get("x-tidegate-degraded"),
    )


def converse(llm: Server, directory: pathlib.Path, strategy: str, summarizer: str) -> Conversation:
    """Sends the whole conversation. Raises if a turn is refused."""
    policy = POLICY.replace("STRATEGY", strategy).replace("SUMMARIZER", summarizer)
    policy = policy.replace("RECALL", "false")
    config = policy + ONLY_THE_MODEL + MODEL_AS_SUMMARIZER
    with (
        recording(llm.origin) as recorder,
        tidegate(recorder, directory, config) as server,
        client_of(server, timeout=180.0) as client,
    ):
        turns = [ask(client, turn) for turn in range(TURNS)]
        summaries = get_json(f"{server.admin}/api/conversations/{CONVERSATION}")["summaries"]
    is_summarizer_call = [exchange.request["max_tokens"] != ANSWER for exchange in recorder.exchanges]
    chats = [exchange for exchange, is_call in zip(recorder.exchanges, is_summarizer_call) if not is_call]
    questions = [exchange for exchange, is_call in zip(recorder.exchanges, is_summarizer_call) if is_call]
    return Conversation(turns, chats, questions, summaries)


def test_without_tidegate_the_conversation_does_not_fit(small_window):
    with client_of(small_window) as client, pytest.raises(BadRequestError) as refusal:
        ask(client, TURNS - 1)
    assert json.loads(refusal.value.response.text)["error"]["type"] == "exceed_context_size_error"


def test_the_built_in_summarizer_makes_it_fit(small_window, tmp_path):
    result = converse(small_window, tmp_path, "hybrid", "extractive")
    assert_folded(result)
    assert result.questions == []
    assert {summary["author"] for summary in result.summaries} == {"extractive"}


def test_the_model_itself_as_summarizer_makes_it_fit(small_window, tmp_path):
    # Without masking, each batch of which would make the LLM read most of the prompt again.
    result = converse(small_window, tmp_path, "summarization", "small")
    assert_folded(result)
    assert {summary["author"] for summary in result.summaries} == {"smollm2"}
    assert sum(summary["calls"] for summary in result.summaries) == len(result.questions)
    assert [question.status for question in result.questions] == [200] * len(result.questions)
    for question in result.questions:
        assert question.answer["usage"]["total_tokens"] <= WINDOW
    # The quality of the summaries is not tested, only that they are used.
    for summary in result.summaries:
        lines = summary["summary"]["summary_text"].splitlines()
        shown = [record for chat in result.chats for record in records(chat.request["messages"])]
        assert lines and any(all(line in record["content"] for line in lines) for record in shown), summary


def test_what_was_planted_is_in_the_context_when_it_is_asked_for(small_window, tmp_path):
    """Sixty turns with built-in summaries. What is asked for at the end was folded long ago."""
    policy = POLICY.replace("STRATEGY", "hybrid").replace("SUMMARIZER", "extractive").replace("RECALL", "true")
    with (
        recording(small_window.origin) as recorder,
        tidegate(recorder, tmp_path, policy + ONLY_THE_MODEL) as server,
        client_of(server, timeout=180.0) as client,
    ):
        turns = [send(client, history(turn, PLANTED)) for turn in range(TURNS)]
        for _, question, needed in PLANTED.values():
            asked = [*history(TURNS, PLANTED)[:-1], {"role": "user", "content": question}]
            turns.append(send(client, asked))
            forwarded = recorder.exchanges[-1].request["messages"]
            assert asked[-1]["content"] in forwarded[-1]["content"], "the client's own words"
            assert any(needed in (message["content"] or "") for message in forwarded), question
    assert [exchange.status for exchange in recorder.exchanges] == [200] * len(turns)
    assert [turn.degraded for turn in turns if turn.degraded] == []
    assert max(turn.prompt_tokens for turn in turns) + ANSWER <= WINDOW
    assert any(turn.edits.get("recalled", 0) > 0 for turn in turns)
    # Excerpts stay where they are, so the cache of the LLM keeps hitting.
    for turn in turns:
        turn.edits.pop("recalled", None)
    assert cached_share(turns[:TURNS]) >= 0.85


def assert_folded(result: Conversation) -> None:
    assert len(result.turns) == len(result.chats) == TURNS
    assert [chat.status for chat in result.chats] == [200] * TURNS
    assert [turn.degraded for turn in result.turns if turn.degraded] == []
    assert max(turn.prompt_tokens for turn in result.turns) + ANSWER <= WINDOW
    assert result.turns[-1].edits["folded"] > 0 and len(result.summaries) >= 2
    for number, chat in enumerate(result.chats):
        assert_protected_messages(number, chat.request["messages"])
    assert cached_share(result.turns) >= 0.9


def assert_protected_messages(turn: int, messages: list[dict]) -> None:
    """Asserts that the instructions, the task and the question are unchanged, calls have results, and a summary replaces messages."""
    assert messages[0] == SYSTEM
    # A summary may stand in the same message.
    assert any(message["role"] == "user" and TASK in str(message["content"]) for message in messages)
    assert messages[-1] == history(turn)[-1]
    called = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert called == answered
    assert len(records(messages)) == (1 if len(messages) < len(history(turn)) else 0)


def records(messages: list[dict]) -> list[dict]:
    return [message for message in messages if (message["content"] or "").startswith("<conversation_record>")]


def cached_share(turns: list[Turn]) -> float:
    """The share of cacheable tokens that were cached, between two decisions.

    The previous prompt is cacheable, except for the few tokens at its end that prompt for the answer."""
    possible = found = 0
    for before, turn in zip(turns, turns[1:]):
        if turn.edits == before.edits:
            possible += before.prompt_tokens - GENERATION_PROMPT
            found += min(turn.cached_tokens, before.prompt_tokens - GENERATION_PROMPT)
    assert possible > 0
    return found / possible


# `<|im_start|>assistant` and a line break, from the model's template.
GENERATION_PROMPT = 4
