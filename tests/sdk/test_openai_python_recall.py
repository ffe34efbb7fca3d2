"""openai-python before a model that recalls what was shortened: the client sees plain answers, and never the recall tool."""

import json
import re

import pytest
from openai import OpenAI

from harness.scripted import call, say, scripted_upstream
from harness.sdk import client_of
from harness.servers import tidegate

CONFIG = '[context.mask]\nkeep = { turns = 2 }\npace = "every_turn"\n[context.recall]\ntool = true\n'
RECALL = "tidegate_recall"
SOUND = {"type": "function", "function": {"name": "sound", "parameters": {"type": "object", "properties": {}}}}
TURNS = 4


def depth(number: int) -> str:
    return "\n".join(f"berth {number}.{line}: {line} m" for line in range(40))


def script(body: dict, step: int) -> dict:
    """Sounds berths, recalls the first result, recalls again beside a call of the client's, and answers."""
    messages = body["messages"]
    assert body["tools"][-1]["function"]["name"] == RECALL
    if step < TURNS:
        return call(step, "sound", berth=step)
    if step == TURNS:
        return call(900, RECALL, ref=reference(messages), lines="3")
    if step == TURNS + 1:
        assert messages[-1] == {"role": "tool", "tool_call_id": "call_0900", "content": "berth 0.2: 2 m"}
        own, ours = call(TURNS, "sound", berth=TURNS), call(901, RECALL, ref=reference(messages), query="berth 0.7")
        return own | {"tool_calls": ours["tool_calls"] + own["tool_calls"]}
    names = [made["function"]["name"] for message in messages for made in message.get("tool_calls", [])]
    assert names == ["sound"] * TURNS + [RECALL, RECALL, "sound"]
    return say("Berth 0.2 is 2 m deep.")


def reference(messages: list[dict]) -> str:
    return re.search(r"ref ([0-9a-f]{8})", messages[2]["content"])[1]


def answered(client: OpenAI, messages: list[dict], streamed: bool):
    options = {"model": "gpt-4o-mini", "messages": messages, "tools": [SOUND]}
    if not streamed:
        return client.chat.completions.create(**options)
    with client.chat.completions.stream(**options, stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_sees_only_its_own_calls(tmp_path, streamed):
    messages = [{"role": "user", "content": "How deep is it?"}]
    with (
        scripted_upstream(script) as upstream,
        tidegate(upstream, tmp_path, CONFIG) as server,
        client_of(server) as client,
    ):
        for turn in range(TURNS + 2):
            choice = answered(client, messages, streamed).choices[0]
            made = choice.message.tool_calls or []
            messages.append(choice.message.model_dump(exclude_none=True, exclude={"parsed"}))
            if not made:
                break
            assert [(one.function.name, choice.finish_reason) for one in made] == [("sound", "tool_calls")]
            number = json.loads(made[0].function.arguments)["berth"]
            assert number == turn
            messages.append({"role": "tool", "tool_call_id": made[0].id, "content": depth(number)})
        assert choice.message.content.endswith("Berth 0.2 is 2 m deep.")
        assert choice.finish_reason == "stop"
        assert upstream.problems == []
        assert len(upstream.steps) == TURNS + 3
