"""openai-agents and pydantic-ai, as the snippets of deploy/clients have them: both speak responses by default."""

import json
import os
import subprocess
import sys

import pytest

from harness import servers
from harness.responses_upstream import responses_upstream

TURNS = 40
SNIPPETS = servers.ROOT / "deploy/clients"
EVERY_TURN = "[context.mask]\nkeep = { turns = 3 }\npace = \"every_turn\"\n"
PLACEHOLDER = "[OMITTED_OBSERVATION"


def run_snippet(name: str, origin: str) -> str:
    """Runs a snippet as a program of its own, pointed at this origin by its environment alone, and returns what it prints."""
    ours = ("OPENAI_", "TIDEGATE_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{origin}/v1"}
    command = [sys.executable, str(SNIPPETS / name)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.mark.parametrize("name", ["openai_agents.py", "pydantic_agent.py"])
def test_an_agent_is_managed_and_gets_the_same_answer(name, tmp_path):
    with responses_upstream(TURNS) as upstream:
        assert run_snippet(name, upstream.origin) == "Berth 7 is dry."
        sent = list(upstream.requests)
        upstream.requests.clear()
        upstream.stored.clear()
        with servers.tidegate(upstream, tmp_path, EVERY_TURN) as tidegate:
            assert run_snippet(name, tidegate.origin) == "Berth 7 is dry."
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
