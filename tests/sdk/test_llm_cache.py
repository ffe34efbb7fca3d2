"""The cache of a real small LLM under masking, by its own reports: a masked conversation is as well cached as one that is not."""

import dataclasses
import pathlib

import pytest

from harness import servers
from harness.sdk import client_of
from harness.servers import Server

TURNS = 18
MASKING = """
[models."smollm2"]
window = 4096
input = 1.0
cached_input = 0.25
[context.mask]
keep = { turns = 3 }
"""


@dataclasses.dataclass(frozen=True)
class Reported:
    prompt: int
    cached: int


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory):
    """A server of its own: every other conversation would replace what its one slot has cached."""
    with servers.small_llm(tmp_path_factory.mktemp("llm")) as server:
        yield server


def converse(server: Server, name: str) -> tuple[list[Reported], list[int]]:
    """An agent that reads soundings. Returns what the model reports of each turn, and how many results were masked."""
    messages = [
        {"role": "system", "content": f"You are {name}, a harbour pilot. Answer in a few words."},
        {"role": "user", "content": "Read the soundings and say where it is deep."},
    ]
    reported, masked = [], []
    with client_of(server, default_headers={"x-conversation-id": name}) as client:
        for turn in range(TURNS):
            request = {"model": "smollm2", "messages": messages, "max_tokens": 1, "temperature": 0, "seed": 7}
            answer = client.chat.completions.with_raw_response.create(**request)
            usage = answer.parse().usage
            reported.append(Reported(usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens))
            edits = answer.headers.get("x-tidegate-edits", "masked=0,")
            masked.append(int(edits.removeprefix("masked=").split(",")[0]))
            call = {"id": f"call_{turn}", "type": "function", "function": {"name": "sound", "arguments": "{}"}}
            messages.append({"role": "assistant", "content": f"Sounding {turn}.", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": soundings(turn)})
    return reported, masked


def soundings(turn: int) -> str:
    return " ".join(f"{turn}/{line}: {(turn * 7 + line * 5) % 31} m" for line in range(10))


def test_the_cached_share_is_at_least_that_of_direct_minus_what_was_masked(llm: Server, tmp_path: pathlib.Path):
    direct, _ = converse(llm, "Ada")
    with servers.tidegate(llm, tmp_path, MASKING) as proxy:
        through, masked = converse(proxy, "Eve")
    moves = [turn for turn in range(1, TURNS) if masked[turn] > masked[turn - 1]]
    assert moves, "nothing was masked"
    assert len(moves) < TURNS // 4, moves
    for turn in (turn for turn in range(TURNS) if turn not in moves):
        removed = direct[turn].prompt - through[turn].prompt
        assert through[turn].cached >= direct[turn].cached - removed, turn
    # All turns together, with those that move the frontier: each of these is read anew from the first result that it masks.
    (prompt, cached), (sent, plain) = (total(side) for side in (through, direct))
    print(f"masked {masked[-1]} in {len(moves)} moves; cached directly {plain} of {sent}, through Tidegate {cached} of {prompt}")
    assert cached / prompt >= (plain - (sent - prompt)) / sent


def total(side: list[Reported]) -> tuple[int, int]:
    return sum(one.prompt for one in side), sum(one.cached for one in side)
