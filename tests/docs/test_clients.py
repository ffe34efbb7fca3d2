"""The snippets of deploy/clients: each is in the table, points at the default address, and can be read by what it is for.

The programs among them run in `sdk/test_python_agents.py` and `sdk/node/agents.test.mjs`; `tests/clients/run` runs the agents that the files are for.
"""

import inspect
import json
import re
import shlex
import tomllib

import pytest

from clients import programs
from harness.servers import ROOT

CLIENTS = ROOT / "deploy/clients"
ADDRESS = "http://127.0.0.1:8080"
README = (CLIENTS / "README.md").read_text()
SNIPPETS = sorted(path for path in CLIENTS.iterdir() if path.suffix != ".md")
EXECUTED = {"ai_sdk.mjs", "openai_agents.mjs", "openai_agents.py", "pydantic_agent.py", "langchain_agent.py"}


def test_every_client_has_a_row_and_every_snippet_is_linked():
    rows = re.findall(r"^\| ([A-Z\w][^|]+?) \| (responses|messages|chat completions) \|", README, re.MULTILINE)
    clients = ["Codex", "Claude Code", "openai-agents", "pydantic-ai", "Vercel AI SDK", "LangChain", "opencode", "Cline", "aider"]
    assert [name for name, _ in rows] == clients
    assert sorted(set(re.findall(r"\]\(([\w.-]+)\)", README))) == [path.name for path in SNIPPETS]


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.name)
def test_a_snippet_points_at_the_default_address(path):
    text = path.read_text()
    assert ADDRESS in text
    match path.suffix:
        case ".toml":
            settings = tomllib.loads(text)
            provider = settings["model_providers"][settings["model_provider"]]
            assert (provider["base_url"], provider["wire_api"]) == (f"{ADDRESS}/v1", "responses")
        case ".json":
            [provider] = json.loads(text)["provider"].values()
            assert provider["options"]["baseURL"] == f"{ADDRESS}/v1"
        case ".env":
            lines = [line.removeprefix("# ") for line in text.splitlines() if re.match(r"(# )?[A-Z_]+=", line)]
            settings = dict(line.split("=", 1) for line in lines)
            assert settings.pop("ANTHROPIC_BASE_URL") == ADDRESS
            # Those that are commented out are examples.
            assert sorted(settings) == ["ANTHROPIC_MODEL", "CLAUDE_CODE_ATTRIBUTION_HEADER", "ENABLE_TOOL_SEARCH"]
        case _:
            assert path.name in EXECUTED


@pytest.mark.parametrize(("name", "program"), [("cline", programs.cline), ("aider", programs.aider), ("opencode", programs.opencode)])
def test_a_command_has_the_flags_with_which_the_agent_is_tested(name, program):
    [command] = re.findall(rf"`({name} [^`]+)`", README)
    source = inspect.getsource(program)
    words = shlex.split(command)
    for word in words[1:]:
        is_value = not word.startswith("--") and words[words.index(word) - 1].startswith("--")
        assert is_value or f'"{word}"' in source, word
