"""Traffic for every panel of the dashboard: masked, folded, refused, degraded, streamed, at a plateau, without a price."""

import json
from collections.abc import Iterator

from openai import OpenAI, UnprocessableEntityError

# `${…}` is replaced from the environment of the process.
CONFIG = """
[archive]
# Nothing listens there: the archive has metrics but no connection.
url = "postgres://nobody@${NOBODY}/nothing"

[models."without-a-price"]
window = 32768

# Behind this URL, the table's window of the model refuses nothing.
[models."gpt-4o-mini"]
window = 128000

[upstreams.nobody]
url = "http://${NOBODY}"

[summarizers.away]
kind = "llm"
upstream = "nobody"
model = "gpt-4o-mini"

[context.mask]
keep = { turns = 2 }
pace = "every_turn"

[context.limits]
plateau_window = 3

[[routes]]
name = "folding"
match = { headers = { x-suite = "folding" } }
[routes.context]
strategy = "summarization"
[routes.context.fold]
when = { user_turns = 3 }
keep = { turns = 1 }
mode = "inline"

[[routes]]
name = "unsummarized"
match = { headers = { x-suite = "unsummarized" } }
[routes.context]
strategy = "summarization"
[routes.context.fold]
when = { user_turns = 3 }
keep = { turns = 1 }
mode = "inline"
summarizer = "away"
timeout = "1s"

[[routes]]
name = "masking"
"""

MODEL = "gpt-4o-mini"
# Long enough for cached tokens, which the upstream reports from 1,024 on.
SYSTEM = {"role": "system", "content": "You are a harbour pilot, and you know every berth. " * 120}


def round_of_everything(client: OpenAI, number: int) -> None:
    """Sends every kind of request, and asserts what the client can see."""
    assert "masked=0," not in edits(client, f"agent-{number}", agent(8), "masking")
    assert stop_hint(client, f"stuck-{number}") == "plateau=5"
    assert "folded=0," not in edits(client, f"chat-{number}", chat(6), "folding")
    assert degraded(client, f"away-{number}").startswith("summarizer_")
    assert "chunk" in streamed(client, f"stream-{number}")
    edits(client, f"price-{number}", chat(2), "masking", model="without-a-price")
    refused(client, f"long-{number}")


def edits(client: OpenAI, name: str, messages: list[dict], suite: str, model: str = MODEL) -> str:
    return headers(client, name, messages, suite, model)["x-tidegate-edits"]


def degraded(client: OpenAI, name: str) -> str:
    return headers(client, name, chat(6), "unsummarized", MODEL)["x-tidegate-degraded"]


def stop_hint(client: OpenAI, name: str) -> str:
    return headers(client, name, agent(6, berth=7), "masking", MODEL)["x-tidegate-stop-hint"]


def headers(client: OpenAI, name: str, messages: list[dict], suite: str, model: str):
    extra = {"x-conversation-id": name, "x-suite": suite}
    answer = client.chat.completions.with_raw_response.create(model=model, messages=messages, extra_headers=extra)
    return answer.headers


def streamed(client: OpenAI, name: str) -> str:
    extra = {"x-conversation-id": name}
    with client.chat.completions.create(
        model=MODEL, messages=chat(1), stream=True, stream_options={"include_usage": True}, extra_headers=extra
    ) as chunks:
        return next(reversed([chunk.object for chunk in chunks]))


def refused(client: OpenAI, name: str) -> None:
    too_long = [{"role": "user", "content": "berth " * 200_000}]
    try:
        headers(client, name, too_long, "masking", MODEL)
    except UnprocessableEntityError as error:
        assert error.code == "context_budget_exceeded"
    else:
        raise AssertionError("a request over budget was forwarded")


def degraded_by_the_store(client: OpenAI, name: str) -> None:
    assert headers(client, name, chat(1), "masking", MODEL)["x-tidegate-degraded"].startswith("store_")


def chat(turns: int) -> list[dict]:
    return [SYSTEM, *(message for number in range(turns) for message in exchange(number)), question(turns)]


def exchange(number: int) -> Iterator[dict]:
    yield question(number)
    # Longer than what a summary says of it.
    way = "On the way in, the water was calm, the wind light, and no other ship was in sight. " * 3
    yield {"role": "assistant", "content": f"{way}Berth {number} is {number % 9 + 3} metres deep, and we decided to use it."}


def question(number: int) -> dict:
    return {"role": "user", "content": f"How deep is berth {number}?"}


def agent(turns: int, berth: int | None = None) -> list[dict]:
    """An agent that sounds one berth after another, or always the same one."""
    messages = [SYSTEM, {"role": "user", "content": "Survey the harbour."}]
    for number in range(turns):
        call = {"name": "sound", "arguments": json.dumps({"berth": number if berth is None else berth})}
        messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"call_{number}", "content": f"Sounding {number}: mud over gravel. " * 20},
        ]
    return messages
