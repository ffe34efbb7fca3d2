"""openai-python with a real small LLM behind Tidegate: real tokens, a real prompt cache, one slot."""

import asyncio
import json
import uuid

import pytest
from openai import BadRequestError

from harness.process import poll
from harness.sdk import async_client_of, client_of, plain, same, same_async, without
from harness.servers import Server, get_json

ASK = {
    "model": "smollm2",
    "messages": [
        {"role": "system", "content": "You are a harbour pilot."},
        {"role": "user", "content": "Name three things that move with the tide."},
    ],
    "temperature": 0,
    "seed": 7,
    "max_tokens": 24,
}
# Differs between calls to the same server. `timings` is from llama.cpp.
PER_CALL = ("id", "created", "timings")
# The second of two equal prompts is cached.
CACHE = ("prompt_tokens_details",)


def test_the_same_text(llm_sides):
    def ask(client):
        return without(plain(client.chat.completions.create(**ASK)), *PER_CALL, *CACHE)

    answer = same(llm_sides, ask)
    assert answer["choices"][0]["message"]["content"].strip()
    assert answer["usage"]["completion_tokens"] == 24


def test_the_same_text_from_the_async_client(llm_sides):
    async def ask(client):
        return without(plain(await client.chat.completions.create(**ASK)), *PER_CALL, *CACHE)

    assert same_async(llm_sides, ask)["choices"][0]["finish_reason"] == "length"


def test_the_same_stream_chunk_by_chunk(llm_sides):
    def ask(client):
        stream = client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True})
        return [without(plain(chunk), *PER_CALL, *CACHE) for chunk in stream]

    chunks = same(llm_sides, ask)
    text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    with client_of(llm_sides.direct) as client:
        assert text == client.chat.completions.create(**ASK).choices[0].message.content
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 24


def test_the_same_stream_from_the_async_client(llm_sides):
    async def ask(client):
        stream = await client.chat.completions.create(**ASK, stream=True)
        return [without(plain(chunk), *PER_CALL) async for chunk in stream]

    assert len(same_async(llm_sides, ask)) > 10


def test_the_stream_ends_with_done(llm_sides):
    def ask(client):
        request = client.chat.completions.with_streaming_response.create(**ASK, stream=True)
        with request as response:
            lines = [line for line in response.iter_lines() if line]
        return response.headers["content-type"], len(lines), lines[-1]

    content_type, _, last = same(llm_sides, ask)
    assert content_type.startswith("text/event-stream")
    assert last == "data: [DONE]"


def test_a_repeated_prompt_hits_the_servers_cache(llm_sides):
    def cached_tokens(client, messages):
        answer = client.chat.completions.create(**{**ASK, "messages": messages, "max_tokens": 1})
        return answer.usage.prompt_tokens_details.cached_tokens

    def ask(client):
        # A unique prompt, so that it is not in the cache from another test.
        first = [{"role": "user", "content": f"{uuid.uuid4()} is the name of a ship. " + "The sea is calm. " * 30}]
        more = [*first, {"role": "assistant", "content": "Noted."}, {"role": "user", "content": "What is its name?"}]
        cold, repeated, grown = (cached_tokens(client, messages) for messages in (first, first, more))
        return cold < 60, repeated - cold > 100, grown - cold > 100

    assert same(llm_sides, ask) == [True, True, True]


BERTH = {
    "type": "object",
    "properties": {
        "harbour": {"type": "string", "maxLength": 20},
        "depth": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["harbour", "depth"],
    "additionalProperties": False,
}


def test_structured_output(llm_sides):
    form = {"type": "json_schema", "json_schema": {"name": "berth", "schema": BERTH, "strict": True}}

    def ask(client):
        answer = client.chat.completions.create(**{**ASK, "max_tokens": 80, "response_format": form})
        return answer.choices[0].message.content

    assert set(json.loads(same(llm_sides, ask))) == {"harbour", "depth"}


def test_tools(llm_sides):
    # A model this small rarely calls a tool, so the conversation already has the call.
    tool = {"type": "function", "function": {"name": "berth", "description": "Finds a berth.", "parameters": BERTH}}
    call = {"id": "call_1", "type": "function", "function": {"name": "berth", "arguments": '{"depth": 9}'}}
    history = [
        *ASK["messages"],
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Berth 4 is free."},
    ]

    def ask(client):
        answer = client.chat.completions.create(**{**ASK, "messages": history, "tools": [tool]})
        return answer.choices[0].message.model_dump(), answer.usage.prompt_tokens

    message, _ = same(llm_sides, ask)
    assert message["content"] or message["tool_calls"]


def test_the_servers_refusal_of_a_long_prompt_is_passed_on(llm_sides):
    def ask(client):
        with pytest.raises(BadRequestError) as refusal:
            client.chat.completions.create(**{**ASK, "messages": [{"role": "user", "content": "tide " * 5000}]})
        return refusal.value.status_code, refusal.value.response.text

    status, text = same(llm_sides, ask)
    assert status == 400
    assert json.loads(text)["error"]["type"] == "exceed_context_size_error"


# The server needs many times longer than this for that many tokens.
SLOT_DEADLINE = 15.0
ENDLESS = {**ASK, "max_tokens": 3500, "stream": True, "extra_body": {"ignore_eos": True}}


def test_a_disconnected_client_frees_the_slot(llm_sides):
    for side in (llm_sides.direct, llm_sides.through):
        with client_of(side) as client:
            stream = client.chat.completions.create(**ENDLESS)
            next(iter(stream))
            assert slot_is_busy(llm_sides.direct)
            stream.close()
            poll(lambda: not slot_is_busy(llm_sides.direct), "the slot to be free", SLOT_DEADLINE)


def test_a_cancelled_task_frees_the_slot(llm_sides):
    async def ask(server):
        async with async_client_of(server) as client:
            stream = await client.chat.completions.create(**ENDLESS)
            first = asyncio.Event()

            async def read():
                async for _ in stream:
                    first.set()

            reading = asyncio.create_task(read())
            await first.wait()
            assert slot_is_busy(llm_sides.direct)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            poll(lambda: not slot_is_busy(llm_sides.direct), "the slot to be free", SLOT_DEADLINE)

    for side in (llm_sides.direct, llm_sides.through):
        asyncio.run(ask(side))


def slot_is_busy(llm: Server) -> bool:
    return get_json(f"{llm.origin}/slots")[0]["is_processing"]
