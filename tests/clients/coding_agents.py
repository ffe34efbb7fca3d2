"""Codex and Claude Code, set up by the snippets of deploy/clients: their answers and requests, directly and through Tidegate."""

import json
import pathlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from clients.programs import TURNS, claude_code, codex
from harness import servers
from harness.anthropic_upstream import anthropic_upstream, blocks_of
from harness.responses_upstream import responses_upstream

PRINTED = "seq -f 'STEP-%04g buoy passed' 150"
# The agents' own shells, which they name differently.
CALLS = {
    codex: (responses_upstream, "exec_command", json.dumps({"cmd": PRINTED})),
    claude_code: (anthropic_upstream, "Bash", json.dumps({"command": PRINTED, "description": "Prints a log."})),
}
EVERY_TURN = "[context.mask]\nkeep = { turns = 3 }\npace = \"every_turn\"\n"
PLACEHOLDER = "[OMITTED_OBSERVATION"


@contextmanager
def scripted(program) -> Iterator[Any]:
    start, tool, arguments = CALLS[program]
    with start(TURNS, tool, arguments) as upstream:
        yield upstream
    assert upstream.problems == []


def steps(upstream: Any, tool: str) -> list[dict]:
    """The requests of the task itself. Both agents ask for a title and the like beside it."""
    return [body for body in upstream.requests if any(one.get("name") == tool for one in body.get("tools") or [])]


def results_of(body: dict) -> list[str]:
    if "input" in body:
        return [json.dumps(item["output"]) for item in body["input"] if item.get("type") == "function_call_output"]
    blocks = [block for message in body["messages"] for block in blocks_of(message)]
    return [json.dumps(block.get("content")) for block in blocks if block["type"] == "tool_result"]


@pytest.mark.parametrize("config", [EVERY_TURN, ""], ids=["every_turn", "default"])
@pytest.mark.parametrize(("program", "model"), [(codex, "gpt-5"), (claude_code, "claude-sonnet-4-5")], ids=["codex", "claude-code"])
def test_a_coding_agent_is_managed_and_gets_the_same_answer(program, model, config, tmp_path: pathlib.Path):
    homes = [tmp_path / name for name in ("direct", "through", "tidegate")]
    for home in homes:
        home.mkdir()
    tool = CALLS[program][1]
    with scripted(program) as upstream:
        answered = program(upstream.origin, model, homes[0])
        sent = steps(upstream, tool)
    with scripted(program) as upstream, servers.tidegate(upstream, homes[2], config) as proxy:
        through = program(proxy.origin, model, homes[1])
        forwarded = steps(upstream, tool)
    assert "Berth 7 is dry." in answered and "Berth 7 is dry." in through
    assert [len(results_of(body)) for body in forwarded] == [len(results_of(body)) for body in sent] == list(range(TURNS + 1))
    masked = [sum(PLACEHOLDER in result for result in results_of(body)) for body in forwarded]
    if config:
        assert masked == [max(0, turn - 3) for turn in range(TURNS + 1)]
    else:
        assert masked == sorted(masked) and masked[-1] > 0
    assert not any(PLACEHOLDER in result for body in sent for result in results_of(body))
    print(f"{program.__name__} {model}: {TURNS} turns, at most {masked[-1]} of {TURNS} results masked")


def test_claude_code_keeps_its_tool_search_and_the_long_window(tmp_path: pathlib.Path):
    for name in ("home", "tidegate"):
        (tmp_path / name).mkdir()
    with anthropic_upstream(0) as upstream, servers.tidegate(upstream, tmp_path / "tidegate") as proxy:
        claude_code(proxy.origin, "claude-sonnet-4-5[1m]", tmp_path / "home")
    assert "defer_loading" in json.dumps(upstream.requests[0]["tools"])
    assert "context-1m-2025-08-07" in upstream.headers[0]["anthropic-beta"]
