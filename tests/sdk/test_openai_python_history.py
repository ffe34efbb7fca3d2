"""openai-python on a route that stores the history: the client sends only new messages, and reads its state."""

import json
import urllib.request

import pytest
from openai import BadRequestError, OpenAI

from harness.mock import ECHO, failing
from harness.sdk import API_KEY, client_of
from harness.servers import Server, tidegate

ROLLING = '[context]\nprofile = "rolling-memory"\n'
SYSTEM = {"role": "system", "content": "You are a harbour pilot."}
SOUND = {"type": "function", "function": {"name": "sound", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
def server(mock, tmp_path):
    with tidegate(mock, tmp_path, ROLLING) as server:
        yield server


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def pilot(server: Server, **options) -> OpenAI:
    return client_of(server, default_headers={"x-conversation-id": "survey"}, **options)


def ask(client: OpenAI, *messages: dict, **options):
    return client.chat.completions.create(model="gpt-4o-mini", messages=[SYSTEM, *messages], **options)


def state_of(server: Server, key: str = API_KEY) -> dict:
    headers = {"authorization": f"Bearer {key}", "x-conversation-id": "survey"}
    request = urllib.request.Request(f"{server.origin}/tidegate/v1/conversation", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def received(client: OpenAI, *messages: dict) -> list[dict]:
    """The messages that reach the upstream if these are sent."""
    echo = client.chat.completions.with_raw_response.create(
        model="gpt-4o-mini", messages=[SYSTEM, *messages], extra_headers=ECHO
    )
    return json.loads(echo.http_response.json()["body"])["messages"]


def test_every_kind_of_answer_is_remembered(server):
    with pilot(server) as client:
        whole = ask(client, user("How deep is berth 1?")).choices[0].message.content
        streamed = "".join(
            chunk.choices[0].delta.content or ""
            for chunk in ask(client, user("And berth 2?"), stream=True)
            if chunk.choices
        )
        forced = {"type": "function", "function": {"name": "sound"}}
        call = ask(client, user("Sound berth 3."), tools=[SOUND], tool_choice=forced).choices[0].message.tool_calls[0]
        ask(client, {"role": "tool", "tool_call_id": call.id, "content": "Nine metres."}, tools=[SOUND])
        sent = received(client, user("Thank you."))
    said = [message["content"] for message in sent if message["role"] != "tool"]
    assert said[:5] == [SYSTEM["content"], "How deep is berth 1?", whole, "And berth 2?", streamed]
    calls = next(message for message in sent if message.get("tool_calls"))["tool_calls"]
    assert [call["id"] for call in calls] == [call.id]
    assert [message["content"] for message in sent if message["role"] == "tool"] == ["Nine metres."]
    assert sent[-1]["content"] == "Thank you."


def test_a_retry_of_the_sdk_is_stored_once(server):
    with pilot(server, max_retries=2) as client:
        ask(client, user("How deep is berth 1?"), extra_headers=failing(500, 2))
        sent = received(client, user("And berth 2?"))
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]


def test_only_the_owner_can_read_the_state(server):
    with pilot(server) as client:
        for berth in range(8):
            ask(client, user(f"How deep is berth {berth}? The chart says {berth} metres, {'more or less, ' * 12} I think."))
    state = state_of(server)
    assert (state["conversation"], state["messages"], state["memory"]) == ("survey", 16, None)
    assert state["covered_messages"] + len(state["recent_messages"]) == 16
    assert state["covered_messages"] > 0 and state["summary"]
    assert state_of(server, "sk-somebody-else")["messages"] == 0


def test_a_request_without_a_conversation_is_refused(server):
    with client_of(server) as client, pytest.raises(BadRequestError) as refusal:
        ask(client, user("How deep is berth 1?"))
    assert refusal.value.code == "conversation_id_required"
