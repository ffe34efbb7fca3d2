"""Runs a program twice, directly and through Tidegate with its default settings, and compares what it is billed."""

import pathlib
from collections.abc import Callable
from typing import Any

from clients.programs import TURNS
from harness import servers
from harness.prefix_cache import Bill, Rules, bill
from harness.scripted import Script, ScriptedUpstream, call, say, scripted_upstream

Program = Callable[[str, str, pathlib.Path], None]

# So much more than directly may a program be billed that gives Tidegate nothing to mask.
TOLERANCE = 1.02


def commands(tool: str, lines: int, end: Callable[[int], dict[str, Any]], **others: Any) -> Script:
    """Has the agent's shell print so many lines at each step. Requests without that tool are not steps."""

    def script(body: dict[str, Any], step: int) -> dict[str, Any] | None:
        if all(one["function"]["name"] != tool for one in body.get("tools") or []):
            return None
        if step == TURNS - 1:
            return end(step)
        printed = f'seq -f "{step:03}-%04g buoy passed at knot {step % 13}" {lines}'
        arguments = {"commands": [printed]} if tool == "run_commands" else {"command": printed}
        return call(step, tool, **arguments, **others)

    return script


def finished(_step: int) -> dict[str, Any]:
    return say("The Albatross is late.")


def billed(program: Program, script: Script, model: str, rules: Rules, directory: pathlib.Path) -> tuple[Bill, Bill]:
    """Asserts that both runs were complete, legal and the same task."""

    def check(upstream: ScriptedUpstream) -> Bill:
        assert len(upstream.steps) == TURNS
        assert upstream.problems == []
        return bill(upstream.steps, rules)

    homes = [directory / name for name in ("direct", "through", "tidegate")]
    for home in homes:
        home.mkdir()
    with scripted_upstream(script) as upstream:
        program(f"{upstream.origin}/v1", model, homes[0])
        direct, sent = check(upstream), upstream.steps
    with scripted_upstream(script) as upstream, servers.tidegate(upstream, homes[2]) as proxy:
        program(f"{proxy.origin}/v1", model, homes[1])
        through = check(upstream)
    assert all(len(one["messages"]) == len(other["messages"]) for one, other in zip(sent, upstream.steps, strict=True))
    # The columns of the table in crates/replay/README.md.
    costs = [round(side.total(rules) / 1000) for side in (direct, through)]
    ratio = through.total(rules) / direct.total(rules)
    print(f"{program.__name__} {model}: {TURNS} turns, {costs[0]} k direct, {costs[1]} k through, {ratio:.3f}, ", end="")
    print(f"{direct.breaks} and {through.breaks} prefix breaks")
    return direct, through
