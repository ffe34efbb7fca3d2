"""The Helm chart, rendered by Helm itself."""

import json
import pathlib
import subprocess
import tomllib
from typing import Any

import pytest
import yaml
from files import DEPLOY, checked, packaged, run, succeed
from manifests import (
    assert_can_write_only,
    assert_hardened,
    assert_probed,
    documents,
    of_kind,
    size,
    the,
    tidegate_container,
    validate,
    volume_size,
)

CHART = DEPLOY / "helm" / "tidegate"
TOKEN = {"secret": {"values": {"TIDEGATE_ADMIN_TOKEN": "t"}}}
REDIS = {"store": {"url": "redis://:${REDIS_PASSWORD}@redis:6379"}, "secret": {"existing": "keys"}}
EVERYTHING = {
    **REDIS,
    "replicaCount": 3,
    "upstream": "https://llm.example",
    "env": [{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4317"}],
    "imagePullSecrets": [{"name": "pull"}],
    "metrics": {"annotations": True, "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "service": {"type": "LoadBalancer", "annotations": {"a": "b"}},
    "serviceAccount": {"annotations": {"a": "b"}},
    "autoscaling": {"enabled": True},
    "podAnnotations": {"a": "b"},
    "podLabels": {"a": "b"},
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    ],
}


def template(values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    # Helm reads the values as YAML from its standard input, and JSON is YAML.
    command = [packaged("helm"), "template", "gate", CHART, "--kube-version", "1.30", "--values", "-"]
    return run(*command, stdin=json.dumps(values))


def rendered(values: dict[str, Any]) -> list[dict]:
    result = template(values)
    assert result.returncode == 0, result.stderr
    return documents(result.stdout)


def refused(values: dict[str, Any]) -> str:
    result = template(values)
    assert result.returncode != 0, result.stdout
    return result.stderr


def test_helm_lint_passes():
    token = "secret.values.TIDEGATE_ADMIN_TOKEN=t"
    succeed(packaged("helm"), "lint", CHART, "--strict", "--kube-version", "1.30", "--set", token)


@pytest.mark.parametrize("values", [TOKEN, REDIS, EVERYTHING], ids=["token", "redis", "everything"])
def test_the_manifests_are_valid(values: dict[str, Any]):
    manifests = rendered(values)
    validate(manifests)
    deployment = the(manifests, "Deployment")
    assert_hardened(deployment)
    assert_probed(tidegate_container(deployment))
    assert_can_write_only(tidegate_container(deployment), "/data")


def test_the_rendered_kinds():
    assert {manifest["kind"] for manifest in rendered(EVERYTHING)} == {
        "ConfigMap",
        "Deployment",
        "HorizontalPodAutoscaler",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
    }
    assert {manifest["kind"] for manifest in rendered(TOKEN)} == {
        "ConfigMap",
        "Deployment",
        "Secret",
        "Service",
        "ServiceAccount",
    }


@pytest.mark.parametrize("values", [TOKEN, EVERYTHING], ids=["token", "everything"])
def test_tidegate_accepts_the_configuration_of_the_pod(values: dict[str, Any], tmp_path: pathlib.Path):
    manifests = rendered(values)
    config = tmp_path / "proxy.toml"
    config.write_text(the(manifests, "ConfigMap")["data"]["proxy.toml"])
    environment = {entry["name"]: entry["value"] for entry in tidegate_container(the(manifests, "Deployment"))["env"]}
    assert environment.pop("TIDEGATE_CONFIG") == "/etc/tidegate/proxy.toml"
    shown = checked(config, {**environment, "REDIS_PASSWORD": "secret"}, "--changed")
    assert '"0.0.0.0:8080"' in shown
    assert '"0.0.0.0:9090"' in shown
    assert ("redis://***@redis:6379" if values is EVERYTHING else "embedded:/data") in shown


def test_the_store_fits_its_volume():
    # The default of `store.max_size`.
    assert 2 * size("10GiB") < volume_size(the(rendered(TOKEN), "Deployment"))
    smaller = {**TOKEN, "store": {"sizeLimit": "5Gi"}}
    assert volume_size(the(rendered(smaller), "Deployment")) == size("5Gi")


def test_selectors_and_references_match():
    manifests = rendered(EVERYTHING)
    labels = the(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    for service in of_kind(manifests, "Service"):
        assert service["spec"]["selector"].items() <= labels
    assert the(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"].items() <= labels
    monitor = the(manifests, "ServiceMonitor")["spec"]
    [scraped] = [
        service
        for service in of_kind(manifests, "Service")
        if monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    ]
    assert (scraped["metadata"]["name"], scraped["spec"]["type"]) == ("gate-tidegate-admin", "ClusterIP")
    [endpoint] = monitor["endpoints"]
    assert endpoint["port"] in [port["name"] for port in scraped["spec"]["ports"]]
    assert endpoint["authorization"]["credentials"] == {"name": "keys", "key": "TIDEGATE_ADMIN_TOKEN"}
    assert the(manifests, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"] == "gate-tidegate"


EXPOSED = {
    **REDIS,
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-buffering": "off"},
        "hosts": ["tidegate.example.com"],
        "tls": [{"secretName": "tls", "hosts": ["tidegate.example.com"]}],
    },
    "networkPolicy": {
        "enabled": True,
        "admins": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        "egress": [{"to": [{"podSelector": {"matchLabels": {"app": "redis"}}}], "ports": [{"port": 6379}]}],
    },
}


def test_the_ingress_leads_to_the_clients_port_and_never_to_the_admin_address():
    manifests = rendered(EXPOSED)
    validate(manifests)
    ingress = the(manifests, "Ingress")["spec"]
    [rule] = ingress["rules"]
    [path] = rule["http"]["paths"]
    assert (rule["host"], path["backend"]["service"]) == ("tidegate.example.com", {"name": "gate-tidegate", "port": {"name": "http"}})
    assert "ingress.hosts" in refused({**TOKEN, "ingress": {"enabled": True}})


def test_the_network_policy_names_who_may_connect():
    policy = the(rendered(EXPOSED), "NetworkPolicy")["spec"]
    labels = the(rendered(EXPOSED), "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    assert policy["podSelector"]["matchLabels"].items() <= labels
    clients, admins = policy["ingress"]
    assert (clients["ports"], clients["from"]) == ([{"port": "http"}], [{"podSelector": {}}])
    assert (admins["ports"], admins["from"]) == ([{"port": "admin"}], EXPOSED["networkPolicy"]["admins"])
    assert policy["egress"][-1] == EXPOSED["networkPolicy"]["egress"][0]
    assert not {"Ingress", "NetworkPolicy"} & {manifest["kind"] for manifest in rendered(TOKEN)}


def test_unworkable_values_are_refused():
    assert "the admin address needs a token" in refused({})
    assert "several replicas need redis://" in refused({**TOKEN, "replicaCount": 2})
    assert "several replicas need redis://" in refused({**TOKEN, "autoscaling": {"enabled": True}})
    assert "replicas" in refused({**TOKEN, "replicas": 2}), "an unknown key was accepted"
    assert "store.url" in refused({**TOKEN, "store": {"url": "postgres://db"}})
    assert "store.url" in refused({**TOKEN, "store": {"url": "embedded:/elsewhere"}}), "a directory that is not writable was accepted"


def test_the_versions_match_the_program():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    workspace = tomllib.loads((DEPLOY.parent / "Cargo.toml").read_text())["workspace"]["package"]
    assert chart["appVersion"] == workspace["version"]
    image = tidegate_container(the(rendered(TOKEN), "Deployment"))["image"]
    assert image == f"tidegate:{workspace['version']}"
