"""A conversation that is too long for its model: sixty turns with tools, a real small LLM with a window of 2,048 tokens, its own
count of what it was sent, and its own cache."""

import dataclasses
import json
import pathlib
import sys

import pytest
from openai import BadRequestError, OpenAI

from harness.process import START_DEADLINE, Process, poll
from harness.sdk import client_of
from harness.servers import HARNESS, Server, announced_origin, running, status_of, tidegate

WINDOW = 2048
TURNS = 60
ANSWER = 2

ONLY_THE_MODEL = """
[models."smollm2"]
window = 2048
"""

POLICY = """
[context]
strategy = "hybrid"
[context.budget]
output_reserve = { cap = 64, ratio = 0.05, min = 16 }
overhead_reserve = { min = 128, ratio = 0.05 }
[context.mask]
keep = { turns = 6 }
pace = { batch = 8 }
[context.fold]
when = { budget_ratio = 0.75 }
keep = { turns = 3 }
mode = "inline"
max_tokens = 250
timeout = "20s"
summarizer = "SUMMARIZER"
pin_task = true
[context.prune]
keep = { turns = 3 }
"""

MODEL_AS_SUMMARIZER = """
[summarizers.small]
kind = "llm"
upstream = "default"
model = "smollm2"
"""

SYSTEM = {"role": "system", "content": "You are a harbour pilot. Answer in a few words."}
TASK = "Survey every berth of the harbour and report the depth of each."


@dataclasses.dataclass
class Turn:
    prompt_tokens: int
    cached_tokens: int
    edits: dict[str, int]
    degraded: str | None


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


def history(turn: int) -> list[dict]:
    """What the client has before it asks turn `turn`: every turn before it had a call, its result and an answer."""
    messages = [SYSTEM]
    for number in range(turn):
        call = {"name": "sound", "arguments": json.dumps({"berth": number})}
        depth = f"Berth {number}: {number % 9 + 3} metres at low water, mud over gravel, fender worn."
        messages += [
            {"role": "user", "content": TASK if number == 0 else f"And berth {number}?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"call_{number}", "content": depth},
            {"role": "assistant", "content": f"It is {number % 9 + 3} metres deep."},
        ]
    return [*messages, {"role": "user", "content": TASK if turn == 0 else f"And berth {turn}?"}]


def ask(client: OpenAI, turn: int) -> Turn:
    answer = client.chat.completions.with_raw_response.create(
        model="smollm2",
        messages=history(turn),
        max_tokens=ANSWER,
        temperature=0,
        extra_headers={"x-conversation-id": "survey"},
    )
    usage = answer.parse().usage
    edits = dict(part.split("=") for part in answer.headers.get("x-tidegate-edits", "").split(",") if part)
    return Turn(
        usage.prompt_tokens,
        usage.prompt_tokens_details.cached_tokens,
        {name: int(count) for name, count in edits.items()},
        answer.headers.get("x-tidegate-degraded"),
    )


def talk(llm: Server, directory: pathlib.Path, config: str, turns: range) -> list[Turn]:
    with tidegate(llm, directory, config + ONLY_THE_MODEL) as server, client_of(server, timeout=180.0) as client:
        return [ask(client, turn) for turn in turns]


def test_without_tidegate_it_does_not_fit(small_window):
    with client_of(small_window) as client, pytest.raises(BadRequestError) as refusal:
        ask(client, TURNS - 1)
    assert json.loads(refusal.value.response.text)["error"]["type"] == "exceed_context_size_error"


def test_folded_by_the_built_in_summarizer(small_window, tmp_path):
    turns = talk(small_window, tmp_path, POLICY.replace("SUMMARIZER", "extractive"), range(TURNS))
    assert len(turns) == TURNS
    assert [turn.degraded for turn in turns if turn.degraded] == []
    stays_inside(turns)
    assert cached_share(turns) >= 0.9


def test_a_model_that_summarizes_badly_is_survived(small_window, tmp_path):
    # It takes this model half a minute to write a summary, and what it writes can seldom be read. The conversation goes on.
    policy = POLICY.replace("SUMMARIZER", "small") + MODEL_AS_SUMMARIZER
    turns = talk(small_window, tmp_path, policy, range(29, TURNS, 30))
    stays_inside(turns)


def stays_inside(turns: list[Turn]) -> None:
    assert max(turn.prompt_tokens for turn in turns) + ANSWER <= WINDOW
    last = turns[-1]
    assert last.edits["folded"] + last.edits["dropped"] > 0, last


def cached_share(turns: list[Turn]) -> float:
    """Of what could be found in the server's cache between two decisions, how much was.

    What could be found is the prompt before, but for the few tokens at its end that ask for the answer."""
    possible = found = 0
    for before, turn in zip(turns, turns[1:]):
        if turn.edits == before.edits:
            possible += before.prompt_tokens - GENERATION_PROMPT
            found += min(turn.cached_tokens, before.prompt_tokens - GENERATION_PROMPT)
    assert possible > 0
    return found / possible


# `<|im_start|>assistant` and a line break, as the model's template has it.
GENERATION_PROMPT = 4
