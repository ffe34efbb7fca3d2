"""The alert rules and the Grafana dashboard against a real Prometheus that scrapes a real Tidegate under load."""

import dataclasses
import math
import pathlib
import re
import urllib.request
from collections.abc import Iterator

import dashboard
import pytest
import traffic
import yaml

from harness import servers
from harness.process import poll
from harness.prometheus import Prometheus, prometheus, promtool
from harness.sdk import client_of
from harness.servers import ROOT, Server, unused_address

DIRECTORY = ROOT / "deploy" / "prometheus"
ALERTS = DIRECTORY / "alerts.yml"
TOKEN = "a-token-for-the-admin-address"
DEADLINE = 20.0

# Complaints of promtool about names that predate Tidegate. No others are allowed.
TOTAL = 'counter metrics should have "_total" suffix'
COUNT = 'non-histogram and non-summary metrics should not have "_count" suffix'
SUMMARY = "metric name should not include type 'summary'"
KNOWN_COMPLAINTS = {
    f"agent_context_estimated_cost_usd {TOTAL}",
    f"agent_context_masked_observation_tokens {TOTAL}",
    f"agent_context_summary_calls_total {SUMMARY}",
    f"agent_context_summary_tokens {TOTAL}",
    f"agent_context_summary_tokens {SUMMARY}",
    f"agent_context_tokens_in {TOTAL}",
    f"agent_context_tokens_out {TOTAL}",
    f"agent_context_turn_count {TOTAL}",
    f"agent_context_turn_count {COUNT}",
    f"context_overflow_reject_count {TOTAL}",
    f"context_overflow_reject_count {COUNT}",
    f"context_prune_count {TOTAL}",
    f"context_prune_count {COUNT}",
    f"context_summary_count {TOTAL}",
    f"context_summary_count {COUNT}",
    f"context_summary_count {SUMMARY}",
}


@dataclasses.dataclass(frozen=True)
class Watched:
    prometheus: Prometheus
    tidegate: Server
    without_store: Server


@pytest.fixture(scope="module")
def watched(mock: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Two Tidegates, one of them without a reachable store, after two rounds of load that Prometheus has scraped."""
    directories = [tmp_path_factory.mktemp(name) for name in ("tidegate", "alone", "prometheus")]
    with (
        unused_address() as unused,
        servers.tidegate(mock, directories[0], traffic.CONFIG, environment(unused)) as tidegate,
        servers.tidegate(
            mock, directories[1], f'[store]\nurl = "redis://{unused}"\n', environment(unused)
        ) as without_store,
        prometheus(directories[2], scrape_config([tidegate, without_store], directories[2])) as server,
        client_of(tidegate) as client,
        client_of(without_store) as client_of_other,
    ):
        # A rate needs two scrapes, and a series that starts between them has none. So the first round creates the
        # series, and the second one increases them.
        for number in range(2):
            traffic.round_of_everything(client, number)
            traffic.degraded_by_the_store(client_of_other, f"alone-{number}")
            await_scrape(server)
        yield Watched(server, tidegate, without_store)
        # On shutdown the process would wait ten seconds for the archive, which is unreachable.
        tidegate.process.child.kill()


def environment(unused: str) -> dict[str, str]:
    """The collector is unreachable: spans are created and dropped."""
    return {"NOBODY": unused, "TIDEGATE_ADMIN_TOKEN": TOKEN, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{unused}"}


def scrape_config(tidegates: list[Server], directory: pathlib.Path) -> dict:
    """The configuration of deploy/ with the addresses and the token path of this machine."""
    config = yaml.safe_load((DIRECTORY / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(ALERTS)]
    [job] = config["scrape_configs"]
    (directory / "token").write_text(TOKEN)
    job["authorization"]["credentials_file"] = str(directory / "token")
    del job["dns_sd_configs"]
    job["static_configs"] = [{"targets": [admin.removeprefix("http://") for admin in map(admin_of, tidegates)]}]
    return config


def admin_of(server: Server) -> str:
    assert server.admin
    return server.admin


def await_scrape(server: Prometheus) -> None:
    """Waits until both have been scraped twice, because the first scrape may have started before this call."""
    [now] = server.query("vector(time())")
    since = float(now["value"][1])

    def scraped() -> bool:
        samples = server.query("timestamp(up == 1)")
        return len(samples) == 2 and all(float(sample["value"][1]) > since + 1.0 for sample in samples)

    poll(scraped, "Prometheus to scrape both processes", DEADLINE)


def metrics(server: Server) -> str:
    request = urllib.request.Request(f"{admin_of(server)}/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.read().decode()


def alerts() -> list[dict]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "--syntax-only", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_accepts(arguments: tuple[str, ...]):
    result = promtool(*arguments, directory=DIRECTORY)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_has_a_description_and_a_test():
    tested = (DIRECTORY / "alerts_test.yml").read_text()
    for alert in alerts():
        assert alert["labels"]["severity"] in {"page", "ticket"}, alert["alert"]
        assert len(alert["annotations"]["summary"]) > 20, alert["alert"]
        assert len(alert["annotations"]["description"]) > 80, alert["alert"]
        assert f'alertname="{alert["alert"]}"' in tested, f"{alert['alert']} is not in alerts_test.yml"


def test_promtool_accepts_the_metrics(watched: Watched):
    result = promtool("check", "metrics", directory=DIRECTORY, stdin=metrics(watched.tidegate))
    complaints = set(filter(None, (result.stdout + result.stderr).splitlines()))
    assert complaints == KNOWN_COMPLAINTS


def test_every_queried_metric_exists(watched: Watched):
    text = metrics(watched.tidegate) + metrics(watched.without_store)
    families = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    known = {"up", *families}
    known |= {
        f"{name}_{part}"
        for name, kind in families.items()
        if kind == "histogram"
        for part in ("bucket", "count", "sum")
    }
    asked = [query.expression for query in dashboard.queries() + dashboard.annotations()]
    asked += [alert["expr"] for alert in alerts()]
    names = {name for expression in asked for name in dashboard.metric_names(expression)}
    assert len(names) > 20
    assert not names - known


@pytest.mark.parametrize("query", dashboard.queries(), ids=lambda query: f"{query.panel} {query.letter}")
def test_every_query_of_the_dashboard_has_data(watched: Watched, query: dashboard.Query):
    samples = watched.prometheus.query(query.expression)
    assert samples, query.expression
    # Zero divided by zero is a sample, but not data.
    assert any(not math.isnan(float(sample["value"][1])) for sample in samples), samples


def test_the_annotations_of_the_dashboard_are_valid_queries(watched: Watched):
    for query in dashboard.annotations():
        watched.prometheus.query(query.expression)


def test_prometheus_evaluates_every_alert(watched: Watched):
    groups = watched.prometheus.api("rules")["groups"]
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert set(rules) == {alert["alert"] for alert in alerts()}
    for alert in alerts():
        rule = rules[alert["alert"]]
        assert (rule["health"], rule.get("lastError", "")) == ("ok", "")
        watched.prometheus.query(alert["expr"])


def test_the_dashboard_shows_the_load(watched: Watched):
    """The figures of the first row match the load."""
    value = {query.panel: query.expression for query in dashboard.queries()}
    # The same time for all queries: an increase is extrapolated to the ends of its window, which move.
    [now] = watched.prometheus.query("vector(time())")

    def of(panel: str) -> float:
        [sample] = watched.prometheus.query(value[panel], at=now["value"][0])
        return float(sample["value"][1])

    assert 0 < of("Tokens saved") < 1
    assert 0 < of("Prompt tokens from cache") < 1
    assert of("Without edits") > of("Billed") > 0
    assert of("Net avoided cost") == pytest.approx(of("Without edits") - of("Billed") - of("Cost of summarizers"))
    for panel in ("Turns", "Refused", "Degraded", "Without a price"):
        assert of(panel) > 0, panel
