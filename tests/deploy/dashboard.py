"""The queries of the Grafana dashboard, as Grafana sends them to Prometheus."""

import dataclasses
import json
import re
from typing import Any

from harness.servers import ROOT

FILE = ROOT / "deploy" / "grafana" / "dashboard.json"
# Values for Grafana's variables: a minute of scrapes a second apart, and every choice.
VARIABLES = {"$__rate_interval": "1m", "$__range": "1h"}
CHOICES = ("job", "instance", "route", "model")


@dataclasses.dataclass(frozen=True)
class Query:
    panel: str
    # The letter of the query in its panel: A, B and so on.
    letter: str
    expression: str


def load() -> dict[str, Any]:
    return json.loads(FILE.read_text())


def panels() -> list[dict[str, Any]]:
    return [panel for panel in load()["panels"] if panel["type"] != "row"]


def queries() -> list[Query]:
    return [
        Query(panel["title"], target["refId"], filled_in(target["expr"]))
        for panel in panels()
        for target in panel["targets"]
    ]


def annotations() -> list[Query]:
    """Marks on the time axis, which are usually empty."""
    return [Query(note["name"], "A", filled_in(note["expr"])) for note in load()["annotations"]["list"]]


def filled_in(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    for name in CHOICES:
        expression = expression.replace(f'=~"${name}"', '=~".*"')
    # A default of zero would hide that there is no data.
    expression = expression.replace(" or vector(0)", "")
    assert "$" not in expression, f"unknown variable in {expression}"
    return expression


def metric_names(expression: str) -> set[str]:
    """The metrics of a PromQL expression: its words except labels, functions and their arguments."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", expression)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    words = re.findall(r"\b[a-zA-Z_:][\w:]*\b(?!\s*\()", bare)
    return {word for word in words if word not in {"and", "or", "unless", "bool", "offset", "by"}}
