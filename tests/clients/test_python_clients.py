"""mini-swe-agent and litellm, which move their cache breakpoints with every request, against a scripted upstream."""

import pytest

from clients.comparison import TOLERANCE, billed, commands, finished
from clients.programs import litellm, mini_swe_agent
from harness.prefix_cache import BREAKPOINTS
from harness.scripted import call

CLAUDE = "openrouter/anthropic/claude-sonnet-4.5"


def submit(step):
    return call(step, "bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")


CASES = [
    pytest.param(mini_swe_agent, commands("bash", 150, submit), CLAUDE, BREAKPOINTS, id="mini-swe-agent"),
    pytest.param(litellm, commands("read", 0, finished), CLAUDE, BREAKPOINTS, id="litellm-injection"),
]


@pytest.mark.parametrize(("program", "script", "model", "rules"), CASES)
def test_a_client_with_much_to_mask_is_billed_less(program, script, model, rules, tmp_path):
    direct, through = billed(program, script, model, rules, tmp_path)
    assert direct.breaks == 0
    assert through.total(rules) < direct.total(rules)


def test_a_client_with_little_to_mask_is_not_billed_more(tmp_path):
    direct, through = billed(mini_swe_agent, commands("bash", 2, submit), CLAUDE, BREAKPOINTS, tmp_path)
    assert through.total(BREAKPOINTS) <= TOLERANCE * direct.total(BREAKPOINTS)
