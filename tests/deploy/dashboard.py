"""What the Grafana dashboard asks, as Grafana would send it to Prometheus."""

import dataclasses
import json
import re
from typing import Any

from harness.servers import ROOT

FILE = ROOT / "deploy" / "grafana" / "dashboard.json"
# What stands for Grafana's variables: a whole minute of scrapes a second apart, and everything that there is to choose.
VARIABLES = {"$__rate_interval": "1m", "$__range": "1h"}
CHOICES = ("job", "instance", "route", "model")


@dataclasses.dataclass(frozen=True)
class Query:
    panel: str
    # Which of the panel's queries it is: A, B and so on.
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
    """Marks on the time axis. Most of the time there is nothing to mark."""
    return [Query(note["name"], "A", filled_in(note["expr"])) for note in load()["annotations"]["list"]]


def filled_in(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    for name in CHOICES:
        expression = expression.replace(f'=~"${name}"', '=~".*"')
    # A zero for want of anything else would hide that there is nothing.
    expression = expression.replace(" or vector(0)", "")
    assert "$" not in expression, f"nobody fills in what is left in {expression}"
    return expression


def metric_names(expression: str) -> set[str]:
    """The metrics of a PromQL expression: what is left of its words without labels, functions and their lists."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", expression)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    words = re.findall(r"\b[a-zA-Z_:][\w:]*\b(?!\s*\()", bare)
    return {word for word in words if word not in {"and", "or", "unless", "bool", "offset", "by"}}
