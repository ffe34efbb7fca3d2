"""openai-python, chat completions: every kind of call gives the same result through Tidegate."""

import asyncio
import json
from typing import Literal

from openai import pydantic_function_tool
from pydantic import BaseModel

from harness.mock import scripted
from harness.sdk import plain, same, same_async

ASK = {
    "model": "gpt-4o-mini",
    "messages": [
        {"role": "system", "content": "You are a harbour pilot."},
        {"role": "user", "content": "When is high water?"},
    ],
}


class Tide(BaseModel):
    harbour: str
    height: float
    kind: Literal["high", "low"]
    notes: list[str]


class GetTide(BaseModel):
    """Looks up the tide."""

    harbour: str
    hour: int


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Looks up the {name} of a harbour.",
            "parameters": {
                "type": "object",
                "properties": {"harbour": {"type": "string"}},
                "required": ["harbour"],
            },
        },
    }
    for name in ("tide", "wind")
]


def test_a_plain_call(sides):
    answer = same(sides, lambda client: client.chat.completions.create(**ASK))
    assert answer["choices"][0]["message"]["content"]
    assert answer["usage"]["total_tokens"] > 0


def test_an_async_call(sides):
    async def ask(client):
        return await client.chat.completions.create(**ASK)

    assert same_async(sides, ask)["object"] == "chat.completion"


def test_every_parameter_at_once(sides):
    answer = same(
        sides,
        lambda client: client.chat.completions.create(
            **ASK,
            n=1,
            temperature=0.5,
            top_p=0.9,
            seed=7,
            stop=["\n"],
            max_completion_tokens=64,
            presence_penalty=0.1,
            frequency_penalty=-0.1,
            logit_bias={"50256": -100},
            user="someone",
            metadata={"ship": "Étoile"},
            extra_body={"a_field_of_tomorrow": {"nested": [1, 2.50, 1e2]}},
            extra_query={"trace": "a b&c"},
        ),
    )
    assert answer["choices"]


def test_a_stream_chunk_by_chunk(sides):
    chunks = same(sides, lambda client: list(client.chat.completions.create(**ASK, stream=True)))
    assert len(chunks) > 2
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert all("usage" not in chunk or chunk["usage"] is None for chunk in chunks)


def test_an_async_stream_chunk_by_chunk(sides):
    async def ask(client):
        return [chunk async for chunk in await client.chat.completions.create(**ASK, stream=True)]

    assert len(same_async(sides, ask)) > 2


def test_a_stream_with_usage(sides):
    def ask(client):
        return list(client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True}))

    last = same(sides, ask)[-1]
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] > 0


def test_the_bytes_of_a_stream(sides):
    def ask(client):
        with client.chat.completions.with_streaming_response.create(**ASK, stream=True) as response:
            return response.status_code, response.headers["content-type"], response.read()

    status, content_type, body = same(sides, ask)
    assert status == 200
    assert content_type.startswith("text/event-stream")
    assert body.endswith(b"data: [DONE]\n\n")


def test_the_bytes_of_a_plain_answer(sides):
    def ask(client):
        with client.chat.completions.with_streaming_response.create(**ASK) as response:
            return response.headers["content-type"], b"".join(response.iter_bytes())

    assert same(sides, ask)[1].startswith(b"{")


def test_the_stream_helper(sides):
    def ask(client):
        with client.chat.completions.stream(**ASK) as stream:
            events = [(event.type, plain(event)) for event in stream]
            return events, stream.get_final_completion()

    events, final = same(sides, ask)
    assert "content.done" in [kind for kind, _ in events]
    assert final["choices"][0]["message"]["content"]


def test_a_tool_call_and_its_result(sides):
    def ask(client):
        first = client.chat.completions.create(**ASK, tools=TOOLS, tool_choice="required")
        asked = first.choices[0].message
        result = {"role": "tool", "tool_call_id": asked.tool_calls[0].id, "content": "3.2 m"}
        messages = [*ASK["messages"], asked, result]
        return first, client.chat.completions.create(model=ASK["model"], messages=messages, tools=TOOLS)

    first, second = same(sides, ask)
    assert first["choices"][0]["finish_reason"] == "tool_calls"
    assert first["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "tide"
    assert second["choices"][0]["message"]["content"] == "The tool said: 3.2 m"


def test_a_streamed_tool_call(sides):
    def ask(client):
        return list(client.chat.completions.create(**ASK, tools=TOOLS, tool_choice="required", stream=True))

    deltas = [choice["delta"] for chunk in same(sides, ask) for choice in chunk["choices"]]
    pieces = [call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls") or []]
    assert json.loads("".join(pieces)).keys() == {"harbour"}


PARALLEL_CALLS = [
    {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": '{"harbour": "Vlissingen"}'}}
    for name in ("tide", "wind")
]


def test_parallel_tool_calls_and_their_results(sides):
    message = {"role": "assistant", "content": None, "tool_calls": PARALLEL_CALLS}
    body = {
        "id": "chatcmpl-parallel",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    }

    def ask(client):
        first = client.chat.completions.create(
            **ASK, tools=TOOLS, parallel_tool_calls=True, extra_headers=scripted(status=200, body=body)
        )
        asked = first.choices[0].message
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": f"{call.function.name}: 3.2"}
            for call in asked.tool_calls
        ]
        messages = [*ASK["messages"], asked, *results]
        second = client.chat.completions.create(model=ASK["model"], messages=messages, tools=TOOLS)
        return first, second

    first, second = same(sides, ask)
    assert first["choices"][0]["message"]["tool_calls"] == PARALLEL_CALLS
    assert second["choices"][0]["message"]["content"] == "The tool said: wind: 3.2"


def test_streamed_parallel_tool_calls(sides):
    begin = [{**call, "index": index} for index, call in enumerate(PARALLEL_CALLS)]
    more = [{"index": index, "function": {"arguments": " "}} for index in (1, 0)]
    deltas = [{"tool_calls": [piece]} for piece in begin + more]
    chunks = [
        {
            "id": "chatcmpl-parallel",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": "gpt-4o-mini",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
        }
        for delta in deltas
    ]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    headers = scripted(status=200, headers={"content-type": "text/event-stream"}, body=body)

    def ask(client):
        with client.chat.completions.stream(**ASK, tools=TOOLS, extra_headers=headers) as stream:
            return list(stream), stream.get_final_completion().choices[0].message.tool_calls

    _, calls = same(sides, ask)
    assert [call["id"] for call in calls] == ["call_tide", "call_wind"]
    assert [call["function"]["arguments"] for call in calls] == ['{"harbour": "Vlissingen"} '] * 2


def test_parsed_tool_arguments(sides):
    def ask(client):
        answer = client.chat.completions.parse(**ASK, tools=[pydantic_function_tool(GetTide)], tool_choice="required")
        arguments = answer.choices[0].message.tool_calls[0].function.parsed_arguments
        assert isinstance(arguments, GetTide)
        return answer, arguments

    same(sides, ask)


def test_structured_output_by_schema(sides):
    schema = {"name": "tide", "strict": True, "schema": {**Tide.model_json_schema(), "additionalProperties": False}}
    answer = same(
        sides,
        lambda client: client.chat.completions.create(
            **ASK, response_format={"type": "json_schema", "json_schema": schema}
        ),
    )
    Tide.model_validate_json(answer["choices"][0]["message"]["content"])


def test_structured_output_parsed(sides):
    def ask(client):
        answer = client.chat.completions.parse(**ASK, response_format=Tide)
        assert isinstance(answer.choices[0].message.parsed, Tide)
        return answer

    same(sides, ask)


def test_structured_output_streamed(sides):
    def ask(client):
        with client.chat.completions.stream(**ASK, response_format=Tide) as stream:
            parsed = stream.get_final_completion().choices[0].message.parsed
        assert isinstance(parsed, Tide)
        return parsed

    same(sides, ask)


def test_unicode(sides):
    text = 'naïve 東京 🌊🏴󠁧󠁢󠁷󠁬󠁳󠁿 \u0000 \u2028 \ud7ff \\ " / e\u0301 עברית'
    messages = [{"role": "user", "content": text, "name": "someone"}]
    same(sides, lambda client: client.chat.completions.create(model="gpt-4o-mini", messages=messages))


def test_a_large_conversation(sides):
    messages = [
        {"role": ("user", "assistant")[turn % 2], "content": f"{turn}: " + "the tide comes in. " * 500}
        for turn in range(101)
    ]
    answer = same(sides, lambda client: client.chat.completions.create(model="gpt-4.1", messages=messages))
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_fifty_calls_at_once(sides):
    async def ask(client):
        async def one(number):
            messages = [{"role": "user", "content": f"question {number}"}]
            if number % 2:
                return await client.chat.completions.create(model="gpt-4o-mini", messages=messages)
            stream = await client.chat.completions.create(model="gpt-4o-mini", messages=messages, stream=True)
            return [chunk async for chunk in stream]

        return [plain(answer) for answer in await asyncio.gather(*(one(number) for number in range(50)))]

    answers = same_async(sides, ask)
    assert len(answers) == 50
