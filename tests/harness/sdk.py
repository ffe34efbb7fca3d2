"""Runs scenarios with the OpenAI SDK on both sides, and compares the results."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from harness.servers import Server, Sides

API_KEY = "sk-test-0123456789"
# Far longer than any scenario takes, so that it only ends a test that hangs.
TIMEOUT = 60.0


def client_of(server: Server, **options: Any) -> OpenAI:
    return OpenAI(**{**client_options(server), **options})


def async_client_of(server: Server, **options: Any) -> AsyncOpenAI:
    return AsyncOpenAI(**{**client_options(server), **options})


def client_options(server: Server) -> dict[str, Any]:
    return {"base_url": f"{server.origin}/v1", "api_key": API_KEY, "timeout": TIMEOUT, "max_retries": 0}


def same(sides: Sides, scenario: Callable[[OpenAI], Any], **options: Any) -> Any:
    """Runs the scenario directly and through Tidegate. Asserts that the results are equal, and returns one."""
    with client_of(sides.direct, **options) as client:
        direct = plain(scenario(client))
    with client_of(sides.through, **options) as client:
        through = plain(scenario(client))
    assert through == direct, "the answer through Tidegate (left) differs from the upstream's (right)"
    return direct


def same_async(sides: Sides, scenario: Callable[[AsyncOpenAI], Awaitable[Any]], **options: Any) -> Any:
    async def run(server: Server) -> Any:
        async with async_client_of(server, **options) as client:
            return plain(await scenario(client))

    direct = asyncio.run(run(sides.direct))
    through = asyncio.run(run(sides.through))
    assert through == direct, "the answer through Tidegate (left) differs from the upstream's (right)"
    return direct


def plain(value: Any) -> Any:
    """Converts SDK models to dictionaries, with unknown fields and explicit nulls but without absent fields."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def without(value: Any, *names: str) -> Any:
    """A copy without these keys at any depth, for values that differ between calls."""
    if isinstance(value, dict):
        return {key: without(item, *names) for key, item in value.items() if key not in names}
    if isinstance(value, list):
        return [without(item, *names) for item in value]
    return value
