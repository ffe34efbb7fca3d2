"""The compose file and the configurations that it mounts."""

import re
import tomllib

import pytest
import yaml
from compose_spec import PyCompose
from files import DEPLOY, checked

FILE = DEPLOY / "compose.yaml"
SECRETS = {"REDIS_PASSWORD": "secret"}


@pytest.fixture(scope="module")
def compose() -> dict:
    return yaml.safe_load(FILE.read_text())


def test_the_compose_file_is_valid():
    parsed = PyCompose.from_yaml(FILE.read_text())
    parsed.validate()
    assert set(parsed.service_names()) == {"tidegate", "redis", "prometheus", "grafana", "otel-collector"}


def test_every_mounted_file_exists(compose: dict):
    for name, config in compose["configs"].items():
        assert (DEPLOY / config["file"]).is_file(), name
    used = [entry["source"] for service in compose["services"].values() for entry in service.get("configs", [])]
    assert sorted(used) == sorted(compose["configs"])


def test_no_service_has_more_rights_than_it_needs(compose: dict):
    for name, service in compose["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
    assert compose["services"]["tidegate"]["read_only"] is True


def test_every_variable_is_in_the_example_environment():
    named = set(re.findall(r"\$\{(\w+)", FILE.read_text()))
    assert named == set(re.findall(r"^#?(\w+)=", (DEPLOY / "env.example").read_text(), re.MULTILINE))
    # A variable without a default must be required by name and not be empty.
    assert "GRAFANA_PASSWORD:?" in FILE.read_text()


def test_tidegate_accepts_the_configurations():
    shown = checked(DEPLOY / "proxy.toml", SECRETS, "--changed")
    assert "redis://***@redis:6379" in shown
    assert '"0.0.0.0:9090"' in shown, "Prometheus, in another container, cannot reach the admin address"
    assert '"embedded:/data"' in checked(DEPLOY / "image.toml", {}, "--changed")


def test_the_collector_has_a_pipeline_for_each_signal():
    """Only checks the structure, because the collector is not available."""
    config = yaml.safe_load((DEPLOY / "otel-collector.yaml").read_text())
    assert set(config["service"]["pipelines"]) == {"traces", "metrics"}
    for pipeline in config["service"]["pipelines"].values():
        for part in ("receivers", "processors", "exporters"):
            assert set(pipeline[part]) <= set(config[part])
        assert pipeline["processors"] == ["memory_limiter", "batch"], "the memory limiter must come first and the batches last"
    assert set(config["receivers"]["otlp"]["protocols"]) == {"grpc", "http"}


def test_grafana_is_provisioned_with_prometheus_and_the_dashboard(compose: dict):
    provisioning = DEPLOY / "grafana" / "provisioning"
    [source] = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    [provider] = yaml.safe_load((provisioning / "dashboards" / "tidegate.yaml").read_text())["providers"]
    targets = {entry["source"]: entry["target"] for entry in compose["services"]["grafana"]["configs"]}
    assert targets["grafana_dashboard"].startswith(provider["options"]["path"] + "/")


def test_every_deployment_has_the_default_policy():
    """Moving from the binary to compose, a sidecar or the chart changes where Tidegate runs, not what it does."""
    chart = yaml.safe_load((DEPLOY / "helm/tidegate/values.yaml").read_text())["config"]
    sidecar = next(yaml.safe_load_all((DEPLOY / "kubernetes/sidecar.yaml").read_text()))["data"]["proxy.toml"]
    for text in ((DEPLOY / "proxy.toml").read_text(), (DEPLOY / "image.toml").read_text(), chart, sidecar):
        settings = tomllib.loads(text)
        assert not {"context", "routes"} & settings.keys(), text
