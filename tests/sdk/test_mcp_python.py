"""The official MCP SDK for Python, as an agent uses it to recall what was shortened in its conversation."""

import asyncio

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from harness.sdk import API_KEY, client_of
from harness.servers import Server, tidegate

CONVERSATION = "survey"


@pytest.fixture
def server(mock, tmp_path):
    with tidegate(mock, tmp_path) as server:
        with client_of(server, default_headers={"x-conversation-id": CONVERSATION}) as client:
            client.chat.completions.create(model="gpt-4o-mini", messages=run())
        yield server


def run() -> list[dict]:
    call = {"id": "c1", "type": "function", "function": {"name": "sound", "arguments": "{}"}}
    return [
        {"role": "user", "content": "Sound the harbour."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "berth 1: 9 m\nberth 2: 4 m\nberth 3: 12 m"},
    ]


def with_client(server: Server, scenario, key: str = API_KEY, **options):
    """Runs the scenario with a client that has this key."""

    async def connected():
        headers = {"authorization": f"Bearer {key}", "x-conversation-id": CONVERSATION}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            transport = streamable_http_client(f"{server.origin}/tidegate/mcp", http_client=http)
            async with Client(transport, **options) as client:
                return await scenario(client)

    return asyncio.run(connected())


async def called(client: Client, tool: str, **arguments) -> tuple[str, bool]:
    result = await client.call_tool(tool, arguments)
    return result.content[0].text, result.is_error


# The handshake of earlier versions, and the version without one.
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_both_tools_are_listed_and_called(server, mode):
    async def scenario(client: Client):
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == ["recall", "search_history"]
        found, is_error = await called(client, "search_history", query="How deep is berth 2?")
        assert found.startswith("[ref ") and "berth 2: 4 m" in found and not is_error
        reference = found[5:13]
        assert await called(client, "recall", ref=reference, lines="2") == ("berth 2: 4 m", False)
        assert await called(client, "recall", ref=reference) == (run()[2]["content"], False)
        return client.protocol_version, reference

    version, reference = with_client(server, scenario, mode=mode)
    assert version == ("2025-11-25" if mode == "legacy" else "2026-07-28")

    async def stranger(client: Client):
        text, is_error = await called(client, "recall", ref=reference)
        assert is_error and "No message of this conversation" in text

    with_client(server, stranger, key="sk-another", mode=mode)
