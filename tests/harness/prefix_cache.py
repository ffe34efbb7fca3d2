"""A model of a provider's prompt cache: what a sequence of chat completions would be billed."""

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

READ, WRITE, PLAIN = 0.1, 1.25, 1.0


@dataclasses.dataclass(frozen=True)
class Rules:
    """`explicit`: only what stands before a `cache_control` breakpoint is cached. Otherwise every prefix is."""

    explicit: bool
    write: float = PLAIN


AUTOMATIC = Rules(explicit=False)
BREAKPOINTS = Rules(explicit=True, write=WRITE)


@dataclasses.dataclass
class Bill:
    """Characters of input by how they are billed, and how many requests changed something that was cached."""

    read: int = 0
    written: int = 0
    plain: int = 0
    breaks: int = 0

    def total(self, rules: Rules) -> float:
        return self.read * READ + self.written * rules.write + self.plain * PLAIN


def bill(bodies: Iterable[dict[str, Any]], rules: Rules) -> Bill:
    seen: list[list[str]] = []
    result = Bill()
    for body in bodies:
        pieces, breakpoints = rendered(body)
        cached = max((_shared(earlier, pieces) for earlier in seen), default=0)
        end = max(breakpoints, default=0) if rules.explicit else len(pieces)
        # A provider looks for cached prefixes at the breakpoints of the request and shortly before them.
        cached = min(cached, end)
        result.breaks += bool(seen) and cached < len(seen[-1])
        result.read += _length(pieces[:cached])
        result.written += _length(pieces[cached:end])
        result.plain += _length(pieces[end:])
        if end:
            seen.append(pieces[:end])
    return result


def rendered(body: dict[str, Any]) -> tuple[list[str], list[int]]:
    """What the model sees of the request, piece by piece, and the numbers of pieces before each breakpoint."""
    pieces = [json.dumps(without_breakpoints(body.get("tools") or []), sort_keys=True)]
    breakpoints = [1] if "cache_control" in json.dumps(body.get("tools") or []) else []
    for message in body["messages"]:
        pieces.append(json.dumps(_seen(message), sort_keys=True))
        if '"cache_control"' in json.dumps(message):
            breakpoints.append(len(pieces))
    return pieces, breakpoints


def _seen(message: dict[str, Any]) -> dict[str, Any]:
    """A string and a lone text part are the same to a model, and so are absent and null members."""
    content = message.get("content")
    if isinstance(content, list) and len(content) == 1 and content[0].get("type") == "text":
        content = content[0]["text"]
    plain = {**without_breakpoints(message), "content": without_breakpoints(content)}
    return {name: value for name, value in plain.items() if value is not None}


def without_breakpoints(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_breakpoints(item) for name, item in value.items() if name != "cache_control"}
    return [without_breakpoints(item) for item in value] if isinstance(value, list) else value


def _shared(one: list[str], other: list[str]) -> int:
    """The number of leading pieces that are equal. A piece that differs at all counts as not cached."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _length(pieces: list[str]) -> int:
    return sum(map(len, pieces))
