"""Agents as the snippets of deploy/clients have them: openai-agents and pydantic-ai, which speak responses, and LangChain."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from harness import servers
from harness.responses_upstream import responses_upstream
from harness.scripted import call, say, scripted_upstream

TURNS = 40
SNIPPETS = servers.ROOT / "deploy/clients"
EVERY_TURN = "[context.mask]\nkeep = { turns = 3 }\npace = \"every_turn\"\n"
PLACEHOLDER = "[OMITTED_OBSERVATION"


def run_snippet(name: str, origin: str, directory: pathlib.Path) -> str:
    """Runs a snippet as a program of its own, pointed at this origin, and returns what it prints."""
    ours = ("OPENAI_", "TIDEGATE_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{origin}/v1"}
    program = (SNIPPETS / name).read_text().replace('"http://127.0.0.1:8080/v1"', f'"{origin}/v1"')
    (directory / name).write_text(program)
    command = [sys.executable, str(directory / name)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.mark.parametrize("name", ["openai_agents.py", "pydantic_agent.py"])
def test_an_agent_is_managed_and_gets_the_same_answer(name, tmp_path):
    with responses_upstream(TURNS) as upstream:
        assert run_snippet(name, upstream.origin, tmp_path) == "Berth 7 is dry."
        sent = list(upstream.requests)
        upstream.requests.clear()
        upstream.stored.clear()
        with servers.tidegate(upstream, tmp_path, EVERY_TURN) as tidegate:
            assert run_snippet(name, tidegate.origin, tmp_path) == "Berth 7 is dry."
        assert upstream.problems == []
        forwarded = upstream.requests
    assert len(sent) == len(forwarded) == TURNS + 1
    assert [json.dumps(request).count(PLACEHOLDER) for request in forwarded] == [max(0, turn - 3) for turn in range(TURNS + 1)]
    assert [without_results(request) for request in forwarded] == [without_results(request) for request in sent]


def without_results(request: dict) -> dict:
    items = request["input"]
    if isinstance(items, list):
        items = [{key: value for key, value in item.items() if key != "output"} for item in items]
    return {**request, "input": items}


def test_langchain_is_managed_and_gets_the_same_answer(tmp_path):
    def script(_body: dict, step: int) -> dict:
        return call(step, "gauge", step=step) if step < TURNS else say("Berth 7 is dry.")

    def contents(body: dict) -> list:
        return [{**message, "content": None} if message["role"] == "tool" else message for message in body["messages"]]

    with scripted_upstream(script) as upstream:
        assert run_snippet("langchain_agent.py", upstream.origin, tmp_path) == "Berth 7 is dry."
        sent = list(upstream.steps)
        assert upstream.problems == []
    with scripted_upstream(script) as upstream, servers.tidegate(upstream, tmp_path, EVERY_TURN) as tidegate:
        assert run_snippet("langchain_agent.py", tidegate.origin, tmp_path) == "Berth 7 is dry."
        forwarded = list(upstream.steps)
        assert upstream.problems == []
    assert len(sent) == len(forwarded) == TURNS + 1
    assert [json.dumps(body).count(PLACEHOLDER) for body in forwarded] == [max(0, turn - 3) for turn in range(TURNS + 1)]
    assert [contents(body) for body in forwarded] == [contents(body) for body in sent]
