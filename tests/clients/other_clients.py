"""Agents that are too large for every run of the tests: `tests/clients/run` installs and runs them."""

import pytest

from clients.comparison import TOLERANCE, billed, commands, finished
from clients.programs import aider, cline, litellm, mini_swe_agent, opencode, qwen_code
from clients.test_python_clients import submit
from harness.prefix_cache import AUTOMATIC, BREAKPOINTS
from harness.scripted import call, say

GPT = "openai/gpt-5"
SHELL = commands("bash", 150, finished, description="Prints a log.")
QWEN = commands("run_shell_command", 150, finished, is_background=False, description="Prints a log.")
CLINE = commands("run_commands", 150, lambda step: call(step, "submit_and_exit", summary="The Albatross is late.", verified=True))

CASES = [
    pytest.param(mini_swe_agent, commands("bash", 150, submit), GPT, AUTOMATIC, id="mini-swe-agent-gpt"),
    pytest.param(litellm, commands("read", 0, finished), GPT, AUTOMATIC, id="litellm-gpt"),
    pytest.param(opencode, SHELL, "claude-sonnet-4-5", BREAKPOINTS, id="opencode-claude"),
    pytest.param(opencode, SHELL, "gpt-5", AUTOMATIC, id="opencode-gpt"),
    pytest.param(qwen_code, QWEN, "gpt-5", AUTOMATIC, id="qwen-code"),
    pytest.param(cline, CLINE, "gpt-5", AUTOMATIC, id="cline-gpt"),
    pytest.param(cline, CLINE, "claude-sonnet-4-5", BREAKPOINTS, id="cline-claude"),
]


@pytest.mark.parametrize(("program", "script", "model", "rules"), CASES)
def test_a_client_with_much_to_mask_is_billed_less(program, script, model, rules, tmp_path):
    direct, through = billed(program, script, model, rules, tmp_path)
    assert through.total(rules) < direct.total(rules)


def test_a_chat_without_results_is_not_billed_more(tmp_path):
    """aider adds the output of commands as user messages, which are never masked, and changes its last message at every turn."""
    direct, through = billed(aider, lambda _, step: say(f"No, log {step} is fine."), GPT, AUTOMATIC, tmp_path)
    assert through.total(AUTOMATIC) <= TOLERANCE * direct.total(AUTOMATIC)
