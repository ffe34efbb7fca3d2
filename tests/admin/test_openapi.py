"""The admin API conforms to /api/openapi.json: every operation, with valid and invalid data."""

import json
import urllib.request

import hypothesis
import pytest
import schemathesis
from openai import OpenAI
from schemathesis.checks import CHECKS
from schemathesis.generation import GenerationMode

from harness import servers
from harness.process import poll
from harness.sdk import client_of

# The conversation that requests ask for.
NAME = "described"

MASKING = """
[context]
strategy = "hybrid"
[context.mask]
keep = { turns = 1 }
pace = "every_turn"
"""


@pytest.fixture(scope="session")
def admin(mock, tmp_path_factory):
    """The admin address of a Tidegate with one conversation."""
    with servers.tidegate(mock, tmp_path_factory.mktemp("described"), MASKING) as server:
        with client_of(server) as client:
            converse(client)
        conversations = f"{server.admin}/api/conversations"
        poll(lambda: turns_counted(conversations) == 4, "the turns to be counted", 10)
        yield server.admin


@pytest.fixture(scope="session")
def described(admin):
    return schemathesis.openapi.from_url(f"{admin}/api/openapi.json")


def converse(client: OpenAI) -> None:
    messages = [{"role": "system", "content": "You look after a harbour."}, {"role": "user", "content": "Why does berth 7 flood?"}]
    for turn in range(4):
        client.chat.completions.create(model="gpt-4o", messages=messages, extra_headers={"x-conversation-id": NAME})
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "read_gauge", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": "3.30 m\n" * 80})


def turns_counted(url: str) -> int:
    with urllib.request.urlopen(url) as answer:
        return sum(one["requests"] for one in json.load(answer)["conversations"])


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    # Generated ids name no conversation, so replace half of them by one that exists.
    if path_parameters and "id" in path_parameters and context.operation.method != "delete" and len(path_parameters["id"]) % 2:
        path_parameters["id"] = NAME
    if path_parameters and isinstance(path_parameters.get("number"), int):
        path_parameters["number"] = 1 + path_parameters["number"] % 6
    return path_parameters


# Valid by type, but refused by content: a policy has its own grammar, a memory must not be blank, and a message may lack members that
# its role requires.
REFUSES_VALID_TYPES = ("/api/explain", "/api/conversations/{id}/memory")

DOCUMENT = json.loads((servers.ROOT / "crates/admin/src/openapi.json").read_text())
OPERATIONS = [
    (path, method)
    for path, item in DOCUMENT["paths"].items()
    for method in ("get", "put", "post", "delete")
    # This stream never ends.
    if method in item and path != "/api/overview/live"
]


def modes(path: str, method: str) -> list[GenerationMode]:
    """An operation without input has no invalid input."""
    item = DOCUMENT["paths"][path]
    takes = {"parameters", "requestBody"} & (item.keys() | item[method].keys())
    return list(GenerationMode) if takes else [GenerationMode.POSITIVE]


CASES = [(path, method, mode) for path, method in OPERATIONS for mode in modes(path, method)]


@pytest.mark.parametrize(("path", "method", "mode"), CASES, ids=lambda part: getattr(part, "value", part))
def test_every_operation_matches_its_description(described, path, method, mode):
    excluded = [CHECKS.get_one("positive_data_acceptance")] if path in REFUSES_VALID_TYPES else []

    @hypothesis.settings(
        max_examples=15, derandomize=True, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(case=described[path][method].as_strategy(generation_mode=mode))
    def ask(case):
        case.validate_response(case.call(), excluded_checks=excluded)

    ask()


def test_the_served_description_is_the_file(admin):
    with urllib.request.urlopen(f"{admin}/api/openapi.json") as answer:
        assert json.load(answer) == DOCUMENT
    for path, method in OPERATIONS:
        operation = DOCUMENT["paths"][path][method]
        assert operation["summary"] and operation["operationId"], path
        assert {"401", "403"} <= operation["responses"].keys(), path


def test_the_raw_figures_of_a_turn_are_described(admin):
    """Every member must be described, although the schema allows others."""
    schemas = DOCUMENT["components"]["schemas"]

    def members(url: str, *path: str | int) -> set[str]:
        with urllib.request.urlopen(f"{admin}{url}") as answer:
            value = json.load(answer)
        for step in path:
            value = value[step]
        return set(value)

    turn = f"/api/conversations/{NAME}/turns/1"
    assert members(turn, "turn") == set(schemas["Turn"]["properties"])
    assert members(turn) == set(schemas["TurnDetail"]["properties"])
    assert members("/api/overview", "totals") == set(schemas["Figures"]["properties"])
    assert members("/api/overview") == set(schemas["Overview"]["properties"])
    assert members("/api/conversations", "conversations", 0) == set(schemas["Summary"]["properties"])
    assert members("/api/config") == set(schemas["Configuration"]["properties"])
